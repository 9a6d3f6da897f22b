//! Reads a command line that consists of commands, pipelines and lists of literal words. Rules of policy are
//! compared with these. Any other form, such as a substitution or a loop, is not read: what it runs is known
//! only to bash. Reads no file and no variable.

use crate::config::shell::reader::Reader;

mod handed;
mod loose;
mod programs;
mod reader;

pub use loose::{named_commands, stands};
pub use programs::SHELLS;

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
    /// Its words that name a program for one of its options, such as `--upload-pack=./x`.
    pub handed: Vec<String>,
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
