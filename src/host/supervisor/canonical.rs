//! Paths that people and models write, in the one form that scopes compare.

use std::path::{Component, Path, PathBuf};

/// The path with every symlink of its existing part resolved; what is not there yet keeps its
/// names. A `..` behind the existing part cannot be resolved and gives `None`, as does a relative
/// path.
pub(super) fn canonical(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(real) = at.canonicalize() {
            return Some(rest.iter().rev().fold(real, |path, name| path.join(name)));
        }
        match at.components().next_back()? {
            Component::Normal(name) => rest.push(name.to_owned()),
            _ => return None,
        }
        at = at.parent()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_resolved_up_to_what_does_not_exist_yet() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(canonical(&root.join("link/new/x")), Some(root.join("real/new/x")));
        assert_eq!(canonical(&root.join("real/../link")), Some(root.join("real")));
        assert_eq!(canonical(&root.join("new/../x")), None);
        assert_eq!(canonical(Path::new("ws")), None);
    }
}
