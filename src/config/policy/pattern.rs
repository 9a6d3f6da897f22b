//! Patterns of rules: `*` is any text, `?` one character, and `\\` before one of the two, or before itself, takes
//! its meaning away.

use crate::config::shell::Piece;
use std::iter::Peekable;
use std::str::Chars;

/// Whether a pattern must fit whatever the unknown parts of a text turn out to be, or may fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    Certain,
    Possible,
}

/// How much a wildcard may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    Anything,
    /// Neither `$` nor a backtick: some builtins run substitutions that stood in quotes.
    Words,
    /// Nothing that ends a command, begins another one, or redirects it.
    OneCommand,
}

impl Reach {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Anything => true,
            Self::Words => !matches!(c, '`' | '$'),
            Self::OneCommand => {
                !matches!(c, ';' | '&' | '|' | '\n' | '\r' | '<' | '>' | '(' | ')' | '`' | '$')
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Char(char),
    One,
    Any,
}

/// A pattern, read.
#[derive(Clone, Debug)]
pub struct Matcher(Vec<Element>);

impl Matcher {
    pub fn of(pattern: &str) -> Self {
        let mut elements = Vec::new();
        let mut chars = pattern.chars().peekable();
        while let Some(element) = next_element(&mut chars) {
            elements.push(element);
        }
        Self(elements)
    }

    /// The same for a text of words: any blanks between two words are one.
    pub fn of_words(pattern: &str) -> Self {
        let mut elements = Self::of(pattern.trim()).0;
        let blank = |element: &Element| matches!(element, Element::Char(' ' | '\t'));
        elements.dedup_by(|a, b| blank(a) && blank(b));
        Self(elements)
    }

    /// Whether it is `*` alone: everything.
    pub fn is_everything(&self) -> bool {
        self.0 == [Element::Any]
    }

    /// Whether it fits one text only.
    pub fn is_exact(&self) -> bool {
        self.0.iter().all(|element| matches!(element, Element::Char(_)))
    }

    /// The text in front of the first wildcard.
    pub fn beginning(&self) -> String {
        let chars = self.0.iter().map_while(|element| match element {
            Element::Char(c) => Some(*c),
            Element::One | Element::Any => None,
        });
        chars.collect()
    }

    /// Whether it fits a whole text.
    pub fn fits(&self, text: &str, reach: Reach) -> bool {
        self.fits_pieces(text.chars().map(Piece::Char), Fit::Certain, reach)
    }

    /// The same for text of which parts may be unknown.
    pub fn fits_pieces(
        &self,
        text: impl IntoIterator<Item = Piece>,
        fit: Fit,
        reach: Reach,
    ) -> bool {
        if self.is_everything() {
            return true;
        }
        let mut places = vec![0];
        self.skip_any(&mut places);
        for piece in text {
            places = self.next(&places, piece, fit, reach);
            if places.is_empty() {
                return false;
            }
        }
        places.last() == Some(&self.0.len())
    }

    /// The places of the pattern that can follow a piece of text, in order.
    fn next(&self, places: &[usize], piece: Piece, fit: Fit, reach: Reach) -> Vec<usize> {
        let open =
            |piece| fit == Fit::Possible && matches!(piece, Piece::Unknown | Piece::Expands(_));
        if let (true, Some(first)) = (open(piece), places.first()) {
            return (*first..=self.0.len()).collect();
        }
        let mut next = Vec::with_capacity(places.len());
        for place in places {
            match (self.0.get(*place), piece) {
                (Some(Element::Any), Piece::Char(c)) if !reach.takes(c) => {}
                (Some(Element::Any), _) => next.push(*place),
                (Some(Element::One), Piece::Char(c)) if reach.takes(c) => next.push(place + 1),
                (Some(Element::Char(p)), Piece::Char(c)) if same(*p, c, fit, reach) => {
                    next.push(place + 1);
                }
                (Some(Element::Char(p)), Piece::Expands(c)) if *p == c => next.push(place + 1),
                (Some(Element::Char(' ' | '\t')), Piece::Blank) => next.push(place + 1),
                (Some(Element::One), Piece::Blank) if fit == Fit::Possible => next.push(place + 1),
                (Some(Element::Char(_) | Element::One) | None, _) => {}
            }
        }
        self.skip_any(&mut next);
        next
    }

    /// Adds the places behind wildcards that stand for no text, in order.
    fn skip_any(&self, places: &mut Vec<usize>) {
        let mut all: Vec<usize> = Vec::with_capacity(places.len() + 1);
        for place in places.drain(..) {
            let mut place = place;
            while all.last().is_none_or(|last| *last < place) {
                all.push(place);
                place += usize::from(self.0.get(place) == Some(&Element::Any));
            }
        }
        *places = all;
    }
}

/// Whether a character of a pattern is this one. A blank in a pattern is the one between two words, and for a rule
/// that refuses also one inside a word.
fn same(pattern: char, text: char, fit: Fit, reach: Reach) -> bool {
    match (pattern, reach, fit) {
        (' ', Reach::Words, Fit::Certain) => false,
        (' ', Reach::Anything, Fit::Possible) => text.is_whitespace(),
        _ => pattern == text,
    }
}

fn next_element(chars: &mut Peekable<Chars<'_>>) -> Option<Element> {
    Some(match chars.next()? {
        '*' => Element::Any,
        '?' => Element::One,
        '\\' => Element::Char(chars.next_if(|c| matches!(c, '*' | '?' | '\\')).unwrap_or('\\')),
        c => Element::Char(c),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The obvious way, for comparison.
    fn plainly(pattern: &[char], text: &[char], reach: Reach) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, rest) => rest.is_none(),
            (Some((&'*', rest)), text_rest) => {
                plainly(rest, text, reach)
                    || text_rest
                        .is_some_and(|(c, left)| reach.takes(*c) && plainly(pattern, left, reach))
            }
            (Some(_), None) => false,
            (Some((&'?', rest)), Some((c, left))) => reach.takes(*c) && plainly(rest, left, reach),
            (Some((p, rest)), Some((c, left))) => p == c && plainly(rest, left, reach),
        }
    }

    /// `U` is an unknown part.
    fn pieces(text: &str) -> Vec<Piece> {
        let piece = |c| if c == 'U' { Piece::Unknown } else { Piece::Char(c) };
        text.chars().map(piece).collect()
    }

    proptest! {
        #[test]
        fn wildcards_match_as_the_obvious_way_does(
            pattern in "[ab;*?]{0,8}", text in "[ab;]{0,10}", narrow in any::<bool>(),
        ) {
            let reach = if narrow { Reach::OneCommand } else { Reach::Anything };
            let of = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = pattern == "*" || plainly(&of(&pattern), &of(&text), reach);
            prop_assert_eq!(Matcher::of(&pattern).fits(&text, reach), expected);
        }

        #[test]
        fn what_certainly_fits_fits_every_value_and_what_fits_a_value_possibly_fits(
            pattern in "[ab*?]{0,6}", text in "[abU]{0,5}", value in "[ab]{0,4}",
        ) {
            let matcher = Matcher::of(&pattern);
            let of = |fit| matcher.fits_pieces(pieces(&text), fit, Reach::Anything);
            let fits = matcher.fits(&text.replace('U', &value), Reach::Anything);
            prop_assert!(!of(Fit::Certain) || fits, "allowed, but not for this value");
            prop_assert!(!fits || of(Fit::Possible), "denied, but not before its value is known");
        }
    }
}
