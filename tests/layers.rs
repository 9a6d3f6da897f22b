//! Holds the architecture: the order of the rooms in `src/lib.rs`, `src/sandbox.rs`, `ui/main.rs` and `ui/screen.rs`, a core
//! without a terminal, no unsafe code in either crate, and a table of promises whose tests are there.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "layers/screen.rs"]
mod screen;
#[path = "layers/words.rs"]
mod words;

/// Crates that only the screen may use.
const OF_THE_SCREEN: [&str; 8] = [
    "ratatui",
    "crossterm",
    "tui_textarea",
    "unicode_width",
    "crokey",
    "nucleo",
    "pulldown_cmark",
    "clap",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Every Rust file below `dir`.
fn sources(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).expect("a directory of sources") {
        let path = entry.expect("a readable directory").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The text of a file without what stands behind `//`.
fn code(path: &Path) -> String {
    let text = read(path);
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// The text of a file without its tests; nothing of a file of tests.
fn without_tests(path: &Path, text: String) -> String {
    let is_test = |part: &std::ffi::OsStr| part == "tests" || part == "tests.rs";
    if path.iter().any(is_test) {
        return String::new();
    }
    text.split("#[cfg(test)]").next().unwrap_or("").to_owned()
}

/// Rooms in an order: their directory, the file that lists them bottom to top, how a line of that begins, and what
/// stands before the name of a room in a path.
struct Rooms {
    dir: &'static str,
    list: &'static str,
    line: &'static str,
    path: &'static str,
}

const CORE: Rooms = Rooms { dir: "src", list: "src/lib.rs", line: "pub mod ", path: "crate::" };
const PROGRAM: Rooms = Rooms { dir: "ui", list: "ui/main.rs", line: "mod ", path: "crate::" };
const SCREEN: Rooms =
    Rooms { dir: "ui/screen", list: "ui/screen.rs", line: "pub mod ", path: "crate::screen::" };
const SANDBOX: Rooms =
    Rooms { dir: "src/sandbox", list: "src/sandbox.rs", line: "mod ", path: "crate::sandbox::" };

impl Rooms {
    /// The rooms, bottom to top.
    fn rooms(&self) -> Vec<String> {
        let list = code(&root().join(self.list));
        let name = |line: &str| line.strip_prefix(self.line)?.strip_suffix(';').map(str::to_owned);
        list.lines().filter_map(name).collect()
    }

    /// The room that a file belongs to.
    fn room_of(&self, path: &Path) -> String {
        let inside = path.strip_prefix(root().join(self.dir)).expect("a file of these rooms");
        let first = inside.iter().next().expect("a path with a name").to_string_lossy();
        first.trim_end_matches(".rs").to_owned()
    }

    /// The rooms that have no sentence above them in the list.
    fn unexplained(&self) -> Vec<String> {
        let text = read(&root().join(self.list));
        let lines: Vec<&str> = text.lines().collect();
        let explained = |at: usize| {
            let above = lines[..at].iter().rev();
            let mut above =
                above.skip_while(|line| line.starts_with("#[") || line.starts_with("// "));
            above.next().is_some_and(|line| line.starts_with("///"))
        };
        let rooms = lines.iter().enumerate().filter(|(_, line)| line.starts_with(self.line));
        rooms.filter(|(at, _)| !explained(*at)).map(|(_, line)| (*line).to_owned()).collect()
    }

    /// Every use of a room by one that is listed before it.
    fn wrong_uses(&self) -> Vec<String> {
        let rooms = self.rooms();
        assert!(rooms.len() >= 5, "{} lists the rooms: {rooms:?}", self.list);
        let place = |room: &str| rooms.iter().position(|r| r == room);
        let mut wrong = Vec::new();
        for path in sources(&root().join(self.dir)) {
            let own = self.room_of(&path);
            if ["lib", "main"].contains(&own.as_str()) {
                continue;
            }
            let Some(own_place) = place(&own) else {
                wrong.push(format!("{}: the room `{own}` is not in {}", path.display(), self.list));
                continue;
            };
            for used in used_rooms(&self.shipped(&path), self.path).into_iter().map(room_named) {
                if place(&used).is_none_or(|used_place| used_place > own_place) {
                    wrong.push(format!("{}: `{own}` uses `{}{used}`", path.display(), self.path));
                }
            }
        }
        wrong
    }

    /// The code of a file. Tests of the screen may use the bench of a room above their own.
    fn shipped(&self, path: &Path) -> String {
        if self.dir == "src" { code(path) } else { without_tests(path, code(path)) }
    }
}

/// The room of an exported macro; any other word is a room itself.
fn room_named(word: String) -> String {
    if word == "crash_point" { "crash".to_owned() } else { word }
}

/// The first words behind every `path` in `text`, those of a braced list included.
fn used_rooms(text: &str, path: &str) -> Vec<String> {
    let mut used = Vec::new();
    for (at, _) in text.match_indices(path) {
        let rest = &text[at + path.len()..];
        match rest.strip_prefix('{') {
            Some(list) => used.extend(heads(list)),
            None => used.push(word(rest)),
        }
    }
    used
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first words of the elements of a braced list whose opening brace is already gone.
fn heads(list: &str) -> Vec<String> {
    let mut found = vec![word(list.trim_start())];
    let mut depth = 1;
    for (at, c) in list.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => found.push(word(list[at + 1..].trim_start())),
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    found.retain(|word| !word.is_empty());
    found
}

#[test]
fn a_room_uses_only_the_rooms_listed_before_it() {
    let all = [CORE, SANDBOX, PROGRAM, SCREEN];
    let wrong: Vec<String> = all.iter().flat_map(Rooms::wrong_uses).collect();
    assert!(
        wrong.is_empty(),
        "{}\n\nA room may use only the rooms listed before it in src/lib.rs, src/sandbox.rs, ui/main.rs or \
         ui/screen.rs. Move what is shared down into a room below both, or hand it in as an argument.",
        wrong.join("\n")
    );
}

#[test]
fn every_room_of_the_program_says_what_it_is_for() {
    for rooms in [SANDBOX, PROGRAM, SCREEN] {
        let unexplained = rooms.unexplained();
        assert!(unexplained.is_empty(), "{}: write one line above {unexplained:?}", rooms.list);
    }
}

#[test]
fn braced_and_nested_paths_are_seen() {
    let text = "use crate::{disk::{self, Append}, host};\nlet x = crate::llm::Usage;";
    assert_eq!(used_rooms(text, "crate::"), ["disk", "host", "llm"]);
}

#[test]
fn the_core_knows_no_terminal() {
    for path in sources(&root().join("src")) {
        let text = code(&path);
        for name in OF_THE_SCREEN {
            let named =
                text.contains(&format!("{name}::")) || text.contains(&format!("use {name}"));
            assert!(!named, "{} names {name}", path.display());
        }
    }
}

#[test]
fn paths_outside_tests_start_at_the_crate() {
    for dir in ["src", "ui"] {
        for path in sources(&root().join(dir)) {
            let inside = path.strip_prefix(root()).expect("a file of this project");
            let shipped = without_tests(inside, code(&path));
            assert!(!shipped.contains("super::"), "{} uses super::", path.display());
        }
    }
}

/// The places that one statement borrows twice. What a watch channel lends is held to the end of the statement, and a
/// second loan waits for a writer that came between, which waits for the first one: neither ends.
fn borrowed_twice(code: &str) -> Vec<String> {
    let mut twice = Vec::new();
    for statement in code.split("fn ").flat_map(|function| function.split(';')) {
        let statement: String = statement.split_whitespace().collect();
        let mut places = BTreeSet::new();
        for (at, _) in statement.match_indices(".borrow()") {
            let is_path = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
            let place = statement[..at].rsplit(|c| !is_path(c)).next().unwrap_or("");
            if !place.is_empty() && !places.insert(place) {
                twice.push(place.to_owned());
            }
        }
    }
    twice
}

#[test]
fn no_statement_borrows_a_place_twice() {
    for dir in ["src", "ui"] {
        for path in sources(&root().join(dir)) {
            let inside = path.strip_prefix(root()).expect("a file of this project");
            let twice = borrowed_twice(&without_tests(inside, code(&path)));
            assert!(twice.is_empty(), "{} borrows {twice:?} twice", path.display());
        }
    }
}

#[test]
fn a_place_that_is_borrowed_twice_is_seen() {
    let twice = "fn a() -> B { B { c: self.d.borrow().c,\n e: self.d\n.borrow().e } }";
    assert_eq!(borrowed_twice(twice), ["self.d"]);
    let once = "fn a() { let c = self.d.borrow().c; let e = self.d.borrow().e; x(f.borrow(), g.borrow()) }";
    assert!(borrowed_twice(once).is_empty());
}

#[test]
fn both_crates_forbid_unsafe_code() {
    for file in ["src/lib.rs", "ui/main.rs"] {
        assert!(code(&root().join(file)).contains("#![forbid(unsafe_code)]"), "{file}");
    }
}

#[test]
fn no_file_is_called_mod_or_a_drawer() {
    for dir in ["src", "ui"] {
        for path in sources(&root().join(dir)) {
            let name = path.file_stem().expect("a file").to_string_lossy().into_owned();
            assert!(
                !["mod", "utils", "helpers", "common", "misc"].contains(&name.as_str()),
                "{}",
                path.display()
            );
        }
    }
}

/// The rows of the tables of promises: what is promised, and the cell about its tests.
fn promises(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let rows = rows.filter_map(|row| row.split_once(" | "));
    rows.filter(|(_, tests)| *tests != "Tests").collect()
}

/// The tests a cell names, each with its file, in backticks: the file first, then its tests.
fn named_tests(cell: &str) -> Vec<(&str, &str)> {
    let (mut file, mut named) = ("", Vec::new());
    for word in cell.split('`').skip(1).step_by(2) {
        if word.ends_with(".rs") {
            file = word;
        } else {
            named.push((file, word));
        }
    }
    named
}

/// Whether a file has a test of this name: a function right below an attribute that says so.
fn has_test(source: &str, test: &str) -> bool {
    let head = format!("fn {test}(");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let here = |line: &str| line.strip_prefix("async ").unwrap_or(line).starts_with(&head);
    let at = lines.iter().position(|line| here(line));
    at.is_some_and(|at| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
        above.into_iter().any(|line| line.contains("test"))
    })
}

#[test]
fn every_promise_names_tests_that_are_there() {
    let text = read(&root().join("tests/behaviours.md"));
    let promises = promises(&text);
    assert!(promises.len() > 50, "{} rows", promises.len());
    let mut wrong = Vec::new();
    for (promise, cell) in promises {
        let named = named_tests(cell);
        if named.is_empty() {
            wrong.push(format!("no test: {promise}"));
        }
        for (file, test) in named {
            let source = fs::read_to_string(root().join(file)).unwrap_or_default();
            if !has_test(&source, test) {
                wrong.push(format!("no test `{test}` in `{file}`: {promise}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The pages for people, and the page of promises.
fn pages() -> Vec<PathBuf> {
    let docs =
        fs::read_dir(root().join("docs")).expect("docs").map(|entry| entry.expect("a file").path());
    let is_page = |path: &PathBuf| path.extension().is_some_and(|end| end == "md");
    docs.filter(is_page).chain([root().join("README.md")]).collect()
}

/// The places that a page links to, but for addresses of the network.
fn links(text: &str) -> Vec<&str> {
    let outside = text.split("```").step_by(2);
    let links =
        outside.flat_map(|text| text.split("](").skip(1).filter_map(|rest| rest.split(')').next()));
    links.filter(|link| !link.contains("://")).collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file_and_each_page_is_reached_from_the_readme() {
    let mut wrong = Vec::new();
    for page in pages() {
        let folder = page.parent().expect("its folder");
        for link in
            links(&read(&page)).into_iter().map(|link| link.split('#').next().unwrap_or(link))
        {
            if !link.is_empty() && !folder.join(link).exists() {
                wrong.push(format!("{}: {link}", page.display()));
            }
        }
    }
    let readme = read(&root().join("README.md"));
    let reached: Vec<PathBuf> = links(&readme).into_iter().map(|link| root().join(link)).collect();
    let lost =
        pages().into_iter().filter(|page| !page.ends_with("README.md") && !reached.contains(page));
    wrong.extend(lost.map(|page| format!("the README does not lead to {}", page.display())));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(readme.lines().count() <= 150, "the README is one page");
}

#[test]
fn a_promise_without_its_test_is_seen() {
    let row = "| it holds | `a.rs`: `one`, `two`; `b.rs`: `three` |";
    let [(promise, cell)] = promises(row)[..] else { panic!("{row}") };
    assert_eq!(promise, "it holds");
    assert_eq!(named_tests(cell), [("a.rs", "one"), ("a.rs", "two"), ("b.rs", "three")]);
    let source = "#[tokio::test]\nasync fn one() {}\nfn two() {}\n// fn three() {}";
    let found = ["one", "two", "three", "on"].map(|test| has_test(source, test));
    assert_eq!(found, [true, false, false, false]);
}
