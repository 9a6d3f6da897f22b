//! Long histories, lost events, rewinds: what is kept, dropped and read again.

use super::*;
use crate::screen::pane::transcript::pages::Kept;

fn numbered(count: usize) -> Vec<Entry> {
    (0..count).map(|n| said(&format!("entry {n} {}", "text ".repeat(10)))).collect()
}

fn top(bench: &mut Bench) -> String {
    bench.rows()[0].trim().to_owned()
}

#[test]
fn the_top_of_an_empty_transcript_is_reached() {
    let mut bench = Bench::new(Vec::new()).sized(40, 8);
    bench.transcript.asked();
    bench.transcript.scroll(Scroll::Top);
    assert!(bench.screen().contains("loading"), "{}", bench.screen());
    bench.transcript.page(Vec::new(), None, Vec::new(), 0);
    assert!(!bench.screen().contains("loading"), "{}", bench.screen());
    bench.transcript.scroll(Scroll::Top);
    assert!(!bench.screen().contains("loading"), "{}", bench.screen());
}

#[test]
fn a_hundred_thousand_entries_stay_within_the_budget_and_are_all_reachable() {
    let mut bench = Bench::new(numbered(100_000)).sized(80, 24).open();
    bench.transcript.scroll(Scroll::Top);
    let mut most = 0;
    bench.layout();
    while bench.serve() {
        bench.layout();
        most = most.max(bench.transcript.pages.bytes());
    }
    assert!(most < 9 * 1024 * 1024, "{most} bytes were held");
    let kept = bench.transcript.pages.newest_first().filter(|(_, block)| block.cache.is_some());
    assert!(kept.count() < 600, "only rows near the view are kept");
    assert!(bench.screen().contains("entry 0 text"));
    bench.transcript.scroll(Scroll::Tail);
    assert!(bench.screen().contains("entry 99999 text"), "the tail is always here");
    bench.transcript.scroll(Scroll::Page(-3));
    bench.find_visible_rows();
    assert!(top(&mut bench).starts_with("entry 999"), "{}", top(&mut bench));
}

#[test]
fn dropped_pages_come_back_in_their_place() {
    let mut bench = Bench::new(numbered(2000)).sized(80, 20).paged(8192).open();
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    let oldest = bench.transcript.pages.oldest().expect("blocks").page;
    bench.transcript.pages.drop_beyond(&[oldest], 0);
    assert!(bench.transcript.pages.newest_first().count() < 400);
    let mut seen = Vec::new();
    for _ in 0..400 {
        seen.extend(bench.rows());
        bench.transcript.scroll(Scroll::Page(1));
        bench.find_visible_rows();
    }
    for n in 0..2000 {
        let wanted = format!("entry {n} ");
        assert!(seen.iter().any(|row| row.contains(&wanted)), "{wanted} is missing");
    }
    assert!(bench.transcript.is_at_tail());
    let all: Vec<Option<EntryId>> =
        bench.transcript.pages.newest_first().map(|(_, b)| b.id).collect();
    let log: Vec<Option<EntryId>> = bench.log.iter().rev().map(|entry| entry.id).collect();
    assert_eq!(all, log, "every entry once, in order");
}

#[test]
fn a_call_and_its_answer_find_each_other_over_the_border_of_pages() {
    let filler = "text ".repeat(100);
    let log = vec![
        you("go"),
        call("a", "Bash", json!({"command": "make"})),
        result(2000, "a", "exit status 0", Some(&filler), false),
        said(&filler),
    ];
    let mut bench = Bench::new(log).sized(60, 6).paged(700);
    bench.layout();
    for _ in 0..2 {
        bench.serve();
    }
    bench.transcript.scroll(Scroll::Lines(-40));
    assert!(bench.screen().contains("  result  exit status 0"), "{}", bench.screen());
    bench.find_visible_rows();
    bench.transcript.scroll(Scroll::Top);
    let screen = bench.screen();
    assert!(
        screen.contains("make    ") && screen.contains(" ok") && !screen.contains("result"),
        "{screen}"
    );
}

#[test]
fn lost_events_leave_a_gap_that_is_filled_when_it_comes_into_view() {
    let mut bench = Bench::new(numbered(100)).sized(80, 10).paged(2000).open();
    bench.transcript.scroll(Scroll::Lines(-20));
    bench.find_visible_rows();
    let read = bench.rows();
    bench.log.extend((100..200).map(|n| said(&format!("entry {n} later"))));
    bench.event(&Event::Lagged);
    bench.find_visible_rows();
    assert_eq!(bench.rows()[..9], read[..9], "the line that is read stays");
    let mut seen = Vec::new();
    for _ in 0..60 {
        bench.transcript.scroll(Scroll::Page(1));
        bench.find_visible_rows();
        seen.extend(bench.rows());
    }
    for n in 100..200 {
        let wanted = format!("entry {n} later");
        assert!(seen.iter().any(|row| row.contains(&wanted)), "{wanted} is missing");
    }
    assert!(bench.transcript.is_at_tail());
}

#[test]
fn after_a_rewind_later_blocks_leave_and_no_block_is_shown_twice() {
    let mut bench = Bench::new(numbered(60)).sized(80, 12).paged(2000).open();
    bench.transcript.scroll(Scroll::Page(-3));
    bench.find_visible_rows();
    bench.log.truncate(50);
    bench.log.push(said("another way"));
    bench.transcript.scroll(Scroll::Tail);
    bench.event(&Event::CompactDone { new_segment_id: yoi::protocol::SegmentId::new() });
    bench.find_visible_rows();
    let screen = bench.screen();
    assert!(screen.contains("another way") && !screen.contains("entry 55"), "{screen}");
    let ids: Vec<_> = bench.transcript.pages.newest_first().filter_map(|(_, b)| b.id).collect();
    let expected: Vec<_> = bench.log.iter().rev().take(ids.len()).filter_map(|e| e.id).collect();
    assert_eq!(ids, expected);
}

/// A bench whose log ends with a rewind to before everything; with `tell` its events are seen.
fn rewound(tell: bool) -> Bench {
    let mut bench = Bench::new(numbered(3)).sized(80, 24).open();
    let at = serde_json::json!({"segment": yoi::protocol::SegmentId::new(), "offset": 9});
    let border = Entry::extension(yoi::protocol::entry::domain::REWOUND, json!({ "to": at }));
    bench.log.clear();
    if tell {
        bench.commit(border);
        let summary = yoi::protocol::RewindSummary {
            truncated_to_entries: 1,
            discarded_entries: 3,
            tool_side_effect_warning: false,
        };
        bench.event(&Event::RewindApplied { entries: Vec::new(), input: Vec::new(), summary });
    } else {
        bench.log.push(border);
        bench.event(&Event::Lagged);
    }
    bench.find_visible_rows();
    bench
}

#[test]
fn what_a_rewind_drops_leaves_the_screen_also_where_nothing_before_it_stands() {
    for tell in [true, false] {
        let screen = rewound(tell).screen();
        assert!(screen.contains("rewound") && !screen.contains("entry "), "{tell}: {screen}");
    }
}

#[test]
fn a_growing_transcript_closes_its_pages_and_drops_them_too() {
    let mut bench = Bench::new(numbered(3)).sized(80, 12).open();
    for n in 3..30_000 {
        bench.commit(said(&format!("entry {n} {}", "text ".repeat(60))));
    }
    bench.layout();
    assert!(bench.transcript.pages.bytes() < 9 * 1024 * 1024);
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    assert!(bench.screen().contains("entry 0 text"));
}

#[test]
fn a_damaged_line_is_shown_once_also_after_its_page_was_read_again() {
    let mut pages = Pages::default();
    let damaged = Line::Damaged { damaged: "expected value".into(), byte: 0 };
    let lines = vec![damaged, Line::Whole(Box::new(said("behind it")))];
    let all = |pages: &Pages| pages.newest_first().count();
    pages.renew(lines.clone(), None, Kept::Joined);
    pages.renew(lines, None, Kept::Joined);
    assert_eq!(all(&pages), 2);
}

#[test]
fn a_request_and_its_decision_are_one_line_wherever_the_page_ends() {
    use yoi::protocol::Verdict;
    let approval = crate::screen::app::tests::approval("q", "alice", "cargo fetch");
    let asked = Entry::extension("yoi.asked", serde_json::to_value(&approval).expect("an ask"));
    let answer = |verdict| serde_json::json!({ "ask": "q", "verdict": verdict });
    let answered = Entry::extension("yoi.answered", answer(Verdict::Once));
    let mut pages = Pages::default();
    let line = |entry: &Entry| vec![Line::Whole(Box::new(entry.clone()))];
    pages.renew(line(&answered), asked.id, Kept::Joined);
    assert_eq!(shown(&pages), ["allowed once"]);
    pages.prepend(line(&asked), None);
    assert_eq!(shown(&pages), ["waited for you: Bash cargo fetch · allowed once"]);

    let mut live = Pages::default();
    live.renew(line(&asked), None, Kept::Joined);
    assert_eq!(shown(&live), ["▲ waits for you: Bash cargo fetch"]);
    assert!(live.decide("q", &Verdict::Deny { reason: "not now".into() }));
    assert_eq!(shown(&live), ["waited for you: Bash cargo fetch · denied: not now"]);
}

#[test]
fn the_time_of_a_call_does_not_hold_the_wait_for_a_person_live_and_when_it_is_read_again() {
    let bash = |id: &str| call(id, "Bash", serde_json::json!({ "command": id }));
    let extension = |after, domain: &str, payload| Entry {
        ts: NOON + after,
        ..Entry::extension(domain, payload)
    };
    let approval = yoi::protocol::ApprovalRequest {
        call_id: "fetch".into(),
        ..crate::screen::app::tests::approval("q", "alice", "cargo fetch")
    };
    let answer = serde_json::json!({ "ask": "q", "verdict": yoi::protocol::Verdict::Once });
    let log = [
        bash("look"),
        bash("fetch"),
        bash("build"),
        result(14_000, "look", "Exit 0", None, false),
        extension(14_000, "yoi.asked", serde_json::to_value(&approval).expect("an ask")),
        extension(604_000, "yoi.answered", answer),
        result(619_000, "fetch", "Exit 0", None, false),
        result(635_000, "build", "Exit 0", None, false),
        said("done"),
    ];
    let times = |bench: &mut Bench| {
        let screen = bench.screen();
        let time = |row: &str| row.rsplit_once("ok · ").map(|(_, time)| time.trim().to_owned());
        screen.lines().filter_map(time).collect::<Vec<_>>()
    };
    let mut live = Bench::new(Vec::new()).sized(80, 40).open();
    log.iter().for_each(|entry| live.commit(entry.clone()));
    let mut again = Bench::new(log.to_vec()).sized(80, 40).open();
    let mut in_pages = Bench::new(log.to_vec()).sized(80, 40).paged(1).open();
    for bench in [&mut live, &mut again, &mut in_pages] {
        assert_eq!(times(bench), ["13s", "15s", "16s"], "{}", bench.screen());
    }
}

#[test]
fn calls_that_wait_for_a_decision_are_not_said_to_be_without_a_result() {
    let bash = |id: &str| call(id, "Bash", serde_json::json!({ "command": id }));
    let approval = yoi::protocol::ApprovalRequest {
        call_id: "fetch".into(),
        ..crate::screen::app::tests::approval("q", "alice", "cargo fetch")
    };
    let asked = serde_json::to_value(&approval).expect("a request");
    let interrupted = [
        bash("lost"),
        said("one moment"),
        bash("look"),
        bash("fetch"),
        bash("build"),
        result(4_000, "look", "Exit 0", None, false),
        Entry::extension("yoi.asked", asked),
        Entry::extension(yoi::protocol::entry::domain::CUT, serde_json::json!({ "at": NOON })),
        Entry::new(Fact::RunErrored {
            interrupted: true,
            message: yoi::session::HOST_ENDED.into(),
            work: None,
        }),
    ];
    for bytes in [1, 100_000] {
        let mut bench = Bench::new(interrupted.to_vec()).sized(80, 40).paged(bytes).open();
        let status = |screen: &str, call: &str| {
            let row = screen.lines().find(|row| row.contains(&format!("Bash   {call}")));
            row.map(|row| row.split_whitespace().skip(2).collect::<Vec<_>>().join(" "))
        };
        let screen = bench.screen();
        assert_eq!(status(&screen, "fetch").as_deref(), Some("▲ waits for you 0s"), "{screen}");
        assert!(!screen.contains("waits for you: "), "the row of the call says it: {screen}");
        assert_eq!(status(&screen, "build").as_deref(), Some("waits"), "{screen}");
        assert_eq!(status(&screen, "lost").as_deref(), Some("! no result"), "{screen}");
        let once = serde_json::json!({ "ask": "q", "verdict": yoi::protocol::Verdict::Once });
        bench.commit(Entry::extension("yoi.answered", once));
        let screen = bench.screen();
        assert!(status(&screen, "build").is_some_and(|status| status == "0s"), "{screen}");
        bench.event(&Event::RunEnd { result: RunResult::Finished, entry: None, run: None });
        assert!(!bench.screen().contains("waits"), "{}", bench.screen());
    }
}

#[test]
fn no_time_runs_for_a_call_that_waits_for_a_decision() {
    let bash = |id: &str| call(id, "Bash", serde_json::json!({ "command": id }));
    let approval = yoi::protocol::ApprovalRequest {
        call_id: "fetch".into(),
        ..crate::screen::app::tests::approval("q", "alice", "cargo fetch")
    };
    let request = serde_json::to_value(&approval).expect("a request");
    let mut bench = Bench::new(Vec::new()).sized(80, 40).open();
    for entry in [bash("look"), bash("fetch"), bash("build")] {
        bench.commit(entry);
    }
    bench.commit(Entry::extension("yoi.asked", request));
    let status = |bench: &mut Bench, call: &str| {
        let screen = bench.screen();
        let row = screen.lines().find(|row| row.contains(&format!("Bash   {call}")));
        row.and_then(|row| row.split_whitespace().nth(2)).unwrap_or_default().to_owned()
    };
    let all = |bench: &mut Bench| ["look", "fetch", "build"].map(|call| status(bench, call));
    assert_eq!(all(&mut bench), ["0s", "▲", "waits"]);
    let once = serde_json::json!({ "ask": "q", "verdict": yoi::protocol::Verdict::Once });
    bench.commit(Entry::extension("yoi.answered", once));
    assert_eq!(all(&mut bench), ["0s", "0s", "0s"]);
}

#[test]
fn a_decision_is_right_below_its_call_or_names_what_waited() {
    use yoi::protocol::Verdict;
    let bash = |id: &str| call(id, "Bash", serde_json::json!({ "command": id }));
    let approval = yoi::protocol::ApprovalRequest {
        call_id: "fetch".into(),
        ..crate::screen::app::tests::approval("q", "alice", "cargo fetch")
    };
    let asked = serde_json::to_value(&approval).expect("a request");
    let log = |calls: &[Entry], verdict: &Verdict| {
        let answer = serde_json::json!({ "ask": "q", "verdict": verdict });
        let decided = [
            Entry::extension("yoi.asked", asked.clone()),
            Entry::extension("yoi.answered", answer),
        ];
        [calls, &decided, &[result(2_000, "fetch", "Exit 0", None, false)]].concat()
    };
    let screens = |log: Vec<Entry>| {
        let mut live = Bench::new(Vec::new()).sized(60, 12).open();
        log.iter().for_each(|entry| live.commit(entry.clone()));
        [live.screen(), Bench::new(log).sized(60, 12).open().screen()]
    };
    for screen in screens(log(&[bash("fetch")], &Verdict::Once)) {
        let rows: Vec<&str> = screen.lines().collect();
        assert!(rows[0].starts_with("  Bash   fetch ") && rows[0].ends_with(" ok"), "{screen}");
        assert_eq!(rows[1], "         allowed once");
    }
    let denied = Verdict::Deny { reason: "not now".into() };
    let mut refused = log(&[bash("fetch")], &denied);
    refused.pop();
    refused.push(result(2_000, "fetch", "denied: not now", None, true));
    for screen in screens(refused) {
        assert_eq!(screen.matches("not now").count(), 1, "{screen}");
        assert!(screen.contains("you said no"), "{screen}");
    }
    for screen in screens(log(&[bash("fetch"), bash("build")], &denied)) {
        let row = screen.lines().find(|row| row.contains("waited")).expect("the decision");
        assert!(row.starts_with("  waited  Bash cargo fetch "), "{screen}");
        assert!(row.ends_with(" ! denied: not now"), "{screen}");
    }
}

/// The words of every block that is shown.
fn shown(pages: &Pages) -> Vec<String> {
    let blocks = pages.newest_first().map(|(_, block)| block).filter(|block| !block.gone);
    let mut texts: Vec<String> = blocks.map(Block::plain).collect();
    texts.reverse();
    texts
}

/// The first line of a segment after a compaction.
fn compacted(summary: &str) -> Entry {
    let text = format!("{}\n\n{summary}", yoi::protocol::entry::COMPACTED);
    let value = serde_json::json!({
        "kind": "segment_start", "ts": 1, "id": EntryId::new(),
        "session_id": yoi::protocol::SessionId::new(), "config": {"stop_sequences": []},
        "history": [{"kind": "message", "role": "system", "content": [{"kind": "text", "text": text}]}],
        "compacted_from": {"segment_id": yoi::protocol::SegmentId::new(), "at_turn_index": 1},
    });
    serde_json::from_value(value).expect("an entry")
}

#[test]
fn the_summary_of_a_compaction_unfolds_in_the_transcript() {
    let summary = "The tests pass.\n\nStill to do: the docs.";
    let mut bench = Bench::new(vec![said("before"), compacted(summary), said("behind")]).open();
    let folded = bench.screen();
    assert!(folded.contains("compacted") && folded.contains("The tests pass."), "{folded}");
    assert!(!folded.contains("Still to do"), "{folded}");
    bench.transcript.toggle_fold_all();
    let unfolded = bench.screen();
    assert!(unfolded.contains("Still to do: the docs."), "{unfolded}");
    assert!(!unfolded.contains("What follows is the handover"), "{unfolded}");
}

#[test]
fn a_rewind_and_its_undo_leave_a_border_that_says_how_much_went_and_came_back() {
    let at = serde_json::json!({"segment": yoi::protocol::SegmentId::new(), "offset": 9});
    let numbers = serde_json::json!({"messages": 2, "tool_calls": 3});
    let border = |payload| Entry::extension(yoi::protocol::entry::domain::REWOUND, payload);
    let entries = vec![
        said("kept"),
        border(serde_json::json!({"to": at, "drops": numbers})),
        border(serde_json::json!({"undo": at, "returns": numbers, "drops": numbers})),
        border(serde_json::json!({"fork": at})),
    ];
    let screen = Bench::new(entries).open().screen();
    for words in [
        "rewound: 2 messages, 3 tool calls dropped",
        "rewind undone: 2 messages, 3 tool calls back",
        "─ forked ─",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
}

#[test]
fn a_run_that_its_host_did_not_live_to_end_is_said_to_be_interrupted_once() {
    let mut bench = Bench::new(numbered(1)).sized(80, 24).open();
    let at = serde_json::json!({"at": NOON});
    bench.commit(Entry::extension(yoi::protocol::entry::domain::CUT, at));
    let message = yoi::session::HOST_ENDED.into();
    bench.commit(Entry::new(Fact::RunErrored { interrupted: true, message, work: None }));
    let screen = bench.screen();
    assert_eq!(screen.matches("interrupted").count(), 1, "{screen}");
    assert!(screen.contains("(host ended)"), "{screen}");
}
