//! One Pod and its run: what is refused when, what an input becomes, and what is left of a run that
//! was interrupted.

use crate::host::tests::{Bench, SCRIPT, run_end};
use crate::llm::bench::DOT;
use crate::protocol::entry::domain;
use crate::protocol::event::Line;
use crate::protocol::{
    CompletionKind, Entry, ErrorCode, Event, Fact, GoesOnBy, Method, PodEvent, PodName, RunResult,
    Segment, State, SystemItem,
};

use base64::Engine as _;

const ATTACHED_AT_MOST: usize = 256 * 1024;

fn input(segments: Vec<Segment>) -> Method {
    Method::Send { input: segments, queue: false }
}

fn text(content: &str) -> Segment {
    Segment::Text { content: content.into() }
}

fn file(path: &str) -> Segment {
    Segment::FileRef { path: path.into() }
}

impl Bench {
    /// Every fact of the transcript.
    pub(super) async fn facts(&self, pod: &PodName) -> Vec<Fact> {
        self.whole_entries(pod).await.into_iter().map(|entry| entry.fact).collect()
    }

    /// Every entry of the transcript, also those that a page shortens.
    pub(super) async fn whole_entries(&self, pod: &PodName) -> Vec<Entry> {
        let page = self.call(pod, Method::Page { before: None, max_bytes: 1 << 20 }).await;
        let Ok(Event::Page { entries, .. }) = page else { panic!("{page:?}") };
        let mut whole = Vec::new();
        for line in entries {
            whole.push(match line {
                Line::Whole(entry) => *entry,
                Line::Cut { entry, .. } => {
                    let fetch = Method::Fetch { entry: entry.id.unwrap(), range: None };
                    let fetched = self.call(pod, fetch).await;
                    let Ok(Event::Fetched { entry }) = fetched else { panic!("{fetched:?}") };
                    *entry
                }
                other => panic!("{other:?}"),
            });
        }
        whole
    }

    /// What the Pod was told, as its history holds it.
    pub(super) async fn inputs(&self, pod: &PodName) -> Vec<String> {
        let words = |fact| match fact {
            Fact::UserInput { segments, .. } => Some(crate::protocol::flatten(&segments)),
            _ => None,
        };
        self.facts(pod).await.into_iter().filter_map(words).collect()
    }

    /// What was attached to the inputs, in the order of the history.
    pub(super) async fn attached(&self, pod: &PodName) -> Vec<String> {
        let body = |fact| match fact {
            Fact::SystemItem { item: SystemItem::FileAttachment { body, .. }, .. } => Some(body),
            _ => None,
        };
        self.facts(pod).await.into_iter().filter_map(body).collect()
    }

    async fn code(&self, pod: &PodName, method: Method) -> ErrorCode {
        self.call(pod, method).await.unwrap_err().code
    }
}

#[tokio::test]
async fn a_request_that_is_impossible_now_is_refused_with_its_code() {
    let (mut bench, pod) = Bench::scripted().await;
    assert_eq!(bench.code(&pod, Method::Resume).await, ErrorCode::NotPaused);
    for order in [Method::Cancel, Method::Pause] {
        assert_eq!(bench.code(&pod, order).await, ErrorCode::NotRunning);
    }
    bench.call(&pod, Method::say("wait")).await.unwrap();
    bench.is(&pod, State::Running).await;
    for order in [Method::say("more"), Method::Resume, Method::Compact, Method::ListRewindTargets] {
        assert_eq!(bench.code(&pod, order).await, ErrorCode::AlreadyRunning);
    }
    let refusal = bench.call(&pod, Method::ListRewindTargets).await.unwrap_err().message;
    assert_eq!(refusal, format!("pod `{pod}` is running; before that, :pause or :cancel"));
    let child_event = Method::Notify { message: "some news".into() };
    assert!(bench.call(&pod, child_event).await.is_ok());
    bench.call(&pod, Method::Cancel).await.unwrap();
}

#[tokio::test]
async fn lists_and_completions_are_served_while_a_pod_runs() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("wait")).await.unwrap();
    bench.is(&pod, State::Running).await;
    let listed = bench.call(&pod, Method::ListPods).await.unwrap();
    assert!(matches!(listed, Event::PodsListed { .. }), "{listed:?}");
    let restored = bench.call(&pod, Method::Restore { name: pod.to_string() }).await.unwrap();
    assert!(matches!(restored, Event::PodRestored { .. }), "{restored:?}");
    bench.call(&pod, Method::Cancel).await.unwrap();
}

#[tokio::test]
async fn a_file_is_completed_by_the_characters_of_its_path_but_not_an_ignored_or_unreadable_one() {
    let bench = Bench::new().await;
    std::fs::write(bench.root.join("script.toml"), SCRIPT).unwrap();
    let pod = bench.root_pod("p", "w/inner").await.name;
    let files = ["inner/src/deep/alpha_list.rs", "inner/alpha.md", "inner/target/alpha_list.o"];
    std::fs::create_dir_all(bench.root.join("w/inner")).unwrap();
    std::fs::write(bench.root.join("w/inner/alpha\u{202e}gnp.sh"), "").unwrap();
    for file in files.into_iter().chain(["inner/.alpha_list", "alpha_list.txt"]) {
        let path = bench.root.join("w").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    std::fs::write(bench.root.join("w/inner/.gitignore"), "target\n").unwrap();
    let found = async |prefix: &str| {
        let list = Method::ListCompletions { kind: CompletionKind::File, prefix: prefix.into() };
        match bench.call(&pod, list).await.unwrap() {
            Event::Completions { entries, .. } => {
                entries.into_iter().map(|one| one.value).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(found("alst").await, ["src/deep/alpha_list.rs"]);
    assert_eq!(found("alpha").await, ["alpha.md", "src/deep/alpha_list.rs"]);
    assert_eq!(found("DEEP").await, ["src/deep", "src/deep/alpha_list.rs"]);
    assert_eq!(found("target/alpha").await, ["target/alpha_list.o"], "a name that is typed out");
}

#[tokio::test]
async fn a_request_that_failed_is_in_the_log_as_an_error_of_its_run() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("fail")).await.unwrap();
    let failed = bench.is(&pod, State::Failed).await;
    let why = failed.why.unwrap();
    assert_eq!(failed.activity, None, "it does not wait for its model any more");
    let Some(Fact::RunErrored { interrupted: false, message, .. }) = bench.facts(&pod).await.pop()
    else {
        panic!()
    };
    assert_eq!(message, why);
}

#[tokio::test]
async fn a_failed_run_stays_failed_over_a_restart_and_resume_tries_it_again() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("fail")).await.unwrap();
    let why = bench.is(&pod, State::Failed).await.why;
    let mut bench = bench.restarted().await;
    let back = bench.info(&pod).await;
    assert_eq!((back.state, back.why), (State::Failed, why.clone()));
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.next(|event| matches!(event, Event::LlmCallStart { .. })).await;
    assert_eq!(bench.is(&pod, State::Failed).await.why, why);
    assert_eq!(bench.inputs(&pod).await, ["fail"]);
}

#[tokio::test]
async fn what_was_put_off_stays_so_over_a_restart_and_a_new_end_is_not_put_off() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("fail")).await.unwrap();
    bench.is(&pod, State::Failed).await;
    bench.call(&pod, Method::Later).await.unwrap();
    let mut bench = bench.restarted().await;
    let back = bench.info(&pod).await;
    assert!(back.later.is_some_and(|at| at >= back.since), "{back:?}");
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.next(|event| matches!(event, Event::LlmCallStart { .. })).await;
    let again = bench.is(&pod, State::Failed).await;
    assert!(again.later.is_some_and(|at| at < again.since), "{again:?}");
}

#[tokio::test]
async fn the_end_of_a_run_names_the_entry_that_ended_it() {
    let (mut bench, pod) = Bench::scripted().await;
    for (says, how, ends) in [
        ("hello", None, RunResult::Finished),
        ("stuck", Some(Method::Pause), RunResult::Paused),
        ("stuck", Some(Method::Cancel), RunResult::Cancelled),
        ("wait", Some(Method::Cancel), RunResult::RolledBack),
        ("fail", None, RunResult::Failed),
    ] {
        bench.call(&pod, Method::say(says)).await.unwrap();
        if let Some(how) = how {
            let begun = match ends {
                RunResult::RolledBack => |e: &Event| matches!(e, Event::LlmCallStart { .. }),
                _ => |e: &Event| matches!(e, Event::TextDelta { .. }),
            };
            bench.next(begun).await;
            bench.call(&pod, how).await.unwrap();
        }
        let Event::RunEnd { result, entry, .. } = bench.next(run_end).await else { unreachable!() };
        assert_eq!(result, ends);
        let last =
            bench.whole_entries(&pod).await.into_iter().rev().find(|entry| match &entry.fact {
                Fact::RunCompleted { .. } | Fact::RunErrored { .. } => true,
                Fact::Extension { domain, .. } => domain == domain::ROLLED_BACK,
                _ => false,
            });
        assert_eq!(entry, last.expect("an entry that ends a run").id, "{ends:?}");
    }
}

#[tokio::test]
async fn a_run_is_named_by_the_input_that_began_it_until_the_next_input_begins_one() {
    let (mut bench, pod) = Bench::scripted().await;
    let accepted = |reply| match reply {
        Event::Accepted { entry, run, .. } => (entry, run),
        other => panic!("{other:?}"),
    };
    let (first, run) = accepted(bench.call(&pod, Method::say("stuck")).await.unwrap());
    assert_eq!(run, first);
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    bench.call(&pod, Method::Pause).await.unwrap();
    let run_of = |event| match event {
        Event::RunEnd { run, .. } => run,
        other => panic!("{other:?}"),
    };
    assert_eq!(run_of(bench.next(run_end).await), first);
    bench.is(&pod, State::Paused).await;
    let resumed = accepted(bench.call(&pod, Method::Resume).await.unwrap());
    assert_eq!(resumed, (None, first));
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    bench.call(&pod, Method::Cancel).await.unwrap();
    assert_eq!(run_of(bench.next(run_end).await), first);
    bench.is(&pod, State::Idle).await;
    // The history moves to another segment, and a notification begins a run.
    bench.call(&pod, Method::Compact).await.unwrap();
    bench.next(|event| matches!(event, Event::CompactDone { .. })).await;
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::Notify { message: "some news".into() }).await.unwrap();
    assert_eq!(run_of(bench.next(run_end).await), first);
    let entries = bench.whole_entries(&pod).await;
    let without = |entry: &&Entry| entry.run.is_none();
    let of_runs: Vec<_> = entries.iter().skip_while(without).collect();
    let others: Vec<_> = of_runs.iter().filter(|entry| entry.run != first).collect();
    assert!(of_runs.len() > 3 && others.is_empty(), "{others:#?}");
    let (second, run) = accepted(bench.call(&pod, Method::say("hello")).await.unwrap());
    assert_eq!((run, second == first), (second, false));
    assert_eq!(run_of(bench.next(run_end).await), second);
}

#[tokio::test]
async fn a_paused_run_that_is_cancelled_is_said_to_be_cancelled() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("stuck")).await.unwrap();
    bench.next(|event| matches!(event, Event::TextDelta { .. })).await;
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Paused);
    bench.is(&pod, State::Paused).await;
    bench.call(&pod, Method::Cancel).await.unwrap();
    let last = bench.is(&pod, State::Idle).await.last_result.unwrap();
    assert_eq!(last.result, RunResult::Cancelled.word());
    assert_eq!(bench.whole_entries(&pod).await.last().unwrap().id, Some(last.entry));
}

#[tokio::test]
async fn a_notification_during_the_last_model_request_is_taken_up() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("long ".repeat(200))).await.unwrap();
    bench.next(|e| matches!(e, Event::TextDelta { .. })).await;
    bench.call(&pod, Method::Notify { message: "some news".into() }).await.unwrap();
    let on_run_event =
        |e: &Event| matches!(e, Event::TextDone { text } if text == "Heard the news.");
    bench.next(on_run_event).await;
    assert_eq!(bench.end().await, RunResult::Finished);
}

#[tokio::test]
async fn a_child_event_that_a_run_took_is_kept_when_the_run_is_cancelled() {
    let (mut bench, pod) = Bench::scripted().await;
    for (child_event, ends) in
        [(Some("some news"), RunResult::RolledBack), (None, RunResult::Cancelled)]
    {
        bench.call(&pod, Method::say("wait")).await.unwrap();
        bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
        // The first run has made its request already; the second takes the notification along.
        if let Some(message) = child_event {
            bench.call(&pod, Method::Notify { message: message.into() }).await.unwrap();
        }
        bench.call(&pod, Method::Cancel).await.unwrap();
        assert_eq!(bench.end().await, ends);
        bench.is(&pod, State::Idle).await;
    }
    bench.call(&pod, Method::say("hello")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    let facts = bench.facts(&pod).await;
    let child_event = |fact: &&Fact| {
        matches!(fact, Fact::SystemItem { item: SystemItem::Notification { .. }, .. })
    };
    assert_eq!(facts.iter().filter(child_event).count(), 1, "{facts:?}");
}

#[tokio::test]
async fn a_run_that_was_paused_before_it_had_a_result_is_rolled_back() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.end().await;
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::say("wait")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.end().await, RunResult::RolledBack);
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.inputs(&pod).await, ["one"], "only the latest turn goes");
    let bench = bench.restarted().await;
    assert_eq!(bench.info(&pod).await.state, State::Idle);
    assert_eq!(bench.inputs(&pod).await, ["one"]);
}

#[tokio::test]
async fn a_message_is_kept_and_gone_on_with_when_its_pod_is_stopped_before_anything_came_of_it() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("late")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    bench.call(&pod, Method::Stop).await.unwrap();
    bench.client.call(None, Method::Restore { name: pod.to_string() }).await.unwrap();
    let info = bench.info(&pod).await;
    assert_eq!(info.state, State::Paused);
    assert!(info.why.unwrap().starts_with("paused "));
    assert_eq!(bench.inputs(&pod).await, ["late"]);
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await, ["Here I am."]);
}

#[tokio::test]
async fn a_message_is_kept_when_the_host_ends_before_anything_came_of_it() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("wait")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    let mut bench = bench.restarted().await;
    let info = bench.info(&pod).await;
    assert_eq!(info.state, State::Paused);
    assert!(info.why.unwrap().contains("(host ended)"));
    assert_eq!(bench.inputs(&pod).await, ["wait"]);
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    bench.call(&pod, Method::Pause).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Paused);
    assert_eq!(bench.inputs(&pod).await, ["wait"], "a second pause does not take it back either");
}

#[tokio::test]
async fn a_message_of_another_pod_survives_a_pause_or_cancel_by_a_person() {
    let (mut bench, pod) = Bench::scripted().await;
    for (order, ends) in
        [(Method::Pause, RunResult::Paused), (Method::Cancel, RunResult::Cancelled)]
    {
        let (parent, handle) = (PodName::parse("above").ok(), bench.host.shared.pod(&pod).unwrap());
        handle.call_by(parent, Method::say("wait")).await.unwrap();
        bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
        bench.call(&pod, order).await.unwrap();
        assert_eq!(bench.end().await, ends);
    }
    assert_eq!(bench.inputs(&pod).await, ["wait", "wait"]);
}

#[tokio::test]
async fn a_paste_is_shown_as_it_was_pasted_and_read_as_text() {
    let (mut bench, pod) = Bench::scripted().await;
    let paste = Segment::Paste { id: 1, chars: 6, lines: 1, content: "pasted".into() };
    let typed = vec![text("this: "), paste];
    bench.call(&pod, input(typed.clone())).await.unwrap();
    let shown = bench.next(|e| matches!(e, Event::UserMessage { .. })).await;
    assert_eq!(shown, Event::UserMessage { segments: typed });
    bench.end().await;
    assert_eq!(bench.said(&pod).await, ["You said this: pasted."]);
}

#[tokio::test]
async fn a_named_file_follows_its_message_and_a_long_one_is_cut() {
    let (mut bench, pod) = Bench::scripted().await;
    std::fs::write(bench.root.join("w/long.txt"), "x".repeat(ATTACHED_AT_MOST + 1)).unwrap();
    let typed = vec![text("look at "), file("note.txt"), file("long.txt")];
    bench.call(&pod, input(typed)).await.unwrap();
    bench.end().await;
    let facts = bench.facts(&pod).await;
    let at = facts.iter().position(|fact| matches!(fact, Fact::UserInput { .. })).unwrap();
    assert!(matches!(facts[at + 1..at + 3], [Fact::SystemItem { .. }, Fact::SystemItem { .. }]));
    let attached = bench.attached(&pod).await;
    assert_eq!(attached[0], "[File: note.txt]\nhello file\n");
    let cut = format!("[cut at {ATTACHED_AT_MOST} of {} bytes]", ATTACHED_AT_MOST + 1);
    assert!(attached[1].ends_with(&cut), "{}", attached[1].len());
}

#[tokio::test]
async fn a_named_image_is_kept_beside_the_log_and_attached_and_a_broken_one_is_not() {
    let (mut bench, pod) = Bench::scripted().await;
    let dot = base64::prelude::BASE64_STANDARD.decode(DOT).unwrap();
    std::fs::write(bench.root.join("w/dot.png"), &dot).unwrap();
    std::fs::write(bench.root.join("w/half.png"), &dot[..40]).unwrap();
    bench.call(&pod, input(vec![file("dot.png"), file("half.png")])).await.unwrap();
    bench.end().await;
    let mut images = Vec::new();
    for fact in bench.facts(&pod).await {
        let Fact::SystemItem { item, .. } = fact else { continue };
        if let SystemItem::FileAttachment { images: of, .. } = item {
            images.extend(of);
        }
    }
    let [image] = &images[..] else { panic!("{images:?}") };
    assert_eq!(image.media_type, "image/png");
    let session = bench.host.shared.pod(&pod).unwrap().session;
    let files = crate::session::Files::new(&bench.host.shared.dirs.data, session);
    assert_eq!(std::fs::read(files.blobs().join(&image.blob)).unwrap(), dot);
    let attached = bench.attached(&pod).await;
    assert!(attached[0].starts_with("[File: dot.png]\n[image, image/png, "), "{attached:?}");
    assert!(attached[1].contains("not attached") && attached[1].contains("broken"), "{attached:?}");
}

#[tokio::test]
async fn a_path_that_a_person_typed_is_attached_once_where_it_is_there() {
    let (mut bench, pod) = Bench::scripted().await;
    std::fs::write(bench.root.join("outside.txt"), "secret").unwrap();
    let words = "read @note.txt, and (@note.txt) @gone.txt me@note.txt @alice";
    bench.call(&pod, input(vec![text(words), file("note.txt")])).await.unwrap();
    bench.end().await;
    assert_eq!(bench.attached(&pod).await, ["[File: note.txt]\nhello file\n"]);
    bench.call(&pod, Method::say("@note.txt")).await.unwrap();
    bench.end().await;
    bench.call(&pod, Method::say("look at @../outside.txt!")).await.unwrap();
    let Event::Alert(alert) = bench.next(|e| matches!(e, Event::Alert(_))).await else { panic!() };
    assert!(alert.message.starts_with("cannot attach ../outside.txt: "), "{alert:?}");
    bench.end().await;
    let attached = bench.attached(&pod).await;
    assert_eq!((attached.len(), &attached[1]), (3, &attached[0]));
    assert!(attached[2].starts_with("[File: ../outside.txt]\n[not attached: "), "{attached:?}");
}

#[tokio::test]
async fn a_file_that_cannot_be_attached_is_said_to_the_person_and_to_the_model() {
    let (mut bench, pod) = Bench::scripted().await;
    std::fs::write(bench.root.join("outside.txt"), "secret").unwrap();
    bench.call(&pod, input(vec![file("gone.txt"), file("../outside.txt")])).await.unwrap();
    for path in ["gone.txt", "../outside.txt"] {
        let Event::Alert(alert) = bench.next(|e| matches!(e, Event::Alert(_))).await else {
            panic!()
        };
        assert!(alert.message.starts_with(&format!("cannot attach {path}: ")), "{alert:?}");
    }
    bench.end().await;
    let attached = bench.attached(&pod).await;
    assert!(attached[0].starts_with("[File: gone.txt]\n[not attached: "), "{attached:?}");
    let outside = attached[1].contains("[not attached: path is outside allowed scope: ");
    assert!(outside && attached[1].contains("outside.txt"), "{attached:?}");
}

#[tokio::test]
async fn a_committed_link_to_a_private_key_is_not_sent_with_the_first_message_and_is_said() {
    let (mut bench, pod) = Bench::scripted().await;
    let key = bench.root.join("id_ed25519");
    std::fs::write(&key, "PRIVATE KEY").unwrap();
    std::os::unix::fs::symlink(&key, bench.root.join("w/AGENTS.md")).unwrap();
    std::fs::write(bench.root.join("w/CLAUDE.md"), "Use tabs.").unwrap();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    let Event::Alert(alert) = bench.next(|e| matches!(e, Event::Alert(_))).await else { panic!() };
    let said = "instructions are not read: symbolic link leads out of the workspace: ";
    assert!(alert.message.starts_with(said), "{alert:?}");
    assert!(alert.message.contains("AGENTS.md -> ") && alert.message.contains("id_ed25519"));
    bench.end().await;
    let prompts: Vec<String> = bench
        .facts(&pod)
        .await
        .into_iter()
        .filter_map(|fact| match fact {
            Fact::SegmentStart { system_prompt, .. } => system_prompt,
            _ => None,
        })
        .collect();
    assert!(!prompts.is_empty() && prompts.iter().all(|prompt| !prompt.contains("PRIVATE KEY")));
    assert!(prompts[0].contains("Use tabs."), "the other file is read");
}

#[tokio::test]
async fn a_child_that_lends_further_sends_nothing_to_a_model() {
    let (bench, pod) = Bench::scripted().await;
    let event = PodEvent::ScopeSubDelegated {
        parent_pod: "kid".into(),
        sub_pod: "baby".into(),
        sub_socket: "/s".into(),
        scope: Vec::new(),
    };
    for _ in 0..2 {
        bench.call(&pod, Method::PodEvent(event.clone())).await.unwrap();
    }
    assert_eq!(bench.info(&pod).await.state, State::Idle);
    assert!(bench.host.shared.store.messages(&pod).await.unwrap().is_empty());
    assert_eq!(bench.transcript(&pod).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_pod_without_a_parent_sends_no_child_event() {
    let (mut bench, pod) = Bench::scripted().await;
    let other = bench.new_pod(None).await.name;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.end().await;
    bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::Stop).await.unwrap();
    let bench = bench.restarted().await;
    for pod in [&pod, &other] {
        assert!(bench.host.shared.store.messages(pod).await.unwrap().is_empty(), "{pod}");
    }
}

#[tokio::test]
async fn a_list_reads_no_transcript() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.end().await;
    let segment = bench.is(&pod, State::Idle).await.segment.unwrap();
    let sessions = bench.root.join("home/data/sessions");
    let session = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
    let log = session.join(format!("{segment}.jsonl"));
    // A pipe without a writer: a reader that opened it would hang.
    std::fs::rename(&log, log.with_extension("kept")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&log).status().unwrap();
    assert!(made.success());
    let Event::PodsListed { pods } = bench.call(&pod, Method::ListPods).await.unwrap() else {
        panic!()
    };
    assert_eq!((pods.len(), pods[0]["state"].as_str()), (1, Some("readable")));
    assert_eq!(pods[0]["last_result"]["result"], "finished");
    std::fs::rename(log.with_extension("kept"), &log).unwrap();
}

#[tokio::test]
async fn a_child_event_of_an_unknown_pod_is_published_and_changes_no_family() {
    let (mut bench, pod) = Bench::scripted().await;
    let before = bench.host.shared.family().len();
    let event = PodEvent::ShutDown { pod_name: "stranger".into() };
    bench.call(&pod, Method::PodEvent(event)).await.unwrap();
    bench.end().await;
    let facts = bench.facts(&pod).await;
    let shown = facts.iter().find_map(|fact| match fact {
        Fact::SystemItem { item: SystemItem::PodEvent { body, .. }, .. } => Some(body),
        _ => None,
    });
    assert!(shown.unwrap().contains("pod `stranger` stopped"), "{shown:?}");
    assert_eq!(bench.host.shared.family().len(), before);
}

#[tokio::test]
async fn a_pod_that_never_ran_is_there_again_and_begins() {
    let (bench, pod) = Bench::scripted().await;
    let mut bench = bench.restarted().await;
    assert_eq!(bench.info(&pod).await.state, State::Idle);
    bench.call(&pod, Method::Stop).await.unwrap();
    let restore = Method::Restore { name: pod.to_string() };
    bench.client.call(None, restore).await.unwrap();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    assert_eq!(bench.end().await, RunResult::Finished);
    assert_eq!(bench.said(&pod).await, ["You said hello."]);
}

#[tokio::test]
async fn how_full_the_window_is_is_known_before_the_first_request() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.end().await;
    let before = bench.is(&pod, State::Idle).await.context_tokens;
    assert!(before > 0);
    let bench = bench.restarted().await;
    assert_eq!(bench.info(&pod).await.context_tokens, before);
}

impl Bench {
    /// The activities that the rows of a run show, in order, until `last` is shown. Rows up to number `behind` do not count.
    async fn said_to_do(&mut self, behind: u64, last: &str) -> Vec<String> {
        let mut said: Vec<String> = Vec::new();
        while said.last().is_none_or(|said| said != last) {
            let changed = self.next(|e| matches!(e, Event::PodChanged { .. })).await;
            let Event::PodChanged { info } = changed else { unreachable!() };
            if info.seq > behind && info.state == State::Running {
                said.extend(info.activity.filter(|now| said.last() != Some(now)));
            }
        }
        said
    }
}

#[tokio::test]
async fn a_run_is_said_to_do_what_its_own_events_show_and_nothing_of_the_run_before() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("one")).await.unwrap();
    bench.end().await;
    let before = bench.is(&pod, State::Idle).await;
    assert_eq!(before.activity.as_deref(), Some("You said one."));
    bench.call(&pod, Method::say("wait")).await.unwrap();
    let said = bench.said_to_do(before.seq, "waiting for its model").await;
    assert_eq!(said, ["waiting for its model"], "nothing has arrived yet");
    bench.call(&pod, Method::Cancel).await.unwrap();
    bench.end().await;
    let before = bench.is(&pod, State::Idle).await;
    bench.call(&pod, Method::say("hang")).await.unwrap();
    let said = bench.said_to_do(before.seq, "writing its answer").await;
    assert_eq!(said, ["waiting for its model", "writing its answer"]);
}

const OVERLOADED: &str = r#"
[[when]]
says = "busy"
[[when.step]]
text = "served"
fault = { status = 429, retry_after = 500, times = 1 }
"#;

#[tokio::test]
async fn a_pause_that_is_too_long_to_wait_for_ends_the_run_and_a_person_who_continues_tries_now() {
    let mut bench = Bench::new().await;
    let script = bench.root.join("busy.toml");
    std::fs::write(&script, OVERLOADED.replace("500", "3600")).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    bench.call(&pod, Method::say("busy")).await.unwrap();
    let why = bench.is(&pod, State::Failed).await.why.unwrap();
    assert!(why.contains("; given up at once, because `[retry] minutes` is 10: "), "{why}");
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "served");
}

#[tokio::test]
async fn a_person_lets_a_run_that_waits_for_its_provider_try_now() {
    let mut bench = Bench::with_settings("[retry]\nminutes = 60\n").await;
    let script = bench.root.join("busy.toml");
    std::fs::write(&script, OVERLOADED).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    bench.call(&pod, Method::say("busy")).await.unwrap();
    bench.until(pod.as_str(), |info| info.retry_at.is_some()).await;
    let info = bench.info(&pod).await;
    let wait = info.retry_at.unwrap().saturating_sub(crate::protocol::now_ms());
    assert!((400_000..=500_000).contains(&wait), "{wait}");
    let activity = info.activity.unwrap();
    assert!(activity.starts_with("its provider takes no requests now, tries again "), "{activity}");
    assert!(activity.contains(", gives up "), "{activity}");
    assert_eq!(info.state, State::Running);
    bench.call(&pod, Method::Resume).await.unwrap();
    bench.next(run_end).await;
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.said(&pod).await.pop().unwrap(), "served");
    assert_eq!(bench.info(&pod).await.retry_at, None);
    assert_eq!(bench.code(&pod, Method::Resume).await, ErrorCode::NotPaused);
}

#[tokio::test]
async fn a_message_that_a_filter_refused_is_taken_back_and_later_ones_do_not_carry_it() {
    let mut bench = Bench::new().await;
    let script = bench.root.join("filter.toml");
    let text = "[[when]]\nsays = 'bad*'\n[[when.step]]\nfault = { refuse = 'SAFETY' }\n[[when]]\nany = true\ntext = 'fine'\n";
    std::fs::write(&script, text).unwrap();
    let pod = bench.new_pod(Some(&script)).await.name;
    for (words, result) in [
        ("good", RunResult::Finished),
        ("bad words", RunResult::Failed),
        ("harmless", RunResult::Finished),
    ] {
        bench.call(&pod, Method::say(words)).await.unwrap();
        if result == RunResult::Failed {
            let Event::Error { message, .. } =
                bench.next(|event| matches!(event, Event::Error { .. })).await
            else {
                unreachable!()
            };
            for part in ["declined to answer: SAFETY", "was taken back", "`:rewind`"] {
                assert!(message.contains(part), "{message}");
            }
        }
        assert_eq!(bench.end().await, result, "{words}");
        if result == RunResult::Failed {
            bench.is(&pod, State::Failed).await;
            assert_eq!(bench.info(&pod).await.goes_on_by, Some(GoesOnBy::Message));
            let nothing_to_try = bench.code(&pod, Method::Resume).await;
            assert_eq!(nothing_to_try, ErrorCode::NotPaused);
        }
    }
    bench.is(&pod, State::Idle).await;
    assert_eq!(bench.inputs(&pod).await, ["good", "harmless"]);
    assert_eq!(bench.said(&pod).await, ["fine", "fine"], "the word of a filter is no answer");
}
