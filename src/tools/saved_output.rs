//! The stored output of a command: short output whole, the end of long output, and all of long
//! output in a file.

use crate::tools::{live_output, text_limit};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// What a result holds itself.
const LINES: usize = 80;
const BYTES: usize = 12 * 1024;
/// The most bytes of a saved file; a command can write for ever.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Collects output.
pub struct SavedOutput {
    directory: PathBuf,
    /// The whole output while it is short, later at least the end that is shown.
    recent: Vec<u8>,
    total: u64,
    lines: usize,
    file: SavedFile,
}

/// What became of the file.
enum SavedFile {
    /// Not needed so far.
    No,
    Open(PathBuf, File),
    /// It is as long as it may be.
    Full(PathBuf),
    /// Not possible, and why.
    Failed(String),
}

impl SavedOutput {
    pub fn new(directory: &Path) -> Self {
        let directory = directory.to_owned();
        Self { directory, recent: Vec::new(), total: 0, lines: 0, file: SavedFile::No }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += bytes.iter().filter(|byte| **byte == b'\n').count();
        self.recent.extend_from_slice(bytes);
        if matches!(self.file, SavedFile::No) {
            if self.is_long() {
                self.open();
            }
        } else {
            self.save(bytes);
        }
        if self.recent.len() > 4 * BYTES && !matches!(self.file, SavedFile::No) {
            self.recent.drain(..self.recent.len() - BYTES);
        }
    }

    fn is_long(&self) -> bool {
        let open_line = self.recent.last().is_some_and(|byte| *byte != b'\n');
        self.lines + usize::from(open_line) > LINES || self.recent.len() > BYTES
    }

    fn open(&mut self) {
        let path = self.directory.join(format!("{}.txt", uuid::Uuid::now_v7()));
        let opened = text_limit::private_directory(&self.directory)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path));
        match opened {
            Ok(file) => self.file = SavedFile::Open(path, file),
            Err(error) => self.file = SavedFile::Failed(format!("{}: {error}", path.display())),
        }
        let all = std::mem::take(&mut self.recent);
        self.save(&all);
        self.recent = all;
    }

    fn save(&mut self, bytes: &[u8]) {
        let SavedFile::Open(path, file) = &mut self.file else { return };
        if self.total > MAX_FILE {
            self.file = SavedFile::Full(std::mem::take(path));
            return;
        }
        if let Err(error) = file.write_all(bytes) {
            self.file = SavedFile::Failed(format!("{}: {error}", path.display()));
        }
    }

    /// The text for the result, and where the rest is; `None` if there was no output.
    pub fn finish(self) -> Option<String> {
        if self.total == 0 {
            return None;
        }
        let text = live_output::text(&self.recent);
        let note = match &self.file {
            SavedFile::No => return Some(text),
            SavedFile::Open(path, file) => {
                // No sync: losing the file in a power failure does not affect the result.
                let _ = file.sync_data();
                format!("all of it is in {}", path.display())
            }
            SavedFile::Full(path) => {
                format!("the first {} are in {}", text_limit::size(MAX_FILE), path.display())
            }
            SavedFile::Failed(error) => format!("it could not be saved: {error}"),
        };
        let end = tail(&text);
        let (lines, size) = (end.lines().count(), text_limit::size(self.total));
        Some(format!("[{size} of output, the last {lines} line(s) are shown; {note}]\n{end}"))
    }
}

/// The last lines, within the bounds of a result.
fn tail(text: &str) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let by_lines = body.rmatch_indices('\n').nth(LINES - 1).map_or(0, |(at, _)| at + 1);
    let by_bytes = text.ceil_char_boundary(text.len().saturating_sub(BYTES));
    &text[by_lines.max(by_bytes)..]
}
