//! The repositories that commands of a Pod made, by what stays the same when they are moved. Everything in them is the
//! Pod's to change, but for what starts a program.

use crate::sandbox::pod_storage::PodStorage;
use crate::sandbox::ways;
use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The repositories that a file lists.
#[derive(Debug, Default)]
pub struct OwnRepositories {
    file: Option<PathBuf>,
    known: HashSet<Identity>,
}

/// The directory of a repository on this machine: device, inode, and the time when it was made, in nanoseconds, because
/// the number of a removed inode is used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(u64, u64, u128);

impl Identity {
    /// `None` if there is no directory at this path, or if it leads through a link: a command may have put that there for
    /// another directory.
    pub fn of(dir: &Path) -> Option<Self> {
        let meta = fs::File::from(ways::directory(dir).ok()?).metadata().ok()?;
        let born = meta.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Some(Self(meta.dev(), meta.ino(), born.map_or(0, |born| born.as_nanos())))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let own = Self(
            words.next()?.parse().ok()?,
            words.next()?.parse().ok()?,
            words.next()?.parse().ok()?,
        );
        words.next().is_none().then_some(own)
    }
}

fn listed(file: Option<&Path>) -> HashSet<Identity> {
    let text = file.and_then(|file| fs::read_to_string(file).ok());
    text.unwrap_or_default().lines().filter_map(Identity::parse).collect()
}

impl OwnRepositories {
    /// Those of the Pod with this storage; without one it has none.
    pub fn kept(storage: Option<&PodStorage>) -> Self {
        let file = storage.map(PodStorage::own_repositories);
        let known = listed(file.as_deref());
        Self { file, known }
    }

    pub fn has(&self, dir: &Path) -> bool {
        Identity::of(dir).is_some_and(|own| self.known.contains(&own))
    }

    /// Adds those that the command made. Commands that run at the same time add theirs to the same file.
    pub fn add<'a>(&self, dirs: impl Iterator<Item = &'a PathBuf>) {
        // Some may have been added since this was read.
        let known = listed(self.file.as_deref());
        let fresh = dirs.filter_map(|dir| Identity::of(dir)).filter(|own| !known.contains(own));
        let lines: String = fresh.map(|Identity(d, i, born)| format!("{d} {i} {born}\n")).collect();
        let Some(file) = self.file.as_ref().filter(|_| !lines.is_empty()) else { return };
        // Without namespaces no command made the directory of the storage.
        let dir =
            file.parent().map(|dir| DirBuilder::new().recursive(true).mode(0o700).create(dir));
        let open = OpenOptions::new().append(true).create(true).mode(0o600).open(file);
        // A repository that is not listed is guarded as one of the person's.
        let _ = (dir, open.and_then(|mut file| file.write_all(lines.as_bytes())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_known_by_its_own_path_and_not_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let root = top.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("theirs/.git")).unwrap();
        std::os::unix::fs::symlink("theirs", root.join("own")).unwrap();
        std::os::unix::fs::symlink("theirs/.git", root.join("git")).unwrap();
        assert!(Identity::of(&root.join("theirs/.git")).is_some());
        for path in ["own/.git", "git", "none"] {
            assert_eq!(Identity::of(&root.join(path)), None, "{path}");
        }
    }
}
