use crate::rows::width;
use crate::screen::app::tests::{Bench, NOON, approval, pod};
use yoi::protocol::family::Confined;
use yoi::protocol::{ApprovalRequest, Event, PodInfo, PodName, Queued, State};

fn child(name: &str, parent: &str, state: State) -> PodInfo {
    PodInfo { parent: PodName::parse(parent).ok(), ..pod(name, state) }
}

fn family() -> Vec<PodInfo> {
    let activity = |text: &str| Some(text.to_owned());
    vec![
        PodInfo {
            since: NOON + 108_000,
            activity: activity("cargo test -p ui flaky"),
            confined: Some(Confined::NotEnforced),
            notes: vec!["sandbox off: no Landlock".into()],
            ..pod("alice", State::Running)
        },
        PodInfo { activity: activity("Read ui/run.rs"), ..child("scout", "alice", State::Running) },
        PodInfo {
            since: NOON + 80_000,
            why: Some("may I run `cargo publish`?".into()),
            ..child("tester", "alice", State::NeedsYou)
        },
        PodInfo { unseen: true, ..pod("bob", State::Idle) },
        pod("docs", State::Stopped),
        PodInfo { workspace: "/other".into(), ..pod("far", State::Idle) },
    ]
}

fn bench(columns: u16, rows: u16) -> Bench {
    let mut bench = Bench::new(family());
    bench.size(columns, rows);
    bench.type_in(":open alice");
    bench.press("enter");
    bench.type_in("and keep the public API as it is");
    bench
}

#[test]
fn screen_40x12() {
    insta::assert_snapshot!(bench(40, 12).screen());
}

#[test]
fn a_long_name_of_a_model_is_shortened_in_the_header_and_not_left_out() {
    let model = format!("openrouter/some-vendor-{}", "long-".repeat(12));
    let mut bench = Bench::new(vec![PodInfo { model, ..pod("alice", State::Running) }]);
    bench.size(80, 24);
    bench.type_in(":open alice");
    bench.press("enter");
    let screen = bench.screen();
    assert!(screen.contains("some-vendor-lo") && screen.contains("running"), "{screen}");
}

#[test]
fn the_head_keeps_that_commands_are_confined_before_the_provider_and_the_source_of_the_key() {
    let model = |vendor: &str| format!("{vendor}/claude-sonnet-5-5");
    let head = |model: String| {
        let mut bench = Bench::new(vec![PodInfo {
            model,
            model_address: Some("https://gateway.of-the-firm.example/models/v1".into()),
            model_key: Some("the key in GATEWAY_OF_THE_FIRM_API_KEY".into()),
            model_why: "config.toml names it".into(),
            confined: Some(Confined::Enforced),
            cost: Some(1.25),
            ..pod("alice", State::Running)
        }]);
        bench.size(120, 40);
        bench.go_to("alice");
        bench.screen().lines().next().unwrap_or_default().to_owned()
    };
    let short = head(model("acme"));
    assert!(short.contains(&model("acme")) && short.contains("sandbox on"), "{short}");
    let long = head(model(&"gateway-of-the-firm-".repeat(4)));
    assert!(long.contains("claude-sonnet-5-5 · ") && long.contains("sandbox on"), "{long}");
    assert!(!long.contains("gateway-of"), "{long}");
}

#[test]
fn the_head_of_a_narrow_screen_keeps_the_name_beside_every_warning() {
    let mut bench = Bench::new(vec![PodInfo {
        model: String::new(),
        confined: Some(Confined::NotEnforced),
        workspace: "/somewhere/else/far".into(),
        ..pod("alice-with-a-name", State::Running)
    }]);
    bench.size(40, 12);
    bench.go_to("alice-with-a-name");
    let head = bench.screen().lines().next().unwrap_or_default().to_owned();
    assert!(head.starts_with(" ali") && head.contains(" in far"), "{head}");
    assert!(crate::rows::width(&head) <= 40, "{head}");
}

#[test]
fn each_screen_shows_every_key_of_the_leader_with_whole_words() {
    for (width, height) in [(40, 12), (80, 24), (120, 40), (200, 60)] {
        let mut bench = bench(width, height);
        bench.press("ctrl-x");
        let screen = bench.screen();
        let all = |brief| {
            let hints = bench.app.leader_hints(brief);
            let is_whole = |hint: &crate::screen::pane::actionbar::Hint| {
                screen.contains(&format!(" {} {}", hint.key, hint.does))
            };
            hints.iter().find(|hint| !is_whole(hint)).map(|hint| hint.key.clone())
        };
        let missing = all(true).and(all(false));
        assert_eq!(missing, None, "{screen}");
    }
}

#[test]
fn screen_40x12_tree() {
    let mut bench = bench(40, 12);
    bench.press("ctrl-x");
    bench.press("t");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24() {
    insta::assert_snapshot!(bench(80, 24).screen());
}

#[test]
fn screen_120x40() {
    insta::assert_snapshot!(bench(120, 40).screen());
}

#[test]
fn screen_200x60() {
    insta::assert_snapshot!(bench(200, 60).screen());
}

#[test]
fn a_context_above_its_window_and_an_effort_that_is_not_sent_are_said_so_in_the_header() {
    let header = |tokens, unsent: Option<&str>| {
        let mut bench = bench(200, 24);
        bench.shown(PodInfo {
            context_tokens: tokens,
            context_window: 1000,
            effort: Some(yoi::protocol::Effort::High),
            effort_unsent: unsent.map(str::to_owned),
            ..pod("alice", State::Running)
        });
        bench.screen()
    };
    assert!(header(990, None).contains("ctx 99%"));
    let full = header(1000, None);
    assert!(full.contains("ctx full") && full.contains("effort high ·"), "{full}");
    let over = header(1030, Some("no way"));
    assert!(over.contains("ctx full") && over.contains("effort high (not sent)"), "{over}");
    assert!(!over.contains("103"), "{over}");
}

#[test]
fn screen_80x24_first_start() {
    let mut bench = Bench::new(vec![]);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_palette() {
    let mut bench = bench(80, 24);
    bench.press("ctrl-p");
    bench.type_in("re");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_command_line() {
    let mut bench = bench(80, 24);
    bench.press("ctrl-c");
    bench.shown(pod("alice", State::Idle));
    bench.press("ctrl-c");
    bench.type_in(":st");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_queue_and_several_lines() {
    let mut bench = bench(80, 24);
    let queue = ["then run the tests", "and write it down"];
    let queue = queue.map(|text| Queued {
        id: text.into(),
        input: crate::screen::pane::composer::tests::plain(text),
        enters: false,
    });
    bench.shown(PodInfo { queue: queue.to_vec(), ..pod("alice", State::Running) });
    bench.press("ctrl-j");
    bench.type_in("日本語👩‍💻é");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_confirmation_on_leaving() {
    let mut bench = bench(80, 24);
    bench.press("ctrl-x");
    bench.press("q");
    bench.wait(300);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_leader() {
    let mut bench = bench(80, 24);
    bench.press("ctrl-x");
    insta::assert_snapshot!(bench.screen());
}

/// A family three deep with two peers and two approval requests.
fn relations(columns: u16, rows: u16) -> Bench {
    let mut bench = Bench::new(family());
    bench.size(columns, rows);
    bench.type_in(":open alice");
    bench.press("enter");
    bench.shown(child("cases", "tester", State::Running));
    for peer in ["bob", "docs"] {
        let names = (PodName::parse("alice"), PodName::parse(peer));
        let (Ok(source), Ok(peer)) = names else { panic!("names") };
        bench.host(None, Event::Peered { source, peer });
    }
    let request = |id: &str, pod: &str, command: &str, at: u64| ApprovalRequest {
        lineage: vec![PodName::parse("alice").expect("a name")],
        since: NOON + at,
        ..approval(id, pod, command)
    };
    let publish = request("q", "tester", "cargo publish --dry-run\n日本語の名前", 80_000);
    let fetch = request("r", "scout", "cargo fetch", 100_000);
    let also = request("s", "cases", "cargo fetch", 110_000);
    for approval in [publish, fetch, also] {
        bench.host(None, Event::ApprovalRequested { approval: Box::new(approval) });
    }
    bench
}

#[test]
fn screen_family_80x24() {
    insta::assert_snapshot!(relations(80, 24).screen());
}

#[test]
fn screen_family_120x40() {
    insta::assert_snapshot!(relations(120, 40).screen());
}

#[test]
fn screen_family_200x60() {
    insta::assert_snapshot!(relations(200, 60).screen());
}

#[test]
fn screen_family_80x24_inbox() {
    let mut bench = relations(80, 24);
    bench.press("ctrl-n");
    bench.wait(300);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_family_40x12_inbox() {
    let mut bench = relations(40, 12);
    bench.press("ctrl-n");
    bench.wait(300);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_family_40x12_peers() {
    let mut bench = relations(40, 12);
    bench.press("tab");
    bench.press("tab");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_family_120x40_inbox() {
    let mut bench = relations(120, 40);
    bench.press("ctrl-n");
    bench.press("j");
    bench.wait(300);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_family_80x24_rule() {
    let mut bench = relations(80, 24);
    bench.press("ctrl-n");
    bench.wait(400);
    bench.press("T");
    bench.wait(300);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_family_80x24_explain() {
    let mut bench = relations(80, 24);
    bench.type_in(":explain tester");
    let asked = bench.press("enter");
    let sheet = Event::CommandSheet(Box::default());
    crate::screen::app::tests::answer(&mut bench, asked, sheet);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_family_80x24_menu() {
    let mut bench = relations(80, 24);
    bench.press("tab");
    bench.press("x");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn screen_80x24_ascii() {
    let mut bench = relations(80, 24);
    bench.host(
        None,
        Event::ApprovalDecided {
            approval: "q".into(),
            pod: PodName::parse("tester").expect("a name"),
            verdict: yoi::protocol::Verdict::Once,
        },
    );
    bench.app.setup.glyphs = crate::screen::pane::glyph::Glyphs::Ascii;
    bench.app.tree.glyphs = crate::screen::pane::glyph::Glyphs::Ascii;
    let screen = bench.screen();
    assert!(screen.is_ascii(), "{screen}");
    insta::assert_snapshot!(screen);
}

/// Every row of the screen is exactly as wide as the screen, whatever stands in it.
fn check_rows(bench: &mut Bench) {
    let buffer = bench.painted();
    let columns = usize::from(buffer.area.width);
    for row in buffer.content.chunks(columns) {
        let mut x = 0;
        while x < columns {
            let wide = width(row[x].symbol()).max(1);
            let covered = row.iter().skip(x + 1).take(wide - 1);
            assert!(covered.into_iter().all(|cell| cell.symbol() == " "), "column {x}");
            x += wide;
        }
        assert_eq!(
            x,
            columns,
            "{:?}",
            row.iter().map(ratatui::buffer::Cell::symbol).collect::<String>()
        );
    }
}

#[test]
fn every_row_is_exactly_the_width_at_every_size() {
    for (columns, rows) in [
        (40, 12),
        (41, 13),
        (63, 30),
        (64, 14),
        (65, 13),
        (80, 24),
        (120, 40),
        (200, 60),
        (300, 100),
    ] {
        let mut bench = relations(columns, rows);
        bench.shown(PodInfo {
            activity: Some("日本語👩‍💻é in the activity of a Pod".into()),
            why: Some("日本語👩‍💻é ".repeat(20)),
            ..pod("alice", State::NeedsYou)
        });
        bench.type_in("日本語👩‍💻é".repeat(12).as_str());
        check_rows(&mut bench);
        for key in
            ["tab", "tab", "tab", "tab", "enter", "T", "ctrl-p", "esc", "f1", "esc", "ctrl-x"]
        {
            bench.press(key);
            bench.wait(400);
            check_rows(&mut bench);
        }
    }
}

#[test]
fn no_size_is_too_small_to_paint() {
    for columns in (1..70).step_by(3) {
        for rows in 1..20 {
            let mut bench = relations(columns, rows);
            bench.screen();
            for key in ["tab", "tab", "tab", "tab", "enter", "ctrl-p", "esc", "ctrl-x", "q", "tab"]
            {
                bench.press(key);
                bench.screen();
            }
        }
    }
}

#[test]
fn the_caret_stands_behind_what_was_typed() {
    let mut bench = Bench::new(vec![pod("alice", State::Idle)]);
    bench.type_in("日本語👩‍💻é");
    bench.app.prepare_frame();
    let (columns, rows) = bench.app.size;
    let mut terminal =
        ratatui::Terminal::new(ratatui::backend::TestBackend::new(columns, rows)).expect("one");
    terminal.draw(|frame| super::draw(&bench.app, frame)).expect("a frame");
    let caret = terminal.get_cursor_position().expect("a caret");
    // ` alice › `, three wide signs, one wide cluster, one letter.
    assert_eq!((caret.x, caret.y), (9 + 6 + 2 + 1, 22));
}

type Opens = fn(&mut Bench);

/// Whatever lies on top of the panes, and each of them in focus.
fn everything() -> Vec<(&'static str, Bench)> {
    let opened: [(&str, Opens); 8] = [
        ("composer", |_| {}),
        ("tree", |bench| drop(bench.press("tab"))),
        ("transcript", |bench| drop(bench.press("shift-tab"))),
        ("palette", |bench| drop(bench.press("ctrl-p"))),
        ("leader", |bench| drop(bench.press("ctrl-x"))),
        ("inbox", |bench| drop(bench.press("ctrl-n"))),
        ("help", |bench| drop(bench.press("f1"))),
        ("rule", |bench| {
            bench.press("ctrl-n");
            bench.wait(400);
            bench.press("T");
        }),
    ];
    let open = |(name, open): (&'static str, Opens)| {
        let mut bench = bench(120, 40);
        let request = approval("q", "tester", "cargo publish --dry-run\n日本語の名前");
        bench.host(Some("tester"), Event::ApprovalRequested { approval: Box::new(request) });
        open(&mut bench);
        (name, bench)
    };
    opened.into_iter().map(open).collect()
}

#[test]
fn a_frame_of_another_size_than_the_app_knows_of_stays_empty() {
    for (name, mut bench) in everything() {
        bench.app.prepare_frame();
        for (columns, rows) in [(60, 20), (120, 39), (119, 40), (200, 60), (1, 1)] {
            let backend = ratatui::backend::TestBackend::new(columns, rows);
            let mut terminal = ratatui::Terminal::new(backend).expect("a terminal");
            terminal.draw(|frame| crate::screen::view::draw(&bench.app, frame)).expect("a frame");
            let empty = terminal.backend().buffer().content.iter().all(|cell| cell.symbol() == " ");
            assert!(empty, "{name} at {columns}x{rows}");
        }
    }
}

mod sheets;
