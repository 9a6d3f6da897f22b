//! Files that editors and agents execute or read as settings when a person opens a project.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::{family, git};
use crate::escape::home::needs;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use yoi::protocol::OutsideAccess;
use yoi::sandbox::Need;
use yoi::scope::{Permission, Rule};

/// A file of each kind, and the path that is guarded for it.
const FILES: [(&str, &str); 13] = [
    (".vim/coc-settings.json", ".vim/coc-settings.json"),
    (".zed/settings.json", ".zed/settings.json"),
    (".zed/tasks.json", ".zed/tasks.json"),
    (".mcp.json", ".mcp.json"),
    (".claude/hooks/before.sh", ".claude/hooks"),
    (".claude/settings.json", ".claude/settings.json"),
    (".claude/settings.local.json", ".claude/settings.local.json"),
    (".codex/config.toml", ".codex/config.toml"),
    (".codex/hooks.json", ".codex/hooks.json"),
    (".cursor/hooks.json", ".cursor/hooks.json"),
    (".cursor/mcp.json", ".cursor/mcp.json"),
    (".gemini/settings.json", ".gemini/settings.json"),
    (".opencode/plugin/a.js", ".opencode"),
];
/// The scope's root, a repository beside it, a submodule and a worktree.
const PROJECTS: [&str; 4] = [".", "beside", "deep/down/mod", "tree"];

/// All files below a directory that were moved aside.
fn put_aside(dir: &Path) -> Vec<String> {
    let list = std::process::Command::new("find").arg(dir).args(["-name", "*.put-*"]).output();
    let list = String::from_utf8(list.unwrap().stdout).unwrap();
    list.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn no_command_makes_what_an_editor_or_an_agent_would_obey() {
    let cell = family();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    for project in PROJECTS {
        let make = FILES.map(|(file, _)| format!("mkdir -p $(dirname {file}); echo x > {file}"));
        let did = cell.run(&format!("cd {project}; touch plain; {}", make.join("; "))).await;
        for (file, whole) in FILES {
            let path = ws.join(project).join(file);
            assert!(!path.exists(), "{}", path.display());
            let shown = format!(
                "{} is guarded",
                ws.join(project).canonicalize().unwrap().join(whole).display()
            );
            let said = did.ended.undone.iter().any(|said| said.starts_with(&shown));
            assert!(said || !cell.has_world(), "{shown}");
        }
        did.undone(FILES.len());
        assert!(ws.join(project).join("plain").exists() || !cell.has_world());
    }
}

#[tokio::test]
async fn files_of_a_project_that_are_there_are_read_and_neither_changed_nor_put_aside() {
    let cell = family();
    if no_world_to_test() {
        return;
    }
    for project in PROJECTS {
        for (file, _) in FILES {
            cell.bench.file(&format!("{project}/{file}"), "first");
        }
    }
    let all = FILES.map(|(file, whole)| {
        format!("[ $(cat {file}) = first ] && ! echo x > {file} && ! rm -rf {whole} || echo {file}")
    });
    for project in PROJECTS {
        let did = cell.run(&format!("cd {project}; exec 2>&-; {}", all.join("; "))).await;
        assert_eq!(did.text, "", "{project}: not read, or changed");
        assert!(did.ended.undone.is_empty(), "{:?}", did.ended.undone);
    }
    let ws = &cell.bench.ctx.cwd;
    cell.run("mv .claude other").await.refused();
    for (project, (file, _)) in PROJECTS.iter().flat_map(|p| FILES.map(|file| (p, file))) {
        assert_eq!(fs::read_to_string(ws.join(project).join(file)).unwrap(), "first");
    }
    assert!(put_aside(ws).is_empty());
}

#[tokio::test]
async fn what_a_person_changes_in_their_files_while_a_command_runs_stays() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let ws = cell.bench.ctx.cwd.clone();
    for (file, _) in FILES {
        cell.bench.file(file, "first");
    }
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, ws.join("go"), fifo, mode, 0).unwrap();
    let person = tokio::task::spawn_blocking({
        let ws = ws.clone();
        move || {
            // It opens when the command has begun to read, and the command ends when it is closed.
            let go = fs::OpenOptions::new().write(true).open(ws.join("go")).unwrap();
            for (file, _) in FILES {
                fs::write(ws.join("fresh"), "by a person").unwrap();
                fs::rename(ws.join("fresh"), ws.join(file)).unwrap();
            }
            fs::remove_file(ws.join(".mcp.json")).unwrap();
            drop(go);
        }
    });
    let did = cell.run("cat go").await;
    did.well();
    person.await.unwrap();
    assert!(did.ended.undone.is_empty(), "{:?}", did.ended.undone);
    assert!(!ws.join(".mcp.json").exists() && put_aside(&ws).is_empty());
    for (file, _) in FILES.iter().filter(|(file, _)| *file != ".mcp.json") {
        assert_eq!(fs::read_to_string(ws.join(file)).unwrap(), "by a person", "{file}");
    }
}

#[tokio::test]
async fn no_link_leads_an_editor_to_files_that_a_command_made() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    let made = "mkdir -p made; echo x > made/tasks.json";
    let did = cell.run(&format!("{made}; ln -s made .zed; ln -s made/tasks.json .mcp.json")).await;
    did.undone(2);
    assert!(!ws.join(".zed").is_symlink() && !ws.join(".mcp.json").is_symlink());
    fs::create_dir(ws.join(".zed")).unwrap();
    fs::write(ws.join(".zed/notes"), "").unwrap();
    let did = cell.run("echo x > .zed/notes; mv .zed v; ln -s made .zed").await;
    did.undone(1);
    assert!(!ws.join(".zed").exists());
    // Links that the person has.
    fs::create_dir(ws.join("settings")).unwrap();
    symlink("settings", ws.join(".zed")).unwrap();
    symlink("settings/mcp", ws.join(".mcp.json")).unwrap();
    fs::create_dir(ws.join("agents")).unwrap();
    symlink("agents", ws.join(".claude")).unwrap();
    let did = cell
        .run("echo x > settings/tasks.json; echo x > settings/mcp; echo x > agents/settings.json")
        .await;
    did.undone(3);
    for made in [".zed/tasks.json", ".mcp.json", ".claude/settings.json"] {
        assert!(!ws.join(made).exists(), "{made}");
    }
    fs::write(ws.join("settings/tasks.json"), "first").unwrap();
    cell.run("echo x > settings/tasks.json").await.refused();
    let did = cell.run("rm .zed; ln -s made .zed").await;
    did.undone(1);
    assert_eq!(fs::read_link(ws.join(".zed")).unwrap(), Path::new("settings"));
}

#[tokio::test]
async fn a_file_whose_program_wants_trust_first_is_changed_and_the_result_names_it() {
    let cell = family();
    if no_world_to_test() {
        return;
    }
    let ws = &cell.bench.ctx.cwd;
    fs::write(ws.join(".envrc"), "first").unwrap();
    let change =
        "echo x > .envrc; mkdir -p .vscode .idea; echo x > .vscode/tasks.json; echo x > .idea/a";
    for project in [".", "beside"] {
        let did = cell.run(&format!("cd {project}; {change}")).await;
        did.well();
        let [said] = did.ended.undone.as_slice() else { panic!("{:?}", did.ended) };
        for (file, program) in
            [(".envrc", "direnv"), (".vscode/tasks.json", "VS Code"), (".idea", "JetBrains")]
        {
            let path = ws.join(project).canonicalize().unwrap().join(file);
            assert!(said.contains(&format!("{} ({program})", path.display())), "{said}");
        }
        assert_eq!(fs::read_to_string(ws.join(project).join(".envrc")).unwrap(), "x\n");
        let again = cell.run(&format!("cd {project}; {change}")).await;
        assert!(again.ended.undone.iter().all(|said| !said.contains(".envrc")), "{again:?}");
        let removed = cell.run(&format!("cd {project}; rm -r .envrc .vscode .idea")).await;
        assert!(removed.well().is_empty() && removed.ended.undone.is_empty(), "{removed:?}");
    }
}

#[tokio::test]
async fn a_command_that_changes_the_scripts_of_a_package_says_so() {
    let cell = family();
    let ws = &cell.bench.ctx.cwd;
    let write =
        |test: &str| format!("echo '{{\"scripts\": {{\"test\": \"{test}\"}}}}' > package.json");
    for project in [".", "beside"] {
        let did = cell.run(&format!("cd {project}; {}", write("a"))).await;
        let path = ws.join(project).canonicalize().unwrap().join("package.json");
        let said = format!(
            "the scripts \"test\" in {} changed: package managers run them as programs",
            path.display()
        );
        assert_eq!(did.ended.undone, [said], "{project}");
        assert!(path.exists());
        let did = cell.run(&format!("cd {project}; echo >> package.json")).await;
        assert!(did.ended.undone.is_empty(), "{:?}", did.ended.undone);
    }
}

#[tokio::test]
async fn a_child_that_has_only_the_directory_of_an_editor_changes_nothing_guarded_in_it() {
    let mut cell = Cell::new();
    for file in [".zed/settings.json", ".zed/words.txt", ".opencode/a", ".mcp.json"] {
        cell.bench.file(file, "first");
    }
    if no_world_to_test() {
        return;
    }
    let ws = cell.bench.ctx.cwd.clone();
    let give = |cell: &mut Cell, path: &str| {
        cell.bench.ctx.scope.allow = vec![Rule::new(ws.join(path), Permission::Write)];
    };
    give(&mut cell, ".zed");
    cell.bench.ctx.cwd = ws.join(".zed");
    cell.run("echo x > settings.json").await.refused();
    let did = cell.run("echo x > words.txt; echo x > tasks.json").await;
    assert_eq!(did.text.is_empty(), cell.has_world(), "{}", did.text);
    assert_eq!(fs::read_to_string(ws.join(".zed/words.txt")).unwrap(), "x\n");
    assert!(!ws.join(".zed/tasks.json").exists());
    did.undone(1);
    cell.bench.ctx.cwd = ws.clone();
    give(&mut cell, ".opencode");
    cell.run(&format!("echo x > {}", ws.join(".opencode/a").display())).await.refused();
    give(&mut cell, ".mcp.json");
    cell.run(&format!("echo x > {}", ws.join(".mcp.json").display())).await.refused();
}

#[tokio::test]
async fn a_command_that_names_a_file_of_a_project_changes_it_and_no_other() {
    let mut cell = Cell::new();
    for file in [
        ".zed/settings.json",
        ".zed/tasks.json",
        ".mcp.json",
        ".opencode/a",
        ".claude/settings.json",
    ] {
        cell.bench.file(file, "first");
    }
    if no_world_to_test() {
        return;
    }
    cell.name(&[(OutsideAccess::Write, "ws/.mcp.json"), (OutsideAccess::Write, "ws/.opencode")]);
    cell.run("rm .mcp.json; echo x > .mcp.json; echo x > .opencode/a").await.well();
    for (dir, file, missing) in
        [(".zed", "tasks.json", "debug.json"), (".claude", "settings.json", "hooks")]
    {
        cell.run(&format!("echo x > {dir}/{file}")).await.refused();
        cell.name(&[(OutsideAccess::Write, &format!("ws/{dir}"))]);
        let did = cell.run(&format!("echo x > {dir}/{file}; echo x > {dir}/{missing}")).await;
        did.well();
        assert!(did.ended.undone.is_empty(), "{:?}", did.ended.undone);
    }
    cell.run("echo x > .mcp.json").await.refused();
}

/// A child that a model gave `area`, to which project files of the workspace around it are links.
fn child_with_links_around_it() -> Cell {
    let mut cell = Cell::new();
    for file in ["env", "vs/tasks.json", "idea/a", "rules/config.toml", "real.lua", "plain"] {
        cell.bench.file(&format!("area/{file}"), "person");
    }
    let ws = cell.path("ws");
    for (link, to) in [
        (".mcp.json", "area/env"),
        (".zed", "area/vs"),
        (".opencode", "area/idea"),
        (".yoi", "area/rules"),
        ("opencode.json", "area/hop"),
        ("opencode.jsonc", "area/missing"),
        ("area/hop", "real.lua"),
    ] {
        symlink(to, ws.join(link)).unwrap();
    }
    let rules = [(ws.join("area"), Permission::Write), (ws.clone(), Permission::Read)];
    cell.bench.ctx.scope.allow = rules.map(|(path, may)| Rule::new(path, may)).into();
    cell.bench.ctx.cwd = ws.join("area");
    // The parent, which is live, may write around the scope.
    cell.bench.ctx.others = vec![ws];
    cell
}

#[tokio::test]
async fn what_a_child_makes_for_an_editor_beside_its_live_parent_is_moved_aside() {
    let cell = child_with_links_around_it();
    if no_world_to_test() {
        return;
    }
    let did = cell
        .run("mkdir .zed; for file in .mcp.json .zed/tasks.json; do echo evil > $file; done; true")
        .await;
    did.undone(2);
    for planted in [".mcp.json", ".zed/tasks.json"] {
        assert!(!cell.path("ws/area").join(planted).exists(), "{planted}: {:?}", did.ended);
    }
}

#[tokio::test]
async fn a_child_does_not_change_what_a_link_around_its_scope_leads_to() {
    let mut cell = child_with_links_around_it();
    if no_world_to_test() {
        return;
    }
    for file in ["env", "vs/tasks.json", "idea/a", "rules/config.toml", "real.lua"] {
        cell.run(&format!("echo evil > {file}")).await.refused();
        cell.run(&format!("mv {file} {file}-moved")).await.refused();
    }
    for dir in ["vs", "idea", "rules"] {
        cell.run(&format!("mv {dir} {dir}-moved")).await.refused();
    }
    cell.run("echo x > plain").await.well();
    let area = cell.path("ws/area");
    let did = cell
        .run("echo x > other; echo evil > missing; echo evil > vs/settings.json; ln -sfn other hop")
        .await;
    did.undone(3);
    assert_eq!(area.join("other").exists(), cell.has_world(), "{}", did.text);
    assert!(!area.join("missing").exists() && !area.join("vs/settings.json").exists());
    assert_eq!(fs::read_link(area.join("hop")).unwrap(), Path::new("real.lua"));
    cell.name(&[(OutsideAccess::Write, "ws/area/env")]);
    cell.run("echo x > env").await.well();
    cell.run("echo evil > idea/a").await.refused();
}

#[tokio::test]
async fn what_a_link_of_a_project_leads_to_is_changed_where_a_person_gave_exactly_that() {
    let mut cell = child_with_links_around_it();
    if no_world_to_test() {
        return;
    }
    let ws = cell.path("ws");
    for dir in ["idea", "rules"] {
        let path = ws.join("area").join(dir);
        let (model, person) = (cell.bench.ctx.given.clone(), Rule::new(&path, Permission::Write));
        cell.bench.ctx.scope.allow = vec![person];
        cell.bench.ctx.cwd = path.clone();
        let write = "for file in *; do echo x >> $file; done; echo x > new";
        cell.run(write).await.refused();
        assert_eq!(needs(&cell, &path.join("new")), [Need::Outside]);
        cell.bench.ctx.given = cell.bench.ctx.scope.clone();
        cell.run(write).await.well();
        assert!(needs(&cell, &path.join("new")).is_empty());
        cell.bench.ctx.given = model;
    }
}

#[tokio::test]
async fn a_checkout_that_leaves_a_guarded_file_says_so_although_git_ends_with_0() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let ws = cell.path("ws");
    git(&ws, &["init", "-q", "-b", "main"]);
    for branch in ["main", "other"] {
        if branch == "other" {
            git(&ws, &["checkout", "-q", "-b", branch]);
        }
        fs::write(ws.join(".mcp.json"), branch).unwrap();
        git(&ws, &["add", "."]);
        git(&ws, &["commit", "-q", "-m", branch]);
    }
    git(&ws, &["checkout", "-q", "main"]);
    let output = cell.bench.bash("git checkout other").await;
    assert!(output.summary.starts_with("Exit 0 "), "{output:?}");
    let content = output.content.unwrap();
    assert!(content.contains("[git left .mcp.json as it was, because it is guarded."), "{content}");
    assert_eq!(fs::read_to_string(ws.join(".mcp.json")).unwrap(), "main");
}

#[tokio::test]
async fn a_commit_says_which_hooks_did_not_run_and_that_it_is_not_signed() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let (ws, home) = (cell.path("ws"), cell.path("home"));
    git(&ws, &["init", "-q"]);
    let commit = "git -c user.name=a -c user.email=a@b commit --allow-empty -m x";
    let said = cell.bench.bash(commit).await.content.unwrap();
    assert!(!said.contains("not run") && !said.contains("not signed"), "{said}");
    let hook = cell.bench.path("outside/pre-commit");
    fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    std::os::unix::fs::symlink(&hook, ws.join(".git/hooks/pre-commit")).unwrap();
    let led =
        format!("[hooks of this repository lead to \"{}\", outside of the scope,", hook.display());
    let said = cell.bench.bash(commit).await.content.unwrap();
    assert!(said.contains(&led), "{said}");
    git(&ws, &["config", "core.hooksPath", "../outside"]);
    let said = cell.bench.bash(commit).await.content.unwrap();
    assert!(said.contains("/outside\", outside of the scope, and do not run]"), "{said}");
    git(&ws, &["config", "core.hooksPath", "hooks"]);
    if !cell.has_world() {
        return;
    }
    let settings = "[core]\nhooksPath = ~/hooks\n[commit]\ngpgSign = true\n";
    fs::write(home.join(".gitconfig"), settings).unwrap();
    let said = cell.bench.bash(commit).await.content.unwrap();
    for part in ["core.hooksPath of your settings of git names do not run", "are not signed"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("lead to"), "{said}");
    let said = cell.bench.bash("git log --oneline").await.content.unwrap();
    assert!(!said.contains("not signed"), "{said}");
}

#[tokio::test]
async fn what_a_program_may_not_do_is_explained_though_the_command_ends_with_0() {
    let mut cell = Cell::new();
    let said = cell.bench.bash("echo 'setfacl: f: Invalid argument'").await.content.unwrap();
    assert!(said.contains("also not in an access control list"), "{said}");
    let busy = "echo \"fatal: failed to delete 'w': Device or resource busy\"";
    let said = cell.bench.bash(busy).await.content.unwrap();
    assert!(said.contains("with needs: [\"git\"]"), "{said}");
    let said = cell.bench.bash("echo \"Cannot find module '/x/y.js'\"; false").await;
    assert!(said.content.unwrap().contains("confined to its scope"), "a path outside");
}
