//! Parts of a word that the parser reads differently from bash: substitutions between backticks, and arithmetic
//! that bash reads as a command substitution.

use std::iter::Peekable;
use std::str::Chars;

/// The commands between a pair of backticks in a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backticks {
    /// As it is written: no backslash in it.
    Plain(String),
    /// The text without one level of backslashes, which bash removes before it reads the commands.
    Unescaped(String),
    /// Behind an expansion whose end only the parser knows stand backticks that it may read differently.
    Unknown,
}

/// The texts between backticks in a word as it is written, without those in other expansions.
pub fn backticks(word: &str) -> Vec<Backticks> {
    let mut found = Vec::new();
    let mut chars = word.chars().peekable();
    let mut quoted = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => quoted = !quoted,
            '\'' if !quoted => drop(chars.by_ref().find(|c| *c == '\'')),
            '`' => found.push(between(&mut chars, quoted)),
            '$' | '<' | '>' if chars.peek().is_some_and(|next| "({[\'".contains(*next)) => {
                let rest: String = chars.collect();
                let mut texts = rest.split('`').skip(1).step_by(2);
                if texts.any(|text| text.contains('"')) || is_unsure(&rest) {
                    found.push(Backticks::Unknown);
                }
                break;
            }
            _ => {}
        }
    }
    found
}

/// Whether backslashes or quotes may hide a backtick of a text.
fn is_unsure(text: &str) -> bool {
    text.contains('`') && text.contains(['\\', '\''])
}

/// The text up to the next backtick without a backslash; quotes in it do not matter. `quoted` is whether the
/// backticks stand in double quotes.
fn between(chars: &mut Peekable<Chars<'_>>, quoted: bool) -> Backticks {
    let mut text = String::new();
    let mut escaped = false;
    while let Some(c) = chars.next().filter(|c| *c != '`') {
        if c != '\\' {
            text.push(c);
            continue;
        }
        escaped = true;
        match chars.next() {
            Some(c @ ('$' | '`' | '\\')) => text.push(c),
            Some('"') if quoted => text.push('"'),
            Some('\n') if quoted => {}
            Some(c) => text.extend(['\\', c]),
            None => text.push('\\'),
        }
    }
    if escaped { Backticks::Unescaped(text) } else { Backticks::Plain(text) }
}

/// Whether bash takes the text behind `$((` or `((` for arithmetic: the brackets that close it stand side by
/// side. Otherwise it runs the text as commands. False where quotes or a comment could hide a bracket.
pub fn is_arithmetic(text: &str) -> bool {
    let mut open = 0_usize;
    let mut before = '(';
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' => open += 1,
            ')' if open == 0 => return chars.next() == Some(')'),
            ')' => open -= 1,
            '\\' | '`' => return false,
            '#' if before.is_whitespace() => return false,
            '"' | '\'' => {
                let quoted = chars.as_str().split(c).next().unwrap_or_default().to_owned();
                if quoted.contains(['(', ')', '\\', '`']) {
                    return false;
                }
                chars.by_ref().find(|next| *next == c);
            }
            _ => {}
        }
        before = c;
    }
    false
}
