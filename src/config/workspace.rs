//! The workspace of a Pod, and whether it may write there by default.

use crate::config::dirs::{Env, var};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directory a Pod's scope covers by default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Canonical.
    pub root: PathBuf,
    pub access: Access,
}

/// The default access of a Pod to its workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    Write,
    /// With the sentence that says why.
    ReadOnly(String),
}

/// The workspace cannot be found.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the directory {}: {cause}", dir.display())]
pub struct NoWorkspace {
    pub dir: PathBuf,
    pub cause: io::Error,
}

impl Workspace {
    /// The nearest directory from `cwd` upwards that has `.yoi/` or `.git`, else `cwd`. A home
    /// directory or `/` is never the workspace of a directory below it. A directory of another
    /// owner is no workspace either, and a `.yoi` or `.git` of another owner is ignored.
    pub fn of(cwd: &Path, env: &Env) -> Result<Self, NoWorkspace> {
        let fail = |cause| NoWorkspace { dir: cwd.into(), cause };
        let cwd = cwd.canonicalize().map_err(fail)?;
        let found = cwd.metadata().map_err(fail)?;
        if !found.is_dir() {
            return Err(fail(io::Error::from(io::ErrorKind::NotADirectory)));
        }
        let owner = found.uid();
        let home = var(env, "HOME").and_then(|home| Path::new(home).canonicalize().ok());
        let top = |dir: &Path| dir.parent().is_none() || home.as_deref() == Some(dir);
        let root = cwd
            .ancestors()
            .take_while(|dir| *dir == cwd || !top(dir))
            .filter(|dir| dir.metadata().is_ok_and(|found| found.uid() == owner))
            .find(|dir| {
                let rules = dir.join(".yoi");
                rules.is_dir() && is_mark(&rules, owner) || is_mark(&dir.join(".git"), owner)
            })
            .unwrap_or(&cwd)
            .to_path_buf();
        let access = access(&root, home.as_deref(), owner);
        Ok(Self { root, access })
    }

    /// The root of a directory's workspace; the directory itself if there is none.
    pub fn root_of(cwd: &Path, env: &Env) -> PathBuf {
        Self::of(cwd, env).map_or_else(|_| cwd.to_owned(), |workspace| workspace.root)
    }
}

/// Whether a path exists and belongs to this owner; for a link, both the link and its target.
fn is_mark(path: &Path, owner: u32) -> bool {
    let found = [path.symlink_metadata(), path.metadata()];
    found.iter().all(|found| found.as_ref().is_ok_and(|found| found.uid() == owner))
}

fn access(root: &Path, home: Option<&Path>, owner: u32) -> Access {
    let what = if root.parent().is_none() {
        "is the whole file system"
    } else if home == Some(root) {
        "is your home directory"
    } else if owner != rustix::process::getuid().as_raw() {
        "belongs to another user"
    } else {
        return Access::Write;
    };
    Access::ReadOnly(format!(
        "{} {what}, so it is read only: start yoi in a project, or use --cwd",
        root.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn env(home: &Path) -> Env {
        Env::from([("HOME".to_owned(), home.display().to_string())])
    }

    fn of(cwd: &Path, home: &Path) -> Workspace {
        Workspace::of(cwd, &env(home)).unwrap()
    }

    #[test]
    fn the_nearest_marked_directory_is_the_workspace_else_the_directory_itself() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let home = top.join("home");
        let inner = home.join("repo/pkg/src");
        fs::create_dir_all(&inner).unwrap();
        assert_eq!(of(&inner, &home), Workspace { root: inner.clone(), access: Access::Write });
        fs::write(home.join("repo/.git"), "gitdir: elsewhere").unwrap();
        assert_eq!(of(&inner, &home).root, home.join("repo"));
        fs::create_dir(home.join("repo/pkg/.yoi")).unwrap();
        assert_eq!(of(&inner, &home).root, home.join("repo/pkg"));
    }

    #[test]
    fn a_marked_home_directory_is_not_the_workspace_of_what_lies_below() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().canonicalize().unwrap();
        let inner = home.join("notes");
        fs::create_dir_all(&inner).unwrap();
        fs::create_dir(home.join(".yoi")).unwrap();
        assert_eq!(of(&inner, &home).root, inner);
        assert_eq!(of(&inner, &home).access, Access::Write);
    }

    #[test]
    fn what_another_owner_puts_into_a_directory_marks_no_workspace() {
        let top = tempfile::tempdir().unwrap();
        let shared = top.path().canonicalize().unwrap();
        let inner = shared.join("person");
        fs::create_dir_all(&inner).unwrap();
        for name in [".git", ".yoi"] {
            let mark = shared.join(name);
            fs::create_dir(&mark).unwrap();
            assert_eq!(of(&inner, Path::new("/")).root, shared, "{name}");
            let Ok(()) = std::os::unix::fs::lchown(&mark, Some(65534), None) else {
                println!("not covered: only root can give a file to another owner");
                return;
            };
            assert_eq!(of(&inner, Path::new("/")).root, inner, "{name}");
            fs::remove_dir(&mark).unwrap();
        }
        fs::create_dir(shared.join("real")).unwrap();
        let link = shared.join(".git");
        std::os::unix::fs::symlink("real", &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert_eq!(of(&inner, Path::new("/")).root, inner, "a link");
    }

    #[test]
    fn home_and_the_root_are_read_only_and_it_is_said_why() {
        let top = tempfile::tempdir().unwrap();
        let home = top.path().canonicalize().unwrap();
        for (cwd, words) in [(home.as_path(), "home directory"), (Path::new("/"), "file system")] {
            let found = of(cwd, &home);
            assert_eq!(found.root, cwd);
            let Access::ReadOnly(sentence) = found.access else { panic!("{cwd:?} is writable") };
            assert!(sentence.contains(words) && sentence.contains("--cwd"), "{sentence}");
        }
    }

    #[test]
    fn the_directory_of_another_user_is_read_only() {
        let other = rustix::process::getuid().as_raw() + 1;
        let access = access(Path::new("/srv/shared"), None, other);
        assert!(matches!(access, Access::ReadOnly(why) if why.contains("another user")));
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = Workspace::of(Path::new("/no/such/place"), &Env::new()).unwrap_err();
        assert!(error.to_string().contains("/no/such/place"));
    }
}
