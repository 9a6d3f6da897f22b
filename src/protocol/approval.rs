//! Approval requests: an action that policy does not decide alone, or a question, and the decisions on it.

use crate::protocol::client::McpClient;
use crate::protocol::credential::Credential;
use crate::protocol::name::PodName;
use crate::protocol::outside::OutsidePath;
use crate::protocol::question::{Question, Values};
use crate::protocol::script::ScriptHash;
use crate::protocol::tool_words;
use crate::scope::Rule;
use crate::text::SafeText;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::PathBuf;

/// A tool call of a Pod or of an MCP client that waits for a person: for an approval, or for the answer to a question. Or
/// an agent of another machine that asks to become a peer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// The id of the `yoi.asked` entry in the Pod's log; the request of a client is in no log.
    pub id: String,
    /// The Pod that asks. Where a client asks, this is the client's name in the form of a Pod name, for programs that
    /// do not know clients; it names no Pod.
    pub pod: PodName,
    /// The MCP client that asks, where no Pod does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<McpClient>,
    /// The agent of another machine that asks to become a peer of the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its ancestors, the root first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lineage: Vec<PodName>,
    /// The directory in which the Pod works: one decision never covers requests from two. Requests of clients and of
    /// earlier releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// The tool call that waits.
    pub call_id: String,
    pub tool: String,
    /// The exact action: the whole command, the path, the name, for an external tool all arguments as JSON text. Of a
    /// question it is the text.
    pub action: String,
    /// What is asked, where no approval is: it is answered or denied, and no rule covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Question>,
    /// The arguments of a call of an external tool, with which rules are compared. Requests of earlier releases have
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// The other arguments of the call: the lines that `Write` and `Edit` add to a file (`+ `) or
    /// remove from it (`- `), and for other tools each further argument with its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<String>,
    /// The need that neither scope nor policy grants, in words: `network access`.
    pub because: String,
    /// The reason that the model gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the Pod wrote last in the run that asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// The task of its list that it works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The scope the Pod acts under.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scope: Vec<Rule>,
    /// The access that the scope lacks: `Once` grants it to this call alone, a rule adds it to the
    /// scope until the rule is revoked or the Pod stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Rule>,
    /// The only paths outside its scope that a command gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outside: Vec<OutsidePath>,
    /// The credentials that a command gets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<Credential>,
    /// The scripts that a command runs and that its Pod can change, by their content: an approval covers only this
    /// content, and only once. For a server, its definition or its list of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scripts: Vec<ScriptHash>,
    /// Whether the same command line may run something else the next time, so that no rule is written for it. False in
    /// requests of earlier releases.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once_only: bool,
    /// Whether no answer is written as a rule, although one that the person wrote allows it: a credential goes to programs
    /// that may obey files of the Pod. False in requests of earlier releases.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub answered_once: bool,
    /// The rule that an answer for the Pod or the subtree writes; none is written if [`ApprovalRequest::is_once_only`].
    pub rule: Pattern,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
    /// When a person put it off, where a client asks. The event of such a request is about one that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<u64>,
}

/// The tool name of rules and requests about the start of an MCP server.
pub const START_SERVER: &str = "McpServer";
/// The tool name of rules and requests about changed tools of an MCP server.
pub const CHANGED_TOOLS: &str = "McpTools";

/// Characters of the action in [`ApprovalRequest::line`].
const MAX_LINE: usize = 80;

impl ApprovalRequest {
    /// A request without anything that only some have.
    pub fn new(id: String, pod: PodName, tool: &str, rule: Pattern) -> Self {
        Self {
            id,
            pod,
            client: None,
            agent: None,
            lineage: Vec::new(),
            cwd: None,
            call_id: String::new(),
            tool: tool.to_owned(),
            action: String::new(),
            question: None,
            arguments: None,
            details: None,
            because: String::new(),
            reason: None,
            said: None,
            task: None,
            scope: Vec::new(),
            lease: None,
            outside: Vec::new(),
            credentials: Vec::new(),
            scripts: Vec::new(),
            once_only: false,
            answered_once: false,
            rule,
            since: 0,
            later: None,
        }
    }

    /// Whether this Pod asks.
    pub fn is_of(&self, pod: &PodName) -> bool {
        self.is_of_pod() && self.pod == *pod
    }

    /// Whether a Pod asks, and neither an MCP client nor an agent of another machine.
    pub fn is_of_pod(&self) -> bool {
        self.client.is_none() && self.agent.is_none()
    }

    /// The Pod or the client that asks, in words.
    pub fn asker(&self) -> String {
        match (&self.client, &self.agent) {
            (Some(client), _) => format!("the MCP client {}", SafeText::quoted(&client.name)),
            (None, Some(agent)) => format!("the agent {}", SafeText::quoted(agent)),
            (None, None) => self.pod.to_string(),
        }
    }

    /// What the action belongs to: a tool, a question, or what is to be done with an MCP server.
    pub fn call(&self) -> Cow<'_, str> {
        match &self.question {
            Some(Question { server: Some(server), .. }) => {
                format!("question of the MCP server {}:", SafeText::quoted(server)).into()
            }
            Some(Question { server: None, .. }) => "question:".into(),
            None => match self.tool.as_str() {
                START_SERVER => "start the MCP server".into(),
                CHANGED_TOOLS => "use new or changed tools of the MCP server".into(),
                tool => tool.into(),
            },
        }
    }

    /// The request in one line: `Bash cargo fetch (network)`.
    pub fn line(&self) -> String {
        let line = format!("{} {}", self.call(), SafeText::brief(self.action.trim_end(), MAX_LINE));
        if self.question.is_some() {
            return line;
        }
        let needs = self.needs().collect::<Vec<_>>().join(", ");
        match (needs.as_str(), &self.lease) {
            ("", None) => line,
            ("", Some(_)) => format!("{line} (outside its scope)"),
            (needs, _) => format!("{line} ({needs})"),
        }
    }

    /// Whether no rule may come from a decision.
    pub fn is_once_only(&self) -> bool {
        self.answered_once || self.has_no_rule()
    }

    /// Whether no rule allows it: the command may run something else the next time, such as a script that the Pod can
    /// change.
    pub fn has_no_rule(&self) -> bool {
        let has_scripts = !self.scripts.is_empty();
        self.once_only
            || self.question.is_some()
            || has_scripts && self.tool != START_SERVER && self.tool != CHANGED_TOOLS
    }

    /// The needs of a command, in words.
    pub fn needs(&self) -> impl Iterator<Item = String> {
        let words = tool_words::split(&self.rule.tool).into_iter().skip(1);
        let outside = (!self.outside.is_empty()).then(|| "outside".to_owned());
        let credential = |credential: &Credential| format!("credential {}", credential.name);
        let credentials = self.credentials.iter().map(credential);
        words.filter(|word| !word.contains('=')).chain(outside).chain(credentials)
    }
}

/// The calls that a rule of policy is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// A tool's name, ignoring case, or `*`. `mcp__sh__run(command)` is the argument `command` of an external tool, and
    /// `mcp__sh__run()` the JSON text of all its arguments. `Bash+network` is a command that needs at most that, and
    /// `Bash+read=/srv/data` one that names at most that path.
    pub tool: String,
    /// A pattern with `*` and `?` for the call's command, its file, the pattern and the directory
    /// of its search, or the name of its Pod; `\` makes the next character literal.
    pub pattern: String,
}

/// A text that is no rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a rule has the form <tool>:<pattern>, such as 'Bash:cargo *'")]
pub struct NotAPattern;

impl std::str::FromStr for Pattern {
    type Err = NotAPattern;

    /// As [`Display`](std::fmt::Display) writes it.
    fn from_str(text: &str) -> Result<Self, NotAPattern> {
        let parts = tool_words::end(text).map(|at| (&text[..at], &text[at + 1..]));
        match parts {
            Some((tool, pattern)) if !tool.is_empty() && !pattern.is_empty() => {
                Ok(Self { tool: tool.into(), pattern: pattern.into() })
            }
            _ => Err(NotAPattern),
        }
    }
}

impl std::fmt::Display for Pattern {
    /// As `--allow` takes it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.tool, self.pattern)
    }
}

/// A decision. `Pod` and `Tree` store a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Verdict {
    /// This once.
    Once,
    /// From now on, for this Pod or this client.
    Pod {
        /// Instead of [`ApprovalRequest::rule`]; it must allow the call of the request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Pattern>,
    },
    /// From now on, for this Pod and everything below it.
    Tree {
        /// As for the Pod.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rule: Option<Pattern>,
        /// A live Pod above this one, in whose place: the rule is that Pod's, and ends when that Pod stops.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<PodName>,
    },
    /// The answer to a question, which fits its fields.
    Answer { values: Values },
    /// No; the model reads the reason.
    Deny {
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reason: String,
    },
    /// No decision is needed any more: the Pod was stopped or its run dropped.
    Withdrawn { why: String },
}

/// The decision of a policy rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Allow,
    Ask,
    Deny,
}

/// A rule of policy, its origin and the Pods that it binds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRule {
    /// The number by which it is revoked; `None` for a rule of a file or of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The Pod that it was made for; `None` binds every Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<PodName>,
    /// Whether it binds what is below that Pod, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tree: bool,
    #[serde(flatten)]
    pub pattern: Pattern,
    pub action: Action,
    /// Its origin, in words.
    pub source: String,
}

/// A person's consent: text of every Pod may be sent to this provider, at this address, with this key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyConsent {
    /// The number by which it is revoked; no rule has the same.
    pub id: u64,
    pub provider: String,
    pub base_url: String,
    /// The key and its origin, in words.
    pub key: String,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}

/// A person's trust in this content of a workspace's settings file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTrust {
    /// The number by which it is revoked; no rule has the same.
    pub id: u64,
    /// The root of the workspace.
    pub workspace: PathBuf,
    /// SHA-256 of the file, hex.
    pub sha256: String,
    /// Milliseconds since the Unix epoch.
    pub since: u64,
}

/// The settings file of a workspace, and its keys that need trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceFile {
    pub file: PathBuf,
    /// SHA-256 of the content, hex.
    pub sha256: String,
    /// Whether a person trusts this content.
    pub trusted: bool,
    /// One line for each key with its value; spelled out by the program that shows it.
    pub changes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_request_is_one_line_with_what_it_needs() {
        let mut approval = ApprovalRequest {
            call_id: "c".into(),
            action: "cargo fetch".into(),
            ..ApprovalRequest::new(
                "1".into(),
                PodName::parse("alice").unwrap(),
                "Bash",
                Pattern { tool: "Bash+network".into(), pattern: "cargo fetch".into() },
            )
        };
        assert_eq!(approval.line(), "Bash cargo fetch (network)");
        approval.action = "cd x\nmake".into();
        assert_eq!(approval.line(), "Bash cd x⏎make (network)");
        approval.action = format!("ls{}; rm -rf ~", " ".repeat(78));
        assert_eq!(approval.line(), "Bash ls⟨78 blanks⟩; rm -rf ~ (network)");
        let access = crate::protocol::OutsideAccess::Read;
        approval.outside = vec![OutsidePath { path: "/srv/a".into(), access }];
        approval.rule.tool = "Bash+network+read=/srv/a".into();
        assert_eq!(approval.line(), "Bash ls⟨78 blanks⟩; rm -rf ~ (network, outside)");
        approval.question = Some(Question::of_model(vec![]));
        approval.action = "Which\nname?".into();
        assert_eq!(approval.line(), "question: Which⏎name?");
        assert!(approval.is_once_only(), "no rule answers a question");
        approval.question = Some(Question { server: Some("db".into()), fields: vec![] });
        assert_eq!(approval.line(), r#"question of the MCP server "db": Which⏎name?"#);
    }
}
