//! Every process of a command ends with its tool call.

use crate::bench::{Bench, content};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use yoi::sandbox::{Command, HELPER_ARG, Need, Outcome, Sandbox, SandboxError, StartGroup};
use yoi::tools::{self, Output};

/// Writes its pid to a file, then runs for ever and ignores TERM and HUP.
const STUBBORN: &str = "trap '' TERM HUP; echo $BASHPID >> pids; while :; do sleep 0.05; done";

fn alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !matches!(stat.rsplit(") ").next().and_then(|rest| rest.chars().next()), None | Some('Z' | 'X'))
}

/// The processes that run with the environment of this bench. Their numbers inside a world are not
/// those of this machine.
fn living(bench: &Bench) -> Vec<String> {
    let home = format!("HOME={}", bench.path("home").display());
    let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    });
    processes.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// The pids that the commands wrote down; at least `least` of them.
#[track_caller]
fn pids(directory: &Path, least: usize) -> Vec<i32> {
    let text = fs::read_to_string(directory.join("pids")).unwrap_or_default();
    let pids: Vec<i32> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(pids.len() >= least, "{pids:?}");
    pids
}

#[track_caller]
fn all_dead(bench: &Bench, least: usize) {
    pids(&bench.ctx.cwd, least);
    assert!(living(bench).is_empty(), "still alive: {:?}", living(bench));
}

fn command(bench: &Bench, program: &str, seconds: u64) -> Command {
    Command {
        program: program.into(),
        cwd: bench.ctx.cwd.clone(),
        env: bench.ctx.env.clone(),
        timeout: Duration::from_secs(seconds),
        view: None,
        group: StartGroup::default(),
    }
}

fn sandbox(bench: &Bench) -> Sandbox {
    Sandbox { helper: bench.ctx.helper.clone(), ..Sandbox::default() }
}

#[tokio::test]
async fn a_background_process_is_ended_and_named_without_waiting_for_it() {
    let mut bench = Bench::new();
    let output = bench.bash("sleep 987 & echo $! > pids; echo started").await;
    assert!(output.summary.ends_with("; ended what was still running: 1 process"));
    assert!(
        content(&output).starts_with("started\n[ended what was still running: sleep 987 (pid ")
    );
    all_dead(&bench, 1);
}

#[tokio::test]
async fn the_row_of_a_command_says_that_a_guarded_file_was_moved_away() {
    let mut bench = Bench::new();
    let output = bench.bash("echo x > .mcp.json; echo x > opencode.json").await;
    assert!(output.summary.starts_with("Exit 0 after "), "{output:?}");
    let said = "/.mcp.json is guarded and was created while the command ran, and 1 more such";
    assert!(output.summary.ends_with(said), "{output:?}");
    assert!(content(&output).contains("/opencode.json is guarded"), "{output:?}");
}

#[tokio::test]
async fn a_process_that_forks_twice_into_its_own_session_is_ended() {
    let mut bench = Bench::new();
    let daemon = "(setsid sh -c 'echo $$ >> pids; exec sleep 986' >/dev/null 2>&1 </dev/null &)";
    let output = bench.bash(&format!("{daemon}; until [ -s pids ]; do :; done")).await;
    assert!(content(&output).contains("sleep 986 (pid "), "{output:?}");
    all_dead(&bench, 1);
}

#[tokio::test]
async fn a_timeout_ends_the_whole_tree_and_keeps_the_output() {
    let mut bench = Bench::new();
    fs::write(bench.path("ws/stubborn"), STUBBORN).unwrap();
    let program = "echo before; setsid bash stubborn & bash stubborn";
    let input = json!({"command": program, "timeout": 1});
    let output = bench.call("Bash", input).await;
    assert!(output.is_error);
    let text = "timed out after 1 s";
    assert!(output.summary.starts_with(text), "{}", output.summary);
    assert!(output.content.unwrap().starts_with("before\n"));
    all_dead(&bench, 2);
}

#[tokio::test]
async fn processes_that_ignore_the_request_to_end_are_killed() {
    let mut bench = Bench::new();
    fs::write(bench.path("ws/stubborn"), STUBBORN).unwrap();
    let all = "for i in 1 2 3; do setsid bash stubborn & done; \
               until [ \"$(wc -l < pids)\" = 3 ]; do sleep 0.02; done 2>/dev/null";
    let output = bench.bash(all).await;
    assert!(content(&output).matches("bash stubborn (pid ").count() >= 3, "{output:?}");
    all_dead(&bench, 3);
}

#[tokio::test]
async fn a_process_that_forks_on_and_on_is_ended() {
    let mut bench = Bench::new();
    let hydra = "trap '' TERM; echo $$ >> pids; sleep 0.02; setsid bash hydra & exit";
    fs::write(bench.path("ws/hydra"), hydra).unwrap();
    bench.bash("bash hydra; bash hydra; bash hydra").await;
    all_dead(&bench, 3);
    let count = pids(&bench.ctx.cwd, 3).len();
    bench.bash("sleep 0.3").await;
    assert_eq!(pids(&bench.ctx.cwd, 3).len(), count, "no new one came");
}

#[tokio::test]
async fn a_process_that_was_stopped_is_ended() {
    let mut bench = Bench::new();
    let output = bench.bash("sleep 985 & echo $! > pids; kill -STOP $!").await;
    assert!(!output.is_error);
    all_dead(&bench, 1);
}

#[tokio::test]
async fn a_process_that_exits_by_itself_is_not_killed() {
    let mut bench = Bench::new();
    let output = bench.bash("exec > >(sleep 0.05; tee copy); echo text").await;
    assert_eq!(output.content.as_deref(), Some("text\n"), "{output:?}");
    assert_eq!(fs::read_to_string(bench.path("ws/copy")).unwrap(), "text\n");
}

#[tokio::test]
async fn cancelling_ends_everything_and_keeps_the_output() {
    let bench = Bench::new();
    let cancel = bench.cancel.clone();
    let mut live = move |text: String| {
        if text.contains("ready") {
            cancel.cancel();
        }
    };
    let program = "setsid sleep 984 & echo $! > pids; echo $$ >> pids; echo ready; sleep 983";
    let input = json!({"command": program}).to_string();
    let done =
        tools::ToolSet::default().run("Bash", &input, &bench.ctx, &bench.cancel, &mut live).await;
    let Output { summary, content, is_error, .. } = done.output;
    assert!(is_error && summary.starts_with("cancelled after "), "{summary}");
    let content = content.unwrap();
    let named = format!("(pid {})", pids(&bench.ctx.cwd, 2)[0]);
    assert!(content.starts_with("ready\n") && content.contains(&named), "{content}");
    all_dead(&bench, 2);
}

#[tokio::test]
async fn a_dropped_call_ends_what_it_started_even_while_others_run() {
    let bench = Bench::new();
    let sandbox = sandbox(&bench);
    let cancel = CancellationToken::new();
    let doomed = command(&bench, "echo $$ > pids; echo up; sleep 982", 60);
    let (up, mut is_up) = tokio::sync::mpsc::channel(1);
    let other = tokio::spawn({
        let (sandbox, cancel) = (sandbox.clone(), cancel.clone());
        let long = command(&bench, "sleep 981", 60);
        async move { sandbox.run(&long, &cancel, |_| {}).await }
    });
    let run = sandbox.run(&doomed, &cancel, move |_| up.try_send(()).unwrap_or(()));
    tokio::select! {
        _ = run => panic!("it cannot end by itself"),
        _ = is_up.recv() => {}
    }
    let pid = pids(&bench.ctx.cwd, 1)[0];
    let end = Instant::now() + Duration::from_secs(10);
    while alive(pid) {
        assert!(Instant::now() < end, "its pipe is held open by somebody");
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    assert_eq!(other.await.unwrap().unwrap().outcome, Outcome::Cancelled);
}

#[test]
fn the_death_of_the_host_ends_everything() {
    let bench = Bench::new();
    // A shell replaces the host: it has the only write end of the pipe and is killed.
    let order = json!({
        "program": "setsid sleep 980 & echo $! > pids; echo $$ >> pids; echo up; sleep 979",
        "cwd": bench.ctx.cwd, "env": bench.ctx.env, "nofile": null,
    });
    fs::write(bench.path("order"), format!("{order}\n")).unwrap();
    let script = format!(
        "exec 3> >(exec '{}' {HELPER_ARG}); cat '{}' >&3; echo begin >&3; read -r _",
        bench.ctx.helper.display(),
        bench.path("order").display()
    );
    let mut host = std::process::Command::new("bash")
        .args(["-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(host.stderr.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    host.kill().unwrap();
    host.wait().unwrap();
    // The output ends when the last process that could write to it is gone.
    let mut reports = String::new();
    host.stdout.take().unwrap().read_to_string(&mut reports).unwrap();
    let named = format!("(pid {})", pids(&bench.ctx.cwd, 2)[0]);
    assert!(reports.contains("\"ordered\":true") && reports.contains(&named), "{reports}");
    all_dead(&bench, 2);
}

#[tokio::test]
async fn a_command_that_kills_its_helper_is_ended_nevertheless() {
    let bench = Bench::new();
    let program = "setsid sleep 977 & echo $! > pids; echo $$ >> pids; kill -9 $PPID; sleep 976";
    let result = sandbox(&bench).run(&command(&bench, program, 60), &bench.cancel, |_| {}).await;
    let Err(SandboxError::HelperLost { ended, stuck }) = result else { panic!("{result:?}") };
    assert!(ended.iter().any(|name| name.starts_with("sleep 977")), "{ended:?}");
    assert!(stuck.is_empty(), "{stuck:?}");
    all_dead(&bench, 2);
}

#[tokio::test(start_paused = true)]
async fn a_command_whose_helper_never_answers_has_changed_nothing() {
    let bench = Bench::new();
    let helper = bench.path("helper");
    fs::write(&helper, "#!/bin/sh\nexec sleep 900\n").unwrap();
    fs::set_permissions(&helper, fs::Permissions::from_mode(0o700)).unwrap();
    let sandbox = Sandbox { helper, ..Sandbox::default() };
    // More than a pipe holds.
    for size in [1, 200_000] {
        let program = format!("true {}", "x".repeat(size));
        let result = sandbox.run(&command(&bench, &program, 60), &bench.cancel, |_| {}).await;
        let Err(SandboxError::NotStarted(reason)) = result else { panic!("{result:?}") };
        assert!(reason.ends_with("was killed before the command began"), "{reason}");
    }
}

#[tokio::test]
async fn a_command_that_does_not_start_names_the_error() {
    let mut bench = Bench::new();
    bench.ctx.cwd = bench.path("gone");
    let output = bench.bash("true").await;
    assert!(output.is_error && output.summary.contains("gone cannot be entered: "), "{output:?}");
    let mut bench = Bench::new();
    bench.ctx.helper = bench.path("no-such-program");
    let output = bench.bash("true").await;
    assert!(output.summary.contains("the command could not be started: "), "{output:?}");
}

#[test]
fn a_helper_without_an_order_says_so_and_ends() {
    let mut helper = std::process::Command::new(env!("CARGO_BIN_EXE_yoi"))
        .arg(HELPER_ARG)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    helper.stdin.take().unwrap().write_all(b"nonsense\n").unwrap();
    let output = helper.wait_with_output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("the order is not readable"));
}

#[tokio::test]
async fn commands_run_beside_each_other() {
    let bench = Bench::new();
    let (sandbox, cancel) = (sandbox(&bench), CancellationToken::new());
    // Each waits for the other: one after the other they would time out.
    let (one, two) = (
        command(&bench, "touch one; until [ -e two ]; do sleep 0.01; done", 20),
        command(&bench, "touch two; until [ -e one ]; do sleep 0.01; done", 20),
    );
    let (one, two) =
        tokio::join!(sandbox.run(&one, &cancel, |_| {}), sandbox.run(&two, &cancel, |_| {}));
    assert_eq!(one.unwrap().outcome, Outcome::Exited(0));
    assert_eq!(two.unwrap().outcome, Outcome::Exited(0));
}

#[test]
fn arguments_in_another_spelling_hide_no_need_of_a_command() {
    let bench = Bench::new();
    let needs = |timeout: Value| {
        let arguments =
            json!({"command": "true", "needs": ["network"], "reason": "x", "timeout": timeout});
        yoi::tools::command_needs(&arguments.to_string(), &bench.ctx)
    };
    let plain = needs(5.into());
    assert_eq!(plain.needs, [Need::Network]);
    assert_eq!(needs("5".into()), plain);
    assert_eq!(needs(Value::Null), plain);
}
