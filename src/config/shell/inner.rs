//! Programs that start another command: the one in their arguments (`sudo x`), or lines of shell in
//! an argument (`sh -c`).

use crate::config::shell::builtins;
use crate::config::shell::commands::{Reader, Redirections, joined};
use crate::config::shell::words::{Word, starts_commands};
use crate::config::shell::{Piece, SimpleCommand};

/// Programs and builtins that run what follows them. Each has its own options, so every tail of the
/// words counts as a command that may run.
const STARTERS: &[&str] = &[
    "builtin",
    "busybox",
    "bwrap",
    "bunx",
    "capsh",
    "cgexec",
    "choom",
    "chronic",
    "chpst",
    "chroot",
    "chrt",
    "command",
    "daemonize",
    "dbus-run-session",
    "direnv",
    "doas",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "exec",
    "fakeroot",
    "faketime",
    "fd",
    "find",
    "firejail",
    "flock",
    "gdb",
    "gosu",
    "hyperfine",
    "i386",
    "ionice",
    "jobs",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
    "parallel",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "rlwrap",
    "proxychains",
    "proxychains4",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "sg",
    "ssh",
    "sshpass",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "tmux",
    "torsocks",
    "toybox",
    "uname26",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "x86_64",
    "xargs",
    "xvfb-run",
];
/// Programs that run the command behind one of these words: `uv run x`.
const RUNNERS: &[(&str, &[&str])] = &[
    ("bundle", &["exec"]),
    ("conda", &["run"]),
    ("hatch", &["run"]),
    ("mise", &["exec", "x"]),
    ("nix", &["develop", "run", "shell"]),
    ("npm", &["exec", "x"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("rustup", &["run"]),
    ("rye", &["run"]),
    ("uv", &["run"]),
    ("yarn", &["dlx", "exec"]),
];
/// The starters that add arguments of their own.
const ADDING: &[&str] = &["fd", "find", "parallel", "xargs"];
/// Programs that read lines of shell.
pub const SHELLS: &[&str] = &["ash", "bash", "dash", "fish", "ksh", "mksh", "rbash", "sh", "zsh"];
/// Programs that take a line of shell as an argument.
const TAKE_LINES: &[&str] = &[
    "capsh",
    "entr",
    "hyperfine",
    "parallel",
    "runuser",
    "screen",
    "script",
    "sg",
    "ssh",
    "su",
    "tmux",
    "watch",
];
/// Builtins that declare variables; with the option `i` they evaluate each value as an arithmetic
/// expression.
const DECLARE: &[&str] = &["declare", "local", "typeset"];
/// Builtins that expand their arguments once more, most of them as arithmetic expressions, and so run
/// quoted substitutions.
const CALCULATE: &[&str] = &[
    "[",
    "compgen",
    "complete",
    "declare",
    "export",
    "let",
    "local",
    "mapfile",
    "printf",
    "read",
    "readarray",
    "readonly",
    "test",
    "typeset",
    "unset",
    "wait",
];
/// Builtins that assign their standard input to variables.
const READ_VARIABLES: &[&str] = &["mapfile", "read", "readarray"];
/// Paths of standard input; directories of descriptors; parts of other spellings of such paths.
const STANDARD_INPUT: &[&str] = &["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];
const DESCRIPTORS: &[&str] = &["/dev/", "/proc/"];
const DESCRIPTOR_PARTS: &[&str] = &["dev/", "proc/", "fd/", "stdin"];
/// The most suffixes of a starter's words that are read as commands.
const MOST_RESTS: usize = 16;

/// The name of the program, without its directory; `None` where it is not known.
fn program(word: &Word) -> Option<String> {
    let pieces = &word.pieces;
    if pieces.contains(&Piece::Unknown) {
        return None;
    }
    let slash = pieces.iter().rposition(|piece| *piece == Piece::Char('/'));
    let name = pieces[slash.map_or(0, |at| at + 1)..].iter();
    name.map(|piece| if let Piece::Char(c) = piece { Some(*c) } else { None }).collect()
}

fn is_one(word: &Word, of: &[&str]) -> bool {
    program(word).is_some_and(|name| of.contains(&name.as_str()))
}

/// Whether a program runs the command in its arguments.
fn starts_another(words: &[&Word]) -> bool {
    let Some((first, arguments)) = words.split_first() else { return false };
    // The dynamic linker runs the program that it is given: `/lib64/ld-linux-x86-64.so.2 /bin/x`.
    let links = |name: &str| name.starts_with("ld-") && name.contains(".so");
    let runs = |name: &str| {
        let known = RUNNERS.iter().find(|(runner, _)| *runner == name);
        let is_run = |word: &&Word, of: &[&str]| word.text().is_some_and(|t| of.contains(&&*t));
        known.is_some_and(|(_, of)| arguments.iter().any(|word| is_run(word, of)))
    };
    is_one(first, STARTERS) || program(first).is_some_and(|name| links(&name) || runs(&name))
}

/// The words of a starter that adds words of its own, with its placeholders as unknown parts: `{}`,
/// and the word that an option of `xargs` names. `parallel` reads the words after `:::` as
/// arguments.
fn with_placeholders(words: &[&Word]) -> Vec<Word> {
    let texts: Vec<Option<String>> = words.iter().map(|word| word.text()).collect();
    let mut markers = vec!["{".to_owned()];
    for (at, text) in texts.iter().enumerate() {
        let Some(marker) = text.as_deref().and_then(placeholder) else { continue };
        let next = || texts.get(at + 1).cloned().flatten().unwrap_or_default();
        markers.push(if marker.is_empty() { next() } else { marker.to_owned() });
    }
    let replaced = |text: &String| markers.iter().any(|m| !m.is_empty() && text.contains(m));
    let word = |(word, text): (&&Word, &Option<String>)| match text {
        Some(text) if replaced(text) => Word::computed(),
        Some(_) | None => (*word).clone(),
    };
    words[..before_sources(words)].iter().zip(&texts).map(word).collect()
}

/// The number of words before the first `:::`; the words behind it are arguments or whole commands for `parallel`.
fn before_sources(words: &[&Word]) -> usize {
    let is_source = |word: &&Word| word.text().is_some_and(|text| text.starts_with(":::"));
    words.iter().position(is_source).unwrap_or(words.len())
}

/// The placeholder that an option of `xargs` names; empty where the next word names it.
fn placeholder(option: &str) -> Option<&str> {
    match option.strip_prefix("--") {
        Some(long) => {
            long.split_once('=').filter(|(name, _)| name.starts_with("re")).map(|(_, m)| m)
        }
        None => option.strip_prefix('-')?.split_once(['I', 'i']).map(|(_, marker)| marker),
    }
}

/// The suffixes of a starter's words; each may be the command that runs.
fn rests<'a>(words: &'a [&'a Word]) -> impl Iterator<Item = &'a [&'a Word]> {
    let end = if starts_another(words) { words.len().min(MOST_RESTS) } else { 0 };
    (1..end.max(1)).map(|at| &words[at..])
}

/// Adds the texts that a command may have.
pub fn texts(words: &[&Word], command: &mut SimpleCommand) {
    let Some(first) = words.first() else { return };
    command.starts_another = starts_another(words);
    let adds = command.starts_another && is_one(first, ADDING);
    command.texts.extend(spellings(words));
    let replaced = if adds { with_placeholders(words) } else { Vec::new() };
    let replaced: Vec<&Word> = replaced.iter().collect();
    let sources = if adds { before_sources(words) } else { words.len() };
    let whole = (sources..words.len().min(sources + MOST_RESTS)).map(|at| &words[at..]);
    for rest in rests(if adds { &replaced } else { words }).chain(whole) {
        for mut text in spellings(rest) {
            if adds {
                text.extend([Piece::Blank, Piece::Unknown]);
            }
            command.texts.push(text);
        }
    }
    if command.starts_another && words.len() > MOST_RESTS {
        command.texts.push(vec![Piece::Unknown]);
    }
}

/// The words unchanged, and with the directory of the program removed.
fn spellings(words: &[&Word]) -> Vec<Vec<Piece>> {
    let text = joined(words);
    let end = words.first().map_or(0, |first| first.pieces.len());
    let slash = text[..end].iter().rposition(|piece| *piece == Piece::Char('/'));
    let short = slash.map(|at| text[at + 1..].to_vec());
    std::iter::once(text).chain(short).collect()
}

/// Reads the lines that a command passes to a shell. `given` is the standard input by its
/// redirections.
pub fn lines(words: &[&Word], given: &Redirections, reader: &mut Reader) {
    let Some(first) = words.first() else { return };
    let calculates = || is_one(first, CALCULATE) && words.iter().any(|word| word.quotes_commands());
    let reads =
        || is_one(first, READ_VARIABLES) && given.input.as_deref().is_some_and(starts_commands);
    let option = |letter| words.iter().any(|word| has_option(word, letter));
    let hides = || is_one(first, &["start-stop-daemon"]);
    if program(first).is_none() || hides() || calculates() || reads() {
        reader.unknown();
    }
    if is_one(first, &["let"]) || is_one(first, DECLARE) && option('i') {
        reader.calculates();
    }
    for words in std::iter::once(words).chain(rests(words)) {
        let [first, arguments @ ..] = words else { continue };
        match program(first).as_deref() {
            Some(name) if SHELLS.contains(&name) => shell(arguments, given, reader),
            Some("." | "source") => sourced(arguments, given, reader),
            Some("env") => env(arguments, reader),
            Some(name) if TAKE_LINES.contains(&name) => possible_lines(arguments, reader),
            Some(name) => builtins::evaluate(name, arguments, reader),
            None => {}
        }
    }
}

/// Whether a word is a group of short options with this one.
pub fn has_option(word: &Word, letter: char) -> bool {
    word.text().is_some_and(|text| is_group_with(&text, letter))
}

fn is_group_with(text: &str, letter: char) -> bool {
    text.starts_with('-') && !text.starts_with("--") && text.contains(letter)
}

/// The arguments of `env`, which splits the text of its option `-S` into words.
fn env(arguments: &[&Word], reader: &mut Reader) {
    for text in arguments.iter().filter_map(|word| word.text()) {
        let short = || {
            let group = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            group.and_then(|rest| rest.split_once('S'))
        };
        let split = text.strip_prefix("--split-string=").or_else(|| short().map(|(_, rest)| rest));
        match split {
            Some(line) => reader.inner_line(Some(line)),
            None if text.contains(' ') => reader.inner_line(Some(&text)),
            None => {}
        }
    }
}

/// Options of a shell that take the next word.
const WITH_VALUE: &[&str] = &["-O", "+O", "-o", "+o", "--rcfile", "--init-file"];

/// The arguments of a shell: lines after `-c`, else a script, else lines on its standard input.
fn shell(arguments: &[&Word], given: &Redirections, reader: &mut Reader) {
    let texts: Vec<Option<String>> = arguments.iter().map(|word| word.text()).collect();
    let has = |text: &Option<String>, letter: char| {
        text.as_ref().is_some_and(|text| is_group_with(text, letter))
    };
    if let Some(at) = texts.iter().position(|text| has(text, 'c')) {
        // Other options determine which of the words after `-c` is the line.
        texts[at + 1..].iter().for_each(|text| reader.inner_line(text.as_deref()));
        return;
    }
    let mut at = 0;
    while let Some(Some(option)) = texts.get(at).filter(|text| is_option(text)) {
        at += 1 + usize::from(WITH_VALUE.contains(&option.as_str()));
    }
    match texts.get(at) {
        Some(Some(script)) if !texts.iter().any(|text| has(text, 's')) => {
            script_file(script, given, reader);
        }
        Some(None) => reader.unknown(),
        Some(Some(_)) | None => reader.inner_line(given.input.as_deref()),
    }
}

/// A script file. Only standard input is known; the content of files and other descriptors is not.
fn script_file(path: &str, given: &Redirections, reader: &mut Reader) {
    if STANDARD_INPUT.contains(&path) {
        reader.inner_line(given.input.as_deref());
        return;
    }
    let is_descriptor = DESCRIPTORS.iter().any(|dir| path.starts_with(dir));
    let may_be_one = || DESCRIPTOR_PARTS.iter().any(|part| path.contains(part));
    if is_descriptor || given.has_text && may_be_one() {
        reader.unknown();
    }
}

fn is_option(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| text.starts_with(['-', '+']))
}

/// Arguments of more than one word may be lines of shell.
fn possible_lines(arguments: &[&Word], reader: &mut Reader) {
    for argument in arguments {
        match argument.text() {
            Some(text) if !text.contains(char::is_whitespace) => {}
            known => reader.inner_line(known.as_deref()),
        }
    }
}

/// `.` and `source` run a file in the shell itself.
fn sourced(arguments: &[&Word], given: &Redirections, reader: &mut Reader) {
    match arguments.first().map(|word| word.text()) {
        Some(Some(file)) => script_file(&file, given, reader),
        Some(None) => reader.unknown(),
        None => {}
    }
}
