//! Whole screens.

use super::*;
use yoi::protocol::entry::{SegmentOrigin, SystemItem, domain};
use yoi::protocol::item::RequestConfig;
use yoi::protocol::{PodEvent, SegmentId, SessionId};

/// A bit of everything that a log holds.
fn story() -> Vec<Entry> {
    let system = |item| entry(0, Fact::SystemItem { item, taken: None });
    let edit = json!({"file_path": "ui/run.rs", "old_string": "one\ntwo\nthree\n",
        "new_string": "one\n2\nthree\n"});
    vec![
        you("fix the flaky test in ui/run.rs, 日本語👩‍💻é too"),
        system(SystemItem::FileAttachment {
            path: "ui/run.rs".into(),
            body: "fn main() {}\nfn other() {}\n".into(),
            images: vec![],
        }),
        thought("The test waits for a *timer*.\nIt should wait for the event."),
        said("I'll ask scout to **reproduce** it first:\n\n- run it `100` times\n- read the log"),
        call("1", "SpawnPod", json!({"name": "scout", "task": "reproduce it"})),
        result(1200, "1", "spawned pod `scout`", None, false),
        call("2", "Bash", json!({"command": "cargo test -p ui flaky"})),
        result(
            13_345,
            "2",
            "Exit 101 after 12.3 s",
            Some("running 1 test\n\u{1b}[31mFAILED\u{1b}[0m\n"),
            false,
        ),
        call("2b", "Read", json!({"file_path": "/etc/shadow"})),
        result(12_400, "2b", "path is outside allowed scope: /etc/shadow", None, true),
        call("3", "Edit", edit),
        result(13_500, "3", "Edited ui/run.rs (1 replacement(s))", Some("   1\tone\n"), false),
        system(SystemItem::PodEvent {
            event: PodEvent::TurnEnded { pod_name: "scout".into(), result: None },
            body: "[Notification]\npod `scout` finished a turn".into(),
        }),
        system(SystemItem::Notification {
            message: "[Peer message from `casa:reviewer`]\nlooks good to me".into(),
            body: "[Notification]\n[Peer message from `casa:reviewer`]\nlooks good to me".into(),
            from: None,
        }),
        said(
            "| test | runs |\n|---|--:|\n| flaky | 100 |\n\n```rust\nfn fixed() {} // 日本\n```\nDone.",
        ),
        entry(
            0,
            Fact::RunErrored {
                interrupted: false,
                message: "anthropic: 529 overloaded".into(),
                work: None,
            },
        ),
        Entry::extension(domain::CUT, json!({"at": NOON})),
        entry(0, Fact::RunErrored { interrupted: true, message: "Cancelled".into(), work: None }),
    ]
}

#[test]
fn a_story_on_a_wide_screen() {
    insta::assert_snapshot!(Bench::new(story()).sized(90, 42).open().screen());
}

#[test]
fn a_story_on_a_narrow_screen() {
    insta::assert_snapshot!(Bench::new(story()).sized(38, 60).open().screen());
}

#[test]
fn a_story_on_a_screen_of_twenty_columns() {
    insta::assert_snapshot!(Bench::new(story()).sized(20, 80).open().screen());
}

#[test]
fn the_overview_is_one_line_a_block() {
    let mut bench = Bench::new(story()).sized(60, 20).open();
    bench.transcript.set_detail(Detail::Overview);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn full_detail_unfolds_everything() {
    let mut story = story();
    story.push(entry(
        0,
        Fact::LlmUsage {
            history_len: 3,
            input_total_tokens: 1200,
            cache_read_tokens: 1000,
            cache_write_tokens: 0,
            output_tokens: 45,
            cost: Some(0.0123),
        },
    ));
    let mut bench = Bench::new(story).sized(70, 64).open();
    bench.transcript.set_detail(Detail::Full);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn a_damaged_line_is_shown_in_its_place() {
    let config = RequestConfig::default();
    let origin = |turn| SegmentOrigin { segment_id: SegmentId::new(), at_turn_index: turn };
    let start = |compacted, forked| Fact::SegmentStart {
        session_id: SessionId::new(),
        system_prompt: None,
        config: config.clone(),
        history: Vec::new(),
        forked_from: forked,
        compacted_from: compacted,
    };
    let lines = vec![
        Line::Whole(Box::new(you("before"))),
        Line::Damaged { damaged: "expected value at line 1 column 1".into(), byte: 4711 },
        Line::Whole(Box::new(entry(0, start(Some(origin(1)), None)))),
        Line::Cut { cut_bytes: 1_234_567, entry: Box::new(said("the beginning of a long answer")) },
        Line::Whole(Box::new(entry(0, Fact::Unknown(json!({"kind": "hologram", "x": 1}))))),
        Line::Whole(Box::new(entry(0, start(None, Some(origin(0)))))),
        Line::Whole(Box::new(entry(
            0,
            Fact::AssistantItem {
                item: Item::message(Role::Assistant, "this was be"),
                origin: None,
                native: None,
                partial: true,
            },
        ))),
        Line::Whole(Box::new(entry(
            0,
            Fact::RunCompleted { interrupted: false, result: "limit_reached".into(), work: None },
        ))),
    ];
    let mut bench = Bench::new(Vec::new()).sized(66, 18);
    bench.transcript.asked();
    bench.transcript.page(lines, None, Vec::new(), 0);
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn an_unfolded_call_shows_its_arguments_and_its_result() {
    let mut bench = Bench::new(story()).sized(60, 24).open();
    bench.transcript.find("flaky\" ");
    bench.transcript.find("cargo test");
    bench.transcript.unfold();
    bench.transcript.find("");
    insta::assert_snapshot!(bench.screen());
}

#[test]
fn every_row_of_any_size_is_exactly_as_wide_as_the_pane() {
    for detail in [Detail::Overview, Detail::Normal, Detail::Full] {
        for (width, height) in
            (1..60).map(|w| (w, 30)).chain([(80, 24), (120, 40), (200, 60), (5, 1)])
        {
            let mut bench = Bench::new(story()).sized(width, height).open();
            bench.transcript.set_detail(detail);
            bench.transcript.step(-1);
            for row in bench.rows() {
                assert_eq!(
                    crate::rows::width(&row),
                    usize::from(width),
                    "{row:?} at {width}x{height}"
                );
                assert!(!row.chars().any(char::is_control));
            }
        }
    }
}

#[test]
fn a_message_that_a_call_sent_shows_whether_it_waits_or_was_read() {
    use yoi::protocol::mesh::SentMessage;
    use yoi::protocol::{PodInfo, PodName, State};
    let bob = PodName::parse("bob").expect("a name");
    let sent_to = |id: &str, tool: &str, pods: Vec<PodName>, status: &str| {
        let entry = result(10, id, "sent", None, false);
        let Fact::ToolResult { item, files, .. } = entry.fact.clone() else { panic!("a result") };
        let sent =
            SentMessage { id: format!("m{id}"), status: status.into(), pods, handed_over: false };
        let result = Entry { fact: Fact::ToolResult { item, files, sent: Some(sent) }, ..entry };
        let arguments = json!({"name": "bob", "message": "look", "to": "pi-1", "body": "look"});
        [call(id, tool, arguments), result]
    };
    let log = [
        sent_to("1", "SendToPeerPod", vec![bob.clone()], "received"),
        sent_to("2", "agent_send", Vec::new(), "received"),
        sent_to("3", "agent_send", Vec::new(), "denied"),
    ];
    let mut bench = Bench::new(log.concat()).sized(60, 8).open();
    let states = |bench: &mut Bench| {
        let rows = bench.rows();
        let rows = rows.iter().filter(|row| row.contains("look"));
        rows.map(|row| row.split_whitespace().last().unwrap_or("").to_owned()).collect::<Vec<_>>()
    };
    let info = |waiting: &[&str]| PodInfo {
        waiting: waiting.iter().map(ToString::to_string).collect(),
        ..crate::screen::app::tests::pod("bob", State::Running)
    };
    bench.family.replace(vec![info(&["m1"])], Vec::new(), Vec::new());
    assert_eq!(states(&mut bench), ["queued", "received", "denied"]);
    bench.family.set(info(&[]));
    assert_eq!(states(&mut bench), ["read", "received", "denied"]);
}

#[test]
fn a_message_that_a_person_sent_in_the_name_of_the_pod_shows_to_whom_and_what_became_of_it() {
    use yoi::protocol::mesh::SentMessage;
    use yoi::protocol::{NotificationSource, SentByPerson};
    let sent = |to: &str, status: &str, reason: Option<&str>| {
        let sent =
            SentMessage { id: "m".into(), status: status.into(), pods: vec![], handed_over: false };
        let by = SentByPerson { to: to.into(), sent, reason: reason.map(str::to_owned) };
        let from = Some(NotificationSource::Person(Box::new(by)));
        let message = "look at ui/run.rs".to_owned();
        let item = SystemItem::Notification { message, body: "for the model".into(), from };
        entry(0, Fact::SystemItem { item, taken: None })
    };
    let log = vec![sent("pi-1", "received", None), sent("ghost", "denied", Some("it is not here"))];
    let screen = Bench::new(log).sized(60, 12).open().screen();
    insta::assert_snapshot!(screen);
}

#[test]
fn the_last_message_of_a_child_is_in_the_transcript_of_its_parent_with_its_beginning() {
    let report = format!("All **12** tests pass.\n\n{}- and no other", "- a row\n".repeat(9));
    let event = PodEvent::TurnEnded { pod_name: "scout".into(), result: Some(report) };
    let body = "[Notification]\npod `scout` finished a turn. Its last message:".to_owned();
    let item = SystemItem::PodEvent { event, body };
    let log = vec![entry(0, Fact::SystemItem { item, taken: None })];
    let mut bench = Bench::new(log).sized(60, 12).open();
    let folded = bench.screen();
    let begins = "  child scout 12:40\n  │ All 12 tests pass.\n  │\n  │ • a row\n";
    assert!(folded.starts_with(begins), "{folded}");
    assert!(folded.contains("  │ … 6 more rows\n") && !folded.contains("finished"), "{folded}");
    bench.transcript.set_detail(Detail::Full);
    let open = bench.screen();
    assert!(open.contains("• and no other") && !open.contains("more rows"), "{open}");
}

#[test]
fn code_and_a_message_of_the_person_have_a_ground_of_their_own() {
    let code = "So:\n\n```sh\nls\n\n```\n\n- then\n\n  ```\n  cd\n  ```\n";
    let mut bench = Bench::new(vec![you("one\ntwo"), said(code)]).sized(120, 20).open();
    let (theme, _) = Theme::load_for("night", None, Depth::True);
    let buffer = bench.buffer_in(&theme);
    let raised = |y: u16| {
        let on = |x: &u16| Some(buffer[(*x, y)].bg) == theme.raised.bg;
        let columns: Vec<u16> = (0..120).filter(on).collect();
        columns.first().zip(columns.last()).map(|(from, to)| (*from, *to))
    };
    let rows = bench.rows();
    let row = |text: &str| {
        let found = rows.iter().position(|row| row.trim().starts_with(text));
        u16::try_from(found.expect("a row")).expect("a row")
    };
    assert_eq!([raised(row("▌ one")), raised(row("▌ two"))], [Some((0, 119)); 2]);
    // The language, the code and its empty line; prose ends at the same column.
    let first = row("sh");
    assert_eq!([first, first + 1, first + 2].map(raised), [Some((2, 95)); 3]);
    assert_eq!((raised(row("So:")), raised(first + 3)), (None, None));
    assert_eq!(raised(row("cd")), Some((4, 95)));
    let signs = |y: u16| buffer[(0, y)].symbol().to_owned();
    assert_eq!((signs(0).as_str(), signs(1).as_str()), ("▌", " "), "the ground tells the rest");
}
