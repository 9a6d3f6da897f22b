//! How many cells a text takes, as the terminal draws it: one grapheme cluster after the other.

use crate::rows::Piece;
use ratatui::buffer::CellWidth;
use unicode_segmentation::UnicodeSegmentation as _;

/// The grapheme clusters of a text with their byte offsets.
pub fn clusters(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let bytes = rest.as_bytes();
        // Between two ASCII bytes there is always a border, the cleaned text having no returns.
        let plain = bytes[0].is_ascii() && bytes.get(1).is_none_or(u8::is_ascii);
        let cluster = if plain { &rest[..1] } else { rest.graphemes(true).next()? };
        let start = at;
        at += cluster.len();
        Some((start, cluster))
    })
}

/// Cells that one cluster takes; none when it cannot be drawn.
pub fn cells(cluster: &str) -> usize {
    if cluster.contains(char::is_control) { 0 } else { usize::from(cluster.cell_width()) }
}

/// Whether a text is printable ASCII: each byte takes one cell.
pub fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

/// Cells that a text takes on one line.
pub fn width(text: &str) -> usize {
    if is_plain(text) {
        return text.len();
    }
    clusters(text).map(|(_, cluster)| cells(cluster)).sum()
}

/// Cells that a text takes, as a coordinate of the screen.
pub fn columns(text: &str) -> u16 {
    u16::try_from(width(text)).unwrap_or(u16::MAX)
}

/// Cells that a row takes.
pub fn row_width(row: &[Piece]) -> usize {
    row.iter().map(|piece| width(&piece.text)).sum()
}

/// The longest beginning of a text that fits, and the cells it takes.
pub fn head_of(text: &str, cells_at_most: usize) -> (&str, usize) {
    let mut used = 0;
    for (at, cluster) in clusters(text) {
        let wide = cells(cluster);
        if used + wide > cells_at_most {
            return (&text[..at], used);
        }
        used += wide;
    }
    (text, used)
}

/// The longest end of a text that fits.
pub fn tail_of(text: &str, cells_at_most: usize) -> &str {
    let mut excess = width(text).saturating_sub(cells_at_most);
    for (at, cluster) in clusters(text) {
        if excess == 0 {
            return &text[at..];
        }
        excess = excess.saturating_sub(cells(cluster));
    }
    ""
}
