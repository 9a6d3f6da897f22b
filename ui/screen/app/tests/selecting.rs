use super::*;
use yoi::protocol::{State, StoppedPod};

/// alice, with the children scout and tester, which are idle, and bob, who is done.
fn bench() -> Bench {
    let pods = vec![
        pod("alice", State::Running),
        child("alice", "scout", State::Idle),
        child("alice", "tester", State::Idle),
        PodInfo { unseen: true, last_result: Some(finished()), ..pod("bob", State::Idle) },
    ];
    let mut bench = Bench::new(pods);
    bench.type_in(":open alice");
    bench.press("enter");
    bench
}

const STOP: Method = Method::StopPods { tree: false, unless_busy: false, silent: false };

#[test]
fn a_verb_touches_exactly_the_pods_that_its_confirmation_named() {
    let mut bench = bench();
    bench.type_in(":stop @idle");
    assert!(bench.press("enter").is_empty());
    assert!(bench.screen().contains("stop scout, tester?"), "{}", bench.screen());
    // Meanwhile one of them works again, and two others become idle.
    bench.shown(child("alice", "tester", State::Running));
    bench.shown(pod("alice", State::Idle));
    bench.shown(child("scout", "probe", State::Idle));
    assert!(bench.screen().contains("stop scout, tester?"), "{}", bench.screen());
    let effects = bench.confirm("enter");
    assert_eq!(calls(&effects), [(Some("scout"), &STOP), (Some("tester"), &STOP)]);
    for (asked, pod) in asked(effects).into_iter().zip(["scout", "tester"]) {
        let pod = StoppedPod { name: name(pod), returned: vec![], lender: None, gained: vec![] };
        bench.msg(Msg::Answered(asked, Ok(Event::PodsStopped { stopped: vec![pod] })));
    }
    let stopped =
        "stopped scout, tester · :restore scout tester brings them back · probe below goes on";
    assert_eq!(bench.notice(), stopped);
}

#[test]
fn a_selector_takes_the_place_of_marks() {
    let mut bench = bench();
    for key in ["tab", "j", "space", ":"] {
        bench.press(key);
    }
    bench.type_in("stop @done");
    bench.press("enter");
    assert!(bench.screen().contains("stop bob?"), "{}", bench.screen());
    assert_eq!(calls(&bench.confirm("enter")), [(Some("bob"), &STOP)]);
    assert_eq!(bench.app.tree.marks.all(), [name("scout")]);
}

#[test]
fn the_command_line_completes_selectors_and_says_what_each_matches() {
    let mut bench = bench();
    bench.type_in(":stop @");
    let screen = bench.screen();
    assert!(screen.contains("@idle") && screen.contains("scout, tester"), "{screen}");
    assert!(!screen.contains("@failed"), "no Pod is failed: {screen}");
    bench.type_in("do");
    bench.press("tab");
    bench.press("enter");
    assert!(bench.screen().contains("stop bob?"), "{}", bench.screen());
}

#[test]
fn a_selector_that_matches_no_pod_is_refused_in_the_bar() {
    let mut bench = bench();
    bench.type_in(":stop @failed");
    assert!(bench.press("enter").is_empty());
    assert_eq!(bench.notice(), "@failed matches no Pod");
    assert!(bench.app.layers.is_empty());
}

#[test]
fn a_message_to_a_selector_goes_to_each_pod_that_was_named_and_restores_the_stopped_first() {
    let mut bench = bench();
    bench.shown(child("alice", "tester", State::Stopped));
    bench.type_in(":send alice/* commit, then stop");
    assert!(calls(&bench.press("enter")).is_empty());
    let screen = bench.screen();
    let named = "send this message to scout, tester? tester is restored first.";
    assert!(screen.contains(named), "{screen}");
    let restore = Method::RestorePods { tree: false, plan: false };
    let effects = bench.confirm("enter");
    assert_eq!(calls(&effects), [(Some("tester"), &restore)]);
    let send = message("commit, then stop");
    let effects = answer(&mut bench, effects, Event::Plan { steps: Vec::new(), done: true });
    assert_eq!(calls(&effects), [(Some("scout"), &send), (Some("tester"), &send)]);
    let asked = asked(effects);
    bench.msg(Msg::Answered(asked[0].clone(), Ok(Event::done())));
    bench.msg(Msg::Answered(asked[1].clone(), Err(Refusal::invalid("the disk is full"))));
    assert_eq!(bench.notice(), "tester: the disk is full · sent to scout");
}
