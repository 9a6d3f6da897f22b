//! The messages that no run has taken yet, below the end of a transcript.

use crate::rows::{Piece, paint, row_width, shorten};
use crate::screen::pane::transcript::rows::named;
use crate::screen::pane::transcript::scroll::Columns;
use crate::theme::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::widgets::Widget;
use yoi::protocol::{PodInfo, Segment, State};
use yoi::text::SafeText;

/// How many messages are shown.
const SHOWN: usize = 3;
/// How many characters of a message are read for each cell of its row: several characters may share a cell, and some are
/// not shown.
const CHARACTERS: usize = 4;

/// The queue of a Pod as a widget.
pub struct Queue<'a> {
    pub info: &'a PodInfo,
    pub theme: &'a Theme,
}

/// How many rows the queue of a Pod takes.
pub fn queue_rows(info: &PodInfo) -> u16 {
    u16::try_from(info.queue.len().min(SHOWN)).unwrap_or(0)
}

impl Queue<'_> {
    /// When the message with this number enters a run.
    fn enters(&self, number: usize) -> String {
        match (self.info.queue[number].enters, self.info.state) {
            (true, State::NeedsYou) => "enters after the request".to_owned(),
            (true, _) => "enters at the next tool".to_owned(),
            (false, _) => {
                let before = self.info.queue.iter().take(number).filter(|before| !before.enters);
                format!("queued {}", before.count() + 1)
            }
        }
    }
}

/// The beginning of a message in one line, which fills at least this number of cells. The whole message is not read,
/// because it may have megabytes and is drawn with each frame.
fn beginning(input: &[Segment], cells: usize) -> String {
    let mut words = String::new();
    for segment in input {
        let flat = segment.flat();
        let room = (CHARACTERS * cells).saturating_sub(words.chars().count());
        words.extend(flat.chars().take(room));
    }
    words.replace("\r\n", " ").replace('\n', " ")
}

impl Widget for Queue<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        let Columns { text, right, .. } = Columns::of(area.width);
        let cells = usize::from(right - text);
        let more = self.info.queue.len().saturating_sub(usize::from(area.height));
        for (number, (queued, y)) in
            self.info.queue.iter().zip(area.top()..area.bottom()).enumerate()
        {
            let enters = match y + 1 == area.bottom() && more > 0 {
                true => format!("{} · {more} more", self.enters(number)),
                false => self.enters(number),
            };
            let enters = [Piece::new(enters, Role::Dim)];
            let words = SafeText::line(beginning(&queued.input, cells)).into_string();
            let room = cells.saturating_sub(row_width(&enters) + 2);
            let mut row = shorten(&named("you", &words, Role::Text), room);
            let gap = cells.saturating_sub(row_width(&row) + row_width(&enters));
            row.push(Piece::new(" ".repeat(gap), Role::Text));
            row.extend(enters);
            paint(&row, self.theme, (area.x + text, y), area.x + right, buf);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_beginning_of_a_message_of_any_length() {
        let text = |content: &str| Segment::Text { content: content.into() };
        let file = Segment::FileRef { path: "a.rs".into() };
        assert_eq!(beginning(&[text("see\r\n"), file, text("\nnow")], 10), "see @a.rs now");
        let long = [text(&"日本".repeat(1 << 20)), text("behind it")];
        assert_eq!(beginning(&long, 10), "日本".repeat(20));
    }
}
