//! A table of a markdown text: columns as wide as they need, narrower when the screen is, and as
//! `name: value` lines when even that does not fit.

use crate::rows::{Break, Paragraph, Piece, Row, row_width, wrap};
use crate::theme::Role;
use pulldown_cmark::Alignment;
use ratatui::style::Modifier;

/// Between two columns.
const BETWEEN: &str = "   ";
/// No column is made narrower than this.
const NARROWEST: usize = 4;

pub struct Table {
    alignments: Vec<Alignment>,
    /// The first row is the head.
    rows: Vec<Vec<Vec<Piece>>>,
    row: Vec<Vec<Piece>>,
}

impl Table {
    pub fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub fn cell(&mut self, content: Vec<Piece>) {
        self.row.push(content);
    }

    pub fn end_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if !row.is_empty() {
            self.rows.push(row);
        }
    }

    pub fn render(&self, cells: usize, out: &mut Vec<Row>) {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        if columns == 0 {
            return;
        }
        match self.widths(columns, cells) {
            Some(widths) => self.in_columns(&widths, out),
            None => self.as_lines(cells, out),
        }
    }

    /// The width of each column, or `None` when they do not fit side by side.
    fn widths(&self, columns: usize, cells: usize) -> Option<Vec<usize>> {
        let natural = |column: usize| {
            let cell = |row: &Vec<Vec<Piece>>| row.get(column).map_or(0, |cell| row_width(cell));
            self.rows.iter().map(cell).max().unwrap_or(0).max(1)
        };
        let mut widths: Vec<usize> = (0..columns).map(natural).collect();
        let room = cells.checked_sub((columns - 1) * BETWEEN.chars().count())?;
        let least: usize = widths.iter().map(|wide| NARROWEST.min(*wide)).sum();
        if least > room {
            return None;
        }
        let mut over = widths.iter().sum::<usize>().saturating_sub(room);
        while over > 0 {
            let widest = widths.iter().copied().max()?;
            let next = widths.iter().copied().filter(|w| *w < widest).max().unwrap_or(0);
            let many = widths.iter().filter(|w| **w == widest).count();
            // The widest columns shrink to the next width at once, but by no more than is needed.
            let step = (widest - next.max(1)).min(over.div_ceil(many)).max(1);
            for wide in widths.iter_mut().filter(|w| **w == widest) {
                let cut = step.min(over);
                *wide -= cut;
                over -= cut;
            }
        }
        Some(widths)
    }

    fn in_columns(&self, widths: &[usize], out: &mut Vec<Row>) {
        for row in &self.rows {
            let wrapped: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(column, wide)| {
                    let mut rows = Vec::new();
                    let body = row.get(column).map_or(&[][..], Vec::as_slice);
                    wrap(body, *wide, Break::Words, &mut rows);
                    rows
                })
                .collect();
            let high = wrapped.iter().map(Vec::len).max().unwrap_or(1);
            for line in 0..high {
                out.push(self.line(&wrapped, widths, line));
            }
        }
    }

    fn line(&self, wrapped: &[Vec<Row>], widths: &[usize], line: usize) -> Row {
        let mut out = Row::new();
        for (column, (rows, wide)) in wrapped.iter().zip(widths).enumerate() {
            if column > 0 {
                out.push(Piece::new(BETWEEN, Role::Text));
            }
            let content = rows.get(line).cloned().unwrap_or_default();
            let free = wide.saturating_sub(row_width(&content));
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            out.push(Piece::new(" ".repeat(before), Role::Text));
            out.extend(content);
            out.push(Piece::new(" ".repeat(free - before), Role::Text));
        }
        out
    }

    fn as_lines(&self, cells: usize, out: &mut Vec<Row>) {
        let Some((head, rows)) = self.rows.split_first() else { return };
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                out.push(Row::new());
            }
            for (column, cell) in row.iter().enumerate() {
                let mut name = head.get(column).cloned().unwrap_or_default();
                for piece in &mut name {
                    piece.style.emphasis |= Modifier::BOLD;
                }
                name.push(Piece::new(": ", Role::Dim));
                name.extend(cell.iter().cloned());
                let rest = [Piece::new("  ", Role::Text)];
                Paragraph { first: &[], rest: &rest, body: &name, at: Break::Words }
                    .wrap(cells, out);
            }
        }
        if rows.is_empty() {
            let names = head.join(&Piece::new(BETWEEN, Role::Dim));
            wrap(&names, cells, Break::Words, out);
        }
    }
}
