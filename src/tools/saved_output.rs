//! The stored output of a command: short output whole, the beginning and the end of long output, and
//! all of long output in a file.

use crate::tools::{live_output, text_limit};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Bytes of the beginning and of the end that a result holds itself. Output of at most both is short.
const END: usize = 15 * 1000;
const SHORT: usize = 2 * END;
/// The most bytes of a saved file; a command can write for ever.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Collects output.
pub struct SavedOutput {
    directory: PathBuf,
    /// The whole output while it is short, later its beginning.
    head: Vec<u8>,
    /// Nothing while the output is short, later at least the end that is shown.
    tail: Vec<u8>,
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
        let (directory, file) = (directory.to_owned(), SavedFile::No);
        Self { directory, head: Vec::new(), tail: Vec::new(), total: 0, lines: 0, file }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        self.lines += line_ends(bytes);
        if matches!(self.file, SavedFile::No) {
            self.head.extend_from_slice(bytes);
            if self.head.len() > SHORT {
                self.open();
            }
        } else {
            self.tail.extend_from_slice(bytes);
            self.save(bytes);
        }
        if self.tail.len() > 4 * END {
            self.tail.drain(..self.tail.len() - END);
        }
    }

    /// Opens the file and saves what came so far, which is parted into beginning and end.
    fn open(&mut self) {
        let path = self.directory.join(format!("{}.txt", uuid::Uuid::now_v7()));
        let opened = text_limit::private_directory(&self.directory)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path));
        match opened {
            Ok(file) => self.file = SavedFile::Open(path, file),
            Err(error) => self.file = SavedFile::Failed(format!("{}: {error}", path.display())),
        }
        let all = std::mem::take(&mut self.head);
        self.save(&all);
        let end = &all[..all.len().min(END)];
        let end = line_end_within(end).unwrap_or_else(|| live_output::whole(end));
        (self.head, self.tail) = (all[..end].to_vec(), all[end..].to_vec());
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
    pub fn finish(mut self) -> Option<String> {
        if self.total == 0 {
            return None;
        }
        if matches!(self.file, SavedFile::No) {
            let text = live_output::text(&self.head);
            // Bytes that are not text become three each.
            if text.len() <= SHORT {
                return Some(text);
            }
            self.open();
        }
        let head = live_output::text(&self.head);
        let head = &head[..head.floor_char_boundary(END)];
        let tail = live_output::text(end_of(&self.tail));
        let tail = &tail[tail.ceil_char_boundary(tail.len().saturating_sub(END))..];
        let note = match &self.file {
            SavedFile::Open(path, file) => {
                // No sync: losing the file in a power failure does not affect the result.
                let _ = file.sync_data();
                format!("all of it is in {}", path.display())
            }
            SavedFile::Full(path) => {
                format!("the first {} are in {}", text_limit::size(MAX_FILE), path.display())
            }
            SavedFile::Failed(error) => format!("it could not be saved: {error}"),
            SavedFile::No => String::new(),
        };
        let left_out =
            text_limit::size(self.total.saturating_sub((head.len() + tail.len()) as u64));
        let first = line_ends(head.as_bytes()) + 1;
        let last = first.max(self.lines.saturating_sub(line_ends(tail.as_bytes())));
        let of = text_limit::size(self.total);
        let note =
            format!("[lines {first} to {last}, {left_out} of {of}, are left out here; {note}]");
        let end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
        Some(format!("{head}{end}{note}\n{tail}"))
    }
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

/// The position behind the last line end, unless less than half would remain.
fn line_end_within(bytes: &[u8]) -> Option<usize> {
    let at = bytes.iter().rposition(|byte| *byte == b'\n')? + 1;
    (at >= bytes.len() / 2).then_some(at)
}

/// The end that is shown, from the beginning of a line where that leaves at least half of it, else from
/// the beginning of a character.
fn end_of(bytes: &[u8]) -> &[u8] {
    let Some(from) = bytes.len().checked_sub(END) else { return bytes };
    let end = &bytes[from..];
    let line = end.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
    let goes_on = |byte: &u8| (0x80..0xc0).contains(byte);
    let from = line
        .filter(|at| *at <= END / 2)
        .unwrap_or_else(|| end.iter().take(3).take_while(|byte| goes_on(byte)).count());
    &end[from..]
}
