//! Drafts and messages as they are kept over the end of a screen.

use crate::screen::pane::composer::draft::Paste;
use crate::screen::pane::composer::{Composer, Draft, History, Message, Sent};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tui_textarea::CursorMove;
use yoi::protocol::{PodName, Segment};

/// How many bytes of drafts are kept, with their pastes: the draft that is shown first, then those that have room. What is
/// typed meanwhile is written every second, in a file that is read whole.
const MOST: usize = 8 * 1024 * 1024;

/// A draft and the place of its cursor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedDraft {
    pub message: Message,
    /// Line and character, from 0.
    cursor: (usize, usize),
}

/// A message in the form in which it is kept: its segments follow from the rest.
#[derive(Serialize, Deserialize)]
pub struct SavedMessage {
    text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pastes: Vec<Segment>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    files: BTreeSet<String>,
}

impl From<Message> for SavedMessage {
    fn from(message: Message) -> Self {
        let pastes = message.pastes.into_iter().map(|paste| paste.segment).collect();
        Self { text: message.text, pastes, files: message.files }
    }
}

impl From<SavedMessage> for Message {
    fn from(SavedMessage { text, pastes, files }: SavedMessage) -> Self {
        let pastes = pastes.into_iter().filter_map(Paste::of).collect();
        Draft::of(&Self { text, segments: Vec::new(), pastes, files }).message()
    }
}

impl Message {
    /// The size of its text and its pastes, in bytes.
    pub fn bytes(&self) -> usize {
        let pastes = self.pastes.iter().map(|paste| paste.segment.flat().len());
        self.text.len() + pastes.sum::<usize>()
    }
}

impl SavedDraft {
    fn of(draft: &Draft) -> Option<Self> {
        let message = draft.message();
        let cursor = draft.text.cursor();
        (!draft.is_empty()).then_some(Self { message, cursor: (cursor.0, cursor.1) })
    }

    fn draft(&self) -> Draft {
        let mut draft = Draft::of(&self.message);
        let cell = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
        let (line, character) = self.cursor;
        draft.go(CursorMove::Jump(cell(line), cell(character)));
        draft
    }
}

impl Composer {
    /// The drafts to keep, the one that is shown first: each with its Pod; `None` is the Pod that is
    /// still to be created.
    pub fn drafts(&self) -> Vec<(Option<PodName>, SavedDraft)> {
        let own = (&self.at, &self.draft);
        let all = [own].into_iter().chain(&self.others);
        let mut room = MOST;
        let fitting = |(at, draft): (&Option<PodName>, &Draft)| {
            let saved = SavedDraft::of(draft)?;
            room = room.checked_sub(saved.message.bytes())?;
            Some((at.clone(), saved))
        };
        all.filter_map(fitting).collect()
    }

    /// Takes over the drafts and the history of an earlier screen, before the first key.
    pub fn restore(&mut self, drafts: BTreeMap<Option<PodName>, SavedDraft>, sent: Vec<Sent>) {
        self.history = History::of(sent);
        for (at, draft) in drafts {
            let draft = draft.draft();
            self.last_paste = self.last_paste.max(draft.last_paste());
            match at == self.at {
                true => self.draft = draft,
                false => drop(self.others.insert(at, draft)),
            }
        }
    }
}
