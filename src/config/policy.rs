//! Policy: ordered rules over a tool and the texts of a call decide whether the call passes, needs
//! an approval or is refused. Reads no disk.

use crate::config::policy::call::{Call, Part};
use crate::config::policy::tool::Tool;
use crate::protocol::{Action, OutsidePath, Pattern, ScriptHash};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::cell::OnceCell;
use std::path::Path;
use toml::de::DeValue;

mod arguments;
mod call;
mod pattern;
mod tool;

pub use tool::{TOOLS, check as check_tool, is_for_script_contents, is_of_a_server};

/// `[permissions]` of a settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// The action for calls that no rule and no permanent decision matches, instead of the
    /// program's defaults.
    pub default: Option<Action>,
    /// The first that matches counts.
    pub rule: Vec<FileRule>,
}

/// A rule as a file has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    #[serde(default = "everything", deserialize_with = "known_tool")]
    pub tool: String,
    #[serde(default = "everything")]
    pub pattern: String,
    pub action: Action,
}

/// Whether a table at the top of a settings file is that of the rules, or may be a misspelled one.
pub fn may_hold_rules(key: &str, value: &DeValue<'_>) -> bool {
    let starts = key.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("perm"));
    starts || has_action(value)
}

fn has_action(value: &DeValue<'_>) -> bool {
    match value {
        DeValue::Table(table) => table
            .iter()
            .any(|(key, below)| key.get_ref() == "action" || has_action(below.get_ref())),
        DeValue::Array(elements) => elements.iter().any(|below| has_action(below.get_ref())),
        _ => false,
    }
}

fn everything() -> String {
    "*".into()
}

/// A rule that no call can match protects nothing, so it is reported as a mistake.
fn known_tool<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    tool::check(&text).map(|()| text).map_err(D::Error::custom)
}

/// A call as policy sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    pub tool: String,
    /// The needs of the call beyond its confinement or scope, by their names.
    pub needs: Vec<&'static str>,
    /// The paths outside its scope that a command names.
    pub outside: Vec<OutsidePath>,
    /// The scripts that a command runs.
    pub scripts: Vec<ScriptHash>,
    /// The names of the credentials that a command gets.
    pub credentials: Vec<String>,
    /// Whether a decision about the call holds for this call only: the same command line may run something else later.
    pub once_only: bool,
    /// The words of a command that name a program or a script that the Pod can change, for another program to start.
    pub handed: Vec<String>,
    /// Whether a command of git may find a repository whose settings the Pod can write: it starts what these name.
    pub any_repository: bool,
    /// The texts that patterns are compared with: the argument as the model wrote it and then, for
    /// a path, the resolved path. Empty if a call has none.
    pub texts: Vec<String>,
    /// The arguments of a call of an external tool. Patterns are compared with them instead of `texts`.
    pub arguments: Option<Value>,
}

impl Subject {
    /// Whether the call affects only the Pod itself, so that it needs no policy.
    pub fn is_own_business(&self) -> bool {
        self.texts.is_empty() && self.arguments.is_none()
    }
}

/// All rules of files that bind a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub user: Permissions,
    /// The file of the user's rules.
    pub user_file: String,
    /// Rules of the workspace; they ask or deny, they never allow.
    pub workspace: Vec<FileRule>,
    /// Why `workspace` is unknown although the file exists. Then every call that it could deny
    /// needs an approval.
    pub unread: Option<String>,
    /// Rules of the workspace that allow, while a person trusts its file. They decide calls that no
    /// other rule and no permanent decision matches.
    pub trusted: Vec<FileRule>,
    /// The file of the workspace's rules.
    pub workspace_file: String,
}

/// What the rules of files and the permanent decisions of a person say about a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Allow,
    /// A rule wants an approval, and no decision made a rule yet; the text names the rule.
    Ask(String),
    /// The text names the rule.
    Deny(String),
    /// No rule matches; `[permissions] default` if it is set.
    Nothing(Option<Action>),
}

impl Rules {
    /// What the rules say: the user's own first, narrowed by the workspace's; where they ask or
    /// none matches, the permanent decisions `answers`, in this order. The strictest decision about
    /// one of its commands counts for a command line.
    pub fn said(&self, subject: &Subject, answers: &[(Pattern, Action)]) -> Said {
        let of_files = [&self.user.rule, &self.workspace, &self.trusted];
        let known = self.unread.is_none();
        if known && of_files.iter().all(|rules| rules.is_empty()) && answers.is_empty() {
            return Said::Nothing(self.user.default);
        }
        let call = Call::of(subject);
        let doubt = self.in_doubt().filter(|_| !subject.is_own_business());
        let said = call.parts().map(|part| self.said_of(&part, answers, doubt.as_ref()));
        // Of several that are equally strict, the first.
        said.rev().max_by_key(Said::strictness).unwrap_or(Said::Nothing(self.user.default))
    }

    fn said_of(
        &self,
        part: &Part<'_>,
        answers: &[(Pattern, Action)],
        doubt: Option<&String>,
    ) -> Said {
        let user = first(&self.user.rule, part).map(|rule| (rule, &self.user_file));
        let workspace = first(&self.workspace, part).map(|rule| (rule, &self.workspace_file));
        let workspace = workspace.filter(|(rule, _)| rule.action != Action::Allow);
        let of = |action: Action| {
            let found = [user, workspace].into_iter().flatten().find(|(r, _)| r.action == action);
            found.map(|(rule, file)| named(rule, file, part))
        };
        if let Some(deny) = of(Action::Deny) {
            return Said::Deny(deny);
        }
        let hidden = || {
            let (of_user, of_workspace) = (&self.user.rule, &self.workspace);
            let user = hidden(of_user, part).map(|rule| named(rule, &self.user_file, part));
            let workspace = || hidden(of_workspace, part);
            user.or_else(|| workspace().map(|rule| named(rule, &self.workspace_file, part)))
        };
        let asking = of(Action::Ask).or_else(|| doubt.cloned()).or_else(hidden);
        if user.is_some() && asking.is_none() {
            return Said::Allow;
        }
        let answer = answers.iter().find(|(pattern, action)| {
            part.is_answered(pattern, *action) && !part.is_answered_once(pattern, *action)
        });
        match (answer, asking) {
            (Some((_, Action::Allow)), _) => Said::Allow,
            (Some((_, Action::Deny)), _) => Said::Deny("an answer that was given for good".into()),
            (Some((_, Action::Ask)) | None, Some(asking)) => Said::Ask(asking),
            (Some((_, Action::Ask)) | None, None) => {
                let trusted = first(&self.trusted, part).filter(|_| part.takes_trusted_rules());
                trusted.map_or(Said::Nothing(self.user.default), |_| Said::Allow)
            }
        }
    }
}

impl Rules {
    /// Whether a rule denies files to Read.
    pub fn may_deny_reading(&self) -> bool {
        let reads = Subject { tool: "Read".into(), ..Subject::default() };
        let mut rules = self.user.rule.iter().chain(&self.workspace);
        rules.any(|rule| {
            rule.action == Action::Deny && Tool::of(&rule.tool).speaks(Action::Deny, &reads)
        })
    }

    /// Whether a rule denies this file to Read: by its path, or as a Pod that works in `cwd` may name it.
    pub fn deny_reading(&self, file: &Path, cwd: &Path) -> bool {
        let named = file.strip_prefix(cwd).into_iter().chain([file]);
        let texts = named.map(|path| path.display().to_string()).collect();
        let reads = Subject { tool: "Read".into(), texts, ..Subject::default() };
        matches!(self.said(&reads, &[]), Said::Deny(_))
    }

    /// Why a call needs an approval while the rules of the workspace are unknown.
    fn in_doubt(&self) -> Option<String> {
        let why = self.unread.as_ref()?;
        Some(format!("the file of rules {}, which cannot be read ({why}),", self.workspace_file))
    }

    /// The notice that a Pod shows while the rules of the workspace are unknown.
    pub fn unread_note(&self) -> Option<String> {
        let why = self.unread.as_ref()?;
        Some(format!(
            "the rules in {} cannot be read, so every call needs an approval: {why}",
            self.workspace_file
        ))
    }
}

impl Said {
    fn strictness(&self) -> u8 {
        match self {
            Self::Allow => 0,
            Self::Nothing(_) => 1,
            Self::Ask(_) => 2,
            Self::Deny(_) => 3,
        }
    }
}

fn first<'a>(rules: &'a [FileRule], part: &Part<'_>) -> Option<&'a FileRule> {
    rules.iter().find(|rule| {
        let pattern = Pattern { tool: rule.tool.clone(), pattern: rule.pattern.clone() };
        part.matches(&pattern, rule.action)
    })
}

/// The first rule that refuses or asks and could be about a line that cannot be read, in front of the rule
/// that decides.
fn hidden<'a>(rules: &'a [FileRule], part: &Part<'_>) -> Option<&'a FileRule> {
    let decides = first(rules, part);
    let before = rules.iter().take_while(|rule| decides.is_none_or(|d| !std::ptr::eq(*rule, d)));
    let mut narrowing = before.filter(|rule| rule.action != Action::Allow);
    narrowing.find(|rule| part.may_hide(&rule.tool, rule.action))
}

/// Names the rule, and the reason why it matches if the call does not show it.
fn named(rule: &FileRule, file: &str, part: &Part<'_>) -> String {
    let FileRule { tool, pattern, .. } = rule;
    let doubt = part.doubt(pattern).map(|doubt| format!(" ({doubt})")).unwrap_or_default();
    format!("the rule `{tool}: {pattern}` in {file}{doubt}")
}

/// Whether a permanent decision applies to a call: one that allows must match every part of the
/// call, one that refuses any part.
pub fn matches(pattern: &Pattern, action: Action, subject: &Subject) -> bool {
    is_about(pattern, action, &Call::of(subject))
}

fn is_about(pattern: &Pattern, action: Action, call: &Call<'_>) -> bool {
    let speaks = |part: Part<'_>| part.is_answered(pattern, action);
    match action {
        Action::Allow => call.parts().all(speaks),
        Action::Ask | Action::Deny => call.parts().any(speaks),
    }
}

/// Whether a rule names a credential.
pub fn names_credentials(pattern: &Pattern) -> bool {
    Tool::of(&pattern.tool).names_credentials()
}

/// The changed scripts because of which a permanent decision does not allow this call.
pub fn changed_scripts<'a>(
    answers: &[(Pattern, Action)],
    subject: &'a Subject,
) -> Vec<&'a ScriptHash> {
    let allowed = answers.iter().filter(|(_, action)| *action == Action::Allow);
    let once = allowed.map(|(pattern, _)| (Tool::of(&pattern.tool), pattern));
    let mut once = once.filter(|(tool, _)| tool.is_for_contents());
    let call = OnceCell::new();
    let found = once.find_map(|(tool, pattern)| {
        let changed: Vec<&ScriptHash> =
            subject.scripts.iter().filter(|script| !tool.knows(script)).collect();
        let any = tool.for_any_content().speaks(Action::Allow, subject);
        let bare = Pattern { tool: subject.tool.clone(), pattern: pattern.pattern.clone() };
        let speaks = || is_about(&bare, Action::Allow, call.get_or_init(|| Call::of(subject)));
        (any && !changed.is_empty() && speaks()).then_some(changed)
    });
    found.unwrap_or_default()
}

fn is_command(subject: &Subject) -> bool {
    subject.tool.eq_ignore_ascii_case("Bash")
}

/// The rule that matches exactly this call and no other.
pub fn exactly(subject: &Subject) -> Pattern {
    let text = match &subject.arguments {
        Some(arguments) => arguments.to_string(),
        None => subject.texts.last().cloned().unwrap_or_default(),
    };
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    Pattern { tool: tool::exactly(subject), pattern }
}

#[cfg(test)]
mod tests;
