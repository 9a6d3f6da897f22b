//! Canonical paths and the links that lead to them, found with one call of the kernel where a path
//! leads through no link. A command's world names hundreds of paths, and nearly all are like that.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most symbolic links that are followed on one path.
const LINKS: usize = 40;

/// The same as [`Path::canonicalize`].
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match reached_directly(path) {
        Some(Ok(())) => Ok(path.components().collect()),
        Some(Err(error)) => Err(error.into()),
        None => path.canonicalize(),
    }
}

/// Whether a path leads through a link, or has to be read part by part. What it leads to does not have to exist.
pub fn leads_through_links(path: &Path) -> bool {
    reached_directly(path).is_none()
}

/// The symbolic links through which a path leads, in the order in which they are followed, at most
/// 40. The last part of the path counts, too.
pub fn links_on(path: &Path) -> Vec<PathBuf> {
    follow_links(path).0.into_iter().map(|(link, _)| link).collect()
}

/// The paths on the way through links: each link, joined with the rest of the path.
pub fn names_on(path: &Path) -> Vec<PathBuf> {
    follow_links(path).0.into_iter().map(|(_, name)| name).collect()
}

/// The path to which a path leads through its links; it does not have to exist. `None` behind more than 40 links,
/// which the kernel does not follow.
pub fn led_to(path: &Path) -> Option<PathBuf> {
    follow_links(path).1
}

/// The links on a path, each also with what comes behind it, and where the path leads beyond them. Each part is looked
/// at in the directory in which the kernel looks: `..` behind a link leads to the directory above the link's target.
fn follow_links(path: &Path) -> (Vec<(PathBuf, PathBuf)>, Option<PathBuf>) {
    if reached_directly(path).is_some() {
        return (Vec::new(), Some(path.components().collect()));
    }
    let (mut found, mut here, mut rest) = (Vec::new(), PathBuf::new(), path.to_owned());
    loop {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { return (found, Some(here)) };
        let beyond = parts.as_path();
        let next = match part {
            Component::ParentDir => {
                here.pop();
                None
            }
            Component::CurDir => None,
            part => {
                here.push(part);
                std::fs::read_link(&here).ok()
            }
        };
        rest = match next {
            Some(_) if found.len() == LINKS => return (found, None),
            Some(target) => {
                found.push((here.clone(), here.join(beyond)));
                here.pop();
                target.join(beyond)
            }
            None => beyond.to_owned(),
        };
    }
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
            let (links, place) = (links_on(&asked), led_to(&asked));
            // A file that is made there is found under the requested path.
            if let Some(place) = place.as_ref().filter(|place| place.starts_with(top.path())) {
                let _ = fs::create_dir_all(place);
            }
            if let Ok(expected) = asked.canonicalize() {
                prop_assert_eq!(place, Some(expected));
                for link in links {
                    let aside = link.with_file_name("aside");
                    fs::rename(&link, &aside).unwrap();
                    prop_assert!(!asked.exists(), "{} is not on the way", link.display());
                    fs::rename(&aside, &link).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_parent_behind_a_link_is_the_one_of_its_target() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("else/d")).unwrap();
        symlink(root.join("else/d"), root.join("m")).unwrap();
        symlink("m/../x", root.join("l")).unwrap();
        let place = root.join("else/x");
        assert_eq!(led_to(&root.join("l")), Some(place.clone()), "nothing lies there yet");
        assert_eq!(links_on(&root.join("l/a")), [root.join("l"), root.join("m")]);
        fs::write(&place, "").unwrap();
        assert_eq!(root.join("l").canonicalize().unwrap(), place);
        assert_eq!(led_to(&root.join("m/../m/../x")), Some(place));
    }

    #[test]
    fn behind_more_links_than_the_kernel_follows_lies_nothing() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        let name = |n: usize| root.join(n.to_string());
        for n in 0..=LINKS {
            symlink(name(n + 1), name(n)).unwrap();
        }
        fs::write(name(LINKS + 1), "").unwrap();
        assert!(name(0).canonicalize().is_err() && name(1).canonicalize().is_ok());
        assert_eq!((led_to(&name(0)), led_to(&name(1))), (None, Some(name(LINKS + 1))));
        assert_eq!(links_on(&name(0)).len(), LINKS);
    }
}
