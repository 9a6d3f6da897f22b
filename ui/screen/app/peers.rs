//! Keys and clicks in the pane of peers and agents.

use crate::screen::app::{App, Effect, Focus};
use crate::screen::keys::Action;
use crate::screen::notice::Kind;
use yoi::client::family::{Agent, Contact};
use yoi::protocol::PodName;
use yoi::text::verb_word;

/// The notice about an agent whose name has invisible characters.
pub(super) const CANNOT_BE_TYPED: &str =
    "the name of this agent holds characters that cannot be typed";

impl App {
    /// The selected Pod: a verb without a name means it. It is the Pod that the card is about while that has the keys,
    /// otherwise the Pod that is read.
    pub fn selected(&self) -> Option<&PodName> {
        if self.focus == Focus::Inbox { self.pod_of_card() } else { self.pod_read() }
    }

    /// The Pod that is read: its peers are shown. It is the Pod of the second transcript while that has the focus, otherwise
    /// the Pod of the first.
    pub fn pod_read(&self) -> Option<&PodName> {
        let beside = if self.focus == Focus::Beside { self.beside() } else { None };
        beside.or(self.shown())
    }

    /// The peer or agent under the cursor.
    pub(super) fn chosen_contact(&self) -> Option<Contact<'_>> {
        let contacts = self.family.contacts_of(self.pod_read()?);
        self.peers.chosen(&contacts)
    }

    /// The peer under the cursor.
    pub(super) fn chosen_peer(&self) -> Option<&PodName> {
        match self.chosen_contact()? {
            Contact::Pod(name) => Some(name),
            Contact::Agent(_) => None,
        }
    }

    /// The agent under the cursor, while the pane has the focus.
    pub(super) fn chosen_agent(&self) -> Option<&Agent> {
        match self.chosen_contact().filter(|_| self.focus == Focus::Peers)? {
            Contact::Pod(_) => None,
            Contact::Agent(agent) => Some(agent),
        }
    }

    pub(super) fn focus_peers(&mut self) -> Vec<Effect> {
        if self.family.has_contacts() {
            return self.focus(Focus::Peers);
        }
        self.say(
            Kind::Info,
            "no two Pods are peers, and no agent is on the mesh · :peer <pod> makes peers",
        )
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
                return match self.chosen_peer().cloned() {
                    Some(peer) => self.make_current(&peer),
                    None => self.write_to_agent(),
                };
            }
            Action::Copy => {
                let name = self.chosen_contact().map(|contact| contact.name().to_owned());
                return name.map(|name| self.copy(name)).unwrap_or_default();
            }
            other => return self.everywhere(other),
        }
        Vec::new()
    }

    /// Writes the beginning of a message to the agent under the cursor into the command line.
    fn write_to_agent(&mut self) -> Vec<Effect> {
        let Some(agent) = self.chosen_agent() else { return Vec::new() };
        match agent.typed().map(|name| format!("send {} ", verb_word(name))) {
            Some(line) => self.open_line(&line),
            None => self.say(Kind::Info, CANNOT_BE_TYPED),
        }
    }

    pub(super) fn peers_step(&mut self, by: isize) {
        let Some(of) = self.pod_read().cloned() else { return };
        let peers = self.family.contacts_of(&of);
        let at = self.peers.position(&peers).saturating_add_signed(by);
        self.peers.choose(&peers, at);
    }

    pub(super) fn peers_click(&mut self, at: usize) -> Vec<Effect> {
        if let Some(of) = self.pod_read().cloned() {
            let peers = self.family.contacts_of(&of);
            self.peers.choose(&peers, at);
        }
        self.keys_stay_in(Focus::Peers)
    }
}
