use crate::protocol::entry::{Entry, Fact};
use crate::protocol::item::{Item, Role};
use crate::session::line::decode;
use crate::session::tests::bench::{
    Bench, acts, call, completed, invoke, lines, notified, play, result, rolled_back, said, user,
};
use crate::session::{Journal, Opened, Partial, replay};
use proptest::prelude::*;

/// Opens the segment and returns what was found, and the entries that the opening added.
async fn reopened(bench: &Bench) -> (Opened, Vec<Fact>) {
    let before = std::fs::metadata(bench.path()).unwrap().len();
    let (journal, opened) = Journal::open(&bench.files, bench.segment).await.unwrap();
    journal.close().await;
    let kept = before - opened.torn_bytes.unwrap_or(0);
    let content = bench.content();
    let added = content[usize::try_from(kept).unwrap()..].split_inclusive(|b| *b == b'\n');
    let facts = added.map(|line| decode(line.strip_suffix(b"\n").unwrap()).unwrap().fact);
    (opened, facts.collect())
}

fn kinds(facts: &[Fact]) -> Vec<String> {
    let kind = |fact| serde_json::to_value(fact).unwrap()["kind"].as_str().unwrap().to_owned();
    facts.iter().map(kind).collect()
}

#[tokio::test]
async fn text_streaming_at_the_end_of_the_host_is_kept_as_partial_items() {
    let bench = Bench::new();
    bench.write(&[bench.start(), invoke(), user("tell me")]);
    let (journal, first) = Journal::open(&bench.files, bench.segment).await.unwrap();
    assert!(first.cut_run && !first.recovered);
    journal.commit(vec![invoke(), user("again")]).await.unwrap();
    journal.stream(Partial::Thinking, "let me ");
    journal.stream(Partial::Thinking, "see");
    journal.stream(Partial::Text, "Once upon");
    journal.close().await;

    let (opened, added) = reopened(&bench).await;
    assert!(opened.recovered && opened.cut_run);
    assert_eq!(kinds(&added), ["assistant_item", "assistant_item", "extension", "run_errored"]);
    let Fact::AssistantItem { item: Item::Reasoning { text, .. }, partial: true, .. } = &added[0]
    else {
        panic!("{added:?}");
    };
    assert_eq!(text, "let me see");
    let said = Item::message(Role::Assistant, "Once upon");
    assert!(matches!(&added[1], Fact::AssistantItem { item, partial: true, .. } if *item == said));
    assert!(matches!(&added[3], Fact::RunErrored { interrupted: true, .. }));

    let replayed = replay(&bench.files, bench.segment, None).unwrap();
    assert!(replayed.interrupted && replayed.cut_at.is_some());
    assert_eq!(replayed.history.last().unwrap().item, said);
    assert!(!replayed.history.iter().any(|kept| matches!(kept.item, Item::Reasoning { .. })));
    let (again, nothing) = reopened(&bench).await;
    assert_eq!((again.cut_run, nothing), (false, Vec::new()));
}

#[tokio::test]
async fn a_block_committed_just_before_the_end_is_not_kept_twice() {
    let bench = Bench::new();
    bench.write(&[bench.start(), invoke(), user("tell me")]);
    let (journal, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    journal.commit(vec![invoke(), user("again")]).await.unwrap();
    journal.stream(Partial::Text, "Once upon a time");
    journal.commit(vec![said("Once upon a time"), completed()]).await.unwrap();
    journal.close().await;
    let (opened, added) = reopened(&bench).await;
    assert_eq!((opened.recovered, opened.cut_run, added), (false, false, Vec::new()));
}

#[tokio::test]
async fn a_mailbox_message_during_a_stream_does_not_cost_the_text() {
    let bench = Bench::new();
    bench.write(&[bench.start(), invoke(), user("tell me")]);
    let (journal, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    journal.stream(Partial::Text, "Once upon");
    journal.commit(vec![notified("news")]).await.unwrap();
    journal.close().await;
    assert!(reopened(&bench).await.0.recovered);
}

#[tokio::test]
async fn a_run_without_an_end_is_closed_and_one_with_an_end_is_left_alone() {
    let back = {
        let first = invoke();
        let back = rolled_back(&first);
        vec![first, user("nobody answers"), back]
    };
    let cases: Vec<(Vec<Entry>, bool)> = vec![
        (vec![], false),
        (vec![invoke()], true),
        (vec![invoke(), user("x")], true),
        (vec![invoke(), user("x"), said("y"), completed()], false),
        (vec![invoke(), user("x"), said("y"), completed(), notified("later")], false),
        (vec![invoke(), user("x"), completed(), said("resumed")], true),
        (vec![invoke(), user("x"), call("c", "Bash")], true),
        (vec![invoke(), user("x"), call("c", "Bash"), result("c", "")], true),
        (back, false),
        (vec![Entry::new(Fact::TurnEnd { turn_count: 3 })], false),
    ];
    for (run, cut) in cases {
        let bench = Bench::new();
        let entries: Vec<Entry> = [bench.start()].into_iter().chain(run.clone()).collect();
        bench.write(&entries);
        let (opened, added) = reopened(&bench).await;
        assert_eq!(opened.cut_run, cut, "{run:?}");
        let expected: &[&str] = if cut { &["extension", "run_errored"] } else { &[] };
        assert_eq!(kinds(&added), expected, "{run:?}");
    }
}

#[tokio::test]
async fn an_open_file_that_is_half_written_or_rubbish_harms_nothing() {
    for rubbish in [&b"\0\0\0\0"[..], b"{\"after\":1", b"\n\n", b"{}\n", b"\xff\n"] {
        let bench = Bench::new();
        bench.write(&[bench.start()]);
        std::fs::write(bench.files.open_block(bench.segment), rubbish).unwrap();
        let (opened, added) = reopened(&bench).await;
        assert_eq!((opened.recovered, added.len()), (false, 0));
    }
}

#[tokio::test]
async fn a_log_of_many_gigabytes_is_opened_by_its_tail() {
    use std::os::unix::fs::FileExt;
    const HUGE: u64 = 1 << 38;
    let bench = Bench::new();
    let file = std::fs::File::create(bench.path()).unwrap();
    let run = [invoke(), user("x"), said("y"), completed(), notified("z")];
    let mut tail = b"\n".to_vec();
    tail.extend(lines(&run));
    file.write_all_at(&tail, HUGE).unwrap();
    file.write_all_at(&lines(&[bench.start()]), 0).unwrap();
    let (journal, opened) = Journal::open(&bench.files, bench.segment).await.unwrap();
    journal.commit(vec![notified("more")]).await.unwrap();
    assert_eq!(opened.end, HUGE + tail.len() as u64);
    let room = lines(&run[2..]).len() as u64;
    let end = Some(opened.end);
    let page = crate::session::page(&bench.files, bench.segment, end, None, room).unwrap();
    assert_eq!(page.entries.len(), 3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_log_cut_at_any_byte_keeps_every_whole_line(acts in acts(), at in 0.0f64..=1.0) {
        let bench = Bench::new();
        let entries: Vec<Entry> = [bench.start()].into_iter().chain(play(&acts)).collect();
        let whole = bench.write(&entries);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let cut = (whole.len() as f64 * at) as usize;
        let kept = whole[..cut].iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);

        std::fs::write(bench.path(), &whole[..kept]).unwrap();
        let expected = replay(&bench.files, bench.segment, None).ok();
        std::fs::write(bench.path(), &whole[..cut]).unwrap();
        prop_assert_eq!(&replay(&bench.files, bench.segment, None).ok(), &expected);

        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (journal, opened) =
            runtime.block_on(Journal::open(&bench.files, bench.segment)).unwrap();
        let torn = (cut > kept).then(|| (cut - kept) as u64);
        prop_assert_eq!(opened.torn_bytes, torn);
        prop_assert_eq!(&bench.content()[..kept], &whole[..kept]);
        runtime.block_on(journal.commit(vec![notified("goes on")])).unwrap();
        runtime.block_on(journal.close());

        let prefix = replay(&bench.files, bench.segment, Some(kept as u64)).ok();
        prop_assert_eq!(&prefix, &expected);
        let after = replay(&bench.files, bench.segment, None).unwrap();
        prop_assert_eq!(after.damaged, Vec::new());
        let open_run = expected.as_ref().is_some_and(|replay| replay.interrupted);
        prop_assert_eq!(opened.cut_run, open_run);
        let mut history = expected.map_or_else(Vec::new, |replay| replay.history);
        history.push(after.history.last().unwrap().clone());
        prop_assert_eq!(after.history, history);
    }
}
