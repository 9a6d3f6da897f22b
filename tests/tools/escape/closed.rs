//! Directories that a command makes unreadable for its user, who is also the user of the helper.
//! Root could still read them, so the helper of these tests runs without the capabilities for that.

use crate::escape::cell::Cell;
use crate::escape::git::git;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use yoi::scope::{Permission, Rule};

/// Starts the helper without the capabilities that ignore the modes of files.
const WITHOUT_POWER: &str = r"import ctypes, os, sys
libc = ctypes.CDLL(None)
for power in (1, 2):
    libc.prctl(24, power, 0, 0, 0)
os.execv(HELPER, [HELPER, *sys.argv[1:]])
";

fn without_power() -> Cell {
    let mut cell = Cell::outside_of_tmp();
    let python = std::env::split_paths(&std::env::var("PATH").unwrap())
        .map(|dir| dir.join("python3"))
        .find(|path| path.exists())
        .expect("python3");
    let (wrapper, helper) = (cell.path("without-power"), env!("CARGO_BIN_EXE_yoi"));
    let text = format!("#!{}\nHELPER = {helper:?}\n{WITHOUT_POWER}", python.display());
    fs::write(&wrapper, text).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o700)).unwrap();
    cell.bench.ctx.helper = wrapper;
    cell
}

#[tokio::test]
async fn what_lies_in_a_directory_that_a_command_closed_is_guarded_all_the_same() {
    let mut cell = without_power();
    let ws = cell.path("ws");
    for file in ["deep/lent/file", ".claude/settings.json"] {
        cell.bench.file(file, "person");
    }
    cell.bench.file("home/.config/gh/hosts.yml", "secret");
    cell.env("HOME", ws.join("home").display().to_string());
    git(&ws, &["init", "-q"]);
    git(&ws, &["init", "-q", "sub"]);
    let lent = Rule::new(ws.join("deep/lent"), Permission::Write);
    cell.bench.ctx.scope.deny.push(lent);
    let close = "chmod 0 deep sub .claude home/.config; chmod 0311 .";
    cell.run(close).await.well();
    let act = "chmod 755 . deep sub .claude home/.config; cat home/.config/gh/hosts.yml; \
               for file in deep/lent/file .claude/settings.json sub/.git/config sub/.git/hooks/pre-commit; \
               do echo evil >> $file; done; true";
    let did = cell.run(act).await;
    assert!(!did.well().contains("secret"), "{}", did.text);
    for file in ["deep/lent/file", ".claude/settings.json"] {
        assert_eq!(fs::read_to_string(ws.join(file)).unwrap(), "person", "{file}");
    }
    assert!(!fs::read_to_string(ws.join("sub/.git/config")).unwrap().contains("evil"));
    assert!(!ws.join("sub/.git/hooks/pre-commit").exists());
    assert_eq!(fs::read_to_string(ws.join("home/.config/gh/hosts.yml")).unwrap(), "secret");
}

#[tokio::test]
async fn what_a_command_hides_in_a_closed_directory_is_moved_aside() {
    let cell = without_power();
    let ws = cell.path("ws");
    git(&ws, &["init", "-q"]);
    git(&ws, &["config", "core.hooksPath", "tools/hooks"]);
    let did = cell
        .run(
            "mkdir -p .claude tools/hooks; echo evil > .claude/settings.json; echo evil > tools/hooks/pre-commit; \
             echo evil > .mcp.json; chmod 0111 .claude tools; chmod 0311 .; true",
        )
        .await;
    did.well();
    for planted in [".claude/settings.json", "tools/hooks/pre-commit", ".mcp.json"] {
        assert!(!ws.join(planted).exists(), "{planted}: {:?}", did.ended.undone);
    }
    // Without namespaces the command cannot create these files at all.
    assert!(!cell.has_world() || did.ended.undone.len() == 3, "{:?}", did.ended.undone);
}

#[tokio::test]
async fn a_directory_that_was_closed_before_is_guarded_as_a_whole() {
    let cell = without_power();
    let ws = cell.path("ws");
    cell.bench.file("sub/plain", "x");
    git(&ws, &["init", "-q"]);
    git(&ws, &["init", "-q", "sub"]);
    fs::set_permissions(ws.join("sub"), fs::Permissions::from_mode(0o000)).unwrap();
    cell.run("chmod 755 sub; echo evil > sub/.git/hooks/pre-commit").await.refused();
    fs::set_permissions(ws.join("sub"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!ws.join("sub/.git/hooks/pre-commit").exists());
    cell.run("echo y > sub/plain").await.well();
}
