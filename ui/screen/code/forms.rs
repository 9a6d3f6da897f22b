//! The forms that only some languages have.

use crate::screen::code::Class;
use crate::screen::code::language::Form;
use crate::screen::code::lexer::{Lexer, Open};

impl Lexer<'_> {
    /// Whether the line belongs to documentation: what is open behind it.
    pub fn documentation(&self, open: &Open) -> Option<Open> {
        if let Open::Pod(end) = open {
            let ends = !end.is_empty() && self.text.starts_with(end);
            return Some(if ends { Open::Nothing } else { Open::Pod(end) });
        }
        let pod = self.language.forms.iter().find_map(|form| match form {
            Form::Pod(end) if *open == Open::Nothing => Some(*end),
            _ => None,
        })?;
        if matches!(self.text.trim_end(), "__END__" | "__DATA__") {
            return Some(Open::Pod(""));
        }
        let begins = self.text.strip_prefix('=')?.starts_with(|c: char| c.is_ascii_lowercase());
        begins.then_some(Open::Pod(pod))
    }

    /// What stands only at the start of a line: directives and keys.
    pub fn start_of_line(&mut self) {
        let (indent, language) = (self.indent(), self.language);
        if language.has(Form::Preprocessor) && self.text[indent..].starts_with('#') {
            let spaces = self.text[indent + 1..].len() - self.text[indent + 1..].trim_start().len();
            let word = self.word_len(indent + 1 + spaces);
            self.take(indent, Class::Text);
            self.take(1 + spaces + word, Class::Keyword);
            let directive = &self.text[self.at - word..self.at];
            if matches!(directive, "include" | "import")
                && let Some(end) =
                    self.rest().find('>').filter(|_| self.rest().trim_start().starts_with('<'))
            {
                self.take(end + 1, Class::String);
            }
        }
        for form in language.forms {
            match form {
                Form::Keys(between) => self.key(between),
                Form::Patch => {
                    let class = match self.text.as_bytes().first() {
                        Some(b'+') => Class::Added,
                        Some(b'-') => Class::Removed,
                        Some(b'@') => Class::Keyword,
                        _ => Class::Comment,
                    };
                    self.take(self.text.len(), class);
                }
                Form::FirstWord => {
                    let len = self.word_len(indent);
                    if language.defines(&self.text[indent..indent + len]) {
                        self.take(indent, Class::Text);
                        self.take(len, Class::Keyword);
                    }
                }
                _ => {}
            }
        }
    }

    /// A key at the start of a line, behind the dashes of a list.
    fn key(&mut self, between: &str) {
        let start = self.text.len() - self.text.trim_start_matches([' ', '\t']).len();
        let mut from = start;
        while between == ":" && self.text[from..].starts_with("- ") {
            from += self.text[from..].len() - self.text[from + 1..].trim_start().len();
        }
        let line = &self.text[from..];
        let plain = |c: char| c.is_alphanumeric() || "_-./+$ ".contains(c);
        let len = line.find(|c| !plain(c)).unwrap_or(line.len());
        let key = line[..len].trim_end();
        let behind = line[key.len()..].trim_start_matches(' ');
        let ends = behind.strip_prefix(between);
        let ends =
            ends.is_some_and(|value| between != ":" || value.is_empty() || value.starts_with(' '));
        if ends && !key.is_empty() {
            self.take(from, Class::Text);
            self.take(key.len(), Class::Keyword);
        }
    }

    /// The forms that only some languages have.
    pub fn special(&mut self, c: char) -> Option<Open> {
        let rest = self.rest();
        for form in self.language.forms {
            match form {
                Form::Lifetimes if c == '\'' => return Some(self.lifetime()),
                Form::RawStrings if matches!(c, 'r' | 'b' | 'c') => {
                    if let Some(open) = self.raw_string() {
                        return Some(open);
                    }
                }
                Form::Heredoc(mark) if rest.starts_with(mark) => {
                    if let Some((len, word)) = heredoc(&rest[mark.len()..]) {
                        self.heredoc = Some(word);
                        self.take(mark.len(), Class::Text);
                        self.take(len, Class::Keyword);
                        return Some(Open::Nothing);
                    }
                }
                Form::Regex if c == '/' && !self.after_value => {
                    if let Some(len) = quoted_len(rest, 1) {
                        self.take(len, Class::String);
                        self.after_value = true;
                        return Some(Open::Nothing);
                    }
                }
                Form::QuoteWords if !self.after_value => {
                    let word = &rest[..self.word_len(self.at)];
                    let parts = match word {
                        "q" | "qq" | "qw" | "qr" | "m" => 1,
                        "s" | "tr" | "y" => 2,
                        _ => continue,
                    };
                    if let Some(len) = quoted_len(&rest[word.len()..], parts) {
                        self.take(word.len(), Class::Keyword);
                        self.take(len, Class::String);
                        self.after_value = true;
                        return Some(Open::Nothing);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn lifetime(&mut self) -> Open {
        let rest = self.rest();
        let mut chars = rest.char_indices().skip(1);
        let len = match (chars.next(), chars.next()) {
            (Some((_, '\\')), Some((at, c))) => {
                rest[at + c.len_utf8()..].find('\'').map(|end| at + c.len_utf8() + end + 1)
            }
            (Some(_), Some((at, '\''))) => Some(at + 1),
            _ => None,
        };
        match len {
            Some(len) => self.take(len, Class::String),
            None => {
                let len = 1 + self.word_len(self.at + 1);
                self.take(len, if len > 1 { Class::Keyword } else { Class::Text });
            }
        }
        self.after_value = true;
        Open::Nothing
    }

    fn raw_string(&mut self) -> Option<Open> {
        let rest = self.rest();
        let behind = rest.trim_start_matches(['b', 'c']);
        let raw = behind.strip_prefix('r');
        let prefix = rest.len() - raw.unwrap_or(behind).len();
        let hashes = match raw {
            Some(raw) => raw.len() - raw.trim_start_matches('#').len(),
            None => 0,
        };
        if prefix > 2 || !rest[prefix + hashes..].starts_with('"') {
            return None;
        }
        self.take(prefix + hashes + 1, Class::String);
        let close = format!("\"{}", "#".repeat(hashes)).into();
        Some(Open::String { close, escapes: raw.is_none(), lines: true })
    }

    pub fn long_bracket(&mut self) -> Option<Open> {
        if !self.language.has(Form::LongBrackets) {
            return None;
        }
        let rest = self.rest();
        let bracket = rest.strip_prefix("--").unwrap_or(rest);
        let inner = bracket.strip_prefix('[')?;
        let level = inner.len() - inner.trim_start_matches('=').len();
        inner[level..].starts_with('[').then_some(())?;
        let len = rest.len() - inner.len() + level + 1;
        let close: Box<str> = format!("]{}]", "=".repeat(level)).into();
        if rest.starts_with("--") {
            self.take(len, Class::Comment);
            return Some(Open::Comment { open: "", close, depth: 1 });
        }
        self.take(len, Class::String);
        Some(Open::String { close, escapes: false, lines: true })
    }

    /// What begins on the next line.
    pub fn next_lines(&mut self) -> Open {
        if self.language.has(Form::Indented) {
            let value = self.text.trim_end().trim_end_matches(['-', '+']);
            let block = value.strip_suffix(['|', '>']).unwrap_or("");
            if block.ends_with(": ") || block.trim_start() == "- " {
                return Open::Indented(self.indent());
            }
        }
        self.heredoc.take().map_or(Open::Nothing, Open::Heredoc)
    }
}

/// The word behind the mark of a heredoc, and how long it is with its quotes.
fn heredoc(text: &str) -> Option<(usize, Box<str>)> {
    let plain = text.trim_start_matches(['-', '~']);
    let plain = plain.trim_start_matches(' ');
    let quoted = plain.trim_start_matches(['\'', '"', '\\']);
    let len = quoted.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(quoted.len());
    let word = &quoted[..len];
    let is_word = word.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let behind = quoted[len..].strip_prefix(['\'', '"']).unwrap_or(&quoted[len..]);
    is_word.then(|| (text.len() - behind.len(), word.into()))
}

/// The length of that many texts between delimiters, such as `/…/` or `{…}{…}`, with the flags behind
/// them; `None` if they do not end on this line.
fn quoted_len(text: &str, parts: usize) -> Option<usize> {
    let open = text.chars().next().filter(|c| c.is_ascii_punctuation() && !",;=)".contains(*c))?;
    let close = match open {
        '(' => ')',
        '[' => ']',
        '{' => '}',
        '<' => '>',
        same => same,
    };
    let (mut left, mut depth, mut in_set) = (parts, 1, false);
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' if open == '/' => in_set = true,
            ']' if open == '/' => in_set = false,
            c if c == close && !in_set => {
                depth -= 1;
                if depth > 0 {
                    continue;
                }
                if at == 1 && open == '/' && parts == 1 {
                    return None;
                }
                left -= 1;
                if left == 0 {
                    let flags = text[at + 1..].find(|c: char| !c.is_ascii_lowercase());
                    return Some(flags.map_or(text.len(), |flags| at + 1 + flags));
                }
                // Brackets open again for the second text; other delimiters are shared.
                depth = usize::from(open == close);
            }
            c if c == open && open != close => depth += 1,
            _ => {}
        }
    }
    None
}
