//! Adds pages at both ends, and in the place of a dropped page.

use crate::screen::pane::transcript::block::{Block, Reading};
use crate::screen::pane::transcript::pages::{Beginning, Bound, Page, Pages, Pos, State};
use crate::screen::pane::transcript::rest::Rest;
use std::collections::{HashMap, HashSet};
use yoi::protocol::entry::domain;
use yoi::protocol::event::Line;
use yoi::protocol::{EntryId, Fact};

/// Which loaded blocks stay before a new newest page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// None: a rewind or its undo may have dropped any of them.
    Nothing,
    /// Those before the first block that the page holds too; none if it holds none of them.
    Joined,
    /// The same, but if the page holds none of them, all stay before a gap that is filled when it comes into
    /// view.
    OverGap,
}

impl Pages {
    /// Puts a page before all others.
    pub fn prepend(&mut self, lines: Vec<Line>, older: Option<EntryId>) -> i64 {
        let next = self.list.iter().find_map(Page::oldest_id);
        let before = match self.beginning {
            Beginning::Before(id) => Some(id),
            Beginning::Here => next,
        };
        let bound = older.or_else(|| lines.iter().find_map(Line::id)).map(Bound::From);
        let mut page = Page::new(read(lines), before);
        page.bound = bound;
        self.list.push_front(page);
        self.first -= 1;
        self.beginning = older.map_or(Beginning::Here, Beginning::Before);
        self.join(0);
        self.first
    }

    /// Fills a dropped page with these lines, which may be only its newest ones.
    pub fn refill(&mut self, number: i64, lines: Vec<Line>, older: Option<EntryId>) {
        let Some(index) = self.index(number) else { return };
        let page = &mut self.list[index];
        let State::Dropped { newest, next } = &mut page.state else { return };
        let at = |id: EntryId| lines.iter().position(|line| line.id() == Some(id));
        let cut = match page.bound {
            Some(Bound::From(id)) => at(id),
            Some(Bound::After(id)) => at(id).map(|at| at + 1),
            None => None,
        };
        let mut lines = lines;
        let kept = lines.split_off(cut.unwrap_or(0));
        let oldest = kept.iter().find_map(Line::id);
        let mut blocks = read(kept);
        blocks.append(newest);
        match older {
            Some(older) if cut.is_none() => {
                *newest = blocks;
                *next = older;
            }
            _ => {
                let bound = match page.bound {
                    Some(Bound::From(id)) => Some(id),
                    _ => oldest.or_else(|| blocks.iter().find_map(|block| block.id)),
                };
                *page = Page { bound: bound.map(Bound::From), ..Page::new(blocks, page.before) };
                if let Some(previous) = index.checked_sub(1) {
                    let previous = &mut self.list[previous];
                    previous.before = previous.before.or(bound);
                }
                self.join(index);
            }
        }
    }

    /// Whether a page holds a rewind, or the undo of one, that is not loaded: events of it were missed.
    pub fn lack_jump(&self, lines: &[Line]) -> bool {
        let mut jumps =
            lines.iter().filter_map(Line::entry).filter_map(|entry| match &entry.fact {
                Fact::Extension { domain, .. } if domain == domain::REWOUND => entry.id,
                _ => None,
            });
        jumps.any(|id| self.find_entry(id).is_none())
    }

    /// Replaces the end by the newest page. Streaming blocks are dropped, and blocks that both hold are taken
    /// from the new page.
    pub fn renew(&mut self, lines: Vec<Line>, older: Option<EntryId>, kept: Kept) {
        let ids: Vec<EntryId> = lines.iter().filter_map(Line::id).collect();
        let mut parts = self.take_parts();
        self.all_mut().filter(|block| block.live).for_each(|block| block.gone = true);
        // A page that reaches the beginning holds everything, also damaged lines, which have no id.
        let joins = kept != Kept::Nothing && older.is_some();
        let overlap = joins.then(|| self.overlap(&ids)).flatten();
        let newest = self.newest_first().find_map(|(_, block)| block.id);
        match (overlap, newest, older.or_else(|| ids.first().copied())) {
            (Some(pos), _, oldest) => {
                self.truncate(pos);
                self.meet(&ids, oldest, older);
            }
            (None, Some(newest), Some(oldest)) if kept == Kept::OverGap && older.is_some() => {
                let state = State::Dropped { newest: Vec::new(), next: oldest };
                let gap = Page::new(Vec::new(), Some(oldest));
                let bound = Some(Bound::After(newest));
                self.list.push_back(Page { state, bound, ..gap });
            }
            _ => {
                let next = self.number(self.list.len());
                self.list.clear();
                self.first = next;
                self.beginning = older.map_or(Beginning::Here, Beginning::Before);
            }
        }
        let mut page = Page::new(read(lines), None);
        page.bound = older.or_else(|| ids.first().copied()).map(Bound::From);
        self.list.push_back(page);
        self.join(self.list.len() - 1);
        self.give_parts(&mut parts);
    }

    /// The loaded parts of committed texts, which a new page does not change.
    fn take_parts(&mut self) -> HashMap<EntryId, Rest> {
        let known = |block: &mut Block| {
            let entry = block.long()?.entry;
            block.rest.table.is_some().then(|| (entry, std::mem::take(&mut block.rest)))
        };
        self.all_mut().filter_map(known).collect()
    }

    fn give_parts(&mut self, parts: &mut HashMap<EntryId, Rest>) {
        for block in self.all_mut().filter(|block| block.awaits_table()) {
            let rest = block.long().and_then(|long| parts.remove(&long.entry));
            block.rest = rest.unwrap_or_default();
        }
        (0..self.list.len()).for_each(|index| self.recount(self.number(index)));
    }

    /// The oldest loaded block that is among these entries.
    fn overlap(&self, ids: &[EntryId]) -> Option<Pos> {
        let known: HashSet<&EntryId> = ids.iter().collect();
        let same = |block: &Block| block.id.is_some_and(|id| known.contains(&id));
        self.newest_first().filter(|(_, block)| same(block)).last().map(|(pos, _)| pos)
    }

    /// Ends the remaining pages where a new page with these entries begins.
    fn meet(&mut self, ids: &[EntryId], oldest: Option<EntryId>, older: Option<EntryId>) {
        while let Some(Page { state: State::Dropped { newest, next }, bound, before, .. }) =
            self.list.back_mut()
        {
            let covered = matches!(bound, Some(Bound::From(id)) if ids.contains(id));
            match oldest {
                Some(oldest) if !covered => {
                    newest.clear();
                    (*next, *before) = (oldest, Some(oldest));
                    return;
                }
                _ => drop(self.list.pop_back()),
            }
        }
        if self.list.is_empty() {
            self.beginning = older.map_or(Beginning::Here, Beginning::Before);
        }
    }

    /// Drops all blocks from a position on.
    fn truncate(&mut self, from: Pos) {
        let Some(index) = self.index(from.page) else { return };
        self.list.truncate(index + 1);
        let page = &mut self.list[index];
        let id = page.blocks.get(from.block).and_then(|block| block.id);
        page.blocks.truncate(from.block);
        page.bytes = page.blocks.iter().map(Block::bytes).sum();
        page.before = id;
        if page.blocks.is_empty() {
            self.list.pop_back();
        }
    }
}

fn read(lines: Vec<Line>) -> Vec<Block> {
    let read = |line| match line {
        Line::Whole(entry) => Block::read(*entry, None),
        Line::Cut { cut_bytes, entry } => Block::read(*entry, Some(cut_bytes)),
        Line::Damaged { damaged, byte } => Reading::Block(Block::damaged(&damaged, byte)),
    };
    let shown = |reading| match reading {
        Reading::Block(block) => Some(block),
        // What was taken back is not in the page.
        Reading::TakenBack(_) | Reading::Nothing => None,
    };
    lines.into_iter().map(read).filter_map(shown).collect()
}
