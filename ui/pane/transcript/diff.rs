//! The change a tool made to a text, as coloured lines with a little of what stands around them.

use crate::rows::{Break, Paragraph, Piece, Row, shorten};
use crate::theme::Role;
use similar::{ChangeTag, TextDiff};
use std::time::Duration;

/// Unchanged lines shown around a change.
const AROUND: usize = 3;
/// After this long a coarser comparison is good enough.
const PATIENCE: Duration = Duration::from_millis(50);

/// Appends what has to be taken from and added to `old` to get `new`.
pub fn rows(old: &str, new: &str, cells: usize, out: &mut Vec<Row>) {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    for (index, group) in diff.grouped_ops(AROUND).iter().enumerate() {
        if index > 0 {
            out.push(shorten(&[Piece::new("  ⋯", Role::Dim)], cells));
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (mark, role) = match change.tag() {
                ChangeTag::Delete => ("- ", Role::Removed),
                ChangeTag::Insert => ("+ ", Role::Added),
                ChangeTag::Equal => ("  ", Role::Dim),
            };
            line(mark, change.value().trim_end_matches('\n'), role, cells, out);
        }
    }
}

fn line(mark: &str, text: &str, role: Role, cells: usize, out: &mut Vec<Row>) {
    let first = [Piece::new("  ", Role::Text), Piece::new(mark, role)];
    let rest = [Piece::new("    ", Role::Text)];
    let body = [Piece::new(text, role)];
    Paragraph { first: &first, rest: &rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
}
