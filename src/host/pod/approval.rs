//! A Pod that waits for a person: while its turn runs, and after a restart at rest.

use crate::host::pod::Pod;
use crate::host::pod::calls::{done, reply};
use crate::host::pod::runs::accepted;
use crate::host::{Answer, notify_parent};
use crate::protocol::{ApprovalRequest, Entry, ErrorCode, Event, Refusal, State, Verdict};
use crate::run::approval::answer_entry;
use crate::run::{ApprovalDecided, Interrupt, Start};
use crate::session::Journal;
use crate::trace::OrLog as _;

/// The question that the Pod's turn stands at.
pub(crate) struct Waiting {
    pub(super) approval: ApprovalRequest,
    /// Set once a person answered and until the log says so.
    pub(super) verdict: Option<Verdict>,
}

impl Pod {
    /// The run asks a person.
    pub(super) async fn asked(&mut self, approval: ApprovalRequest) {
        // Published first: who hears that the Pod needs somebody can know for what.
        self.shared.asked(&approval);
        if let Some(parent) = self.row.parent.clone() {
            notify_parent::asked(&self.shared, &parent, &approval).await;
        }
        let why = waits_for(&approval);
        self.question = Some(Waiting { approval, verdict: None });
        self.enter(State::NeedsYou, Some(why));
    }

    /// The log holds the answer, or that nobody has to answer any more.
    pub(super) fn closed(&mut self, answered: &ApprovalDecided) {
        let own = |waiting: &Waiting| waiting.approval.id == answered.approval;
        if self.question.as_ref().is_some_and(own) {
            self.question = None;
            if self.run.is_some() {
                self.enter(State::Running, None);
            }
        }
        self.shared.answered(&answered.approval, &answered.verdict);
    }

    /// A person answered, and the store holds it.
    pub(super) async fn answered(&mut self, answered: ApprovalDecided) {
        let live = self.run.is_some() || self.is_live();
        let Some(waiting) = &mut self.question else { return };
        if waiting.approval.id != answered.approval || waiting.verdict.is_some() || !live {
            return;
        }
        waiting.verdict = Some(answered.verdict.clone());
        if let Some(run) = &self.run {
            // There is room: one question is asked at a time, and answered once.
            let _ = run.answers.try_send(answered.clone());
            self.enter(State::Running, None);
        } else {
            self.start(Start::ApprovalDecided { answered: answered.clone(), accepted: None }).await;
        }
        self.shared.answered(&answered.approval, &answered.verdict);
    }

    /// Whether the turn stands until a person answers.
    pub(super) fn waits(&self) -> bool {
        self.question.as_ref().is_some_and(|waiting| waiting.verdict.is_none())
    }

    /// The answer that a run has not taken yet.
    pub(super) fn given_answer(&self) -> Option<ApprovalDecided> {
        let Waiting { approval, verdict } = self.question.as_ref()?;
        Some(ApprovalDecided { approval: approval.id.clone(), verdict: verdict.clone()? })
    }

    /// What is said to who wants the Pod to do something else meanwhile.
    pub(super) fn must_not_wait(&self) -> Result<(), Refusal> {
        match &self.question {
            Some(Waiting { approval, verdict: None }) => {
                let text =
                    format!("pod `{}` {}; answer it first", approval.pod, waits_for(approval));
                Err(Refusal::new(ErrorCode::AlreadyRunning, text))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Why the Pod rests when its run has left a question behind.
    pub(super) fn left_waiting(&self) -> Option<(State, Option<String>)> {
        let Waiting { approval, verdict } = self.question.as_ref()?;
        Some(match verdict {
            None => (State::NeedsYou, Some(waits_for(approval))),
            Some(_) => {
                let why = format!("{} is answered; :resume goes on", approval.line());
                (State::Paused, Some(why))
            }
        })
    }

    /// `:resume` where a question was asked: with its answer the turn goes on, without one it is
    /// said what it waits for. Gives the asker back where there is no question.
    pub(super) async fn resume_answered(&mut self, answer: Answer) -> Option<Answer> {
        let Some(Waiting { approval, verdict }) = &self.question else { return Some(answer) };
        if verdict.is_none() {
            let text =
                format!("pod `{}` {}: answer it in the inbox", approval.pod, waits_for(approval));
            reply(answer, Err(Refusal::new(ErrorCode::NotPaused, text)));
            return None;
        }
        let Some(answered) = self.given_answer().filter(|_| self.run.is_none()) else {
            return Some(answer);
        };
        let accepted = Some(accepted(answer));
        self.start(Start::ApprovalDecided { answered, accepted }).await;
        None
    }

    /// Pausing or cancelling a turn that waits without running takes its question back.
    pub(super) async fn interrupt_waiting(&mut self, how: Interrupt) -> Result<Event, Refusal> {
        let why =
            if how == Interrupt::Cancel { "the turn was cancelled" } else { "the turn was paused" };
        self.withdraw(why).await?;
        if how == Interrupt::Cancel {
            return self.drop_turn().await;
        }
        self.enter(State::Paused, Some("paused; :resume goes on".into()));
        Ok(done())
    }

    /// Takes the question back while no run is under way; the log says so first.
    pub(super) async fn withdraw(&mut self, why: &str) -> Result<(), Refusal> {
        let (Some(waiting), Some(segment)) = (&self.question, self.row.segment) else {
            return Ok(());
        };
        let withdrawn = Verdict::Withdrawn { why: why.into() };
        let id = waiting.approval.id.clone();
        // The log says what a person answered meanwhile; the call does not run either way.
        let verdict = self.shared.store.withdraw_approval(&id, withdrawn).await;
        let verdict = verdict.map_err(|e| Refusal::internal(e.to_string()))?;
        self.close_log().await;
        let internal = |e: crate::session::LogError| Refusal::internal(e.to_string());
        // In one write with what closes the run: a turn that is closed asks nothing.
        let entries: Vec<Entry> = vec![answer_entry(&id, &verdict)];
        let opened = Journal::open_with(&self.files, segment, entries.clone()).await;
        let (journal, opened) = opened.map_err(internal)?;
        journal.close().await;
        self.end = Some(opened.end);
        self.publisher.committed(&entries);
        // The log has it: where this fails the row is dropped at the next start.
        self.shared
            .store
            .end_approvals(vec![id.clone()])
            .await
            .or_log("end approval requests in the store");
        self.closed(&ApprovalDecided { approval: id, verdict });
        Ok(())
    }

    /// The Pod is stopped: nobody has to answer it.
    pub(super) async fn end_questions(&mut self) {
        // Where the log cannot say it, it is said when the log is opened for the next run.
        let _ = self.withdraw("the pod was stopped").await;
        if let Some(Waiting { approval, .. }) = self.question.take() {
            let verdict = Verdict::Withdrawn { why: "the pod was stopped".into() };
            self.shared.answered(&approval.id, &verdict);
        }
    }

    /// Brings back the question that the end of a log stands at, with an answer that came as the
    /// host ended; rows that no log asks any more are dropped.
    pub(super) async fn recall(&mut self, approval: Option<ApprovalRequest>) {
        let name = &self.row.name;
        let stored = self.shared.store.approvals_of(name).await.unwrap_or_default();
        let approval = approval.filter(|approval| approval.pod.key() == name.key());
        let stale = |id: &String| approval.as_ref().is_none_or(|approval| approval.id != *id);
        let ids: Vec<String> =
            stored.iter().map(|row| row.approval.id.clone()).filter(stale).collect();
        // Rows that stay are looked at again at the next start.
        self.shared.store.end_approvals(ids).await.or_log("end approval requests in the store");
        let Some(approval) = approval else { return };
        let row = stored.into_iter().find(|row| row.approval.id == approval.id);
        let verdict = row.as_ref().and_then(|row| row.verdict.clone());
        if row.is_none() {
            // An answer finds no row to write to and is refused; asking is tried again at a start.
            self.shared
                .store
                .add_approval(approval.clone())
                .await
                .or_log("store an approval request");
        }
        if verdict.is_none() {
            self.shared.asked(&approval);
            if let Some(parent) = &self.row.parent {
                notify_parent::still_asked(&self.shared, parent, &approval).await;
            }
        }
        self.question = Some(Waiting { approval, verdict });
    }
}

fn waits_for(approval: &ApprovalRequest) -> String {
    format!("waits for you: {}", approval.line())
}
