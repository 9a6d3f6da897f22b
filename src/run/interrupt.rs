//! How a run is interrupted, and what becomes of it then: taken back, or kept to be gone on with.

use crate::protocol::{EntryId, RunOutcome, RunResult, now_ms};
use crate::run::{End, FirstEntry, Run, Stopped, session_state};
use crate::session::{Jump, JumpKind, cut_off};
use serde_json::json;
use tokio::sync::watch;

/// What the Pod's actor wants of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    Go,
    Pause,
    Cancel,
    /// As `Pause`, because the Pod is stopped: its input is not rolled back.
    Stop,
    /// As `Stop`, for the end of the host: its approval request is not withdrawn, either.
    Leave,
}

impl Interrupt {
    /// Whether a person interrupted just this run, so that its input can be rolled back.
    fn is_a_persons(self) -> bool {
        match self {
            Self::Pause | Self::Cancel => true,
            Self::Go | Self::Stop | Self::Leave => false,
        }
    }
}

impl Run {
    /// The run was interrupted. A person's input of which nothing had come is taken back when a
    /// person did it; every other one is kept. A run that waits for its provider is paused: the message is sent already,
    /// and the person who looks at the wait wants it made later.
    pub(super) async fn interrupted(&mut self) -> End {
        crate::crash_point!("halt-received");
        let interrupt = *self.ports.interrupt.borrow();
        let cancel = interrupt == Interrupt::Cancel;
        let waits = interrupt == Interrupt::Pause && self.failing_since.is_some();
        let is_taken_back = interrupt.is_a_persons() && !self.acted && !waits;
        let first = self.first.take();
        if let Some(first) = first.filter(|_| is_taken_back) {
            return self.roll_back(first).await;
        }
        let ends = match interrupt {
            Interrupt::Cancel => vec![RunOutcome::Cancelled.entry()],
            Interrupt::Leave => cut_off(now_ms()).into(),
            Interrupt::Go | Interrupt::Pause | Interrupt::Stop => vec![RunOutcome::Paused.entry()],
        };
        let entry = match self.commit_end(ends).await {
            Err(Stopped::Failed(refusal)) => return self.failed(refusal).await,
            Err(Stopped::Interrupted) => None,
            Ok(entry) => entry,
        };
        crate::crash_point!("halt-committed");
        let result = if cancel { RunResult::Cancelled } else { RunResult::Paused };
        self.publish_end(result, entry).await;
        if cancel { End::Cancelled } else { End::Paused }
    }

    async fn roll_back(&mut self, first: FirstEntry) -> End {
        let id = match self.take_input_back(first).await {
            Ok(id) => id,
            Err(stopped) => return self.failed(stopped.refusal()).await,
        };
        crate::crash_point!("halt-committed");
        self.session_state.state.interrupted = false;
        self.publish_end(RunResult::RolledBack, id).await;
        End::RolledBack
    }

    /// Takes the input of this run out of the history. The entry holds it, too, for the screen on which it is then
    /// written again.
    pub(super) async fn take_input_back(
        &mut self,
        first: FirstEntry,
    ) -> Result<Option<EntryId>, Stopped> {
        let more = json!({ "from": first.id, "input": first.input });
        let entry = Jump::entry(JumpKind::RolledBack, first.at, more);
        let id = entry.id;
        self.commit(vec![entry]).await?;
        let segment = self.session_state.segment;
        if segment != first.at.segment {
            // The run compacted the history, and that is taken back, too.
            self.session_state.state =
                session_state::fold(&self.setup, segment).await.map_err(Stopped::Failed)?;
        }
        Ok(id)
    }
}

/// Resolves when the run is to halt, or when its actor is gone.
pub(crate) async fn interrupted(interrupt: &mut watch::Receiver<Interrupt>) {
    // The caller reads the value again; an error means that the actor is gone.
    let _ = interrupt.wait_for(|interrupt| *interrupt != Interrupt::Go).await;
}
