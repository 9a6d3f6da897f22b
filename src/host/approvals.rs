//! What waits for a person: the questions of all Pods, the answers to them, and the rules that
//! answers left behind.

use crate::config::policy::matches;
use crate::host::pod::Handle;
use crate::host::{Shared, rules, supervisor};
use crate::protocol::{
    Action, ApprovalRequest, ErrorCode, Event, Pattern, PodInfo, PodStatus, PolicyRule, Refusal,
    State, Verdict,
};
use crate::run::ApprovalDecided;
use crate::run::policy::{in_force, subject_of};
use crate::store::{Decided, StoreError, StoredRule};
use std::sync::Arc;
use tokio::sync::mpsc;

/// What the program does where no rule and no answer speaks, as it is listed.
const DEFAULTS: [(&str, &str, Action); 9] = [
    ("Bash+network", "*", Action::Ask),
    ("Bash+git", "*", Action::Ask),
    ("Bash+outside", "*", Action::Ask),
    ("Read, Glob, Grep", "(outside the scope)", Action::Ask),
    ("Write, Edit", "(outside the scope)", Action::Ask),
    ("Write+git, Edit+git", "(hooks and configuration of git)", Action::Ask),
    ("Write+outside, Edit+outside", "(directories on PATH)", Action::Ask),
    ("RestorePod", "(a peer)", Action::Ask),
    ("*", "*", Action::Allow),
];

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

/// A person's answer. The first one counts; a rule it makes answers what else it covers.
pub(crate) async fn answer(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    id: &str,
    verdict: Verdict,
) -> Result<Event, Refusal> {
    let gone = || Refusal::invalid("that question was answered or withdrawn already");
    let ask = shared.asks().into_iter().find(|ask| ask.id == id).ok_or_else(gone)?;
    let rule = match &verdict {
        Verdict::Withdrawn { .. } => {
            return Err(Refusal::invalid("only the pod itself withdraws its question"));
        }
        Verdict::Pod { rule } => Some(written(&ask, rule.as_ref(), false)?),
        Verdict::Tree { rule } => Some(written(&ask, rule.as_ref(), true)?),
        Verdict::Once | Verdict::Deny { .. } => None,
    };
    settle(shared, orders, &ask, verdict, rule.clone()).await?;
    let Some(rule) = rule else { return Ok(done()) };
    for other in shared.asks().into_iter().filter(|other| covers(&rule, other)) {
        // Each is a question of its own: where its answer is refused it goes on waiting.
        let _ = settle(shared, orders, &other, Verdict::Once, None).await;
    }
    Ok(done())
}

/// The answer with its rule and the scope it gives, which can be refused, as one fact; then the Pod.
async fn settle(
    shared: &Shared,
    orders: &mpsc::Sender<supervisor::Order>,
    ask: &ApprovalRequest,
    verdict: Verdict,
    rule: Option<StoredRule>,
) -> Result<(), Refusal> {
    let allows = matches!(verdict, Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. });
    let decided = Decided { ask: ask.id.clone(), verdict: verdict.clone(), rule };
    if let Some(lease) = ask.lease.clone().filter(|_| allows) {
        rules::extend(orders.clone(), ask.pod.clone(), lease, Some(decided)).await?;
    } else if !shared.store.answer_ask(decided).await.map_err(internal)? {
        return Err(Refusal::invalid(StoreError::NotAsked.to_string()));
    }
    crate::crash_point!("answer-stored");
    if let Some(handle) = shared.pod(&ask.pod) {
        handle.answered(ApprovalDecided { ask: ask.id.clone(), verdict }).await;
    }
    Ok(())
}

/// The rule that an answer writes: what the question offers, or what the person made of it.
fn written(
    ask: &ApprovalRequest,
    edited: Option<&Pattern>,
    tree: bool,
) -> Result<StoredRule, Refusal> {
    let pattern = edited.unwrap_or(&ask.rule).clone();
    let rule = StoredRule { id: 0, pod: ask.pod.clone(), tree, pattern, action: Action::Allow };
    if edited.is_some() && !covers(&rule, ask) {
        let text =
            format!("the rule `{}` does not allow what is asked: {}", rule.pattern, ask.line());
        return Err(Refusal::invalid(text));
    }
    Ok(rule)
}

/// Whether a rule that was just made lets this question's call pass.
fn covers(rule: &StoredRule, ask: &ApprovalRequest) -> bool {
    let own = ask.pod.key() == rule.pod.key();
    let below = rule.tree && ask.lineage.iter().any(|above| above.key() == rule.pod.key());
    (own || below) && matches(&rule.pattern, Action::Allow, &subject_of(ask))
}

/// Every rule in force, in the order in which they count; those that bind one Pod, if one is named.
pub(crate) async fn list(shared: &Shared, pod: Option<&Handle>) -> Result<Event, Refusal> {
    let mut stored = shared.store.policy().await.map_err(internal)?;
    let mut all = vec![listed("*", "(secrets of this machine)", Action::Deny, "the program")];
    let user = &shared.settings.permissions;
    let file = shared.dirs.config.join("config.toml").display().to_string();
    all.extend(user.rule.iter().map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
    if let Some(handle) = pod {
        let root = handle.info.borrow().workspace.clone();
        let says = rules::workspace(root.clone()).await;
        let file = root.join(".yoi/config.toml").display().to_string();
        all.extend(says.rules.iter().map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
        stored = in_force(&handle.name, &rules::lineage(shared, &handle.name), stored);
    }
    all.extend(stored.into_iter().map(answer_listed));
    if let Some(action) = user.default {
        all.push(listed("*", "*", action, &format!("`default` in {file}")));
    }
    let defaults = DEFAULTS.iter();
    all.extend(defaults.map(|(tool, text, action)| listed(tool, text, *action, "the program")));
    Ok(Event::Policy { rules: all })
}

fn listed(tool: &str, pattern: &str, action: Action, source: &str) -> PolicyRule {
    let pattern = Pattern { tool: tool.into(), pattern: pattern.into() };
    PolicyRule { id: None, pod: None, tree: false, pattern, action, source: source.into() }
}

fn answer_listed(rule: StoredRule) -> PolicyRule {
    let source = if rule.tree {
        format!("your answer for {} and everything below it", rule.pod)
    } else {
        format!("your answer for {}", rule.pod)
    };
    let StoredRule { id, pod, tree, pattern, action } = rule;
    PolicyRule { id: Some(id), pod: Some(pod), tree, pattern, action, source }
}

/// Ends a rule that an answer made.
pub(crate) async fn revoke(shared: &Shared, id: u64) -> Result<Event, Refusal> {
    if shared.store.revoke(id).await.map_err(internal)? {
        return Ok(done());
    }
    let text = format!("there is no rule {id} that an answer made; :policy lists them");
    Err(Refusal::new(ErrorCode::InvalidRequest, text))
}

fn internal(error: StoreError) -> Refusal {
    Refusal::internal(error.to_string())
}

fn done() -> Event {
    Event::Accepted { entry: None, queued: None }
}
