//! The person's settings of git as a command sees them: who commits and how, without what opens a
//! door elsewhere.

use crate::sandbox::env::holds_password;
use std::path::{Path, PathBuf};

/// Sections that are shown. What signs, connects, sends or asks for passwords is not.
const SHOWN: &[&str] = &[
    "advice",
    "alias",
    "apply",
    "blame",
    "branch",
    "checkout",
    "color",
    "column",
    "commit",
    "core",
    "diff",
    "feature",
    "fetch",
    "filter",
    "format",
    "grep",
    "i18n",
    "include",
    "includeif",
    "index",
    "init",
    "interactive",
    "log",
    "merge",
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
/// Parts of the names of settings in them that are not: programs of the person, keys that are not
/// there, passwords.
const LEFT_OUT: &[&str] = &[
    "askpass",
    "fsmonitor",
    "gitproxy",
    "gpgsign",
    "hookspath",
    "password",
    "sshcommand",
    "token",
];

/// A file of settings without what is not shown, and the files that it includes.
pub fn shown(file: &Path, home: &Path, text: &str) -> (String, Vec<PathBuf>) {
    let (mut kept, mut included) = (String::new(), Vec::new());
    let (mut section, mut keeps, mut goes_on) = (String::new(), false, false);
    let (mut opened, mut setting) = (true, String::new());
    for line in text.lines() {
        let plain = line.trim();
        if !goes_on {
            if let Some(header) = plain.strip_prefix('[') {
                section = header.split([' ', ']', '.', '"']).next().unwrap_or("").to_lowercase();
                opened = !holds_password(header);
            }
            let inline = plain.rsplit_once(']').filter(|_| plain.starts_with('['));
            let (name, value) = inline.map_or(plain, |l| l.1).split_once('=').unwrap_or_default();
            let name = name.trim().to_lowercase();
            setting.clear();
            keeps = opened
                && SHOWN.contains(&&*section)
                && !LEFT_OUT.iter().any(|left_out| name.contains(left_out));
            if keeps && section.starts_with("include") && name == "path" {
                included.push(place(file, home, value.trim().trim_matches('"')));
            }
        }
        goes_on = plain.ends_with('\\');
        setting.push_str(line);
        setting.push('\n');
        // A setting of several lines is judged whole.
        if keeps && !goes_on && !holds_password(&setting) {
            kept.push_str(&setting);
        }
    }
    (kept, included)
}

/// Where an included file lies.
fn place(file: &Path, home: &Path, value: &str) -> PathBuf {
    let path = match value.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => file.parent().unwrap_or(file).join(value),
    };
    crate::files::lexical(&path)
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
                    [user]\n\ttoken = secret\n[alias]\n\tx = a \\\n https://me:secret@host/\n\
                    [commit]\n\tgpgSign = true\n\ttemplate = a \\\n  b\n\
                    [includeIf \"gitdir:~/work/\"]\n\tpath = ~/work.conf\n[include]\n path=more\n";
        let (kept, included) = shown("/h/.gitconfig".as_ref(), "/h".as_ref(), text);
        let expected = "[user]\n\tname = A\n\temail = a@b\n[core]\n\teditor = vi\n\
                        \tinsteadOf = https://host/\n\
                        [url \"https://mirror/\"]\n\tinsteadOf = https://slow/\n\
                        [user]\n[alias]\n[commit]\n\ttemplate = a \\\n  b\n\
                        [includeIf \"gitdir:~/work/\"]\n\tpath = ~/work.conf\n[include]\n path=more\n";
        assert_eq!(kept, expected.replace("\tinsteadOf = https://host/\n", ""));
        assert_eq!(included, [PathBuf::from("/h/work.conf"), PathBuf::from("/h/more")]);
    }
}
