//! A view of the file system of its own for one command, in which holes are mounted shut. Called
//! while the process has one thread.

use crate::sandbox::plan::{Kind, Mount};
use nix::sched::{CloneFlags, unshare};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The device that is mounted over a hidden file: on a mount that allows no devices nobody can open
/// it.
const NOTHING: &str = "/dev/null";

/// What of the view is private besides the holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Private {
    /// `/dev/shm`.
    pub shared_memory: bool,
    /// `/dev/pts`.
    pub terminals: bool,
    /// Memory, queues and semaphores that have a number instead of a place.
    pub numbered: bool,
}

/// Enters a view of its own and mounts the holes shut. After an error the view may be half made,
/// which takes more away than was asked and never less.
pub fn build(mounts: &[Mount]) -> Result<Private, String> {
    let numbered = enter()?;
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(|error| format!("making mounts private: {error}"))?;
    for one in mounts {
        close(one).map_err(|error| format!("mounting {}: {error}", one.path.display()))?;
    }
    read_only(mounts)?;
    Ok(Private { shared_memory: memory().is_ok(), terminals: terminals().is_ok(), numbered })
}

/// Root needs no other user namespace, unless it is root in name only. Answers whether shared memory
/// and the like are private, too.
fn enter() -> Result<bool, String> {
    if rustix::process::geteuid().is_root() && unshare(CloneFlags::CLONE_NEWNS).is_ok() {
        return Ok(unshare(CloneFlags::CLONE_NEWIPC).is_ok());
    }
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)
        .map_err(|error| format!("user namespaces are not allowed here ({error})"))?;
    let numbered = unshare(CloneFlags::CLONE_NEWIPC).is_ok();
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|error| format!("{file}: {error}"))
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    Ok(numbered)
}

fn close(one: &Mount) -> rustix::io::Result<()> {
    match one.kind {
        Kind::Pinned | Kind::ReadOnly | Kind::Open => mount_bind_recursive(&one.path, &one.path),
        Kind::Hidden if one.path.is_dir() => empty(&one.path),
        Kind::Hidden => mount_bind(NOTHING, &one.path),
    }
}

const PLAIN: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

fn empty(dir: &Path) -> rustix::io::Result<()> {
    mount("none", dir, "tmpfs", PLAIN | MountFlags::RDONLY, c"size=4k,nr_inodes=1,mode=0555")
}

fn memory() -> rustix::io::Result<()> {
    mount("none", "/dev/shm", "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=1777")
}

fn terminals() -> rustix::io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
    mount("none", "/dev/pts", "devpts", flags, c"newinstance,ptmxmode=0666,mode=620")
}

/// Takes the right to write from every mount at or below a read-only hole, save what stays open in
/// it, and devices from hidden files.
fn read_only(mounts: &[Mount]) -> Result<(), String> {
    let said = mounts.iter().filter(|one| one.kind != Kind::Pinned);
    let kinds: BTreeMap<&Path, Kind> = said.map(|one| (one.path.as_path(), one.kind)).collect();
    if kinds.is_empty() {
        return Ok(());
    }
    let table = fs::read_to_string("/proc/self/mountinfo")
        .map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    for (path, flags) in table.lines().filter_map(entry) {
        let innermost = path.ancestors().find_map(|dir| kinds.get(dir));
        let taken = match innermost {
            Some(Kind::Hidden) => PLAIN | MountFlags::RDONLY,
            Some(Kind::ReadOnly) => MountFlags::RDONLY,
            Some(Kind::Open | Kind::Pinned) | None => continue,
        };
        mount_remount(&path, MountFlags::BIND | flags | taken, c"")
            .map_err(|error| format!("making {} read-only: {error}", path.display()))?;
    }
    Ok(())
}

/// One line of mountinfo: where, and the flags it has, which must be kept.
fn entry(line: &str) -> Option<(PathBuf, MountFlags)> {
    let mut fields = line.split(' ').skip(4);
    let path = unescaped(fields.next()?);
    let flags = fields.next()?.split(',').fold(MountFlags::empty(), |flags, word| {
        flags
            | match word {
                "ro" => MountFlags::RDONLY,
                "nosuid" => MountFlags::NOSUID,
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            }
    });
    Some((path.into(), flags))
}

/// A path as a mount table writes it: blanks and the like stand as `\040` there.
pub(crate) fn unescaped(text: &str) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table_is_read_with_its_blanks_and_flags() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402\134x rw,nosuid,noatime master:1 - ext3 /dev/root rw";
        let (path, flags) = entry(line).unwrap();
        assert_eq!(path, Path::new("/mnt 2\\x"));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NOATIME);
    }
}
