//! The change that a tool made to a text, as coloured lines with a few lines of context.

use crate::rows::{Break, Paragraph, Piece, Row, shorten};
use crate::theme::Role;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{ChangeTag, DiffOp};
use std::time::{Duration, Instant};

/// Unchanged lines shown around a change.
const AROUND: usize = 3;
/// The time limit of the exact comparison; after it a coarser one is used.
const PATIENCE: Duration = Duration::from_millis(50);

/// Appends the lines to remove from `old` and to add to it to get `new`.
pub fn rows(old: &str, new: &str, cells: usize, out: &mut Vec<Row>) {
    let (old, new) = (lines(old), lines(new));
    for (index, group) in changes(&old, &new).iter().enumerate() {
        if index > 0 {
            out.push(shorten(&[Piece::new("  ⋯", Role::Dim)], cells));
        }
        for change in group.iter().flat_map(|op| op.iter_changes(&old[..], &new[..])) {
            let (mark, role) = match change.tag() {
                ChangeTag::Delete => ("- ", Role::Error),
                ChangeTag::Insert => ("+ ", Role::Added),
                ChangeTag::Equal => ("  ", Role::Dim),
            };
            line(mark, change.value().trim_end_matches('\n'), role, cells, out);
        }
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The changes, in groups with the lines around them. The algorithm is named because the crate's
/// `TextDiff` brings all six of them: 600 KB of the program.
fn changes(old: &[&str], new: &[&str]) -> Vec<Vec<DiffOp>> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let deadline = Some(Instant::now() + PATIENCE);
    let all = (0..old.len(), 0..new.len());
    match myers::diff_deadline(&mut ops, old, all.0, new, all.1, deadline) {
        Ok(()) => ops.into_inner().into_inner().into_grouped_ops(AROUND),
        Err(never) => match never {},
    }
}

fn line(mark: &str, text: &str, role: Role, cells: usize, out: &mut Vec<Row>) {
    let first = [Piece::new("  ", Role::Text), Piece::new(mark, role)];
    let rest = [Piece::new("    ", Role::Text)];
    let body = [Piece::new(text, role)];
    Paragraph { first: &first, rest: &rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
}
