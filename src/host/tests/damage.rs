//! Damage of the store: what was not damaged is there, and what is lost is said on every screen.

use crate::client::find;
use crate::host::tests::family::name;
use crate::host::tests::{Bench, run_end};
use crate::protocol::method::NewPod;
use crate::protocol::{Entry, Event, Fact, GoesOnBy, Method, PodName, RunResult, State};
use crate::session::Files;
use std::fs;
use std::path::{Path, PathBuf};

impl Bench {
    fn store_file(&self, name: &str) -> PathBuf {
        self.host.shared.dirs.data.join(name)
    }

    /// What a screen that connects now has to show of the host.
    async fn host_notices(&self) -> Vec<String> {
        let (client, mut events) = self.host.client().await.unwrap();
        client.call(None, Method::Watch).await.unwrap();
        match events.recv().await.unwrap().event {
            Event::HostNotices { notices, .. } => notices,
            Event::Family { .. } => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    async fn states(&self) -> Vec<(String, State)> {
        let family = self.host.shared.family().into_iter();
        family.map(|info| (info.name.to_string(), info.state)).collect()
    }

    /// A host over a copy of the files, as a host that is killed now leaves them, with `change` made
    /// to the copy.
    pub(super) async fn killed_and(&self, change: impl FnOnce(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(&self.root, dir.path());
        let root = dir.path().canonicalize().unwrap();
        change(&root.join("home/data"));
        Self::at(dir).await
    }
}

pub(super) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, to) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x20;
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn messages_that_waited_when_the_host_was_killed_are_sent_before_one_that_is_written_later() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("stuck")).await.unwrap();
    bench.next(|e| matches!(e, Event::TextDelta { .. })).await;
    let queued = |text: &str| {
        let Method::Send { input, .. } = Method::say(text) else { unreachable!() };
        Method::Send { input, queue: true }
    };
    for text in ["first", "second"] {
        bench.call(&pod, queued(text)).await.unwrap();
    }
    let mut next = bench.killed_and(|_| {}).await;
    next.is(&pod, State::Paused).await;
    assert_eq!(next.info(&pod).await.queue.len(), 2);
    next.call(&pod, queued("third")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(next.end().await, RunResult::Finished);
    }
    let said = next.said(&pod).await;
    let answers = ["You said first.", "You said second.", "You said third."];
    assert_eq!(said[said.len() - 3..], answers, "{said:?}");
    bench.host.end().await;
}

#[tokio::test]
async fn what_the_rebuild_of_a_damaged_database_lost_is_said_until_its_report_is_deleted() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let rubbish = "this is no database ".repeat(500);
    let database = bench.store_file("yoi.db");
    let bench = bench.damaged_while_away(|_| fs::write(&database, &rubbish).unwrap()).await;
    assert_eq!(bench.states().await, [("w".into(), State::Stopped)]);
    assert_eq!(bench.said(&pod).await, ["You said one."]);
    let notices = bench.host_notices().await;
    let aside = bench.store_file("yoi.db.damaged");
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    for part in [&aside.display().to_string(), "1 pod was rebuilt", "peers", "queued messages"] {
        assert!(notice.contains(part), "{notice}");
    }
    assert_eq!(fs::read_to_string(aside).unwrap(), rubbish);
    let bench = bench.restarted().await;
    assert_eq!(bench.host_notices().await, notices, "the next host says it again");
    fs::remove_file(bench.store_file("yoi.db.damaged.report.txt")).unwrap();
    assert_eq!(bench.restarted().await.host_notices().await, [""; 0]);
}

#[tokio::test]
async fn the_log_of_a_database_that_is_gone_is_kept_and_named() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let log = fs::read(bench.store_file("yoi.db-wal")).unwrap();
    let next = bench.killed_and(|data| fs::remove_file(data.join("yoi.db")).unwrap()).await;
    let kept = next.store_file("yoi.db-wal.orphaned");
    assert!(fs::read(&kept).unwrap().starts_with(&log[..32]), "the log is kept");
    let notices = next.host_notices().await;
    assert!(notices[0].contains(&kept.display().to_string()), "{notices:?}");
    assert_eq!(next.said(&pod).await, ["You said one."]);
}

#[tokio::test]
async fn a_damaged_write_ahead_log_is_said_and_the_pods_that_it_knew_are_rebuilt() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.next(run_end).await;
    let next = bench.killed_and(|data| flip(&data.join("yoi.db-wal"), 32 + 24 + 5)).await;
    let notices = next.host_notices().await;
    let kept = next.store_file("yoi.db-wal.damaged");
    assert!(notices[0].contains(&kept.display().to_string()), "{notices:?}");
    assert_eq!(next.said(&pod).await, ["You said one."]);
}

#[tokio::test]
async fn sessions_that_an_older_database_does_not_know_come_back_as_stopped_pods() {
    let bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    let bench = bench
        .database_changed_while_away("DELETE FROM loans; DELETE FROM pods WHERE key = 'kid'")
        .await;
    let kid = bench.info(&name("kid")).await;
    assert_eq!((kid.state, kid.parent), (State::Stopped, Some(name("p"))));
    let notices = bench.host_notices().await;
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    assert!(notice.contains("did not know all sessions"), "{notice}");
    assert!(notice.contains("1 pod was rebuilt from its log, stopped"), "{notice}");
    // A Pod that a person deletes does not come back.
    bench.call(&name("kid"), Method::Remove).await.unwrap();
    let bench = bench.restarted().await;
    assert!(bench.host.shared.pod(&name("kid")).is_none());
}

#[tokio::test]
async fn a_pod_whose_record_is_damaged_is_listed_says_why_and_can_be_deleted() {
    let bench = Bench::family().await;
    bench.root_pod("q", "other").await;
    let bench =
        bench.database_changed_while_away("UPDATE pods SET scope = '{' WHERE key = 'q'").await;
    let damaged = bench.info(&name("q")).await;
    assert_eq!(damaged.state, State::Damaged);
    assert_eq!(damaged.workspace, bench.root.join("other"));
    let why = damaged.why.unwrap();
    assert!(why.contains("scope") && why.contains(":rm deletes"), "{why}");
    for method in
        [Method::say("x"), Method::StopPods { tree: false, unless_busy: false, silent: false }]
    {
        let refused = bench.call(&name("q"), method).await.unwrap_err();
        assert!(refused.message.contains("record of pod `q` is damaged"), "{refused}");
    }
    bench.call(&name("q"), Method::Remove).await.unwrap();
    assert_eq!(bench.states().await, [("p".into(), State::Idle)]);
}

#[tokio::test]
async fn a_circle_of_parents_in_the_database_is_cut_and_said_and_every_walk_ends() {
    let mut bench = Bench::family().await;
    for (pod, dir) in [("a", "a"), ("b", "b")] {
        bench.spawn("p", pod, dir).await.unwrap();
        bench.is(&name(pod), State::Idle).await;
    }
    let bench = bench
        .database_changed_while_away(
            "UPDATE pods SET parent = 'b' WHERE key = 'a';
                 UPDATE pods SET parent = 'a' WHERE key = 'b';
                 UPDATE pods SET parent = 'p' WHERE key = 'p';",
        )
        .await;
    let parents = bench.host.shared.family().into_iter();
    let parents: Vec<_> = parents.map(|info| info.parent.map(|name| name.to_string())).collect();
    assert_eq!(parents, [None, None, Some("a".into())], "the oldest of a circle has none");
    let notices = bench.host_notices().await;
    assert!(notices.iter().any(|notice| notice.contains("`a` below itself")), "{notices:?}");
    for tree in [true, false] {
        bench
            .call(&name("b"), Method::StopPods { tree, unless_busy: false, silent: false })
            .await
            .unwrap();
        bench
            .call(&name("a"), Method::StopPods { tree, unless_busy: false, silent: false })
            .await
            .unwrap();
        let restore = Method::RestorePods { tree, plan: false };
        bench.call(&name("a"), restore.clone()).await.unwrap();
        bench.call(&name("b"), restore).await.unwrap();
    }
    bench.client.call(None, Method::ListPods).await.unwrap();
    let bench = bench.restarted().await;
    assert_eq!(bench.host_notices().await, [""; 0], "the database is whole again");
}

#[tokio::test]
async fn a_failed_pod_can_be_restored_wherever_that_is_said() {
    let mut bench = Bench::family().await;
    bench.spawn("p", "kid", "a").await.unwrap();
    bench.is(&name("kid"), State::Idle).await;
    let panic = crate::host::pod::PodRequest::Panic;
    bench.host.shared.pod(&name("kid")).unwrap().requests.send(panic).await.unwrap();
    bench.is(&name("kid"), State::Failed).await;
    let listed = bench.client.call(None, Method::ListPods).await.unwrap();
    let Event::PodsListed { pods } = listed else { panic!("{listed:?}") };
    let kid = pods.iter().find(|pod| pod["pod_name"] == "kid").unwrap();
    assert_eq!(kid["restore"]["possible"], true, "{kid}");
    let refused = bench.call(&name("kid"), Method::say("x")).await.unwrap_err();
    assert!(refused.message.contains(":restore kid"), "{refused}");
    let restore = Method::RestorePods { tree: true, plan: false };
    let reply = bench.call(&name("p"), restore).await.unwrap();
    assert!(matches!(reply, Event::Plan { done: true, .. }), "{reply:?}");
    bench.is(&name("kid"), State::Idle).await;
}

impl Bench {
    /// The segments of a Pod's log, the newest first.
    fn segments(&self, pod: &PodName) -> Vec<PathBuf> {
        let session = self.host.shared.pod(pod).unwrap().session;
        let files = Files::new(&self.host.shared.dirs.data, session);
        files.segments().into_iter().map(|segment| files.segment(segment)).collect()
    }

    /// The texts of the history with which the newest segment begins, and its system prompt.
    fn handed_over(&self, pod: &PodName) -> (Vec<String>, String) {
        let text = fs::read_to_string(&self.segments(pod)[0]).unwrap();
        let entry: Entry = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let Fact::SegmentStart { system_prompt, history, .. } = entry.fact else { panic!() };
        let texts = history.iter().filter_map(|kept| kept.item.text()).collect();
        (texts, system_prompt.unwrap())
    }

    async fn says(&mut self, pod: &PodName, text: &str) {
        self.call(pod, Method::say(text)).await.unwrap();
        self.next(run_end).await;
        self.is(pod, State::Idle).await;
    }
}

#[tokio::test]
async fn a_log_without_its_first_line_gets_a_system_prompt_again_and_the_pod_says_so() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.says(&pod, "one").await;
    let log = bench.segments(&pod)[0].clone();
    let mut bench = bench.damaged_while_away(|_| flip(&log, 0)).await;
    bench.says(&pod, "two").await;
    let (history, prompt) = bench.handed_over(&pod);
    assert_eq!(history, ["one", "You said one."]);
    assert!(prompt.contains('w') && prompt.len() > 500, "{prompt}");
    let said = |bench: &Bench| {
        let text = fs::read_to_string(&bench.segments(&pod)[0]).unwrap();
        text.lines().filter(|line| line.contains("system prompt was made anew")).count()
    };
    assert_eq!(said(&bench), 1);
    assert_eq!(bench.said(&pod).await, ["You said one.", "You said two."]);
    let mut bench = bench.restarted().await;
    bench.says(&pod, "three").await;
    assert_eq!(said(&bench), 1, "it is said once");
}

#[tokio::test]
async fn what_was_said_before_a_compaction_is_kept_when_the_line_of_its_handover_is_damaged() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.says(&pod, "one").await;
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|e| matches!(e, Event::CompactDone { .. })).await;
    bench.is(&pod, State::Idle).await;
    bench.says(&pod, "two").await;
    let log = bench.segments(&pod)[0].clone();
    let mut bench = bench.damaged_while_away(|_| flip(&log, 1)).await;
    let all = ["You said one.", "You said two."];
    assert_eq!(bench.said(&pod).await, all, "screens still reach what lies before");
    bench.says(&pod, "three").await;
    let (history, _) = bench.handed_over(&pod);
    assert_eq!(history, ["one", all[0], "two", all[1]]);
}

#[tokio::test]
async fn a_log_that_is_a_fifo_fails_its_pod_and_delays_no_start() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.says(&pod, "one").await;
    let log = bench.segments(&pod)[0].clone();
    let replace = |_: &Path| {
        fs::remove_file(&log).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &log, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    };
    let bench = bench.damaged_while_away(replace).await;
    let info = bench.info(&pod).await;
    assert_eq!(info.state, State::Failed);
    assert!(info.why.as_ref().unwrap().contains("not a regular file"), "{info:?}");
    assert_eq!(info.goes_on_by, Some(GoesOnBy::Restore), "resuming would be refused");
}

#[tokio::test]
async fn a_message_that_cannot_be_committed_is_refused_with_the_cause() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.says(&pod, "one").await;
    let log = bench.segments(&pod)[0].clone();
    let text = fs::read(&log).unwrap();
    fs::write(&log, [&text[..], b"{}\n"].concat()).unwrap();
    let refused = bench.call(&pod, Method::say("two")).await.unwrap_err();
    assert!(refused.message.contains("end the other one"), "{refused}");
}

#[tokio::test]
async fn a_log_that_was_cut_while_its_pod_lives_is_not_called_one_that_another_program_writes() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.says(&pod, "one").await;
    let log = bench.segments(&pod)[0].clone();
    let file = fs::OpenOptions::new().write(true).open(&log).unwrap();
    file.set_len(file.metadata().unwrap().len() - 1).unwrap();
    let refused = bench.call(&pod, Method::say("two")).await.unwrap_err().message;
    assert!(refused.contains("was cut to") && refused.contains(":resume"), "{refused}");
    assert!(!refused.contains("another program"), "{refused}");
}

#[tokio::test]
async fn a_new_pod_that_gets_no_socket_leaves_its_name_free() {
    let bench = Bench::new().await;
    let place = bench.root.join("home/run/w");
    fs::write(&place, "").unwrap();
    let new = || NewPod { cwd: bench.root.join("w"), ..NewPod::default() };
    bench.client.call(None, Method::New(new())).await.unwrap_err();
    assert_eq!(bench.states().await, []);
    fs::remove_file(&place).unwrap();
    let created = bench.client.call(None, Method::New(new())).await.unwrap();
    let Event::Created { info } = created else { panic!("{created:?}") };
    assert_eq!(info.name, name("w"));
}

#[tokio::test]
async fn a_message_to_a_host_that_ends_is_not_led_to_a_restore() {
    let (bench, pod) = Bench::scripted().await;
    bench.host.shared.pod(&pod).unwrap().host_ends().await;
    let refused = bench.call(&pod, Method::say("x")).await.unwrap_err();
    assert!(refused.message.contains("the host is ending"), "{refused}");
    assert!(!refused.message.contains(":restore"), "{refused}");
}

#[tokio::test]
async fn sockets_whose_directory_is_gone_for_good_move_below_the_data_directory() {
    let (mut bench, pod) = Bench::scripted().await;
    let run = bench.root.join("home/run");
    fs::remove_dir_all(&run).unwrap();
    fs::write(&run, "no directory any more").unwrap();
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::USR1).unwrap();
    let notices = bench.next(|event| matches!(event, Event::HostNotices { .. })).await;
    let below = bench.store_file("run");
    let Event::HostNotices { notices, .. } = notices else { unreachable!() };
    assert!(notices[0].contains(&below.display().to_string()), "{notices:?}");
    let moved = bench.host.shared.sockets().socket(pod.as_str());
    assert!(moved.starts_with(&below));
    let data = bench.host.shared.dirs.data.clone();
    let (client, _events) = find::connect(&data).await.unwrap().expect("the host is found");
    client.call(None, Method::HostStatus).await.unwrap();
}
