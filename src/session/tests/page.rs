use crate::protocol::entry::Entry;
use crate::protocol::event::Line;
use crate::protocol::name::{EntryId, SegmentId};
use crate::protocol::{ByteRange, LineShape};
use crate::session::cut::CUT_OVER;
use crate::session::locate::place_id;
use crate::session::tests::bench::{
    Bench, acts, completed, invoke, lines, notified, play, said, start, user, without_rolled_back,
};
use crate::session::{LogError, Recent, backwards, cut, fetch, page, piece};
use proptest::prelude::*;

/// An entry as a page shows it.
fn shown(entry: &Entry) -> Line {
    match cut(entry) {
        Some(short) => {
            let cut_bytes = lines(std::slice::from_ref(entry)).len() as u64 - 1;
            assert_eq!(short.cut_bytes, cut_bytes);
            Line::Cut { cut_bytes, entry: Box::new(short.entry) }
        }
        None => Line::Whole(Box::new(entry.clone())),
    }
}

/// All pages, joined.
fn all_pages(bench: &Bench, max_bytes: u64) -> Vec<Line> {
    let mut read: Vec<Line> = Vec::new();
    let mut before = None;
    loop {
        let page = page(&bench.files, bench.segment, None, before, max_bytes).unwrap();
        assert!(!page.entries.is_empty());
        read.splice(0..0, page.entries);
        before = page.before;
        if before.is_none() {
            return read;
        }
    }
}

/// Writes the segments of one session, the last one as the current; returns all their entries.
fn write_chain(bench: &mut Bench, segments: &[Vec<Entry>]) -> Vec<Entry> {
    let mut written = Vec::new();
    let mut older = None;
    for entries in segments {
        bench.segment = SegmentId::new();
        let begin = start(bench.session, older);
        let entries: Vec<Entry> = [begin].into_iter().chain(entries.iter().cloned()).collect();
        bench.write(&entries);
        written.extend(without_rolled_back(&entries));
        older = Some(bench.segment);
    }
    written
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn pages_of_any_size_joined_are_the_whole_transcript(
        segments in prop::collection::vec(acts(), 1..4),
        max_bytes in prop_oneof![Just(0u64), 1u64..2_000, 2_000u64..300_000],
    ) {
        let mut bench = Bench::new();
        let played: Vec<Vec<Entry>> = segments.iter().map(|acts| play(acts)).collect();
        let written = write_chain(&mut bench, &played);
        let expected: Vec<Line> = written.iter().map(shown).collect();
        prop_assert_eq!(all_pages(&bench, max_bytes), expected);
    }

    #[test]
    fn a_page_before_any_entry_ends_just_before_it(
        segments in prop::collection::vec(acts(), 1..3),
        at in any::<prop::sample::Index>(),
    ) {
        let mut bench = Bench::new();
        let played: Vec<Vec<Entry>> = segments.iter().map(|acts| play(acts)).collect();
        let written = write_chain(&mut bench, &played);
        let at = at.index(written.len());
        let page = page(&bench.files, bench.segment, None, written[at].id, 1_000).unwrap();
        let expected: Vec<Line> = written[..at].iter().map(shown).collect();
        let shown = expected.len() - page.entries.len();
        prop_assert_eq!(&page.entries[..], &expected[shown..]);
        prop_assert_eq!(page.before, if shown == 0 { None } else { written[shown].id });
        prop_assert_eq!(&fetch(&bench.files, bench.segment, written[at].id.unwrap()).unwrap(), &written[at]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn read_backwards_a_transcript_is_its_entries_in_reverse_but_for_damaged_lines(
        segments in prop::collection::vec(acts(), 1..4),
        long in 0..4_usize,
    ) {
        let mut bench = Bench::new();
        let mut played: Vec<Vec<Entry>> = segments.iter().map(|acts| play(acts)).collect();
        // More than one piece, each with an entry that is cut.
        played[0].extend((0..long).map(|_| said(&"long ".repeat(20_000))));
        let mut expected = write_chain(&mut bench, &played);
        expected.reverse();
        let mut file = std::fs::OpenOptions::new().append(true).open(bench.path()).unwrap();
        std::io::Write::write_all(&mut file, b"no entry\n").unwrap();
        let read = backwards(&bench.files, bench.segment, None).map(Result::unwrap);
        let read: Vec<(Entry, bool)> =
            read.map(|Recent { entry, is_cut, .. }| (entry, is_cut)).collect();
        let expected: Vec<(Entry, bool)> = expected.iter().map(|entry| match shown(entry) {
            Line::Cut { entry, .. } => (*entry, true),
            Line::Whole(entry) => (*entry, false),
            Line::Damaged { .. } => unreachable!(),
        }).collect();
        prop_assert_eq!(read, expected);
    }
}

#[test]
fn a_backward_read_with_a_limit_says_whether_it_left_entries_out() {
    let bench = Bench::new();
    let mut entries = vec![bench.start()];
    entries.extend((0..9).map(|_| said(&"long ".repeat(10_000))));
    bench.write(&entries);
    let read = |bytes| {
        let mut read = backwards(&bench.files, bench.segment, None).within(bytes);
        (read.by_ref().map(Result::unwrap).count(), read.is_cut_short())
    };
    assert_eq!(read(120_000), (3, true));
    assert_eq!(read(1 << 20), (10, false));
}

#[test]
fn a_page_holds_what_fits_and_at_least_one_entry() {
    let bench = Bench::new();
    let entries = vec![bench.start(), said("one"), said("two"), said(&"three".repeat(99))];
    bench.write(&entries);
    let sizes = |max| page(&bench.files, bench.segment, None, None, max).unwrap().entries.len();
    let two = lines(&entries[2..]).len() as u64;
    assert_eq!((sizes(0), sizes(two - 1), sizes(two), sizes(u64::MAX)), (1, 1, 2, 4));
}

#[test]
fn a_page_ends_where_the_log_was_when_it_was_asked_for() {
    let bench = Bench::new();
    let entries = vec![bench.start(), said("one"), said("not yet told")];
    bench.write(&entries);
    let end = lines(&entries[..2]).len() as u64;
    let page = page(&bench.files, bench.segment, Some(end), None, 1 << 20).unwrap();
    assert_eq!(page.entries, [shown(&entries[0]), shown(&entries[1])]);
}

#[test]
fn an_entry_is_found_in_a_log_of_many_megabytes_also_where_the_clock_went_back() {
    let bench = Bench::new();
    let mut entries = vec![bench.start()];
    entries.extend((0..6_000).map(|n| said(&format!("{n} {}", "x".repeat(n % 1000)))));
    let late: Vec<Entry> = entries.drain(1..900).collect();
    entries.extend(late);
    bench.write(&entries);
    for at in [0, 1, 2, 40, 2_999, 3_000, 5_099, 5_100, 5_101, 5_500, 6_000 - 1] {
        let found = fetch(&bench.files, bench.segment, entries[at].id.unwrap()).unwrap();
        assert_eq!(found, entries[at], "entry {at}");
    }
    let unknown = EntryId::new();
    let error = fetch(&bench.files, bench.segment, unknown).unwrap_err();
    assert!(matches!(error, LogError::NoSuchEntry { entry, .. } if entry == unknown), "{error}");
}

#[test]
fn a_damaged_line_is_shown_in_its_place_and_a_page_may_end_there() {
    let bench = Bench::new();
    let (before, after) = (bench.start(), said("after"));
    let mut content = lines(std::slice::from_ref(&before));
    let byte = content.len() as u64;
    content.extend(b"{\"id\":\"0\n");
    content.extend(lines(std::slice::from_ref(&after)));
    std::fs::write(bench.path(), content).unwrap();
    for max_bytes in [0, 1 << 20] {
        let read = all_pages(&bench, max_bytes);
        assert_eq!((&read[0], &read[2]), (&shown(&before), &shown(&after)));
        assert!(matches!(&read[1], Line::Damaged { byte: at, .. } if *at == byte), "{read:?}");
    }
}

#[test]
fn entries_without_ids_get_one_that_names_their_place() {
    let bench = Bench::new();
    let log = include_str!("../../../tests/vectors/session-log.jsonl");
    std::fs::write(bench.path(), log).unwrap();
    let mut byte = 0;
    let expected = log.lines().map(|line| {
        let mut entry: Entry = serde_json::from_str(line).unwrap();
        entry.id = Some(place_id(bench.segment, byte));
        byte += line.len() as u64 + 1;
        entry
    });
    let expected: Vec<Entry> = expected.collect();
    let read = all_pages(&bench, 700);
    assert_eq!(read, expected.iter().map(shown).collect::<Vec<_>>());
    let found = fetch(&bench.files, bench.segment, expected[7].id.unwrap()).unwrap();
    assert_eq!(found, expected[7]);
}

#[test]
fn a_lost_older_segment_is_said_at_the_top() {
    let bench = Bench::new();
    let older = SegmentId::new();
    let begin = start(bench.session, Some(older));
    bench.write(&[begin.clone(), invoke(), user("x"), completed(), notified("y")]);
    let page = page(&bench.files, bench.segment, None, None, 1 << 20).unwrap();
    let Line::Damaged { damaged, .. } = &page.entries[0] else { panic!("{page:?}") };
    assert!(damaged.contains(&older.to_string()), "{damaged}");
    assert_eq!((page.before, page.entries.len()), (None, 6));
}

#[test]
fn a_long_entry_costs_the_page_what_is_sent_of_it() {
    let bench = Bench::new();
    bench.write(&[bench.start(), said(&"x".repeat(3_000_000)), said("last")]);
    let page = page(&bench.files, bench.segment, None, None, CUT_OVER + 1_000).unwrap();
    assert_eq!(page.entries.len(), 3);
}

#[test]
fn an_entry_of_any_size_is_read_whole_in_pieces_and_its_text_is_where_the_shape_says() {
    let bench = Bench::new();
    let long = "日本 \"quoted\" \\ and\n\ttabbed 🎈 ".repeat(20_000);
    let entries = vec![bench.start(), user("before"), said(&long), said("behind")];
    let content = bench.write(&entries);
    let whole = serde_json::to_string(&entries[2]).unwrap();
    for bytes in [1, 1_000, 65_536, u64::MAX] {
        let (mut id, mut read, mut shape) = (entries[2].id.unwrap(), String::new(), None);
        while shape.as_ref().is_none_or(|shape: &LineShape| (read.len() as u64) < shape.total) {
            if bytes == 1 && read.len() > 3_000 {
                break;
            }
            let range = ByteRange { start: read.len() as u64, bytes };
            let piece = piece(&bench.files, bench.segment, id, range).unwrap();
            assert_eq!(piece.start, range.start);
            read.push_str(&piece.line);
            (id, shape) = (piece.entry, shape.or(piece.shape));
        }
        let shape = shape.unwrap();
        assert_eq!(shape.total, whole.len() as u64);
        assert!(whole.starts_with(&read) && (bytes == 1 || whole == read));
        let [span] = shape.texts.as_slice() else { panic!("{shape:?}") };
        let quoted = &whole[span.start as usize - 1..=span.end as usize];
        assert_eq!(serde_json::from_str::<String>(quoted).unwrap(), long);
    }
    assert!(content.len() > whole.len());
}

#[test]
fn a_range_that_begins_inside_a_character_begins_with_all_of_it() {
    let bench = Bench::new();
    let entry = said("日本");
    bench.write(&[bench.start(), entry.clone()]);
    let line = serde_json::to_string(&entry).unwrap();
    let at = line.find('本').unwrap() as u64;
    for inside in 0..3 {
        let range = ByteRange { start: at + inside, bytes: 5 };
        let piece = piece(&bench.files, bench.segment, entry.id.unwrap(), range).unwrap();
        assert_eq!(piece.start, at);
        assert!(piece.line.starts_with("本\""), "{piece:?}");
    }
}
