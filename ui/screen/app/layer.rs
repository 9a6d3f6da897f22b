//! The layers over the panes, on a stack: the topmost gets the keys. A key opens a layer at once; the
//! reply to a request opens one only while the person still waits for it.

use crate::screen::app::{App, Confirm, Effect, KeyLine, Read};
use crate::screen::notice::Kind;
use crate::screen::pane::actionbar::Prompt;
pub use crate::screen::pane::inbox::{ARMED_AFTER, HELD};
use crate::screen::pick_list::{Choice, PickList};
use crate::verb::VerbId;
use yoi::protocol::PodName;

/// One layer.
#[derive(Debug)]
pub enum Layer {
    /// A line that is being typed.
    Prompt(Prompt),
    /// A list to choose from.
    List(PickList),
    Confirm(Confirm),
    /// A key that is being typed unseen, or tried.
    Key(KeyLine),
}

/// The layers, the topmost last.
#[derive(Debug, Default)]
pub struct Layers {
    stack: Vec<Layer>,
    /// Since when the topmost layer has been on the screen, unchanged and without a key; `None` before its
    /// first frame.
    drawn: Option<u64>,
    /// Until when a key may be one that is held down.
    held: u64,
    /// How far a confirmation on top has been read.
    pub read: Read,
}

/// Belongs to a request whose reply may open a layer. It is valid until the person does something
/// else: opens a layer, types, changes the Pod or the pane, or leaves.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestToken {
    moment: u64,
    selected: Option<PodName>,
}

impl Layer {
    /// Whether it becomes void when this Pod is gone.
    fn is_about(&self, pod: &PodName) -> bool {
        match self {
            Self::Prompt(_) | Self::Key(_) => false,
            Self::List(list) => list.choices().any(|choice| match choice {
                Choice::Picked { about, .. } => about.as_ref() == Some(pod),
                Choice::Queued { pod: of, .. } => of == pod,
                Choice::Verb(_)
                | Choice::Line(_)
                | Choice::Open(_)
                | Choice::File(_)
                | Choice::Setting(_)
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

    /// The lines that are being typed.
    pub fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.stack.iter().filter_map(|layer| match layer {
            Layer::Prompt(prompt) => Some(prompt),
            Layer::List(_) | Layer::Confirm(_) | Layer::Key(_) => None,
        })
    }

    pub fn top_mut(&mut self) -> Option<&mut Layer> {
        self.stack.last_mut()
    }

    /// The palette, also below other layers.
    pub fn palette_mut(&mut self) -> Option<&mut PickList> {
        self.stack.iter_mut().find_map(|layer| match layer {
            Layer::List(list) if list.is_of_everything() => Some(list),
            Layer::List(_) | Layer::Prompt(_) | Layer::Confirm(_) | Layer::Key(_) => None,
        })
    }

    /// Searches some more rows of the lists.
    pub(super) fn search_on(&mut self) {
        for layer in &mut self.stack {
            if let Layer::List(list) = layer {
                list.search_on();
            }
        }
    }

    pub(super) fn are_searching(&self) -> bool {
        let searches = |layer: &Layer| matches!(layer, Layer::List(list) if list.is_searching());
        self.stack.iter().any(searches)
    }

    /// Puts a layer on top.
    fn push(&mut self, layer: Layer) {
        self.changed();
        self.stack.push(layer);
    }

    /// Whether one of the layers belongs to this verb.
    pub(super) fn request_for(&self, wanted: VerbId) -> bool {
        self.stack.iter().any(|layer| match layer {
            Layer::Prompt(_) => false,
            Layer::List(list) => list
                .choices()
                .any(|choice| matches!(choice, Choice::Picked { verb, .. } if *verb == wanted)),
            Layer::Confirm(confirm) => matches!(confirm, Confirm::Verb { id, .. } if *id == wanted),
            Layer::Key(line) => line.verb == wanted,
        })
    }

    /// The line that gets the keys.
    pub(super) fn prompt_mut(&mut self) -> Option<&mut Prompt> {
        match self.stack.last_mut() {
            Some(Layer::Prompt(prompt)) => Some(prompt),
            Some(Layer::List(_) | Layer::Confirm(_) | Layer::Key(_)) | None => None,
        }
    }

    /// Takes the topmost layer off the stack.
    pub(super) fn pop(&mut self) -> Option<Layer> {
        self.changed();
        self.stack.pop()
    }

    /// Notes that the topmost layer is another one or shows something else: no key counts before it has
    /// been drawn.
    pub(super) fn changed(&mut self) {
        self.drawn = None;
        self.read = Read::default();
    }

    /// Starts the time until a key counts anew: the topmost layer shows other rows, or a key was pressed
    /// that decides nothing.
    pub(super) fn disturbed(&mut self, now: u64) {
        self.drawn = self.drawn.map(|_| now);
    }

    /// Notes a key that answers: those that follow it at once may come from holding it down.
    pub(super) fn pressed(&mut self, now: u64) {
        self.held = now.saturating_add(HELD);
    }

    /// Notes that a frame with the topmost layer is on the screen.
    fn frame_drawn(&mut self, now: u64) {
        self.drawn.get_or_insert(now);
    }

    /// Whether the topmost layer was in a frame since it changed.
    pub(super) fn is_drawn(&self) -> bool {
        self.drawn.is_some()
    }

    /// From when on a key counts.
    fn arms_at(&self) -> Option<u64> {
        self.drawn.map(|drawn| drawn.saturating_add(ARMED_AFTER).max(self.held))
    }

    /// Puts back a layer that was taken off to handle a key.
    pub(super) fn put_back(&mut self, layer: Layer) {
        self.push(layer);
    }

    /// Takes out every layer that `gone` selects.
    fn close_if(&mut self, gone: impl Fn(&Layer) -> bool) -> Vec<Layer> {
        let closed: Vec<Layer> = self.stack.extract_if(.., |layer| gone(layer)).collect();
        if !closed.is_empty() {
            self.changed();
        }
        closed
    }
}

impl App {
    /// Opens a layer on top because the person pressed a key.
    pub(super) fn open_layer(&mut self, layer: Layer) -> Vec<Effect> {
        self.forget_requests();
        self.inbox.steps = false;
        self.layers.push(layer);
        Vec::new()
    }

    /// Opens a layer for a reply. If the person does not wait for it any more, shows the notice `late`
    /// instead, which names the verb that opens it.
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

    /// To be called when a frame is on the screen: a key counts only for layers and requests that have been
    /// drawn.
    pub fn frame_drawn(&mut self, now: u64) {
        self.layers.frame_drawn(now);
        if self.is_card_awake() {
            self.inbox.frame_drawn(now);
        }
    }

    /// Whether a key counts for the confirmation on top.
    pub fn is_armed(&self) -> bool {
        self.layers.arms_at().is_some_and(|at| at <= self.now)
    }

    /// From when on a key counts for the layer or card on the screen, if that time is still to come.
    pub(super) fn arms_at(&self) -> Option<u64> {
        let at = match self.layers.top() {
            Some(Layer::Confirm(_)) => self.layers.arms_at(),
            None if self.is_card_awake() => self.inbox.arms_at(),
            Some(Layer::Prompt(_) | Layer::List(_) | Layer::Key(_)) | None => None,
        };
        at.filter(|at| *at > self.now)
    }

    /// A token for a request that is sent now.
    pub(super) fn request_token(&self) -> RequestToken {
        RequestToken { moment: self.moment, selected: self.selected().cloned() }
    }

    /// Whether the person has done nothing else since the request was made. A Pod that was deleted meanwhile is not
    /// selected any more.
    pub(super) fn still_waits(&self, token: &RequestToken) -> bool {
        let selected = self.selected();
        token.moment == self.moment && (selected.is_none() || token.selected.as_ref() == selected)
    }

    /// Notes that the person does something else: no reply to an earlier request opens a layer any more.
    pub(super) fn forget_requests(&mut self) {
        self.moment += 1;
    }

    /// Closes the layers that are about a Pod that is gone.
    pub(super) fn close_layers_about(&mut self, pod: &PodName) {
        self.close_layers(|layer| layer.is_about(pod));
    }

    /// Closes every layer that `gone` selects. The texts in them are kept.
    pub(super) fn close_layers(&mut self, gone: impl Fn(&Layer) -> bool) {
        for layer in self.layers.close_if(gone) {
            match layer {
                Layer::Prompt(prompt) => self.keep_typed(&prompt),
                Layer::Confirm(Confirm::FirstMessage { pod, message: Some(message), .. }) => {
                    self.composer.give_back(Some(&pod), &message, self.now);
                }
                Layer::Confirm(_) | Layer::List(_) | Layer::Key(_) => {}
            }
        }
    }
}
