//! Goes from block to block, and through the parts of long ones.

use crate::screen::pane::transcript::Detail;
use crate::screen::pane::transcript::block::Block;
use crate::screen::pane::transcript::pages::{Pages, Pos, State};

/// Which parts of long texts are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walk {
    /// Those that are shown at this level of detail, with everything unfolded or not.
    Shown(Detail, bool),
    /// All of them.
    Everything,
    /// None: only blocks.
    Blocks,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    To(Pos),
    Missing(Gap),
    /// The beginning or the end of the transcript.
    End,
}

/// A page, a part or a table that is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    Page(i64),
    /// A part of a long text.
    Part(Pos),
    /// The table of a block's parts.
    Table(Pos),
}

impl Walk {
    fn enters(self, block: &Block) -> bool {
        !block.gone
            && match self {
                Self::Shown(detail, unfolded) => block.shows_rest(detail, unfolded),
                Self::Everything => true,
                Self::Blocks => false,
            }
    }
}

impl Pages {
    /// The block, or the part of one, before or after a place.
    pub fn step(&self, from: Pos, forward: bool, walk: Walk) -> Step {
        self.step_inside(from, forward, walk)
            .unwrap_or_else(|| self.step_to_block(from, forward, walk))
    }

    fn step_inside(&self, from: Pos, forward: bool, walk: Walk) -> Option<Step> {
        let block = self.get(from.head())?;
        if forward {
            return self.enter(from, true, walk);
        }
        match from.part {
            0 => None,
            _ if walk == Walk::Everything && block.lacks_table() => {
                Some(Step::Missing(Gap::Table(from.head())))
            }
            _ if !walk.enters(block) => Some(Step::To(from.head())),
            part => Some(slots(block, from, (1..part).rev()).unwrap_or(Step::To(from.head()))),
        }
    }

    /// The parts behind a place in its block, or with `forward` unset its last ones.
    fn enter(&self, at: Pos, forward: bool, walk: Walk) -> Option<Step> {
        let block = self.get(at.head())?;
        if !walk.enters(block) {
            return None;
        }
        if walk == Walk::Everything && block.lacks_table() {
            return Some(Step::Missing(Gap::Table(at.head())));
        }
        let last = block.rest.slots.len();
        if forward {
            slots(block, at, at.part + 1..=last)
        } else {
            slots(block, at, (1..=last).rev())
        }
    }

    fn step_to_block(&self, from: Pos, forward: bool, walk: Walk) -> Step {
        let Some(pos) = self.next_block(from, forward) else { return Step::End };
        match pos {
            Ok(pos) if forward => Step::To(pos),
            Ok(pos) => self.enter(pos, false, walk).unwrap_or(Step::To(pos)),
            Err(page) => Step::Missing(Gap::Page(page)),
        }
    }

    /// The block before or after the one at a place, or the page that is missing there.
    fn next_block(&self, from: Pos, forward: bool) -> Option<Result<Pos, i64>> {
        let mut index = self.index(from.page)?;
        let next = if forward { Some(from.block + 1) } else { from.block.checked_sub(1) };
        if let Some(block) = next.filter(|block| *block < self.list[index].blocks.len()) {
            return Some(Ok(Pos { block, ..Pos::first(from.page) }));
        }
        loop {
            index = if forward { index + 1 } else { index.checked_sub(1)? };
            let page = self.list.get(index)?;
            let number = self.number(index);
            if matches!(page.state, State::Dropped { .. }) {
                return Some(Err(number));
            }
            if let Some(last) = page.blocks.len().checked_sub(1) {
                let block = if forward { 0 } else { last };
                return Some(Ok(Pos { block, ..Pos::first(number) }));
            }
        }
    }

    /// The last block of all.
    pub fn last(&self) -> Option<Pos> {
        let last = self.number(self.list.len()) - 1;
        let index = self.index(last)?;
        match self.list[index].blocks.len().checked_sub(1) {
            Some(block) => Some(Pos { block, ..Pos::first(last) }),
            None => self.next_block(Pos::first(last), false)?.ok(),
        }
    }

    /// The part at a place, or the nearest loaded one before it that is shown.
    pub fn loaded_at(&self, pos: Pos, walk: Walk) -> Option<Pos> {
        let block = self.get(pos.head())?;
        if !walk.enters(block) {
            return Some(pos.head());
        }
        let loaded = |part: &usize| block.rest.slot(*part).is_some();
        let part = (1..=pos.part).rev().find(loaded).unwrap_or(0);
        Some(Pos { part, ..pos })
    }
}

/// The step to the first of these parts. Parts of a text that streams are skipped if they are not
/// loaded: they are not in the log yet.
fn slots(block: &Block, at: Pos, mut parts: impl Iterator<Item = usize>) -> Option<Step> {
    parts.find_map(|part| {
        let pos = Pos { part, ..at };
        match (block.rest.slot(part), &block.rest.table) {
            (Some(_), _) => Some(Step::To(pos)),
            (None, Some(_)) => Some(Step::Missing(Gap::Part(pos))),
            (None, None) => None,
        }
    })
}
