use crate::protocol::entry::SegmentOrigin;
use crate::protocol::name::SegmentId;
use crate::session::tests::bench::{
    Bench, call, completed, invoke, lines, notified, result, rolled_back, said, start, user,
};
use crate::session::{fork, page, replay, rewind_targets};

fn origin(segment_id: SegmentId) -> SegmentOrigin {
    SegmentOrigin { segment_id, at_turn_index: 1 }
}

#[tokio::test]
async fn going_back_copies_the_kept_lines_and_leaves_the_old_segment_alone() {
    let bench = Bench::new();
    let entries = vec![
        bench.start(),
        invoke(),
        user("one"),
        said("1"),
        completed(),
        invoke(),
        user("two"),
        said("2"),
        completed(),
    ];
    let before = bench.write(&entries);
    let forked = origin(bench.segment);
    let (journal, segment, end) = fork(&bench.files, bench.segment, 5, forked).await.unwrap();
    assert_eq!(bench.content(), before);

    let path = bench.files.segment(segment);
    let content = std::fs::read(&path).unwrap();
    assert_eq!(end, content.len() as u64);
    assert!(content.ends_with(&lines(&entries[1..5])));
    let replayed = replay(&path, None).unwrap();
    assert_eq!((replayed.entries, replayed.forked_from), (5, Some(forked)));
    assert_eq!(replayed.system_prompt.as_deref(), Some("be good"));
    assert_eq!(replayed.history.len(), 2);
    journal.commit(vec![notified("and on")]).await.unwrap();
    assert_eq!(replay(&path, None).unwrap().history.len(), 3);
}

#[test]
fn each_input_is_a_target_newest_first_with_a_warning_where_tools_ran_since() {
    let bench = Bench::new();
    let long = "é".repeat(200);
    let entries = vec![
        bench.start(),
        invoke(),
        user("one"),
        call("c", "Bash"),
        result("c", ""),
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
    let (head, targets) = rewind_targets(&bench.files, bench.segment).unwrap();
    assert_eq!(head, entries.len());
    let shown: Vec<_> = targets
        .iter()
        .map(|t| (t.turn_index, t.id.user_input_entry_index, t.truncate_entries, t.eligible))
        .collect();
    assert_eq!(shown, [(3, 11, 11, false), (2, 9, 7, true), (1, 2, 1, true)]);
    assert_eq!(targets[1].preview, "é".repeat(120));
    assert_eq!(targets[1].timestamp_ms, Some(entries[9].ts));
    let warned: Vec<bool> = targets.iter().map(|target| target.warning.is_some()).collect();
    assert_eq!(warned, [false, false, true]);
    assert!(targets[0].disabled_reason.is_some());
}

#[test]
fn a_rolled_back_message_is_no_rewind_target() {
    let bench = Bench::new();
    let run = invoke();
    let back = rolled_back(&run);
    bench.write(&[bench.start(), run, user("nobody answers"), back]);
    assert_eq!(rewind_targets(&bench.files, bench.segment).unwrap(), (4, Vec::new()));
}

#[tokio::test]
async fn a_rewind_reaches_messages_before_a_compaction() {
    let mut bench = Bench::new();
    let older = bench.segment;
    let old_lines = [bench.start(), invoke(), user("one"), said("1"), completed()];
    bench.write(&old_lines);
    bench.segment = SegmentId::new();
    let begin = start(bench.session, Some(older));
    bench.write(&[begin, invoke(), user("two"), said("2"), completed()]);

    let (head, targets) = rewind_targets(&bench.files, bench.segment).unwrap();
    let shown: Vec<_> =
        targets.iter().map(|t| (t.turn_index, t.id.segment_id, t.expected_head_entries)).collect();
    assert_eq!((head, shown), (5, vec![(2, bench.segment, 5), (1, older, 5)]));

    let keep = targets[1].truncate_entries;
    let (_, back, _) = fork(&bench.files, older, keep, origin(bench.segment)).await.unwrap();
    assert!(replay(&bench.files.segment(back), None).unwrap().history.is_empty());

    // Going back within the newer segment still leads to the older one.
    let keep = targets[0].truncate_entries;
    let (_, back, _) =
        fork(&bench.files, bench.segment, keep, origin(bench.segment)).await.unwrap();
    let page = page(&bench.files, back, None, None, 1 << 20).unwrap();
    assert_eq!(page.entries.len(), old_lines.len() + 1);
}

#[tokio::test]
async fn a_segment_without_a_readable_start_is_not_forked() {
    let bench = Bench::new();
    std::fs::write(bench.path(), lines(&[said("x")])).unwrap();
    let forked = fork(&bench.files, bench.segment, 1, origin(bench.segment)).await;
    let error = forked.map(drop).unwrap_err();
    assert!(error.to_string().contains("at byte 0"), "{error}");
    assert_eq!(std::fs::read_dir(bench.files.dir()).unwrap().count(), 1);
}
