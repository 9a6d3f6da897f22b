//! What a walk leads to, as whole histories: the model that knows nothing of segments and places.

use crate::walks::words::is_message;
use std::rc::Rc;

/// A stream of numbers that a seed decides (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// A history as a person and a model know it.
#[derive(Clone, Default)]
pub struct History {
    /// The words of the transcript.
    pub shown: Vec<String>,
    /// The words of the next model request, but for the new message.
    pub context: Vec<String>,
    /// Each message, and the history before it.
    pub messages: Vec<(String, Rc<History>)>,
    /// What each rewind that can be undone replaced, the newest last.
    pub undo: Vec<Rc<History>>,
    pub redo: Vec<Rc<History>>,
    pub paused: bool,
}

impl History {
    pub fn message(&mut self, text: &str) {
        let before = Rc::new(self.clone());
        self.messages.push((text.into(), before));
        self.says(text);
        self.paused = false;
    }

    pub fn says(&mut self, text: &str) {
        self.shown.push(text.into());
        self.context.push(text.into());
    }

    /// With a text more.
    pub fn with(&self, text: &str) -> Self {
        let mut now = self.clone();
        now.says(text);
        now
    }

    pub fn paused(&self) -> Self {
        Self { paused: true, ..self.clone() }
    }

    /// The newest message of the person and messages that were not sent yet stay; the rest is summarised.
    pub fn compacted(&self) -> Self {
        let mut now = self.clone();
        now.shown.push("compacted".into());
        let unread =
            self.context.iter().rposition(|words| !is_message(words)).map_or(0, |at| at + 1);
        let (past, rest) = self.context.split_at(unread);
        let newest = past.iter().rfind(|words| rest.is_empty() && is_message(words));
        let summary = format!("summary of {}", past.len());
        now.context = std::iter::once(&summary).chain(newest).chain(rest).cloned().collect();
        now
    }

    /// Before a message, as the list counts them: 0 is the newest.
    pub fn rewound(&self, at: usize) -> Self {
        let (_, before) = &self.messages[self.messages.len() - 1 - at];
        let mut now = (**before).clone();
        now.undo.push(Rc::new(self.clone()));
        now.paused = false;
        now
    }

    pub fn undone(&self) -> Self {
        let mut now = self.undo.last().map_or_else(Self::default, |last| (**last).clone());
        now.redo.push(Rc::new(self.clone()));
        now
    }

    pub fn redone(&self) -> Self {
        let mut now = self.redo.last().map_or_else(Self::default, |last| (**last).clone());
        now.undo.push(Rc::new(self.clone()));
        now
    }
}
