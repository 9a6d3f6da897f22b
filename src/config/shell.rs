//! Reads a command line that consists of commands, pipelines and lists of literal words. Rules of policy are
//! compared with these. Any other form, such as a substitution or a loop, is not read: what it runs is known
//! only to bash. Reads no file and no variable.

use crate::config::shell::reader::Reader;

mod git;
mod interpreters;
mod loose;
mod programs;
mod reader;

pub use git::{GitCommand, command as git_command};
pub use interpreters::{Interpreter, Operand, Takes, of as interpreter};
pub use loose::{named_commands, stands};

/// The longest line that is read, in bytes.
pub const MAX_LINE: usize = 16 * 1024;

/// A part of the text of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    Char(char),
    /// The blank between two words.
    Blank,
    /// A character that makes the word a pattern of file names, or a home directory.
    Expands(char),
    /// The value of a variable, which is known only when the command runs.
    Unknown,
}

/// One simple command of a line. The name of its program is literal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// The texts that this command may have: assignments in front or not, the program with its
    /// directory or not. The value of a variable stands for the blanks around it, too.
    pub texts: Vec<Vec<Piece>>,
    /// The same texts with a blank between any two words.
    spelled: Vec<Vec<Piece>>,
    /// Its whole text if a rule with a wildcard may allow it: no part is unknown, no redirection
    /// reads or writes a file, and it starts no other command.
    pub known: Option<Vec<Piece>>,
    /// Whether it starts a command that its arguments name.
    pub starts_another: bool,
    /// Its words, assignments in front included.
    pub words: Vec<ShownWord>,
    /// How many of its words, from the first one on, a rule with a wildcard must spell: up to the last word that is a
    /// program for its program, or chooses one, such as `--upload-pack=./x`. More than there are if no rule can.
    pub must_spell: usize,
    /// Whether it is a command of git that finds its repository by the current directory.
    pub finds_repository: bool,
}

/// A word of a command, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownWord {
    /// The text with the signs of its file patterns; `None` if a part of it is unknown.
    pub text: Option<String>,
    /// Where it ends in the text of the command, in pieces.
    pub end: usize,
    /// Where it ends in the line, in characters.
    pub end_in_line: usize,
}

/// Why a line could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    TooLong,
    NotLiteral,
}

impl Unreadable {
    /// The reason, as the end of a sentence about the command.
    pub fn sentence(self) -> String {
        match self {
            Self::TooLong => format!(
                "it has more than {} KiB: put it into a script file and run that",
                MAX_LINE / 1024
            ),
            Self::NotLiteral => {
                "it has more than literal words in commands, pipelines and lists, so that only \
                 a shell knows what it runs: write the commands out"
                    .into()
            }
        }
    }
}

/// The simple commands of a line in textual order.
pub fn read(line: &str) -> Result<Vec<SimpleCommand>, Unreadable> {
    if line.len() > MAX_LINE {
        return Err(Unreadable::TooLong);
    }
    Reader::new(line).line().ok_or(Unreadable::NotLiteral)
}

#[cfg(test)]
mod tests;
