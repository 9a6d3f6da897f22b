//! The stored output of a command as a person sees it: short output whole, the beginning and the end
//! of long output, and all that was written in a file, if it is long.

use crate::text::Terminal;
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
    /// What was written, while it is short and not in the file.
    written: Vec<u8>,
    written_bytes: u64,
    file: SavedFile,
    /// The first bytes of an incomplete character.
    open: Vec<u8>,
    terminal: Terminal,
    /// What is seen: all of it while it is short, later its beginning.
    head: String,
    /// Empty while what is seen is short, later at least the end that is shown.
    tail: String,
    /// Bytes and lines that are seen.
    total: u64,
    lines: usize,
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
        Self {
            directory: directory.to_owned(),
            written: Vec::new(),
            written_bytes: 0,
            file: SavedFile::No,
            open: Vec::new(),
            terminal: Terminal::default(),
            head: String::new(),
            tail: String::new(),
            total: 0,
            lines: 0,
        }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.written_bytes += bytes.len() as u64;
        if matches!(self.file, SavedFile::No) {
            self.written.extend_from_slice(bytes);
            if self.written.len() > SHORT {
                self.open();
            }
        } else {
            self.save(bytes);
        }
        self.open.extend_from_slice(bytes);
        let rest = self.open.split_off(live_output::whole(&self.open));
        let whole = std::mem::replace(&mut self.open, rest);
        let seen = self.terminal.push(&live_output::text(&whole));
        self.keep(&seen);
    }

    /// Keeps the beginning and the end of what is seen.
    fn keep(&mut self, seen: &str) {
        self.total += seen.len() as u64;
        self.lines += line_ends(seen.as_bytes());
        if self.is_short() {
            self.head.push_str(seen);
            return;
        }
        if self.tail.is_empty() {
            self.head.push_str(seen);
            let end = &self.head[..self.head.floor_char_boundary(END)];
            let end = line_end_within(end.as_bytes()).unwrap_or(end.len());
            self.tail = self.head.split_off(end);
        } else {
            self.tail.push_str(seen);
        }
        if self.tail.len() > 4 * END {
            self.tail.drain(..self.tail.floor_char_boundary(self.tail.len() - END));
        }
    }

    /// Whether all that is seen goes into the result.
    fn is_short(&self) -> bool {
        self.total <= SHORT as u64
    }

    /// Opens the file and saves what came so far.
    fn open(&mut self) {
        let path = self.directory.join(format!("{}.txt", uuid::Uuid::now_v7()));
        let opened = text_limit::private_directory(&self.directory)
            .and_then(|()| OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path));
        match opened {
            Ok(file) => self.file = SavedFile::Open(path, file),
            Err(error) => self.file = SavedFile::Failed(format!("{}: {error}", path.display())),
        }
        let all = std::mem::take(&mut self.written);
        self.save(&all);
    }

    fn save(&mut self, bytes: &[u8]) {
        let SavedFile::Open(path, file) = &mut self.file else { return };
        if self.written_bytes > MAX_FILE {
            self.file = SavedFile::Full(std::mem::take(path));
            return;
        }
        if let Err(error) = file.write_all(bytes) {
            self.file = SavedFile::Failed(format!("{}: {error}", path.display()));
        }
    }

    /// Ends a block and its last line: what follows draws over none of it.
    pub fn end_block(&mut self) {
        if !self.end_screen().ends_with('\n') {
            self.push(b"\n");
            self.end_screen();
        }
    }

    /// Keeps what is on the screen, and returns it.
    fn end_screen(&mut self) -> String {
        let rest = live_output::text(&std::mem::take(&mut self.open));
        let seen = self.terminal.push(&rest) + &self.terminal.finish();
        self.keep(&seen);
        seen
    }

    /// The text for the result, and where the rest is; `None` if there was no output.
    pub fn finish(mut self) -> Option<String> {
        self.end_screen();
        if !self.is_short() && matches!(self.file, SavedFile::No) {
            self.open();
        }
        let note = self.note();
        let end = if self.head.is_empty() || self.head.ends_with('\n') { "" } else { "\n" };
        let head = &self.head;
        match note {
            None => Some(self.head).filter(|head| !head.is_empty()),
            Some(place) if self.tail.is_empty() => {
                let written = text_limit::size(self.written_bytes);
                Some(format!("{head}{end}[this is what a terminal shows of {written}; {place}]\n"))
            }
            Some(place) => {
                let tail = end_of(&self.tail);
                let left_out =
                    text_limit::size(self.total.saturating_sub((head.len() + tail.len()) as u64));
                let first = line_ends(head.as_bytes()) + 1;
                let last = first.max(self.lines.saturating_sub(line_ends(tail.as_bytes())));
                let of = text_limit::size(self.total);
                Some(format!(
                    "{head}{end}[lines {first} to {last}, {left_out} of {of}, are left out here; {place}]\n{tail}"
                ))
            }
        }
    }

    /// Where all of the output is, if it is in a file.
    fn note(&self) -> Option<String> {
        let as_written = if self.written_bytes == self.total { "" } else { ", as it was written," };
        Some(match &self.file {
            SavedFile::No => return None,
            SavedFile::Open(path, file) => {
                // No sync: losing the file in a power failure does not affect the result.
                let _ = file.sync_data();
                format!("all of it{as_written} is in {}", path.display())
            }
            SavedFile::Full(path) => {
                format!("the first {} are in {}", text_limit::size(MAX_FILE), path.display())
            }
            SavedFile::Failed(error) => format!("it could not be saved: {error}"),
        })
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
fn end_of(text: &str) -> &str {
    let Some(from) = text.len().checked_sub(END) else { return text };
    let end = &text[text.ceil_char_boundary(from)..];
    let line = end.find('\n').map_or(0, |at| at + 1);
    if line <= END / 2 { &end[line..] } else { end }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&[u8]]) -> Option<String> {
        let mut saved = SavedOutput::new(Path::new("/nowhere"));
        pieces.iter().for_each(|piece| saved.push(piece));
        saved.finish()
    }

    #[test]
    fn a_block_draws_over_no_other() {
        let mut saved = SavedOutput::new(Path::new("/nowhere"));
        for block in ["one\ntwo\u{1b}[A", "three\u{1b}]0;open", "\u{1b}[9A\rfour\n", "", "\r5"] {
            saved.push(block.as_bytes());
            saved.end_block();
        }
        assert_eq!(saved.finish().unwrap(), "one\ntwo\nthree\nfour\n\n5\n");
    }

    #[test]
    fn output_may_be_cut_at_every_byte() {
        let written = b"\r\x1b[32m\xe6\x97\xa5 10%\x1b[0m\xff\xe6\x97\r\xe6\x97\xa5 \xf0\x9f\x98\x80\n\0\xe6x\x1b[1A\x1b[2Kend\n\xc3";
        let whole = shown(&[written]);
        assert_eq!(whole.as_deref(), Some("   end\n\u{fffd}\u{fffd}x"));
        for at in 0..written.len() {
            assert_eq!(shown(&[&written[..at], &written[at..]]), whole, "{at}");
        }
        let bytes: Vec<&[u8]> = written.chunks(1).collect();
        assert_eq!(shown(&bytes), whole);
        assert_eq!(shown(&[b"\x1b[32m\x1b[0m\r"]), None, "nothing is seen");
    }
}
