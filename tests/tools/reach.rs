//! What the file tools can get at: the scope, and no way round it.

use crate::bench::{Bench, argument_error, content};
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
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

/// Somebody swaps a directory for a link to the outside, back and forth, while it is used: what is
/// outside is never read and never written.
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
                assert!(error.starts_with("path is secret, no tool reads or writes it: "), "{error}");
            }
            let arguments = serde_json::json!({ "file_path": path }).to_string();
            let touch = yoi::tools::touched("Read", &arguments, &bench.ctx).unwrap();
            assert!(touch.lacks.is_none(), "no answer opens it: {touch:?}");
            assert!(touch.closed.is_some_and(|why| why.starts_with("path is secret")));
        }
    }
}

#[tokio::test]
async fn what_processes_hold_in_memory_is_no_file_whatever_the_scope() {
    let mut bench = Bench::new();
    let rules = vec![Rule::new("/", Permission::Write)];
    for scope in [bench.ctx.scope.clone(), Scope::new(rules)] {
        bench.ctx.scope = scope;
        for path in ["/proc/self/environ", "/proc/thread-self/environ", "/proc/1/environ"] {
            let output = bench.read(path.as_ref()).await;
            let error = argument_error(&output);
            assert!(error.starts_with("path is the kernel's own, no file tool opens it"), "{error}");
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
