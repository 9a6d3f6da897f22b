//! The approval request that a Pod waits for: during a run, and after a restart, when no run exists
//! yet. A request ends in three steps: the store holds the verdict, the log holds it, the store's row goes.

use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::host::pod::start::accepted;
use crate::host::pod::tail::Interrupted;
use crate::host::{Answer, notify_parent};
use crate::protocol::{ApprovalRequest, ErrorCode, Event, Refusal, State, Verdict, now_ms};
use crate::run::approval::answer_entry;
use crate::run::{ApprovalDecided, Interrupt, Start, note_decision};
use crate::trace::OrLog as _;

/// An approval request without a closing entry in the log.
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
        note_decision(&self.used_servers, &pending.approval, &decision.verdict);
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

    /// Refuses what cannot begin before a person decided the request.
    pub(super) fn refuse_if_undecided(&self) -> Result<(), Refusal> {
        match &self.pending {
            Some(PendingApproval { approval, verdict: None }) => {
                let text = format!(
                    "pod `{}` {}: answer it in the inbox",
                    approval.pod,
                    waits_for(approval)
                );
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
    /// refusal names the request. Gives `answer` back if no request is pending or a run is under way: then
    /// the caller goes on.
    pub(super) async fn resume_pending(&mut self, answer: Answer) -> Option<Answer> {
        if let Err(refusal) = self.refuse_if_undecided() {
            reply(answer, Err(Refusal::new(ErrorCode::NotPaused, refusal.message)));
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
        Ok(Event::done())
    }

    /// Withdraws the request while no run is under way. If a person decided it meanwhile, that decision
    /// is what the store and the log say; the call does not run either way.
    pub(super) async fn withdraw(&mut self, why: &str) -> Result<(), Refusal> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let withdrawn = Verdict::Withdrawn { why: why.into() };
        let id = pending.approval.id.clone();
        let verdict = self.shared.store.withdraw_approval(&id, withdrawn).await?;
        // Kept if the log cannot be written: the request cannot be decided any more.
        pending.verdict = Some(verdict.clone());
        // A run that was cut off is closed in the same write: a run that has ended waits for no approval.
        self.write_log(vec![answer_entry(&id, &verdict)]).await?;
        self.delete_rows(vec![id.clone()]).await;
        self.approval_closed(&ApprovalDecided { approval: id, verdict });
        Ok(())
    }

    /// The Pod is stopped: its request needs no decision any more.
    pub(super) async fn end_pending(&mut self) {
        // If the log cannot be written now, `close_stopped` closes the request when the Pod is back.
        self.withdraw("the pod was stopped").await.or_log("withdraw the request of a stopped pod");
        if let Some(PendingApproval { approval, verdict }) = self.pending.take() {
            let withdrawn = || Verdict::Withdrawn { why: "the pod was stopped".into() };
            let verdict = verdict.unwrap_or_else(withdrawn);
            self.shared.approval_decided(&approval.id, &verdict);
        }
    }

    /// Restores the request that is open at the end of the log, with a decision that came as the host
    /// ended. Rows for which the log has no open request are deleted. Fails if the store cannot be read:
    /// without its row a request that was decided would wait for a decision that is refused.
    pub(super) async fn restore_pending(
        &mut self,
        approval: Option<ApprovalRequest>,
    ) -> Result<(), Refusal> {
        let name = self.row.name.clone();
        let mut stored = self.shared.store.approvals_of(&name).await?;
        let approval = approval.filter(|approval| approval.pod.key() == name.key());
        let open = |id: &str| approval.as_ref().is_some_and(|approval| approval.id == id);
        let ids = stored.iter().map(|row| row.approval.id.clone());
        self.delete_rows(ids.filter(|id| !open(id)).collect()).await;
        let Some(approval) = approval else { return Ok(()) };
        stored.retain(|row| row.approval.id == approval.id);
        let row = stored.pop();
        if row.is_none() {
            // Without a row a decision is refused; the next start stores the row again.
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
        Ok(())
    }

    /// Closes the request that is open at the end of a stopped Pod's log: the stop withdrew it, and the
    /// host may have died before the log said so.
    pub(super) async fn close_stopped(
        &mut self,
        approval: Option<ApprovalRequest>,
    ) -> Result<(), Refusal> {
        let name = self.row.name.clone();
        let own = approval.filter(|approval| approval.pod.key() == name.key());
        self.pending = own.map(|approval| PendingApproval { approval, verdict: None });
        self.withdraw("the pod was stopped").await?;
        let stored = self.shared.store.approvals_of(&name).await?;
        self.delete_rows(stored.into_iter().map(|row| row.approval.id).collect()).await;
        Ok(())
    }

    /// Deletes the rows of requests that the log has closed. If this fails, the next start does it.
    async fn delete_rows(&self, ids: Vec<String>) {
        let ended = self.shared.store.end_approvals(ids).await;
        ended.or_log("end approval requests in the store");
    }
}

fn waits_for(approval: &ApprovalRequest) -> String {
    format!("waits for you: {}", approval.line())
}
