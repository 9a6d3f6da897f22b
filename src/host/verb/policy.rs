//! ListPolicy: every rule in force, in the order of evaluation, and every consent.

use crate::config::workspace_settings::{WorkspaceSettings, file_of};
use crate::host::models::consent_listed;
use crate::host::rules;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::family::Confined;
use crate::protocol::{Action, Event, Pattern, PolicyClient, PolicyRule, PolicyTrust, Refusal};
use crate::run::policy::in_force;
use crate::store::{StoredClient, StoredRule, StoredTrust};

/// The defaults of the program, where neither a rule nor a decision applies, as they are listed.
const DEFAULTS: [(&str, &str, Action); 10] = [
    ("Bash+network", "*", Action::Ask),
    ("Bash+git", "*", Action::Ask),
    ("Bash+outside", "*", Action::Ask),
    ("Read, Glob, Grep", "(outside the scope)", Action::Ask),
    ("Write, Edit", "(outside the scope)", Action::Ask),
    ("Write+git, Edit+git", "(hooks and configuration of git)", Action::Ask),
    (
        "Write+outside, Edit+outside",
        "(directories on PATH, .yoi, files of direnv, editors and agents)",
        Action::Ask,
    ),
    ("RestorePod", "(a peer)", Action::Ask),
    ("mcp__*", "(servers over HTTP or with the network)", Action::Ask),
    ("*", "*", Action::Allow),
];

pub(crate) struct ListPolicy;

impl Verb for ListPolicy {
    const ALLOWED: Caller = Caller::Person;

    /// Lists the rules that bind one Pod, if one is addressed. A consent binds every Pod.
    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let shared = &cx.shared;
        let mut stored = shared.store.policy().await?;
        let mut all = vec![listed("*", "(secrets of this machine)", Action::Deny, "the program")];
        let settings = shared.read_settings().await?.settings;
        let (user, mut default) = (&settings.permissions, None);
        let mut trusted = Vec::new();
        let file = shared.settings.path().display().to_string();
        all.extend(user.rule.iter().map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
        if cx.to.is_some() {
            let pod = cx.pod()?;
            let root = pod.info.borrow().workspace.clone();
            let (at, hash) = (root.clone(), rules::trusted_hash(shared, &root).await?);
            let load = move || WorkspaceSettings::load(&at).with_trust(hash.as_deref());
            let says = cx.files(&root, load).await?;
            let file = file_of(&root).display().to_string();
            all.extend(says.rules.iter().map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
            let unread = says.unread.map(|_| format!("{file}, which cannot be read"));
            all.extend(unread.map(|file| listed("*", "*", Action::Ask, &file)));
            let file = format!("{file}, which you trust");
            let allow = says.granted.rules.iter();
            trusted.extend(allow.map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
            default = says.granted.default.map(|action| (action, file));
            stored = in_force(&pod.name, &rules::lineage(shared, &pod.name), stored);
        }
        all.extend(stored.into_iter().map(answer_listed));
        all.append(&mut trusted);
        if let Some((action, file)) = user.default.map(|action| (action, file)).or(default) {
            all.push(listed("*", "*", action, &format!("`default` in {file}")));
        }
        if shared.confinement().await.word == Confined::NotEnforced {
            let why = "the program, because the sandbox is off";
            all.push(listed("Bash", "*", Action::Ask, why));
        }
        let defaults = DEFAULTS.iter();
        all.extend(defaults.map(|(tool, text, action)| listed(tool, text, *action, "the program")));
        let consents = shared.store.consents().await?.into_iter().map(consent_listed).collect();
        let trusts = shared.store.trusts().await?.into_iter().map(trust_listed).collect();
        let clients = shared.store.clients().await?.into_iter().map(client_listed).collect();
        Ok(Event::Policy {
            rules: all,
            consents,
            trusts,
            clients,
            closed: Vec::new(),
            kept: Vec::new(),
        })
    }
}

fn listed(tool: &str, pattern: &str, action: Action, source: &str) -> PolicyRule {
    let pattern = Pattern { tool: tool.into(), pattern: pattern.into() };
    PolicyRule { id: None, pod: None, tree: false, pattern, action, source: source.into() }
}

/// A workspace that a person trusts, as it is listed.
pub(super) fn trust_listed(stored: StoredTrust) -> PolicyTrust {
    let StoredTrust { id, workspace, sha256, since } = stored;
    PolicyTrust { id, workspace: workspace.into(), sha256, since }
}

/// An MCP client that may use Pods, as it is listed.
pub(super) fn client_listed(stored: StoredClient) -> PolicyClient {
    let StoredClient { id, folder, name, since } = stored;
    PolicyClient { id, folder: folder.into(), name, since }
}

/// A rule that a decision made, as it is listed.
pub(super) fn answer_listed(rule: StoredRule) -> PolicyRule {
    let source = if rule.tree {
        format!("your decision for {} and its children", rule.pod)
    } else {
        format!("your decision for {}", rule.pod)
    };
    let StoredRule { id, pod, tree, pattern, action } = rule;
    PolicyRule { id: Some(id), pod: Some(pod), tree, pattern, action, source }
}
