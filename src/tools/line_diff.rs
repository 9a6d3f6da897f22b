//! The lines in which two texts differ.

use crate::protocol::LinesChanged;
use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{ChangeTag, DiffOp};
use std::ops::Range;

/// Lines of either side between the first and the last change: comparing takes the square of them.
pub(crate) const MAX_LINES: usize = 2000;
/// Lines shown around a change.
const AROUND: usize = 3;

/// The lines that go (`- `) and come (`+ `), with a few around them and the number of the first of these.
/// `None` if too many lines stand between the first and the last change.
pub fn line_diff(old: &str, new: &str) -> Option<String> {
    let (old, new) = (lines(old), lines(new));
    is_comparable(&old, &new).then(|| changes(&old, &new))
}

/// How many lines go and come where `new` takes the place of `old`.
pub(crate) fn lines_changed(old: &str, new: &str) -> LinesChanged {
    let (old, new) = (lines(old), lines(new));
    let mut changed = LinesChanged::default();
    for (gone, come) in line_operations(&old, &new) {
        if old[gone.clone()] != new[come.clone()] {
            changed.removed += gone.len() as u64;
            changed.added += come.len() as u64;
        }
    }
    changed
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Whether few enough lines stand between the first and the last change.
fn is_comparable(old: &[&str], new: &[&str]) -> bool {
    let (first, last) = same_around(old, new);
    old.len().max(new.len()) - first - last <= MAX_LINES
}

/// How many lines are the same at the beginning, and of the others at the end.
fn same_around(old: &[&str], new: &[&str]) -> (usize, usize) {
    let first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old[first..].iter().rev(), new[first..].iter().rev());
    (first, old.zip(new).take_while(|(old, new)| old == new).count())
}

/// The ranges of old lines and the ranges of new lines that stand for them, in order. Where there are too many
/// changes to compare, lines stand for each other by their place.
pub fn line_operations(old: &[&str], new: &[&str]) -> Vec<(Range<usize>, Range<usize>)> {
    if is_comparable(old, new) {
        let ops = compared(old, new).into_ops();
        return ops.iter().map(|op| (op.old_range(), op.new_range())).collect();
    }
    let (first, last) = same_around(old, new);
    let (old_end, new_end) = (old.len() - last, new.len() - last);
    let (start, middle) = ((0..first, 0..first), (first..old_end, first..new_end));
    vec![start, middle, (old_end..old.len(), new_end..new.len())]
}

fn changes(old: &[&str], new: &[&str]) -> String {
    let groups = compared(old, new).into_grouped_ops(AROUND);
    groups.iter().map(|group| shown(group, old, new)).collect::<Vec<_>>().join("\n")
}

fn compared(old: &[&str], new: &[&str]) -> Capture {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let (all_old, all_new) = (0..old.len(), 0..new.len());
    match myers::diff(&mut ops, old, all_old, new, all_new) {
        Ok(()) => ops.into_inner().into_inner(),
        Err(never) => match never {},
    }
}

fn shown(group: &[DiffOp], old: &[&str], new: &[&str]) -> String {
    let first = group.first().map_or(0, |op| op.old_range().start) + 1;
    let mut text = format!("from line {first}:");
    for change in group.iter().flat_map(|op| op.iter_changes(old, new)) {
        let mark = match change.tag() {
            ChangeTag::Delete => "- ",
            ChangeTag::Insert => "+ ",
            ChangeTag::Equal => "  ",
        };
        let line = change.value();
        let end = if line.ends_with('\n') { "" } else { " (without a line end)" };
        text.push_str(&format!("\n{mark}{}{end}", line.trim_end_matches('\n')));
    }
    text
}
