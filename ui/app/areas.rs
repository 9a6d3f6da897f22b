//! Where each pane stands, on screens from 40x12 up.

use crate::app::{App, Focus, Zoom, panes};
use crate::palette::Palette;
use crate::pane::composer::queue_rows;
use crate::wording::wait;
use crate::wording::why::WayOn;
use ratatui::layout::Rect;
use yoi::protocol::PodName;

/// Below this size one pane is shown at a time, without frames.
const BOXED: (u16, u16) = (64, 14);
/// From this height on a column shows an inbox that has no focus.
const TALL: u16 = 12;
/// The fewest columns of text that one of two transcripts gets.
const NARROWEST: u16 = 36;
/// The fewest columns of two transcripts, which share a line; the first shares one with the tree.
const NARROWEST_TWO: u16 = 2 * (NARROWEST + 2) - 1;
/// The most columns of a transcript beside the tree, and the fewest of the tree.
const WIDEST: u16 = 100;
const NARROWEST_TREE: u16 = 30;
/// Rows of the transcript that stay in view above the inbox.
const LEFT: u16 = 3;

/// The area of every pane, without its frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    pub tree: Option<Rect>,
    pub peers: Option<Rect>,
    pub transcript: Option<Rect>,
    /// The second transcript.
    pub beside: Option<Rect>,
    pub inbox: Option<Rect>,
    /// The row above the transcript with the notes of the Pod.
    pub notes: Option<Rect>,
    /// The same above the second transcript.
    pub beside_notes: Option<Rect>,
    pub composer: Rect,
    pub bar: Rect,
    /// The frames, when there is room for them.
    pub outer: Option<Outer>,
    /// Rows of the header, without frames.
    pub header: u16,
    /// The row of the line above the composer, without frames.
    pub rule: Option<u16>,
    screen: Rect,
}

/// The areas of panes with their frames; neighbours share a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outer {
    pub tree: Option<Rect>,
    pub peers: Option<Rect>,
    pub transcript: Rect,
    pub beside: Option<Rect>,
    pub inbox: Option<Rect>,
    pub composer: Rect,
}

impl Areas {
    /// Whether the peers of a Pod and the agents that it reaches have a pane.
    pub fn has_peers(app: &App) -> bool {
        app.family.has_contacts()
    }

    /// Whether the transcripts have the whole width to themselves.
    pub fn zooms(app: &App) -> bool {
        app.zoom == Zoom::On && is_boxed(app.size)
    }

    /// Whether there is room for two transcripts.
    pub fn splits(app: &App) -> bool {
        is_boxed(app.size) && app.size.0 >= Self::columns_for_two(app.zoom)
    }

    /// The fewest columns of a screen on which two transcripts stand beside each other.
    pub fn columns_for_two(zoom: Zoom) -> u16 {
        let fits = |width: &u16| width - lists_width(*width, zoom, 2) >= NARROWEST_TWO;
        (BOXED.0..u16::MAX).find(fits).unwrap_or(u16::MAX)
    }

    /// The areas of this state's screen.
    pub fn of(app: &App) -> Self {
        let (width, height) = app.size;
        let screen = Rect::new(0, 0, width, height);
        let mut areas = if is_boxed(app.size) { boxed(app, screen) } else { compact(app, screen) };
        areas.screen = screen;
        areas.bar = Rect { y: height.saturating_sub(1), height: height.min(1), ..screen };
        areas
    }

    /// The area of a popup with this many rows, without its frame.
    pub fn popup(&self, rows: usize) -> Rect {
        let screen = self.screen;
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        if self.outer.is_none() {
            let height = rows.min(screen.height.saturating_sub(3));
            return Rect { y: screen.y + 1, height, ..screen }.intersection(screen);
        }
        let width = (screen.width - 4).min(100);
        let height = rows.min(screen.height * 3 / 4);
        Rect {
            x: screen.x + (screen.width - width) / 2,
            y: screen.y + (screen.height - height).saturating_sub(2) / 3,
            width,
            height,
        }
    }

    /// The area of a list, without its frame.
    pub fn list(&self, list: &Palette) -> Rect {
        self.popup(list.height(self.popup(1).width))
    }

    /// A strip of this many rows right above the action bar, without its frame.
    pub fn above_bar(&self, rows: usize) -> Rect {
        let screen = self.screen;
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        let side = u16::from(self.outer.is_some());
        let height = rows.min(screen.height.saturating_sub(1 + 2 * side));
        Rect {
            x: screen.x + side,
            y: screen.height.saturating_sub(1 + side + height),
            width: screen.width.saturating_sub(2 * side),
            height,
        }
        .intersection(screen)
    }
}

fn boxed(app: &App, screen: Rect) -> Areas {
    let width = screen.width - 2;
    let text = composer_rows(app, width, screen.height);
    let composer = Rect { y: screen.height - 1 - (text + 2), height: text + 2, ..screen };
    // The lowest line of the panes is the top line of the composer.
    let height = composer.y + 1;
    let transcripts = if app.beside().is_some() && Areas::splits(app) { 2 } else { 1 };
    let left = match app.tree.columns.filter(|_| app.zoom == Zoom::Off) {
        Some(dragged) => within(dragged, screen.width, transcripts),
        None => lists_width(screen.width, app.zoom, transcripts),
    };
    let (tree, peers) = match app.zoom {
        Zoom::On => (None, None),
        Zoom::Off => {
            let column = Rect { width: left + 1, height, ..screen };
            let (tree, peers) = split(column, peers_rows(app, height));
            (Some(tree), peers)
        }
    };
    let column = Rect { x: left, width: screen.width - left, height, ..screen };
    let (transcripts, inbox) = split(column, inbox_rows(app, column.width - 2, height));
    let (transcript, beside) = halves(app, transcripts);
    let inner = |area: Rect| Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width - 2,
        height: area.height - 2,
    };
    let (notes, below) = split_notes(app, app.shown(), inner(transcript));
    let second = beside.map(|area| split_notes(app, app.beside(), inner(area)));
    Areas {
        tree: tree.map(inner),
        peers: peers.map(inner),
        transcript: Some(below),
        beside: second.map(|(_, below)| below),
        beside_notes: second.and_then(|(notes, _)| notes),
        inbox: inbox.map(inner),
        notes,
        composer: inner(composer),
        outer: Some(Outer { tree, peers, transcript, beside, inbox, composer }),
        ..Areas::default()
    }
}

fn compact(app: &App, screen: Rect) -> Areas {
    let text = composer_rows(app, screen.width, screen.height);
    let header = u16::from(screen.height > 4);
    let rule = u16::from(screen.height > 6);
    let composer_y = screen.height.saturating_sub(1 + text);
    let composer = Rect { y: composer_y, height: text.min(screen.height), ..screen };
    let height = composer_y.saturating_sub(header + rule);
    let pane = Rect { y: header, height, ..screen };
    let mut areas = Areas {
        composer,
        header,
        rule: (rule > 0).then(|| composer_y.saturating_sub(1)),
        ..Areas::default()
    };
    match app.focus {
        Focus::Tree => areas.tree = Some(pane),
        Focus::Peers => areas.peers = Some(pane),
        Focus::Inbox => areas.inbox = Some(pane),
        Focus::Composer | Focus::Transcript | Focus::Beside => {
            let (notes, below) = split_notes(app, app.shown(), pane);
            (areas.notes, areas.transcript) = (notes, Some(below));
        }
    }
    areas
}

/// Cuts a pane of this many rows off the lower end of a column; the two share a line.
fn split(column: Rect, rows: u16) -> (Rect, Option<Rect>) {
    if rows == 0 {
        return (column, None);
    }
    let height = rows + 2;
    let upper = Rect { height: column.height - rows - 1, ..column };
    let lower = Rect { y: upper.bottom() - 1, height, ..column };
    (upper, Some(lower))
}

/// The rows of the peers pane. While any two Pods are peers, or agents were on the mesh, it is shown with a height
/// that only grows, so that no pane moves when another Pod is selected or an agent leaves.
fn peers_rows(app: &App, height: u16) -> u16 {
    if !app.family.has_contacts() || height < TALL {
        return 0;
    }
    let most = u16::try_from(app.family.most_contacts()).unwrap_or(u16::MAX);
    most.clamp(1, height / 5)
}

/// The rows of the inbox: a few without the focus, with it as many as the chosen item needs.
fn inbox_rows(app: &App, width: u16, height: u16) -> u16 {
    let focused = app.focus == Focus::Inbox;
    // A Pod that needs a person for another reason says so in its row of the tree.
    if !focused && (height < TALL || app.family.approvals().is_empty()) {
        return 0;
    }
    let rows = u16::try_from(panes::inbox(app).height(width)).unwrap_or(u16::MAX);
    let most = if focused { height.saturating_sub(LEFT + 3) } else { height / 4 };
    rows.min(most)
}

/// Cuts the column of the transcripts into two halves that share a line, if a second transcript is
/// open and there is room for it.
fn halves(app: &App, column: Rect) -> (Rect, Option<Rect>) {
    if app.beside().is_none() || !Areas::splits(app) {
        return (column, None);
    }
    let width = column.width / 2 + 1;
    let first = Rect { width, ..column };
    let x = first.right() - 1;
    (first, Some(Rect { x, width: column.right() - x, ..column }))
}

fn is_boxed((width, height): (u16, u16)) -> bool {
    width >= BOXED.0 && height >= BOXED.1
}

/// Columns left of the transcripts, without the line that they share with the lists.
fn lists_width(width: u16, zoom: Zoom, transcripts: u16) -> u16 {
    match zoom {
        Zoom::On => 0,
        Zoom::Off => tree_width(width, transcripts) - 1,
    }
}

/// Columns left of the transcripts where a person dragged the border to, so that both sides keep their fewest.
fn within(dragged: u16, width: u16, transcripts: u16) -> u16 {
    let text = if transcripts > 1 { NARROWEST_TWO } else { NARROWEST + 2 };
    dragged.min(width.saturating_sub(text)).max(NARROWEST_TREE - 1)
}

/// The transcripts get two thirds of the screen and at most [`WIDEST`] columns each, the tree the rest.
fn tree_width(width: u16, transcripts: u16) -> u16 {
    let two_thirds = u16::try_from(u32::from(width) * 2 / 3).unwrap_or(width);
    let least = if transcripts > 1 { NARROWEST_TWO } else { 0 };
    let text = two_thirds.min(WIDEST * transcripts).max(least);
    width.saturating_sub(text).max(NARROWEST_TREE)
}

/// The rows of the queue and the text: at most a third of the screen.
fn composer_rows(app: &App, width: u16, height: u16) -> u16 {
    let prompt = crate::rows::columns(&panes::composer(app).prompt(width));
    let text = app.composer.draft().rows(width.saturating_sub(prompt).max(1));
    let queue = queue_rows(app.info());
    text.saturating_add(queue).clamp(1, (height / 3).max(1))
}

/// Takes the top row for the notes of a Pod, if it has any and the pane is high enough.
fn split_notes(app: &App, name: Option<&PodName>, area: Rect) -> (Option<Rect>, Rect) {
    let noted = name.is_some_and(|name| has_notes(app, name));
    if !noted || area.height < 4 {
        return (None, area);
    }
    let notes = Rect { height: 1, ..area };
    (Some(notes), Rect { y: area.y + 1, height: area.height - 1, ..area })
}

/// Whether a Pod has notes.
fn has_notes(app: &App, name: &PodName) -> bool {
    app.family.get(name).is_some_and(|info| {
        let waits = || wait::sentence(info, &app.family, app.now).is_some();
        let noted = info.why.is_some() || WayOn::of(info).is_some() || !info.notes.is_empty();
        noted || !app.host_notices.is_empty() || !app.mistakes.is_empty() || waits()
    })
}
