//! What lies over the panes: layers on a stack, the topmost gets the keys. A key of the person opens
//! a layer at once; the reply to a request opens one only while the person still waits for it.

use crate::app::{App, Confirm, Effect};
use crate::notice::Kind;
use crate::palette::{Choice, Palette};
use crate::pane::actionbar::Prompt;
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

/// The layers, the topmost last.
#[derive(Debug, Default)]
pub struct Layers {
    stack: Vec<Layer>,
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
                Choice::Rewind { pod: of, .. } | Choice::Queued { pod: of, .. } => of == pod,
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

    /// Takes the topmost layer off, to be put back or to be gone.
    pub(super) fn pop(&mut self) -> Option<Layer> {
        self.stack.pop()
    }

    /// Puts a layer back that was taken off for a key.
    pub(super) fn put_back(&mut self, layer: Layer) {
        self.stack.push(layer);
    }

    /// Closes every layer of which this is true, wherever it lies.
    pub(super) fn close_if(&mut self, gone: impl Fn(&Layer) -> bool) {
        self.stack.retain(|layer| !gone(layer));
    }
}

impl App {
    /// Opens a layer on top of the others, because of a key of the person.
    pub(super) fn open_layer(&mut self, layer: Layer) -> Vec<Effect> {
        self.forget_requests();
        self.layers.stack.push(layer);
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
        self.say(Kind::Told, late)
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
