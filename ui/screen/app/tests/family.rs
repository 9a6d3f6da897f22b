use super::*;
use crossterm::event::{KeyCode, KeyEventKind, KeyModifiers};
use std::collections::BTreeSet;
use yoi::protocol::{ApprovalRequest, LimitKind, LimitMet, SettingsMistake, StoppedPod};
use yoi::protocol::{PeerEdge, PlanStep, Restoring, State, Verdict};
use yoi::scope::{Permission, Rule};

/// alice with the children scout and tester, and bob; tester needs a person.
fn bench() -> Bench {
    let pods = vec![
        pod("alice", State::Running),
        child("alice", "scout", State::Running),
        child("alice", "tester", State::NeedsYou),
        pod("bob", State::Stopped),
    ];
    let mut bench = Bench::new(pods);
    bench.type_in(":open alice");
    bench.press("enter");
    bench
}

fn requested(bench: &mut Bench, id: &str, pod: &str, command: &str) {
    let approval = Box::new(approval(id, pod, command));
    bench.host(Some(pod), Event::ApprovalRequested { approval });
}

fn decided(bench: &mut Bench, id: &str, verdict: Verdict) {
    let pod = name("tester");
    bench.host(Some("tester"), Event::ApprovalDecided { approval: id.into(), pod, verdict });
}

fn decisions(effects: &[Effect]) -> Vec<(String, Verdict)> {
    let verdict = |method: &Method| match method {
        Method::Decide { approval, verdict } => Some((approval.clone(), verdict.clone())),
        _ => None,
    };
    calls(effects).into_iter().filter_map(|(_, method)| verdict(method)).collect()
}

fn once(id: &str) -> Vec<(String, Verdict)> {
    vec![(id.to_owned(), Verdict::Once)]
}

#[test]
fn what_is_to_be_known_of_the_host_is_said_once_and_stays_above_every_transcript() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle), pod("bob", State::Idle)]);
    let notices = |notices: &[&str]| Event::HostNotices {
        notices: notices.iter().map(|&notice| notice.to_owned()).collect(),
        mistakes: vec![],
    };
    let damaged = || notices(&["the database was damaged"]);
    bench.host(None, damaged());
    assert_eq!(bench.notice(), "the database was damaged");
    bench.wait(60_000);
    assert_eq!(bench.notice(), "");
    bench.host(None, damaged());
    assert_eq!(bench.notice(), "", "a screen that is told again says nothing new");
    for pod in ["alice", "bob"] {
        bench.app.make_current(&PodName::parse(pod).expect("a name"));
        assert!(bench.screen().contains("the database was damaged"), "{}", bench.screen());
    }
    bench.host(None, notices(&[]));
    assert!(!bench.screen().contains("the database was damaged"), "the host left it out");
    bench.host(None, notices(&["the host ends: no lock"]));
    bench.msg(Msg::HostEnded);
    assert!(bench.notice().contains("the host ends: no lock"));
    assert!(bench.screen().contains("the host ends: no lock"), "{}", bench.screen());
}

fn mistake(line: usize, about: &str) -> SettingsMistake {
    let text = format!("config.toml:{line}:1: {about}; the default is used (in /c)");
    SettingsMistake { text, about: about.to_owned(), stops_runs: false }
}

#[test]
fn a_mistake_in_the_settings_is_one_notice_wherever_it_moves_and_its_correction_is_another() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.app.make_current(&PodName::parse("alice").expect("a name"));
    let host = |bench: &mut Bench, mistakes: Vec<SettingsMistake>| {
        bench.host(None, Event::HostNotices { notices: vec![], mistakes });
    };
    let listed = |bench: &Bench| -> Vec<String> {
        bench.app.notices.past().map(|notice| notice.text.to_string()).collect()
    };
    host(&mut bench, vec![mistake(2, "`a` is 0"), mistake(3, "`b` is 0")]);
    host(&mut bench, vec![mistake(5, "`a` is 0"), mistake(6, "`b` is 0")]);
    assert!(bench.notice().starts_with("config.toml:6:1: `b` is 0"), "{}", bench.notice());
    assert_eq!(listed(&bench), [mistake(6, "`b` is 0").text, mistake(5, "`a` is 0").text]);
    host(&mut bench, vec![mistake(5, "`a` is 0")]);
    assert_eq!(listed(&bench)[0], "corrected: `b` is 0");
    let shown = (bench.notice(), bench.app.notices.behind());
    let of_a = mistake(5, "`a` is 0").text;
    assert_eq!(shown, (of_a.as_str(), 1), "the notice of `b` leaves with the correction");
    let screen = bench.screen();
    assert!(screen.contains("config.toml:5:1: `a`") && !screen.contains("toml:6:1"), "{screen}");
    // The next host finds no mistake, and lists none.
    bench.msg(Msg::HostEnded);
    bench.msg(Msg::Connected);
    let pods = vec![pod("alice", State::Idle)];
    let (approvals, agents) = (Vec::new(), Vec::new());
    bench.host(None, Event::Family { pods, peers: Vec::new(), approvals, agents });
    assert_eq!(bench.notice(), "corrected: `a` is 0");
    assert!(!bench.screen().contains("config.toml"), "{}", bench.screen());
    assert_eq!(listed(&bench).iter().filter(|text| text.contains("`a`")).count(), 2);
}

#[test]
fn a_request_shows_in_its_row_and_the_count_without_taking_the_focus() {
    let mut bench = bench();
    bench.type_in("hal");
    requested(&mut bench, "q", "tester", "cargo fetch");
    let screen = bench.screen();
    assert!(screen.contains("▲ tester") && screen.contains("▲ 1 needs you Ctrl+N"), "{screen}");
    assert!(!screen.contains("1 of 1"), "only a key shows the card: {screen}");
    assert!(decisions(&bench.type_in("lo a")).is_empty());
    assert_eq!((bench.app.focus, bench.draft().as_str()), (Focus::Composer, "hallo a"));
}

#[test]
fn ctrl_n_shows_the_card_of_the_oldest_request_and_a_fresh_key_decides_it() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", "cargo fetch");
    let before = bench.app.current.clone();
    bench.press("ctrl-n");
    assert_eq!(bench.app.focus, Focus::Inbox);
    assert_eq!((bench.app.shown(), &bench.app.current), (before.as_ref(), &before));
    assert!(bench.screen().contains("▲ tester  wants an approval"), "{}", bench.screen());
    assert!(decisions(&bench.press("a")).is_empty(), "it was not looked at yet");
    bench.wait(299);
    assert!(decisions(&bench.press("a")).is_empty(), "the press before began the look anew");
    bench.wait(300);
    assert_eq!(decisions(&bench.press("a")), once("q"));
    bench.wait(300);
    assert!(decisions(&bench.press("a")).is_empty(), "it is answered only once");
    decided(&mut bench, "q", Verdict::Once);
    assert_eq!(bench.notice(), "tester: allowed once · Bash cargo fetch");
    assert_eq!(bench.app.focus, Focus::Composer);
    assert!(!bench.app.has_card(), "it was the last one");
}

/// The requests of scout and tester, the oldest of which was allowed by its card.
fn one_of_two_allowed() -> Bench {
    let mut bench = bench();
    bench.type_in("half a sente");
    requested(&mut bench, "one", "tester", "cargo fetch");
    requested(&mut bench, "two", "scout", "cargo publish");
    bench.press("ctrl-n");
    bench.wait(300);
    assert_eq!(decisions(&bench.press("a")), once("one"));
    bench
}

#[test]
fn the_card_after_an_answer_has_no_keys_until_ctrl_n_gives_them_to_it() {
    let mut bench = one_of_two_allowed();
    let screen = bench.screen();
    assert!(screen.contains("cargo publish") && !screen.contains("D deny"), "{screen}");
    bench.wait(1_000);
    assert!(decisions(&bench.type_in("nce a")).is_empty(), "letters are text");
    assert_eq!(bench.draft(), "half a sentence a");
    bench.press("ctrl-n");
    bench.wait(300);
    assert_eq!(decisions(&bench.press("a")), once("two"), "two keys for a decision");
    assert_eq!(bench.draft(), "half a sentence a");
}

#[test]
fn esc_folds_a_card_without_keys_and_pauses_nothing() {
    let mut bench = one_of_two_allowed();
    let screen = bench.screen();
    assert!(screen.contains("Ctrl+N answers scout · Esc folds the card"), "{screen}");
    assert!(!screen.contains("would allow"), "it names no key that has no effect: {screen}");
    bench.wait(1_000);
    assert_eq!(calls(&bench.press("esc")), []);
    let screen = bench.screen();
    assert!(!screen.contains("cargo publish") && screen.contains("half a sente"), "{screen}");
}

#[test]
fn a_card_loses_the_keys_on_a_resized_screen_and_to_an_answer_from_elsewhere() {
    let mut bench = bench();
    requested(&mut bench, "one", "tester", "cargo fetch");
    requested(&mut bench, "two", "scout", "cargo publish");
    bench.press("ctrl-n");
    bench.wait(1_000);
    bench.size(100, 30);
    assert!(!bench.app.is_card_awake() && bench.app.has_card(), "{}", bench.screen());
    bench.press("ctrl-n");
    assert!(decisions(&bench.press("a")).is_empty(), "the card was not drawn with the keys");
    decided(&mut bench, "one", Verdict::Once);
    bench.wait(1_000);
    assert!(decisions(&bench.press("a")).is_empty(), "the card is over");
    let screen = bench.screen();
    assert!(screen.contains("it was decided elsewhere: allowed"), "{screen}");
    assert!(!screen.contains("cargo publish"), "no other card comes by itself: {screen}");
    assert_eq!(bench.draft(), "", "and no letter reaches the draft");
}

#[test]
fn enter_looks_inside_and_esc_leads_back_to_the_card_and_then_to_the_draft() {
    let mut bench = bench();
    bench.go_to("alice");
    bench.type_in("half");
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.press("enter");
    assert_eq!((bench.app.shown(), bench.app.focus), (Some(&name("tester")), Focus::Transcript));
    assert_eq!(bench.app.current, Some(name("alice")));
    assert!(bench.screen().contains("Esc back to the card"), "{}", bench.screen());
    bench.press("esc");
    assert_eq!((bench.app.shown(), bench.app.focus), (Some(&name("alice")), Focus::Inbox));
    bench.wait(1_000);
    bench.press("esc");
    assert_eq!((bench.app.focus, bench.draft().as_str()), (Focus::Composer, "half"));
    assert!(!bench.app.has_card());
    bench.press("ctrl-n");
    bench.press("enter");
    bench.press("i");
    assert_eq!(
        (bench.app.current.clone(), bench.app.focus),
        (Some(name("tester")), Focus::Composer)
    );
}

#[test]
fn the_inbox_lists_all_that_waits_and_enter_wakes_the_card_of_a_row() {
    let mut bench = bench();
    requested(&mut bench, "one", "tester", "cargo fetch");
    requested(&mut bench, "two", "scout", "cargo publish");
    bench.press("ctrl-x");
    bench.press("i");
    let screen = bench.screen();
    for row in ["▲ tester  wants an approval  cargo fetch", "▲ scout  wants an approval  cargo pu"]
    {
        assert!(screen.contains(row), "{row}: {screen}");
    }
    bench.wait(1_000);
    assert!(decisions(&bench.press("a")).is_empty(), "a list answers nothing");
    bench.press("down");
    bench.press("enter");
    assert!(bench.screen().contains("scout  wants an approval"), "{}", bench.screen());
    bench.wait(300);
    assert_eq!(decisions(&bench.press("a")), once("two"));
    let screen = bench.screen();
    assert!(!screen.contains("cargo publish") && screen.contains("Inbox"), "{screen}");
}

#[test]
fn what_is_put_off_answers_nothing_and_comes_last_until_the_pod_needs_something_else() {
    let mut bench = bench();
    requested(&mut bench, "one", "tester", "cargo fetch");
    requested(&mut bench, "two", "scout", "cargo publish");
    bench.press("ctrl-n");
    assert!(bench.screen().contains("tester  wants an approval"), "{}", bench.screen());
    assert_eq!(calls(&bench.press("z")), [(Some("tester"), &Method::Later)]);
    bench.shown(PodInfo { later: Some(u64::MAX), ..pod("tester", State::NeedsYou) });
    let screen = bench.screen();
    assert!(screen.contains("scout  wants an approval"), "{screen}");
    assert!(
        screen.contains("1 of 2") && !screen.contains("need you"),
        "the count or the card: {screen}"
    );
    bench.wait(1_000);
    assert!(decisions(&bench.press("a")).is_empty(), "the next card has no keys");
    bench.press("ctrl-n");
    bench.press("down");
    assert!(bench.screen().contains("tester  wants an approval"), "{}", bench.screen());
    bench.press("esc");
    bench.shown(PodInfo { later: Some(1), ..pod("tester", State::NeedsYou) });
    bench.press("ctrl-n");
    assert!(bench.screen().contains("tester  wants an approval"), "{}", bench.screen());
}

#[test]
fn a_result_that_was_not_looked_at_comes_last_and_space_notes_it_as_seen() {
    let mut bench = bench();
    bench.shown(PodInfo { unseen: true, ..pod("fmt", State::Idle) });
    bench.shown(PodInfo { parent: Some(name("alice")), unseen: true, ..pod("part", State::Idle) });
    bench.shown(pod("alice", State::Running));
    bench.press("ctrl-n");
    bench.press("down");
    let screen = bench.screen();
    assert!(screen.contains("✓ fmt  done, not seen") && screen.contains("2 of 2"), "{screen}");
    assert!(!screen.contains("part  done"), "the result of a child is for its parent");
    assert_eq!(calls(&bench.press("space")), [(Some("fmt"), &Method::Seen)]);
    bench.press("esc");
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(1_000);
    bench.press("a");
    let screen = bench.screen();
    assert!(!screen.contains("answers fmt") && screen.contains("goes to fmt"), "{screen}");
}

#[test]
fn after_the_last_answer_one_is_where_one_was_and_i_writes_to_the_pod_that_waits() {
    let mut bench = bench();
    bench.go_to("alice");
    bench.type_in("half a sente");
    let tester = |state| PodInfo { parent: Some(name("alice")), ..pod("tester", state) };
    bench.shown(tester(State::NeedsYou));
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(1_000);
    assert_eq!(decisions(&bench.press("a")), once("q"));
    decided(&mut bench, "q", Verdict::Once);
    bench.shown(tester(State::Running));
    bench.type_in("nce");
    assert_eq!(
        (bench.app.current.clone(), bench.draft()),
        (Some(name("alice")), "half a sentence".into())
    );
    bench.shown(tester(State::NeedsYou));
    requested(&mut bench, "r", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.press("i");
    assert_eq!((bench.app.current.clone(), bench.draft()), (Some(name("tester")), String::new()));
}

#[test]
fn no_repeated_key_no_paste_no_enter_and_no_click_ever_allows() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(1_000);
    let key = |code| KeyEvent::new_with_kind(code, KeyModifiers::NONE, KeyEventKind::Repeat);
    assert!(bench.msg(Msg::Key(key(KeyCode::Char('a')))).is_empty());
    assert!(decisions(&bench.press("enter")).is_empty());
    assert!(decisions(&bench.press("right")).is_empty());
    bench.wait(1_000);
    let click = crossterm::event::MouseEvent {
        kind: crossterm::event::MouseEventKind::Down(crossterm::event::MouseButton::Left),
        column: 50,
        row: 17,
        modifiers: KeyModifiers::NONE,
    };
    assert!(decisions(&bench.msg(Msg::Mouse(click))).is_empty());
    assert!(decisions(&bench.msg(Msg::Paste("a".into()))).is_empty());
    assert_eq!(bench.app.focus, Focus::Composer, "pasted text is text");
}

#[test]
fn a_key_that_is_held_down_decides_one_request_and_no_other() {
    let mut bench = bench();
    requested(&mut bench, "one", "tester", "cargo fetch");
    requested(&mut bench, "two", "scout", "cargo publish");
    bench.press("ctrl-n");
    bench.wait(500);
    assert_eq!(decisions(&bench.press("a")), once("one"));
    decided(&mut bench, "one", Verdict::Once);
    for _ in 0..100 {
        bench.wait(30);
        assert!(decisions(&bench.press("a")).is_empty());
    }
}

#[test]
fn a_request_that_changes_just_before_the_key_is_not_decided() {
    let mut bench = bench();
    requested(&mut bench, "one", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(400);
    requested(&mut bench, "two", "scout", "cargo fetch");
    assert!(decisions(&bench.press("a")).is_empty(), "now it is two Pods that ask");
    bench.wait(300);
    assert_eq!(decisions(&bench.press("a")), once("one"));
}

#[test]
fn allow_once_on_a_row_of_equal_requests_decides_one_and_another_key_all_of_them() {
    let three = |bench: &mut Bench| {
        for (id, pod) in [("one", "tester"), ("two", "scout"), ("three", "alice")] {
            requested(bench, id, pod, "cargo fetch");
        }
        bench.press("ctrl-n");
        bench.wait(300);
    };
    let mut bench = bench();
    bench.size(120, 40);
    three(&mut bench);
    let screen = bench.screen();
    for said in
        ["3 equal requests: a allows the oldest, M each of them", "3 alike · 1 of 3 · waits 2m0"]
    {
        assert!(screen.contains(said), "{said}\n{screen}");
    }
    assert_eq!(decisions(&bench.press("a")), once("one"));
    decided(&mut bench, "one", Verdict::Once);
    bench.press("ctrl-n");
    bench.wait(300);
    let both: Vec<_> = [once("two"), once("three")].concat();
    assert_eq!(decisions(&bench.press("M")), both);
    let before = bench.notice().to_owned();
    decided(&mut bench, "two", Verdict::Once);
    assert_eq!(bench.notice(), before, "the other one is not decided yet");
    decided(&mut bench, "three", Verdict::Once);
    assert_eq!(bench.notice(), "scout, alice: allowed once · Bash cargo fetch");
}

#[test]
fn the_card_of_a_pod_of_another_workspace_names_that() {
    let mut bench = bench();
    let far =
        PodInfo { workspace: "/other".into(), cwd: "/other".into(), ..pod("far", State::NeedsYou) };
    bench.shown(far);
    requested(&mut bench, "q", "far", "cargo fetch");
    bench.press("ctrl-n");
    assert!(bench.screen().contains("▲ far (in other)  wants an approval"), "{}", bench.screen());
}

#[test]
fn a_rule_is_shown_before_it_is_written() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(400);
    assert!(decisions(&bench.press("T")).is_empty());
    let screen = bench.screen();
    assert!(screen.contains("always allow Bash: cargo fetch for tester and its"), "{screen}");
    assert!(screen.contains("\n always allow › Bash:cargo fetch"), "{screen}");
    assert!(decisions(&bench.press("enter")).is_empty(), "that Enter was on its way already");
    bench.wait(300);
    assert_eq!(
        decisions(&bench.press("enter")),
        [("q".to_owned(), Verdict::Tree { rule: None, of: None })]
    );
}

#[test]
fn a_rule_for_a_tree_goes_up_to_the_pods_above_and_decides_all_equal_requests() {
    let mut bench = bench();
    bench.size(120, 40);
    for (id, pod) in [("one", "tester"), ("two", "scout")] {
        let lineage = vec![name("top"), name("alice")];
        let approval = Box::new(ApprovalRequest { lineage, ..approval(id, pod, "cargo fetch") });
        bench.host(Some(pod), Event::ApprovalRequested { approval });
    }
    bench.press("ctrl-n");
    bench.wait(400);
    bench.press("T");
    let shows = |bench: &mut Bench, whom: &str, next: &str| {
        bench.wait(layer::ARMED_AFTER);
        let screen = bench.screen();
        let question = format!("always allow Bash: cargo fetch for {whom}?");
        assert!(screen.contains(&question), "{question}\n{screen}");
        let hints = bench.app.hints();
        let hints: Vec<_> =
            hints.iter().map(|hint| format!("{} {}", hint.key, hint.does)).collect();
        assert_eq!(hints, ["Enter makes it", &format!("Tab {next}"), "Esc back"]);
        bench.wait(layer::ARMED_AFTER);
    };
    let (own, alice, top) =
        ("tester, scout and their children", "alice and its children", "top and its children");
    for (whom, next) in [(own, alice), (alice, top), (top, own), (own, alice)] {
        shows(&mut bench, whom, next);
        assert!(decisions(&bench.press("tab")).is_empty());
        assert!(decisions(&bench.press("enter")).is_empty(), "it was not read yet");
    }
    bench.wait(layer::ARMED_AFTER);
    bench.screen();
    bench.wait(layer::ARMED_AFTER);
    let verdict = Verdict::Tree { rule: None, of: Some(name("alice")) };
    assert_eq!(decisions(&bench.press("enter")), [("one".to_owned(), verdict.clone())]);
    decided(&mut bench, "one", verdict);
    decided(&mut bench, "two", Verdict::Once);
    let notice = "tester: always allowed, for alice and its children · Bash cargo fetch";
    assert_eq!(bench.notice(), notice);
}

#[test]
fn a_rule_is_edited_before_it_is_written_and_must_allow_the_request() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(400);
    bench.press("A");
    bench.press("ctrl-u");
    bench.type_in("Bash:npm *");
    assert!(decisions(&bench.confirm("enter")).is_empty());
    assert!(bench.screen().contains("that rule does not allow what is asked"));
    bench.press("ctrl-u");
    bench.type_in("Bash:cargo *");
    let screen = bench.screen();
    assert!(screen.contains("always allow Bash: cargo * for tester?"), "{screen}");
    let last = screen.lines().last().unwrap_or_default();
    assert!(last.contains("Enter makes it · Esc back"), "{screen}");
    bench.wait(299);
    assert!(decisions(&bench.press("enter")).is_empty(), "the rule was not read yet");
    bench.wait(300);
    let rule = Some("Bash:cargo *".parse().unwrap());
    assert_eq!(decisions(&bench.press("enter")), [("q".to_owned(), Verdict::Pod { rule })]);
}

#[test]
fn a_card_says_what_its_pod_works_on_and_wrote_last_below_the_action() {
    let mut bench = bench();
    bench.size(120, 40);
    let request = ApprovalRequest {
        task: Some("write the guide".into()),
        said: Some("The **crates** are missing.".into()),
        ..approval("q", "tester", "cargo fetch")
    };
    bench.host(Some("tester"), Event::ApprovalRequested { approval: Box::new(request) });
    bench.press("ctrl-n");
    let screen = bench.screen();
    let row = |text: &str| screen.lines().position(|row| row.starts_with(text));
    let action = row("   Bash  cargo fetch");
    assert!(action.is_some() && action < row("   task       write the guide"), "{screen}");
    assert!(row("   last       The crates are missing.").is_some(), "{screen}");
}

#[test]
fn the_card_of_a_pod_that_failed_says_what_it_did_last() {
    let why = Some("exit 101".to_owned());
    let activity = Some("I run `the bench`.".to_owned());
    let mut bench = bench();
    bench.shown(PodInfo { why, activity, ..pod("bench", State::Failed) });
    bench.shown(child("alice", "tester", State::Running));
    bench.press("ctrl-n");
    let screen = bench.screen();
    assert!(screen.contains("✕ bench  failed"), "{screen}");
    assert!(screen.contains("\n   exit 101\n   last       I run the bench.\n"), "{screen}");
}

#[test]
fn a_refusal_carries_its_reason() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(400);
    bench.press("D");
    bench.type_in("use the vendored ones");
    let reason = "use the vendored ones".to_owned();
    assert_eq!(decisions(&bench.press("enter")), [("q".to_owned(), Verdict::Deny { reason })]);
}

#[test]
fn a_request_decided_elsewhere_leaves_with_a_notice() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", "cargo fetch");
    bench.press("ctrl-n");
    bench.wait(400);
    bench.press("A");
    decided(&mut bench, "q", Verdict::Once);
    assert_eq!(bench.notice(), "decided elsewhere · tester: allowed once · Bash cargo fetch");
    bench.wait(400);
    assert!(decisions(&bench.press("enter")).is_empty());
    let screen = bench.screen();
    assert!(screen.contains("it was decided elsewhere: nothing is sent"), "{screen}");
    bench.press("esc");
    assert!(bench.app.layers.is_empty());
}

#[test]
fn a_request_is_allowed_at_once_only_when_every_row_of_it_is_in_view() {
    for (columns, rows) in [(120, 60), (80, 24), (40, 12), (60, 16)] {
        for lines in [2, 5, 9, 20] {
            let mut bench = bench();
            bench.size(columns, rows);
            requested(&mut bench, "q", "tester", &"echo one\n".repeat(lines));
            bench.press("ctrl-n");
            bench.wait(400);
            let screen = bench.screen();
            let texts = screen.lines().map(|row| row.trim_start().trim_start_matches("Bash  "));
            let in_view = texts.filter(|text| text.starts_with("echo one")).count();
            let allowed = !decisions(&bench.press("a")).is_empty();
            assert_eq!(allowed, in_view == lines, "{columns}x{rows}: {}", bench.screen());
            assert!(allowed || bench.notice().starts_with("PageDown first: "));
        }
    }
}

/// A command whose lines are numbered.
fn script(lines: usize) -> String {
    (1..=lines).map(|line| format!("echo {line};\n")).collect()
}

#[test]
fn a_request_longer_than_the_pane_is_seen_whole_before_it_is_allowed() {
    for (columns, rows) in [(80, 24), (120, 40), (40, 12), (60, 9)] {
        let mut bench = bench();
        bench.size(columns, rows);
        requested(&mut bench, "q", "tester", &script(60));
        bench.press("ctrl-n");
        bench.wait(400);
        assert!(decisions(&bench.press("a")).is_empty());
        assert!(bench.notice().ends_with("more lines, then the key again"), "{rows}");
        assert!(bench.screen().contains("echo 1;") && !bench.screen().contains("echo 60;"));
        let mut seen = BTreeSet::new();
        for _ in 0..60 {
            if bench.screen().contains("echo 60;") {
                break;
            }
            seen.extend((1..=60).filter(|n| bench.screen().contains(&format!(" echo {n};"))));
            bench.wait(400);
            assert!(decisions(&bench.press("a")).is_empty());
            bench.press("pagedown");
        }
        seen.extend((1..=60).filter(|n| bench.screen().contains(&format!(" echo {n};"))));
        assert_eq!(seen.len(), 60, "no line is passed over at {columns}x{rows}: {seen:?}");
        let mut needs = false;
        for _ in 0..20 {
            bench.wait(400);
            needs |= bench.screen().contains("network access");
            let decided = decisions(&bench.press("a"));
            assert!(decided.is_empty() || needs, "what it needs was not seen: {}", bench.screen());
            if !decided.is_empty() {
                assert_eq!(decided, once("q"));
                break;
            }
            bench.press("pagedown");
        }
        assert!(needs, "{}", bench.screen());
    }
}

#[test]
fn requests_of_two_directories_are_two_cards_however_alike_they_are() {
    let mut bench = bench();
    for (id, pod, cwd) in [("q", "tester", "/repo"), ("r", "scout", "/repo"), ("s", "bob", "/far")]
    {
        let request =
            ApprovalRequest { cwd: Some(cwd.into()), ..approval(id, pod, "make publish") };
        bench.host(None, Event::ApprovalRequested { approval: Box::new(request) });
    }
    bench.press("ctrl-n");
    let screen = bench.screen();
    assert!(screen.contains("1 of 3") && screen.contains("2 alike"), "{screen}");
    bench.press("down");
    assert!(bench.screen().contains("3 of 3"), "{}", bench.screen());
    bench.press("up");
    bench.wait(400);
    let decided: Vec<String> = decisions(&bench.press("M")).into_iter().map(|(id, _)| id).collect();
    assert_eq!(decided, ["q", "r"]);
}

#[test]
fn the_paths_that_a_short_command_gets_are_all_seen_before_it_is_allowed() {
    for (columns, rows) in [(80, 24), (120, 40), (40, 12), (60, 9)] {
        let mut bench = bench();
        bench.size(columns, rows);
        let outside = (0..30).map(|n| yoi::protocol::OutsidePath {
            path: format!("/far/{n}/x").into(),
            access: yoi::protocol::OutsideAccess::Read,
        });
        let request =
            ApprovalRequest { outside: outside.collect(), ..approval("q", "tester", "ls") };
        bench.host(None, Event::ApprovalRequested { approval: Box::new(request) });
        bench.press("ctrl-n");
        let mut seen = BTreeSet::new();
        loop {
            bench.wait(400);
            let screen = bench.screen();
            seen.extend((0..30).filter(|n| screen.contains(&format!("/far/{n}/x"))));
            if !decisions(&bench.press("a")).is_empty() {
                break;
            }
            bench.press("pagedown");
        }
        assert_eq!(seen.len(), 30, "{columns}x{rows}: {seen:?}");
    }
}

#[test]
fn a_rule_that_is_longer_than_the_screen_is_read_to_its_end_before_it_is_written() {
    let mut bench = bench();
    requested(&mut bench, "q", "tester", &script(240));
    bench.press("ctrl-n");
    for _ in 0..120 {
        bench.press("pagedown");
        bench.wait(400);
        bench.press("A");
        if !bench.app.layers.is_empty() {
            break;
        }
    }
    assert!(bench.screen().contains("always allow Bash: echo 1;"), "{}", bench.screen());
    bench.wait(400);
    assert!(decisions(&bench.press("enter")).is_empty());
    assert!(bench.notice().ends_with("more lines: PageDown, then Enter"), "{}", bench.notice());
    for _ in 0..3 {
        bench.press("pagedown");
        bench.wait(400);
    }
    assert!(bench.screen().contains("for tester?"), "{}", bench.screen());
    assert_eq!(decisions(&bench.press("enter")), [("q".to_owned(), Verdict::Pod { rule: None })]);
}

#[test]
fn peers_come_and_go_with_their_events_and_the_notice_with_the_reply() {
    let mut bench = bench();
    let asked = bench_line(&mut bench, "peer bob");
    assert_eq!(calls(&asked), [(Some("alice"), &Method::Peer { name: "bob".into() })]);
    let (source, peer) = (name("alice"), name("bob"));
    let result = yoi::protocol::PeerRegistered { source: source.clone(), peer: peer.clone() };
    answer(&mut bench, asked, Event::PeerRegistered { result });
    assert_eq!(
        bench.notice(),
        "alice and bob are peers · bob is stopped; messages to it need :restore bob"
    );
    assert!(!bench.screen().contains("⇄ ◌ bob"), "panes change by events only");
    bench.host(None, Event::Peered { source: source.clone(), peer: peer.clone() });
    assert!(bench.screen().contains("⇄ ◌ bob"));
    bench.host(None, Event::Unpeered { source: peer, peer: source });
    assert!(!bench.screen().contains("⇄ ◌ bob"));
}

fn bench_line(bench: &mut Bench, line: &str) -> Vec<Effect> {
    bench.type_in(&format!(":{line}"));
    bench.press("enter")
}

#[test]
fn tab_goes_through_the_panes_that_are_there() {
    let mut bench = bench();
    let round = |bench: &mut Bench| -> Vec<Focus> {
        let step = |_| {
            bench.press("tab");
            bench.app.focus
        };
        (0..5).map(step).collect()
    };
    let start = [Focus::Tree, Focus::Transcript, Focus::Composer, Focus::Tree, Focus::Transcript];
    assert_eq!(round(&mut bench), start);
    bench.app.focus = Focus::Composer;
    let edge = PeerEdge::new(name("alice"), name("bob"));
    bench.host(None, Event::Peered { source: edge.a, peer: edge.b });
    let all = [Focus::Tree, Focus::Peers, Focus::Transcript, Focus::Composer, Focus::Tree];
    assert_eq!(round(&mut bench), all);
}

#[test]
fn a_subtree_is_stopped_only_after_all_of_it_was_named() {
    let mut bench = bench();
    assert!(calls(&bench_line(&mut bench, "stop alice --tree")).is_empty());
    let screen = bench.screen();
    assert!(
        screen.contains("stop 3 Pods, alice and all below it: alice, scout, tester"),
        "{screen}"
    );
    let stopped = bench.confirm("enter");
    assert_eq!(
        calls(&stopped),
        [(Some("alice"), &Method::StopPods { tree: true, unless_busy: false, silent: false })]
    );
    let returned = |path: &str| vec![Rule::new(path, Permission::Write)];
    let all = vec![
        StoppedPod {
            name: name("scout"),
            returned: returned("/repo/ui"),
            lender: Some(name("bob")),
            gained: vec![],
        },
        StoppedPod { name: name("alice"), returned: vec![], lender: None, gained: vec![] },
    ];
    answer(&mut bench, stopped, Event::PodsStopped { stopped: all });
    assert_eq!(
        bench.notice(),
        "stopped alice, scout · bob has write /repo/ui again · :restore alice --tree brings them back"
    );
}

#[test]
fn a_rewind_says_which_pods_go_on_and_stops_them_first_where_that_is_asked_for() {
    let listed = || {
        let mut target = crate::screen::app::tests::rewind_target(1, "split it");
        target.drops.as_mut().expect("losses").pods = vec![name("scout"), name("tester")];
        Event::RewindTargets { head_entries: 12, targets: vec![target], undo: None, redo: None }
    };
    let mut bench = bench();
    let sent = bench_line(&mut bench, "rewind 1");
    answer(&mut bench, sent, listed());
    let screen = bench.screen();
    assert!(screen.contains("scout, tester go on (--stop stops them)"), "{screen}");
    let mut bench = self::bench();
    let sent = bench_line(&mut bench, "rewind 1 --stop");
    answer(&mut bench, sent, listed());
    assert!(bench.screen().contains("scout, tester are stopped"), "{}", bench.screen());
    let sent = bench.confirm("enter");
    let stop = Method::StopPods { tree: true, unless_busy: false, silent: true };
    assert_eq!(calls(&sent), [(Some("scout"), &stop), (Some("tester"), &stop)]);
    let mut next = Vec::new();
    for stop in asked(sent) {
        next = bench.msg(Msg::Answered(stop, Ok(Event::PodsStopped { stopped: vec![] })));
    }
    let sent = next;
    assert!(
        matches!(calls(&sent).as_slice(), [(Some("alice"), Method::Rewind { .. })]),
        "{sent:?}"
    );
}

#[test]
fn a_restore_without_losses_is_done_at_once_and_any_other_shows_its_plan_first() {
    let mut bench = bench();
    let step = |what, notes: &[&str]| PlanStep {
        name: name("bob"),
        what,
        notes: notes.iter().map(ToString::to_string).collect(),
    };
    let plan = |step: PlanStep| Event::Plan { steps: vec![step], done: false };
    let asked = bench_line(&mut bench, "restore bob --tree");
    let method = Method::RestorePods { tree: true, plan: true };
    assert_eq!(calls(&asked), [(Some("bob"), &method)]);
    let done = answer(&mut bench, asked, plan(step(Restoring::Idle, &[])));
    let method = Method::RestorePods { tree: true, plan: false };
    assert_eq!(calls(&done), [(Some("bob"), &method)]);

    let asked = bench_line(&mut bench, "restore bob --tree");
    let note = "alice holds write /repo: it comes back as read";
    assert!(answer(&mut bench, asked, plan(step(Restoring::Idle, &[note]))).is_empty());
    assert!(bench.screen().contains(note));
    assert_eq!(calls(&bench.confirm("enter")), [(Some("bob"), &method)]);

    let asked = bench_line(&mut bench, "restore bob --plan");
    assert!(answer(&mut bench, asked, plan(step(Restoring::Idle, &[]))).is_empty());
    assert!(bench.screen().contains("bob comes back idle"));
    assert!(calls(&bench.press("enter")).is_empty(), "a plan that is only shown does nothing");
}

#[test]
fn explain_gives_the_reason_the_time_the_relations_and_the_scope_of_a_pod() {
    let mut bench = bench();
    bench.shown(PodInfo {
        why: Some("waits for you: Bash cargo fetch".into()),
        scope: vec![Rule::new("/repo", Permission::Write)],
        deny: vec![Rule::new("/repo/ui", Permission::Write)],
        lent: vec![yoi::protocol::Lent {
            to: name("scout"),
            rule: Rule::new("/repo/ui", Permission::Write),
        }],
        ..child("alice", "tester", State::NeedsYou)
    });
    requested(&mut bench, "q", "tester", "cargo fetch");
    let asked = bench_line(&mut bench, "explain tester");
    assert_eq!(calls(&asked), [(Some("tester"), &Method::ExplainCommand)]);
    let sheet = yoi::protocol::CommandSheet {
        sandbox: "sandbox on".into(),
        write: vec!["/repo".into()],
        withheld: vec!["AWS_SECRET_ACCESS_KEY".into()],
        ..Default::default()
    };
    answer(&mut bench, asked, Event::CommandSheet(Box::new(sheet)));
    let screen = bench.screen();
    for said in [
        "tester: needs you",
        "needs you since 12:00 (2m00)",
        "waits for you: Bash cargo fetch",
        "Bash cargo fetch · network access",
        "parents        alice (running)",
        "may            write /repo",
        "but            only read /repo/ui",
        "lent           write /repo/ui to scout",
    ] {
        assert!(screen.contains(said), "{said}\n{screen}");
    }
    bench.press("G");
    bench.press("pagedown");
    assert!(bench.screen().contains("commands       sandbox on"), "{}", bench.screen());
}

#[test]
fn explain_says_the_state_also_when_it_is_not_known_what_commands_get() {
    let mut bench = bench();
    let asked = bench_line(&mut bench, "explain alice");
    refuse(&mut bench, asked, "pod `alice` did not answer");
    let screen = bench.screen();
    for said in ["alice: running", "commands       pod `alice` did not answer"] {
        assert!(screen.contains(said), "{said}\n{screen}");
    }
    let asked = bench_line(&mut bench, "explain bob");
    assert!(calls(&asked).is_empty(), "a stopped Pod has no commands");
}

#[test]
fn a_verb_typed_from_the_tree_is_about_its_row() {
    let mut bench = bench();
    bench.press("tab");
    bench.press("down");
    bench.press(":");
    bench.type_in("pause");
    assert_eq!(calls(&bench.press("enter")), [(Some("scout"), &Method::Pause)]);
    bench.press("s");
    assert!(
        matches!(bench.app.layers.top(), Some(Layer::Prompt(p)) if p.input.text() == "stop scout")
    );
}

#[test]
fn the_menu_holds_the_verbs_that_fit_the_state() {
    let mut bench = bench();
    bench.press("tab");
    bench.press("x");
    let screen = bench.screen();
    assert!(screen.contains(":stop alice --tree") && screen.contains(":pause alice"), "{screen}");
    assert!(!screen.contains(":restore alice"));
}

#[test]
fn the_row_of_a_pod_says_limit_until_its_commands_meet_none() {
    let mut bench = bench();
    let sentence = "a file that a command writes has at most 1 MiB".to_owned();
    let met = LimitMet { kind: LimitKind::FileSize, sentence: sentence.clone() };
    bench.shown(PodInfo { limit: Some(met), ..child("alice", "tester", State::Running) });
    for columns in [80, 120, 200] {
        bench.size(columns, 24);
        let screen = bench.screen();
        let row = screen.lines().find(|line| line.contains("● tester"));
        assert!(row.is_some_and(|row| row.contains("limit")), "{screen}");
    }
    let asked = bench_line(&mut bench, "explain tester");
    answer(&mut bench, asked, Event::CommandSheet(Box::default()));
    assert!(bench.screen().contains(&sentence), "{}", bench.screen());
    bench.press("esc");
    bench.shown(child("alice", "tester", State::Running));
    assert!(!bench.screen().contains("limit"), "{}", bench.screen());
}
