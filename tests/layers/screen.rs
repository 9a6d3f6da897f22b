//! Holds two rules of the screen: its sentences ask the keymap for the names of keys, and few files write to
//! the standard streams.

use crate::words::strings;
use crate::{PROGRAM, read, root, sources, without_tests};
use std::path::Path;

/// Files that name keys for a reason.
const NAMES_KEYS: [&str; 4] = [
    // They make the names.
    "ui/screen/keys.rs",
    // Keys that other programs keep for themselves.
    "ui/cli/doctor/terminal.rs",
    // Keys from before the screen, which no keymap changes.
    "ui/screen/run/two_keys.rs",
    "ui/screen/keys/swallowed.rs",
];
/// Files that write to the standard streams: lines, messages of MCP, answers that stream, frames.
const WRITES: [&str; 4] =
    ["ui/console.rs", "ui/cli/mcp.rs", "ui/headless/output.rs", "ui/screen/run/terminal.rs"];

/// Words that name a key. A letter can be a word, so letters are looked for by
/// `ui/screen/app/tests/rebound.rs`.
const KEYS: [&str; 12] = [
    "Enter",
    "Esc",
    "Space",
    "Tab",
    "Backspace",
    "Delete",
    "PageUp",
    "PageDown",
    "Home",
    "End",
    "F1",
    "F2",
];

/// Names in a sentence that stand for keys: `Enter`, `Ctrl+X`.
fn keys_named(sentence: &str) -> Vec<&str> {
    let words = sentence.split(|c: char| !c.is_alphanumeric() && c != '+');
    let chord = |word: &str| ["Ctrl+", "Alt+", "Shift+"].iter().any(|with| word.starts_with(with));
    words.filter(|word| KEYS.contains(word) || chord(word)).collect()
}

/// Where a text names one of the standard streams, or prints.
fn stream_named(code: &str) -> Option<&'static str> {
    let streams = ["print!(", "println!(", "stdout()", "stderr()"];
    streams.into_iter().find(|stream| code.contains(stream))
}

/// The shipped text of each file of the screen, but of those excepted.
fn shipped_texts(except: &[&str]) -> Vec<(String, String)> {
    let inside = |path: &Path| {
        path.strip_prefix(root()).expect("a file of this project").display().to_string()
    };
    let files = sources(&root().join(PROGRAM.dir)).into_iter();
    let files = files.map(|path| (inside(&path), without_tests(&path, read(&path))));
    files.filter(|(name, _)| !except.contains(&name.as_str())).collect()
}

#[test]
fn no_sentence_spells_a_key() {
    let mut wrong = Vec::new();
    for (file, text) in shipped_texts(&NAMES_KEYS) {
        for sentence in strings(&text) {
            let named = keys_named(sentence);
            if !named.is_empty() {
                wrong.push(format!("{file}: {named:?} in {sentence}"));
            }
        }
    }
    let way_out =
        "A person can bind every key anew: ask `Keymap::name`, or write `{place action}`.";
    assert!(wrong.is_empty(), "{}\n{way_out}", wrong.join("\n"));
}

#[test]
fn few_files_write_to_the_standard_streams() {
    let mut wrong = Vec::new();
    for (file, text) in shipped_texts(&WRITES) {
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        wrong.extend(stream_named(&code).map(|stream| format!("{file}: {stream}")));
    }
    assert!(
        wrong.is_empty(),
        "{}\nWrite through `console`, which makes text safe.",
        wrong.join("\n")
    );
}

#[test]
fn a_spelled_key_and_a_direct_print_are_seen() {
    let code = r#"// "Esc"
        let a = "press Enter"; let b = format!("{key} or Ctrl+X v"); KeyCode::Tab"#;
    let found: Vec<&str> = strings(code).into_iter().flat_map(keys_named).collect();
    assert_eq!(found, ["Enter", "Ctrl+X"]);
    assert_eq!(stream_named("std::io::stdout().flush()"), Some("stdout()"));
    assert_eq!(stream_named("eprintln!(\"x\")"), Some("println!("));
    assert_eq!(stream_named("console::out(\"x\")"), None);
}
