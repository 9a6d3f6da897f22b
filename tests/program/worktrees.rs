//! Pods with a working tree of git of their own: made, worked in, counted, dropped, and what a killed host leaves.

use crate::bench::{Bench, Host, eventually, signal};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const SCRIPT: &str = r#"
[[when]]
says = "run *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}" } }]
[[when.step]]
text = "Bash said: {result}"

[[when]]
says = "spawn * on * to *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", worktree = "{2}", task = "{3}" } }]
[[when.step]]
text = "SpawnPod said: {result}"

[[when]]
says = "spawn * to *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", worktree = true, task = "{2}" } }]
[[when.step]]
text = "SpawnPod said: {result}"

[[when]]
says = "spawn * in *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", worktree = "{1}", cwd = "{2}", task = "begin" } }]
[[when.step]]
text = "SpawnPod said: {result}"

[[when]]
says = "spawn * with a part and a working tree"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", worktree = "{1}", scope = [{ target = "part", permission = "write" }], task = "begin" } }]
[[when.step]]
text = "SpawnPod said: {result}"

[[when]]
says = "spawn * with a part"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", scope = [{ target = "part", permission = "write" }], task = "begin" } }]
[[when.step]]
text = "SpawnPod said: {result}"

[[when]]
says = "spawn * that reads"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", task = "begin" } }]
[[when.step]]
text = "SpawnPod said: {result}"

[[when]]
says = "let kid *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "run {1}", profile = "inherit" } }]
[[when.step]]
text = "spawned"

[[when]]
any = true
text = "heard: {1}"
"#;

/// Runs git as the person in a directory; its output.
fn git(dir: &Path, args: &[&str]) -> String {
    let person = ["-c", "user.name=p", "-c", "user.email=p@example.org"];
    let mut git = Command::new("git");
    let done = git.args(person).args(args).current_dir(dir).output().expect("git");
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("text")
}

/// A host in a workspace that is a repository with one commit.
fn with_a_repository() -> (Bench, Host) {
    let bench = Bench::new();
    bench.play(SCRIPT);
    git(&bench.ws(), &["init", "--quiet", "--initial-branch=main"]);
    fs::write(bench.ws().join("file"), "one\ntwo\n").expect("a file");
    git(&bench.ws(), &["add", "file"]);
    git(&bench.ws(), &["commit", "--quiet", "--message=first"]);
    let host = bench.serve();
    (bench, host)
}

fn new(bench: &Bench, line: &str) {
    let made = bench.yoi(&["--model", &bench.model(), "-c", line]);
    assert_eq!(made.code, Some(0), "{made:?}");
}

/// Has the Pod run a command; its result as the model got it.
fn run(bench: &Bench, pod: &str, command: &str) -> String {
    result(bench, pod, &format!("run {command}"))
}

/// Sends a message to a Pod, which calls a tool; the result as the model got it.
fn result(bench: &Bench, pod: &str, message: &str) -> String {
    let results = || -> Vec<Value> {
        let entries = bench.log(pod);
        entries.into_iter().filter(|entry| entry["kind"] == "tool_result").collect()
    };
    let before = results().len();
    let sent = bench.yoi(&["send", pod, message]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    eventually("the call has ended", || results().len() > before && is(bench, pod, "idle"));
    results().pop().map(|result| result["item"].to_string()).unwrap_or_default()
}

fn is(bench: &Bench, pod: &str, state: &str) -> bool {
    bench.pod(pod).is_some_and(|info| info["state"] == state)
}

fn tree(bench: &Bench, pod: &str) -> PathBuf {
    let info = bench.pod(pod).unwrap_or_else(|| panic!("{pod} is listed"));
    PathBuf::from(info["worktree"]["path"].as_str().unwrap_or_else(|| panic!("{info}")))
}

/// The added and removed lines of a Pod's working tree.
fn lines(bench: &Bench, pod: &str) -> Option<(u64, u64)> {
    let info = bench.pod(pod)?;
    let lines = &info["worktree"]["lines"];
    Some((lines["added"].as_u64()?, lines["removed"].as_u64()?))
}

/// As the person who works with the repository of git that the Pod committed to.
const COMMIT: &str = "git -c user.name=a -c user.email=a@example.org commit --quiet";

#[test]
fn a_pod_works_and_commits_in_a_working_tree_of_its_own_and_nowhere_else() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new fix --worktree fix-login");
    let tree = tree(&bench, "fix");
    assert!(!tree.starts_with(bench.ws()) && !tree.starts_with(bench.data()), "{tree:?}");
    assert_eq!(git(&tree, &["symbolic-ref", "--short", "HEAD"]), "fix-login\n");
    let said = run(&bench, "fix", "echo three >> file && echo new > other && pwd");
    assert!(said.contains("Exit 0"), "{said}");
    eventually("it is counted", || lines(&bench, "fix") == Some((2, 0)));
    let said = run(&bench, "fix", &format!("git add . && {COMMIT} -m second && git log --oneline"));
    assert!(said.contains("Exit 0") && said.contains("second"), "{said}");
    assert_eq!(git(&bench.ws(), &["log", "--format=%s", "fix-login"]), "second\nfirst\n");
    let top = bench.ws().display().to_string();
    let said = run(&bench, "fix", &format!("cat {top}/file || echo x > {top}/file"));
    assert!(said.contains("No such file"), "{said}");
    assert_eq!(fs::read_to_string(bench.ws().join("file")).expect("a file"), "one\ntwo\n");
    let said = run(&bench, "fix", "git config core.fsmonitor ./evil; git config --list --local");
    assert!(!said.contains("evil"), "{said}");
}

#[test]
fn a_branch_is_used_if_there_is_one_and_a_working_tree_that_cannot_be_made_leaves_nothing() {
    let (bench, _host) = with_a_repository();
    git(&bench.ws(), &["branch", "there"]);
    new(&bench, "new --worktree there");
    assert_eq!(git(&tree(&bench, "there"), &["symbolic-ref", "--short", "HEAD"]), "there\n");
    let refuse = |line: &str, why: &str| {
        let refused = bench.yoi(&["--model", &bench.model(), "-c", line]);
        assert!(refused.code != Some(0) && refused.err.contains(why), "{refused:?}");
    };
    refuse("new b --worktree there", "there");
    refuse("new c --worktree main", "main");
    refuse("new d --worktree a..b", "a..b");
    refuse("new d --worktree refs/heads/-x", "cannot be the name of a branch");
    let part = bench.ws().join("part");
    fs::create_dir_all(part.join(".yoi")).expect("a directory");
    refuse(
        &format!("new d --worktree --cwd {}", part.display()),
        "is not the top of a git repository",
    );
    let programs = bench.path("programs");
    fs::create_dir(&programs).expect("a directory");
    fs::write(programs.join("git"), "#!/bin/sh\nexit 1\n").expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(programs.join("git"), mode).expect("a mode");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let model = bench.model();
    let mut made = bench.command(&["--model", &model, "-c", "new own --worktree"]);
    let made = bench.finish(made.env("PATH", path).spawn().expect("the program"));
    assert_eq!(made.code, Some(0), "the git of another directory is used: {made:?}");
    let none = bench.path("none");
    fs::create_dir(&none).expect("a directory");
    refuse(
        &format!("new e --worktree --cwd {}", none.display()),
        "is not the top of a git repository",
    );
    git(&none, &["init", "--quiet"]);
    refuse(&format!("new e --worktree --cwd {}", none.display()), "has no commit yet");
    let place = tree(&bench, "there");
    let place = place.ancestors().nth(2).expect("a place");
    let left = fs::read_dir(place).expect("a place").count();
    assert_eq!(left, 2, "only those that were made");
    for pod in ["b", "c", "d", "e"] {
        assert!(bench.pod(pod).is_none(), "{pod}");
    }
    let listed = git(&bench.ws(), &["worktree", "list"]);
    assert_eq!(listed.lines().count(), 3, "{listed}");
}

#[test]
fn git_of_the_host_starts_no_program_outside_that_a_repository_names() {
    let (bench, _host) = with_a_repository();
    let mark = bench.path("ran-outside");
    let hook = bench.ws().join(".git/hooks/post-checkout");
    let with_all_rights = bench.ws().join(".git/logs/hook-ran");
    let (mark_path, ran) = (mark.display(), with_all_rights.display());
    let program = format!("#!/bin/sh\ntouch {mark_path} {ran} 2>/dev/null\n");
    fs::create_dir_all(hook.parent().expect("a directory")).expect("a directory");
    fs::write(&hook, &program).expect("a hook");
    fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .expect("a mode");
    let filter = format!("touch {} 2>/dev/null; cat", mark.display());
    for key in ["filter.f.smudge", "filter.f.clean"] {
        git(&bench.ws(), &["config", key, &filter]);
    }
    git(&bench.ws(), &["config", "core.fsmonitor", &hook.display().to_string()]);
    fs::write(bench.ws().join(".gitattributes"), "* filter=f\n").expect("a file");
    git(&bench.ws(), &["add", "."]);
    git(&bench.ws(), &["commit", "--quiet", "--message=filters"]);
    // The person's own git ran the filters.
    fs::remove_file(&mark).expect("they ran");
    let _ = fs::remove_file(&with_all_rights);
    git(&bench.ws(), &["config", "--unset", "core.fsmonitor"]);
    new(&bench, "new fix --worktree");
    assert!(!with_all_rights.exists(), "a hook ran while the repository could be written");
    git(&bench.ws(), &["config", "core.fsmonitor", &hook.display().to_string()]);
    run(&bench, "fix", "echo three >> file");
    let shown = bench.yoi(&["worktree", "fix"]);
    assert!(shown.out.contains("+1 −0"), "{shown:?}");
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    let dropped = bench.yoi(&["worktree", "drop", "fix", "--yes"]);
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    assert!(!mark.exists(), "a program of the repository ran outside the walls");
}

#[test]
fn a_working_tree_is_dropped_after_a_question_and_comes_back_on_its_branch() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new fix --worktree");
    run(&bench, "fix", "echo three >> file; echo new > other");
    let shown = bench.yoi(&["worktree", "fix"]);
    assert!(shown.out.contains("+2 −0") && shown.out.contains("?? other"), "{shown:?}");
    let live = bench.yoi(&["worktree", "drop", "fix", "--yes"]);
    assert!(live.err.contains("is live"), "{live:?}");
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    let asked = bench.yoi(&["worktree", "drop", "fix"]);
    assert!(asked.code != Some(0) && asked.err.contains("?? other"), "{asked:?}");
    let tree = tree(&bench, "fix");
    assert!(tree.join("other").exists());
    // What is not committed stays with a Pod that is deleted.
    run_as_person(&tree, "file");
    assert_eq!(bench.yoi(&["worktree", "drop", "fix", "--yes"]).code, Some(0));
    assert!(!tree.exists());
    assert_eq!(git(&bench.ws(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&bench.ws(), &["log", "--format=%s", "fix"]), "by the person\nfirst\n");
    assert_eq!(bench.yoi(&["restore", "fix"]).code, Some(0));
    assert_eq!(fs::read_to_string(tree.join("file")).expect("a file"), "one\ntwo\nthree\n");
    assert_eq!(git(&tree, &["symbolic-ref", "--short", "HEAD"]), "fix\n");
}

fn run_as_person(tree: &Path, file: &str) {
    git(tree, &["add", file]);
    git(tree, &["commit", "--quiet", "--message=by the person"]);
}

#[test]
fn a_deleted_pod_takes_its_working_tree_along_only_if_nothing_is_lost() {
    let (bench, _host) = with_a_repository();
    fs::write(bench.ws().join(".git/info/exclude"), "secret\n").expect("a file");
    let all = ["clean", "dirty", "loose", "kept", "ignored", "marked", "inner", "below", "gone"];
    for pod in all {
        new(&bench, &format!("new {pod} --worktree"));
    }
    run(&bench, "dirty", "echo new > other");
    let said = run(
        &bench,
        "loose",
        &format!("git checkout --quiet --detach && {COMMIT} --allow-empty -m x"),
    );
    assert!(said.contains("Exit 0"), "{said}");
    assert_eq!(bench.yoi(&["worktree", "keep", "kept"]).code, Some(0));
    run(&bench, "ignored", "echo key > secret");
    run(&bench, "marked", "git update-index --assume-unchanged file; echo changed > file");
    let inner = format!(
        "git init -q i && cd i && {COMMIT} --allow-empty -m x && cd .. && git add i && {COMMIT} -m i"
    );
    let said = run(&bench, "inner", &inner);
    assert!(said.contains("Exit 0"), "{said}");
    // git sees no repository in a directory of tracked files.
    let below = format!(
        "mkdir sub && echo x > sub/f && git add . && {COMMIT} -m f && cd sub && git init -q && git add f && {COMMIT} -m x"
    );
    let said = run(&bench, "below", &below);
    assert!(said.contains("Exit 0"), "{said}");
    assert_eq!(git(&tree(&bench, "below"), &["status", "--porcelain", "--ignored"]), "");
    let said = run(
        &bench,
        "gone",
        &format!("git checkout --quiet --detach && {COMMIT} --allow-empty -m x"),
    );
    assert!(said.contains("Exit 0"), "{said}");
    let trees = all.map(|pod| tree(&bench, pod));
    let [.., gone] = &trees;
    // Nothing but the record of it names the commit.
    fs::remove_dir_all(gone).expect("it is there");
    git(&bench.ws(), &["worktree", "prune"]);
    for pod in all {
        assert_eq!(bench.yoi(&["stop", pod]).code, Some(0));
        assert_eq!(bench.yoi(&["rm", pod, "--yes"]).code, Some(0));
    }
    let there = trees.map(|tree| tree.exists());
    assert_eq!(there, [false, true, true, true, true, true, true, true, false]);
    let listed = git(&bench.ws(), &["worktree", "list"]);
    assert_eq!(listed.lines().count(), 9, "{listed}");
}

#[test]
fn a_new_working_tree_has_every_file_of_its_commit_with_those_that_programs_obey() {
    let (bench, _host) = with_a_repository();
    let files = [
        ".mcp.json",
        ".yoi/config.toml",
        ".claude/settings.json",
        ".codex/config.toml",
        ".zed/tasks.json",
        ".husky/pre-commit",
        ".githooks/post-merge",
        ".envrc",
        "package.json",
        "bare/HEAD",
        "bare/config",
        "bare/objects/keep",
        "bare/refs/keep",
    ];
    for file in files {
        let path = bench.ws().join(file);
        fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        let text = if file == "bare/config" { "[core]\n\tfsmonitor = x\n" } else { "" };
        fs::write(path, text).expect("a file");
    }
    std::os::unix::fs::symlink(".claude", bench.ws().join(".gemini")).expect("a link");
    git(&bench.ws(), &["config", "core.hooksPath", ".githooks"]);
    git(&bench.ws(), &["add", "--all"]);
    git(&bench.ws(), &["commit", "--quiet", "--message=settings"]);
    new(&bench, "new fix --worktree");
    let tree = tree(&bench, "fix");
    let ignored = ["status", "--porcelain", "--ignored", "--untracked-files=all"];
    assert_eq!(git(&tree, &ignored), "");
    for file in files.into_iter().chain([".gemini"]) {
        assert!(fs::symlink_metadata(tree.join(file)).is_ok(), "{file}");
    }
    let listed = bench.yoi(&["ls"]);
    assert!(!format!("{listed:?}").contains("git for the working tree"), "{listed:?}");
    // They are guarded from the first command on.
    let said = run(&bench, "fix", "echo x >> .mcp.json; echo x >> .githooks/post-merge");
    assert_eq!(said.matches("Read-only file system").count(), 2, "{said}");
    assert_eq!(git(&tree, &ignored), "");
}

#[test]
fn a_working_tree_that_is_not_as_its_commit_after_the_check_out_is_refused_and_taken_back() {
    let (bench, _host) = with_a_repository();
    fs::write(bench.ws().join(".git/info/exclude"), ".claude\n").expect("a file");
    fs::write(bench.ws().join(".gitattributes"), "file filter=f\n").expect("a file");
    git(&bench.ws(), &["add", "."]);
    git(&bench.ws(), &["commit", "--quiet", "--message=filter"]);
    let programs = [
        ("touch .mcp.json; cat", "?? .mcp.json"),
        ("mkdir -p .claude; touch .claude/settings.json; cat", "!! .claude/"),
        ("mkdir -p sub; env -u GIT_DIR git init --quiet sub; cat", "./sub/.git"),
        ("echo >> .gitattributes; cat", " M .gitattributes"),
    ];
    for (program, why) in programs {
        git(&bench.ws(), &["config", "filter.f.smudge", program]);
        let refused = bench.yoi(&["--model", &bench.model(), "-c", "new fix --worktree"]);
        assert!(refused.code != Some(0) && refused.err.contains(why), "{why}: {refused:?}");
        assert!(bench.pod("fix").is_none(), "{why}");
        assert_eq!(git(&bench.ws(), &["worktree", "list"]).lines().count(), 1, "{why}");
    }
}

#[test]
fn the_question_before_a_drop_names_the_worst_losses_first() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new fix --worktree");
    let said = run(
        &bench,
        "fix",
        &format!(
            "for n in $(seq 10 40); do echo > new$n; done; git update-index --assume-unchanged file; echo x > file; \
             git checkout --quiet --detach; {COMMIT} --allow-empty -m x; git init -q inner"
        ),
    );
    assert!(said.contains("Exit 0"), "{said}");
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    let asked = bench.yoi(&["worktree", "drop", "fix"]);
    assert!(asked.code != Some(0) && asked.err.contains("?? new10"), "{asked:?}");
    assert!(!asked.err.contains("?? new40") && asked.err.contains("more"), "{asked:?}");
    for loss in ["on no branch", "commits of its own: ./inner/.git", "does not look at it: file"] {
        assert!(asked.err.contains(loss), "{loss}: {asked:?}");
    }
}

#[test]
fn a_working_tree_in_which_another_pod_works_or_that_is_of_another_repository_stays() {
    let (bench, host) = with_a_repository();
    for pod in ["fix", "other", "moved"] {
        new(&bench, &format!("new {pod} --worktree"));
        assert_eq!(bench.yoi(&["stop", pod]).code, Some(0));
    }
    let trees = ["fix", "other", "moved"].map(|pod| tree(&bench, pod));
    let [fix, other, moved] = &trees;
    let stays = |pod: &str, why: &str| {
        let dropped = bench.yoi(&["worktree", "drop", pod, "--yes"]);
        assert!(dropped.code != Some(0) && dropped.err.contains(why), "{dropped:?}");
        let deleted = bench.yoi(&["rm", pod, "--yes"]);
        let said = format!("{}{}", deleted.out, deleted.err);
        assert_eq!(deleted.code, Some(0), "{deleted:?}");
        assert!(said.contains(if pod == "fix" { "`guest` works there" } else { why }), "{said}");
        assert!(said.contains("stays, because"), "{said}");
        let listed = bench.yoi(&["ls"]);
        assert!(!listed.err.contains("stays, because"), "said once: {listed:?}");
    };
    new(&bench, &format!("new guest --cwd {}", fix.display()));
    stays("fix", "pod `guest` may write in the working tree of `fix`");
    fs::remove_file(other.join(".git")).expect("a file");
    git(other, &["init", "--quiet"]);
    run_as_person(other, "file");
    stays("other", "is no working tree of");
    // Where yoi makes working trees is another place now.
    drop(host);
    let elsewhere = bench.path("elsewhere/state");
    let mut host = bench.command(&["--no-ui", "--serve"]);
    let child = host.env("YOI_STATE_DIR", &elsewhere).spawn().expect("the program starts");
    let host = Host { child };
    let is_up = || bench.host_pid() == Some(host.child.id()) && bench.socket().is_some();
    eventually("the host serves", is_up);
    stays("moved", "where yoi makes working trees");
    for tree in &trees {
        assert!(tree.join("file").exists(), "{tree:?}");
    }
    let beside = fs::read_dir(moved.parent().expect("a directory")).expect("a directory");
    assert_eq!(beside.count(), 1, "nothing was set aside");
}

#[test]
fn a_repository_whose_path_has_a_backslash_forgets_a_working_tree() {
    let (bench, _host) = with_a_repository();
    let top = bench.path(r"back\top");
    fs::create_dir(&top).expect("a directory");
    git(&top, &["init", "--quiet"]);
    git(&top, &["commit", "--quiet", "--allow-empty", "--message=first"]);
    new(&bench, &format!("new fix --worktree --cwd '{}'", top.display()));
    let tree = tree(&bench, "fix");
    assert!(tree.ends_with(r"back\top"), "{tree:?}");
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    assert_eq!(bench.yoi(&["rm", "fix", "--yes"]).code, Some(0));
    assert!(!tree.exists());
    assert_eq!(git(&top, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn ten_pods_on_ten_branches_lose_nothing_when_the_host_is_killed() {
    let (bench, host) = with_a_repository();
    let pods: Vec<String> = (0..10).map(|n| format!("p{n}")).collect();
    pods.iter().for_each(|pod| new(&bench, &format!("new {pod} --worktree")));
    for (n, pod) in pods.iter().enumerate() {
        run(&bench, pod, &format!("echo {n} > own"));
        let sent = bench.yoi(&["send", pod, "run echo more >> own; touch begun; sleep 600"]);
        assert_eq!(sent.code, Some(0), "{sent:?}");
    }
    let trees: Vec<PathBuf> = pods.iter().map(|pod| tree(&bench, pod)).collect();
    eventually("all work", || trees.iter().all(|tree| tree.join("begun").exists()));
    signal(host.child.id(), "KILL");
    drop(host);
    let _host = bench.serve();
    for (n, (pod, tree)) in pods.iter().zip(&trees).enumerate() {
        eventually("it is back", || is(&bench, pod, "paused"));
        let own = fs::read_to_string(tree.join("own")).expect("what was not committed");
        assert_eq!(own, format!("{n}\nmore\n"), "{pod}");
        assert_eq!(git(tree, &["symbolic-ref", "--short", "HEAD"]), format!("{pod}\n"));
        assert_eq!(bench.yoi(&["cancel", pod]).code, Some(0));
        let said = run(&bench, pod, &format!("git add . && {COMMIT} -m {pod}"));
        assert!(said.contains("Exit 0"), "{said}");
        assert_eq!(git(&bench.ws(), &["log", "--format=%s", pod]), format!("{pod}\nfirst\n"));
    }
}

#[test]
fn a_working_tree_whose_making_was_cut_off_is_reported_and_made_by_the_restore() {
    let (bench, host) = with_a_repository();
    // The end of a command takes back what changed in the configuration meanwhile, so the filter looks at another file.
    let go = bench.ws().join(".git/description");
    let filter = format!("grep -q go {} || {{ touch begun; sleep 600; }}; cat", go.display());
    git(&bench.ws(), &["config", "filter.f.smudge", &filter]);
    fs::write(&go, "wait\n").expect("a file");
    fs::write(bench.ws().join(".gitattributes"), "file filter=f\n").expect("a file");
    git(&bench.ws(), &["add", "."]);
    git(&bench.ws(), &["commit", "--quiet", "--message=filter"]);
    let model = bench.model();
    let mut making = bench.command(&["--model", &model, "-c", "new fix --worktree"]);
    let mut making = making.spawn().expect("the program");
    eventually("git checks out", || {
        bench.pod("fix").is_some_and(|_| tree(&bench, "fix").join("begun").exists())
    });
    // The client would start a host of its own when this one is gone.
    making.kill().expect("the client runs");
    making.wait().expect("it ends");
    signal(host.child.id(), "KILL");
    drop(host);
    fs::write(&go, "go\n").expect("a file");
    let _host = bench.serve();
    eventually("it is reported", || is(&bench, "fix", "failed"));
    let why = bench.pod("fix").expect("it is listed")["why"].to_string();
    assert!(why.contains("is not there; :restore makes it"), "{why}");
    let restored = bench.yoi(&["restore", "fix"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let tree = tree(&bench, "fix");
    assert_eq!(fs::read_to_string(tree.join("file")).expect("a file"), "one\ntwo\n");
    assert!(!tree.join("begun").exists());
    let said = run(&bench, "fix", &format!("{COMMIT} --allow-empty -m second"));
    assert!(said.contains("Exit 0"), "{said}");
    assert_eq!(git(&bench.ws(), &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_setup_command_runs_once_in_each_new_working_tree_confined_as_its_pod() {
    let (bench, _host) = with_a_repository();
    let top = bench.ws().display().to_string();
    let setup = format!("{{ echo ran; pwd; cat {top}/file; }} >> set-up; touch {top}/x; true");
    fs::create_dir(bench.ws().join(".yoi")).expect("a directory");
    let text = format!("[worktree]\nsetup = '''{setup}'''\n");
    fs::write(bench.ws().join(".yoi/config.toml"), text).expect("a file");
    new(&bench, "new before --worktree");
    assert!(!tree(&bench, "before").join("set-up").exists(), "it is not trusted");
    let notes = bench.pod("before").expect("it is listed")["notes"].to_string();
    assert!(notes.contains("worktree.setup is ignored until you trust this file"), "{notes}");
    let trusted = bench.yoi(&["--yes", "-c", "trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    new(&bench, "new fix --worktree");
    let tree = tree(&bench, "fix");
    let once = format!("ran\n{}\n", tree.display());
    let set_up = || fs::read_to_string(tree.join("set-up")).expect("it ran");
    assert_eq!(set_up(), once, "it reads nothing outside");
    assert!(!bench.ws().join("x").exists(), "it writes nothing outside");
    let notes = bench.pod("fix").expect("it is listed")["notes"].to_string();
    assert!(!notes.contains("setup"), "{notes}");
    for _ in 0..2 {
        assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
        assert_eq!(bench.yoi(&["restore", "fix"]).code, Some(0));
    }
    assert_eq!(set_up(), once);
    let said = run(&bench, "fix", "echo of the pod >> set-up");
    assert!(said.contains("Exit 0"), "{said}");
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    assert_eq!(bench.yoi(&["worktree", "drop", "fix", "--yes"]).code, Some(0));
    assert_eq!(bench.yoi(&["restore", "fix"]).code, Some(0));
    assert_eq!(set_up(), once, "the new directory is set up anew");
}

#[test]
fn a_setup_command_that_fails_is_reported_and_the_pod_works_all_the_same() {
    let (bench, host) = with_a_repository();
    let setup = |command: &str| bench.settings(&format!("[worktree]\nsetup = '''{command}'''\n"));
    setup("echo first; echo no such package; exit 3");
    new(&bench, "new fix --worktree");
    let is_said = || {
        let notes = bench.pod("fix").expect("it is listed")["notes"].to_string();
        let shown = bench.yoi(&["worktree", "fix"]).out;
        assert!(notes.contains("the setup command: Exit 3") && shown.contains("Exit 3"), "{notes}");
        assert!(notes.contains("no such package") && shown.contains("no such package"), "{shown}");
    };
    is_said();
    let said = run(&bench, "fix", "cat file");
    assert!(said.contains("two"), "{said}");
    // What is guarded for the commands of the Pod is so for this one.
    setup("echo {} > .mcp.json");
    new(&bench, "new guarded --worktree");
    let tree = tree(&bench, "guarded");
    assert!(!tree.join(".mcp.json").exists());
    let notes = bench.pod("guarded").expect("it is listed")["notes"].to_string();
    assert!(notes.contains("the setup command: Exit 0") && notes.contains(".mcp.json"), "{notes}");
    drop(host);
    let _host = bench.serve();
    eventually("it is back", || is(&bench, "fix", "idle"));
    is_said();
}

#[test]
fn a_setup_command_that_was_cut_off_runs_again_in_a_directory_that_is_made_anew() {
    let (bench, host) = with_a_repository();
    let go = bench.ws().join(".git/description");
    fs::write(&go, "wait\n").expect("a file");
    let setup = format!(
        "echo begun >> half; grep -q go {} || {{ echo x >> file; sleep 600; }}; touch done",
        go.display()
    );
    bench.settings(&format!("[worktree]\nsetup = '''{setup}'''\n"));
    let model = bench.model();
    let mut making = bench.command(&["--model", &model, "-c", "new fix --worktree"]);
    let mut making = making.spawn().expect("the program");
    let is_changed =
        |tree: &Path| fs::read_to_string(tree.join("file")).is_ok_and(|text| text.ends_with("x\n"));
    eventually("it is set up", || {
        bench.pod("fix").is_some_and(|_| is_changed(&tree(&bench, "fix")))
    });
    assert!(is(&bench, "fix", "stopped"), "it takes no message yet");
    // The client would start a host of its own when this one is gone.
    making.kill().expect("the client runs");
    making.wait().expect("it ends");
    signal(host.child.id(), "KILL");
    drop(host);
    fs::write(&go, "go\n").expect("a file");
    let host = bench.serve();
    eventually("it is reported", || is(&bench, "fix", "failed"));
    let why = bench.pod("fix").expect("it is listed")["why"].to_string();
    assert!(why.contains("is not there; :restore makes it"), "{why}");
    assert_eq!(bench.yoi(&["restore", "fix"]).code, Some(0));
    let tree = tree(&bench, "fix");
    assert_eq!(fs::read_to_string(tree.join("half")).expect("a file"), "begun\n");
    assert_eq!(fs::read_to_string(tree.join("file")).expect("a file"), "one\ntwo\n");
    assert!(tree.join("done").exists());
    let beside = fs::read_dir(tree.parent().expect("a directory")).expect("a directory");
    let aside: Vec<PathBuf> =
        beside.map(|entry| entry.expect("an entry").path()).filter(|path| *path != tree).collect();
    let [aside] = &aside[..] else { panic!("{aside:?}") };
    assert!(aside.join("half").exists(), "what lay there is kept");
    // So it is where a person deleted the directory.
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    fs::remove_dir_all(&tree).expect("it is there");
    fs::write(&go, "wait\n").expect("a file");
    let mut restoring = bench.command(&["restore", "fix"]).spawn().expect("the program");
    eventually("it is set up", || is_changed(&tree));
    restoring.kill().expect("the client runs");
    restoring.wait().expect("it ends");
    signal(host.child.id(), "KILL");
    drop(host);
    fs::write(&go, "go\n").expect("a file");
    let _host = bench.serve();
    eventually("it is reported", || is(&bench, "fix", "failed"));
}

#[test]
fn a_child_works_on_a_branch_of_its_own_beside_its_parent_which_merges_it() {
    let (bench, host) = with_a_repository();
    new(&bench, "new lead");
    let task =
        format!("run echo by the child >> file && {COMMIT} -a -m second && echo kept > loose");
    let said = result(&bench, "lead", &format!("spawn kid on fix to {task}"));
    let tree = tree(&bench, "kid");
    assert!(
        said.contains("on the branch fix") && said.contains(&tree.display().to_string()),
        "{said}"
    );
    eventually("the child is done", || is(&bench, "kid", "idle") && tree.join("loose").exists());
    assert_eq!(git(&bench.ws(), &["log", "--format=%s", "fix"]), "second\nfirst\n");
    let path = tree.display();
    let said = run(
        &bench,
        "lead",
        &format!("ls {path}; echo mine >> other && git merge --quiet fix && cat file"),
    );
    assert!(said.contains("by the child") && said.contains("No such file"), "{said}");
    let top = bench.ws().display().to_string();
    let said = run(&bench, "kid", &format!("cat {top}/file; echo also >> loose"));
    assert!(said.contains("No such file"), "{said}");
    // A child of the child begins where the child is, and knows the repository of both.
    let task = format!("run {COMMIT} --allow-empty -m third; git log --format=%s");
    let said = result(&bench, "kid", &format!("spawn grand to {task}"));
    assert!(said.contains("on the branch grand"), "{said}");
    let of_grand = || git(&bench.ws(), &["log", "--format=%s", "grand"]);
    eventually("it is done", || {
        of_grand() == "third\nsecond\nfirst\n" && is(&bench, "grand", "idle")
    });
    let shown = bench.yoi(&["worktree", "grand"]);
    assert!(shown.out.contains(&top), "its repository is the first one: {shown:?}");
    // All come back with what they may write, also under another host.
    for _ in 0..2 {
        assert_eq!(bench.yoi(&["stop", "lead", "--tree", "--yes"]).code, Some(0));
        assert_eq!(bench.yoi(&["-c", "restore lead --tree"]).code, Some(0));
    }
    signal(host.child.id(), "KILL");
    drop(host);
    let _host = bench.serve();
    for pod in ["lead", "kid", "grand"] {
        eventually("it is back", || is(&bench, pod, "idle"));
        let said = run(&bench, pod, "echo x >> mine && pwd");
        assert!(said.contains("Exit 0"), "{pod}: {said}");
    }
    // The directory goes while the parent lives, and what is not committed is named first.
    assert_eq!(bench.yoi(&["stop", "kid"]).code, Some(0));
    let asked = bench.yoi(&["worktree", "drop", "kid"]);
    assert!(asked.code != Some(0) && asked.err.contains("?? loose"), "{asked:?}");
    assert_eq!(bench.yoi(&["worktree", "drop", "kid", "--yes"]).code, Some(0));
    assert!(!tree.exists());
    assert_eq!(bench.yoi(&["restore", "kid"]).code, Some(0));
    let said = run(&bench, "kid", "cat file && touch there");
    assert!(said.contains("by the child") && said.contains("Exit 0"), "{said}");
}

#[test]
fn a_child_gets_a_working_tree_only_of_a_repository_that_its_parent_may_write_whole() {
    let (bench, _host) = with_a_repository();
    fs::create_dir(bench.ws().join("part")).expect("a directory");
    new(&bench, "new lead");
    let refused = |pod: &str, asked: &str, why: &str| {
        let said = result(&bench, pod, &format!("spawn kid {asked}"));
        assert!(said.contains(why), "{why}: {said}");
        assert!(bench.pod("kid").is_none(), "{asked}");
    };
    refused("lead", "with a part and a working tree", "scope and worktree cannot be joined");
    let elsewhere = bench.path("elsewhere");
    fs::create_dir(&elsewhere).expect("a directory");
    git(&elsewhere, &["init", "--quiet"]);
    refused("lead", &format!("in {}", elsewhere.display()), "cannot give write on");
    refused("lead", "on main to begin", "main");
    let said = result(&bench, "lead", "spawn reader that reads");
    assert!(said.contains("spawned pod"), "{said}");
    eventually("it is there", || is(&bench, "reader", "idle"));
    refused("reader", "to begin", "cannot give write on");
    let said = result(&bench, "lead", "spawn part with a part");
    assert!(said.contains("spawned pod"), "{said}");
    refused("lead", "to begin", "has lent it to `part`");
    assert_eq!(git(&bench.ws(), &["worktree", "list"]).lines().count(), 1);
    let place = bench.path("home/state-worktrees");
    let left = fs::read_dir(&place).map_or(0, |dir| dir.count());
    assert_eq!(left, 0, "{place:?}");
}

#[test]
fn a_host_that_is_killed_while_a_working_tree_of_a_child_is_made_leaves_nothing_of_the_child() {
    let (bench, host) = with_a_repository();
    let go = bench.ws().join(".git/description");
    fs::write(&go, "wait\n").expect("a file");
    let wait = format!("touch begun; grep -q go {} || sleep 600", go.display());
    bench.settings(&format!("[worktree]\nsetup = '''{wait}'''\n"));
    new(&bench, "new lead");
    let asked = "spawn kid on fix to run touch done";
    let sent = bench.yoi(&["send", "lead", asked]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let place = bench.path("home/state-worktrees");
    let trees = || -> Vec<PathBuf> {
        let dirs = fs::read_dir(&place).into_iter().flatten().flatten();
        dirs.map(|dir| dir.path().join(bench.ws().file_name().expect("a name"))).collect()
    };
    eventually("it is set up", || trees().iter().any(|tree| tree.join("begun").exists()));
    signal(host.child.id(), "KILL");
    drop(host);
    fs::write(&go, "go\n").expect("a file");
    let _host = bench.serve();
    eventually("the parent is back", || is(&bench, "lead", "paused"));
    assert!(bench.pod("kid").is_none());
    assert_eq!(trees(), [""; 0].map(PathBuf::from));
    assert_eq!(git(&bench.ws(), &["worktree", "list"]).lines().count(), 1);
    assert_eq!(bench.yoi(&["cancel", "lead"]).code, Some(0));
    assert_eq!(git(&bench.ws(), &["branch", "--format=%(refname:short)"]), "main\n");
    let said = result(&bench, "lead", asked);
    assert!(said.contains("on the branch fix"), "{said}");
    let tree = tree(&bench, "kid");
    eventually("the child works", || tree.join("done").exists());
}

#[test]
fn a_working_tree_that_is_made_while_commands_write_the_repository_stays_whole() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new lead");
    new(&bench, "new beside --worktree");
    let waits = "run touch begun; until [ -e go ]; do sleep 0.1; done";
    let places = [("lead", bench.ws()), ("beside", tree(&bench, "beside"))];
    for (pod, place) in &places {
        assert_eq!(bench.yoi(&["send", pod, waits]).code, Some(0));
        eventually("it runs", || place.join("begun").exists());
    }
    new(&bench, "new fix --worktree");
    for (pod, place) in &places {
        fs::write(place.join("go"), "").expect("a file");
        eventually("it has ended", || is(&bench, pod, "idle"));
        let log = bench.log(pod);
        let ended = log.iter().rev().find(|entry| entry["kind"] == "tool_result");
        let said = ended.map(|entry| entry["item"].to_string()).unwrap_or_default();
        assert!(said.contains("Exit 0") && !said.contains("worktrees"), "{pod}: {said}");
    }
    let said = run(&bench, "fix", &format!("{COMMIT} --allow-empty -m second && git status"));
    assert!(said.contains("On branch fix"), "{said}");
    assert_eq!(git(&bench.ws(), &["log", "--format=%s", "fix"]), "second\nfirst\n");
}

#[test]
fn working_trees_that_are_made_at_once_are_all_whole() {
    let (bench, _host) = with_a_repository();
    let pods: Vec<String> = (0..6).map(|n| format!("p{n}")).collect();
    let model = bench.model();
    let make = |pod: &String| {
        let line = format!("new {pod} --worktree");
        bench.command(&["--model", &model, "-c", &line]).spawn().expect("the program")
    };
    let making: Vec<_> = pods.iter().map(make).collect();
    for made in making {
        let made = bench.finish(made);
        assert_eq!(made.code, Some(0), "{made:?}");
    }
    let listed = bench.yoi(&["ls"]);
    assert!(!format!("{listed:?}").contains("git for the working tree"), "{listed:?}");
    for pod in &pods {
        let said = run(&bench, pod, &format!("{COMMIT} --allow-empty -m {pod}"));
        assert!(said.contains("Exit 0"), "{said}");
        assert_eq!(git(&bench.ws(), &["log", "--format=%s", pod]), format!("{pod}\nfirst\n"));
    }
}

const DENY_ECHO: &str =
    "[[permissions.rule]]\ntool = \"Bash\"\npattern = \"echo *\"\naction = \"deny\"\n";

#[test]
fn the_rules_of_the_workspace_bind_a_child_of_a_pod_in_a_working_tree() {
    let (bench, _host) = with_a_repository();
    fs::write(bench.ws().join(".git/info/exclude"), ".yoi\n").expect("a file");
    fs::create_dir(bench.ws().join(".yoi")).expect("a directory");
    fs::write(bench.ws().join(".yoi/config.toml"), DENY_ECHO).expect("a file");
    new(&bench, "new fix --worktree");
    let said = run(&bench, "fix", "echo parent");
    assert!(said.contains("denied"), "{said}");
    let sent = bench.yoi(&["send", "fix", "let kid echo child"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    let result = || bench.log("kid").into_iter().find(|entry| entry["kind"] == "tool_result");
    eventually("the child has asked", || bench.pod("kid").is_some() && result().is_some());
    let said = result().expect("a result")["item"].to_string();
    assert!(said.contains("denied"), "{said}");
    let workspace = |pod: &str| bench.pod(pod).expect("listed")["workspace"].clone();
    assert_eq!(workspace("kid"), workspace("fix"));
}

#[test]
fn what_only_the_record_of_git_holds_is_not_given_up_unasked() {
    let (bench, _host) = with_a_repository();
    for pod in ["own", "still"] {
        new(&bench, &format!("new {pod} --worktree"));
    }
    let said = run(&bench, "own", "git update-ref refs/worktree/keep HEAD");
    assert!(said.contains("Exit 0"), "{said}");
    let shown = bench.yoi(&["worktree", "own"]);
    assert!(shown.out.contains("refs/worktree/keep"), "{shown:?}");
    // An operation of git that was under way when a person deleted the directory.
    let still = tree(&bench, "still");
    let record = git(&still, &["rev-parse", "--absolute-git-dir"]);
    let record = PathBuf::from(record.trim_end());
    fs::create_dir(record.join("rebase-merge")).expect("a directory");
    fs::remove_dir_all(&still).expect("it is there");
    for pod in ["own", "still"] {
        assert_eq!(bench.yoi(&["stop", pod]).code, Some(0));
    }
    let refused = bench.yoi(&["restore", "still"]);
    assert!(refused.code != Some(0) && refused.err.contains("rebase-merge"), "{refused:?}");
    assert!(record.join("rebase-merge").is_dir());
    let deleted = bench.yoi(&["rm", "own", "--yes"]);
    assert!(format!("{deleted:?}").contains("stays, because"), "{deleted:?}");
    assert!(bench.ws().join(".git/worktrees").read_dir().expect("records").count() == 2);
}

#[test]
fn a_working_tree_made_by_hand_is_not_set_aside() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new fix --worktree");
    let tree = tree(&bench, "fix");
    assert_eq!(bench.yoi(&["stop", "fix"]).code, Some(0));
    let dropped = bench.yoi(&["worktree", "drop", "fix", "--yes"]);
    assert_eq!(dropped.code, Some(0), "{dropped:?}");
    let path = tree.display().to_string();
    git(&bench.ws(), &["worktree", "add", "--quiet", &path, "fix"]);
    fs::write(tree.join("work"), "").expect("a file");
    let refused = bench.yoi(&["restore", "fix"]);
    assert!(refused.code != Some(0) && refused.err.contains("yoi did not make"), "{refused:?}");
    assert!(tree.join("work").exists());
}

#[test]
fn files_whose_line_ends_are_not_as_their_attributes_say_are_checked_out() {
    let (bench, _host) = with_a_repository();
    fs::write(bench.ws().join("run.bat"), "echo\r\n").expect("a file");
    git(&bench.ws(), &["add", "."]);
    git(&bench.ws(), &["commit", "--quiet", "--message=bat"]);
    fs::write(bench.ws().join(".gitattributes"), "*.bat text eol=crlf\n").expect("a file");
    git(&bench.ws(), &["add", ".gitattributes"]);
    git(&bench.ws(), &["commit", "--quiet", "--message=attributes"]);
    new(&bench, "new fix --worktree");
    let text = fs::read_to_string(tree(&bench, "fix").join("run.bat")).expect("a file");
    assert_eq!(text, "echo\r\n");
}

#[test]
fn a_check_out_that_fails_leaves_neither_its_branch_nor_a_copy() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new there --worktree");
    let tree = tree(&bench, "there");
    assert_eq!(bench.yoi(&["stop", "there"]).code, Some(0));
    assert_eq!(bench.yoi(&["worktree", "drop", "there", "--yes"]).code, Some(0));
    fs::write(bench.ws().join(".git/info/attributes"), "file filter=f\n").expect("a file");
    git(&bench.ws(), &["config", "filter.f.smudge", "false"]);
    git(&bench.ws(), &["config", "filter.f.required", "true"]);
    let refused = bench.yoi(&["--model", &bench.model(), "-c", "new fix --worktree"]);
    assert!(refused.code != Some(0), "{refused:?}");
    for _ in 0..2 {
        assert!(bench.yoi(&["restore", "there"]).code != Some(0));
    }
    assert_eq!(git(&bench.ws(), &["branch", "--format=%(refname:short)"]), "main\nthere\n");
    let home = tree.parent().expect("a directory");
    assert!(home.read_dir().map_or(0, Iterator::count) == 0, "{home:?}");
    assert!(!home.with_file_name("fix").exists(), "the name is free again");
    let listed = bench.yoi(&["ls"]);
    assert!(!listed.err.contains("could not be taken back"), "{listed:?}");
    git(&bench.ws(), &["config", "--unset", "filter.f.smudge"]);
    git(&bench.ws(), &["config", "--unset", "filter.f.required"]);
    git(&bench.ws(), &["branch", "-D", "there"]);
    let back = bench.yoi(&["restore", "there"]);
    assert!(back.code == Some(0) && format!("{back:?}").contains("was gone"), "{back:?}");
}

#[test]
fn a_tree_in_which_a_fork_works_stays_and_children_come_back_into_it() {
    let (bench, _host) = with_a_repository();
    new(&bench, "new fix --worktree");
    let tree = tree(&bench, "fix");
    let sent = bench.yoi(&["send", "fix", "let kid true"]);
    assert_eq!(sent.code, Some(0), "{sent:?}");
    eventually("the child is there", || is(&bench, "kid", "idle") && is(&bench, "fix", "idle"));
    assert_eq!(bench.yoi(&["stop", "fix", "--tree", "--yes"]).code, Some(0));
    assert_eq!(bench.yoi(&["worktree", "drop", "fix", "--yes"]).code, Some(0));
    let back = bench.yoi(&["-c", "restore fix --tree"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert!(is(&bench, "kid", "idle") && tree.exists());
    assert_eq!(bench.yoi(&["fork", "other", "--pod", "fix"]).code, Some(0));
    for pod in ["other", "kid", "fix"] {
        assert_eq!(bench.yoi(&["stop", pod]).code, Some(0), "{pod}");
    }
    let deleted = bench.yoi(&["rm", "fix", "--yes"]);
    assert!(format!("{deleted:?}").contains("works there, too"), "{deleted:?}");
    assert!(tree.exists());
}

#[test]
fn git_is_asked_what_lies_there_whatever_the_repository_lets_it_believe() {
    let (bench, _host) = with_a_repository();
    git(
        &bench.ws(),
        &[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{},lib", git(&bench.ws(), &["rev-parse", "HEAD"]).trim_end()),
        ],
    );
    git(&bench.ws(), &["commit", "--quiet", "--message=lib"]);
    new(&bench, "new fix --worktree");
    let tree = tree(&bench, "fix");
    fs::create_dir_all(tree.join("lib")).expect("a directory");
    let show = || bench.yoi(&["worktree", "fix"]).out;
    assert!(show().contains("all is committed"), "{}", show());
    git(&bench.ws(), &["config", "core.fsmonitor", "true"]);
    fs::write(tree.join("file"), "one\nTWO\n").expect("a file");
    assert!(show().contains(" M file"), "{}", show());
    fs::write(tree.join("lib/x"), "").expect("a file");
    assert!(show().contains("commits of its own: lib"), "{}", show());
}
