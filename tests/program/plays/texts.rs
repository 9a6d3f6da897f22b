//! The texts that tell a person what to type, and the lines of a shell in them.

use crate::bench::Bench;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Documents for people who use the program. Those in [`FOR_ENGINEERS`] tell how it is built.
const GUIDES: [&str; 17] = [
    "README.md",
    "docs/config.md",
    "docs/confinement.md",
    "docs/context.md",
    "docs/dashboard.md",
    "docs/diagnostics.md",
    "docs/durability.md",
    "docs/figures.md",
    "docs/headless.md",
    "docs/mcp.md",
    "docs/mesh.md",
    "docs/policy.md",
    "docs/providers.md",
    "docs/rehearsal.md",
    "docs/verbs.md",
    "prompts/no-model.md",
    "prompts/tour.toml",
];
const FOR_ENGINEERS: [&str; 1] = ["docs/architecture.md"];

/// The commands with which a line of a shell begins.
const COMMANDS: [&str; 3] = ["yoi", "cargo", "man"];

/// Each text by its name: the guides, the help of the program and of its commands, the manual page.
pub fn texts(bench: &Bench) -> BTreeMap<String, String> {
    let mut texts: BTreeMap<String, String> =
        GUIDES.iter().map(|name| ((*name).to_owned(), document(name))).collect();
    let help = bench.yoi(&["--help"]).out;
    for command in commands(&help) {
        texts.insert(format!("yoi {command} --help"), bench.yoi(&[&command, "--help"]).out);
    }
    texts.insert("yoi --help".into(), help);
    texts.insert("yoi man".into(), bench.yoi(&["man"]).out.replace("\\-", "-"));
    texts
}

pub fn document(name: &str) -> String {
    fs::read_to_string(root().join(name)).expect("a document of this project")
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The commands that `yoi --help` lists, but for `help` itself.
pub fn commands(help: &str) -> Vec<String> {
    let list = help.split_once("\nCommands:\n").and_then(|(_, rest)| rest.split_once("\n\n"));
    let names = list.expect("a list of commands").0.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split(' ').next()?;
        (!name.is_empty() && name != "help").then(|| name.to_owned())
    });
    names.collect()
}

/// The lines of a shell in a text: those in its blocks, those in its sentences, and the options that the
/// help of a command lists.
pub fn shell_lines(name: &str, text: &str) -> Vec<String> {
    let (blocks, rest) = blocks(text);
    let in_blocks = blocks.iter().flat_map(|block| block.lines()).map(|line| command_of(line).0);
    let mut lines: Vec<String> = in_blocks.map(str::to_owned).collect();
    let comments = blocks.iter().flat_map(|block| block.lines()).map(|line| command_of(line).1);
    let sentences = rest.lines().chain(comments);
    lines.extend(sentences.flat_map(|line| spans(name, line)).filter(|span| is_shell(span)));
    if let Some(command) = name.strip_suffix(" --help") {
        lines.extend(options(text).map(|option| format!("{command} {option}")));
    }
    lines
}

/// The blocks of a document that name no language, and what is outside of all blocks. A picture is no
/// block of commands.
pub fn blocks(text: &str) -> (Vec<String>, String) {
    let (mut found, mut rest, mut open) = (Vec::new(), String::new(), None::<(bool, String)>);
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(language), None) => open = Some((language.is_empty(), String::new())),
            (Some(_), Some(_)) => {
                found.extend(open.take().filter(|(plain, _)| *plain).map(|(_, block)| block));
            }
            (None, Some((_, block))) => *block += &format!("{line}\n"),
            (None, None) => rest += &format!("{line}\n"),
        }
    }
    found.retain(|block: &String| !block.contains('│'));
    (found, rest)
}

/// The command of a line in a block, and what is said of it behind two blanks.
fn command_of(line: &str) -> (&str, &str) {
    line.split_once("  ").unwrap_or((line, ""))
}

/// The pieces of a line between backticks.
fn spans(name: &str, line: &str) -> Vec<String> {
    // A pattern of a script is no sentence.
    if name.ends_with(".toml") && ["note = ", "says = "].iter().any(|key| line.starts_with(key)) {
        return Vec::new();
    }
    let pieces: Vec<&str> = line.split('`').collect();
    assert!(
        pieces.len() % 2 == 1,
        "{name}: a piece between backticks goes over a line end: {line}"
    );
    pieces.into_iter().skip(1).step_by(2).map(str::to_owned).collect()
}

fn is_shell(span: &str) -> bool {
    let first = span.split(' ').next().unwrap_or_default();
    COMMANDS.contains(&first)
        || first.starts_with("./")
        || first.starts_with('-')
        || span.split(' ').any(|word| word == "yoi")
}

/// The options that a help text lists, with their values.
fn options(help: &str) -> impl Iterator<Item = String> {
    let listed = help.lines().filter_map(|line| {
        let line = line.trim_start();
        line.starts_with('-').then(|| line.split("  ").next().unwrap_or(line))
    });
    let own = |option: &&str| !option.contains("--help") && !option.starts_with("- ");
    listed.filter(own).map(str::to_owned)
}

#[test]
fn every_document_is_a_guide_or_for_engineers() {
    let names = fs::read_dir(root().join("docs"))
        .expect("documents")
        .map(|entry| format!("docs/{}", entry.expect("a document").file_name().to_string_lossy()));
    for name in names.filter(|name| name.ends_with(".md")) {
        let known = GUIDES.contains(&name.as_str()) || FOR_ENGINEERS.contains(&name.as_str());
        assert!(known, "{name}: say in tests/program/plays/texts.rs for whom it is");
    }
}
