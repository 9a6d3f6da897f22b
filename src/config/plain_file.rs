//! Files that a person writes by hand: settings, themes, keymaps, keys.

use crate::disk::{DiskError, open_regular, replace};
use crate::text::Decoded;
use std::io::{self, Read as _};
use std::path::Path;

/// The most bytes of such a file.
pub const MAX_FILE: u64 = 256 * 1024;

/// The text of such a file. A FIFO is not waited for.
///
/// # Errors
/// `NotFound` if there is none, `InvalidInput` if it is no regular file or too large, `InvalidData` if it is not in UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() || found.len() > MAX_FILE {
        let why = "it is not a plain file of at most 256 KiB";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut bytes = Vec::new();
    open_regular(path)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    in_utf8(bytes).map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

/// Replaces such a file whole. A link to it stays one.
///
/// # Errors
/// It cannot be written, or the link leads nowhere.
pub fn write(path: &Path, text: &str, mode: u32) -> Result<(), DiskError> {
    if !path.is_symlink() {
        return replace(path, text.as_bytes(), mode);
    }
    let target = path.canonicalize().map_err(DiskError::at("write", path))?;
    replace(&target, text.as_bytes(), mode)
}

/// The text of these bytes. Another encoding is refused by name, because yoi writes such files back in UTF-8.
pub(crate) fn in_utf8(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let encoding = Decoded::of(error.as_bytes()).encoding.unwrap_or("another encoding");
        format!("it is in {encoding}; save it in UTF-8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn what_is_no_plain_file_is_refused_at_once_and_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        std::fs::File::create(at("large")).unwrap().set_len(MAX_FILE + 1).unwrap();
        std::fs::write(at("other"), b"\xff\xfea\0").unwrap();
        std::fs::write(at("own"), "ä").unwrap();
        let kind = |name: &str| read(&at(name)).map_err(|error| error.kind());
        assert_eq!(kind("fifo"), Err(io::ErrorKind::InvalidInput));
        assert_eq!(kind("large"), Err(io::ErrorKind::InvalidInput));
        assert_eq!(kind(""), Err(io::ErrorKind::InvalidInput), "a directory");
        assert_eq!(kind("other"), Err(io::ErrorKind::InvalidData));
        assert_eq!(kind("absent"), Err(io::ErrorKind::NotFound));
        assert_eq!(kind("own"), Ok("ä".into()));
    }
}
