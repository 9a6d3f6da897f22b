//! Paths that exist under another spelling than the one that was given.

use icu_normalizer::ComposingNormalizerBorrowed;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The most names of a directory that are compared.
const MAX_NAMES: usize = 10_000;

/// The composed form of a path.
pub fn composed(path: &Path) -> String {
    ComposingNormalizerBorrowed::new_nfc().normalize(&path.to_string_lossy()).into_owned()
}

/// The path that exists and differs from this absolute one only in case or in the form of its characters.
pub fn other_spelling(path: &Path) -> Option<PathBuf> {
    let key = |name: &Path| composed(name).to_lowercase();
    let mut there = PathBuf::from("/");
    for part in path.components() {
        let name = match part {
            Component::RootDir => continue,
            Component::Normal(name) => name,
            _ => return None,
        };
        let given = there.join(name);
        if given.symlink_metadata().is_ok() {
            there = given;
            continue;
        }
        let wanted = key(name.as_ref());
        let names = fs::read_dir(&there).ok()?.flatten().take(MAX_NAMES);
        let found = names.map(|entry| entry.file_name()).find(|name| key(name.as_ref()) == wanted);
        there.push(found?);
    }
    Some(there)
}
