//! ListPolicy: every rule in force, in the order in which they count, and every consent.

use crate::config::settings::WorkspaceSettings;
use crate::host::models::consent_listed;
use crate::host::rules;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Action, Event, Pattern, PolicyRule, Refusal};
use crate::run::policy::in_force;
use crate::store::StoredRule;

/// The defaults of the program, where neither a rule nor a decision applies, as they are listed.
const DEFAULTS: [(&str, &str, Action); 9] = [
    ("Bash+network", "*", Action::Ask),
    ("Bash+git", "*", Action::Ask),
    ("Bash+outside", "*", Action::Ask),
    ("Read, Glob, Grep", "(outside the scope)", Action::Ask),
    ("Write, Edit", "(outside the scope)", Action::Ask),
    ("Write+git, Edit+git", "(hooks and configuration of git)", Action::Ask),
    (
        "Write+outside, Edit+outside",
        "(directories on PATH, .yoi, files of direnv and editors)",
        Action::Ask,
    ),
    ("RestorePod", "(a peer)", Action::Ask),
    ("*", "*", Action::Allow),
];

pub(crate) struct ListPolicy;

impl Verb for ListPolicy {
    const ALLOWED: Caller = Caller::Person;

    /// The rules that bind one Pod, if one is addressed. A consent binds every Pod.
    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let shared = &cx.shared;
        let mut stored = shared.store.policy().await?;
        let mut all = vec![listed("*", "(secrets of this machine)", Action::Deny, "the program")];
        let settings = shared.settings.last().settings;
        let user = &settings.permissions;
        let file = shared.settings.path().display().to_string();
        all.extend(user.rule.iter().map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
        if cx.to.is_some() {
            let pod = cx.pod()?;
            let root = pod.info.borrow().workspace.clone();
            let at = root.clone();
            let says = cx.files(&root, move || WorkspaceSettings::load(&at)).await?;
            let file = root.join(".yoi/config.toml").display().to_string();
            all.extend(says.rules.iter().map(|r| listed(&r.tool, &r.pattern, r.action, &file)));
            stored = in_force(&pod.name, &rules::lineage(shared, &pod.name), stored);
        }
        all.extend(stored.into_iter().map(answer_listed));
        if let Some(action) = user.default {
            all.push(listed("*", "*", action, &format!("`default` in {file}")));
        }
        let defaults = DEFAULTS.iter();
        all.extend(defaults.map(|(tool, text, action)| listed(tool, text, *action, "the program")));
        let consents = shared.store.consents().await?.into_iter().map(consent_listed).collect();
        Ok(Event::Policy { rules: all, consents })
    }
}

fn listed(tool: &str, pattern: &str, action: Action, source: &str) -> PolicyRule {
    let pattern = Pattern { tool: tool.into(), pattern: pattern.into() };
    PolicyRule { id: None, pod: None, tree: false, pattern, action, source: source.into() }
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
