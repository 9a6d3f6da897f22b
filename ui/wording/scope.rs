//! Scopes as people read them.

use std::path::Path;
use yoi::protocol::{ApprovalRequest, Lent, OutsidePath, ScriptHash};
use yoi::run::{START_RULE, TOOLS_RULE};
use yoi::scope::{Permission, Rule};
use yoi::text::SafeText;

/// One rule: `write /repo/ui`, or `read /etc/hosts alone` where nothing below the path is meant.
pub fn rule(rule: &Rule) -> String {
    let may = match rule.permission {
        Permission::Read => "read",
        Permission::Write => "write",
    };
    let only = if rule.recursive { "" } else { " alone" };
    format!("{may} {}{only}", path(&rule.target))
}

/// A path that a command is given outside its scope: `write /srv/data`.
pub fn outside(path: &OutsidePath) -> String {
    SafeText::spelled(path.to_string()).into_string()
}

/// A script that a command runs: `/repo/build.sh, SHA-256 ba7816bf8f01`.
pub fn script(script: &ScriptHash) -> String {
    if script.is_unheld() {
        let path = path(&script.path);
        return format!("{path}, or what another Pod puts there while the command runs");
    }
    format!("{}, SHA-256 {}", path(&script.path), script.short())
}

/// The label and the text of the hash that a request shows.
pub fn hashed(approval: &ApprovalRequest, shown: &ScriptHash) -> (&'static str, String) {
    match approval.tool.as_str() {
        START_RULE => ("holds for", format!("this definition, SHA-256 {}", shown.short())),
        TOOLS_RULE => ("holds for", format!("this list of tools, SHA-256 {}", shown.short())),
        _ => ("runs", script(shown)),
    }
}

/// Several rules, or `nothing`.
pub fn rules(rules: &[Rule]) -> String {
    if rules.is_empty() {
        return "nothing".into();
    }
    rules.iter().map(rule).collect::<Vec<_>>().join(", ")
}

/// A rule that denies: a denial of `read` denies writing, too.
pub fn denied(rule: &Rule) -> String {
    match rule.permission {
        Permission::Read => format!("nothing in {}", path(&rule.target)),
        Permission::Write => format!("only read {}", path(&rule.target)),
    }
}

/// A part of a scope that is lent to another Pod.
pub fn lent(lent: &Lent) -> String {
    format!("{} to {}", rule(&lent.rule), lent.to)
}

/// A path, with every character that a terminal would hide spelled.
pub fn path(path: &Path) -> String {
    SafeText::spelled(path.display().to_string()).into_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_named_with_its_hash_or_with_what_may_take_its_place() {
        let hashed = ScriptHash { path: "/w/x.sh".into(), sha256: "ba7816bf8f01cfea".into() };
        assert_eq!(script(&hashed), "/w/x.sh, SHA-256 ba7816bf8f01");
        let unheld = "/w/x.sh, or what another Pod puts there while the command runs";
        assert_eq!(script(&ScriptHash::unheld("/w/x.sh".into())), unheld);
    }
}
