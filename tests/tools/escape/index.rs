//! An index of git that names files outside the working tree or in a repository: git reads it without a check, and
//! `git checkout .` writes the files.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::{family, git, repository};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A path that git adds, and one of the same length that it does not.
const PLANTED: [(&str, &str); 7] = [
    ("Xgit/hooks/pre-commit", ".git/hooks/pre-commit"),
    ("Xgit/hooks/post-commit", ".GIT/hooks/post-commit"),
    ("Xgit~2/hooks/a", ".git. /hooks/a"),
    ("sub/Xgit/config", "sub/.git/config"),
    ("XX/out", "../out"),
    ("Xhome/x", "/home/x"),
    ("aXX/x", "a/./x"),
];

/// Runs git with a text as its input.
fn feed(dir: &Path, words: &[&str], input: &str) -> String {
    fs::write(dir.join("../input"), input).unwrap();
    let input = fs::File::open(dir.join("../input")).unwrap();
    let mut git = Command::new("git");
    git.args(words).current_dir(dir).stdin(input).stderr(Stdio::inherit());
    let done = git.output().unwrap();
    assert!(done.status.success(), "{words:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A repository with one file in its index.
fn with_a_file() -> Cell {
    let cell = repository();
    fs::write(cell.path("ws/file"), "x").unwrap();
    git(&cell.path("ws"), &["add", "file"]);
    git(&cell.path("ws"), &["commit", "-q", "-m", "x"]);
    cell
}

/// Adds entries with these paths to the index of the repository in `dir`.
fn add(dir: &Path, paths: impl Iterator<Item = String>) {
    let id = feed(dir, &["hash-object", "-w", "--stdin"], "#!/bin/sh\n");
    let lines: String = paths.map(|path| format!("100755 {id}\t{path}\n")).collect();
    feed(dir, &["update-index", "--index-info"], &lines);
}

/// The bytes with one text instead of another of the same length.
fn replaced(mut bytes: Vec<u8>, old: &str, new: &str) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let at = bytes.windows(old.len()).position(|part| part == old.as_bytes()).unwrap();
    bytes[at..at + old.len()].copy_from_slice(new.as_bytes());
    bytes
}

/// An index of this repository with one entry more, whose path git would not add. The repository keeps its own index.
fn planted(dir: &Path, index: &Path, (plain, planted): (&str, &str)) -> Vec<u8> {
    let own = fs::read(index).unwrap();
    add(dir, [plain.to_owned()].into_iter());
    let bytes = replaced(fs::read(index).unwrap(), plain, planted);
    fs::write(index, own).unwrap();
    bytes
}

#[tokio::test]
async fn an_index_that_leads_out_of_its_working_tree_does_not_outlive_its_command() {
    for version in ["2", "4"] {
        let cell = with_a_file();
        let (ws, index) = (cell.path("ws"), cell.path("ws/.git/index"));
        git(&ws, &["update-index", "--index-version", version]);
        let own = fs::read(&index).unwrap();
        for (plain, path) in PLANTED {
            fs::write(cell.path("ws/made"), planted(&ws, &index, (plain, path))).unwrap();
            let did = cell.run("cat made > .git/index").await;
            did.well();
            let [said] = did.ended.undone.as_slice() else { panic!("{path}: {:?}", did.ended) };
            assert!(said.contains(&format!("it had the path `{path}`, and")), "{said}");
            assert!(said.contains(" is put back as it was; "), "{said}");
            assert_eq!(fs::read(&index).unwrap(), own, "{path}");
            git(&ws, &["checkout", "-q", "."]);
            assert!(!ws.join(".git/hooks/pre-commit").exists() && !ws.join("../out").exists());
        }
        assert!(cell.run("git status --short").await.ended.undone.is_empty());
    }
}

/// git reads some files that it would not write; a check that reads them otherwise would miss an entry.
#[tokio::test]
async fn an_index_that_git_does_not_write_does_not_outlive_its_command() {
    let cell = with_a_file();
    let (ws, index) = (cell.path("ws"), cell.path("ws/.git/index"));
    let own = fs::read(&index).unwrap();
    let bad = planted(&ws, &index, PLANTED[0]);
    // The length of the first path, whose text stays the same.
    let mut shorter = own.clone();
    shorter[12 + 61] -= 1;
    // The place from which threads of git read entries: at the end of the entries is an extension that holds them.
    let blocks =
        [&own[..own.len() - 20], b"IEOT", &12_u32.to_be_bytes(), &1_u32.to_be_bytes()].concat();
    let blocks = [&blocks[..], &99_u32.to_be_bytes(), &1_u32.to_be_bytes(), &[0; 20]].concat();
    // An end of the entries that is not there.
    let end =
        [&own[..own.len() - 20], b"EOIE", &24_u32.to_be_bytes(), &12_u32.to_be_bytes(), &[0; 40]];
    for bytes in [own[..own.len() - 30].to_vec(), shorter, blocks, end.concat(), b"DIRC".to_vec()] {
        fs::write(cell.path("ws/made"), bytes).unwrap();
        let did = cell.run("cat made > .git/index").await;
        let [said] = did.ended.undone.as_slice() else { panic!("{:?}", did.ended) };
        assert!(said.ends_with(": git does not write such an index"), "{said}");
        assert_eq!(fs::read(&index).unwrap(), own);
    }
    if cell.has_world() {
        fs::write(cell.path("ws/made"), bad).unwrap();
        let did = cell.run("rm .git/index; ln -s ../made .git/index").await;
        did.undone(1);
        assert_eq!(fs::read(&index).unwrap(), own);
        assert!(!index.is_symlink());
    }
}

#[tokio::test]
async fn an_index_too_large_to_be_recorded_is_moved_aside() {
    let cell = with_a_file();
    let (ws, index) = (cell.path("ws"), cell.path("ws/.git/index"));
    add(&ws, (0..15_000).map(|n| format!("many/{n}")));
    assert!(fs::metadata(&index).unwrap().len() > 1024 * 1024);
    fs::write(cell.path("ws/made"), planted(&ws, &index, PLANTED[0])).unwrap();
    let did = cell.run("cat made > .git/index").await;
    let [said] = did.ended.undone.as_slice() else { panic!("{:?}", did.ended) };
    assert!(said.ends_with("; `git reset` makes a new index and keeps your files"), "{said}");
    assert!(!index.exists());
    git(&ws, &["reset", "-q"]);
    assert!(cell.run("git status --short").await.ended.undone.is_empty());
}

#[tokio::test]
async fn the_base_of_a_split_index_and_the_indexes_of_worktrees_and_submodules_are_checked() {
    let cell = family();
    if no_world_to_test() {
        return;
    }
    let ws = cell.path("ws");
    for (tree, dir) in [
        (".", ".git"),
        ("tree", ".git/worktrees/tree"),
        ("deep/down/mod", ".git/modules/deep/down/mod"),
        ("beside", "beside/.git"),
    ] {
        let (tree, dir) = (ws.join(tree), ws.join(dir));
        add(&tree, ["plain".to_owned()].into_iter());
        fs::write(ws.join("made"), planted(&tree, &dir.join("index"), PLANTED[0])).unwrap();
        let did = cell.run(&format!("cat made > {}/index", dir.display())).await;
        did.undone(1);
        assert!(!feed(&tree, &["ls-files"], "").contains("hooks"), "{}", tree.display());
    }
    git(&ws, &["update-index", "--split-index"]);
    let files = fs::read_dir(ws.join(".git")).unwrap().flatten().map(|entry| entry.path());
    let bases = files.filter(|path| path.to_string_lossy().contains("/sharedindex."));
    let [base] = bases.collect::<Vec<_>>().try_into().unwrap();
    let bytes = fs::read(&base).unwrap();
    let bad = replaced(bytes, "plain", "../in");
    fs::write(ws.join("made"), bad).unwrap();
    let did = cell.run(&format!("chmod u+w {0}; cat made > {0}", base.display())).await;
    did.undone(1);
    assert!(!ws.join(".git/index").exists());
}

#[tokio::test]
async fn a_command_adds_no_worktree_whose_index_leads_out_of_it() {
    let cell = with_a_file();
    if no_world_to_test() {
        return;
    }
    let ws = cell.path("ws");
    fs::write(ws.join("made"), planted(&ws, &ws.join(".git/index"), PLANTED[0])).unwrap();
    let did = cell.run("git worktree add -q new && cat made > .git/worktrees/new/index").await;
    did.well();
    did.undone(1);
    assert!(!ws.join(".git/worktrees/new/index").exists());
}

#[tokio::test]
async fn every_index_that_git_writes_is_kept() {
    let cell = with_a_file();
    if no_world_to_test() {
        return;
    }
    let ws = cell.path("ws");
    git(&ws, &["config", "index.threads", "4"]);
    add(&ws, (0..25_000).map(|n| format!("many/{}/{n}", n % 50)));
    git(&ws, &["commit", "-q", "-m", "many"]);
    for settings in [
        ["update-index", "--index-version=2"],
        ["update-index", "--index-version=4"],
        ["update-index", "--untracked-cache"],
        ["update-index", "--split-index"],
        ["update-index", "--no-split-index"],
        ["sparse-checkout", "init"],
    ] {
        git(&ws, &settings);
        let did =
            cell.run("date +%N > new && git add --sparse new && git status --short | wc -l").await;
        did.well();
        assert!(did.ended.undone.is_empty(), "{settings:?}: {:?}", did.ended);
    }
    git(&ws, &["sparse-checkout", "init", "--cone", "--sparse-index"]);
    let sparse = fs::read(ws.join(".git/index")).unwrap();
    assert!(sparse.len() < 100_000, "no sparse index: {}", sparse.len());
    let did = cell.run("git rm -q --cached file && git status --short").await;
    did.well();
    assert!(did.ended.undone.is_empty(), "{:?}", did.ended);
}
