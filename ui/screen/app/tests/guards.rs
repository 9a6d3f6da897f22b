//! Text and keys that reach another place than the person meant do no harm: the screen says what it asks
//! for, offers a verb that it finds in a text, and names the keys that work.

use super::*;
use yoi::protocol::GoesOnBy;

fn alone(state: State) -> Bench {
    let mut bench = Bench::new(vec![pod("alice", state)]);
    bench.go_to("alice");
    bench
}

/// A request of alice, with the line for the reason of its denial.
fn denying(width: u16, height: u16) -> Bench {
    let mut bench = alone(State::NeedsYou);
    bench.size(width, height);
    let request = approval("q", "alice", "cargo publish");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    bench.confirm("D");
    bench
}

fn denied(effects: &[Effect]) -> Option<&str> {
    match calls(effects)[..] {
        [(None, Method::Decide { verdict: yoi::protocol::Verdict::Deny { reason }, .. })] => {
            Some(reason)
        }
        _ => None,
    }
}

/// The words of a screen, without what only its width decides.
fn words(bench: &mut Bench) -> String {
    let screen = bench.screen().replace(['│', '─', '┌', '┐', '└', '┘'], " ");
    screen.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_line_for_the_reason_of_a_denial_names_its_question_and_the_bar_its_keys() {
    for (width, height) in [(40, 12), (80, 24), (120, 40)] {
        let mut bench = denying(width, height);
        let prompts = |bench: &mut Bench, prompt: &str| {
            let screen = bench.screen();
            let mut rows = screen.lines().rev();
            let keys = if width < 60 { "Enter denies" } else { "Enter denies · Esc back" };
            assert!(rows.next().is_some_and(|bar| bar.contains(keys)), "{screen}");
            assert!(rows.next().is_some_and(|line| line.starts_with(prompt)), "{screen}");
        };
        prompts(&mut bench, " deny, because ›");
        bench.type_in("too early");
        prompts(&mut bench, " deny, because › too early");
        assert_eq!(denied(&bench.press("enter")), Some("too early"));
        let mut bench = denying(width, height);
        assert_eq!(denied(&bench.press("enter")), Some(""));
    }
}

#[test]
fn a_verb_in_the_place_of_a_reason_is_offered_and_the_request_stays_undecided() {
    let mut bench = denying(80, 24);
    bench.type_in(":notices");
    assert!(bench.press("enter").is_empty(), "nothing is denied by it");
    let offered = "`:notices` is a verb; to run it leaves the request undecided";
    assert!(bench.screen().contains(offered), "{}", bench.screen());
    bench.confirm("esc");
    assert!(words(&mut bench).contains("deny, because ›"), "the line is there again");
    bench.press("enter");
    assert!(bench.confirm("enter").is_empty());
    assert_eq!(bench.notice(), "no notices yet", "the verb is run");
    assert!(bench.app.layers.is_empty(), "the line of the reason is closed");
    assert_eq!(bench.app.family.approvals().len(), 1);
}

/// A request to start the MCP server `demo`.
fn server_request() -> yoi::protocol::ApprovalRequest {
    let lines =
        ["command: uvx demo", "variables it gets: none", "network: no", "named in: config.toml"];
    let script =
        yoi::protocol::ScriptHash { path: "demo".into(), sha256: "8dc4f121c56e".repeat(6) };
    yoi::protocol::ApprovalRequest {
        tool: "McpServer".into(),
        details: Some(lines.join("\n")),
        because: "your approval: it starts an MCP server".into(),
        reason: None,
        scripts: vec![script],
        rule: yoi::protocol::Pattern {
            tool: "McpServer+sha256=8dc4".into(),
            pattern: "demo".into(),
        },
        ..approval("q", "alice", "demo")
    }
}

#[test]
fn a_request_to_start_a_server_is_a_sentence_and_shows_its_definition_at_once() {
    let mut bench = alone(State::NeedsYou);
    bench.size(120, 40);
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(server_request()) });
    bench.press("ctrl-n");
    let shown = words(&mut bench);
    for text in [
        "start the MCP server demo",
        "named in: config.toml",
        "holds for this definition, SHA-256 8dc4f121c56e",
        r#"for every Pod: [[permissions.rule]] in config.toml with tool = "McpServer+sha256=8dc4", pattern = "demo", action = "allow""#,
    ] {
        assert!(shown.contains(text), "{text}: {shown}");
    }
    bench.confirm("A");
    let shown = words(&mut bench);
    assert!(shown.contains("always allow McpServer+sha256=8dc4: demo for alice?"), "{shown}");
    let allowed = bench.confirm("enter");
    assert_eq!(calls(&allowed).len(), 1, "three keys: to the request, always, Enter");
}

#[test]
fn a_request_for_a_script_that_its_pod_can_change_is_allowed_once_only() {
    let mut bench = alone(State::NeedsYou);
    bench.size(120, 40);
    let request = yoi::protocol::ApprovalRequest {
        once_only: true,
        lease: Some(yoi::scope::Rule::new("/other", yoi::scope::Permission::Write)),
        ..approval("q", "alice", "split --filter=./x.sh f")
    };
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    let shown = words(&mut bench);
    assert!(shown.contains("it is allowed once only") && !shown.contains("would allow"), "{shown}");
    for offered in ["A always", "T always", "with A or T"] {
        assert!(!shown.contains(offered), "{offered}: {shown}");
    }
    bench.press("f1");
    let help = bench.screen();
    assert!(help.contains("Deciding what waits") && help.contains("allow this once"), "{help}");
    assert!(!help.contains("allow always, for this Pod"), "{help}");
    bench.press("f1");
    for key in ["A", "T"] {
        assert!(calls(&bench.confirm(key)).is_empty(), "{key}");
        assert!(bench.app.layers.is_empty(), "{key}");
        assert!(bench.notice().contains("it is allowed once only"), "{key}: {}", bench.notice());
    }
    assert_eq!(calls(&bench.confirm("a")).len(), 1);
}

#[test]
fn a_warning_leaves_the_key_to_a_request_in_view() {
    for (width, height) in [(40, 12), (80, 24), (120, 40)] {
        let mut bench = alone(State::NeedsYou);
        bench.size(width, height);
        let request = Box::new(server_request());
        bench.host(Some("alice"), Event::ApprovalRequested { approval: request });
        let alert = yoi::protocol::Alert {
            level: yoi::protocol::AlertLevel::Warn,
            source: yoi::protocol::AlertSource::Pod,
            message: "MCP server `broken`: it closed its output (it ended with exit code 1)".into(),
            timestamp_ms: 0,
        };
        bench.host(Some("alice"), Event::Alert(alert));
        let screen = bench.screen();
        let bar = screen.lines().last().unwrap_or_default();
        assert!(bar.contains("! MCP server"), "{bar}");
        assert!(bar.starts_with(" ▲ 1 ") && bar.contains(" Ctrl+N "), "{bar}");
    }
}

/// The host comes back, with these requests.
fn restart(bench: &mut Bench, approvals: Vec<yoi::protocol::ApprovalRequest>) {
    bench.msg(Msg::Connected);
    let pods = vec![pod("alice", State::NeedsYou)];
    bench.host(None, Event::Family { pods, peers: Vec::new(), approvals, agents: Vec::new() });
}

#[test]
fn a_host_that_ends_while_a_reason_is_typed_is_said_at_once_and_the_next_one_is_asked_on_its_card()
{
    for (width, height) in [(40, 12), (80, 24)] {
        let mut bench = denying(width, height);
        bench.type_in("too early");
        bench.msg(Msg::HostEnded);
        let ended = "the host ended: nothing is decided (Enter: start it again, Esc: back)";
        let shown = words(&mut bench);
        assert!(shown.contains(ended), "{shown}");
        assert!(matches!(bench.press("enter")[..], [Effect::Reconnect]));
        let starting = "the host is starting: nothing is decided yet";
        assert!(words(&mut bench).contains(starting), "{}", bench.screen());
        assert!(bench.press("enter").is_empty());
        restart(&mut bench, vec![approval("q", "alice", "cargo publish")]);
        bench.wait(1_000);
        assert!(calls(&bench.press("enter")).is_empty(), "the card was not read again");
        let shown = words(&mut bench);
        assert!(shown.contains("drawn again: nothing is sent"), "{shown}");
        assert!(!shown.contains("Enter denies"), "{shown}");
        bench.press("esc");
        bench.press("D");
        assert!(bench.app.layers.is_empty(), "the card was not drawn yet");
        let shown = words(&mut bench);
        assert!(shown.contains("cargo publish"), "the request is there again: {shown}");
        bench.confirm("D");
        let shown = words(&mut bench);
        assert!(shown.contains("deny, because › too early"), "{shown}");
        assert_eq!(denied(&bench.press("enter")), Some("too early"));
    }
}

#[test]
fn a_rule_or_an_answer_needs_the_card_of_the_next_host() {
    let question = yoi::protocol::ApprovalRequest {
        question: Some(yoi::protocol::Question::of_model(vec!["total".into(), "sum".into()])),
        ..approval("q", "alice", "Which name?")
    };
    let command = approval("q", "alice", "cargo publish");
    for (request, key) in [(command.clone(), "A"), (command, "T"), (question, "2")] {
        let mut bench = alone(State::NeedsYou);
        let asked = Event::ApprovalRequested { approval: Box::new(request.clone()) };
        bench.host(Some("alice"), asked);
        bench.press("ctrl-n");
        bench.confirm(key);
        bench.msg(Msg::HostEnded);
        assert!(matches!(bench.press("enter")[..], [Effect::Reconnect]), "{key}");
        restart(&mut bench, vec![request.clone()]);
        bench.wait(1_000);
        assert!(calls(&bench.confirm("enter")).is_empty(), "{key}: {}", bench.screen());
        bench.press("esc");
        assert!(bench.screen().contains(&request.action), "{key}: {}", bench.screen());
        bench.confirm(key);
        assert_eq!(calls(&bench.confirm("enter")).len(), 1, "{key}: {}", bench.screen());
    }
}

#[test]
fn a_reason_that_was_left_is_in_the_line_again_and_only_on_its_card() {
    let mut bench = denying(80, 24);
    bench.shown(pod("bob", State::NeedsYou));
    let other = approval("other", "bob", "cargo fetch");
    bench.host(Some("bob"), Event::ApprovalRequested { approval: Box::new(other) });
    bench.type_in("too early");
    let line = |bench: &mut Bench, text: &str| {
        let shown = bench.screen();
        let end = format!("deny, because › {text}");
        assert!(shown.lines().any(|row| row.trim() == end.trim()), "{text}: {shown}");
    };
    bench.press("esc");
    bench.confirm("D");
    line(&mut bench, "too early");
    bench.press("esc");
    bench.press("ctrl-n");
    bench.confirm("D");
    line(&mut bench, "");
    bench.press("esc");
    bench.press("ctrl-n");
    bench.confirm("D");
    line(&mut bench, "too early");
    bench.press("ctrl-u");
    bench.press("esc");
    bench.confirm("D");
    line(&mut bench, "");
}

#[test]
fn a_host_that_ends_while_a_rule_is_typed_is_said_at_once() {
    let mut bench = denying(80, 24);
    bench.press("esc");
    bench.wait(400);
    bench.press("A");
    bench.msg(Msg::HostEnded);
    assert!(words(&mut bench).contains("the host ended: nothing is decided"));
    bench.type_in("*");
    assert!(words(&mut bench).contains("the host ended: nothing is decided"));
    bench.press("esc");
    let shown = words(&mut bench);
    assert!(shown.contains("the host ended · Enter starts it again"), "{shown}");
}

#[test]
fn a_decision_that_a_host_did_not_take_before_it_ended_is_said_after_its_next_start() {
    for keys in [&["a"][..], &["A", "enter"]] {
        let decided = || {
            let mut bench = denying(80, 24);
            bench.press("esc");
            bench.wait(400);
            let sent: Vec<_> = keys.iter().flat_map(|key| bench.confirm(key)).collect();
            assert_eq!(calls(&sent).len(), 1, "{keys:?}");
            bench.msg(Msg::HostEnded);
            bench
        };
        let mut bench = decided();
        assert!(bench.app.layers.is_empty());
        let shown = words(&mut bench);
        let ended = "the host ended; your decision is not confirmed";
        assert!(shown.contains(ended), "{keys:?}: {shown}");
        restart(&mut bench, vec![approval("q", "alice", "cargo publish")]);
        assert_eq!(bench.notice(), "your decision was not taken: alice waits for it again");
        let mut bench = decided();
        restart(&mut bench, Vec::new());
        assert_eq!(bench.app.notices.shown(), None, "it was taken");
    }
}

#[test]
fn a_reason_that_looks_like_a_verb_is_sent_by_the_key_that_says_so() {
    let mut bench = denying(80, 24);
    bench.type_in("use this instead :stop");
    bench.press("enter");
    assert!(bench.screen().contains("`:stop` at the end of the reason is a verb"));
    assert_eq!(denied(&bench.confirm("s")), Some("use this instead :stop"));
    assert!(bench.app.layers.is_empty());
}

#[test]
fn a_decision_by_another_client_closes_the_offer_and_keeps_the_line_below_it() {
    let mut bench = denying(80, 24);
    bench.type_in(":notices");
    bench.press("enter");
    let verdict = yoi::protocol::Verdict::Once;
    let decided = Event::ApprovalDecided { approval: "q".into(), pod: name("alice"), verdict };
    bench.host(Some("alice"), decided);
    assert!(bench.notice().contains("elsewhere"), "{}", bench.notice());
    let shown = words(&mut bench);
    assert!(shown.contains("it was decided elsewhere") && shown.contains("› :notices"), "{shown}");
    assert!(bench.press("enter").is_empty());
    bench.press("esc");
    assert!(bench.app.layers.is_empty());
}

#[test]
fn a_verb_at_the_end_of_a_message_is_offered_whatever_stands_before_it() {
    for before in ["abc]", "修理。", "see foo()", "two [\"x\"]", "done —", "please do it "] {
        let mut bench = alone(State::Idle);
        bench.type_in(before);
        bench.type_in(":rewind --undo");
        assert_eq!(calls(&bench.press("enter")), [], "{before}");
        let offered = "`:rewind --undo` at the end of the message is a verb";
        assert!(bench.screen().contains(offered), "{before}: {}", bench.screen());
        let run = bench.confirm("enter");
        assert_eq!(calls(&run), [(Some("alice"), &Method::ListRewindTargets)], "{before}");
        assert_eq!(bench.draft(), before);
    }
    let mut bench = alone(State::Idle);
    bench.type_in("that is enough :stop alice");
    assert_eq!(calls(&bench.press("enter")), []);
    for prose in ["what does :stop do here", "how does :rewind 2 steps work"] {
        let mut bench = alone(State::Idle);
        bench.type_in(prose);
        assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &message(prose))]);
    }
}

#[test]
fn the_way_back_typed_behind_a_message_that_a_rewind_returned_is_offered() {
    let mut bench = alone(State::Idle);
    let input = crate::screen::pane::composer::tests::plain("two [\"x\"]");
    let summary = yoi::protocol::reply::RewindSummary {
        truncated_to_entries: 3,
        discarded_entries: 2,
        tool_side_effect_warning: false,
    };
    bench.host(Some("alice"), Event::RewindApplied { entries: Vec::new(), input, summary });
    assert_eq!(bench.draft(), "two [\"x\"]");
    bench.type_in(":rewind --undo");
    assert_eq!(calls(&bench.press("enter")), [], "it is not sent");
    assert_eq!(
        calls(&bench.confirm("enter")),
        [(Some("alice"), &Method::ListRewindTargets)],
        "it is run"
    );
}

#[test]
fn a_verb_behind_a_message_into_the_run_is_offered_too() {
    let mut bench = alone(State::Running);
    bench.type_in("look at b.rs:pause");
    bench.press("ctrl-x");
    assert_eq!(calls(&bench.press("s")), []);
    let sent = bench.confirm("s");
    assert_eq!(calls(&sent), [(Some("alice"), &steer("look at b.rs:pause"))]);
    bench.type_in("look at b.rs:pause");
    assert_eq!(calls(&bench.press("tab")), []);
    assert_eq!(calls(&bench.confirm("s")), [(Some("alice"), &message("look at b.rs:pause"))]);
}

#[test]
fn the_notice_of_a_rewind_names_the_way_back_on_a_narrow_screen() {
    let mut bench = alone(State::Idle);
    bench.size(40, 12);
    bench.type_in(":rewind 1");
    let listed = bench.press("enter");
    let targets = vec![rewind_target(1, "a message that is longer than the screen is wide")];
    let targets = Event::RewindTargets { head_entries: 12, targets, undo: None, redo: None };
    answer(&mut bench, listed, targets);
    let rewound = bench.confirm("enter");
    answer(&mut bench, rewound, Event::done());
    let screen = bench.screen();
    assert!(screen.contains("✓ :rewind --undo brings it back"), "{screen}");
}

#[test]
fn leaving_names_the_pods_that_wait_for_a_decision() {
    let farewell = |waiting: &[&str]| {
        let mut bench = alone(State::Idle);
        for name in waiting {
            bench.shown(pod(name, State::NeedsYou));
        }
        let left = bench.press("ctrl-d");
        let [Effect::Quit(ExitReason::Quit { farewell })] = &left[..] else { panic!("{left:?}") };
        farewell[0].clone()
    };
    assert_eq!(farewell(&[]), "alice kept, none running");
    assert_eq!(farewell(&["bob"]), "2 Pods kept, none running; bob waits for your decision");
    let two = "3 Pods kept, none running; bob and cy wait for your decision";
    assert_eq!(farewell(&["bob", "cy"]), two);
    let more = "4 Pods kept, none running; bob and 2 more wait for your decision";
    assert_eq!(farewell(&["bob", "cy", "dan"]), more);
}

#[test]
fn a_key_that_does_nothing_is_named_with_the_one_that_may_be_meant_and_the_hints_come_back() {
    let mut bench = alone(State::NeedsYou);
    let request = approval("q", "alice", "cargo publish");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    bench.press("d");
    let help = crate::screen::keys::Action::Deny.help();
    assert_eq!(bench.notice(), format!("d is no key here · D: {help}"));
    bench.wait(2_000);
    assert_eq!(bench.notice(), "");
    assert!(bench.screen().contains("Enter look inside"), "{}", bench.screen());
}

#[test]
fn the_letters_of_a_text_that_is_typed_into_a_pane_or_onto_a_card_do_nothing() {
    for pane in ["ctrl-n", "t", "r"] {
        let mut bench = alone(State::NeedsYou);
        let request = approval("q", "alice", "cargo publish");
        bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
        if pane != "ctrl-n" {
            bench.press("ctrl-x");
        }
        bench.press(pane);
        bench.wait(layer::ARMED_AFTER);
        let focus = bench.app.focus;
        for c in "SQLite aMD :stop".chars() {
            assert!(bench.type_in(&c.to_string()).is_empty(), "{pane}");
            bench.wait(300);
        }
        assert_eq!((bench.app.focus, bench.draft()), (focus, String::new()), "{pane}");
        assert!(bench.app.layers.is_empty(), "{pane}");
        assert_eq!(bench.notice(), "not typed: letters are keys here · i or Esc: write");
        bench.press("down");
        let kept = bench.app.composer.history.newest_first().next().map(|sent| sent.text.clone());
        assert_eq!(kept.as_deref(), Some("SQLite aMD :stop"), "the text is in the history");
        bench.press("i");
        assert_eq!(bench.app.focus, Focus::Composer, "another key ends the text");
    }
}

#[test]
fn the_keys_that_a_notice_names_after_a_wrong_letter_lead_out_of_the_pane() {
    for (pane, key, focus) in [("t", "i", Focus::Composer), ("r", "i", Focus::Composer)] {
        let mut bench = alone(State::Idle);
        bench.press("ctrl-x");
        bench.press(pane);
        bench.type_in("V");
        bench.wait(500);
        bench.press(key);
        assert_eq!((bench.app.focus, bench.draft()), (focus, String::new()), "{pane}");
    }
}

/// A card of each kind that has the keys, over a draft, and how what it is about ends by itself.
fn cards_that_end() -> Vec<(&'static str, Bench, Event)> {
    let pods = |alice: PodInfo| {
        let mut bench = Bench::new(vec![pod("bob", State::Idle), alice]);
        bench.go_to("bob");
        bench.type_in("half a draft");
        bench
    };
    let requested = |approval: yoi::protocol::ApprovalRequest| {
        let mut bench = pods(pod("alice", State::NeedsYou));
        bench.host(None, Event::ApprovalRequested { approval: Box::new(approval) });
        bench
    };
    let decided =
        |verdict| Event::ApprovalDecided { approval: "q".into(), pod: name("alice"), verdict };
    let changed = |info: PodInfo| Event::PodChanged { info: Box::new(info) };
    let circling = yoi::protocol::Circling {
        kind: yoi::protocol::CircleKind::Failure,
        times: 6,
        call: "Bash cargo test".into(),
        since: NOON,
    };
    let circling = PodInfo { circling: Some(circling), ..pod("alice", State::Running) };
    let question = yoi::protocol::ApprovalRequest {
        question: Some(yoi::protocol::Question::of_model(vec!["total".into()])),
        ..approval("q", "alice", "Which name?")
    };
    let withdrawn = yoi::protocol::Verdict::Withdrawn { why: "its run was cancelled".into() };
    vec![
        (
            "it was decided elsewhere: allowed",
            requested(approval("q", "alice", "cargo publish")),
            decided(yoi::protocol::Verdict::Once),
        ),
        (
            "the request was withdrawn: its run was cancelled",
            requested(question),
            decided(withdrawn),
        ),
        (
            "it does not go in circles any more",
            pods(circling.clone()),
            changed(pod("alice", State::Running)),
        ),
        (
            "it does not need you any more: done",
            pods(circling),
            changed(PodInfo { unseen: true, ..pod("alice", State::Idle) }),
        ),
        (
            "it does not need you any more: running",
            pods(pod("alice", State::Failed)),
            changed(pod("alice", State::Running)),
        ),
        (
            "it was looked at elsewhere",
            pods(PodInfo { unseen: true, ..pod("alice", State::Idle) }),
            changed(pod("alice", State::Idle)),
        ),
        (
            "it does not need you any more: stopped",
            pods(PodInfo { unseen: true, ..pod("alice", State::Idle) }),
            changed(pod("alice", State::Stopped)),
        ),
        (
            "alice was removed",
            pods(pod("alice", State::Failed)),
            Event::PodRemoved { name: name("alice") },
        ),
    ]
}

#[test]
fn a_card_that_ends_by_itself_stays_and_its_keys_reach_neither_the_draft_nor_another_card() {
    for with_another in [false, true] {
        for (why, mut bench, end) in cards_that_end() {
            bench.press("ctrl-n");
            if with_another {
                bench.shown(pod("carol", State::NeedsYou));
                let other = approval("other", "carol", "rm -r /");
                bench.host(None, Event::ApprovalRequested { approval: Box::new(other) });
            }
            bench.wait(1_000);
            bench.host(None, end);
            bench.wait(1_000);
            let screen = bench.screen();
            assert!(screen.contains("alice  ") && screen.contains(why), "{why}: {screen}");
            for key in ["a", "1", "D", "z", "space", "down", "tab", "enter", "M", "enter"] {
                bench.wait(1_000);
                assert_eq!(calls(&bench.press(key)), [], "{why}: {key}");
                assert!(bench.app.is_card_awake() && bench.app.layers.is_empty(), "{why}: {key}");
            }
            assert!(bench.screen().contains(why), "{why}: {}", bench.screen());
            assert_eq!(bench.draft(), "half a draft", "{why}");
            if with_another {
                bench.press("ctrl-n");
                assert!(bench.screen().contains("rm -r /"), "{why}: {}", bench.screen());
                bench.wait(1_000);
            }
            bench.press("esc");
            bench.type_in(" on");
            assert_eq!(bench.draft(), "half a draft on", "{why}");
        }
    }
}

#[test]
fn what_comes_after_the_last_card_that_ended_by_itself_has_no_keys() {
    for key in ["ctrl-n", "ctrl-p", "esc"] {
        for (why, mut bench, end) in cards_that_end() {
            // What it became is another item, or there is none.
            if why.ends_with("done") {
                continue;
            }
            bench.press("ctrl-n");
            bench.wait(1_000);
            bench.host(None, end);
            if why.contains("decided") || why.contains("withdrawn") {
                bench.shown(pod("alice", State::Running));
            }
            bench.wait(1_000);
            bench.type_in("kept");
            bench.wait(2_000);
            bench.press(key);
            let kept =
                bench.app.composer.history.newest_first().next().map(|sent| sent.text.clone());
            assert_eq!(kept.as_deref(), Some("kept"), "{why}: what was typed is in the history");
            bench.shown(pod("carol", State::NeedsYou));
            let other = approval("other", "carol", "rm -r /");
            bench.host(None, Event::ApprovalRequested { approval: Box::new(other) });
            bench.wait(1_000);
            assert!(!bench.app.is_card_awake(), "{why}: {key}");
            assert_eq!(calls(&bench.type_in("a sentence")), [], "{why}: {key}");
        }
    }
}

#[test]
fn a_sentence_that_is_typed_onto_a_card_goes_to_no_other_pod() {
    let mut bench = alone(State::NeedsYou);
    let request = approval("q", "alice", "cargo publish");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    for c in "fix the test".chars() {
        bench.wait(200);
        assert!(bench.type_in(&c.to_string()).is_empty());
    }
    assert!(bench.app.is_card_awake() && bench.draft().is_empty());
}

#[test]
fn a_host_that_ends_leaves_the_keys_of_a_card_without_effect() {
    let mut bench = alone(State::NeedsYou);
    let request = approval("q", "alice", "cargo publish");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    bench.wait(1_000);
    bench.msg(Msg::HostEnded);
    bench.wait(1_000);
    bench.type_in("aD");
    assert_eq!((bench.app.focus, bench.draft()), (Focus::Inbox, String::new()));
    assert!(bench.screen().contains("the host ended"), "{}", bench.screen());
}

#[test]
fn a_narrow_card_says_first_what_each_key_would_allow() {
    let mut bench = alone(State::NeedsYou);
    bench.size(40, 12);
    let request = approval("q", "alice", "cargo fetch --locked");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    let shown = words(&mut bench);
    let rule = "A and T would allow Bash: cargo fetch --locked";
    assert!(shown.contains(rule), "{}", bench.screen());
}

#[test]
fn the_help_of_a_card_names_only_what_that_card_takes() {
    let question = yoi::protocol::ApprovalRequest {
        question: Some(yoi::protocol::Question::of_model(vec!["total".into(), "sum".into()])),
        ..approval("q", "alice", "Which name?")
    };
    let requests = [approval("q", "alice", "cargo publish"), question];
    let cards = [
        (Some(requests[0].clone()), "allow this once", "mark the result as seen"),
        (Some(requests[1].clone()), "answer", "allow this once"),
        (None, "go on", "deny, with a reason"),
    ];
    for (request, named, other) in cards {
        let state = if request.is_some() { State::NeedsYou } else { State::Failed };
        let mut bench = alone(state);
        bench.size(100, 40);
        if let Some(request) = request {
            bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
        }
        bench.press("ctrl-n");
        bench.press("f1");
        let screen = bench.screen();
        let own = screen.split("Everywhere").next().unwrap_or_default();
        assert!(own.contains(named) && !own.contains(other), "{named}: {screen}");
    }
}

#[test]
fn a_narrow_screen_names_the_key_that_goes_to_a_request_and_every_key_that_decides_it() {
    let mut bench = alone(State::NeedsYou);
    bench.size(40, 12);
    let request = approval("q", "alice", "true");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    let hints = |bench: &mut Bench| bench.screen().lines().last().unwrap_or_default().to_owned();
    assert!(hints(&mut bench).starts_with(" ▲ 1 Ctrl+N "), "{}", bench.screen());
    bench.press("ctrl-n");
    bench.wait(layer::ARMED_AFTER);
    let screen = bench.screen();
    assert_eq!(screen.lines().rev().nth(1), Some(" a once  A always  T and below  D deny"));
    assert!(hints(&mut bench).starts_with(" Enter look inside"), "{screen}");
}

#[test]
fn a_narrow_card_says_the_reason_and_every_key_of_several_equal_requests() {
    let waits =
        |name: &str| PodInfo { parent: Some(self::name("alice")), ..pod(name, State::NeedsYou) };
    let mut bench = Bench::new(vec![pod("alice", State::Running), waits("scout"), waits("tester")]);
    bench.size(40, 12);
    for (id, pod) in [("q", "scout"), ("r", "tester")] {
        let lineage = vec![name("alice")];
        let request = yoi::protocol::ApprovalRequest { lineage, ..approval(id, pod, "true") };
        bench.host(Some(pod), Event::ApprovalRequested { approval: Box::new(request) });
    }
    bench.press("ctrl-n");
    bench.wait(layer::ARMED_AFTER);
    let screen = bench.screen();
    let line = screen.lines().rev().nth(1);
    assert_eq!(line, Some(" a one  M all  A always  T below  D deny"), "{screen}");
    let head = screen.lines().find(|line| line.starts_with(" ▲")).expect("a card");
    assert_eq!(head, " ▲ … › scout  approval          2 alike", "{screen}");
    bench.press("pagedown");
    assert!(!bench.screen().contains("Bash  true"), "{}", bench.screen());
    bench.size(120, 40);
    assert!(bench.screen().contains("Bash  true"), "there is room for all: {}", bench.screen());
}

#[test]
fn a_card_of_equal_requests_says_for_each_asker_what_differs() {
    let pods = [pod("scout", State::NeedsYou), pod("tester", State::NeedsYou)];
    let mut bench = Bench::new(pods.to_vec());
    bench.size(120, 40);
    let reads = vec![yoi::scope::Rule::new("/repo", yoi::scope::Permission::Read)];
    let first = approval("q", "scout", "true");
    let second = approval("r", "tester", "true");
    let second = yoi::protocol::ApprovalRequest { scope: reads, ..second };
    for request in [first, second] {
        bench.host(None, Event::ApprovalRequested { approval: Box::new(request) });
    }
    bench.press("ctrl-n");
    let shown = words(&mut bench);
    assert!(shown.contains("scope scout: write /repo · tester: read /repo"), "{shown}");
    assert_eq!(shown.matches("fetch what is missing").count(), 1, "{shown}");
}

#[test]
fn a_draft_for_a_pod_whose_run_failed_is_sent_without_a_restore() {
    for (by, does) in [(None, "Enter sends"), (Some(GoesOnBy::Restore), "Enter restores and sends")]
    {
        let mut bench = alone(State::Failed);
        bench.shown(PodInfo { goes_on_by: by, ..pod("alice", State::Failed) });
        bench.type_in("go on");
        let screen = bench.screen();
        assert!(screen.contains(does), "{does}: {screen}");
    }
}

#[test]
fn a_command_of_other_programs_is_named_before_it_goes_to_the_model() {
    for (text, said) in [("/clear", "no verb :clear"), ("!ls", "no command runs from this line")] {
        for (state, key, sent) in [
            (State::Idle, "enter", message(text)),
            (State::Running, "enter", steer(text)),
            (State::Running, "tab", message(text)),
        ] {
            let mut bench = alone(state);
            bench.type_in(text);
            assert_eq!(calls(&bench.press(key)), [], "{text}");
            assert!(words(&mut bench).contains(said), "{}", bench.screen());
            assert!(calls(&bench.confirm("esc")).is_empty());
            assert_eq!(bench.draft(), text);
            bench.wait(1_000);
            bench.press(key);
            bench.screen();
            assert_eq!(calls(&bench.confirm("enter")), [(Some("alice"), &sent)], "{text}");
        }
    }
}
