//! Lays out lines of text behind their labels; a long text is wrapped, and none is cut.

use crate::rows::wrap_text;
use crate::screen::pane::page::{PageRow, blank, piece};
use crate::theme::Role;
use crate::wording::lines::{LABEL, Line, are_labelled};

/// The rows of these lines in so many columns. The first row of a line leads where the line does.
pub fn rows_of_lines(lines: &[Line], columns: usize) -> Vec<PageRow> {
    let indent = if are_labelled(lines) { LABEL } else { 0 };
    let room = columns.saturating_sub(1 + indent).max(1);
    let rows = lines.iter().flat_map(|line| {
        wrap_text(&line.text, room).into_iter().enumerate().map(move |(at, text)| {
            let label = if at == 0 { line.label } else { "" };
            let label = piece(format!("{label:<indent$}"), Role::Dim);
            let target = line.target.clone().filter(|_| at == 0);
            let text = vec![blank(1), label, piece(text, Role::Text)];
            PageRow { text, target, ..PageRow::default() }
        })
    });
    rows.collect()
}
