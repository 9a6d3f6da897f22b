//! Slows down agents that only answer each other, two of them or a ring: they would never stop. Peers, parents with their
//! children, and agents of other programs are the same here. A Pod counts for each agent the runs that its messages
//! started. Beyond a limit the agent starts only one run a minute, until a person starts a run. Events about a child are
//! not counted: a child that a person works with has many, and where its parent answers them the child counts.

use crate::host::pod::jobs::is_about_a_command;
use crate::protocol::{NotificationSource, PodName};
use crate::run::{Notification, sender};
use crate::store::{MailboxKind, MailboxMessage};
use crate::text::SafeText;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// The runs that messages of one agent may start before they are slowed down.
const FREE: u32 = 8;
/// The time between two further runs.
const PAUSE: Duration = Duration::from_secs(60);
/// The most agents whose runs are counted. A further agent counts as one that has started all its runs.
const AGENTS: usize = 64;
/// What counts as the agent that sends the messages about commands in the background: a Pod that starts one after each
/// would never stop.
const COMMANDS: &str = "its commands in the background";
/// Agents that a note names.
const NAMED: usize = 3;

/// The runs that messages of each agent started since the last run with another cause.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    runs: BTreeMap<String, Runs>,
    /// The earliest time of the next run for agents that have none left.
    next: Option<Instant>,
}

#[derive(Debug)]
struct Runs {
    count: u32,
    last: Instant,
}

impl Exchange {
    /// Counts a run that these messages start; `false` if it has to begin later.
    pub(super) fn begins(&mut self, waking: &[&MailboxMessage], now: Instant) -> bool {
        let sent: Vec<_> = waking.iter().filter(|message| !is_about_a_child(message)).collect();
        let from = |message: &&&MailboxMessage| {
            sender(message).or_else(|| is_about_a_command(message).then(|| COMMANDS.to_owned()))
        };
        let Some(senders) = sent.iter().map(from).collect() else {
            self.end();
            return true;
        };
        sent.len() < waking.len() || self.begins_by(senders, now)
    }

    /// Counts a run that an input of this Pod starts; `false` if it has to begin later.
    pub(super) fn begins_for(&mut self, from: &PodName, now: Instant) -> bool {
        self.begins_by(BTreeSet::from([from.to_string()]), now)
    }

    fn begins_by(&mut self, senders: BTreeSet<String>, now: Instant) -> bool {
        // An agent that was silent for so long is not part of an exchange.
        self.runs.retain(|_, runs| now.duration_since(runs.last) < 2 * PAUSE);
        if self.have_none_left(&senders) && self.next.is_some_and(|next| now < next) {
            return false;
        }
        for sender in &senders {
            if self.runs.len() < AGENTS || self.runs.contains_key(sender) {
                let first = Runs { count: 0, last: now };
                let runs = self.runs.entry(sender.clone()).or_insert(first);
                (runs.count, runs.last) = (runs.count + 1, now);
            }
        }
        if self.have_none_left(&senders) {
            self.next = Some(now + PAUSE);
        }
        true
    }

    fn have_none_left(&self, senders: &BTreeSet<String>) -> bool {
        let none_left = |sender| match self.runs.get(sender) {
            Some(runs) => runs.count >= FREE,
            None => self.runs.len() >= AGENTS,
        };
        senders.iter().all(none_left)
    }

    /// Forgets all counts, because a run has another cause than messages of agents.
    pub(super) fn end(&mut self) {
        *self = Self::default();
    }

    /// When messages that wait may start a run.
    pub(super) fn next(&self) -> Option<Instant> {
        self.next
    }

    /// A sentence for a person, while runs are held back.
    pub(super) fn note(&self, pod: &PodName) -> Option<String> {
        self.next?;
        let held = self.runs.iter().filter(|(_, runs)| runs.count >= FREE);
        let mut held: Vec<String> =
            held.map(|(name, _)| SafeText::line(name.as_str()).to_string()).collect();
        let more = held.len().saturating_sub(NAMED);
        held.truncate(NAMED);
        if more > 0 {
            held.push(format!("{more} more"));
        } else if held.is_empty() {
            held.push("other agents".to_owned());
        }
        let with = listed(&held);
        held.insert(0, pod.to_string());
        let seconds = PAUSE.as_secs();
        Some(format!(
            "{} only answer each other: messages of {with} start one run in {seconds} s until you write to {pod}",
            listed(&held)
        ))
    }
}

/// Names as a list in a sentence: `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        few => few.concat(),
    }
}

/// Whether the host tells with it what became of a child.
fn is_about_a_child(message: &MailboxMessage) -> bool {
    let from = || Notification::read(message.payload.clone())?.from;
    match message.kind {
        MailboxKind::PodEvent => true,
        MailboxKind::Notify => matches!(from(), Some(NotificationSource::WaitingChild(_))),
        MailboxKind::Input | MailboxKind::Agent => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PodEvent;
    use crate::run::Input;

    fn person() -> MailboxMessage {
        let payload = Input { segments: Vec::new(), from: None }.payload();
        MailboxMessage { id: "1".into(), kind: MailboxKind::Input, payload, created: 1 }
    }

    fn of(pod: Option<&str>) -> MailboxMessage {
        let from = pod.map(|pod| NotificationSource::Peer(PodName::parse(pod).unwrap()));
        let payload = Notification { message: "hi".into(), from }.payload();
        MailboxMessage { id: "1".into(), kind: MailboxKind::Notify, payload, created: 1 }
    }

    fn note(exchange: &Exchange) -> String {
        exchange.note(&PodName::parse("alice").unwrap()).expect("a note")
    }

    #[test]
    fn messages_of_one_agent_start_so_many_runs_and_then_one_in_a_while() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let bob = of(Some("bob"));
        for _ in 0..FREE {
            assert!(exchange.begins(&[&bob], now));
        }
        assert!(!exchange.begins(&[&bob, &bob], now));
        let expected = "alice and bob only answer each other: messages of bob start one run in 60 s until you write \
                        to alice";
        assert_eq!(note(&exchange), expected);
        for round in 1..4 {
            let later = now + round * PAUSE;
            assert!(exchange.begins(&[&bob], later) && !exchange.begins(&[&bob], later));
        }
    }

    #[test]
    fn a_pod_that_starts_a_command_in_the_background_after_each_is_slowed_down() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let job = MailboxMessage { id: "job:1".into(), ..of(None) };
        assert_eq!((0..100).filter(|_| exchange.begins(&[&job], now)).count(), FREE as usize);
        assert!(note(&exchange).contains("messages of its commands in the background start one"));
        assert!(exchange.begins(&[&of(None)], now) && exchange.begins(&[&job], now));
    }

    #[test]
    fn agents_of_a_ring_are_slowed_down_together_in_whatever_order_they_answer() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let (bob, carol) = (of(Some("bob")), of(Some("carol")));
        let orders: [&[&MailboxMessage]; 4] = [&[&bob], &[&carol], &[&carol], &[&bob]];
        let rounds = orders.iter().cycle().take(1000);
        let begun = rounds.filter(|waking| exchange.begins(waking, now)).count();
        assert_eq!(begun, 2 * FREE as usize);
        assert!(!exchange.begins(&[&bob, &carol], now));
        let said = note(&exchange);
        assert!(
            said.starts_with(
                "alice, bob and carol only answer each other: messages of bob and carol"
            ),
            "{said}"
        );
        let later = now + PAUSE;
        assert!(exchange.begins(&[&carol], later) && !exchange.begins(&[&bob], later));
    }

    #[test]
    fn an_agent_that_has_runs_left_is_not_held_back_by_others() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let (bob, dora) = (of(Some("bob")), of(Some("dora")));
        while exchange.begins(&[&bob], now) {}
        assert!(exchange.begins(&[&dora], now) && exchange.begins(&[&bob, &dora], now));
        assert!(!exchange.begins(&[&bob], now));
    }

    #[test]
    fn a_flood_of_names_is_slowed_down() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let names = (0..1000).map(|number| of(Some(&format!("n{number}"))));
        let begun = names.filter(|name| exchange.begins(&[name], now)).count();
        assert!((AGENTS..AGENTS + 2).contains(&begun), "{begun}");
        assert!(note(&exchange).starts_with("alice and other agents only answer each other"));
    }

    /// As the host tells a parent that its child has ended a run, or waits for a person.
    fn about(child: &str) -> [MailboxMessage; 2] {
        let pod_name = child.to_owned();
        let ended = PodEvent::TurnEnded { pod_name, result: None };
        let payload = serde_json::to_value(&ended).unwrap();
        let waits = NotificationSource::WaitingChild(PodName::parse(child).unwrap());
        let waits = Notification { message: "waits".into(), from: Some(waits) }.payload();
        let kinds = [(MailboxKind::PodEvent, payload), (MailboxKind::Notify, waits)];
        kinds.map(|(kind, payload)| MailboxMessage { id: "1".into(), kind, payload, created: 1 })
    }

    #[test]
    fn inputs_of_a_parent_count_like_messages_of_peers() {
        let (mut child, now) = (Exchange::default(), Instant::now());
        let p = PodName::parse("p").unwrap();
        let payload = Input { segments: Vec::new(), from: Some(p.clone()) }.payload();
        let queued =
            MailboxMessage { id: "2".into(), kind: MailboxKind::Input, payload, created: 1 };
        for _ in 0..FREE / 2 {
            assert!(child.begins_for(&p, now) && child.begins(&[&queued], now));
        }
        assert!(!child.begins_for(&p, now) && !child.begins(&[&queued], now));
        assert!(child.begins(&[&person()], now), "a person starts a run at any time");
    }

    #[test]
    fn events_about_a_child_always_start_a_run_and_end_no_exchange() {
        let (mut parent, now) = (Exchange::default(), Instant::now());
        let (bob, [ended, waits]) = (of(Some("bob")), about("kid"));
        while parent.begins(&[&bob], now) {}
        for _ in 0..10 * FREE {
            assert!(parent.begins(&[&ended], now) && parent.begins(&[&waits, &ended, &bob], now));
        }
        assert!(!parent.begins(&[&bob], now));
    }

    #[test]
    fn an_agent_that_wrote_nothing_for_long_has_all_its_runs() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let bob = of(Some("bob"));
        while exchange.begins(&[&bob], now) {}
        let later = now + 2 * PAUSE;
        assert_eq!((0..100).filter(|_| exchange.begins(&[&bob], later)).count(), FREE as usize);
    }

    #[test]
    fn whatever_else_starts_a_run_ends_the_exchange() {
        let (mut exchange, now) = (Exchange::default(), Instant::now());
        let (bob, host) = (of(Some("bob")), of(None));
        for other in [vec![&host], vec![&bob, &host]] {
            while exchange.begins(&[&bob], now) {}
            assert!(exchange.begins(&other, now));
            assert_eq!(exchange.next(), None);
            assert!(exchange.begins(&[&bob], now));
            exchange.end();
        }
    }
}
