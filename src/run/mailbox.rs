//! The rows of the mailbox become entries of the history: each row once, also after a crash.

use crate::protocol::{Entry, Fact, PodEvent, SystemItem, Trigger};
use crate::run::{Input, Notification, Run, Stopped, prompt};
use crate::store::{MailboxKind, MailboxMessage};
use crate::trace::OrLog as _;

impl Run {
    /// The trigger of a run that mailbox messages start, and the messages that start it.
    pub(super) async fn commit_invoke_for_mailbox(&mut self) -> Result<(), Stopped> {
        let waiting = self.waiting().await?;
        let child = waiting.first().is_some_and(|mailbox| mailbox.kind == MailboxKind::PodEvent);
        let trigger = if child { Trigger::PodEvent } else { Trigger::Notify };
        self.trigger = Some(trigger);
        self.commit(vec![Entry::new(Fact::Invoke { trigger })]).await?;
        for mailbox in waiting.into_iter().filter(|mailbox| mailbox.kind != MailboxKind::Input) {
            self.take(mailbox).await?;
        }
        Ok(())
    }

    async fn waiting(&self) -> Result<Vec<MailboxMessage>, Stopped> {
        Ok(self.setup.store.messages(&self.setup.pod).await?)
    }

    /// Takes the messages that arrived meanwhile into the history; whether there were any.
    pub(super) async fn drain_mailbox(&mut self) -> Result<bool, Stopped> {
        let mut any = false;
        while let Ok(mailbox) = self.ports.mailbox.try_recv() {
            any |= self.take(mailbox).await?;
        }
        Ok(any)
    }

    /// One row becomes one entry that carries the row's id; then the row is marked.
    async fn take(&mut self, mailbox: MailboxMessage) -> Result<bool, Stopped> {
        if self.has_taken(&mailbox.id) {
            self.taken(Some(mailbox.id)).await;
            return Ok(false);
        }
        let taken = Some(mailbox.id.clone());
        let fact = match mailbox.kind {
            MailboxKind::Input => {
                let Some(input) = Input::read(mailbox.payload) else { return Ok(false) };
                Fact::UserInput { segments: input.segments, taken, from: input.from }
            }
            MailboxKind::Notify => {
                let Some(Notification { message, from }) = Notification::read(mailbox.payload)
                else {
                    return Ok(false);
                };
                let body = prompt::notification(&message);
                Fact::SystemItem { item: SystemItem::Notification { message, body, from }, taken }
            }
            MailboxKind::PodEvent => {
                let Ok(event) = serde_json::from_value::<PodEvent>(mailbox.payload) else {
                    return Ok(false);
                };
                let body = prompt::child_event_text(&event);
                Fact::SystemItem { item: SystemItem::PodEvent { event, body }, taken }
            }
        };
        crate::crash_point!("mail-received");
        self.commit(vec![Entry::new(fact)]).await?;
        crate::crash_point!("mail-taken");
        self.taken(Some(mailbox.id)).await;
        crate::crash_point!("mail-marked");
        // A run that took a message is not rolled back any more, so the model reads it once.
        self.acted = true;
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
            self.setup
                .store
                .take_message(&self.setup.pod, vec![id])
                .await
                .or_log("mark mailbox messages as taken");
        }
    }
}
