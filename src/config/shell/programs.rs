//! Programs and builtins that do more than run with their arguments.

use crate::config::shell::Piece;
use crate::config::shell::reader::Word;

/// Programs that run the command in their arguments.
const STARTERS: &[&str] = &[
    "bwrap",
    "bunx",
    "cgexec",
    "choom",
    "chronic",
    "chpst",
    "chroot",
    "chrt",
    "daemonize",
    "dbus-run-session",
    "doas",
    "dumb-init",
    "eatmydata",
    "env",
    "fakeroot",
    "faketime",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "flock",
    "gosu",
    "i386",
    "ionice",
    "linux32",
    "linux64",
    "ltrace",
    "nice",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
    "perf",
    "pkexec",
    "prlimit",
    "proot",
    "rlwrap",
    "proxychains",
    "proxychains4",
    "setarch",
    "setpriv",
    "setsid",
    "sshpass",
    "stdbuf",
    "strace",
    "su-exec",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "torsocks",
    "uname26",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "x86_64",
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
/// Programs that read lines of shell.
pub const SHELLS: &[&str] = &[
    "ash", "bash", "csh", "dash", "fish", "ksh", "ksh93", "lksh", "mksh", "rbash", "sh", "tcsh",
    "zsh",
];
/// Programs that run what their input names, or lines of shell in their arguments.
const HIDING: &[&str] = &[
    "busybox",
    "capsh",
    "direnv",
    "entr",
    "gdb",
    "hyperfine",
    "parallel",
    "runuser",
    "screen",
    "script",
    "sg",
    "ssh",
    "start-stop-daemon",
    "su",
    "tmux",
    "toybox",
    "watch",
    "xargs",
];
/// Reserved words, and builtins that evaluate a text, change what a name or a word means, or assign variables.
const CHANGING: &[&str] = &[
    "!",
    ".",
    "[[",
    "]]",
    "alias",
    "bind",
    "builtin",
    "case",
    "command",
    "compgen",
    "complete",
    "compopt",
    "coproc",
    "declare",
    "do",
    "done",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "export",
    "fc",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "history",
    "if",
    "in",
    "jobs",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "select",
    "set",
    "shopt",
    "source",
    "then",
    "time",
    "trap",
    "typeset",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    "{",
    "}",
];
/// Builtins that evaluate the index in the name of a variable.
const INDEXING: &[&str] = &["[", "printf", "test"];
/// The builtin among them that assigns a variable, and its option.
const ASSIGNING: (&str, &str) = ("printf", "-v");
/// Variables that decide which programs run or what they load, and beginnings of the names of such.
const DECIDING: &[&str] = &[
    "BASH_",
    "BASHOPTS",
    "CARGO",
    "CDPATH",
    "CLASSPATH",
    "CONFIG_SITE",
    "DOCKER_",
    "DYLD_",
    "EDITOR",
    "ENV",
    "GEM_",
    "GIT_",
    "GLOBIGNORE",
    "GNUMAKEFLAGS",
    "GOFLAGS",
    "HISTFILE",
    "HOME",
    "IFS",
    "INPUTRC",
    "JAVA_TOOL_OPTIONS",
    "LD_",
    "LESSOPEN",
    "LESSCLOSE",
    "LUA_",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "NODE_",
    "NPM_CONFIG_",
    "PAGER",
    "PATH",
    "PERL",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS4",
    "PYTHON",
    "RUBY",
    "RUSTC",
    "RUSTDOC",
    "RUSTFLAGS",
    "SHELL",
    "SHELLOPTS",
    "SSH_",
    "TAR_OPTIONS",
    "VISUAL",
    "XDG_",
    "_JAVA_OPTIONS",
    "npm_config_",
];

/// What reading the words of a command says about what it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The program that its first word names.
    Itself,
    /// A command that its other words name, too.
    Another,
    /// Something that the words do not show.
    Hidden,
}

/// What a command runs. The first word is the name.
pub fn runs(words: &[Word]) -> Runs {
    let Some((first, arguments)) = words.split_first() else { return Runs::Itself };
    let Some(name) = first.literal() else { return Runs::Hidden };
    let name = last_part(&name);
    let is_starter = starts_another(name, arguments);
    let hides = |word: &Word| word.literal().is_some_and(|text| hides(last_part(&text)));
    let open = |word: &Word, and: &[char]| {
        word.pieces.iter().any(|piece| match piece {
            Piece::Char(c) => and.contains(c),
            Piece::Blank | Piece::Expands(_) | Piece::Unknown => true,
        })
    };
    let indexes =
        INDEXING.contains(&name) && arguments.iter().any(|word| open(word, &['[', '$', '`']));
    let assigns = name == ASSIGNING.0
        && arguments.iter().any(|word| word.literal().is_some_and(|t| t.starts_with(ASSIGNING.1)));
    let evaluates = is_starter
        && (splits(name, arguments) || !arguments.iter().all(|word| is_plain(name, word)));
    if hides(first) || indexes || assigns || evaluates {
        return Runs::Hidden;
    }
    if is_starter { Runs::Another } else { Runs::Itself }
}

/// Whether a word of a starter is no line of shell, and no program that hides what it runs.
fn is_plain(starter: &str, word: &Word) -> bool {
    let Some(text) = word.literal() else { return false };
    let ends_find = starter == "find" && text == ";";
    let is_open = |c: char| c.is_whitespace() || "$`{(;&|<>\"'\\".contains(c);
    ends_find || !text.contains(is_open) && (text == "." || !hides(last_part(&text)))
}

/// Whether `env` splits a text into words: `env -S'x y'`.
fn splits(name: &str, arguments: &[Word]) -> bool {
    let option =
        |text: &str| text.starts_with("--s") || text.starts_with('-') && text.contains('S');
    name == "env" && arguments.iter().any(|word| word.literal().is_none_or(|text| option(&text)))
}

fn hides(name: &str) -> bool {
    [SHELLS, HIDING, CHANGING].iter().any(|names| names.contains(&name))
}

fn starts_another(name: &str, arguments: &[Word]) -> bool {
    // The dynamic linker runs the program that it is given: `/lib64/ld-linux-x86-64.so.2 /bin/x`, `ld.so /bin/x`.
    let links = name == "ld.so" || (name.starts_with("ld-") && name.contains(".so"));
    let runner = RUNNERS.iter().find(|(runner, _)| *runner == name);
    let is_run = |word: &Word, of: &[&str]| word.literal().is_none_or(|t| of.contains(&&*t));
    links
        || STARTERS.contains(&name)
        || runner.is_some_and(|(_, of)| arguments.iter().any(|word| is_run(word, of)))
}

/// The name of a program without its directory.
pub fn last_part(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a variable of this name decides which programs run or what they load.
pub fn decides(variable: &str) -> bool {
    DECIDING.iter().any(|known| variable.starts_with(known)) || variable.ends_with("PATH")
}
