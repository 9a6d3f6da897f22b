use crate::disk::small::on_small_disk;
use crate::protocol::entry::Entry;
use crate::session::tests::bench::{Bench, lines, notified, said};
use crate::session::{Journal, LogError, Partial};
use std::os::unix::fs::PermissionsExt;

#[tokio::test]
async fn a_new_segment_is_private_and_begins_with_what_it_was_given() {
    let bench = Bench::new();
    let start = bench.start();
    let entries = vec![start.clone()];
    let (journal, end) = Journal::create(&bench.files, bench.segment, entries).await.unwrap();
    assert_eq!(bench.content(), lines(&[start]));
    assert_eq!((end, journal.end()), (bench.content().len() as u64, end));
    let mode = std::fs::metadata(bench.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = Journal::create(&bench.files, bench.segment, vec![bench.start()]).await;
    assert!(matches!(again, Err(LogError::Disk(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_come_together_are_each_whole_and_know_where_they_end() {
    let bench = Bench::new();
    let entries = vec![bench.start()];
    let (journal, _) = Journal::create(&bench.files, bench.segment, entries).await.unwrap();
    let commit = |n: usize| {
        let journal = journal.clone();
        tokio::spawn(async move {
            let entries: Vec<Entry> = (0..=n % 3).map(|m| notified(&format!("{n}.{m}"))).collect();
            let expected = lines(&entries);
            (expected, journal.commit(entries).await.unwrap())
        })
    };
    let commits: Vec<_> = (0..300).map(commit).collect();
    let mut total = 0;
    for commit in commits {
        let (expected, end) = commit.await.unwrap();
        let end = usize::try_from(end).unwrap();
        assert_eq!(bench.content()[end - expected.len()..end], expected);
        total += expected.len();
    }
    assert_eq!(bench.content().len(), lines(&[bench.start()]).len() + total);
}

#[tokio::test]
async fn a_full_disk_refuses_the_whole_commit_and_every_one_after_it() {
    let bench = Bench::new();
    let before = bench.write(&[bench.start()]);
    let journal =
        Journal::start(&bench.files, bench.segment, on_small_disk(&bench.path(), 100, false));
    let error = journal.commit(vec![notified(&"x".repeat(200))]).await.unwrap_err();
    assert!(matches!(error, LogError::Full(_)), "{error}");
    assert!(error.to_string().contains(&bench.path().display().to_string()), "{error}");
    assert!(matches!(journal.commit(vec![notified("y")]).await, Err(LogError::Final(_))));
    assert_eq!(bench.content(), before);
    journal.close().await;
    let (journal, opened) = Journal::open(&bench.files, bench.segment).await.unwrap();
    assert_eq!((opened.end, opened.cut_run), (before.len() as u64, false));
    journal.commit(vec![notified("there is room again")]).await.unwrap();
}

#[tokio::test]
async fn the_real_full_device_is_named_in_the_error() {
    let bench = Bench::new();
    std::os::unix::fs::symlink("/dev/full", bench.path()).unwrap();
    let journal =
        Journal::start(&bench.files, bench.segment, on_small_disk(&bench.path(), 1 << 20, false));
    let error = journal.commit(vec![notified("x")]).await.unwrap_err();
    assert!(matches!(error, LogError::Full(_)), "{error}");
}

#[tokio::test]
async fn a_second_writer_is_noticed_at_the_next_commit() {
    let bench = Bench::new();
    bench.write(&[bench.start()]);
    let (ours, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    let of_another_program = bench.files_of_another_program();
    let (theirs, _) = Journal::open(&of_another_program, bench.segment).await.unwrap();
    theirs.commit(vec![notified("theirs")]).await.unwrap();
    let with_theirs = bench.content();
    let error = ours.commit(vec![notified("ours")]).await.unwrap_err();
    assert!(matches!(error, LogError::SecondWriter(_)), "{error}");
    assert_eq!(bench.content(), with_theirs);
}

#[tokio::test]
async fn a_log_is_opened_when_its_last_writer_has_ended() {
    let bench = Bench::new();
    bench.write(&[bench.start()]);
    let (last, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    let mut next = std::pin::pin!(Journal::open(&bench.files, bench.segment));
    for n in 0..20 {
        assert!(futures_util::poll!(&mut next).is_pending(), "the last writer is there");
        last.commit(vec![notified(&n.to_string())]).await.unwrap();
    }
    // As a run that is aborted: its commit is under way, and its handle is dropped unclosed.
    let mut under_way = Box::pin(last.commit(vec![notified("the last one")]));
    assert!(futures_util::poll!(&mut under_way).is_pending());
    drop(under_way);
    drop(last);
    let (next, opened) = next.await.unwrap();
    assert_eq!(opened.end, bench.content().len() as u64);
    assert!(String::from_utf8(bench.content()).unwrap().contains("the last one"));
    next.commit(vec![notified("goes on")]).await.unwrap();
}

#[tokio::test]
async fn closing_waits_for_what_was_handed_over_and_ends_every_handle() {
    let bench = Bench::new();
    bench.write(&[bench.start()]);
    let (journal, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    let other = journal.clone();
    let (committed, ()) = tokio::join!(journal.commit(vec![notified("last")]), other.close());
    assert_eq!(committed.unwrap(), bench.content().len() as u64);
    assert!(matches!(journal.commit(vec![notified("x")]).await, Err(LogError::Closed(_))));
    journal.close().await;
}

#[tokio::test]
async fn a_log_that_is_not_there_is_said_to_be_missing() {
    let bench = Bench::new();
    let error = Journal::open(&bench.files, bench.segment).await.map(drop).unwrap_err();
    assert!(matches!(&error, LogError::Missing(path) if *path == bench.path()), "{error}");
}

#[tokio::test]
async fn many_small_deltas_are_few_writes_and_lose_nothing() {
    let bench = Bench::new();
    bench.write(&[bench.start()]);
    let (journal, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    let deltas: Vec<String> = (0..2000).map(|n| format!("日{n} ")).collect();
    deltas.iter().for_each(|delta| journal.stream(Partial::Text, delta));
    journal.close().await;
    let open_block = bench.files.open_block(bench.segment);
    assert!(std::fs::read_to_string(&open_block).unwrap().lines().count() < 20);
    let left = crate::session::partial::left(&open_block).unwrap();
    assert_eq!(left.sections.len(), 1);
    assert_eq!(left.sections[0].text, deltas.concat());
}

#[tokio::test]
async fn a_long_block_is_in_the_open_file_and_not_in_memory() {
    let bench = Bench::new();
    bench.write(&[bench.start()]);
    let (journal, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    let kinds = [Partial::Thinking, Partial::Text];
    let mut streamed = [String::new(), String::new()];
    for n in 0..100_000 {
        let at = usize::from(n >= 50_000);
        let delta = format!("日{n} ");
        journal.stream(kinds[at], &delta);
        streamed[at] += &delta;
        // The task that writes runs here.
        if n % 1_000 == 0 {
            journal.streamed().await;
        }
    }
    assert!(journal.held() < 200_000, "{} bytes are held", journal.held());
    journal.close().await;
    let left = crate::session::partial::left(&bench.files.open_block(bench.segment)).unwrap();
    let found: Vec<String> = left.sections.into_iter().map(|section| section.text).collect();
    assert!(found == streamed);
}

#[tokio::test]
async fn a_committed_block_leaves_nothing_in_the_open_file() {
    let bench = Bench::new();
    bench.write(&[bench.start()]);
    let (journal, _) = Journal::open(&bench.files, bench.segment).await.unwrap();
    journal.stream(Partial::Text, &"long ".repeat(2000));
    journal.commit(vec![said("long")]).await.unwrap();
    journal.stream_done();
    journal.close().await;
    let open_block = bench.files.open_block(bench.segment);
    assert_eq!(std::fs::metadata(open_block).map_or(0, |meta| meta.len()), 0);
}

#[test]
fn a_commit_goes_through_while_the_blocking_pool_is_exhausted() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let (release, stuck) = std::sync::mpsc::channel::<()>();
    runtime.block_on(async {
        let reader = tokio::task::spawn_blocking(move || stuck.recv().is_ok());
        let bench = Bench::new();
        let entries = vec![bench.start()];
        let committed = async {
            let (journal, _) = Journal::create(&bench.files, bench.segment, entries).await.unwrap();
            journal.stream(Partial::Text, "text");
            journal.commit(vec![said("text")]).await.unwrap();
            journal.stream_done();
            journal.close().await;
            Journal::open(&bench.files, bench.segment).await.unwrap().0.close().await;
        };
        let patience = std::time::Duration::from_secs(30);
        tokio::time::timeout(patience, committed).await.expect("no commit waits for the reader");
        release.send(()).unwrap();
        assert!(reader.await.unwrap());
    });
}
