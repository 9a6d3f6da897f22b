//! Compares the output of `:explain` with the files and variables that a command sees.

use crate::escape::cell::{Cell, no_world_to_test};
use std::collections::BTreeSet;
use std::path::PathBuf;
use yoi::sandbox::Isolation;
use yoi::scope::{Permission, Rule};
use yoi::tools::command_sheet;

/// Variables that bash sets itself.
const OF_THE_SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

#[tokio::test]
async fn a_command_gets_what_its_explanation_says() {
    let mut cell = Cell::new();
    cell.bench.file("lent/a", "");
    cell.bench.file(".git/HEAD", "ref: refs/heads/main");
    cell.bench.file(".git/config", "");
    cell.bench.file("home/.netrc", "secret");
    cell.env("HOME", cell.path("ws/home").display().to_string());
    let read = Rule::new(cell.path("outside"), Permission::Read);
    cell.bench.ctx.scope.allow.push(read);
    let programs = cell.path("programs");
    std::fs::create_dir(&programs).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    cell.env("PATH", format!("{}:{path}", programs.display()));
    let lent = Rule::new(cell.path("ws/lent"), Permission::Write);
    cell.bench.ctx.scope.deny.push(lent);
    if no_world_to_test() {
        return;
    }
    let sheet = command_sheet(&cell.bench.ctx);
    assert!(sheet.write.contains(&cell.path("ws")) && sheet.read.contains(&cell.path("outside")));
    assert!(sheet.read.contains(&programs), "{:?}", sheet.read);
    let shut: Vec<(PathBuf, bool)> =
        sheet.shut.iter().map(|place| (place.path.clone(), place.read)).collect();
    for (path, read) in [("lent", true), (".git/config", true), ("home/.netrc", false)] {
        assert!(shut.contains(&(cell.path("ws").join(path), read)), "{path}: {shut:?}");
    }
    let own = sheet.own.iter().map(|place| &place.path).chain(&sheet.write).chain(&sheet.caches);
    let writes = own.map(|path| format!("[ -w '{0}' ] || echo write {0}", path.display()));
    let reads = sheet
        .read
        .iter()
        .map(|path| format!("[ -r '{0}' ] && [ ! -w '{0}' ] || echo read {0}", path.display()));
    let shut = sheet.shut.iter().filter(|place| place.read);
    let shut = shut.map(|place| format!("[ ! -w '{0}' ] || echo shut {0}", place.path.display()));
    let hidden = sheet.shut.iter().filter(|place| !place.read && place.path.is_file());
    let hidden =
        hidden.map(|place| format!("! cat '{0}' 2>&- || echo hidden {0}", place.path.display()));
    let program: Vec<String> = writes.chain(reads).chain(shut).chain(hidden).collect();
    // Every place that the sheet names is as it says; a difference is printed.
    assert_eq!(cell.run(&program.join("\n")).await.text, "");
    let found = cell.run("env -0 | cut -z -d= -f1 | tr '\\0' '\\n'").await;
    let found: BTreeSet<&str> =
        found.well().lines().filter(|name| !OF_THE_SHELL.contains(name)).collect();
    assert_eq!(found, sheet.env.iter().map(String::as_str).collect());
}

#[tokio::test]
async fn without_a_world_the_explanation_says_what_is_granted_there() {
    let mut cell = Cell::without_mounts();
    cell.bench.ctx.isolation = Isolation::LandlockOnly;
    let sheet = command_sheet(&cell.bench.ctx);
    assert!(sheet.write.contains(&cell.path("ws")), "{sheet:?}");
    assert!(!sheet.read.iter().any(|path| path.starts_with(cell.path("outside"))));
    cell.run("echo x > new && cat new").await.well();
}
