//! Approval requests that wait for a person, as everyone sees them.

use crate::host::Shared;
use crate::protocol::{ApprovalRequest, Event, PodInfo, PodStatus, State, Verdict};
use std::sync::Arc;

impl Shared {
    /// Every question that waits, oldest first.
    pub(crate) fn asks(&self) -> Vec<ApprovalRequest> {
        self.asks.borrow().as_ref().clone()
    }

    /// A question waits; every screen is told.
    pub(crate) fn asked(&self, ask: &ApprovalRequest) {
        self.asks.send_modify(|asks| {
            let mut all = asks.as_ref().clone();
            all.retain(|other| other.id != ask.id);
            all.push(ask.clone());
            all.sort_by(|a, b| a.id.cmp(&b.id));
            *asks = Arc::new(all);
        });
        self.feed(None, None, &Event::ApprovalRequested { ask: Box::new(ask.clone()) });
    }

    /// A question waits no more; every screen is told, once.
    pub(crate) fn answered(&self, id: &str, verdict: &Verdict) {
        let Some(ask) = self.asks().into_iter().find(|ask| ask.id == id) else { return };
        self.asks.send_modify(|asks| {
            *asks = Arc::new(asks.iter().filter(|ask| ask.id != id).cloned().collect());
        });
        let (ask, pod, verdict) = (ask.id, ask.pod, verdict.clone());
        self.feed(None, None, &Event::ApprovalDecided { ask, pod, verdict });
    }

    /// The state of a Pod in the words of the frozen wire: a turn that waits for an answer runs; a
    /// Pod without a turn that waits for a key rests.
    pub(crate) fn status(&self, pod: &PodInfo) -> PodStatus {
        let asks = || self.asks.borrow().iter().any(|ask| ask.pod == pod.name);
        match pod.state {
            State::Running => PodStatus::Running,
            State::NeedsYou if asks() => PodStatus::Running,
            State::Paused => PodStatus::Paused,
            State::NeedsYou | State::Idle | State::Stopped | State::Failed | State::Unknown => {
                PodStatus::Idle
            }
        }
    }
}
