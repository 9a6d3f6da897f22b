//! Text that the mouse selects in a pane: it is copied as the screen shows it when the button is released.

use crate::rows::columns;
use crate::screen::app::{App, Areas, Effect, Focus};
use crate::screen::pane::transcript::{Scroll, Transcript, text_area};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use std::ops::RangeInclusive;
use yoi::protocol::PodName;

/// The panes whose text can be selected.
const PANES: [Focus; 7] = [
    Focus::Composer,
    Focus::Tree,
    Focus::Peers,
    Focus::Transcript,
    Focus::Beside,
    Focus::Page,
    Focus::Inbox,
];

/// The cells of a pane from one to another, in the order of reading; columns and rows count from its corner, so that
/// they move with it.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    pane: Focus,
    from: Position,
    to: Position,
    button: Button,
    /// The Pod whose transcript followed its tail before, and stands still meanwhile.
    followed: Option<PodName>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Button {
    /// Down, and the pointer has not moved since.
    Down,
    Dragged,
    /// Released: the text is read from the next painted frame.
    Released,
}

/// A selected row of the screen.
pub struct SelectedRow {
    pub y: u16,
    pub columns: RangeInclusive<u16>,
    /// The first column of its pane.
    left: u16,
}

impl SelectedRow {
    /// Its text, and whether only blanks stand before it in the pane. Then the text includes these blanks, so that the
    /// indentation is kept.
    fn text(&self, frame: &Buffer) -> (String, bool) {
        let (mut text, mut begins, mut x) = (String::new(), true, self.left);
        while x <= *self.columns.end() {
            let symbol = frame.cell((x, self.y)).map_or(" ", |cell| cell.symbol());
            x += columns(symbol).max(1);
            if x > *self.columns.start() || begins && symbol == " " {
                text.push_str(symbol);
            } else {
                text.clear();
                begins = false;
            }
        }
        (text, begins)
    }
}

/// The text of these rows without the margin that all of them have.
fn text_of(rows: &[SelectedRow], frame: &Buffer) -> String {
    let rows: Vec<_> = rows.iter().map(|row| row.text(frame)).collect();
    let margin = |(text, begins): &(String, bool)| {
        let spaces = text.len() - text.trim_start_matches(' ').len();
        (*begins && spaces < text.len()).then_some(spaces)
    };
    let margin = rows.iter().filter_map(margin).min().unwrap_or(0);
    let lines = rows.iter().map(|(text, begins)| match begins {
        true => text.get(margin..).unwrap_or_default().trim_end(),
        false => text.trim_end(),
    });
    lines.collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
}

impl App {
    /// The button went down at this cell.
    pub(super) fn begin_selection(&mut self, at: Position) {
        self.end_selection();
        if !self.layers.is_empty() {
            return;
        }
        let pane = PANES.into_iter().find_map(|pane| {
            let area = self.text_of_pane(pane).filter(|area| area.contains(at))?;
            Some((pane, Position::new(at.x - area.x, at.y - area.y)))
        });
        self.selection = pane.map(|(pane, at)| Selection {
            pane,
            from: at,
            to: at,
            button: Button::Down,
            followed: None,
        });
    }

    /// The pointer moved to this cell with the button held. A transcript does not move away under it.
    pub(super) fn drag_selection(&mut self, at: Position) {
        let pane = self.selection.as_ref().map(|selection| selection.pane);
        let Some(area) = pane.and_then(|pane| self.text_of_pane(pane)) else { return };
        let name = match pane {
            Some(Focus::Transcript) => self.shown().cloned(),
            Some(Focus::Beside) => self.beside().cloned(),
            Some(_) | None => None,
        };
        let transcript = name.as_ref().and_then(|name| self.transcripts.get_mut(name));
        let stopped = transcript.is_some_and(Transcript::hold_view);
        let Some(selection) = &mut self.selection else { return };
        let x = at.x.saturating_sub(area.x).min(area.width - 1);
        let y = at.y.saturating_sub(area.y).min(area.height - 1);
        (selection.to, selection.button) = (Position { x, y }, Button::Dragged);
        if stopped {
            selection.followed = name;
        }
    }

    /// The cells of a pane that hold text.
    fn text_of_pane(&self, pane: Focus) -> Option<Rect> {
        let areas = Areas::of(self);
        let area = match pane {
            Focus::Composer => Some(areas.composer),
            Focus::Tree => areas.tree,
            Focus::Peers => areas.peers,
            Focus::Transcript => areas.transcript.map(text_area),
            Focus::Beside => areas.beside.map(text_area),
            Focus::Page => areas.page,
            Focus::Inbox => areas.card,
        };
        area.filter(|area| !area.is_empty())
    }

    /// The rows of the screen that are selected.
    pub fn selected_rows(&self) -> Vec<SelectedRow> {
        let selection = self.selection.as_ref().filter(|all| all.button != Button::Down);
        let Some((selection, pane)) =
            selection.and_then(|all| Some((all, self.text_of_pane(all.pane)?)))
        else {
            return Vec::new();
        };
        // The pane may have become smaller since.
        let within =
            |at: Position| Position { x: at.x.min(pane.width - 1), y: at.y.min(pane.height - 1) };
        let (one, other) = (within(selection.from), within(selection.to));
        let (from, to) =
            if (one.y, one.x) <= (other.y, other.x) { (one, other) } else { (other, one) };
        let row = |y| {
            let first = pane.left() + if y == from.y { from.x } else { 0 };
            let last = if y == to.y { pane.left() + to.x } else { pane.right() - 1 };
            SelectedRow { y: pane.top() + y, columns: first..=last, left: pane.left() }
        };
        (from.y..=to.y).map(row).collect()
    }

    /// The button went up. What is selected is copied once the frame with it is painted.
    pub(super) fn release_selection(&mut self) {
        match &mut self.selection {
            Some(selection) if selection.from != selection.to => {
                selection.button = Button::Released;
            }
            Some(_) | None => self.end_selection(),
        }
    }

    /// Drops the selection, because the text may have moved; a transcript that followed its tail follows it again.
    pub(super) fn end_selection(&mut self) {
        let followed = self.selection.take().and_then(|selection| selection.followed);
        if let Some(transcript) = followed.and_then(|name| self.transcripts.get_mut(&name)) {
            transcript.scroll(Scroll::Tail);
        }
    }

    /// The text in this frame that is to be copied; the loop gives it back as [`Msg::Selected`].
    ///
    /// [`Msg::Selected`]: crate::screen::app::Msg::Selected
    pub fn selected_text(&self, frame: &Buffer) -> Option<String> {
        let selection = self.selection.as_ref()?;
        let is_over = selection.button == Button::Released;
        is_over.then(|| text_of(&self.selected_rows(), frame))
    }

    pub(super) fn copy_selected(&mut self, text: String) -> Vec<Effect> {
        self.end_selection();
        if text.is_empty() { Vec::new() } else { self.copy(text) }
    }
}
