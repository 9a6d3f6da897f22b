//! Options by which a program is handed another program, a line of shell, or settings that name one. A wildcard of a
//! rule that allows does not stand for them: `git fetch*` is not about `git fetch --upload-pack='sh -c x'`.

use crate::config::shell::Piece;
use crate::config::shell::programs::last_part;
use crate::config::shell::reader::Word;

/// Programs that people let use the network, with such options: letters, and long names, which may be shortened.
const OPTIONS: &[(&str, &str)] = &[
    ("cargo", "config"),
    ("go", "exec toolexec vettool"),
    ("npm", "node-options script-shell"),
    ("pnpm", "node-options script-shell"),
    ("rsync", "e rsh rsync-path"),
    ("scp", "D F o S"),
    ("sftp", "b D F o S"),
    ("sort", "compress-program"),
    ("split", "filter"),
    (
        "tar",
        "F I checkpoint-action info-script new-volume-script rsh-command to-command use-compress-program",
    ),
    ("wget", "e config execute use-askpass"),
];
const GIT: &str = "git";
/// Options of git before its verb that another word follows, and those of them that hand it a program.
const BEFORE_VERB: [&str; 7] =
    ["-C", "-c", "--config-env", "--exec-path", "--git-dir", "--namespace", "--work-tree"];
const HANDING: [&str; 3] = ["-c", "--config-env", "--exec-path"];
/// Long options of git's verbs.
const OF_GIT: &str = "cc-cmd config exec extcmd open-files-in-pager receive-pack sendmail-cmd smtp-server template \
                      to-cmd upload-pack";
/// Short options of git's verbs: `git push -u` is another one than `git clone -u`.
const OF_VERBS: [(&str, &str); 4] =
    [("clone", "c u"), ("difftool", "x"), ("grep", "O"), ("rebase", "x")];
/// Verbs of git that run a line of shell.
const RUNNING: [(&str, &str); 3] =
    [("bisect", "run"), ("filter-branch", ""), ("submodule", "foreach")];
/// An address that names a program.
const ADDRESS: &str = "ext::";
/// Sections of settings of git that name no program.
const HARMLESS: [&str; 5] = ["advice.", "author.", "color.", "committer.", "user."];

/// The words of a command that hand its program another one.
pub fn of(words: &[Word]) -> Vec<String> {
    let words: Vec<String> = words.iter().map(text).collect();
    let Some((program, arguments)) = words.split_first() else { return Vec::new() };
    match last_part(program) {
        GIT => of_git(arguments),
        name => {
            let row = OPTIONS.iter().find(|(known, _)| *known == name);
            let options = row.map(|(_, options)| *options).unwrap_or_default();
            options_in(arguments, options)
        }
    }
}

/// A word with the signs of its file patterns; the value of a variable is left out.
fn text(word: &Word) -> String {
    let char = |piece: &Piece| match piece {
        Piece::Char(c) | Piece::Expands(c) => Some(*c),
        Piece::Blank | Piece::Unknown => None,
    };
    word.pieces.iter().filter_map(char).collect()
}

fn of_git(arguments: &[String]) -> Vec<String> {
    let mut handed = Vec::new();
    let mut rest = arguments;
    while let Some((option, after)) = rest.split_first().filter(|(word, _)| word.starts_with('-')) {
        let name = option.split_once('=').map_or(option.as_str(), |(name, _)| name);
        let takes = usize::from(BEFORE_VERB.contains(&name) && !option.contains('='));
        let value = after.first().filter(|_| takes == 1);
        let is_harmless = value.is_some_and(|value| {
            option == "-c"
                && HARMLESS.iter().any(|section| value.to_lowercase().starts_with(section))
        });
        if HANDING.contains(&name) && !is_harmless {
            handed.push(option.clone());
            handed.extend(value.cloned());
        }
        rest = after.get(takes..).unwrap_or_default();
    }
    let Some((verb, arguments)) = rest.split_first() else { return handed };
    handed.extend(options_in(arguments, OF_GIT));
    let short = OF_VERBS.iter().filter(|(known, _)| known == verb);
    handed.extend(short.flat_map(|(_, options)| options_in(arguments, options)));
    let runs = |(known, word): &(&str, &str)| {
        known == verb && (word.is_empty() || arguments.iter().any(|argument| argument == word))
    };
    if RUNNING.iter().any(runs) {
        handed.extend(arguments.iter().cloned());
    }
    handed.extend(arguments.iter().filter(|word| word.contains(ADDRESS)).cloned());
    handed
}

/// The words that are one of these options, each with the word behind it if its value is not attached.
fn options_in(arguments: &[String], options: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in arguments.iter().enumerate() {
        if options.split(' ').any(|option| is_option(word, option)) {
            found.push(word.clone());
            found.extend(arguments.get(at + 1).filter(|_| !word.contains('=')).cloned());
        }
    }
    found
}

fn is_option(word: &str, option: &str) -> bool {
    let Some(bare) = word.strip_prefix('-') else { return false };
    let is_letter = option.len() == 1;
    match bare.strip_prefix('-') {
        Some(long) => {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            !is_letter && name.len() > 1 && option.starts_with(name)
        }
        // Letters stand together, and the value may be attached to the last one.
        None if is_letter => bare.contains(option),
        None => bare.split_once('=').map_or(bare, |(name, _)| name) == option,
    }
}
