//! Canonical paths and the links that lead to them, found with one call of the kernel where a path
//! leads through no link. A command's world names hundreds of paths, and nearly all are like that.

use crate::files::lexical;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most symbolic links that are followed on one path.
const LINKS: usize = 40;

/// What [`Path::canonicalize`] answers.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match reached_directly(path) {
        Some(Ok(())) => Ok(path.components().collect()),
        Some(Err(error)) => Err(error.into()),
        None => path.canonicalize(),
    }
}

/// The symbolic links through which a path leads, in the order in which they are followed, at most
/// 40. The last part of the path counts, too.
pub fn links_on(path: &Path) -> Vec<PathBuf> {
    follow_links(path).0
}

/// Where a path leads through its links, whether something lies there or not.
pub fn led_to(path: &Path) -> PathBuf {
    follow_links(path).1
}

/// The links on a path, and where it leads beyond them.
fn follow_links(path: &Path) -> (Vec<PathBuf>, PathBuf) {
    let (mut found, mut rest) = (Vec::new(), path.to_owned());
    while found.len() < LINKS && reached_directly(&rest).is_none() {
        let parts: Vec<&Path> = rest.ancestors().collect();
        let Some(link) = parts.into_iter().rev().find(|part| part.is_symlink()) else { break };
        let (Ok(target), Some(base)) = (std::fs::read_link(link), link.parent()) else { break };
        let beyond = rest.strip_prefix(link).unwrap_or(Path::new(""));
        let next = lexical(&base.join(target).join(beyond));
        found.push(link.to_owned());
        rest = next;
    }
    (found, rest)
}

/// Whether something lies at a path that leads through no link, or why it is not reached. `None` where
/// a link lies on the way, where the path has to be read from its parts, or the kernel does not tell.
fn reached_directly(path: &Path) -> Option<Result<(), Errno>> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(_) => Some(Ok(())),
        // The kernel meets a link before it meets what is missing or shut behind the link.
        Err(error @ (Errno::NOENT | Errno::NOTDIR | Errno::ACCESS)) => Some(Err(error)),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const NAMES: [&str; 4] = ["a", "b", "c", ".."];

    fn path() -> impl Strategy<Value = PathBuf> {
        prop::collection::vec(prop::sample::select(&NAMES), 1..5)
            .prop_map(|names| names.iter().collect())
    }

    /// The links on a path, each part looked at.
    fn links_one_by_one(path: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut rest = path.to_owned();
        'next: while found.len() < LINKS {
            let mut here = PathBuf::new();
            for part in rest.components() {
                here.push(part);
                if let Ok(target) = fs::read_link(&here) {
                    let beyond = rest.strip_prefix(&here).unwrap();
                    let next = lexical(&here.parent().unwrap().join(target).join(beyond));
                    found.push(here);
                    rest = next;
                    continue 'next;
                }
            }
            break;
        }
        found
    }

    proptest! {
        #[test]
        fn a_path_is_resolved_as_the_kernel_resolves_it_part_by_part(
            made in prop::collection::vec((path(), prop::option::of(path())), 0..8),
            asked in path(),
        ) {
            let top = tempfile::tempdir().unwrap();
            // Far enough below that no `..` leads out of the directory of this test.
            let root = top.path().canonicalize().unwrap().join("1/2/3/4");
            fs::create_dir_all(&root).unwrap();
            for (place, target) in made {
                // Where a place is taken or leads nowhere it stays as it is.
                let place = root.join(place);
                let _ = match target {
                    Some(target) => symlink(target, place),
                    None => fs::create_dir_all(&place).and_then(|()| fs::write(place.join("a"), "")),
                };
            }
            let asked = root.join(asked);
            let expected = asked.canonicalize().map_err(|error| error.raw_os_error());
            prop_assert_eq!(canonical(&asked).map_err(|error| error.raw_os_error()), expected);
            prop_assert_eq!(links_on(&asked), links_one_by_one(&asked));
        }
    }
}
