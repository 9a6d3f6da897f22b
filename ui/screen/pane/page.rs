//! A page: rows of text in the place of the transcript. Some rows have a target, and the cursor goes from one of those to
//! the next; a page without any is only read.

use crate::rows::{Piece, cut, paint, shorten, width};
use crate::screen::pane::glyph::Glyphs;
use crate::theme::{Role, Theme};
use crate::wording::lines::Target;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// What keys do.
mod keys;
/// Lines of text with labels.
mod lines;
/// The rows of *Since you left*.
mod since;

pub use keys::{KeyHelp, rows_of_keys, rows_of_words};
pub use lines::rows_of_lines;
pub use since::rows_of_report;

/// The most columns of the text of a page.
const WIDEST: u16 = 100;

/// One row of a page, laid out for its width.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageRow {
    pub text: Vec<Piece>,
    /// At the right end.
    pub aside: String,
    /// Where Enter goes.
    pub target: Option<Target>,
}

/// How far a page is scrolled, and where its cursor is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    top: usize,
    /// The row of the cursor, as it was when the cursor moved last.
    row: usize,
    /// The target of that row: the cursor follows it when rows come and go.
    target: Option<Target>,
}

impl PageRow {
    pub fn new(text: Vec<Piece>) -> Self {
        Self { text, ..Self::default() }
    }

    /// Its text without looks.
    pub fn plain(&self) -> String {
        let text: String = self.text.iter().map(|piece| piece.text.as_str()).collect();
        format!("{text}  {}", self.aside).trim().to_owned()
    }
}

impl Place {
    /// The row with the cursor, if a row has a target.
    pub fn cursor(&self, rows: &[PageRow]) -> Option<usize> {
        let same = |row: &PageRow| self.target.is_some() && row.target == self.target;
        let nearest = || targets(rows).min_by_key(|at| at.abs_diff(self.row));
        rows.iter().position(same).or_else(nearest)
    }

    /// The row at the top of a pane with so many rows.
    pub fn top(&self, rows: &[PageRow], height: usize) -> usize {
        self.top.min(rows.len().saturating_sub(height))
    }

    /// Moves the cursor by so many targets, and the view with it. Where there is no further one the view scrolls.
    pub fn step(&mut self, rows: &[PageRow], by: isize, height: usize) {
        let all: Vec<usize> = targets(rows).collect();
        let at = self.cursor(rows).and_then(|row| all.iter().position(|at| *at == row));
        let next = at.and_then(|at| at.checked_add_signed(by)).and_then(|at| all.get(at).copied());
        match next {
            Some(row) => self.go_to(rows, row, height),
            None => self.scroll(rows, by.signum(), height),
        }
    }

    /// Scrolls by so many rows; the cursor stays in view.
    pub fn scroll(&mut self, rows: &[PageRow], by: isize, height: usize) {
        let last = rows.len().saturating_sub(height);
        self.top = self.top(rows, height).saturating_add_signed(by).min(last);
        let view = self.top..self.top + height;
        if self.cursor(rows).is_none_or(|row| view.contains(&row)) {
            return;
        }
        let mut in_view = targets(rows).filter(|row| view.contains(row));
        let nearest = if by < 0 { in_view.last() } else { in_view.next() };
        if let Some(row) = nearest {
            self.put_cursor(rows, row);
        }
    }

    /// Goes to the first row with a target, and to the top.
    pub fn first(&mut self, rows: &[PageRow]) {
        self.top = 0;
        if let Some(row) = targets(rows).next() {
            self.put_cursor(rows, row);
        }
    }

    /// Goes to the last row with a target, and to the end.
    pub fn last(&mut self, rows: &[PageRow], height: usize) {
        self.top = rows.len().saturating_sub(height);
        if let Some(row) = targets(rows).last() {
            self.put_cursor(rows, row);
        }
    }

    /// Puts the cursor on the row at this line of the pane, if that has a target.
    pub fn click(&mut self, rows: &[PageRow], line: usize, height: usize) {
        let row = self.top(rows, height) + line;
        if rows.get(row).is_some_and(|row| row.target.is_some()) {
            self.put_cursor(rows, row);
        }
    }

    fn go_to(&mut self, rows: &[PageRow], row: usize, height: usize) {
        self.put_cursor(rows, row);
        let is_first = targets(rows).next() == Some(row);
        // Rows without a target above the first one are in view with it.
        let from = if is_first { 0 } else { row };
        let top = self.top(rows, height);
        self.top = top.min(from).max((row + 1).saturating_sub(height));
    }

    fn put_cursor(&mut self, rows: &[PageRow], row: usize) {
        self.row = row;
        self.target = rows.get(row).and_then(|row| row.target.clone());
    }
}

/// The rows with a target.
fn targets(rows: &[PageRow]) -> impl Iterator<Item = usize> {
    rows.iter().enumerate().filter(|(_, row)| row.target.is_some()).map(|(at, _)| at)
}

/// The columns that rows are laid out for in a pane of this width.
pub fn columns(pane: u16) -> usize {
    usize::from(pane.saturating_sub(1).min(WIDEST))
}

/// A page as it is painted.
pub struct View<'a> {
    pub rows: &'a [PageRow],
    pub place: &'a Place,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
    pub focused: bool,
}

impl View<'_> {
    pub fn render(&self, area: Rect, buf: &mut Buffer) {
        let height = usize::from(area.height);
        let top = self.place.top(self.rows, height);
        let cursor = self.place.cursor(self.rows).filter(|_| self.focused);
        for ((at, row), y) in self.rows.iter().enumerate().skip(top).zip(area.y..area.bottom()) {
            let line = Rect { y, height: 1, ..area };
            self.row(row, line, buf);
            if cursor == Some(at) {
                self.cursor(line, buf);
            }
        }
    }

    fn row(&self, row: &PageRow, line: Rect, buf: &mut Buffer) {
        let columns = columns(line.width);
        let aside = self.glyphs.plain(&cut(&row.aside, columns));
        let wide = width(&aside);
        let text: Vec<Piece> =
            row.text.iter().map(|piece| piece.part(&self.glyphs.plain(&piece.text))).collect();
        let room = columns.saturating_sub(if wide == 0 { 0 } else { wide + 1 });
        paint(&shorten(&text, room), self.theme, (line.x, line.y), line.right(), buf);
        let at = u16::try_from(columns - wide).unwrap_or(0);
        buf.set_stringn(line.x + at, line.y, aside, wide, self.theme.style(Role::Dim));
    }

    /// Marks the row of the cursor, beside a sign in its first columns.
    fn cursor(&self, line: Rect, buf: &mut Buffer) {
        buf.set_style(line, self.theme.selection);
        let indented = buf.cell((line.x + 1, line.y)).is_some_and(|cell| cell.symbol() == " ");
        let x = line.x + u16::from(indented && line.width > 1);
        let sign = self.glyphs.pick("›", ">");
        buf.set_stringn(x, line.y, sign, 1, self.theme.accent);
    }
}

/// A piece of this role.
pub fn piece(text: impl Into<String>, role: Role) -> Piece {
    Piece::new(text, role)
}

/// So many blanks.
pub fn blank(columns: usize) -> Piece {
    Piece::new(" ".repeat(columns), Role::Text)
}

#[cfg(test)]
mod tests;
