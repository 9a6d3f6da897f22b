//! Text cut or filled to an exact number of columns.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;
use yoi::text::SafeText;

/// Columns that `text` takes on screen.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Columns as the screen counts them.
pub fn columns(text: &str) -> u16 {
    u16::try_from(width(text)).unwrap_or(u16::MAX)
}

/// `text` on one safe line, at most `max` columns wide; what was cut off is marked by `…`.
pub fn cut(text: &str, max: usize) -> String {
    let text = SafeText::line(text);
    if width(&text) <= max {
        return text.into_string();
    }
    if max == 0 {
        return String::new();
    }
    let mut kept = String::new();
    let mut used = 0;
    for cluster in text.graphemes(true) {
        let wide = width(cluster);
        if used + wide > max - 1 {
            break;
        }
        kept.push_str(cluster);
        used += wide;
    }
    kept + "…"
}

/// `text` cut or filled with spaces to exactly `columns`.
pub fn pad(text: &str, columns: usize) -> String {
    let mut text = cut(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text.extend(std::iter::repeat_n(' ', missing));
    text
}

/// As [`pad`], with the text at the right.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let mut filled = " ".repeat(columns.saturating_sub(width(&text)));
    filled.push_str(&text);
    filled
}

/// The safe form of words wrapped to lines of at most `columns`; longer words are broken.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split(' ') {
            push_word(&mut lines, &mut line, word, columns);
        }
        lines.push(line);
    }
    lines
}

fn push_word(lines: &mut Vec<String>, line: &mut String, word: &str, columns: usize) {
    let word = SafeText::line(word);
    if !line.is_empty() && width(line) + 1 + width(&word) > columns {
        lines.push(std::mem::take(line));
    }
    if !line.is_empty() {
        line.push(' ');
    }
    for cluster in word.graphemes(true) {
        if !line.is_empty() && width(line) + width(cluster) > columns {
            lines.push(std::mem::take(line));
        }
        line.push_str(cluster);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cluster_is_never_split() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("a👩‍💻b", 4), "a👩‍💻b");
        assert_eq!(cut("a👩‍💻bc", 4), "a👩‍💻…");
        assert_eq!(cut("abc", 0), "");
        assert_eq!(pad("é", 3), "é  ");
        assert_eq!(right("9", 3), "  9");
    }

    #[test]
    fn words_wrap_and_long_ones_break() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("a\nb", 3), ["a", "b"]);
    }

    proptest! {
        #[test]
        fn filled_text_has_exactly_its_width(text in ".{0,40}", columns in 0_usize..30) {
            prop_assert_eq!(width(&pad(&text, columns)), columns);
            prop_assert_eq!(width(&right(&text, columns)), columns);
        }

        #[test]
        fn no_wrapped_line_is_too_wide(text in "[a-z日é👩 ]{0,60}", columns in 2_usize..30) {
            for line in wrap(&text, columns) {
                prop_assert!(width(&line) <= columns);
            }
        }
    }
}
