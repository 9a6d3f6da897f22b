//! The kernel's list of mounts.

use rustix::mount::MountFlags;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The used fields of a line of mountinfo. Paths are bytes, because they may have any encoding.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount<'a> {
    pub id: u64,
    /// The mount that it is mounted on.
    pub parent: u64,
    /// The mounted directory of the file system.
    pub root: PathBuf,
    pub point: PathBuf,
    options: &'a [u8],
    pub kind: &'a str,
}

/// The mounts of a table, in its order.
pub(crate) fn mounts(table: &[u8]) -> impl Iterator<Item = Mount<'_>> {
    table.split(|byte| *byte == b'\n').filter_map(mount)
}

fn mount(line: &[u8]) -> Option<Mount<'_>> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let mut fields = fields.skip(1);
    let root = unescaped(fields.next()?).into();
    let point = unescaped(fields.next()?).into();
    let options = fields.next()?;
    // A variable number of fields precedes the type of the file system.
    let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
    let kind = std::str::from_utf8(kind).unwrap_or_default();
    Some(Mount { id, parent, root, point, options, kind })
}

impl Mount<'_> {
    /// Its current flags, which a remount must repeat.
    pub fn flags(&self) -> MountFlags {
        let words = self.options.split(|byte| *byte == b',');
        words.fold(MountFlags::empty(), |flags, word| flags | flag(word))
    }
}

fn flag(word: &[u8]) -> MountFlags {
    match word {
        b"ro" => MountFlags::RDONLY,
        b"nosuid" => MountFlags::NOSUID,
        b"nodev" => MountFlags::NODEV,
        b"noexec" => MountFlags::NOEXEC,
        b"noatime" => MountFlags::NOATIME,
        b"nodiratime" => MountFlags::NODIRATIME,
        b"relatime" => MountFlags::RELATIME,
        b"nosymfollow" => MountFlags::NOSYMFOLLOW,
        _ => MountFlags::empty(),
    }
}

/// Decodes a path of a mount table, which writes blanks and some other characters as octal escapes
/// such as `\040`.
fn unescaped(field: &[u8]) -> OsString {
    let (mut bytes, mut rest) = (Vec::new(), field);
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
            br"36 35 98:0 /a\040b /mnt\0402\134x rw,nosuid,noatime master:1 - ext3 /dev/root rw";
        let mount = mount(line).unwrap();
        assert_eq!((mount.root.as_path(), mount.kind), (Path::new("/a b"), "ext3"));
        assert_eq!(mount.point, Path::new("/mnt 2\\x"));
        assert_eq!(mount.flags(), MountFlags::NOSUID | MountFlags::NOATIME);
    }

    #[test]
    fn a_name_in_another_encoding_hides_no_mount() {
        let table = b"1 0 0:1 / / rw - ext4 /dev/a rw\n2 1 0:2 / /m\xff rw - vfat /dev/\xff rw\n\
                      3 1 0:3 / /n ro shared:1 - tmpfs none rw\n";
        let points: Vec<PathBuf> = mounts(table).map(|mount| mount.point).collect();
        let other = OsString::from_vec(b"/m\xff".to_vec());
        assert_eq!(points, [PathBuf::from("/"), other.into(), "/n".into()]);
    }
}
