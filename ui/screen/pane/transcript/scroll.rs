//! The position of the view, and the rows in it. Every step goes through rows from block to block, so its
//! cost follows the distance and not the length of the transcript.

use crate::screen::pane::transcript::block::Kind;
use crate::screen::pane::transcript::pages::{Gap, Pos, Step, Walk};
use crate::screen::pane::transcript::rows::{Shape, Speaker};
use crate::screen::pane::transcript::{Scroll, Transcript};
use ratatui::layout::Rect;

/// The rows above a block.
mod lead;
/// The rows in view.
mod visible;

/// Wrapped text ends at this column.
const PROSE: u16 = 96;
/// Results stand at most so far from the left, so that they can be read with what they belong to.
const WIDEST: u16 = 100;

/// The position of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At the end; new rows keep it there.
    Tail,
    /// With this row at the top.
    At(RowPosition),
}

/// One row of one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowPosition {
    pub pos: Pos,
    /// Counted from the first row of its body; rows above the body are negative.
    pub row: i32,
    /// How many rows the body had. If that number changes with the width, the position is kept in
    /// proportion; 0 = not needed.
    pub of: usize,
}

/// A row in view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub pos: Pos,
    /// As in [`RowPosition`].
    pub row: i32,
    /// Set in the row that names the speaker.
    pub speaker: Option<Speaker>,
}

/// The columns of a pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The first column of text; the cursor and the marks stand before it.
    pub text: u16,
    /// The column behind wrapped text.
    pub wrap: u16,
    /// The column behind times and results, which are aligned on the right.
    pub right: u16,
}

impl Columns {
    /// The columns of a pane of this width.
    pub fn of(width: u16) -> Self {
        let (text, right) = match width {
            24.. => (2, width.min(WIDEST) - 1),
            8..24 => (1, width),
            _ => (0, width),
        };
        Self { text, wrap: right.min(PROSE), right }
    }

    /// How wide wrapped text is.
    pub fn cells(self) -> u16 {
        self.wrap - self.text
    }
}

/// The part of a pane that holds text: not the column of the cursor.
pub fn text_area(pane: Rect) -> Rect {
    let Columns { text, .. } = Columns::of(pane.width);
    Rect { x: pane.x + text, width: pane.width - text, ..pane }
}

impl Transcript {
    /// Stops following the tail until the next scroll; `false` if it did not follow it.
    pub fn hold_view(&mut self) -> bool {
        let Some(top) = self.seen.first().filter(|_| self.anchor == Anchor::Tail) else {
            return false;
        };
        let (pos, row) = (top.pos, top.row);
        self.anchor_at(RowPosition { pos, row, of: 0 });
        self.is_held = true;
        true
    }

    /// Updates the rows in view for a pane of this size, at this time in milliseconds.
    pub fn layout(&mut self, width: u16, height: u16, now_ms: u64) {
        self.now = now_ms;
        let resized = self.size != (width, height);
        self.size = (width, height);
        if std::mem::take(&mut self.unstamped) {
            self.stamp();
        }
        if resized && let Anchor::At(position) = &mut self.anchor {
            let before = (position.of, position.row);
            let pos = position.pos;
            let body = self.body(pos);
            if let (Anchor::At(position), (of @ 1.., row @ 1..)) = (&mut self.anchor, before) {
                let row = usize::try_from(row).unwrap_or(0) * body / of;
                position.row = i32::try_from(row).unwrap_or(i32::MAX);
            }
        }
        self.find_visible_rows();
    }

    /// Gives streaming blocks the time at which they were first shown.
    fn stamp(&mut self) {
        let now = self.now;
        let from = self.streams_from;
        let all = self.pages.newest_first();
        let recent = all.take_while(|(pos, _)| from.is_some_and(|from| *pos >= from));
        let recent: Vec<Pos> = recent.map(|(pos, _)| pos).collect();
        for pos in recent {
            let Some(block) = self.pages.get_mut(pos) else { continue };
            match &mut block.kind {
                Kind::Thought(thought) if block.live => {
                    thought.since.get_or_insert(now);
                }
                Kind::Tool(tool) => {
                    tool.since.get_or_insert(now);
                }
                Kind::Retry { retry, .. } => {
                    retry.since.get_or_insert(now);
                }
                _ => {}
            }
        }
    }

    /// Scrolls; at the end the tail is followed again.
    pub fn scroll(&mut self, by: Scroll) {
        self.load.failed = None;
        self.find.stop();
        self.stay_here();
        self.is_held = false;
        let page = i32::from(self.size.1).max(1);
        match by {
            Scroll::Lines(n) => self.scroll_rows(n),
            Scroll::HalfPage(n) => self.scroll_rows(n.saturating_mul((page / 2).max(1))),
            Scroll::Page(n) => self.scroll_rows(n.saturating_mul((page - 1).max(1))),
            Scroll::Turn(n) => self.scroll_turns(n),
            Scroll::Tail => {
                self.anchor = Anchor::Tail;
                self.cursor = None;
            }
            Scroll::Top => {
                self.find.seek_top();
                self.go_on_seeking();
            }
        }
        self.find_visible_rows();
        self.keep_cursor_in_view();
    }

    pub(super) fn scroll_rows(&mut self, by: i32) {
        let Some(top) = self.top() else { return };
        let rows = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
        let position = if by < 0 { self.up(top, rows) } else { self.down(top, rows) };
        self.anchor_at(position);
    }

    fn scroll_turns(&mut self, by: i32) {
        for _ in 0..by.unsigned_abs() {
            let Some(top) = self.top() else { return };
            // The message whose first row is at the top is the one that is being read.
            let mut pos = top.pos.head();
            let begun = top.row > self.first_row(pos) || top.pos.part > 0;
            if by < 0 && begun && self.is_turn(pos) {
                self.show_turn(pos);
                continue;
            }
            loop {
                match self.next_taking_rows(pos, by > 0, Walk::Blocks) {
                    Step::To(next) => pos = next,
                    Step::Missing(_) | Step::End if by > 0 => {
                        self.anchor = Anchor::Tail;
                        return;
                    }
                    Step::Missing(_) | Step::End => {
                        self.show_turn(pos);
                        return;
                    }
                }
                if self.is_turn(pos) {
                    self.show_turn(pos);
                    break;
                }
            }
            self.find_visible_rows();
        }
    }

    fn is_turn(&self, pos: Pos) -> bool {
        self.pages.get(pos).is_some_and(|block| matches!(block.kind, Kind::User { .. }))
    }

    fn show_turn(&mut self, pos: Pos) {
        self.anchor_at(RowPosition { pos, row: self.first_row(pos), of: 0 });
        self.cursor = Some(pos);
    }

    /// The row with the name of the speaker, else the first row of the block.
    fn first_row(&self, pos: Pos) -> i32 {
        -i32::from(self.lead(pos).speaker.is_some())
    }

    /// Keeps the top row in place when the end of its block has become a part.
    pub(super) fn follow_into_parts(&mut self, pos: Pos) {
        let Anchor::At(mut position) = self.anchor else { return };
        while position.pos.is_in(pos) && position.row > self.last_row(position.pos) {
            let Step::To(next) = self.next_shown(position.pos, true) else { break };
            if !next.is_in(pos) {
                break;
            }
            position.row -= self.last_row(position.pos) + 1;
            position.pos = next;
        }
        self.anchor_at(position);
    }

    pub(super) fn anchor_at(&mut self, mut position: RowPosition) {
        position.of = self.body(position.pos);
        self.anchor = Anchor::At(position);
    }

    /// Keeps a block at this row of the pane while it folds or unfolds.
    pub(super) fn hold(&mut self, pos: Pos, row: usize) {
        let start = RowPosition { pos, row: -self.lead(pos).len(), of: 0 };
        let position = self.up(start, row);
        self.anchor_at(position);
        self.cursor = Some(pos);
        self.find_visible_rows();
    }

    /// The row at the top of the view.
    fn top(&mut self) -> Option<RowPosition> {
        match self.anchor {
            Anchor::At(position) if self.pages.get(position.pos).is_some() => Some(position),
            _ => self.tail_top(),
        }
    }

    /// The row at the top when the last row is at the bottom.
    fn tail_top(&mut self) -> Option<RowPosition> {
        let last = self.last_shown()?;
        let row = self.last_row(last);
        let high = usize::from(self.size.1).saturating_sub(1);
        Some(self.up(RowPosition { pos: last, row, of: 0 }, high))
    }

    pub(super) fn last_row(&mut self, pos: Pos) -> i32 {
        i32::try_from(self.body(pos)).unwrap_or(i32::MAX) - 1
    }

    /// The last loaded block, or part of one, that takes rows.
    fn last_shown(&self) -> Option<Pos> {
        match self.end() {
            Step::To(pos) => Some(pos),
            Step::Missing(Gap::Part(pos)) => self.pages.loaded_at(pos, self.walk()),
            Step::Missing(_) | Step::End => None,
        }
    }

    /// The end of what is shown.
    fn end(&self) -> Step {
        let Some(last) = self.pages.last() else { return Step::End };
        let behind = Pos { block: last.block + 1, ..last };
        self.shown_before(behind)
    }

    /// The part that is missing at the tail that is followed.
    pub(super) fn tail_gap(&self) -> Option<Gap> {
        match self.end() {
            Step::Missing(gap @ Gap::Part(_)) if self.is_at_tail() => Some(gap),
            _ => None,
        }
    }

    /// The next block, or part of one, that takes rows.
    pub(super) fn next_shown(&self, from: Pos, forward: bool) -> Step {
        self.next_taking_rows(from, forward, self.walk())
    }

    fn shown_before(&self, pos: Pos) -> Step {
        self.next_taking_rows(pos, false, self.walk())
    }

    pub(super) fn next_taking_rows(&self, from: Pos, forward: bool, walk: Walk) -> Step {
        let mut at = from;
        loop {
            match self.pages.step(at, forward, walk) {
                Step::To(pos) if self.is_visited(pos, walk) => return Step::To(pos),
                Step::To(pos) => at = pos,
                other => return other,
            }
        }
    }

    /// Whether a walk stops at a block. A search also looks at blocks for which the row of another one stands.
    fn is_visited(&self, pos: Pos, walk: Walk) -> bool {
        match walk {
            Walk::Everything => self.pages.get(pos).is_some_and(|block| block.shown(self.detail)),
            Walk::Shown(..) | Walk::Blocks => self.takes_rows(pos),
        }
    }

    fn shape(&self, pos: Pos) -> Option<Shape> {
        Some(self.pages.get(pos)?.shape(self.detail, self.unfolded))
    }

    /// How many rows the body of a block has, its head included; they are drawn if need be.
    pub(super) fn body(&mut self, pos: Pos) -> usize {
        let Some(shape) = self.shape(pos) else { return 0 };
        let cells = Columns::of(self.size.0).cells();
        let (generation, detail) = (self.generation, self.detail);
        let Some(block) = self.pages.get_mut(pos) else { return 0 };
        if block.cache.is_none() {
            self.cached.push(pos);
        }
        block.draw(cells, generation, shape, detail);
        let rows = block.cache.as_ref().map_or(0, |cache| cache.rows.len());
        (rows + usize::from(shape.head)).max(1)
    }

    /// The row `rows` rows above, or the first row of all.
    pub(super) fn up(&mut self, from: RowPosition, mut rows: usize) -> RowPosition {
        let mut at = from;
        loop {
            let first = -self.lead(at.pos).len();
            let above = usize::try_from(at.row - first).unwrap_or(0);
            if rows <= above {
                at.row -= i32::try_from(rows).unwrap_or(0);
                return at;
            }
            let Step::To(pos) = self.next_shown(at.pos, false) else {
                return RowPosition { row: first, ..at };
            };
            rows -= above + 1;
            at = RowPosition { pos, row: self.last_row(pos), of: 0 };
        }
    }

    /// The row `rows` rows below, or the last row of all.
    pub(super) fn down(&mut self, from: RowPosition, mut rows: usize) -> RowPosition {
        let mut at = from;
        loop {
            let last = self.last_row(at.pos);
            let below = usize::try_from(last - at.row).unwrap_or(0);
            if rows <= below {
                at.row += i32::try_from(rows).unwrap_or(0);
                return at;
            }
            let Step::To(pos) = self.next_shown(at.pos, true) else {
                return RowPosition { row: last, ..at };
            };
            rows -= below + 1;
            at = RowPosition { pos, row: -self.lead(pos).len(), of: 0 };
        }
    }
}
