//! Attempts to bypass a guarded path by removing, replacing or respelling a directory, link or
//! setting that leads to it.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::{family, git, repository};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use yoi::protocol::OutsideAccess;
use yoi::sandbox::Need;
use yoi::scope::{Permission, Rule};

/// A program that git would start, and the settings that name it.
const EVIL: &str = "printf '#!/bin/sh\\ntouch ran\\n' > evil.sh; chmod +x evil.sh; \
                    printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\
                    \\tworktree = .\\n\\tfsmonitor = ./evil.sh\\n' > config; ";

/// Runs the person's own git afterwards, unconfined.
fn status(dir: &Path) {
    let status = std::process::Command::new("git").arg("status").current_dir(dir).output();
    status.unwrap();
}

#[tokio::test]
async fn a_repository_that_loses_its_head_is_put_back_before_git_takes_another_for_it() {
    let cell = repository();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    git(ws, &["commit", "-q", "--allow-empty", "-m", "x"]);
    let plant =
        format!("{EVIL} ln -s .git/objects objects; ln -s .git/refs refs; cp .git/index index");
    let head = fs::read_to_string(ws.join(".git/HEAD")).unwrap();
    for lose in [
        "mv .git/HEAD .git/was; cp .git/was HEAD",
        "cp .git/HEAD HEAD; echo not any more > .git/HEAD",
        "cp .git/HEAD HEAD; chmod 0 .git/HEAD",
        "cp .git/HEAD HEAD; rm .git/HEAD; mkdir .git/HEAD",
        "cp .git/HEAD HEAD; rm .git/HEAD; ln -s nowhere .git/HEAD",
        "cp .git/HEAD HEAD; printf 'ref:\\frefs/heads/main\\n' > .git/HEAD",
        "cp .git/HEAD HEAD; printf 'ref:%300srefs/heads/main\\n' > .git/HEAD",
        "cp .git/HEAD HEAD; printf '%041d\\n' 0 > .git/HEAD",
    ] {
        let did = cell.run(&format!("{lose}; {plant}; true")).await;
        let put_back = did.ended.undone.iter().filter(|said| said.contains(".git/HEAD ")).count();
        assert!(put_back == 1 || !cell.has_world(), "{:?}", did.ended);
        assert_eq!(fs::read_to_string(ws.join(".git/HEAD")).unwrap(), head, "{lose}");
        status(ws);
        assert!(!ws.join("ran").exists(), "{lose}");
        for made in ["HEAD", "config", "objects", "refs", "index"] {
            let removed = fs::remove_file(ws.join(made));
            assert!(removed.is_ok() || !cell.has_world(), "{made}");
        }
    }
    for part in ["objects", "refs"] {
        cell.run(&format!("mv .git/{part} .git/old")).await.refused();
        cell.run(&format!("mv .git/{part} {part}")).await.refused();
    }
    let did = cell.run("git checkout -q -b other && chmod 0 .git/objects .git/refs .git").await;
    assert!(did.ended.undone.is_empty(), "{:?}", did.ended);
    for dir in [".git", ".git/objects", ".git/refs"] {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(ws.join(dir)).unwrap().permissions().mode();
        assert_eq!(mode & 0o700, 0o700, "{dir}");
    }
    let moved = fs::read_to_string(ws.join(".git/HEAD")).unwrap() == "ref: refs/heads/other\n";
    assert_eq!(moved, cell.has_world(), "{}", did.text);
    git(ws, &["commit", "-q", "--allow-empty", "-m", "y"]);
}

#[tokio::test]
async fn a_submodule_without_its_head_or_its_entry_in_the_list_stays_guarded() {
    let cell = family();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    let did = cell.run("mv .git/modules/deep/down/mod/HEAD was; echo x > .gitmodules; true").await;
    did.undone(1);
    assert!(ws.join(".git/modules/deep/down/mod/HEAD").is_file());
    fs::remove_file(ws.join(".git/modules/deep/down/mod/HEAD")).unwrap();
    for program in [
        "echo x >> .git/modules/deep/down/mod/config",
        "echo x > .git/modules/deep/down/mod/hooks/post-checkout",
        "echo 'gitdir: /evil' > deep/down/mod/.git",
        "mv deep/down/mod/.git other",
    ] {
        cell.run(program).await.refused();
    }
}

/// A repository deep in the scope that only `.gitmodules` names: the files of the submodule are its own.
fn listed() -> Cell {
    let cell = repository();
    let ws = &cell.bench.ctx.cwd;
    fs::create_dir_all(ws.join("deep/er")).unwrap();
    git(ws, &["init", "-q", "deep/er/sub"]);
    cell.bench.file(".gitmodules", "[submodule \"s\"]\n\tpath = deep/er/sub\n\turl = ./x\n");
    cell
}

#[tokio::test]
async fn no_command_hides_a_submodule_by_changing_the_list_that_names_it() {
    let mut cell = listed();
    let ws = cell.bench.ctx.cwd.clone();
    let hook = ws.join("deep/er/sub/.git/hooks/pre-commit");
    for hide in [
        "mv .gitmodules g",
        "rm .gitmodules",
        "echo > .gitmodules",
        "chmod 0 .gitmodules",
        "yes '#' | head -c 2000000 >> .gitmodules",
        "cp .gitmodules g; mv g .gitmodules",
    ] {
        cell.run(&format!("{hide} && echo evil > deep/er/sub/.git/hooks/pre-commit"))
            .await
            .refused();
        cell.run("echo evil > deep/er/sub/.git/hooks/pre-commit").await.refused();
        assert!(!hook.exists(), "{hide}");
    }
    cell.needs = vec![Need::Git];
    cell.run("echo '# new' >> .gitmodules").await.well();
}

#[tokio::test]
async fn a_child_writes_no_file_of_git_that_its_parent_may_not() {
    let mut cell = family();
    git(&cell.bench.ctx.cwd, &["worktree", "add", "-q", "-b", "new", "deep/branch"]);
    if no_world_to_test() {
        return;
    }
    let deep = cell.bench.ctx.cwd.join("deep");
    cell.bench.ctx.scope.allow = vec![Rule::new(deep.clone(), Permission::Write)];
    cell.bench.ctx.cwd = deep;
    cell.run("echo 'gitdir: /evil' > down/mod/.git").await.refused();
    cell.run("echo 'gitdir: /evil' > branch/.git").await.refused();
    cell.run("mv down elsewhere").await.refused();
    let did = cell.run("echo x > down/mod/file").await;
    assert_eq!(cell.path("ws/deep/down/mod/file").exists(), cell.has_world(), "{}", did.text);
}

#[tokio::test]
async fn a_repository_behind_a_link_or_a_file_is_guarded_and_so_is_the_way_to_it() {
    for link in [true, false] {
        let cell = repository();
        let ws = cell.bench.ctx.cwd.clone();
        fs::rename(ws.join(".git"), ws.join(".gd")).unwrap();
        match link {
            true => symlink(".gd", ws.join(".git")).unwrap(),
            false => fs::write(ws.join(".git"), "gitdir: .gd\n").unwrap(),
        }
        if no_world_to_test() {
            return;
        }
        cell.run("echo x >> .gd/config").await.refused();
        cell.run("echo x > .gd/hooks/pre-commit").await.refused();
        cell.run("mv .gd other").await.refused();
        let did = cell.run("cp -r .gd .g2 && ln -sfn .g2 .git").await;
        match link {
            true => did.undone(1),
            false => did.refused(),
        }
        assert_eq!(ws.join(".git").is_symlink(), link);
        assert_eq!(
            ws.join(".git").canonicalize().unwrap(),
            ws.join(if link { ".gd" } else { ".git" })
        );
    }
}

#[tokio::test]
async fn a_link_on_the_way_to_programs_leads_where_it_led_after_the_command() {
    let mut cell = Cell::new();
    cell.bench.file("v1/bin/tool", "");
    cell.bench.file("v2/bin/tool", "");
    symlink("v1", cell.path("ws/cur")).unwrap();
    let path = format!("{}:{}", cell.path("ws/cur/bin").display(), cell.bench.ctx.env["PATH"]);
    cell.env("PATH", path);
    let change = "ln -sfn v2 cur";
    let did = cell.run(change).await;
    did.undone(1);
    assert_eq!(fs::read_link(cell.path("ws/cur")).unwrap(), Path::new("v1"));
    cell.name(&[(OutsideAccess::Write, "ws/v1/bin")]);
    let did = cell.run(&format!("{change}; echo x > v1/bin/new")).await;
    did.undone(1);
    assert_eq!(fs::read_link(cell.path("ws/cur")).unwrap(), Path::new("v1"));
    assert!(cell.path("ws/v1/bin/new").exists());
}

#[tokio::test]
async fn a_secret_that_is_not_there_yet_is_not_made_by_a_command() {
    let mut cell = Cell::naming(&[(OutsideAccess::Write, "home")]);
    cell.env("HOME", cell.path("home").display().to_string());
    if no_world_to_test() {
        return;
    }
    cell.run("echo key > ~/.ssh/authorized_keys").await.refused();
    assert_eq!(fs::read_dir(cell.path("home/.ssh")).unwrap().count(), 0);
    let did = cell.run("echo x > ~/.npmrc; mkdir -p ~/.aws; echo x > ~/plain").await;
    did.undone(2);
    assert!(!cell.path("home/.npmrc").exists() && !cell.path("home/.aws").exists());
    assert_eq!(cell.path("home/plain").exists(), cell.has_world(), "{}", did.text);
}

#[tokio::test]
async fn a_command_does_not_change_the_rules_of_its_workspace() {
    let cell = Cell::new();
    cell.bench.file(".yoi/config.toml", "first");
    if no_world_to_test() {
        return;
    }
    for program in ["echo x >> .yoi/config.toml", "rm -r .yoi", "mv .yoi other"] {
        cell.run(program).await.refused();
    }
    assert_eq!(fs::read_to_string(cell.path("ws/.yoi/config.toml")).unwrap(), "first");
    fs::remove_dir_all(cell.path("ws/.yoi")).unwrap();
    let did = cell.run("mkdir .yoi; echo x > .yoi/config.toml").await;
    did.undone(1);
    assert!(!cell.path("ws/.yoi").exists());
}

#[tokio::test]
async fn a_hook_that_is_a_link_is_guarded_where_it_leads() {
    let cell = repository();
    for name in ["scripts/pre-commit", "scripts/free", "named/post-merge", "other/run"] {
        cell.bench.file(name, "echo person\n");
    }
    let ws = cell.path("ws");
    let _ = fs::create_dir(ws.join(".git/hooks"));
    symlink("scripts/pre-commit", ws.join("between")).unwrap();
    symlink("../../between", ws.join(".git/hooks/pre-commit")).unwrap();
    symlink("../../scripts/missing", ws.join(".git/hooks/pre-push")).unwrap();
    symlink("../other/run", ws.join("named/pre-rebase")).unwrap();
    git(&ws, &["config", "core.hooksPath", "named"]);
    let change = "for file in scripts/pre-commit other/run scripts/missing; do \
                      { echo evil >> $file; mv $file aside; cp scripts/free $file; } 2>&-; done; \
                      ln -sfn scripts/free between; echo more >> scripts/free";
    cell.run(change).await;
    for name in ["scripts/pre-commit", "other/run", "between"] {
        let kept = fs::read_to_string(ws.join(name)).unwrap();
        assert_eq!(kept, "echo person\n", "{name}");
    }
    assert!(!ws.join("scripts/missing").exists());
    assert_eq!(fs::read_link(ws.join("between")).unwrap(), Path::new("scripts/pre-commit"));
}

/// Each repository has a configuration as large as one that can be restored.
#[tokio::test]
async fn directories_with_more_guarded_files_than_can_be_restored_are_read_only() {
    let cell = Cell::new();
    let text = "#\n".repeat((1 << 20) / 2);
    let dir = |n: u32| cell.path(&format!("ws/r{n:02}/.git"));
    for n in 0..20 {
        git(&cell.path("ws"), &["init", "-q", &format!("r{n:02}")]);
        fs::write(dir(n).join("config"), &text).unwrap();
    }
    fs::write(dir(0).join("config"), text.repeat(2)).unwrap();
    let did = cell.run("for r in r*; do touch $r/.git/index.lock; done 2> /dev/null; true").await;
    let cost = &did.confinement().cost;
    for n in [0, 17, 19] {
        let begin = format!("writing to {}: only 16 MiB of guarded files", dir(n).display());
        assert!(cost.iter().any(|line| line.starts_with(&begin)), "{begin}: {cost:?}");
        assert!(!dir(n).join("index.lock").exists(), "{n}");
    }
    assert!(!cost.iter().any(|line| line.contains("r01/.git")), "{cost:?}");
    assert_eq!(dir(1).join("index.lock").exists(), cell.has_world());
}
