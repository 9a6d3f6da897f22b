//! Long outputs of tools that are left in the log until they are needed: most of a long log are
//! outputs that no request sends any more.

use crate::disk::open_regular;
use crate::protocol::entry::{Entry, Fact, FileMark, Kept, OutputPlace};
use crate::protocol::item::{Image, Item};
use crate::protocol::name::EntryId;
use crate::session::glance::kind;
use crate::session::json_text::text;
use crate::session::jump::line_at;
use crate::session::line::decode;
use crate::session::lineage::LogPosition;
use crate::session::{Files, LogError};
use serde::de::{Deserialize, Deserializer, Visitor};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// Outputs in longer lines, in bytes, are left in the log.
pub const LONG: usize = 16 * 1024;
/// The kind of the entry and of its item.
const RESULT: &str = "tool_result";

/// A tool result whose content was passed over.
#[derive(serde::Deserialize)]
pub struct LongResult {
    #[serde(default)]
    pub id: Option<EntryId>,
    kind: String,
    item: ResultItem,
    #[serde(default)]
    pub files: Vec<FileMark>,
}

#[derive(serde::Deserialize)]
struct ResultItem {
    kind: String,
    call_id: String,
    summary: String,
    content: Length,
    #[serde(default)]
    is_error: bool,
    #[serde(default)]
    images: Vec<Image>,
}

/// The length of a text that is not kept.
struct Length(u64);

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Length;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text")
            }

            fn visit_str<E>(self, text: &str) -> Result<Length, E> {
                Ok(Length(text.len() as u64))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl LongResult {
    /// Reads a line that is a tool result with a long content; `None` for every other line.
    pub fn read(line: &[u8]) -> Option<Self> {
        // Lines of other programs may begin in another way.
        let may_be = line.len() >= LONG && kind(line).is_none_or(|(kind, _)| kind == RESULT);
        if !may_be {
            return None;
        }
        let result: Self = match without_content(line) {
            Some((short, bytes)) => {
                let mut result: Self = serde_json::from_slice(&short).ok()?;
                result.item.content = Length(bytes);
                result
            }
            None => serde_json::from_slice(line).ok()?,
        };
        (result.kind == RESULT && result.item.kind == RESULT).then_some(result)
    }

    pub fn call_id(&self) -> &str {
        &self.item.call_id
    }

    /// The result in a history, without its content; its line begins at `at`.
    pub fn kept(self, at: LogPosition) -> (Kept, Vec<FileMark>) {
        let Self { id, item, files, .. } = self;
        let output = OutputPlace { segment: at.segment, offset: at.offset, bytes: item.content.0 };
        let item = Item::ToolResult {
            call_id: item.call_id,
            summary: item.summary,
            content: None,
            is_error: item.is_error,
            images: item.images,
        };
        (Kept { output: Some(output), ..Kept::new(id, item) }, files)
    }
}

/// The line of a tool result with an empty content, and the length of its content: a JSON reader
/// would take several times as long for all of it. `None` for a line that this program would write
/// in another way, and where the content is no JSON text.
pub(super) fn without_content(line: &[u8]) -> Option<(Vec<u8>, u64)> {
    let (_, rest) = kind(line)?;
    let call = rest.strip_prefix(br#","item":{"kind":"tool_result","call_id":""#)?;
    let summary = text(call)?.behind.strip_prefix(br#","summary":""#)?;
    let content = text(summary)?.behind.strip_prefix(br#","content":""#)?;
    let passed = text(content)?;
    let mut short = line[..line.len() - content.len()].to_vec();
    short.push(b'"');
    short.extend_from_slice(passed.behind);
    Some((short, passed.bytes))
}

/// The results that lines are, in the order of these, which are given with their line ends; `None` for a
/// line that is something else.
pub fn read_all(file: &File, lines: &[Range<u64>]) -> io::Result<Vec<Option<LongResult>>> {
    let mut bytes = Vec::new();
    let read = |line: &Range<u64>| {
        bytes.resize(usize::try_from(line.end - line.start).unwrap_or(0), 0);
        file.read_exact_at(&mut bytes, line.start)?;
        Ok(bytes.strip_suffix(b"\n").and_then(LongResult::read))
    };
    lines.iter().map(read).collect()
}

/// Reads the content of a result that was left in the log; any other item stays as it is. Blocking.
pub fn load(files: &Files, kept: &mut Kept) -> Result<(), LogError> {
    let (Some(place), Item::ToolResult { content: content @ None, .. }) =
        (&kept.output, &mut kept.item)
    else {
        return Ok(());
    };
    let path = files.segment(place.segment);
    let read = || -> io::Result<_> {
        let file = open_regular(&path)?;
        line_at(&file, place.offset, file.metadata()?.len())
    };
    let line = read().map_err(LogError::reading(&path))?;
    let entry = line.map_or_else(|| Err("the line is torn".into()), |line| decode(&line));
    match entry {
        Ok(Entry {
            fact: Fact::ToolResult { item: Item::ToolResult { content: found, .. }, .. },
            ..
        }) => {
            *content = found;
            Ok(())
        }
        Ok(_) => Err(damaged(&path, place.offset, "it is no tool result".into())),
        Err(reason) => Err(damaged(&path, place.offset, reason)),
    }
}

fn damaged(path: &std::path::Path, byte: u64, reason: String) -> LogError {
    LogError::Damaged { path: path.to_owned(), byte, reason }
}
