//! The cursor: the block that keys act on.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::pages::{Pos, Step};
use crate::screen::pane::transcript::scroll::RowPosition;

impl Transcript {
    /// The block that keys act on: under the cursor, or the one in view that is nearest to it.
    pub(super) fn focus(&self) -> Option<Pos> {
        let (first, last) = (self.seen.first()?.pos, self.seen.last()?.pos);
        let cursor = self.cursor.map_or(last, |cursor| cursor.clamp(first, last));
        Some(self.head_of_group(cursor))
    }

    pub(super) fn keep_cursor_in_view(&mut self) {
        if self.cursor.is_some() {
            self.cursor = self.focus();
        }
    }

    /// Puts the cursor on the block at this row of the pane; `false` when there is none.
    pub fn focus_at(&mut self, row: u16) -> bool {
        let Some(seen) = self.seen.get(usize::from(row)) else { return false };
        self.cursor = Some(seen.pos);
        true
    }

    /// Moves a line down or up: the cursor goes from block to block while these are in view, and the
    /// view moves through what is longer.
    pub fn step(&mut self, by: i32) {
        self.stay_here();
        for _ in 0..by.unsigned_abs() {
            let Some(at) = self.focus() else { return };
            if self.cursor.is_none() {
                self.cursor = Some(at);
                continue;
            }
            let down = by > 0;
            let edge = if down { self.last_row(at) } else { -self.lead(at).len() };
            let ends_in_view = self.sees(at, edge);
            let next = match self.next_shown(at, down) {
                Step::To(next) if ends_in_view => Some(next),
                _ => None,
            };
            if next.is_none_or(|next| !self.sees(next, 0)) {
                self.load.failed = None;
                self.scroll_rows(if down { 1 } else { -1 });
                self.find_visible_rows();
            }
            self.cursor = next.filter(|next| self.sees_any(*next)).or(Some(at));
            self.keep_cursor_in_view();
        }
    }

    fn sees(&self, pos: Pos, row: i32) -> bool {
        self.seen.iter().any(|seen| seen.pos == pos && seen.row == row)
    }

    fn sees_any(&self, pos: Pos) -> bool {
        self.seen.iter().any(|seen| seen.pos == pos)
    }

    /// Moves the view as little as shows this row, a third from the top.
    pub(super) fn reveal_row(&mut self, pos: Pos, row: i32) {
        if !self.sees(pos, row) {
            let third = usize::from(self.size.1) / 3;
            let position = self.up(RowPosition { pos, row, of: 0 }, third);
            self.anchor_at(position);
        }
        self.find_visible_rows();
    }
}
