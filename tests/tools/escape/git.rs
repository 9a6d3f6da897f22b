//! The files that git executes or reads its configuration from, in the repository of the scope and
//! its neighbours.

use crate::escape::cell::{Cell, no_world_to_test};
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use yoi::sandbox::Need;

pub fn git(dir: &Path, words: &[&str]) {
    let mut git = std::process::Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
    let done = git.args(words).current_dir(dir).output().unwrap();
    assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// With a submodule, a repository beside it that it does not know, and a worktree.
pub fn family() -> Cell {
    let cell = repository();
    let ws = &cell.bench.ctx.cwd;
    let other = cell.path("outside/other");
    fs::create_dir(&other).unwrap();
    git(&other, &["init", "-q"]);
    git(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
    git(ws, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let other = other.display().to_string();
    git(ws, &["submodule", "--quiet", "add", &other, "deep/down/mod"]);
    git(ws, &["init", "-q", "beside"]);
    git(ws, &["worktree", "add", "-q", "tree"]);
    cell
}

pub fn repository() -> Cell {
    let cell = Cell::new();
    for words in
        [vec!["init", "-q"], vec!["config", "user.name", "a"], vec!["config", "user.email", "a@b"]]
    {
        let git =
            std::process::Command::new("git").args(words).current_dir(&cell.bench.ctx.cwd).status();
        assert!(git.unwrap().success());
    }
    cell
}

#[tokio::test]
async fn files_that_git_executes_are_not_changed_and_a_commit_works_landlock_1() {
    let mut cell = repository();
    if !cell.covered(1, "files") {
        return;
    }
    let config = fs::read_to_string(cell.path("ws/.git/config")).unwrap();
    for program in [
        "echo evil > .git/hooks/pre-commit",
        "git config core.hooksPath /tmp",
        "echo evil >> .git/config",
        "mv .git/hooks .git/old",
        "rm -rf .git/config",
        "ln -sf evil .git/hooks/pre-push",
    ] {
        let did = cell.run(program).await;
        assert_ne!(did.ended.outcome, yoi::sandbox::Outcome::Exited(0), "{program}");
    }
    assert_eq!(fs::read_to_string(cell.path("ws/.git/config")).unwrap(), config);
    assert!(!cell.path("ws/.git/hooks/pre-commit").exists());
    if cell.has_world() {
        cell.run("mv .git elsewhere").await.refused();
        cell.run("echo a > a && git add a && git commit -qm first && git status").await.well();
    }
    cell.needs = vec![Need::Git];
    cell.run("echo '#!/bin/sh' > .git/hooks/pre-commit && git config a.b c").await.well();
}

/// A new file in `.git` can make git read another configuration; what is made during a command is
/// looked for afterwards.
#[tokio::test]
async fn a_pointer_to_another_configuration_does_not_outlive_its_command() {
    let cell = repository();
    if no_world_to_test() {
        return;
    }
    let did = cell.run("mkdir evil; echo ../evil > .git/commondir").await;
    did.undone(1);
    assert!(!cell.path("ws/.git/commondir").exists());
}

/// Files that name another place to take hooks and configuration from.
#[tokio::test]
async fn pointers_of_worktrees_and_submodules_are_not_changed_landlock_1() {
    let cell = family();
    if !cell.covered(1, "files") {
        return;
    }
    let pointers = [
        ".git/worktrees/tree/commondir",
        ".git/modules/deep/down/mod/config",
        "deep/down/mod/.git",
        "tree/.git",
    ];
    let read = |cell: &Cell| pointers.map(|file| fs::read(cell.bench.ctx.cwd.join(file)).unwrap());
    let before = read(&cell);
    for file in pointers {
        for program in [format!("echo x > {file}"), format!("mv -f .git/HEAD {file}")] {
            cell.run(&program).await.refused();
        }
    }
    cell.run("echo x > .git/modules/deep/down/mod/hooks/post-checkout").await.refused();
    cell.run("mv deep/down/mod elsewhere").await.refused();
    assert_eq!(read(&cell), before);
    if cell.has_world() {
        let commit = "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m y";
        cell.run(&format!("cd tree && {commit} && cd ../beside && {commit}")).await.well();
        cell.run("git worktree add -q another && cd another && git status").await.well();
    }
}

#[tokio::test]
async fn new_pointers_in_any_repository_of_the_scope_do_not_outlive_their_command() {
    let cell = family();
    if no_world_to_test() {
        return;
    }
    let new = [
        ".git/commondir",
        ".git/config.worktree",
        "beside/.git/commondir",
        ".git/modules/deep/down/mod/commondir",
        ".git/modules/deep/down/mod/config.worktree",
        ".git/worktrees/tree/config.worktree",
    ];
    let did = cell.run(&new.map(|file| format!("echo ../evil > {file}")).join("; ")).await;
    did.undone(new.len());
    for file in new {
        assert!(!cell.bench.ctx.cwd.join(file).exists(), "{file}");
    }
}

/// The kernel removes a mount when a process outside renames another file over its mount point.
#[tokio::test]
async fn a_configuration_that_is_replaced_from_outside_is_put_back_after_the_command() {
    let cell = repository();
    let before = fs::read_to_string(cell.path("ws/.git/config")).unwrap();
    // Without namespaces no new file can be created directly in the workspace.
    fs::create_dir(cell.path("ws/sub")).unwrap();
    let program = "touch sub/ready; until [ -e sub/go ]; do sleep 0.01; done; \
                   echo '# evil' >> .git/config; mkdir .git/config.put-aside; true";
    let replace = async {
        while !cell.path("ws/sub/ready").exists() {
            tokio::task::yield_now().await;
        }
        git(&cell.bench.ctx.cwd, &["config", "user.email", "new@x"]);
        fs::write(cell.path("ws/sub/go"), "").unwrap();
    };
    let (did, ()) = tokio::join!(cell.run(program), replace);
    assert_eq!(fs::read_to_string(cell.path("ws/.git/config")).unwrap(), before);
    let [said] = did.ended.undone.as_slice() else { panic!("{:?}", did.ended) };
    let aside = said.rsplit_once(" moved to ").unwrap().1;
    assert!(fs::read_to_string(aside).unwrap().contains("new@x"), "{said}");
    let did = cell.run("true").await;
    assert!(did.ended.undone.is_empty(), "{:?}", did.ended);
}

/// A path that the configuration names is as good as `.git/hooks`.
#[tokio::test]
async fn hooks_and_settings_that_a_configuration_names_are_not_changed() {
    let mut cell = repository();
    for file in ["tools/hooks/pre-commit", "team.conf"] {
        cell.bench.file(file, "");
    }
    for setting in [["core.hooksPath", "tools/hooks"], ["include.path", "../team.conf"]] {
        git(&cell.bench.ctx.cwd, &[["config"].as_slice(), &setting].concat());
    }
    for program in [
        "echo evil > tools/hooks/pre-commit",
        "echo evil > tools/hooks/new",
        "echo evil >> team.conf",
        "mv tools other",
    ] {
        cell.run(program).await.refused();
    }
    cell.needs = vec![Need::Git];
    cell.run("echo x > tools/hooks/new && echo '# x' >> team.conf").await.well();
}

/// However many directories come before it, a repository is guarded.
#[tokio::test]
async fn the_hooks_of_the_last_of_many_neighbours_are_not_changed() {
    let cell = Cell::new();
    for index in 0..700 {
        fs::create_dir(cell.bench.ctx.cwd.join(format!("dir-{index}"))).unwrap();
    }
    for index in 0..20 {
        git(&cell.bench.ctx.cwd, &["init", "-q", &format!("repo-{index}")]);
    }
    let all = "for dir in repo-*; do echo evil > $dir/.git/hooks/pre-commit && exit 0; done; \
               echo >> repo-19/.git/config && exit 0; exit 1";
    cell.run(all).await.refused();
}

/// A configuration file of git, a line of it that names another path, and a file that git then
/// uses.
const LEADS: [(&str, &str, &str); 11] = [
    (".git/config", "[core]\n\thooksPath = one ; for us\n", "one/pre-commit"),
    (".git/config", "[core]\n\thooksPath = \\\n two\n", "two/pre-commit"),
    (".git/config", "[core] hooksPath = three\n", "three/pre-commit"),
    (".git/config", "[CORE]\n\tHOOKSPATH = \"four/hooks\"\n", "four/hooks/pre-commit"),
    (".git/config", "[core]\n\thooksPath = .husky/hooks\n", "tools/hooks/pre-commit"),
    (".git/config", "[core]\n\thooksPath = to/../eight\n", "deep/eight/pre-commit"),
    (".git/config", "[include]\n\tpath = ../team.conf # x\n", "team.conf"),
    (".git/config", "[includeIf \"onbranch:x\"]\n\tpath = ../branch.conf\n", "branch.conf"),
    (".git/config.worktree", "[core]\n\thooksPath = five\n", "five/pre-commit"),
    ("../home/.gitconfig", "[core]\n\thooksPath = six\n", "six/pre-commit"),
    ("../home/.config/git/config", "[core]\n\thooksPath = seven\n", "seven/pre-commit"),
];

/// A repository whose configuration names all of these; `.husky` is a link to `tools`, and `to` one
/// to `deep/er`.
fn led_astray() -> Cell {
    let cell = Cell::outside_of_tmp();
    let ws = cell.path("ws");
    git(&ws, &["init", "-q"]);
    symlink("tools", ws.join(".husky")).unwrap();
    fs::create_dir_all(ws.join("deep/er")).unwrap();
    symlink("deep/er", ws.join("to")).unwrap();
    for (file, line, led) in LEADS {
        for path in [file, led] {
            fs::create_dir_all(ws.join(path).parent().unwrap()).unwrap();
        }
        let mut settings = File::options().append(true).create(true).open(ws.join(file)).unwrap();
        settings.write_all(line.as_bytes()).unwrap();
        fs::write(ws.join(led), "person").unwrap();
    }
    cell
}

#[tokio::test]
async fn no_spelling_leads_git_to_a_file_that_a_command_changed() {
    let cell = led_astray();
    let ws = cell.path("ws");
    let led = LEADS.map(|(_, _, led)| led).join(" ");
    let change = format!(
        "for led in {led}; do echo evil > $led; rm -f $led; echo evil > $led; done; \
         rm -f .husky; mkdir -p .husky/hooks; echo evil > .husky/hooks/pre-commit; true"
    );
    cell.run(&change).await.well();
    assert_eq!(fs::read_link(ws.join(".husky")).unwrap(), Path::new("tools"));
    for (_, line, led) in LEADS {
        let kept = fs::read_to_string(ws.join(led)).unwrap_or_default();
        assert_eq!(kept, "person", "{line}");
        fs::remove_file(ws.join(led)).unwrap();
        let directory = Path::new(led).parent().filter(|dir| dir.iter().count() > 0);
        directory.map(|dir| fs::remove_dir(ws.join(dir))).transpose().unwrap();
    }
    // A missing file cannot be created, or is moved aside after the command.
    let make =
        format!("for led in {led}; do mkdir -p $(dirname $led); echo evil > $led; done; true");
    cell.run(&make).await.well();
    for (_, line, led) in LEADS {
        assert!(!ws.join(led).exists(), "{line}");
    }
}

#[tokio::test]
async fn a_guarded_file_that_a_command_puts_into_the_index_is_named() {
    for version in ["2", "4"] {
        let cell = repository();
        fs::write(cell.path("ws/.editorconfig"), "x").unwrap();
        git(&cell.path("ws"), &["add", ".editorconfig"]);
        git(&cell.path("ws"), &["update-index", "--index-version", version]);
        let plain = cell.run("echo x > plain; git add plain && git commit -q -m x").await;
        assert!(plain.ended.undone.is_empty(), "{plain:?}");
        let plant = "h=$(echo evil | git hash-object -w --stdin) && \
                     git update-index --add --cacheinfo 100644,$h,.envrc && git commit -q -m harmless";
        let did = cell.run(plant).await;
        let [said] = did.ended.undone.as_slice() else { panic!("{did:?}") };
        let begins =
            format!("{}/.git/index has another .envrc than before", cell.path("ws").display());
        assert!(said.starts_with(&begins), "{said}");
        assert!(cell.run("git status --short").await.ended.undone.is_empty());
    }
}

/// Has git write an index of version 4, which stores of each path only what differs from the path before.
fn index(cell: &Cell, paths: impl Iterator<Item = String>) {
    let empty = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";
    let entries: String = paths.map(|path| format!("100644 {empty} 0\t{path}\0")).collect();
    let (entered, made) = (cell.path("entries"), cell.path("ws/made"));
    fs::write(&entered, entries).unwrap();
    let _ = fs::remove_file(&made);
    let mut git = std::process::Command::new("git");
    git.args(["update-index", "--index-version", "4", "-z", "--index-info"]);
    git.current_dir(cell.path("ws")).env("GIT_INDEX_FILE", &made);
    assert!(git.stdin(fs::File::open(entered).unwrap()).status().unwrap().success());
}

#[tokio::test]
async fn an_index_of_many_long_guarded_names_is_named_in_a_short_sentence() {
    let cell = repository();
    let dir = format!(".idea/{}", "x".repeat(3_800));
    let path = |n: u32| match n {
        20_000 => ".vim/$(id)\n".to_owned(),
        n => format!("{dir}{n:05}"),
    };
    index(&cell, (0..20_001).map(path));
    assert!(fs::metadata(cell.path("ws/made")).unwrap().len() < 2 << 20);
    let did = cell.run("cp made .git/index").await;
    let [said] = did.ended.undone.as_slice() else { panic!("{:?}", did.ended.outcome) };
    assert!(said.len() < 4096, "{}", said.len());
    assert!(said.contains(" and 19991 more than before the command"), "{said}");
    assert!(said.ends_with("look at it with `git ls-files --stage`"), "{said}");
    let again = cell.run("true").await;
    assert_eq!(again.ended.undone, [""; 0]);
    index(&cell, (20_000..20_001).map(path));
    let fewer = cell.run("cp made .git/index").await;
    assert_eq!(fewer.ended.undone, [""; 0]);
    index(&cell, [".vim/$(id) 2\n".to_owned()].into_iter());
    let quoted = cell.run("cp made .git/index").await;
    let [said] = quoted.ended.undone.as_slice() else { panic!("{quoted:?}") };
    assert!(said.contains(r#"has another `.vim/$(id) 2⏎` than before"#), "{said}");
    index(&cell, (0..50_001).map(|n| format!(".vim/{n:05}")));
    let many = cell.run("cp made .git/index").await;
    let [said] = many.ended.undone.as_slice() else { panic!("{many:?}") };
    assert!(said.contains(" and 49990 more than before the command"), "{said}");
    assert!(said.contains("only the first 50000 are compared"), "{said}");
    let more = cell.run("true").await;
    let [said] = more.ended.undone.as_slice() else { panic!("{more:?}") };
    assert!(said.contains("only the first 50000 are compared"), "{said}");
}
