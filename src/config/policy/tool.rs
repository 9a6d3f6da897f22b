//! The first part of a rule: which tool it is about, and what a call of it may need.

use crate::config::policy::arguments;
use crate::config::policy::pattern::{Matcher, Reach};
use crate::config::policy::{Subject, is_command};
use crate::protocol::approval::{CHANGED_TOOLS, START_SERVER};
use crate::protocol::{Action, OutsideAccess, OutsidePath, ScriptHash, tool_words};
use std::path::Path;

/// The need that paths outside the scope stand for.
const OUTSIDE: &str = "outside";
/// What stands between the access and the path of a word.
const OF: char = '=';
/// The word for a credential.
const CREDENTIAL: &str = "credential";
/// The word for the content of a script, and the digits that a rule is written with.
const HASH: &str = "sha256";
const DIGITS: usize = 32;
/// Fewer digits stand for no content.
const FEWEST_DIGITS: usize = 12;

/// The tools that a rule can name, besides those of MCP servers. The last two stand for the start of a server
/// and for tools of a server that changed.
pub const TOOLS: [&str; 24] = [
    "AskPerson",
    "Bash",
    "BashOutput",
    "BashStop",
    "Edit",
    "Glob",
    "Grep",
    "ListPods",
    "Read",
    "ReadPodOutput",
    "RestorePod",
    "SendToPeerPod",
    "SendToPod",
    "SpawnPod",
    "StopPod",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskUpdate",
    "Write",
    "agent_send",
    "list_peers",
    "McpServer",
    "McpTools",
];
/// The beginning of the names of tools of MCP servers.
const OF_SERVERS: &str = "mcp__";
/// Decisions about MCP servers, which hold for the content that was shown.
const OF_CONTENTS: [&str; 2] = [START_SERVER, CHANGED_TOOLS];
/// The needs that a call can have.
const NEEDS: [&str; 3] = ["network", "git", OUTSIDE];

/// Refuses the first part of a rule that no call fits; the error says why.
pub fn check(text: &str) -> Result<(), String> {
    let mut words = tool_words::split(text).into_iter();
    let (name, argument) = name_and_argument(&words.next().unwrap_or_default());
    let is_known = |known: &[&str], word: &str| known.iter().any(|k| k.eq_ignore_ascii_case(word));
    let is_open = name.contains(['*', '?']) || is_of_a_server(&name);
    if let (false, Some(argument)) = (is_open, argument) {
        return Err(format!(
            "only a rule for a tool of an MCP server names an argument in brackets, such as \
             `mcp__shell__run(command)`; write `{name}`, and `{argument}` as the pattern"
        ));
    }
    if !is_open && !is_known(&TOOLS, &name) {
        let all = TOOLS.join(", ");
        return Err(format!("no tool is named `{name}`; there are {all}, mcp__<server>__<tool>"));
    }
    let is_need = |word: &String| {
        is_known(&NEEDS, word.trim())
            || path_word(word).is_some()
            || hash_word(word).is_some()
            || credential_word(word).is_some()
    };
    match words.find(|word| !is_need(word)) {
        Some(word) => Err(format!(
            "no call needs `{word}`; behind `+` stands network, git, outside, read=<path>, write=<path>, \
             socket=<path>, credential=<name> or sha256=<digits>"
        )),
        None => Ok(()),
    }
}

/// Whether a tool of this name belongs to an MCP server, whatever the case.
pub fn is_of_a_server(tool: &str) -> bool {
    tool.get(..OF_SERVERS.len()).is_some_and(|start| start.eq_ignore_ascii_case(OF_SERVERS))
}

/// The name of a tool, and the argument that follows it in brackets: `mcp__shell__run(command)`.
fn name_and_argument(word: &str) -> (String, Option<String>) {
    let word = word.trim();
    let named = word.strip_suffix(')').and_then(|word| word.split_once('('));
    match named {
        Some((name, argument)) => (name.to_owned(), Some(argument.to_owned())),
        None => (word.to_owned(), None),
    }
}

/// Whether a rule is about commands while their scripts have certain contents. Earlier releases wrote such rules for
/// approvals; none of them allows anything.
pub fn is_for_script_contents(text: &str) -> bool {
    let tool = Tool::of(text);
    tool.is_for_contents() && !OF_CONTENTS.iter().any(|name| tool.name.eq_ignore_ascii_case(name))
}

/// `Bash+network+read=/srv/data`, read.
pub struct Tool {
    name: String,
    /// The argument of an external tool that the rule names.
    argument: Option<String>,
    needs: Vec<String>,
    paths: Vec<(OutsideAccess, Matcher)>,
    /// Beginnings of the SHA-256 of scripts.
    hashes: Vec<String>,
    credentials: Vec<Matcher>,
}

impl Tool {
    pub fn of(text: &str) -> Self {
        let mut words = tool_words::split(text).into_iter();
        let (name, argument) = name_and_argument(&words.next().unwrap_or_default());
        let (needs, paths, hashes) = (Vec::new(), Vec::new(), Vec::new());
        let credentials = Vec::new();
        let mut tool = Self { name, argument, needs, paths, hashes, credentials };
        for word in words {
            if let Some(path) = path_word(&word) {
                tool.paths.push(path);
            } else if let Some(hash) = hash_word(&word) {
                tool.hashes.push(hash);
            } else if let Some(credential) = credential_word(&word) {
                tool.credentials.push(credential);
            } else {
                tool.needs.push(word.trim().to_owned());
            }
        }
        tool
    }

    /// Whether a rule for this tool speaks about a call. `Bash` is every call of Bash. `Bash+network` is, where
    /// it allows, one that needs at most the network, and where it asks or refuses one that needs it. A rule
    /// that allows a file tool without a need does not speak about calls that have one: `Write: /w/*` does not
    /// open `/w/.git/hooks`. A rule that allows commands while their scripts have certain contents speaks about none. Only
    /// a rule that names a credential allows a command that gets it.
    pub fn speaks(&self, action: Action, subject: &Subject) -> bool {
        if !self.is_named(&subject.tool) || self.argument.is_some() && subject.arguments.is_none() {
            return false;
        }
        let bare = self.needs.is_empty()
            && self.paths.is_empty()
            && self.hashes.is_empty()
            && self.credentials.is_empty();
        let gives = |name: &String| {
            let mut own = self.credentials.iter();
            own.any(|own| own.is_exact() && own.fits(name, Reach::Anything))
        };
        match action {
            Action::Allow if !subject.credentials.iter().all(gives) => false,
            Action::Allow if bare => {
                subject.needs.is_empty() || self.name == "*" || is_command(subject)
            }
            _ if bare => true,
            Action::Allow if is_command(subject) && self.is_for_contents() => false,
            Action::Allow => {
                subject.needs.iter().all(|need| self.gives(need, subject))
                    && (self.hashes.is_empty() || self.knows_all(&subject.scripts))
            }
            Action::Ask | Action::Deny => {
                subject.needs.iter().any(|need| self.names(need))
                    || subject.outside.iter().any(|path| self.is_about(path))
                    || subject.scripts.iter().any(|script| self.knows(script))
                    || subject.credentials.iter().any(|name| self.is_about_credential(name))
            }
        }
    }

    /// The argument of an external tool that the rule names.
    pub fn argument(&self) -> Option<&str> {
        self.argument.as_deref()
    }

    /// Whether the rule names a tool: whatever the case, and with wildcards (`mcp__git__*`).
    fn is_named(&self, tool: &str) -> bool {
        let name = Matcher::of(&self.name.to_lowercase());
        name.is_everything() || name.fits(&tool.to_lowercase(), Reach::Anything)
    }

    /// The same rule for scripts of any content.
    pub fn for_any_content(self) -> Self {
        Self { hashes: Vec::new(), ..self }
    }

    /// Whether it holds for scripts of certain contents only.
    pub fn is_for_contents(&self) -> bool {
        !self.hashes.is_empty()
    }

    /// Whether a script has a content that this rule names.
    pub fn knows(&self, script: &ScriptHash) -> bool {
        let known = |hash: &String| hash.len() >= FEWEST_DIGITS && script.sha256.starts_with(hash);
        self.hashes.iter().any(known)
    }

    fn knows_all(&self, scripts: &[ScriptHash]) -> bool {
        !scripts.is_empty() && scripts.iter().all(|script| self.knows(script))
    }

    /// Whether it names a credential.
    pub fn names_credentials(&self) -> bool {
        !self.credentials.is_empty()
    }

    fn is_about_credential(&self, name: &str) -> bool {
        self.credentials.iter().any(|own| own.fits(name, Reach::Anything))
    }

    fn names(&self, need: &str) -> bool {
        self.needs.iter().any(|word| word.eq_ignore_ascii_case(need))
    }

    /// Whether a rule that allows gives a call this need. The paths of a command are given by their own words,
    /// each by one that fits it whole.
    fn gives(&self, need: &str, subject: &Subject) -> bool {
        let given = |path: &OutsidePath| {
            let text = path.path.display().to_string();
            let fits = |(access, pattern): &(OutsideAccess, Matcher)| {
                access.includes(path.access) && pattern.fits(&text, Reach::Anything)
            };
            self.paths.iter().any(fits)
        };
        let by_path = need == OUTSIDE && !subject.outside.is_empty();
        self.names(need) || by_path && subject.outside.iter().all(given)
    }

    /// Whether a rule that asks or refuses is about a path: what lies below it, and what it lies in, count, too.
    fn is_about(&self, path: &OutsidePath) -> bool {
        let text = path.path.display().to_string();
        self.paths.iter().any(|(access, pattern)| {
            let beginning = pattern.beginning();
            let named = Path::new(&beginning);
            let inside = pattern.is_exact() && path.path.starts_with(named);
            path.access.includes(*access)
                && (pattern.fits(&text, Reach::Anything) || inside || named.starts_with(&path.path))
        })
    }
}

fn path_word(word: &str) -> Option<(OutsideAccess, Matcher)> {
    let (access, pattern) = word.split_once(OF)?;
    let access = OutsideAccess::ALL.into_iter().find(|known| known.word() == access.trim())?;
    Some((access, Matcher::of(pattern)))
}

fn credential_word(word: &str) -> Option<Matcher> {
    let (name, pattern) = word.split_once(OF)?;
    (name.trim() == CREDENTIAL).then(|| Matcher::of(pattern))
}

fn hash_word(word: &str) -> Option<String> {
    let (name, digits) = word.split_once(OF)?;
    let digits = digits.trim().to_ascii_lowercase();
    (name.trim() == HASH).then_some(digits)
}

/// The words for exactly what a call needs.
pub fn exactly(subject: &Subject) -> String {
    let by_path = !subject.outside.is_empty();
    let needs = subject.needs.iter().filter(|need| !(by_path && **need == OUTSIDE));
    let needs = needs.map(|need| (*need).to_owned());
    let paths = subject.outside.iter().map(|path| {
        let text = path.path.display().to_string();
        format!("{}{OF}{}", path.access.word(), tool_words::literal(&text))
    });
    let literal = |name: &String| format!("{CREDENTIAL}{OF}{}", tool_words::literal(name));
    let credentials = subject.credentials.iter().map(literal);
    // A command with scripts is allowed once only.
    let contents = subject.scripts.iter().filter(|_| !is_command(subject));
    let hashes = contents.map(|script| {
        let digits = script.sha256.get(..DIGITS).unwrap_or(&script.sha256);
        format!("{HASH}{OF}{digits}")
    });
    let name = match subject.arguments {
        Some(_) => format!("{}({})", subject.tool, arguments::ALL),
        None => subject.tool.clone(),
    };
    let words = [name].into_iter().chain(needs).chain(paths).chain(credentials).chain(hashes);
    let words: Vec<String> = words.collect();
    words.join("+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use OutsideAccess::{Read, Socket, Write};

    fn call(needs: &[&'static str], paths: &[(OutsideAccess, &str)]) -> Subject {
        let outside =
            paths.iter().map(|(access, path)| OutsidePath { path: path.into(), access: *access });
        let outside = outside.collect();
        Subject { tool: "Bash".into(), needs: needs.to_vec(), outside, ..Subject::default() }
    }

    #[test]
    fn a_rule_for_a_call_allows_exactly_its_paths() {
        let data = call(&["network", "outside"], &[(Read, "/srv/a+b:c*"), (Write, "/srv/out")]);
        let rule = exactly(&data);
        assert_eq!(rule, r"Bash+network+read=/srv/a\+b\:c\*+write=/srv/out");
        let allowed = |subject: &Subject| Tool::of(&rule).speaks(Action::Allow, subject);
        assert!(allowed(&data));
        assert!(allowed(&call(&["outside"], &[(Read, "/srv/out")])), "writing includes reading");
        for (access, path) in [
            (Write, "/srv/a+b:c*"),
            (Read, "/srv/a+b:cd"),
            (Read, "/srv/out/below"),
            (Read, "/srv"),
            (Read, "/srv/output"),
            (Socket, "/srv/out"),
        ] {
            let other = call(&["outside"], &[(Read, "/srv/a+b:c*"), (access, path)]);
            assert!(!allowed(&other), "{access:?} {path}");
        }
        assert!(!allowed(&call(&["outside"], &[])), "a call that names no path is not given any");
        assert!(!allowed(&call(&["git"], &[])));
    }

    #[test]
    fn a_rule_for_contents_holds_for_a_server_as_it_was_shown_and_allows_no_command() {
        let content = |digit: &str| ScriptHash { path: "demo".into(), sha256: digit.repeat(64) };
        let start = |tool: &str, digit: &str| Subject {
            tool: tool.into(),
            scripts: vec![content(digit)],
            ..Subject::default()
        };
        let rule = exactly(&start("McpServer", "a"));
        assert_eq!(rule, format!("McpServer+sha256={}", "a".repeat(32)));
        let allows = |rule: &str, subject: &Subject| Tool::of(rule).speaks(Action::Allow, subject);
        assert!(allows(&rule, &start("McpServer", "a")));
        assert!(!allows(&rule, &start("McpServer", "b")));
        assert!(!allows(&rule, &Subject { tool: "McpServer".into(), ..Subject::default() }));
        let any = Tool::of(&rule).for_any_content();
        assert!(any.speaks(Action::Allow, &start("McpServer", "b")));
        let short = format!("McpServer+sha256={}", "a".repeat(11));
        assert!(!allows(&short, &start("McpServer", "a")));

        let script =
            |needs: &[&'static str]| Subject { scripts: vec![content("a")], ..call(needs, &[]) };
        assert_eq!(exactly(&script(&["network"])), "Bash+network", "no hash is written");
        let old = format!("Bash+network+sha256={}", "a".repeat(32));
        assert!(!allows(&old, &script(&["network"])) && !allows(&old, &script(&[])));
        assert!(Tool::of(&old).speaks(Action::Deny, &script(&["network"])), "it goes on denying");
        assert!(allows("Bash+network", &script(&["network"])), "a rule without a hash");
        assert!(is_for_script_contents(&old) && is_for_script_contents("*+sha256=00"));
        assert!(!is_for_script_contents(&rule) && !is_for_script_contents("Bash+network"));
    }

    #[test]
    fn a_rule_for_a_tool_or_a_need_that_there_is_not_names_those_there_are() {
        for fits in [
            "Bash",
            "bash+NETWORK",
            "*",
            "Task*",
            "mcp__git__*",
            "mcp__git__log",
            "mcp__git__log(options.path)",
            "MCP__*()",
            r"Bash+network+read=/srv/a\+b*+sha256=00",
            "McpServer",
        ] {
            assert_eq!(check(fits), Ok(()), "{fits}");
        }
        let why = check("Bsh").unwrap_err();
        assert!(
            why.starts_with("no tool is named `Bsh`; there are AskPerson, Bash, BashOutput"),
            "{why}"
        );
        let why = check("Bash+netwrk").unwrap_err();
        assert!(why.starts_with("no call needs `netwrk`"), "{why}");
        assert!(check("Bash+exec=/srv").is_err() && check("").is_err());
        let why = check("Bash(git push*)").unwrap_err();
        assert!(why.ends_with("write `Bash`, and `git push*` as the pattern"), "{why}");
    }

    #[test]
    fn wildcards_and_the_bare_need_allow_more_paths() {
        let call = |path| call(&["outside"], &[(Read, path)]);
        let allows = |rule: &str, path| Tool::of(rule).speaks(Action::Allow, &call(path));
        assert!(allows("Bash+read=/srv/*", "/srv/a") && allows("Bash+outside", "/srv/a"));
        assert!(!allows("Bash+read=/srv/*", "/srv") && !allows("Bash+write=/other", "/srv/a"));
        assert!(!allows("Bash+network", "/srv/a"));
    }

    #[test]
    fn a_rule_that_denies_a_path_denies_what_lies_below_it_and_what_it_lies_in() {
        let denies = |rule: &str, access, path| {
            Tool::of(rule).speaks(Action::Deny, &call(&["outside"], &[(access, path)]))
        };
        for path in ["/srv/keys", "/srv/keys/deep/a", "/srv", "/"] {
            assert!(denies("Bash+read=/srv/keys", Read, path), "{path}");
            assert!(denies("Bash+read=/srv/keys", Write, path), "{path}");
            assert!(!denies("Bash+write=/srv/keys", Read, path), "{path}");
        }
        assert!(
            denies("Bash+read=/srv/*", Read, "/srv/a/b")
                && denies("Bash+read=/srv/*", Read, "/srv")
        );
        for path in ["/srv/keyser", "/srv/other", "/opt"] {
            assert!(!denies("Bash+read=/srv/keys", Read, path), "{path}");
        }
        assert!(denies("Bash+outside", Read, "/opt") && denies("Bash", Read, "/opt"));
    }
}
