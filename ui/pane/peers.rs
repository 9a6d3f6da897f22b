//! The peers of the selected Pod, with which it exchanges messages, and the state of each.

use crate::family::Family;
use crate::pane::glyph::Glyphs;
use crate::rows::{pad, right, width};
use crate::theme::Theme;
use crate::wording::age::age;
use jiff::tz::TimeZone;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use yoi::protocol::PodName;

/// The columns of the word of a state.
const WORD: usize = 9;
/// The columns of an age.
const AGE: usize = 6;

/// The chosen peer. The peers themselves are in the family.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    cursor: Option<PodName>,
}

impl Peers {
    /// Where the cursor is among these, from 0.
    pub fn position(&self, peers: &[&PodName]) -> usize {
        let at = peers.iter().position(|peer| Some(*peer) == self.cursor.as_ref());
        at.unwrap_or(0)
    }

    /// The peer under the cursor.
    pub fn chosen<'a>(&self, peers: &[&'a PodName]) -> Option<&'a PodName> {
        peers.get(self.position(peers)).copied()
    }

    /// Puts the cursor on the peer at a place; beyond the end it is the last.
    pub fn choose(&mut self, peers: &[&PodName], at: usize) {
        let at = at.min(peers.len().saturating_sub(1));
        self.cursor = peers.get(at).map(|name| (*name).clone());
    }
}

/// The peers as a widget.
pub struct View<'a> {
    pub peers: &'a Peers,
    pub family: &'a Family,
    /// The Pod whose peers are listed.
    pub of: Option<&'a PodName>,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
    pub zone: &'a TimeZone,
    pub now: u64,
    pub focused: bool,
}

impl View<'_> {
    /// The place among the peers at row `y` of the pane, from 0.
    pub fn at(&self, y: u16, height: u16) -> Option<usize> {
        let peers = self.list();
        let at = self.first(&peers, height) + usize::from(y);
        (at < peers.len()).then_some(at)
    }

    fn list(&self) -> Vec<&PodName> {
        self.of.map(|name| self.family.peers_of(name)).unwrap_or_default()
    }

    fn first(&self, peers: &[&PodName], height: u16) -> usize {
        (self.peers.position(peers) + 1).saturating_sub(usize::from(height))
    }

    fn line(&self, name: &PodName, columns: usize) -> Line<'static> {
        let mark = Span::styled(self.glyphs.pick("⇄ ", "= "), self.theme.dim);
        let Some(info) = self.family.get(name) else {
            let text = pad(&format!("{name} is gone"), columns.saturating_sub(2));
            return Line::from(vec![mark, Span::styled(text, self.theme.dim)]);
        };
        let sign = self.glyphs.state_sign(info);
        let state = self.theme.style(sign.role);
        let left = columns.saturating_sub(4);
        let name = width(info.name.as_str()).min(8);
        let word = if left >= name + WORD + AGE + 2 { WORD } else { 0 };
        let age_of = if left > name + AGE { AGE } else { 0 };
        let gaps = usize::from(word > 0) + usize::from(age_of > 0);
        let mut spans = vec![
            mark,
            Span::styled(format!("{} ", sign.shape), state),
            Span::raw(pad(info.name.as_str(), left.saturating_sub(word + age_of + gaps))),
        ];
        if word > 0 {
            spans.push(Span::styled(format!(" {}", pad(sign.word, word)), state));
        }
        if age_of > 0 {
            let age = age(info, self.now, self.zone);
            spans.push(Span::styled(format!(" {}", right(&age, age_of)), self.theme.dim));
        }
        Line::from(spans)
    }
}

impl Widget for View<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let (peers, columns) = (self.list(), usize::from(area.width));
        if peers.is_empty() && area.height > 0 {
            buf.set_stringn(area.x, area.y, "no peers", columns, self.theme.dim);
        }
        let (first, chosen) = (self.first(&peers, area.height), self.peers.position(&peers));
        let shown = peers.iter().enumerate().skip(first);
        for ((at, name), y) in shown.zip(area.y..area.bottom()) {
            buf.set_line(area.x, y, &self.line(name, columns), area.width);
            if self.focused && at == chosen {
                buf.set_style(Rect { y, height: 1, ..area }, self.theme.selection);
            }
        }
    }
}
