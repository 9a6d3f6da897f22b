//! The rows above a block: the name of its speaker, where that changes, and an empty row.

use crate::pane::transcript::block::Kind;
use crate::pane::transcript::pages::{Pos, Step, Walk};
use crate::pane::transcript::rows::Speaker;
use crate::pane::transcript::{Detail, Transcript};

/// How many blocks without a speaker are skipped to find the last speaker.
const SPEAKER_WITHIN: usize = 64;

/// The rows above the body of a block: the speaker and empty rows.
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
    /// The rows above a block: the speaker, if it changes there, and an empty row.
    pub(in crate::pane::transcript) fn lead(&self, pos: Pos) -> Lead {
        let Some(block) = self.pages.get(pos) else { return Lead::default() };
        if self.detail == Detail::Overview {
            return Lead::default();
        }
        if pos.part > 0 {
            return Lead::default();
        }
        let above = match self.next_taking_rows(pos, false, Walk::Blocks) {
            Step::To(above) => Some(above),
            Step::Missing(_) | Step::End => None,
        };
        let Some(speaker) = block.speaker() else {
            let blank = above.is_some() && matches!(block.kind, Kind::Border(_));
            return Lead { blank, speaker: None };
        };
        if self.speaker_above(pos).as_ref() == Some(&speaker) && speaker != Speaker::You {
            let conversation = |pos: Pos| {
                let block = self.pages.get(pos);
                block.is_some_and(|block| matches!(block.kind, Kind::Said { .. }))
            };
            let blank = conversation(pos) && above.is_some_and(|above| !conversation(above));
            return Lead { blank, speaker: None };
        }
        Lead { blank: above.is_some(), speaker: Some(speaker) }
    }

    fn speaker_above(&self, pos: Pos) -> Option<Speaker> {
        let mut at = pos;
        for _ in 0..SPEAKER_WITHIN {
            let above = self.next_taking_rows(at, false, Walk::Blocks);
            let Step::To(above) = above else { return None };
            let block = self.pages.get(above)?;
            if let Some(speaker) = block.speaker() {
                return Some(speaker);
            }
            if matches!(block.kind, Kind::Border(_)) {
                return None;
            }
            at = above;
        }
        None
    }
}
