//! Finds the mount of a path in the kernel's mount table, without accessing the path.

use crate::sandbox::mounts;
use std::path::{Path, PathBuf};

/// The mount point of a path if it is a network or FUSE file system. Such a mount can stop
/// responding as a whole; a disk does not.
pub(super) fn of_remote(path: &Path) -> Option<PathBuf> {
    // Reads the mount table of this thread, because the main thread may have ended or have another
    // mount namespace.
    let table = std::fs::read("/proc/thread-self/mountinfo").ok()?;
    innermost(&table, path)
}

fn innermost(table: &[u8], path: &Path) -> Option<PathBuf> {
    let around = mounts(table).filter(|mount| path.starts_with(&mount.point));
    // Of two mounts at the same path the later one hides the earlier one.
    let mount = around.max_by_key(|mount| mount.point.components().count())?;
    is_remote(mount.kind).then_some(mount.point)
}

fn is_remote(kind: &str) -> bool {
    let served = ["nfs", "fuse", "cifs", "smb", "9p", "ceph", "afs", "autofs", "virtiofs"];
    served.iter().any(|prefix| kind.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mount_that_is_served_from_elsewhere_counts() {
        let table = b"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             23 22 0:40 / /net\\040home rw,nosuid shared:1 - nfs4 server:/home rw\n\
             24 23 8:2 / /net\\040home/disk rw - xfs /dev/sdb1 rw\n\
             25 22 0:41 / /sshfs rw - fuse.sshfs me@host: rw\n";
        let of = |path: &str| innermost(table, Path::new(path));
        assert_eq!(of("/net home/me/x"), Some("/net home".into()));
        assert_eq!(of("/sshfs"), Some("/sshfs".into()));
        assert_eq!(of("/net home/disk/x"), None);
        assert_eq!(of("/home/me"), None);
    }
}
