//! Limits and storage of results: blobs named by their hash, texts cut at a character boundary.

pub use crate::files::size;
use crate::tools::fault::Fault;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// The blake3 of some bytes, hex.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Stores bytes under their hash, once, durably; returns the name.
pub fn blob(directory: &Path, bytes: &[u8]) -> Result<String, Fault> {
    let name = hash(bytes);
    let path = directory.join(&name);
    if path.exists() {
        return Ok(name);
    }
    store(directory, &path, bytes).map_err(|error| Fault::io("cannot keep", &path, error))?;
    Ok(name)
}

fn store(directory: &Path, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    private_directory(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    fs::File::open(directory)?.sync_all()
}

/// Makes a directory that only its owner may enter, with its parents.
pub fn private_directory(path: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A name as a line of a result: in quotes, as JSON writes it, where a control character would break the line.
pub fn name(name: &impl ToString) -> String {
    let name = name.to_string();
    match name.contains(char::is_control) {
        true => serde_json::Value::from(name).to_string(),
        false => name,
    }
}

/// The text, or its first `max` characters and an ellipsis.
pub fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.into(),
        Some(_) if max == 0 => String::new(),
        Some(_) => text.chars().take(max.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// The text cut to `max` bytes, with a note about the omitted part at its end.
pub fn cut_bytes(mut text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let end = text.floor_char_boundary(max);
    let dropped = text.len() - end;
    text.truncate(end);
    text + &format!("\n[{dropped} bytes left out; narrow the query to see them]")
}
