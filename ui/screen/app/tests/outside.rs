//! What reaches a person whose eyes are elsewhere.

use super::*;
use crate::screen::program_status::States;
use crate::screen::reply::Reply;
use yoi::protocol::{LastRun, RunResult, Verdict};

/// What the terminal is given before the next frame, in words.
fn given(bench: &mut Bench) -> Vec<String> {
    let effects = bench.app.prepare_frame().into_iter();
    let sent = effects.filter_map(|effect| match effect {
        Effect::Title(title) => Some(vec![format!("title {title}")]),
        Effect::Notify(text) => Some(vec![format!("call {text}")]),
        Effect::Records(sequences) => Some(sequences.iter().map(|one| record(one)).collect()),
        _ => None,
    });
    sent.flatten().collect()
}

/// A report as another decoder reads it.
fn record(sequence: &str) -> String {
    use termstate_core::{Message, parse_body};
    let body = sequence.strip_prefix("\x1b]7501;").and_then(|rest| rest.strip_suffix("\x1b\\"));
    match parse_body(body.expect("a sequence").as_bytes()) {
        Ok(Message::Report(report)) => {
            let id = report.id.map_or("all", |id| id.as_str());
            let kind = report.kind.map(|kind| format!(" {kind}")).unwrap_or_default();
            format!("{id} {}{kind}", report.state)
        }
        Ok(Message::Clear { id }) => format!("{} gone", id.map_or("all", |id| id.as_str())),
        other => panic!("{sequence:?} is {other:?}"),
    }
}

fn requested(bench: &mut Bench, id: &str, pod: &str) {
    let info = bench.app.family.get(&name(pod)).expect("a Pod").clone();
    bench.shown(PodInfo { state: State::NeedsYou, ..info });
    let approval = approval(id, pod, "cargo fetch");
    bench.host(None, Event::ApprovalRequested { approval: Box::new(approval) });
}

fn ended(info: PodInfo, at: u64) -> PodInfo {
    let entry = yoi::protocol::EntryId::new();
    let run = LastRun { entry, result: RunResult::Finished.word().into(), at, error: None };
    PodInfo { state: State::Idle, unseen: true, last_result: Some(run), ..info }
}

#[test]
fn a_person_who_looks_away_is_called_once_for_each_matter() {
    let mut bench = Bench::new(vec![pod("ann", State::Running), pod("bob", State::Running)]);
    assert_eq!(given(&mut bench), ["title repo"]);
    bench.msg(Msg::Focus(false));
    requested(&mut bench, "1", "ann");
    assert_eq!(given(&mut bench), ["title ▲1 repo", "call ann needs you: network access"]);
    bench.shown(ended(pod("bob", State::Running), NOON + 1));
    assert_eq!(given(&mut bench), [""; 0], "two seconds lie between two calls");
    bench.shown(PodInfo { why: Some("exit 101".into()), ..pod("cid", State::Failed) });
    bench.pass(2000);
    bench.msg(Msg::Wake);
    assert_eq!(given(&mut bench), ["call cid failed · bob is done"]);
    bench.pass(2000);
    bench.msg(Msg::Wake);
    assert_eq!(given(&mut bench), [""; 0], "nothing is said twice");
}

#[test]
fn a_test_of_the_calls_rings_at_once_unless_the_terminal_is_to_be_silent() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.go_to("alice");
    bench.type_in(":notify test");
    let tried = bench.press("enter");
    assert_eq!(calls(&tried), [(None, &Method::TryNotify)]);
    let rings = |effects: &[Effect]| effects.iter().any(|it| matches!(it, Effect::Notify(_)));
    let called = answer(&mut bench, tried, Event::NotifyTried { ways: Vec::new() });
    assert!(rings(&called), "{called:?}");
    assert!(bench.notice().starts_with("terminal: rang"), "{}", bench.notice());
    bench.app.setup.silent = true;
    bench.press("esc");
    bench.type_in(":notify test");
    let tried = bench.press("enter");
    let called = answer(&mut bench, tried, Event::NotifyTried { ways: Vec::new() });
    assert!(!rings(&called), "{called:?}");
}

#[test]
fn a_terminal_that_is_to_be_silent_is_given_titles_only() {
    let mut bench = Bench::new(vec![pod("ann", State::Running), pod("bob", State::Running)]);
    bench.app.setup.silent = true;
    given(&mut bench);
    bench.msg(Msg::Focus(false));
    requested(&mut bench, "1", "ann");
    assert_eq!(given(&mut bench), ["title ▲1 repo"]);
    bench.app.setup.silent = false;
    bench.pass(2000);
    requested(&mut bench, "2", "bob");
    assert_eq!(given(&mut bench), ["title ▲2 repo", "call bob needs you: network access"]);
}

#[test]
fn no_call_comes_for_what_a_focused_screen_shows() {
    let mut bench = Bench::new(vec![pod("ann", State::Running), pod("bob", State::Running)]);
    given(&mut bench);
    requested(&mut bench, "1", "ann");
    assert_eq!(given(&mut bench), ["title ▲1 repo"]);
    bench.msg(Msg::Focus(false));
    assert_eq!(given(&mut bench), [""; 0]);
    requested(&mut bench, "2", "bob");
    assert_eq!(given(&mut bench), ["title ▲2 repo", "call bob needs you: network access"]);
}

#[test]
fn no_call_comes_for_what_was_before_the_screen_opened() {
    let mut bench = Bench::new(vec![pod("ann", State::NeedsYou), pod("cid", State::Failed)]);
    bench.msg(Msg::Focus(false));
    assert_eq!(given(&mut bench), ["title ▲1 repo"]);
    bench.msg(Msg::HostEnded);
    assert_eq!(given(&mut bench), [""; 0]);
    bench.msg(Msg::Connected);
    let pods = vec![pod("ann", State::NeedsYou), pod("cid", State::Failed)];
    let family = family_of(pods);
    bench.host(None, family);
    assert_eq!(given(&mut bench), [""; 0], "a host that came back repeats nothing");
}

#[test]
fn the_records_of_a_terminal_follow_the_family() {
    let kid = child("ann", "kid", State::Running);
    let mut bench = Bench::new(vec![pod("ann", State::Idle), kid]);
    given(&mut bench);
    let states = States::of_reply(b"7501;?").expect("a reply");
    bench.msg(Msg::Terminal(Reply::Records(states.clone())));
    assert_eq!(given(&mut bench), ["all working", "ann idle", "ann/kid working"]);
    requested(&mut bench, "1", "kid");
    let blocked = ["title ▲1 repo", "all blocked permission", "ann/kid blocked permission"];
    assert_eq!(given(&mut bench), blocked);
    let verdict = Verdict::Once;
    bench.shown(child("ann", "kid", State::Running));
    bench.host(None, Event::ApprovalDecided { approval: "1".into(), pod: name("kid"), verdict });
    assert_eq!(given(&mut bench), ["title repo", "all working", "ann/kid working"]);
    bench.shown(PodInfo {
        activity: Some("Bash: make".into()),
        ..child("ann", "kid", State::Running)
    });
    assert_eq!(given(&mut bench), [""; 0], "what a Pod does changes no record");
    bench.shown(pod("ann", State::Stopped));
    assert_eq!(given(&mut bench), ["ann gone", "ann/kid working"], "what is below it goes with it");
    bench.app.terminal_retaken();
    assert_eq!(given(&mut bench), ["title repo", "all working", "ann/kid working"]);
}

#[test]
fn a_state_that_the_terminal_does_not_take_leaves_no_record() {
    let mut bench = Bench::new(vec![pod("ann", State::Running)]);
    given(&mut bench);
    let states = States::of_reply(b"7501;?:states=working").expect("a reply");
    bench.msg(Msg::Terminal(Reply::Records(states)));
    assert_eq!(given(&mut bench), ["all working", "ann working"]);
    bench.shown(pod("ann", State::Failed));
    assert_eq!(given(&mut bench), ["all gone", "ann gone"]);
}
