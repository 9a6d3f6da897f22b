//! The approval request that a Pod waits for: while its run is under way, and after a restart
//! without one.

use crate::host::pod::Pod;
use crate::host::pod::calls::{done, reply};
use crate::host::pod::start::accepted;
use crate::host::pod::tail::Interrupted;
use crate::host::{Answer, notify_parent};
use crate::protocol::{ApprovalRequest, ErrorCode, Event, Refusal, State, Verdict, now_ms};
use crate::run::approval::answer_entry;
use crate::run::{ApprovalDecided, Interrupt, Start};
use crate::trace::OrLog as _;

/// An approval request that the log does not close yet.
pub(crate) struct PendingApproval {
    pub(super) approval: ApprovalRequest,
    /// The decision, from when the store holds it until the log does.
    pub(super) verdict: Option<Verdict>,
}

impl Pod {
    /// The run waits for the approval of a person.
    pub(super) async fn approval_requested(&mut self, approval: ApprovalRequest) {
        // Published first: a screen that shows the state has the request already.
        self.shared.approval_requested(&approval);
        if let Some(parent) = self.row.parent.clone() {
            notify_parent::approval_requested(&self.shared, &parent, &approval).await;
        }
        let why = waits_for(&approval);
        self.pending = Some(PendingApproval { approval, verdict: None });
        self.enter(State::NeedsYou, Some(why));
    }

    /// The log holds the decision, or that the request was withdrawn.
    pub(super) fn approval_closed(&mut self, decision: &ApprovalDecided) {
        let own = |pending: &PendingApproval| pending.approval.id == decision.approval;
        if self.pending.as_ref().is_some_and(own) {
            self.pending = None;
            if self.phase.is_running() {
                self.enter(State::Running, None);
            }
        }
        self.shared.approval_decided(&decision.approval, &decision.verdict);
    }

    /// A person decided, and the store holds the decision.
    pub(super) async fn approval_decided(&mut self, decision: ApprovalDecided) {
        let live = self.phase.is_running() || self.is_live();
        let Some(pending) = &mut self.pending else { return };
        if pending.approval.id != decision.approval || pending.verdict.is_some() || !live {
            return;
        }
        pending.verdict = Some(decision.verdict.clone());
        if let Some(run) = self.phase.run() {
            // There is room: a run waits for one decision at a time, and each is made once.
            let _ = run.decisions.try_send(decision.clone());
            self.enter(State::Running, None);
        } else {
            self.start(Start::ApprovalDecided { answered: decision.clone(), accepted: None }).await;
        }
        self.shared.approval_decided(&decision.approval, &decision.verdict);
    }

    /// Whether the Pod waits for a decision.
    pub(super) fn is_undecided(&self) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.verdict.is_none())
    }

    /// The decision that a run has not taken yet.
    pub(super) fn decision(&self) -> Option<ApprovalDecided> {
        let PendingApproval { approval, verdict } = self.pending.as_ref()?;
        Some(ApprovalDecided { approval: approval.id.clone(), verdict: verdict.clone()? })
    }

    /// Why a Pod that waits for a decision refuses something else.
    pub(super) fn must_be_decided(&self) -> Result<(), Refusal> {
        match &self.pending {
            Some(PendingApproval { approval, verdict: None }) => {
                let text =
                    format!("pod `{}` {}; answer it first", approval.pod, waits_for(approval));
                Err(Refusal::new(ErrorCode::AlreadyRunning, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The state of a Pod whose run ended before its request was closed, and why.
    pub(super) fn pending_state(&self) -> Option<(State, Option<String>)> {
        let PendingApproval { approval, verdict } = self.pending.as_ref()?;
        Some(match verdict {
            None => (State::NeedsYou, Some(waits_for(approval))),
            Some(_) => {
                let why = format!("{} is decided", approval.line());
                (State::Paused, Some(why))
            }
        })
    }

    /// `:resume` of a Pod with a pending request: with a decision the run goes on, without one the
    /// refusal names the request. Gives `answer` back where no request is pending.
    pub(super) async fn resume_pending(&mut self, answer: Answer) -> Option<Answer> {
        let Some(PendingApproval { approval, verdict }) = &self.pending else {
            return Some(answer);
        };
        if verdict.is_none() {
            let text =
                format!("pod `{}` {}: answer it in the inbox", approval.pod, waits_for(approval));
            reply(answer, Err(Refusal::new(ErrorCode::NotPaused, text)));
            return None;
        }
        let Some(answered) = self.decision().filter(|_| !self.phase.is_running()) else {
            return Some(answer);
        };
        let accepted = Some(accepted(answer));
        self.start(Start::ApprovalDecided { answered, accepted }).await;
        None
    }

    /// Pausing or cancelling a Pod that waits without a run withdraws its request.
    pub(super) async fn interrupt_pending(&mut self, how: Interrupt) -> Result<Event, Refusal> {
        let why =
            if how == Interrupt::Cancel { "the run was cancelled" } else { "the run was paused" };
        self.withdraw(why).await?;
        if how == Interrupt::Cancel {
            return self.drop_run().await;
        }
        self.enter(State::Paused, Some(Interrupted::paused(now_ms()).sentence()));
        Ok(done())
    }

    /// Withdraws the request while no run is under way. The log says so first: that the request is
    /// withdrawn, or what a person decided before.
    pub(super) async fn withdraw(&mut self, why: &str) -> Result<(), Refusal> {
        let Some(pending) = &self.pending else { return Ok(()) };
        let withdrawn = Verdict::Withdrawn { why: why.into() };
        let id = pending.approval.id.clone();
        // The log says what a person decided meanwhile; the call does not run either way.
        let verdict = self.shared.store.withdraw_approval(&id, withdrawn).await?;
        // In one write with the end of the run: a run that has ended waits for no approval.
        self.write_log(vec![answer_entry(&id, &verdict)]).await?;
        self.end_rows(vec![id.clone()]).await;
        self.approval_closed(&ApprovalDecided { approval: id, verdict });
        Ok(())
    }

    /// The Pod is stopped: its request needs no decision any more.
    pub(super) async fn end_pending(&mut self) {
        // Where the log cannot be written, the request is closed when it is opened for the next run.
        let _ = self.withdraw("the pod was stopped").await;
        if let Some(PendingApproval { approval, .. }) = self.pending.take() {
            let verdict = Verdict::Withdrawn { why: "the pod was stopped".into() };
            self.shared.approval_decided(&approval.id, &verdict);
        }
    }

    /// Restores the request at which the end of a log stands, with a decision that came as the host
    /// ended. Rows for which the log has no open request are dropped.
    pub(super) async fn restore_pending(&mut self, approval: Option<ApprovalRequest>) {
        let name = self.row.name.clone();
        let mut stored = self.shared.store.approvals_of(&name).await.unwrap_or_default();
        let approval = approval.filter(|approval| approval.pod.key() == name.key());
        let open = |id: &str| approval.as_ref().is_some_and(|approval| approval.id == id);
        let closed = stored.iter().map(|row| row.approval.id.clone());
        self.end_rows(closed.filter(|id| !open(id)).collect()).await;
        let Some(approval) = approval else { return };
        stored.retain(|row| row.approval.id == approval.id);
        let row = stored.pop();
        if row.is_none() {
            // Without a row a decision is refused; the next start tries to store it again.
            let added = self.shared.store.add_approval(approval.clone()).await;
            added.or_log("store an approval request");
        }
        let verdict = row.and_then(|row| row.verdict);
        if verdict.is_none() {
            self.shared.approval_requested(&approval);
            if let Some(parent) = &self.row.parent {
                notify_parent::approval_waits(&self.shared, parent, &approval).await;
            }
        }
        self.pending = Some(PendingApproval { approval, verdict });
    }

    /// Closes the request at which the log of a stopped Pod stands: the stop withdrew it, and the
    /// host may have died before the log said so.
    pub(super) async fn close_stopped(
        &mut self,
        approval: Option<ApprovalRequest>,
    ) -> Result<(), Refusal> {
        let name = self.row.name.clone();
        let own = approval.filter(|approval| approval.pod.key() == name.key());
        self.pending = own.map(|approval| PendingApproval { approval, verdict: None });
        self.withdraw("the pod was stopped").await?;
        let stored = self.shared.store.approvals_of(&name).await.unwrap_or_default();
        self.end_rows(stored.into_iter().map(|row| row.approval.id).collect()).await;
        Ok(())
    }

    /// Removes rows of requests that the log has closed. Where this fails they are removed at the
    /// next start.
    async fn end_rows(&self, ids: Vec<String>) {
        let ended = self.shared.store.end_approvals(ids).await;
        ended.or_log("end approval requests in the store");
    }
}

fn waits_for(approval: &ApprovalRequest) -> String {
    format!("waits for you: {}", approval.line())
}
