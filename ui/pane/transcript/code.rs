//! Lines of code: indented, never broken between words, coloured by what each piece is.

use crate::code::{Class, Highlighter};
use crate::rows::{Break, Paragraph, Piece, Row, row_width};
use crate::theme::Role;
use ratatui::style::Modifier;

/// Appends the rows of the next line of code, `before` in front of the first.
pub fn line(
    text: &str,
    colours: &mut Highlighter,
    before: &[Piece],
    cells: usize,
    out: &mut Vec<Row>,
) {
    let mut first = before.to_vec();
    first.push(Piece::new("  ", Role::Code));
    let wide = row_width(&first);
    let rest = [Piece::new(" ".repeat(wide), Role::Code)];
    let rest =
        if before.iter().any(|piece| piece.text.starts_with('│')) { &first[..] } else { &rest };
    let body = pieces(text, colours);
    Paragraph { first: &first, rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
}

/// Appends the rows of a command for a shell, with the prompt in front of its first line.
pub fn command(text: &str, cells: usize, out: &mut Vec<Row>) {
    let mut colours = Highlighter::new("sh");
    for (at, line) in text.lines().enumerate() {
        let prompt = if at == 0 { "  $ " } else { "    " };
        let first = [Piece::new(prompt, Role::Text)];
        let rest = [Piece::new("    ", Role::Text)];
        let body = pieces(line, &mut colours);
        Paragraph { first: &first, rest: &rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
    }
}

fn pieces(text: &str, colours: &mut Highlighter) -> Vec<Piece> {
    let plain = if colours.is_coloured() { Role::Text } else { Role::Code };
    let mut at = 0;
    let piece = |(len, class)| {
        let from = at;
        at += len;
        let mut piece = Piece::new(&text[from..from + len], role(class, plain));
        if class == Class::Keyword {
            piece.style.emphasis = Modifier::BOLD;
        }
        piece
    };
    colours.line(text).into_iter().map(piece).collect()
}

fn role(class: Class, plain: Role) -> Role {
    match class {
        Class::Text | Class::Keyword => plain,
        Class::Comment | Class::String | Class::Number => Role::Dim,
        Class::Added => Role::Added,
        Class::Removed => Role::Error,
    }
}
