//! The second transcript beside the first, and the whole width for the transcripts.

use crate::screen::app::Areas;
use crate::screen::app::{App, Effect, Focus};
use crate::screen::keys::{Action, Context};
use crate::screen::notice::Kind;
use serde::{Deserialize, Serialize};
use yoi::protocol::PodName;

/// Whether the tree and the peers stand beside the transcripts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zoom {
    #[default]
    Off,
    On,
}

impl App {
    /// The Pod of the second transcript, if it is open. While the first one shows that same Pod, the second
    /// one shows the current Pod, so that the current Pod is always in view.
    pub fn beside(&self) -> Option<&PodName> {
        let beside = self.beside.as_ref()?;
        if self.shown() != Some(beside) {
            return Some(beside);
        }
        self.current.as_ref().filter(|current| *current != beside)
    }

    /// Moves the focus away from a pane that is not on the screen any more. To be called after every
    /// message.
    pub(super) fn split_follows(&mut self) {
        if self.focus == Focus::Beside && Areas::of(self).beside.is_none() {
            self.focus = Focus::Transcript;
        }
    }

    /// Opens the second transcript because of its key, in a list for the Pod of the row.
    pub(super) fn split_key(&mut self) -> Vec<Effect> {
        let row = match self.focus {
            Focus::Tree | Focus::Peers => self.row_pod(),
            Focus::Composer | Focus::Transcript | Focus::Beside | Focus::Inbox | Focus::Page => {
                None
            }
        };
        self.split(row.as_ref())
    }

    /// Shows the transcript of this Pod, or of the Pod that was current before, beside the current one.
    /// If it is there already, closes it.
    pub(super) fn split(&mut self, pod: Option<&PodName>) -> Vec<Effect> {
        let known = |name: &PodName| self.family.get(name).map(|info| info.name.clone());
        let wanted = match (pod, &self.beside) {
            (None, Some(_)) => None,
            (None, None) => {
                let previous = self.previous.as_ref().and_then(known);
                let Some(previous) = previous.filter(|name| self.current.as_ref() != Some(name))
                else {
                    let why =
                        "no other Pod was current yet · :split <pod>, or {tree split} in the tree";
                    return self.say(Kind::Info, self.keymap.with_keys(why));
                };
                Some(previous)
            }
            (Some(pod), beside) => match known(pod) {
                None => return self.say(Kind::Refused, format!("no Pod named {pod}")),
                named if named == *beside => None,
                named => named,
            },
        };
        match wanted {
            Some(pod) => self.show_beside(pod),
            None => {
                self.beside = None;
                self.say_hidden()
            }
        }
    }

    fn show_beside(&mut self, pod: PodName) -> Vec<Effect> {
        match &self.current {
            None => return self.say(Kind::Refused, "no Pod is current yet: choose one first"),
            Some(current) if *current == pod => {
                let text = format!("{pod} is the current Pod: another one can stand beside it");
                return self.say(Kind::Refused, text);
            }
            Some(_) => {}
        }
        if !Areas::splits(self) {
            let why = self.too_narrow();
            return self.say(Kind::Refused, why);
        }
        let key = self.leader_label(Action::Split);
        let text = format!("{pod} stands beside it · {key}: one again");
        self.beside = Some(pod);
        self.page = None;
        self.focus = Focus::Composer;
        self.say(Kind::Info, text)
    }

    /// Hides the other panes, or shows them again.
    pub(super) fn toggle_zoom(&mut self) -> Vec<Effect> {
        if self.zoom == Zoom::On {
            self.zoom = Zoom::Off;
            return self.say_hidden();
        }
        if !Areas::are_beside_each_other(self) {
            return self.say(Kind::Info, "one pane is shown at a time on so small a screen");
        }
        self.zoom = Zoom::On;
        self.say_hidden();
        if matches!(self.focus, Focus::Tree | Focus::Peers) {
            self.focus = Focus::Composer;
        }
        let key = self.leader_label(Action::Zoom);
        let alone = if Areas::of(self).beside.is_some() { "transcripts" } else { "transcript" };
        self.say(Kind::Info, format!("the {alone} alone · {key}: everything again"))
    }

    /// Shows a notice once the second transcript does not fit on the screen any more, and takes it back when it fits. A
    /// window that is dragged has many sizes: the notice follows them.
    pub(super) fn say_hidden(&mut self) -> Vec<Effect> {
        let is_hidden = self.beside().is_some() && !Areas::splits(self);
        let why = is_hidden.then(|| self.too_narrow());
        match (std::mem::replace(&mut self.hidden_said, why.clone()), why) {
            (Some(before), Some(now)) => self.notices.reword(&before, &now),
            (Some(before), None) => self.notices.end(&before),
            (None, Some(now)) => self.notices.say(Kind::Warned, now, self.now),
            (None, None) => {}
        }
        Vec::new()
    }

    fn too_narrow(&self) -> String {
        let needs = Areas::columns_for_two(self.zoom);
        let least = Areas::columns_for_two(Zoom::On);
        let columns = self.size.0;
        let key = self.leader_label(Action::Zoom);
        let way = if (least..needs).contains(&columns) {
            format!(" · {key} makes {least} enough")
        } else {
            String::new()
        };
        format!("two transcripts need {needs} columns, here are {columns}{way}")
    }

    /// The keys of an action of the leader: the leader itself and the key after it.
    fn leader_label(&self, action: Action) -> String {
        let leader = self.keymap.label(Context::Everywhere, Action::Leader);
        format!("{leader} {}", self.keymap.label(Context::Leader, action))
    }
}
