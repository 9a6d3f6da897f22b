//! The rows of the mailbox become entries of the history: each row once, also after a crash.

use crate::protocol::{
    AlertSource, Entry, Fact, NotificationSource, PodEvent, SystemItem, Trigger,
};
use crate::run::attach::{alert, references};
use crate::run::{AgentMessage, Input, Notification, Run, Stopped, prompt, sender};
use crate::store::{MailboxKind, MailboxMessage};
use crate::trace::OrLog as _;
use std::iter;

/// Messages of agents that enter the history before one request.
const BATCH: usize = 64;
/// The same in bytes of their texts; one message enters in any case.
const BATCH_BYTES: usize = 256 * 1024;
/// The warning about a row that was skipped because it is damaged or of a newer version.
const UNREADABLE: &str =
    "A message in the mailbox could not be read by this version of yoi and was passed over.";

impl Run {
    /// The trigger of a run that mailbox messages start, and the messages that start it.
    pub(super) async fn commit_invoke_for_mailbox(&mut self) -> Result<(), Stopped> {
        let waiting = self.waiting().await?;
        let begins = |row: &&MailboxMessage| row.kind != MailboxKind::Input && row.wakes();
        let first = waiting.iter().find(begins);
        let child = first.is_some_and(|row| row.kind == MailboxKind::PodEvent);
        let trigger = if child { Trigger::PodEvent } else { Trigger::Notify };
        self.trigger = Some(trigger);
        self.commit(vec![Entry::new(Fact::Invoke { trigger })]).await?;
        // Inputs start runs of their own; messages of agents are taken as a batch, before the request.
        let others =
            |row: &MailboxMessage| !matches!(row.kind, MailboxKind::Input | MailboxKind::Agent);
        for mailbox in waiting.into_iter().filter(others) {
            self.take(mailbox).await?;
        }
        Ok(())
    }

    async fn waiting(&self) -> Result<Vec<MailboxMessage>, Stopped> {
        Ok(self.setup.store.messages(&self.setup.pod).await?)
    }

    /// Takes the messages that arrived meanwhile into the history, before the next request; none of them causes it.
    pub(super) async fn drain_mailbox(&mut self) -> Result<(), Stopped> {
        while let Ok(mailbox) = self.ports.mailbox.try_recv() {
            self.take(mailbox).await?;
        }
        let waiting = self.waiting_agent_messages().await?;
        self.take_agent_messages(waiting).await
    }

    /// The same when the model is done; returns whether another request follows. What agents and other Pods sent
    /// causes none: it waits in the store and starts the next run, so that the Pod counts those runs. Where a run goes on
    /// anyway, it takes that too, in the order in which it came.
    pub(super) async fn drain_at_end(&mut self) -> Result<bool, Stopped> {
        let mut arrived = iter::from_fn(|| self.ports.mailbox.try_recv().ok()).collect::<Vec<_>>();
        let goes_on = arrived.iter().any(|row| !self.has_taken(&row.id) && lets_go_on(row));
        if !goes_on {
            arrived.retain(|row| !is_of_agent(row));
        }
        let mut any = false;
        for row in arrived {
            let lets_go_on = lets_go_on(&row);
            any |= self.take(row).await? && lets_go_on;
        }
        Ok(any)
    }

    /// The messages of agents that wait, those that came first.
    async fn waiting_agent_messages(&self) -> Result<Vec<MailboxMessage>, Stopped> {
        let mut waiting = self.setup.store.agent_messages(&self.setup.pod).await?;
        waiting.retain(|row| !self.has_taken(&row.id));
        Ok(waiting)
    }

    /// Takes messages of agents into the history as one batch: one commit, one entry each. What is more than a
    /// batch waits for the next request.
    async fn take_agent_messages(&mut self, waiting: Vec<MailboxMessage>) -> Result<(), Stopped> {
        let (mut entries, mut rows, mut size) = (Vec::new(), Vec::new(), 0);
        let mut is_unread = false;
        for row in waiting.into_iter().take(BATCH) {
            // A row that cannot be read is marked as taken: it would wait for ever.
            if let Some(read) = AgentMessage::read(row.payload) {
                let message = read.text();
                size += message.len();
                if size > BATCH_BYTES && !entries.is_empty() {
                    break;
                }
                let body = prompt::agent_message(&read.from, &message);
                let from = Some(NotificationSource::Agent(read.from));
                let item = SystemItem::Notification { message, body, from };
                entries.push(Entry::new(Fact::SystemItem { item, taken: Some(row.id.clone()) }));
            } else {
                is_unread = true;
            }
            rows.push(row.id);
        }
        if rows.is_empty() {
            return Ok(());
        }
        crate::crash_point!("mail-received");
        if !entries.is_empty() {
            self.commit(entries).await?;
            self.acted = true;
        }
        crate::crash_point!("mail-taken");
        self.mark_taken(rows).await;
        crate::crash_point!("mail-marked");
        if is_unread {
            self.publish(alert(AlertSource::Pod, UNREADABLE)).await;
        }
        Ok(())
    }

    /// One row becomes one entry that carries the row's id; then the row is marked. A row that cannot be read
    /// is marked, too: it would start one run after the other.
    async fn take(&mut self, mailbox: MailboxMessage) -> Result<bool, Stopped> {
        let id = mailbox.id.clone();
        if self.has_taken(&id) {
            self.taken(Some(id)).await;
            return Ok(false);
        }
        // They wait in the store, and are taken in the order in which they came.
        if mailbox.kind == MailboxKind::Agent {
            return Ok(false);
        }
        let Some(fact) = fact(mailbox) else {
            self.taken(Some(id)).await;
            self.publish(alert(AlertSource::Pod, UNREADABLE)).await;
            return Ok(false);
        };
        let input = match &fact {
            Fact::UserInput { segments, from, .. } => Some((segments.clone(), from.is_none())),
            _ => None,
        };
        crate::crash_point!("mail-received");
        self.commit(vec![Entry::new(fact)]).await?;
        crate::crash_point!("mail-taken");
        self.taken(Some(id)).await;
        crate::crash_point!("mail-marked");
        // A run that took a message is not rolled back any more, so the model reads it once.
        self.acted = true;
        if let Some((segments, by_person)) = input {
            references(self, &segments, by_person).await?;
        }
        Ok(true)
    }

    /// Whether the log holds this row already.
    pub(super) fn has_taken(&self, id: &str) -> bool {
        self.session_state.state.taken.contains(id)
    }

    /// Marks a row as delivered. The log holds its id already, so where this fails the mark is made
    /// when the log is opened next.
    pub(super) async fn taken(&self, id: Option<String>) {
        if let Some(id) = id {
            self.mark_taken(vec![id]).await;
        }
    }

    async fn mark_taken(&self, ids: Vec<String>) {
        let marked = self.setup.store.take_message(&self.setup.pod, ids).await;
        marked.or_log("mark mailbox messages as taken");
    }
}

fn is_of_agent(row: &MailboxMessage) -> bool {
    row.kind != MailboxKind::Input && sender(row).is_some()
}

/// Whether a run whose model is done goes on for this row.
fn lets_go_on(row: &MailboxMessage) -> bool {
    row.wakes() && !is_of_agent(row) && fact(row.clone()).is_some()
}

/// The entry of the history that a row becomes; `None` if it cannot be read.
fn fact(mailbox: MailboxMessage) -> Option<Fact> {
    let taken = Some(mailbox.id);
    Some(match mailbox.kind {
        MailboxKind::Input => {
            let input = Input::read(&mailbox.payload)?;
            Fact::UserInput { segments: input.segments, taken, from: input.from }
        }
        MailboxKind::Notify => {
            let item = Notification::read(mailbox.payload)?.item();
            Fact::SystemItem { item, taken }
        }
        MailboxKind::PodEvent => {
            let event = serde_json::from_value::<PodEvent>(mailbox.payload).ok()?;
            let body = prompt::child_event_text(&event);
            Fact::SystemItem { item: SystemItem::PodEvent { event, body }, taken }
        }
        MailboxKind::Agent => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::PodName;

    fn row(id: &str, kind: MailboxKind, from: Option<NotificationSource>) -> MailboxMessage {
        let payload = Notification { message: id.into(), from }.payload();
        MailboxMessage { id: id.into(), kind, payload, created: 0 }
    }

    #[test]
    fn a_run_goes_on_for_no_peer_and_for_no_row_that_cannot_be_read() {
        let peer = Some(NotificationSource::Peer(PodName::parse("bob").unwrap()));
        assert!(!lets_go_on(&row("peer", MailboxKind::Notify, peer)));
        assert!(lets_go_on(&row("person", MailboxKind::Notify, None)));
        assert!(!lets_go_on(&row("damaged", MailboxKind::PodEvent, None)));
        let payload = serde_json::to_value(PodEvent::ShutDown { pod_name: "kid".into() }).unwrap();
        let ended = MailboxMessage { payload, ..row("child", MailboxKind::PodEvent, None) };
        assert!(lets_go_on(&ended));
    }
}
