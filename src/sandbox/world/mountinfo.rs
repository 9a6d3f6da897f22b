//! The kernel's list of mounts.

use rustix::mount::MountFlags;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// One line of mountinfo: where, and the flags it has, which must be kept.
pub fn entry(line: &str) -> Option<(PathBuf, MountFlags)> {
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
                "nosymfollow" => MountFlags::NOSYMFOLLOW,
                _ => MountFlags::empty(),
            }
    });
    Some((path.into(), flags))
}

/// A path as a mount table writes it: blanks and the like stand as `\040` there.
pub(crate) fn unescaped(text: &str) -> OsString {
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
    OsString::from_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_line_of_the_mount_table_is_read_with_its_blanks_and_flags() {
        let line =
            r"36 35 98:0 /mnt1 /mnt\0402\134x rw,nosuid,noatime master:1 - ext3 /dev/root rw";
        let (path, flags) = entry(line).unwrap();
        assert_eq!(path, Path::new("/mnt 2\\x"));
        assert_eq!(flags, MountFlags::NOSUID | MountFlags::NOATIME);
    }
}
