//! The approval requests of all Pods, as every screen shows them.

use crate::host::Shared;
use crate::protocol::{ApprovalRequest, Event, PodInfo, PodStatus, State, Verdict};
use std::sync::Arc;

impl Shared {
    /// Every request that waits, oldest first.
    pub(crate) fn approvals(&self) -> Vec<ApprovalRequest> {
        self.approvals.borrow().as_ref().clone()
    }

    /// Adds a request and publishes it to every screen.
    pub(crate) fn approval_requested(&self, approval: &ApprovalRequest) {
        self.approvals.send_modify(|approvals| {
            let mut all = approvals.as_ref().clone();
            all.retain(|other| other.id != approval.id);
            all.push(approval.clone());
            all.sort_by(|a, b| a.id.cmp(&b.id));
            *approvals = Arc::new(all);
        });
        self.feed(None, None, &Event::ApprovalRequested { approval: Box::new(approval.clone()) });
    }

    /// Notes that a person put off a request that no Pod makes, and publishes that. `false` where it does not wait.
    pub(crate) fn request_put_off(&self, id: &str, at: u64) -> bool {
        let mut put_off = None;
        self.approvals.send_modify(|approvals| {
            let mut all = approvals.as_ref().clone();
            let is_it = |other: &&mut ApprovalRequest| other.id == id && !other.is_of_pod();
            if let Some(approval) = all.iter_mut().find(is_it) {
                approval.later = Some(at);
                put_off = Some(Box::new(approval.clone()));
                *approvals = Arc::new(all);
            }
        });
        let Some(approval) = put_off else { return false };
        self.feed(None, None, &Event::ApprovalRequested { approval });
        true
    }

    /// Removes a request and publishes the decision to every screen, once.
    pub(crate) fn approval_decided(&self, id: &str, verdict: &Verdict) {
        let Some(approval) = self.approvals().into_iter().find(|approval| approval.id == id) else {
            return;
        };
        self.approvals.send_modify(|approvals| {
            *approvals =
                Arc::new(approvals.iter().filter(|approval| approval.id != id).cloned().collect());
        });
        let (approval, pod, verdict) = (approval.id, approval.pod, verdict.clone());
        self.feed(None, None, &Event::ApprovalDecided { approval, pod, verdict });
    }

    /// The state of a Pod in the words of the frozen wire: a Pod that waits for an approval runs, a
    /// Pod that waits for a key is idle.
    pub(crate) fn status(&self, pod: &PodInfo) -> PodStatus {
        let approvals = || self.approvals.borrow().iter().any(|approval| approval.is_of(&pod.name));
        match pod.state {
            State::Running => PodStatus::Running,
            State::NeedsYou if approvals() => PodStatus::Running,
            State::Paused => PodStatus::Paused,
            State::NeedsYou
            | State::Idle
            | State::Stopped
            | State::Failed
            | State::Damaged
            | State::Unknown => PodStatus::Idle,
        }
    }
}
