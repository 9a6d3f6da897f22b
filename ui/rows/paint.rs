//! Puts a row into the cells of a frame.

use crate::rows::measure::is_plain;
use crate::rows::{Link, Piece};
use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::style::Style;

/// Paints the pieces of a row from a cell on, up to the column `right`. A link is marked by the colour of its underline.
pub fn paint(row: &[Piece], theme: &Theme, (x, y): (u16, u16), right: u16, buf: &mut Buffer) {
    let mut x = x;
    for piece in row {
        let mut style = theme.style(piece.style.role).add_modifier(piece.style.emphasis);
        let mark = piece.link.as_ref().map(Link::mark);
        style.underline_color = mark.or(style.underline_color);
        x = put(&piece.text, (x, y), right, style, buf);
    }
}

/// Paints a text, and returns the column behind it. Printable ASCII fills most of a frame and needs no search for
/// clusters.
fn put(text: &str, (x, y): (u16, u16), right: u16, style: Style, buf: &mut Buffer) -> u16 {
    let room = usize::from(right.min(buf.area.right()).saturating_sub(x));
    if !is_plain(text) {
        return buf.set_stringn(x, y, text, room, style).0;
    }
    let shown = text.len().min(room);
    if shown > 0 {
        let first = buf.index_of(x, y);
        let cells = &mut buf.content[first..first + shown];
        for (cell, byte) in cells.iter_mut().zip(text.bytes()) {
            cell.set_char(char::from(byte)).set_style(style);
        }
    }
    x + u16::try_from(shown).unwrap_or(room.try_into().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Role;
    use ratatui::layout::Rect;

    #[test]
    fn a_row_is_painted_as_the_library_paints_it_whatever_its_text() {
        let theme = Theme::default();
        for texts in [["plain", " and more"], ["日本", "x"], ["a\u{301}", "\u{1b}b"], ["", "end"]]
        {
            for (x, right) in [(0, 12), (3, 12), (9, 12), (2, 5), (12, 12), (0, 40)] {
                let area = Rect::new(0, 0, 12, 2);
                let (mut ours, mut theirs) = (Buffer::empty(area), Buffer::empty(area));
                let row = texts.map(|text| Piece::new(text, Role::Code));
                paint(&row, &theme, (x, 1), right, &mut ours);
                let mut at = x;
                for text in texts {
                    let room = usize::from(right.saturating_sub(at));
                    at = theirs.set_stringn(at, 1, text, room, theme.style(Role::Code)).0;
                }
                assert_eq!(ours, theirs, "{texts:?} from {x} to {right}");
            }
        }
    }
}
