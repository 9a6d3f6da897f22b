//! What is loaded before it is needed, and what is forgotten again, around the rows in view.

use crate::pane::transcript::Transcript;
use crate::pane::transcript::load::Want;
use crate::pane::transcript::pages::{Beginning, Pos, Step};

/// Screens beyond the view that are to be loaded.
const AHEAD: usize = 2;
/// Blocks whose rows are kept although they are out of view.
const CACHED: usize = 256;

impl Transcript {
    /// Says which page is wanted next: one that the view will soon come to.
    pub(super) fn look_ahead(&mut self) {
        if self.load.under_way().is_some() || self.find.is_seeking() {
            return;
        }
        self.load.want = match (self.seen.first(), self.seen.last()) {
            (Some(first), Some(last)) => {
                let (first, last) = (first.pos, last.pos);
                self.missing_within(first, false).or_else(|| self.missing_within(last, true))
            }
            _ => match self.pages.beginning {
                Beginning::Before(id) => Some(Want::Older(id)),
                Beginning::Here => None,
            },
        };
    }

    /// The page that is missing within a few screens of a block.
    fn missing_within(&self, from: Pos, forward: bool) -> Option<Want> {
        let wide = usize::from(self.size.0.max(1));
        let mut rows = usize::from(self.size.1) * AHEAD;
        let mut at = from;
        loop {
            match self.pages.step(at, forward) {
                Step::Missing(page) => {
                    return self.pages.missing(page).map(|before| Want::Refill(page, before));
                }
                Step::End if !forward => {
                    return match self.pages.beginning {
                        Beginning::Before(id) => Some(Want::Older(id)),
                        Beginning::Here => None,
                    };
                }
                Step::End => return None,
                Step::To(pos) => {
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

    /// Forgets the rows of blocks that are out of view.
    pub(super) fn evict_rows(&mut self) {
        if self.cached.len() <= CACHED + 4 * usize::from(self.size.1) {
            return;
        }
        let view = self.seen.first().zip(self.seen.last()).map(|(a, b)| a.pos..=b.pos);
        let view = view.unwrap_or(Pos { page: 0, block: 0 }..=Pos { page: 0, block: 0 });
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
