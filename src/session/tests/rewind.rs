use crate::protocol::RewindTarget;
use crate::protocol::entry::{Entry, Fact, FileMark, domain};
use crate::protocol::item::Item;
use crate::protocol::name::{SegmentId, SessionId};
use crate::session::tests::bench::{
    Bench, assistant, call, completed, invoke, lines, notified, result, rolled_back, said, start,
    user,
};
use crate::session::{
    Files, Jump, JumpKind, LogPosition, backwards, find_jump, fork, fork_point, newest_first, page,
    replay, rewind_targets,
};
use serde_json::json;

/// Appends entries to the current segment; the place of the first.
fn append(bench: &Bench, entries: &[Entry]) -> LogPosition {
    let mut content = std::fs::read(bench.path()).unwrap_or_default();
    let offset = content.len() as u64;
    content.extend(lines(entries));
    std::fs::write(bench.path(), content).unwrap();
    LogPosition { segment: bench.segment, offset }
}

fn jump(kind: JumpKind, to: LogPosition) -> Entry {
    Jump::entry(kind, to, json!({}))
}

fn run(text: &str) -> Vec<Entry> {
    vec![invoke(), user(text), said(&format!("re {text}")), completed()]
}

/// What a model reads, as a replay has it.
fn history(files: &Files, segment: SegmentId) -> Vec<String> {
    let replayed = replay(files, segment, None).unwrap();
    replayed.history.iter().filter_map(|kept| kept.item.text()).collect()
}

/// What was said, as a transcript has it, oldest first.
fn transcript(files: &Files, segment: SegmentId) -> Vec<String> {
    let said = |entry: Entry| match entry.fact {
        Fact::UserInput { segments, .. } => Some(crate::protocol::flatten(&segments)),
        Fact::AssistantItem { item, .. } => item.text(),
        _ => None,
    };
    let read = backwards(files, segment, None).filter_map(|recent| said(recent.unwrap().entry));
    let mut said: Vec<String> = read.collect();
    said.reverse();
    said
}

fn listed(bench: &Bench) -> Vec<RewindTarget> {
    let targets = rewind_targets(&bench.files, bench.segment, None).unwrap().targets;
    targets.into_iter().map(|target| target.listed).collect()
}

/// Rewinds to before the input with this text, as a Pod does.
fn rewind(bench: &Bench, before: &str) -> LogPosition {
    let targets = rewind_targets(&bench.files, bench.segment, None).unwrap().targets;
    let target = targets.iter().find(|target| target.listed.preview == before).unwrap();
    append(bench, &[jump(JumpKind::Rewound, target.to)])
}

#[test]
fn a_rewind_its_undo_and_its_redo_each_end_what_stands_before_them_at_a_place() {
    let bench = Bench::new();
    append(&bench, &[bench.start()]);
    append(&bench, &run("one"));
    append(&bench, &run("two"));
    let rewound = rewind(&bench, "two");
    append(&bench, &run("three"));
    let is = |expected: &[&str]| {
        assert_eq!(history(&bench.files, bench.segment), expected);
        assert_eq!(transcript(&bench.files, bench.segment), expected);
    };
    is(&["one", "re one", "three", "re three"]);
    let undone = append(&bench, &[jump(JumpKind::Undone, rewound)]);
    is(&["one", "re one", "two", "re two"]);
    append(&bench, &[jump(JumpKind::Redone, undone)]);
    is(&["one", "re one", "three", "re three"]);
    append(&bench, &run("four"));
    is(&["one", "re one", "three", "re three", "four", "re four"]);
}

#[test]
fn a_rewind_reaches_messages_before_a_compaction_and_can_be_undone_from_behind_the_next_one() {
    let mut bench = Bench::new();
    append(&bench, &[bench.start()]);
    append(&bench, &run("one"));
    append(&bench, &run("two"));
    let older = bench.segment;
    bench.segment = SegmentId::new();
    append(&bench, &[start(bench.session, Some(older))]);
    append(&bench, &run("three"));
    assert_eq!(history(&bench.files, bench.segment), ["three", "re three"]);
    let targets = listed(&bench);
    let shown: Vec<_> =
        targets.iter().map(|t| (t.turn_index, t.id.segment_id, t.expected_head_entries)).collect();
    assert_eq!(shown, [(3, bench.segment, 5), (2, older, 5), (1, older, 5)]);

    rewind(&bench, "two");
    append(&bench, &run("four"));
    let now = ["one", "re one", "four", "re four"];
    assert_eq!(history(&bench.files, bench.segment), now);
    assert_eq!(transcript(&bench.files, bench.segment), now);

    let newer = bench.segment;
    bench.segment = SegmentId::new();
    append(&bench, &[start(bench.session, Some(newer))]);
    append(&bench, &run("five"));
    let now = ["one", "re one", "four", "re four", "five", "re five"];
    assert_eq!(transcript(&bench.files, bench.segment), now);
    let undo = rewind_targets(&bench.files, bench.segment, None).unwrap().undo.unwrap();
    assert_eq!((undo.returns.messages, undo.drops.messages), (2, 2));
    assert_eq!(undo.preview, "two");
    let found = find_jump(&bench.files, bench.segment, None, undo.entry).unwrap();
    append(&bench, &[jump(JumpKind::Undone, found.unwrap().0.at)]);
    let all = ["one", "re one", "two", "re two", "three", "re three"];
    assert_eq!(transcript(&bench.files, bench.segment), all);
    assert_eq!(history(&bench.files, bench.segment), ["three", "re three"]);
}

#[test]
fn a_rewind_before_the_last_one_is_found_with_what_taking_it_back_changes() {
    let bench = Bench::new();
    append(&bench, &[bench.start()]);
    append(&bench, &run("one"));
    append(&bench, &run("two"));
    rewind(&bench, "two");
    let first = rewind_targets(&bench.files, bench.segment, None).unwrap().undo.unwrap();
    append(&bench, &run("three"));
    append(&bench, &run("four"));
    rewind(&bench, "four");
    let found = find_jump(&bench.files, bench.segment, None, first.entry).unwrap();
    let (jump, back) = found.expect("it stands");
    assert_eq!((jump.kind, back.entry), (JumpKind::Rewound, first.entry));
    assert_eq!((back.returns.messages, back.drops.messages), (1, 1));
    assert_eq!(back.preview, "two");
}

#[test]
fn the_newest_segment_goes_on_from_the_others_whatever_the_clock_said() {
    let mut bench = Bench::new();
    let (one, two, three) = (SegmentId::new(), SegmentId::new(), SegmentId::new());
    // The clock was set back between the first and the second one, and between these and the third.
    for (segment, from) in [(two, None), (three, Some(two)), (one, Some(three))] {
        bench.segment = segment;
        append(&bench, &[start(bench.session, from)]);
    }
    assert_eq!(bench.files.segments(), [three, two, one]);
    assert_eq!(newest_first(&bench.files), [one, three, two]);
    // What goes on from a segment whose first line is damaged is newer than that one.
    let whole = std::fs::read(bench.files.segment(three)).unwrap();
    std::fs::write(bench.files.segment(three), [b"#", &whole[1..]].concat()).unwrap();
    assert_eq!(newest_first(&bench.files), [one, three, two]);
}

#[test]
fn a_jump_that_leads_nowhere_counts_as_none() {
    let mut bench = Bench::new();
    append(&bench, &[bench.start()]);
    append(&bench, &run("one"));
    let older = bench.segment;
    bench.segment = SegmentId::new();
    append(&bench, &[start(bench.session, Some(older))]);
    let at = append(&bench, &run("two"));
    let newer = bench.segment;
    let gone = LogPosition { segment: SegmentId::new(), offset: 10 };
    let inside = LogPosition { offset: at.offset + 3, ..at };
    let behind = LogPosition { offset: at.offset + 100_000, ..at };
    for to in [gone, inside, behind] {
        append(&bench, &[jump(JumpKind::Rewound, to)]);
    }
    // A circle: from the older segment into the newer one.
    let circle = Bench { segment: older, ..bench };
    append(&circle, &[jump(JumpKind::Rewound, at)]);
    assert_eq!(transcript(&circle.files, newer), ["one", "re one", "two", "re two"]);
    assert_eq!(history(&circle.files, newer), ["two", "re two"]);
}

#[test]
fn a_changed_file_is_named_however_long_the_id_of_its_call_is() {
    let bench = Bench::new();
    let changes = |length: usize, tool: &str| {
        let id = "i".repeat(length);
        let Fact::ToolResult { item, .. } = result(&id, "").fact else { unreachable!() };
        let path = format!("/w/{tool}-{length:03}").into();
        let mark = FileMark { path, hash: "1".into(), before: None };
        [call(&id, tool), Entry::new(Fact::ToolResult { item, files: vec![mark], sent: None })]
    };
    // The name of the tool begins or ends on each side of the place up to which a line is kept.
    for length in [1, 90, 195, 5000].into_iter().chain(60..160) {
        let runs = ["Write", "Edit", "Read"].iter().flat_map(|tool| changes(length, tool));
        let entries = [bench.start(), invoke(), user("go")].into_iter().chain(runs);
        bench.write(&entries.chain([completed()]).collect::<Vec<_>>());
        let drops = listed(&bench).remove(0).drops.unwrap();
        let named = [format!("/w/Edit-{length:03}"), format!("/w/Write-{length:03}")];
        assert_eq!((drops.tool_calls, drops.files), (3, named.to_vec()), "{length}");
    }
}

#[test]
fn each_input_is_a_target_newest_first_and_says_what_it_drops() {
    let bench = Bench::new();
    let long = "é".repeat(200);
    let mark = FileMark { path: "/w/a.rs".into(), hash: "1".into(), before: None };
    let arguments = json!({"file_path": "/w/a.rs"}).to_string();
    let edit = Item::ToolCall { call_id: "e".into(), name: "Edit".into(), arguments };
    let Fact::ToolResult { item, .. } = result("e", "").fact else { unreachable!() };
    let entries = vec![
        bench.start(),
        invoke(),
        user("one"),
        call("c", "Bash"),
        result("c", ""),
        assistant(edit, false),
        Entry::new(Fact::ToolResult { item, files: vec![mark], sent: None }),
        completed(),
        notified("between"),
        invoke(),
        notified("first this"),
        user(&long),
        said("2"),
        user("while it ran"),
        completed(),
    ];
    bench.write(&entries);
    let targets = rewind_targets(&bench.files, bench.segment, None).unwrap();
    assert_eq!(targets.head_entries, entries.len());
    assert_eq!((targets.undo, targets.redo), (None, None));
    let targets = listed(&bench);
    let shown: Vec<_> = targets
        .iter()
        .map(|t| (t.turn_index, t.id.user_input_entry_index, t.truncate_entries, t.eligible))
        .collect();
    assert_eq!(shown, [(3, 13, 13, true), (2, 11, 9, true), (1, 2, 1, true)]);
    assert_eq!(targets[1].preview, format!("{}…", "é".repeat(120)));
    assert_eq!(targets[1].timestamp_ms, Some(entries[11].ts));
    let warned: Vec<bool> = targets.iter().map(|target| target.warning.is_some()).collect();
    assert_eq!(warned, [false, false, true]);
    let drops: Vec<_> = targets.iter().filter_map(|target| target.drops.clone()).collect();
    assert_eq!((drops[1].messages, drops[1].tool_calls), (2, 0));
    assert_eq!((drops[2].messages, drops[2].tool_calls), (3, 2));
    assert_eq!(drops[2].files, ["/w/a.rs"]);
}

#[test]
fn a_rewind_to_a_message_that_entered_a_run_keeps_the_calls_and_results_before_it() {
    let bench = Bench::new();
    append(&bench, &[bench.start(), invoke(), user("one"), call("c", "Bash"), result("c", "out")]);
    append(&bench, &[user("two"), user("three"), said("both"), completed()]);
    let read = |bench: &Bench| {
        let replayed = replay(&bench.files, bench.segment, None).unwrap();
        assert_eq!((replayed.interrupted, &replayed.open_calls[..]), (false, &[][..]));
        let item = |item: &Item| match item {
            Item::ToolCall { call_id, .. } => format!("call {call_id}"),
            Item::ToolResult { call_id, .. } => format!("result {call_id}"),
            other => other.text().unwrap_or_default(),
        };
        replayed.history.iter().map(|kept| item(&kept.item)).collect::<Vec<_>>()
    };
    rewind(&bench, "three");
    assert_eq!(read(&bench), ["one", "call c", "result c", "two"]);
    let rewound = rewind(&bench, "two");
    assert_eq!(read(&bench), ["one", "call c", "result c"]);
    append(&bench, &run("four"));
    assert_eq!(read(&bench), ["one", "call c", "result c", "four", "re four"]);
    append(&bench, &[jump(JumpKind::Undone, rewound)]);
    assert_eq!(read(&bench), ["one", "call c", "result c", "two"]);
}

#[test]
fn a_rolled_back_message_is_no_rewind_target() {
    let bench = Bench::new();
    let run = invoke();
    let back = rolled_back(&run);
    bench.write(&[bench.start(), run, user("nobody answers"), back]);
    assert_eq!(rewind_targets(&bench.files, bench.segment, None).unwrap().head_entries, 4);
    assert_eq!(listed(&bench), []);
}

/// Another session, and a fork of this one in it.
async fn forked(bench: &Bench, at: Option<&Entry>) -> (Files, SegmentId) {
    let session = SessionId::new();
    let to = Files::new(bench.files.dir().parent().unwrap().parent().unwrap(), session);
    let point = fork_point(&bench.files, bench.segment, at.and_then(|entry| entry.id)).unwrap();
    let (journal, segment) = fork(&bench.files, point, &to, session, Vec::new()).await.unwrap();
    journal.close().await;
    (to, segment)
}

#[tokio::test]
async fn a_fork_parts_at_any_entry_also_above_a_compaction_and_behind_a_rewind() {
    let mut bench = Bench::new();
    append(&bench, &[bench.start()]);
    let (one, two) = (run("one"), run("two"));
    append(&bench, &one);
    append(&bench, &two);
    let older = bench.segment;
    bench.segment = SegmentId::new();
    append(&bench, &[start(bench.session, Some(older))]);
    let three = run("three");
    append(&bench, &three);
    rewind(&bench, "two");
    let four = run("four");
    append(&bench, &four);
    let before = bench.content();
    let cases: [(Option<&Entry>, &[&str]); 4] = [
        (None, &["one", "re one", "four", "re four"]),
        (Some(&four[1]), &["one", "re one", "four"]),
        (Some(&one[2]), &["one", "re one"]),
        // Taken back, and still there.
        (Some(&three[1]), &["one", "re one", "two", "re two", "three"]),
    ];
    for (at, expected) in cases {
        let (files, segment) = forked(&bench, at).await;
        assert_eq!(transcript(&files, segment), expected);
        let page = page(&files, segment, None, None, 1 << 20).unwrap();
        assert!(
            page.entries.iter().all(|line| matches!(line, crate::protocol::event::Line::Whole(_)))
        );
        // The fork is told apart, goes its own way, and can be forked itself.
        let replayed = replay(&files, segment, None).unwrap();
        assert_eq!(
            files.dir().file_name().unwrap().to_str().unwrap(),
            replayed.session_id.to_string()
        );
        assert!(replayed.forked_from.is_some());
        let own = Bench { files, segment, ..Bench::new() };
        append(&own, &run("own"));
        let (again, segment) = forked(&own, None).await;
        let said = transcript(&again, segment);
        assert_eq!(said[..expected.len()], *expected);
        assert_eq!(said[expected.len()..], ["own", "re own"]);
    }
    assert_eq!(bench.content(), before);
}

#[tokio::test]
async fn a_fork_has_cost_nothing_before_its_own_requests() {
    let cost = |files: &Files, segment| replay(files, segment, None).unwrap().cost;
    let paid = |cost| {
        Entry::new(Fact::LlmUsage {
            history_len: 2,
            input_total_tokens: 70,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            output_tokens: 3,
            cost: Some(cost),
        })
    };
    let bench = Bench::new();
    let before = json!({"name": "a", "cost": 8.0});
    append(&bench, &[bench.start(), Entry::extension(domain::POD, before)]);
    append(&bench, &run("one"));
    append(&bench, &[paid(0.5)]);
    let (files, segment) = forked(&bench, None).await;
    let replayed = replay(&files, segment, None).unwrap();
    assert_eq!(
        (replayed.cost, replayed.pod),
        (None, None),
        "the record of the source is not its own"
    );
    let own = Bench { files, segment, ..Bench::new() };
    append(&own, &run("two"));
    append(&own, &[paid(0.25)]);
    assert_eq!(cost(&own.files, own.segment), Some(0.25));
    rewind(&own, "one");
    assert_eq!(cost(&own.files, own.segment), Some(0.25), "what was paid stays paid");
    assert_eq!(cost(&bench.files, bench.segment), Some(0.5));
}

#[tokio::test]
async fn a_fork_holds_nothing_of_what_came_after_its_place() {
    let bench = Bench::new();
    let (one, secret) = (run("one"), run("secret"));
    append(&bench, &[bench.start()]);
    append(&bench, &one);
    append(&bench, &secret);
    let (files, _) = forked(&bench, Some(&one[3])).await;
    for segment in files.segments() {
        let content = std::fs::read_to_string(files.segment(segment)).unwrap();
        assert!(!content.contains("secret"));
    }
}

#[tokio::test]
async fn a_segment_without_a_readable_start_is_not_forked() {
    let bench = Bench::new();
    std::fs::write(bench.path(), lines(&[said("x")])).unwrap();
    let point = fork_point(&bench.files, bench.segment, None).unwrap();
    let to = Files::new(bench.files.dir(), SessionId::new());
    let forked = fork(&bench.files, point, &to, SessionId::new(), Vec::new()).await;
    let error = forked.map(drop).unwrap_err();
    assert!(error.to_string().contains("at byte 0"), "{error}");
}
