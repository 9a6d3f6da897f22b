//! Commands in the background: started, read, reached, ended, notice of.

use crate::bench::{Bench, argument_error, content, walls};
use crate::escape::ahead::{processes, until};
use crate::escape::cell::Cell;
use serde_json::json;
use std::fs;
use std::time::Duration;
use yoi::protocol::PodName;
use yoi::sandbox::{Isolation, Need};
use yoi::tools::Output;
use yoi::tools::jobs::{EndedBy, JobNotice, MOST};

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

/// Waits for a file that a command makes.
async fn made(bench: &Bench, name: &str) {
    until(name, || bench.ctx.cwd.join(name).exists()).await;
}

#[tokio::test]
async fn a_command_in_the_background_runs_on_is_read_and_reported_when_it_ends() {
    let mut bench = Bench::new();
    let command = "echo first; until [ -e go ]; do sleep 0.01; done; echo second; exit 3";
    let started = bench.background(command).await;
    assert_eq!(started.summary, "job-1 runs in the background");
    assert!(content(&started).contains("BashStop ends it"), "{started:?}");
    // What it wrote arrives through a pipe.
    let jobs = bench.ctx.jobs.clone();
    until("it writes", || jobs.list(&pod())[0].last_line.as_deref() == Some("first")).await;
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
    let mut bench = Bench::new();
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
    let mut bench = Bench::new();
    let deep = "setsid bash -c 'trap \"\" TERM; sleep 6543 & echo $$ > pid; wait' & wait";
    bench.background(deep).await;
    made(&bench, "pid").await;
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
    let mut bench = Bench::new();
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
    let mut bench = Bench::new();
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
    let mut bench = Bench::new();
    bench.file("page", "served\n");
    let server = "python3 -u -m http.server 0 --bind 127.0.0.1 2>&1 | sed -u 's/.*port \\([0-9]*\\).*/\\1/;w port.new'";
    if walls().isolation() != Isolation::Namespaces {
        return;
    }
    bench.background(server).await;
    until("its port", || {
        fs::read_to_string(bench.ctx.cwd.join("port.new")).is_ok_and(|port| port.ends_with('\n'))
    })
    .await;
    let get = "python3 -c 'import urllib.request, sys; print(urllib.request.urlopen(sys.argv[1]).read().decode())' \
               http://127.0.0.1:$(head -1 port.new)/page";
    let got = bench.bash(get).await;
    assert!(content(&got).starts_with("served\n"), "{got:?}");
    assert!(!bench.stop_job("job-1").await.is_error);
    assert!(bench.bash(get).await.summary.starts_with("Exit 1 "));
}

#[tokio::test]
async fn none_has_needs_and_nothing_that_replaces_guarded_files_runs_beside_one() {
    let mut bench = Bench::new();
    let needs = json!({"command": "true", "background": true, "needs": ["network"], "reason": "r"});
    let refused = bench.call("Bash", needs).await;
    assert!(
        argument_error(&refused).starts_with("background cannot be joined with needs"),
        "{refused:?}"
    );
    bench.background("sleep 60").await;
    bench.ctx.needs = vec![Need::Git, Need::Outside];
    let git = json!({"command": "true", "needs": ["git"], "reason": "r"});
    let refused = bench.call("Bash", git.clone()).await;
    let beside = "not while job-1 (sleep 60) runs in the background: ";
    assert!(argument_error(&refused).starts_with(beside), "{refused:?}");
    let guarded = bench.ctx.cwd.join(".mcp.json");
    let refused = bench.write(&guarded, "{}").await;
    assert!(argument_error(&refused).contains(beside), "{refused:?}");
    assert!(!bench.write(&bench.ctx.cwd.join("plain"), "x").await.is_error);
    bench.stop_job("job-1").await;
    assert!(!bench.call("Bash", git).await.is_error);
    assert!(!bench.write(&guarded, "{}").await.is_error);
}

#[tokio::test]
async fn a_new_guarded_file_is_moved_away_while_a_command_runs_in_the_background_and_at_its_end() {
    let mut bench = Bench::new();
    bench
        .background("echo {} > .mcp.json; touch begun; until [ -e go ]; do sleep 0.01; done")
        .await;
    made(&bench, "begun").await;
    bench.file("go", "");
    let notice = bench.notices(1).await;
    let message = &notice[0].1.as_ref().unwrap().message;
    assert!(
        message.contains(".mcp.json is guarded and was created while the command ran"),
        "{message}"
    );
    assert!(!bench.ctx.cwd.join(".mcp.json").exists());
}

/// Guarded files are compared so often in the following test.
const OFTEN: Duration = Duration::from_millis(20);

#[tokio::test]
async fn guarded_files_are_compared_while_a_command_runs_in_the_background() {
    let cell = Cell { check_every: Some(OFTEN), ..Cell::new() };
    let command = "echo {} > .mcp.json; until [ ! -e .mcp.json ]; do sleep 0.01; done; echo gone";
    let text = cell.run(command).await.text;
    assert!(text.contains(".mcp.json is guarded and was created while the command ran"), "{text}");
    assert!(text.contains("gone"), "{text}");
}

#[tokio::test]
async fn an_output_without_end_is_kept_up_to_a_limit_and_the_command_goes_on() {
    let mut bench = Bench::new();
    bench.background("head -c 70M /dev/zero | tr '\\0' x; echo; echo end").await;
    let notice = bench.notices(1).await;
    assert!(notice[0].1.as_ref().unwrap().message.contains("> end"), "{notice:?}");
    let read = bench.job_output("job-1").await;
    assert!(read.content.unwrap().contains("70.0 MiB were written, and only the first "));
    let size = fs::metadata(bench.ctx.outputs.join("job-1.txt")).unwrap().len();
    assert!(size <= 64 << 20, "{size}");
}
