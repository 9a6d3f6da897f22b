//! The state of a message that a Pod sent, in words.

use crate::theme::Role;
use yoi::client::family::Family;
use yoi::protocol::mesh::{MessageState, SentMessage};
use yoi::text::SafeText;

/// The state of a message in a word or two. A Pod of this host has read a message that is in its history, and so has one
/// of another machine that says so. Any other agent only confirms that it has the message.
pub fn state(sent: &SentMessage, family: &Family) -> (Role, String) {
    let waits = |pod: &&yoi::protocol::PodName| {
        family.get(pod).is_some_and(|info| info.waiting.contains(&sent.id))
    };
    let waiting = sent.pods.iter().filter(waits).count();
    let gone = sent.pods.iter().any(|pod| family.get(pod).is_none());
    let said = |role, word: &str| (role, word.to_owned());
    let machine = family.machine().into_iter().flat_map(|machine| &machine.messages);
    if let Some(known) = machine.rev().find(|known| known.id == sent.id) {
        let role = if known.state == MessageState::Denied { Role::Error } else { Role::Dim };
        return said(role, known.state.as_str());
    }
    match (sent.status.as_str(), sent.pods.len()) {
        ("received", 0) if sent.handed_over => said(Role::Warn, "handed over"),
        ("received", 0) => said(Role::Dim, "received"),
        ("received", _) if waiting > 0 => said(Role::Dim, "queued"),
        // Whether a deleted Pod read the message is not known.
        ("received", _) if gone => said(Role::Dim, "received"),
        ("received", _) => said(Role::Dim, "read"),
        ("sent", 0) => said(Role::Dim, "sent"),
        ("sent", _) if gone => said(Role::Dim, "sent"),
        ("sent", pods) => (Role::Dim, format!("sent, {} of {pods} read", pods - waiting)),
        ("queued", _) => said(Role::Dim, "queued"),
        (word @ ("denied" | "refused"), _) => said(Role::Error, word),
        ("timeout", _) => said(Role::Warn, "timeout"),
        (other, _) => (Role::Warn, SafeText::line(other).into_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::app::tests::pod;
    use yoi::protocol::mesh::{MachineMessage, MachineView};
    use yoi::protocol::{Event, PodInfo, PodName, State};

    #[test]
    fn a_message_is_queued_until_its_pod_has_read_it_and_of_agents_received_is_all() {
        let bob = PodInfo { waiting: vec!["m".into()], ..pod("bob", State::Running) };
        let mut family = Family::default();
        family.replace(vec![bob, pod("carol", State::Idle)], Vec::new(), Vec::new());
        let name = |name: &&str| PodName::parse(name).expect("a name");
        let sent = |status: &str, pods: &[&str], handed_over| {
            let pods = pods.iter().map(name).collect();
            SentMessage { id: "m".into(), status: status.into(), pods, handed_over }
        };
        let word = |sent: SentMessage| state(&sent, &family).1;
        assert_eq!(word(sent("received", &["bob"], false)), "queued");
        assert_eq!(word(sent("received", &["carol"], false)), "read");
        assert_eq!(word(sent("received", &["deleted"], false)), "received");
        assert_eq!(word(sent("received", &[], false)), "received");
        assert_eq!(word(sent("received", &[], true)), "handed over");
        assert_eq!(word(sent("sent", &["bob", "carol"], false)), "sent, 1 of 2 read");
        assert_eq!(word(sent("sent", &[], false)), "sent");
        assert_eq!(word(sent("denied", &[], false)), "denied");
        assert_eq!(word(sent("timeout", &[], false)), "timeout");
        assert_eq!(word(sent("refused", &[], false)), "refused");
        let message = MachineMessage {
            id: "m".into(),
            pod: PodName::parse("alice").expect("a name"),
            to: "casa:bob".into(),
            state: MessageState::Read,
            at: 0,
        };
        let machine = MachineView { messages: vec![message], ..MachineView::default() };
        family.apply(&Event::Machine { machine: Some(Box::new(machine)) });
        assert_eq!(state(&sent("queued", &[], false), &family).1, "read");
    }
}
