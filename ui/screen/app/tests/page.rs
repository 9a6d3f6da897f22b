//! Pages: *Since you left* and what opens, closes and moves in it.

use super::*;
use crate::screen::pane::page::PageRow;
use yoi::protocol::{EntryId, Fact, Item, LastRun, LinesChanged, PodWork, Role, RunResult, Work};

const HOUR: u64 = 3_600_000;

fn run(result: RunResult, error: Option<&str>, at: u64) -> LastRun {
    let error = error.map(str::to_owned);
    LastRun { entry: EntryId::new(), result: result.word().into(), error, at }
}

/// Two Pods that wait, one that failed, and two that finished.
fn family() -> Vec<PodInfo> {
    let waits = |info: PodInfo| PodInfo { since: NOON - 240_000, ..info };
    vec![
        pod("shop", State::Running),
        child("shop", "docs", State::Idle),
        waits(child("docs", "guide", State::NeedsYou)),
        waits(child("shop", "tester", State::NeedsYou)),
        PodInfo {
            last_result: Some(run(RunResult::Failed, None, NOON - 3 * HOUR)),
            ..child("shop", "bench", State::Failed)
        },
        PodInfo {
            unseen: true,
            last_result: Some(run(RunResult::Finished, None, NOON - 2 * HOUR)),
            ..pod("fmt", State::Idle)
        },
    ]
}

fn work(pod: &str, last: LastRun, report: &str, subjects: &[&str]) -> PodWork {
    let work = Work {
        report: Some(report.into()),
        subjects: subjects.iter().map(|subject| (*subject).to_owned()).collect(),
        tasks_not_begun: subjects.len() as u64,
        files: [format!("/repo/{pod}")].into(),
        lines: LinesChanged { added: 406, removed: 70 },
        cost: Some(2.05),
        by_walls: 20,
        by_rules: 1,
        by_person: 1,
        ..Work::default()
    };
    PodWork { pod: name(pod), runs: 1, last, work }
}

fn done() -> Event {
    let failed =
        run(RunResult::Failed, Some("exit 101 · panicked at ui/run.rs:88"), NOON - 3 * HOUR);
    Event::Since {
        pods: vec![
            PodWork { work: Work::default(), ..work("bench", failed, "", &[]) },
            work(
                "fmt",
                run(RunResult::Finished, None, NOON - 2 * HOUR),
                "All 212 tests pass; the flake was a shared port",
                &[],
            ),
            work(
                "docs",
                run(RunResult::Finished, None, NOON - 5 * HOUR),
                "Guide written",
                &["CHANGELOG"],
            ),
        ],
    }
}

/// A screen that is opened seven hours after the one before was left, without the reply of the host.
fn opened() -> Bench {
    let left = ScreenState::default().written_at(NOON + 120_000 - 7 * HOUR - 720_000);
    Bench::returning(left, family())
}

/// The request for what the Pods did, which a screen sends when it is opened.
fn asked_since(left: u64, bench: &Bench) -> Asked {
    Asked::Since(left, bench.app.request_token())
}

/// The same screen with the page, which has not the keys.
fn returned() -> Bench {
    let mut bench = opened();
    let asked = asked_since(bench.app.left.expect("a time"), &bench);
    bench.msg(Msg::Answered(asked, Ok(done())));
    bench
}

/// A screen with the page, which has the keys.
fn since(width: u16, height: u16) -> Bench {
    let mut bench = returned();
    bench.size(width, height);
    bench.press("ctrl-x");
    bench.press("h");
    bench
}

#[test]
fn screen_80x24_since_you_left() {
    insta::assert_snapshot!(since(80, 24).screen());
}

#[test]
fn screen_120x40_since_you_left() {
    insta::assert_snapshot!(since(120, 40).screen());
}

#[test]
fn screen_40x12_since_you_left() {
    insta::assert_snapshot!(since(40, 12).screen());
}

#[test]
fn a_screen_that_opens_requests_what_the_pods_did_and_shows_it_without_taking_the_keys() {
    let left = ScreenState::default().written_at(NOON - 7 * HOUR);
    let mut bench = Bench::returning(left.clone(), vec![]);
    let none = bench.host(None, family_of(family()));
    assert!(calls(&none).iter().all(|(_, method)| !matches!(method, Method::Since { .. })));
    let mut bench = Bench::before_the_family(None, left);
    bench.size(80, 24);
    let effects = bench.host(None, family_of(family()));
    let since = effects.into_iter().find(|effect| {
        matches!(effect, Effect::Call { method: Method::Since { at }, .. } if *at == NOON - 7 * HOUR)
    });
    answer(&mut bench, vec![since.expect("a request")], done());
    assert!(bench.app.page.is_some() && bench.app.focus == Focus::Composer);
    assert_eq!(bench.notice(), "");
    bench.type_in("go on");
    assert_eq!(bench.draft(), "go on");
    assert!(bench.screen().contains("Since you left"), "{}", bench.screen());
    assert!(bench.screen().contains("7h02 away"), "{}", bench.screen());
    bench.wait(600_000);
    assert!(bench.screen().contains("7h02 away"), "the person is back: {}", bench.screen());
}

#[test]
fn a_page_does_not_open_by_itself_over_what_a_person_does() {
    let notice =
        "while you were away (7 h): 2 Pods need you, 1 failed, 1 finished · :since lists them";
    let busy: [fn(&mut Bench); 4] = [
        |bench| drop(bench.type_in("w")),
        |bench| drop(bench.press("ctrl-p")),
        |bench| drop(bench.press("tab")),
        |bench| drop(bench.go_to("fmt")),
    ];
    for does in busy {
        let mut bench = opened();
        let asked = asked_since(bench.app.left.expect("a time"), &bench);
        does(&mut bench);
        bench.msg(Msg::Answered(asked, Ok(done())));
        assert!(bench.app.page.is_none());
        assert_eq!(bench.notice(), notice);
    }
    // The family comes while a message is being typed.
    let mut bench = Bench {
        app: Bench::before_the_family(None, ScreenState::default()).app,
        now: NOON + 120_000,
    };
    bench.size(80, 24);
    bench.app.left = Some(NOON - 7 * HOUR);
    bench.type_in("w");
    let effects = bench.host(None, family_of(family()));
    assert!(calls(&effects).iter().all(|(_, method)| !matches!(method, Method::Since { .. })));
    assert_eq!(bench.notice(), notice);
}

#[test]
fn a_host_that_comes_back_opens_no_page_and_closes_none() {
    let mut bench = opened();
    bench.msg(Msg::HostEnded);
    bench.msg(Msg::Connected);
    let effects = bench.host(None, family_of(family()));
    assert!(calls(&effects).iter().all(|(_, method)| !matches!(method, Method::Since { .. })));
    let mut bench = since(80, 24);
    bench.msg(Msg::HostEnded);
    bench.msg(Msg::Connected);
    bench.host(None, family_of(family()));
    assert!(bench.app.page.is_some());
}

#[test]
fn the_line_the_bar_and_the_tree_stay_where_they_are_when_a_page_opens() {
    for (width, height) in [(40, 12), (80, 24), (99, 30), (100, 30), (120, 40), (200, 60)] {
        let mut bench = opened();
        bench.size(width, height);
        let before = Areas::of(&bench.app);
        let asked = asked_since(0, &bench);
        bench.msg(Msg::Answered(asked, Ok(done())));
        let with = Areas::of(&bench.app);
        assert_eq!((before.composer, before.bar), (with.composer, with.bar), "{width}");
        let beside_tree = width >= 100;
        assert_eq!(with.tree, before.tree.filter(|_| beside_tree), "{width}");
        assert_eq!(with.transcript, None, "{width}");
        let page = with.page.expect("a page");
        assert_eq!(page.right(), width, "{width}");
        assert_eq!(page.x > 0, beside_tree, "{width}");
    }
}

#[test]
fn the_page_stays_with_its_cursor_when_the_size_changes() {
    let mut bench = since(120, 40);
    bench.press("down");
    let row = |bench: &mut Bench| {
        let screen = bench.screen();
        screen.lines().find(|line| line.contains('›') && line.contains("bench")).map(str::to_owned)
    };
    assert!(row(&mut bench).is_some());
    bench.size(40, 12);
    assert!(bench.app.focus == Focus::Page && row(&mut bench).is_some());
}

#[test]
fn the_keys_of_the_page_go_to_a_pod_mark_its_result_as_seen_and_copy_its_row() {
    let mut bench = since(80, 24);
    bench.press("j");
    bench.press("j");
    let seen = bench.press("space");
    assert_eq!(calls(&seen), [(Some("fmt"), &Method::Seen)]);
    assert!(bench.press("space").is_empty(), "once is enough");
    bench.shown(PodInfo { unseen: false, ..family().pop().expect("a Pod") });
    let copied = bench.press("y");
    let text = "fmt           All 212 tests pass; the flake was a shared port  2h";
    assert!(matches!(&copied[..], [Effect::Copy(copied)] if copied == text), "{copied:?}");
    bench.press("enter");
    assert_eq!(
        (bench.app.current.as_ref(), bench.app.focus),
        (Some(&name("fmt")), Focus::Composer)
    );
    assert!(bench.app.page.is_none());
}

#[test]
fn esc_leads_from_the_entry_that_a_row_led_to_back_to_the_row() {
    let visit = |state| {
        let mut bench = since(80, 24);
        bench.shown(pod("fmt", state));
        bench.press("j");
        bench.press("j");
        let row = bench.screen();
        bench.press("enter");
        assert!(bench.screen().contains("Esc back to the page"), "{}", bench.screen());
        (bench, row)
    };
    let (mut bench, row) = visit(State::Running);
    bench.press("pageup");
    assert_eq!(calls(&bench.press("esc")), [], "it pauses nothing");
    assert_eq!((bench.app.focus, bench.screen()), (Focus::Page, row));
    let (mut bench, _) = visit(State::Running);
    bench.type_in("go on");
    assert_eq!(calls(&bench.press("esc")), [(Some("fmt"), &Method::Pause)], "the person went on");
}

#[test]
fn enter_on_what_waits_goes_to_the_oldest_thing_that_needs_the_person() {
    let mut bench = since(80, 24);
    bench.host(None, Event::ApprovalRequested { approval: Box::new(approval("q", "tester", "x")) });
    bench.press("g");
    bench.press("enter");
    assert_eq!(bench.app.focus, Focus::Inbox);
    bench.press("esc");
    assert!(bench.app.page.is_some(), "the page stands where it was below the card");
}

#[test]
fn enter_shows_the_end_of_that_run_though_others_came_after_it() {
    let mut bench = since(80, 24);
    let Event::Since { pods } = done() else { panic!("a report") };
    let answer = |n: usize| {
        let text: String = (0..8).map(|row| format!("answer {n} row {row}\n\n")).collect();
        let item = Item::message(Role::Assistant, text);
        let fact = Fact::AssistantItem { item, origin: None, native: None, partial: false };
        yoi::protocol::Entry { ts: NOON, ..yoi::protocol::Entry::new(fact) }
    };
    // The entry that ends a run has no row of its own.
    let before: Vec<_> = (0..5).map(answer).collect();
    let end = EntryId::new();
    let log: Vec<_> = before.into_iter().chain((5..10).map(answer)).collect();
    let mut pods = pods;
    pods[1].last.entry = end;
    bench.app.open_page(Page::Since(crate::wording::since::Since {
        span: crate::wording::since::Span::Left(crate::wording::since::Absence {
            left: NOON - 7 * HOUR,
            back: NOON,
        }),
        pods,
    }));
    bench.press("j");
    bench.press("j");
    bench.press("enter");
    let served = super::returning::serve(&mut bench, &log);
    assert!(served > 1, "{served}");
    let screen = bench.screen();
    assert!(screen.contains("answer 4 row 0") && !screen.contains("answer 9"), "{screen}");
}

#[test]
fn keys_give_the_page_the_keys_and_take_them_back() {
    let mut bench = returned();
    bench.press("tab");
    assert_eq!(bench.app.focus, Focus::Page);
    bench.press("tab");
    assert_eq!((bench.app.focus, bench.app.page.is_some()), (Focus::Composer, true));
    bench.type_in("and run");
    bench.press("ctrl-x");
    bench.press("h");
    assert_eq!((bench.app.focus, bench.draft().as_str()), (Focus::Page, "and run"));
    bench.press("i");
    bench.type_in(" it");
    assert_eq!(bench.draft(), "and run it");
    bench.press("esc");
    assert!(bench.app.page.is_none());
    for key in ["esc", "q"] {
        let mut bench = since(80, 24);
        assert!(bench.press(key).is_empty(), "no run is paused");
        assert_eq!((bench.app.page.is_none(), bench.app.focus), (true, Focus::Composer));
    }
}

#[test]
fn a_page_closes_for_a_message_for_a_pod_and_for_another_pane() {
    let does: [fn(&mut Bench); 5] = [
        |bench| {
            bench.type_in("go on");
            bench.press("enter");
        },
        |bench| drop(bench.go_to("docs")),
        |bench| {
            bench.press("ctrl-x");
            bench.press("t");
        },
        |bench| {
            bench.press("ctrl-x");
            bench.press("r");
        },
        |bench| {
            bench.press("ctrl-f");
        },
    ];
    for (at, does) in does.into_iter().enumerate() {
        let mut bench = returned();
        does(&mut bench);
        assert!(bench.app.page.is_none(), "{at}");
    }
}

#[test]
fn another_span_takes_the_place_of_the_page() {
    let mut bench = since(80, 24);
    bench.press("i");
    bench.type_in(":since 8h");
    let effects = bench.press("enter");
    answer(&mut bench, effects, done());
    let head = bench.screen().lines().next().map(str::to_owned);
    assert_eq!(head.map(|head| head.starts_with(" The last 8 h")), Some(true));
    assert_eq!(bench.app.focus, Focus::Page);
}

#[test]
fn a_click_and_the_wheel_leave_the_keys_with_the_line() {
    use crossterm::event::{MouseButton, MouseEventKind};
    let mut bench = returned();
    bench.size(40, 12);
    for kind in [MouseEventKind::Down(MouseButton::Left), MouseEventKind::ScrollDown] {
        let modifiers = crossterm::event::KeyModifiers::NONE;
        bench.msg(Msg::Mouse(MouseEvent { kind, column: 4, row: 3, modifiers }));
        assert_eq!((bench.app.focus, bench.app.page.is_some()), (Focus::Composer, true));
    }
    bench.press("tab");
    let screen = bench.screen();
    assert!(screen.lines().any(|line| line.contains('›') && line.contains("bench")), "{screen}");
}

#[test]
fn the_head_of_a_page_says_that_a_message_goes_to_another_workspace() {
    let mut bench = since(80, 24);
    let far = PodInfo { workspace: "/other".into(), ..pod("far", State::Idle) };
    bench.shown(far);
    bench.app.current = Some(name("far"));
    let head = bench.screen().lines().next().map(str::to_owned).unwrap_or_default();
    assert!(head.contains("to far in other"), "{head}");
}

#[test]
fn a_result_behind_the_page_is_not_marked_as_seen() {
    let mut bench = returned();
    bench.app.current = Some(name("fmt"));
    let seen = |bench: &mut Bench| {
        let effects = bench.app.prepare_frame();
        calls(&effects).iter().any(|(_, method)| **method == Method::Seen)
    };
    assert!(!seen(&mut bench));
    bench.press("esc");
    assert!(seen(&mut bench));
}

/// A screen of this size with the page of F1 for the line of a Pod that runs.
fn help(width: u16, height: u16) -> Bench {
    let mut bench = Bench::new(vec![pod("tester", State::Running)]);
    bench.size(width, height);
    bench.app.make_current(&name("tester"));
    bench.press("f1");
    bench
}

#[test]
fn screen_80x24_help() {
    insta::assert_snapshot!(help(80, 24).screen());
}

#[test]
fn screen_120x40_help() {
    insta::assert_snapshot!(help(120, 40).screen());
}

#[test]
fn screen_40x12_help() {
    insta::assert_snapshot!(help(40, 12).screen());
}

#[test]
fn screen_120x40_help_in_the_tree() {
    let mut bench = Bench::new(family());
    bench.size(120, 40);
    bench.press("tab");
    bench.press("f1");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn the_page_of_keys_gives_its_place_back_to_the_page_that_it_covers() {
    for closes in [&["esc"] as &[&str], &["f1"]] {
        let mut bench = Bench::new(vec![pod("tester", State::Idle)]);
        bench.app.open_page(Page::Notices);
        bench.press("f1");
        let is_help =
            |bench: &Bench| matches!(&bench.app.page, Some(OpenPage { page: Page::Keys(_), .. }));
        assert!(is_help(&bench));
        for key in closes {
            bench.press(key);
        }
        let page = bench.app.page.as_ref().map(|open| &open.page);
        assert!(matches!(page, Some(Page::Notices)), "{closes:?}: {page:?}");
        bench.wait(1_000);
        bench.press("esc");
        assert!(bench.app.page.is_none(), "{closes:?}");
    }
}

/// Goes to a place and opens its page of keys.
const PLACES_WITH_KEYS: [(crate::screen::keys::Context, &[&str]); 7] = [
    (crate::screen::keys::Context::Composer, &[]),
    (crate::screen::keys::Context::Tree, &["ctrl-x", "t"]),
    (crate::screen::keys::Context::Peers, &["ctrl-x", "e"]),
    (crate::screen::keys::Context::Transcript, &["ctrl-x", "r"]),
    (crate::screen::keys::Context::Inbox, &["ctrl-n"]),
    (crate::screen::keys::Context::Line, &["ctrl-p"]),
    (crate::screen::keys::Context::Page, &["ctrl-x", "h"]),
];

/// Pods of which two are peers and one waits.
fn with_peers() -> Bench {
    let mut bench = returned();
    let edge = yoi::protocol::PeerEdge::new(name("shop"), name("fmt"));
    bench.host(None, Event::Peered { source: edge.a, peer: edge.b });
    bench.host(None, Event::ApprovalRequested { approval: Box::new(approval("q", "tester", "x")) });
    bench
}

/// What answers a card.
const ANSWERS: [crate::screen::keys::Action; 6] = [
    crate::screen::keys::Action::AllowOnce,
    crate::screen::keys::Action::AllowEach,
    crate::screen::keys::Action::AllowPod,
    crate::screen::keys::Action::AllowTree,
    crate::screen::keys::Action::Deny,
    crate::screen::keys::Action::Seen,
];

#[test]
fn each_place_has_its_own_keys_on_the_page_of_f1_and_none_is_cut() {
    use crate::screen::keys::{Binding, Context, label};
    for (place, keys) in PLACES_WITH_KEYS {
        for (width, height) in [(40, 12), (80, 24), (120, 40)] {
            let mut bench = with_peers();
            bench.size(width, height);
            for key in keys {
                bench.press(key);
            }
            bench.press("f1");
            let area = Areas::of(&bench.app).page.expect("a page");
            let rows = bench.app.page_rows(area.width);
            let text = of_focus(&rows).join("\n");
            let room = crate::screen::pane::page::columns(area.width);
            let is_cut = |row: &PageRow| crate::rows::row_width(&row.text) > room;
            assert!(
                !text.contains('…') && !rows.iter().any(is_cut),
                "{place:?} at {width}: {text}"
            );
            let words: Vec<&str> = text.split_whitespace().collect();
            // Keys that edit the line are those of any other line.
            let counts = |binding: &Binding| match binding {
                Binding::Do(action) if place == Context::Composer => [
                    crate::screen::keys::Action::Send,
                    crate::screen::keys::Action::Queue,
                    crate::screen::keys::Action::Up,
                    crate::screen::keys::Action::CompleteFile,
                ]
                .contains(action),
                Binding::Do(crate::screen::keys::Action::Slot(2..=8)) => false,
                // Each card takes only some of these.
                Binding::Do(action) if place == Context::Inbox => !ANSWERS.contains(action),
                _ => true,
            };
            for (key, _) in bench.app.keymap.list(place).filter(|(_, binding)| counts(binding)) {
                let key = label(key);
                assert!(words.contains(&key.as_str()), "{place:?} at {width}: {key}\n{text}");
            }
        }
    }
}

#[test]
fn f1_leaves_the_keys_with_the_line_and_says_what_they_do_to_this_pod_now() {
    let mut bench = help(80, 24);
    bench.type_in("and run");
    assert_eq!((bench.draft().as_str(), bench.app.focus), ("and run", Focus::Composer));
    let does = |bench: &mut Bench, words: &str| {
        let screen = bench.screen();
        assert!(screen.contains(words), "{words}: {screen}");
    };
    does(&mut bench, "steers: enters at the next tool");
    bench.shown(pod("tester", State::Idle));
    does(&mut bench, "Enter   sends ");
    bench.shown(pod("tester", State::Stopped));
    does(&mut bench, "restores it and sends");
    bench.press("f1");
    assert!(bench.app.page.is_none(), "the same key closes it");
    let mut bench = help(80, 24);
    assert!(bench.press("esc").is_empty(), "the run goes on");
    assert!(bench.app.page.is_none());
    bench.wait(1_000);
    assert_eq!(calls(&bench.press("esc")), [(Some("tester"), &Method::Pause)]);
}

#[test]
fn a_pane_gets_the_keys_back_when_its_page_of_keys_closes() {
    for (_, keys) in PLACES_WITH_KEYS {
        let mut bench = with_peers();
        for key in keys {
            bench.press(key);
        }
        let state = |bench: &Bench| {
            let page = bench.app.page.as_ref().map(|open| std::mem::discriminant(&open.page));
            (bench.app.focus, bench.app.layers.is_empty(), page)
        };
        let before = state(&bench);
        bench.press("f1");
        bench.screen();
        bench.press("f1");
        assert_eq!(state(&bench), before, "{keys:?}");
    }
}

#[test]
fn a_key_that_was_bound_anew_is_named_on_the_page() {
    let mut bench = help(80, 24);
    let own = "[composer]\n\"tab\" = \"\"\n\"f7\" = \"queue\"\n\"f8\" = \"run :compact\"\n";
    assert_eq!(crate::screen::keys::read(&mut bench.app.keymap, "keymap.toml", own), vec![]);
    let screen = bench.screen();
    assert!(screen.contains("F7      queues to the end of the run"), "{screen}");
    assert!(screen.contains("F8      :compact"), "{screen}");
    let page = of_focus(&bench.app.page_rows(80));
    assert!(!page.iter().any(|row| row.contains("Tab")), "{page:?}");
}

/// The rows of a page of keys about what has the keys, without those about the rest.
fn of_focus(rows: &[PageRow]) -> Vec<String> {
    let rows: Vec<String> = rows.iter().map(PageRow::plain).collect();
    let rest = rows.iter().position(|row| row.trim() == "Everywhere").expect("the rest follows");
    rows[..rest].to_vec()
}

#[test]
fn the_keys_of_all_other_places_follow_and_columns_are_two_blanks_apart() {
    let bench = help(80, 24);
    let area = Areas::of(&bench.app).page.expect("a page");
    let rows: Vec<String> = bench.app.page_rows(area.width).iter().map(PageRow::plain).collect();
    let titles = ["Everywhere", "After Ctrl+X", "In the tree", "On a card", "On a page"];
    let places = titles.map(|title| rows.iter().position(|row| row.trim() == title));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(!rows.iter().any(|row| row.trim() == "In the line"), "that is what has the keys");
    let first = rows.iter().find(|row| row.contains("Ctrl+N")).expect("two columns");
    assert!(first.contains("at the next tool  ") && first.contains("  Ctrl+N"), "{first}");
}

#[test]
fn f1_on_a_confirmation_says_how_it_is_answered_and_answers_nothing() {
    let mut bench = Bench::new(vec![pod("tester", State::Running), pod("bob", State::Stopped)]);
    bench.type_in(":rm bob");
    bench.press("enter");
    bench.wait(1_000);
    assert!(bench.press("f1").is_empty());
    assert!(matches!(bench.app.layers.top(), Some(Layer::Confirm(_))));
    let rows = of_focus(&bench.app.page_rows(80)).join(" ");
    let rows = rows.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        rows.contains("Enter does what the sheet says")
            && rows.contains("leaves it; nothing is done"),
        "{rows}"
    );
}

/// `:explain tester`, with what its commands get.
fn explained(bench: &mut Bench) {
    bench.type_in(":explain tester");
    let asked = bench.press("enter");
    let sheet = yoi::protocol::CommandSheet {
        sandbox: "sandbox on".into(),
        write: vec!["/repo".into()],
        ..Default::default()
    };
    answer(bench, asked, Event::CommandSheet(Box::new(sheet)));
}

#[test]
fn screen_80x24_explain_of_a_pod_that_waits() {
    let mut bench = Bench::new(family());
    let request = approval("q", "tester", "cargo fetch && cargo test -- --nocapture");
    bench.host(None, Event::ApprovalRequested { approval: Box::new(request) });
    explained(&mut bench);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn enter_on_evidence_shows_its_entry_and_a_pane_gets_the_keys_back_from_the_page() {
    let mut bench = Bench::new(family());
    let log: Vec<_> = super::returning::log(10);
    let entry = log[2].id.expect("an id");
    let last = LastRun { entry, result: "failed".into(), error: Some("exit 101".into()), at: NOON };
    bench.shown(PodInfo { last_result: Some(last), ..child("shop", "tester", State::Running) });
    explained(&mut bench);
    assert_eq!(bench.app.focus, Focus::Page);
    bench.press("enter");
    super::returning::serve(&mut bench, &log);
    let screen = bench.screen();
    assert!(
        bench.app.current == Some(name("tester")) && screen.contains("answer 2 row 0"),
        "{screen}"
    );
    bench.press("tab");
    let asked = bench.press("e");
    answer(&mut bench, asked, Event::CommandSheet(Box::default()));
    assert_eq!(bench.app.focus, Focus::Page);
    bench.press("esc");
    assert_eq!((bench.app.focus, bench.app.page.is_none()), (Focus::Tree, true));
}

#[test]
fn past_notices_are_a_page_that_is_copied_whole() {
    let mut bench = Bench::new(family());
    bench.size(40, 12);
    bench.msg(Msg::Said(
        crate::screen::notice::Kind::Refused,
        "the disk is full, so nothing is kept".into(),
    ));
    bench.msg(Msg::Said(crate::screen::notice::Kind::Done, "sent to bob".into()));
    bench.press("ctrl-x");
    bench.press("l");
    let screen = bench.screen();
    let first =
        " Notices\n 12:02 ✓ sent to bob\n 12:02 ✕ the disk is full, so nothing\n         is kept\n";
    assert!(screen.starts_with(first), "{screen}");
    let copied = bench.press("y");
    assert!(
        matches!(&copied[..], [Effect::Copy(text)] if text.contains("so nothing is kept")),
        "{copied:?}"
    );
    bench.press("esc");
    assert!(bench.app.page.is_none() && bench.app.focus == Focus::Composer);
}

/// For the help page of `:since`, which names these keys.
pub fn the_page_gets_the_keys_and_leaves_them() {
    keys_give_the_page_the_keys_and_take_them_back();
}

pub fn a_row_leads_to_the_end_of_a_run() {
    enter_shows_the_end_of_that_run_though_others_came_after_it();
}

pub fn a_row_is_marked_as_seen() {
    the_keys_of_the_page_go_to_a_pod_mark_its_result_as_seen_and_copy_its_row();
}
