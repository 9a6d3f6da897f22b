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

/// The kernel removes a mount when a process outside renames another file over its mount point. What a person sets
/// meanwhile stays; a program that the command names does not.
#[tokio::test]
async fn a_configuration_that_is_replaced_from_outside_starts_no_program_of_the_command() {
    for (evil, is_put_back) in [
        ("git config core.fsmonitor ./evil", true),
        ("git config remote.o.url /evil", true),
        ("echo '# x' >> .git/config", false),
    ] {
        let cell = repository();
        git(&cell.bench.ctx.cwd, &["remote", "add", "o", "https://example.org/x"]);
        let before = fs::read_to_string(cell.path("ws/.git/config")).unwrap();
        // Without namespaces no new file can be created directly in the workspace.
        fs::create_dir(cell.path("ws/sub")).unwrap();
        let program = format!(
            "touch sub/ready; until [ -e sub/go ]; do sleep 0.01; done; {evil}; mkdir .git/config.put-aside; true"
        );
        let replace = async {
            while !cell.path("ws/sub/ready").exists() {
                tokio::task::yield_now().await;
            }
            git(&cell.bench.ctx.cwd, &["config", "user.email", "new@x"]);
            fs::write(cell.path("ws/sub/go"), "").unwrap();
        };
        let (did, ()) = tokio::join!(cell.run(&program), replace);
        let now = fs::read_to_string(cell.path("ws/.git/config")).unwrap();
        if !is_put_back || !cell.has_world() {
            assert!(now.contains("new@x") && !now.contains("evil"), "{now}");
            continue;
        }
        assert_eq!(now, before, "{evil}");
        let said =
            did.ended.undone.iter().find(|said| said.contains("/config changed while")).unwrap();
        let aside = said.rsplit_once(" moved to ").unwrap().1;
        assert!(fs::read_to_string(aside).unwrap().contains("new@x"), "{said}");
        let did = cell.run("true").await;
        assert!(did.ended.undone.is_empty(), "{:?}", did.ended);
    }
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

/// However deep it lies, and whatever its name is.
#[tokio::test]
async fn hooks_and_settings_of_a_repository_deep_in_the_scope_are_not_changed() {
    let cell = Cell::new();
    let ws = cell.path("ws");
    fs::create_dir_all(ws.join("a/b/c")).unwrap();
    git(&ws.join("a/b/c"), &["init", "-q"]);
    git(&ws.join("a/b"), &["init", "-q", "--bare", "store"]);
    let before = fs::read(ws.join("a/b/c/.git/config")).unwrap();
    for program in [
        "git -C a/b/c config core.fsmonitor ./x",
        "echo x > a/b/c/.git/hooks/pre-commit",
        "mv a/b/c/.git a/b/c/x",
        "mv a/b x",
        "mkdir a/b/c/.git/branches/x || echo x > a/b/c/.git/branches/y",
        "git -C a/b/store config core.fsmonitor ./x",
        "echo x > a/b/store/hooks/post-update",
    ] {
        cell.run(program).await.refused();
    }
    assert_eq!(fs::read(ws.join("a/b/c/.git/config")).unwrap(), before);
    if cell.has_world() {
        let did =
            cell.run("cd a/b/c && mkdir .git/remotes && echo 'URL: ext::x' > .git/remotes/r").await;
        did.undone(1);
        assert!(!ws.join("a/b/c/.git/remotes").exists());
    }
}
