//! Loads pages and parts around the view before they are needed, and drops rows that are far from it.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::load::Want;
use crate::screen::pane::transcript::pages::{Beginning, Pos, Step};

/// Screens beyond the view that are to be loaded.
const AHEAD: usize = 2;
/// Blocks whose rows are kept although they are out of view.
const CACHED: usize = 256;
/// Parts of long texts whose rows are kept although they are out of view.
const CACHED_PARTS: usize = 8;

impl Transcript {
    /// Chooses the page to load next: one that the view will soon reach.
    pub(super) fn look_ahead(&mut self) {
        if self.load.under_way().is_some() || self.find.is_seeking() || self.way_back.is_under_way()
        {
            return;
        }
        if let Some(gap) = self.tail_gap() {
            self.load.want = self.want(gap, true);
            return;
        }
        self.load.want = match (self.seen.first(), self.seen.last()) {
            (Some(first), Some(last)) => {
                let (first, last) = (first.pos, last.pos);
                self.missing_within(first, false).or_else(|| self.missing_within(last, true))
            }
            _ => self.older(),
        };
    }

    fn older(&self) -> Option<Want> {
        match self.pages.beginning {
            Beginning::Before(id) => Some(Want::Older(id)),
            Beginning::Here => None,
        }
    }

    /// Wants the tables of long texts in view.
    pub(super) fn want_tables(&mut self) {
        let mut heads: Vec<Pos> = self.seen.iter().map(|seen| seen.pos.head()).collect();
        heads.dedup();
        heads.into_iter().for_each(|pos| self.want_table_if_shown(pos));
    }

    fn want_table_if_shown(&mut self, pos: Pos) {
        let (detail, unfolded) = (self.detail, self.unfolded);
        if self.pages.get(pos).is_some_and(|block| block.shows_rest(detail, unfolded)) {
            self.want_table(pos);
        }
    }

    /// The first gap within a few screens of a block.
    fn missing_within(&mut self, from: Pos, forward: bool) -> Option<Want> {
        let wide = usize::from(self.size.0.max(1));
        let mut rows = usize::from(self.size.1) * AHEAD;
        let mut at = from;
        loop {
            match self.pages.step(at, forward, self.walk()) {
                Step::Missing(gap) => return self.want(gap, !forward),
                Step::End if !forward => return self.older(),
                Step::End => return None,
                Step::To(pos) => {
                    self.want_table_if_shown(pos.head());
                    let block = self.pages.get(pos)?;
                    let open = block.shape(self.detail, self.unfolded).open;
                    let text = if open { block.bytes() / (2 * wide) } else { 0 };
                    rows = rows.saturating_sub(if block.shown(self.detail) { 1 + text } else { 0 });
                    if rows == 0 {
                        return None;
                    }
                    at = pos;
                }
            }
        }
    }

    /// Drops the rows of blocks that are out of view.
    pub(super) fn evict_rows(&mut self) {
        let parts = self.cached.iter().filter(|pos| pos.part > 0).count();
        if self.cached.len() <= CACHED + 4 * usize::from(self.size.1) && parts <= CACHED_PARTS {
            return;
        }
        let view = self.seen.first().zip(self.seen.last()).map(|(a, b)| a.pos..=b.pos);
        let view = view.unwrap_or(Pos::first(0)..=Pos::first(0));
        let cached = std::mem::take(&mut self.cached);
        for pos in cached {
            if view.contains(&pos) {
                if self.cached.last() != Some(&pos) {
                    self.cached.push(pos);
                }
            } else if let Some(block) = self.pages.get_mut(pos) {
                block.cache = None;
            }
        }
    }
}
