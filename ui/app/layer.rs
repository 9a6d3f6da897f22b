//! What lies over the panes: layers on a stack, the topmost gets the keys. A key of the person opens
//! a layer at once; the reply to a request opens one only while the person still waits for it.

use crate::app::{App, Areas, Confirm, Effect, Focus, Read};
use crate::notice::Kind;
use crate::palette::{Choice, Palette};
use crate::pane::actionbar::Prompt;
use crate::verb::VerbId;
use yoi::protocol::PodName;

/// One layer.
#[derive(Debug)]
pub enum Layer {
    /// A line that is being typed.
    Prompt(Prompt),
    /// A list to choose from, or a text to read.
    List(Palette),
    Confirm(Confirm),
}

/// How long a confirmation must have been on the screen, unchanged and without a key, before a key
/// answers it, in milliseconds.
pub const ARMED_AFTER: u64 = 300;

/// The layers, the topmost last.
#[derive(Debug, Default)]
pub struct Layers {
    stack: Vec<Layer>,
    /// Since when the topmost one is on the screen, unchanged and without a key; `None` before its
    /// first frame.
    drawn: Option<u64>,
    /// How far a confirmation on top has been read.
    pub read: Read,
}

/// Made with a request whose reply may open a layer. It is valid until the person does something
/// else: opens a layer, types, changes the Pod or the pane, or leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestToken {
    moment: u64,
    selected: Option<PodName>,
}

impl Layer {
    /// Whether it is about this Pod, and means nothing without it.
    fn is_about(&self, pod: &PodName) -> bool {
        match self {
            Self::Prompt(_) => false,
            Self::List(list) => list.choices().any(|choice| match choice {
                Choice::Picked { about, .. } => about.as_ref() == Some(pod),
                Choice::Queued { pod: of, .. } => of == pod,
                Choice::Verb(_)
                | Choice::Open(_)
                | Choice::History(_)
                | Choice::Prefill(_)
                | Choice::Nothing => false,
            }),
            Self::Confirm(confirm) => confirm.is_about(pod),
        }
    }
}

impl Layers {
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    /// The layer that gets the keys.
    pub fn top(&self) -> Option<&Layer> {
        self.stack.last()
    }

    pub fn top_mut(&mut self) -> Option<&mut Layer> {
        self.stack.last_mut()
    }

    /// Puts a layer on top.
    fn push(&mut self, layer: Layer) {
        self.changed();
        self.stack.push(layer);
    }

    /// Whether a verb waits for the person's answer in one of them.
    pub(super) fn request_for(&self, wanted: VerbId) -> bool {
        self.stack.iter().any(|layer| match layer {
            Layer::Prompt(_) => false,
            Layer::List(list) => list
                .choices()
                .any(|choice| matches!(choice, Choice::Picked { verb, .. } if *verb == wanted)),
            Layer::Confirm(confirm) => matches!(confirm, Confirm::Verb { id, .. } if *id == wanted),
        })
    }

    /// Takes the topmost layer off, to be put back or to be gone.
    pub(super) fn pop(&mut self) -> Option<Layer> {
        self.changed();
        self.stack.pop()
    }

    /// Another layer is on top, or the same one shows something else: it has to be drawn before a
    /// key can answer it.
    pub(super) fn changed(&mut self) {
        self.drawn = None;
        self.read = Read::default();
    }

    /// The topmost layer shows other rows of the same text, or a key was pressed that answers
    /// nothing: the time until a key counts begins anew.
    pub(super) fn disturbed(&mut self, now: u64) {
        self.drawn = self.drawn.map(|_| now);
    }

    /// A frame with the topmost layer in it is on the screen.
    fn frame_drawn(&mut self, now: u64) {
        self.drawn.get_or_insert(now);
    }

    /// Whether the topmost layer was in a frame since it changed.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// When a key begins to count.
    fn arms_at(&self) -> Option<u64> {
        self.drawn.map(|drawn| drawn.saturating_add(ARMED_AFTER))
    }

    /// Puts a layer back that was taken off for a key.
    pub(super) fn put_back(&mut self, layer: Layer) {
        self.push(layer);
    }

    /// Closes every layer of which this is true, wherever it lies.
    pub(super) fn close_if(&mut self, gone: impl Fn(&Layer) -> bool) {
        let before = self.stack.len();
        self.stack.retain(|layer| !gone(layer));
        if self.stack.len() != before {
            self.changed();
        }
    }
}

impl App {
    /// Opens a layer on top of the others, because of a key of the person.
    pub(super) fn open_layer(&mut self, layer: Layer) -> Vec<Effect> {
        self.forget_requests();
        self.layers.push(layer);
        Vec::new()
    }

    /// Opens a layer for a reply. When the person does not wait for it any more, `late` is shown as
    /// a notice instead: it says what is ready and which verb shows it.
    pub(super) fn open_for_reply(
        &mut self,
        token: &RequestToken,
        layer: Layer,
        late: impl Into<String>,
    ) -> Vec<Effect> {
        if self.still_waits(token) {
            return self.open_layer(layer);
        }
        self.say(Kind::Info, late)
    }

    /// To be called when a frame is on the screen: only what has been there can be answered.
    pub fn frame_drawn(&mut self, now: u64) {
        self.layers.frame_drawn(now);
        if Areas::of(self).inbox.is_some() && self.layers.is_empty() {
            self.inbox.frame_drawn(now);
        }
    }

    /// Whether a key answers the confirmation on top.
    pub fn is_armed(&self) -> bool {
        self.layers.arms_at().is_some_and(|at| at <= self.now)
    }

    /// When a key begins to answer what is on the screen, if that is still to come.
    pub(super) fn arms_at(&self) -> Option<u64> {
        let at = match (self.layers.top(), self.focus) {
            (Some(Layer::Confirm(_)), _) => self.layers.arms_at(),
            (None, Focus::Inbox) => self.inbox.arms_at(),
            (Some(Layer::Prompt(_) | Layer::List(_)) | None, _) => None,
        };
        at.filter(|at| *at > self.now)
    }

    /// A token for a request that is made now.
    pub(super) fn request_token(&self) -> RequestToken {
        RequestToken { moment: self.moment, selected: self.selected().cloned() }
    }

    /// Whether the person has done nothing else since the request was made.
    pub(super) fn still_waits(&self, token: &RequestToken) -> bool {
        token.moment == self.moment && token.selected.as_ref() == self.selected()
    }

    /// The person does something else: no reply to an earlier request opens a layer any more.
    pub(super) fn forget_requests(&mut self) {
        self.moment += 1;
    }

    /// Closes the layers that are about a Pod that is gone.
    pub(super) fn close_layers_about(&mut self, pod: &PodName) {
        self.layers.close_if(|layer| layer.is_about(pod));
    }
}
