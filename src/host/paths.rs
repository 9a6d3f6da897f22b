//! Paths that people and models write, in the one form that scopes compare.

use crate::host::verb::Cx;
use crate::protocol::Refusal;
use std::path::{Component, Path, PathBuf};

/// The form of a path that counts, or why it has none.
pub(crate) async fn absolute(cx: &Cx, path: &Path) -> Result<PathBuf, Refusal> {
    let found = canonical(cx, path).await?;
    found.ok_or_else(|| Refusal::invalid(format!("{} is no absolute path", path.display())))
}

/// The form of a path that counts, if it has one.
pub(crate) async fn canonical(cx: &Cx, path: &Path) -> Result<Option<PathBuf>, Refusal> {
    let named = path.to_owned();
    cx.files(path, move || resolve(&named)).await
}

/// The path with every symlink of its existing part resolved; what is not there yet keeps its
/// names. A `..` behind the existing part cannot be resolved and gives `None`, as does a relative
/// path. Blocking.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
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
        assert_eq!(resolve(&root.join("link/new/x")), Some(root.join("real/new/x")));
        assert_eq!(resolve(&root.join("real/../link")), Some(root.join("real")));
        assert_eq!(resolve(&root.join("new/../x")), None);
        assert_eq!(resolve(Path::new("ws")), None);
    }
}
