//! The scripts that an approved command runs: their content is compared right before the start, and
//! the command gets an unchangeable copy.

use crate::files::{self, FileError, Limit, WorkspaceFiles};
use crate::protocol::ScriptHash;
use crate::text::sha256_hex;
use std::path::Path;

/// Bytes of one script.
const MOST: u64 = 1024 * 1024;

/// The copy of a script for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    pub bytes: Vec<u8>,
    /// Permission bits.
    pub mode: u32,
}

/// The hash of a script at a canonical path, or that its content is not known, because it cannot be read or is larger
/// than a script.
pub fn script_hash(path: &Path) -> ScriptHash {
    match read(path) {
        Ok(found) => ScriptHash { path: path.to_owned(), sha256: sha256_hex(&found.bytes) },
        Err(_) => ScriptHash::unread(path.to_owned()),
    }
}

/// The content of a script if it is the approved one.
pub fn approved(script: &ScriptHash) -> Result<Copy, String> {
    let shown = script.path.display();
    let found = read(&script.path).map_err(|error| {
        format!("the script {shown} was approved and cannot be read now: {error}")
    })?;
    if sha256_hex(&found.bytes) != script.sha256 {
        return Err(format!(
            "the script {shown} changed since it was approved; call again to ask for it as it is now"
        ));
    }
    Ok(Copy { bytes: found.bytes, mode: found.mode })
}

fn read(path: &Path) -> Result<files::Found, FileError> {
    WorkspaceFiles::of(path.parent().unwrap_or(path)).read(path, Limit::whole(MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_approved_with_its_content() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap().join("x.sh");
        std::fs::write(&path, "abc").unwrap();
        let script = script_hash(&path);
        let known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((script.sha256.as_str(), script.short()), (known, &known[..12]));
        assert_eq!(approved(&script).unwrap().bytes, b"abc");
        std::fs::write(&path, "abd").unwrap();
        assert!(approved(&script).unwrap_err().contains("changed since it was approved"));
        std::fs::remove_file(&path).unwrap();
        assert!(approved(&script).unwrap_err().contains("cannot be read now"));
        let missing = script_hash(&path);
        assert!(missing.is_unread() && !script.is_unread());
        std::fs::File::create(&path).unwrap().set_len(MOST + 1).unwrap();
        assert!(script_hash(&path).is_unread(), "a large program is changed as easily");
    }
}
