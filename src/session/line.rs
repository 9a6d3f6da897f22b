//! Lines of a segment: decoded, named by place when they are damaged, and read forwards or
//! backwards.

use crate::disk::open_regular;
use crate::protocol::entry::{Entry, Fact};
use crate::protocol::name::EntryId;
use crate::session::LogError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A line that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Damaged {
    /// Where the line begins.
    pub byte: u64,
    /// Counted from 1; absent when the lines before it were not counted.
    pub line: Option<usize>,
    pub reason: String,
}

/// Every kind of entry that this program writes: such a line that decodes as unknown is damaged.
const KINDS: [&str; 12] = [
    "segment_start",
    "invoke",
    "user_input",
    "assistant_item",
    "tool_result",
    "system_item",
    "turn_end",
    "run_completed",
    "run_errored",
    "config_changed",
    "llm_usage",
    "extension",
];

/// Reads one line, without its line end. The error is the reason in words.
pub fn decode(line: &[u8]) -> Result<Entry, String> {
    if line.is_empty() {
        return Err("the line is empty".into());
    }
    let entry: Entry = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let Fact::Unknown(fields) = &entry.fact else { return Ok(entry) };
    match fields.get("kind").and_then(Value::as_str) {
        None => Err("it has no `kind`".into()),
        Some(kind) if KINDS.contains(&kind) => Err(format!("its fields are not those of {kind}")),
        Some(_) => Ok(entry),
    }
}

/// What tells entries apart without decoding them.
#[derive(Deserialize)]
pub struct Head<'a> {
    #[serde(default)]
    pub id: Option<EntryId>,
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
}

impl<'a> Head<'a> {
    pub fn read(line: &'a [u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// The id of a line. Ours stand at its beginning and are found without reading on.
pub fn id(line: &[u8]) -> Option<EntryId> {
    id_at_beginning(line).or_else(|| Head::read(line)?.id)
}

/// The id of a line that begins as this program writes lines.
pub fn id_at_beginning(line: &[u8]) -> Option<EntryId> {
    const BEFORE: &[u8] = b"{\"id\":\"";
    const UUID: usize = 36;
    let first = line.strip_prefix(BEFORE).and_then(|rest| rest.get(..UUID));
    first.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok())
}

/// One line and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raw {
    pub start: u64,
    /// Without the line end.
    pub bytes: Vec<u8>,
}

impl Raw {
    /// The offset behind its line end.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64 + 1
    }
}

/// How much of a line is read to find its id, in bytes.
const HEAD: u64 = 4096;

/// Whole lines from an offset up to another, oldest first. A torn tail is not a line.
pub struct Forward {
    reader: io::Take<BufReader<File>>,
    at: u64,
}

impl Forward {
    pub fn new(mut file: File, start: u64, end: u64) -> io::Result<Self> {
        use io::Seek;
        file.seek(io::SeekFrom::Start(start))?;
        let reader = BufReader::with_capacity(1 << 17, file).take(end.saturating_sub(start));
        Ok(Self { reader, at: start })
    }

    /// The next line; its bytes are put into `line`, the offset of its beginning is returned.
    pub fn next_into(&mut self, line: &mut Vec<u8>) -> io::Result<Option<u64>> {
        line.clear();
        let read = self.reader.read_until(b'\n', line)?;
        if line.pop() != Some(b'\n') {
            return Ok(None);
        }
        let start = self.at;
        self.at += read as u64;
        Ok(Some(start))
    }

    /// Passes over the next line without keeping it; `false` when there is none.
    pub fn skip_line(&mut self) -> io::Result<bool> {
        let skipped = self.reader.skip_until(b'\n')?;
        self.at += skipped as u64;
        Ok(skipped > 0)
    }

    /// Where the next line begins.
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// Where the next line begins, and its id. A long line is not held in memory when its id
    /// stands at its beginning.
    pub fn next_id(&mut self) -> io::Result<Option<(u64, Option<EntryId>)>> {
        let mut bytes = Vec::new();
        let start = self.at;
        let read = (&mut self.reader).take(HEAD).read_until(b'\n', &mut bytes)?;
        self.at += read as u64;
        if bytes.pop_if(|byte| *byte == b'\n').is_none() {
            let Some(id) = id_at_beginning(&bytes) else {
                let read = self.reader.read_until(b'\n', &mut bytes)?;
                self.at += read as u64;
                let whole = bytes.pop_if(|byte| *byte == b'\n').is_some();
                return Ok(whole.then(|| (start, id(&bytes))));
            };
            let rest = self.reader.skip_until(b'\n')?;
            self.at += rest as u64;
            return Ok((rest > 0).then_some((start, Some(id))));
        }
        Ok(Some((start, id(&bytes))))
    }

    /// The next line, in a buffer of its own.
    pub fn next_line(&mut self) -> io::Result<Option<Raw>> {
        let mut bytes = Vec::new();
        Ok(self.next_into(&mut bytes)?.map(|start| Raw { start, bytes }))
    }
}

/// Whole lines from an offset back to the beginning, newest first. A torn tail is not a line.
pub struct Backward {
    file: File,
    /// What has been read and not been given: the file's bytes from `start` on.
    unread: Vec<u8>,
    start: u64,
}

/// What is read at once, backwards.
const CHUNK: u64 = 1 << 16;

impl Backward {
    /// Starts at the last line end at or before `end`.
    pub fn new(file: File, end: u64) -> io::Result<Self> {
        let mut lines = Self { file, unread: Vec::new(), start: end };
        let mut searched = 0;
        while !lines.unread.iter().take(lines.unread.len() - searched).any(|b| *b == b'\n') {
            searched = lines.unread.len();
            if !lines.load()? {
                break;
            }
        }
        let whole = memchr::memrchr(b'\n', &lines.unread).map_or(0, |at| at + 1);
        lines.unread.truncate(whole);
        Ok(lines)
    }

    /// Goes on before `offset`, which must be the beginning of a line that lies ahead.
    pub fn jump(&mut self, offset: u64) {
        if offset >= self.start {
            let keep = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
            self.unread.truncate(keep);
        } else {
            self.unread.clear();
            self.start = offset;
        }
    }

    /// The next older line.
    pub fn next_line(&mut self) -> io::Result<Option<Raw>> {
        if self.unread.is_empty() && !self.load()? {
            return Ok(None);
        }
        let mut searched = 1; // the line's own end
        loop {
            let ahead = self.unread.len() - searched;
            if let Some(at) = memchr::memrchr(b'\n', &self.unread[..ahead]) {
                return Ok(Some(self.take(at + 1)));
            }
            searched = self.unread.len();
            if !self.load()? {
                return Ok(Some(self.take(0)));
            }
        }
    }

    fn take(&mut self, from: usize) -> Raw {
        let mut bytes = self.unread.split_off(from);
        bytes.pop();
        Raw { start: self.start + from as u64, bytes }
    }

    /// Puts the bytes before `start` in front of what is unread: as many again as there are, so
    /// that a long line is not copied often. False at the beginning of the file.
    fn load(&mut self) -> io::Result<bool> {
        let size = CHUNK.max(self.unread.len() as u64).min(self.start);
        if size == 0 {
            return Ok(false);
        }
        let from = self.start - size;
        let mut bytes = vec![0; usize::try_from(size).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut bytes, from)?;
        bytes.extend_from_slice(&self.unread);
        self.unread = bytes;
        self.start = from;
        Ok(true)
    }
}

/// The first line of a segment as it was written.
pub fn first_raw(path: &Path) -> Result<Raw, LogError> {
    let read = || -> std::io::Result<_> {
        let file = open_regular(path)?;
        let length = file.metadata()?.len();
        Forward::new(file, 0, length)?.next_line()
    };
    let line = read().map_err(LogError::reading(path))?;
    line.ok_or_else(|| LogError::Empty(path.to_owned()))
}

/// The first line of a segment, which must be its start.
pub fn first_line(path: &Path) -> Result<(Entry, u64), LogError> {
    let line = first_raw(path)?;
    let damaged = |reason| LogError::Damaged { path: path.to_owned(), byte: 0, reason };
    let entry = decode(&line.bytes).map_err(damaged)?;
    if !matches!(entry.fact, Fact::SegmentStart { .. }) {
        return Err(damaged("it does not begin with segment_start".into()));
    }
    Ok((entry, line.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    fn file_with(content: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(content).unwrap();
        file
    }

    fn forwards(content: &[u8]) -> Vec<Raw> {
        let mut lines = Forward::new(file_with(content), 0, content.len() as u64).unwrap();
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    fn backwards(content: &[u8]) -> Vec<Raw> {
        let mut lines = Backward::new(file_with(content), content.len() as u64).unwrap();
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn backwards_gives_the_same_lines_as_forwards(
            lines in prop::collection::vec((0usize..90_000, prop::bool::weighted(0.2)), 0..12),
            tail in 0usize..70_000,
        ) {
            let mut content = Vec::new();
            for (index, (length, long)) in lines.iter().enumerate() {
                let length = if *long { *length } else { length % 50 };
                content.resize(content.len() + length, b'a' + u8::try_from(index).unwrap());
                content.push(b'\n');
            }
            content.resize(content.len() + tail, b'~');
            let mut reversed = backwards(&content);
            reversed.reverse();
            prop_assert_eq!(reversed, forwards(&content));
        }
    }

    #[test]
    fn a_line_with_a_known_kind_and_foreign_fields_is_damaged() {
        assert!(decode(br#"{"ts":1,"kind":"turn_end","turn_count":3}"#).is_ok());
        assert!(decode(br#"{"ts":1,"kind":"from_the_future","x":[1]}"#).is_ok());
        let reason = decode(br#"{"ts":1,"kind":"turn_end","turn_count":"three"}"#).unwrap_err();
        assert_eq!(reason, "its fields are not those of turn_end");
        for damaged in ["", "{}", "null", "{\"kind\":", "\0\0\0"] {
            assert!(decode(damaged.as_bytes()).is_err(), "{damaged:?}");
        }
    }
}
