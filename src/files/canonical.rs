//! Resolves paths to canonical ones and lists the links in them. A path without links needs one
//! system call, because a command's world names hundreds of paths and nearly all have no link.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The most symbolic links that are followed on one path.
const LINKS: usize = 40;

/// Returns the same result as [`Path::canonicalize`].
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    match reached_directly(path) {
        Some(Ok(())) => Ok(path.components().collect()),
        Some(Err(error)) => Err(error.into()),
        None => path.canonicalize(),
    }
}

/// Whether a path contains a link, or the kernel cannot resolve it in one step. Its target need not
/// exist.
pub fn leads_through_links(path: &Path) -> bool {
    reached_directly(path).is_none()
}

/// The symbolic links of a path, in the order in which the kernel follows them, at most 40. The
/// last component counts, too.
pub fn links_on(path: &Path) -> Vec<PathBuf> {
    follow_links(path).links.into_iter().map(|(link, _)| link).collect()
}

/// The paths that the kernel passes while it follows links: each link, joined with the rest of the
/// path.
pub fn names_on(path: &Path) -> Vec<PathBuf> {
    follow_links(path).links.into_iter().map(|(_, name)| name).collect()
}

/// The target of a path with its links resolved; it need not exist. `None` for more than 40 links,
/// which the kernel does not follow.
pub fn led_to(path: &Path) -> Option<PathBuf> {
    follow_links(path).end
}

/// The directories, links and the file that the kernel passes on a path: another content is reached
/// only if one of them is exchanged.
pub fn places_on(path: &Path) -> Vec<PathBuf> {
    follow_links(path).places
}

/// The way from a path to its target.
#[derive(Default)]
struct Walk {
    /// Each link alone and joined with the rest of the path.
    links: Vec<(PathBuf, PathBuf)>,
    places: Vec<PathBuf>,
    /// The resolved target; `None` for more than [`LINKS`] links.
    end: Option<PathBuf>,
}

/// Components are resolved as the kernel does it: `..` after a link is the parent directory of the
/// link's target.
fn follow_links(path: &Path) -> Walk {
    let mut walk = Walk::default();
    if reached_directly(path).is_some() {
        walk.places = path.ancestors().map(Path::to_owned).collect();
        walk.end = Some(path.components().collect());
        return walk;
    }
    let (mut here, mut rest) = (PathBuf::new(), path.to_owned());
    loop {
        let mut parts = rest.components();
        let Some(part) = parts.next() else { return Walk { end: Some(here), ..walk } };
        let beyond = parts.as_path();
        let next = match part {
            Component::ParentDir => {
                here.pop();
                None
            }
            Component::CurDir => None,
            part => {
                here.push(part);
                walk.places.push(here.clone());
                std::fs::read_link(&here).ok()
            }
        };
        rest = match next {
            Some(_) if walk.links.len() == LINKS => return walk,
            Some(target) => {
                walk.links.push((here.clone(), here.join(beyond)));
                here.pop();
                target.join(beyond)
            }
            None => beyond.to_owned(),
        };
    }
}

/// Whether a path without links exists, or the error of the kernel. `None` if the path contains a
/// link or `..`, or if the kernel cannot tell.
fn reached_directly(path: &Path) -> Option<Result<(), Errno>> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(_) => Some(Ok(())),
        // The kernel reports a link before a missing or unreadable component after it.
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
            // Deep enough that no `..` leaves the directory of this test.
            let root = top.path().canonicalize().unwrap().join("1/2/3/4");
            fs::create_dir_all(&root).unwrap();
            for (place, target) in made {
                // The call fails where the path exists or cannot be created; both are fine.
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
            // A file created at the result is found at the requested path.
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
        let passed = places_on(&root.join("m/../x"));
        let passed: Vec<_> = passed.iter().filter_map(|one| one.strip_prefix(&root).ok()).collect();
        let expected = ["", "m", "", "else", "else/d", "else/x"];
        assert_eq!(passed, expected.map(Path::new));
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
