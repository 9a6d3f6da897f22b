//! Long texts: every line is reached, found and drawn, and only what is near the view is held.

use super::*;
use crate::screen::pane::transcript::parts::PART;

/// An answer of so many numbered lines.
fn numbered(lines: usize) -> String {
    (0..lines)
        .map(|n| format!("line {n} of the answer, and some words that make it longer\n"))
        .collect()
}

/// The numbers of the lines in view.
fn numbers(bench: &mut Bench) -> Vec<usize> {
    let number = |row: &String| {
        row.trim_matches([' ', '›']).strip_prefix("line ")?.split(' ').next()?.parse().ok()
    };
    bench.rows().iter().filter_map(number).collect()
}

const LINES: usize = 20_000;

fn long() -> Bench {
    let log = vec![you("go"), said(&numbered(LINES)), you("and now"), said("short")];
    Bench::new(log).sized(80, 24).open()
}

#[test]
fn every_line_of_a_long_answer_is_reached_from_its_end_and_from_its_beginning() {
    let mut bench = long();
    let mut next = *numbers(&mut bench).first().expect("the end of the answer in view");
    let mut most = 0;
    while next > 0 {
        bench.transcript.scroll(Scroll::Lines(-15));
        bench.find_visible_rows();
        most = most.max(bench.transcript.pages.bytes());
        let seen = numbers(&mut bench);
        let Some((first, last)) = seen.first().zip(seen.last()) else { continue };
        assert!(seen.windows(2).all(|two| two[0] + 1 == two[1]), "{seen:?}");
        assert!(last + 1 >= next, "lines {last} to {next} were skipped");
        next = *first;
    }
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    assert!(bench.screen().contains("line 0 of"));
    let mut reached = *numbers(&mut bench).last().expect("the beginning of the answer in view");
    while reached + 1 < LINES {
        bench.transcript.scroll(Scroll::Lines(20));
        bench.find_visible_rows();
        most = most.max(bench.transcript.pages.bytes());
        let seen = numbers(&mut bench);
        let (first, last) = seen.first().zip(seen.last()).expect("lines in view");
        assert!(seen.windows(2).all(|two| two[0] + 1 == two[1]), "{seen:?}");
        assert!(*first <= reached + 1, "lines {reached} to {first} were skipped");
        reached = *last;
    }
    assert!(most < 40 * PART, "{most} bytes were held");
    let kept = bench.transcript.cached.len();
    assert!(kept < 300, "the rows of {kept} blocks are held");
}

#[test]
fn a_text_is_found_anywhere_in_a_long_answer_up_and_down() {
    let mut bench = long();
    for n in [19_999, 10_000, 2_345, 7, 0] {
        bench.transcript.find(&format!("line {n} of"));
        bench.find_visible_rows();
        assert_eq!(bench.transcript.search(), Search::Found, "line {n}");
        assert!(numbers(&mut bench).contains(&n), "{n}: {}", bench.screen());
        assert!(bench.transcript.pages.bytes() < 40 * PART);
        bench.transcript.scroll(Scroll::Tail);
        bench.find_visible_rows();
    }
    bench.transcript.find("line 1999");
    bench.find_visible_rows();
    assert!(numbers(&mut bench).contains(&19_999));
    for expected in (19_990..19_999).rev().chain([1_999]) {
        bench.transcript.find_next(1);
        bench.find_visible_rows();
        assert!(numbers(&mut bench).contains(&expected), "{expected}");
    }
    bench.transcript.find_next(-1);
    bench.find_visible_rows();
    assert!(numbers(&mut bench).contains(&19_990));
    bench.transcript.find("nowhere");
    assert_eq!(bench.transcript.search(), Search::Looking);
    bench.find_visible_rows();
    assert_eq!(bench.transcript.search(), Search::NoneAbove);
}

#[test]
fn a_block_of_code_that_goes_over_many_parts_is_drawn_as_code_in_each() {
    let code: String = (0..9_000).map(|n| format!("let line_{n} = \"# no title\";\n")).collect();
    let text = format!("Look:\n\n```rust\n{code}```\n\nThe **end**.\n");
    let mut bench = Bench::new(vec![said(&text)]).sized(60, 12).open();
    assert!(bench.screen().contains("The end."), "{}", bench.screen());
    for n in [8_999, 5_000, 40, 0] {
        bench.transcript.find(&format!("line_{n} "));
        bench.find_visible_rows();
        let line = format!("let line_{n} = \"# no title\";");
        assert!(bench.screen().contains(&line), "{}", bench.screen());
        let pos = bench.transcript.seen[6].pos;
        let rows =
            &bench.transcript.pages.get(pos).and_then(|b| b.cache.as_ref()).expect("drawn").rows;
        let keyword = rows.iter().flatten().find(|piece| piece.text == "let").expect("a keyword");
        let is_bold = keyword.style.emphasis.contains(ratatui::style::Modifier::BOLD);
        assert!(is_bold, "line {n} is shown as code");
        bench.transcript.scroll(Scroll::Tail);
        bench.find_visible_rows();
    }
}

#[test]
fn wide_characters_escapes_and_empty_lines_are_shown_at_the_borders_of_parts_as_in_the_whole_text()
{
    for unit in ["日本語 👩\u{200d}💻 e\u{301} ", "\u{1b}[31mred\u{1b}[0m, ", "a\n\n", "x"] {
        let text = format!("{}\nend", unit.repeat(200_000 / unit.len()));
        let mut bench = Bench::new(vec![said(&text)]).sized(50, 30).open();
        bench.transcript.scroll(Scroll::Top);
        bench.find_visible_rows();
        let (mut shown, mut last) = (String::new(), None);
        loop {
            let rows = bench.rows();
            for (seen, row) in bench.transcript.seen.iter().zip(&rows) {
                assert_eq!(crate::rows::width(row), 50, "{row:?}");
                let place = Some((seen.pos, seen.row));
                if seen.row >= 0 && place > last {
                    (last, shown) = (place, shown + row.trim());
                }
            }
            if bench.transcript.is_at_tail() {
                break;
            }
            bench.transcript.scroll(Scroll::Lines(25));
            bench.find_visible_rows();
        }
        let words = |text: &str| text.split_whitespace().collect::<String>();
        let safe = yoi::text::SafeText::lines(text.as_str()).into_string();
        assert!(words(&shown) == words(&safe), "{unit:?} is shown otherwise");
    }
}

/// A long answer in pieces, as a model says it.
fn stream(bench: &mut Bench, text: &str) -> usize {
    let (mut from, mut most) = (0, 0);
    while from < text.len() {
        let to = text.ceil_char_boundary((from + 3_000).min(text.len()));
        bench.event(&delta(&text[from..to]));
        bench.layout();
        most = most.max(bench.transcript.pages.bytes());
        from = to;
    }
    most
}

#[test]
fn a_long_answer_streams_in_bounded_memory_and_its_entry_takes_its_place_without_a_jump() {
    let mut bench = Bench::new(vec![you("go")]).sized(80, 12).open();
    let text = numbered(80_000);
    let most = stream(&mut bench, &text);
    assert!(most < 40 * PART, "{most} bytes were held of {}", text.len());
    assert!(bench.screen().contains("line 79999 of"));
    bench.transcript.scroll(Scroll::Top);
    bench.transcript.scroll(Scroll::Lines(140));
    assert!(bench.screen().contains("the text above is shown when"), "{}", bench.screen());
    bench.transcript.scroll(Scroll::Tail);
    bench.transcript.scroll(Scroll::Lines(-100));
    let before = bench.rows();
    bench.commit(said(&text));
    assert_eq!(bench.rows(), before, "the lines that are read stay");
    bench.find_visible_rows();
    assert_eq!(bench.rows(), before, "the lines that are read stay");
    bench.transcript.find("line 40000 of");
    bench.find_visible_rows();
    assert!(numbers(&mut bench).contains(&40_000));
    bench.transcript.scroll(Scroll::Tail);
    bench.find_visible_rows();
    assert!(bench.screen().contains("line 79999 of"));
}

#[test]
fn the_cost_of_a_frame_does_not_grow_with_an_answer_that_streams() {
    let mut bench = Bench::new(Vec::new()).sized(80, 24).open();
    stream(&mut bench, &numbered(30_000));
    let last = bench.transcript.seen.last().expect("rows in view").pos;
    let rows = |bench: &Bench| {
        bench
            .transcript
            .pages
            .get(last)
            .and_then(|b| b.cache.as_ref())
            .map(|cache| cache.rows.len())
    };
    assert!(last.part > 0 && rows(&bench).is_some_and(|rows| rows < 2_000), "{:?}", rows(&bench));
}

#[test]
fn the_rows_in_view_stay_when_an_answer_becomes_long() {
    let mut bench = Bench::new(Vec::new()).sized(80, 12).open();
    let text = numbered(3_000);
    let (short, more) = text.split_at(60_000);
    stream(&mut bench, short);
    bench.transcript.scroll(Scroll::Lines(-300));
    let before = numbers(&mut bench);
    stream(&mut bench, more);
    assert_eq!(numbers(&mut bench), before);
}

/// A call whose result has so many numbered lines.
fn read() -> Bench {
    let log = vec![
        you("read it"),
        call("c", "Read", json!({ "file_path": "/a" })),
        result(1500, "c", "Read many lines", Some(&numbered(5_000)), false),
        said("done"),
    ];
    Bench::new(log).sized(80, 24).open()
}

#[test]
fn a_long_result_is_loaded_when_it_is_opened_and_is_searched_while_it_is_folded() {
    let mut bench = read();
    assert!(bench.screen().contains("Read   /a"));
    assert!(bench.transcript.tables.is_idle(), "what is folded is not loaded");
    bench.transcript.find("line 3333 of");
    bench.find_visible_rows();
    assert!(numbers(&mut bench).contains(&3_333), "{}", bench.screen());
    bench.transcript.fold();
    bench.find_visible_rows();
    assert!(bench.screen().contains("Read   /a") && bench.screen().contains("done"));
    bench.transcript.unfold();
    bench.transcript.scroll(Scroll::Tail);
    bench.find_visible_rows();
    assert!(numbers(&mut bench).contains(&4_999), "{}", bench.screen());
}

#[test]
fn parts_that_cannot_be_loaded_say_why_and_are_loaded_when_the_block_is_unfolded_again() {
    let log = vec![said(&numbered(5_000))];
    let mut bench = Bench::new(log).sized(80, 12);
    bench.layout();
    assert!(bench.serve(), "the page");
    assert!(bench.screen().contains("(the rest is being loaded …)"), "{}", bench.screen());
    let text = bench.transcript.wants_table().expect("a table");
    bench.transcript.table(text.entry, Err("the host ended".into()));
    let screen = bench.screen();
    assert!(
        screen.contains("(the rest is not loaded: the host ended; unfold it again"),
        "{screen}"
    );
    assert_eq!(bench.transcript.wants_table(), None);
    bench.transcript.toggle_fold();
    bench.find_visible_rows();
    assert!(bench.screen().contains("line 4999 of"), "{}", bench.screen());
}

#[test]
fn replies_that_come_too_late_or_twice_change_nothing() {
    let mut bench = long();
    let before = bench.rows();
    let entry = bench.log[1].id.expect("an id");
    let text = LongText { entry, fields: &["text"], skip: 0, kept: 3 };
    let table = bench.table(&text);
    bench.transcript.table(entry, Ok(table.clone()));
    let range = PartRange { entry, place: entry, first: 1, count: 1, start: 0, end: 9 };
    bench.transcript.parts(range, 0, "something");
    bench.transcript.parts_failed(range, "late".into());
    assert_eq!(bench.rows(), before);
    // Another Pod's transcript in the same place: nothing was asked for yet.
    let mut other = Transcript::in_zone(jiff::tz::TimeZone::UTC);
    other.table(entry, Ok(table));
    other.parts(range, 0, "something");
    assert_eq!(other.wants(), Some(Wanted::Page(None)));
}

#[test]
fn a_part_that_cannot_be_read_is_reported_and_requested_again_when_the_view_scrolls() {
    let mut bench = long();
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    bench.transcript.scroll(Scroll::Lines(1_500));
    bench.layout();
    let Some(Wanted::Parts(range)) = bench.transcript.wants() else { panic!("no part is wanted") };
    bench.transcript.asked();
    bench.transcript.parts_failed(range, "the connection to the host ended".into());
    assert!(bench.screen().contains("not loaded: the connection to the host ended"));
    assert_eq!(bench.transcript.wants(), None);
    bench.transcript.scroll(Scroll::Lines(1));
    bench.find_visible_rows();
    assert!(!bench.screen().contains("not loaded"));
}

#[test]
fn a_search_is_stopped_by_scrolling_and_continues_from_there() {
    let mut bench = long();
    bench.transcript.find("line 0 of");
    bench.layout();
    bench.serve();
    assert_eq!(bench.transcript.search(), Search::Looking);
    bench.transcript.find("");
    assert_eq!(bench.transcript.search(), Search::Off);
    bench.find_visible_rows();
    assert!(bench.screen().contains("short"));
    assert!(bench.transcript.pages.bytes() < 40 * PART);
}

#[test]
fn a_long_answer_is_copied_from_the_log_and_one_that_streams_not_yet() {
    let mut bench = long();
    let entry = bench.log[1].id.expect("an id");
    bench.transcript.find("line 17 of");
    bench.find_visible_rows();
    let Some(Copy::FromLog(copy)) = bench.transcript.yank() else { panic!("not from the log") };
    assert_eq!((copy.entry, copy.code), (Some(entry), false));
    assert_eq!(copy.sources, [Source::Fields(entry, &["text", "refusal"])]);
    let Some(Copy::FromLog(code)) = bench.transcript.yank_code() else {
        panic!("not from the log")
    };
    assert!(code.code);
    assert_eq!(bench.transcript.yank_last_answer(), Some(Copy::Text("short".into())));
    stream(&mut bench, &numbered(3_000));
    assert_eq!(bench.transcript.yank_last_answer(), Some(Copy::Incomplete));
}

#[test]
fn a_long_result_is_copied_with_its_call() {
    let mut bench = read();
    bench.transcript.step(-1);
    bench.transcript.step(-1);
    let Some(Copy::FromLog(copy)) = bench.transcript.yank() else { panic!("not from the log") };
    let entry = bench.log[2].id.expect("an id");
    let requested = Source::Text("Read {\"file_path\":\"/a\"}".into());
    let summary = Source::Text("\nRead many lines\n".into());
    assert_eq!(copy.sources, [requested, summary, Source::Fields(entry, &["content"])]);
}

#[test]
fn a_text_that_a_row_end_divides_is_found_in_its_row() {
    let words = "some words that go on and on ".repeat(5_000);
    let text = format!("{words} the quick brown fox jumps over the lazy dog {words}");
    let mut bench = Bench::new(vec![said(&text)]).sized(30, 9).open();
    bench.transcript.find("the quick brown fox jumps over the lazy dog");
    bench.find_visible_rows();
    assert!(bench.screen().contains("quick"), "{}", bench.screen());
}

#[test]
fn a_search_waits_for_the_rest_of_an_answer_that_is_being_loaded() {
    let mut bench = Bench::new(vec![said(&numbered(5_000))]).sized(80, 12);
    bench.layout();
    assert!(bench.serve(), "the page");
    bench.layout();
    bench.transcript.find("line 2500 of");
    assert_eq!(bench.transcript.search(), Search::Looking);
    bench.find_visible_rows();
    assert!(numbers(&mut bench).contains(&2_500), "{}", bench.screen());
}

#[test]
fn a_long_paste_that_is_folded_is_not_said_to_be_loaded_and_what_follows_it_is_shown() {
    let content = numbered(3_000);
    let lines = 3_000;
    let chars = u32::try_from(content.len()).expect("a length");
    let paste = Segment::Paste { id: 1, chars, lines, content };
    let question = Segment::Text { content: " what is wrong here?".into() };
    let segments = vec![paste, question];
    let sent = entry(0, Fact::UserInput { segments, taken: None, from: None });
    let mut bench = Bench::new(vec![sent]).sized(80, 12).open();
    let screen = bench.screen();
    assert!(screen.contains("[pasted text: 3000 lines"), "{screen}");
    assert!(screen.contains("characters] what is wrong here?"), "{screen}");
    assert!(!screen.contains("being loaded"), "{screen}");
    bench.transcript.toggle_fold();
    bench.transcript.scroll(Scroll::Tail);
    bench.find_visible_rows();
    let screen = bench.screen();
    assert_eq!(screen.matches("what is wrong here?").count(), 1, "{screen}");
    assert!(screen.contains("line 2999 of"), "{screen}");
    bench.transcript.toggle_fold();
    let screen = bench.screen();
    assert!(screen.contains("characters] what is wrong here?"), "{screen}");
}
