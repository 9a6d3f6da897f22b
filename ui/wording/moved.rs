//! A Pod whose directory was moved.

use std::path::{Path, PathBuf};
use yoi::disk::lasting_id;
use yoi::protocol::{Event, PodInfo};

/// The directory of the Pod, where it lies at or above `here` now and not at its path any more. Blocking.
pub fn around(info: &PodInfo, here: &Path) -> Option<PathBuf> {
    let known = info.directory_id.as_ref()?;
    let found = here.ancestors().find(|dir| lasting_id(dir).as_ref() == Some(known))?;
    (found != info.cwd).then(|| found.to_owned())
}

/// What followed a directory to its new place.
pub fn sentence(reply: &Event) -> Option<String> {
    let Event::Relocated { to, pods, .. } = reply else { return None };
    let names: Vec<&str> = pods.iter().map(|pod| pod.as_str()).collect();
    let works = if names.len() == 1 { "works" } else { "work" };
    Some(format!("{} {works} in {} from now on", names.join(", "), to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use yoi::protocol::{PodName, State};

    #[test]
    fn a_moved_directory_is_found_from_inside_it_and_a_new_one_at_the_old_path_is_not() {
        let root = tempfile::tempdir().unwrap();
        let (old, new) = (root.path().join("old"), root.path().join("new"));
        std::fs::create_dir_all(old.join("deep/er")).unwrap();
        let name = PodName::parse("a").unwrap();
        let info = PodInfo::bare(name, State::Stopped, 0, old.clone(), old.clone());
        let info = PodInfo { directory_id: lasting_id(&old), ..info };
        assert!(info.directory_id.is_some(), "this file system knows no time of birth");
        assert_eq!(around(&info, &old.join("deep")), None);
        std::fs::rename(&old, &new).unwrap();
        std::fs::create_dir(&old).unwrap();
        for here in [new.clone(), new.join("deep/er")] {
            assert_eq!(around(&info, &here).as_ref(), Some(&new));
        }
        assert_eq!(around(&info, &old), None);
        assert_eq!(around(&info, root.path()), None);
        assert_eq!(around(&PodInfo { directory_id: None, ..info }, &new), None);
    }
}
