//! Corrects the cells of a finished frame: no cell hides a character, a wide character whose second half
//! was painted over is removed, and a cell that a wide character covered is written again.

use ratatui::buffer::{Buffer, Cell, CellWidth};
use ratatui::style::Modifier;
use yoi::text::SafeText;

/// Corrects every cell of a frame that is otherwise finished.
pub fn fix_wide_cells(buffer: &mut Buffer) {
    let columns = usize::from(buffer.area.width.max(1));
    for row in buffer.content.chunks_mut(columns) {
        let mut x = 0;
        while x < row.len() {
            x += if is_plain(row[x].symbol()) { 1 } else { fix(&mut row[x..]) };
        }
    }
}

/// A quick test whether a symbol is safe and one cell wide: printable ASCII and box drawing
/// (U+2500 to U+257F), which fill most of a screen.
fn is_plain(symbol: &str) -> bool {
    matches!(symbol.as_bytes(), [b' '..=b'~'] | [0xe2, 0x94 | 0x95, _])
}

/// Corrects the first of these cells and those that it covers, and returns their number.
fn fix(cells: &mut [Cell]) -> usize {
    make_safe(&mut cells[0]);
    let wide = usize::from(cells[0].symbol().cell_width().max(1));
    let is_free = |covered: &[Cell]| covered.iter().all(|cell| cell.symbol() == " ");
    match cells.get_mut(1..wide) {
        Some(covered) if is_free(covered) => {
            // Never seen; but they differ from every cell that may follow them there.
            covered.iter_mut().for_each(|cell| cell.modifier.insert(Modifier::HIDDEN));
            wide
        }
        _ => {
            cells[0].set_symbol(" ");
            1
        }
    }
}

/// All text is made safe before it is painted; a symbol that was not is replaced here.
fn make_safe(cell: &mut Cell) {
    if cell.symbol().is_ascii() && !cell.symbol().contains(|c: char| c.is_control()) {
        return;
    }
    let safe = SafeText::line(cell.symbol());
    if safe != cell.symbol() {
        cell.set_symbol("\u{fffd}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    fn painted(texts: &[(u16, &str)]) -> Buffer {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 6, 1));
        for (x, text) in texts {
            buffer.set_string(*x, 0, text, Style::new());
        }
        fix_wide_cells(&mut buffer);
        buffer
    }

    #[test]
    fn a_cell_that_a_wide_character_covered_is_written_again() {
        let (before, after) = (painted(&[(0, "日本")]), painted(&[(0, "a b")]));
        let written: Vec<u16> = before.diff(&after).iter().map(|(x, _, _)| *x).collect();
        assert_eq!(written, [0, 1, 2, 3]);
    }

    #[test]
    fn a_cell_that_would_hide_a_character_shows_that_there_is_one() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 5, 1));
        for (x, symbol) in ["a\u{202e}", "\u{1b}[2K", "é", "👩‍💻"].into_iter().enumerate() {
            buffer[(u16::try_from(x).unwrap(), 0)].set_symbol(symbol);
        }
        fix_wide_cells(&mut buffer);
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols, ["\u{fffd}", "\u{fffd}", "é", "👩‍💻", " "]);
    }

    #[test]
    fn a_wide_character_gives_way_to_what_is_painted_over_its_second_half() {
        let buffer = painted(&[(0, "日本"), (1, "│x")]);
        let symbols: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
        assert_eq!(symbols, [" ", "│", "x", " ", " ", " "]);
    }
}
