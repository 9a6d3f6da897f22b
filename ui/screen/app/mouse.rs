//! The mouse: a click chooses, the wheel scrolls the pane under the pointer. Neither ever decides a request or a
//! confirmation, and neither makes letters to keys of a pane: a click leaves the typing with the composer, or with the
//! pane that has the keys already.

use crate::screen::app::Areas;
use crate::screen::app::{App, Effect, Focus, Layer};
use crate::screen::pane::transcript::Scroll;
use crate::screen::pane::tree::{Place, StoppedPods};
use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::{Position, Rect};

/// Lines that one step of the wheel scrolls.
const WHEEL: i16 = 3;

/// The border between the tree and the transcript, while the button of the mouse is down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Border {
    /// The button is up, or went down elsewhere.
    #[default]
    Free,
    Pressed,
    Dragged,
}

impl App {
    /// Whether this event of the mouse changes the state. A movement of the pointer does so only while the button holds the
    /// rule or a selection.
    pub(super) fn mouse_changes(&self, kind: MouseEventKind) -> bool {
        match kind {
            MouseEventKind::Down(MouseButton::Left)
            | MouseEventKind::ScrollUp
            | MouseEventKind::ScrollDown => true,
            MouseEventKind::Drag(MouseButton::Left) => {
                self.border != Border::Free || self.selection.is_some()
            }
            MouseEventKind::Up(MouseButton::Left) => {
                self.border == Border::Pressed || self.selection.is_some()
            }
            _ => false,
        }
    }

    pub(super) fn mouse(&mut self, event: MouseEvent) -> Vec<Effect> {
        let at = Position::new(event.column, event.row);
        match event.kind {
            MouseEventKind::Down(MouseButton::Left) if self.is_on_border(at) => {
                self.border = Border::Pressed;
                Vec::new()
            }
            MouseEventKind::Down(MouseButton::Left) => {
                self.border = Border::Free;
                self.begin_selection(at);
                self.click(at)
            }
            MouseEventKind::Drag(MouseButton::Left) => self.drag(at),
            MouseEventKind::Up(MouseButton::Left) => self.release(),
            MouseEventKind::ScrollUp => self.wheel(at, -1),
            MouseEventKind::ScrollDown => self.wheel(at, 1),
            _ => Vec::new(),
        }
    }

    fn is_on_border(&self, at: Position) -> bool {
        let [border, _] = Areas::of(self).rules;
        self.layers.is_empty() && border.is_some_and(|border| border.contains(at))
    }

    fn drag(&mut self, at: Position) -> Vec<Effect> {
        if self.border != Border::Free {
            self.border = Border::Dragged;
            self.tree.columns = Some(at.x);
        } else {
            self.drag_selection(at);
        }
        Vec::new()
    }

    /// A border that was clicked and not dragged goes back to its usual place.
    fn release(&mut self) -> Vec<Effect> {
        if self.border == Border::Pressed {
            self.tree.columns = None;
        }
        self.border = Border::Free;
        self.release_selection();
        Vec::new()
    }

    fn click(&mut self, at: Position) -> Vec<Effect> {
        let areas = Areas::of(self);
        if let Some(Layer::List(palette)) = self.layers.top_mut() {
            let area = areas.list(palette);
            if let Some((_, y)) = inside(area, at) {
                palette.click(y.into(), area);
            }
            return Vec::new();
        }
        // Only keys answer a card.
        if !self.layers.is_empty() || areas.card.is_some_and(|card| card.contains(at)) {
            return Vec::new();
        }
        if let Some(area) = areas.tree.filter(|area| area.contains(at)) {
            return self.click_tree(at.y - area.y, area);
        }
        if let Some((_, y)) = areas.peers.and_then(|area| inside(area, at)) {
            let height = areas.peers.map_or(0, |area| area.height);
            let row = crate::screen::app::panes::peers(self).at(y, height);
            return self.peers_click(row.unwrap_or(0));
        }
        if let Some((_, y)) = areas.page.and_then(|area| inside(area, at)) {
            self.click_page(y);
            return self.keys_stay_in(Focus::Page);
        }
        for (area, focus) in [(areas.transcript, Focus::Transcript), (areas.beside, Focus::Beside)]
        {
            let Some((_, y)) = area.and_then(|area| inside(area, at)) else { continue };
            let name = if focus == Focus::Beside { self.beside() } else { self.shown() };
            if let Some(transcript) = name.cloned().and_then(|name| self.transcripts.get_mut(&name))
            {
                transcript.focus_at(y);
            }
            return self.keys_stay_in(focus);
        }
        let text = crate::screen::app::panes::composer(self).text_area(areas.composer);
        if let Some((x, y)) = inside(text, at) {
            self.composer.click(y, x);
            return self.focus(Focus::Composer);
        }
        Vec::new()
    }

    fn click_tree(&mut self, y: u16, area: Rect) -> Vec<Effect> {
        match crate::screen::app::panes::tree(self).place_at(y, area) {
            Some(Place::Pod(name)) => self.make_current(&name),
            Some(Place::Ended(parent)) => {
                self.tree.unfolded.insert(parent);
                Vec::new()
            }
            Some(Place::Stopped) => {
                self.tree.stopped_pods = StoppedPods::Listed;
                Vec::new()
            }
            None => self.keys_stay_in(Focus::Tree),
        }
    }

    /// A click into a pane leaves the keys there if it has them, else with the composer.
    pub(super) fn keys_stay_in(&mut self, clicked: Focus) -> Vec<Effect> {
        self.focus(if self.focus == clicked { clicked } else { Focus::Composer })
    }

    fn wheel(&mut self, at: Position, way: i16) -> Vec<Effect> {
        self.end_selection();
        let areas = Areas::of(self);
        if let Some(Layer::List(palette)) = self.layers.top_mut() {
            let action = if way < 0 {
                crate::screen::keys::Action::Up
            } else {
                crate::screen::keys::Action::Down
            };
            palette.act(action);
            return Vec::new();
        }
        if let Some(Layer::Confirm(_)) = self.layers.top() {
            return Vec::new();
        }
        let over = |area: Option<Rect>| area.is_some_and(|area| area.contains(at));
        if over(areas.card) {
            self.inbox.distracted(self.now);
            self.inbox_scroll((way * WHEEL).into());
            return Vec::new();
        }
        if !self.layers.is_empty() {
            // A list of a pane stays where it is while a line is typed.
        } else if over(areas.tree) {
            self.move_cursor(way.into());
        } else if over(areas.peers) {
            self.peers_step(way.into());
        } else if over(areas.page) {
            self.scroll_page(Scroll::Lines((way * WHEEL).into()));
        }
        let under = if over(areas.beside) {
            self.beside().cloned()
        } else {
            self.shown().cloned().filter(|_| over(areas.transcript))
        };
        if let Some(transcript) = under.and_then(|name| self.transcripts.get_mut(&name)) {
            transcript.scroll(Scroll::Lines((way * WHEEL).into()));
        }
        Vec::new()
    }
}

/// The cell of `at` counted from the corner of `area`, if it lies in there.
fn inside(area: Rect, at: Position) -> Option<(u16, u16)> {
    area.contains(at).then(|| (at.x - area.x, at.y - area.y))
}
