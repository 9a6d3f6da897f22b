//! File tools reach only the scope, by no detour.

use crate::bench::{Bench, argument_error, content};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use yoi::sandbox::Need;
use yoi::scope::{Permission, Rule, Scope};

#[tokio::test]
async fn dots_do_not_lead_out() {
    let mut bench = Bench::new();
    fs::write(bench.path("outside/secret"), "secret").unwrap();
    for path in ["ws/../outside/secret", "ws/./../outside/secret"] {
        let output = bench.read(&bench.path(path)).await;
        assert!(argument_error(&output).starts_with("path is outside allowed scope: "));
    }
    bench.file("sub/a.txt", "inside");
    let output = bench.read(&bench.path("outside/../ws/sub/../sub/./a.txt")).await;
    assert_eq!(output.files[0].path, bench.path("ws/sub/a.txt"));
}

#[tokio::test]
async fn a_link_out_of_the_scope_is_refused_and_named() {
    let mut bench = Bench::new();
    fs::write(bench.path("outside/secret"), "secret").unwrap();
    symlink(bench.path("outside"), bench.path("ws/dir")).unwrap();
    symlink(bench.path("outside/secret"), bench.path("ws/link")).unwrap();
    for name in ["ws/dir/secret", "ws/link"] {
        let output = bench.read(&bench.path(name)).await;
        let error = argument_error(&output);
        assert!(error.starts_with("path leads through a symbolic link outside allowed scope: "));
        assert!(error.ends_with(&bench.path("outside/secret").display().to_string()));
    }
    let output = bench.write(&bench.path("ws/dir/new"), "x").await;
    assert!(argument_error(&output).contains("symbolic link outside allowed scope"));
    assert!(!bench.path("outside/new").exists());
}

#[tokio::test]
async fn a_link_inside_the_scope_is_followed_and_stays_a_link() {
    let mut bench = Bench::new();
    let real = bench.file("real.txt", "one");
    symlink("real.txt", bench.path("ws/link")).unwrap();
    let output = bench.read(&bench.path("ws/link")).await;
    assert_eq!(output.files[0].path, real);
    assert!(!bench.write(&bench.path("ws/link"), "two").await.is_error);
    assert_eq!(fs::read_to_string(&real).unwrap(), "two");
    assert!(bench.path("ws/link").is_symlink());
}

#[tokio::test]
async fn a_broken_link_names_its_target() {
    let mut bench = Bench::new();
    symlink("nowhere", bench.path("ws/link")).unwrap();
    for output in
        [bench.read(&bench.path("ws/link")).await, bench.write(&bench.path("ws/link"), "x").await]
    {
        let error = argument_error(&output);
        assert!(error.starts_with("broken symbolic link: "), "{error}");
        assert!(error.contains("link -> nowhere; create its target"), "{error}");
    }
}

#[tokio::test]
async fn a_readable_path_cannot_be_written() {
    let mut bench = Bench::new();
    bench.ctx.scope = bench.ctx.scope.as_read_only();
    let path = bench.file("a.txt", "one");
    bench.read(&path).await;
    for output in [bench.write(&path, "two").await, bench.edit(&path, "one", "two").await] {
        let expected = format!("path is read-only in this scope: {}", path.display());
        assert_eq!(argument_error(&output), expected);
    }
}

#[tokio::test]
async fn a_rule_about_one_file_or_a_directory_to_be_made_is_enough() {
    let mut bench = Bench::new();
    let (single, made) = (bench.path("outside/single.txt"), bench.path("outside/new/dir"));
    fs::write(&single, "one").unwrap();
    let rules = [&single, &made].map(|path| Rule::new(path, Permission::Write));
    bench.ctx.scope = Scope::new(rules.into());
    assert_eq!(content(&bench.read(&single).await), "     1\tone\n");
    assert!(!bench.write(&single, "two").await.is_error);
    assert!(!bench.write(&made.join("a/b.txt"), "x").await.is_error);
    let output = bench.write(&bench.path("outside/other"), "x").await;
    assert!(argument_error(&output).starts_with("path is outside allowed scope: "));
}

#[tokio::test]
async fn a_denied_directory_inside_the_scope_does_not_exist_for_the_tools() {
    let mut bench = Bench::new();
    let path = bench.file("own/secret.txt", "needle");
    bench.ctx.scope = bench.ctx.scope.clone().with_deny([bench.path("ws/own")]);
    let output = bench.read(&path).await;
    assert!(argument_error(&output).starts_with("path is outside allowed scope: "));
    let output = bench.write(&bench.path("ws/own/new"), "x").await;
    assert!(argument_error(&output).starts_with("path is outside allowed scope: "));
    for (tool, input) in [("Glob", "**/*"), ("Grep", "needle")] {
        let output = bench.call(tool, serde_json::json!({"pattern": input})).await;
        assert_eq!(content(&output), "");
    }
}

/// Another thread swaps a directory for a link to the outside, back and forth, while it is used: no
/// file outside is read or written.
#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_swapped_for_a_link_leads_nowhere() {
    let mut bench = Bench::new();
    bench.file("dir/file", "inside");
    fs::write(bench.path("outside/file"), "outside").unwrap();
    symlink(bench.path("outside"), bench.path("ws/evil")).unwrap();
    let (dir, evil) = (bench.path("ws/dir"), bench.path("ws/evil"));
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = stop.clone();
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !stop.load(Ordering::Relaxed) {
                renameat_with(CWD, &dir, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    for round in 0..300 {
        let output = bench.read(&bench.path("ws/dir/file")).await;
        assert!(!output.content.unwrap_or_default().contains("outside"));
        bench.write(&bench.path(&format!("ws/dir/new-{round}")), "x").await;
        let found = bench.call("Grep", serde_json::json!({"pattern": "outside"})).await;
        assert_eq!(found.content, None);
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(fs::read_dir(bench.path("outside")).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(bench.path("outside/file")).unwrap(), "outside");
}

#[tokio::test]
async fn a_secret_is_refused_by_name_wherever_the_scope_ends() {
    let mut bench = Bench::new();
    let key = bench.path("home/.ssh/id_ed25519");
    fs::create_dir_all(key.parent().unwrap()).unwrap();
    fs::write(&key, "needle").unwrap();
    symlink(&key, bench.path("ws/link")).unwrap();
    for root in ["ws", "home"] {
        bench.ctx.scope = Scope::new(vec![Rule::new(bench.path(root), Permission::Write)]);
        for path in [&key, &bench.path("ws/link")] {
            for output in [bench.read(path).await, bench.write(path, "x").await] {
                let error = argument_error(&output);
                assert!(
                    error.starts_with("path is secret, no tool reads or writes it: "),
                    "{error}"
                );
            }
            let arguments = serde_json::json!({ "file_path": path }).to_string();
            let touch = yoi::tools::touched("Read", &arguments, &bench.ctx).unwrap();
            assert!(touch.lacks.is_none(), "no answer opens it: {touch:?}");
            assert!(touch.closed.is_some_and(|why| why.starts_with("path is secret")));
        }
    }
}

#[tokio::test]
async fn an_attachment_is_refused_exactly_where_read_refuses() {
    let mut bench = Bench::new();
    for (path, text) in [("home/.ssh/id_rsa", "key"), ("outside/a", "a"), ("ws/own/a", "a")] {
        fs::create_dir_all(bench.path(path).parent().unwrap()).unwrap();
        fs::write(bench.path(path), text).unwrap();
    }
    bench.file("plain.txt", "plain");
    let huge = fs::File::create(bench.path("ws/huge")).unwrap();
    huge.set_len(33 * 1024 * 1024).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, bench.path("ws/fifo"), fifo, mode, 0).unwrap();
    let links = [
        ("to-key", "../home/.ssh/id_rsa"),
        ("to-outside", "../outside/a"),
        ("to-zero", "/dev/zero"),
        ("to-magic", "/proc/self/environ"),
        ("to-nothing", "gone"),
        ("to-itself", "to-itself"),
        ("to-plain", "plain.txt"),
    ];
    for (name, to) in links {
        symlink(to, bench.path("ws").join(name)).unwrap();
    }
    // The home directory is in the scope, its secrets are not; one part is denied.
    let rules = ["ws", "home"].map(|root| Rule::new(bench.path(root), Permission::Read));
    bench.ctx.scope = Scope::new(rules.into()).with_deny([bench.path("ws/own")]);
    let table = [
        ("plain.txt", true),
        ("./plain.txt", true),
        ("../ws/plain.txt", true),
        ("to-plain", true),
        ("PLAIN.TXT", false),
        ("gone", false),
        ("plain.txt/below", false),
        ("gone/../plain.txt", false),
        ("../outside/a", false),
        ("../../../../../../../../etc/shadow", false),
        ("/etc/shadow", false),
        ("~/.ssh/id_rsa", false),
        ("../home/.ssh/id_rsa", false),
        ("own/a", false),
        ("huge", false),
        ("fifo", false),
        ("to-key", false),
        ("to-outside", false),
        ("to-zero", false),
        ("to-magic", false),
        ("to-nothing", false),
        ("to-itself", false),
        ("/proc/self/environ", false),
        ("/dev/zero", false),
    ];
    for (name, opens) in table {
        let attached = yoi::tools::attachment(name, &bench.ctx);
        let read = bench.read(&bench.ctx.cwd.join(name)).await;
        assert_eq!(
            (attached.is_ok(), !read.is_error),
            (opens, opens),
            "{name}: {attached:?} {read:?}"
        );
        if let Err(error) = attached {
            assert!(read.summary.contains(&error.to_string()), "{name}: {error} / {read:?}");
        }
    }
    let listed = yoi::tools::attachment("../home", &bench.ctx).unwrap();
    assert_eq!(listed.text, ".ssh/");
    for closed in ["../home/.ssh", "../outside", "own", "/proc/self"] {
        assert!(yoi::tools::attachment(closed, &bench.ctx).is_err(), "{closed} is not listed");
    }
}

#[tokio::test]
async fn process_memory_is_refused_in_every_scope() {
    let mut bench = Bench::new();
    let rules = vec![Rule::new("/", Permission::Write)];
    for scope in [bench.ctx.scope.clone(), Scope::new(rules)] {
        bench.ctx.scope = scope;
        for path in ["/proc/self/environ", "/proc/thread-self/environ", "/proc/1/environ"] {
            let output = bench.read(path.as_ref()).await;
            let error = argument_error(&output);
            assert!(
                error.starts_with("path is the kernel's own, no file tool opens it"),
                "{error}"
            );
            let arguments = serde_json::json!({ "file_path": path }).to_string();
            let touch = yoi::tools::touched("Read", &arguments, &bench.ctx).unwrap();
            assert!(touch.lacks.is_none() && touch.closed.is_some(), "{touch:?}");
        }
        for tool in ["Grep", "Glob"] {
            let arguments = serde_json::json!({ "pattern": "a", "path": "/proc/self" });
            let output = bench.call(tool, arguments).await;
            assert!(argument_error(&output).starts_with("path is the kernel's own"));
        }
        for path in ["/sys/kernel/uevent_helper", "/proc/sys/kernel/core_pattern"] {
            let output = bench.write(path.as_ref(), "x").await;
            assert!(argument_error(&output).starts_with("path is the kernel's own"), "{output:?}");
        }
    }
}

/// The needs of a call of Write on this path.
fn needs(bench: &Bench, path: &str) -> Vec<Need> {
    let arguments = serde_json::json!({ "file_path": bench.path(path) }).to_string();
    yoi::tools::touched("Write", &arguments, &bench.ctx).unwrap().needs
}

#[tokio::test]
async fn a_file_tool_changes_files_that_git_executes_only_when_granted() {
    let mut bench = Bench::new();
    for path in [".git/HEAD", ".git/hooks/pre-commit", "sub/.git/modules/m/config"] {
        bench.file(path, "old");
    }
    bench.file(".git/config", "[core] hooksPath = tools/hooks ; old");
    bench.file("inner/.git/config", "[core] hooksPath = ../shared");
    bench.file("bare/HEAD", "ref: refs/heads/main");
    bench.file("bare/objects/x", "");
    bench.file("bare/refs/x", "");
    symlink("../.git/hooks", bench.path("ws/sub/link")).unwrap();
    let guarded = [
        ".git/config",
        ".git/config.worktree",
        ".git/commondir",
        ".git/hooks/pre-commit",
        ".git/hooks/new",
        ".git/modules/a/b/hooks/x",
        ".git/worktrees/w/commondir",
        "sub/.git/modules/m/config",
        "sub/link/pre-push",
        "nested/.git",
        "nested/.git/config",
        "bare/config",
        "bare/hooks/update",
        ".git/HEAD",
        "tools/hooks/pre-commit",
        "shared/pre-commit",
        // What would make a repository of a directory.
        "parts/refs/x",
        "led/HEAD",
        "begun/commondir",
        "main/config",
    ];
    bench.file("parts/objects/x", "");
    bench.file("parts/config", "[core] fsmonitor = touch ran");
    bench.file("main/objects/x", "");
    bench.file("main/refs/x", "");
    bench.file("led/commondir", "../main");
    bench.file("begun/HEAD", "ref: refs/heads/main");
    for name in guarded {
        let path = format!("ws/{name}");
        assert_eq!(needs(&bench, &path), [Need::Git], "{name}");
        let output = bench.write(&bench.path(&path), "x").await;
        assert!(argument_error(&output).starts_with("path is guarded, git executes it"), "{name}");
    }
    let path = bench.path("ws/.git/config");
    bench.read(&path).await;
    assert!(argument_error(&bench.edit(&path, "old", "new").await).starts_with("path is guarded"));
    for free in ["ws/.git/refs/heads/config", "ws/.gitignore", "ws/config", "ws/hooks/x"] {
        assert!(needs(&bench, free).is_empty(), "{free}");
    }
    bench.ctx.needs = vec![Need::Git];
    assert!(!bench.edit(&path, "old", "new").await.is_error);
    assert!(!bench.write(&bench.path("ws/sub/link/pre-push"), "x").await.is_error);
}

/// A setting, a link in the repository and its target, and the missing file that git would then
/// use.
const BEHIND_LINKS: [(&str, &str, &str, &str); 3] = [
    ("[core] hooksPath = .husky/_", ".husky", "tools", "tools/_/pre-commit"),
    ("[include] path = ../way/team.conf", "way", "shared", "shared/team.conf"),
    ("", ".git/hooks/pre-commit", "../../scripts/pre-commit", "scripts/pre-commit"),
];

#[test]
fn a_missing_file_that_git_would_obey_behind_a_link_is_changed_only_when_granted() {
    for (setting, link, target, file) in BEHIND_LINKS {
        let bench = Bench::new();
        for path in [".git/HEAD", ".git/hooks/update", "tools/x", "shared/x", "scripts/x"] {
            bench.file(path, "ref: refs/heads/main");
        }
        bench.file(".git/config", setting);
        symlink(target, bench.path("ws").join(link)).unwrap();
        assert_eq!(needs(&bench, &format!("ws/{file}")), [Need::Git], "{file}");
        let (dir, _) = file.split_once('/').unwrap();
        assert!(needs(&bench, &format!("ws/{dir}/free")).is_empty(), "{file}");
    }
}

#[tokio::test]
async fn a_directory_of_programs_is_not_changed_by_a_file_tool_that_was_not_granted_it() {
    let mut bench = Bench::new();
    symlink("real", bench.path("ws/bin")).unwrap();
    let path =
        format!("/usr/bin:{}:{}", bench.path("ws/bin").display(), bench.path("ws/later").display());
    bench.ctx.env.insert("PATH".into(), path);
    fs::create_dir(bench.path("ws/real")).unwrap();
    for name in ["ws/bin/tool", "ws/real/tool", "ws/later/tool"] {
        assert_eq!(needs(&bench, name), [Need::Outside], "{name}");
        let output = bench.write(&bench.path(name), "x").await;
        assert!(argument_error(&output).contains("it is in a directory on PATH"), "{name}");
    }
    bench.ctx.needs = vec![Need::Outside];
    assert!(!bench.write(&bench.path("ws/bin/tool"), "x").await.is_error);
}

#[tokio::test]
async fn a_file_tool_changes_the_rules_of_its_workspace_only_when_granted() {
    let mut bench = Bench::new();
    let path = bench.path("ws/.yoi/config.toml");
    bench.file(".yoi/config.toml", "old");
    bench.read(&path).await;
    for name in ["ws/.yoi/config.toml", "ws/.yoi/new"] {
        assert_eq!(needs(&bench, name), [Need::Outside], "{name}");
    }
    let output = bench.write(&path, "new").await;
    let said = argument_error(&output);
    assert!(said.contains("it holds the rules of this workspace"), "{said}");
    bench.ctx.needs = vec![Need::Outside];
    assert!(!bench.write(&path, "new").await.is_error);
}

#[tokio::test]
async fn a_file_tool_changes_what_editors_and_agents_obey_only_when_granted() {
    let mut bench = Bench::new();
    let path = bench.path("ws/deep/.zed/tasks.json");
    bench.file("deep/.zed/tasks.json", "old");
    bench.read(&path).await;
    for name in [
        "deep/.mcp.json",
        ".opencode/new/a.js",
        ".codex/config.toml",
        ".gemini/extensions/a",
        ".vim/coc-settings.json",
        ".zed/tasks.json",
        ".mcp.json",
        ".claude/settings.json",
        ".claude/hooks/before.sh",
        "deep/.cursor/mcp.json",
    ] {
        let name = format!("ws/{name}");
        assert_eq!(needs(&bench, &name), [Need::Outside], "{name}");
        let output = bench.write(&bench.path(&name), "x").await;
        let said = argument_error(&output);
        assert!(said.contains("an editor or an agent obeys it without asking you"), "{said}");
        assert!(!bench.path(&name).exists() || name.contains("deep"), "{name}");
    }
    // Those that ask the person are shown and not guarded.
    for free in [
        "ws/.vscode/tasks.json",
        "ws/.envrc",
        "ws/.idea/x",
        "ws/.zed/words.txt",
        "ws/.claude/words.md",
        "ws/mcp.json",
        "ws/tasks.json",
    ] {
        assert!(needs(&bench, free).is_empty(), "{free}");
    }
    for step in [
        "rebase-merge/git-rebase-todo",
        "rebase-merge/strategy",
        "rebase-apply/patch",
        "sequencer/opts",
        "worktrees/a/sequencer/opts",
        "modules/a/rebase-merge/strategy",
        "BISECT_NAMES",
        "index",
    ] {
        assert_eq!(needs(&bench, &format!("ws/.git/{step}")), [Need::Git], "{step}");
    }
    assert!(argument_error(&bench.edit(&path, "old", "new").await).contains("is guarded"));
    bench.ctx.needs = vec![Need::Outside];
    assert!(!bench.edit(&path, "old", "new").await.is_error);
    assert!(!bench.write(&bench.path("ws/.mcp.json"), "x").await.is_error);
}

#[tokio::test]
async fn a_change_of_the_scripts_of_a_package_is_said_in_the_result() {
    let mut bench = Bench::new();
    let path = bench.path("ws/app/package.json");
    let said = |names: &str| {
        let path = path.display();
        format!("the scripts {names} in {path} changed: package managers run them as programs")
    };
    let output = bench.write(&path, "{\"scripts\": {\"test\": \"a\"}}").await;
    assert_eq!(output.content, Some(said("\"test\"")));
    bench.read(&path).await;
    let output = bench.edit(&path, "\"a\"", "\"b\"").await;
    assert!(
        output.content.is_some_and(|text| text.ends_with(&format!("[{}]\n", said("\"test\""))))
    );
    bench.read(&path).await;
    let output = bench.edit(&path, "{\"scripts\"", "{\"name\": \"n\", \"scripts\"").await;
    assert!(output.content.is_some_and(|text| !text.contains("changed")));
    let other = bench.path("ws/app/other.json");
    assert_eq!(bench.write(&other, "{\"scripts\": {\"test\": \"a\"}}").await.content, None);
}

#[tokio::test]
async fn a_guarded_file_becomes_no_part_of_a_scope() {
    let bench = Bench::new();
    fs::create_dir_all(bench.path("outside/.git/hooks")).unwrap();
    let path = bench.path("outside/.git/hooks/x");
    let arguments = serde_json::json!({ "file_path": path }).to_string();
    let touch = yoi::tools::touched("Write", &arguments, &bench.ctx).unwrap();
    assert_eq!((touch.lacks, touch.needs), (None, vec![]));
    let way = "and outside the scope; use Bash with needs [\"git\", \"outside\"]";
    assert!(touch.closed.is_some_and(|why| why.ends_with(way)));
    let touch = yoi::tools::touched("Read", &arguments, &bench.ctx).unwrap();
    assert!(touch.lacks.is_some(), "reading it is asked about as always");
}

#[tokio::test]
async fn a_file_tool_acts_on_no_other_path_than_was_decided_about() {
    let mut bench = Bench::new();
    bench.file("a/f", "old");
    bench.file("b/f", "old");
    let (a, b) = (bench.path("ws/a/f"), bench.path("ws/b/f"));
    bench.read(&a).await;
    bench.read(&b).await;
    bench.ctx.path = Some(a.clone());
    assert!(!bench.edit(&a, "old", "new").await.is_error);
    for refused in [
        bench.read(&b).await,
        bench.write(&b, "x").await,
        bench.edit(&b, "old", "new").await,
        bench.call("Grep", serde_json::json!({ "pattern": "o", "path": bench.path("ws/b") })).await,
        bench.call("Glob", serde_json::json!({ "pattern": "*", "path": bench.path("ws/b") })).await,
    ] {
        assert!(argument_error(&refused).contains("resolved to another target"), "{refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&b).unwrap(), "old");
}

#[tokio::test]
async fn a_guarded_name_that_is_a_link_is_asked_for_like_what_it_leads_to() {
    let mut bench = Bench::new();
    let init = ["init", "-q"];
    let git = std::process::Command::new("git").args(init).current_dir(bench.path("ws")).status();
    assert!(git.unwrap().success());
    for name in ["env.sh", "vs/x", "githooks/x", "scripts/pre-push", "rules/x", "free"] {
        bench.file(name, "old");
    }
    fs::remove_dir_all(bench.path("ws/.git/hooks")).unwrap();
    for (to, link) in [
        ("env.sh", ".mcp.json"),
        (".mcp.json", "alias"),
        ("vs", ".zed"),
        ("../githooks", ".git/hooks"),
        ("../scripts/pre-push", "githooks/pre-push"),
        ("rules", ".yoi"),
        ("free", "linked"),
    ] {
        symlink(to, bench.path("ws").join(link)).unwrap();
    }
    for (name, need) in [
        (".mcp.json", Need::Outside),
        ("alias", Need::Outside),
        ("env.sh", Need::Outside),
        (".zed/tasks.json", Need::Outside),
        ("vs/tasks.json", Need::Outside),
        (".yoi/config.toml", Need::Outside),
        ("rules/config.toml", Need::Outside),
        (".git/hooks/pre-commit", Need::Git),
        ("githooks/pre-commit", Need::Git),
        (".git/hooks/pre-push", Need::Git),
        ("scripts/pre-push", Need::Git),
    ] {
        let path = format!("ws/{name}");
        assert_eq!(needs(&bench, &path), [need], "{name}");
        bench.read(&bench.path(&path)).await;
        let output = bench.write(&bench.path(&path), "x").await;
        assert!(argument_error(&output).starts_with("path is guarded"), "{name}: {output:?}");
    }
    for free in ["linked", "free", "vs/other", "scripts/other"] {
        assert!(needs(&bench, &format!("ws/{free}")).is_empty(), "{free}");
    }
    bench.ctx.needs = vec![Need::Outside];
    bench.read(&bench.path("ws/.mcp.json")).await;
    assert!(!bench.write(&bench.path("ws/.mcp.json"), "x").await.is_error);
}
