//! When a mailbox message starts a run, and which messages wait.

use crate::host::pod::{Pod, child_events, resolved, waiting};
use crate::protocol::{PodInfo, PodName, State};
use crate::run::{Accepted, Input, Start};
use crate::store::{MailboxKind, MailboxMessage, StoreError};
use crate::trace::OrLog as _;
use tokio::time::Instant;

impl Pod {
    /// Starts a run for a message that waits, if the Pod is idle: for all notifications first, then
    /// for the first queued input that may start one.
    pub(super) async fn take_next(&mut self) {
        if self.phase.is_running() || self.is_undecided() || !self.is_live() {
            return;
        }
        let rows = self.mailbox().await.unwrap_or_default();
        let wakes = |row: &&MailboxMessage| row.kind != MailboxKind::Input && row.wakes();
        let waking: Vec<&MailboxMessage> = rows.iter().filter(wakes).collect();
        if !waking.is_empty() {
            let begins = self.exchange.begins(&waking, Instant::now());
            self.show_granted();
            if begins {
                return self.start(Start::MailboxMessage).await;
            }
        }
        match self.next_input().await {
            Some(row) => self.start_queued(row, None).await,
            None => self.show_what_waits().await,
        }
    }

    /// Shows an idle Pod with the messages that wait for it and do not start a run.
    pub(super) async fn show_what_waits(&mut self) {
        self.waiting_shown_at = None;
        let is_at_rest = |info: &PodInfo| info.state == State::Idle && info.goes_on_by.is_none();
        if self.phase.is_running() || !is_at_rest(&self.info.borrow()) {
            return;
        }
        let rows = self.shared.store.messages_to_count(&self.row.name).await;
        let why = child_events::waiting(&self.not_taken(rows.unwrap_or_default()));
        self.change(|info| info.why = why);
    }

    /// The first queued input that may start a run.
    pub(super) async fn next_input(&mut self) -> Option<MailboxMessage> {
        let (rows, now) = (self.mailbox().await.unwrap_or_default(), Instant::now());
        let mut inputs = rows.into_iter().filter(|row| row.kind == MailboxKind::Input);
        let input = inputs.find(|row| self.exchange.begins(&[row], now));
        self.show_granted();
        input
    }

    /// Whether an input of this Pod may start a run now; one of a person always may.
    pub(super) fn may_begin_for(&mut self, from: Option<&PodName>) -> bool {
        let may = from.is_none_or(|from| self.exchange.begins_for(from, Instant::now()));
        self.show_granted();
        may
    }

    /// Looks for a run again, now that messages of an agent which were held back may start one.
    pub(super) async fn exchange_goes_on(&mut self) {
        if self.mailbox().await.is_ok_and(|rows| rows.iter().any(MailboxMessage::wakes)) {
            self.wake().await;
        }
        if !self.phase.is_running() {
            // No message waits, or the Pod cannot run now, so the exchange is over.
            self.exchange.end();
            self.show_granted();
        }
    }

    /// Takes the next message if the Pod is idle or failed; a paused Pod waits for its person.
    pub(super) async fn wake(&mut self) {
        let state = self.info.borrow().state;
        if matches!(state, State::Idle | State::Failed) {
            self.take_next().await;
        }
    }

    /// A queued input starts its own run.
    pub(super) async fn start_queued(&mut self, row: MailboxMessage, accepted: Option<Accepted>) {
        if let Some(input) = Input::read(&row.payload) {
            return self.start(Start::User { input, taken: Some(row.id), accepted }).await;
        }
        // A row that cannot be read would block the queue for ever. What it holds stays in the trace.
        tracing::warn!(pod = %self.row.name, payload = %row.payload, "a queued input of another version cannot be read");
        let dropped = self.shared.store.drop_input(&self.row.name, &row.id).await;
        dropped.or_log("drop a mailbox message");
        self.load_queue().await;
    }

    /// Hands a stored row to the run; when that has no room, the row starts a run later.
    pub(super) fn hand_over(&mut self, row: MailboxMessage) {
        // A run looks for messages of agents in the store, so that they stay in their order.
        if row.kind != MailboxKind::Agent
            && let Some(run) = self.phase.run_mut()
        {
            let id = row.id.clone();
            if run.mailbox.try_send(row).is_ok() {
                run.handed.insert(id);
            }
        }
    }

    /// The messages that wait. A row that the history holds does not wait, even when the store did
    /// not mark it yet, or could not.
    pub(super) async fn mailbox(&self) -> Result<Vec<MailboxMessage>, StoreError> {
        Ok(self.not_taken(self.shared.store.messages(&self.row.name).await?))
    }

    fn not_taken(&self, mut rows: Vec<MailboxMessage>) -> Vec<MailboxMessage> {
        rows.retain(|row| !self.phase.has_taken(&row.id));
        rows
    }

    /// Shows the queued inputs, and which messages of other Pods wait.
    pub(super) async fn load_queue(&mut self) {
        // A mailbox that cannot be read now is shown as it was.
        let Ok(rows) = self.mailbox().await else { return };
        let waiting = waiting::waiting(&rows);
        let run = self.phase.run();
        let queue = resolved::queue(rows, |id| run.is_some_and(|run| run.handed.contains(id)));
        self.change(|info| (info.queue, info.waiting) = (queue, waiting));
    }
}
