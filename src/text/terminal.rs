//! What a person sees of output that draws over itself: a terminal without a right edge whose last
//! rows can change.

use crate::text::cleaner::{Cleaner, Sink};
use crate::text::hidden;
use icu_properties::CodePointMapData;
use icu_properties::props::{EastAsianWidth, GeneralCategory, GeneralCategoryGroup};
use std::collections::{BTreeMap, VecDeque};

/// The last rows, which output can go back to and change.
const ROWS: usize = 64;
/// Columns of a row, a multiple of [`TAB`]. A longer line goes on in the next row and stays one line.
const COLUMNS: usize = 4096;
/// How far to the right a cursor is moved without writing.
const RIGHT: usize = 79;
const TAB: usize = 8;
/// The further columns of a wide character or a tab.
const REST: char = '\0';

/// Takes text in pieces and gives back the lines that left the screen, which no later text can change. With the lines
/// that are still on the screen at the end they are what a person sees. Text without control characters passes
/// unchanged.
#[derive(Clone, Debug, Default)]
pub struct Terminal {
    cleaner: Cleaner,
    screen: Screen,
}

impl Terminal {
    /// The lines that became final with this piece.
    pub fn push(&mut self, piece: &str) -> String {
        let passed = if self.cleaner.is_in_text() { self.screen.pass(piece) } else { 0 };
        self.cleaner.push(&piece[passed..], &mut self.screen);
        std::mem::take(&mut self.screen.above)
    }

    /// The lines on the screen, which is empty afterwards. A sequence that is still open ends, too.
    pub fn finish(&mut self) -> String {
        let Self { mut screen, .. } = std::mem::take(self);
        // Rows that were erased below the cursor show nothing.
        while screen.row + 1 < screen.rows.len()
            && screen.rows.back().is_some_and(|row| row.cells.is_empty())
        {
            screen.rows.pop_back();
        }
        screen.move_out();
        screen.above
    }
}

#[derive(Clone, Debug, Default)]
struct Row {
    cells: Vec<char>,
    /// Characters without a width, behind the cell that they shape.
    marks: BTreeMap<usize, String>,
    mark_bytes: usize,
    /// Its line goes on in the next row.
    goes_on: bool,
}

impl Row {
    fn write(&self, out: &mut String) {
        for (at, c) in self.cells.iter().enumerate() {
            if *c != REST {
                out.push(*c);
            }
            if let Some(marks) = self.marks.get(&at) {
                out.push_str(marks);
            }
        }
    }

    /// Blanks the character that has a part in this column.
    fn clear(&mut self, column: usize) {
        let Some(before) = self.cells.get(..=column) else { return };
        let from = before.iter().rposition(|c| *c != REST).unwrap_or(0);
        let rest = self.cells[from + 1..].iter().take_while(|c| **c == REST).count();
        self.cells[from..=from + rest].fill(' ');
        if self.mark_bytes > 0 {
            let gone = (from..=from + rest).filter_map(|column| self.marks.remove(&column));
            self.mark_bytes -= gone.map(|marks| marks.len()).sum::<usize>();
        }
    }

    fn truncate(&mut self, column: usize) {
        self.clear(column);
        self.cells.truncate(column);
        let marks = self.marks.split_off(&column);
        self.mark_bytes -= marks.values().map(String::len).sum::<usize>();
        self.goes_on = false;
    }
}

#[derive(Clone, Debug)]
struct Screen {
    /// Never empty.
    rows: VecDeque<Row>,
    row: usize,
    column: usize,
    /// The rows that left the screen, as text.
    above: String,
}

impl Default for Screen {
    fn default() -> Self {
        Self { rows: VecDeque::from([Row::default()]), row: 0, column: 0, above: String::new() }
    }
}

impl Screen {
    /// Moves the first row out of the screen.
    fn scroll(&mut self) {
        let Some(row) = self.rows.pop_front() else { return };
        row.write(&mut self.above);
        if !row.goes_on {
            self.above.push('\n');
        }
        self.row = self.row.saturating_sub(1);
    }

    /// Moves all rows out of the screen. The line of the last one has not ended.
    fn move_out(&mut self) {
        let last = self.rows.pop_back();
        while !self.rows.is_empty() {
            self.scroll();
        }
        last.iter().for_each(|row| row.write(&mut self.above));
        *self = Self { above: std::mem::take(&mut self.above), ..Self::default() };
    }

    /// Writes lines without control characters above the screen at once, without drawing them, where the text behind them moves them out
    /// anyway. Returns how many bytes they have.
    fn pass(&mut self, text: &str) -> usize {
        let is_at_end =
            self.row + 1 == self.rows.len() && self.column == self.rows[self.row].cells.len();
        let moves = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        let plain = text.find(moves).unwrap_or(text.len());
        let moved_out = text[..plain].rmatch_indices('\n').nth(ROWS).filter(|_| is_at_end);
        let Some((end, _)) = moved_out else { return 0 };
        self.move_out();
        self.above.push_str(&text[..=end]);
        end + 1
    }

    fn next_row(&mut self) {
        (self.row, self.column) = (self.row + 1, 0);
        if self.row == self.rows.len() {
            self.rows.push_back(Row::default());
        }
        if self.rows.len() > ROWS {
            self.scroll();
        }
    }

    /// Fills the row up to the cursor; goes on in the next one where it has no room for so many columns.
    fn make_room(&mut self, width: usize) {
        if self.column + width > COLUMNS || self.rows[self.row].mark_bytes > COLUMNS {
            self.rows[self.row].goes_on = true;
            self.next_row();
        }
        let row = &mut self.rows[self.row];
        if row.cells.len() < self.column {
            row.cells.resize(self.column, ' ');
        }
    }

    fn put(&mut self, c: char, width: usize) {
        self.make_room(width);
        let (row, at) = (&mut self.rows[self.row], self.column);
        for column in at..at + width {
            if column < row.cells.len() {
                row.clear(column);
            } else {
                row.cells.push(REST);
            }
            row.cells[column] = REST;
        }
        row.cells[at] = c;
        self.column += width;
    }

    fn mark(&mut self, c: char) {
        self.make_room(0);
        let Some(before) = self.column.checked_sub(1) else { return self.put(c, 1) };
        let row = &mut self.rows[self.row];
        row.marks.entry(before).or_default().push(c);
        row.mark_bytes += c.len_utf8();
    }

    fn tab(&mut self) {
        let width = TAB - self.column % TAB;
        if self.column >= self.rows[self.row].cells.len() {
            self.put('\t', width);
        } else {
            self.column += width;
        }
    }

    fn right_to(&mut self, column: usize) {
        self.column = column.min(RIGHT.max(self.rows[self.row].cells.len()));
    }
}

impl Sink for Screen {
    fn run(&mut self, run: &str) {
        let row = &mut self.rows[self.row];
        if self.column == row.cells.len() && self.column + run.len() <= COLUMNS {
            row.cells.extend(run.chars());
            self.column += run.len();
        } else {
            run.chars().for_each(|c| self.put(c, 1));
        }
    }

    fn character(&mut self, c: char) {
        match c {
            '\n' | '\u{85}' => self.next_row(),
            '\r' => self.column = 0,
            '\u{8}' => self.column = self.column.saturating_sub(1),
            '\t' => self.tab(),
            // Sources of old programs hold form feeds, and a terminal draws nothing over with them.
            '\u{b}' | '\u{c}' => self.put(c, 1),
            c if c.is_control() => {}
            c => match width(c) {
                0 => self.mark(c),
                width => self.put(c, width),
            },
        }
    }

    fn sequence(&mut self, parameters: &str, last: char) {
        if !parameters.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';')) {
            return;
        }
        let number: Option<usize> =
            parameters.split(';').next().and_then(|number| number.parse().ok());
        let (number, by) = (number.unwrap_or(0), number.unwrap_or(1).max(1));
        match (last, number) {
            ('A' | 'F', _) => self.row = self.row.saturating_sub(by),
            ('B' | 'E', _) => self.row = self.row.saturating_add(by).min(self.rows.len() - 1),
            ('C', _) => self.right_to(self.column.saturating_add(by)),
            ('D', _) => self.column = self.column.saturating_sub(by),
            ('G' | '`', _) => self.right_to(by - 1),
            ('K', 0) => self.rows[self.row].truncate(self.column),
            ('K', 2) => self.rows[self.row].truncate(0),
            ('J', 0) => {
                self.rows.truncate(self.row + 1);
                self.rows[self.row].truncate(self.column);
            }
            // Another page: the one before stays, as in what a person can scroll back to.
            ('H' | 'f', _) | ('J', 2 | 3) => {
                self.row = self.rows.len() - 1;
                if !self.rows[self.row].cells.is_empty() {
                    self.next_row();
                }
                while self.rows.len() > 1 {
                    self.scroll();
                }
            }
            _ => {}
        }
        if matches!(last, 'E' | 'F' | 'H' | 'f') {
            self.column = 0;
        }
    }
}

/// The columns of a character.
fn width(c: char) -> usize {
    if c < '\u{300}' || c == '\u{fffd}' {
        return 1;
    }
    let is_mark = || {
        let category = CodePointMapData::<GeneralCategory>::new().get(c);
        GeneralCategoryGroup::Mark.contains(category)
    };
    match CodePointMapData::<EastAsianWidth>::new().get(c) {
        _ if hidden::is_removed(c) || hidden::is_joiner(c) || is_mark() => 0,
        EastAsianWidth::Wide | EastAsianWidth::Fullwidth => 2,
        _ => 1,
    }
}
