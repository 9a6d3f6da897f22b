//! Text wrapped to a width: styled text becomes rows, plain text becomes lines.

use crate::rows::link::with_links;
use crate::rows::measure::{cells, clusters, head_of, row_width};
use crate::rows::{Piece, Row};
use crate::theme::Role;
use yoi::text::SafeText;

/// Where a line may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// Between words, and inside a word only where it is wider than the line.
    Words,
    /// Anywhere, keeping every space: for code and output.
    Anywhere,
}

/// What stands for a cluster that is wider than the whole line.
const TOO_WIDE: &str = "·";
/// Characters that do not begin a line (kinsoku).
const NOT_FIRST: &str =
    "、。，．・：；！？）」』】〉》〕｝…ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ";

/// Text to wrap, whose addresses become links: what stands before its first row, before the others, and how it may break.
pub struct Paragraph<'a> {
    pub first: &'a [Piece],
    pub rest: &'a [Piece],
    pub body: &'a [Piece],
    pub at: Break,
}

/// Wraps a text with nothing before its rows.
pub fn wrap(body: &[Piece], cells: usize, at: Break, out: &mut Vec<Row>) {
    Paragraph { first: &[], rest: &[], body, at }.wrap(cells, out);
}

/// The safe form of a text as lines of at most `cells`, broken between words.
pub fn wrap_text(text: &str, cells: usize) -> Vec<String> {
    wrapped(text, cells, Break::Words)
}

/// The same, broken where a line is full: for a text with words longer than a line.
pub fn wrap_anywhere(text: &str, cells: usize) -> Vec<String> {
    wrapped(text, cells, Break::Anywhere)
}

fn wrapped(text: &str, cells: usize, at: Break) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.lines() {
        let line = Piece::new(SafeText::line(line).into_string(), Role::Text);
        wrap(&[line], cells.max(1), at, &mut rows);
    }
    rows.into_iter().map(|row| row.into_iter().map(|piece| piece.text).collect()).collect()
}

impl Paragraph<'_> {
    /// Appends the rows of this text, none wider than `cells`; at least one.
    pub fn wrap(&self, cells: usize, out: &mut Vec<Row>) {
        let body = with_links(self.body, self.at);
        let text = Paragraph { body: &body, ..*self };
        let mut filler = Filler::new(&text, cells);
        for (index, piece) in body.iter().enumerate() {
            for (start, cluster) in clusters(&piece.text) {
                filler.put(index, start, cluster, out);
            }
        }
        filler.end_line(out);
    }
}

/// One cluster of the line under way.
#[derive(Clone, Copy)]
struct Cell {
    piece: usize,
    start: usize,
    end: usize,
    wide: usize,
    kind: CellKind,
}

#[derive(Clone, Copy, PartialEq)]
enum CellKind {
    Space,
    Ink,
    TooWide,
}

struct Filler<'a> {
    text: &'a Paragraph<'a>,
    cells: usize,
    first: Row,
    rest: Row,
    /// Whether the row under way is the first.
    at_first: bool,
    line: Vec<Cell>,
    used: usize,
    /// How much of `line` may stand alone.
    may_break: Option<usize>,
    /// The same, before the last such place.
    earlier: Option<usize>,
    /// Whether a space did not fit: the line ends here, and its further spaces are dropped.
    full: bool,
}

impl<'a> Filler<'a> {
    fn new(text: &'a Paragraph<'a>, cells: usize) -> Self {
        let (first, rest) = (half(text.first, cells), half(text.rest, cells));
        let mut filler = Self {
            text,
            cells,
            first,
            rest,
            at_first: true,
            line: Vec::new(),
            used: 0,
            may_break: None,
            earlier: None,
            full: false,
        };
        filler.used = row_width(filler.prefix());
        filler
    }

    fn prefix(&self) -> &Row {
        if self.at_first { &self.first } else { &self.rest }
    }

    fn put(&mut self, piece: usize, start: usize, cluster: &str, out: &mut Vec<Row>) {
        if cluster == "\n" {
            self.end_line(out);
            return;
        }
        let space = cluster.chars().all(|c| c.is_whitespace() && c != '\u{a0}' && c != '\u{202f}');
        let words = self.text.at == Break::Words;
        if self.full && !space {
            self.end_line(out);
        }
        let (mut wide, mut kind) = (cells(cluster), CellKind::Ink);
        if wide > self.cells.saturating_sub(row_width(self.prefix())) {
            (wide, kind) = (usize::from(self.cells > 0), CellKind::TooWide);
        }
        if words && space {
            if self.used + wide > self.cells {
                // The line ends before the next ink, if there is any.
                self.full = true;
                return;
            }
            kind = CellKind::Space;
        } else {
            self.make_room(wide, cluster, out);
        }
        let end = start + cluster.len();
        self.line.push(Cell { piece, start, end, wide, kind });
        self.used += wide;
        if kind == CellKind::Space || (words && wide == 2) {
            self.allow_break();
        }
    }

    fn allow_break(&mut self) {
        let here = Some(self.line.len());
        if self.may_break != here {
            self.earlier = self.may_break;
            self.may_break = here;
        }
    }

    /// Breaks the line until a cluster of this width fits, and notes whether it may begin a line.
    fn make_room(&mut self, wide: usize, cluster: &str, out: &mut Vec<Row>) {
        let words = self.text.at == Break::Words;
        if NOT_FIRST.contains(cluster) && self.may_break == Some(self.line.len()) {
            let spaced = self.line.last().is_some_and(|cell| cell.kind == CellKind::Space);
            if !spaced {
                self.may_break = self.earlier;
            }
        } else if words && wide == 2 && !self.line.is_empty() {
            self.allow_break();
        }
        while self.used + wide > self.cells && !self.line.is_empty() {
            let keep = self.may_break.filter(|at| words && *at > 0).unwrap_or(self.line.len());
            let next = self.line.split_off(keep);
            self.end_line(out);
            self.used += next.iter().map(|cell| cell.wide).sum::<usize>();
            self.line = next;
        }
    }

    fn end_line(&mut self, out: &mut Vec<Row>) {
        while self.text.at == Break::Words
            && self.line.last().is_some_and(|cell| cell.kind == CellKind::Space)
        {
            self.line.pop();
        }
        let mut row = self.prefix().clone();
        let mut last = None;
        for cell in self.line.drain(..) {
            let source = &self.text.body[cell.piece];
            let text = match cell.kind {
                CellKind::TooWide if cell.wide == 0 => "",
                CellKind::TooWide => TOO_WIDE,
                CellKind::Space | CellKind::Ink => &source.text[cell.start..cell.end],
            };
            match row.last_mut() {
                Some(piece) if last == Some(cell.piece) => piece.text.push_str(text),
                _ => row.push(source.part(text)),
            }
            last = Some(cell.piece);
        }
        out.push(row);
        self.at_first = false;
        self.used = row_width(&self.rest);
        self.may_break = None;
        self.earlier = None;
        self.full = false;
    }
}

/// As much of a prefix as leaves half of the line for the text.
pub fn half(prefix: &[Piece], cells: usize) -> Row {
    if row_width(prefix) <= cells / 2 {
        return prefix.to_vec();
    }
    let mut left = cells / 2;
    let mut out = Row::new();
    for piece in prefix {
        let (head, used) = head_of(&piece.text, left);
        let whole = head.len() == piece.text.len();
        out.push(piece.part(head));
        if !whole {
            break;
        }
        left -= used;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::width;
    use proptest::prelude::*;

    fn rows(text: &str, cells: usize, at: Break) -> Vec<String> {
        let mut out = Vec::new();
        wrap(&[Piece::new(text, Role::Text)], cells, at, &mut out);
        out.iter().map(|row| row.iter().map(|piece| piece.text.as_str()).collect()).collect()
    }

    #[test]
    fn lines_break_between_words_and_inside_words_only_when_they_must() {
        assert_eq!(rows("the quick brown fox", 10, Break::Words), ["the quick", "brown fox"]);
        assert_eq!(rows("abcdefghij kl", 4, Break::Words), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(rows("a  b\n\n  c", 9, Break::Words), ["a  b", "", "  c"]);
        assert_eq!(rows("ab  cd", 4, Break::Anywhere), ["ab  ", "cd"]);
        assert_eq!(rows("abc  \nx  y", 3, Break::Words), ["abc", "x", "y"]);
    }

    #[test]
    fn wide_characters_break_anywhere_but_not_before_closing_punctuation() {
        assert_eq!(rows("日本語テスト", 6, Break::Words), ["日本語", "テスト"]);
        assert_eq!(rows("日本語。次", 6, Break::Words), ["日本", "語。次"]);
        assert_eq!(rows("👩‍💻é日", 4, Break::Words), ["👩‍💻é", "日"]);
        assert_eq!(rows("日本", 1, Break::Words), ["·", "·"]);
    }

    #[test]
    fn plain_text_keeps_its_lines_and_is_made_safe() {
        assert_eq!(wrap_text("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap_text("a\n\n  b", 3), ["a", "", "  b"]);
        assert_eq!(wrap_text("日本", 1), ["·", "·"]);
        assert_eq!(wrap_text("a\u{1b}[2K", 20), ["a\\x1b[2K"]);
        assert!(wrap_text("", 3).is_empty());
    }

    /// Words, wide characters, joined emoji, marks, spaces, anything.
    fn text() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            "[a-z]{1,12}",
            Just(" ".to_owned()),
            Just("日本語".to_owned()),
            Just("👩‍💻".to_owned()),
            Just("❤️".to_owned()),
            Just("e\u{301}".to_owned()),
            Just("ｶﾞ".to_owned()),
            Just("\n".to_owned()),
            any::<String>(),
        ];
        proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
    }

    fn ink(text: &str) -> String {
        clusters(text)
            .map(|(_, cluster)| cluster)
            .filter(|cluster| !cluster.chars().all(char::is_whitespace))
            .collect()
    }

    proptest! {
        #[test]
        fn no_row_is_wider_than_the_width_and_no_ink_is_lost(
            text in text(),
            cells in 1usize..200,
            anywhere in any::<bool>(),
        ) {
            let text = SafeText::lines(text.replace('\t', " ")).into_string();
            let at = if anywhere { Break::Anywhere } else { Break::Words };
            let rows = rows(&text, cells, at);
            for row in &rows {
                prop_assert!(width(row) <= cells, "{row:?} is wider than {cells}");
            }
            let widest = clusters(&text).map(|(_, cluster)| crate::rows::measure::cells(cluster)).max();
            if widest.unwrap_or(0) <= cells {
                prop_assert_eq!(ink(&text), rows.iter().map(|row| ink(row)).collect::<String>());
            }
        }

        #[test]
        fn prefixes_never_push_a_row_over_the_width(text in text(), cells in 1usize..40, deep in 0usize..30) {
            let text = SafeText::lines(text.replace('\t', " ")).into_string();
            let prefix = [Piece::new("│ ".repeat(deep), Role::Dim)];
            let body = [Piece::new(text, Role::Text)];
            let mut out = Vec::new();
            Paragraph { first: &prefix, rest: &prefix, body: &body, at: Break::Words }.wrap(cells, &mut out);
            prop_assert!(out.iter().all(|row| row_width(row) <= cells));
        }
    }
}
