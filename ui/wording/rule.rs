//! The rules of what Pods may do, as people read them.

use std::slice::from_ref;
use yoi::config::policy::names_credentials;
use yoi::protocol::{ApprovalRequest, McpClient, Pattern, PodName, Verdict, answer_words};
use yoi::text::SafeText;

/// Why there is no rule for the request of a Pod.
pub const ONCE_ONLY: &str =
    "it is allowed once only: the same command may run something else the next time";

/// Why there is no rule for a request; `None`: there is one.
pub fn once_only(request: &ApprovalRequest) -> Option<&'static str> {
    let why = match &request.agent {
        Some(_) => "one yes makes them peers, so there is no rule for it",
        None => ONCE_ONLY,
    };
    request.is_once_only().then_some(why)
}

/// Why a rule is not written for a Pod with everything below it; `None`: it may be.
pub fn only_for_pods(rule: &Pattern) -> Option<&'static str> {
    names_credentials(rule)
        .then_some("a credential is given once or to one Pod, and each child asks for itself")
}

/// A rule: the tool, and the pattern that its calls have to match.
pub fn pattern(rule: &Pattern) -> String {
    SafeText::spelled(format!("{}: {}", rule.tool, rule.pattern)).into_string()
}

/// What a rule for a command does not hold; `None` for other rules.
pub fn limit(rule: &Pattern) -> Option<&'static str> {
    let tool = rule.tool.split('+').next().unwrap_or_default();
    tool.eq_ignore_ascii_case("Bash").then_some("files that it loads may change later")
}

/// What a rule would say for these Pods, and with `tree` for everything below them.
pub fn from_now_on(rule: &Pattern, pods: &[PodName], tree: bool) -> String {
    let whom = if tree { trees(pods) } else { names(pods) };
    format!("always allow {} for {whom}?", pattern(rule))
}

fn names(pods: &[PodName]) -> String {
    pods.iter().map(PodName::as_str).collect::<Vec<_>>().join(", ")
}

/// These Pods and everything below them.
pub fn trees(pods: &[PodName]) -> String {
    let below = if pods.len() == 1 { "its" } else { "their" };
    format!("{} and {below} children", names(pods))
}

/// The question about a consent to an MCP client; `rule` holds the tools and the folder.
pub fn for_client(rule: &Pattern, client: &McpClient) -> String {
    let name = SafeText::quoted(&client.name);
    format!(
        "always allow {} {} for the MCP client {name}?",
        rule.tool,
        SafeText::spelled(&rule.pattern)
    )
}

/// A decision, in a few words.
pub fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Once => "allowed once".into(),
        Verdict::Pod { .. } => "always allowed".into(),
        Verdict::Tree { of: None, .. } => "always allowed, for its children too".into(),
        Verdict::Tree { of: Some(above), .. } => {
            format!("always allowed, for {}", trees(from_ref(above)))
        }
        Verdict::Answer { values } => {
            format!("answered: {}", SafeText::spelled(answer_words(values)))
        }
        Verdict::Deny { reason } if reason.is_empty() => "denied".into(),
        Verdict::Deny { reason } => format!("denied: {reason}"),
        Verdict::Withdrawn { why } => format!("withdrawn: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_push_no_part_of_a_rule_out_of_sight() {
        let hiding = format!("ls{}; rm -rf ~", "\t \u{200b}\n".repeat(1000));
        let rule = Pattern { tool: "Bash".into(), pattern: hiding };
        let shown = "ls⟨2000 blanks, 1000 ⏎, 1000 hidden characters⟩; rm -rf ~";
        assert_eq!(pattern(&rule), format!("Bash: {shown}"));
        let alice = PodName::parse("alice").unwrap();
        let question = format!("always allow Bash: {shown} for alice?");
        assert_eq!(from_now_on(&rule, &[alice], false), question);
    }

    #[test]
    fn a_rule_for_a_command_says_what_it_does_not_hold() {
        let of = |tool: &str| limit(&Pattern { tool: tool.into(), pattern: "make x".into() });
        for tool in ["Bash", "bash", "Bash+network"] {
            assert_eq!(of(tool), Some("files that it loads may change later"), "{tool}");
        }
        assert_eq!((of("Write"), of("mcp__git__log")), (None, None));
    }
}
