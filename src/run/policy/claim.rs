//! What a call claims: what it is about, as rules see it, and what it needs beyond its scope.

use crate::config::policy::{Subject, is_of_a_server};
use crate::protocol::{ApprovalRequest, Credential, OutsideAccess, OutsidePath};
use crate::run::batch::Call;
use crate::run::details::{details, details_of_external};
use crate::run::policy::look::Seen;
use crate::run::policy::{Grant, Policy, Walls};
use crate::sandbox::Need;
use crate::scope::{Permission, Rule};
use crate::tools::{self, CommandNeeds, Touch};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The needs of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Claim {
    pub(super) subject: Subject,
    pub(super) grant: Grant,
    /// Why the call needs an approval where no rule applies, for example `network access`.
    pub(super) because: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) details: Option<String>,
    /// What runs in the background beside a command with needs or approved scripts.
    pub(super) beside: Option<String>,
    /// Whether no answer to its request is a rule: a credential would go to programs that may obey files of the Pod.
    pub(super) answered_once: bool,
}

impl Claim {
    /// The claim of a call beside which these commands run in the background: they write in the same `/tmp`, and could have
    /// it do what only this call may. So a person decides about each such call, once.
    pub(super) fn beside(mut self, jobs: &[String]) -> Self {
        let Grant { needs, scripts, credentials, .. } = &self.grant;
        let has_more = !needs.is_empty() || !scripts.is_empty() || !credentials.is_empty();
        if self.subject.tool == "Bash" && has_more && !jobs.is_empty() {
            self.subject.once_only = true;
            self.beside = Some(format!(
                "beside it, with the same /tmp, run in the background: {}",
                jobs.join(", ")
            ));
        }
        self
    }
}

/// The claim of a call. `approval_reason` is why each call of its tool needs an approval where no rule applies.
pub(super) fn claim(
    call: &Call,
    seen: Seen,
    policy: &Policy,
    approval_reason: Option<String>,
) -> Claim {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let text = |key: &str| arguments.get(key)?.as_str().map(str::to_owned);
    let own_tool = tools::find(&call.name);
    let telling = own_tool.map_or(&[][..], |tool| tool.telling);
    let mut texts: Vec<String> = telling.iter().filter_map(|key| text(key)).collect();
    let path = match &seen {
        Seen::Path(touch) => touch.path.clone(),
        Seen::Plain | Seen::Command(_) => PathBuf::new(),
    };
    let (once_only, handed, any_repository) = match &seen {
        Seen::Command(command) => {
            // In a repository of the Pod the same words of git may start something else.
            let other_git = !command.credentials.is_empty() && command.any_repository;
            let once_only = command.may_run_another || other_git;
            (once_only, command.handed.clone(), command.any_repository)
        }
        Seen::Plain | Seen::Path(_) => (false, Vec::new(), false),
    };
    let answered_once = matches!(&seen, Seen::Command(command)
        if !command.credentials.is_empty() && command.may_obey_the_pod);
    let grant = match seen {
        Seen::Plain => Grant::default(),
        Seen::Path(Touch { path, lacks, needs, .. }) => {
            texts.push(path.display().to_string());
            Grant { path: Some(path), needs, lease: lacks, ..Grant::default() }
        }
        Seen::Command(CommandNeeds { needs, outside, scripts, credentials, .. }) => {
            Grant { needs, outside, scripts, credentials, ..Grant::default() }
        }
    };
    let peer =
        call.name == "RestorePod" && text("name").is_some_and(|n| policy.relations.is_peer(&n));
    let because = because(call, &path, &grant, policy)
        .or_else(|| peer.then(|| "your approval: it is a peer, not a child".into()))
        .or_else(|| approval_reason.map(|what| format!("your approval: {what}")));
    let needs = grant.needs.iter().map(|need| need.word()).collect();
    let reason = text("reason").filter(|reason| !reason.trim().is_empty());
    let (outside, scripts) = (grant.outside.clone(), grant.scripts.clone());
    let credentials = names_of(&grant.credentials);
    let details = match own_tool {
        Some(tool) => details(tool, &arguments),
        None => details_of_external(&arguments),
    };
    let arguments = own_tool.is_none().then_some(arguments);
    let tool = call.name.clone();
    let subject = Subject {
        tool,
        needs,
        outside,
        scripts,
        credentials,
        once_only,
        handed,
        any_repository,
        texts,
        arguments,
    };
    Claim { subject, grant, because, reason, details, beside: None, answered_once }
}

/// The call of an approval request, as policy sees it.
pub fn subject_of(approval: &ApprovalRequest) -> Subject {
    let word = |need: Need| approval.needs().any(|word| word == need.word()).then(|| need.word());
    let needs = Need::ALL.into_iter().filter_map(word).collect();
    let once_only = approval.has_no_rule();
    let credentials = names_of(&approval.credentials);
    let ApprovalRequest { tool, action, outside, scripts, arguments, .. } = approval.clone();
    // The action of a request of an earlier release is one of several arguments of an external tool.
    let is_whole = arguments.is_none() && !is_of_a_server(&tool);
    let texts: Vec<String> = is_whole.then_some(action).into_iter().collect();
    // A stored request does not say which words are handed on: no wildcard stands for any of them. Nor does it say which
    // repository git finds.
    let handed = if once_only && scripts.is_empty() { texts.clone() } else { Vec::new() };
    let any_repository = true;
    Subject {
        tool,
        needs,
        outside,
        scripts,
        credentials,
        once_only,
        handed,
        any_repository,
        texts,
        arguments,
    }
}

fn names_of(credentials: &[Credential]) -> Vec<String> {
    credentials.iter().map(|credential| credential.name.clone()).collect()
}

/// Why a call needs an approval by the program's defaults.
fn because(call: &Call, path: &Path, grant: &Grant, policy: &Policy) -> Option<String> {
    if !grant.needs.is_empty() || !grant.credentials.is_empty() {
        let wants = |need: &Need| match call.name.as_str() {
            "Bash" => wants(*need, &grant.outside),
            _ => tools::purpose(path, *need),
        };
        let needs = grant.needs.iter().map(|need| wants(need).to_owned());
        let credentials =
            grant.credentials.iter().map(|one| format!("the credential {}", one.name));
        return Some(needs.chain(credentials).collect::<Vec<_>>().join("; "));
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
