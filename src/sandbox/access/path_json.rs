//! Paths as JSON: text for UTF-8 paths, else bytes. The name of a file need not be UTF-8.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A path in an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnyPath(pub PathBuf);

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Bytes(Vec<u8>),
}

pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(to),
        None => path.as_os_str().as_bytes().serialize(to),
    }
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    Ok(match Written::deserialize(from)? {
        Written::Text(text) => text.into(),
        Written::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}

impl Serialize for AnyPath {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, to)
    }
}

impl<'de> Deserialize<'de> for AnyPath {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        deserialize(from).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_arrives_as_it_was() {
        for bytes in [&b"/a b/\"c\""[..], "/größe".as_bytes(), b"/\xff\xfe/x", b"/"] {
            let path = AnyPath(OsString::from_vec(bytes.to_vec()).into());
            let text = serde_json::to_string(&path).unwrap();
            assert_eq!(serde_json::from_str::<AnyPath>(&text).unwrap(), path, "{text}");
        }
    }
}
