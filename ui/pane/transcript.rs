//! What was said and done in one Pod: a list of blocks of which only the visible ones cost anything,
//! loaded page by page from the tail, and live at its end.

use crate::theme::Theme;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use yoi::protocol::EntryId;
use yoi::protocol::event::{Event, InFlight, Line};

/// One Pod's transcript.
#[derive(Default)]
pub struct Transcript {
    asked: bool,
}

/// How far to scroll, and which way: negative is towards the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scroll {
    Lines(i32),
    HalfPage(i32),
    Page(i32),
    /// Between what the person said.
    Turn(i32),
    Top,
    Tail,
}

/// How much of each block is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Detail {
    /// One line a block.
    Overview,
    #[default]
    Normal,
    /// Everything, unfolded.
    Full,
}

#[allow(unused_variables, clippy::unused_self, clippy::needless_pass_by_value)]
impl Transcript {
    pub fn new() -> Self {
        Self::default()
    }
    /// The page to ask for now, if any: `Some(before)`.
    pub fn wants(&self) -> Option<Option<EntryId>> {
        (!self.asked).then_some(None)
    }
    pub fn asked(&mut self) {
        self.asked = true;
    }
    pub fn page(
        &mut self,
        entries: Vec<Line>,
        before: Option<EntryId>,
        in_flight: Vec<InFlight>,
        seq: u64,
    ) {
    }
    pub fn page_failed(&mut self, why: String) {}
    pub fn apply(&mut self, seq: Option<u64>, event: &Event) {}
    pub fn layout(&mut self, width: u16, height: u16, now_ms: u64) {}
    pub fn scroll(&mut self, by: Scroll) {}
    /// One step of the cursor: to the next block that is in view, or a line through a longer one.
    pub fn step(&mut self, by: i32) {}
    pub fn move_block(&mut self, by: i32) {}
    pub fn toggle_fold(&mut self) {}
    pub fn set_folded(&mut self, folded: bool) {}
    pub fn toggle_fold_all(&mut self) {}
    pub fn set_detail(&mut self, detail: Detail) {}
    pub fn detail(&self) -> Detail {
        Detail::Normal
    }
    /// Puts the cursor on the block at this row of the pane; `false` when there is none.
    pub fn focus_at(&mut self, row: u16) -> bool {
        false
    }
    /// The log entry under the cursor.
    pub fn entry(&self) -> Option<EntryId> {
        None
    }
    /// The block under the cursor as text.
    pub fn yank(&self) -> Option<String> {
        None
    }
    pub fn yank_code(&self) -> Option<String> {
        None
    }
    pub fn yank_last_answer(&self) -> Option<String> {
        None
    }
    pub fn find(&mut self, needle: &str) {}
    pub fn find_next(&mut self, by: i32) {}
    pub fn new_below(&self) -> usize {
        0
    }
    pub fn is_at_tail(&self) -> bool {
        true
    }
    pub fn wakes_at(&self, now_ms: u64) -> Option<u64> {
        None
    }
}

/// A transcript as a widget; [`Transcript::layout`] with the same size goes before it.
pub struct View<'a> {
    pub transcript: &'a Transcript,
    pub theme: &'a Theme,
    pub focused: bool,
    /// The Pod's name, over what it says.
    pub pod: &'a str,
}

impl Widget for View<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        buf.set_style(area, self.theme.text);
        let _ = (self.transcript, self.focused, self.pod);
    }
}
