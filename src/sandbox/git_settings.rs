//! A file of git's settings, read as git reads it: comments, quotes, lines that go on.

use std::iter::Peekable;
use std::str::Chars;

/// One setting. Section and name are in small letters; a subsection is left out.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting {
    pub section: String,
    pub name: String,
    pub value: String,
}

/// The settings that have a value, in their order.
pub fn settings(text: &str) -> Vec<Setting> {
    let (mut text, mut section, mut found) = (text.chars().peekable(), String::new(), Vec::new());
    while let Some(next) = text.peek().copied() {
        match next {
            '[' => section = header(&mut text),
            '#' | ';' => skip_line(&mut text),
            next if next.is_ascii_alphabetic() => {
                let name = taken(&mut text, |next| next.is_ascii_alphanumeric() || next == '-');
                taken(&mut text, |next| next == ' ' || next == '\t');
                if text.next_if_eq(&'=').is_some() {
                    let (section, value) = (section.clone(), value(&mut text));
                    found.push(Setting { section, name: name.to_ascii_lowercase(), value });
                }
            }
            _ => drop(text.next()),
        }
    }
    found
}

fn header(text: &mut Peekable<Chars>) -> String {
    let header = taken(text, |next| next != ']' && next != '\n');
    let words = header.trim_start_matches('[').trim_start();
    let end = words.find([' ', '\t', '"', '.']).unwrap_or(words.len());
    text.next_if_eq(&']');
    words[..end].to_ascii_lowercase()
}

fn value(text: &mut Peekable<Chars>) -> String {
    let (mut value, mut quoted) = (String::new(), false);
    while let Some(next) = text.next() {
        match next {
            '\n' => break,
            '"' => quoted = !quoted,
            '#' | ';' if !quoted => {
                skip_line(text);
                break;
            }
            '\\' => match text.next() {
                Some('\n') | None => {}
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
            },
            other => value.push(other),
        }
    }
    value.trim().to_owned()
}

fn skip_line(text: &mut Peekable<Chars>) {
    taken(text, |next| next != '\n');
}

fn taken(text: &mut Peekable<Chars>, keep: impl Fn(char) -> bool) -> String {
    let mut taken = String::new();
    while let Some(next) = text.next_if(|next| keep(*next)) {
        taken.push(next);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_with_comments_quotes_and_lines_that_go_on() {
        let text = "[core] ; x\n\thooksPath = .githooks ; shared\n\tEditor = \"a # b\" # c\n\
                    # [user]\n[includeIf \"gitdir:/x\"] path = \\\n  more.conf\n[a.b]\nflag\nc=\\\"d\n";
        let found = settings(text);
        let found: Vec<[&str; 3]> = found
            .iter()
            .map(|setting| [&*setting.section, &*setting.name, &*setting.value])
            .collect();
        let expected = [
            ["core", "hookspath", ".githooks"],
            ["core", "editor", "a # b"],
            ["includeif", "path", "more.conf"],
            ["a", "c", "\"d"],
        ];
        assert_eq!(found, expected);
    }
}
