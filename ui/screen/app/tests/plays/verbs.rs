//! The verbs in the texts: each line that a text gives is one of those that are given on the command line over a
//! real host.

use super::*;
use crate::screen::app::tests::ways::lines_played;
use crate::verb::{Way, find};

/// What stands for an open place of a line when it is played.
const FILLED: &[(&str, &str)] = &[
    ("rm <pod>", "rm docs"),
    ("<pod>", "bob"),
    ("[words]", "no such words"),
    ("<n>", "99"),
    ("[n]", "{request}"),
    ("theme <name>", "theme day"),
    ("rehearsal:<file>", "rehearsal:{dir}/script.toml"),
    (" [why]", " not now"),
    (" [pod|tree [<tool>:<pattern>]]", " tree"),
];

/// Lines that other tests play, with where.
const ELSEWHERE: &[(&str, &str)] = &[
    ("model ollama/<name>", "connecting: a server of this machine is found by the next message"),
    ("model lmstudio/<name>", "as the line before it, with another address"),
    ("model mine/<name>", "connecting: the lines of the no-model answer connect a server"),
    ("stop tester", "players: the Pod of the tour is stopped and restored"),
    ("restore tester", "as the line before it"),
    ("stop", "players: the Pod of the tour is stopped and restored"),
    ("restore", "players: the Pod of the tour is stopped and restored"),
    (
        "allow",
        "approvals: a typed decision without a number is for the only request that was shown",
    ),
];

/// The verbs of a text for Markdown: code that begins with a colon.
fn lines_of(text: &str) -> Vec<String> {
    let outside: Vec<&str> = text.split("```").step_by(2).collect();
    let outside = outside.join("\n");
    let rows = outside.lines().filter(|line| !line.starts_with("| `:"));
    let spans = rows.flat_map(|line| line.split('`').skip(1).step_by(2));
    let verbs = spans.filter_map(|span| span.strip_prefix(':')).filter(|verb| !verb.is_empty());
    verbs.map(str::to_owned).collect()
}

#[test]
fn every_verb_line_of_the_texts_is_given_on_the_command_line_in_a_test() {
    let lines: Vec<String> = TEXTS.iter().flat_map(|(_, text)| lines_of(text)).collect();
    let filled = |line: &str| {
        FILLED.iter().fold(line.to_owned(), |line, (open, with)| line.replace(open, with))
    };
    let is_played = |line: &String| {
        lines_played().any(|played| played == filled(line))
            || ELSEWHERE.iter().any(|(there, _)| there == line)
    };
    let left: BTreeSet<&String> = lines.iter().filter(|line| !is_played(line)).collect();
    assert!(left.is_empty(), "no row of ui/screen/app/tests/ways.rs gives {left:?}");
    for (line, _) in ELSEWHERE {
        assert!(lines.iter().any(|there| there == line), "no text has :{line} any more");
    }
}

#[test]
fn every_verb_that_a_help_page_names_is_a_verb_where_the_page_is_read() {
    for verb in LIST {
        let sentences = verb.about(&with_default_keys).join(" ").replace('\n', " ");
        let named = sentences.split([' ', '`', '(']).filter_map(|word| word.strip_prefix(':'));
        for word in named {
            let name = word.trim_end_matches(|c: char| !c.is_alphabetic());
            let there = find(name).is_some_and(|there| there.ways.contains(&Way::Line));
            let decides = ["allow", "answer", "deny"].contains(&name);
            assert!(there || decides, ":help {} names :{name}", verb.name);
        }
    }
}
