use super::*;
use yoi::protocol::{PlanStep, Restoring};

pub(super) type Opens = fn(&mut Bench);

fn first_message(bench: &mut Bench) {
    let sends = Some("This goes to api.example.com".to_owned());
    bench.shown(PodInfo { model_chosen: false, model_sends: sends, ..pod("alice", State::Idle) });
    bench.type_in("hello");
    bench.press("enter");
}

fn restore(bench: &mut Bench) {
    bench.type_in(":restore old");
    let asked = bench.press("enter");
    let name = PodName::parse("old").expect("a name");
    let notes = vec!["Bash was cut off and is not repeated".to_owned()];
    let steps = vec![PlanStep { name, what: Restoring::Paused, notes }];
    answer(bench, asked, Event::Plan { steps, done: false });
}

fn rewind(bench: &mut Bench) {
    bench.type_in(":rewind 1");
    let asked = bench.press("enter");
    let target = yoi::protocol::RewindTarget {
        warning: Some("files stay as they are".into()),
        ..rewind_target(1, "fix it")
    };
    answer(
        bench,
        asked,
        Event::RewindTargets { head_entries: 12, targets: vec![target], undo: None, redo: None },
    );
}

fn leave(bench: &mut Bench) {
    bench.shown(pod("alice", State::Running));
    bench.press("ctrl-d");
}

fn several(bench: &mut Bench) {
    bench.type_in(":rm old");
    bench.press("enter");
}

fn offered(bench: &mut Bench) {
    bench.type_in("/stop");
    bench.press("enter");
}

fn rule(bench: &mut Bench) {
    let request = approval("q", "alice", "cargo publish");
    bench.host(Some("alice"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    bench.confirm("A");
}

/// The line of a rule, whose sheet is read as a confirmation is.
pub(super) const RULE: (&str, Opens, &[&str]) = ("rule", rule, &["enter"]);

/// Each confirmation, and the keys that answer it.
pub(super) const ALL: [(&str, Opens, &[&str]); 6] = [
    ("first message", first_message, &["enter"]),
    ("restore", restore, &["enter"]),
    ("rewind", rewind, &["enter"]),
    ("leave", leave, &["enter", "p"]),
    ("several", several, &["enter"]),
    ("offered", offered, &["enter", "s"]),
];

#[test]
fn the_key_that_leaves_answers_its_own_question() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    leave(&mut bench);
    assert!(bench.press("ctrl-d").is_empty(), "it may be held down");
    assert!(matches!(bench.confirm("ctrl-d")[..], [Effect::Quit(_)]));
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
    several(&mut bench);
    assert!(bench.confirm("ctrl-d").is_empty() && !bench.app.layers.is_empty());
}

const EARLY: &str = "press again: that was too soon after this appeared or after the last key";

fn each(check: impl Fn(&str, &mut Bench, &str)) {
    each_of(ALL, check);
}

/// The same with the line of a rule.
fn each_and_a_rule(check: impl Fn(&str, &mut Bench, &str)) {
    each_of(ALL.into_iter().chain([RULE]), check);
}

fn each_of(
    sheets: impl IntoIterator<Item = (&'static str, Opens, &'static [&'static str])>,
    check: impl Fn(&str, &mut Bench, &str),
) {
    for (name, open, keys) in sheets {
        for key in keys {
            let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
            open(&mut bench);
            assert!(!bench.app.layers.is_empty(), "{name}");
            check(&format!("{name}, {key}"), &mut bench, key);
        }
    }
}

#[test]
fn a_key_typed_before_a_confirmation_was_drawn_does_not_count() {
    each(|name, bench, key| {
        // Time passes, but no frame is painted: the terminal is slow.
        bench.pass(10_000);
        for key in [key, "esc"] {
            assert!(bench.press(key).is_empty(), "{name}");
            assert!(!bench.app.layers.is_empty(), "{name}");
            assert_eq!(bench.notice(), EARLY, "{name}");
        }
    });
}

#[test]
fn a_key_answers_a_confirmation_300_ms_after_it_was_drawn_and_not_before() {
    each_and_a_rule(|name, bench, key| {
        bench.wait(299);
        assert!(bench.press(key).is_empty(), "{name}");
        assert_eq!(bench.notice(), EARLY, "{name}");
        if key == "enter" {
            bench.wait(layer::HELD - 1);
            assert!(bench.press(key).is_empty(), "{name}: the key may be held down");
            bench.wait(layer::HELD);
        } else {
            bench.wait(299);
            assert!(bench.press(key).is_empty(), "{name}: it may be a letter of a text");
            bench.wait(300);
        }
        assert!(!bench.press(key).is_empty(), "{name}");
        assert!(bench.app.layers.is_empty(), "{name}");
    });
}

#[test]
fn typing_on_never_confirms() {
    each_and_a_rule(|name, bench, key| {
        for c in "a long sentence that was meant for the composer".chars() {
            bench.wait(100);
            assert!(bench.type_in(&c.to_string()).is_empty(), "{name}");
        }
        bench.wait(100);
        assert!(bench.press(key).is_empty(), "{name}");
        assert!(!bench.app.layers.is_empty(), "{name}");
    });
}

#[test]
fn a_held_key_and_a_paste_never_confirm() {
    each_and_a_rule(|name, bench, key| {
        bench.wait(400);
        let held = KeyEvent::new_with_kind(
            key_event(crate::screen::keys::parse(key).expect("a key")).code,
            crossterm::event::KeyModifiers::NONE,
            crossterm::event::KeyEventKind::Repeat,
        );
        assert!(bench.msg(Msg::Key(held)).is_empty(), "{name}");
        assert!(bench.msg(Msg::Paste("\r\np s".into())).is_empty(), "{name}");
        assert!(!bench.app.layers.is_empty(), "{name}");
        let newest = bench.app.composer.history.newest_first().next().map(|sent| sent.text.clone());
        // The line of a rule takes it.
        let kept = (!name.starts_with("rule")).then_some("\np s");
        assert_eq!(newest.as_deref(), kept, "{name}: the paste is not lost");
    });
}

#[test]
fn escape_leaves_a_confirmation_as_soon_as_it_was_drawn() {
    each_and_a_rule(|name, bench, _| {
        bench.wait(0);
        bench.press("esc");
        assert!(bench.app.layers.is_empty(), "{name}");
    });
}

#[test]
fn the_keys_that_confirm_are_named_once_they_count_and_the_screen_wakes_for_that() {
    each(|name, bench, _| {
        bench.wait(0);
        assert!(!bench.screen().contains("Enter:"), "{name}");
        let wakes = bench.app.wakes_at().expect("it wakes");
        assert_eq!(wakes, bench.app.now + 300, "{name}");
        bench.wait(300);
        assert!(bench.screen().contains("Enter:"), "{name}");
    });
}

#[test]
fn a_resized_confirmation_has_to_be_drawn_again() {
    each_and_a_rule(|name, bench, key| {
        bench.wait(400);
        bench.size(60, 20);
        assert!(bench.press(key).is_empty(), "{name}");
        assert!(!bench.confirm(key).is_empty(), "{name}");
    });
}

#[test]
fn a_confirmation_whose_pods_change_names_what_more_would_be_lost_and_counts_anew() {
    let queued = |of: PodInfo, count: usize| {
        let queued = |at: usize| yoi::protocol::Queued {
            id: at.to_string(),
            input: Vec::new(),
            enters: false,
        };
        PodInfo { queue: (0..count).map(queued).collect(), ..of }
    };
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Paused)]);
    bench.type_in(":stop alice bob");
    bench.press("enter");
    let screen = bench.screen();
    assert!(
        screen.contains("stop alice, bob?") && screen.contains("not finished: bob"),
        "{screen}"
    );
    bench.wait(1_000);
    bench.shown(queued(pod("alice", State::Running), 1));
    assert!(bench.press("enter").is_empty(), "it asked for something else");
    let screen = bench.screen();
    for said in ["not finished: alice, bob", "with queued messages: alice (1)"] {
        assert!(screen.contains(said), "{said}: {screen}");
    }
    assert_eq!(calls(&bench.confirm("enter")).len(), 2);
    // A Pod that comes below one of a tree is named, too.
    let mut bench = Bench::new(vec![pod("alice", State::Idle), child("alice", "kid", State::Idle)]);
    bench.type_in(":stop alice --tree");
    bench.press("enter");
    bench.wait(1_000);
    bench.shown(child("alice", "late", State::Running));
    assert!(bench.press("enter").is_empty());
    let screen = bench.screen();
    assert!(screen.contains("stop 3 Pods") && screen.contains("not finished: late"), "{screen}");
    // What is deleted for good is named as well.
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
    bench.type_in(":rm old");
    bench.press("enter");
    bench.wait(1_000);
    bench.shown(queued(pod("old", State::Stopped), 2));
    assert!(bench.press("enter").is_empty());
    assert!(bench.screen().contains("with queued messages: old (2)"), "{}", bench.screen());
}

/// The Pod in this state, after a run of its own ended.
fn after_another_run(pod: PodInfo) -> PodInfo {
    PodInfo { last_result: Some(finished()), ..pod }
}

#[test]
fn a_confirmation_whose_pods_have_another_run_counts_anew_though_it_reads_the_same() {
    let pods =
        || vec![pod("a", State::Running), pod("b", State::Running), pod("z", State::Stopped)];
    for (line, changed) in [
        (":cancel a b", after_another_run(pod("a", State::Running))),
        (":pause a b", after_another_run(pod("a", State::Running))),
        (":stop a b", after_another_run(pod("a", State::Running))),
        (":rm z", after_another_run(pod("z", State::Stopped))),
        (":rm z", PodInfo { since: NOON + 1, ..pod("z", State::Stopped) }),
    ] {
        let mut bench = Bench::new(pods());
        bench.type_in(line);
        bench.press("enter");
        bench.wait(1_000);
        bench.shown(changed);
        assert!(calls(&bench.press("enter")).is_empty(), "{line}: it is about something else");
        assert!(!bench.app.layers.is_empty(), "{line}");
        assert!(!calls(&bench.confirm("enter")).is_empty(), "{line}: {}", bench.screen());
    }
    // What a run does is not another run.
    let mut bench = Bench::new(pods());
    bench.type_in(":cancel a b");
    bench.press("enter");
    bench.wait(1_000);
    let works =
        PodInfo { activity: Some("Grep".into()), since: NOON + 9, ..pod("a", State::NeedsYou) };
    bench.shown(works);
    assert_eq!(calls(&bench.press("enter")).len(), 2);
}

#[test]
fn a_confirmation_of_what_the_host_listed_begins_again_once_its_pod_went_on() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("old", State::Stopped)]);
    rewind(&mut bench);
    bench.wait(1_000);
    bench.shown(after_another_run(pod("alice", State::Idle)));
    assert!(bench.press("enter").is_empty(), "it was not read");
    let screen = bench.screen();
    assert!(screen.contains("alice went on since this was asked, so nothing is done"), "{screen}");
    let begun = bench.confirm("enter");
    assert_eq!(calls(&begun), [(Some("alice"), &Method::ListRewindTargets)]);
    let targets = vec![rewind_target(1, "fix it")];
    let listed = Event::RewindTargets { head_entries: 14, targets, undo: None, redo: None };
    answer(&mut bench, begun, listed);
    assert!(bench.screen().contains("go back to before “fix it”?"), "{}", bench.screen());
    assert!(matches!(calls(&bench.confirm("enter"))[..], [(_, Method::Rewind { .. })]));
    // The same where its Pod goes on while the list is open.
    bench.type_in(":rewind");
    let asked = bench.press("enter");
    let targets = vec![rewind_target(1, "fix it")];
    let listed = Event::RewindTargets { head_entries: 14, targets, undo: None, redo: None };
    answer(&mut bench, asked, listed);
    bench.shown(pod("alice", State::Idle));
    bench.press("enter");
    assert!(bench.screen().contains("alice went on since this was asked"), "{}", bench.screen());
}

#[test]
fn a_rewind_that_comes_too_late_is_refused_in_words_of_the_screen() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    rewind(&mut bench);
    let asked = asked(bench.confirm("enter"));
    bench.msg(Msg::Answered(asked[0].clone(), Err(Refusal::head_changed(12, 14))));
    let said = "the Pod went on since its messages were listed: nothing was taken back";
    assert_eq!(bench.notice(), said);
}

#[test]
fn a_confirmation_that_does_not_fit_is_read_to_its_end_before_a_key_counts() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    let sends: String = (0..40).map(|n| format!("line {n}\n")).collect();
    let info =
        PodInfo { model_chosen: false, model_sends: Some(sends), ..pod("alice", State::Idle) };
    bench.shown(info);
    bench.type_in("hello");
    bench.press("enter");
    assert!(calls(&bench.confirm("enter")).is_empty());
    assert!(bench.notice().contains("PageDown, then Enter"), "{}", bench.notice());
    for _ in 0..3 {
        bench.wait(0);
        bench.press("pagedown");
    }
    assert!(!calls(&bench.confirm("enter")).is_empty());
}

#[test]
fn a_confirmation_without_room_to_read_it_is_not_accepted() {
    each_and_a_rule(|name, bench, key| {
        if key != "enter" {
            return;
        }
        bench.size(30, 2);
        assert!(bench.confirm(key).is_empty(), "{name}");
        assert!(bench.notice().contains("make the screen larger"), "{name}: {}", bench.notice());
    });
}

#[test]
fn a_message_that_is_chosen_from_the_list_is_rewound_to_after_the_same_confirmation() {
    let asked_by = |line: &str, warning: Option<&str>| {
        let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
        bench.type_in(line);
        let asked = bench.press("enter");
        let warning = warning.map(str::to_owned);
        let target = yoi::protocol::RewindTarget { warning, ..rewind_target(1, "fix it") };
        answer(
            &mut bench,
            asked,
            Event::RewindTargets {
                head_entries: 12,
                targets: vec![target],
                undo: None,
                redo: None,
            },
        );
        if matches!(bench.app.layers.top(), Some(Layer::List(_))) {
            assert!(calls(&bench.press("enter")).is_empty(), "nothing is rewound yet");
        }
        match bench.app.layers.top() {
            Some(Layer::Confirm(Confirm::Verb { confirm, .. })) => confirm.question.clone(),
            other => panic!("{line}: {other:?}"),
        }
    };
    for warning in [None, Some("files stay as they are")] {
        assert_eq!(asked_by(":rewind", warning), asked_by(":rewind 1", warning));
    }
}
