//! A list to choose from by fuzzy search: the palette, the history, where to rewind to.

use crate::keys::Action;
use crate::pane::glyph::Glyphs;
use crate::pane::input::Input;
use crate::rows::{cut, pad, width};
use crate::theme::Theme;
use crate::verb::VerbId;
use crate::verb::complete::rank;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use yoi::protocol::PodName;

/// What choosing a row does.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// Runs this line, or puts it into the command line when it wants an argument.
    Verb(&'static str),
    Open(PodName),
    /// Puts this message of the history into the composer: 0 is the newest.
    History(usize),
    /// Answers what a verb lets the person choose.
    Picked {
        verb: VerbId,
        at: usize,
        /// The Pod without which the row means nothing.
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

/// What a key did.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Nothing outside the list.
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
            Action::PageUp => self.step(-8),
            Action::PageDown => self.step(8),
            Action::Choose => return self.choose(),
            other => {
                self.query.edit(other);
                self.search();
            }
        }
        Outcome::Stays
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

    /// Selects the row at line `y` of the list.
    pub fn click(&mut self, y: usize, height: usize) {
        let at = self.first(height) + y;
        if at < self.shown.len() {
            self.selected = at;
        }
    }

    fn first(&self, height: usize) -> usize {
        (self.selected + 1).saturating_sub(height)
    }

    /// Rows it would fill: the search line and all matches.
    pub fn height(&self) -> usize {
        self.rows.len() + 1
    }

    /// Paints the search line and the rows into `area`, and tells where the caret stands.
    pub fn render(&self, area: Rect, buf: &mut Buffer, theme: &Theme, glyphs: Glyphs) -> Position {
        if area.is_empty() {
            return area.as_position();
        }
        let columns = usize::from(area.width);
        let prompt = glyphs.pick("› ", "> ");
        let (text, at) = self.query.window(columns.saturating_sub(2));
        buf.set_stringn(area.x, area.y, format!("{prompt}{text}"), columns, theme.accent);
        let height = usize::from(area.height.saturating_sub(1));
        let from = self.first(height);
        let shown = self.shown.iter().enumerate().skip(from).take(height);
        let names = self.rows.iter().map(|row| width(&row.text)).max().unwrap_or(0);
        let names = names.min(columns.saturating_mul(3) / 5);
        for ((i, &row), y) in shown.zip(area.y + 1..) {
            buf.set_line(
                area.x,
                y,
                &line(&self.rows[row], names, columns, theme, glyphs),
                area.width,
            );
            if i == self.selected {
                buf.set_style(Rect { y, height: 1, ..area }, theme.selection);
            }
        }
        if self.shown.is_empty() && area.height > 1 {
            buf.set_stringn(area.x, area.y + 1, "nothing matches", columns, theme.dim);
        }
        let column = u16::try_from(at).unwrap_or(0).saturating_add(2);
        Position::new(area.x + column.min(area.width.saturating_sub(1)), area.y)
    }
}

fn line(
    row: &ListRow,
    names: usize,
    columns: usize,
    theme: &Theme,
    glyphs: Glyphs,
) -> Line<'static> {
    if row.help.is_empty() {
        return Line::raw(glyphs.plain(&cut(&row.text, columns)));
    }
    let help = columns.saturating_sub(names + 2);
    Line::from(vec![
        Span::raw(glyphs.plain(&pad(&row.text, names))),
        Span::styled(format!("  {}", glyphs.plain(&cut(&row.help, help))), theme.dim),
    ])
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
        palette.act(Action::PageDown);
        assert_eq!(palette.act(Action::Choose), Outcome::Chose(Choice::Verb("restore")));
    }
}
