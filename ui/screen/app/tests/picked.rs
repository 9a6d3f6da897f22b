use super::*;
use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};
use yoi::protocol::{PlanStep, Restoring, State, StoppedPod};

/// alice, with the children scout and tester, is current; the tree has the focus, and its cursor is on alice.
fn bench() -> Bench {
    let pods = vec![
        pod("alice", State::Idle),
        child("alice", "scout", State::Running),
        child("alice", "tester", State::Idle),
        pod("bob", State::Idle),
        pod("docs", State::Stopped),
    ];
    let mut bench = Bench::new(pods);
    bench.type_in(":open alice");
    bench.press("enter");
    bench.press("tab");
    bench
}

/// The marks are on scout and bob.
fn marked() -> Bench {
    let mut bench = bench();
    for key in ["j", "space", "j", "j", "space"] {
        bench.press(key);
    }
    bench
}

fn marks(bench: &Bench) -> Vec<&str> {
    bench.app.tree.marks.all().iter().map(PodName::as_str).collect()
}

fn stopped(pod: &str) -> Event {
    let pod = StoppedPod { name: name(pod), returned: vec![], lender: None, gained: vec![] };
    Event::PodsStopped { stopped: vec![pod] }
}

const STOP: Method = Method::StopPods { tree: false, unless_busy: false, silent: false };

#[test]
fn space_marks_rows_and_a_second_space_or_escape_takes_marks_back() {
    let mut bench = marked();
    assert_eq!(marks(&bench), ["scout", "bob"]);
    let screen = bench.screen();
    assert!(screen.contains("\n+  ● scout") && screen.contains("\n+○ bob"), "{screen}");
    assert!(screen.contains("2 marked · s stop them · r restore them"), "{screen}");
    bench.press("space");
    assert_eq!(marks(&bench), ["scout"]);
    assert!(bench.press("esc").is_empty());
    assert_eq!((marks(&bench), bench.app.focus), (vec![], Focus::Tree));
    bench.wait(400);
    bench.press("esc");
    assert_eq!(bench.app.focus, Focus::Composer);
}

#[test]
fn a_key_that_is_held_down_marks_once() {
    let mut bench = bench();
    bench.press("space");
    let key = KeyEvent::new_with_kind(KeyCode::Char(' '), KeyModifiers::NONE, KeyEventKind::Repeat);
    bench.msg(Msg::Key(key));
    assert_eq!(marks(&bench), ["alice"]);
}

#[test]
fn stopping_marked_pods_names_them_in_one_confirmation_and_stops_each() {
    let mut bench = marked();
    assert!(bench.press("s").is_empty());
    assert!(bench.screen().contains("stop bob, scout?"), "a parent comes first");
    let effects = bench.confirm("enter");
    assert_eq!(calls(&effects), [(Some("bob"), &STOP), (Some("scout"), &STOP)]);
    assert!(marks(&bench).is_empty(), "they were used");
    let asked = asked(effects);
    bench.msg(Msg::Answered(asked[0].clone(), Ok(stopped("bob"))));
    assert_eq!(bench.notice(), "", "scout is still being stopped");
    bench.msg(Msg::Answered(asked[1].clone(), Ok(stopped("scout"))));
    assert_eq!(bench.notice(), "stopped bob, scout · :restore bob scout brings them back");
}

#[test]
fn each_request_that_fails_is_named_in_the_sentence() {
    let mut bench = marked();
    bench.press("s");
    let asked = asked(bench.confirm("enter"));
    bench.msg(Msg::Answered(asked[0].clone(), Ok(stopped("bob"))));
    bench.msg(Msg::Answered(asked[1].clone(), Err(Refusal::invalid("it is being restored"))));
    assert_eq!(
        bench.notice(),
        "scout: it is being restored · stopped bob · :restore bob brings it back"
    );
}

#[test]
fn leaving_the_confirmation_stops_no_pod_and_keeps_the_marks() {
    let mut bench = marked();
    bench.press("s");
    assert!(bench.confirm("esc").is_empty());
    assert_eq!(marks(&bench), ["scout", "bob"]);
}

#[test]
fn a_verb_typed_in_the_tree_means_the_marks_and_names_even_one_of_them() {
    let mut bench = bench();
    for key in ["j", "space", "k", ":"] {
        bench.press(key);
    }
    bench.type_in("stop");
    assert!(bench.press("enter").is_empty());
    assert!(bench.screen().contains("stop scout?"), "the cursor is on alice");
    assert_eq!(calls(&bench.confirm("enter")), [(Some("scout"), &STOP)]);
}

#[test]
fn a_verb_that_names_a_pod_or_is_typed_elsewhere_does_not_mean_the_marks() {
    let mut bench = marked();
    bench.press(":");
    bench.type_in("pause tester");
    assert_eq!(calls(&bench.press("enter")), [(Some("tester"), &Method::Pause)]);
    bench.press("i");
    bench.type_in(":pause");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &Method::Pause)]);
    assert_eq!(marks(&bench), ["scout", "bob"]);
    bench.type_in(":pause scout");
    bench.press("enter");
    assert_eq!(marks(&bench), ["bob"], "what was done to a marked Pod uses its mark");
}

#[test]
fn keys_that_show_or_open_a_pod_mean_the_row() {
    let mut bench = marked();
    let effects = bench.press("e");
    assert_eq!(calls(&effects), [(Some("bob"), &Method::ExplainCommand)]);
    let asked = asked(effects);
    bench.msg(Msg::Answered(asked[0].clone(), Err(Refusal::invalid("no world today"))));
    let screen = bench.screen();
    assert!(screen.contains("bob: idle") && screen.contains("no world today"), "{screen}");
    bench.press("esc");
    bench.press("k");
    bench.press("enter");
    assert_eq!(bench.app.current, Some(name("tester")));
    assert_eq!(marks(&bench), ["scout", "bob"]);
}

#[test]
fn stopping_marked_trees_names_everything_below_once() {
    let mut bench = bench();
    for key in ["space", "j", "space", ":"] {
        bench.press(key);
    }
    bench.type_in("stop --tree");
    bench.press("enter");
    let screen = bench.screen();
    let what = "stop 3 Pods, alice, scout and all below them: alice, scout, tester";
    assert!(screen.contains(what), "{screen}");
    let tree = Method::StopPods { tree: true, unless_busy: false, silent: false };
    assert_eq!(calls(&bench.confirm("enter")), [(Some("alice"), &tree), (Some("scout"), &tree)]);
}

#[test]
fn restoring_several_shows_one_plan_and_sends_each_a_request() {
    let mut bench = bench();
    bench.shown(pod("bob", State::Stopped));
    bench.press(":");
    bench.type_in("restore bob docs");
    let plan = Method::RestorePods { tree: false, plan: true };
    let step = |pod: &str, what| Event::Plan {
        steps: vec![PlanStep { name: name(pod), what, notes: vec![] }],
        done: false,
    };
    let plans = bench.press("enter");
    assert_eq!(calls(&plans), [(Some("bob"), &plan), (Some("docs"), &plan)]);
    let asked_for = asked(plans);
    bench.msg(Msg::Answered(asked_for[1].clone(), Ok(step("docs", Restoring::Paused))));
    assert!(bench.app.layers.is_empty(), "the plan of bob is not known yet");
    bench.msg(Msg::Answered(asked_for[0].clone(), Ok(step("bob", Restoring::Idle))));
    let screen = bench.screen();
    assert!(screen.contains("bob comes back idle"), "{screen}");
    assert!(screen.contains("docs comes back paused"), "{screen}");
    let restore = Method::RestorePods { tree: false, plan: false };
    let effects = bench.confirm("enter");
    assert_eq!(calls(&effects), [(Some("bob"), &restore), (Some("docs"), &restore)]);
    for (asked, pod) in asked(effects).into_iter().zip(["bob", "docs"]) {
        bench.msg(Msg::Answered(asked, Ok(step(pod, Restoring::Idle))));
    }
    assert_eq!(bench.notice(), "bob, docs are back; nothing was run or sent again");
}

#[test]
fn a_pod_that_cannot_come_back_is_named_and_the_others_are_restored() {
    let mut bench = bench();
    bench.press(":");
    bench.type_in("restore bob docs");
    let plans = asked(bench.press("enter"));
    let refusal = Refusal::invalid("its record is damaged");
    bench.msg(Msg::Answered(plans[0].clone(), Err(refusal)));
    let idle = PlanStep { name: name("docs"), what: Restoring::Idle, notes: vec![] };
    let step = |done| Event::Plan { steps: vec![idle.clone()], done };
    let restored = bench.msg(Msg::Answered(plans[1].clone(), Ok(step(false))));
    let restore = Method::RestorePods { tree: false, plan: false };
    assert_eq!(calls(&restored), [(Some("docs"), &restore)]);
    answer(&mut bench, restored, step(true));
    assert_eq!(
        bench.notice(),
        "bob: its record is damaged · docs is back; nothing was run or sent again"
    );
}

#[test]
fn only_stopped_pods_are_deleted_after_all_were_named() {
    let mut bench = bench();
    bench.press(":");
    bench.type_in("rm docs bob");
    bench.press("enter");
    assert_eq!(bench.notice(), "bob is live: :stop bob comes first");
    bench.shown(pod("bob", State::Stopped));
    bench.press(":");
    bench.type_in("rm docs bob");
    bench.press("enter");
    assert!(bench.screen().contains("delete docs, bob and their transcripts for good?"));
    let effects = bench.confirm("enter");
    assert_eq!(calls(&effects), [(Some("docs"), &Method::Remove), (Some("bob"), &Method::Remove)]);
}

#[test]
fn the_menu_of_marks_names_for_each_verb_the_pods_that_it_fits() {
    let mut bench = marked();
    bench.press("x");
    let screen = bench.screen();
    assert!(screen.contains(":stop scout bob"), "{screen}");
    assert!(screen.contains(":pause scout ") && screen.contains(":compact bob "), "{screen}");
    assert!(!screen.contains(":open"), "{screen}");
    let at = |line: &str| screen.find(line).expect("a row");
    assert!(at(":stop scout bob") < at(":pause") && at(":pause") < at(":compact"), "{screen}");
}

#[test]
fn a_pod_that_goes_takes_its_mark_and_its_pin_with_it() {
    let mut bench = marked();
    bench.press("m");
    bench.press("3");
    bench.host(None, Event::PodRemoved { name: name("bob") });
    assert_eq!(marks(&bench), ["scout"]);
    assert_eq!(bench.app.tree.pins.all().count(), 0);
    let pods = vec![pod("alice", State::Idle)];
    bench.host(None, family_of(pods));
    assert!(marks(&bench).is_empty(), "a host that started anew has no scout");
}

#[test]
fn m_and_a_digit_pin_a_row_which_the_digit_then_goes_to() {
    let mut bench = bench();
    bench.press("G");
    bench.press("k");
    bench.press("m");
    assert!(bench.screen().contains("1 to 9 pins bob to that slot · Esc leaves"));
    bench.press("1");
    assert_eq!(bench.notice(), "1 is bob");
    let screen = bench.screen();
    assert!(screen.contains("○ bob 1 "), "{screen}");
    bench.press("g");
    bench.press("1");
    assert_eq!(bench.app.current, Some(name("bob")));
    for key in ["ctrl-x", "2"] {
        bench.press(key);
    }
    assert_eq!(bench.app.current, Some(name("scout")), "without a pin it is that row");
    for key in ["ctrl-x", "1"] {
        bench.press(key);
    }
    assert_eq!(bench.app.current, Some(name("bob")));
}

#[test]
fn the_same_digit_again_or_another_key_pins_nothing() {
    let mut bench = bench();
    for key in ["m", "2"] {
        bench.press(key);
    }
    for key in ["m", "2"] {
        bench.press(key);
    }
    assert_eq!(bench.notice(), "alice is pinned no more");
    bench.press("m");
    bench.press("esc");
    assert_eq!((bench.app.focus, bench.app.pinning.clone()), (Focus::Tree, None));
    bench.press("m");
    bench.press("k");
    assert_eq!(bench.notice(), "nothing is pinned: the slots are 1 to 9");
    assert_eq!(bench.app.tree.pins.all().count(), 0);
}

#[test]
fn pin_says_what_is_pinned_and_pins_by_name() {
    let mut bench = bench();
    bench.press(":");
    bench.type_in("pin 4 tester");
    bench.press("enter");
    bench.press(":");
    bench.type_in("pin");
    bench.press("enter");
    assert_eq!(bench.notice(), "4 tester");
}
