//! Commands of git: what of them a rule must spell that allows them. A wildcard stands for a verb that starts no program
//! of its own and for its arguments, and neither for what chooses a repository, settings or programs.

use crate::config::shell::interpreters::is_option;
use crate::config::shell::programs::last_part;

const GIT: &str = "git";
/// The beginning of the names of programs that are one verb of git: `git-push x` is `git push x`.
const OF_ONE_VERB: &str = "git-";
/// Options in front of the verb that choose nothing.
const PLAIN: [&str; 4] = ["--literal-pathspecs", "--no-optional-locks", "--no-pager", "-P"];
/// Options in front of the verb that another word follows.
const TAKING: [&str; 8] = [
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
    "-C",
    "-c",
];
/// Sections of settings that name no program.
const HARMLESS: [&str; 5] = ["advice.", "author.", "color.", "committer.", "user."];
/// Verbs that, but for some options, start no program that the words, or files which a Pod can write, name.
const VERBS: &[&str] = &[
    "add",
    "annotate",
    "apply",
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "checkout",
    "cherry",
    "cherry-pick",
    "clean",
    "commit",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "fsck",
    "gc",
    "grep",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge",
    "merge-base",
    "mv",
    "name-rev",
    "notes",
    "pull",
    "push",
    "range-diff",
    "reflog",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "stage",
    "stash",
    "status",
    "switch",
    "tag",
    "version",
    "whatchanged",
];
/// Options of verbs that name a program, settings, another repository or a file to write.
const OPTIONS: &str = "config exec extcmd open-files-in-pager output output-directory receive-pack recurse-submodules \
                       repo strategy template upload-pack";
/// Such options of one verb: `git push -u` is another one than `git clone -u`.
const OF_VERBS: [(&str, &str); 10] = [
    ("archive", "o remote"),
    ("clone", "c u"),
    ("difftool", "x"),
    ("format-patch", "o"),
    ("grep", "O"),
    ("mergetool", "x"),
    ("merge", "s"),
    ("pull", "s"),
    ("rebase", "s x"),
    ("send-email", "cc-cmd header-cmd sendmail-cmd smtp-server to-cmd"),
];
/// Verbs whose arguments are a line of shell, and the word in front of it.
const RUNNING: [(&str, &str); 3] =
    [("bisect", "run"), ("filter-branch", ""), ("submodule", "foreach")];
/// Verbs that start programs in the repository that their first operand is: a path, an address or the name of a remote.
const REMOTE: [&str; 5] = ["clone", "fetch", "ls-remote", "pull", "push"];
/// Their options without a value, and those that another word follows. Behind any other one each operand may be the
/// repository.
const FLAGS: &str = "-4 -6 -d -f -n -p -q -t -u -v --all --atomic --autostash --delete --dry-run --ff --ff-only --follow-tags \
                     --force --force-with-lease --heads --no-edit --no-ff --no-rebase --no-tags --no-verify --porcelain \
                     --progress --prune --quiet --rebase --set-upstream --tags --unshallow --verbose";
const VALUED: &str = "-b -j -o --branch --depth --jobs --origin --push-option";

/// A command of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommand {
    /// How many of its words, from the first one on, a rule with a wildcard must spell.
    pub spelled: usize,
    /// Whether git finds the repository by the current directory.
    pub finds_repository: bool,
    /// The words that may be the other repository of a verb that starts programs there; `None` for every other verb. A
    /// word that may be anything is none of them, because a rule must spell it.
    pub remotes: Option<Vec<String>>,
}

/// The command of these words, if it is one of git. `None` is a word that may be anything.
pub fn command(words: &[Option<String>]) -> Option<GitCommand> {
    let program = words.first()?.as_deref()?;
    if let Some(verb) = last_part(program).strip_prefix(OF_ONE_VERB) {
        let split = [GIT, verb].map(|word| Some(word.to_owned()));
        let command = command(&[&split, &words[1..]].concat())?;
        // The name of the program is one word instead of two, and is always spelled.
        return Some(GitCommand { spelled: command.spelled.max(2) - 1, ..command });
    }
    if last_part(program) != GIT {
        return None;
    }
    let (mut spelled, mut finds_repository, mut at) = (0, true, 1);
    while let Some(Some(option)) = words.get(at).filter(|word| is_dashed(word)) {
        let value = words.get(at + 1).filter(|_| TAKING.contains(&option.as_str()));
        let is_harmless = value.and_then(Option::as_deref).is_some_and(|value| {
            let value = value.to_lowercase();
            option == "-c" && HARMLESS.iter().any(|section| value.starts_with(section))
        });
        at += 1 + usize::from(value.is_some());
        if !is_harmless && !PLAIN.contains(&option.as_str()) {
            spelled = at;
            // Behind any other option git still searches from the current directory.
            finds_repository &= option != "-C" && !option.starts_with("--git-dir");
        }
    }
    let Some(verb) = words.get(at) else {
        return Some(GitCommand { spelled, finds_repository, remotes: None });
    };
    let verb = verb.as_deref().unwrap_or_default();
    if !VERBS.contains(&verb) {
        spelled = at + 1;
    }
    let arguments = &words[at + 1..];
    if let Some(last) = last_handed(verb, arguments) {
        spelled = at + 2 + last;
    }
    let remotes = REMOTE.contains(&verb).then(|| remotes(arguments));
    if let Some(last) = remotes.iter().flatten().rfind(|at| may_expand(&arguments[**at])) {
        spelled = spelled.max(at + 2 + last);
    }
    let words = |at: Vec<usize>| at.iter().filter_map(|at| arguments[*at].clone()).collect();
    let remotes = remotes.map(words);
    Some(GitCommand { spelled, finds_repository, remotes })
}

/// Whether a word may be a pattern of file names. One in quotes is not told from another.
fn may_expand(word: &Option<String>) -> bool {
    word.as_ref().is_none_or(|word| word.contains(['*', '?', '[']))
}

fn is_dashed(word: &Option<String>) -> bool {
    word.as_ref().is_some_and(|word| word.starts_with('-'))
}

/// The last argument of a verb that names a program, settings, another repository or a file to write, or may be any
/// option.
fn last_handed(verb: &str, arguments: &[Option<String>]) -> Option<usize> {
    let runs = |(known, first): &(&str, &str)| {
        let names = |word: &Option<String>| word.as_deref().is_none_or(|word| word == *first);
        *known == verb && (first.is_empty() || arguments.iter().any(names))
    };
    if RUNNING.iter().any(runs) {
        return arguments.len().checked_sub(1);
    }
    let short = OF_VERBS.iter().filter(|(known, _)| *known == verb);
    let options: Vec<&str> =
        short.map(|(_, options)| *options).chain([OPTIONS]).flat_map(|o| o.split(' ')).collect();
    let is_handed = |word: &str| options.iter().any(|option| is_option(word, option));
    let helper = |word: &str| REMOTE.contains(&verb) && word.contains("::");
    let mut last = None;
    for (at, word) in arguments.iter().enumerate() {
        let Some(word) = word else {
            last = Some(at);
            continue;
        };
        if is_handed(word) || helper(word) {
            let has_value = word.starts_with('-') && !word.contains('=');
            last = Some(at + usize::from(has_value && at + 1 < arguments.len()));
        }
    }
    last
}

/// The operands that may be a repository, by their places.
fn remotes(arguments: &[Option<String>]) -> Vec<usize> {
    let listed = |list: &str, word: &str| list.split(' ').any(|known| known == word);
    let (mut operands, mut is_value, mut options_end, mut is_open) =
        (Vec::new(), false, false, false);
    for (at, word) in arguments.iter().enumerate() {
        let word = word.as_deref().unwrap_or_default();
        let has_value = word.starts_with("--") && word.contains('=');
        if is_value {
            is_value = false;
        } else if options_end || !word.starts_with('-') {
            operands.push(at);
        } else if word == "--" {
            options_end = true;
        } else if listed(VALUED, word) {
            is_value = true;
        } else if !has_value && !listed(FLAGS, word) {
            is_open = true;
        }
    }
    operands.truncate(if is_open { operands.len() } else { 1 });
    operands
}
