//! Languages of tags: HTML, XML.

use crate::screen::code::Class;
use crate::screen::code::lexer::{Lexer, Open};

/// Takes the text up to the next tag, comment or entity, and its beginning.
pub fn text(lexer: &mut Lexer<'_>) -> Open {
    let rest = lexer.rest();
    let plain = rest.find('<').unwrap_or(rest.len());
    if plain > 0 {
        lexer.take(plain, Class::Text);
        return Open::Nothing;
    }
    for (open, close) in lexer.language.block_comments {
        if rest.starts_with(open) {
            lexer.take(open.len(), Class::Comment);
            return Open::Comment { open, close: (*close).into(), depth: 1 };
        }
    }
    let marks = rest[1..].len() - rest[1..].trim_start_matches(['/', '?', '!']).len();
    lexer.take(1 + marks, Class::Text);
    let name = lexer.word_len(lexer.at);
    lexer.take(name, Class::Keyword);
    if name == 0 { Open::Nothing } else { Open::Tag }
}

/// Takes one token inside of a tag.
pub fn tag(lexer: &mut Lexer<'_>) -> Open {
    let rest = lexer.rest();
    let Some(c) = rest.chars().next() else { return Open::Tag };
    match c {
        '>' => {
            lexer.take(1, Class::Text);
            Open::Nothing
        }
        '"' | '\'' => {
            let end = rest[1..].find(c).map_or(rest.len(), |end| end + 2);
            lexer.take(end, Class::String);
            Open::Tag
        }
        _ => {
            let len = lexer.word_len(lexer.at).max(c.len_utf8());
            lexer.take(len, Class::Text);
            Open::Tag
        }
    }
}
