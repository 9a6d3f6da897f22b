//! Text cut or filled to an exact number of cells.

use crate::rows::measure::{head_of, row_width, tail_of, width};
use crate::rows::{Piece, Row, TextStyle};
use yoi::text::SafeText;

/// Marks a line whose end was cut off.
const ELLIPSIS: &str = "…";

/// `text` on one safe line, at most `max` columns wide; what was cut off is marked by `…`.
pub fn cut(text: &str, max: usize) -> String {
    let text = SafeText::line(text);
    if width(&text) <= max {
        return text.into_string();
    }
    if max == 0 {
        return String::new();
    }
    head_of(&text, max - 1).0.to_owned() + ELLIPSIS
}

/// As [`cut`], with the cut in front: of a path the end says most.
pub fn cut_front(text: &str, max: usize) -> String {
    let text = SafeText::line(text);
    match max {
        _ if width(&text) <= max => text.into_string(),
        0 => String::new(),
        max => ELLIPSIS.to_owned() + tail_of(&text, max - 1),
    }
}

/// As [`cut`], with the cut in the middle: names differ at their beginning or at their end.
pub fn cut_middle(text: &str, max: usize) -> String {
    let text = SafeText::line(text);
    if width(&text) <= max || max == 0 {
        return cut(&text, max);
    }
    let (head, used) = head_of(&text, max / 2);
    format!("{head}{ELLIPSIS}{}", tail_of(&text, max - 1 - used))
}

/// `text` cut or filled with spaces to exactly `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    let mut text = cut(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// As [`pad`], with the text at the right.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let mut filled = " ".repeat(columns.saturating_sub(width(&text)));
    filled.push_str(&text);
    filled
}

/// A row of at most this many cells; an ellipsis says that something is missing.
pub fn shorten(row: &[Piece], cells_at_most: usize) -> Row {
    if row_width(row) <= cells_at_most {
        return row.to_vec();
    }
    let mut left = cells_at_most.saturating_sub(1);
    let mut out = Row::new();
    for piece in row {
        let (head, used) = head_of(&piece.text, left);
        out.push(piece.part(head));
        left -= used;
        if head.len() < piece.text.len() {
            break;
        }
    }
    if cells_at_most > 0 {
        let style = out.last().map_or(TextStyle::default(), |piece| piece.style);
        out.push(Piece::new(ELLIPSIS, style));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::Role;
    use proptest::prelude::*;

    #[test]
    fn a_cluster_is_never_split() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("a👩‍💻b", 4), "a👩‍💻b");
        assert_eq!(cut("a👩‍💻bc", 4), "a👩‍💻…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(pad("é", 3), "é  ");
        assert_eq!(right("9", 3), "  9");
    }

    #[test]
    fn a_text_is_cut_where_it_says_least() {
        assert_eq!(cut_front("src/cart/total.rs", 12), "…rt/total.rs");
        assert_eq!(cut_front("日本語", 5), "…本語");
        assert_eq!(cut_front("日本語", 4), "…語");
        assert_eq!((cut_front("abc", 3), cut_front("abc", 0)), ("abc".into(), String::new()));
        assert_eq!(cut_middle("reviewer-of-docs", 8), "revi…ocs");
        assert_eq!(cut_middle("審査員である人", 8), "審査…人");
        assert_eq!((cut_middle("ab", 1), cut_middle("ab", 0)), ("…".into(), String::new()));
    }

    #[test]
    fn a_row_is_shortened_with_an_ellipsis() {
        let row = [Piece::new("abc", Role::Text), Piece::new("日本語", Role::Dim)];
        let short =
            |cells| -> String { shorten(&row, cells).into_iter().map(|p| p.text).collect() };
        assert_eq!(short(9), "abc日本語");
        assert_eq!(short(8), "abc日本…");
        assert_eq!(short(7), "abc日…");
        assert_eq!((short(1).as_str(), short(0).as_str()), ("…", ""));
    }

    proptest! {
        #[test]
        fn filled_text_has_exactly_its_width(text in ".{0,40}", columns in 0_usize..30) {
            prop_assert_eq!(width(&pad(&text, columns)), columns);
            prop_assert_eq!(width(&right(&text, columns)), columns);
            prop_assert!(width(&cut_front(&text, columns)) <= columns);
            prop_assert!(width(&cut_middle(&text, columns)) <= columns);
        }

        #[test]
        fn a_shortened_row_fits(text in "[a-z日é👩 ]{0,60}", cells in 0usize..60) {
            prop_assert!(row_width(&shorten(&[Piece::new(text, Role::Text)], cells)) <= cells);
        }
    }
}
