//! Marks and pins of the tree: one key marks a row; another, followed by a digit, pins it to that slot.

use crate::screen::app::{App, Effect, Focus};
use crate::screen::keys::{Action, Binding, Context, pressed};
use crate::screen::notice::Kind;
use crossterm::event::{KeyEvent, KeyEventKind};
use yoi::protocol::PodName;

impl App {
    /// The marked Pods while the tree has the focus; in other panes verbs do not mean them.
    pub fn marked(&self) -> &[PodName] {
        if self.focus == Focus::Tree { self.tree.marks.all() } else { &[] }
    }

    /// Removes what is kept by the names of Pods that are gone: a new Pod of such a name is another one.
    pub(super) fn forget_the_gone(&mut self) {
        let Self { family, tree, beside, interrupted, taken_back, tour, composer, .. } = self;
        let gone = |name: &PodName| family.get(name).is_none();
        composer.keep_drafts_of(gone, self.now);
        tree.marks.drop_if(gone);
        tree.pins.drop_if(gone);
        beside.take_if(|name| gone(name));
        interrupted.retain(|name| !gone(name));
        taken_back.retain(|(name, _)| !gone(name));
        tour.take_if(|tour| gone(&tour.pod));
    }

    pub(super) fn mark_row(&mut self) -> Vec<Effect> {
        let Some(name) = self.tree.chosen().cloned() else {
            let key = self.keymap.label(Context::Tree, Action::Stopped);
            return self.say(Kind::Info, format!("these are several: {key} lists them"));
        };
        self.tree.marks.toggle(name);
        Vec::new()
    }

    /// Waits for the digit to which the Pod of the row is pinned.
    pub(super) fn begin_pin(&mut self) -> Vec<Effect> {
        self.pinning = self.row_pod();
        if self.pinning.is_none() {
            return self.say(Kind::Info, "there is no Pod here");
        }
        Vec::new()
    }

    /// Handles the key after the one that pins: a digit pins the Pod, any other key does not.
    pub(super) fn pin_key(&mut self, pod: PodName, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Repeat {
            self.pinning = Some(pod);
            return Vec::new();
        }
        match self.keymap.get(Context::Tree, pressed(key)) {
            Some(Binding::Do(Action::Slot(slot))) => {
                let slot = *slot;
                self.pin(slot, &pod)
            }
            Some(Binding::Do(Action::Back)) => {
                self.closed();
                Vec::new()
            }
            _ => {
                let slots = self.slot_keys(Context::Tree);
                self.say(Kind::Info, format!("nothing is pinned: the slots are {slots}"))
            }
        }
    }

    /// Pins a Pod to a slot, or unpins it if it is there already.
    pub(super) fn pin(&mut self, slot: u8, pod: &PodName) -> Vec<Effect> {
        let Some(pod) = self.family.get(pod).map(|info| info.name.clone()) else {
            return self.say(Kind::Refused, format!("no Pod named {pod}"));
        };
        if self.tree.pins.at(slot) == Some(&pod) {
            self.tree.pins.remove(&pod);
            return self.say(Kind::Done, format!("{pod} is pinned no more"));
        }
        self.tree.pins.put(slot, pod.clone());
        self.say(Kind::Done, format!("{slot} is {pod}"))
    }

    /// `:pin`: pins to a digit; without a digit it lists the pinned Pods.
    pub(super) fn pin_verb(&mut self, slot: Option<u8>, pod: Option<&PodName>) -> Vec<Effect> {
        let Some(slot) = slot else {
            let pins = self.tree.pins.all().map(|(slot, pod)| format!("{slot} {pod}"));
            let pins: Vec<_> = pins.collect();
            let none = "nothing is pinned · :pin <1-9> keeps the selected Pod in a slot";
            return self
                .say(Kind::Info, if pins.is_empty() { none.into() } else { pins.join(" · ") });
        };
        match pod {
            Some(pod) => self.pin(slot, pod),
            None => Vec::new(),
        }
    }
}
