//! The output of a command in the background: a file of the bytes that it wrote, of which calls read parts.

use crate::sandbox::WITHOUT_PAUSE;
use crate::text::Terminal;
use crate::tools::fault::Fault;
use crate::tools::jobs::path_of;
use crate::tools::{Output, live_output, text_limit};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// The most bytes that are kept.
const MOST: u64 = WITHOUT_PAUSE;
/// The most bytes that one call reads.
const PART: usize = 24 * 1000;
/// The bytes at the end that are kept in memory.
const TAIL: usize = 4 * 1024;
/// The lines at the end that the model is told.
const LINES: usize = 20;

/// The output of one command.
#[derive(Debug)]
pub struct JobOutput {
    path: PathBuf,
    file: Option<File>,
    /// Why no more is kept.
    failed: Option<String>,
    /// Bytes that were written, and those of them that the file holds.
    written: u64,
    kept: u64,
    tail: Vec<u8>,
    /// Where the next call reads that names no offset.
    next: u64,
}

impl JobOutput {
    /// The file is created with the first byte.
    pub fn new(outputs: &Path, id: &str) -> Self {
        let path = path_of(outputs, id);
        Self { path, file: None, failed: None, written: 0, kept: 0, tail: Vec::new(), next: 0 }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.written += bytes.len() as u64;
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 4 * TAIL {
            self.tail.drain(..self.tail.len() - TAIL);
        }
        if self.failed.is_some() {
            return;
        }
        if let Err(why) = self.keep(bytes) {
            self.failed = Some(why);
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.kept + bytes.len() as u64 > MOST {
            return Err(format!("only the first {} are kept", text_limit::size(self.kept)));
        }
        let failed = |error: std::io::Error| format!("no more can be kept: {error}");
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                if let Some(dir) = self.path.parent() {
                    text_limit::private_directory(dir).map_err(failed)?;
                }
                // A file of this name may be left of a Pod that was restored from an older database.
                let mut new = OpenOptions::new();
                let file = new.write(true).create(true).truncate(true).mode(0o600).open(&self.path);
                self.file.insert(file.map_err(failed)?)
            }
        };
        file.write_all(bytes).map_err(failed)?;
        self.kept += bytes.len() as u64;
        Ok(())
    }

    /// The last line that is not empty.
    pub fn last_line(&self) -> Option<String> {
        let seen = seen(self.end());
        let line = seen.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(text_limit::cut(line.trim(), 200))
    }

    /// The command has ended: the last lines. The file is closed.
    pub fn finish(&mut self) -> Option<String> {
        self.file = None;
        let seen = seen(self.end());
        let lines: Vec<&str> = seen.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n");
        (!last.trim().is_empty()).then(|| last + "\n")
    }

    /// The end that is kept in memory, from the beginning of a line where something is left out.
    fn end(&self) -> &[u8] {
        let end = &self.tail[self.tail.len().saturating_sub(TAIL)..];
        if self.written <= end.len() as u64 {
            return end;
        }
        let line = end.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if line < end.len() { &end[line..] } else { end }
    }

    /// The part at an offset, or the new one, as a result shows it.
    pub fn shown(&mut self, offset: Option<u64>, has_ended: bool) -> Result<String, Fault> {
        let part = part(&self.path, offset.unwrap_or(self.next), self.kept, has_ended)?;
        self.next = part.next;
        let mut text = part.text(self.kept, &self.path);
        if let Some(why) = &self.failed {
            let written = text_limit::size(self.written);
            text.push_str(&format!("[{written} were written, and {why}]\n"));
        }
        Ok(text)
    }
}

/// A part of an output.
struct Part {
    bytes: Vec<u8>,
    next: u64,
    /// Whether at most an incomplete character follows.
    is_last: bool,
}

impl Part {
    fn text(&self, all: u64, path: &Path) -> String {
        let mut text = seen(&self.bytes);
        if text.is_empty() {
            return format!("[nothing new; next offset {}]\n", self.next);
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
        let more = match self.is_last {
            true => String::new(),
            false => format!(
                "; {} more are there, all of it in {}",
                text_limit::size(all.saturating_sub(self.next)),
                path.display()
            ),
        };
        text + &format!("[next offset {}{more}]\n", self.next)
    }
}

/// Reads the part at an offset of an output of this length: to the end of a line where more follows, and whole characters.
fn part(path: &Path, offset: u64, length: u64, has_ended: bool) -> Result<Part, Fault> {
    if offset > length {
        return Err(Fault::Argument(format!(
            "offset {offset} is behind the end: {length} bytes are there"
        )));
    }
    let mut bytes = Vec::new();
    let wanted = (length - offset).min(PART as u64);
    if wanted > 0 {
        let mut file = File::open(path).map_err(|error| Fault::io("cannot read", path, error))?;
        let read = file.seek(SeekFrom::Start(offset));
        let read = read.and_then(|_| file.take(wanted).read_to_end(&mut bytes));
        read.map_err(|error| Fault::io("cannot read", path, error))?;
    }
    let is_last = offset + bytes.len() as u64 >= length;
    if !is_last {
        let line = bytes.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        let end = line.filter(|end| *end > PART / 2);
        bytes.truncate(end.unwrap_or_else(|| live_output::whole(&bytes)));
    } else if !has_ended {
        bytes.truncate(live_output::whole(&bytes));
    }
    Ok(Part { next: offset + bytes.len() as u64, bytes, is_last })
}

/// The output of a command that an earlier host ran: the file is what is left of it.
pub fn of_former(
    outputs: &Path,
    id: &str,
    offset: Option<u64>,
    unknown: String,
) -> Result<Output, Fault> {
    let number = id
        .strip_prefix("job-")
        .filter(|number| number.parse::<u32>().is_ok_and(|n| n.to_string() == *number));
    if number.is_none() {
        return Err(Fault::Argument(unknown));
    }
    let path = path_of(outputs, id);
    let length = match std::fs::metadata(&path) {
        Ok(found) => found.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(Fault::Argument(unknown)),
        Err(error) => return Err(Fault::io("cannot read", &path, error)),
    };
    let part = part(&path, offset.unwrap_or(0), length, true)?;
    Ok(Output::with(format!("{id} has ended"), part.text(length, &path)))
}

/// Bytes as a terminal shows them.
fn seen(bytes: &[u8]) -> String {
    let mut terminal = Terminal::default();
    terminal.push(&live_output::text(bytes)) + &terminal.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_read_once_and_an_offset_reads_it_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = JobOutput::new(dir.path(), "job-1");
        assert_eq!(output.shown(None, false).unwrap(), "[nothing new; next offset 0]\n");
        output.push(b"one\ntw");
        assert_eq!(output.shown(None, false).unwrap(), "one\ntw\n[next offset 6]\n");
        output.push("o\né".as_bytes());
        output.push(&[0xc3]);
        assert_eq!(output.shown(None, false).unwrap(), "o\né\n[next offset 10]\n");
        assert_eq!(output.shown(None, true).unwrap(), "\u{fffd}\n[next offset 11]\n");
        assert_eq!(output.shown(Some(4), true).unwrap(), "two\né\u{fffd}\n[next offset 11]\n");
        assert_eq!(output.last_line().unwrap(), "é\u{fffd}");
        let far = output.shown(Some(12), true).unwrap_err().to_string();
        assert_eq!(far, "offset 12 is behind the end: 11 bytes are there");
    }

    #[test]
    fn a_long_output_is_read_in_parts_that_end_with_lines_and_no_more_than_the_limit_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = JobOutput::new(dir.path(), "job-1");
        let lines: String = (0..10_000).map(|n| format!("{n:07}\n")).collect();
        output.push(lines.as_bytes());
        let first = output.shown(None, false).unwrap();
        let more = "0002999\n[next offset 24000; 54.6 KiB more are there, all of it in ";
        assert!(first.contains(more), "{}", &first[first.len() - 200..]);
        assert!(output.shown(None, false).unwrap().starts_with("0003000\n"));
        assert_eq!(output.finish().unwrap().lines().count(), LINES);
        let mib = vec![b'x'; 1 << 20];
        (0..64).for_each(|_| output.push(&mib));
        assert!(output.kept <= MOST && output.tail.len() <= 4 * TAIL);
        let end = output.shown(Some(output.kept), false).unwrap();
        let [written, kept] = [(64 << 20) + 80_000, (63 << 20) + 80_000].map(text_limit::size);
        let said = format!("[{written} were written, and only the first {kept} are kept]");
        assert!(end.contains(&said), "{end}");
    }

    #[test]
    fn only_the_name_of_an_output_reads_the_file_of_an_earlier_host() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("job-7.txt"), "ready\n").unwrap();
        std::fs::write(dir.path().join("job-x.txt"), "secret\n").unwrap();
        let read = |id: &str| of_former(dir.path(), id, None, "unknown".into());
        assert_eq!(read("job-7").unwrap().content.unwrap(), "ready\n[next offset 6]\n");
        for id in ["job-8", "job-x", "job-07", "job-+7", "../job-7", "job-"] {
            assert_eq!(read(id), Err(Fault::Argument("unknown".into())), "{id}");
        }
    }
}
