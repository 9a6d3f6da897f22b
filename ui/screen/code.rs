//! Colours of source code: what each piece of a line is. Each language is a table; what a line leaves
//! open (a comment, a string, a heredoc) is carried to the next line.

mod forms;
mod language;
mod lexer;
mod markup;
mod tables;

use language::Language;
use lexer::{Lexer, Open};

/// Lines of more bytes are not coloured, and leave what is open as it was, so that a file of one huge line costs nothing.
pub const LONGEST: usize = 4 * 1024;

/// What a piece of source code is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Class {
    #[default]
    Text,
    Comment,
    String,
    Number,
    /// A word that the language defines: a keyword, a built-in type or constant, a tag, a key of a
    /// configuration file.
    Keyword,
    /// A line that a patch adds.
    Added,
    /// A line that a patch removes.
    Removed,
}

/// A piece of a line: its length in bytes, and what it is.
pub type Span = (usize, Class);

/// Classifies the lines of one source text in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Highlighter {
    language: Option<&'static Language>,
    open: Open,
}

impl Highlighter {
    /// For a language, by its name or by an ending of its files. Unknown names get no colours.
    pub fn new(name: &str) -> Self {
        Self { language: tables::find(name), open: Open::Nothing }
    }

    /// Whether the language is known.
    pub fn is_coloured(&self) -> bool {
        self.language.is_some()
    }

    /// The pieces of the next line; `text` is without its newline.
    pub fn line(&mut self, text: &str) -> Vec<Span> {
        match self.language {
            Some(language) if text.len() <= LONGEST => {
                Lexer::new(language, text).run(&mut self.open)
            }
            _ => vec![(text.len(), Class::Text)],
        }
    }
}

#[cfg(test)]
mod tests;
