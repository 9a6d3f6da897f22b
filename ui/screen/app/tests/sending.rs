use super::*;

#[test]
fn the_first_message_makes_a_pod_and_is_sent_to_it() {
    let mut bench = Bench::new(vec![]);
    bench.type_in("hello");
    let made = bench.press("enter");
    let [(None, Method::New(new))] = calls(&made)[..] else { panic!("{made:?}") };
    assert_eq!((new.name.as_ref(), new.cwd.to_str()), (None, Some("/repo")));
    let info = Box::new(pod("repo", State::Idle));
    let sent = answer(&mut bench, made, Event::Created { info });
    assert_eq!(calls(&sent), [(Some("repo"), &message("hello"))]);
    assert_eq!(bench.app.current.as_ref().map(PodName::as_str), Some("repo"));
}

#[test]
fn the_first_message_makes_the_pod_that_the_command_line_named() {
    let mut bench = Bench::naming("docs", vec![pod("repo", State::Idle)]);
    assert!(bench.screen().contains("\n docs (new) ›"), "{}", bench.screen());
    for _ in 0..2 {
        bench.type_in("hello");
        let made = bench.press("enter");
        let [(None, Method::New(new))] = calls(&made)[..] else { panic!("{made:?}") };
        assert_eq!(new.name.as_ref().map(PodName::as_str), Some("docs"));
        refuse(&mut bench, made, "the disk is full");
        bench.press("ctrl-u");
    }
    bench.type_in(":open repo");
    bench.press("enter");
    assert!(bench.screen().contains("\n repo ›"), "another Pod was chosen: {}", bench.screen());
}

#[test]
fn the_pod_that_the_command_line_named_is_shown_first() {
    let mut bench = Bench::naming("docs", vec![pod("repo", State::Idle), pod("docs", State::Idle)]);
    assert!(bench.screen().contains("\n docs ›"), "{}", bench.screen());
}

#[test]
fn a_refused_message_comes_back_into_the_composer() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("precious");
    let sent = bench.press("enter");
    assert_eq!(bench.draft(), "");
    refuse(&mut bench, sent, "the disk is full");
    assert_eq!(bench.draft(), "precious");
    assert_eq!(bench.notice(), "the disk is full");
}

/// A run was taken back before an answer had begun.
fn taken_back() -> Event {
    let input = serde_json::json!([{"kind": "text", "content": "precious"}]);
    let payload =
        serde_json::json!({"from": "0198a5d0-0000-7000-8000-000000000000", "input": input});
    let entry = yoi::protocol::Entry::extension(yoi::protocol::entry::domain::ROLLED_BACK, payload);
    Event::Entry { entry: Box::new(entry), cut_bytes: None }
}

/// A Pod is removed, a new one gets its name, and the person opens that one.
fn replace(bench: &mut Bench, name: &str) {
    bench.host(None, Event::PodRemoved { name: PodName::parse(name).expect("a name") });
    bench.shown(pod(name, State::Running));
    bench.type_in(&format!(":open {name}"));
    bench.press("enter");
}

#[test]
fn a_new_pod_has_no_part_in_an_interruption_or_a_tour_of_an_older_one_of_its_name() {
    let mut bench = Bench::new(vec![pod("alice", State::Running)]);
    bench.type_in(":pause alice");
    bench.press("enter");
    bench.press("enter");
    replace(&mut bench, "alice");
    bench.host(Some("alice"), taken_back());
    assert_eq!(bench.draft(), "", "this screen did not interrupt the new alice");

    let mut bench = Bench::new(vec![]);
    begin_tour(&mut bench, pod("tour", State::Idle));
    replace(&mut bench, "tour");
    bench.shown(pod("tour", State::Idle));
    assert_eq!(bench.draft(), "", "the tour ended with its Pod");
}

#[test]
fn a_message_without_an_answer_returns_to_the_composer_when_its_run_is_interrupted() {
    let mut bench = Bench::new(vec![pod("alice", State::Running)]);
    bench.type_in(":open alice");
    bench.press("enter");
    bench.host(Some("alice"), taken_back());
    assert_eq!(bench.draft(), "", "another client interrupted it");
    bench.type_in(":pause");
    bench.press("enter");
    bench.press("enter");
    bench.host(Some("alice"), taken_back());
    assert_eq!(bench.draft(), "precious");
}

#[test]
fn a_message_to_a_running_pod_goes_into_its_run_or_waits_in_its_queue() {
    let mut bench = Bench::new(vec![pod("alice", State::Running)]);
    bench.type_in("and then tests");
    assert!(bench.screen().contains("Enter steers"), "{}", bench.screen());
    assert!(bench.screen().contains("Tab queues"), "{}", bench.screen());
    let sent = bench.press("enter");
    assert_eq!(calls(&sent), [(Some("alice"), &steer("and then tests"))]);
    refuse(&mut bench, sent, "the disk is full");
    assert_eq!(bench.draft(), "and then tests");
    assert_eq!(calls(&bench.press("tab")), [(Some("alice"), &message("and then tests"))]);
    assert_eq!(bench.draft(), "");
}

#[test]
fn the_key_that_queues_leaves_an_empty_line_only() {
    let stays = |bench: &mut Bench, key: &str| {
        assert_eq!(calls(&bench.press(key)), []);
        assert_eq!((bench.draft(), bench.app.focus), ("and then tests".into(), Focus::Composer));
        assert_eq!(bench.notice(), "Tab leaves only an empty line · Ctrl+X leads to panes");
    };
    let mut bench = Bench::new(vec![pod("alice", State::Running)]);
    bench.press("tab");
    assert_eq!(bench.app.focus, Focus::Tree);
    bench.press("esc");
    bench.type_in("and then tests");
    bench.press("left");
    stays(&mut bench, "tab");
    stays(&mut bench, "shift-tab");
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("and then tests");
    stays(&mut bench, "tab");
    bench.type_in(" :queue");
    bench.press("enter");
    let sent = bench.confirm("enter");
    assert_eq!(calls(&sent), [(Some("alice"), &message("and then tests"))], "nothing runs");
}

#[test]
fn a_message_to_a_pod_that_waits_for_a_decision_enters_after_the_request() {
    let mut bench = Bench::new(vec![pod("alice", State::NeedsYou)]);
    bench.type_in("no key");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &message("no key"))]);
    let approval = Box::new(approval("q", "alice", "cargo publish"));
    bench.host(Some("alice"), Event::ApprovalRequested { approval });
    bench.type_in("not that");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &steer("not that"))]);
    let queue = vec![queued("q1", "later"), entering("q2", "not that")];
    bench.shown(PodInfo { queue, ..pod("alice", State::NeedsYou) });
    let screen = bench.screen();
    let ends = |message: &str, end: &str| {
        let row = screen.lines().find(|row| row.contains(&format!("you    {message} ")));
        row.is_some_and(|row| row.trim_end().ends_with(end))
    };
    assert!(ends("not that", "enters after the request"), "{screen}");
    assert!(ends("later", "queued 1"), "{screen}");
}

#[test]
fn messages_that_had_not_entered_a_run_come_back_when_this_screen_pauses_it() {
    for (key, written) in [("esc", ""), ("esc", "mine"), (":pause alice", "")] {
        let queue = || vec![queued("q1", "later"), entering("q2", "one"), entering("q3", "two")];
        let mut bench =
            Bench::new(vec![PodInfo { queue: queue(), ..pod("alice", State::Running) }]);
        if key == "esc" {
            bench.type_in(written);
            assert_eq!(calls(&bench.press("esc")), [(Some("alice"), &Method::Pause)]);
        } else {
            bench.type_in(key);
            bench.press("enter");
        }
        // The second entered before the run halted.
        let mut left = queue();
        left.remove(1);
        assert_eq!(
            calls(&bench.shown(PodInfo { queue: left.clone(), ..pod("alice", State::Running) })),
            []
        );
        let taken = bench.shown(PodInfo { queue: left.clone(), ..pod("alice", State::Paused) });
        let edit = Method::EditQueued { id: "q3".into(), input: None };
        assert_eq!(calls(&taken), [(Some("alice"), &edit)], "{key}");
        assert_eq!(bench.draft(), written, "it is the host's until the host gave it up");
        answer(&mut bench, taken, Event::done());
        assert_eq!(
            bench.draft(),
            format!("{written}{}two", if written.is_empty() { "" } else { "\n" })
        );
        assert_eq!(bench.notice(), "your message is back in the line · Enter sends it");
        left.pop();
        assert_eq!(calls(&bench.shown(PodInfo { queue: left, ..pod("alice", State::Paused) })), []);
    }
    let queue = vec![entering("q1", "one")];
    let mut bench =
        Bench::new(vec![PodInfo { queue: queue.clone(), ..pod("alice", State::Running) }]);
    let elsewhere = bench.shown(PodInfo { queue, ..pod("alice", State::Paused) });
    assert_eq!(calls(&elsewhere), [], "another screen paused it");
}

#[test]
fn a_message_that_enters_next_is_neither_sent_again_nor_edited() {
    let queue = vec![queued("q1", "later"), entering("q2", "next")];
    let mut bench = Bench::new(vec![PodInfo { queue, ..pod("alice", State::Running) }]);
    let first = Method::Steer { id: Some("q1".into()), input: vec![] };
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &first)]);
    let edit = Method::EditQueued { id: "q1".into(), input: None };
    assert_eq!(calls(&bench.press("up")), [(Some("alice"), &edit)]);
    let queue = vec![entering("q2", "next")];
    bench.shown(PodInfo { queue, ..pod("alice", State::Running) });
    assert_eq!(calls(&bench.press("enter")), []);
    assert_eq!(calls(&bench.press("up")), []);
    assert_eq!(bench.notice(), "it enters the run next · :pause takes it back");
}

#[test]
fn enter_on_an_empty_composer_steers_with_the_first_queued() {
    let queue = vec![queued("q1", "first"), queued("q2", "second")];
    let mut bench = Bench::new(vec![PodInfo { queue, ..pod("alice", State::Running) }]);
    let steered = bench.press("enter");
    let steer = Method::Steer { id: Some("q1".into()), input: vec![] };
    assert_eq!(calls(&steered), [(Some("alice"), &steer)]);
    answer(&mut bench, steered, Event::done());
    let said = "the first queued goes into the run with its next model request";
    assert_eq!(bench.notice(), said);
}

#[test]
fn enter_on_nothing_lets_a_run_that_waits_for_its_provider_try_now_also_with_a_queue() {
    for queue in [vec![], vec![queued("q1", "first")]] {
        let retry_at = Some(u64::MAX);
        let mut bench =
            Bench::new(vec![PodInfo { queue, retry_at, ..pod("alice", State::Running) }]);
        assert!(bench.screen().contains("Enter tries now"), "{}", bench.screen());
        assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &Method::Resume)]);
    }
}

#[test]
fn up_in_an_empty_composer_takes_the_last_queued_back() {
    let queue = vec![queued("q1", "first"), queued("q2", "second")];
    let mut bench = Bench::new(vec![PodInfo { queue, ..pod("alice", State::Running) }]);
    let taken = bench.press("up");
    let edit = Method::EditQueued { id: "q2".into(), input: None };
    assert_eq!(calls(&taken), [(Some("alice"), &edit)]);
    assert_eq!(bench.draft(), "");
    answer(&mut bench, taken, Event::done());
    assert_eq!(bench.draft(), "second");
}

#[test]
fn enter_on_a_paused_pod_continues_its_run() {
    let mut bench = Bench::new(vec![pod("alice", State::Paused)]);
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &Method::Resume)]);
}

#[test]
fn a_message_to_a_stopped_pod_restores_it_first() {
    let mut bench = Bench::new(vec![pod("alice", State::Stopped), pod("bob", State::Idle)]);
    bench.type_in(":open alice");
    bench.press("enter");
    bench.type_in("go on");
    let restored = bench.press("enter");
    assert_eq!(calls(&restored), [(None, &Method::Restore { name: "alice".into() })]);
    let result = serde_json::Value::Null;
    let sent = answer(&mut bench, restored, Event::PodRestored { result });
    assert_eq!(calls(&sent), [(Some("alice"), &message("go on"))]);
}

#[test]
fn the_first_message_on_a_default_model_is_shown_before_it_is_sent() {
    let sends = "This goes to api.anthropic.com as claude-sonnet-4, with ANTHROPIC_API_KEY";
    let info = PodInfo {
        model_chosen: false,
        model_sends: Some(sends.into()),
        ..pod("alice", State::Idle)
    };
    let mut bench = Bench::new(vec![info]);
    bench.type_in("hello");
    assert!(calls(&bench.press("enter")).is_empty());
    assert!(bench.screen().contains("This goes to api.anthropic.com"));
    bench.confirm("esc");
    assert_eq!(bench.draft(), "hello");
    bench.wait(400);
    bench.press("enter");
    let chosen = bench.confirm("enter");
    let sends = sends.to_owned();
    assert_eq!(calls(&chosen), [(Some("alice"), &Method::Consent { sends })]);
    let sent = answer(&mut bench, chosen, Event::done());
    assert_eq!(calls(&sent), [(Some("alice"), &message("hello"))]);
}

#[test]
fn a_pod_without_a_model_is_sent_the_message_anyway() {
    let info = PodInfo { model: String::new(), model_chosen: false, ..pod("alice", State::Idle) };
    let mut bench = Bench::new(vec![info]);
    bench.type_in("hello");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &message("hello"))]);
}

#[test]
fn a_message_that_looks_like_a_verb_is_offered_as_one() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("/stop");
    assert!(calls(&bench.press("enter")).is_empty());
    assert!(bench.screen().contains("`:stop` is a verb"));
    let stopped = bench.confirm("enter");
    assert_eq!(
        calls(&stopped),
        [(Some("alice"), &Method::StopPods { tree: false, unless_busy: false, silent: false })]
    );
    bench.type_in("exit");
    bench.press("enter");
    assert_eq!(calls(&bench.confirm("s")), [(Some("alice"), &message("exit"))]);
}

#[test]
fn a_pasted_colon_and_newline_are_text() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    let effects = bench.msg(Msg::Paste(":stop alice\n".into()));
    assert!(effects.is_empty());
    assert_eq!(bench.draft(), ":stop alice\n");
}

#[test]
fn a_pod_that_vanished_keeps_its_draft_and_is_sent_nothing() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("still here");
    bench.host(None, Event::PodRemoved { name: PodName::parse("alice").expect("a name") });
    assert!(calls(&bench.press("enter")).is_empty());
    assert_eq!(bench.draft(), "still here");
    assert_eq!(bench.notice(), "alice was removed: choose another Pod, or :new");
}

#[test]
fn the_screen_says_that_the_current_pod_was_removed_and_keeps_its_draft_once() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.go_to("alice");
    bench.type_in("still here");
    bench.host(None, Event::PodRemoved { name: PodName::parse("alice").expect("a name") });
    bench.wait(10_000);
    let screen = bench.screen();
    for said in ["alice was removed: choose another Pod", "removed", "Your draft stays"] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert!(!screen.contains("loading"), "{screen}");
    bench.press("f1");
    let screen = bench.screen();
    for said in ["Writing to alice, which was removed", "nothing: the Pod was removed"] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    bench.press("f1");
    // Another screen or the next one has the text once, however often this one is written.
    let mut base = bench.app.screen_state();
    let mut file = base.clone();
    for more in [" a", "nd more", ""] {
        bench.type_in(more);
        bench.wait(1_000);
        assert!(calls(&bench.press("enter")).is_empty());
        let own = bench.app.screen_state();
        file = own.clone().merged(&base, file);
        base = own;
    }
    let mut next = Bench::returning(file, vec![pod("bob", State::Idle)]);
    next.press("up");
    assert_eq!(next.draft(), "still here and more");
    next.press("up");
    assert_eq!(next.draft(), "still here and more", "there is no other one");
}

#[test]
fn a_draft_for_a_deleted_pod_is_not_sent_to_another_one_of_its_name() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("for the first one");
    bench.host(None, Event::PodRemoved { name: PodName::parse("alice").expect("a name") });
    bench.host(None, Event::PodChanged { info: Box::new(pod("alice", State::Idle)) });
    assert!(calls(&bench.press("enter")).is_empty());
    assert_eq!(bench.draft(), "for the first one");
    assert_eq!(bench.notice(), "another Pod has the name alice now · :open alice writes to it");
    bench.go_to("alice");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &message("for the first one"))]);
}

#[test]
fn a_draft_for_a_deleted_pod_is_in_the_history_of_this_screen() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.go_to("alice");
    bench.type_in("for alice");
    let gone = |bench: &mut Bench, name: &str| {
        bench.host(None, Event::PodRemoved { name: PodName::parse(name).expect("a name") });
    };
    gone(&mut bench, "alice");
    assert_eq!(bench.draft(), "for alice", "it stays where it is written");
    bench.go_to("bob");
    assert_eq!(bench.draft(), "");
    bench.press("up");
    assert_eq!(bench.draft(), "for alice");

    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    bench.go_to("alice");
    bench.type_in("for alice");
    bench.go_to("bob");
    gone(&mut bench, "alice");
    bench.press("up");
    assert_eq!(bench.draft(), "for alice");
}

#[test]
fn a_named_file_is_completed_by_the_host() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("see ");
    let asked = bench.type_in("@ru");
    let kind = yoi::protocol::CompletionKind::File;
    let list = |prefix: &str| Method::ListCompletions { kind, prefix: prefix.into() };
    assert_eq!(calls(&asked), [(Some("alice"), &list(""))]);
    let found = |bench: &mut Bench, prefix: &str, paths: &[(&str, bool)]| {
        let entry = |&(path, is_dir): &(&str, bool)| yoi::protocol::Completion {
            value: path.into(),
            is_dir,
        };
        let entries = paths.iter().map(entry).collect();
        let reply = Event::Completions { kind, entries };
        bench.msg(Msg::Answered(Asked::Files(prefix.into()), Ok(reply)))
    };
    let asked = found(&mut bench, "", &[("docs", true)]);
    assert_eq!(calls(&asked), [(Some("alice"), &list("ru"))], "one text at a time");
    assert!(!bench.screen().contains("docs"), "that was for another text");
    found(&mut bench, "ru", &[("ui/run.rs", false), ("ui/run", true)]);
    assert!(bench.screen().contains("ui/run.rs"));
    bench.press("enter");
    let sent = bench.press("enter");
    let [(_, Method::Send { input, .. })] = calls(&sent)[..] else { panic!("{sent:?}") };
    assert!(input.contains(&yoi::protocol::Segment::FileRef { path: "ui/run.rs".into() }));
}

/// Says which of the dropped files the host found, and returns the last notice.
fn found_of(bench: &mut Bench, dropped: Vec<Effect>, found: &[&str]) -> String {
    let kind = yoi::protocol::CompletionKind::File;
    for effect in dropped {
        let (Effect::Call { asked, .. } | Effect::FindFiles(_, asked)) = effect else {
            panic!("{effect:?}")
        };
        let entry =
            |path: &&str| yoi::protocol::Completion { value: (*path).into(), is_dir: false };
        let entries = found.iter().map(entry).collect();
        bench.msg(Msg::Answered(asked, Ok(Event::Completions { kind, entries })));
    }
    bench.notice().to_owned()
}

#[test]
fn a_dropped_image_that_the_pod_cannot_read_stays_text_and_the_notice_says_why() {
    let drop = |bench: &mut Bench, text: &str| bench.msg(Msg::Paste(text.to_owned()));
    let scope = vec![yoi::scope::Rule::new("/repo", yoi::scope::Permission::Write)];
    let mut bench = Bench::new(vec![PodInfo { scope, ..pod("alice", State::Idle) }]);
    let asked = drop(&mut bench, "/repo/a.png /far/b.png '/repo/gone one.gif'");
    assert_eq!(bench.draft(), "@/repo/a.png @/far/b.png @/repo/gone one.gif ");
    let kind = yoi::protocol::CompletionKind::File;
    let list = Method::ListCompletions { kind, prefix: "/repo/a.png".into() };
    assert_eq!(calls(&asked)[0], (Some("alice"), &list));
    bench.type_in("look");
    let said = found_of(&mut bench, asked, &["/repo/a.png", "/repo/a.png.old"]);
    assert_eq!(bench.draft(), "@/repo/a.png /far/b.png /repo/gone one.gif look");
    let gone = "not attached: /repo/gone one.gif: alice finds no such file that it may read";
    assert_eq!(said, gone);
    let sent = bench.press("enter");
    let [(_, Method::Send { input, .. })] = calls(&sent)[..] else { panic!("{sent:?}") };
    let named: Vec<_> = input
        .iter()
        .filter(|segment| matches!(segment, yoi::protocol::Segment::FileRef { .. }))
        .collect();
    assert_eq!(named, [&yoi::protocol::Segment::FileRef { path: "/repo/a.png".into() }]);

    let asked = drop(&mut bench, "/far/b.png");
    let said = found_of(&mut bench, asked, &[]);
    let outside = "not attached: /far/b.png: path is outside allowed scope of alice";
    assert!(said.starts_with(outside) && said.ends_with("copy the image below /repo"), "{said}");

    let mut bench = Bench::new(vec![]);
    let asked = drop(&mut bench, "/far/b.png");
    let said = found_of(&mut bench, asked, &[]);
    assert!(said.contains("outside allowed scope of a new Pod"), "{said}");
    assert_eq!(bench.draft(), "/far/b.png ");
}

#[test]
fn a_dropped_image_whose_name_hides_characters_is_safe_text_and_no_name_of_a_file() {
    for (dropped, shown) in [
        ("/repo/a\u{202e}gnp.png", r"/repo/a\u{202e}gnp.png"),
        ("'/repo/a\u{1b}[2J.png'", r"'/repo/a\x1b[2J.png'"),
    ] {
        let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
        assert!(calls(&bench.msg(Msg::Paste(dropped.to_owned()))).is_empty(), "{dropped}");
        assert_eq!(bench.draft(), shown);
        assert!(bench.notice().contains("hidden characters"), "{}", bench.notice());
    }
}

#[test]
fn the_name_of_a_pod_is_completed_among_the_files_and_only_written() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("tester", State::Idle)]);
    bench.type_in("ask @tst");
    let kind = yoi::protocol::CompletionKind::File;
    for (prefix, files) in [("", vec![]), ("tst", vec!["tests/store.rs"])] {
        let entry = |path: &str| yoi::protocol::Completion { value: path.into(), is_dir: false };
        let entries = files.into_iter().map(entry).collect();
        let reply = Event::Completions { kind, entries };
        bench.msg(Msg::Answered(Asked::Files(prefix.into()), Ok(reply)));
    }
    let screen = bench.screen();
    assert!(screen.contains("tester  Pod") && screen.contains("tests/store.rs"), "{screen}");
    assert!(screen.contains("Enter puts it in · Esc closes the list"), "{screen}");
    bench.press("enter");
    assert_eq!(bench.draft(), "ask tester ");
}

#[test]
fn before_there_is_a_pod_files_are_those_of_the_directory_of_the_screen() {
    let kind = yoi::protocol::CompletionKind::File;
    let mut bench = Bench::new(vec![]);
    bench.type_in("see ");
    let asked = bench.press("@");
    let [Effect::FindFiles(prefix, asked)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((prefix.as_str(), asked), ("", &Asked::Files(String::new())));
    let file = yoi::protocol::Completion { value: "run.rs".into(), is_dir: false };
    let entries = vec![file];
    bench.msg(Msg::Answered(asked.clone(), Ok(Event::Completions { kind, entries })));
    bench.press("enter");
    assert_eq!(bench.draft(), "see @run.rs ");
}

#[test]
fn a_pod_and_a_file_are_completed_in_the_text_of_a_verb_for_the_pod_that_gets_it() {
    let kind = yoi::protocol::CompletionKind::File;
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Running)]);
    bench.go_to("alice");
    assert!(calls(&bench.type_in(":send bob see ")).is_empty());
    bench.press("@");
    let asked = bench.type_in("bo");
    let [.., (Some("bob"), Method::ListCompletions { prefix, .. })] = calls(&asked)[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(prefix, "bo");
    let file = yoi::protocol::Completion { value: "bold.rs".into(), is_dir: false };
    let entries = vec![file];
    let reply = Event::Completions { kind, entries };
    bench.msg(Msg::Answered(Asked::FilesMentioned("bo".into()), Ok(reply)));
    let screen = bench.screen();
    let rows: Vec<&str> = screen.lines().map(str::trim).collect();
    assert!(rows.windows(2).any(|rows| rows == ["bob       running", "@bold.rs"]), "{screen}");
    bench.press("tab");
    bench.press("tab");
    let sent = bench.press("enter");
    let [(Some("bob"), Method::Send { input, .. })] = calls(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(yoi::protocol::flatten(input), "see @bold.rs");
}

/// The Pod of the tour.
fn tour(state: State) -> PodInfo {
    PodInfo {
        workspace: "/tmp/x".into(),
        model: yoi::llm::rehearsal::TOUR_MODEL.into(),
        ..pod("tour", state)
    }
}

/// Begins the tour in a Pod that the host makes, and returns what follows from the reply of the host.
fn begin_tour(bench: &mut Bench, info: PodInfo) -> Vec<Effect> {
    bench.type_in(":tour");
    let effects = bench.press("enter");
    let [Effect::Tour(token)] = &effects[..] else { panic!("{effects:?}") };
    let created = Event::Created { info: Box::new(info) };
    bench.msg(Msg::Answered(Asked::NewTour(token.clone()), Ok(created)))
}

#[test]
fn the_tour_plays_in_a_pod_of_its_own_and_writes_its_next_line() {
    let mut bench = Bench::new(vec![]);
    let sent =
        begin_tour(&mut bench, PodInfo { workspace: "/tmp/x".into(), ..pod("tour", State::Idle) });
    let [(Some("tour"), Method::Send { .. })] = calls(&sent)[..] else { panic!("{sent:?}") };
    bench.shown(PodInfo { workspace: "/tmp/x".into(), ..pod("tour", State::Running) });
    bench.shown(PodInfo { workspace: "/tmp/x".into(), ..pod("tour", State::Idle) });
    assert_eq!(bench.draft(), "Ask the counter on the network.");
}

#[test]
fn the_tour_sends_the_person_away_and_goes_on_when_the_screen_is_opened_again() {
    let mut bench = Bench::new(vec![]);
    begin_tour(&mut bench, tour(State::Idle));
    for line in &yoi::llm::rehearsal::TOUR_LINES[1..] {
        bench.shown(tour(State::Running));
        bench.shown(tour(State::Idle));
        if *line == "I am back." {
            assert_eq!(bench.draft(), "", "the empty line is the one that the key leaves");
        } else {
            assert_eq!(bench.draft(), *line);
            bench.press("enter");
        }
    }
    let mut again = Bench::returning(bench.app.screen_state(), vec![tour(State::Idle)]);
    assert_eq!(again.draft(), "I am back.");
    again.press("enter");
    let later = Bench::returning(again.app.screen_state(), vec![tour(State::Idle)]);
    assert_eq!(later.draft(), "", "it is written once");
}

#[test]
fn the_next_line_of_the_tour_leaves_the_keys_of_an_empty_line_until_the_person_writes() {
    let mut bench = Bench::new(vec![]);
    begin_tour(&mut bench, tour(State::Idle));
    bench.shown(tour(State::Running));
    bench.shown(tour(State::Idle));
    let line = "Ask the counter on the network.";
    assert_eq!(bench.draft(), line);
    bench.press("tab");
    assert_eq!(bench.app.focus, Focus::Tree);
    bench.press("esc");
    assert_eq!((bench.app.focus, bench.draft().as_str()), (Focus::Composer, line));
    bench.press(":");
    assert!(matches!(bench.app.layers.top(), Some(Layer::Prompt(_))));
    bench.press("esc");
    bench.wait(1_000);
    assert!(matches!(bench.press("ctrl-d")[..], [Effect::Quit(_)]));
    bench.type_in("!");
    bench.press("tab");
    assert_eq!(bench.app.focus, Focus::Composer, "the text is the person's now");
    assert!(bench.press("ctrl-d").is_empty());
}

#[test]
fn the_tour_goes_on_after_the_host_left_the_end_of_its_run_out() {
    let run = |since, state| PodInfo { workspace: "/tmp/x".into(), since, ..pod("tour", state) };
    for known in [run(2, State::Running), run(1, State::Idle)] {
        let mut bench = Bench::new(vec![]);
        begin_tour(&mut bench, run(1, State::Idle));
        bench.shown(known);
        let family = |pod| Event::Family {
            pods: vec![pod],
            peers: Vec::new(),
            approvals: Vec::new(),
            agents: Vec::new(),
        };
        for event in [Event::Lagged, family(run(3, State::Idle))] {
            bench.msg(Msg::Host(Outgoing { re: None, pod: None, seq: None, event }));
        }
        assert_eq!(bench.draft(), "Ask the counter on the network.");
    }
}

#[test]
fn the_tour_waits_for_working_children_and_until_its_pod_is_current() {
    let mut bench = Bench::new(vec![pod("other", State::Idle)]);
    bench.type_in(":tour");
    let effects = bench.press("enter");
    let [Effect::Tour(token)] = &effects[..] else { panic!("{effects:?}") };
    let tour = |state| PodInfo { workspace: "/repo".into(), ..pod("tour", state) };
    let info = Box::new(tour(State::Idle));
    bench.msg(Msg::Answered(Asked::NewTour(token.clone()), Ok(Event::Created { info })));
    let parent = PodName::parse("tour").ok();
    bench.shown(PodInfo { parent: parent.clone(), ..pod("checker", State::NeedsYou) });
    bench.shown(tour(State::Running));
    bench.shown(tour(State::Idle));
    assert_eq!(bench.draft(), "", "checker still waits for an answer");
    bench.type_in(":open other");
    bench.press("enter");
    bench.shown(PodInfo { parent, ..pod("checker", State::Idle) });
    bench.shown(tour(State::Running));
    bench.shown(tour(State::Idle));
    assert_eq!(bench.draft(), "");
    bench.type_in(":open tour");
    bench.press("enter");
    assert_eq!(bench.draft(), "Ask the counter on the network.");
}

#[test]
fn a_second_message_while_the_pod_is_being_made_stays_in_the_composer() {
    let mut bench = Bench::new(vec![]);
    bench.type_in("first");
    let made = bench.press("enter");
    bench.type_in("second");
    assert!(bench.press("enter").is_empty());
    let info = Box::new(pod("repo", State::Idle));
    let sent = answer(&mut bench, made, Event::Created { info });
    assert_eq!(calls(&sent), [(Some("repo"), &message("first"))]);
    assert_eq!(bench.draft(), "second");
}

#[test]
fn the_message_of_the_command_line_is_sent_as_the_screen_opens_and_a_draft_stays() {
    for (pods, to) in [(vec![], None), (vec![pod("alice", State::Idle)], Some("alice"))] {
        let mut bench = Bench::before_the_family(None, ScreenState::default());
        bench.app.first_message = Some("fix the tests".into());
        bench.type_in("a draft");
        let effects = bench.host(None, family_of(pods));
        let asked = calls(&effects);
        let sends = |(pod, method): &(Option<&str>, &Method)| match method {
            Method::New(_) => to.is_none(),
            method => *pod == to && **method == message("fix the tests"),
        };
        assert!(asked.iter().any(sends), "{asked:?}");
        assert_eq!(bench.draft(), "a draft");
        assert_eq!(bench.app.first_message, None);
    }
}

#[test]
fn the_message_of_the_command_line_goes_to_no_pod_of_another_workspace() {
    // Of the Pods of other workspaces, only the one of a tour is shown again.
    let model = yoi::llm::rehearsal::TOUR_MODEL.into();
    let far = PodInfo { model, workspace: "/far".into(), ..pod("tour", State::Idle) };
    let left = || {
        let mut earlier = Bench::new(vec![far.clone()]);
        earlier.app.make_current(&far.name);
        earlier.app.screen_state()
    };
    let mut bench = Bench::before_the_family(None, left());
    bench.app.first_message = Some("fix the tests".into());
    let effects = bench.host(None, family_of(vec![far.clone()]));
    let made = calls(&effects).iter().any(|(_, method)| matches!(method, Method::New(_)));
    assert!(made, "{effects:?}");
    let again = Bench::returning(left(), vec![far.clone()]);
    assert_eq!(again.app.current, Some(far.name.clone()), "without a message it is shown again");
}

#[test]
fn enter_on_a_failed_pod_tries_its_run_again_and_is_what_the_screen_names() {
    let failed = |why: &str, goes_on_by| {
        let why = Some(why.into());
        Bench::new(vec![PodInfo { why, goes_on_by, ..pod("alice", State::Failed) }])
    };
    let mut bench = failed("mine: no connection", None);
    bench.size(120, 30);
    let screen = bench.screen();
    assert!(screen.contains("mine: no connection · Enter tries again"), "{screen}");
    assert!(!screen.contains(":restore"), "{screen}");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &Method::Resume)]);
    let restore = Some(yoi::protocol::GoesOnBy::Restore);
    let mut bench = failed("its socket is taken; :restore alice tries again", restore);
    let screen = bench.screen();
    assert!(!screen.contains("Enter tries again"), "{screen}");
}

#[test]
fn a_draft_with_a_part_of_a_paste_is_not_sent() {
    for key in ["enter", "tab"] {
        let mut bench = Bench::new(vec![pod("alice", State::Running)]);
        bench.msg(Msg::Paste("line\n".repeat(30)));
        let whole = bench.app.composer.draft().message().text;
        bench.msg(Msg::Edited(Ok(whole[..whole.len() - 1].to_owned())));
        let effects = bench.press(key);
        assert!(calls(&effects).is_empty(), "{key}: {effects:?}");
        assert!(bench.screen().contains("paste #1 is not whole"), "{}", bench.screen());
        bench.press("ctrl-_");
        bench.press("ctrl-_");
        let effects = bench.press(key);
        assert!(!calls(&effects).is_empty(), "{key}: the paste is whole again");
    }
}

#[test]
fn the_editor_gets_a_paste_whole_and_what_it_left_of_it_is_a_chip_again() {
    let log: String = (0..30).map(|line| format!("line {line} of a log\n")).collect();
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("look at ");
    bench.msg(Msg::Paste(log.clone()));
    let effects = bench.press("ctrl-g");
    let [Effect::Edit(text)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(*text, format!("look at {log}"));
    let chip = bench.draft()["look at ".len()..].to_owned();
    bench.msg(Msg::Edited(Ok(format!("please look at {log}"))));
    assert_eq!(bench.draft(), format!("please look at {chip}"));
    bench.msg(Msg::Edited(Ok(format!("{} and say why\n", log.trim_end()))));
    assert_eq!(bench.draft(), format!("{chip} and say why"));
    let sent = bench.press("enter");
    let [(_, Method::Send { input, .. })] = calls(&sent)[..] else { panic!("{sent:?}") };
    assert_eq!(yoi::protocol::flatten(input), format!("{log} and say why"));
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.msg(Msg::Paste(log.clone()));
    bench.msg(Msg::Edited(Ok(log.replace("line 3 ", "that line "))));
    assert!(bench.draft().contains("that line of a log"), "{}", bench.draft());
}

#[test]
fn up_in_a_wrapped_text_goes_up_a_row_before_it_goes_to_the_history() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("an older one");
    bench.press("enter");
    let text = "words ".repeat(30);
    bench.type_in(&text);
    bench.screen();
    bench.press("up");
    assert_eq!(bench.draft(), text);
    bench.type_in("!");
    assert_ne!(bench.draft(), format!("{text}!"), "the cursor is a row above");
    for _ in 0..4 {
        bench.press("up");
    }
    assert_eq!(bench.draft(), "an older one");
}
