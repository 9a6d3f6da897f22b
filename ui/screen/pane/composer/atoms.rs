//! Movements and deletions in a draft. A cluster of characters and the chip of a paste are indivisible.

use crate::screen::keys::Action;
use crate::screen::pane::composer::Draft;
use crate::screen::pane::words;
use std::ops::Range;
use tui_textarea::CursorMove;
use unicode_segmentation::UnicodeSegmentation as _;

/// How far a movement goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Cluster,
    /// To the beginning of this or the next word.
    Word,
    /// To the end of this or the next word.
    WordEnd,
}

impl Draft {
    /// Does an editing action; `false` when it is none.
    pub fn edit(&mut self, action: Action) -> bool {
        match action {
            Action::Left => self.walk_back(Unit::Cluster, Selects::No),
            Action::Right => self.walk_on(Unit::Cluster, Selects::No),
            Action::WordLeft => self.walk_back(Unit::Word, Selects::No),
            Action::WordRight => self.walk_on(Unit::Word, Selects::No),
            Action::LineStart => self.walk(CursorMove::Head, 1, Selects::No),
            Action::LineEnd => self.walk(CursorMove::End, 1, Selects::No),
            Action::SelectLeft => self.walk_back(Unit::Cluster, Selects::Yes),
            Action::SelectRight => self.walk_on(Unit::Cluster, Selects::Yes),
            Action::SelectUp => self.walk(CursorMove::Up, 1, Selects::Yes),
            Action::SelectDown => self.walk(CursorMove::Down, 1, Selects::Yes),
            Action::SelectLineStart => self.walk(CursorMove::Head, 1, Selects::Yes),
            Action::SelectLineEnd => self.walk(CursorMove::End, 1, Selects::Yes),
            Action::DeleteBack => self.delete_back(Unit::Cluster),
            Action::DeleteNext => self.delete_on(Unit::Cluster),
            Action::DeleteWordBack => self.delete_back(Unit::Word),
            Action::DeleteWordNext => self.delete_on(Unit::WordEnd),
            Action::DeleteToStart => _ = self.text.delete_line_by_head(),
            Action::DeleteToEnd => _ = self.text.delete_line_by_end(),
            Action::PutBack => _ = self.text.paste(),
            Action::Undo => _ = self.text.undo(),
            Action::Redo => _ = self.text.redo(),
            Action::Newline => self.text.insert_newline(),
            _ => return false,
        }
        self.leave_chip();
        true
    }

    /// Moves the cursor without a selection.
    pub fn go(&mut self, step: CursorMove) {
        self.walk(step, 1, Selects::No);
        self.leave_chip();
    }

    /// Moves the cursor a step; `false` where there is no further row.
    pub fn steps(&mut self, step: CursorMove) -> bool {
        let before = self.text.cursor();
        self.go(step);
        self.text.cursor() != before
    }

    fn walk_back(&mut self, unit: Unit, selects: Selects) {
        self.walk(CursorMove::Back, self.chars_back(unit).max(1), selects);
    }

    fn walk_on(&mut self, unit: Unit, selects: Selects) {
        self.walk(CursorMove::Forward, self.chars_on(unit).max(1), selects);
    }

    fn walk(&mut self, step: CursorMove, times: usize, selects: Selects) {
        match (selects, self.text.is_selecting()) {
            (Selects::Yes, false) => self.text.start_selection(),
            (Selects::No, true) => self.text.cancel_selection(),
            _ => {}
        }
        (0..times).for_each(|_| self.text.move_cursor(step));
    }

    /// Deletes the selection, or the unit before the cursor.
    fn delete_back(&mut self, unit: Unit) {
        match self.chars_back(unit) {
            chars if chars > 1 && !self.text.is_selecting() => self.delete_before(chars),
            _ => _ = self.text.delete_char(),
        }
    }

    /// Deletes the selection, or the unit after the cursor.
    fn delete_on(&mut self, unit: Unit) {
        match self.chars_on(unit) {
            chars if chars > 1 && !self.text.is_selecting() => _ = self.text.delete_str(chars),
            _ => _ = self.text.delete_next_char(),
        }
    }

    /// How many characters of the line before the cursor belong together; 0 at its beginning.
    fn chars_back(&self, unit: Unit) -> usize {
        let before = self.before_cursor();
        let chip = self.chips(&before).pop().unwrap_or_default();
        let text = &before[chip.end..];
        let only_spaces = unit != Unit::Cluster && text.trim().is_empty();
        let bytes = match unit {
            _ if chip.end > 0 && (text.is_empty() || only_spaces) => before.len() - chip.start,
            Unit::Cluster => text.graphemes(true).next_back().map_or(0, str::len),
            Unit::Word | Unit::WordEnd => words::last_word(text),
        };
        before[before.len() - bytes..].chars().count()
    }

    /// How many characters of the line behind the cursor belong together; 0 at its end.
    fn chars_on(&self, unit: Unit) -> usize {
        let after = self.after_cursor();
        let chips = self.chips(&after);
        let (to, end) = chips.first().map_or((after.len(), 0), |chip| (chip.start, chip.end));
        let text = &after[..to];
        let only_spaces = unit == Unit::WordEnd && text.trim().is_empty();
        let bytes = match unit {
            _ if end > 0 && (text.is_empty() || only_spaces) => end,
            Unit::Cluster => text.graphemes(true).next().map_or(0, str::len),
            Unit::Word => words::to_next_word(text),
            Unit::WordEnd => words::first_word(text),
        };
        after[..bytes].chars().count()
    }

    /// Moves a cursor that stands in a chip to the end that is nearer.
    pub fn leave_chip(&mut self) {
        let (before, after) = (self.before_cursor(), self.after_cursor());
        let line = format!("{before}{after}");
        let inside = |chip: &Range<usize>| chip.start < before.len() && before.len() < chip.end;
        let Some(chip) = self.chips(&line).into_iter().find(inside) else { return };
        let back = line[chip.start..before.len()].chars().count();
        let on = line[before.len()..chip.end].chars().count();
        let (step, times) =
            if back < on { (CursorMove::Back, back) } else { (CursorMove::Forward, on) };
        (0..times).for_each(|_| self.text.move_cursor(step));
    }
}

/// Whether a movement selects on the way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Selects {
    Yes,
    No,
}
