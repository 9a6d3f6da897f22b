//! The decision of policy on a call before it starts: it passes, it waits for an approval, or it is
//! denied.

use crate::config::policy::{Rules, Said, Subject, changed_scripts, exactly, matches};
use crate::protocol::{
    Action, ApprovalRequest, ErrorCode, OutsideAccess, OutsidePath, Pattern, PodName, Refusal,
    ScriptHash,
};
use crate::run::Run;
use crate::run::batch::Call;
use crate::run::details::{details, replacement};
use crate::sandbox::Need;
use crate::scope::{Permission, Rule};
use crate::store::StoredRule;
use crate::tools::{self, CommandNeeds, Lane, PathThreads, Touch};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The texts of an argument. Of a list that is each element, and the whole list last: a rule that denies looks at
/// each text, one that allows at the last.
fn texts_of(argument: &Value) -> Vec<String> {
    match argument {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => {
            let each = list.iter().filter_map(Value::as_str).map(str::to_owned);
            each.chain([argument.to_string()]).collect()
        }
        _ => Vec::new(),
    }
}

/// The arguments that name the subject of a call of an external tool.
const TELLING: &[&str] = &["command", "file_path", "path", "pattern", "query", "url", "name"];
/// Bytes of an action in an approval request: it is shown whole, or the call is refused.
const MAX_ACTION: usize = 16 * 1024;
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
    /// The scripts that were approved with their content; the call runs alone.
    pub(crate) scripts: Vec<ScriptHash>,
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
    pub(crate) details: Option<String>,
    pub(crate) because: String,
    pub(crate) reason: Option<String>,
    pub(crate) rule: Pattern,
    pub(crate) grant: Grant,
}

/// The needs of a call.
#[derive(Clone, Debug, Default, PartialEq)]
struct Claim {
    subject: Subject,
    grant: Grant,
    /// Why the call needs an approval where no rule applies, for example `network access`.
    because: Option<String>,
    reason: Option<String>,
    details: Option<String>,
    /// Whether a permanent decision covers all calls of the tool: the arguments of an external tool
    /// do not show what it does.
    whole_tool: bool,
}

/// A tool of an MCP server.
#[derive(Default)]
struct External {
    is_one: bool,
    approval_reason: Option<String>,
}

impl External {
    fn of(offered: &tools::ToolSet, name: &str) -> Self {
        Self { is_one: offered.is_external(name), approval_reason: offered.approval_reason(name) }
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
        let decide = |(call, looked): (&Call, Looked)| {
            let seen = match looked {
                Ok(seen) => seen,
                Err(why) => return Decision::Deny(why),
            };
            if let Some(why) = seen.closed() {
                return Decision::Deny(why.to_owned());
            }
            let fails = seen.fails();
            let external = External::of(&self.offered, &call.name);
            match (judge(&policy.rules, &answers, claim(call, seen, policy, external)), fails) {
                (Decision::NeedsApproval(_), Some(why)) => Decision::Deny(why),
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
    async fn answers(&self) -> Vec<(Pattern, Action)> {
        // Stored rules only allow. Without them more calls wait for an approval.
        let stored = self.setup.store.policy().await.unwrap_or_default();
        in_force(&self.setup.pod, &self.setup.permissions.relations.lineage(), stored)
            .into_iter()
            .map(|rule| (rule.pattern, rule.action))
            .collect()
    }
}

/// The state of a call's paths on the disk before it starts.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    /// A call without a path.
    Plain,
    Path(Touch),
    Command(CommandNeeds),
}

impl Seen {
    fn of(call: &Call, ctx: &tools::Context) -> Self {
        if call.name == "Bash" {
            return Self::Command(tools::command_needs(&call.arguments, ctx));
        }
        tools::touched(&call.name, &call.arguments, ctx).map_or(Self::Plain, Self::Path)
    }

    /// Why no approval can grant the needs of the call.
    fn closed(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Path(touch) => touch.closed.as_deref(),
            Self::Command(command) => command.closed.as_deref(),
        }
    }

    /// Why the call fails even if it is allowed.
    fn fails(&self) -> Option<String> {
        match self {
            Self::Path(touch) => touch.fails.clone(),
            Self::Plain | Self::Command(_) => None,
        }
    }
}

/// The state of a call's paths, or the error that prevented reading it.
type Looked = Result<Seen, String>;

/// Examines each call separately, so that a panic for one call affects no other.
async fn look(
    calls: &[Call],
    threads: &PathThreads,
    see: impl Fn(&Call) -> Seen + Clone + Send + 'static,
) -> Vec<Looked> {
    let looking = calls.iter().cloned().map(|call| {
        let see = see.clone();
        threads.run(move || see(&call))
    });
    let looked = futures_util::future::join_all(looking).await;
    let not_started = |why| format!("not started: {why}");
    looked.into_iter().map(|seen| seen.map_err(not_started)).collect()
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

/// The call of an approval request, as policy sees it.
pub fn subject_of(approval: &ApprovalRequest) -> Subject {
    let word = |need: Need| approval.needs().any(|word| word == need.word()).then(|| need.word());
    let needs = Need::ALL.into_iter().filter_map(word).collect();
    let (tool, outside) = (approval.tool.clone(), approval.outside.clone());
    let scripts = approval.scripts.clone();
    Subject { tool, needs, outside, scripts, texts: vec![approval.action.clone()] }
}

fn claim(call: &Call, seen: Seen, policy: &Policy, external: External) -> Claim {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |key: &str| arguments.get(key)?.as_str().map(str::to_owned);
    let named = telling(&call.name).iter().filter_map(|key| arguments.get(key));
    let mut texts: Vec<String> = named.flat_map(texts_of).collect();
    let path = match &seen {
        Seen::Path(touch) => touch.path.clone(),
        Seen::Plain | Seen::Command(_) => PathBuf::new(),
    };
    let grant = match seen {
        Seen::Plain => Grant::default(),
        Seen::Path(Touch { path, lacks, needs, .. }) => {
            texts.push(path.display().to_string());
            Grant { path: Some(path), needs, lease: lacks, ..Grant::default() }
        }
        Seen::Command(CommandNeeds { needs, outside, scripts, .. }) => {
            Grant { needs, outside, scripts, ..Grant::default() }
        }
    };
    let peer =
        call.name == "RestorePod" && text("name").is_some_and(|n| policy.relations.is_peer(&n));
    let because = because(call, &path, &grant, policy)
        .or_else(|| peer.then(|| "your approval: it is a peer, not a child".into()))
        .or_else(|| external.approval_reason.map(|what| format!("your approval: {what}")));
    let needs = grant.needs.iter().map(|need| need.word()).collect();
    let reason = text("reason").filter(|reason| !reason.trim().is_empty());
    let (outside, scripts) = (grant.outside.clone(), grant.scripts.clone());
    let subject = Subject { tool: call.name.clone(), needs, outside, scripts, texts };
    let details = details(&call.name, &arguments);
    Claim { subject, grant, because, reason, details, whole_tool: external.is_one }
}

/// The arguments that name the subject of a call of this tool. Rules look at these arguments and at
/// no other.
pub(crate) fn telling(tool: &str) -> &'static [&'static str] {
    tools::find(tool).map_or(TELLING, |found| found.telling)
}

/// Why a call needs an approval by the program's defaults.
fn because(call: &Call, path: &Path, grant: &Grant, policy: &Policy) -> Option<String> {
    if !grant.needs.is_empty() {
        let wants = |need: &Need| match call.name.as_str() {
            "Bash" => wants(*need, &grant.outside),
            _ => tools::purpose(path, *need),
        };
        return Some(grant.needs.iter().map(wants).collect::<Vec<_>>().join("; "));
    }
    if let Some(Rule { permission, .. }) = &grant.lease {
        let verb = if *permission == Permission::Write { "write" } else { "read" };
        return Some(format!("to {verb} outside its scope"));
    }
    let open = call.name == "Bash" && policy.walls == Walls::Missing;
    open.then(|| "your approval: the sandbox is off".into())
}

fn wants(need: Need, outside: &[OutsidePath]) -> &'static str {
    let socket = || outside.iter().any(|path| path.access == OutsideAccess::Socket);
    match need {
        Need::Network => "network access",
        Need::Git => tools::CHANGES_GIT,
        Need::Outside if socket() => "to ask another program through its socket, for anything",
        Need::Outside => "paths outside its scope",
    }
}

/// The decision, from the rules and the needs of the call. Reads no disk.
fn judge(rules: &Rules, answers: &[(Pattern, Action)], claim: Claim) -> Decision {
    let tool = &claim.subject.tool;
    let approval = |because, claim| approval(because, answers, claim);
    match rules.said(&claim.subject, answers) {
        Said::AllowContent => Decision::Allow(claim.grant),
        Said::Allow => Decision::Allow(claim.grant.of_any_content()),
        Said::Deny(rule) => denied(&format!("{rule} denies {tool} here")),
        Said::Ask(rule) => approval(format!("your approval: {rule} asks"), claim),
        Said::Nothing(default) => {
            // A call that affects only the Pod itself needs no policy.
            let default = default.filter(|_| !claim.subject.texts.is_empty());
            let stands = || format!("`[permissions] default` in {}", rules.user_file);
            match (default, claim.because.clone()) {
                (Some(Action::Deny), _) => denied(&format!("{} denies {tool}", stands())),
                (Some(Action::Ask) | None, Some(because)) => approval(because, claim),
                (Some(Action::Ask), None) => {
                    approval(format!("your approval: {} asks", stands()), claim)
                }
                (Some(Action::Allow), _) | (None, None) => {
                    Decision::Allow(claim.grant.of_any_content())
                }
            }
        }
    }
}

fn denied(why: &str) -> Decision {
    Decision::Deny(format!("denied by policy: {why}"))
}

/// Denies a call whose details are more than a person can judge.
fn within_limit(decision: Decision) -> Decision {
    let Decision::NeedsApproval(draft) = &decision else { return decision };
    match draft.details.as_ref().map_or(0, String::len) {
        more if more > MAX_DETAILS => {
            too_much(&draft.because, more, "make the change in smaller calls")
        }
        _ => decision,
    }
}

fn too_much(because: &str, bytes: usize, instead: &str) -> Decision {
    denied(&format!(
        "this needs {because}, which a person has to allow, and {} KiB are too much to judge; {instead}",
        bytes.div_ceil(1024)
    ))
}

/// The paths of these scripts; `None` if there are none.
fn paths<'a>(scripts: impl Iterator<Item = &'a ScriptHash>) -> Option<String> {
    let paths: Vec<String> = scripts.map(|script| script.path.display().to_string()).collect();
    (!paths.is_empty()).then(|| paths.join(", "))
}

fn approval(because: String, answers: &[(Pattern, Action)], claim: Claim) -> Decision {
    let Claim { subject, grant, because: own, reason, details, whole_tool } = claim;
    let mut because = match own {
        Some(own) if own != because => format!("{because}; {own}"),
        _ => because,
    };
    let changed = changed_scripts(answers, &subject);
    if let Some(changed) = paths(changed.into_iter().filter(|script| !script.is_unheld())) {
        because.push_str(&format!("; you allowed this before, and since then {changed} changed"));
    }
    if let Some(unread) = paths(subject.scripts.iter().filter(|script| script.is_unread())) {
        because.push_str(&format!(
            "; {unread} cannot be read now, so an approval counts once and for any content"
        ));
    }
    if let Some(unheld) = paths(subject.scripts.iter().filter(|script| script.is_unheld())) {
        because.push_str(&format!(
            "; another Pod may exchange {unheld} while the command runs, so each call needs an \
             approval until that Pod stops"
        ));
    }
    let rule = match whole_tool {
        true => Pattern { tool: subject.tool.clone(), pattern: "*".into() },
        false => exactly(&subject),
    };
    let action = subject.texts.last().cloned().unwrap_or_default();
    let count = subject.scripts.iter().filter(|script| !script.is_unheld()).count();
    if count > tools::MAX_SCRIPTS {
        return denied(&format!(
            "this needs {because}, which a person has to allow, and more than {} scripts are too many to judge; run \
             them in several commands",
            tools::MAX_SCRIPTS
        ));
    }
    if action.len() > MAX_ACTION {
        return too_much(&because, action.len(), "put it into a script file and run that");
    }
    let draft = ApprovalDraft { action, details, because, reason, rule, grant };
    Decision::NeedsApproval(Box::new(draft))
}

#[cfg(test)]
mod tests;
