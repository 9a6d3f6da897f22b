//! How much of a git command a rule that allows it must write out. A wildcard may stand for a safe verb and its arguments,
//! never for a word that selects a repository, settings or a program.

use crate::config::shell::interpreters::is_option;
use crate::config::shell::programs::last_part;

const GIT: &str = "git";
/// The beginning of the names of programs that are one verb of git: `git-push x` is `git push x`.
const OF_ONE_VERB: &str = "git-";
/// Global options that select no repository, settings or program.
const HARMLESS_OPTIONS: [&str; 4] =
    ["--literal-pathspecs", "--no-optional-locks", "--no-pager", "-P"];
/// Global options whose value is the next word.
const OPTIONS_WITH_VALUE: [&str; 8] = [
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
const HARMLESS_SECTIONS: [&str; 5] = ["advice.", "author.", "color.", "committer.", "user."];
/// Verbs that a wildcard may stand for: without the options below, they start no program that is named on the command
/// line or in a file that the Pod can write.
const SAFE_VERBS: &[&str] = &[
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
/// Options of verbs that select a program, settings, another repository or a file to write.
const SELECTING_OPTIONS: &str = "config exec extcmd open-files-in-pager output output-directory receive-pack recurse-submodules \
                       repo strategy template upload-pack";
/// Such options of one verb only: `-u` selects a program for `git clone`, but not for `git push`.
const SELECTING_OPTIONS_OF_VERB: [(&str, &str); 10] = [
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
/// Verbs that run their arguments as a command, and the subcommand that does it; it is empty where every call does.
const RUNNING_VERBS: [(&str, &str); 3] =
    [("bisect", "run"), ("filter-branch", ""), ("submodule", "foreach")];
/// Verbs that start programs in the repository that their first operand is: a path, an address or the name of a remote.
const REMOTE_VERBS: [&str; 5] = ["clone", "fetch", "ls-remote", "pull", "push"];
/// Options of these verbs without a value.
const FLAGS: &str = "-4 -6 -d -f -n -p -q -t -u -v --all --atomic --autostash --delete --dry-run --ff --ff-only --follow-tags \
                     --force --force-with-lease --heads --no-edit --no-ff --no-rebase --no-tags --no-verify --porcelain \
                     --progress --prune --quiet --rebase --set-upstream --tags --unshallow --verbose";
/// Options of these verbs whose value is the next word.
const VALUED: &str = "-b -j -o --branch --depth --jobs --origin --push-option";

/// A command of git.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommand {
    /// How many of its words, from the first one on, a rule with a wildcard must spell.
    pub must_spell: usize,
    /// Whether git finds the repository by the current directory.
    pub finds_repository: bool,
    /// The words that may be the other repository of a verb that starts programs there; `None` for every other verb. Unknown
    /// words are left out, because a rule must write them out anyway.
    pub remotes: Option<Vec<String>>,
}

/// The command of these words, if it is one of git. `None` is a word that may be anything.
pub fn command(words: &[Option<String>]) -> Option<GitCommand> {
    let program = words.first()?.as_deref()?;
    if let Some(verb) = last_part(program).strip_prefix(OF_ONE_VERB) {
        let split = [GIT, verb].map(|word| Some(word.to_owned()));
        let command = command(&[&split, &words[1..]].concat())?;
        // The name of the program is one word instead of two, and is always spelled.
        return Some(GitCommand { must_spell: command.must_spell.max(2) - 1, ..command });
    }
    if last_part(program) != GIT {
        return None;
    }
    let (mut must_spell, mut finds_repository, mut at) = (0, true, 1);
    while let Some(Some(option)) = words.get(at).filter(|word| is_dashed(word)) {
        let value = words.get(at + 1).filter(|_| OPTIONS_WITH_VALUE.contains(&option.as_str()));
        let is_harmless = value.and_then(Option::as_deref).is_some_and(|value| {
            let value = value.to_lowercase();
            option == "-c" && HARMLESS_SECTIONS.iter().any(|section| value.starts_with(section))
        });
        at += 1 + usize::from(value.is_some());
        if !is_harmless && !HARMLESS_OPTIONS.contains(&option.as_str()) {
            must_spell = at;
            // Behind any other option git still searches from the current directory.
            finds_repository &= option != "-C" && !option.starts_with("--git-dir");
        }
    }
    let Some(verb) = words.get(at) else {
        return Some(GitCommand { must_spell, finds_repository, remotes: None });
    };
    let verb = verb.as_deref().unwrap_or_default();
    if !SAFE_VERBS.contains(&verb) {
        must_spell = at + 1;
    }
    let arguments = &words[at + 1..];
    if let Some(last) = last_selecting(verb, arguments) {
        must_spell = at + 2 + last;
    }
    let remotes = REMOTE_VERBS.contains(&verb).then(|| remotes(arguments));
    if let Some(last) = remotes.iter().flatten().rfind(|at| may_expand(&arguments[**at])) {
        must_spell = must_spell.max(at + 2 + last);
    }
    let words = |at: Vec<usize>| at.iter().filter_map(|at| arguments[*at].clone()).collect();
    let remotes = remotes.map(words);
    Some(GitCommand { must_spell, finds_repository, remotes })
}

/// Whether a word may be a pattern of file names. A quoted one counts too, because its quotes are removed already.
fn may_expand(word: &Option<String>) -> bool {
    word.as_ref().is_none_or(|word| word.contains(['*', '?', '[']))
}

fn is_dashed(word: &Option<String>) -> bool {
    word.as_ref().is_some_and(|word| word.starts_with('-'))
}

/// The index of the last argument that selects a program, settings, another repository or a file to write, or whose text is
/// unknown.
fn last_selecting(verb: &str, arguments: &[Option<String>]) -> Option<usize> {
    let runs = |(known, first): &(&str, &str)| {
        let names = |word: &Option<String>| word.as_deref().is_none_or(|word| word == *first);
        *known == verb && (first.is_empty() || arguments.iter().any(names))
    };
    if RUNNING_VERBS.iter().any(runs) {
        return arguments.len().checked_sub(1);
    }
    let own = SELECTING_OPTIONS_OF_VERB.iter().filter(|(known, _)| *known == verb);
    let options: Vec<&str> = own
        .map(|(_, options)| *options)
        .chain([SELECTING_OPTIONS])
        .flat_map(|o| o.split(' '))
        .collect();
    let selects = |word: &str| options.iter().any(|option| is_option(word, option));
    // `ext::command` starts a program.
    let names_helper = |word: &str| REMOTE_VERBS.contains(&verb) && word.contains("::");
    let mut last = None;
    for (at, word) in arguments.iter().enumerate() {
        let Some(word) = word else {
            last = Some(at);
            continue;
        };
        if selects(word) || names_helper(word) {
            let has_value = word.starts_with('-') && !word.contains('=');
            last = Some(at + usize::from(has_value && at + 1 < arguments.len()));
        }
    }
    last
}

/// The indexes of the operands that may be a repository. After an option that is unknown, each may be one.
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
