//! The search for a text, and going to the beginning. Both may have to wait for pages.

use crate::rows::{Row, width};
use crate::screen::pane::transcript::block::{Block, Fold};
use crate::screen::pane::transcript::load::Want;
use crate::screen::pane::transcript::pages::{Beginning, Gap, Pos, Step, Walk};
use crate::screen::pane::transcript::scroll::{Columns, RowPosition};
use crate::screen::pane::transcript::{Detail, Transcript};
use icu_normalizer::ComposingNormalizerBorrowed;
use unicode_segmentation::UnicodeSegmentation as _;

/// The state of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Search {
    #[default]
    Off,
    /// The view shows a match.
    Found,
    /// Pages are being read.
    Looking,
    /// There is no match further up.
    NoneAbove,
    /// There is no match further down.
    NoneBelow,
}

#[derive(Default)]
pub struct Find {
    needle: String,
    state: Search,
    /// The match that was shown last.
    at: Option<(Pos, i32)>,
    /// Which of the loaded entries with a match that one is in, counted from the newest, and how many there are.
    entry: (usize, usize),
    seek: Option<Seek>,
    /// Whether the search began after the last row.
    from_end: bool,
}

#[derive(Clone, Copy)]
enum Seek {
    /// The beginning of the transcript.
    Top,
    /// The next match after this row.
    Match { from: (Pos, i32), back: bool },
}

impl Find {
    /// Ends a search that still waits for pages.
    pub fn stop(&mut self) {
        self.seek = None;
        if self.state == Search::Looking {
            self.state = Search::Off;
        }
    }

    pub fn seek_top(&mut self) {
        self.seek = Some(Seek::Top);
    }

    pub fn is_seeking(&self) -> bool {
        self.seek.is_some()
    }

    /// The position of a search that waits for pages.
    pub fn from(&self) -> Option<Pos> {
        match self.seek? {
            Seek::Top => None,
            Seek::Match { from, .. } => Some(from.0),
        }
    }

    /// The row with the match that was shown last.
    pub fn shown_at(&self) -> Option<(Pos, i32)> {
        self.at.filter(|_| self.state == Search::Found)
    }

    pub fn needle(&self) -> &str {
        &self.needle
    }
}

impl Transcript {
    /// Looks for a text, upwards from the view; case counts only where the text has capitals. An
    /// empty one ends the search.
    pub fn find(&mut self, needle: &str) {
        needle.clone_into(&mut self.find.needle);
        self.find.at = None;
        self.find.stop();
        self.find.state = Search::Off;
        if !needle.is_empty() {
            self.find_next(1);
        }
    }

    /// Goes to the next match: further up, or with a negative number back down. After the topmost one it
    /// starts again at the end.
    pub fn find_next(&mut self, by: i32) {
        if self.find.needle.is_empty() || by == 0 {
            return;
        }
        // At the tail that is the end of everything, also while the last block is not loaded whole.
        let behind = |last: Pos| (Pos { block: last.block + 1, ..last }, 0);
        let again = by > 0 && self.find.state == Search::NoneAbove;
        let bottom = match again || self.is_at_tail() {
            true => self.pages.last().map(behind),
            false => self.seen.last().map(|seen| (seen.pos, seen.row + 1)),
        };
        let last = self.find.at.filter(|(pos, _)| !again && self.pages.get(*pos).is_some());
        let Some(from) = last.or(bottom) else {
            return;
        };
        self.find.from_end = last.is_none() && (again || self.is_at_tail());
        self.load.failed = None;
        self.stay_here();
        self.find.seek = Some(Seek::Match { from, back: by > 0 });
        self.go_on_seeking();
        self.find_visible_rows();
    }

    /// Ends a search that still goes on; `false` when none does.
    pub fn stop_search(&mut self) -> bool {
        let looking = self.find.state == Search::Looking;
        self.find.stop();
        looking
    }

    /// The state of the search.
    pub fn search(&self) -> Search {
        self.find.state
    }

    /// Whether a search that went from the end to the beginning found nothing.
    pub fn has_no_match(&self) -> bool {
        self.find.state == Search::NoneAbove && self.find.from_end && self.find.at.is_none()
    }

    /// Which of the entries with a match the view shows, from the newest: `entry 2 of 14`, with `+` while older ones are not
    /// loaded. `None` while it shows none.
    pub fn found_entry(&self) -> Option<String> {
        let (at, all) = self.find.entry;
        let more = if self.pages.beginning == Beginning::Here { "" } else { "+" };
        (self.find.state == Search::Found).then(|| format!("entry {at} of {all}{more}"))
    }

    /// Counts the loaded entries with a match, and up to which one of them this block is.
    fn count_entries(&self, found: Pos) -> (usize, usize) {
        let (mut at, mut all) = (0, 0);
        for (pos, block) in self.pages.newest_first() {
            let is_found = pos == found.head();
            if is_found || has_match(block, self.detail, &self.find.needle) {
                all += 1;
                at = if is_found { all } else { at };
            }
        }
        (at, all)
    }

    /// Continues a search that waits for pages, as far as the loaded ones allow.
    pub(super) fn go_on_seeking(&mut self) {
        match self.find.seek {
            None => {}
            Some(Seek::Top) => self.go_on_to_top(),
            Some(Seek::Match { from, back }) => self.go_on_to_match(from, back),
        }
    }

    fn go_on_to_top(&mut self) {
        let Some(mut oldest) = self.pages.oldest() else {
            match self.pages.beginning {
                Beginning::Before(id) => self.load.want = Some(Want::Older(id)),
                // An empty transcript is at its top, once its page has come.
                Beginning::Here if self.load.ready => self.find.seek = None,
                Beginning::Here => {}
            }
            return;
        };
        if let Step::To(pos) = self.next_shown(oldest, true)
            && self.pages.get(oldest).is_some_and(|block| !block.shown(self.detail))
        {
            oldest = pos;
        }
        self.anchor_at(RowPosition { pos: oldest, row: i32::MIN / 2, of: 0 });
        match (self.pages.step(oldest, false, Walk::Blocks), self.pages.beginning) {
            (Step::Missing(gap), _) => self.want_for_search(gap, true),
            (_, Beginning::Before(id)) => self.load.want = Some(Want::Older(id)),
            (_, Beginning::Here) => self.find.seek = None,
        }
    }

    fn go_on_to_match(&mut self, from: (Pos, i32), back: bool) {
        self.find.state = Search::Looking;
        let (mut at, mut row) = from;
        loop {
            if let Some(hit) = self.match_in(at, row, back) {
                return self.show_match(at, hit);
            }
            match self.next_taking_rows(at, !back, Walk::Everything) {
                Step::To(next) => at = next,
                Step::Missing(gap) => {
                    self.find.seek = Some(Seek::Match { from: (at, row), back });
                    self.want_for_search(gap, back);
                    if self.waits_for(gap) {
                        return;
                    }
                    continue;
                }
                Step::End => return self.seek_beyond(at, row, back),
            }
            row = if back { i32::MAX } else { -1 };
        }
    }

    /// Requests what is missing at a gap, and tells whether it is still missing: the table of a text may be
    /// known already.
    fn waits_for(&self, gap: Gap) -> bool {
        match gap {
            Gap::Table(pos) => self.pages.get(pos).is_some_and(|block| block.lacks_table()),
            Gap::Page(_) | Gap::Part(_) => true,
        }
    }

    fn seek_beyond(&mut self, at: Pos, row: i32, back: bool) {
        if let (true, Beginning::Before(id)) = (back, self.pages.beginning) {
            self.find.seek = Some(Seek::Match { from: (at, row), back });
            self.load.want = Some(Want::Older(id));
            return;
        }
        if back && !self.find.from_end && self.find.at.is_none() {
            // A search that begins in the middle goes on below it.
            self.find.from_end = true;
            if let Some(last) = self.pages.last() {
                return self.go_on_to_match((Pos { block: last.block + 1, ..last }, 0), back);
            }
        }
        self.find.seek = None;
        self.find.state = if back { Search::NoneAbove } else { Search::NoneBelow };
    }

    /// The row of the next match in a block before or after this row.
    fn match_in(&mut self, pos: Pos, row: i32, back: bool) -> Option<i32> {
        let text = self.pages.get(pos)?.plain();
        find_in(&text, &self.find.needle)?;
        let rows = self.rows_with_match(pos);
        let next = |rows: &[i32]| {
            if back {
                rows.iter().rev().copied().find(|found| *found < row)
            } else {
                rows.iter().copied().find(|found| *found > row)
            }
        };
        if !rows.is_empty() {
            return next(&rows);
        }
        // Folded text is unfolded. A match that a line break divides belongs to the row in which it
        // begins.
        let fold = std::mem::replace(&mut self.pages.get_mut(pos)?.fold, Fold::Open);
        self.pages.get_mut(pos)?.cache = None;
        let rows = self.rows_with_match(pos);
        if rows.is_empty() {
            let divided = self.row_with_divided_match(pos).unwrap_or(0);
            let block = self.pages.get_mut(pos)?;
            (block.fold, block.cache) = (fold, None);
            return next(&[divided]);
        }
        next(&rows)
    }

    /// The first row with the beginning of a match whose end is in the next one.
    fn row_with_divided_match(&self, pos: Pos) -> Option<i32> {
        let block = self.pages.get(pos)?;
        let head = usize::from(block.shape(self.detail, self.unfolded).head);
        let solid = |text: &str| text.split_whitespace().collect::<String>();
        let text = |row: &Row| row.iter().map(|piece| piece.text.as_str()).collect::<String>();
        let needle = solid(&self.find.needle);
        let rows = &block.cache.as_ref()?.rows;
        let divided = rows.windows(2).position(|two| {
            let both = solid(&text(&two[0])) + &solid(&text(&two[1]));
            find_in(&both, &needle).is_some()
        });
        i32::try_from(divided? + head).ok()
    }

    fn rows_with_match(&mut self, pos: Pos) -> Vec<i32> {
        self.body(pos);
        let Some(block) = self.pages.get(pos) else { return Vec::new() };
        let shape = block.shape(self.detail, self.unfolded);
        let head = shape.head.then(|| block.head(shape, self.now).0);
        let rows = block.cache.iter().flat_map(|cache| cache.rows.iter());
        let text = |row: &Row| row.iter().map(|piece| piece.text.as_str()).collect::<String>();
        let texts: Vec<String> = head.iter().chain(rows).map(text).collect();
        // A match that the end of a row divides belongs to the row in which it begins.
        let body = usize::from(head.is_some());
        let cells = usize::from(Columns::of(self.size.0).cells());
        let matches = |at: &usize| {
            let next = texts.get(at + 1).filter(|_| *at >= body);
            find_in(&texts[*at], &self.find.needle).is_some()
                || next.is_some_and(|next| {
                    let is_full = width(texts[*at].trim_end()) + 1 >= cells;
                    divided(&texts[*at], next, &self.find.needle, is_full).is_some()
                })
        };
        (0..texts.len()).filter(matches).filter_map(|at| i32::try_from(at).ok()).collect()
    }

    /// Unfolds a block of which a part is to be shown.
    fn unfold_for(&mut self, pos: Pos) {
        let (detail, unfolded) = (self.detail, self.unfolded);
        let Some(block) = self.pages.get_mut(pos.head()).filter(|_| pos.part > 0) else { return };
        if !block.shows_rest(detail, unfolded) {
            (block.fold, block.cache) = (Fold::Open, None);
        }
    }

    fn show_match(&mut self, pos: Pos, row: i32) {
        self.find.seek = None;
        self.find.state = Search::Found;
        self.find.at = Some((pos, row));
        self.find.entry = self.count_entries(pos);
        self.cursor = Some(pos);
        self.unfold_for(pos);
        self.open_group(pos);
        self.reveal_row(pos, row);
    }
}

fn has_match(block: &Block, detail: Detail, needle: &str) -> bool {
    block.shown(detail) && find_in(&block.plain(), needle).is_some()
}

/// The match that the end of a row divides, in bytes: where it begins in the row, and where it ends in the next one. A blank
/// stood where the row ends, or nothing did where the row is full.
pub fn divided(row: &str, next: &str, needle: &str, is_full: bool) -> Option<(usize, usize)> {
    let (row, below) = (row.trim_end(), next.trim_start());
    let indent = next.len() - below.len();
    let over = |blank: &str| {
        let both = format!("{row}{blank}{below}");
        let behind = row.len() + blank.len();
        let mut from = 0;
        while let Some((start, end)) = find_in(both.get(from..)?, needle) {
            let (start, end) = (from + start, from + end);
            if start < row.len() && end > behind {
                return Some((start, indent + end - behind));
            }
            from = start + both[start..].chars().next()?.len_utf8();
        }
        None
    };
    over(" ").or_else(|| over("").filter(|_| is_full))
}

/// The first match of the needle in a text: start and end in bytes. Case counts only if the needle has
/// capitals; composed and decomposed characters are the same.
pub fn find_in(text: &str, needle: &str) -> Option<(usize, usize)> {
    let nfc = ComposingNormalizerBorrowed::new_nfc();
    let needle = nfc.normalize(needle);
    if nfc.is_normalized(text) {
        return find_composed(text, &needle);
    }
    let (mut composed, mut starts) = (String::new(), Vec::new());
    for (at, cluster) in text.grapheme_indices(true) {
        starts.push((composed.len(), at));
        composed.push_str(&nfc.normalize(cluster));
    }
    let (start, end) = find_composed(&composed, &needle)?;
    let first = starts.partition_point(|(at, _)| *at <= start).checked_sub(1)?;
    let last = starts.partition_point(|(at, _)| *at < end);
    Some((starts.get(first)?.1, starts.get(last).map_or(text.len(), |(_, at)| *at)))
}

fn find_composed(text: &str, needle: &str) -> Option<(usize, usize)> {
    if needle.is_empty() {
        return None;
    }
    if needle.chars().any(char::is_uppercase) {
        return text.find(needle).map(|at| (at, at + needle.len()));
    }
    text.char_indices().find_map(|(at, _)| Some((at, at + begins_with(&text[at..], needle)?)))
}

/// The length in bytes of the match at the beginning of a text, ignoring case.
fn begins_with(text: &str, needle: &str) -> Option<usize> {
    let mut rest = text.char_indices();
    for wanted in needle.chars() {
        let (_, found) = rest.next()?;
        let same = found == wanted || found.to_lowercase().eq(std::iter::once(wanted));
        if !same {
            return None;
        }
    }
    Some(text.len() - rest.as_str().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_over_the_end_of_a_row_is_found_and_one_in_a_row_is_none() {
        let full = |row, next, needle| divided(row, next, needle, true);
        assert_eq!(full("  line 5431 line", "  5432 line", "line 5432"), Some((12, 6)));
        assert_eq!(full("an exam", "ple here", "EXAMPLE"), None, "capitals count");
        assert_eq!(full("an exam", "ple here", "example"), Some((3, 3)));
        assert_eq!(divided("an exam", "ple here", "example", false), None);
        assert_eq!(divided("1", "12", "11", false), None, "these are two lines");
        assert_eq!(full("example", "here", "example"), None);
        assert_eq!(full("", "example", "example"), None);
        assert_eq!(full("naïve é", "té", "été"), Some((7, 3)));
    }

    #[test]
    fn composed_and_decomposed_texts_match() {
        let decomposed = "un cafe\u{301} noir";
        assert_eq!(find_in(decomposed, "café"), Some((3, 9)));
        assert_eq!(find_in(decomposed, "noir"), Some((10, 14)));
        assert_eq!(find_in("un café noir", "cafe\u{301}"), Some((3, 8)));
        assert_eq!(find_in("한국", "\u{1112}\u{1161}\u{11ab}"), Some((0, 3)));
        assert_eq!(find_in("Un CAFÉ", "café"), Some((3, 8)));
        assert_eq!(find_in("Un CAFÉ", "Café"), None, "capitals make the case count");
    }
}
