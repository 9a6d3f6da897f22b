//! Goes through a line of code from left to right.

use crate::screen::code::language::{Form, Language, Quote};
use crate::screen::code::{Class, Span, markup};

/// What a line leaves open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Open {
    #[default]
    Nothing,
    Comment {
        open: &'static str,
        close: Box<str>,
        depth: u32,
    },
    String {
        close: Box<str>,
        escapes: bool,
        lines: bool,
    },
    /// Up to a line that is this word, spaces before it aside.
    Heredoc(Box<str>),
    /// Documentation up to a line that begins with this word; without a word, up to the end.
    Pod(&'static str),
    /// A text of lines that are indented by more than this many spaces.
    Indented(usize),
    /// Inside of a tag of a markup language.
    Tag,
}

/// One line on its way.
pub struct Lexer<'t> {
    pub language: &'static Language,
    pub text: &'t str,
    /// How far the line is read, in bytes.
    pub at: usize,
    spans: Vec<Span>,
    /// A heredoc that begins on the next line.
    pub heredoc: Option<Box<str>>,
    /// Whether a value ends before this place, so that a `/` divides it.
    pub after_value: bool,
}

impl<'t> Lexer<'t> {
    pub fn new(language: &'static Language, text: &'t str) -> Self {
        Self { language, text, at: 0, spans: Vec::new(), heredoc: None, after_value: false }
    }

    /// The pieces of the line; `open` is what lines before left open, then what this one leaves open.
    pub fn run(mut self, open: &mut Open) -> Vec<Span> {
        if let Open::Heredoc(word) = open {
            let ends = self.text.trim_start().trim_end_matches([';', ',', ')']) == &**word;
            self.take(self.text.len(), if ends { Class::Keyword } else { Class::String });
            if ends {
                *open = Open::Nothing;
            }
            return self.spans;
        }
        if let Some(next) = self.documentation(open) {
            self.take(self.text.len(), Class::Comment);
            *open = next;
            return self.spans;
        }
        if let Open::Indented(depth) = open {
            if self.text.trim().is_empty() || self.indent() > *depth {
                self.take(self.text.len(), Class::String);
                return self.spans;
            }
            *open = Open::Nothing;
        }
        if *open == Open::Nothing {
            self.start_of_line();
        }
        while self.at < self.text.len() {
            *open = match std::mem::take(open) {
                Open::Nothing if self.language.has(Form::Markup) => markup::text(&mut self),
                Open::Tag => markup::tag(&mut self),
                Open::Comment { open, close, depth } => self.comment(open, close, depth),
                Open::String { close, escapes, lines } => self.string(close, escapes, lines),
                // The other ones are for whole lines.
                _ => self.code(),
            };
        }
        match open {
            Open::String { lines: false, .. } => *open = Open::Nothing,
            Open::Nothing => *open = self.next_lines(),
            _ => {}
        }
        self.spans
    }

    /// How many spaces begin the line.
    pub fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start().len()
    }

    /// The rest of the line.
    pub fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Takes the next `len` bytes.
    pub fn take(&mut self, len: usize, class: Class) {
        if len == 0 {
            return;
        }
        self.at += len;
        match self.spans.last_mut() {
            Some((bytes, last)) if *last == class => *bytes += len,
            _ => self.spans.push((len, class)),
        }
    }

    /// Takes one token of code.
    fn code(&mut self) -> Open {
        let (rest, language) = (self.rest(), self.language);
        let Some(c) = rest.chars().next() else { return Open::Nothing };
        if let Some(open) = self.long_bracket() {
            return open;
        }
        if language.line_comments.iter().any(|mark| self.begins_comment(mark)) {
            self.take(rest.len(), Class::Comment);
            return Open::Nothing;
        }
        for (open, close) in language.block_comments {
            if rest.starts_with(open) {
                self.take(open.len(), Class::Comment);
                return Open::Comment { open, close: (*close).into(), depth: 1 };
            }
        }
        if let Some(open) = self.special(c) {
            return open;
        }
        if let Some(quote) = language.quotes.iter().find(|quote| rest.starts_with(quote.open)) {
            return self.begin(quote.open.len(), quote);
        }
        if c.is_ascii_digit() {
            self.take(number_len(rest), Class::Number);
            self.after_value = true;
        } else if language.is_in_word(c) {
            self.word();
        } else if language.sigils.contains(c) {
            let len = c.len_utf8() + self.word_len(self.at + c.len_utf8());
            self.take(len, Class::Text);
            self.after_value = true;
        } else {
            self.after_value = matches!(c, ')' | ']' | '}') || c == ' ' && self.after_value;
            self.take(c.len_utf8(), Class::Text);
        }
        Open::Nothing
    }

    /// A `#` inside of a word begins no comment, a `"` does so only at the start of a line.
    fn begins_comment(&self, mark: &&str) -> bool {
        let before = self.text[..self.at].chars().next_back();
        let apart = before.is_none_or(|c| c.is_whitespace() || ";()[]{},".contains(c));
        self.rest().starts_with(mark)
            && match *mark {
                "#" => apart && before != Some('{'),
                "\"" => self.text[..self.at].trim().is_empty(),
                _ => true,
            }
    }

    fn begin(&mut self, len: usize, quote: &Quote) -> Open {
        self.take(len, Class::String);
        self.after_value = true;
        Open::String { close: quote.close.into(), escapes: quote.escapes, lines: quote.lines }
    }

    fn word(&mut self) {
        let len = self.word_len(self.at);
        let word = &self.text[self.at..self.at + len];
        let before = self.text[..self.at].trim_end_matches('?');
        // A field may be called like a word of the language.
        let is_field = before.ends_with('.') && !before.ends_with("..") || before.ends_with("->");
        let behind = self.text[self.at + len..].trim_start();
        let is_property = self.language.has(Form::Properties)
            && behind.strip_prefix(':').is_some_and(|value| value.starts_with([' ', '\t']));
        let first = self.language.has(Form::FirstWord);
        let known = !first && !is_field && self.language.defines(word);
        self.take(len, if known || is_property { Class::Keyword } else { Class::Text });
        self.after_value = !known;
    }

    /// The length of the word that begins at a byte, 0 if there is none.
    pub fn word_len(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        rest.find(|c| !self.language.is_in_word(c)).unwrap_or(rest.len())
    }

    fn comment(&mut self, open: &'static str, close: Box<str>, mut depth: u32) -> Open {
        let rest = self.rest();
        let mut at = 0;
        while let Some(c) = rest[at..].chars().next() {
            if rest[at..].starts_with(&*close) {
                at += close.len();
                depth -= 1;
                if depth == 0 {
                    self.take(at, Class::Comment);
                    return Open::Nothing;
                }
            } else if self.language.nested && !open.is_empty() && rest[at..].starts_with(open) {
                at += open.len();
                depth += 1;
            } else {
                at += c.len_utf8();
            }
        }
        self.take(at, Class::Comment);
        Open::Comment { open, close, depth }
    }

    fn string(&mut self, close: Box<str>, escapes: bool, lines: bool) -> Open {
        let rest = self.rest();
        let mut chars = rest.char_indices();
        while let Some((at, c)) = chars.next() {
            if rest[at..].starts_with(&*close) {
                self.take(at + close.len(), Class::String);
                return Open::Nothing;
            }
            if escapes && c == '\\' && chars.next().is_none() {
                // The line end is escaped: the string goes on.
                self.take(rest.len(), Class::String);
                return Open::String { close, escapes, lines: true };
            }
        }
        self.take(rest.len(), Class::String);
        Open::String { close, escapes, lines }
    }
}

/// The length of a number: digits, letters of a base or a suffix, one point, the sign of an exponent.
fn number_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    let hex = text.starts_with("0x") || text.starts_with("0X");
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        let next_is_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let goes_on = match byte {
            b'.' => next_is_digit,
            b'+' | b'-' => !hex && matches!(bytes[at - 1], b'e' | b'E') && next_is_digit,
            other => other.is_ascii_alphanumeric() || *other == b'_' || *other == b'%',
        };
        if !goes_on {
            break;
        }
        at += 1;
    }
    at
}
