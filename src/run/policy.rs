//! The decision of policy on a call before it starts: it passes, it waits for an approval, or it is
//! denied.

use crate::config::policy::{Rules, Subject, matches};
use crate::config::settings::WhenBusy;
use crate::protocol::{
    Action, Credential, ErrorCode, OutsidePath, Pattern, PodName, QUESTION_TOOL, Question, Refusal,
    ScriptHash,
};
use crate::run::batch::Call;
use crate::run::details::replacement;
use crate::run::policy::claim::{Claim, claim};
use crate::run::policy::judge::{judge, within_limit};
use crate::run::policy::look::{Looked, Seen, look};
use crate::run::{Begun, Run};
use crate::sandbox::Need;
use crate::scope::{Permission, Rule};
use crate::store::StoredRule;
use crate::tools::{self, Lane};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

mod claim;
mod judge;
mod look;

pub use claim::subject_of;

/// The most bytes of a call's details, such as the text that `Write` writes.
pub(crate) const MAX_DETAILS: usize = 32 * 1024;

/// A question about an MCP server: about its definition, or about the list of its tools.
pub(crate) struct ServerQuestion {
    /// The tool name of its rules.
    pub(crate) tool: &'static str,
    pub(crate) server: String,
    /// The hash of the content that the person decides about.
    pub(crate) sha256: String,
    pub(crate) because: String,
    pub(crate) details: String,
}

/// The policy that binds a run.
#[derive(Clone)]
pub struct Policy {
    pub rules: Arc<Rules>,
    pub relations: Arc<dyn FamilyView>,
    pub walls: Walls,
}

/// Whether the sandbox confines commands on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walls {
    Hold,
    /// Every command waits for an approval.
    Missing,
}

/// The information that only the host has: the family, and the leases.
pub trait FamilyView: Send + Sync {
    /// The Pod's ancestors, the root first.
    fn lineage(&self) -> Vec<PodName>;
    /// Whether a Pod of this name is a peer of this one.
    fn is_peer(&self, name: &str) -> bool;
    /// Why a call of a Pod tool would be refused by the host now; `None` for every other tool.
    fn unreachable(&self, tool: &str, arguments: &str) -> Option<String>;
    /// Adds a rule to the Pod's lease. When it resolves, the run's scope has it.
    fn extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>>;
    /// Whether [`FamilyView::extend`] would add this rule now; changes nothing.
    fn could_extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>>;
    /// The Pods that write at one of these paths where this one wants to.
    fn writers_at(&self, paths: Vec<PathBuf>) -> BoxFuture<'static, Result<Vec<String>, Refusal>>;
    /// Begins the Pod's turn to write, or says which Pods it has to wait for.
    fn begin_turn(&self, when_busy: WhenBusy) -> BoxFuture<'static, Result<Begun, Refusal>>;
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Decision {
    Allow(Grant),
    NeedsApproval(Box<ApprovalDraft>),
    /// With the reason for the model.
    Deny(String),
}

/// The access of an approved call beyond the scope.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Grant {
    /// The canonical path of a file tool's call, which acts on no other.
    pub(crate) path: Option<PathBuf>,
    pub(crate) needs: Vec<Need>,
    pub(crate) lease: Option<Rule>,
    pub(crate) outside: Vec<OutsidePath>,
    pub(crate) credentials: Vec<Credential>,
    /// The scripts that were approved with their content; the call runs alone.
    pub(crate) scripts: Vec<ScriptHash>,
    /// Whether a rule allows the call; else the walls that bind it are enough.
    pub(crate) by_rule: bool,
}

impl Grant {
    /// This grant without the hashes of scripts: the scripts may have any content.
    fn of_any_content(self) -> Self {
        Self { scripts: Vec::new(), ..self }
    }
}

/// An approval request that is not stored yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ApprovalDraft {
    pub(crate) action: String,
    pub(crate) question: Option<Question>,
    /// The arguments of a call of an external tool.
    pub(crate) arguments: Option<Value>,
    pub(crate) details: Option<String>,
    pub(crate) because: String,
    pub(crate) reason: Option<String>,
    pub(crate) rule: Pattern,
    pub(crate) once_only: bool,
    pub(crate) answered_once: bool,
    pub(crate) grant: Grant,
}

impl ApprovalDraft {
    /// A question that a call asks.
    pub(crate) fn question(call: &Call, text: String, question: Question) -> Self {
        Self {
            rule: Pattern { tool: call.name.clone(), pattern: "*".into() },
            action: text,
            question: Some(question),
            arguments: None,
            details: None,
            because: "your answer".into(),
            reason: None,
            once_only: true,
            answered_once: false,
            grant: Grant::default(),
        }
    }
}

impl Run {
    /// Decides about each call, none of which has started.
    pub(crate) async fn decide(&self, calls: &[Call]) -> Vec<Decision> {
        let ctx = Arc::new(self.context());
        let see = move |call: &Call| Seen::of(call, &ctx);
        let looked = look(calls, &self.setup.path_threads, see).await;
        let answers = self.answers().await;
        let policy = &self.setup.permissions;
        let jobs = self.setup.tools.jobs.named();
        let decide = |(call, looked): (&Call, Looked)| {
            let seen = match looked {
                Ok(seen) => seen,
                Err(why) => return Decision::Deny(why),
            };
            if let Some(why) = seen.closed() {
                return Decision::Deny(why.to_owned());
            }
            let fails = seen.fails();
            let reason = self.offered.approval_reason(&call.name);
            let claim = claim(call, seen, policy, reason).beside(&jobs);
            match (judge(&policy.rules, &answers, claim), fails) {
                (Decision::NeedsApproval(_), Some(why)) => Decision::Deny(why),
                (decision, _) if call.name == QUESTION_TOOL => asked(call, decision),
                (decision, _) => decision,
            }
        };
        let decided: Vec<Decision> = calls.iter().zip(looked).map(decide).collect();
        let possible = calls.iter().zip(decided).map(|(call, decision)| async {
            let decision = within_limit(self.with_change(call, decision).await);
            match self.impossible(call, &decision).await {
                Some(why) => Decision::Deny(why),
                None => decision,
            }
        });
        futures_util::future::join_all(possible).await
    }

    /// The request of a `Write` over a file with the lines that go and come, as the file is now.
    async fn with_change(&self, call: &Call, decision: Decision) -> Decision {
        let Decision::NeedsApproval(mut draft) = decision else { return decision };
        if let (true, Some(path)) = (call.name == "Write", draft.grant.path.clone()) {
            let arguments = call.arguments.clone();
            let change = self.setup.path_threads.run(move || {
                let arguments: Value = serde_json::from_str(&arguments).ok()?;
                replacement(&path, arguments.get("content")?.as_str()?)
            });
            match change.await {
                Ok(change) => draft.details = change.or(draft.details),
                Err(why) => return Decision::Deny(format!("not started: {why}")),
            }
        }
        Decision::NeedsApproval(draft)
    }

    /// Decides about a server. A permanent decision covers exactly the shown definition, because
    /// its rule contains the hash.
    pub(crate) async fn decide_about(&self, question: ServerQuestion) -> Decision {
        let answers = self.answers().await;
        let ServerQuestion { tool, server, sha256, because, details } = question;
        let scripts = vec![ScriptHash { path: PathBuf::from(&server), sha256 }];
        let subject = Subject {
            tool: tool.to_owned(),
            scripts: scripts.clone(),
            texts: vec![server],
            ..Subject::default()
        };
        let grant = Grant { scripts, ..Grant::default() };
        let claim = Claim {
            subject,
            grant,
            because: Some(because),
            details: Some(details),
            ..Claim::default()
        };
        within_limit(judge(&self.setup.permissions.rules, &answers, claim))
    }

    /// Why a call that needs an approval cannot succeed even if it is approved. The sentence ends
    /// with what the model can do instead.
    async fn impossible(&self, call: &Call, decision: &Decision) -> Option<String> {
        let Decision::NeedsApproval(draft) = decision else { return None };
        if let Err(why) = self.offered.check(&call.name, &call.arguments) {
            return Some(why);
        }
        let Grant { needs, lease, .. } = &draft.grant;
        if call.name == "Bash"
            && let Some(why) = tools::needless(&(self.setup.scope)(), needs)
        {
            return Some(why);
        }
        if let Some(why) = self.setup.permissions.relations.unreachable(&call.name, &call.arguments)
        {
            return Some(why);
        }
        let could = self.setup.permissions.relations.could_extend(lease.clone()?).await;
        // Other refusals, for example because the host is shutting down, do not depend on the call.
        let refusal =
            could.err().filter(|refusal| refusal.code == ErrorCode::InvalidRequest)?.message;
        Some(format!(
            "no person can allow it now: {refusal}; go on without it, and \
             say in your reply what is left to do there"
        ))
    }

    /// The rules of earlier decisions that bind this Pod: its own, then those of its ancestors for
    /// everything below them, the nearest first; of each the newest first.
    pub(crate) async fn answers(&self) -> Vec<(Pattern, Action)> {
        // Stored rules only allow. Without them more calls wait for an approval.
        let stored = self.setup.store.policy().await.unwrap_or_default();
        in_force(&self.setup.pod, &self.setup.permissions.relations.lineage(), stored)
            .into_iter()
            .map(|rule| (rule.pattern, rule.action))
            .collect()
    }
}

/// The decision on a question of the model: no rule answers it, but one may deny it.
fn asked(call: &Call, decision: Decision) -> Decision {
    if let Decision::Deny(_) = decision {
        return decision;
    }
    match tools::question(&call.arguments) {
        Ok((text, question)) => {
            Decision::NeedsApproval(Box::new(ApprovalDraft::question(call, text, question)))
        }
        Err(fault) => Decision::Deny(fault.to_string()),
    }
}

/// The stored rules that bind a Pod, in the order in which they apply.
pub fn in_force(pod: &PodName, lineage: &[PodName], stored: Vec<StoredRule>) -> Vec<StoredRule> {
    let near: Vec<String> = lineage.iter().rev().map(PodName::key).collect();
    let place = |rule: &StoredRule| {
        if rule.pod.key() == pod.key() {
            return Some(0);
        }
        let above = near.iter().position(|key| *key == rule.pod.key());
        above.filter(|_| rule.tree).map(|above| above + 1)
    };
    let mut binding: Vec<(usize, StoredRule)> =
        stored.into_iter().filter_map(|rule| Some((place(&rule)?, rule))).collect();
    binding.sort_by_key(|(place, _)| *place);
    binding.into_iter().map(|(_, rule)| rule).collect()
}

/// Whether an allowing rule covers a file tool's access to this scope, so that the access may stem
/// from the rule.
pub fn opens(pattern: &Pattern, scope: &Rule) -> bool {
    let gives = |tool: &&tools::Tool| match scope.permission {
        Permission::Read => tool.lane == Lane::Look,
        Permission::Write => tool.lane == Lane::Change,
    };
    tools::TABLE.iter().filter(gives).any(|tool| {
        let texts = vec![scope.target.display().to_string()];
        let subject = Subject { tool: tool.name.into(), texts, ..Subject::default() };
        matches(pattern, Action::Allow, &subject)
    })
}

#[cfg(test)]
mod tests;
