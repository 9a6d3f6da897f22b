//! A scope that contains the person's home directory, or the target of a link in it.

use crate::bench::content;
use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git::git;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use yoi::protocol::OutsideAccess;
use yoi::sandbox::{Need, Outcome};
use yoi::scope::{Permission, Rule};
use yoi::tools::touched;

/// Files that a shell, a desktop, an editor, git and toolchains execute or read as settings.
const OBEYED: [&str; 14] = [
    ".bashrc",
    ".profile",
    ".zshenv",
    ".config/fish/config.fish",
    ".config/autostart/a.desktop",
    ".config/systemd/user/a.service",
    ".config/nvim/init.lua",
    ".gitconfig",
    ".config/git/config",
    ".tmux.conf",
    ".claude/settings.json",
    ".cargo/config.toml",
    ".rustup/toolchains/a/bin/rustc",
    "bin/ls",
];

/// A link to the home directory of these cells exists, too.
fn at_home(home: &str) -> Cell {
    let mut cell = Cell::outside_of_tmp();
    symlink(cell.path("ws"), cell.path("linked")).unwrap();
    cell.env("HOME", cell.path(home).display().to_string());
    for name in ["CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR"] {
        cell.bench.ctx.env.remove(name);
    }
    cell
}

#[tokio::test]
async fn a_command_in_the_home_directory_changes_nothing_that_programs_of_the_person_obey() {
    for home in ["ws", "linked"] {
        let mut cell = at_home(home);
        let ws = cell.path("ws");
        let change = format!(
            "for file in {}; do mkdir -p $(dirname $file); echo evil > $file; rm -f $file; \
             mv $(dirname $file) aside; echo evil > $file; done; \
             git config --global core.hooksPath /evil; true",
            OBEYED.join(" ")
        );
        cell.run(&change).await.well();
        for file in OBEYED {
            assert!(!ws.join(file).exists(), "{home}: {file} was made");
        }
        cell = at_home(home);
        let ws = cell.path("ws");
        for file in OBEYED {
            cell.bench.file(file, "person");
        }
        cell.run(&change).await.well();
        for file in OBEYED {
            let kept = fs::read_to_string(ws.join(file)).unwrap_or_default();
            assert_eq!(kept, "person", "{home}: {file}");
        }
    }
}

#[tokio::test]
async fn the_rest_of_a_home_directory_is_worked_in_as_ever() {
    let cell = at_home("ws");
    if no_world_to_test() {
        return;
    }
    cell.bench.file(".bashrc", "person");
    cell.bench.file(".config/app/settings", "old");
    let did = cell
        .run("echo new > .config/app/settings; mkdir src; echo x > src/a; echo x > notes; cat ~/.bashrc")
        .await;
    assert_eq!((did.well(), did.ended.undone.len()), ("person", 0), "{:?}", did.ended);
    assert_eq!(fs::read_to_string(cell.path("ws/.config/app/settings")).unwrap(), "new\n");
}

#[tokio::test]
async fn nothing_of_a_scope_in_the_home_directory_is_lost_beside_it_without_a_word() {
    let mut cell = at_home("home");
    let scope = cell.path("home/src/work/app");
    fs::create_dir_all(&scope).unwrap();
    fs::create_dir_all(cell.path("home/.config")).unwrap();
    cell.bench.ctx.scope.allow = vec![Rule::new(&scope, Permission::Write)];
    cell.bench.ctx.cwd = scope.clone();
    for place in ["..", "../..", "../new", "../../../src/new"] {
        fs::write(scope.join("notes"), "mine").unwrap();
        let did = cell.run(&format!("mv notes {place}")).await;
        assert_ne!(did.ended.outcome, Outcome::Exited(0), "{place}: {}", did.text);
        assert_eq!(fs::read_to_string(scope.join("notes")).unwrap(), "mine", "{place}");
        assert_eq!(did.ended.lost, [""; 0], "{place}");
    }
    if !cell.has_world() {
        return;
    }
    // Programs write settings at home on their own.
    let did =
        cell.run("echo x > ~/.settings && mkdir -p ~/.config/app && cp notes ~/.config/app/").await;
    assert_eq!((did.well(), did.ended.lost.as_slice()), ("", &[] as &[String]));
    let settings = "git config --global a.b c && echo x >> ~/.bashrc && mkdir -p ~/.ssh && touch ~/.ssh/known_hosts";
    let did = cell.run(settings).await;
    assert_eq!(did.well(), "");
    assert_eq!(did.ended.lost, [".bashrc", ".gitconfig", ".ssh"]);
    let did = cell.run("cp notes ~/ && mkdir ~/archive && cp notes ~/archive/").await;
    assert_eq!(
        (did.well(), did.ended.lost.as_slice()),
        ("", &["archive".into(), "notes".into()][..])
    );
    let output = cell.bench.bash("cp notes ~/").await;
    let said = "what the command left in the home directory is gone: ~/notes";
    assert!(content(&output).contains(said), "{output:?}");
    assert!(output.summary.ends_with(said), "{output:?}");
}

#[tokio::test]
async fn a_file_to_which_a_link_in_the_home_directory_leads_is_guarded_in_a_scope() {
    let cell = Cell::outside_of_tmp();
    if no_world_to_test() {
        return;
    }
    cell.bench.file("bashrc", "person");
    symlink(cell.path("ws/bashrc"), cell.path("home/.bashrc")).unwrap();
    symlink(cell.path("ws/profile"), cell.path("home/.profile")).unwrap();
    cell.run("echo evil >> bashrc").await.refused();
    cell.run("mv bashrc other").await.refused();
    let did = cell.run("echo evil > profile; echo x > other").await;
    did.undone(1);
    assert!(!cell.path("ws/profile").exists());
    assert_eq!(cell.path("ws/other").exists(), cell.has_world(), "{}", did.text);
    assert_eq!(needs(&cell, &cell.path("ws/bashrc")), [Need::Outside]);
}

#[tokio::test]
async fn settings_that_a_command_names_or_that_are_the_scope_itself_are_changed() {
    let mut cell = at_home("ws");
    if no_world_to_test() {
        return;
    }
    for file in [".bashrc", ".profile", ".config/nvim/init.lua", ".config/nvim/lua/a.lua"] {
        cell.bench.file(file, "person");
    }
    cell.name(&[(OutsideAccess::Write, "ws/.bashrc")]);
    cell.run("echo x >> .bashrc").await.well();
    cell.run("echo x >> .profile").await.refused();
    cell.name(&[]);
    cell.needs.clear();
    for (home, part) in [("ws", ".config/nvim"), ("linked", ".config/nvim/lua")] {
        cell.env("HOME", cell.path(home).display().to_string());
        let part = cell.path("ws").join(part);
        cell.bench.ctx.scope.allow = vec![Rule::new(part.clone(), Permission::Write)];
        cell.bench.ctx.given = cell.bench.ctx.scope.clone();
        cell.bench.ctx.cwd = part.clone();
        let did = cell.run("for file in *.lua; do echo x >> $file; done; echo x > new.lua").await;
        did.well();
        assert!(did.ended.undone.is_empty() && part.join("new.lua").exists(), "{:?}", did.ended);
        assert!(needs(&cell, &part.join("new.lua")).is_empty());
    }
}

#[tokio::test]
async fn settings_that_a_model_gave_to_a_child_as_its_scope_are_not_changed() {
    let places = [
        (".config/nvim", "init.lua"),
        (".config/nvim/lua", "a.lua"),
        (".config/fish", "config.fish"),
        ("bin", "ls"),
        (".bashrc", ""),
    ];
    for home in ["ws", "linked"] {
        for (place, file) in places {
            let mut cell = at_home(home);
            let ws = cell.path("ws");
            let path = ws.join(place).join(file);
            let path = if file.is_empty() { ws.join(place) } else { path };
            cell.bench.file(path.to_str().unwrap(), "person");
            let rules = [(ws.join(place), Permission::Write), (ws.clone(), Permission::Read)];
            cell.bench.ctx.scope.allow = rules.map(|(path, may)| Rule::new(path, may)).into();
            cell.run(&format!("echo evil > {}", path.display())).await.refused();
            cell.run(&format!("echo evil > {}", path.with_file_name(".profile").display()))
                .await
                .refused();
            assert!(needs(&cell, &path).contains(&Need::Outside), "{home}: {place}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "person", "{home}: {place}");
        }
    }
}

#[tokio::test]
async fn a_link_in_the_home_directory_guards_what_a_model_gave_to_a_child() {
    let mut cell = Cell::outside_of_tmp();
    if no_world_to_test() {
        return;
    }
    let file = cell.bench.file("dot/bashrc", "person");
    symlink(&file, cell.path("home/.bashrc")).unwrap();
    for scope in [file.clone(), cell.path("ws/dot")] {
        let rules = [(scope, Permission::Write), (cell.path("ws"), Permission::Read)];
        cell.bench.ctx.scope.allow = rules.map(|(path, may)| Rule::new(path, may)).into();
        cell.run(&format!("echo evil > {}", file.display())).await.refused();
        assert_eq!(needs(&cell, &file), [Need::Outside]);
        assert_eq!(fs::read_to_string(&file).unwrap(), "person");
    }
}

/// The grant that `Write` needs for a path.
pub fn needs(cell: &Cell, path: &Path) -> Vec<Need> {
    let arguments = serde_json::json!({ "file_path": path }).to_string();
    touched("Write", &arguments, &cell.bench.ctx).unwrap().needs
}

#[tokio::test]
async fn a_file_tool_changes_what_programs_of_the_person_obey_only_when_granted() {
    for home in ["ws", "linked"] {
        let mut cell = at_home(home);
        for file in OBEYED {
            let path = cell.path("ws").join(file);
            assert!(needs(&cell, &path).contains(&Need::Outside), "{file}");
            let output = cell.bench.write(&path, "x").await;
            assert!(output.is_error && output.summary.contains("is guarded"), "{output:?}");
        }
        let output = cell.bench.write(&cell.path("ws/.bashrc"), "x").await;
        let words = "a shell, an editor or a tool of yours runs it or takes its settings from it";
        assert!(output.summary.contains(words), "{output:?}");
        assert!(needs(&cell, &cell.path("ws/src/.bashrc")).is_empty());
        cell.bench.ctx.needs = vec![Need::Outside];
        assert!(!cell.bench.write(&cell.path("ws/.bashrc"), "x").await.is_error);
    }
}

#[tokio::test]
async fn no_link_takes_the_place_of_a_directory_on_the_way_to_what_is_guarded() {
    let cell = at_home("ws");
    if no_world_to_test() {
        return;
    }
    let ws = cell.path("ws");
    fs::create_dir(ws.join(".husky")).unwrap();
    git(&ws, &["init", "-q"]);
    git(&ws, &["config", "core.hooksPath", ".husky/_"]);
    let did = cell
            .run(
                "mv .husky h; mkdir -p h/_; echo evil > h/_/pre-commit; chmod +x h/_/pre-commit; ln -s h .husky; \
                 mkdir c; echo '{}' > c/settings.json; ln -s c .claude; \
                 mkdir -p d/init.d; echo evil > d/init.d/x.gradle; ln -s d .gradle",
            )
            .await;
    for planted in [".husky/_/pre-commit", ".claude/settings.json", ".gradle/init.d/x.gradle"] {
        assert!(!ws.join(planted).exists(), "{planted}: {:?}", did.ended.undone);
    }
    // Without namespaces it cannot create any of them.
    let made = cell.has_world();
    assert!(did.ended.undone.len() >= 3 || !made, "{:?}", did.ended.undone);
    assert_eq!(ws.join("h/_/pre-commit").exists(), made, "what the command wrote is not lost");
}
