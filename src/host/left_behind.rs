//! What a program leaves behind when it is gone, also when it was killed: its ephemeral Pods, and the messages that it
//! attends.

use crate::host::Shared;
use crate::host::ephemeral::stop_left;
use crate::host::pod::Fact;
use crate::host::supervisor::Step;
use crate::protocol::{Begun, Event, PodName, Refusal};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;

/// What one connection would leave behind. When it is dropped, the host does what the program would have done at its
/// end: its messages are taken back or their runs paused, and its Pods that are still ephemeral are stopped, with the
/// Pods below them.
pub(crate) struct LeftBehind {
    shared: Shared,
    supervisor: mpsc::Sender<Step>,
    /// Never held across an await.
    noted: Mutex<Noted>,
}

#[derive(Default)]
struct Noted {
    /// The ephemeral Pods that the connection made.
    pods: Vec<PodName>,
    attends: bool,
    /// The messages that it attends, each with its receiver.
    messages: Vec<(PodName, Begun)>,
}

impl LeftBehind {
    pub(crate) fn new(shared: Shared, supervisor: mpsc::Sender<Step>) -> Self {
        Self { shared, supervisor, noted: Mutex::default() }
    }

    /// Whether the connection attends the messages that it sends from now on. One that no longer does leaves all of
    /// them to their receivers.
    pub(crate) fn attend(&self, attends: bool) {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.attends = attends;
        if !attends {
            noted.messages.clear();
        }
    }

    /// Notes the Pod that a reply to this connection says was made, or the message that `receiver` accepted.
    pub(crate) fn note(&self, receiver: Option<PodName>, reply: &Result<Event, Refusal>) {
        let Ok(reply) = reply else { return };
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::Created { info } = reply
            && info.ephemeral
        {
            noted.pods.push(info.name.clone());
        }
        if let (true, Some(receiver), Some(message)) = (noted.attends, receiver, Begun::of(reply)) {
            noted.messages.push((receiver, message));
        }
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        let noted = std::mem::take(self.noted.get_mut().unwrap_or_else(PoisonError::into_inner));
        // Without a runtime the host has ended, and the next one does not bring the ephemeral Pods back.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let (shared, supervisor) = (self.shared.clone(), self.supervisor.clone());
        runtime.spawn(async move {
            for (pod, message) in noted.messages {
                if let Some(pod) = shared.pod(&pod) {
                    pod.post(Fact::SenderGone(message)).await;
                }
            }
            for pod in noted.pods {
                let (shared, supervisor) = (shared.clone(), supervisor.clone());
                tokio::spawn(async move { stop_left(&shared, &supervisor, pod).await });
            }
        });
    }
}
