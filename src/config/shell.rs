//! Parses a command line as bash does: every simple command in it, with quotes removed from its
//! words. Rules of policy are compared with these. Reads no file and no variable.

use crate::config::shell::commands::Reader;
use std::thread;

mod builtins;
mod commands;
mod inner;
mod raw;
mod words;

pub use inner::SHELLS;

/// The longest line that is read, in bytes.
pub const MAX_LINE: usize = 16 * 1024;
/// The most substitutions in a line: the parser reads a nested one again for each level of nesting.
const MAX_SUBSTITUTIONS: usize = 32;
/// The most opening brackets in a line. The parser recurses about ten times for each nested one.
const MAX_BRACKETS: usize = 1024;
/// The stack size of the parser's thread. The parser recurses for nesting, at most once for each
/// character of a line.
const STACK: usize = 64 << 20;

/// A part of the text of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Char(char),
    /// The blank between two words.
    Blank,
    /// A character that makes the word a pattern of file names, or a home directory.
    Expands(char),
    /// Text that is known only when the command runs.
    Unknown,
}

/// One simple command of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The texts that this command may have: assignments in front or not, the program with its
    /// directory or not, and the command that it starts (`sudo x`, `env x`).
    pub texts: Vec<Vec<Piece>>,
    /// Its whole text if a rule with a wildcard may allow it: no part is unknown, and no
    /// redirection writes a file.
    pub known: Option<Vec<Piece>>,
    /// Whether it starts the command in its own arguments.
    pub starts_another: bool,
    /// Whether a keyword that runs the command behind it (`time`, `!`, `coproc`) stands in front of it, or it
    /// stands in a text that another command evaluates (`eval`, `sh -c`).
    pub is_run_by_another: bool,
}

impl SimpleCommand {
    /// The words of each of its texts, the program first; `None` is a word that is known only when
    /// the command runs, or a pattern of file names. `~` is not expanded.
    pub fn words(&self) -> impl Iterator<Item = Vec<Option<String>>> {
        let word = |pieces: &[Piece]| {
            let chars = pieces.iter().map(|piece| match piece {
                Piece::Char(c) | Piece::Expands(c @ '~') => Some(*c),
                Piece::Blank | Piece::Expands(_) | Piece::Unknown => None,
            });
            chars.collect::<Option<String>>()
        };
        let split = move |text: &Vec<Piece>| {
            text.split(|piece| *piece == Piece::Blank).map(word).collect::<Vec<_>>()
        };
        self.texts.iter().map(split)
    }

    /// A command that is known only when it runs.
    fn unknown() -> Self {
        Self { texts: vec![vec![Piece::Unknown]], ..Self::default() }
    }

    /// A part that runs no program, such as a test or a calculation. Only the rule `*` allows it.
    fn calculation() -> Self {
        Self::default()
    }
}

/// Why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    TooLong,
    TooNested,
    NotShell,
}

impl Unreadable {
    /// The reason, as the end of a sentence about the command.
    pub fn sentence(&self) -> String {
        match self {
            Self::TooLong => format!(
                "it has more than {} KiB: put it into a script file and run that",
                MAX_LINE / 1024
            ),
            Self::TooNested => format!(
                "it has more than {MAX_SUBSTITUTIONS} substitutions or {MAX_BRACKETS} brackets: put it \
                 into a script file and run that"
            ),
            Self::NotShell => "it cannot be read as a shell command: write it more plainly".into(),
        }
    }
}

/// The simple commands of a line in textual order, including those in substitutions, functions,
/// loops, and in arguments that a shell executes (`sh -c`, `eval`).
pub fn read(line: &str) -> Result<Vec<SimpleCommand>, Unreadable> {
    if line.len() > MAX_LINE {
        return Err(Unreadable::TooLong);
    }
    if substitutions(line) > MAX_SUBSTITUTIONS || line.matches('(').count() > MAX_BRACKETS {
        return Err(Unreadable::TooNested);
    }
    let line = line.to_owned();
    // After a panic of the parser, or without a thread for it, the line counts as unreadable.
    let reading = thread::Builder::new().stack_size(STACK).spawn(move || read_here(&line));
    reading.ok().and_then(|reading| reading.join().ok()).unwrap_or(Err(Unreadable::NotShell))
}

fn read_here(line: &str) -> Result<Vec<SimpleCommand>, Unreadable> {
    let mut reader = Reader::default();
    reader.line(line)?;
    Ok(reader.commands)
}

fn substitutions(line: &str) -> usize {
    let starts = ["$(", "<(", ">(", "${", "`"];
    starts.iter().map(|start| line.matches(start).count()).sum()
}

#[cfg(test)]
mod tests;
