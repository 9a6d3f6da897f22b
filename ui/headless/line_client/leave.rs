//! The end of a conversation of lines.

use crate::headless::exit::{Failure, is_signalled};
use crate::headless::line_client::LineClient;
use crate::headless::run_tracker::RunTracker;
use crate::verb::{self, spell::in_shell};
use std::slice::from_ref;
use std::time::Duration;
use yoi::protocol::{Begun, Event, Method, PodName, Refusal};

/// How long a run may take to be paused when a signal ends the program, a host to end, and the last notes to be
/// written.
const PAUSE: Duration = Duration::from_secs(5);

impl LineClient {
    /// Interrupts a Pod after a signal: each request is sent once, and its reply awaited for 5 s. Returns
    /// whether the host accepted all of them.
    pub async fn interrupt(&mut self, pod: &PodName, then: &[Method]) -> bool {
        let mut accepted = true;
        for method in then {
            let (client, about) = (self.client.clone(), Some(pod.clone()));
            let call = async move { client.call(about.as_ref(), method.clone()).await };
            // The host may be ending too; there is nothing left to do about a refusal.
            let reply = self.last_reply(Box::pin(call)).await;
            accepted &= reply.is_some_and(|reply| reply.is_ok());
        }
        accepted
    }

    /// After a signal: takes those of this program's messages back that wait in the Pod's queue, and pauses the run
    /// that one of them began, or without messages any run. A run that another program's message began goes on.
    /// Returns whether a run was paused.
    pub async fn interrupt_messages(&mut self, pod: &PodName, messages: &[Begun]) -> bool {
        let answers = |runs: &RunTracker| runs.answers_one_of(messages);
        let mut is_own = messages.is_empty() || self.runs.get(pod).is_some_and(answers);
        for message in messages {
            let Begun::Queued(id) = message else { continue };
            if self.runs.get(pod).is_some_and(|runs| runs.has(message)) {
                continue;
            }
            let id = id.clone();
            // It is refused once a run has taken the message.
            let is_taken_back =
                self.interrupt(pod, &[Method::EditQueued { id, input: None }]).await;
            if is_taken_back {
                self.printer
                    .note(&format!("took the message to {pod} back: no run had begun with it"));
            }
            is_own |= !is_taken_back;
        }
        is_own && self.interrupt(pod, &[Method::Pause]).await
    }

    /// Prints that a run was paused, and how it goes on.
    pub fn note_paused(&mut self, pod: &PodName) {
        let resume = in_shell(&verb::resume::VERB, "", from_ref(pod), None);
        self.printer.note(&format!("paused {pod} · {resume} continues"));
    }

    /// Waits for a reply after a signal, 5 s at most. Events that come before it are received and dropped, or it would
    /// never come.
    pub(super) async fn last_reply(
        &mut self,
        mut reply: impl Future<Output = Result<Event, Refusal>> + Unpin,
    ) -> Option<Result<Event, Refusal>> {
        let replied = async {
            loop {
                tokio::select! {
                    reply = &mut reply => return reply,
                    event = self.events.recv() => if event.is_none() {
                        return reply.await;
                    },
                }
            }
        };
        tokio::time::timeout(PAUSE, replied).await.ok()
    }

    /// Closes the connection. A host that ends with it is gone then.
    async fn disconnect(self) {
        let Self { client, mut events, catching_up, reader, .. } = self;
        catching_up.inspect(|(_, task)| task.abort());
        drop(client);
        let closed = async { while events.recv().await.is_some() {} };
        // A host that has more to do ends later.
        let _ = tokio::time::timeout(PAUSE, closed).await;
        if let Some(reader) = reader {
            reader.end().await;
        }
    }

    /// Ends the conversation; fails if a request was denied during it. After a signal no more text is awaited, only
    /// the notes.
    pub async fn leave(mut self, result: &Result<(), Failure>) -> Result<(), Failure> {
        let shown = if is_signalled(result) { Ok(()) } else { self.all_shown().await };
        let outcome = self.inbox.outcome();
        let output = self.printer.output().clone();
        if self.attends && !is_signalled(result) {
            // A message that still waits is left to its Pod. A host that is gone attends nothing.
            let _ = self.exchange(None, Method::Attend { attends: false }).await;
        }
        self.disconnect().await;
        // The process ends now, and with it the threads that write. A reader may never read on.
        let written = async {
            match is_signalled(result) || is_signalled(&shown) {
                true => output.flush_notes().await,
                false => output.flush().await,
            }
        };
        let _ = tokio::time::timeout(PAUSE, written).await;
        shown.and(outcome)
    }
}
