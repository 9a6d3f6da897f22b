//! One line of text being edited: the command line, a search, a filter.

use crate::rows::width;
use crate::screen::keys::Action;
use crate::screen::pane::words::last_word;
use unicode_segmentation::UnicodeSegmentation as _;
use yoi::text::SafeText;

/// A line and the place in it where typing goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    text: String,
    /// A byte, always between clusters.
    cursor: usize,
}

impl Input {
    /// A line with the cursor at its end.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cursor: text.len(), text }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The part before the cursor.
    pub fn before(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Types text; what would break the line becomes a space.
    pub fn insert(&mut self, text: &str) {
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.text.insert_str(self.cursor, &text);
        self.cursor += text.len();
    }

    /// Replaces everything before the cursor from byte `start` on.
    pub fn replace_from(&mut self, start: usize, text: &str) {
        self.text.replace_range(start..self.cursor, text);
        self.cursor = start + text.len();
    }

    /// Does an editing action; `false` when it is none.
    pub fn edit(&mut self, action: Action) -> bool {
        match action {
            Action::Left => self.cursor = self.previous(),
            Action::Right => self.cursor = self.next(),
            Action::LineStart => self.cursor = 0,
            Action::LineEnd => self.cursor = self.text.len(),
            Action::DeleteBack => self.delete(self.previous(), self.cursor),
            Action::DeleteNext => self.delete(self.cursor, self.next()),
            Action::DeleteWordBack => self.delete(self.word_before(), self.cursor),
            Action::DeleteToStart => self.delete(0, self.cursor),
            Action::DeleteToEnd => self.delete(self.cursor, self.text.len()),
            _ => return false,
        }
        true
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn previous(&self) -> usize {
        self.before().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn next(&self) -> usize {
        let after = &self.text[self.cursor..];
        self.cursor + after.graphemes(true).next().map_or(0, str::len)
    }

    fn word_before(&self) -> usize {
        self.cursor - last_word(self.before())
    }

    /// The part that fits into `columns`, and the cursor's column in it. Characters that would hide a part of the text or
    /// change its order are spelled: a program may have written it.
    pub fn window(&self, columns: usize) -> (String, usize) {
        self.window_of(columns, SafeText::line)
    }

    /// The same with every hidden character spelled, for a text that a person decides about.
    pub fn window_spelled(&self, columns: usize) -> (String, usize) {
        self.window_of(columns, SafeText::spelled)
    }

    fn window_of<'a>(
        &'a self,
        columns: usize,
        form: impl Fn(&'a str) -> SafeText<'a>,
    ) -> (String, usize) {
        let room = columns.saturating_sub(1);
        let (mut start, mut before) = (self.cursor, 0);
        for (at, cluster) in self.before().grapheme_indices(true).rev() {
            let wide = width(&form(cluster));
            if before + wide > room {
                break;
            }
            (start, before) = (at, before + wide);
        }
        let (mut shown, mut used) = (String::new(), 0);
        for cluster in self.text[start..].graphemes(true) {
            let cluster = form(cluster);
            used += width(&cluster);
            if used > columns {
                break;
            }
            shown.push_str(&cluster);
        }
        (shown, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_are_edited_whole() {
        let mut input = Input::new("a👩‍💻");
        input.edit(Action::DeleteBack);
        assert_eq!(input.text(), "a");
        input.insert("日\n本");
        assert_eq!(input.text(), "a日 本");
        input.edit(Action::Left);
        input.edit(Action::DeleteWordBack);
        assert_eq!((input.text(), input.before()), ("a本", "a"));
    }

    #[test]
    fn a_long_line_shows_where_the_cursor_is() {
        let mut input = Input::new("one two three");
        assert_eq!(input.window(6), ("three".into(), 5));
        input.edit(Action::LineStart);
        assert_eq!(input.window(6), ("one tw".into(), 0));
        assert_eq!(Input::new("日本語").window(4), ("語".into(), 2));
    }

    #[test]
    fn nothing_in_a_line_hides_or_turns_the_rest_around() {
        let mut input = Input::new("rm \u{202e}fr-");
        assert_eq!(input.window(40), (r"rm \u{202e}fr-".into(), 14));
        input.edit(Action::LineStart);
        for _ in 0..4 {
            input.edit(Action::Right);
        }
        assert_eq!(input.window(40), (r"rm \u{202e}fr-".into(), 11), "behind the character");
        input.edit(Action::DeleteBack);
        assert_eq!(input.text(), "rm fr-");
        let joined = Input::new("o\u{200d}k 👩‍💻");
        assert_eq!(joined.window(40).0, "o\u{200d}k 👩‍💻");
        assert_eq!(joined.window_spelled(40).0, r"o\u{200d}k 👩\u{200d}💻");
        let heap = Input::new(format!("a{}b", "\u{301}".repeat(400)));
        assert_eq!(heap.window(40).0, format!("a{}⟨392 marks⟩b", "\u{301}".repeat(8)));
    }
}
