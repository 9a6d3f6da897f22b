//! A list to choose from by fuzzy search: the palette, the history, where to rewind to.

mod search;

use crate::rows::{cut, pad, width, wrap_anywhere, wrap_text};
use crate::screen::keys::Action;
use crate::screen::pane::composer::Message;
use crate::screen::pane::file_lookup::FileLookup;
use crate::screen::pane::glyph::Glyphs;
use crate::screen::pane::input::Input;
use crate::theme::Theme;
use crate::verb::VerbId;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use search::Search;
use std::collections::BTreeMap;
use std::ops::Range;
use yoi::protocol::PodName;

/// What choosing a row does.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Runs this verb, or writes it into the command line when it needs an argument.
    Verb(&'static str),
    /// Runs this line, which stands without its colon.
    Line(String),
    Open(PodName),
    /// Inserts this file into the message, as `@path` does.
    File(String),
    /// Opens the settings in the editor, at this key, which is named with its table.
    Setting(String),
    /// Puts this message of the history into the composer.
    History(Box<Message>),
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
pub struct PickList {
    pub title: String,
    pub query: Input,
    rows: Vec<ListRow>,
    /// How often each row was chosen before; empty if the list does not count that.
    uses: Vec<u32>,
    /// The files that match the query, below the other matches; `None` if the list has no files.
    files: Option<FoundFiles>,
    /// The matches, best first. While a search runs, these are still the matches of the query before.
    shown: Vec<usize>,
    /// The search that is running.
    search: Option<Search>,
    selected: usize,
    /// Columns of the widest text of a row.
    widest: usize,
}

/// The files that match the query.
#[derive(Clone, Debug, Default)]
struct FoundFiles {
    rows: Vec<ListRow>,
    lookup: FileLookup,
}

/// The effect of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The list stays open.
    Stays,
    Chose(ListRow),
}

impl PickList {
    pub fn new(title: impl Into<String>, rows: Vec<ListRow>) -> Self {
        let shown = (0..rows.len()).collect();
        let widest = rows.iter().map(|row| width(&row.text)).max().unwrap_or(0);
        Self {
            title: title.into(),
            query: Input::default(),
            rows,
            uses: Vec::new(),
            files: None,
            shown,
            search: None,
            selected: 0,
            widest,
        }
    }

    /// The palette: rows that were chosen most often come first, and the host adds the files that match the query.
    pub fn of_everything(
        title: impl Into<String>,
        mut rows: Vec<ListRow>,
        chosen: &BTreeMap<String, u32>,
    ) -> Self {
        let uses = |row: &ListRow| chosen.get(&row.text).copied().unwrap_or(0);
        rows.sort_by_cached_key(|row| std::cmp::Reverse(uses(row)));
        let uses = rows.iter().map(uses).collect();
        Self { uses, files: Some(FoundFiles::default()), ..Self::new(title, rows) }
    }

    /// Whether this list is the palette.
    pub fn is_of_everything(&self) -> bool {
        self.files.is_some()
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
        let at_end = self.query.before().len() == self.query.text().len();
        let narrows = at_end && self.search.is_none();
        self.query.insert(text);
        self.begin_search(narrows);
    }

    /// Does what a key is bound to.
    pub fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::Up | Action::CompleteBack => self.step(-1),
            Action::Down | Action::Complete => self.step(1),
            Action::Choose => return self.choose(),
            other => {
                let before = self.query.text().to_owned();
                if self.query.edit(other) && self.query.text() != before {
                    self.begin_search(false);
                }
            }
        }
        Outcome::Stays
    }

    /// The query to ask the host for files about, if a request is due.
    pub fn wants_files(&mut self) -> Option<String> {
        let query = self.query.text();
        let names_no_file = query.trim().is_empty() || query.starts_with(':');
        self.files.as_mut().filter(|_| !names_no_file)?.lookup.request(query)
    }

    /// Shows the files that the host found for `query`, unless the query has changed since.
    pub fn found(&mut self, query: &str, rows: Vec<ListRow>) {
        let Some(files) = &mut self.files else { return };
        if !files.lookup.replied(query, self.query.text()) {
            return;
        }
        files.rows = rows;
        if self.search.is_none() {
            let of_rows = self.rows.len();
            self.shown.retain(|at| *at < of_rows);
            self.shown.extend(of_rows..of_rows + files.rows.len());
        }
    }

    /// Whether a search is running.
    pub fn is_searching(&self) -> bool {
        self.search.is_some()
    }

    /// Searches the next rows: only some at a time, so that keys are handled in between.
    pub fn search_on(&mut self) {
        let Some(mut search) = self.search.take() else { return };
        search.go_on(&self.rows, &self.uses);
        if search.is_done(&self.rows) {
            self.show(search.found());
        } else {
            self.search = Some(search);
        }
    }

    fn show(&mut self, rows: Vec<usize>) {
        self.shown = rows;
        self.selected = 0;
        if let Some(files) = &mut self.files {
            if !files.lookup.is_known_for(self.query.text()) {
                files.rows.clear();
                files.lookup.forget();
            }
            self.shown.extend(self.rows.len()..self.rows.len() + files.rows.len());
        }
    }

    fn begin_search(&mut self, narrows: bool) {
        if self.query.text().trim().is_empty() {
            self.search = None;
            return self.show((0..self.rows.len()).collect());
        }
        // A backslash makes the blank behind it a part of the word.
        let narrows = narrows && !self.query.text().contains('\\');
        let matches = self.shown.iter().copied().filter(|at| *at < self.rows.len());
        self.search = Some(Search::new(self.query.text(), narrows.then(|| matches.collect())));
        self.search_on();
    }

    /// Runs the search to its end.
    fn finish_search(&mut self) {
        while self.is_searching() {
            self.search_on();
        }
    }

    /// The row at this position in the list as it is shown.
    fn row(&self, at: usize) -> Option<&ListRow> {
        let row = *self.shown.get(at)?;
        let file = || self.files.as_ref()?.rows.get(row - self.rows.len());
        self.rows.get(row).or_else(file)
    }

    /// Selects the last row of the next page, in a list of this size: then that page is in view.
    pub fn page_down(&mut self, area: Rect) {
        self.finish_search();
        let (columns, height) = (usize::from(area.width), rows_above_search(area));
        let next = self.in_view(columns, height).end;
        let last = self.filled_from(next, columns, height).end.max(next + 1) - 1;
        self.selected = last.min(self.shown.len().saturating_sub(1));
    }

    /// Selects the last row of the page before.
    pub fn page_up(&mut self, area: Rect) {
        self.finish_search();
        let first = self.in_view(usize::from(area.width), rows_above_search(area)).start;
        self.selected = first.saturating_sub(1);
    }

    fn choose(&mut self) -> Outcome {
        self.finish_search();
        match self.row(self.selected) {
            Some(ListRow { choice: Choice::Nothing, .. }) | None => Outcome::Stays,
            Some(row) => Outcome::Chose(row.clone()),
        }
    }

    fn step(&mut self, by: isize) {
        self.finish_search();
        let last = self.shown.len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by).min(last);
    }

    /// Selects the row at line `y` of a list of this size.
    pub fn click(&mut self, y: usize, area: Rect) {
        self.finish_search();
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
        let files = self.files.iter().flat_map(|files| &files.rows);
        let files = files.map(|row| width(&row.text)).max();
        let most = if self.is_of_everything() { columns / 4 } else { columns / 2 };
        self.widest.max(files.unwrap_or(0)).min(most)
    }

    /// The lines of a match: its text, and its help beside it. A match without help is one line, and so is each match in
    /// the palette.
    fn lines_of(&self, at: usize, names: usize, columns: usize) -> Vec<(String, String)> {
        let Some(row) = self.row(at) else { return Vec::new() };
        if row.help.is_empty() {
            return vec![(cut(&row.text, columns), String::new())];
        }
        if self.is_of_everything() {
            let text = cut(&row.text, columns);
            let text = if width(&text) < names { pad(&text, names) } else { text };
            let help = cut(&row.help, columns.saturating_sub(width(&text) + 2));
            return vec![(text, help)];
        }
        let too_long = row.text.split_whitespace().any(|word| width(word) > names);
        let wrap_name = if too_long { wrap_anywhere } else { wrap_text };
        let text = wrap_name(&row.text, names.max(1));
        let help = wrap_text(&row.help, columns.saturating_sub(names + 2).max(1));
        let line = |lines: &[String], i: usize| lines.get(i).cloned().unwrap_or_default();
        let both = |i| (pad(&line(&text, i), names), line(&help, i));
        (0..text.len().max(help.len())).map(both).collect()
    }

    /// The rows that it needs at this width, of at most so many: the search line, and all rows of an empty search.
    pub fn height(&self, columns: u16, most: usize) -> usize {
        let columns = usize::from(columns);
        let names = self.names(columns);
        let mut lines = 0;
        for at in 0..self.shown.len() {
            if lines.max(self.rows.len()) >= most {
                break;
            }
            lines += self.lines_of(at, names, columns).len();
        }
        lines.max(self.rows.len()) + 1
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
        if self.shown.is_empty() && !self.is_searching() && area.height > 0 {
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

    fn list() -> PickList {
        let row = |text: &'static str| ListRow {
            text: format!(":{text}"),
            help: String::new(),
            choice: Choice::Verb(text),
        };
        PickList::new("verbs", ["new", "open", "stop", "restore"].map(row).to_vec())
    }

    fn chosen(list: &mut PickList) -> Option<Choice> {
        match list.act(Action::Choose) {
            Outcome::Chose(row) => Some(row.choice),
            Outcome::Stays => None,
        }
    }

    #[test]
    fn typing_narrows_and_enter_chooses_the_best() {
        let mut list = list();
        list.insert("sto");
        assert_eq!(chosen(&mut list), Some(Choice::Verb("stop")));
        list.act(Action::Down);
        assert_eq!(chosen(&mut list), Some(Choice::Verb("restore")));
        list.insert("zzz");
        assert_eq!(chosen(&mut list), None);
    }

    #[test]
    fn the_choice_stays_within_the_list() {
        let mut list = list();
        list.act(Action::Up);
        assert_eq!(chosen(&mut list), Some(Choice::Verb("new")));
        let area = Rect::new(0, 0, 40, 3);
        list.page_down(area);
        assert_eq!(list.in_view(40, 2), 2..4, "the next page is in view");
        assert_eq!(chosen(&mut list), Some(Choice::Verb("restore")));
        list.page_down(area);
        assert_eq!(list.in_view(40, 2), 2..4);
        list.page_up(area);
        assert_eq!(list.in_view(40, 2), 0..2);
        list.page_up(area);
        assert_eq!(chosen(&mut list), Some(Choice::Verb("new")));
    }

    #[test]
    fn a_name_with_a_word_longer_than_a_line_begins_on_its_first_line() {
        let row = ListRow {
            text: format!("4  {}", "x".repeat(60)),
            help: "drops 2 messages".into(),
            choice: Choice::Nothing,
        };
        let lines = PickList::new("rewind", vec![row]).lines_of(0, 20, 40);
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
        let mut list = PickList::new("help", rows);
        let screen = |list: &PickList, height| {
            let area = Rect::new(0, 0, 30, height);
            let mut buf = Buffer::empty(area);
            list.render(area, &mut buf, &Theme::default(), Glyphs::Ascii);
            let text: String = buf.content.iter().map(|cell| cell.symbol()).collect();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(list.height(30, 100), 9);
        let whole = screen(&list, 9);
        for words in ["stop Pods, or", "everything", "below them", "delete", "transcripts"] {
            assert!(whole.contains(words), "{words}: {whole}");
        }
        list.act(Action::Down);
        let second = screen(&list, 5);
        assert!(second.contains("transcripts") && !second.contains("below them"), "{second}");
        list.click(0, Rect::new(0, 0, 30, 9));
        assert_eq!(list.selected, 0);
        list.click(7, Rect::new(0, 0, 30, 9));
        assert_eq!(list.selected, 1);
    }
}
