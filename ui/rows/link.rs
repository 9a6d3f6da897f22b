//! Links: addresses that a terminal may open, and where they stand in a text.

use crate::rows::{Break, Piece};
use crate::theme::Role;
use ratatui::style::Color;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;
use std::sync::Arc;

/// The beginnings of addresses that are links. Terminals open a link without a question, so an address of another
/// scheme, such as one that starts a program, stays text.
const SCHEMES: [&str; 4] = ["https://", "http://", "file://", "mailto:"];
/// The longest target in bytes. Terminals drop links that are a little longer than this.
const LONGEST: usize = 2000;
/// Characters that are not printed in a target as they are, besides spaces and what is not ASCII.
const ENCODED: &[u8] = b"\"<>\\^`{|}";
/// Characters that end an address in a text, besides spaces and closing brackets.
const ENDS: &str = "\"<>\\^`|“”‘’«»‹›、。，．：；！？（）「」『』【】〈〉《》〔〕";
/// Characters that belong to the sentence where an address would end with them.
const NOT_LAST: [char; 13] = ['.', ',', ':', ';', '!', '?', '\'', '*', '_', '~', '(', '[', '{'];

/// The target of a link: printable ASCII of at most [`LONGEST`] bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link(Arc<str>);

impl Link {
    /// Reads an address; `None` for one that no terminal should open: with another scheme, with a control character,
    /// or too long.
    pub fn parse(address: &str) -> Option<Self> {
        let scheme = SCHEMES.iter().find(|scheme| begins_with(address, scheme))?;
        let is_long = address.len() > LONGEST;
        if is_long || address.len() == scheme.len() || address.contains(char::is_control) {
            return None;
        }
        let mut target = String::with_capacity(address.len());
        for byte in address.bytes() {
            if byte.is_ascii_graphic() && !ENCODED.contains(&byte) {
                target.push(char::from(byte));
            } else {
                let _ = write!(target, "%{byte:02X}");
            }
        }
        (target.len() <= LONGEST).then(|| Self(target.into()))
    }

    /// The address, as a terminal gets it.
    pub fn target(&self) -> &str {
        &self.0
    }

    /// The mark of the cells that belong to this link. A cell has no room for an address; the mark takes the place of
    /// the colour of its underline, which is kept beside the link. Links to one target have one mark, so that a cell
    /// is painted again exactly when its target has changed.
    pub fn mark(&self) -> Color {
        let mut hasher = DefaultHasher::new();
        self.0.hash(&mut hasher);
        let [red, green, blue, ..] = hasher.finish().to_le_bytes();
        Color::Rgb(red, green, blue)
    }
}

/// The same text with each address in it as a piece of its own that links to itself. In prose it gets the look of
/// links; code and output keep their colours.
pub fn with_links(body: &[Piece], at: Break) -> Cow<'_, [Piece]> {
    let has_none = |piece: &Piece| piece.link.is_some() || next_address(&piece.text, 0).is_none();
    if body.iter().all(has_none) {
        return Cow::Borrowed(body);
    }
    let mut pieces = Vec::with_capacity(body.len() + 2);
    for piece in body {
        let mut from = 0;
        while piece.link.is_none()
            && let Some((range, link)) = next_address(&piece.text, from)
        {
            if from < range.start {
                pieces.push(piece.part(&piece.text[from..range.start]));
            }
            from = range.end;
            let mut address = Piece { link: Some(link), ..piece.part(&piece.text[range]) };
            if at == Break::Words && address.style.role == Role::Text {
                address.style.role = Role::Link;
            }
            pieces.push(address);
        }
        if from < piece.text.len() || from == 0 {
            pieces.push(piece.part(&piece.text[from..]));
        }
    }
    Cow::Owned(pieces)
}

/// The first address in a text that begins at this byte or later.
fn next_address(text: &str, mut from: usize) -> Option<(Range<usize>, Link)> {
    loop {
        let colons = text[from..].match_indices(':').map(|(at, _)| from + at);
        let start =
            colons.filter_map(|colon| start_of(text, colon)).find(|start| *start >= from)?;
        let end = start + length_of(&text[start..]);
        if let Some(link) = Link::parse(&text[start..end]) {
            return Some((start..end, link));
        }
        from = end.max(start + 1);
    }
}

/// Where the address begins whose scheme ends with this colon.
fn start_of(text: &str, colon: usize) -> Option<usize> {
    SCHEMES.iter().find_map(|scheme| {
        let start = colon.checked_sub(scheme.find(':')?)?;
        let in_a_word = text.get(..start)?.ends_with(|c: char| c.is_ascii_alphanumeric());
        (begins_with(text.get(start..)?, scheme) && !in_a_word).then_some(start)
    })
}

/// How many bytes the address takes that a text begins with. A closing bracket ends it unless it was opened in it.
fn length_of(text: &str) -> usize {
    let mut open = 0_usize;
    let ends = |c: char| match c {
        '(' | '[' | '{' => {
            open += 1;
            false
        }
        ')' | ']' | '}' if open == 0 => true,
        ')' | ']' | '}' => {
            open -= 1;
            false
        }
        c => c.is_whitespace() || c.is_control() || ENDS.contains(c),
    };
    let end = text.find(ends).unwrap_or(text.len());
    text[..end].trim_end_matches(NOT_LAST).len()
}

fn begins_with(text: &str, scheme: &str) -> bool {
    text.get(..scheme.len()).is_some_and(|head| head.eq_ignore_ascii_case(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The targets in a text of one piece.
    fn targets(text: &str) -> Vec<String> {
        let body = [Piece::new(text, Role::Text)];
        let pieces = with_links(&body, Break::Words);
        let whole: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
        assert_eq!(whole, text, "the text stays");
        let links = pieces.iter().filter_map(|piece| piece.link.as_ref());
        links.map(|link| link.target().to_owned()).collect()
    }

    #[test]
    fn an_address_is_found_without_the_sentence_around_it() {
        for (text, found) in [
            ("See https://example.org/a?b=c#d.", "https://example.org/a?b=c#d"),
            ("(http://example.org/x_(y)), then", "http://example.org/x_(y)"),
            ("[a](https://example.org/b)", "https://example.org/b"),
            ("\"file:///home/ann/a%20b\",", "file:///home/ann/a%20b"),
            ("write to mailto:ann@example.org!", "mailto:ann@example.org"),
            ("git+HTTPS://Example.org/a~b/", "HTTPS://Example.org/a~b/"),
            ("見https://example.org/a。次", "https://example.org/a"),
            ("https://example.org/日 b", "https://example.org/%E6%97%A5"),
            ("http://[::1]:80/x|sh", "http://[::1]:80/x"),
            ("'https://example.org/\\n'", "https://example.org/"),
        ] {
            assert_eq!(targets(text), [found], "{text}");
        }
        assert_eq!(
            targets("https://a.b https://c.d:8/\nhttp://e.f"),
            ["https://a.b", "https://c.d:8/", "http://e.f"]
        );
    }

    #[test]
    fn only_addresses_that_a_terminal_may_open_are_links() {
        for text in [
            "javascript:alert(1)",
            "ssh://example.org",
            "xhttp://example.org",
            "http:// and https://, mailto:",
            "a: b",
            "",
        ] {
            assert_eq!(targets(text), [""; 0], "{text}");
        }
        let of_length = |length: usize| format!("https://{}", "x".repeat(length - 8));
        assert_eq!(targets(&of_length(LONGEST)).len(), 1);
        assert_eq!(targets(&of_length(LONGEST + 1)), [""; 0]);
        assert_eq!(targets(&of_length(10_000)), [""; 0]);
        assert_eq!(Link::parse(&format!("https://{}", "é".repeat(400))), None, "6 bytes a letter");
    }

    #[test]
    fn no_target_can_end_its_sequence_or_begin_another() {
        for address in [
            "https://a/\u{1b}\\",
            "https://a/\u{7}",
            "https://a/\u{9c}",
            "https://a/\nb",
            "https://a/\u{0}",
        ] {
            assert_eq!(Link::parse(address), None, "{address:?}");
        }
        let link = Link::parse("https://a/ \"<>\\^`{|}\u{202e}é").expect("a link");
        assert_eq!(link.target(), "https://a/%20%22%3C%3E%5C%5E%60%7B%7C%7D%E2%80%AE%C3%A9");
    }

    #[test]
    fn prose_shows_its_links_and_code_keeps_its_colours() {
        let body = [Piece::new("a https://b.c d", Role::Text), Piece::new("http://e.f", Role::Dim)];
        let roles = |at| with_links(&body, at).iter().map(|p| p.style.role).collect::<Vec<_>>();
        assert_eq!(roles(Break::Words), [Role::Text, Role::Link, Role::Text, Role::Dim]);
        assert_eq!(roles(Break::Anywhere), [Role::Text, Role::Text, Role::Text, Role::Dim]);
    }
}
