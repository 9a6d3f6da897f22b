//! Random sequences of file operations from within a command, against a model of its grants: what was
//! not granted stays as it was, byte, mode, owner, time and attribute, and what was granted can be done.
//!
//! `YOI_SEQUENCES` is how many there are, `YOI_SEQUENCES_SEED` repeats those of a failure.

#[path = "sequences/model.rs"]
mod model;
#[path = "sequences/script.rs"]
mod script;
#[path = "sequences/tree.rs"]
mod tree;

use crate::dice::Dice;
use model::{Expect, Kind};
use script::Script;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use tree::{Facts, HIDDEN, Tree};

/// Operations of one sequence, and sequences that one command carries out one after the other.
const LENGTH: usize = 12;
const TOGETHER: u64 = 50;
const USUAL: u64 = 400;

impl Dice {
    fn one_in(&mut self, limit: u64) -> bool {
        self.below(limit) == 0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        let index = self.below(all.len() as u64);
        &all[usize::try_from(index).unwrap_or(0)]
    }
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Without namespaces only contents and names are compared: the header says that the rest is open,
/// and the model predicts no results.
#[tokio::test]
async fn random_file_operations_change_nothing_that_was_not_granted() {
    let (all, first) = (number("YOI_SEQUENCES", USUAL), number("YOI_SEQUENCES_SEED", 1));
    let mut ends: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for seed in first..first + all.div_ceil(TOGETHER) {
        let mut dice = Dice::new(seed);
        let tree = Tree::grow(&mut dice);
        // The first command creates the cache directories that do not exist yet.
        tree.cell.run(":").await.well();
        let has_world = tree.cell.has_world();
        let played = play(tree, &mut dice, seed).await;
        if !has_world {
            continue;
        }
        for (op, expect) in played.foreseen() {
            let end = match expect {
                Expect::Done | Expect::Text(_) => "done",
                Expect::Refused => "refused",
                Expect::Any => "either",
            };
            *ends.entry((op, end)).or_default() += 1;
        }
    }
    println!("{all} sequences, {} operations: {ends:?}", ends.values().sum::<usize>());
    if all < USUAL || ends.is_empty() {
        return;
    }
    // A script in which everything is refused, or nothing, would show little.
    for op in ["create", "write", "chmod", "rename", "link", "setxattr", "utimes", "map"] {
        for end in ["done", "refused"] {
            assert!(ends.contains_key(&(op, end)), "no {op} was {end}: {ends:?}");
        }
    }
}

/// The outcome of one command with many sequences.
struct Played {
    tree: Tree,
    script: Script,
    ends: Vec<(i32, Option<String>)>,
    repeat: String,
}

/// Runs it. Whatever the model says, nothing outside is changed or read.
async fn play(mut tree: Tree, dice: &mut Dice, seed: u64) -> Played {
    tree.learn();
    let length = usize::try_from(TOGETHER).unwrap_or(0) * LENGTH;
    let script = script::write(dice, &mut tree.model, length);
    let lines = script.iter().map(|(op, _)| serde_json::to_string(op).unwrap() + "\n");
    fs::write(tree.cell.path("play/script"), lines.collect::<String>()).unwrap();
    fs::write(tree.cell.path("play/play.py"), include_str!("sequences/play.py")).unwrap();
    let before = tree.outside();
    let did = tree.cell.run("exec python3 -B ../play/play.py ../play/script").await;
    let repeat = format!("repeat it with YOI_SEQUENCES_SEED={seed} YOI_SEQUENCES={TOGETHER}");
    assert_same(&before, &tree.outside(), &repeat);
    assert!(!did.text.contains(HIDDEN), "{repeat}: hidden text was read");
    let ends: Vec<_> = did.text.lines().map_while(|line| serde_json::from_str(line).ok()).collect();
    assert_eq!(ends.len(), script.len(), "{repeat}: {}", did.text);
    Played { tree, script, ends, repeat }
}

impl Played {
    /// Compares the result of every operation, and the files afterwards, with the model. Returns the results that it
    /// predicted.
    fn foreseen(self) -> Vec<(&'static str, Expect)> {
        let Self { tree, script, ends, repeat } = self;
        for (index, ((op, expect), end)) in script.iter().zip(&ends).enumerate() {
            let said = || format!("operation {index} ended with {end:?}: {op:?}, not {expect:?}");
            assert!(fits(expect, end), "{repeat}: {}", said());
        }
        assert_inside(&tree, &repeat);
        script.into_iter().map(|(op, expect)| (op.op, expect)).collect()
    }
}

fn fits(expect: &Expect, (errno, text): &(i32, Option<String>)) -> bool {
    match expect {
        Expect::Done => *errno == 0,
        Expect::Text(expected) => *errno == 0 && text.as_ref() == Some(expected),
        Expect::Refused => *errno != 0,
        Expect::Any => true,
    }
}

fn assert_same(before: &BTreeMap<PathBuf, Facts>, after: &BTreeMap<PathBuf, Facts>, repeat: &str) {
    let mut changed = String::new();
    for path in before.keys().chain(after.keys()).collect::<BTreeSet<_>>() {
        if before.get(path) != after.get(path) {
            let (before, after) = (before.get(path), after.get(path));
            let _ = writeln!(changed, "{}: {before:?}\n  became {after:?}", path.display());
        }
    }
    assert!(changed.is_empty(), "{repeat}: outside changed\n{changed}");
}

/// Asserts that the granted files are as the successful operations leave them.
fn assert_inside(tree: &Tree, repeat: &str) {
    let (found, model) = (tree.inside(), &tree.model);
    let names = |path: &&PathBuf| model.zone(path) == model::Zone::Write;
    let expected: BTreeSet<&PathBuf> = model.entries.keys().filter(names).collect();
    assert_eq!(found.keys().collect::<BTreeSet<_>>(), expected, "{repeat}");
    for (path, facts) in found {
        let node = model.node(&path).unwrap();
        let place = path.display();
        assert_eq!(facts.kind, node.kind, "{repeat}: {place}");
        let link = matches!(node.kind, Kind::Link(_));
        assert!(link || facts.mode & 0o7777 == node.mode, "{repeat}: {place}: {facts:?} {node:?}");
        assert!(node.mtime.is_none_or(|time| facts.mtime == (time, 0)), "{repeat}: {place}");
        let xattr = facts.xattrs.get("user.test").map(|value| String::from_utf8_lossy(value));
        assert_eq!(xattr.as_deref(), node.xattr.as_deref(), "{repeat}: {place}");
    }
}
