//! Ordinary work in the sandbox: a crate, a package and a repository are built, tested and
//! committed without an approval.

use crate::bench::{content, without_note};
use crate::escape::cell::Cell;
use serde_json::json;
use std::path::Path;

/// With a name for commits.
fn cell() -> Cell {
    let cell = Cell::new();
    let config = cell.path("home/.gitconfig");
    std::fs::write(config, "[user]\nname = a\nemail = a@b\n").unwrap();
    cell
}

fn on_path(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[tokio::test]
async fn a_rust_crate_is_made_built_tested_and_committed_without_asking() {
    let mut cell = cell();
    let program = "cargo init -q --name plain --vcs none . && cargo test -q --offline && \
                   cargo run -q --offline";
    let output = cell.bench.call("Bash", json!({"command": program, "timeout": 300})).await;
    assert!(content(&output).contains("Hello, world!"), "{output:?}");
    assert!(!content(&output).contains("[confinement"), "{output:?}");
    let output =
        cell.bench.bash("git init -q && git add . && git commit -qm first && git log").await;
    assert!(content(&output).contains("first"), "{output:?}");
    // The hooks of the new repository are guarded now, and the next commit works, too.
    let program = "echo '// more' >> src/main.rs && git commit -qam second && git stash list && \
                   git checkout -qb other && git log --oneline | wc -l";
    let output = cell.bench.bash(program).await;
    if cell.has_world() {
        assert_eq!(content(&output), "2\n");
    }
}

#[tokio::test]
async fn a_node_package_is_tested_without_asking() {
    if !on_path("node") || !on_path("npm") {
        println!("not covered: no node here");
        return;
    }
    let mut cell = cell();
    cell.bench.file(
        "package.json",
        r#"{"name":"plain","version":"1.0.0","scripts":{"test":"node --test","build":"node build.js"}}"#,
    );
    std::fs::write(cell.path("home/.npmrc"), "//registry.npmjs.org/:_authToken=x\n").unwrap();
    cell.bench.file("build.js", "require('fs').writeFileSync('out.js', 'done')");
    cell.bench.file("a.test.js", "require('node:test')('adds', () => {})");
    let output = cell.bench.bash("npm run build && npm test").await;
    assert!(content(&output).contains("pass 1"), "{output:?}");
    assert!(Path::new(&cell.path("ws/out.js")).exists());
}

/// The tools create no file directly in the home directory and need no `sudo`.
#[tokio::test]
async fn tools_without_a_cache_of_their_own_yet_find_one() {
    let mut cell = cell();
    cell.bench.ctx.env.remove("CARGO_HOME");
    if on_path("npm") {
        cell.bench.file("p/package.json", r#"{"name":"p","version":"1.0.0"}"#);
        let package = r#"{"name":"w","version":"1.0.0","dependencies":{"p":"file:p-1.0.0.tgz"}}"#;
        cell.bench.file("package.json", package);
        let program = "(cd p && npm pack -s --pack-destination ..) && \
                       npm install --offline --no-audit && ls node_modules";
        let did = cell.run(program).await;
        assert!(did.well().ends_with("p\n"), "{}", did.text);
    } else {
        println!("not covered: no node here");
    }
    let made = cell.run("mkdir -p $CARGO_HOME/registry && echo -n $CARGO_HOME").await;
    assert_eq!(Path::new(made.well()), cell.path("home/.cache/cargo"));
    for name in [".npm", ".cargo", "go", ".gradle"] {
        assert!(!cell.path("home").join(name).exists(), "{name}");
    }
    std::fs::create_dir(cell.path("home/.cargo")).unwrap();
    assert_eq!(cell.run("echo -n $CARGO_HOME").await.well(), "", "it has a place of its own");
}

#[tokio::test]
async fn a_python_program_finds_its_library_and_a_compiler_its_headers() {
    let mut cell = cell();
    let output =
        cell.bench.bash("python3 -c 'import json, ssl, sqlite3, tempfile; print(1)'").await;
    assert!(content(&output).contains('1'), "{output:?}");
    cell.bench.file("a.c", "#include <stdio.h>\nint main(void) { return puts(\"c\") < 0; }");
    let output = cell.bench.bash("cc -o a a.c && ./a").await;
    assert_eq!(content(&output), "c\n");
}

#[tokio::test]
async fn a_world_has_the_places_that_programs_expect_and_knows_without_a_network_that_a_name_is_unknown()
 {
    let mut cell = Cell::new();
    if !cell.has_world() {
        return;
    }
    cell.env("XDG_RUNTIME_DIR", "/run/user/4711");
    let places = "f=$(mktemp -p /var/tmp) && rm $f && mkdir $XDG_RUNTIME_DIR/socket && grep -q ' / ' /etc/mtab && \
                  test -r /sys/devices/system/cpu/online && getent hosts localhost > /dev/null && echo all";
    assert_eq!(cell.run(places).await.well(), "all\n");
    let asked = "import socket\ntry: socket.getaddrinfo('nowhere.example', 80)\nexcept socket.gaierror as e: print(e.errno == socket.EAI_NONAME)";
    assert_eq!(cell.python(asked).await.well(), "True\n");
}

#[tokio::test]
async fn a_command_that_found_no_network_names_that_need_alone_also_behind_a_pipe() {
    let mut cell = Cell::new();
    let hint = "[this command had no network; if it needs one, run it with needs: [\"network\"] and a reason]";
    let fails = "{ echo 'ERROR: No matching distribution found for x'; exit 1; }";
    for command in [fails.to_owned(), format!("{fails} | tail -1")] {
        let text = cell.bench.bash(&command).await.content.unwrap();
        assert!(text.contains(hint) && !text.contains("outside"), "{command}: {text}");
    }
}

#[tokio::test]
async fn a_command_that_was_denied_names_the_need_to_request() {
    let mut cell = Cell::new();
    let said = if cell.has_world() { "No such file or directory" } else { "Permission denied" };
    let output = cell.bench.bash("cat ../outside/secret").await;
    let text = output.content.unwrap();
    assert!(text.contains(said) && text.contains("needs: [\"network\"]"), "{text}");
    let output = cell.bench.bash("false").await;
    assert_eq!(without_note(&output), "", "an ordinary failure is none of the walls");
    let output = cell.bench.bash("cat missing ./sub/missing").await;
    let text = output.content.unwrap();
    assert!(!text.contains("needs"), "what is missing in the scope is none either: {text}");
}

#[tokio::test]
async fn a_need_counts_only_when_it_was_granted_and_wants_a_reason() {
    use crate::bench::argument_error;
    use yoi::sandbox::Need;
    let mut cell = Cell::new();
    let secret = cell.path("outside/secret");
    let asked = |reason: Option<&str>| json!({"command": "cat ../outside/secret", "outside": [{"path": secret}], "reason": reason});
    let output = cell.bench.call("Bash", asked(Some("to look"))).await;
    assert!(argument_error(&output).starts_with("needs outside was not granted to this command"));
    cell.bench.ctx.needs = vec![Need::Outside];
    let old =
        json!({"command": "cat ../outside/secret", "needs": ["outside"], "reason": "to look"});
    let output = cell.bench.call("Bash", old).await;
    assert!(
        argument_error(&output).contains(r#"add outside: [{"path": "/srv/data""#),
        "{output:?}"
    );
    let output = cell.bench.call("Bash", asked(Some("to look"))).await;
    assert!(argument_error(&output).contains("was not granted to this command"), "{output:?}");
    let access = yoi::protocol::OutsideAccess::Read;
    let path = cell.path("outside/secret");
    cell.bench.ctx.outside = vec![yoi::protocol::OutsidePath { path, access }];
    let output = cell.bench.call("Bash", asked(None)).await;
    assert!(argument_error(&output).starts_with("needs want a reason"));
    let output = cell.bench.call("Bash", asked(Some("to look"))).await;
    assert!(content(&output).starts_with("outside"), "{output:?}");
    // A need that was requested but not granted changes nothing.
    let output = cell.bench.bash("cat ../outside/secret").await;
    assert!(!output.content.clone().unwrap_or_default().starts_with("outside"), "{output:?}");
}
