//! The blocks that are loaded, in the pages they came in. Pages far from the view are dropped again
//! and remember where they are to be read.

mod budget;
mod fill;
mod join;
mod walk;

pub use fill::Kept;
pub use walk::{Gap, Step, Walk};

use crate::screen::pane::transcript::block::{Block, Kind};
use std::collections::VecDeque;
use yoi::protocol::EntryId;

/// The size in bytes of all loaded blocks beyond which pages far from the view are dropped.
const BUDGET: usize = 8 * 1024 * 1024;
/// From this size on, in bytes, the growing last page is closed and a new one begun.
const SEAL: usize = 128 * 1024;
/// A call and its answer lie at most this many pages apart.
const REACH: usize = 8;

/// The position of a block, or of a part of its text. Positions are ordered as in the transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    pub page: i64,
    pub block: usize,
    /// 0 is the block itself, which holds the beginning of its text.
    pub part: usize,
}

impl Pos {
    /// The first block of a page.
    pub fn first(page: i64) -> Self {
        Self { page, block: 0, part: 0 }
    }

    /// The block itself.
    pub fn head(self) -> Self {
        Self { part: 0, ..self }
    }

    pub fn is_in(self, other: Self) -> bool {
        self.head() == other.head()
    }
}

/// The oldest entry of a page, which is read backwards.
#[derive(Clone, Copy, PartialEq)]
enum Bound {
    /// This entry, included.
    From(EntryId),
    /// The entry after this one.
    After(EntryId),
}

struct Page {
    /// The page ends before this entry; `None` for the last page, which is never dropped.
    before: Option<EntryId>,
    bound: Option<Bound>,
    blocks: Vec<Block>,
    bytes: usize,
    state: State,
}

enum State {
    Loaded,
    /// Not loaded. `newest` holds the blocks that were read already; the others are before `next`.
    Dropped {
        newest: Vec<Block>,
        next: EntryId,
    },
}

/// Whether there are entries before the first page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    #[default]
    Here,
    /// There are more, before this entry.
    Before(EntryId),
}

#[derive(Default)]
pub struct Pages {
    list: VecDeque<Page>,
    /// The number of the first page; it falls as older pages are put before it.
    first: i64,
    pub beginning: Beginning,
}

impl Pages {
    fn index(&self, page: i64) -> Option<usize> {
        usize::try_from(page - self.first).ok().filter(|at| *at < self.list.len())
    }

    fn number(&self, index: usize) -> i64 {
        self.first + i64::try_from(index).unwrap_or(i64::MAX)
    }

    pub fn get(&self, pos: Pos) -> Option<&Block> {
        let block = self.list.get(self.index(pos.page)?)?.blocks.get(pos.block)?;
        if pos.part == 0 { Some(block) } else { block.rest.slot(pos.part) }
    }

    pub fn get_mut(&mut self, pos: Pos) -> Option<&mut Block> {
        let index = self.index(pos.page)?;
        let block = self.list.get_mut(index)?.blocks.get_mut(pos.block)?;
        if pos.part == 0 { Some(block) } else { block.rest.slot_mut(pos.part) }
    }

    /// The first loaded block.
    pub fn oldest(&self) -> Option<Pos> {
        let loaded = |page: &Page| !page.blocks.is_empty();
        let index = self.list.iter().position(loaded)?;
        Some(Pos::first(self.number(index)))
    }

    /// Where the missing page is to be read.
    pub fn missing(&self, page: i64) -> Option<EntryId> {
        match &self.list.get(self.index(page)?)?.state {
            State::Dropped { next, .. } => Some(*next),
            State::Loaded => None,
        }
    }

    /// The place of an entry, the newest pages first.
    pub fn find_entry(&self, id: EntryId) -> Option<Pos> {
        self.newest_first().find(|(_, block)| block.id == Some(id)).map(|(pos, _)| pos)
    }

    /// The blocks that show this long text.
    pub fn find_long(&self, entry: EntryId) -> Vec<Pos> {
        let shows = |block: &Block| block.long().is_some_and(|long| long.entry == entry);
        let found = self.newest_first().filter(|(_, block)| !block.gone && shows(block));
        found.map(|(pos, _)| pos).collect()
    }

    /// All loaded blocks, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = (Pos, &Block)> {
        self.list.iter().enumerate().rev().flat_map(|(index, page)| {
            let page_number = self.number(index);
            let blocks = page.blocks.iter().enumerate().rev();
            blocks.map(move |(block, found)| (Pos { block, ..Pos::first(page_number) }, found))
        })
    }

    /// All loaded blocks, to change them; in no order that matters.
    pub fn all_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.list.iter_mut().flat_map(|page| page.blocks.iter_mut())
    }

    /// The position of the call with this id, if it is within the last pages.
    pub fn find_call(&self, call_id: &str) -> Option<Pos> {
        let old = self.number(self.list.len().saturating_sub(REACH));
        self.newest_first().take_while(|(pos, _)| pos.page >= old).find_map(|(pos, block)| {
            let Kind::Tool(tool) = &block.kind else { return None };
            (tool.call_id == call_id && !block.gone).then_some(pos)
        })
    }

    /// Adds a block at the end.
    pub fn push(&mut self, block: Block) -> Pos {
        let full = self.list.back().is_none_or(|page| {
            let settled = page.blocks.iter().rev().take(64).all(|block| !block.live);
            page.bytes > SEAL && settled && block.id.is_some()
        });
        if full {
            if let Some(last) = self.list.back_mut() {
                last.before = block.id;
            }
            self.list.push_back(Page::new(Vec::new(), None));
        }
        let page = self.number(self.list.len() - 1);
        let index = self.list.len() - 1;
        let last = &mut self.list[index];
        last.bytes += block.bytes();
        last.bound = last.bound.or(block.id.map(Bound::From));
        last.blocks.push(block);
        Pos { block: last.blocks.len() - 1, ..Pos::first(page) }
    }

    /// Hides all blocks from an entry on, which were taken back; `false` where no block shows that entry.
    pub fn take_back(&mut self, from: EntryId) -> bool {
        let Some(start) = self.find_entry(from) else { return false };
        let Some(index) = self.index(start.page) else { return false };
        for (at, page) in self.list.iter_mut().enumerate().skip(index) {
            let skip = if at == index { start.block } else { 0 };
            page.blocks.iter_mut().skip(skip).for_each(|block| block.gone = true);
        }
        true
    }
}

impl Page {
    fn new(blocks: Vec<Block>, before: Option<EntryId>) -> Self {
        let bytes = blocks.iter().map(Block::bytes).sum();
        let bound = blocks.iter().find_map(|block| block.id).map(Bound::From);
        Self { before, bound, blocks, bytes, state: State::Loaded }
    }

    fn oldest_id(&self) -> Option<EntryId> {
        match self.bound? {
            Bound::From(id) => Some(id),
            Bound::After(_) => None,
        }
    }
}
