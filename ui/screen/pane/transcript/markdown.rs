//! Markdown as rows. A growing text is drawn from the end of its finished part on, so that the cost
//! follows what was added and not the length of the text.

mod fence;
mod writer;

pub use fence::{FENCE_LINE, Fence, Fences};

use crate::rows::Row;
use crate::screen::pane::transcript::code;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use writer::Writer;

/// How far a growing text is finished: nothing before `byte` will look different, and `rows` rows
/// show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    byte: usize,
    rows: usize,
    /// Set when `byte` lies inside a block of code.
    fence: Option<Fence>,
    /// The number of the list item that begins at `byte`, whatever its source says.
    number: Option<u64>,
}

impl Finished {
    /// For a text that begins inside a block of code or below some rows of its own.
    pub fn begun(fence: Option<Fence>, rows: usize) -> Self {
        Self { fence, rows, ..Self::default() }
    }
}

/// The rows of a whole text.
pub fn render(text: &str, cells: usize) -> Vec<Row> {
    let mut out = Vec::new();
    grow(text, cells, &mut Finished::default(), &mut out);
    out
}

/// Updates `out`, the rows of an earlier state of the text.
pub fn grow(text: &str, cells: usize, finished: &mut Finished, out: &mut Vec<Row>) {
    out.truncate(finished.rows);
    if let Some(fence) = finished.fence.clone()
        && !grow_code(text, cells, fence, finished, out)
    {
        return;
    }
    let from = finished.byte;
    let mut writer = Writer::new(text, from, cells, out);
    writer.number = finished.number;
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for (event, range) in Parser::new_ext(&text[from..], options).into_offset_iter() {
        writer.event(event, from + range.start..from + range.end);
    }
    if let Some(reached) = writer.finish() {
        *finished = reached;
    }
}

/// The blocks of code in a text, the last one last.
pub fn code_blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut open = false;
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => {
                open = true;
                blocks.push(String::new());
            }
            Event::End(TagEnd::CodeBlock) => open = false,
            Event::Text(text) if open => {
                if let Some(block) = blocks.last_mut() {
                    block.push_str(&text);
                }
            }
            _ => {}
        }
    }
    blocks
}

/// Goes on inside a block of code; `true` once the block has ended and text follows.
fn grow_code(
    text: &str,
    cells: usize,
    mut fence: Fence,
    finished: &mut Finished,
    out: &mut Vec<Row>,
) -> bool {
    for line in text[finished.byte..].split_inclusive('\n') {
        let whole = line.ends_with('\n');
        if fence.closed_by(line) {
            if whole {
                let byte = finished.byte + line.len();
                *finished = Finished { byte, rows: out.len(), ..Finished::default() };
            }
            return whole;
        }
        code::line(line.trim_end_matches('\n'), &mut fence.code, &[], cells, out);
        if whole {
            finished.byte += line.len();
            finished.rows = out.len();
            finished.fence = Some(fence.clone());
        }
    }
    false
}

#[cfg(test)]
mod tests;
