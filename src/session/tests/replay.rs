use crate::protocol::entry::{Entry, Fact, FileMark, GO_ON, Origin, domain};
use crate::protocol::item::{Item, RequestConfig, Role};
use crate::protocol::name::{EntryId, SegmentId};
use crate::session::line::decode;
use crate::session::tests::bench::{
    Act, Bench, acts, assistant, call, completed, invoke, lines, notified, play, pruned, result,
    rolled_back, said, start, used, user,
};
use crate::session::{Damaged, LogError, Replay, replay, spans};
use proptest::prelude::*;
use serde_json::json;

fn replayed(entries: Vec<Entry>) -> Replay {
    let bench = Bench::new();
    let entries: Vec<Entry> = [bench.start()].into_iter().chain(entries).collect();
    let whole = bench.write(&entries);
    let replayed = replay(&bench.files, bench.segment, None).unwrap();
    assert_eq!(replayed.session_id, bench.session);
    assert_eq!((replayed.entries, replayed.end), (entries.len(), whole.len() as u64));
    replayed
}

fn items(replay: &Replay) -> Vec<Item> {
    replay.history.iter().map(|kept| kept.item.clone()).collect()
}

#[test]
fn a_session_is_folded_into_what_the_model_reads() {
    let (first, origin) = (
        user("hi"),
        Origin { wire: "anthropic".into(), provider: "anthropic".into(), model: "m".into() },
    );
    let item = Item::message(Role::Assistant, "hello");
    let native = json!({"type": "text", "text": "hello"});
    let reply = Entry::new(Fact::AssistantItem {
        item: item.clone(),
        origin: Some(origin.clone()),
        native: Some(native.clone()),
        partial: false,
    });
    let config = RequestConfig { max_tokens: Some(9), ..RequestConfig::default() };
    let usage = |cost| {
        Entry::new(Fact::LlmUsage {
            history_len: 2,
            input_total_tokens: 70,
            cache_read_tokens: 0,
            cache_write_tokens: 0,
            output_tokens: 3,
            cost,
        })
    };
    let replayed = replayed(vec![
        Entry::extension(domain::POD, json!({"name": "a"})),
        invoke(),
        first.clone(),
        notified("news"),
        reply,
        Entry::new(Fact::TurnEnd { turn_count: 1 }),
        usage(Some(0.25)),
        usage(None),
        usage(Some(0.5)),
        Entry::new(Fact::ConfigChanged { config: config.clone() }),
        completed(),
        Entry::extension(domain::POD, json!({"name": "b"})),
    ]);
    let user = Item::message(Role::User, "hi");
    assert_eq!(items(&replayed), [user, Item::message(Role::System, "news"), item]);
    assert_eq!(replayed.history[0].id, first.id);
    assert_eq!(replayed.history[2].origin, Some(origin));
    assert_eq!(replayed.history[2].native, Some(native));
    assert_eq!(replayed.system_prompt.as_deref(), Some("be good"));
    assert_eq!((replayed.turn_count, replayed.interrupted), (1, false));
    assert_eq!((replayed.usage, replayed.cost), (Some((2, 70)), Some(0.75)));
    assert_eq!((replayed.config, replayed.pod), (config, Some(json!({"name": "b"}))));
}

#[test]
fn calls_without_a_result_are_open_and_a_run_without_an_end_is_interrupted() {
    let run = vec![invoke(), user("x"), call("a", "Read"), call("b", "Bash"), result("a", "")];
    let replayed = replayed(run);
    assert_eq!(replayed.open_calls, [("b".to_owned(), "Bash".to_owned())]);
    assert!(replayed.interrupted);
}

#[test]
fn an_approval_request_ends_with_its_call_also_when_the_id_of_that_call_comes_again() {
    let asked = json!({
        "id": "1", "pod": "alice", "lineage": [], "call_id": "c", "tool": "Bash", "action": "ls",
        "because": "a rule", "scope": [], "rule": {"tool": "Bash", "pattern": "*"}, "since": 4,
    });
    let waits = vec![invoke(), call("c", "Bash"), Entry::extension(domain::ASKED, asked)];
    assert_eq!(
        replayed(waits.clone()).open_approval().map(|approval| approval.id.as_str()),
        Some("1")
    );
    let again = [result("c", "interrupted"), completed(), invoke(), call("c", "Bash")];
    let replay = replayed(waits.into_iter().chain(again).collect());
    assert_eq!((replay.open_approval(), replay.open_calls.len()), (None, 1));
}

#[test]
fn of_a_partial_reply_only_the_text_is_replayed_and_never_the_native_block() {
    let thinking = Item::Reasoning {
        text: "hm".into(),
        summary: Vec::new(),
        encrypted_content: None,
        signature: None,
    };
    let text = Item::message(Role::Assistant, "half a sen");
    let partial = Entry::new(Fact::AssistantItem {
        item: text.clone(),
        origin: None,
        native: Some(json!({})),
        partial: true,
    });
    let call =
        Item::ToolCall { call_id: "c".into(), name: "Read".into(), arguments: "{\"f".into() };
    let replayed = replayed(vec![
        invoke(),
        assistant(thinking, true),
        partial,
        assistant(call, true),
        assistant(Item::message(Role::Assistant, ""), true),
    ]);
    assert_eq!(items(&replayed), [text]);
    assert_eq!(replayed.history[0].native, None);
    assert!(replayed.open_calls.is_empty());
}

#[test]
fn a_rolled_back_message_leaves_the_history_and_stays_taken() {
    let run = vec![
        invoke(),
        Entry::new(Fact::UserInput { segments: Vec::new(), taken: Some("q1".into()), from: None }),
    ];
    let back = rolled_back(&run[0]);
    let before = vec![invoke(), user("hi"), said("hello"), completed()];
    let after = vec![notified("after"), Entry::extension(domain::TAKEN, json!({"id": "q2"}))];
    let replayed = replayed([before, run, vec![back], after].concat());
    let expected = [
        Item::message(Role::User, "hi"),
        Item::message(Role::Assistant, "hello"),
        Item::message(Role::System, "after"),
    ];
    assert_eq!(items(&replayed), expected);
    assert!(!replayed.interrupted);
    assert_eq!(replayed.taken.into_iter().collect::<Vec<_>>(), ["q1", "q2"]);
}

#[test]
fn a_rollback_to_an_entry_that_is_not_there_changes_nothing() {
    let replayed = replayed(vec![invoke(), user("hi"), rolled_back(&user("elsewhere")), said("x")]);
    assert_eq!(replayed.history.len(), 2);
}

#[test]
fn outputs_that_left_the_context_are_back_when_their_run_is_taken_back() {
    let output = result("c", &"x".repeat(4_000));
    let before = vec![invoke(), user("hi"), call("c", "Read"), output.clone(), used(3, 9_000)];
    let run = vec![invoke(), user("more"), pruned([&output])];
    let replay = replayed([before.clone(), run.clone()].concat());
    let file = replay.history[2].pruned.as_ref().and_then(|pruned| pruned.file.clone());
    assert_eq!(file, Some("/outputs/a.txt".into()));
    assert_eq!(replay.usage, Some((3, 8_000)), "what left is no part of the next request");
    let mut applied = replayed(vec![]);
    let back = rolled_back(&run[0]);
    let all = [before.clone(), run, vec![back]].concat();
    all.iter().for_each(|entry| applied.apply(entry));
    assert_eq!(items(&applied), items(&replayed(all.clone())));
    for replay in [applied, replayed(all)] {
        assert_eq!((&replay.history[2].pruned, replay.usage), (&None, Some((3, 9_000))));
    }
}

#[test]
fn a_reply_that_broke_three_times_is_one_partial_and_one_note() {
    let replay = replayed(play(&[Act::Broken { times: 3 }]));
    let texts: Vec<_> = replay.history.iter().filter_map(|kept| kept.item.text()).collect();
    assert_eq!(texts, ["write", "part 0, part 1, part 2, ", GO_ON, "the end"]);
}

#[test]
fn the_last_look_at_each_file_is_known() {
    let mark =
        |path: &str, hash: &str| FileMark { path: path.into(), hash: hash.into(), before: None };
    let touched = |files| {
        let Fact::ToolResult { item, .. } = result("c", "").fact else { unreachable!() };
        Entry::new(Fact::ToolResult { item, files, sent: None })
    };
    let replayed = replayed(vec![
        touched(vec![mark("/a", "1"), mark("/b", "2")]),
        touched(vec![mark("/a", "3")]),
    ]);
    let files: Vec<_> = replayed.files.into_iter().collect();
    assert_eq!(files, [("/a".into(), "3".to_owned()), ("/b".into(), "2".to_owned())]);
}

#[test]
fn a_log_whose_beginning_is_damaged_still_tells_what_follows() {
    let bench = Bench::new();
    let mut content = b"{\"kind\":\"segment_st\n".to_vec();
    content.extend(lines(&[user("hi")]));
    std::fs::write(bench.path(), content).unwrap();
    let replayed = replay(&bench.files, bench.segment, None).unwrap();
    assert_eq!(replayed.session_id, bench.session);
    assert_eq!(items(&replayed), [Item::message(Role::User, "hi")]);
    assert_eq!((replayed.damaged[0].byte, replayed.damaged[0].line), (0, Some(1)));
}

#[test]
fn an_empty_log_and_a_missing_one_are_said_to_be_so() {
    let bench = Bench::new();
    assert!(matches!(replay(&bench.files, bench.segment, None), Err(LogError::Missing(_))));
    std::fs::write(bench.path(), b"").unwrap();
    assert!(matches!(replay(&bench.files, bench.segment, None), Err(LogError::Empty(_))));
}

/// The two logs of the recorded session.
fn recorded() -> Vec<Vec<&'static str>> {
    let mut logs: Vec<Vec<&str>> = Vec::new();
    for line in include_str!("../../../tests/vectors/session-log.jsonl").lines() {
        if line.contains("\"segment_start\"") {
            logs.push(Vec::new());
        }
        logs.last_mut().unwrap().push(line);
    }
    logs
}

#[test]
fn every_line_of_the_recorded_logs_is_understood_and_written_back_the_same() {
    for line in recorded().concat() {
        let entry = decode(line.as_bytes()).unwrap();
        assert!(!matches!(entry.fact, Fact::Unknown(_)), "{line}");
        let same: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_value(&entry).unwrap(), same);
    }
}

#[test]
fn the_recorded_logs_fold_into_the_history_they_tell_of() {
    let bench = Bench::new();
    let folded = recorded().into_iter().map(|log| {
        std::fs::write(bench.path(), log.join("\n") + "\n").unwrap();
        let replay = replay(&bench.files, bench.segment, None).unwrap();
        assert!(replay.damaged.is_empty() && replay.open_calls.is_empty() && !replay.interrupted);
        (replay.entries, replay.history.len(), replay.turn_count, replay.usage)
    });
    let folded: Vec<_> = folded.collect();
    assert_eq!(folded, [(19, 6, 3, Some((5, 10))), (57, 22, 9, Some((21, 10)))]);
}

#[test]
fn a_rollback_right_after_a_compaction_takes_the_compaction_back_too() {
    let (run, input) = (invoke(), user("nobody answers"));
    let mut bench = Bench::new();
    let older = bench.segment;
    let earlier = user("earlier");
    let past = [bench.start(), invoke(), earlier, completed(), run.clone(), input.clone()];
    bench.write(&past);
    bench.segment = SegmentId::new();
    let mut begin = start(bench.session, Some(older));
    let Fact::SegmentStart { history, .. } = &mut begin.fact else { unreachable!() };
    let item = Item::message(Role::System, "what came before");
    history.push(crate::protocol::entry::Kept::new(None, item));
    bench.write(&[begin, invoke(), rolled_back(&run)]);
    let replayed = replay(&bench.files, bench.segment, None).unwrap();
    assert_eq!(items(&replayed), [Item::message(Role::User, "earlier")]);
}

#[test]
fn a_rollback_takes_back_its_run_also_where_the_clock_was_set_back() {
    let tomorrow = |n: u8| {
        let mut bytes = *EntryId::new().0.as_bytes();
        (bytes[0], bytes[15]) = (bytes[0] + 1, n);
        Some(EntryId(uuid::Uuid::from_bytes(bytes)))
    };
    let before = [invoke(), user("hi"), said("hello"), completed()];
    let before = (0..).zip(before).map(|(n, entry)| Entry { id: tomorrow(n), ..entry });
    let mut run = vec![invoke(), user("nobody answers")];
    run.push(rolled_back(&run[0]));
    let entries: Vec<Entry> = before.chain(run).chain([user("next")]).collect();
    let expected = [
        Item::message(Role::User, "hi"),
        Item::message(Role::Assistant, "hello"),
        Item::message(Role::User, "next"),
    ];
    assert_eq!(items(&replayed(entries.clone())), expected);
    let mut applied = replayed(vec![]);
    entries.iter().for_each(|entry| applied.apply(entry));
    assert_eq!(items(&applied), expected);
}

#[test]
fn a_long_message_is_rolled_back_like_a_short_one() {
    let (run, long) = (invoke(), "long ".repeat(2_000));
    let back = json!({"from": run.id, "input": [{"kind": "text", "content": long}]});
    let back = Entry::extension(domain::ROLLED_BACK, back);
    let replayed = replayed(vec![run, user(&long), back]);
    assert_eq!(items(&replayed), []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn entries_applied_one_by_one_give_the_same_as_a_replay(
        acts in acts(),
        from in any::<prop::sample::Index>(),
    ) {
        let bench = Bench::new();
        let entries: Vec<Entry> = [bench.start()].into_iter().chain(play(&acts)).collect();
        let from = 1 + from.index(entries.len());
        bench.write(&entries[..from]);
        let mut applied = replay(&bench.files, bench.segment, None).unwrap();
        entries[from..].iter().for_each(|entry| applied.apply(entry));
        bench.write(&entries);
        let replayed = replay(&bench.files, bench.segment, None).unwrap();
        prop_assert_eq!(&applied.history, &replayed.history);
        prop_assert_eq!(&applied.open_calls, &replayed.open_calls);
        prop_assert_eq!(applied.turn_count, replayed.turn_count);
        prop_assert_eq!(applied.entries, replayed.entries);
    }

    #[test]
    fn damaged_lines_anywhere_are_named_and_hide_nothing_else(
        acts in acts(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..6), 1..5),
    ) {
        const DAMAGE: [&[u8]; 6] =
            [b"", b"{\"ts\":1,\"kind\":\"invo", b"\0\0\0", b"[1]", b"\xff\xfe", b"{\"kind\":\"turn_end\"}"];
        let bench = Bench::new();
        let entries: Vec<Entry> = [bench.start()].into_iter().chain(play(&acts)).collect();
        bench.write(&entries);
        let sound = replay(&bench.files, bench.segment, None).unwrap();

        let mut damaged_lines: Vec<Vec<u8>> =
            entries.iter().map(|entry| lines(std::slice::from_ref(entry))).collect();
        for (at, kind) in damage {
            let at = at.index(damaged_lines.len() + 1);
            damaged_lines.insert(at, [DAMAGE[kind], b"\n"].concat());
        }
        let content = damaged_lines.concat();
        std::fs::write(bench.path(), &content).unwrap();
        let replayed = replay(&bench.files, bench.segment, None).unwrap();
        prop_assert_eq!(&replayed.history, &sound.history);
        prop_assert_eq!(&replayed.system_prompt, &sound.system_prompt);
        prop_assert_eq!(replayed.interrupted, sound.interrupted);
        prop_assert_eq!(replayed.entries, damaged_lines.len());
        for Damaged { byte, line, .. } in &replayed.damaged {
            let before: usize = damaged_lines[..line.unwrap() - 1].iter().map(Vec::len).sum();
            prop_assert_eq!(before as u64, *byte);
        }

        let spans = spans(&bench.files, bench.segment, Some(content.len() as u64)).unwrap();
        let shown: Vec<Entry> = spans.into_iter().map(|span| {
            let (start, end) = (usize::try_from(span.range.start).unwrap(), usize::try_from(span.range.end).unwrap());
            decode(&content[start..end]).unwrap()
        }).collect();
        prop_assert_eq!(shown, crate::session::tests::bench::without_rolled_back(&entries));
    }
}

#[test]
fn a_request_that_was_taken_back_stays_paid() {
    let (begun, said) = (invoke(), user("never mind"));
    let paid = Entry::new(Fact::LlmUsage {
        history_len: 1,
        input_total_tokens: 70,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        output_tokens: 0,
        cost: Some(0.5),
    });
    let back = rolled_back(&begun);
    let replayed = replayed(vec![begun, said, paid, back]);
    assert_eq!((items(&replayed), replayed.cost), (Vec::new(), Some(0.5)));
}
