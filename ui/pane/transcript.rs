//! What was said and done in one Pod: a list of blocks of which only the visible ones cost anything,
//! loaded page by page from the tail, and live at its end.

mod ahead;
mod approval;
mod block;
mod clean;
mod code;
mod copy;
mod cursor;
mod diff;
mod find;
mod live;
mod load;
mod long;
mod markdown;
mod pages;
mod parts;
mod rest;
mod notification;
mod rows;
mod scroll;
mod stream;
mod table;
mod tool;
mod view;

pub use copy::{CodeLines, Copy, LogCopy, Source};
pub use find::Search;
pub use load::Wanted;
pub use parts::{LongText, PartRange, PartTable, TableBuilder};
pub use view::View;

use block::{Block, Fold, Kind};
use jiff::tz::TimeZone;
use pages::{Pages, Pos};
use scroll::{Anchor, Seen};
use yoi::protocol::{Entry, EntryId};

/// One Pod's transcript.
pub struct Transcript {
    pages: Pages,
    load: load::Load,
    anchor: Anchor,
    /// Columns and rows of the pane.
    size: (u16, u16),
    /// The time that is shown, in milliseconds.
    now: u64,
    zone: TimeZone,
    detail: Detail,
    /// Whether everything that folds is open.
    unfolded: bool,
    /// Changes that concern every block's rows.
    generation: u32,
    /// The rows in view, top down.
    seen: Vec<Seen>,
    /// Blocks whose rows are kept.
    cached: Vec<Pos>,
    /// A block streams that has no start time yet.
    unstamped: bool,
    cursor: Option<Pos>,
    find: find::Find,
    tables: long::Tables,
    /// Blocks that came since the view left the tail.
    new_below: usize,
    /// The text and the thinking that stream.
    said: stream::LiveText,
    thought: stream::LiveText,
}

/// How far to scroll, and which way: negative is towards the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Lines(i32),
    HalfPage(i32),
    Page(i32),
    /// Between what the person said.
    Turn(i32),
    Top,
    Tail,
}

/// How much of each block is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
    /// An empty one, which wants its newest page. Clock times are those of this machine.
    pub fn new() -> Self {
        Self::in_zone(TimeZone::system())
    }

    /// As [`Transcript::new`], with clock times of this zone.
    pub fn in_zone(zone: TimeZone) -> Self {
        Self {
            pages: Pages::default(),
            load: load::Load::default(),
            anchor: Anchor::Tail,
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
            find: find::Find::default(),
            tables: long::Tables::default(),
            new_below: 0,
            said: stream::LiveText::default(),
            thought: stream::LiveText::default(),
        }
    }

    /// Opens or shuts the block under the cursor.
    pub fn toggle_fold(&mut self) {
        let Some(pos) = self.focus().map(Pos::head) else { return };
        if self.retry_table(pos) {
            return;
        }
        let (detail, unfolded) = (self.detail, self.unfolded);
        let Some(open) = self.pages.get(pos).map(|b| b.shape(detail, unfolded).open) else {
            return;
        };
        self.set_fold(pos, if open { Fold::Shut } else { Fold::Open });
    }

    /// Opens the block under the cursor.
    pub fn unfold(&mut self) {
        if let Some(pos) = self.focus() {
            self.set_fold(pos, Fold::Open);
        }
    }

    /// Shuts the block under the cursor.
    pub fn fold(&mut self) {
        if let Some(pos) = self.focus() {
            self.set_fold(pos, Fold::Shut);
        }
    }

    fn set_fold(&mut self, pos: Pos, fold: Fold) {
        let pos = pos.head();
        let row = self.seen.iter().position(|seen| seen.pos == pos).unwrap_or(0);
        self.cursor = Some(pos);
        let Some(block) = self.pages.get_mut(pos) else { return };
        block.fold = fold;
        block.cache = None;
        if fold == Fold::Open && block.cut.is_some() && block.long.is_none() {
            self.load.want_whole(block.id);
        }
        self.hold(pos, row);
    }

    /// Opens everything that folds, or shuts it again.
    pub fn toggle_fold_all(&mut self) {
        self.unfolded = !self.unfolded;
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

    /// An entry that is to be fetched whole: it was unfolded and only its beginning is here.
    pub fn wants_whole(&mut self) -> Option<EntryId> {
        self.load.take_whole()
    }

    /// Puts a fetched entry in the place of its beginning.
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

    /// What came since the view left the tail.
    pub fn new_below(&self) -> usize {
        self.new_below
    }

    pub fn is_at_tail(&self) -> bool {
        self.anchor == Anchor::Tail
    }

    /// When something in view changes by itself, in milliseconds; later than `now_ms`.
    pub fn wakes_at(&self, now_ms: u64) -> Option<u64> {
        let heads = self.seen.iter().filter(|seen| seen.row == 0 && seen.pos.part == 0);
        heads.filter_map(|seen| self.pages.get(seen.pos)?.changes_at(now_ms)).min()
    }
}

#[cfg(test)]
mod tests;
