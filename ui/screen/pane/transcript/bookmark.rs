//! Where a person was in a transcript, and what was folded there: kept while the transcript is not
//! loaded, also over the end of the screen.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::block::Fold;
use crate::screen::pane::transcript::load::Want;
use crate::screen::pane::transcript::pages::{Beginning, Pos};
use crate::screen::pane::transcript::scroll::{Anchor, RowPosition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use yoi::protocol::EntryId;

/// How many blocks of one transcript keep a fold of their own; the newest ones do.
const FOLDS: usize = 200;
/// How many pages are read to come back to a place. One that is further up is given up: the view
/// stays at the end.
const PAGES: u32 = 64;

/// A place in a transcript and its folds. The default one is the end, with nothing folded by hand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bookmark {
    /// The row at the top of the view; `None` at the end, which is followed.
    top: Option<TopRow>,
    /// The entry of the block that keys act on.
    cursor: Option<EntryId>,
    /// Whether all blocks are unfolded.
    unfolded: bool,
    /// The blocks that were unfolded or folded by hand.
    folds: BTreeMap<EntryId, Fold>,
}

/// A row of a block.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct TopRow {
    entry: EntryId,
    /// Which part of a long text.
    part: usize,
    /// Counted from the first row of the block; rows above are negative.
    row: i32,
    /// How many rows the block had.
    of: usize,
}

/// The way back to a place that is not loaded yet.
#[derive(Default)]
pub struct Return {
    top: Option<TopRow>,
    cursor: Option<EntryId>,
    /// Whether the last block that is shown before the entry does as well, for an entry without a block of its own.
    or_before: bool,
    /// How many pages were looked at.
    pages: u32,
}

impl Return {
    /// Whether the pages on the way are being read.
    pub fn is_under_way(&self) -> bool {
        self.top.is_some()
    }
}

impl Transcript {
    /// Opens a transcript at a bookmark, as soon as its pages have come.
    pub fn open_at(&mut self, bookmark: Bookmark) {
        let Bookmark { top, cursor, unfolded, folds } = bookmark;
        self.unfolded = unfolded;
        self.folds = folds;
        self.way_back = Return { top, cursor, ..Return::default() };
    }

    /// Goes to an entry, or to what is shown last before it, as soon as its page has come. The cursor is there, too.
    pub fn go_to_entry(&mut self, entry: EntryId) {
        let top = Some(TopRow { entry, part: 0, row: 0, of: 0 });
        self.find.stop();
        self.way_back = Return { top, cursor: Some(entry), or_before: true, pages: 0 };
        if self.load.ready {
            self.go_on_back();
            self.find_visible_rows();
        }
    }

    /// The block of an entry on the way back.
    fn place_of(&self, entry: EntryId) -> Option<Pos> {
        let there = self.pages.find_entry(entry);
        let before = || {
            let is_before = |id: EntryId| id <= entry;
            let mut blocks = self.pages.newest_first();
            let found = blocks
                .find(|(_, block)| block.id.is_some_and(is_before) && block.shown(self.detail));
            found.map(|(pos, _)| pos)
        };
        if self.way_back.or_before { there.or_else(before) } else { there }
    }

    /// Where the person is now.
    pub fn bookmark(&self) -> Bookmark {
        let mut folds = self.folds.clone();
        for (_, block) in self.pages.newest_first() {
            if let Some(id) = block.id.filter(|_| block.fold != Fold::Auto) {
                folds.insert(id, block.fold);
            }
        }
        while folds.len() > FOLDS {
            folds.pop_first();
        }
        let entry = |pos: Pos| self.pages.get(pos.head())?.id;
        let top = match self.anchor {
            Anchor::Tail => None,
            Anchor::At(RowPosition { pos, row, of }) => {
                entry(pos).map(|entry| TopRow { entry, part: pos.part, row, of })
            }
        };
        Bookmark {
            top: self.way_back.top.or(top),
            cursor: self.way_back.cursor.or_else(|| self.cursor.and_then(entry)),
            unfolded: self.unfolded,
            folds,
        }
    }

    /// Gives up the way back: the person moves.
    pub(super) fn stay_here(&mut self) {
        self.way_back = Return::default();
    }

    /// After a page has come: gives its blocks their folds, and goes on to the place of the bookmark.
    pub(super) fn go_on_back(&mut self) {
        if !self.folds.is_empty() {
            self.fold_again();
        }
        if let Some(pos) = self.way_back.cursor.and_then(|entry| self.place_of(entry)) {
            (self.cursor, self.way_back.cursor) = (Some(pos), None);
        }
        let Some(top) = self.way_back.top else { return };
        if let Some(pos) = self.place_of(top.entry) {
            self.way_back.top = None;
            return self.come_back(pos, top);
        }
        self.way_back.pages += 1;
        let oldest = self.pages.oldest();
        match self.pages.beginning {
            Beginning::Before(older) if self.way_back.pages < PAGES => {
                // The pages near the place are kept, not those near the end.
                if let Some(pos) = oldest {
                    self.anchor_at(RowPosition { pos, row: 0, of: 0 });
                }
                self.load.want = Some(Want::Older(older));
            }
            Beginning::Before(_) | Beginning::Here => {
                self.stay_here();
                self.anchor = Anchor::Tail;
            }
        }
    }

    fn fold_again(&mut self) {
        for block in self.pages.all_mut().filter(|block| block.fold == Fold::Auto) {
            let Some(fold) = block.id.and_then(|id| self.folds.get(&id)) else { continue };
            (block.fold, block.cache) = (*fold, None);
            if *fold == Fold::Open && block.cut.is_some() && block.long.is_none() {
                self.load.want_whole(block.id);
            }
        }
    }

    fn come_back(&mut self, pos: Pos, top: TopRow) {
        let part = Pos { part: top.part, ..pos };
        let is_loaded = self.pages.get(part).is_some();
        // The parts of a long text are read when its block is in view.
        let (pos, row) = if is_loaded { (part, top.row) } else { (pos, 0) };
        if self.size.0 == 0 {
            // The first layout finds the row.
            self.anchor = Anchor::At(RowPosition { pos, row, of: top.of });
            return;
        }
        self.anchor_at(RowPosition { pos, row, of: 0 });
        let Anchor::At(position) = &mut self.anchor else { return };
        if is_loaded && top.row > 0 && top.of > 0 && position.of != top.of {
            let row = usize::try_from(top.row).unwrap_or(0) * position.of / top.of;
            position.row = i32::try_from(row).unwrap_or(i32::MAX);
        }
    }
}
