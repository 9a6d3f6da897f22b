//! What the block under the cursor leads to: the file of a call, or a link.

use crate::rows::Link;
use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::block::Kind;
use std::path::PathBuf;

/// What a block leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file as the call names it, and the line from which it was read.
    File(PathBuf, Option<u64>),
    Link(Link),
}

impl Transcript {
    /// The file of the call under the cursor, else the first link in view of that block.
    pub fn target(&self) -> Option<Target> {
        let focus = self.focus()?;
        if let Kind::Tool(tool) = &self.pages.get(focus.head())?.kind
            && let Some((path, line)) = tool.file()
        {
            return Some(Target::File(path.into(), line));
        }
        let rows = self.seen.iter().filter(|seen| seen.pos.is_in(focus));
        let pieces = rows.filter_map(|seen| self.body_row(seen)).flatten();
        pieces.filter_map(|piece| piece.link.clone()).next().map(Target::Link)
    }
}
