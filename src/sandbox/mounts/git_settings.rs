//! The person's settings of git as a command sees them: who commits and how, without settings that
//! give access to other systems.

use crate::sandbox::access::env::{holds_password, names_secret};
use crate::sandbox::git::config_file::{self, Setting};
use std::path::{Path, PathBuf};

/// Sections that are copied. Sections about signing, connections, sending and passwords are not.
const SHOWN: &[&str] = &[
    "advice",
    "alias",
    "am",
    "apply",
    "blame",
    "branch",
    "checkout",
    "clean",
    "clone",
    "color",
    "column",
    "commit",
    "core",
    "diff",
    "feature",
    "fetch",
    "filter",
    "format",
    "gc",
    "grep",
    "help",
    "i18n",
    "include",
    "includeif",
    "index",
    "init",
    "interactive",
    "log",
    "mailmap",
    "merge",
    "notes",
    "pack",
    "pager",
    "protocol",
    "pull",
    "push",
    "rebase",
    "rerere",
    "safe",
    "stash",
    "status",
    "submodule",
    "tag",
    "url",
    "user",
    "versionsort",
    "worktree",
];
/// Settings of these sections that are omitted: programs of the person, and keys that a command
/// does not have.
const LEFT_OUT: &[&str] = &[
    "askpass",
    "fsmonitor",
    "gitproxy",
    SIGNS,
    HOOKS,
    "recentobjectshook",
    "sshcommand",
    "templatedir",
];
/// The setting by which git signs each commit or tag.
const SIGNS: &str = "gpgsign";
/// The setting with the directory of hooks for every repository.
const HOOKS: &str = "hookspath";
/// Settings with the path of a file that git reads.
const FILES: [(&str, &str); 5] = [
    ("blame", "ignorerevsfile"),
    ("commit", "template"),
    ("core", "attributesfile"),
    ("core", "excludesfile"),
    ("mailmap", "file"),
];

const NO_HOOKS: &str = "the hooks that core.hooksPath of your settings of git names do not run";
const NO_SIGNATURES: &str = "commits and tags are not signed, as your settings of git want, because commands have none of your keys";
/// What git leaves out without a word in a command.
pub const COSTS: [&str; 2] = [NO_HOOKS, NO_SIGNATURES];

/// The settings of a file that a command sees.
pub struct Shown {
    pub text: String,
    /// The files that it includes.
    pub included: Vec<PathBuf>,
    /// The other files that git reads because of it. A path that is relative to a repository is none.
    pub named: Vec<PathBuf>,
    /// What git leaves out without a word, because these settings are not shown.
    pub cost: Vec<&'static str>,
}

/// A configuration file with only the allowed settings.
pub fn shown(file: &Path, home: &Path, text: &str) -> Shown {
    let mut settings = config_file::parse(text);
    settings.iter_mut().for_each(explain);
    let has_hooks = settings.iter().any(|s| s.section == "core" && s.name == HOOKS);
    let signs = settings.iter().any(|s| s.name == SIGNS && is_on(s));
    let cost = [(has_hooks, NO_HOOKS), (signs, NO_SIGNATURES)];
    settings.retain(is_shown);
    let paths = settings
        .iter()
        .filter(|setting| setting.section.starts_with("include") && setting.name == "path");
    let included = paths.filter_map(|setting| Some(place(file, home, setting.value.as_ref()?)));
    let named = settings.iter().filter(|s| FILES.contains(&(&s.section, &s.name)));
    let named = named.filter_map(|setting| setting.value.as_ref());
    let named = named.filter(|value| value.starts_with(['/', '~']));
    Shown {
        text: config_file::text_of(&settings),
        included: included.collect(),
        named: named.map(|value| place(file, home, value)).collect(),
        cost: cost.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, cost)| cost).collect(),
    }
}

/// Whether git reads the value of a setting as true.
fn is_on(setting: &Setting) -> bool {
    let is_true =
        |value: &str| ["true", "yes", "on", "1"].iter().any(|on| value.eq_ignore_ascii_case(on));
    setting.value.as_deref().is_none_or(is_true)
}

/// Replaces an alias that starts another program than git, whose line can contain a password in any form, by one that
/// says so.
fn explain(setting: &mut Setting) {
    let Setting { section, name, value, .. } = setting;
    let line = value.as_deref().unwrap_or_default();
    let of_git = line.strip_prefix('!').is_some_and(|line| line.trim_start().starts_with("git "));
    if section == "alias"
        && line.starts_with('!')
        && (!of_git || line.contains('@') || holds_password(line))
    {
        *value = Some(format!(
            "!echo 'the alias {name} of your settings starts a program, so commands of a Pod do not get it' >&2; exit 1"
        ));
    }
}

/// Whether a command may see a setting.
fn is_shown(setting: &Setting) -> bool {
    let Setting { section, subsection, name, value } = setting;
    let value = value.as_deref().unwrap_or_default();
    // A command line of the person can contain a password in any form.
    let command = section == "filter" && value.contains([':', '@']);
    SHOWN.contains(&&**section)
        && !LEFT_OUT.contains(&&**name)
        && !command
        && !names_secret(name)
        && ![Some(value), subsection.as_deref()].into_iter().flatten().any(holds_password)
}

/// Resolves the path of an included file.
fn place(file: &Path, home: &Path, value: &str) -> PathBuf {
    let path = match value.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => file.parent().unwrap_or(file).join(value),
    };
    crate::files::without_parents(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_commits_is_shown_and_passwords_and_their_helpers_are_not() {
        let text = "[user]\n\tname = A\n\temail = a@b\n[credential]\n\thelper = store\n\
                    [credential \"https://x\"]\n\thelper = !gh\n[core]\n\teditor = vi\n\
                    \tsshCommand = ssh -i ~/.ssh/key\n\thooksPath = ~/hooks\n\
                    [http]\n\textraHeader = Authorization: token\n\
                    [url \"https://me:token@host/\"]\n\tinsteadOf = https://host/\n\
                    [url \"https://mirror/\"]\n\tinsteadOf = https://slow/\n\
                    [commit]\n\tgpgSign = true\n\ttemplate = a \\\n  b\n\
                    [includeIf \"gitdir:~/work/\"]\n\tpath = ~/work.conf\n[include]\n path=more\n";
        let Shown { text: kept, included, named, cost } =
            shown("/h/.gitconfig".as_ref(), "/h".as_ref(), text);
        let expected = "[user]\n\tname = \"A\"\n\temail = \"a@b\"\n[core]\n\teditor = \"vi\"\n\
                        [url \"https://mirror/\"]\n\tinsteadof = \"https://slow/\"\n\
                        [commit]\n\ttemplate = \"a   b\"\n\
                        [includeif \"gitdir:~/work/\"]\n\tpath = \"~/work.conf\"\n\
                        [include]\n\tpath = \"more\"\n";
        assert_eq!(kept, expected);
        assert_eq!(included, [PathBuf::from("/h/work.conf"), PathBuf::from("/h/more")]);
        assert!(named.is_empty(), "a template beside the repository is not known");
        assert_eq!(cost, COSTS);
    }

    #[test]
    fn no_spelling_of_a_password_in_the_settings_is_shown() {
        let text = "[user]\n\ttoken = SECRET0\n\tname = A\n\
                    [alias]\n\tco = checkout\n\tlast = !git log -1\n\ttok = !git push https://SECRET8@h/x\n\tup = push \\\n  https://me:SECRET1@host/x\n\
                    \tapi = !curl -H 'Authorization: Bearer SECRET2'\n\
                    [filter \"x\"]\n\tclean = curl -u me:SECRET3\n\tsmudge = x --token=SECRET4\n\
                    [filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\
                    [url \"me:SECRET5@host:\"]\n\tinsteadOf = x:\n\
                    [url \"git@github.com:\"]\n\tinsteadOf = gh:\n\
                    [submodule \"m\"]\n\turl = https://h/x?private_token=SECRET7\n";
        let kept = shown("/h/.gitconfig".as_ref(), "/h".as_ref(), text).text;
        assert!(!kept.contains("SECRET"), "{kept}");
        for line in [
            "name = \"A\"",
            "co = \"checkout\"",
            "last = \"!git log -1\"",
            "api = \"!echo 'the alias api",
            "git-lfs clean",
            "git@github.com:",
        ] {
            assert!(kept.contains(line), "{line}: {kept}");
        }
    }
}
