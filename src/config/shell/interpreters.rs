//! Programs whose arguments are a program or name one: interpreters, and programs with an option that starts another
//! one. A wildcard of a rule that allows does not stand for such an argument.

use crate::config::shell::programs::{SHELLS, last_part};
use std::iter::repeat;

/// A program whose arguments are a program or name one.
pub struct Interpreter {
    names: &'static [&'static str],
    pub operand: Operand,
    /// Names of options without dashes; a letter is a short option.
    options: &'static [(&'static str, Takes)],
    /// What every other option takes.
    other: Takes,
}

/// The meaning of the first argument that is neither an option nor a value of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    Script,
    /// A script, or a directory with a `__main__.py`.
    ScriptOrPackage,
    /// A script or a directory; its name may lack the suffix.
    Module,
    /// A script, or a verb such as `run` before it.
    ScriptOrVerb,
    /// A verb, and behind `run` a script.
    Verb,
    /// The text of the program, unless an option gives it.
    Code,
    /// Any argument may be a text that runs, or the name of a file with one.
    Text,
    /// Data or the name of a target; only options name scripts.
    Data,
    /// The program is no interpreter; only its options start another one.
    Other,
    /// As `Other`; the first argument is letters of options also without a dash.
    Bundle,
    /// As `Other`; only the usual options name no program, and `@file` names a file with more options.
    Compiler,
}

/// The value of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    /// Unknown: the next word may be a value or the script.
    Perhaps,
    Value,
    /// A file that runs.
    File,
    /// A file that runs if the value is a path; otherwise a name that is searched elsewhere.
    Module,
    /// The text of the program, or a program that is started. An interpreter then takes no script from its operands.
    Code,
    /// Nothing; it writes files.
    Writes,
}

use Operand::{Bundle, Compiler, Data, Module, Other, Script, ScriptOrPackage, ScriptOrVerb};
use Takes::{Code, File, Nothing, Perhaps, Value, Writes};

const fn row(
    names: &'static [&'static str],
    operand: Operand,
    options: &'static [(&'static str, Takes)],
    other: Takes,
) -> Interpreter {
    Interpreter { names, operand, options, other }
}

/// Options whose values are modules of Node.js and its relatives.
const MODULES: &str = "r require import loader experimental-loader preload";
const AWK: &[(&str, Takes)] = &[
    ("f file E exec", File),
    ("i include l load D debug", Takes::Module),
    ("v assign F field-separator", Value),
    ("e source", Code),
];

const TAR: &str = "F I checkpoint-action info-script new-volume-script rsh-command to-command use-compress-program";
/// Compilers and linkers. Many of their options name a program, a plugin, or where such are looked for, so only these
/// name none: names, letters in front of a value, and letters in front of a name without a value.
const COMPILERS: &[&str] = &[
    "c++", "c89", "c99", "cc", "clang", "clang++", "cpp", "flang", "g++", "gcc", "gfortran", "ld",
    "mold", "tcc",
];
const COMPILER: &str = "E P S T Werror Wno-error ansi c e fdiagnostics-color flto fsanitize fvisibility g g0 g1 g2 g3 \
                        gdwarf-4 gdwarf-5 ggdb h help idirafter include iquote isystem m m32 m64 march mcpu mtune no-pie \
                        nodefaultlibs nostdinc nostdlib param pedantic pedantic-errors pie pipe pthread r rdynamic s \
                        save-temps shared soname static static-libgcc static-libstdc++ std v version w x z";
const COMPILER_VALUES: &str = "DILUo";
const COMPILER_NAMES: &str = "MOWfl";
/// Tools for object files.
const OBJECTS: &[&str] =
    &["ar", "as", "dlltool", "nm", "objcopy", "objdump", "ranlib", "strip", "windres"];
/// Editors, pagers, compilers that run what they compile, and others that take commands of a shell or programs from many
/// options, operands or files.
const TEXTS: &[&str] = &[
    "R", "clisp", "dc", "ed", "emacs", "erl", "ex", "ftp", "fzf", "ghc", "ghci", "gnuplot",
    "javac", "kak", "kotlinc", "less", "lftp", "m4", "mail", "mailx", "more", "most", "mutt",
    "mysql", "nano", "nvim", "octave", "psql", "rustc", "sbcl", "scalac", "socat", "sqlite3",
    "swiftc", "swipl", "vi", "view", "vim", "vimdiff",
];
/// Interpreters whose options are not known one by one.
const OTHERS: &[&str] = &[
    "elixir",
    "escript",
    "gjs",
    "groovy",
    "guile",
    "ipython",
    "irb",
    "java",
    "julia",
    "kotlin",
    "nu",
    "ocaml",
    "osh",
    "pry",
    "pwsh",
    "qjs",
    "racket",
    "raku",
    "runghc",
    "runhaskell",
    "scala",
    "wish",
    "xonsh",
];
/// The characters of `sed` programs that only print or delete lines.
const PRINTING: &str = "0123456789,;dpq";

/// The known programs; one row for those with the same options. [`of`] also finds versions such as `python3.12` and
/// `gcc-14`.
const TABLE: &[Interpreter] = &[
    row(
        &["fish"],
        Script,
        &[("c command", Code), ("C init-command d debug o f features", Value)],
        Nothing,
    ),
    row(SHELLS, Script, &[("c", Code), ("o O", Value), ("rcfile init-file", File)], Nothing),
    // A program that starts another one may have `.` among its arguments: the option of `find . -name x` shows that it is
    // a directory.
    row(&[".", "source"], Script, &[], Code),
    row(
        &["python", "pypy"],
        ScriptOrPackage,
        &[("c m", Code), ("W X Q check-hash-based-pycs", Value)],
        Nothing,
    ),
    row(
        &["node", "nodejs"],
        Module,
        &[("e eval p print", Code), ("C conditions title", Value), (MODULES, Takes::Module)],
        Perhaps,
    ),
    row(
        &["deno", "bun", "tsx", "ts-node"],
        ScriptOrVerb,
        &[("e eval p print", Code), (MODULES, Takes::Module)],
        Perhaps,
    ),
    row(&["uv"], Operand::Verb, &[("m module", Code), ("p python with", Value)], Perhaps),
    row(
        &["ruby"],
        Script,
        &[
            ("e", Code),
            ("r", Takes::Module),
            ("i F K W T x", Nothing),
            ("C E I encoding external-encoding internal-encoding disable enable dump", Value),
        ],
        Nothing,
    ),
    row(&["perl"], Script, &[("e E", Code), ("I", Value), ("i F C D x M m", Nothing)], Nothing),
    row(
        &["php"],
        Script,
        &[
            ("r run R process-code B process-begin E process-end", Code),
            ("f file F process-file", File),
            ("d define c php-ini z zend-extension S server t docroot", Value),
        ],
        Nothing,
    ),
    row(&["lua", "luajit"], Script, &[("e j O", Value), ("l", Takes::Module)], Nothing),
    row(&["Rscript"], Script, &[("e", Code)], Nothing),
    row(OTHERS, Script, &[("File file jar", File)], Perhaps),
    row(&["tclsh"], Script, &[("encoding", Value)], Nothing),
    row(&["expect"], Script, &[("c", Value), ("f b", File)], Nothing),
    row(&["awk", "gawk", "mawk", "nawk"], Operand::Code, AWK, Nothing),
    row(
        &["sed"],
        Operand::Code,
        &[
            ("f file", File),
            ("e expression", Code),
            ("l line-length", Value),
            ("i in-place", Writes),
        ],
        Nothing,
    ),
    row(
        &["make", "gmake", "ninja"],
        Data,
        &[("f file makefile", File), ("C directory I include-dir o W", Value), ("eval E", Code)],
        Nothing,
    ),
    row(
        &["rake"],
        Data,
        &[
            ("f rakefile", File),
            ("r require", Takes::Module),
            ("e execute p execute-print E execute-continue", Code),
            ("C directory I libdir R rakelib rakelibdir", Value),
        ],
        Nothing,
    ),
    row(
        &["just"],
        Data,
        &[("f justfile", File), ("d working-directory", Value), ("c command shell chooser", Code)],
        Perhaps,
    ),
    row(&["cmake"], Data, &[("P C", File), ("E", Code)], Nothing),
    // Rules allow it only with its exact line; its scripts are compared.
    row(
        &["gdb"],
        Data,
        &[("x command ix init-command", File), ("ex eval-command iex", Value)],
        Perhaps,
    ),
    row(TEXTS, Operand::Text, &[], Nothing),
    row(&["ag", "ack", "bat", "batcat", "delta"], Other, &[("pager", Code)], Nothing),
    row(&["cargo"], Other, &[("config", Code)], Nothing),
    row(&["curl"], Other, &[("K config engine", Code)], Nothing),
    row(&["diff3", "sdiff"], Other, &[("diff-program", Code)], Nothing),
    row(&["go"], Other, &[("exec toolexec vettool", Code)], Nothing),
    row(COMPILERS, Compiler, &[(COMPILER, Nothing)], Code),
    row(&["groff", "nroff", "troff"], Other, &[("U", Code)], Nothing),
    row(&["install", "ginstall"], Other, &[("strip-program", Code)], Nothing),
    row(&["nc", "ncat", "netcat"], Other, &[("c e exec sh-exec lua-exec", Code)], Nothing),
    row(&["nmap"], Other, &[("script datadir", Code)], Nothing),
    row(OBJECTS, Other, &[("plugin preprocessor", Code)], Nothing),
    row(&["openssl"], Other, &[("config engine provider provider-path", Code)], Nothing),
    row(&["man", "apropos", "whatis"], Other, &[("C H P config-file html pager", Code)], Nothing),
    row(&["npm", "pnpm"], Other, &[("node-options script-shell", Code)], Nothing),
    row(&["rg"], Other, &[("pre hostname-bin", Code)], Nothing),
    row(&["rsync"], Other, &[("e rsh rsync-path", Code)], Nothing),
    row(&["scp"], Other, &[("D F o S", Code)], Nothing),
    row(&["sftp"], Other, &[("b D F o S", Code)], Nothing),
    row(&["sort"], Other, &[("compress-program", Code)], Nothing),
    row(&["split"], Other, &[("filter", Code)], Nothing),
    row(&["tar", "bsdtar"], Bundle, &[(TAR, Code)], Nothing),
    row(&["tcpdump"], Other, &[("z", Code)], Nothing),
    row(&["wget"], Other, &[("e config execute use-askpass", Code)], Nothing),
    row(&["zip"], Other, &[("TT unzip-command", Code)], Nothing),
];

/// The row of a program: `python3.12`, `gcc-14`, `ld.gold` and `x86_64-linux-gnu-gcc`, too.
pub fn of(program: &str) -> Option<&'static Interpreter> {
    let name = last_part(program);
    let row = |name: &str| TABLE.iter().find(|row| row.names.contains(&name));
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let is_compiler = |row: &&Interpreter| matches!(row.names, COMPILERS | OBJECTS);
    let of_compiler = |name: &str| row(name).filter(is_compiler);
    row(name)
        .or_else(|| row(plain))
        .or_else(|| of_compiler(plain.rsplit('-').next()?))
        .or_else(|| of_compiler(plain.split('.').next()?))
}

/// Whether a word is this option: a letter, which may stand with others and in front of its value, or a long name, which
/// may be shortened.
pub fn is_option(word: &str, option: &str) -> bool {
    let Some(bare) = word.strip_prefix('-') else { return false };
    let is_letter = option.len() == 1;
    let name = |text: &str| text.split_once('=').map_or(text.len(), |(name, _)| name.len());
    match bare.strip_prefix('-') {
        Some(long) => !is_letter && !long.is_empty() && option.starts_with(&long[..name(long)]),
        None if is_letter => bare.contains(option),
        None => &bare[..name(bare)] == option,
    }
}

impl Interpreter {
    /// Whether its purpose is to run the program that its arguments are or name.
    pub fn is_interpreter(&self) -> bool {
        !matches!(self.operand, Operand::Text | Other | Bundle | Compiler)
    }

    /// How many of the arguments, from the first one on, a rule must spell: up to the last one that is a program or
    /// names one. `None` is an argument that may be any option. Where the program comes from the input, it is more than
    /// there are.
    pub fn spelled(&self, arguments: &[Option<String>]) -> usize {
        if self.operand == Operand::Text {
            return arguments.len();
        }
        let runs_operand = matches!(self.operand, Script | ScriptOrPackage | Module | ScriptOrVerb);
        let (mut spelled, mut before, mut options_end) = (0, Nothing, false);
        // How many operands are still looked for that are a program, name one, or are the verb in front of one.
        let mut operands = match self.operand {
            ScriptOrVerb => 2,
            _ => usize::from(runs_operand || self.operand == Operand::Code),
        };
        for (at, word) in arguments.iter().enumerate() {
            let is_value = !matches!(before, Nothing | Perhaps);
            let perhaps_value = before == Perhaps;
            let Some(word) = word else {
                spelled = at + 1;
                before = if is_value { Nothing } else { Perhaps };
                continue;
            };
            before = Nothing;
            if self.operand == Bundle && at == 0 && self.bundles(word) {
                // Which of the arguments belongs to which letter depends on all of them.
                return arguments.len();
            }
            if self.operand == Compiler && word.starts_with('@') {
                spelled = at + 1;
                continue;
            }
            let is_option = !options_end && word.len() > 1 && word.starts_with(['-', '+']);
            if is_value {
                continue;
            } else if is_option && word == "--" {
                options_end = true;
            } else if is_option {
                let (takes, attached) = self.option(word);
                let has_next = attached.is_none() && !matches!(takes, Nothing | Writes);
                // Behind the program of `-e` an interpreter still reads options, and many name a module.
                if runs_operand || matches!(takes, Code | File | Takes::Module | Writes) {
                    spelled = (at + 1 + usize::from(has_next)).min(arguments.len());
                }
                if matches!(takes, Code | File) {
                    operands = 0;
                }
                // All that follows is for the program of `-c` or `-m`.
                if takes == Code && self.operand == ScriptOrPackage {
                    return spelled;
                }
                before = if has_next { takes } else { Nothing };
            } else if self.operand == Data && word.contains('=') {
                // A variable of a build can name or run a program: `SHELL=x`, `X:=$(shell x)`.
                spelled = at + 1;
            } else if operands > 0 {
                let prints =
                    self.operand == Operand::Code && word.chars().all(|c| PRINTING.contains(c));
                spelled = if prints { spelled } else { at + 1 };
                operands -= usize::from(!perhaps_value);
                if operands == 0 && runs_operand {
                    return spelled;
                }
            } else if runs_operand && !perhaps_value {
                return spelled;
            }
        }
        if operands > 0 && runs_operand { arguments.len() + 1 } else { spelled }
    }

    /// Whether a word without a dash holds the letter of an option.
    fn bundles(&self, word: &str) -> bool {
        let listed = |letter: char| self.listed(|name| name.len() == 1 && name.starts_with(letter));
        !word.starts_with('-') && word.chars().any(|letter| listed(letter).is_some())
    }

    /// What an option takes, and the value that is attached to it: `x` of `-fx` and of `--file=x`.
    pub fn option<'a>(&self, word: &'a str) -> (Takes, Option<&'a str>) {
        let bare = word.trim_start_matches(['-', '+']);
        let is_long = word.starts_with("--");
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        let is_compiler = self.operand == Compiler;
        let abbreviated = is_long && !is_compiler && !name.is_empty();
        let long = |listed: &str| listed == name || abbreviated && listed.starts_with(name);
        if (name.len() > 1 || abbreviated || is_compiler)
            && let Some((_, takes)) = self.listed(long)
        {
            return (takes, value);
        }
        if is_compiler {
            let is_usual = bare.starts_with(|c| COMPILER_VALUES.contains(c))
                || bare.starts_with(|c| COMPILER_NAMES.contains(c)) && !bare.contains(['=', ',']);
            let value = bare.find(|c: char| !c.is_alphanumeric() && c != '-').map(|at| &bare[at..]);
            return (if is_usual && !is_long { Nothing } else { self.other }, value);
        }
        if !is_long {
            for (at, _) in bare.char_indices() {
                // Two letters may stand as one does: `zip -rTTsh`.
                let short = |listed: &str| listed.len() <= 2 && bare[at..].starts_with(listed);
                if let Some((listed, takes)) = self.listed(short) {
                    let rest = &bare[at + listed.len()..];
                    return (takes, (!rest.is_empty()).then_some(rest));
                }
            }
        }
        (self.other, value)
    }

    /// The first option whose name fits, and what it takes.
    fn listed(&self, is_it: impl Fn(&str) -> bool) -> Option<(&'static str, Takes)> {
        let mut all =
            self.options.iter().flat_map(|(names, takes)| names.split(' ').zip(repeat(*takes)));
        all.find(|(name, _)| is_it(name))
    }
}
