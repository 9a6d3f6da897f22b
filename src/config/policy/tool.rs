//! The first part of a rule: which tool it is about, and what a call of it may need.

use crate::config::policy::pattern::{Matcher, Reach};
use crate::config::policy::{Subject, is_command};
use crate::protocol::{Action, OutsideAccess, OutsidePath, tool_words};
use std::path::Path;

/// The need that paths outside the scope stand for.
const OUTSIDE: &str = "outside";
/// What stands between the access and the path of a word.
const OF: char = '=';

/// `Bash+network+read=/srv/data`, read.
pub struct Tool {
    name: String,
    needs: Vec<String>,
    paths: Vec<(OutsideAccess, Matcher)>,
}

impl Tool {
    pub fn of(text: &str) -> Self {
        let mut words = tool_words::split(text).into_iter();
        let name = words.next().unwrap_or_default().trim().to_owned();
        let mut tool = Self { name, needs: Vec::new(), paths: Vec::new() };
        for word in words {
            match path_word(&word) {
                Some(path) => tool.paths.push(path),
                None => tool.needs.push(word.trim().to_owned()),
            }
        }
        tool
    }

    /// Whether a rule for this tool speaks about a call. `Bash` is every call of Bash. `Bash+network` is, where
    /// it allows, one that needs at most the network, and where it asks or refuses one that needs it. A rule
    /// that allows a file tool without a need does not speak about calls that have one: `Write: /w/*` does not
    /// open `/w/.git/hooks`.
    pub fn speaks(&self, action: Action, subject: &Subject) -> bool {
        if self.name != "*" && !self.name.eq_ignore_ascii_case(&subject.tool) {
            return false;
        }
        let bare = self.needs.is_empty() && self.paths.is_empty();
        match action {
            Action::Allow if bare => {
                subject.needs.is_empty() || self.name == "*" || is_command(subject)
            }
            _ if bare => true,
            Action::Allow => subject.needs.iter().all(|need| self.gives(need, subject)),
            Action::Ask | Action::Deny => {
                subject.needs.iter().any(|need| self.names(need))
                    || subject.outside.iter().any(|path| self.is_about(path))
            }
        }
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

/// The words for exactly what a call needs.
pub fn exactly(subject: &Subject) -> String {
    let by_path = !subject.outside.is_empty();
    let needs = subject.needs.iter().filter(|need| !(by_path && **need == OUTSIDE));
    let needs = needs.map(|need| (*need).to_owned());
    let paths = subject.outside.iter().map(|path| {
        let text = path.path.display().to_string();
        format!("{}{OF}{}", path.access.word(), tool_words::literal(&text))
    });
    let words: Vec<String> = [subject.tool.clone()].into_iter().chain(needs).chain(paths).collect();
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
