//! Where each pane stands, on a screen of any size.

use crate::screen::app::{App, Focus, Zoom, panes};
use crate::screen::pane::transcript::queue_rows;
use crate::screen::pick_list::PickList;
use crate::wording::why::WayOn;
use ratatui::layout::{Margin, Rect};
use yoi::protocol::PodName;

/// Below this many columns a page takes the place of the tree, too.
const BESIDE_TREE: u16 = 100;
/// Below this size one pane is shown at a time.
const SIDE_BY_SIDE: (u16, u16) = (60, 12);
/// From this height on a row stays empty below the heads and above the line.
const ROOMY: u16 = 30;
/// From this height on the peers have rows below the tree.
const TALL: u16 = 12;
/// The fewest columns of text that one of two transcripts gets.
const NARROWEST: u16 = 36;
/// The fewest columns of two transcripts, each with the rule before it.
const NARROWEST_TWO: u16 = 2 * (NARROWEST + 1);
/// The most columns of a transcript beside the tree, and the fewest of the tree with its rule.
const WIDEST: u16 = 100;
const NARROWEST_TREE: u16 = 27;
/// The most columns of text on a sheet.
const SHEET: u16 = 100;
/// A sheet may take this many rows also where they are more than two thirds of the screen.
const LOW: u16 = 10;

/// The area of every pane below its head, of the line, and of the bar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    pub tree: Option<Rect>,
    pub peers: Option<Rect>,
    /// The row below the tree with the scope of the selected Pod.
    pub scope: Option<Rect>,
    pub transcript: Option<Rect>,
    /// The second transcript.
    pub beside: Option<Rect>,
    /// The page in the place of the transcripts.
    pub page: Option<Rect>,
    /// The card, a sheet above the line, with its head.
    pub card: Option<Rect>,
    /// The row above the transcript with the notes of the Pod.
    pub notes: Option<Rect>,
    /// The same above the second transcript.
    pub beside_notes: Option<Rect>,
    /// The rows below the transcript with the messages that wait for a run.
    pub queue: Option<Rect>,
    /// The same below the second transcript.
    pub beside_queue: Option<Rect>,
    pub heads: Heads,
    /// The rules before the first and the second transcript.
    pub rules: [Option<Rect>; 2],
    pub composer: Rect,
    /// The row above the composer, on a screen without grounds to tell the line by.
    pub rule: Option<Rect>,
    pub bar: Rect,
    screen: Rect,
}

/// The row at the top of each pane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Heads {
    pub tree: Option<Rect>,
    pub peers: Option<Rect>,
    pub transcript: Option<Rect>,
    pub beside: Option<Rect>,
    pub page: Option<Rect>,
}

impl Areas {
    /// Whether the transcripts have the whole width to themselves.
    pub fn zooms(app: &App) -> bool {
        app.zoom == Zoom::On && is_wide(app.size)
    }

    /// Whether there is room for two transcripts.
    pub fn splits(app: &App) -> bool {
        is_wide(app.size) && app.size.0 >= Self::columns_for_two(app.zoom)
    }

    /// Whether panes stand beside each other; else one is shown at a time.
    pub fn are_beside_each_other(app: &App) -> bool {
        is_wide(app.size)
    }

    /// The fewest columns of a screen on which two transcripts stand beside each other.
    pub fn columns_for_two(zoom: Zoom) -> u16 {
        let fits = |width: &u16| width - lists_width(*width, zoom, 2) >= NARROWEST_TWO;
        (SIDE_BY_SIDE.0..u16::MAX).find(fits).unwrap_or(u16::MAX)
    }

    /// The areas of this state's screen.
    pub fn of(app: &App) -> Self {
        let (width, height) = app.size;
        let screen = Rect::new(0, 0, width, height);
        let text = composer_rows(app, width, height);
        let bar = Rect { y: height.saturating_sub(1), height: height.min(1), ..screen };
        let y = bar.y.saturating_sub(text);
        let composer = Rect { y, height: text.min(bar.y), ..screen };
        let ruled = !app.theme.has_grounds() && height > 6;
        let rule = ruled.then(|| Rect { y: y.saturating_sub(1), height: 1, ..screen });
        let between = u16::from(ruled || height >= ROOMY);
        let above = Rect { height: y.saturating_sub(between), ..screen };
        let mut panes = if is_wide(app.size) { side_by_side(app, above) } else { one(app, above) };
        // A pane that has the keys is on the screen.
        if app.focus == Focus::Peers && panes.peers.is_none() {
            panes = one(app, above);
        }
        let mut areas = Self { composer, rule, bar, screen, ..panes };
        areas.card = app.has_card().then(|| {
            // The rule in the line keeps its rows below the card.
            let (rule, room) = app.rule_rows(&areas);
            let rule = rule.len().min(room);
            let rows = panes::card(app).height(areas.sheet_above_line(1).width) + rule;
            let sheet = areas.sheet_above_line(rows);
            let rule = u16::try_from(rule).unwrap_or(u16::MAX);
            Rect { height: sheet.height.saturating_sub(rule), ..sheet }
        });
        areas
    }

    /// The same with a page in the column of the transcripts.
    fn with_page(self, column: Rect) -> Self {
        let (head, body) = below_head(column, 1);
        let heads = Heads { transcript: None, beside: None, page: Some(head), ..self.heads };
        Self {
            transcript: None,
            beside: None,
            page: Some(body),
            notes: None,
            beside_notes: None,
            queue: None,
            beside_queue: None,
            heads,
            rules: [self.rules[0], None],
            ..self
        }
    }

    /// The area of the text of a sheet with this many rows that covers the line.
    pub fn sheet(&self, rows: usize) -> Rect {
        self.rising_from(self.bar.y, rows)
    }

    /// The same of a sheet right above the line.
    pub fn sheet_above_line(&self, rows: usize) -> Rect {
        self.rising_from(self.composer.y, rows)
    }

    fn rising_from(&self, y: u16, rows: usize) -> Rect {
        let Rect { width, height, .. } = self.screen;
        let two_thirds = u16::try_from(u32::from(height) * 2 / 3).unwrap_or(height);
        let most = two_thirds.max(LOW).min(y.saturating_sub(2));
        let height = u16::try_from(rows).unwrap_or(u16::MAX).min(most);
        let width = width.saturating_sub(2).min(SHEET);
        Rect { x: 1, y: y - height, width, height }.intersection(self.screen)
    }

    /// The area of a list, below its title.
    pub fn list(&self, list: &PickList) -> Rect {
        let sheet = self.sheet(list.height(self.sheet(1).width, self.screen.height.into()) + 1);
        let title = sheet.height.min(1);
        Rect { y: sheet.y + title, height: sheet.height - title, ..sheet }
    }
}

/// The panes beside each other.
fn side_by_side(app: &App, screen: Rect) -> Areas {
    // The first screen has no tree.
    let zoom = if app.is_first_screen() { Zoom::On } else { app.zoom };
    let transcripts = if app.beside().is_some() && Areas::splits(app) { 2 } else { 1 };
    let left = match app.tree.columns.filter(|_| zoom == Zoom::Off) {
        Some(dragged) => within(dragged, screen.width, transcripts),
        None => lists_width(screen.width, zoom, transcripts),
    };
    let alone = app.page.is_some() && screen.width < BESIDE_TREE;
    let (lists, column) = match zoom {
        Zoom::Off if !alone => {
            let (lists, column) = beside_rule(screen, left);
            (Some(lists), column)
        }
        Zoom::On | Zoom::Off => (None, screen),
    };
    let lists = lists.map(|lists| split(lists, peers_rows(app, screen.height)));
    let (transcript, beside) = halves(app, column);
    let gap = u16::from(app.size.1 >= ROOMY);
    let (head, body) = below_head(transcript, gap);
    let (notes, body, queue) = around_transcript(app, app.shown(), body);
    let second = beside.map(|area| below_head(area, gap));
    let second = second.map(|(head, body)| (head, around_transcript(app, app.beside(), body)));
    let has_scope = app.size.1 >= ROOMY && app.pod_read().is_some();
    let scope = lists.filter(|_| has_scope).map(|(tree, _)| within_margin(last_row(tree)));
    let tree = lists.map(|(tree, _)| below_head(tree, gap));
    let tree = tree.map(|(head, body)| match scope {
        Some(row) => (head, Rect { height: body.height.saturating_sub(row.height), ..body }),
        None => (head, body),
    });
    let peers = lists.and_then(|(_, peers)| peers).map(|peers| below_head(peers, 0));
    let peers = peers.map(|(head, body)| (head, within_margin(body)));
    let rule = |area: Rect| Rect { x: area.x.saturating_sub(1), width: 1, ..area };
    let areas = Areas {
        tree: tree.map(|(_, body)| body),
        peers: peers.map(|(_, body)| body),
        scope,
        transcript: Some(body),
        beside: second.map(|(_, (_, body, _))| body),
        notes,
        beside_notes: second.and_then(|(_, (notes, _, _))| notes),
        queue,
        beside_queue: second.and_then(|(_, (_, _, queue))| queue),
        heads: Heads {
            tree: tree.map(|(head, _)| head),
            peers: peers.map(|(head, _)| head),
            transcript: Some(head),
            beside: second.map(|(head, _)| head),
            page: None,
        },
        rules: [lists.map(|_| rule(column)), beside.map(rule)],
        ..Areas::default()
    };
    if app.page.is_some() { areas.with_page(column) } else { areas }
}

/// The pane that has the focus, alone.
fn one(app: &App, screen: Rect) -> Areas {
    let (head, body) = match screen.height {
        0..=2 => (None, screen),
        _ => {
            let (head, body) = below_head(screen, u16::from(app.size.1 >= ROOMY));
            (Some(head), body)
        }
    };
    let mut areas = Areas::default();
    let Heads { tree, peers, transcript, page, .. } = &mut areas.heads;
    match app.focus {
        Focus::Composer | Focus::Page | Focus::Inbox if app.page.is_some() => {
            (areas.page, *page) = (Some(body), head);
        }
        Focus::Tree => (areas.tree, *tree) = (Some(body), head),
        Focus::Peers => (areas.peers, *peers) = (Some(within_margin(body)), head),
        Focus::Composer | Focus::Transcript | Focus::Beside | Focus::Inbox | Focus::Page => {
            let (notes, below, queue) = around_transcript(app, app.shown(), body);
            (areas.notes, areas.transcript, *transcript) = (notes, Some(below), head);
            areas.queue = queue;
        }
    }
    areas
}

/// A column of this width, and what is behind the rule beside it.
fn beside_rule(area: Rect, width: u16) -> (Rect, Rect) {
    let first = Rect { width: width.min(area.width), ..area };
    let x = (first.right() + 1).min(area.right());
    (first, Rect { x, width: area.right() - x, ..area })
}

/// The head of a pane, and the pane below it and `gap` empty rows.
fn below_head(pane: Rect, gap: u16) -> (Rect, Rect) {
    let head = Rect { height: pane.height.min(1), ..pane };
    let taken = (head.height + gap).min(pane.height);
    (head, Rect { y: pane.y + taken, height: pane.height - taken, ..pane })
}

/// The last row of a pane.
fn last_row(pane: Rect) -> Rect {
    let height = pane.height.min(1);
    Rect { y: pane.bottom() - height, height, ..pane }
}

/// A pane whose text begins and ends a column further in, as its head does.
fn within_margin(pane: Rect) -> Rect {
    pane.inner(Margin::new(1, 0))
}

/// Cuts a pane of this many rows and its head off the lower end of a column.
fn split(column: Rect, rows: u16) -> (Rect, Option<Rect>) {
    if rows == 0 {
        return (column, None);
    }
    let height = (rows + 1).min(column.height);
    let upper = Rect { height: column.height - height, ..column };
    (upper, Some(Rect { y: upper.bottom(), height, ..column }))
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

/// Cuts the column of the transcripts into two halves with a rule between them, if a second transcript is
/// open and there is room for it.
fn halves(app: &App, column: Rect) -> (Rect, Option<Rect>) {
    if app.beside().is_none() || !Areas::splits(app) {
        return (column, None);
    }
    let (first, second) = beside_rule(column, (column.width - 1) / 2);
    (first, Some(second))
}

fn is_wide((width, height): (u16, u16)) -> bool {
    width >= SIDE_BY_SIDE.0 && height >= SIDE_BY_SIDE.1
}

/// Columns left of the transcripts, without the rule between.
fn lists_width(width: u16, zoom: Zoom, transcripts: u16) -> u16 {
    match zoom {
        Zoom::On => 0,
        Zoom::Off => tree_width(width, transcripts) - 1,
    }
}

/// Columns left of the transcripts where a person dragged the border to, so that both sides keep their fewest.
fn within(dragged: u16, width: u16, transcripts: u16) -> u16 {
    let text = if transcripts > 1 { NARROWEST_TWO } else { NARROWEST + 1 };
    dragged.min(width.saturating_sub(text)).max(NARROWEST_TREE - 1)
}

/// The transcripts get two thirds of the screen and at most [`WIDEST`] columns each, the tree the rest.
fn tree_width(width: u16, transcripts: u16) -> u16 {
    let two_thirds = u16::try_from(u32::from(width) * 2 / 3).unwrap_or(width);
    let least = if transcripts > 1 { NARROWEST_TWO } else { 0 };
    let text = two_thirds.min(WIDEST * transcripts).max(least);
    width.saturating_sub(text).max(NARROWEST_TREE)
}

/// The rows of the text: at most a third of the screen.
fn composer_rows(app: &App, width: u16, height: u16) -> u16 {
    let prompt = crate::rows::columns(&panes::composer(app).prompt(width));
    let text = app.composer.draft().rows(width.saturating_sub(prompt).max(1));
    text.clamp(1, (height / 3).max(1))
}

/// Takes the top row for the notes of a Pod, and the last rows for its queue, if it has any and the pane is high enough.
fn around_transcript(
    app: &App,
    name: Option<&PodName>,
    area: Rect,
) -> (Option<Rect>, Rect, Option<Rect>) {
    let queued = name.and_then(|name| app.family.get(name)).map_or(0, queue_rows);
    let (area, queue) = match area.height.saturating_sub(2).min(queued) {
        0 => (area, None),
        rows => {
            let area = Rect { height: area.height - rows, ..area };
            (area, Some(Rect { y: area.bottom(), height: rows, ..area }))
        }
    };
    let noted = name.is_some_and(|name| has_notes(app, name));
    if !noted || area.height < 4 {
        return (None, area, queue);
    }
    let notes = Rect { height: 1, ..area };
    (Some(notes), Rect { y: area.y + 1, height: area.height - 1, ..area }, queue)
}

/// Whether a Pod has notes.
fn has_notes(app: &App, name: &PodName) -> bool {
    app.family.get(name).is_some_and(|info| {
        // Where one pane is shown at a time, a transcript needs its rows more: `:explain` says the notes of the Pod.
        let has_own = is_wide(app.size) && !info.notes.is_empty();
        let noted = WayOn::of(info).is_some() || has_own;
        let of_host = !app.host_notices.is_empty() || !app.mistakes.is_empty();
        noted || of_host || app.reasons_of(info).next().is_some()
    })
}
