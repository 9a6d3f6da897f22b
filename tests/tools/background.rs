//! Commands in the background: started, read, reached, ended, notice of.

use crate::bench::{Bench, argument_error, content, walls};
use crate::escape::ahead::{processes, until};
use serde_json::json;
use std::fs;
use yoi::protocol::PodName;
use yoi::sandbox::Isolation;
use yoi::scope::{Permission, Rule};
use yoi::tools::jobs::{EndedBy, JobNotice, MOST};
use yoi::tools::{Output, command_needs};

/// A bench where commands get namespaces; elsewhere none runs in the background.
async fn bench() -> Option<Bench> {
    let mut bench = Bench::new();
    if walls().isolation() == Isolation::Namespaces {
        return Some(bench);
    }
    let refused = bench.background("true").await;
    assert!(argument_error(&refused).starts_with("background is not possible"), "{refused:?}");
    None
}

impl Bench {
    async fn background(&mut self, command: &str) -> Output {
        self.call("Bash", json!({"command": command, "background": true})).await
    }

    async fn job_output(&mut self, id: &str) -> Output {
        self.call("BashOutput", json!({"id": id})).await
    }

    async fn stop_job(&mut self, id: &str) -> Output {
        self.call("BashStop", json!({"id": id})).await
    }

    /// What was told of the commands that ended, once this number of them did.
    async fn notices(&self, number: usize) -> Vec<(u32, Option<JobNotice>)> {
        let mut ended = self.records.ended.subscribe();
        ended.wait_for(|ended| ended.len() >= number).await.unwrap().clone()
    }
}

fn pod() -> PodName {
    PodName::parse("alice").unwrap()
}

/// Waits until the newest command has written a line that begins so, and returns it.
async fn said(bench: &Bench, beginning: &str) -> String {
    let last = || bench.ctx.jobs.list(&pod()).last()?.last_line.clone();
    let is_it = |line: &String| line.starts_with(beginning);
    until(beginning, || last().is_some_and(|line| is_it(&line))).await;
    last().unwrap()
}

#[tokio::test]
async fn a_command_in_the_background_runs_on_is_read_and_reported_when_it_ends() {
    let Some(mut bench) = bench().await else { return };
    let command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second; exit 3";
    let started = bench.background(command).await;
    assert_eq!(started.summary, "job-1 runs in the background");
    assert!(content(&started).contains("BashStop ends it"), "{started:?}");
    said(&bench, "first").await;
    let read = bench.job_output("job-1").await;
    assert!(read.summary.starts_with("job-1 runs, for "), "{read:?}");
    assert_eq!(read.content.unwrap(), "first\n[next offset 6]\n");
    assert_eq!(*bench.ctx.jobs.running().borrow(), 1);
    bench.file("go", "");
    let notice = bench.notices(1).await;
    let Some(JobNotice { message, wakes: true }) = &notice[0].1 else { panic!("{notice:?}") };
    assert!(message.starts_with("job-1 (echo first; until"), "{message}");
    assert!(message.contains(" ended in the background: Exit 3 after "), "{message}");
    assert!(message.contains("\n> first\n> second"), "{message}");
    bench.ctx.jobs.running().wait_for(|running| *running == 0).await.unwrap();
    let read = bench.job_output("job-1").await;
    assert!(read.summary.starts_with("job-1 has ended: Exit 3 after "), "{read:?}");
    assert_eq!(read.content.unwrap(), "second\n[next offset 13]\n");
    let again = bench.call("BashOutput", json!({"id": "job-1", "offset": 0})).await;
    assert_eq!(again.content.unwrap(), "first\nsecond\n[next offset 13]\n");
    let ended = bench.stop_job("job-1").await;
    assert!(argument_error(&ended).starts_with("job-1 has ended: Exit 3"), "{ended:?}");
    let listed = bench.ctx.jobs.list(&pod());
    assert_eq!(listed[0].last_line.as_deref(), Some("second"));
    assert!(listed[0].ended_at.is_some() && listed[0].outcome.is_some());
}

#[tokio::test]
async fn an_id_of_no_command_is_refused_with_those_that_there_are() {
    let Some(mut bench) = bench().await else { return };
    let none = bench.job_output("job-1").await;
    assert_eq!(
        argument_error(&none),
        "no command in the background has the id \"job-1\": none runs now"
    );
    bench.background("sleep 60").await;
    for name in ["job-2", "1", "../job-1", ""] {
        let refused = bench.stop_job(name).await;
        assert!(argument_error(&refused).ends_with(": job-1 run(s) now"), "{refused:?}");
    }
    bench.ctx.jobs.close(EndedBy::Stop).await;
}

#[tokio::test]
async fn a_command_that_is_ended_leaves_no_process_and_is_not_reported_twice() {
    let Some(mut bench) = bench().await else { return };
    let deep = "setsid bash -c 'trap \"\" TERM; sleep 6543 & echo begun; wait' & wait";
    bench.background(deep).await;
    said(&bench, "begun").await;
    let stopped = bench.stop_job("job-1").await;
    assert_eq!(stopped.summary, "job-1 is ended");
    let left = processes().into_iter().filter(|(_, line, _)| line.contains("6543"));
    assert_eq!(left.count(), 0, "{:?}", processes());
    assert_eq!(bench.notices(1).await, [(1, None)], "the call has said it");
    bench.background("sleep 60").await;
    let ended = bench.ctx.jobs.stop("job-2", &pod(), EndedBy::Person).await.unwrap();
    assert!(ended.outcome.as_ref().unwrap().starts_with("cancelled "), "{ended:?}");
    let notice = bench.notices(2).await;
    let Some(JobNotice { message, wakes: false }) = &notice[1].1 else { panic!("{notice:?}") };
    assert!(
        message.starts_with("job-2 (sleep 60) was ended by a person in the background: "),
        "{message}"
    );
}

#[tokio::test]
async fn a_stopped_pod_has_none_and_starts_none() {
    let Some(mut bench) = bench().await else { return };
    bench.background("sleep 6544").await;
    bench.background("sleep 6544").await;
    bench.ctx.jobs.close(EndedBy::Stop).await;
    assert_eq!(processes().iter().filter(|(_, line, _)| line.contains("6544")).count(), 0);
    let notice = bench.notices(2).await;
    let by_stop = |notice: &(u32, Option<JobNotice>)| {
        let notice = notice.1.as_ref().unwrap();
        !notice.wakes && notice.message.contains("was ended because this pod was stopped")
    };
    assert!(notice.iter().all(by_stop), "{notice:?}");
    let refused = bench.background("true").await;
    assert!(argument_error(&refused).starts_with("the pod is being stopped"), "{refused:?}");
    bench.ctx.jobs.open();
    assert!(!bench.background("true").await.is_error);
    bench.notices(3).await;
}

#[tokio::test]
async fn a_pod_has_no_more_than_its_number_of_them() {
    let Some(mut bench) = bench().await else { return };
    for _ in 0..MOST {
        assert!(!bench.background("sleep 60").await.is_error);
    }
    let refused = bench.background("true").await;
    assert!(argument_error(&refused).contains("end one with BashStop first"), "{refused:?}");
    bench.stop_job("job-3").await;
    assert!(!bench.background("sleep 60").await.is_error);
    bench.ctx.jobs.close(EndedBy::Stop).await;
}

#[tokio::test]
async fn a_second_command_of_the_pod_reaches_a_server_in_the_background() {
    let Some(mut bench) = bench().await else { return };
    bench.file("page", "served\n");
    bench.background("python3 -u -m http.server 0 --bind 127.0.0.1").await;
    let said = said(&bench, "Serving HTTP on ").await;
    let port = said.split(' ').nth(5).unwrap();
    let get = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:{port}/page\").read().decode())'"
    );
    let got = bench.bash(&get).await;
    assert!(content(&got).starts_with("served\n"), "{got:?}");
    assert!(!bench.stop_job("job-1").await.is_error);
    assert!(bench.bash(&get).await.summary.starts_with("Exit 1 "));
}

#[tokio::test]
async fn none_has_needs_and_each_only_reads_the_scope() {
    let Some(mut bench) = bench().await else { return };
    let needs = json!({"command": "true", "background": true, "needs": ["network"], "reason": "r"});
    let refused = bench.call("Bash", needs).await;
    assert!(
        argument_error(&refused).starts_with("background cannot be joined with needs"),
        "{refused:?}"
    );
    bench.file("plain", "plain\n");
    bench.background("cat plain; echo x >> plain; echo x > .mcp.json").await;
    let notice = bench.notices(1).await;
    let message = &notice[0].1.as_ref().unwrap().message;
    assert!(message.contains("Exit 1 after ") && message.contains("\n> plain"), "{message}");
    assert_eq!(fs::read_to_string(bench.ctx.cwd.join("plain")).unwrap(), "plain\n");
    assert!(!bench.ctx.cwd.join(".mcp.json").exists());
}

/// Passes a file that it may write to the first process that connects, until one has said what became of it.
const PASS: &str = r#"
import array, os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("s")
s.listen()
s.settimeout(0.02)
while not os.path.exists("/tmp/said"):
    try:
        other = s.accept()[0]
    except TimeoutError:
        continue
    fd = array.array("i", [os.open("plain", os.O_WRONLY)])
    other.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd)])
"#;
const TAKE: &str = r#"
import os, socket, time
while not os.path.exists("s"):
    time.sleep(0.01)
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect("s")
    fd = s.recvmsg(1, 100)[1][0][2]
    os.write(int.from_bytes(fd[:4], "little"), b"evil")
    said = "written"
except OSError as why:
    said = "refused: " + str(why)
open("/tmp/said", "w").write(said)
print(said)
"#;

#[tokio::test]
async fn no_command_passes_a_file_to_one_in_the_background() {
    let Some(mut bench) = bench().await else { return };
    bench.file("plain", "plain\n");
    bench.file("pass.py", PASS);
    bench.file("take.py", TAKE);
    bench.background("python3 take.py").await;
    let passed = bench.bash("python3 pass.py").await;
    assert!(passed.summary.starts_with("Exit 0 "), "{passed:?}");
    let notice = bench.notices(1).await;
    let message = &notice[0].1.as_ref().unwrap().message;
    assert!(message.contains("\n> refused: "), "{message}");
    assert_eq!(fs::read_to_string(bench.ctx.cwd.join("plain")).unwrap(), "plain\n");
}

#[tokio::test]
async fn an_output_without_end_is_kept_up_to_a_limit_and_the_command_goes_on() {
    let Some(mut bench) = bench().await else { return };
    bench.background("head -c 65M /dev/zero | tr '\\0' x; echo; echo end").await;
    let notice = bench.notices(1).await;
    assert!(notice[0].1.as_ref().unwrap().message.contains("> end"), "{notice:?}");
    let read = bench.job_output("job-1").await;
    assert!(read.content.unwrap().contains("65.0 MiB were written, and only the first "));
    let size = fs::metadata(bench.ctx.outputs.join("job-1.txt")).unwrap().len();
    assert!(size <= 64 << 20, "{size}");
}

#[tokio::test]
async fn a_script_in_tmp_is_not_held_while_a_command_in_the_background_may_exchange_it() {
    let Some(mut bench) = bench().await else { return };
    bench.bash("echo 'echo good' > /tmp/s.sh").await;
    let held = |bench: &Bench| {
        let scripts = command_needs(r#"{"command":"bash /tmp/s.sh"}"#, &bench.ctx).scripts;
        assert!(scripts.iter().any(|script| script.is_content()), "{scripts:?}");
        !scripts.iter().any(|script| script.is_unheld())
    };
    assert!(held(&bench));
    bench.background("sleep 60").await;
    assert!(!held(&bench));
    bench.ctx.jobs.close(EndedBy::Stop).await;
    assert!(held(&bench));
}

#[tokio::test]
async fn without_namespaces_nothing_runs_in_the_background() {
    let mut bench = Bench::new();
    bench.ctx.isolation = Isolation::LandlockOnly;
    let refused = bench.background("true").await;
    assert!(argument_error(&refused).starts_with("background is not possible"), "{refused:?}");
    assert!(bench.ctx.jobs.list(&pod()).is_empty());
}

#[tokio::test]
async fn a_command_in_another_network_reaches_no_port_of_what_runs_in_the_background_and_its_result_says_so()
 {
    let Some(mut bench) = bench().await else { return };
    bench.background("sleep 60").await;
    let look = "echo 127.0.0.1";
    assert_eq!(content(&bench.bash(look).await), "127.0.0.1\n");
    bench.ctx.scope.deny.push(Rule::new(bench.ctx.cwd.join("lent"), Permission::Write));
    let apart = bench.bash(look).await;
    let said =
        "[this command ran in another network than job-1 (sleep 60), and reaches no port of it]";
    assert!(content(&apart).ends_with(&format!("\n{said}\n")), "{apart:?}");
    let read = bench.job_output("job-1").await;
    assert!(read.summary.contains("commands of now do not reach its ports"), "{read:?}");
    bench.ctx.jobs.close(EndedBy::Stop).await;
    assert!(!content(&bench.bash(look).await).contains("another network"));
}

/// A call of Bash in the background that writes these directories.
fn writing(command: &str, writes: &[&str]) -> serde_json::Value {
    json!({"command": command, "background": true, "writes": writes})
}

#[tokio::test]
async fn the_directories_that_one_writes_are_named_by_directories_of_the_write_scope() {
    let Some(mut bench) = bench().await else { return };
    for dir in ["ws/dist", "ws/lent/part", "outside/own"] {
        fs::create_dir_all(bench.path(dir)).unwrap();
    }
    bench.file("file", "");
    std::os::unix::fs::symlink("../outside/own", bench.path("ws/away")).unwrap();
    let lent = Rule::new(bench.path("ws/lent/part"), Permission::Write);
    bench.ctx.scope.deny.push(lent);
    let outside = bench.path("outside").display().to_string();
    for (dir, why) in [
        ("missing", "does not exist: make it first"),
        ("file", "is no directory"),
        ("away", "is not wholly yours to write"),
        (&outside, "is not wholly yours to write"),
        ("lent", "is not wholly yours to write"),
        ("lent/part", "is not wholly yours to write"),
        ("/tmp", "is not wholly yours to write"),
        ("dist/../..", "is not wholly yours to write"),
    ] {
        let refused = bench.call("Bash", writing("true", &["dist", dir])).await;
        assert!(argument_error(&refused).contains(why), "{dir}: {refused:?}");
    }
    let many = ["dist"; 21];
    let refused = bench.call("Bash", writing("true", &many)).await;
    assert!(argument_error(&refused).contains("more than 20 directories"), "{refused:?}");
    let refused = bench.call("Bash", json!({"command": "true", "writes": ["dist"]})).await;
    assert!(argument_error(&refused).starts_with("writes is only for background"), "{refused:?}");
    assert_eq!(bench.ctx.jobs.written(), Vec::<std::path::PathBuf>::new());
    bench.call("Bash", writing("true", &["dist", "dist/.", "../ws/dist"])).await;
    assert_eq!(bench.ctx.jobs.list(&pod())[0].writes, [bench.path("ws/dist")]);
}

/// Starts one that writes `dist` until there is a file `go`.
async fn writer(bench: &mut Bench, program: &str) -> Output {
    fs::create_dir(bench.path("ws/dist")).unwrap();
    let program =
        format!("{program}; echo ready; until [ -e go ]; do sleep 0.01; done; echo out > dist/end");
    let started = bench.call("Bash", writing(&program, &["dist"])).await;
    said(bench, "ready").await;
    started
}

#[tokio::test]
async fn what_one_writes_the_other_commands_of_its_pod_only_read_until_it_ends() {
    let Some(mut bench) = bench().await else { return };
    let started = writer(&mut bench, "echo out > dist/out").await;
    let dist = bench.path("ws/dist");
    assert!(content(&started).contains(&format!("/tmp and in {dist:?}.]")), "{started:?}");
    assert_eq!(content(&bench.bash("cat dist/out").await), "out\n");
    for program in
        ["echo x > dist/x", "mv dist old", "rm -r dist", "mv dist/out .", "ln dist/out x"]
    {
        let refused = bench.bash(program).await;
        assert!(!refused.summary.starts_with("Exit 0 "), "{program}: {refused:?}");
        let said = content(&refused);
        assert!(said.contains("[job-1 (echo out > dist/out; echo ready"), "{program}: {said}");
        assert!(said.contains(&format!("writes {dist:?}, so")), "{program}: {said}");
    }
    let meets = bench.call("Bash", writing("true", &["dist"])).await;
    assert!(argument_error(&meets).contains("is written by job-1"), "{meets:?}");
    fs::create_dir_all(dist.join("sub")).unwrap();
    let inside = bench.call("Bash", writing("true", &["dist/sub"])).await;
    assert!(argument_error(&inside).contains("is written by job-1"), "{inside:?}");
    let list = bench.ctx.jobs.named();
    assert!(list[0].ends_with(&format!("), which writes {dist:?}")), "{list:?}");
    let rule = |dir: &str| [Rule::new(bench.path(dir), Permission::Write)];
    for (dir, writes) in [("ws", 1), ("ws/dist", 1), ("ws/dist/sub", 1), ("ws/distant", 0)] {
        assert_eq!(bench.ctx.jobs.that_write_in(&rule(dir)).len(), writes, "{dir}");
    }
    bench.file("go", "");
    bench.ctx.jobs.none_writes().await;
    assert_eq!(fs::read_to_string(dist.join("end")).unwrap(), "out\n");
    assert!(bench.bash("mv dist old && echo x > old/x").await.summary.starts_with("Exit 0 "));
}

#[tokio::test]
async fn a_script_where_one_writes_is_not_held() {
    let Some(mut bench) = bench().await else { return };
    let held = |bench: &Bench, script: &str| {
        let call = json!({"command": format!("bash {script}")}).to_string();
        let scripts = command_needs(&call, &bench.ctx).scripts;
        assert!(scripts.iter().any(|script| script.is_content()), "{scripts:?}");
        !scripts.iter().any(|script| script.is_unheld())
    };
    bench.file("s.sh", "echo good");
    writer(&mut bench, "mkdir dist/sub; echo echo good > dist/sub/s.sh").await;
    // It can rename what the script lies in, and put another one there.
    assert!(!held(&bench, "dist/sub/s.sh"));
    assert!(held(&bench, "s.sh"));
    bench.ctx.jobs.close(EndedBy::Stop).await;
    assert!(held(&bench, "dist/sub/s.sh"));
}

#[tokio::test]
async fn a_server_that_writes_is_reached_by_the_other_commands_of_its_pod() {
    let Some(mut bench) = bench().await else { return };
    fs::create_dir(bench.path("ws/dist")).unwrap();
    let serve = "echo served > dist/page; python3 -u -m http.server 0 --bind 127.0.0.1";
    bench.call("Bash", writing(serve, &["dist"])).await;
    let said = said(&bench, "Serving HTTP on ").await;
    let port = said.split(' ').nth(5).unwrap();
    let get = format!(
        "python3 -c 'import urllib.request as r; print(r.urlopen(\"http://127.0.0.1:{port}/dist/page\").read().decode())'"
    );
    let got = bench.bash(&get).await;
    assert!(content(&got).starts_with("served\n"), "{got:?}");
}

#[tokio::test]
async fn a_command_beside_one_that_writes_brings_nothing_back_that_was_moved_away_at_its_end() {
    let Some(mut bench) = bench().await else { return };
    let evil = "git init -q dist/x; git -C dist/x config core.fsmonitor ./evil; echo evil > dist/x/.git/hooks/pre-commit";
    writer(&mut bench, evil).await;
    let (jobs, dist) = (bench.ctx.jobs.clone(), bench.path("ws/dist"));
    // It began while all of it lay there, and ends after the other one.
    let ended = bench.path("ws/ended");
    let beside = bench.bash("echo x > go; until [ -e ended ]; do sleep 0.01; done");
    let tell = async {
        jobs.none_writes().await;
        fs::write(ended, "").unwrap();
    };
    let (beside, ()) = tokio::join!(beside, tell);
    assert!(beside.summary.starts_with("Exit 0 "), "{beside:?}");
    assert!(!dist.join("x/.git/hooks/pre-commit").exists());
    let config = fs::read_to_string(dist.join("x/.git/config")).unwrap();
    assert!(!config.contains("fsmonitor"), "{config}");
    let notice = bench.notices(1).await;
    let message = &notice[0].1.as_ref().unwrap().message;
    assert!(message.contains("git would start it or obey it"), "{message}");
}

#[tokio::test]
async fn a_command_beside_one_that_writes_leaves_a_repository_of_the_pod_whole() {
    let Some(mut bench) = bench().await else { return };
    fs::create_dir(bench.path("ws/dist")).unwrap();
    let made = "git init -q --separate-git-dir dist/git sub && git -C sub status -s";
    assert!(bench.bash(made).await.summary.starts_with("Exit 0 "));
    fs::write(bench.path("ws/dist/plain"), "").unwrap();
    bench.call("Bash", writing("echo ready; sleep 60", &["dist"])).await;
    said(&bench, "ready").await;
    let beside = bench.bash("git -C sub status -s && ls").await;
    assert!(
        beside.summary.starts_with("Exit 0 ") && !beside.summary.contains("moved"),
        "{beside:?}"
    );
    assert!(bench.path("ws/sub/.git").is_file());
}

#[tokio::test]
async fn what_was_moved_away_at_the_end_of_the_host_is_reported_by_the_next_one() {
    let Some(mut bench) = bench().await else { return };
    writer(&mut bench, "git init -q dist/x; echo evil > dist/x/.git/hooks/pre-commit").await;
    bench.ctx.jobs.close(EndedBy::Host).await;
    let notice = bench.notices(1).await;
    let Some(JobNotice { message, wakes: false }) = &notice[0].1 else { panic!("{notice:?}") };
    assert!(message.contains("because the host of this pod ended"), "{message}");
    assert!(message.contains("pre-commit is a hook"), "{message}");
}
