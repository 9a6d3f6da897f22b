//! Keys and clicks in the pane of peers.

use crate::app::{App, Effect, Focus};
use crate::keys::Action;
use crate::notice::Kind;
use yoi::protocol::PodName;

impl App {
    /// The selected Pod: its peers are shown, and a verb without a name means it. It is the Pod of the
    /// second transcript while that has the focus, otherwise the Pod of the first.
    pub fn selected(&self) -> Option<&PodName> {
        let beside = if self.focus == Focus::Beside { self.beside() } else { None };
        beside.or(self.shown())
    }

    /// The peer under the cursor.
    pub(super) fn chosen_peer(&self) -> Option<&PodName> {
        let peers = self.family.peers_of(self.selected()?);
        self.peers.chosen(&peers)
    }

    pub(super) fn focus_peers(&mut self) -> Vec<Effect> {
        if crate::app::Areas::has_peers(self) {
            return self.focus(Focus::Peers);
        }
        self.say(Kind::Info, "no two Pods are peers · :peer <pod> makes them so")
    }

    pub(super) fn peers_key(&mut self, action: Action) -> Vec<Effect> {
        match action {
            Action::Up => self.peers_step(-1),
            Action::Down => self.peers_step(1),
            Action::PageUp => self.peers_step(-10),
            Action::PageDown => self.peers_step(10),
            Action::First => self.peers_step(isize::MIN),
            Action::Last => self.peers_step(isize::MAX),
            Action::Choose => {
                let Some(peer) = self.chosen_peer().cloned() else { return Vec::new() };
                return self.make_current(&peer);
            }
            Action::Copy => {
                let name = self.chosen_peer().map(ToString::to_string);
                return name.map(|name| self.copy(name)).unwrap_or_default();
            }
            other => return self.everywhere(other),
        }
        Vec::new()
    }

    fn peers_step(&mut self, by: isize) {
        let Some(of) = self.selected().cloned() else { return };
        let peers = self.family.peers_of(&of);
        let at = self.peers.position(&peers).saturating_add_signed(by);
        self.peers.choose(&peers, at);
    }

    pub(super) fn peers_click(&mut self, at: usize) -> Vec<Effect> {
        let effects = self.focus(Focus::Peers);
        if let Some(of) = self.selected().cloned() {
            let peers = self.family.peers_of(&of);
            self.peers.choose(&peers, at);
        }
        effects
    }
}
