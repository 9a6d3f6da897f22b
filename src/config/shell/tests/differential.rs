//! Compares the reader with bash itself: of a line that is read, bash runs no command that the reader did not see.

use crate::config::shell::{Piece, SimpleCommand, read};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Lines that are made, and the fewest of them that the reader must know for the comparison to say something.
const LINES: usize = 16_000;
const FEWEST_READ: usize = 6_000;
/// Processes of bash that share the lines.
const SHELLS: usize = 2;

/// Runs each line in an empty directory of its own. Programs are not run: a function takes the place of each, or
/// the handler of a name that is not found, and records the name and the arguments with one write, also where
/// commands run at the same time: bash writes after each end of a line, so another character stands for it.
const DRIVER: &str = r#"
PATH=/nowhere FUNCNEST=8
__record() { local IFS=$'\037'; printf '%s\037\036\037' "${*//$'\n'/$'\035'}" >> "$__log"; }
command_not_found_handle() { __record "$@"; }
frob() { __record frob "$@"; }
git() { __record git "$@"; }
aa() { __record aa "$@"; }
while read -r __number && IFS= read -r -d '' __line; do
  ( cd "$__dirs/$__number" || exit; __log=$__logs/$__number; eval "$__line"; wait ) 3<&- 4<&-
done <&3 3<&-
"#;

/// Words of a command, most of them literal.
const WORDS: &[&str] = &[
    "aa",
    "bb",
    "git",
    "frob",
    "'frob'",
    "fr\"ob\"",
    "f\\rob",
    "fro'b'",
    "\"frob\"",
    "'a b'",
    "\"a b\"",
    "a\\ b",
    "''",
    "\"\"",
    "-x",
    "--y=z",
    "a=b",
    "'a;frob'",
    "\"a|frob\"",
    "'$(frob)'",
    "\"\\$(frob)\"",
    "\\`frob\\`",
    "a,b",
    "./x",
    "x/y",
    "*",
    "a*b",
    "[ab]",
    "[",
    "?",
    "~",
    "a~b",
    "HEAD^",
    "a#b",
    "#frob",
    "@x",
    "%1",
    "a:b",
    "a+b",
    "'#'",
    "\\#",
    "\\;frob",
    "\\&",
    "\\|",
    "\\>x",
    "\\<",
    "\\~",
    "\\*",
    "\\'",
    "\\\"",
    "\"'\"",
    "'\"'",
    "\"a\\b\"",
    "\"\\\\\"",
    "'\\'",
    "\"a\nfrob\"",
    "'a\nfrob'",
    "1",
    "22",
    "]",
    "\"!\"",
    "'{frob,x}'",
    "\\{frob",
    "echo",
    ":",
    "true",
    "test",
    "printf",
    "env",
    "in",
    "$x",
    "\"$y\"",
    "${x}z",
    "\"a${y}\"",
    "=",
    "=x",
    "a==b",
    "-",
];
/// What stands in front of a command or behind it.
const EXTRAS: &[&str] = &[
    ">x",
    "> x",
    ">>y",
    "2>x",
    "2>&1",
    ">&2",
    "<x",
    "< /dev/null",
    ">/dev/null",
    "&>x",
    "&>>x",
    ">&x",
    "<<<x",
    "<<< 'frob x'",
    ">|x",
    "<>x",
    "3>&1",
    "2>&-",
    "12>x",
    "A=1",
    "B='frob'",
    "C=\"a b\"",
    "A=frob",
    "D=",
    "x=git",
    "a''=b",
    "'A'=b",
    "2''>x",
    "\"2\">x",
];
const OPERATORS: &[&str] = &[
    "; ", " ; ", ";", " && ", "&&", " || ", " | ", "|", " & ", "&", "\n", " |& ", " &&\n", "\n\n",
];
/// Texts that mean more to bash, put anywhere.
const STRANGE: &[&str] = &[
    "{$(frob),b}",
    "{frob,x}",
    "$(frob)",
    "`frob`",
    "\"$(frob)\"",
    "<(frob)",
    ">(frob)",
    "${z:-$(frob)}",
    "$((1))",
    "$((z[$(frob)]))",
    "(",
    ")",
    "{ ",
    "; }",
    "{",
    "}",
    "{z}>x",
    "!",
    "! ",
    "time ",
    "if ",
    "then ",
    "fi",
    "for x in ",
    "; do ",
    "; done",
    "case x in ",
    "esac",
    "while ",
    "eval ",
    "eval 'frob'",
    "command ",
    "builtin ",
    "exec ",
    "trap ",
    "'frob' EXIT",
    "[[ ",
    "]]",
    "((",
    "))",
    "<<E\n",
    "\nE\n",
    "<<",
    "$'\\x66rob'",
    "$\"frob\"",
    "\\\n",
    "\\",
    "'",
    "\"",
    "`",
    "$",
    "$1",
    "$@",
    "\r",
    "\t",
    " ",
    "\n",
    "#",
    "# ",
    ";",
    ";;",
    "&",
    "|",
    ">",
    "<",
    "=",
    "+=",
    "[0]=",
    "PATH=",
    "read x",
    "z='a[$(frob)]' ",
    "printf -v ",
    "test -v ",
    "'z[$(frob)]'",
    "let ",
    "declare -i ",
    "set -- ",
    "alias ",
    "function f ",
    "f() ",
    "coproc ",
    "é",
    "\u{a0}",
    "\u{1}",
    "~",
    "*",
    "{1..3}",
    "{a..$(frob)}",
    ". ",
    "source ",
];

/// Numbers that are the same in each run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % end
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    fn command(&mut self) -> String {
        let mut parts = Vec::new();
        for _ in 0..=self.below(4) {
            let extra = self.below(6) == 0;
            parts.push(self.one(if extra { EXTRAS } else { WORDS }));
        }
        parts.join(if self.below(9) == 0 { "\t " } else { " " })
    }

    fn line(&mut self) -> String {
        let mut line = self.command();
        for _ in 0..self.below(4) {
            line.push_str(self.one(OPERATORS));
            line.push_str(&self.command());
        }
        if self.below(5) < 2 {
            for _ in 0..=self.below(2) {
                let places: Vec<usize> =
                    line.char_indices().map(|(at, _)| at).chain([line.len()]).collect();
                let at = places[self.below(places.len())];
                let strange = self.one(STRANGE);
                line.insert_str(at, strange);
            }
        }
        line
    }
}

/// Starts bash with every line of its share.
fn start(dir: &Path, lines: &[(usize, String)], share: usize) -> Child {
    let mut input = String::new();
    for (number, line) in lines.iter().filter(|(number, _)| number % SHELLS == share) {
        write!(input, "{number}\n{line}\0").unwrap();
    }
    let file = dir.join(format!("lines.{share}"));
    fs::write(&file, input).unwrap();
    Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &format!("exec 3<'{}'\n{DRIVER}", file.display())])
        .env_clear()
        .env("__dirs", dir.join("dirs"))
        .env("__logs", dir.join("logs"))
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// The commands that a line ran: each its name and arguments.
fn runs(log: &Path) -> Vec<Vec<String>> {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap_or_default()).into_owned();
    let words = |run: &str| {
        let mut words: Vec<String> =
            run.split('\u{1f}').map(|word| word.replace('\u{1d}', "\n")).collect();
        words.pop();
        words
    };
    let mut runs: Vec<_> = text.split("\u{1e}\u{1f}").map(words).collect();
    runs.pop();
    runs
}

/// Whether the reader saw this command. Where a part of it is open, the name is compared.
fn is_seen(run: &[String], read: &[SimpleCommand]) -> bool {
    let word = |word: &[Piece]| -> String {
        let chars = word.iter().map(|piece| match piece {
            Piece::Char(c) | Piece::Expands(c) => *c,
            Piece::Blank | Piece::Unknown => '·',
        });
        chars.collect()
    };
    let open =
        |text: &[Piece]| text.iter().any(|p| matches!(p, Piece::Unknown | Piece::Expands(_)));
    let fits = |text: &Vec<Piece>| {
        let words: Vec<String> = text.split(|p| *p == Piece::Blank).map(word).collect();
        words == run || open(text) && words.first() == run.first()
    };
    read.iter().any(|command| command.spelled.iter().any(fits))
}

#[test]
fn bash_runs_no_command_of_a_read_line_that_the_reader_did_not_see() {
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    let made: Vec<String> = (0..LINES).map(|_| dice.line()).collect();
    let readable = made.into_iter().filter(|line| read(line).is_ok());
    let lines: Vec<(usize, String)> = readable.enumerate().collect();
    assert!(lines.len() >= FEWEST_READ, "only {} of the lines are read", lines.len());
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("logs")).unwrap();
    for (number, _) in &lines {
        fs::create_dir_all(dir.path().join("dirs").join(number.to_string())).unwrap();
    }
    let shells: Vec<Child> = (0..SHELLS).map(|share| start(dir.path(), &lines, share)).collect();
    for mut shell in shells {
        assert!(shell.wait().unwrap().success());
    }
    let mut ran = 0;
    for (number, line) in &lines {
        let known = read(line).unwrap();
        let log = dir.path().join("logs").join(number.to_string());
        for run in runs(&log) {
            ran += 1;
            assert!(is_seen(&run, &known), "bash runs {run:?} of {line:?}, read as {known:?}");
        }
    }
    assert!(ran >= FEWEST_READ, "bash ran only {ran} commands");
}
