//! How programs find the file that they run among their arguments.

use crate::config::shell;
use crate::tools::scripts::last_part;

/// A program that runs a file that its arguments name.
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
    /// Data or the name of a target; only options name scripts.
    Data,
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
    /// The program itself: no argument after it is the script.
    Code,
}

use Operand::{Data, Module, Script, ScriptOrPackage, ScriptOrVerb};
use Takes::{Code, File, Nothing, Perhaps, Value};

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
    ("i include l load", Takes::Module),
    ("v assign F field-separator", Value),
    ("e source", Code),
];

/// Versions (`python3.12`) count as the program.
const TABLE: &[Interpreter] = &[
    row(
        &["fish"],
        Script,
        &[("c command", Code), ("C init-command d debug o f features", Value)],
        Nothing,
    ),
    row(shell::SHELLS, Script, &[("c", Code), ("o O", Value), ("rcfile init-file", File)], Nothing),
    // `.` is also an argument, as in `find . -name x`.
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
    row(&["uv"], ScriptOrVerb, &[("m module", Code), ("p python with", Value)], Perhaps),
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
    row(&["pwsh"], Script, &[("File file", File), ("Command command", Code)], Perhaps),
    row(&["tclsh"], Script, &[("encoding", Value)], Nothing),
    row(&["expect"], Script, &[("c", Value), ("f b", File)], Nothing),
    row(&["awk", "gawk", "mawk", "nawk"], Data, AWK, Nothing),
    row(&["sed"], Data, &[("f file", File), ("e expression l line-length", Value)], Nothing),
    row(
        &["make", "gmake"],
        Data,
        &[("f file makefile", File), ("C directory I include-dir o W eval", Value)],
        Nothing,
    ),
    row(&["just"], Data, &[("f justfile", File), ("d working-directory", Value)], Perhaps),
    row(
        &["gdb"],
        Data,
        &[("x command ix init-command", File), ("ex eval-command iex", Value)],
        Perhaps,
    ),
];

/// The row of a program.
pub fn of(program: &str) -> Option<&'static Interpreter> {
    let name = last_part(program);
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let plain = if plain.is_empty() { name } else { plain };
    TABLE.iter().find(|row| row.names.contains(&name) || row.names.contains(&plain))
}

impl Interpreter {
    /// What an option takes, and the value that is attached to it: `x` of `-fx` and of `--file=x`.
    pub fn option<'a>(&self, word: &'a str) -> (Takes, Option<&'a str>) {
        let bare = word.trim_start_matches(['-', '+']);
        let (name, value) = match bare.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (bare, None),
        };
        let abbreviated = word.starts_with("--") && name.len() > 2;
        let long = |listed: &str| listed == name || abbreviated && listed.starts_with(name);
        if name.len() > 1
            && let Some(takes) = self.listed(long)
        {
            return (takes, value);
        }
        if !word.starts_with("--") {
            for (at, letter) in bare.char_indices() {
                let short = |listed: &str| listed.len() == 1 && listed.starts_with(letter);
                if let Some(takes) = self.listed(short) {
                    let rest = &bare[at + letter.len_utf8()..];
                    return (takes, (!rest.is_empty()).then_some(rest));
                }
            }
        }
        (self.other, value)
    }

    fn listed(&self, is_it: impl Fn(&str) -> bool) -> Option<Takes> {
        let row = self.options.iter().find(|(names, _)| names.split(' ').any(&is_it));
        row.map(|(_, takes)| *takes)
    }
}
