//! The peers of the selected Pod and the agents that it reaches over the mesh, and the state of each.

use crate::rows::{pad, right};
use crate::screen::pane::glyph::Glyphs;
use crate::theme::{Role, Theme};
use crate::wording::age::by_minute;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use yoi::client::family::{Agent, Contact, Family};
use yoi::protocol::PodName;

/// The columns of the word of a state.
const WORD: usize = 9;
/// The columns of an age.
const AGE: usize = 6;
/// The fewest columns of a name.
const NAME: usize = 8;

/// The cursor on a peer or an agent. The peers and agents themselves are in the family.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    cursor: Option<Chosen>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Chosen {
    Pod(PodName),
    Agent(String),
}

impl Chosen {
    fn of(contact: &Contact<'_>) -> Self {
        match contact {
            Contact::Pod(name) => Self::Pod((*name).clone()),
            Contact::Agent(agent) => Self::Agent(agent.name.clone()),
        }
    }

    fn is(&self, contact: &Contact<'_>) -> bool {
        match (self, contact) {
            (Self::Pod(chosen), Contact::Pod(name)) => chosen == *name,
            (Self::Agent(chosen), Contact::Agent(agent)) => *chosen == agent.name,
            (Self::Pod(_), Contact::Agent(_)) | (Self::Agent(_), Contact::Pod(_)) => false,
        }
    }
}

impl Peers {
    /// Where the cursor is among these, from 0.
    pub fn position(&self, contacts: &[Contact<'_>]) -> usize {
        let Some(cursor) = &self.cursor else { return 0 };
        contacts.iter().position(|contact| cursor.is(contact)).unwrap_or(0)
    }

    /// The peer or agent under the cursor.
    pub fn chosen<'a>(&self, contacts: &[Contact<'a>]) -> Option<Contact<'a>> {
        contacts.get(self.position(contacts)).copied()
    }

    /// Puts the cursor on the peer or agent at a place; beyond the end it is the last.
    pub fn choose(&mut self, contacts: &[Contact<'_>], at: usize) {
        let at = at.min(contacts.len().saturating_sub(1));
        self.cursor = contacts.get(at).map(Chosen::of);
    }
}

/// The peers and agents as a widget.
pub struct View<'a> {
    pub peers: &'a Peers,
    pub family: &'a Family,
    /// The Pod whose peers are listed.
    pub of: Option<&'a PodName>,
    pub theme: &'a Theme,
    pub glyphs: Glyphs,
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

    fn list(&self) -> Vec<Contact<'_>> {
        self.of.map(|name| self.family.contacts_of(name)).unwrap_or_default()
    }

    fn first(&self, peers: &[Contact<'_>], height: u16) -> usize {
        (self.peers.position(peers) + 1).saturating_sub(usize::from(height))
    }

    fn line(&self, contact: &Contact<'_>, columns: usize) -> Line<'static> {
        match contact {
            Contact::Pod(name) => self.pod(name, columns),
            Contact::Agent(agent) => self.agent(agent, columns),
        }
    }

    fn mark(&self) -> Span<'static> {
        Span::styled(self.glyphs.pick("⇄ ", "= "), self.theme.dim)
    }

    fn pod(&self, name: &PodName, columns: usize) -> Line<'static> {
        let Some(info) = self.family.get(name) else {
            let text = pad(&format!("{name} is gone"), columns.saturating_sub(2));
            return Line::from(vec![self.mark(), Span::styled(text, self.theme.dim)]);
        };
        let sign = self.glyphs.state_sign(info);
        let cells = Cells {
            shape: sign.shape,
            name: info.name.as_str(),
            word: sign.word,
            role: sign.role,
            last: &by_minute(info, self.now),
        };
        self.cells(&cells, columns)
    }

    fn agent(&self, agent: &Agent, columns: usize) -> Line<'static> {
        // A blocked agent shows that at any width, in place of its kind.
        let is_peer = self.of.is_some_and(|pod| agent.peers.contains(pod));
        let kind = if is_peer { "peer" } else { agent.word() };
        let (word, role, last) = match agent.blocked {
            true => ("blocked", Role::Warn, ""),
            false if agent.reachable => ("online", Role::Dim, kind),
            false => ("away", Role::Dim, kind),
        };
        let shape = self.glyphs.pick("◇", "@");
        self.cells(&Cells { shape, name: agent.shown.as_str(), word, role, last }, columns)
    }

    /// A row; a narrow one leaves out its last columns first.
    fn cells(&self, cells: &Cells<'_>, columns: usize) -> Line<'static> {
        let state = self.theme.style(cells.role);
        let left = columns.saturating_sub(4);
        let word = if left > NAME + WORD { WORD } else { 0 };
        let last = if left >= NAME + word + AGE + 2 { AGE } else { 0 };
        let last = if cells.last.is_empty() { 0 } else { last };
        let gaps = usize::from(word > 0) + usize::from(last > 0);
        let mut spans = vec![
            self.mark(),
            Span::styled(format!("{} ", cells.shape), state),
            Span::raw(pad(cells.name, left.saturating_sub(word + last + gaps))),
        ];
        if word > 0 {
            spans.push(Span::styled(format!(" {}", pad(cells.word, word)), state));
        }
        if last > 0 {
            spans.push(Span::styled(format!(" {}", right(cells.last, last)), self.theme.dim));
        }
        Line::from(spans)
    }
}

/// The columns of a row, from left to right.
struct Cells<'a> {
    shape: &'static str,
    name: &'a str,
    word: &'a str,
    /// The colour of the shape and the word.
    role: Role,
    last: &'a str,
}

impl Widget for View<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let (peers, columns) = (self.list(), usize::from(area.width));
        if peers.is_empty() && area.height > 0 {
            let none = match self.of.is_some_and(|pod| self.family.is_on_mesh(pod)) {
                true => "no peers, no agents",
                false => "no peers",
            };
            buf.set_stringn(area.x, area.y, none, columns, self.theme.dim);
        }
        let (first, chosen) = (self.first(&peers, area.height), self.peers.position(&peers));
        let shown = peers.iter().enumerate().skip(first);
        for ((at, contact), y) in shown.zip(area.y..area.bottom()) {
            buf.set_line(area.x, y, &self.line(contact, columns), area.width);
            if self.focused && at == chosen {
                buf.set_style(Rect { y, height: 1, ..area }, self.theme.selection);
            }
        }
    }
}
