//! The rows in view: found from the anchor down, at every layout and after every step.

use crate::screen::pane::transcript::Transcript;
use crate::screen::pane::transcript::pages::Step;
use crate::screen::pane::transcript::scroll::{Anchor, RowPosition, Seen};

impl Transcript {
    /// Finds the rows in view, and the pages and parts to load around them.
    pub(in crate::screen::pane::transcript) fn find_visible_rows(&mut self) {
        let high = usize::from(self.size.1);
        if high == 0 || self.size.0 == 0 {
            self.seen.clear();
            return;
        }
        if let Some(position) = self.valid_anchor() {
            let end = self.fill(position, high);
            if end == Step::End && !self.is_held {
                self.anchor = Anchor::Tail;
            }
        }
        if self.anchor == Anchor::Tail {
            self.new_below = 0;
            match self.tail_top() {
                Some(top) => drop(self.fill(top, high)),
                None => self.seen.clear(),
            }
        }
        self.want_tables();
        self.look_ahead();
        self.evict_rows();
    }

    /// The position of the view, moved to a row that exists; `None` at the tail.
    fn valid_anchor(&mut self) -> Option<RowPosition> {
        let Anchor::At(mut position) = self.anchor else { return None };
        let Some(pos) = self.pages.loaded_at(position.pos, self.walk()) else {
            self.anchor = Anchor::Tail;
            return None;
        };
        if pos != position.pos {
            position = RowPosition { pos, row: i32::MAX, of: 0 };
        }
        let head = self.head_of_group(pos);
        if head != pos {
            position = RowPosition { pos: head, row: 0, of: 0 };
        }
        if !self.takes_rows(position.pos) {
            let next = match self.next_shown(position.pos, true) {
                Step::To(pos) => Step::To(pos),
                Step::Missing(_) | Step::End => self.next_shown(position.pos, false),
            };
            let Step::To(pos) = next else {
                self.anchor = Anchor::Tail;
                return None;
            };
            position = RowPosition { pos, row: i32::MIN, of: 0 };
        }
        position.row =
            position.row.clamp(-self.lead(position.pos).len(), self.last_row(position.pos).max(0));
        self.anchor_at(position);
        Some(position)
    }

    /// Lists the rows from this one down. Returns the step after them, which is [`Step::End`] also if the
    /// last row of all is among them.
    fn fill(&mut self, from: RowPosition, high: usize) -> Step {
        self.seen.clear();
        let mut at = from;
        loop {
            let lead = self.lead(at.pos);
            let last = self.last_row(at.pos);
            for row in at.row..=last {
                if self.seen.len() == high {
                    return Step::To(at.pos);
                }
                let names = row == -1 && lead.speaker.is_some();
                let speaker = if names { lead.speaker.clone() } else { None };
                self.seen.push(Seen { pos: at.pos, row, speaker });
            }
            match self.next_shown(at.pos, true) {
                Step::To(pos) => at = RowPosition { pos, row: -self.lead(pos).len(), of: 0 },
                other => return other,
            }
        }
    }
}
