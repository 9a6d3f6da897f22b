//! Lays out what keys do: in two columns where there is room, else in one.

use crate::rows::{Piece, width, wrap_text};
use crate::screen::pane::page::{PageRow, blank, piece};
use crate::theme::Role;

/// From this many columns on there are two of keys.
const TWO: usize = 72;
/// The most columns of the keys in front of a sentence, and the fewest behind them.
const WIDEST_KEYS: usize = 16;
const GAP: usize = 2;

/// Keys and what they do now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyHelp {
    pub keys: String,
    pub does: String,
    /// Further keys in the same row.
    pub more: Vec<(String, String)>,
}

/// The rows for these keys in so many columns.
pub fn rows_of_keys(first: &[KeyHelp], second: &[KeyHelp], columns: usize) -> Vec<PageRow> {
    let room = columns.saturating_sub(1);
    if columns < TWO {
        let all: Vec<&KeyHelp> = first.iter().chain(second).collect();
        return column(&all, room).into_iter().map(PageRow::new).collect();
    }
    let left = room * 11 / 20;
    let right = room - left;
    let (first, second) = (
        column(&first.iter().collect::<Vec<_>>(), left - GAP),
        column(&second.iter().collect::<Vec<_>>(), right),
    );
    let rows = first.len().max(second.len());
    let mut second = second.into_iter();
    let mut first = first.into_iter();
    let row = |_| {
        let mut text = first.next().unwrap_or_default();
        let used: usize = text.iter().map(|piece| width(&piece.text)).sum();
        text.push(blank((left + 1).saturating_sub(used)));
        // The second column begins with the margin of a row.
        text.extend(second.next().unwrap_or_default().into_iter().skip(1));
        PageRow::new(text)
    };
    (0..rows).map(row).collect()
}

/// One column of keys, each row behind the margin of a page.
fn column(all: &[&KeyHelp], room: usize) -> Vec<Vec<Piece>> {
    let keys = all.iter().map(|help| width(&help.keys)).filter(|wide| *wide <= WIDEST_KEYS);
    let keys = keys.max().unwrap_or(0) + GAP;
    all.iter().flat_map(|help| rows_of_key(help, keys, room)).collect()
}

fn rows_of_key(help: &KeyHelp, keys: usize, room: usize) -> Vec<Vec<Piece>> {
    let used = width(&help.keys);
    let mut rows = Vec::new();
    let mut row = vec![blank(1), piece(&help.keys, Role::Accent)];
    // Keys that leave no room have a row of their own.
    if used + GAP > keys {
        rows.push(std::mem::replace(&mut row, vec![blank(1), blank(keys)]));
    } else {
        row.push(blank(keys - used));
    }
    for line in wrap_text(&help.does, room.saturating_sub(keys).max(1)) {
        row.push(piece(line, Role::Text));
        rows.push(std::mem::replace(&mut row, vec![blank(1), blank(keys)]));
    }
    for (key, does) in &help.more {
        let wide = 3 + width(key) + 1 + width(does);
        let last: usize =
            rows.last().map_or(room, |row| row.iter().map(|piece| width(&piece.text)).sum());
        let (gap, row) = match rows.last_mut() {
            Some(row) if last + wide <= room + 1 => (3, row),
            _ => {
                rows.push(vec![blank(1)]);
                let Some(row) = rows.last_mut() else { continue };
                (keys, row)
            }
        };
        row.extend([blank(gap), piece(key, Role::Accent), blank(1), piece(does, Role::Text)]);
    }
    rows
}

/// A label and words in as many rows as they need, none of which is cut.
pub fn rows_of_words(label: &str, words: &[String], columns: usize) -> Vec<PageRow> {
    let room = columns.saturating_sub(1).max(1);
    let mut rows: Vec<String> = vec![label.to_owned()];
    for word in words {
        match rows.last_mut() {
            Some(row) if width(row) + 2 + width(word) <= room => {
                row.push_str("  ");
                row.push_str(word);
            }
            _ => rows.push(word.clone()),
        }
    }
    let row = |(at, text): (usize, String)| match text.strip_prefix(label) {
        // The label is skipped, the words are read.
        Some(words) if at == 0 => {
            PageRow::new(vec![blank(1), piece(label, Role::Dim), piece(words, Role::Text)])
        }
        Some(_) | None => PageRow::new(vec![blank(1), piece(text, Role::Text)]),
    };
    rows.into_iter().enumerate().map(row).collect()
}
