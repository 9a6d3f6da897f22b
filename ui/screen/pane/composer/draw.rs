//! The composer on screen: the Pod that it sends to, and the text.

use crate::rows::{columns, cut, cut_middle};
use crate::screen::pane::composer::Composer;
use crate::screen::pane::composer::draft::CARET;
use crate::screen::pane::glyph::Glyphs;
use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::widgets::Widget as _;

/// The composer as a widget.
pub struct View<'a> {
    pub composer: &'a Composer,
    /// The name before the text.
    pub to: String,
    /// Shown while nothing is written.
    pub placeholder: String,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
    /// Whether the keys type into it.
    pub focused: bool,
}

impl View<'_> {
    /// The words before the text: never more than half of the width.
    pub fn prompt(&self, width: u16) -> String {
        let room = usize::from(width / 2).saturating_sub(6);
        self.glyphs.plain(&format!(" {} › ", cut_middle(&self.to, room)))
    }

    /// Where in `area` the text stands.
    pub fn text_area(&self, area: Rect) -> Rect {
        let prompt = columns(&self.prompt(area.width)).min(area.width);
        Rect { x: area.x + prompt, width: area.width - prompt, ..area }
    }

    /// Paints it, and tells in which cell the caret stands.
    pub fn render(&self, area: Rect, buf: &mut Buffer) -> Option<Position> {
        if area.is_empty() {
            return None;
        }
        let text = self.text_area(area);
        let prompt = self.prompt(area.width);
        buf.set_stringn(area.x, text.y, &prompt, usize::from(area.width), self.theme.dim);
        let name =
            Rect { x: area.x + 1, width: columns(&prompt).saturating_sub(4), height: 1, ..text };
        let style = if self.focused { self.theme.accent } else { self.theme.dim };
        buf.set_style(name.intersection(area), style);
        if self.composer.is_empty() {
            let text = Rect { x: text.x + 1, width: text.width.saturating_sub(1), ..text };
            let hint = self.glyphs.plain(&cut(&self.placeholder, usize::from(text.width)));
            buf.set_stringn(text.x, text.y, hint, usize::from(text.width), self.theme.dim);
            return Some(Position::new(text.x.saturating_sub(1), text.y));
        }
        (&self.composer.draft().text).render(text, buf);
        caret(text, buf)
    }
}

/// Finds the cell that the textarea marked, and takes the mark away.
fn caret(area: Rect, buf: &mut Buffer) -> Option<Position> {
    let mut found = None;
    for position in area.positions() {
        let cell = &mut buf[position];
        if cell.modifier.contains(CARET) {
            cell.modifier.remove(CARET);
            found = found.or(Some(position));
        }
    }
    found
}
