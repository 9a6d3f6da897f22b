//! Lines of code: indented, never broken between words, with the few colours that every language
//! shares: strings, comments, numbers and the commonest keywords.

use crate::rows::{Break, Paragraph, Piece, Row, TextStyle, row_width};
use crate::theme::Role;

/// Words that open, close or steer something in most languages.
const KEYWORDS: &[&str] = &[
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "extern",
    "false",
    "fi",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "go",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "interface",
    "is",
    "lambda",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "move",
    "mut",
    "new",
    "nil",
    "None",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "return",
    "select",
    "self",
    "Self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "True",
    "False",
    "try",
    "type",
    "typedef",
    "union",
    "unsafe",
    "use",
    "using",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
];
/// Languages whose comments begin with `#`.
const HASH: &[&str] = &[
    "bash",
    "sh",
    "shell",
    "zsh",
    "fish",
    "console",
    "python",
    "py",
    "ruby",
    "rb",
    "perl",
    "toml",
    "yaml",
    "yml",
    "make",
    "makefile",
    "dockerfile",
    "r",
    "nix",
    "ini",
    "conf",
];
/// Languages whose comments begin with `--`.
const DASHES: &[&str] = &["sql", "lua", "haskell", "hs", "elm", "ada"];
/// Text without keywords.
const PLAIN: &[&str] = &["", "text", "txt", "plain", "console", "output", "log", "markdown", "md"];

/// Appends the rows of one line of code, `before` in front of the first.
pub fn line(text: &str, language: &str, before: &[Piece], cells: usize, out: &mut Vec<Row>) {
    let language = language.to_ascii_lowercase();
    let body = match language.as_str() {
        "diff" | "patch" => vec![Piece::new(text, patch_role(text))],
        other if PLAIN.contains(&other) => vec![Piece::new(text, Role::Code)],
        other => tokens(text, other),
    };
    let mut first = before.to_vec();
    first.push(Piece::new("  ", Role::Code));
    let wide = row_width(&first);
    let rest = [Piece::new(" ".repeat(wide), Role::Code)];
    let rest =
        if before.iter().any(|piece| piece.style.role == Role::Quote) { &first[..] } else { &rest };
    Paragraph { first: &first, rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
}

fn patch_role(line: &str) -> Role {
    match line.as_bytes().first() {
        Some(b'+') => Role::Added,
        Some(b'-') => Role::Removed,
        Some(b'@') => Role::Accent,
        _ => Role::Dim,
    }
}

fn comment_mark(language: &str) -> &'static str {
    if HASH.contains(&language) {
        "#"
    } else if DASHES.contains(&language) {
        "--"
    } else {
        "//"
    }
}

fn tokens(text: &str, language: &str) -> Vec<Piece> {
    let comment = comment_mark(language);
    let mut out: Vec<Piece> = Vec::new();
    let mut rest = text;
    let mut after_word = false;
    while let Some(c) = rest.chars().next() {
        let (len, style) = if rest.starts_with(comment) && !after_word {
            (rest.len(), TextStyle::from(Role::Dim))
        } else if matches!(c, '"' | '\'' | '`') && !after_word {
            match string(rest, c) {
                Some(len) => (len, Role::Ok.into()),
                None => (c.len_utf8(), Role::Text.into()),
            }
        } else if c.is_alphanumeric() || c == '_' {
            word(rest)
        } else {
            (c.len_utf8(), Role::Text.into())
        };
        after_word = c.is_alphanumeric() || c == '_';
        let (token, tail) = rest.split_at(len);
        rest = tail;
        match out.last_mut() {
            Some(piece) if piece.style == style => piece.text.push_str(token),
            _ => out.push(Piece::new(token, style)),
        }
    }
    out
}

/// The length of a string that begins here; a lone `'` (a lifetime, an apostrophe) begins none.
fn string(text: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + c.len_utf8()),
            _ => {}
        }
    }
    (quote == '"').then_some(text.len())
}

fn word(text: &str) -> (usize, TextStyle) {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let word = &text[..end];
    let style = if word.starts_with(|c: char| c.is_ascii_digit()) {
        Role::Warn.into()
    } else if KEYWORDS.contains(&word) {
        TextStyle { role: Role::Accent, emphasis: ratatui::style::Modifier::empty() }
    } else {
        Role::Text.into()
    };
    (end, style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str, language: &str) -> Vec<(String, Role)> {
        tokens(text, language).into_iter().map(|p| (p.text, p.style.role)).collect()
    }

    #[test]
    fn strings_comments_numbers_and_keywords_are_coloured() {
        let expected = [
            ("let", Role::Accent),
            (" x: &'a = ", Role::Text),
            ("42", Role::Warn),
            ("; ", Role::Text),
            ("// \"y\"", Role::Dim),
        ];
        let expected: Vec<_> = expected.iter().map(|(t, r)| ((*t).to_owned(), *r)).collect();
        assert_eq!(spans("let x: &'a = 42; // \"y\"", "rust"), expected);
        assert_eq!(spans("\"a\\\"b\"", "c"), [("\"a\\\"b\"".to_owned(), Role::Ok)]);
        assert_eq!(spans("# all", "py"), [("# all".to_owned(), Role::Dim)]);
    }

    #[test]
    fn no_character_of_a_line_is_lost() {
        for text in ["it's 'x", "日本 \"語", "a//b", "x#y", "''", "\\"] {
            let joined: String = tokens(text, "sh").into_iter().map(|p| p.text).collect();
            assert_eq!(joined, text);
        }
    }
}
