//! Policy: which actions pass, which are asked about and which are refused, by ordered rules over
//! a tool and the text that says what it is about. Pure.

use crate::protocol::{Action, Pattern};
use serde::Deserialize;
use std::iter::Peekable;
use std::str::Chars;

/// What joins a tool and the needs of its command in a pattern: `Bash+network`.
const NEEDS: char = '+';

/// `[permissions]` of a settings file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Permissions {
    /// What is done with what no rule and no answer speaks about, instead of the program's own
    /// defaults.
    pub default: Option<Action>,
    /// The first that matches counts.
    pub rule: Vec<FileRule>,
}

/// A rule as a file has it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    #[serde(default = "everything")]
    pub tool: String,
    #[serde(default = "everything")]
    pub pattern: String,
    pub action: Action,
}

fn everything() -> String {
    "*".into()
}

/// A call as policy sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    pub tool: String,
    /// What it needs beyond its walls or its scope, in words.
    pub needs: Vec<&'static str>,
    /// What it is about: as the model wrote it and then, for a path, as it really is. Empty when
    /// it says nothing.
    pub texts: Vec<String>,
}

/// All rules of files that bind a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub user: Permissions,
    /// Where the user's rules stand.
    pub user_file: String,
    /// Rules of the workspace; they ask or deny, they never allow.
    pub workspace: Vec<FileRule>,
    /// Where those stand.
    pub workspace_file: String,
}

/// What files and answers say of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Allow,
    /// A rule wants an approval, and no decision made a rule yet; the text names the rule.
    Ask(String),
    /// The text names the rule.
    Deny(String),
    /// No rule speaks about it; `[permissions] default` if it is set.
    Nothing(Option<Action>),
}

impl Rules {
    /// What the rules say: the user's own first, narrowed by the workspace's; where they ask or
    /// say nothing, the answers that were given for good, in the order given here.
    pub fn said(&self, subject: &Subject, answers: &[(Pattern, Action)]) -> Said {
        let user = first(&self.user.rule, subject).map(|rule| (rule, &self.user_file));
        let workspace = first(&self.workspace, subject).map(|rule| (rule, &self.workspace_file));
        let workspace = workspace.filter(|(rule, _)| rule.action != Action::Allow);
        let of = |action: Action| {
            let found = [user, workspace].into_iter().flatten().find(|(r, _)| r.action == action);
            found.map(|(rule, file)| named(rule, file))
        };
        if let Some(deny) = of(Action::Deny) {
            return Said::Deny(deny);
        }
        let asking = of(Action::Ask);
        if asking.is_none() && user.is_some() {
            return Said::Allow;
        }
        let answer = answers.iter().find(|(pattern, action)| matches(pattern, *action, subject));
        match (answer.map(|(_, action)| action), asking) {
            (Some(Action::Allow), _) => Said::Allow,
            (Some(Action::Deny), _) => Said::Deny("an answer that was given for good".into()),
            (Some(Action::Ask) | None, Some(asking)) => Said::Ask(asking),
            (Some(Action::Ask) | None, None) => Said::Nothing(self.user.default),
        }
    }
}

fn first<'a>(rules: &'a [FileRule], subject: &Subject) -> Option<&'a FileRule> {
    rules.iter().find(|rule| {
        let pattern = Pattern { tool: rule.tool.clone(), pattern: rule.pattern.clone() };
        matches(&pattern, rule.action, subject)
    })
}

fn named(rule: &FileRule, file: &str) -> String {
    format!("the rule `{}: {}` in {file}", rule.tool, rule.pattern)
}

/// Whether a rule of this action speaks about a call. One that refuses or asks does when any of
/// the call's texts fits; one that allows must fit what the call is really about, and in a command
/// its wildcards end where another command may begin: `cargo *` does not let `cargo x; rm y` pass.
pub fn matches(pattern: &Pattern, action: Action, subject: &Subject) -> bool {
    if !of_tool(&pattern.tool, action, subject) {
        return false;
    }
    let narrow = action == Action::Allow && is_command(subject);
    let reach = if narrow { Reach::OneCommand } else { Reach::Anything };
    let fits = |text: &str| fits(&pattern.pattern, text, reach);
    match (subject.texts.as_slice(), action) {
        ([], _) => fits(""),
        ([.., real], Action::Allow) => fits(real),
        (texts, Action::Ask | Action::Deny) => texts.iter().any(|text| fits(text)),
    }
}

/// `Bash` is every call of Bash. `Bash+network` is, where it allows, one that needs at most the
/// network, and where it asks or refuses one that needs it. A rule that allows a file tool without
/// a need does not speak about calls that have one: `Write: /w/*` does not open `/w/.git/hooks`.
fn of_tool(tool: &str, action: Action, subject: &Subject) -> bool {
    let mut parts = tool.split(NEEDS).map(str::trim);
    let name = parts.next().unwrap_or("");
    if name != "*" && !name.eq_ignore_ascii_case(&subject.tool) {
        return false;
    }
    let named: Vec<&str> = parts.collect();
    let is_named = |need: &&str| named.iter().any(|word| word.eq_ignore_ascii_case(need));
    let plain = subject.needs.is_empty() || name == "*" || is_command(subject);
    match action {
        Action::Allow if named.is_empty() => plain,
        _ if named.is_empty() => true,
        Action::Allow => subject.needs.iter().all(&is_named),
        Action::Ask | Action::Deny => subject.needs.iter().any(is_named),
    }
}

fn is_command(subject: &Subject) -> bool {
    subject.tool.eq_ignore_ascii_case("Bash")
}

/// The rule that speaks about exactly this call and no other.
pub fn exactly(subject: &Subject) -> Pattern {
    let mut tool = subject.tool.clone();
    for need in &subject.needs {
        tool.push(NEEDS);
        tool.push_str(need);
    }
    let text = subject.texts.last().map_or("", String::as_str);
    let mut pattern = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    Pattern { tool, pattern }
}

/// How much a wildcard may stand for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Anything,
    /// Nothing that ends a command, begins another one, or redirects it.
    OneCommand,
}

impl Reach {
    fn takes(self, c: char) -> bool {
        self == Self::Anything
            || !matches!(c, ';' | '&' | '|' | '\n' | '\r' | '<' | '>' | '(' | ')' | '`' | '$')
    }
}

#[derive(Clone, Copy)]
enum Piece {
    Char(char),
    One,
    Any,
}

/// Whether a pattern of `*` (any text), `?` (one character) and text fits the whole text; `\` before
/// one of the two, or before itself, takes its meaning away.
fn fits(pattern: &str, text: &str, reach: Reach) -> bool {
    if pattern == "*" {
        return true;
    }
    let mut pieces = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(piece) = next_piece(&mut chars) {
        pieces.push(piece);
    }
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // The last `*`: the piece behind it and where what it stands for ends.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pieces.get(p) {
            Some(Piece::Any) => {
                p += 1;
                star = Some((p, t));
            }
            Some(Piece::Char(c)) if *c == text[t] => (p, t) = (p + 1, t + 1),
            Some(Piece::One) if reach.takes(text[t]) => (p, t) = (p + 1, t + 1),
            Some(Piece::Char(_) | Piece::One) | None => {
                let Some((behind, end)) = star.filter(|(_, end)| reach.takes(text[*end])) else {
                    return false;
                };
                star = Some((behind, end + 1));
                (p, t) = (behind, end + 1);
            }
        }
    }
    pieces[p..].iter().all(|piece| matches!(piece, Piece::Any))
}

fn next_piece(chars: &mut Peekable<Chars<'_>>) -> Option<Piece> {
    Some(match chars.next()? {
        '*' => Piece::Any,
        '?' => Piece::One,
        '\\' => Piece::Char(chars.next_if(|c| matches!(c, '*' | '?' | '\\')).unwrap_or('\\')),
        c => Piece::Char(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bash(command: &str) -> Subject {
        Subject { tool: "Bash".into(), needs: vec![], texts: vec![command.into()] }
    }

    fn pattern(tool: &str, pattern: &str) -> Pattern {
        Pattern { tool: tool.into(), pattern: pattern.into() }
    }

    fn rule(tool: &str, pattern: &str, action: Action) -> FileRule {
        FileRule { tool: tool.into(), pattern: pattern.into(), action }
    }

    fn rules(user: Vec<FileRule>, workspace: Vec<FileRule>) -> Rules {
        Rules {
            user: Permissions { default: None, rule: user },
            user_file: "config.toml".into(),
            workspace,
            workspace_file: ".yoi/config.toml".into(),
        }
    }

    #[test]
    fn the_first_rule_that_matches_counts_and_tools_ignore_case() {
        let rules = rules(
            vec![rule("bash", "git push*", Action::Deny), rule("*", "*", Action::Allow)],
            vec![],
        );
        let said = rules.said(&bash("git push --force"), &[]);
        assert_eq!(said, Said::Deny("the rule `bash: git push*` in config.toml".into()));
        assert_eq!(rules.said(&bash("git pull"), &[]), Said::Allow);
    }

    #[test]
    fn a_workspace_narrows_and_never_widens() {
        let rules = rules(
            vec![rule("Bash", "*", Action::Allow)],
            vec![rule("Bash", "make *", Action::Ask), rule("Read", "*", Action::Allow)],
        );
        assert!(matches!(rules.said(&bash("make all"), &[]), Said::Ask(_)));
        assert_eq!(rules.said(&bash("ls"), &[]), Said::Allow);
        let read = Subject { tool: "Read".into(), needs: vec![], texts: vec!["/x".into()] };
        assert_eq!(rules.said(&read, &[]), Said::Nothing(None));
    }

    #[test]
    fn an_approval_overrides_an_asking_rule_and_no_denying_rule() {
        let rules =
            rules(vec![rule("Bash", "a*", Action::Ask), rule("Bash", "d*", Action::Deny)], vec![]);
        let answers =
            [(pattern("Bash", "ask"), Action::Allow), (pattern("Bash", "deny"), Action::Allow)];
        assert_eq!(rules.said(&bash("ask"), &answers), Said::Allow);
        assert!(matches!(rules.said(&bash("also"), &answers), Said::Ask(_)));
        assert!(matches!(rules.said(&bash("deny"), &answers), Said::Deny(_)));
    }

    #[test]
    fn a_wildcard_that_allows_ends_with_the_command_and_one_that_refuses_does_not() {
        let cargo = pattern("Bash", "cargo *");
        assert!(matches(&cargo, Action::Allow, &bash("cargo test --all")));
        for sneaky in ["cargo x; rm y", "cargo x && rm y", "cargo $(rm y)", "cargo x\nrm y"] {
            assert!(!matches(&cargo, Action::Allow, &bash(sneaky)), "{sneaky}");
            assert!(matches(&cargo, Action::Deny, &bash(sneaky)), "{sneaky}");
        }
        assert!(matches(&pattern("Bash", "*"), Action::Allow, &bash("a; b")));
    }

    #[test]
    fn the_needs_of_a_command_are_part_of_the_rule() {
        let needs = |needs: &[&'static str]| Subject { needs: needs.to_vec(), ..bash("make") };
        let network = pattern("Bash+network", "make");
        assert!(matches(&network, Action::Allow, &needs(&["network"])));
        assert!(matches(&network, Action::Allow, &needs(&[])));
        assert!(!matches(&network, Action::Allow, &needs(&["network", "outside"])));
        assert!(matches(&network, Action::Deny, &needs(&["network", "outside"])));
        assert!(!matches(&network, Action::Deny, &needs(&[])));
        assert!(matches(&pattern("Bash", "make"), Action::Allow, &needs(&["outside"])));
    }

    #[test]
    fn a_rule_that_allows_a_file_tool_opens_what_is_guarded_only_by_name() {
        let texts = vec!["/w/.git/hooks/x".to_owned()];
        let write = Subject { tool: "Write".into(), needs: vec!["git"], texts };
        assert!(!matches(&pattern("Write", "/w/*"), Action::Allow, &write));
        assert!(matches(&pattern("Write", "/w/*"), Action::Deny, &write));
        assert!(matches(&pattern("Write+git", "/w/*"), Action::Allow, &write));
        assert!(matches(&pattern("*", "*"), Action::Allow, &write));
        assert!(matches(&exactly(&write), Action::Allow, &write));
    }

    #[test]
    fn a_path_is_allowed_by_what_it_really_is_and_refused_by_either() {
        let texts = vec!["/w/../secret/x".to_owned(), "/secret/x".to_owned()];
        let read = Subject { tool: "Read".into(), needs: vec![], texts };
        assert!(!matches(&pattern("Read", "/w/*"), Action::Allow, &read));
        assert!(matches(&pattern("Read", "/secret/*"), Action::Deny, &read));
    }

    #[test]
    fn a_call_that_is_about_nothing_matches_only_what_matches_everything() {
        let list = Subject { tool: "ListPods".into(), ..Subject::default() };
        assert!(matches(&pattern("*", "*"), Action::Allow, &list));
        assert!(!matches(&pattern("ListPods", "a*"), Action::Deny, &list));
    }

    /// The obvious way, for comparison.
    fn plainly(pattern: &[char], text: &[char], reach: Reach) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((&'*', rest)), text_rest) => {
                plainly(rest, text, reach)
                    || text_rest
                        .is_some_and(|(c, left)| reach.takes(*c) && plainly(pattern, left, reach))
            }
            (Some(_), None) => false,
            (Some((&'?', rest)), Some((c, left))) => reach.takes(*c) && plainly(rest, left, reach),
            (Some((p, rest)), Some((c, left))) => p == c && plainly(rest, left, reach),
        }
    }

    proptest! {
        #[test]
        fn wildcards_match_as_the_obvious_way_does(
            pattern in "[ab;*?]{0,8}", text in "[ab;]{0,10}", narrow in any::<bool>(),
        ) {
            let reach = if narrow { Reach::OneCommand } else { Reach::Anything };
            let of = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = pattern == "*" || plainly(&of(&pattern), &of(&text), reach);
            prop_assert_eq!(fits(&pattern, &text, reach), expected);
        }

        #[test]
        fn the_rule_of_an_answer_speaks_about_that_call_and_no_other(
            one in "[ab*?\\\\; ]{0,6}", two in "[ab*?\\\\; ]{0,6}",
        ) {
            let rule = exactly(&bash(&one));
            prop_assert_eq!(matches(&rule, Action::Allow, &bash(&two)), one == two);
        }
    }
}
