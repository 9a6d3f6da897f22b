//! Tests of the search for repositories on the disk.

use super::*;
use crate::sandbox::access::places::UserPaths;
use crate::sandbox::access::view::ViewInputs;
use crate::scope::{Permission, Rule, Scope};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;

fn top() -> (tempfile::TempDir, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().canonicalize().unwrap();
    (top, path)
}

fn view(target: &Path) -> CommandView {
    let env = [("HOME".to_owned(), target.join("home").display().to_string())].into();
    let scope = Scope::new(vec![Rule::new(target, Permission::Write)]);
    CommandView::new(&ViewInputs::new(&scope, UserPaths { env: &env }))
}

fn search(target: &Path) -> Found {
    let view = view(target);
    find(&view, &view)
}

#[test]
fn no_number_of_repositories_leaves_one_unguarded() {
    let (_top, top) = top();
    let make = |name: String| {
        fs::create_dir_all(top.join(&name).join(".git")).unwrap();
    };
    (0..300).for_each(|index| make(format!("deep/down/repo-{index}")));
    let found = search(&top);
    assert_eq!((found.dirs.len(), found.closed.len()), (300, 0));
    (300..=REPOSITORIES).for_each(|index| make(format!("repo-{index}")));
    assert_eq!(search(&top).closed, std::slice::from_ref(&top));
}

#[test]
fn a_chain_of_repositories_is_followed_to_its_end() {
    let (_top, top) = top();
    let last = 5_000;
    for index in 0..=last {
        let dir = top.join(format!("deep/{index}"));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("commondir"), format!("../{}", index + 1)).unwrap();
    }
    fs::create_dir(top.join("first")).unwrap();
    fs::write(top.join("first/.git"), "gitdir: ../deep/0\n").unwrap();
    // On a stack as small as that of a thread of the host.
    let root = top.clone();
    let thread = std::thread::Builder::new().stack_size(512 * 1024);
    let found = thread.spawn(move || search(&root)).unwrap().join().unwrap();
    assert!(found.closed.contains(&top), "these are too many: {:?}", found.closed);
}

#[test]
fn repositories_at_any_depth_their_submodules_and_worktrees_are_found() {
    let (_top, top) = top();
    let bare = |dir: &str| {
        for part in ["objects", "refs"] {
            fs::create_dir_all(top.join(dir).join(part)).unwrap();
        }
        fs::write(top.join(dir).join("HEAD"), "ref: refs/heads/x\n").unwrap();
    };
    let all = ["a/b/c/d/.git", "a/b/c/d/.git/modules/x/y", "any/name"];
    all.iter().for_each(|dir| bare(dir));
    fs::create_dir_all(top.join("a/b/c/d/.git/worktrees/t")).unwrap();
    for (file, text) in [("HEAD", "x"), ("commondir", "../..\n")] {
        fs::write(top.join("a/b/c/d/.git/worktrees/t").join(file), text).unwrap();
    }
    fs::create_dir_all(top.join("no/objects")).unwrap();
    let mut expected: Vec<PathBuf> = all.map(|dir| top.join(dir)).to_vec();
    expected.push(top.join("a/b/c/d/.git/worktrees/t"));
    expected.sort();
    assert_eq!(search(&top).dirs.into_keys().collect::<Vec<_>>(), expected);
}

#[test]
fn what_is_no_data_of_a_repository_is_guarded() {
    let (_top, top) = top();
    let git = top.join(".git");
    for name in ["hooks", "branches", "objects", "refs", "new-tool"] {
        fs::create_dir_all(git.join(name)).unwrap();
    }
    for name in ["HEAD", "config", "index", "index.lock", "ORIG_HEAD", "commondir"] {
        fs::write(git.join(name), "").unwrap();
    }
    let mut guarded = obeyed_in(&git);
    guarded.sort();
    let expected = ["branches", "commondir", "config", "hooks", "new-tool"];
    assert_eq!(guarded, expected.map(|name| git.join(name)));
}

#[test]
fn the_places_that_a_configuration_names_are_found() {
    let (_top, top) = top();
    for dir in [".git", "home", "tree"] {
        fs::create_dir_all(top.join(dir)).unwrap();
    }
    let config = "[core]\n\thooksPath = .husky/_ ; ours\n[include]\n\tpath = \\\n../team.conf\n\
                  [includeIf \"gitdir:/x\"] path = \"/else.conf\" # c\n[user]\n\tpath = no\n";
    fs::write(top.join(".git/config"), config).unwrap();
    fs::write(top.join(".git/config.worktree"), "[core]\nhooksPath=~/wth\n").unwrap();
    fs::write(top.join("team.conf"), "[include]\npath = more.conf\n").unwrap();
    fs::write(top.join("home/.gitconfig"), "[core]\nhooksPath = .all\n").unwrap();
    let mut expected = [".husky/_", "team.conf", "more.conf", "home/wth", ".all"]
        .map(|path| top.join(path))
        .to_vec();
    expected.push("/else.conf".into());
    expected.sort();
    assert_eq!(search(&top).named, expected);
    let scope = Scope::new(vec![Rule::new(&top, Permission::Write)]);
    assert!(is_named(&top.join(".husky/_/pre-commit"), &scope, None));
    assert!(!is_named(&top.join(".husky/other"), &scope, None));
}

#[test]
fn a_path_in_a_file_of_git_may_end_with_a_blank_and_be_no_utf_8() {
    let (_top, top) = top();
    let named = |bytes: &[u8]| top.join(OsStr::from_bytes(bytes));
    let real = top.join("store ");
    for dir in [&real, &real.join("objects"), &top.join("ws"), &named(b"m\xe9")] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(top.join("ws/.git"), b"gitdir: ../store \n").unwrap();
    fs::write(real.join("config"), b"[core]\n\thooksPath = ../h\xe9\n").unwrap();
    let found = search(&top);
    assert!(found.dirs.contains_key(&real), "{:?}", found.dirs);
    assert!(found.named.contains(&named(b"h\xe9")), "{:?}", found.named);
}

#[test]
fn many_files_of_settings_that_include_each_other_are_all_read() {
    let (_top, top) = top();
    fs::create_dir_all(top.join(".git")).unwrap();
    fs::write(top.join(".git/config"), "[include]\n\tpath = ../0\n").unwrap();
    for at in 0..80 {
        fs::write(top.join(at.to_string()), format!("[include]\n\tpath = {}\n", at + 1)).unwrap();
    }
    fs::write(top.join("80"), "[core]\n\thooksPath = last\n").unwrap();
    assert!(search(&top).named.contains(&top.join("last")));
}

#[test]
fn a_place_beside_the_repository_that_names_it_is_named() {
    let (_top, top) = top();
    fs::create_dir_all(top.join("sub/.git")).unwrap();
    fs::write(top.join("sub/.git/config"), "[core]\n\thooksPath = ../hooks\n").unwrap();
    let scope = Scope::new(vec![Rule::new(&top, Permission::Write)]);
    assert!(is_named(&top.join("hooks/pre-commit"), &scope, None));
    assert!(!is_named(&top.join("other/pre-commit"), &scope, None));
}
