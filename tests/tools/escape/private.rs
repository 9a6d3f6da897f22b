//! The private files of a Pod's commands: `/tmp` and their layers over caches.

use crate::bench::{argument_error, content};
use crate::escape::cell::{Cell, no_world_to_test};
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use yoi::protocol::LimitKind;
use yoi::sandbox::{CommandLimits, Outcome};
use yoi::scope::{Permission, Rule, Scope};

/// A person with caches and settings of toolchains; `None` where commands have no world of their own.
async fn person() -> Option<Cell> {
    let mut cell = Cell::new();
    cell.bench.ctx.env.remove("CARGO_HOME");
    for (file, text) in [
        ("home/.npm/_cacache/index", "person"),
        ("home/.cargo/registry/src/lib.rs", "person"),
        ("home/.cargo/config.toml", "[build]"),
        ("home/.gradle/init.d/a.gradle", "person"),
        ("home/.gradle/caches/jar", "person"),
        ("home/go/pkg/mod/a.go", "person"),
    ] {
        fs::create_dir_all(cell.path(file).parent().unwrap()).unwrap();
        fs::write(cell.path(file), text).unwrap();
    }
    if no_world_to_test() {
        return None;
    }
    // The first command creates the cache directories that do not exist yet.
    cell.run(":").await.well();
    Some(cell)
}

/// The next Pod of the same person.
fn another_pod(cell: &mut Cell) {
    cell.bench.ctx.private = cell.path("another");
}

/// Every file below a directory, with all that a write would change.
fn everything(dir: &Path) -> Vec<(String, Vec<u8>, [i64; 4])> {
    let mut found = Vec::new();
    // The kernel keeps a directory beside each layer that its owner cannot read.
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let (path, meta) = (entry.path(), entry.metadata().unwrap());
        let facts = [meta.mode().into(), meta.mtime(), meta.mtime_nsec(), meta.size() as i64];
        let bytes = if meta.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        found.push((path.display().to_string(), bytes, facts));
        if meta.is_dir() {
            found.extend(everything(&path));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn what_a_pod_writes_to_a_cache_neither_another_pod_nor_the_person_gets() {
    let Some(mut cell) = person().await else { return };
    let before = everything(&cell.path("home"));
    let did = cell
        .run(
            "cat ~/.npm/_cacache/index ~/.cargo/registry/src/lib.rs ~/.gradle/caches/jar \
                ~/go/pkg/mod/a.go && \
             echo evil > ~/.npm/_cacache/index && echo evil > ~/.cargo/registry/src/new.rs && \
             chmod 777 ~/.cargo/registry/src/lib.rs && rm -r ~/go/pkg/mod && \
             mv ~/.gradle/caches/jar ~/.gradle/caches/moved && echo evil > ~/.cache/new",
        )
        .await;
    assert_eq!(did.well(), "personpersonpersonperson");
    assert_eq!(everything(&cell.path("home")), before);
    let look = "cat ~/.npm/_cacache/index; ls ~/.cargo/registry/src ~/.gradle/caches ~/.cache; \
                ls ~/go/pkg";
    let kept = "evil\n{h}/.cache:\nnew\n\n{h}/.cargo/registry/src:\nlib.rs\nnew.rs\n\n\
                {h}/.gradle/caches:\nmoved\n";
    let home = cell.path("home").display().to_string();
    assert_eq!(cell.run(look).await.text, kept.replace("{h}", &home), "the Pod keeps its own");
    another_pod(&mut cell);
    let clean = "person{h}/.cache:\n\n{h}/.cargo/registry/src:\nlib.rs\n\n\
                 {h}/.gradle/caches:\njar\nmod\n";
    assert_eq!(cell.run(look).await.text, clean.replace("{h}", &home));
}

#[tokio::test]
async fn settings_of_toolchains_are_not_changed() {
    let Some(cell) = person().await else { return };
    for program in [
        "echo evil >> ~/.cargo/config.toml",
        "echo evil > ~/.gradle/init.d/b.gradle",
        "mv ~/.cargo/config.toml ~/.cargo/old",
        "rm ~/.gradle/init.d/a.gradle",
    ] {
        cell.run(program).await.refused();
    }
    // Missing files are created in memory.
    let made = "echo evil > ~/.cargo/config; echo evil > ~/.npmrc; mkdir ~/.gradle/x";
    let did = cell.run(made).await;
    assert_eq!(did.text.is_empty(), cell.has_world(), "{}", did.text);
    for name in [".cargo/config", ".npmrc", ".gradle/x"] {
        assert!(!cell.path("home").join(name).exists(), "{name}");
    }
}

#[tokio::test]
async fn a_large_cache_is_used_without_a_copy() {
    let Some(cell) = person().await else { return };
    let file = fs::File::create(cell.path("home/.npm/large")).unwrap();
    file.set_len(1 << 33).unwrap();
    let did = cell.run("stat -c %s ~/.npm/large; tail -c 1 ~/.npm/large | wc -c").await;
    assert_eq!(did.well(), "8589934592\n1\n");
    let kept = everything(&cell.bench.ctx.private);
    assert!(kept.iter().all(|(path, ..)| !path.ends_with("large")), "{kept:?}");
}

/// The kernel else writes to the disk, when such a layer is unmounted, all that any program has changed on
/// the file system.
#[tokio::test]
async fn the_end_of_a_command_does_not_wait_for_the_disk() {
    let Some(cell) = person().await else { return };
    let layers = "grep ' - overlay ' /proc/self/mountinfo";
    for _ in ["first mount", "mount of a layer that was left"] {
        let did = cell.run(layers).await;
        let text = did.well();
        assert!(text.lines().count() > 3, "{text}");
        assert!(text.lines().all(|line| line.contains("volatile")), "{text}");
    }
}

/// The kernel does not say what happens where one layer is written through two mounts.
#[tokio::test]
async fn commands_that_run_at_once_write_to_different_layers() {
    let Some(cell) = person().await else { return };
    cell.run("echo first > ~/.npm/first").await.well();
    let long =
        "touch ready; until [ -e go ]; do sleep 0.01; done; ls ~/.npm; echo long > ~/.npm/long";
    let beside = async {
        while !cell.path("ws/ready").exists() {
            tokio::task::yield_now().await;
        }
        let did = cell.run("cat ~/.npm/first ~/.npm/_cacache/index; echo x > ~/.npm/beside").await;
        assert_eq!(did.well(), "first\nperson");
        fs::write(cell.path("ws/go"), "").unwrap();
    };
    let (did, ()) = tokio::join!(cell.run(long), beside);
    assert_eq!(did.well(), "_cacache\nfirst\n");
    assert_eq!(cell.run("ls ~/.npm").await.well(), "_cacache\nfirst\nlong\n");
    let left = fs::read_dir(cell.bench.ctx.private.join("aside")).unwrap().count();
    assert_eq!(left, 0, "what it wrote is gone with it");
}

#[tokio::test]
async fn a_command_in_the_background_keeps_what_it_writes_to_tmp_and_nothing_in_a_cache() {
    let Some(mut cell) = person().await else { return };
    cell.in_background = true;
    let write = "echo it > ~/.npm/it; mkdir -p /tmp/target; echo it > /tmp/target/it";
    cell.run(write).await.well();
    cell.in_background = false;
    let kept = cell.run("ls ~/.npm; ls /tmp/target; rm /tmp/target/it").await;
    assert_eq!(kept.well(), "_cacache\nit\n");
}

#[tokio::test]
async fn nothing_runs_in_the_background_where_a_key_could_appear_in_the_scope() {
    let Some(mut cell) = person().await else { return };
    cell.in_background = true;
    for (permission, flat) in [(Permission::Write, false), (Permission::Read, true)] {
        let rule = Rule { recursive: !flat, ..Rule::new(cell.path("home"), permission) };
        cell.bench.ctx.scope = Scope::new(vec![rule]);
        let why = cell.try_run("cat ~/.netrc").await.unwrap_err().to_string();
        assert!(why.contains("nothing may run in the background"), "{why}");
    }
}

#[tokio::test]
async fn the_first_commands_of_a_pod_start_together() {
    let Some(mut cell) = person().await else { return };
    for n in 0..10 {
        cell.bench.ctx.private = cell.path(&format!("pod-{n}"));
        let together = (0..6).map(|_| cell.run("echo started"));
        for did in futures_util::future::join_all(together).await {
            assert_eq!(did.well(), "started\n");
        }
    }
}

#[tokio::test]
async fn a_file_in_tmp_is_the_same_for_commands_and_for_file_tools() {
    let Some(mut cell) = person().await else { return };
    let name = format!("yoi-test-{}", uuid::Uuid::now_v7());
    let file = Path::new("/tmp").join(&name);
    let bench = &mut cell.bench;
    bench.bash(&format!("echo by-command > {}", file.display())).await;
    let output = bench.read(&file).await;
    assert!(content(&output).contains("by-command"), "{output:?}");
    let output = bench.edit(&file, "by-command", "by-tool").await;
    assert!(!output.is_error, "{output:?}");
    let output = bench.bash(&format!("cat {}", file.display())).await;
    assert_eq!(content(&output), "by-tool\n");
    let made = Path::new("/tmp").join(format!("{name}-dir/new"));
    assert!(!bench.write(&made, "made").await.is_error);
    let output = bench.bash(&format!("cat {}", made.display())).await;
    assert_eq!(content(&output).trim_end(), "made");
    let output = bench.call("Glob", json!({"pattern": format!("/tmp/{name}-dir/**")})).await;
    let found = content(&output).trim_end().to_owned();
    // A path that a result names exists for commands, too.
    assert!(found.ends_with("-dir/new"), "{output:?}");
    let output = bench.bash(&format!("cat {found}")).await;
    assert_eq!(content(&output).trim_end(), "made");
    assert!(!file.exists() && !made.exists(), "the person's own /tmp holds nothing of it");
    another_pod(&mut cell);
    let output = cell.bench.read(&file).await;
    assert!(argument_error(&output).starts_with("file not found"), "{output:?}");
}

/// The person's files in `/tmp` are outside the scope, and file tools follow no link out of the
/// Pod's `/tmp`.
#[tokio::test]
async fn tmp_leads_no_file_tool_to_files_of_the_person() {
    let Some(mut cell) = person().await else { return };
    let outside = cell.path("outside/secret");
    let link = Path::new("/tmp/yoi-test-link");
    cell.bench.bash(&format!("ln -s {} {}", outside.display(), link.display())).await;
    for path in [&outside, link] {
        let output = cell.bench.read(path).await;
        assert!(argument_error(&output).contains("outside allowed scope"), "{output:?}");
        assert!(cell.bench.write(path, "x").await.is_error);
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "outside");
    // If the scope is in /tmp, a link that replaces it is removed and not followed.
    let Ok(inner) = cell.path("").strip_prefix("/tmp").map(Path::to_owned) else { return };
    let own = cell.bench.ctx.private.join("tmp").join(inner.components().next().unwrap());
    fs::remove_dir_all(&own).unwrap();
    symlink("/usr", &own).unwrap();
    cell.run("echo x > here").await.well();
    assert!(cell.path("ws/here").exists());
}

#[tokio::test]
async fn a_command_ends_when_its_pod_keeps_too_much() {
    let Some(mut cell) = person().await else { return };
    cell.only_in_a_world();
    let limits = CommandLimits { tmp_mib: 2, cache_mib: 2, ..CommandLimits::default() };
    cell.bench.ctx.command_limits = limits;
    for (place, said) in [("/tmp", "files in /tmp"), ("~/.npm", "files in the caches")] {
        let program = format!("head -c 4M /dev/zero > {place}/big; sleep 600");
        let output = cell.bench.bash(&program).await;
        let text = output.content.clone().unwrap_or_default();
        assert!(output.is_error && text.contains(said) && text.contains("2 MiB"), "{output:?}");
        let output = cell.bench.bash(&format!("rm {place}/big")).await;
        assert!(!output.is_error, "a command that makes room goes on: {output:?}");
    }
}

/// Which of them wrote is not known, so both are ended.
#[tokio::test]
async fn commands_that_run_at_the_same_time_are_ended_together_and_each_result_says_so() {
    let Some(mut cell) = person().await else { return };
    cell.only_in_a_world();
    cell.limits = CommandLimits { tmp_mib: 2, ..CommandLimits::default() };
    let fills = async {
        while !cell.path("ws/ready").exists() {
            tokio::task::yield_now().await;
        }
        cell.run("head -c 4M /dev/zero > /tmp/big; sleep 600").await
    };
    for did in <[_; 2]>::from(tokio::join!(cell.run("touch ready; sleep 600"), fills)) {
        assert_eq!(did.ended.outcome, Outcome::AtLimit, "{did:?}");
        let sentence = &did.ended.limit.as_ref().expect("a limit").sentence;
        assert!(sentence.contains("another command of the Pod that ran"), "{sentence}");
    }
}

/// A command may end between two looks.
#[tokio::test]
async fn a_command_that_ended_by_itself_is_measured_at_its_end() {
    let Some(mut cell) = person().await else { return };
    cell.only_in_a_world();
    cell.bench.ctx.command_limits = CommandLimits { tmp_mib: 2, ..CommandLimits::default() };
    let closed =
        "mkdir /tmp/closed; exec 3> /tmp/closed/big; chmod 0 /tmp/closed; head -c 4M /dev/zero >&3";
    for program in ["head -c 4M /dev/zero > /tmp/big", closed] {
        let output = cell.bench.bash(program).await;
        let kind = output.limit.as_ref().map(|met| met.kind);
        assert_eq!(kind, Some(LimitKind::Space), "{program}: {output:?}");
        let output = cell.bench.bash("rm -r /tmp/big /tmp/closed; true").await;
        assert!(!output.is_error && output.limit.is_none(), "{output:?}");
    }
}

/// Exchanges the directory above the workspace with another one, in the `/tmp` that all commands of the Pod share, until a
/// file tells it to end.
const SWAPPER: &str = r#"
import os, sys
above, stop = sys.argv[1:]
fake, aside = '/tmp/fake', '/tmp/aside'
os.makedirs(fake + '/ws/.yoi', exist_ok=True)
while not os.path.exists(stop):
    for of, to in (above, aside), (fake, above), (above, fake), (aside, above):
        try:
            os.rename(of, to)
        except OSError:
            # A command that begins made a directory there.
            pass
"#;

#[tokio::test]
async fn no_mount_of_a_command_goes_to_another_place_while_one_beside_it_moves_directories() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    fs::create_dir_all(cell.path("ws/.yoi")).unwrap();
    fs::write(cell.path("ws/swapper.py"), SWAPPER).unwrap();
    cell.run("true").await.well();
    let above = cell.path("ws").parent().unwrap().display().to_string();
    let swaps = format!("python3 swapper.py {above} /tmp/stop");
    let swapper = async { cell.run(&swaps).await };
    let others = async {
        let mut began = 0;
        for _ in 0..40 {
            // One that finds a directory in another place does not begin, or writes there.
            began += u32::from(cell.try_run("echo x > .yoi/written; true").await.is_ok());
            assert!(!cell.path("ws/.yoi/written").exists());
        }
        while cell.try_run("touch /tmp/stop").await.is_err() {}
        began
    };
    let (swapped, began) = tokio::join!(swapper, others);
    swapped.well();
    println!("{began} of 40 commands began");
}

#[tokio::test]
async fn a_pipe_in_the_place_of_a_generated_file_stops_no_command() {
    let cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.only_in_a_world();
    fs::write(cell.path("home/.gitconfig"), "[user]\n\tname = Ann\n").unwrap();
    let pipe = "rm -f ~/.gitconfig && mkfifo ~/.gitconfig && test -p ~/.gitconfig";
    cell.run(pipe).await.well();
    assert_eq!(cell.run("git config user.name").await.well().trim(), "Ann");
}
