use super::*;
use yoi::protocol::{PlanStep, Restoring};

/// Two Pods, alice is current; the second stopped.
fn two() -> Bench {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Stopped)]);
    bench.type_in(":open alice");
    bench.press("enter");
    bench
}

fn line(bench: &Bench) -> &str {
    match bench.app.layers.top() {
        Some(Layer::Prompt(prompt)) => prompt.input.text(),
        other => panic!("the command line is not on top: {other:?}"),
    }
}

fn type_verb(bench: &mut Bench, line: &str) -> Vec<Effect> {
    bench.type_in(line);
    bench.press("enter")
}

/// A plan that says something, so that it is shown before it is carried out.
fn plan() -> Event {
    let name = PodName::parse("bob").expect("a name");
    let notes = vec!["Bash was cut off and is not repeated".to_owned()];
    Event::Plan { steps: vec![PlanStep { name, what: Restoring::Paused, notes }], done: false }
}

fn targets() -> Event {
    let targets = vec![rewind_target(1, "fix the tests")];
    Event::RewindTargets { head_entries: 12, targets, undo: None, redo: None }
}

fn rules() -> Event {
    let rule = yoi::protocol::PolicyRule {
        id: None,
        pod: None,
        tree: false,
        source: "default".into(),
        action: yoi::protocol::Action::Allow,
        pattern: yoi::protocol::Pattern { tool: "Read".into(), pattern: "*".into() },
    };
    Event::Policy {
        rules: vec![rule],
        consents: Vec::new(),
        trusts: Vec::new(),
        clients: Vec::new(),
        closed: Vec::new(),
        kept: Vec::new(),
    }
}

/// Answers each call among `effects` with this event.
fn answer_all(bench: &mut Bench, effects: Vec<Effect>, reply: &Event) {
    for asked in asked(effects) {
        bench.msg(Msg::Answered(asked, Ok(reply.clone())));
    }
}

#[test]
fn a_reply_never_replaces_the_line_that_is_being_typed() {
    let replies = [
        (":policy", rules(), "the list is ready: :policy shows it"),
        (":rewind", targets(), "the list for alice is ready: :rewind shows it"),
        (":restore bob", plan(), "not done: :restore bob says what it does and asks"),
        (":restore bob --plan", plan(), "the text is ready: :restore bob --plan shows it"),
    ];
    for (verb, reply, notice) in replies {
        let mut bench = two();
        let asked = type_verb(&mut bench, verb);
        bench.type_in(":send bob wa");
        answer_all(&mut bench, asked, &reply);
        assert_eq!(line(&bench), "send bob wa", "{verb}");
        assert_eq!(bench.notice(), notice);
        bench.type_in("it");
        assert_eq!(line(&bench), "send bob wait", "{verb}");
    }
}

#[test]
fn a_reply_opens_its_layer_while_the_person_waits_for_it() {
    let replies = [
        (":policy", rules()),
        (":rewind", targets()),
        (":restore bob", plan()),
        (":restore bob --plan", plan()),
    ];
    for (verb, reply) in replies {
        let mut bench = two();
        let asked = type_verb(&mut bench, verb);
        assert!(bench.app.layers.is_empty(), "{verb}");
        answer_all(&mut bench, asked, &reply);
        assert!(!bench.app.layers.is_empty() || bench.app.page.is_some(), "{verb}");
    }
}

#[test]
fn a_reply_opens_nothing_while_a_message_is_written() {
    let mut bench = two();
    let asked = type_verb(&mut bench, ":rewind");
    bench.type_in("one more thing");
    answer(&mut bench, asked, targets());
    assert!(bench.app.layers.is_empty());
    assert_eq!(bench.draft(), "one more thing");
}

#[test]
fn a_list_never_opens_over_another_pod() {
    let mut bench = two();
    let asked = type_verb(&mut bench, ":rewind");
    type_verb(&mut bench, ":open bob");
    answer(&mut bench, asked, targets());
    assert!(bench.app.layers.is_empty());
    assert_eq!(bench.notice(), "the list for alice is ready: :rewind shows it");
}

#[test]
fn a_list_of_messages_rewinds_the_pod_that_it_was_made_for() {
    let mut bench = two();
    let asked = type_verb(&mut bench, ":rewind");
    answer(&mut bench, asked, targets());
    // A late reply to something else makes another Pod the current one.
    bench.app.current = PodName::parse("bob").ok();
    bench.press("enter");
    let rewound = bench.confirm("enter");
    assert!(matches!(calls(&rewound)[..], [(Some("alice"), Method::Rewind { .. })]), "{rewound:?}");
}

#[test]
fn a_layer_goes_with_the_pod_that_it_is_about() {
    let mut bench = two();
    let asked = type_verb(&mut bench, ":rewind");
    answer(&mut bench, asked, targets());
    bench.host(None, Event::PodRemoved { name: PodName::parse("bob").expect("a name") });
    assert!(!bench.app.layers.is_empty());
    bench.host(None, Event::PodRemoved { name: PodName::parse("alice").expect("a name") });
    assert!(bench.app.layers.is_empty());
}

#[test]
fn a_new_pod_that_is_ready_late_does_not_take_the_screen() {
    let mut bench = two();
    let asked = type_verb(&mut bench, ":new carol");
    bench.type_in("to alice");
    let info = Box::new(pod("carol", State::Idle));
    answer(&mut bench, asked, Event::Created { info });
    assert_eq!(bench.app.current.as_ref().map(PodName::as_str), Some("alice"));
    assert_eq!(bench.notice(), "carol is ready · :open carol goes there");
    assert_eq!(bench.draft(), "to alice");
}

#[test]
fn consent_for_a_first_message_is_not_asked_while_the_next_one_is_written() {
    let mut bench = Bench::new(vec![]);
    bench.type_in("first");
    let made = bench.press("enter");
    bench.type_in("second");
    let info = PodInfo {
        model_chosen: false,
        model_sends: Some("This goes to api.example.com".into()),
        ..pod("repo", State::Idle)
    };
    let sent = answer(&mut bench, made, Event::Created { info: Box::new(info) });
    assert!(calls(&sent).is_empty(), "{sent:?}");
    assert!(bench.app.layers.is_empty());
    assert_eq!(bench.draft(), "second");
    assert!(
        bench.notice().starts_with("repo is ready; your message was not sent"),
        "{}",
        bench.notice()
    );
}

#[test]
fn the_help_is_paged_and_enter_opens_the_page_of_the_chosen_verb() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in(":help");
    bench.press("enter");
    bench.screen();
    for _ in 0..9 {
        bench.press("pagedown");
    }
    bench.press("enter");
    let title = |bench: &Bench| bench.app.page_title().map(|(title, _)| title).unwrap_or_default();
    assert_eq!(title(&bench), "help: quit", "the last verb");
    bench.press("enter");
    assert_eq!(title(&bench), "help: quit", "a page stays");
    bench.press("esc");
    bench.wait(1_000);
    bench.type_in(":help");
    bench.press("enter");
    let first_page = bench.screen();
    bench.press("pagedown");
    assert!(first_page.contains(":new ") && !bench.screen().contains(":new "), "the page turned");
    bench.press("pageup");
    bench.press("pageup");
    bench.press("enter");
    assert_eq!(title(&bench), "help: new", "the first verb");
}

#[test]
fn a_notice_about_a_paused_pod_ends_with_the_pause_and_when_another_pod_is_opened() {
    let paused = || {
        let mut bench = Bench::new(vec![pod("alice", State::Running), pod("bob", State::Idle)]);
        bench.type_in(":open alice");
        bench.press("enter");
        bench.type_in(":pause");
        let asked = bench.press("enter");
        answer(&mut bench, asked, Event::done());
        bench.shown(pod("alice", State::Paused));
        assert!(bench.notice().starts_with("paused alice · "), "{}", bench.notice());
        bench
    };
    let mut bench = paused();
    bench.shown(pod("bob", State::Running));
    assert!(bench.app.notices.shown().is_some(), "it is not about bob");
    bench.shown(pod("alice", State::Running));
    assert_eq!(bench.app.notices.shown(), None);
    let mut bench = paused();
    bench.type_in(":open bob");
    bench.press("enter");
    assert_eq!(bench.app.notices.shown(), None);
}

#[test]
fn a_key_without_meaning_leaves_the_row_of_a_list_and_keys_of_everywhere_work_above_it() {
    let mut bench = two();
    bench.press("ctrl-p");
    bench.press("down");
    let before = bench.screen();
    for key in ["ctrl-t", "alt-up", "right", "f5"] {
        bench.press(key);
        assert_eq!(bench.screen(), before, "{key}");
    }
    assert!(matches!(bench.press("ctrl-l")[..], [Effect::Redraw]));
    assert!(matches!(bench.press("ctrl-z")[..], [Effect::Suspend]));
    assert_eq!(bench.screen(), before);
    bench.press("f1");
    assert!(bench.app.page.is_some(), "below the list");
    bench.press("f1");
    assert_eq!(bench.screen(), before, "the list has the keys all the time");
    bench.press("esc");
    bench.wait(1_000);
    bench.type_in(":st");
    bench.press("f1");
    assert!(matches!(bench.press("ctrl-l")[..], [Effect::Redraw]));
    assert_eq!(line(&bench), "st");
}

#[test]
fn down_in_an_empty_command_line_goes_into_the_list_above_it() {
    let mut bench = two();
    bench.type_in(":");
    bench.press("down");
    let first = line(&bench).to_owned();
    assert!(!first.is_empty());
    bench.press("down");
    assert_ne!(line(&bench), first);
}
