//! The change that a tool made to a text, as coloured lines with their numbers.

use crate::rows::{Break, Paragraph, Piece, Row, shorten};
use crate::theme::Role;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{ChangeTag, DiffOp};
use std::time::{Duration, Instant};

/// How long the exact comparison may take; after that a coarser one is used.
const TIME_LIMIT: Duration = Duration::from_millis(50);

/// A change of a text.
pub struct Change<'a> {
    pub old: &'a str,
    pub new: &'a str,
    /// The number of its first line in the file, if that is known.
    pub first: Option<usize>,
    /// How many unchanged lines are shown around it.
    pub around: usize,
}

impl Change<'_> {
    /// Appends the lines to remove from the old text and to add to it to get the new one.
    pub fn rows(&self, cells: usize, out: &mut Vec<Row>) {
        let (old, new) = (lines(self.old), lines(self.new));
        for (index, group) in changes(&old, &new, self.around).iter().enumerate() {
            if index > 0 && self.around > 0 {
                out.push(shorten(&[Piece::new("  ⋯", Role::Dim)], cells));
            }
            for change in group.iter().flat_map(|op| op.iter_changes(&old[..], &new[..])) {
                let (mark, role, at) = match change.tag() {
                    ChangeTag::Delete => ("− ", Role::Error, change.old_index()),
                    ChangeTag::Insert => ("+ ", Role::Added, change.new_index()),
                    ChangeTag::Equal => ("  ", Role::Dim, change.new_index()),
                };
                let number = self.first.and_then(|first| Some(first + at?));
                line(number, mark, change.value().trim_end_matches('\n'), role, cells, out);
            }
        }
    }
}

/// How many lines a change adds and removes.
pub fn count(old: &str, new: &str) -> (usize, usize) {
    let (old, new) = (lines(old), lines(new));
    let changes = changes(&old, &new, 0);
    let tags = changes.iter().flatten().flat_map(|op| op.iter_changes(&old[..], &new[..]));
    tags.fold((0, 0), |(added, removed), change| match change.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The changes, in groups with the lines around them. `myers` is called directly, because `TextDiff` links all six
/// algorithms: 600 KB of the program.
fn changes(old: &[&str], new: &[&str], around: usize) -> Vec<Vec<DiffOp>> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let deadline = Some(Instant::now() + TIME_LIMIT);
    let all = (0..old.len(), 0..new.len());
    match myers::diff_deadline(&mut ops, old, all.0, new, all.1, deadline) {
        Ok(()) => ops.into_inner().into_inner().into_grouped_ops(around),
        Err(never) => match never {},
    }
}

fn line(
    number: Option<usize>,
    mark: &str,
    text: &str,
    role: Role,
    cells: usize,
    out: &mut Vec<Row>,
) {
    let number = number.map_or_else(|| "  ".to_owned(), |number| format!("{number:>5} "));
    let rest = [Piece::new(" ".repeat(number.len() + 2), Role::Text)];
    let first = [Piece::new(number, Role::Dim), Piece::new(mark, role)];
    let body = [Piece::new(text, role)];
    Paragraph { first: &first, rest: &rest, body: &body, at: Break::Anywhere }.wrap(cells, out);
}
