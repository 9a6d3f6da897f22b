//! Files outside the scope.

use crate::escape::cell::Cell;
use std::fs;
use yoi::protocol::OutsideAccess::{Read, Write};
use yoi::scope::{Permission, Rule};

#[tokio::test]
async fn files_outside_the_scope_are_neither_read_nor_listed_nor_written_landlock_1() {
    let cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    for program in [
        "cat ../outside/secret",
        "ls ../outside",
        "echo x > ../outside/new",
        "echo x >> ../outside/secret",
        "rm ../outside/secret",
        "mkdir ../outside/dir",
        "cp ../outside/secret .",
        "exec 3<../outside/secret",
    ] {
        cell.run(program).await.refused();
    }
    assert_eq!(fs::read_to_string(cell.path("outside/secret")).unwrap(), "outside");
    assert_eq!(fs::read_dir(cell.path("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn dots_links_and_the_files_of_this_process_lead_nowhere_landlock_1() {
    let cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    let secret = cell.path("outside/secret");
    for program in [
        "cat $PWD/sub/../../outside/secret".to_owned(),
        "ln -s ../outside link; cat link/secret".to_owned(),
        "ln -s ../outside/new file; echo x > file".to_owned(),
        format!("cat /proc/self/root{}", secret.display()),
        "cat /proc/self/cwd/../outside/secret".to_owned(),
        format!("exec 3<.; cat /proc/self/fd/3/../outside/secret {}", secret.display()),
    ] {
        fs::create_dir_all(cell.path("ws/sub")).unwrap();
        cell.run(&program).await.refused();
    }
    assert!(!cell.path("outside/new").exists());
}

#[tokio::test]
async fn a_link_that_is_swapped_while_it_is_used_leads_nowhere_landlock_1() {
    let cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    cell.bench.file("real/secret", "inside");
    let swap = "for i in $(seq 200); do ln -sfn ../outside way; ln -sfn real way; done & \
                for i in $(seq 200); do cat way/secret 2>/dev/null; echo x 2>/dev/null > way/new; \
                done; wait; true";
    let did = cell.run(swap).await;
    assert!(!did.well().contains("outside"), "{}", did.text);
    assert!(!cell.path("outside/new").exists());
}

#[tokio::test]
async fn another_process_gives_no_access_to_its_files_landlock_1() {
    let cell = Cell::new();
    if !cell.covered(1, "other processes") {
        return;
    }
    let host = std::process::id();
    let secret = cell.path("outside/secret").display().to_string();
    for program in [
        format!("cat /proc/{host}/root{secret}"),
        format!("cat /proc/{host}/environ"),
        format!("cat /proc/{host}/maps"),
        format!("ls -l /proc/{host}/fd/"),
        format!("cd /proc/{host}/cwd && ls"),
        format!("cat /proc/{host}/mem"),
        format!("readlink /proc/{host}/exe || cat /proc/$PPID/environ"),
    ] {
        let did = cell.run(&program).await;
        assert!(!did.text.contains("PATH="), "{program}: {}", did.text);
        assert_ne!(did.ended.outcome, yoi::sandbox::Outcome::Exited(0), "{program}: {}", did.text);
    }
}

#[tokio::test]
async fn a_file_is_not_linked_or_moved_across_the_walls_landlock_1() {
    let cell = Cell::new();
    if !cell.covered(1, "links") {
        return;
    }
    cell.bench.file("own", "mine");
    for program in [
        "import os; os.link('../outside/secret', 'linked')",
        "import os; os.rename('../outside/secret', 'moved')",
        "import os; os.rename('own', '../outside/own')",
        "import os; os.link('own', '../outside/own')",
        "import os; os.symlink('x', '../outside/link')",
    ] {
        cell.python(program).await.refused();
    }
    assert_eq!(fs::read_dir(cell.path("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn a_file_that_may_not_be_written_is_not_emptied_landlock_3() {
    let cell = Cell::new();
    if !cell.covered(3, "truncate") {
        return;
    }
    cell.python("import os; os.truncate('../outside/secret', 0)").await.refused();
    cell.python("open('../outside/secret', 'w')").await.refused();
    assert_eq!(fs::read_to_string(cell.path("outside/secret")).unwrap(), "outside");
}

/// Written down as not covered: a hard link that was already inside.
#[tokio::test]
async fn not_covered_is_a_hard_link_that_lies_inside_already() {
    let cell = Cell::new();
    fs::hard_link(cell.path("outside/secret"), cell.path("ws/link")).unwrap();
    assert_eq!(cell.run("cat link").await.well(), "outside");
}

#[tokio::test]
async fn a_library_put_before_all_others_runs_behind_the_same_walls_landlock_1() {
    let mut cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    let source = r#"
        #include <fcntl.h>
        #include <stdio.h>
        __attribute__((constructor)) static void begin(void) {
            int new = open(OUTSIDE "/new", O_CREAT | O_WRONLY, 0600);
            int secret = open(OUTSIDE "/secret", O_RDONLY);
            fprintf(stderr, "loaded %d %d\n", new, secret);
        }"#;
    cell.bench.file("evil.c", source);
    let outside = cell.path("outside");
    let compile =
        format!("cc -shared -fPIC -DOUTSIDE='\"{}\"' -o evil.so evil.c", outside.display());
    cell.run(&compile).await.well();
    cell.env("LD_PRELOAD", cell.path("ws/evil.so").display().to_string());
    let did = cell.run("true; /bin/true").await;
    assert!(did.well().contains("loaded -1 -1"), "{}", did.text);
    assert!(!did.text.contains("loaded 3"), "{}", did.text);
    assert!(!outside.join("new").exists());
}

#[tokio::test]
async fn outside_opens_files_but_no_secret_and_nothing_of_ours() {
    let cell = Cell::naming(&[(Write, "home"), (Write, "own"), (Read, "outside/secret")]);
    if !cell.covered(1, "files") {
        return;
    }
    for dir in ["own", "home/.ssh", "home/.config/gh"] {
        fs::create_dir_all(cell.path(dir)).unwrap();
        fs::write(cell.path(dir).join("file"), "hidden").unwrap();
    }
    fs::write(cell.path("home/.netrc"), "hidden").unwrap();
    assert_eq!(cell.run("cat ../outside/secret").await.well(), "outside");
    // Without namespaces no new file can be created beside a guarded path.
    let did = cell.run("echo x > ../home/new; cat ../home/new").await;
    assert_eq!(did.text == "x\n", cell.has_world(), "{}", did.text);
    for path in ["own/file", "home/.ssh/file", "home/.config/gh/file", "home/.netrc"] {
        let did = cell.run(&format!("cat ../{path}")).await;
        assert!(!did.text.contains("hidden"), "{path}: {}", did.text);
        cell.run(&format!("mv ../{path} moved; mv ../home/.ssh ../home/x")).await;
        assert_eq!(fs::read_to_string(cell.path(path)).unwrap(), "hidden", "{path}");
    }
}

#[tokio::test]
async fn keys_in_a_readable_home_are_unreadable_for_commands_and_for_file_tools() {
    let mut cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    let key = cell.path("ws/home/.ssh/id_ed25519");
    cell.bench.file("home/.ssh/id_ed25519", "needle");
    cell.bench.file("home/.ssh/id_rsa", "needle");
    cell.bench.file("home/plain", "nothing");
    cell.env("HOME", cell.path("ws/home").display().to_string());
    let did = cell.run("cat ~/.ssh/id_* ~/plain; cp -r ~/.ssh copy; grep -r needle .").await;
    assert!(did.text.contains("nothing") && !did.text.contains("needle"), "{}", did.text);
    let output = cell.bench.read(&key).await;
    assert!(output.summary.contains("path is secret, no tool reads or writes it"), "{output:?}");
    let output = cell.bench.write(&cell.path("ws/home/.ssh/new"), "x").await;
    assert!(output.is_error, "{output:?}");
    let input = serde_json::json!({"pattern": "needle", "output_mode": "content"});
    let found = cell.bench.call("Grep", input).await;
    assert!(!found.content.unwrap_or_default().contains("needle"));
}

/// A scope inside a directory of secrets, or on a file of one, opens nothing there.
#[tokio::test]
async fn a_scope_inside_a_secret_place_opens_none_of_it_landlock_1() {
    let mut cell = Cell::new();
    if !cell.covered(1, "files") {
        return;
    }
    for file in ["keys/id", "known_hosts", "id_rsa"] {
        let file = cell.path("home/.ssh").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "outside\n").unwrap();
    }
    for target in ["home/.ssh/keys", "home/.ssh/known_hosts"] {
        let rule = Rule::new(cell.path(target), Permission::Write);
        cell.bench.ctx.scope.allow.push(rule);
    }
    for program in [
        "cat ../home/.ssh/keys/id || echo Permission denied && false",
        "cat ../home/.ssh/known_hosts || echo Permission denied && false",
        "echo x > ../home/.ssh/keys/new || echo Permission denied && false",
        "echo x >> ../home/.ssh/known_hosts || echo Permission denied && false",
    ] {
        cell.run(program).await.refused();
    }
    let kept = fs::read_to_string(cell.path("home/.ssh/known_hosts")).unwrap();
    assert_eq!(kept, "outside\n");
    assert!(!cell.path("home/.ssh/keys/new").exists());
    cell.bench.ctx.cwd = cell.path("home/.ssh/keys");
    let output = cell.bench.bash("cat id").await;
    assert!(output.is_error && output.summary.contains("commands may not run in"), "{output:?}");
}

/// Files with tokens stay unreadable even if their directories are in the scope.
#[tokio::test]
async fn tokens_of_tools_are_unreadable_landlock_1() {
    let cell = Cell::naming(&[(Write, "home")]);
    if !cell.covered(1, "files") {
        return;
    }
    for file in [
        ".yarnrc.yml",
        ".npmrc",
        ".cache/huggingface/token",
        ".config/gh/hosts.yml",
        ".docker/config.json",
        ".netrc",
        ".pypirc",
        ".config/pip/pip.conf",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".git-credentials",
        ".config/github-copilot/apps.json",
        ".local/share/opencode/auth.json",
        ".fly/config.yml",
        ".s3cfg",
        ".python_history",
    ] {
        let path = cell.path("home").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "token").unwrap();
        let did = cell.run(&format!("cat ~/{file}")).await;
        assert!(!did.text.contains("token\n") && did.text != "token", "{file}: {}", did.text);
        let output = yoi::sandbox::UserPaths { env: &cell.bench.ctx.env }.secret(&path);
        assert!(output.is_some(), "{file}");
    }
}
