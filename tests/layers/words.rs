//! Holds the vocabulary: no identifier of the project carries a private word for a thing that has
//! a plain one. Comments and texts are read by people; this test reads names.

use crate::{read, root, sources};
use std::collections::BTreeMap;

/// A private word, as a part of an identifier, and the word that stands in its place.
const PRIVATE: &[(&str, &str)] = &[
    ("ask", "approval request"),
    ("asks", "approval requests"),
    ("book", "lease table"),
    ("cool", "evict"),
    ("complaint", "diagnostic"),
    ("complaints", "diagnostics"),
    ("desk", "pod api, line runner"),
    ("door", "listener"),
    ("doors", "listeners"),
    ("forgone", "lease table"),
    ("halt", "interrupt"),
    ("halted", "interrupted"),
    ("heard", "on_run_event"),
    ("kin", "relations"),
    ("loan", "lease"),
    ("loans", "leases"),
    ("mail", "mailbox message"),
    ("mind", "session state"),
    ("news", "child events"),
    ("nobody", "no one is meant: name the thing"),
    ("nobodys", "discardable"),
    ("meeting", "handling"),
    ("partner", "addressee"),
    ("settle", "prepare_frame, find_visible_rows, apply_answer"),
    ("shed", "drop_pages"),
    ("somebody", "name the thing"),
    ("spot", "row position"),
    ("spots", "row positions"),
    ("stand", "anchor"),
    ("talk", "line client"),
    ("teller", "publisher"),
    ("told", "events"),
    ("upward", "child events, notify_parent"),
    ("warm", "cached"),
    ("wish", "host request"),
];

/// Identifiers that carry such a word for a reason.
const MEANT: &[(&str, &str)] = &[("Ask", "the action of a policy rule: allow, ask, deny")];

/// The text of a file without comments, strings and character literals.
fn names_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = literal(rest).unwrap_or_else(|| {
            out.push(c);
            c.len_utf8()
        });
        rest = &rest[skip..];
    }
    out
}

/// The string literals of a text.
pub fn strings(text: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(c) = rest.chars().next() {
        let length = literal(rest);
        let (piece, behind) = rest.split_at(length.unwrap_or(c.len_utf8()));
        if length.is_some() && !piece.starts_with(['/', '\'']) {
            found.push(piece);
        }
        rest = behind;
    }
    found
}

/// The length of the comment or literal that `text` begins with, if it begins with one.
fn literal(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 1 + hashes + 1;
            return Some(text[body..].find(&end).map_or(text.len(), |at| body + at + end.len()));
        }
    }
    if text.starts_with('"') {
        let mut escaped = false;
        for (at, c) in text.char_indices().skip(1) {
            match c {
                '"' if !escaped => return Some(at + 1),
                '\\' => escaped = !escaped,
                _ => escaped = false,
            }
        }
        return Some(text.len());
    }
    for quoted in ["'\"'", "'\\\"'"] {
        if text.starts_with(quoted) {
            return Some(quoted.len());
        }
    }
    None
}

/// The words of an identifier, in lower case: `LeaseTable` and `lease_table` have the same.
fn words(identifier: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in identifier.chars() {
        let begins = c.is_uppercase() && !before.is_uppercase() || before == '_';
        if c != '_' {
            if begins || words.is_empty() {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(c.to_lowercase());
            }
        }
        before = c;
    }
    words
}

#[test]
fn no_identifier_carries_a_private_word() {
    let private: BTreeMap<&str, &str> = PRIVATE.iter().copied().collect();
    let mut wrong: BTreeMap<String, String> = BTreeMap::new();
    for path in ["src", "ui", "tests", "benches"].iter().flat_map(|dir| sources(&root().join(dir)))
    {
        let text = names_only(&read(&path));
        let identifiers = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        for identifier in identifiers.filter(|word| !word.is_empty()) {
            if MEANT.iter().any(|(meant, _)| *meant == identifier) {
                continue;
            }
            for word in words(identifier) {
                if let Some(plain) = private.get(word.as_str()) {
                    let place = path.strip_prefix(root()).expect("a file of this project");
                    let text = format!("`{word}` ({plain}), first in {}", place.display());
                    wrong.entry(identifier.to_owned()).or_insert(text);
                }
            }
        }
    }
    let lines: Vec<String> = wrong.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert!(lines.is_empty(), "{} names:\n{}", lines.len(), lines.join("\n"));
}

#[test]
fn the_words_of_an_identifier_are_found_in_every_spelling() {
    for identifier in ["told_before", "ToldBefore", "TOLD_BEFORE", "toldBefore"] {
        assert_eq!(words(identifier), ["told", "before"], "{identifier}");
    }
}

#[test]
fn comments_and_texts_are_no_names() {
    let text =
        "let a = \"told \\\" told\"; // told\nlet b = r#\"told\"#; let c = '\"'; let told = 1;";
    assert_eq!(names_only(text).matches("told").count(), 1);
}
