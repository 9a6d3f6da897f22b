//! A screen that was left, and the one that is opened after it.

use super::*;
use crate::screen::app::Zoom;
use crate::screen::pane::tree::StoppedPods;
use crate::wording::since;
use yoi::client::family::Family;
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, Fact, Item, LastRun, Refusal, Role};

/// Entries of a page.
const PAGE: usize = 3;

/// A log of answers, each of several rows.
pub fn log(entries: usize) -> Vec<Entry> {
    let answer = |n: usize| {
        let text: String = (0..8).map(|row| format!("answer {n} row {row}\n\n")).collect();
        let item = Item::message(Role::Assistant, text);
        let fact = Fact::AssistantItem { item, origin: None, native: None, partial: false };
        Entry { ts: NOON, ..Entry::new(fact) }
    };
    (0..entries).map(answer).collect()
}

/// Gives a screen the pages that it asks for; returns how many.
pub fn serve(bench: &mut Bench, log: &[Entry]) -> usize {
    let mut served = 0;
    loop {
        let pages = bench.app.prepare_frame().into_iter().filter_map(|effect| match effect {
            Effect::Call { method: Method::Page { before, .. }, asked, .. } => {
                Some((before, asked))
            }
            _ => None,
        });
        let pages: Vec<_> = pages.collect();
        if pages.is_empty() {
            return served;
        }
        for (before, asked) in pages {
            let at = before.and_then(|id| log.iter().position(|entry| entry.id == Some(id)));
            let end = at.unwrap_or(log.len());
            let start = end.saturating_sub(PAGE);
            let line = |entry: &Entry| Line::Whole(Box::new(entry.clone()));
            let page = Event::Page {
                entries: log[start..end].iter().map(line).collect(),
                before: log[start].id.filter(|_| start > 0),
                in_flight: Vec::new(),
                seq: 0,
            };
            bench.msg(Msg::Answered(asked, Ok(page)));
            served += 1;
        }
    }
}

fn family() -> Vec<PodInfo> {
    vec![
        pod("alice", State::Idle),
        child("alice", "scout", State::Idle),
        pod("bob", State::Idle),
        pod("old", State::Stopped),
    ]
}

/// The screen that is opened after this one was left.
fn next(bench: &Bench, width: u16, height: u16, pods: Vec<PodInfo>) -> Bench {
    let kept = serde_json::to_string(&bench.app.screen_state()).expect("encoded");
    let mut next = Bench::returning(serde_json::from_str(&kept).expect("decoded"), pods);
    next.size(width, height);
    next
}

#[test]
fn long_drafts_are_kept_as_far_as_they_have_room_and_the_one_that_is_shown_first() {
    let mut bench = Bench::new(family());
    for (pod, megabytes) in [("bob", 2), ("alice", 7)] {
        bench.go_to(pod);
        bench.msg(Msg::Paste("words\n".repeat(megabytes * 1024 * 1024 / 6)));
    }
    let draft = bench.draft();
    let mut next = next(&bench, 80, 24, family());
    assert_eq!((next.app.current.clone(), next.draft()), (Some(name("alice")), draft));
    next.go_to("bob");
    assert_eq!(next.draft(), "");
}

#[test]
fn the_next_screen_shows_what_the_last_one_showed() {
    let log = log(40);
    for (width, height) in [(80, 24), (200, 60)] {
        let mut bench = Bench::new(family());
        bench.size(width, height);
        bench.go_to("bob");
        bench.go_to("alice");
        serve(&mut bench, &log);
        bench.type_in(":pin 7");
        bench.press("enter");
        bench.app.split(Some(&name("bob")));
        bench.app.tree.fold(name("alice"));
        bench.app.tree.stopped_pods = StoppedPods::Listed;
        bench.type_in("漢字の下書き");
        bench.press("left");
        bench.msg(Msg::Paste("long paste\n".repeat(30)));
        (0..3).for_each(|_| drop(bench.press("pageup")));
        serve(&mut bench, &log);
        bench.press("ctrl-o");
        bench.app.focus = Focus::Transcript;
        bench.press("k");
        serve(&mut bench, &log);
        bench.press("esc");
        // Notices end; they are not part of what is kept.
        bench.wait(60_000);
        let before = (bench.painted(), bench.app.focus, bench.draft());
        let mut next = next(&bench, width, height, family());
        serve(&mut next, &log);
        next.until(bench.now);
        next.wait(0);
        assert_eq!((next.painted(), next.app.focus, next.draft()), before, "{}", next.screen());
        let again = next.app.screen_state();
        assert_eq!(again, bench.app.screen_state());
    }
}

#[test]
fn a_screen_that_was_opened_for_a_new_pod_and_made_none_leaves_the_place_of_the_one_before() {
    let mut first = Bench::new(family());
    first.go_to("bob");
    let kept = first.app.screen_state();
    let mut second = Bench::opened(Some(name("fresh")), kept.clone(), family());
    assert_eq!(second.app.current, None);
    let mut third = next(&second, 80, 24, family());
    assert_eq!(third.app.current, Some(name("bob")));
    // Once a Pod was current there, that one counts.
    second.go_to("alice");
    third = next(&second, 80, 24, family());
    assert_eq!(third.app.current, Some(name("alice")));
}

#[test]
fn the_place_in_a_transcript_is_found_pages_above_its_end() {
    let log = log(60);
    let mut bench = Bench::new(family());
    bench.go_to("alice");
    serve(&mut bench, &log);
    for _ in 0..12 {
        bench.press("pageup");
        serve(&mut bench, &log);
    }
    let before = bench.screen();
    let mut next = next(&bench, 80, 24, family());
    assert!(serve(&mut next, &log) > 3);
    assert!(!before.contains("answer 59"), "{before}");
    bench.wait(60_000);
    next.wait(60_000);
    assert_eq!(next.screen(), bench.screen());
    // A place whose entry is gone leaves the view at the end.
    let other = self::log(30);
    let mut next = self::next(&bench, 80, 24, family());
    serve(&mut next, &other);
    assert!(next.screen().contains("answer 29 row 7"), "{}", next.screen());
}

#[test]
fn the_last_pod_here_that_is_deleted_leaves_the_first_screen_and_no_refusal() {
    let far = PodInfo { workspace: "/far".into(), ..pod("far", State::Idle) };
    let mut bench = Bench::new(vec![pod("alice", State::Idle), far]);
    assert_eq!(bench.app.current.as_ref().map(PodName::as_str), Some("alice"));
    let name = PodName::parse("alice").expect("a name");
    bench.host(Some("alice"), Event::PodRemoved { name: name.clone() });
    let refused = Err(Refusal::invalid("no pod named `alice`"));
    bench.msg(Msg::Answered(Asked::Page(name), refused));
    assert_eq!(bench.notice(), "alice was removed");
    assert_eq!(bench.app.current, None);
    assert!(bench.app.is_first_screen(), "{}", bench.screen());
}

#[test]
fn a_screen_that_shows_a_pod_of_another_directory_says_what_its_family_did() {
    let done = |parent: Option<&str>, name: &str| PodInfo {
        parent: parent.map(|parent| PodName::parse(parent).expect("a name")),
        workspace: "/tmp/tour".into(),
        unseen: true,
        last_result: Some(LastRun { at: NOON, ..finished() }),
        ..pod(name, State::Idle)
    };
    let mut family = Family::default();
    for info in [done(None, "tour"), done(Some("tour"), "tester")] {
        family.set(info);
    }
    let tour = PodName::parse("tour").expect("a name");
    let said = |current| since::returned(&family, ("/here".as_ref(), current), 0, NOON);
    assert_eq!(said(None), None);
    assert!(said(Some(&tour)).is_some_and(|said| said.contains("2 finished")));
}

#[test]
fn the_pin_of_a_pod_that_is_gone_ends_and_its_draft_is_in_the_history() {
    let mut bench = Bench::new(family());
    bench.go_to("bob");
    bench.type_in(":pin 2");
    bench.press("enter");
    bench.type_in("for bob");
    let pods = || vec![pod("alice", State::Idle)];
    let next = next(&bench, 80, 24, pods());
    assert_eq!(next.app.current, Some(name("alice")));
    assert_eq!((next.draft().as_str(), next.app.tree.pins.all().count()), ("", 0));
    let mut back = self::next(&next, 80, 24, family());
    back.go_to("bob");
    assert_eq!(back.draft(), "");
    back.press("up");
    assert_eq!(back.draft(), "for bob");
}

#[test]
fn a_visit_to_another_workspace_ends_with_the_screen() {
    let far = PodInfo { workspace: "/else/repo".into(), ..pod("far", State::Running) };
    let pods = || family().into_iter().chain([far.clone()]).collect::<Vec<_>>();
    let mut bench = Bench::new(pods());
    bench.go_to("bob");
    bench.go_to("far");
    bench.type_in("for far");
    let head = bench.screen().lines().next().unwrap_or_default().to_owned();
    assert!(head.contains(" far ") && head.contains(" in else/repo · "), "{head}");
    let mut next = next(&bench, 80, 24, pods());
    assert_eq!(next.app.current, Some(name("bob")));
    let head = next.screen().lines().next().unwrap_or_default().to_owned();
    assert!(head.contains(" bob ") && !head.contains(" in "), "{head}");
    next.go_to("far");
    assert_eq!(next.draft(), "for far");
}

#[test]
fn a_screen_that_was_opened_gives_letters_to_the_composer() {
    for focus in [Focus::Tree, Focus::Peers, Focus::Transcript, Focus::Beside, Focus::Inbox] {
        let mut bench = Bench::new(family());
        bench.go_to("alice");
        bench.app.focus = focus;
        let mut next = next(&bench, 80, 24, family());
        next.type_in("stop it please");
        assert_eq!(next.draft(), "stop it please", "{focus:?}");
    }
}

#[test]
fn what_is_typed_before_the_family_is_known_stays_in_view() {
    let mut bench = Bench::new(family());
    bench.go_to("bob");
    bench.type_in("as it was left");
    let state = bench.app.screen_state();
    let mut app = App::new(Setup::default(), bench.app.keymap.clone(), Theme::default(), None);
    app.restore_screen(state);
    let mut next = Bench { app, now: NOON };
    next.size(80, 24);
    next.type_in("typed early");
    let event = Event::Family {
        pods: family().into_iter().map(|info| PodInfo { workspace: "".into(), ..info }).collect(),
        peers: Vec::new(),
        approvals: Vec::new(),
        agents: Vec::new(),
    };
    next.host(None, event);
    assert_eq!(next.app.current, Some(name("bob")));
    assert_eq!(next.draft(), "as it was left\ntyped early");
}

#[test]
fn a_screen_that_is_left_before_the_family_is_known_keeps_what_it_was_given() {
    let mut bench = Bench::new(family());
    bench.go_to("bob");
    bench.type_in("for bob");
    let mut app = App::default();
    app.restore_screen(bench.app.screen_state());
    assert_eq!(app.screen_state(), bench.app.screen_state());
}

#[test]
fn the_width_of_a_zoomed_transcript_is_kept() {
    let mut bench = Bench::new(family());
    bench.go_to("alice");
    bench.app.zoom = Zoom::On;
    let next = next(&bench, 80, 24, family());
    assert_eq!((next.app.focus, next.app.zoom), (Focus::Composer, Zoom::On));
}

#[test]
fn what_each_of_two_screens_writes_for_one_pod_is_kept_also_if_either_is_killed() {
    let pods = || vec![pod("alice", State::Idle)];
    let start = ScreenState::default();
    let (mut one, mut two) = (Bench::new(pods()), Bench::new(pods()));
    one.type_in("of the first");
    let file = one.app.screen_state().merged(&start, start.clone());
    two.type_in("of the second");
    let second = two.app.screen_state();
    let file = second.clone().merged(&start, file);
    // The first one types on, and both are killed.
    let first = one.app.screen_state();
    one.type_in(" screen");
    let file = one.app.screen_state().merged(&first, file);
    let mut next = Bench::returning(file.clone(), pods());
    assert_eq!(next.draft(), "of the first screen");
    next.press("ctrl-c");
    next.press("up");
    next.press("up");
    assert_eq!(next.draft(), "of the second");

    // A screen that reads it has it in its history from then on, and the file need not hold it beside.
    let again = next.app.screen_state().merged(&file, file.clone());
    let kept = serde_json::to_value(&again).expect("encoded");
    assert_eq!(kept["drafts_elsewhere"], serde_json::json!({}));

    // A draft that was sent meanwhile does not take that of the other one with it.
    two.press("enter");
    let sent = two.app.screen_state().merged(&second, file);
    let mut next = Bench::returning(sent, pods());
    next.press("up");
    let last = next.draft();
    next.press("up");
    let mut both = [last, next.draft()];
    both.sort();
    assert_eq!(both, ["of the first screen", "of the second"]);
}
