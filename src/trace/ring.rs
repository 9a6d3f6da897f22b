//! The newest lines in memory. When a new line does not fit, the oldest ones are dropped.

use std::collections::VecDeque;

/// Lines of at most `limit` bytes together.
pub(super) struct Ring {
    lines: VecDeque<String>,
    bytes: usize,
    limit: usize,
}

impl Ring {
    pub(super) fn new(limit: usize) -> Self {
        Self { lines: VecDeque::new(), bytes: 0, limit }
    }

    /// Adds a line; one that is longer than the whole ring is cut at its end.
    pub(super) fn push(&mut self, mut line: String) {
        line.truncate(line.floor_char_boundary(self.limit));
        // A line is kept for long: no spare capacity.
        line.shrink_to_fit();
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > self.limit {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.bytes -= oldest.len();
        }
    }

    /// The lines that contain `filter` in any case, oldest first.
    pub(super) fn matching(&self, filter: &str) -> Vec<String> {
        let filter = filter.trim().to_lowercase();
        let wanted = |line: &&String| filter.is_empty() || line.to_lowercase().contains(&filter);
        self.lines.iter().filter(wanted).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_are_dropped_and_the_bytes_stay_bounded() {
        let mut ring = Ring::new(100);
        for number in 0..1_000 {
            ring.push(format!("line {number:05}"));
        }
        let lines = ring.matching("");
        assert_eq!(lines.len(), 10);
        assert_eq!((lines[0].as_str(), lines[9].as_str()), ("line 00990", "line 00999"));
        ring.push("ä".repeat(1_000));
        assert_eq!(ring.matching("").len(), 1);
        assert!(ring.bytes <= 100, "{}", ring.bytes);
    }

    #[test]
    fn a_filter_selects_lines_in_any_case() {
        let mut ring = Ring::new(1_000);
        ring.push("WARN pod=alice".into());
        ring.push("INFO pod=bob".into());
        assert_eq!(ring.matching(" warn "), ["WARN pod=alice"]);
        assert!(ring.matching("carol").is_empty());
    }
}
