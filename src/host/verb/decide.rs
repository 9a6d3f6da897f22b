//! Decide: a person's decision on an approval request. The first one counts; a rule that it makes
//! decides what else it covers.

use crate::config::policy::{matches, names_credentials};
use crate::host::pod::Fact;
use crate::host::rules;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Action, ApprovalRequest, Event, Pattern, PodName, Refusal, Verdict};
use crate::run::ApprovalDecided;
use crate::run::policy::subject_of;
use crate::store::{Decided, StoreError, StoredRule};

pub(crate) struct Decide {
    pub(crate) id: String,
    pub(crate) verdict: Verdict,
}

impl Verb for Decide {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let Self { id, verdict } = self;
        let gone = || Refusal::invalid("that request was decided or withdrawn already");
        let approval = cx
            .shared
            .approvals()
            .into_iter()
            .find(|approval| approval.id == id)
            .ok_or_else(gone)?;
        if let Some(client) = &approval.client {
            cx.shared.decide_for_client(client, &id, verdict).await?;
            return Ok(Event::done());
        }
        if let Some(agent) = &approval.agent {
            cx.shared.decide_for_agent(&approval, agent, verdict).await?;
            return Ok(Event::done());
        }
        let rule = match (&verdict, &approval.question) {
            (Verdict::Answer { values }, Some(question)) => {
                question.check(values).map_err(Refusal::invalid)?;
                None
            }
            (Verdict::Answer { .. }, None) => {
                return Err(Refusal::invalid("this is no question: allow it or deny it"));
            }
            (Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. }, Some(_)) => {
                return Err(Refusal::invalid("this is a question: answer it or deny it"));
            }
            (Verdict::Withdrawn { .. }, _) => {
                return Err(Refusal::invalid("only the pod itself withdraws its approval request"));
            }
            (Verdict::Pod { .. } | Verdict::Tree { .. }, None) if approval.is_once_only() => {
                return Err(Refusal::invalid(
                    "no rule is written: the same command may run something else the next time, so it is allowed once only",
                ));
            }
            (Verdict::Pod { rule }, None) => {
                Some(written(&approval, rule.as_ref(), approval.pod.clone(), false)?)
            }
            (Verdict::Tree { rule, of }, None) => {
                let root = root_of(&cx, &approval, of.as_ref())?;
                Some(written(&approval, rule.as_ref(), root, true)?)
            }
            (Verdict::Once, None) | (Verdict::Deny { .. }, _) => None,
        };
        commit_decision(&cx, &approval, verdict, rule.clone()).await?;
        let Some(rule) = rule else { return Ok(Event::done()) };
        for other in cx.shared.approvals().into_iter().filter(|other| covers(&rule, other)) {
            // Each is a request of its own: one whose decision is refused goes on waiting.
            let _ = commit_decision(&cx, &other, Verdict::Once, None).await;
        }
        Ok(Event::done())
    }
}

/// Commits the decision with its rule and the scope that it gives as one change, which can be
/// refused; then tells the Pod.
async fn commit_decision(
    cx: &Cx,
    approval: &ApprovalRequest,
    verdict: Verdict,
    rule: Option<StoredRule>,
) -> Result<(), Refusal> {
    let allows = matches!(verdict, Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. });
    let decided = Decided { approval: approval.id.clone(), verdict: verdict.clone(), rule };
    if let Some(lease) = approval.lease.clone().filter(|_| allows) {
        let (supervisor, pod) = (cx.supervisor.clone(), approval.pod.clone());
        match verdict {
            Verdict::Once => rules::allow_once(supervisor, pod, lease, decided).await?,
            _ => rules::extend(supervisor, pod, lease, Some(decided)).await?,
        }
    } else {
        decide(cx, decided).await?;
    }
    crate::crash_point!("answer-stored");
    if let Some(handle) = cx.shared.pod(&approval.pod) {
        let decision = ApprovalDecided { approval: approval.id.clone(), verdict };
        handle.tell(Fact::ApprovalDecided(decision)).await;
    }
    Ok(())
}

async fn decide(cx: &Cx, decided: Decided) -> Result<(), Refusal> {
    match cx.shared.store.decide_approval(decided).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refusal::invalid(StoreError::NotAsked.to_string())),
        Err(error @ StoreError::NoRule(_)) => Err(Refusal::invalid(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// The Pod for whose tree a decision counts: the one that asks, or the one above it that the person named.
fn root_of(
    cx: &Cx,
    approval: &ApprovalRequest,
    named: Option<&PodName>,
) -> Result<PodName, Refusal> {
    let Some(named) = named.filter(|named| named.key() != approval.pod.key()) else {
        return Ok(approval.pod.clone());
    };
    let above = rules::lineage(&cx.shared, &approval.pod);
    above.iter().find(|above| above.key() == named.key()).cloned().ok_or_else(|| {
        let names: Vec<&str> = above.iter().map(PodName::as_str).collect();
        let are = match names.len() {
            0 => "no pod is".to_owned(),
            1 => format!("only {} is", names[0]),
            _ => format!("{} are", names.join(", ")),
        };
        Refusal::invalid(format!("`{named}` is not above `{}`: {are}", approval.pod))
    })
}

/// The rule that a decision writes: the one that the request offers, or as the person edited it.
fn written(
    approval: &ApprovalRequest,
    edited: Option<&Pattern>,
    pod: PodName,
    tree: bool,
) -> Result<StoredRule, Refusal> {
    let pattern = edited.unwrap_or(&approval.rule).clone();
    if tree && names_credentials(&pattern) {
        return Err(Refusal::invalid(
            "a credential is given for one call or by a rule of one Pod, and not to everything below it: allow it once or \
             for the Pod",
        ));
    }
    let rule = StoredRule { id: 0, pod, tree, pattern, action: Action::Allow };
    if edited.is_some() && !covers(&rule, approval) {
        let text =
            format!("the rule `{}` does not allow the call: {}", rule.pattern, approval.line());
        return Err(Refusal::invalid(text));
    }
    Ok(rule)
}

/// Whether a rule that was just made lets the call of this request pass.
fn covers(rule: &StoredRule, approval: &ApprovalRequest) -> bool {
    let own = approval.is_of_pod() && approval.pod.key() == rule.pod.key();
    let below = rule.tree && approval.lineage.iter().any(|above| above.key() == rule.pod.key());
    let is_question = approval.question.is_some();
    !is_question && (own || below) && matches(&rule.pattern, Action::Allow, &subject_of(approval))
}
