//! Long outputs of tools that are left in the log until they are needed: most of a long log are
//! outputs that no request sends any more.

use crate::disk::open_regular;
use crate::protocol::entry::{Entry, Fact, FileMark, Kept, OutputPlace};
use crate::protocol::item::{Image, Item};
use crate::protocol::name::EntryId;
use crate::session::glance::kind;
use crate::session::jump::line_at;
use crate::session::line::decode;
use crate::session::lineage::LogPosition;
use crate::session::{Files, LogError};
use serde::de::{Deserialize, Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Outputs in longer lines, in bytes, are left in the log.
const LONG: usize = 16 * 1024;
/// The kind of the entry and of its item.
const RESULT: &str = "tool_result";

/// A tool result whose content was passed over.
#[derive(serde::Deserialize)]
pub struct LongResult<'l> {
    #[serde(default)]
    pub id: Option<EntryId>,
    #[serde(borrow)]
    kind: Cow<'l, str>,
    item: ResultItem<'l>,
    #[serde(default)]
    pub files: Vec<FileMark>,
}

#[derive(serde::Deserialize)]
struct ResultItem<'l> {
    #[serde(borrow)]
    kind: Cow<'l, str>,
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

impl<'l> LongResult<'l> {
    /// Reads a line that is a tool result with a long content; `None` for every other line.
    pub fn read(line: &'l [u8]) -> Option<Self> {
        // Lines of other programs may begin in another way.
        let may_be = line.len() >= LONG && kind(line).is_none_or(|(kind, _)| kind == RESULT);
        let result: Self = may_be.then(|| serde_json::from_slice(line).ok())??;
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

/// Reads the content of a result that was left in the log; any other item stays as it is. Blocking.
pub fn load(files: &Files, kept: &mut Kept) -> Result<(), LogError> {
    let (Some(place), Item::ToolResult { content: content @ None, .. }) =
        (&kept.output, &mut kept.item)
    else {
        return Ok(());
    };
    let path = files.segment(place.segment);
    let read = || -> std::io::Result<_> {
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
