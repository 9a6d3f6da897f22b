//! Where words begin and end while a text is edited: at the borders of Unicode (UAX 29), which part scripts
//! that are written without spaces, and around punctuation.

use unicode_segmentation::UnicodeSegmentation as _;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Punctuation,
    Word,
}

impl Kind {
    /// The kind of a cluster is that of its first character.
    fn of(cluster: &str) -> Self {
        match cluster.chars().next() {
            Some(c) if c.is_whitespace() => Self::Space,
            Some(c) if c.is_ascii_punctuation() && c != '_' => Self::Punctuation,
            _ => Self::Word,
        }
    }
}

/// The length in bytes of the last word of a text, with the spaces behind it.
pub fn last_word(text: &str) -> usize {
    let starts = starts(text);
    let word = starts.iter().rev().find(|(_, kind)| *kind != Kind::Space);
    text.len() - word.map_or(0, |(at, _)| *at)
}

/// The length in bytes of the first word of a text, with the spaces before it.
pub fn first_word(text: &str) -> usize {
    let mut starts = starts(text).into_iter().skip_while(|(_, kind)| *kind == Kind::Space);
    starts.nth(1).map_or(text.len(), |(at, _)| at)
}

/// How many bytes stand before the second word of a text.
pub fn to_next_word(text: &str) -> usize {
    let mut starts = starts(text).into_iter().skip(1).filter(|(_, kind)| *kind != Kind::Space);
    starts.next().map_or(text.len(), |(at, _)| at)
}

/// Where each word, run of punctuation and run of spaces begins, in bytes.
fn starts(text: &str) -> Vec<(usize, Kind)> {
    let mut borders = text.split_word_bound_indices().map(|(at, _)| at).peekable();
    let mut starts: Vec<(usize, Kind)> = Vec::new();
    for (at, cluster) in text.grapheme_indices(true) {
        while borders.next_if(|border| *border < at).is_some() {}
        let kind = Kind::of(cluster);
        let is_border = kind == Kind::Word && borders.peek() == Some(&at);
        if is_border || starts.last().is_none_or(|(_, last)| *last != kind) {
            starts.push((at, kind));
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_parted_from_the_text_before() {
        let cases = [
            ("one two  ", "two  "),
            ("main.rs", "rs"),
            ("main.", "."),
            ("a --", "--"),
            ("snake_case", "snake_case"),
            ("don't", "t"),
            ("修复这个测试并且提交", "交"),
            ("テストを直してください", "い"),
            ("cafe\u{301}", "cafe\u{301}"),
            ("ok 👩‍💻", "👩‍💻"),
            ("  ", "  "),
            ("", ""),
        ];
        for (text, word) in cases {
            assert_eq!(&text[text.len() - last_word(text)..], word, "{text}");
        }
    }

    #[test]
    fn the_first_word_is_parted_from_the_text_behind() {
        for (text, word, next) in [
            ("one two", "one", "one "),
            ("  one two", "  one", "  "),
            ("main.rs", "main", "main"),
            ("修复 x", "修", "修"),
            ("one", "one", "one"),
            ("", "", ""),
        ] {
            assert_eq!(&text[..first_word(text)], word, "{text}");
            assert_eq!(&text[..to_next_word(text)], next, "{text}");
        }
    }
}
