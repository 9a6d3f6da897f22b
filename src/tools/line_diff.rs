//! The lines in which two texts differ.

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{ChangeTag, DiffOp};

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

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Whether few enough lines stand between the first and the last change.
fn is_comparable(old: &[&str], new: &[&str]) -> bool {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[same..], &new[same..]);
    let same = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    old.len().max(new.len()) - same <= MAX_LINES
}

fn changes(old: &[&str], new: &[&str]) -> String {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let (all_old, all_new) = (0..old.len(), 0..new.len());
    let groups = match myers::diff(&mut ops, old, all_old, new, all_new) {
        Ok(()) => ops.into_inner().into_inner().into_grouped_ops(AROUND),
        Err(never) => match never {},
    };
    groups.iter().map(|group| shown(group, old, new)).collect::<Vec<_>>().join("\n")
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
