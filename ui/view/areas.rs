//! Where the panes stand, from 40x12 to a wall.

use crate::app::{App, Focus};
use crate::pane::composer::queue_rows;
use ratatui::layout::Rect;

/// Below this size one pane is shown at a time, without frames.
const BOXED: (u16, u16) = (64, 14);

/// Where everything stands. The rectangles of panes are without their frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Areas {
    pub tree: Option<Rect>,
    pub transcript: Option<Rect>,
    /// The row above the transcript that holds what one should know about the Pod.
    pub notes: Option<Rect>,
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

/// Panes with their frames, which share their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outer {
    pub tree: Rect,
    pub transcript: Rect,
    pub composer: Rect,
}

impl Areas {
    /// The areas of this state's screen.
    pub fn of(app: &App) -> Self {
        let (width, height) = app.size;
        let screen = Rect::new(0, 0, width, height);
        let mut areas = if width >= BOXED.0 && height >= BOXED.1 {
            boxed(app, screen)
        } else {
            compact(app, screen)
        };
        areas.screen = screen;
        areas.bar = Rect { y: height.saturating_sub(1), height: height.min(1), ..screen };
        areas
    }

    /// Where a popup of so many rows stands, without its frame.
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

    /// A strip of so many rows right above the action bar, without its frame.
    pub fn above_bar(&self, rows: usize) -> Rect {
        let screen = self.screen;
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        let height = rows.min(screen.height.saturating_sub(3));
        let side = u16::from(self.outer.is_some());
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
    // The panes' lowest line is the composer's highest.
    let height = composer.y + 1;
    let tree = Rect { width: tree_width(screen.width), height, ..screen };
    let left = tree.width - 1;
    let transcript = Rect { x: left, width: screen.width - left, height, ..screen };
    let inner = |area: Rect| Rect {
        x: area.x + 1,
        y: area.y + 1,
        width: area.width - 2,
        height: area.height - 2,
    };
    let (notes, below) = split_notes(app, inner(transcript));
    Areas {
        tree: Some(inner(tree)),
        transcript: Some(below),
        notes,
        composer: inner(composer),
        outer: Some(Outer { tree, transcript, composer }),
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
    if app.focus == Focus::Tree {
        areas.tree = Some(pane);
    } else {
        let (notes, below) = split_notes(app, pane);
        (areas.notes, areas.transcript) = (notes, Some(below));
    }
    areas
}

fn tree_width(width: u16) -> u16 {
    (width * 3 / 10).clamp(30, 64)
}

/// The rows of queue and text: at most a third of the screen.
fn composer_rows(app: &App, width: u16, height: u16) -> u16 {
    let prompt = crate::pane::fit::columns(&crate::view::composer(app).prompt(width));
    let text = app.composer.draft().rows(width.saturating_sub(prompt).max(1));
    let queue = queue_rows(app.info());
    text.saturating_add(queue).clamp(1, (height / 3).max(1))
}

/// Takes the top row for notes when there are any and the pane can spare it.
fn split_notes(app: &App, area: Rect) -> (Option<Rect>, Rect) {
    let noted = crate::view::header::has_notes(app);
    if !noted || area.height < 4 {
        return (None, area);
    }
    let notes = Rect { height: 1, ..area };
    (Some(notes), Rect { y: area.y + 1, height: area.height - 1, ..area })
}
