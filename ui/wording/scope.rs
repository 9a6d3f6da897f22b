//! Scopes as people read them.

use std::path::Path;
use yoi::config::Env;
use yoi::protocol::{ApprovalRequest, Lent, OutsidePath, PodInfo, ScriptHash};
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
        return format!(
            "{path}, or what another Pod or a command in the background puts there while it runs"
        );
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

/// What a live Pod may change and what it may only read, with the paths in its workspace short: `may write ui/ · read src/`.
pub fn may(info: &PodInfo) -> String {
    let paths = |permission| {
        let rules = info.scope.iter().filter(|rule| rule.permission == permission);
        let paths: Vec<String> = rules.map(|rule| within(rule, &info.workspace)).collect();
        (!paths.is_empty()).then(|| paths.join(", "))
    };
    let write = paths(Permission::Write).map(|paths| format!("write {paths}"));
    let read = paths(Permission::Read).map(|paths| format!("read {paths}"));
    match write.into_iter().chain(read).collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        parts => format!("may {}", parts.join(" · ")),
    }
}

/// The path of a rule: below the workspace without it, and with a sign where everything below is meant.
fn within(rule: &Rule, workspace: &Path) -> String {
    let all = if rule.recursive { "/" } else { "" };
    match rule.target.strip_prefix(workspace) {
        Ok(rest) if rest.as_os_str().is_empty() => format!(".{all}"),
        Ok(rest) => format!("{}{all}", path(rest)),
        Err(_) => format!("{}{all}", path(&rule.target).trim_end_matches('/')),
    }
}

/// A path, with every character that a terminal would hide spelled.
pub fn path(path: &Path) -> String {
    SafeText::spelled(path.display().to_string()).into_string()
}

/// A path as a person writes it: below the home of this environment with `~`.
pub fn from_home(whole: &Path, env: &Env) -> String {
    let home = env.get("HOME").filter(|home| !home.is_empty());
    match home.and_then(|home| whole.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".into(),
        Some(rest) => format!("~/{}", path(rest)),
        None => path(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_below_the_home_begins_with_its_sign() {
        let env = [("HOME".to_owned(), "/home/me".to_owned())].into();
        let of = |dir: &str| from_home(Path::new(dir), &env);
        assert_eq!(of("/home/me/shop"), "~/shop");
        assert_eq!(of("/home/me"), "~");
        assert_eq!(of("/home/meadow"), "/home/meadow");
        assert_eq!(from_home(Path::new("/srv"), &Env::new()), "/srv");
    }

    use crate::screen::app::tests::pod;
    use yoi::protocol::State;

    #[test]
    fn what_a_pod_may_do_is_one_line_with_short_paths() {
        let rule = |path: &str, permission| Rule::new(path, permission);
        let info = |scope| PodInfo { scope, ..pod("alice", State::Idle) };
        let (read, write) = (Permission::Read, Permission::Write);
        assert_eq!(may(&info(vec![])), "", "the scope of a Pod that is not live is not known");
        assert_eq!(may(&info(vec![rule("/repo", write)])), "may write ./");
        let alone = Rule { recursive: false, ..rule("/etc/hosts", read) };
        let scope = vec![rule("/repo/src", read), rule("/repo/ui", write), alone];
        assert_eq!(may(&info(scope)), "may write ui/ · read src/, /etc/hosts");
    }

    #[test]
    fn a_script_is_named_with_its_hash_or_with_what_may_take_its_place() {
        let hashed = ScriptHash { path: "/w/x.sh".into(), sha256: "ba7816bf8f01cfea".into() };
        assert_eq!(script(&hashed), "/w/x.sh, SHA-256 ba7816bf8f01");
        let unheld =
            "/w/x.sh, or what another Pod or a command in the background puts there while it runs";
        assert_eq!(script(&ScriptHash::unheld("/w/x.sh".into())), unheld);
    }
}
