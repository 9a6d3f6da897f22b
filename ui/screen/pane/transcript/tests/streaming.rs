//! What is seen while a reply streams and tools run.

use super::*;

#[test]
fn a_reply_streams_and_its_entries_take_its_place() {
    let mut bench = Bench::new(vec![you("go")]).sized(50, 9).open();
    bench.event(&Event::ThinkingStart);
    bench.layout();
    bench.now += 4000;
    bench.event(&Event::ThinkingDelta { text: "Let me see".into() });
    insta::assert_snapshot!(bench.screen(), @r"
    ▌ go                                    you 12:40
      thinking 4s  Let me see
    ");
    assert_eq!(bench.transcript.wakes_at(bench.now), Some(NOON + 5000));
    for word in ["It is **bo", "ld** and\u{1b}[31m ", "1. one\n2. two"] {
        bench.event(&delta(word));
    }
    bench.event(&Event::ToolCallStart { id: "a".into(), name: "Bash".into() });
    bench.event(&Event::ToolCallArgsDelta { id: "a".into(), json: "{\"command\":\"car".into() });
    insta::assert_snapshot!(bench.screen(), @r"
    ▌ go                                    you 12:40
      thinking 4s  Let me see
      It is bold and 1. one
      2. two
      Bash   car                                    …
    ");
    let streamed = bench.transcript.pages.newest_first().count();
    bench.commit(Entry { ts: NOON + 5000, ..thought("Let me see") });
    bench.commit(said("It is **bold** and 1. one\n2. two"));
    let call = call("a", "Bash", json!({"command": "cargo test"}));
    bench.commit(Entry { ts: NOON + 5000, ..call });
    bench.now += 3000;
    bench.event(&Event::ToolOutput { id: "a".into(), text: "one\ntwo\nthree\n10%\r20%".into() });
    assert_eq!(bench.transcript.pages.newest_first().count(), streamed, "nothing is shown twice");
    bench.size.1 = 12;
    insta::assert_snapshot!(bench.screen(), @r"
    ▌ go                                    you 12:40

      thought  Let me see

      It is bold and 1. one
      2. two

      Bash   cargo test                            2s
        two
        three
        20%
    ");
    assert_eq!(bench.transcript.wakes_at(bench.now), Some(NOON + 8000));
    bench.commit(result(7500, "a", "exit status 0", Some("all"), false));
    bench.event(&Event::RunEnd { result: RunResult::Finished, entry: None, run: None });
    assert_eq!(bench.transcript.wakes_at(bench.now), None);
    let screen = bench.screen();
    assert!(screen.contains("Bash   cargo test                            ok\n"), "{screen}");
}

#[test]
fn uncommitted_text_leaves_when_the_run_ends() {
    let mut bench = Bench::new(vec![you("go")]).open();
    bench.event(&delta("half a "));
    bench.event(&Event::ToolCallStart { id: "a".into(), name: "Bash".into() });
    let mut partial = said("half a ");
    if let Fact::AssistantItem { partial, .. } = &mut partial.fact {
        *partial = true;
    }
    bench.commit(partial);
    bench.event(&Event::RunEnd { result: RunResult::Paused, entry: None, run: None });
    let screen = bench.screen();
    assert!(screen.contains("half a\n  (interrupted here)"), "{screen}");
    assert!(!screen.contains("Bash"), "{screen}");
}

#[test]
fn a_message_that_was_taken_back_leaves_the_transcript() {
    let mut bench = Bench::new(vec![you("before")]).open();
    let invoke = entry(0, Fact::Invoke { trigger: yoi::protocol::Trigger::UserSend });
    let from = invoke.id;
    bench.commit(invoke);
    bench.commit(you("too early"));
    assert!(bench.screen().contains("too early"));
    // The log leaves out what was taken back.
    bench.log.truncate(1);
    let back = json!({ "from": from, "input": [] });
    bench.commit(Entry::extension(yoi::protocol::entry::domain::ROLLED_BACK, back));
    bench.event(&Event::RunEnd { result: RunResult::RolledBack, entry: None, run: None });
    bench.find_visible_rows();
    let screen = bench.screen();
    assert!(screen.contains("before") && !screen.contains("too early"), "{screen}");
}

#[test]
fn a_folded_command_shows_what_it_changed_of_guarded_files() {
    let summary = "Exit 0 after 1.0 s; /w/.envrc is guarded and was created while the command ran";
    let log = vec![
        you("go"),
        call("a", "Bash", json!({"command": "x"})),
        result(1000, "a", summary, Some("long"), false),
    ];
    let mut bench = Bench::new(log).sized(60, 8).open();
    let screen = bench.screen();
    assert!(screen.contains("  Bash   x") && screen.contains("/w/.envrc is guarded"), "{screen}");
    assert!(!screen.contains("long"), "{screen}");
}

#[test]
fn a_call_without_an_answer_is_not_said_to_run_when_nothing_runs() {
    let log = vec![you("go"), call("a", "Bash", json!({"command": "x"}))];
    let mut bench = Bench::new(log).sized(40, 8).open();
    assert!(bench.screen().contains("no result"));
    assert_eq!(bench.transcript.wakes_at(bench.now), None);
}

#[test]
fn a_run_goes_on_while_a_page_is_read() {
    let log = [you("go"), call("a", "Bash", json!({"command": "make"}))];
    let mut bench = Bench::new(Vec::new()).sized(40, 8);
    bench.transcript.asked();
    let lines = log.into_iter().map(|entry| Line::Whole(Box::new(entry))).collect();
    let output = "cc main.c\n".to_owned();
    let running = InFlight::Tool { id: "a".into(), name: "Bash".into(), output };
    bench.transcript.page(lines, None, vec![running], 7);
    bench.now += 9000;
    insta::assert_snapshot!(bench.screen(), @r"
    ▌ go                          you 12:40
      Bash   make                        8s
        cc main.c
    ");
    bench.seq = 7;
    bench.event(&Event::TextDelta { text: "next".into() });
    assert!(bench.screen().contains("next"));
}

#[test]
fn a_call_under_way_whose_request_the_page_holds_waits_for_the_person() {
    let request = yoi::protocol::ApprovalRequest {
        call_id: "a".into(),
        ..crate::screen::app::tests::approval("q", "alice", "make")
    };
    let request = serde_json::to_value(&request).expect("a request");
    let asked = Entry { ts: NOON, ..Entry::extension("yoi.asked", request) };
    let log = [you("go"), call("a", "Bash", json!({"command": "make"})), asked];
    let mut bench = Bench::new(Vec::new()).sized(80, 8);
    bench.transcript.asked();
    let lines = log.into_iter().map(|entry| Line::Whole(Box::new(entry))).collect();
    let running = InFlight::Tool { id: "a".into(), name: "Bash".into(), output: String::new() };
    bench.transcript.page(lines, None, vec![running], 7);
    assert!(bench.screen().contains("▲ waits for you"), "{}", bench.screen());
    bench.seq = 7;
    let once = json!({ "ask": "q", "verdict": yoi::protocol::Verdict::Once });
    bench.commit(Entry::extension("yoi.answered", once));
    assert!(!bench.screen().contains("waits"), "{}", bench.screen());
}

#[test]
fn events_that_the_page_holds_are_passed_over_and_early_ones_wait_for_it() {
    let mut bench = Bench::new(vec![you("go")]).sized(40, 8);
    bench.transcript.apply(Some(3), &delta("lost? "));
    bench.transcript.asked();
    bench.transcript.apply(Some(4), &delta("in the page "));
    bench.transcript.apply(Some(5), &delta("after it "));
    let (lines, before) = bench.page(None);
    let text = "lost? in the page ".to_owned();
    bench.transcript.page(lines, before, vec![InFlight::Text { text, skipped: 0 }], 4);
    bench.transcript.apply(Some(6), &delta("and on"));
    bench.transcript.apply(Some(6), &delta("twice"));
    assert!(bench.screen().contains("  lost? in the page after it and on\n"));
}

#[test]
fn a_retry_counts_down_and_goes_when_the_reply_comes() {
    let mut bench = Bench::new(vec![you("go")]).sized(60, 8).open();
    bench.event(&Event::LlmRetry {
        llm_call: 1,
        failed_attempt: 1,
        max_attempts: 4,
        wait_ms: 8000,
        elapsed_ms: 10,
        status: Some(429),
        error: "x at x.example is limiting requests (429): the words of a provider are shown to their end"
            .into(),
    });
    bench.layout();
    bench.now += 2500;
    let screen = bench.screen();
    assert!(screen.contains("limiting requests (429):"), "{screen}");
    assert!(screen.contains("  model  x at x.example is limiting requests (429): "), "{screen}");
    assert!(screen.contains("shown to their end\n         again in 6s, 2 of 4\n"), "{screen}");
    assert_eq!(bench.transcript.wakes_at(bench.now), Some(NOON + 3000));
    bench.event(&delta("here"));
    assert!(!bench.screen().contains("429"));
    assert_eq!(bench.transcript.wakes_at(bench.now), None);
}

#[test]
fn an_empty_run_that_was_taken_back_vanishes() {
    let mut bench = Bench::new(vec![you("first"), said("yes")]).open();
    let second = you("second");
    let from = second.id.expect("an id").to_string();
    bench.commit(second);
    assert!(bench.screen().contains("second"));
    bench
        .commit(Entry::extension(yoi::protocol::entry::domain::ROLLED_BACK, json!({"from": from})));
    assert!(!bench.screen().contains("second") && bench.screen().contains("first"));
}

#[test]
fn a_stream_of_twenty_thousand_pieces_draws_what_it_gains() {
    let mut bench = Bench::new(vec![you("go")]).sized(80, 24).open();
    for n in 0..20_000 {
        let text = match n % 40 {
            0 => "\n\n".to_owned(),
            20 => "\n- item ".to_owned(),
            _ => format!("word{n} "),
        };
        bench.event(&delta(&text));
        if n % 4 == 0 {
            bench.layout();
        }
    }
    let rows = bench.rows();
    assert!(rows.iter().any(|row| row.contains("word19999")), "{rows:#?}");
}

#[test]
fn an_escape_sequence_that_the_stream_cuts_shows_nothing_of_itself() {
    let mut bench = Bench::new(vec![you("go")]).sized(50, 9).open();
    for piece in ["one\u{1b}", "[31", "m red\r", "\ntwo\u{1b}]0;ti", "tle\u{7}."] {
        bench.event(&delta(piece));
    }
    let screen = bench.screen();
    assert!(screen.contains("one red") && screen.contains("two."), "{screen}");
    assert!(!screen.contains("31") && !screen.contains("tle"), "{screen}");
}

#[test]
fn arguments_that_stream_without_end_do_not_grow_the_screen() {
    let mut bench = Bench::new(vec![you("go")]).open();
    bench.event(&Event::ToolCallStart { id: "a".into(), name: "Write".into() });
    let json = r#"{"file_path":"/w/a.txt","content":""#;
    bench.event(&Event::ToolCallArgsDelta { id: "a".into(), json: json.into() });
    for _ in 0..1_000 {
        bench.event(&Event::ToolCallArgsDelta { id: "a".into(), json: "日".repeat(1_000) });
    }
    let pages = &mut bench.transcript.pages;
    let call = pages.find_call("a").expect("the call");
    pages.recount(call.page);
    assert!(pages.bytes() < 200_000, "{} bytes", pages.bytes());
    assert!(bench.screen().contains("  Write  a.txt"), "{}", bench.screen());
    let whole = r#"{"file_path":"/w/a.txt","content":"short after all"}"#;
    bench.event(&Event::ToolCallDone {
        id: "a".into(),
        name: "Write".into(),
        arguments: whole.into(),
    });
    assert!(bench.screen().contains("  Write  a.txt"), "{}", bench.screen());
}

fn thinking(text: &str) -> Event {
    Event::ThinkingDelta { text: text.into() }
}

#[test]
fn a_thought_that_streams_holds_nothing_of_the_thoughts_before_it() {
    let mut bench = Bench::new(vec![you("go")]).open();
    // Together they are longer than a part, and the first one ends inside an escape sequence.
    let texts = ["first ".repeat(8_000) + "\u{1b}[3", "second ".repeat(8_000)];
    for text in &texts {
        bench.event(&Event::ThinkingStart);
        bench.event(&thinking(text));
        let (_, block) = bench.transcript.pages.newest_first().next().expect("a block");
        assert!(block.rest.slots.is_empty() && block.plain().starts_with(&text[..40]));
        bench.commit(thought(text));
    }
    // A page that is read meanwhile begins the thought anew.
    bench.event(&Event::ThinkingStart);
    bench.event(&thinking("third"));
    bench.transcript.asked();
    let (lines, older) = bench.page(None);
    let third = InFlight::Thinking { text: "third".into(), skipped: 0 };
    bench.event(&Event::Lagged);
    bench.transcript.asked();
    bench.transcript.page(lines, older, vec![third], bench.seq);
    bench.event(&thinking(" thought"));
    let (_, block) = bench.transcript.pages.newest_first().next().expect("a block");
    assert_eq!((block.plain().as_str(), block.rest.slots.len()), ("third thought", 0));
}

#[test]
fn what_a_broken_stream_did_not_commit_leaves_when_it_goes_on() {
    let mut bench = Bench::new(vec![you("go")]).open();
    bench.event(&Event::ThinkingStart);
    bench.event(&delta("half a "));
    bench.event(&Event::ToolCallStart { id: "a".into(), name: "Bash".into() });
    bench.commit(said("half a "));
    bench.event(&Event::LlmContinuation {
        llm_call: 1,
        attempt: 1,
        max_attempts: 3,
        reason: "cut".into(),
    });
    let screen = bench.screen();
    assert!(screen.contains("half a") && screen.contains("stream cut, going on"), "{screen}");
    assert!(!screen.contains("Bash") && !screen.contains("thinking"), "{screen}");
    bench.event(&Event::ThinkingStart);
    bench.event(&thinking("now the rest"));
    bench.commit(thought("now the rest"));
    let screen = bench.screen();
    let row = |text: &str| screen.lines().position(|row| row.contains(text)).expect("a row");
    assert!(row("half a") < row("now the rest"), "{screen}");
}

#[test]
fn a_thought_without_a_text_ends_with_its_entry() {
    let mut bench = Bench::new(vec![you("go")]).open();
    bench.event(&Event::ThinkingStart);
    assert!(bench.screen().contains("thinking 0s"));
    bench.commit(thought(""));
    assert!(!bench.screen().contains("thinking"), "{}", bench.screen());
}

#[test]
fn a_reply_of_many_calls_shows_each_call_once_and_in_its_place() {
    let ids: Vec<String> = (0..100).map(|n| format!("number{n:02}")).collect();
    let mut bench = Bench::new(vec![you("go")]).sized(60, 120).open();
    bench.event(&delta("all of them"));
    for id in &ids {
        bench.event(&Event::ToolCallStart { id: id.clone(), name: "Bash".into() });
    }
    bench.commit(said("all of them"));
    for id in &ids {
        bench.commit(call(id, "Bash", json!({ "command": id })));
    }
    let screen = bench.screen();
    let row = |text: &str| screen.lines().position(|row| row.contains(text)).expect("a row");
    assert!(row("all of them") < row("number00"), "{screen}");
    assert_eq!(screen.matches("  Bash   ").count(), ids.len(), "{screen}");
    bench.event(&Event::RunEnd { result: RunResult::Paused, entry: None, run: None });
    assert_eq!(bench.screen().matches("! no result").count(), ids.len(), "{}", bench.screen());
}
