//! A list to choose from by fuzzy search: the palette, the history, where to rewind to.

use crate::rows::{cut, pad, width, wrap_anywhere, wrap_text};
use crate::screen::keys::Action;
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::input::Input;
use crate::theme::Theme;
use crate::verb::VerbId;
use crate::verb::complete::rank;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use std::ops::Range;
use yoi::protocol::PodName;

/// What choosing a row does.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Runs this line, or puts it into the command line when it wants an argument.
    Verb(&'static str),
    Open(PodName),
    /// Puts this message of the history into the composer: 0 is the newest.
    History(usize),
    /// Tells a verb which of its rows was chosen.
    Picked {
        verb: VerbId,
        at: usize,
        /// The Pod without which the row is void.
        about: Option<PodName>,
    },
    /// Takes this message out of the queue of a Pod to edit it.
    Queued {
        pod: PodName,
        id: String,
    },
    /// Writes this line into the command line.
    Prefill(String),
    /// A row that can only be read.
    Nothing,
}

/// One row.
#[derive(Clone, Debug, PartialEq)]
pub struct ListRow {
    pub text: String,
    pub help: String,
    pub choice: Choice,
}

/// A list, what was typed to search it, and the row that is chosen.
#[derive(Clone, Debug)]
pub struct Palette {
    pub title: String,
    pub query: Input,
    rows: Vec<ListRow>,
    /// The rows that match, best first.
    shown: Vec<usize>,
    selected: usize,
}

/// The effect of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The list stays open.
    Stays,
    Chose(Choice),
}

impl Palette {
    pub fn new(title: impl Into<String>, rows: Vec<ListRow>) -> Self {
        let shown = (0..rows.len()).collect();
        Self { title: title.into(), query: Input::default(), rows, shown, selected: 0 }
    }

    #[cfg(test)]
    pub fn rows(&self) -> impl Iterator<Item = &ListRow> {
        self.rows.iter()
    }

    /// What choosing each of the rows does.
    pub fn choices(&self) -> impl Iterator<Item = &Choice> {
        self.rows.iter().map(|row| &row.choice)
    }

    /// Types into the search.
    pub fn insert(&mut self, text: &str) {
        self.query.insert(text);
        self.search();
    }

    /// Does what a key is bound to.
    pub fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::Up | Action::CompleteBack => self.step(-1),
            Action::Down | Action::Complete => self.step(1),
            Action::Choose => return self.choose(),
            other if self.query.edit(other) => self.search(),
            _ => {}
        }
        Outcome::Stays
    }

    /// Selects the last row of the next page, in a list of this size: then that page is in view.
    pub fn page_down(&mut self, area: Rect) {
        let (columns, height) = (usize::from(area.width), rows_above_search(area));
        let next = self.in_view(columns, height).end;
        let last = self.filled_from(next, columns, height).end.max(next + 1) - 1;
        self.selected = last.min(self.shown.len().saturating_sub(1));
    }

    /// Selects the last row of the page before.
    pub fn page_up(&mut self, area: Rect) {
        let first = self.in_view(usize::from(area.width), rows_above_search(area)).start;
        self.selected = first.saturating_sub(1);
    }

    fn choose(&self) -> Outcome {
        let row = self.shown.get(self.selected).map(|&i| &self.rows[i]);
        match row.map(|row| &row.choice) {
            Some(Choice::Nothing) | None => Outcome::Stays,
            Some(choice) => Outcome::Chose(choice.clone()),
        }
    }

    fn step(&mut self, by: isize) {
        let last = self.shown.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    fn search(&mut self) {
        let all = self.rows.iter().map(|row| row.text.as_str()).enumerate().collect();
        let found = rank(self.query.text(), all, |(_, text)| text);
        self.shown = found.into_iter().map(|(at, _)| at).collect();
        self.selected = 0;
    }

    /// Selects the row at line `y` of a list of this size.
    pub fn click(&mut self, y: usize, area: Rect) {
        let columns = usize::from(area.width);
        let names = self.names(columns);
        let mut below = 0;
        for at in self.in_view(columns, rows_above_search(area)) {
            below += self.lines_of(at, names, columns).len();
            if y < below {
                self.selected = at;
                return;
            }
        }
    }

    /// The matches that are in view: as many as there is room for, with the selected one.
    fn in_view(&self, columns: usize, height: usize) -> Range<usize> {
        let names = self.names(columns);
        let tall = |at: &usize| self.lines_of(*at, names, columns).len();
        let fits = |left: &mut usize, at: usize| {
            *left = left.checked_sub(tall(&at))?;
            Some(at)
        };
        let until_selected = (0..self.shown.len().min(self.selected + 1)).rev();
        let first = until_selected.scan(height, fits).last().unwrap_or(self.selected);
        self.filled_from(first, columns, height)
    }

    /// The matches from this one on that there is room for: at least one.
    fn filled_from(&self, first: usize, columns: usize, height: usize) -> Range<usize> {
        let names = self.names(columns);
        let mut left = height;
        let fits = |at: &usize| {
            let rest = left.checked_sub(self.lines_of(*at, names, columns).len());
            rest.map(|rest| left = rest).is_some()
        };
        let count = (first..self.shown.len()).take_while(fits).count();
        first..self.shown.len().min(first + count.max(1)).max(first)
    }

    /// Columns of the texts, before what is said of each.
    fn names(&self, columns: usize) -> usize {
        let widest = self.rows.iter().map(|row| width(&row.text)).max().unwrap_or(0);
        widest.min(columns / 2)
    }

    /// The lines of a match: its text, and beside it what is said of it. A text alone is one line.
    fn lines_of(&self, at: usize, names: usize, columns: usize) -> Vec<(String, String)> {
        let Some(row) = self.shown.get(at).map(|&row| &self.rows[row]) else { return Vec::new() };
        if row.help.is_empty() {
            return vec![(cut(&row.text, columns), String::new())];
        }
        let too_long = row.text.split_whitespace().any(|word| width(word) > names);
        let wrap_name = if too_long { wrap_anywhere } else { wrap_text };
        let text = wrap_name(&row.text, names.max(1));
        let help = wrap_text(&row.help, columns.saturating_sub(names + 2).max(1));
        let line = |lines: &[String], i: usize| lines.get(i).cloned().unwrap_or_default();
        let both = |i| (pad(&line(&text, i), names), line(&help, i));
        (0..text.len().max(help.len())).map(both).collect()
    }

    /// The rows that it needs at this width: the search line, and all rows of an empty search.
    pub fn height(&self, columns: u16) -> usize {
        let columns = usize::from(columns);
        let names = self.names(columns);
        let lines = (0..self.shown.len()).map(|at| self.lines_of(at, names, columns).len());
        lines.sum::<usize>().max(self.rows.len()) + 1
    }

    /// Paints the rows and, below them, the line of the search into `area`, and tells where the caret stands.
    pub fn render(&self, area: Rect, buf: &mut Buffer, theme: &Theme, glyphs: Glyphs) -> Position {
        if area.is_empty() {
            return area.as_position();
        }
        let columns = usize::from(area.width);
        let prompt = glyphs.pick("› ", "> ");
        let (text, at) = self.query.window(columns.saturating_sub(2));
        let y = area.bottom() - 1;
        buf.set_stringn(area.x, y, format!("{prompt}{text}"), columns, theme.accent);
        self.render_rows(Rect { height: area.height - 1, ..area }, buf, theme, glyphs);
        let column = u16::try_from(at).unwrap_or(0).saturating_add(2);
        Position::new(area.x + column.min(area.width.saturating_sub(1)), y)
    }

    fn render_rows(&self, area: Rect, buf: &mut Buffer, theme: &Theme, glyphs: Glyphs) {
        let columns = usize::from(area.width);
        if self.shown.is_empty() && area.height > 0 {
            buf.set_stringn(area.x, area.y, "nothing matches", columns, theme.dim);
        }
        let names = self.names(columns);
        let matches = self.in_view(columns, usize::from(area.height));
        let lines = matches.flat_map(|at| {
            self.lines_of(at, names, columns).into_iter().map(move |line| (at, line))
        });
        for ((at, (text, help)), y) in lines.zip(area.y..area.bottom()) {
            let help = Span::styled(format!("  {}", glyphs.plain(&help)), theme.dim);
            let line = Line::from(vec![Span::raw(glyphs.plain(&text)), help]);
            buf.set_line(area.x, y, &line, area.width);
            if at == self.selected {
                buf.set_style(Rect { y, height: 1, ..area }, theme.selection);
            }
        }
    }
}

/// Rows of a list, without the line that searches it.
fn rows_above_search(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette() -> Palette {
        let row = |text: &'static str| ListRow {
            text: format!(":{text}"),
            help: String::new(),
            choice: Choice::Verb(text),
        };
        Palette::new("palette", ["new", "open", "stop", "restore"].map(row).to_vec())
    }

    #[test]
    fn typing_narrows_and_enter_chooses_the_best() {
        let mut palette = palette();
        palette.insert("sto");
        assert_eq!(palette.act(Action::Choose), Outcome::Chose(Choice::Verb("stop")));
        palette.act(Action::Down);
        assert_eq!(palette.act(Action::Choose), Outcome::Chose(Choice::Verb("restore")));
        palette.insert("zzz");
        assert_eq!(palette.act(Action::Choose), Outcome::Stays);
    }

    #[test]
    fn the_choice_stays_within_the_list() {
        let mut palette = palette();
        palette.act(Action::Up);
        assert_eq!(palette.act(Action::Choose), Outcome::Chose(Choice::Verb("new")));
        let area = Rect::new(0, 0, 40, 3);
        palette.page_down(area);
        assert_eq!(palette.in_view(40, 2), 2..4, "the next page is in view");
        assert_eq!(palette.act(Action::Choose), Outcome::Chose(Choice::Verb("restore")));
        palette.page_down(area);
        assert_eq!(palette.in_view(40, 2), 2..4);
        palette.page_up(area);
        assert_eq!(palette.in_view(40, 2), 0..2);
        palette.page_up(area);
        assert_eq!(palette.act(Action::Choose), Outcome::Chose(Choice::Verb("new")));
    }

    #[test]
    fn a_name_with_a_word_longer_than_a_line_begins_on_its_first_line() {
        let row = ListRow {
            text: format!("4  {}", "x".repeat(60)),
            help: "drops 2 messages".into(),
            choice: Choice::Nothing,
        };
        let lines = Palette::new("rewind", vec![row]).lines_of(0, 20, 40);
        let (first, help) = &lines[0];
        assert_eq!((first.as_str(), help.as_str()), ("4  xxxxxxxxxxxxxxxxx", "drops 2 messages"));
        assert!(lines.iter().all(|(text, _)| !text.trim().is_empty()), "{lines:?}");
    }

    #[test]
    fn what_is_said_of_a_row_is_wrapped_and_the_selected_row_is_in_view_whole() {
        let row = |text: &str, help: &str| ListRow {
            text: text.into(),
            help: help.into(),
            choice: Choice::Nothing,
        };
        let rows = vec![
            row(":stop [pod ...]", "stop Pods, or everything below them too"),
            row(":rm", "delete stopped Pods and their transcripts"),
        ];
        let mut palette = Palette::new("help", rows);
        let screen = |palette: &Palette, height| {
            let area = Rect::new(0, 0, 30, height);
            let mut buf = Buffer::empty(area);
            palette.render(area, &mut buf, &Theme::default(), Glyphs::Ascii);
            let text: String = buf.content.iter().map(|cell| cell.symbol()).collect();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(palette.height(30), 9);
        let whole = screen(&palette, 9);
        for words in ["stop Pods, or", "everything", "below them", "delete", "transcripts"] {
            assert!(whole.contains(words), "{words}: {whole}");
        }
        palette.act(Action::Down);
        let second = screen(&palette, 5);
        assert!(second.contains("transcripts") && !second.contains("below them"), "{second}");
        palette.click(0, Rect::new(0, 0, 30, 9));
        assert_eq!(palette.selected, 0);
        palette.click(7, Rect::new(0, 0, 30, 9));
        assert_eq!(palette.selected, 1);
    }
}
