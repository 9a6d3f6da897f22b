//! Two agents that only answer each other never end by themselves. A Pod counts the runs in a row that messages of
//! one agent alone started; from a number on such messages start a run once in a while only.

use crate::protocol::{NotificationSource, PodName};
use crate::run::{AgentMessage, Notification};
use crate::store::{MailboxKind, MailboxMessage};
use std::time::Duration;
use tokio::time::Instant;

/// Runs in a row that messages of one agent may start.
const FREE: u32 = 8;
/// Between two further ones.
const PAUSE: Duration = Duration::from_secs(60);

/// The runs in a row that messages of one agent alone started.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    with: String,
    runs: u32,
    /// The next such run begins no earlier.
    next: Option<Instant>,
}

impl Exchange {
    /// Counts a run that these messages start; false: it is to begin later.
    pub(super) fn begins(&mut self, waking: &[&MailboxMessage], now: Instant) -> bool {
        let Some(sender) = only_sender(waking) else {
            self.end();
            return true;
        };
        if self.with != sender {
            *self = Self { with: sender, ..Self::default() };
        }
        if self.next.is_some_and(|next| now < next) {
            return false;
        }
        self.runs += 1;
        self.next = (self.runs >= FREE).then(|| now + PAUSE);
        true
    }

    /// Something else than messages of that agent starts a run.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// When messages that wait may start a run.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A sentence for a person, while runs are held back.
    pub(super) fn note(&self, pod: &PodName) -> Option<String> {
        let with = crate::text::SafeText::line(self.with.as_str());
        self.next.map(|_| {
            format!(
                "{pod} and {with} only answer each other: messages of {with} start one run in {} s until you write \
                 to {pod}",
                PAUSE.as_secs()
            )
        })
    }
}

/// The one agent or peer that sent all of these; `None`: they come from several, or from the host.
fn only_sender(messages: &[&MailboxMessage]) -> Option<String> {
    let mut senders = messages.iter().map(|message| sender(message));
    let first = senders.next()??;
    senders.all(|sender| sender.as_deref() == Some(first.as_str())).then_some(first)
}

fn sender(message: &MailboxMessage) -> Option<String> {
    match message.kind {
        MailboxKind::Agent => Some(AgentMessage::read(message.payload.clone())?.from.name),
        MailboxKind::Notify => match Notification::read(message.payload.clone())?.from? {
            NotificationSource::Peer(pod) => Some(pod.to_string()),
            NotificationSource::Agent(agent) => Some(agent.name),
            NotificationSource::WaitingChild(_) | NotificationSource::Unknown(_) => None,
        },
        MailboxKind::Input | MailboxKind::PodEvent => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pod: Option<&str>) -> MailboxMessage {
        let from = pod.map(|pod| NotificationSource::Peer(PodName::parse(pod).unwrap()));
        let payload = Notification { message: "hi".into(), from }.payload();
        MailboxMessage { id: "1".into(), kind: MailboxKind::Notify, payload, created: 1 }
    }

    #[test]
    fn messages_of_one_agent_start_so_many_runs_in_a_row_and_then_one_in_a_while() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let bob = of(Some("bob"));
        for _ in 0..FREE {
            assert!(exchange.begins(&[&bob], now));
        }
        assert!(!exchange.begins(&[&bob, &bob], now));
        let note = exchange.note(&PodName::parse("alice").unwrap()).unwrap();
        assert!(note.starts_with("alice and bob only answer each other"), "{note}");
        let later = now + PAUSE;
        assert!(exchange.begins(&[&bob], later) && !exchange.begins(&[&bob], later));
    }

    #[test]
    fn whatever_else_starts_a_run_ends_the_exchange() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let (bob, carol, host) = (of(Some("bob")), of(Some("carol")), of(None));
        for other in [vec![&host], vec![&carol], vec![&bob, &carol]] {
            for _ in 0..FREE {
                assert!(exchange.begins(&[&bob], now));
            }
            assert!(!exchange.begins(&[&bob], now));
            assert!(exchange.begins(&other, now));
            assert_eq!(exchange.next(), None);
            exchange.end();
        }
    }
}
