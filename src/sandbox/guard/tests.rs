//! Tests of the search for repositories on the disk.

use super::*;
use crate::sandbox::places::Person;
use crate::sandbox::view::Around;
use crate::scope::{Permission, Rule, Scope};
use std::os::unix::fs::symlink;

fn top() -> (tempfile::TempDir, PathBuf) {
    let top = tempfile::tempdir().unwrap();
    let path = top.path().canonicalize().unwrap();
    (top, path)
}

fn view(target: &Path) -> CommandView {
    let env = [("HOME".to_owned(), target.join("home").display().to_string())].into();
    let scope = Scope::new(vec![Rule::new(target, Permission::Write)]);
    CommandView::new(&Around::new(&scope, Person { env: &env }))
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
    for plain in 0..600 {
        fs::create_dir(top.join(format!("plain-{plain}"))).unwrap();
    }
    (0..300).for_each(|index| make(format!("repo-{index}")));
    let found = search(&top);
    assert_eq!((found.dirs.len(), found.closed.len()), (300, 0));
    (300..700).for_each(|index| make(format!("repo-{index}")));
    assert_eq!(search(&top).closed, std::slice::from_ref(&top));
    let modules = top.join(".git/modules");
    fs::create_dir_all(modules.join("a/b/c/d/e/f/g/h")).unwrap();
    assert!(search(&top).closed.contains(&modules), "deeper than is looked");
}

#[test]
fn no_chain_of_repositories_is_followed_without_end() {
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
    assert!(found.closed.contains(&top), "what was not looked at is read-only: {:?}", found.closed);
    let scope = Scope::new(vec![Rule::new(&top, Permission::Write)]);
    assert!(is_named(&top.join("any"), &scope, None), "a person is asked");
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
    fs::write(top.join("ws/.gitmodules"), b"[submodule \"m\"]\n\tpath = m\xe9\n").unwrap();
    let found = search(&top);
    assert!(found.dirs.contains_key(&real), "{:?}", found.dirs);
    assert!(found.named.contains(&named(b"h\xe9")), "{:?}", found.named);
    assert_eq!(
        checkouts(&top.join("ws")).unwrap(),
        [top.join("ws").join(OsStr::from_bytes(b"m\xe9"))]
    );
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

#[test]
fn a_list_of_submodules_that_is_no_plain_file_of_the_workspace_or_too_long_closes_it_and_delays_nothing()
 {
    let (_top, top) = top();
    let (ws, list) = (top.join("ws"), top.join("ws/.gitmodules"));
    fs::create_dir(&ws).unwrap();
    let text = "[submodule \"m\"]\n\tpath = lib/m ; here\n";
    fs::write(&list, text).unwrap();
    assert_eq!(checkouts(&ws).unwrap(), [ws.join("lib/m")]);
    fs::remove_file(&list).unwrap();
    fs::write(top.join("elsewhere"), text).unwrap();
    for target in ["/dev/zero", "../elsewhere"] {
        symlink(target, &list).unwrap();
        assert_eq!(search(&ws).closed, std::slice::from_ref(&ws), "{target}");
        fs::remove_file(&list).unwrap();
    }
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, &list, fifo, mode, 0).unwrap();
    assert_eq!(search(&ws).closed, std::slice::from_ref(&ws));
    fs::remove_file(&list).unwrap();
    assert!(search(&ws).closed.is_empty());
    fs::write(&list, format!("{}{text}", "#\n".repeat(600_000))).unwrap();
    assert_eq!(search(&ws).closed, std::slice::from_ref(&ws));
}

#[test]
fn directories_of_submodules_that_are_too_many_to_look_at_are_closed_as_a_whole() {
    let (_top, top) = top();
    let modules = top.join(".git/modules");
    (0..4).for_each(|index| fs::create_dir_all(modules.join(format!("group-{index}"))).unwrap());
    let closed = |modules_left| {
        let mut search = Search::new(&|_| true);
        search.modules_left = modules_left;
        search.look_at(&top.join(".git"));
        search.found.closed
    };
    assert_eq!(closed(4), Vec::<PathBuf>::new());
    assert_eq!(closed(3), [modules]);
}
