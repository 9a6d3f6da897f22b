//! The rows above a block: an empty row around prose and messages, and whose words follow.

use crate::screen::pane::transcript::pages::{Pos, Step, Walk};
use crate::screen::pane::transcript::rows::Speaker;
use crate::screen::pane::transcript::{Detail, Transcript};

/// Panes with fewer rows have no empty rows.
const ROOMY: u16 = 12;

/// The rows above the body of a block: an empty row and the speaker.
#[derive(Default)]
pub struct Lead {
    blank: bool,
    pub speaker: Option<Speaker>,
}

impl Lead {
    pub fn len(&self) -> i32 {
        i32::from(self.blank) + i32::from(self.speaker.is_some())
    }
}

impl Transcript {
    /// The rows above a block.
    pub(in crate::screen::pane::transcript) fn lead(&self, pos: Pos) -> Lead {
        let Some(block) = self.pages.get(pos) else { return Lead::default() };
        if self.detail == Detail::Overview || pos.part > 0 {
            return Lead::default();
        }
        let above = match self.next_taking_rows(pos, false, Walk::Blocks) {
            Step::To(above) => self.pages.get(above),
            Step::Missing(_) | Step::End => None,
        };
        let apart = above.is_some_and(|above| above.stands_apart() || block.stands_apart());
        Lead { blank: apart && self.size.1 >= ROOMY, speaker: block.speaker() }
    }
}
