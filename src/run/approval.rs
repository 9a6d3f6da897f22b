//! Approval requests: the open call waits, the request and its decision are in the log before they
//! are published, and the call starts only after the decision.

use crate::protocol::entry::domain;
use crate::protocol::{ApprovalRequest, Entry, Item, Role, ScriptHash, Verdict, now_ms};
use crate::run::batch::Call;
use crate::run::policy::{ApprovalDraft, Decision, Grant};
use crate::run::{Accepted, Interrupt, Run, RunEvent, Stopped, interrupted};
use crate::text::SafeText;
use crate::tools::Lane;
use crate::trace::OrLog as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::path::PathBuf;

/// A decision, sent to the run that waits for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalDecided {
    /// The id of the approval request.
    pub approval: String,
    pub verdict: Verdict,
}

/// The most characters of what a Pod wrote last that its request carries.
const SAID: usize = 400;
/// The same of its task.
const TASK: usize = 120;

/// What the model wrote last since it was written to; `None` where it wrote nothing.
fn said_last<'i>(history: impl DoubleEndedIterator<Item = &'i Item>) -> Option<String> {
    let written = |item: &&Item| matches!(item, Item::Message { .. });
    let last = history.rev().find(written)?;
    let text = last.text().filter(|_| matches!(last, Item::Message { role: Role::Assistant, .. }));
    let text = text?.trim().to_owned();
    (!text.is_empty()).then(|| brief(&text, SAID))
}

fn brief(text: &str, characters: usize) -> String {
    SafeText::brief(text, characters).into_string()
}

/// How the grant that a call would get now differs from the grant in the approval request, as an
/// error; `None` if it does not.
fn difference(approval: &ApprovalRequest, grant: &Grant) -> Option<String> {
    let is_another = |path: &PathBuf| path.display().to_string() != approval.action;
    let has_needs = grant.needs.iter().all(|need| approval.needs().any(|n| n == need.word()));
    if grant.path.as_ref().is_some_and(is_another)
        || grant.lease.is_some() && grant.lease != approval.lease
        || !has_needs
    {
        return Some(
            "not started: its path resolves to another target than the approved one; call again"
                .into(),
        );
    }
    if approval.outside != grant.outside {
        return Some(
            "not started: its paths resolve to other targets than the approved ones; \
             call again"
                .into(),
        );
    }
    if approval.credentials != grant.credentials {
        return Some(
            "not started: its credentials are others than the approved ones, because the settings changed; \
             call again"
                .into(),
        );
    }
    other_scripts(&approval.scripts, &grant.scripts)
}

/// The reason why the scripts of a call are not those that a person saw.
fn other_scripts(seen: &[ScriptHash], now: &[ScriptHash]) -> Option<String> {
    if let Some(script) = now.iter().find(|script| !seen.contains(script)) {
        let was_seen = seen.iter().any(|seen| seen.path == script.path);
        let what = match was_seen {
            true if script.is_unheld() => "may now be exchanged by another Pod",
            true => "changed since it was approved",
            false => "was not approved",
        };
        return Some(of_script(script, what));
    }
    let gone = seen.iter().find(|script| !script.is_unheld() && !now.contains(script))?;
    Some(of_script(gone, "was approved and would not run now"))
}

fn of_script(script: &ScriptHash, what: &str) -> String {
    format!("not started: the script {} {what}; call again", script.path.display())
}

impl Run {
    /// Makes the request and waits for the decision. An interrupt withdraws the request, unless the
    /// host ends: then the next host shows it again. It is also withdrawn when `gone` resolves,
    /// with that reason, because a decision would have no effect.
    pub(crate) async fn request_approval(
        &mut self,
        call: &Call,
        draft: &ApprovalDraft,
        gone: BoxFuture<'_, String>,
    ) -> Result<Option<(Verdict, ApprovalRequest)>, Stopped> {
        let approval = self.make_request(call, draft).await?;
        let mut is_gone = None;
        let answer = tokio::select! {
            biased;
            answer = self.answer_to(&approval.id) => answer,
            why = gone => {
                is_gone = Some(why);
                None
            }
        };
        let verdict = match answer {
            Some(verdict) => verdict,
            None if is_gone.is_none() && *self.ports.interrupt.borrow() == Interrupt::Leave => {
                return Ok(None);
            }
            None => {
                let why = is_gone.unwrap_or_else(|| self.why_withdrawn().to_owned());
                let verdict = self.take_back(&approval.id, &why).await?;
                return Ok(Some((verdict, approval)));
            }
        };
        self.commit_decision(&approval.id, &verdict, Vec::new()).await?;
        Ok(Some((verdict, approval)))
    }

    /// Withdraws a request. If a person decided meanwhile, the decision is logged; the call does
    /// not run in either case.
    pub(crate) async fn take_back(&mut self, id: &str, why: &str) -> Result<Verdict, Stopped> {
        let withdrawn = Verdict::Withdrawn { why: why.into() };
        let verdict = self.setup.store.withdraw_approval(id, withdrawn.clone()).await?;
        self.commit_decision(id, &verdict, Vec::new()).await?;
        Ok(withdrawn)
    }

    pub(crate) fn why_withdrawn(&self) -> &'static str {
        match *self.ports.interrupt.borrow() {
            Interrupt::Cancel => "the run was cancelled",
            Interrupt::Stop => "the pod was stopped",
            Interrupt::Go | Interrupt::Pause | Interrupt::Leave => "the run was paused",
        }
    }

    /// Commits the request to the log, then to the store, then publishes it.
    pub(crate) async fn make_request(
        &mut self,
        call: &Call,
        draft: &ApprovalDraft,
    ) -> Result<ApprovalRequest, Stopped> {
        let mut entry = Entry::extension(domain::ASKED, json!({}));
        let id = entry.id.map(|id| id.to_string()).unwrap_or_default();
        let approval = ApprovalRequest {
            id,
            pod: self.setup.pod.clone(),
            client: None,
            agent: None,
            lineage: self.setup.permissions.relations.lineage(),
            cwd: Some(self.setup.tools.cwd.clone()),
            call_id: call.id.clone(),
            tool: call.name.clone(),
            action: draft.action.clone(),
            question: draft.question.clone(),
            arguments: draft.arguments.clone(),
            details: draft.details.clone(),
            because: draft.because.clone(),
            reason: draft.reason.clone(),
            said: said_last(self.session_state.state.history.iter().map(|kept| &kept.item)),
            task: self.session_state.tasks.at_work().map(|task| brief(task, TASK)),
            scope: (self.setup.scope)().allow,
            lease: draft.grant.lease.clone(),
            outside: draft.grant.outside.clone(),
            credentials: draft.grant.credentials.clone(),
            scripts: draft.grant.scripts.clone(),
            once_only: draft.once_only,
            answered_once: draft.answered_once,
            rule: draft.rule.clone(),
            since: now_ms(),
            later: None,
        };
        if let crate::protocol::Fact::Extension { payload, .. } = &mut entry.fact {
            *payload = serde_json::to_value(&approval).unwrap_or_default();
        }
        self.commit(vec![entry]).await?;
        crate::crash_point!("ask-committed");
        self.setup.store.add_approval(approval.clone()).await?;
        crate::crash_point!("ask-stored");
        self.send(RunEvent::ApprovalRequested(Box::new(approval.clone()))).await;
        Ok(approval)
    }

    /// The decision on this request; `None` when the run is interrupted first.
    pub(crate) async fn answer_to(&mut self, id: &str) -> Option<Verdict> {
        let mut interrupt = self.ports.interrupt.clone();
        loop {
            tokio::select! {
                biased;
                () = interrupted(&mut interrupt) => return None,
                answer = self.ports.answers.recv() => match answer {
                    Some(ApprovalDecided { approval, verdict }) if approval == id => return Some(verdict),
                    // A decision that came too late for its own request.
                    Some(_) => {}
                    None => {
                        // The actor is gone; the run halts without a reader of its events.
                        interrupted(&mut interrupt).await;
                        return None;
                    }
                },
            }
        }
    }

    /// Commits the decision to the log, removes it from the store and publishes it. `before` is
    /// committed with it.
    pub(crate) async fn commit_decision(
        &mut self,
        id: &str,
        verdict: &Verdict,
        before: Vec<Entry>,
    ) -> Result<(), Stopped> {
        let mut entries = before;
        entries.push(answer_entry(id, verdict));
        self.commit(entries).await?;
        crate::crash_point!("answer-committed");
        self.forget(id, verdict).await;
        Ok(())
    }

    async fn forget(&mut self, id: &str, verdict: &Verdict) {
        // The decision is in the log: if this fails, the next start removes the row.
        self.setup
            .store
            .end_approvals(vec![id.to_owned()])
            .await
            .or_log("end approval requests in the store");
        let answered = ApprovalDecided { approval: id.to_owned(), verdict: verdict.clone() };
        self.send(RunEvent::ApprovalDecided(answered)).await;
    }

    /// Withdraws the open request of an interrupted run when the run continues without a decision.
    /// A request that was copied with another Pod's history belongs to that Pod.
    pub(crate) async fn withdraw(&mut self) -> Result<(), Stopped> {
        let own = |approval: &&ApprovalRequest| approval.pod.key() == self.setup.pod.key();
        let Some(approval) = self.session_state.state.open_approval().filter(own).cloned() else {
            return Ok(());
        };
        self.take_back(&approval.id, "the run went on without a decision").await.map(drop)
    }

    /// Continues an earlier run at its open request: decides the call that waited, then runs the
    /// calls after it. None of them has started.
    pub(crate) async fn go_on_with(
        &mut self,
        ApprovalDecided { approval: id, verdict }: ApprovalDecided,
        accepted: Option<Accepted>,
    ) -> Result<(), Stopped> {
        let resumed = Entry::extension(domain::RESUMED, json!({}));
        let Some(approval) =
            self.session_state.state.open_approval().filter(|approval| approval.id == id).cloned()
        else {
            // The log contains the decision already, so the call is not run again.
            self.forget(&id, &verdict).await;
            self.close_open_calls(false).await?;
            self.commit(vec![resumed]).await?;
            self.goes_on(accepted);
            return Ok(());
        };
        self.commit_decision(&approval.id, &verdict, vec![resumed]).await?;
        self.goes_on(accepted);
        if approval.question.as_ref().is_some_and(|question| question.server.is_some()) {
            return self.go_on_without_server(&approval, &verdict).await;
        }
        let mut calls = self.open_calls();
        let behind = calls.iter().position(|call| call.id == approval.call_id).map(|at| at + 1);
        let mut later = calls.split_off(behind.unwrap_or(calls.len()));
        let Some(asked) = calls.pop() else { return self.call_tools(&later).await };
        // What looks starts behind the commands of its reply.
        let (looks, started): (Vec<Call>, Vec<Call>) =
            calls.into_iter().partition(|call| self.offered.lane(&call.name) == Some(Lane::Look));
        for call in &started {
            self.close_call(call).await?;
        }
        later.splice(..0, looks);
        self.acted = true;
        self.answered(&asked, &verdict, &approval).await?;
        self.end_if_interrupted(&later).await?;
        self.call_tools(&later).await
    }

    /// The calls of the last reply that have no result, in call order.
    pub(crate) fn open_calls(&self) -> Vec<Call> {
        let open = &self.session_state.state.open_calls;
        let is_open = |id: &str| open.iter().any(|(open, _)| open == id);
        let calls = self.session_state.state.history.iter().filter_map(|kept| match &kept.item {
            Item::ToolCall { call_id, name, arguments } if is_open(call_id) => {
                Some(Call { id: call_id.clone(), name: name.clone(), arguments: arguments.clone() })
            }
            _ => None,
        });
        calls.collect()
    }

    /// Decides about an approved call again before it starts, with the grant that the request
    /// showed.
    pub(crate) async fn granted(&self, call: &Call, approval: &ApprovalRequest) -> Decision {
        let decision = self.decide(std::slice::from_ref(call)).await.pop();
        let grant = match decision {
            Some(Decision::NeedsApproval(draft))
                if call.name == "Write" && draft.details != approval.details =>
            {
                let why =
                    "not started: the file changed since it was approved; read it and call again";
                return Decision::Deny(why.into());
            }
            Some(Decision::NeedsApproval(draft)) => draft.grant,
            // A rule allows the call now. The rule may cover only the command line, so the approved
            // hashes are added.
            Some(Decision::Allow(grant)) if grant.scripts.is_empty() => {
                Grant { scripts: approval.scripts.clone(), ..grant }
            }
            Some(Decision::Allow(grant)) => grant,
            Some(Decision::Deny(why)) => return Decision::Deny(why),
            None => {
                return Decision::Deny("not started: it could not be looked at again".into());
            }
        };
        match difference(approval, &grant) {
            Some(why) => Decision::Deny(why),
            None => Decision::Allow(grant),
        }
    }
}

/// The entry of a decision.
pub fn answer_entry(id: &str, verdict: &Verdict) -> Entry {
    Entry::extension(domain::ANSWERED, json!({ "ask": id, "verdict": verdict }))
}

/// The result, for the model, of a question that the person does not answer.
pub(crate) fn unanswered(reason: &str) -> String {
    match reason.trim() {
        "" => "no answer: the person declined".into(),
        reason => format!("no answer: {reason}"),
    }
}

/// The result, for the model, of a call that a person denied.
pub(crate) fn denial(reason: &str) -> String {
    match reason.trim() {
        "" => "denied: a person said no".into(),
        reason => format!("denied: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_changed_was_not_shown_or_is_gone_is_said_to_be_so() {
        let script =
            |path: &str, sha256: &str| ScriptHash { path: path.into(), sha256: sha256.into() };
        let seen = [script("/w/a", "1"), script("/w/b", "2")];
        let why = |now: &[ScriptHash]| other_scripts(&seen, now);
        assert_eq!(why(&seen), None);
        let said = |what: &str| Some(format!("not started: the script {what}; call again"));
        let changed = why(&[script("/w/a", "1"), script("/w/b", "3")]);
        assert_eq!(changed, said("/w/b changed since it was approved"));
        let new = why(&[script("/w/a", "1"), script("/w/b", "2"), script("/w/c", "3")]);
        assert_eq!(new, said("/w/c was not approved"));
        assert_eq!(why(&[script("/w/a", "1")]), said("/w/b was approved and would not run now"));
        let unheld = [script("/w/a", "1"), ScriptHash::unheld("/w/a".into())];
        assert_eq!(other_scripts(&unheld, &unheld[..1]), None, "the other Pod stopped");
        let other = other_scripts(&unheld[..1], &unheld);
        assert_eq!(other, said("/w/a may now be exchanged by another Pod"));
    }
}
