//! The transcript of one Pod: a list of blocks, loaded page by page from the end of the log, with the
//! live stream at its end. Only blocks near the view have rows.

/// What is loaded around the view, and what is dropped.
mod ahead;
/// Approval requests and their decisions.
mod approval;
/// A block: one log entry, or a reply that streams.
mod block;
/// Where a person was in it.
mod bookmark;
/// Text of models and tools, made safe and laid out.
mod clean;
/// Lines of code, with colours.
mod code;
/// What is copied.
mod copy;
/// The block that keys act on.
mod cursor;
/// The change that a tool made to a text.
mod diff;
/// The search.
mod find;
/// Reads that are one row.
mod group;
/// Events, as they come.
mod live;
/// Which page is requested, and what a page does.
mod load;
/// Requests for the parts of long texts.
mod long;
/// Markdown as rows.
mod markdown;
/// The loaded blocks, in their pages.
mod pages;
/// Where the parts of a long text begin.
mod parts;
/// Messages that wait for a run.
mod queue;
/// The loaded parts of a long text.
mod rest;
/// The speaker and the text of a notification.
mod notification;
/// What became of a call.
mod outcome;
/// The rows of a block.
mod rows;
/// The position of the view.
mod scroll;
/// A text that streams.
mod stream;
/// Tables of markdown.
mod table;
/// What a block leads to.
mod target;
/// Tool calls.
mod tool;
/// The transcript as a widget.
mod view;

pub use bookmark::Bookmark;
pub use copy::{CodeLines, Copy, LogCopy, Source};
pub use find::Search;
pub use load::Wanted;
pub use parts::{LongText, PartRange, PartTable, TableBuilder};
pub use queue::{Queue, queue_rows};
pub use scroll::text_area;
pub use target::Target;
pub use view::View;

use block::{Block, Fold, Kind};
use jiff::tz::TimeZone;
use pages::{Pages, Pos};
use scroll::{Anchor, Seen};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use yoi::protocol::{Entry, EntryId};

/// One Pod's transcript.
pub struct Transcript {
    pages: Pages,
    load: load::Load,
    anchor: Anchor,
    /// The view stays where it is although the tail is in it.
    is_held: bool,
    /// Columns and rows of the pane.
    size: (u16, u16),
    /// The time of the frame, in milliseconds.
    now: u64,
    zone: TimeZone,
    detail: Detail,
    /// Whether all blocks are unfolded.
    unfolded: bool,
    /// The generation of the rows: it grows with each change that concerns the rows of every block.
    generation: u32,
    /// The rows in view, top down.
    seen: Vec<Seen>,
    /// Blocks that have rows.
    cached: Vec<Pos>,
    /// Whether a streaming block has no start time yet.
    unstamped: bool,
    cursor: Option<Pos>,
    /// The first block that may stream; `None` while no block does.
    streams_from: Option<Pos>,
    find: find::Find,
    tables: long::Tables,
    /// The folds that a person chose, by the entry of the block: a page that is loaded again gets them back.
    folds: BTreeMap<EntryId, Fold>,
    way_back: bookmark::Return,
    /// The number of blocks that came since the view left the tail.
    new_below: usize,
    /// The text and the thinking that stream.
    said: stream::LiveText,
    thought: stream::LiveText,
}

/// How far to scroll; negative numbers scroll towards the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Lines(i32),
    HalfPage(i32),
    Page(i32),
    /// By messages of the person.
    Turn(i32),
    Top,
    Tail,
}

/// How much of each block is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// One line a block.
    Overview,
    #[default]
    Normal,
    /// Everything, unfolded.
    Full,
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new()
    }
}

impl Transcript {
    /// An empty transcript, which wants its newest page. Clock times are in the zone of this machine.
    pub fn new() -> Self {
        Self::in_zone(TimeZone::system())
    }

    /// As [`Transcript::new`], with clock times of this zone.
    pub fn in_zone(zone: TimeZone) -> Self {
        Self {
            pages: Pages::default(),
            load: load::Load::new(),
            anchor: Anchor::Tail,
            is_held: false,
            size: (0, 0),
            now: 0,
            zone,
            detail: Detail::Normal,
            unfolded: false,
            generation: 0,
            seen: Vec::new(),
            cached: Vec::new(),
            unstamped: false,
            cursor: None,
            streams_from: None,
            find: find::Find::default(),
            tables: long::Tables::default(),
            folds: BTreeMap::new(),
            way_back: bookmark::Return::default(),
            new_below: 0,
            said: stream::LiveText::default(),
            thought: stream::LiveText::default(),
        }
    }

    /// Unfolds or folds the block under the cursor.
    pub fn toggle_fold(&mut self) {
        let Some(pos) = self.focus().map(Pos::head) else { return };
        if self.retry_table(pos) {
            return;
        }
        let row = self.row_of(pos);
        if self.open_group(pos) {
            return self.hold(pos, row);
        }
        let (detail, unfolded) = (self.detail, self.unfolded);
        let Some(block) = self.pages.get(pos) else { return };
        let fold = match (block.shape(detail, unfolded).open, block.folds_paste(detail)) {
            (false, _) | (true, Some(true)) => Fold::Open,
            (true, Some(false)) => Fold::Auto,
            (true, None) => Fold::Shut,
        };
        self.set_fold(pos, fold);
    }

    /// Unfolds the block under the cursor.
    pub fn unfold(&mut self) {
        let Some(pos) = self.focus().map(Pos::head) else { return };
        let row = self.row_of(pos);
        match self.open_group(pos) {
            true => self.hold(pos, row),
            false => self.set_fold(pos, Fold::Open),
        }
    }

    /// Folds the block under the cursor.
    pub fn fold(&mut self) {
        if let Some(pos) = self.focus()
            && !self.close_group(pos)
        {
            self.set_fold(pos, Fold::Shut);
        }
    }

    fn set_fold(&mut self, pos: Pos, fold: Fold) {
        let pos = pos.head();
        let row = self.row_of(pos);
        self.keep_fold(pos, fold);
        let Some(block) = self.pages.get(pos) else { return };
        if fold == Fold::Open && block.cut.is_some() && block.long.is_none() {
            self.load.want_whole(block.id);
        }
        self.hold(pos, row);
    }

    /// The row of the pane in which a block begins.
    fn row_of(&self, pos: Pos) -> usize {
        self.seen.iter().position(|seen| seen.pos == pos).unwrap_or(0)
    }

    /// Folds or unfolds a block, also when its page is loaded again.
    fn keep_fold(&mut self, pos: Pos, fold: Fold) {
        let Some(block) = self.pages.get_mut(pos) else { return };
        (block.fold, block.cache) = (fold, None);
        if let Some(id) = block.id {
            self.folds.insert(id, fold);
        }
    }

    /// Unfolds all blocks, or folds them again.
    pub fn toggle_fold_all(&mut self) {
        self.unfolded = !self.unfolded;
        self.folds.clear();
        self.pages.all_mut().for_each(|block| block.fold = Fold::Auto);
        self.redraw_all();
    }

    pub fn set_detail(&mut self, detail: Detail) {
        self.detail = detail;
        self.redraw_all();
    }

    fn redraw_all(&mut self) {
        self.generation = self.generation.wrapping_add(1);
        self.find_visible_rows();
    }

    /// The log entry under the cursor.
    pub fn entry(&self) -> Option<EntryId> {
        self.pages.get(self.focus()?.head())?.id
    }

    /// An entry to fetch whole: it was unfolded, and only its beginning is loaded.
    pub fn wants_whole(&mut self) -> Option<EntryId> {
        self.load.take_whole()
    }

    /// Replaces the beginning of an entry by the whole entry.
    pub fn whole(&mut self, entry: Entry) {
        let Some(pos) = entry.id.and_then(|id| self.pages.find_entry(id)) else { return };
        let block::Reading::Block(whole) = Block::read(entry, None) else { return };
        if let Kind::Result { call_id, outcome } = &whole.kind {
            self.answer(&call_id.clone(), outcome.clone());
        }
        if let Some(block) = self.pages.get_mut(pos) {
            let outcome = block.kind.take_outcome();
            let rest = std::mem::take(&mut block.rest);
            *block = Block { fold: block.fold, gone: block.gone, rest, ..whole };
            block.kind.give_outcome(outcome);
        }
        self.pages.recount(pos.page);
        self.find_visible_rows();
    }

    /// How many blocks came since the view left the tail.
    pub fn new_below(&self) -> usize {
        self.new_below
    }

    /// How many rows of the pane are empty below the last one.
    pub fn free_rows(&self) -> u16 {
        self.size.1.saturating_sub(u16::try_from(self.seen.len()).unwrap_or(u16::MAX))
    }

    pub fn is_at_tail(&self) -> bool {
        self.anchor == Anchor::Tail
    }

    /// When the view changes next without an event, in milliseconds; later than `now_ms`.
    pub fn wakes_at(&self, now_ms: u64) -> Option<u64> {
        let heads = self.seen.iter().filter(|seen| seen.row == 0 && seen.pos.part == 0);
        heads.filter_map(|seen| self.row_changes_at(seen.pos, now_ms)).min()
    }
}

#[cfg(test)]
mod tests;
