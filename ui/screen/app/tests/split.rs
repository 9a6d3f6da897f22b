use super::*;
use crossterm::event::{KeyModifiers, MouseButton, MouseEventKind};
use yoi::protocol::event::Line;
use yoi::protocol::{Entry, Fact, Item, PeerEdge, Role, Segment, State};

/// alice is current, bob was before her; carol was never. So many columns and rows.
fn bench(columns: u16, rows: u16) -> Bench {
    let scout = PodInfo { parent: Some(name("alice")), ..pod("scout", State::Running) };
    let bob =
        PodInfo { notes: vec!["sandbox off: no Landlock".into()], ..pod("bob", State::Running) };
    let pods = vec![pod("alice", State::Running), scout, bob, pod("carol", State::Idle)];
    let mut bench = Bench::new(pods);
    bench.size(columns, rows);
    open(&mut bench, "bob");
    open(&mut bench, "alice");
    bench
}

fn open(bench: &mut Bench, pod: &str) {
    bench.type_in(&format!(":open {pod}"));
    bench.press("enter");
}

fn leader(bench: &mut Bench, key: &str) -> Vec<Effect> {
    bench.press("ctrl-x");
    bench.press(key)
}

/// Both transcripts hold a turn of their own.
fn shown(bench: &mut Bench) {
    for (pod, asked, answer) in [
        (
            "alice",
            "fix the flaky test in ui/run.rs",
            "I'll ask **scout** to reproduce it first, and read the log meanwhile.",
        ),
        (
            "bob",
            "what changed since 日本語?",
            "Three files:\n\n- `src/lib.rs`\n- `ui/run.rs`\n- `README.md`\n\nNo other.\n\nShall I go on?",
        ),
    ] {
        let segments = vec![Segment::Text { content: asked.into() }];
        let you = Entry::new(Fact::UserInput { segments, taken: None, from: None });
        let item = Item::message(Role::Assistant, answer);
        let said =
            Entry::new(Fact::AssistantItem { item, origin: None, native: None, partial: false });
        let entries =
            [you, said].map(|entry| Line::Whole(Box::new(Entry { ts: NOON, ..entry }))).to_vec();
        let page = Event::Page { entries, before: None, in_flight: Vec::new(), seq: 0 };
        bench.msg(Msg::Answered(Asked::Page(name(pod)), Ok(page)));
    }
}

/// alice and bob side by side, both told.
pub fn split(columns: u16, rows: u16) -> Bench {
    let mut bench = bench(columns, rows);
    if columns < 105 {
        leader(&mut bench, "z");
    }
    leader(&mut bench, "v");
    bench.screen();
    shown(&mut bench);
    bench
}

fn beside(bench: &Bench) -> Option<&str> {
    bench.app.beside().map(PodName::as_str)
}

#[test]
fn screen_120x36_split() {
    insta::assert_snapshot!(split(120, 36).screen());
}

#[test]
fn screen_80x24_split_and_zoomed() {
    insta::assert_snapshot!(split(80, 24).screen());
}

#[test]
fn screen_120x36_zoomed() {
    let mut bench = bench(120, 36);
    leader(&mut bench, "z");
    bench.screen();
    shown(&mut bench);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_zoomed() {
    let mut bench = bench(80, 24);
    leader(&mut bench, "z");
    bench.screen();
    shown(&mut bench);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn the_leader_puts_the_pod_before_beside_this_one_and_again_takes_it_away() {
    let mut bench = bench(120, 36);
    leader(&mut bench, "v");
    assert_eq!(bench.notice(), "bob stands beside it · Ctrl+X v: one again");
    assert_eq!(beside(&bench), Some("bob"));
    leader(&mut bench, "v");
    assert_eq!(beside(&bench), None);
    assert!(!head(&mut bench).contains("│ bob"));
}

#[test]
fn v_on_a_row_puts_that_pod_beside_the_current_one() {
    let mut bench = bench(120, 36);
    for key in ["tab", "G", "v"] {
        bench.press(key);
    }
    assert_eq!((beside(&bench), bench.app.focus), (Some("carol"), Focus::Composer));
    assert!(bench.screen().contains("\n alice ›"));
    for key in ["tab", "v"] {
        bench.press(key);
    }
    assert_eq!(bench.notice(), "alice is the current Pod: another one can stand beside it");
    bench.type_in("jjjv");
    assert_eq!(beside(&bench), None, "carol stood there already");
}

#[test]
fn the_composer_speaks_to_the_current_pod_and_a_verb_to_the_transcript_in_focus() {
    let mut bench = split(120, 36);
    for key in ["tab", "tab", "tab"] {
        bench.press(key);
    }
    assert_eq!(bench.app.focus, Focus::Beside);
    bench.press(":");
    bench.type_in("pause");
    assert_eq!(calls(&bench.press("enter")), [(Some("bob"), &Method::Pause)]);
    bench.press("i");
    bench.type_in("hello");
    assert_eq!(calls(&bench.press("enter")), [(Some("alice"), &steer("hello"))]);
}

#[test]
fn tab_goes_through_both_transcripts_and_keys_scroll_the_one_in_focus() {
    let mut bench = split(120, 36);
    let edge = PeerEdge::new(name("alice"), name("bob"));
    bench.host(None, Event::Peered { source: edge.a, peer: edge.b });
    let mut round = Vec::new();
    for _ in 0..5 {
        bench.press("tab");
        round.push(bench.app.focus);
    }
    let all = [Focus::Tree, Focus::Peers, Focus::Transcript, Focus::Beside, Focus::Composer];
    assert_eq!(round, all);
    bench.press("shift-tab");
    let effects = bench.press("Y");
    assert!(matches!(&effects[..], [Effect::Copy(text)] if text.contains("src/lib.rs")));
    bench.press("shift-tab");
    let effects = bench.press("Y");
    assert!(matches!(&effects[..], [Effect::Copy(text)] if text.contains("reproduce it")));
}

#[test]
fn esc_behind_the_matches_of_a_search_leads_to_the_pane_in_which_it_began() {
    for (keys, focus) in [
        (&[][..], Focus::Composer),
        (&["ctrl-x", "t"], Focus::Tree),
        (&["ctrl-x", "r"], Focus::Transcript),
    ] {
        let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
        bench.go_to("alice");
        keys.iter().for_each(|key| drop(bench.press(key)));
        bench.press("ctrl-f");
        bench.type_in("x");
        bench.press("enter");
        assert_eq!(bench.app.focus, Focus::Transcript);
        bench.wait(1_000);
        bench.press("esc");
        assert_eq!(bench.app.focus, focus);
        bench.wait(1_000);
        bench.press("esc");
        assert_eq!(bench.app.focus, Focus::Composer);
    }
}

#[test]
fn a_search_begun_in_the_second_transcript_stays_there() {
    let mut bench = split(120, 36);
    bench.press("shift-tab");
    assert_eq!(bench.app.focus, Focus::Beside);
    bench.press("/");
    bench.type_in("README");
    bench.press("enter");
    assert_eq!(bench.app.focus, Focus::Beside);
    bench.screen();
    let found = bench.app.transcript().map(Transcript::search);
    assert_eq!(found, Some(crate::screen::pane::transcript::Search::Found));
}

#[test]
fn the_two_change_places_when_the_other_becomes_current() {
    let mut bench = split(120, 36);
    leader(&mut bench, "ctrl-x");
    assert_eq!((bench.app.current.clone(), beside(&bench)), (Some(name("bob")), Some("alice")));
    let screen = bench.screen();
    assert!(screen.contains("\n bob ›") && screen.contains("I'll ask scout"), "{screen}");
    assert!(screen.contains("Three files"), "{screen}");
}

#[test]
fn looking_at_the_other_in_the_tree_leaves_the_current_one_in_sight() {
    let mut bench = split(120, 36);
    for key in ["tab", "j", "j"] {
        bench.press(key);
    }
    assert_eq!((bench.app.shown(), beside(&bench)), (Some(&name("bob")), Some("alice")));
    let screen = bench.screen();
    assert!(screen.contains("I'll ask scout") && screen.contains("Three files"), "{screen}");
}

/// The first row of the screen.
fn head(bench: &mut Bench) -> String {
    bench.screen().lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_split_without_room_says_why_and_what_to_do() {
    let mut bench = bench(80, 24);
    leader(&mut bench, "v");
    let why = "two transcripts need 100 columns, here are 80 · Ctrl+X z makes 74 enough";
    assert_eq!((bench.notice(), beside(&bench)), (why, None));
    leader(&mut bench, "z");
    leader(&mut bench, "v");
    assert_eq!(beside(&bench), Some("bob"));
    bench.size(70, 24);
    assert_eq!(bench.notice(), "two transcripts need 74 columns, here are 70");
    assert!(!head(&mut bench).contains("│ bob"));
    bench.size(69, 24);
    let screen = bench.screen();
    assert!(screen.contains("! two transcripts need 74 columns, here are 69 "), "{screen}");
    bench.size(76, 24);
    assert!(!bench.notice().contains("two transcripts"), "{}", bench.notice());
    assert!(head(&mut bench).contains("│ bob"));
}

#[test]
fn the_keys_leave_a_transcript_that_has_no_room_any_more() {
    let mut bench = split(120, 36);
    bench.press("shift-tab");
    assert_eq!(bench.app.focus, Focus::Beside);
    bench.size(80, 24);
    assert_eq!(bench.app.focus, Focus::Transcript);
}

#[test]
fn zoom_leaves_the_transcript_alone_and_going_to_a_list_ends_it() {
    let mut bench = bench(120, 36);
    bench.press("tab");
    leader(&mut bench, "z");
    assert_eq!(bench.app.focus, Focus::Composer);
    assert!(!bench.screen().starts_with(" repo"));
    bench.press("tab");
    assert_eq!(bench.app.focus, Focus::Transcript, "no list is there to go to");
    leader(&mut bench, "z");
    assert!(bench.screen().starts_with(" repo"));
    leader(&mut bench, "z");
    leader(&mut bench, "t");
    assert_eq!(bench.app.focus, Focus::Tree);
    assert!(bench.screen().starts_with(" repo"));
}

#[test]
fn a_request_shows_in_the_count_while_the_transcript_has_the_whole_width() {
    let mut bench = bench(80, 24);
    leader(&mut bench, "z");
    let approval = Box::new(approval("q", "scout", "cargo fetch"));
    bench.host(Some("scout"), Event::ApprovalRequested { approval });
    assert!(bench.screen().contains("▲ 1 needs you Ctrl+N"), "{}", bench.screen());
    bench.press("ctrl-n");
    assert!(bench.screen().contains("scout  wants an approval"), "{}", bench.screen());
}

#[test]
fn a_screen_with_one_pane_at_a_time_cannot_be_zoomed() {
    let mut bench = bench(40, 12);
    leader(&mut bench, "z");
    assert_eq!(bench.notice(), "one pane is shown at a time on so small a screen");
    assert_eq!(bench.app.zoom, Zoom::Off);
}

#[test]
fn both_transcripts_are_requested_and_events_of_either_are_painted() {
    let mut bench = bench(120, 36);
    leader(&mut bench, "v");
    let wanted = bench.app.prepare_frame();
    let pages = |pod| {
        let of = |effect: &Effect| matches!(effect, Effect::Call { asked: Asked::Page(of), .. } if *of == name(pod));
        wanted.iter().filter(|effect| of(effect)).count()
    };
    assert_eq!((pages("alice"), pages("bob")), (1, 1));
    let event = |pod| {
        let event = Event::TurnStart { turn: 1 };
        Msg::Host(Outgoing { re: None, pod: Some(name(pod)), seq: None, event })
    };
    let redraws = ["carol", "bob", "alice"].map(|pod| bench.update(event(pod)).redraw);
    assert_eq!(redraws, [false, true, true], "carol is not in view");
}

#[test]
fn a_pod_that_goes_leaves_one_transcript() {
    let mut bench = split(120, 36);
    bench.press("shift-tab");
    bench.host(None, Event::PodRemoved { name: name("bob") });
    assert_eq!((beside(&bench), bench.app.focus), (None, Focus::Transcript));
}

#[test]
fn the_wheel_scrolls_and_a_click_chooses_what_is_under_the_pointer() {
    let mut bench = split(120, 36);
    let mouse = |kind, column| {
        let modifiers = KeyModifiers::NONE;
        Msg::Mouse(crossterm::event::MouseEvent { kind, column, row: 5, modifiers })
    };
    bench.size(120, 12);
    bench.screen();
    bench.msg(mouse(MouseEventKind::ScrollUp, 100));
    let at_tail = |bench: &Bench, pod| {
        bench.app.transcript_at(&name(pod)).is_some_and(Transcript::is_at_tail)
    };
    assert_eq!((at_tail(&bench, "alice"), at_tail(&bench, "bob")), (true, false));
    bench.msg(mouse(MouseEventKind::Down(MouseButton::Left), 100));
    assert_eq!(bench.app.focus, Focus::Composer, "letters are typed");
    leader(&mut bench, "r");
    bench.msg(mouse(MouseEventKind::Down(MouseButton::Left), 60));
    assert_eq!(bench.app.focus, Focus::Transcript, "it had the keys");
    bench.msg(mouse(MouseEventKind::Down(MouseButton::Left), 100));
    assert_eq!(bench.app.focus, Focus::Composer);
}

#[test]
fn both_panes_read_their_pages_again_after_the_host_left_events_out() {
    let mut bench = split(120, 36);
    let pages = |bench: &mut Bench| {
        let effects = bench.app.prepare_frame();
        let calls = calls(&effects).into_iter();
        let pages = calls.filter(|(_, method)| matches!(method, Method::Page { before: None, .. }));
        pages.filter_map(|(pod, _)| pod.map(str::to_owned)).collect::<Vec<_>>()
    };
    assert_eq!(pages(&mut bench), Vec::<String>::new());
    let lagged = Outgoing { re: None, pod: None, seq: None, event: Event::Lagged };
    assert!(bench.update(Msg::Host(lagged)).redraw);
    assert_eq!(pages(&mut bench), ["alice", "bob"]);
}
