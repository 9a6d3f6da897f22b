//! Keeps the size of all loaded blocks bounded: drops pages and parts far from the view.

use crate::screen::pane::transcript::block::Block;
use crate::screen::pane::transcript::pages::{BUDGET, Pages, Pos, State};

/// Parts of a long text that are kept on each side of the view.
const PARTS: usize = 16;

impl Pages {
    /// Drops the pages farthest from these positions until the others are within the budget.
    pub fn keep_near(&mut self, near: &[Pos]) {
        self.keep_parts(near);
        let mut pages: Vec<i64> = near.iter().map(|pos| pos.page).collect();
        pages.dedup();
        self.keep_within(&pages, BUDGET);
    }

    /// Drops the parts of long texts that are far from these positions.
    fn keep_parts(&mut self, near: &[Pos]) {
        for index in 0..self.list.len() {
            let number = self.number(index);
            let mut changed = false;
            for (block, found) in self.list[index].blocks.iter_mut().enumerate() {
                if found.rest.slots.is_empty() {
                    continue;
                }
                let head = Pos { block, ..Pos::first(number) };
                let parts = near.iter().filter(|pos| pos.is_in(head)).map(|pos| pos.part);
                found.rest.keep_near(&parts.collect::<Vec<usize>>(), PARTS);
                changed = true;
            }
            if changed {
                self.recount(number);
            }
        }
    }

    fn keep_within(&mut self, near: &[i64], budget: usize) {
        let mut total: usize = self.list.iter().map(|page| page.bytes).sum();
        let far = |number: i64| near.iter().map(|n| (n - number).abs()).min().unwrap_or(0);
        while total > budget {
            let candidates = (0..self.list.len()).filter(|index| {
                let page = &self.list[*index];
                let whole = matches!(page.state, State::Loaded) && !page.blocks.is_empty();
                whole && page.bound.is_some() && far(self.number(*index)) > 1
            });
            let farthest = candidates
                .filter_map(|index| Some((index, self.list[index].before?)))
                .max_by_key(|(index, _)| far(self.number(*index)));
            let Some((index, next)) = farthest else { return };
            let page = &mut self.list[index];
            total -= page.bytes;
            page.blocks = Vec::new();
            page.bytes = 0;
            page.state = State::Dropped { newest: Vec::new(), next };
        }
    }

    /// Updates the size of a page after one of its blocks has changed.
    pub fn recount(&mut self, page: i64) {
        let Some(index) = self.index(page) else { return };
        let page = &mut self.list[index];
        page.bytes = page.blocks.iter().map(Block::bytes).sum();
    }

    /// The size of all loaded blocks, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.list.iter().map(|page| page.bytes).sum()
    }

    #[cfg(test)]
    pub fn drop_beyond(&mut self, near: &[i64], budget: usize) {
        self.keep_within(near, budget);
    }
}
