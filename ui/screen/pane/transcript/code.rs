//! Lines of code: indented, on a ground of their own, never broken between words, coloured by what each piece is.

use crate::rows::{Break, Paragraph, Piece, Row, row_width, shorten};
use crate::screen::code::{Class, Highlighter};
use crate::screen::pane::transcript::clean;
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
    let first = raised(before);
    let wide = row_width(&first);
    let rest = [Piece::new(" ".repeat(wide), Role::Raised)];
    let rest =
        if before.iter().any(|piece| piece.text.starts_with('│')) { &first[..] } else { &rest };
    let body = pieces(text, colours);
    Paragraph { first: &first, rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
}

/// The beginning of a row of code: the ground of the row begins with it.
fn raised(before: &[Piece]) -> Row {
    [before, &[Piece::new("  ", Role::Raised)]].concat()
}

/// The column of a row from which on it stands on the ground of code.
pub fn ground(row: &[Piece]) -> Option<usize> {
    let at = row.iter().position(|piece| piece.style.role == Role::Raised)?;
    Some(row_width(&row[..at]))
}

/// Appends the row above code that names its language.
pub fn language(name: &str, before: &[Piece], cells: usize, out: &mut Vec<Row>) {
    if !name.is_empty() {
        let mut row = raised(before);
        row.push(Piece::new(clean::words(name), Role::Dim));
        out.push(shorten(&row, cells));
    }
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
