//! Scrolling, folding, finding.

use super::*;
use proptest::prelude::*;
use yoi::protocol::entry::domain;

/// A long conversation of messages, each with an answer of several rows and a call.
fn conversation(turns: usize) -> Vec<Entry> {
    (0..turns)
        .flat_map(|n| {
            let id = format!("call-{n}");
            [
                you(&format!("question {n}")),
                said(&format!("answer {n}, {}\n\nsecond part 日本語👩‍💻é", "word ".repeat(n % 40))),
                call(&id, "Bash", json!({"command": format!("run {n}")})),
                result(1500, &id, "exit status 0", Some("output\n"), false),
                entry(0, Fact::TurnEnd { turn_count: n as u64 }),
            ]
        })
        .collect()
}

#[test]
fn the_tail_is_followed_until_the_view_scrolls_and_then_new_blocks_are_counted() {
    let mut bench = Bench::new(conversation(30)).sized(60, 10).open();
    assert!(bench.transcript.is_at_tail());
    bench.transcript.scroll(Scroll::Lines(-3));
    let read = bench.rows();
    for n in 0..4 {
        bench.commit(said(&format!("news {n}")));
    }
    let now = bench.rows();
    assert_eq!(read, now, "the line that is read stays");
    assert_eq!(bench.transcript.new_below(), 4);
    bench.transcript.scroll(Scroll::Tail);
    assert_eq!(bench.transcript.new_below(), 0);
    assert!(bench.screen().contains("news 3"));
    bench.transcript.scroll(Scroll::Lines(-5));
    bench.transcript.scroll(Scroll::Lines(5));
    assert!(bench.transcript.is_at_tail(), "the end is the tail again");
}

#[test]
fn an_empty_answer_is_a_note_in_the_transcript() {
    let empty = || {
        let (domain, payload) = (domain::EMPTY_ANSWER.to_owned(), json!({}));
        entry(0, Fact::Extension { domain, payload })
    };
    let read = Bench::new(vec![you("hi"), empty()]).sized(80, 10).open().screen();
    assert!(read.contains("the model's answer was empty"), "{read}");
    let mut bench = Bench::new(vec![you("hi")]).sized(80, 10).open();
    bench.commit(empty());
    let committed = bench.screen();
    assert!(committed.contains("the model's answer was empty"), "{committed}");
}

#[test]
fn the_beginning_of_a_transcript_that_fits_the_view_is_its_tail_too() {
    let mut bench = Bench::new(conversation(1)).sized(60, 30).open();
    let before = bench.rows();
    bench.transcript.scroll(Scroll::Top);
    assert_eq!(bench.rows(), before, "nothing can be scrolled");
    for n in 0..40 {
        bench.commit(said(&format!("news {n}")));
    }
    assert!(bench.transcript.is_at_tail());
    assert_eq!(bench.transcript.new_below(), 0);
    assert!(bench.screen().contains("news 39"));
}

#[test]
fn pages_are_read_as_the_view_comes_near_and_the_beginning_is_reached() {
    let mut bench = Bench::new(conversation(200)).sized(60, 20).paged(4096).open();
    let first = bench.transcript.pages.newest_first().count();
    assert!(first < 100, "{first} blocks are loaded at once");
    bench.transcript.scroll(Scroll::Page(-30));
    bench.find_visible_rows();
    assert!(bench.transcript.pages.newest_first().count() > first);
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    let rows = bench.rows();
    assert!(rows[0].starts_with("▌ question 0 "), "{rows:#?}");
    assert_eq!((rows[1].trim(), rows[2].trim_end()), ("", "  answer 0,"));
    assert_eq!(bench.transcript.wants(), None);
}

#[test]
fn the_view_steps_from_message_to_message() {
    let mut bench = Bench::new(conversation(50)).sized(60, 4).paged(4096).open();
    let shows = |bench: &mut Bench, question: &str| {
        let first = bench.rows().swap_remove(0);
        assert!(first.starts_with(&format!("› {question} ")), "{first}");
    };
    bench.transcript.scroll(Scroll::Turn(-1));
    shows(&mut bench, "question 49");
    bench.transcript.scroll(Scroll::Turn(-2));
    bench.find_visible_rows();
    shows(&mut bench, "question 47");
    bench.transcript.scroll(Scroll::Lines(3));
    bench.transcript.scroll(Scroll::Turn(-1));
    // The turn that is read begins first.
    shows(&mut bench, "question 47");
    bench.transcript.scroll(Scroll::Turn(1));
    shows(&mut bench, "question 48");
    assert_eq!(bench.transcript.entry(), bench.log[48 * 5].id);
    bench.transcript.scroll(Scroll::Turn(9));
    assert!(bench.transcript.is_at_tail());
}

#[test]
fn a_search_counts_the_entries_with_a_match_from_the_newest() {
    let mut bench = Bench::new(conversation(20)).sized(60, 12).open();
    bench.transcript.find("run 1");
    bench.find_visible_rows();
    assert_eq!(bench.transcript.found_entry().as_deref(), Some("entry 1 of 11"));
    bench.transcript.find_next(1);
    bench.find_visible_rows();
    assert_eq!(bench.transcript.found_entry().as_deref(), Some("entry 2 of 11"));
    bench.transcript.scroll(Scroll::Page(-2));
    bench.find_visible_rows();
    bench.transcript.find("nowhere");
    bench.find_visible_rows();
    assert_eq!(bench.transcript.found_entry(), None);
    assert!(bench.transcript.has_no_match(), "it was looked for above and below the view");
    bench.transcript.find("run 1");
    bench.find_visible_rows();
    assert!(!bench.transcript.has_no_match());
    let mut paged = Bench::new(conversation(300)).sized(60, 12).paged(4096).open();
    paged.transcript.find("run 299");
    assert_eq!(paged.transcript.found_entry().as_deref(), Some("entry 1 of 1+"));
}

#[test]
fn each_match_of_a_long_paragraph_is_visited_and_marked_also_over_the_end_of_a_row() {
    let text: String = (0..600).map(|n| format!("line {n}\n")).collect();
    let mut bench = Bench::new(vec![said(&text)]).sized(60, 12).open();
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    bench.transcript.find("line 54");
    bench.find_visible_rows();
    // The view was at the beginning: the matches are below it.
    assert_eq!(bench.transcript.search(), Search::Found);
    let marked = |bench: &mut Bench| {
        bench.layout();
        let buffer = bench.buffer();
        let is_here = |x: u16, y: u16| {
            let cell = &buffer[(x, y)];
            cell.modifier.contains(ratatui::style::Modifier::REVERSED).then(|| cell.symbol())
        };
        let cells = (0..12).flat_map(|y| (0..60).map(move |x| (x, y)));
        cells.filter_map(|(x, y)| is_here(x, y)).collect::<String>()
    };
    let mut seen = String::new();
    let mut last = String::new();
    for _ in 0..11 {
        let here = bench.transcript.find.shown_at().map(|at| format!("{at:?}"));
        let here = here.expect("a match");
        assert!(marked(&mut bench).contains("line"), "{}", bench.screen());
        if here == last {
            break;
        }
        seen.push_str(&bench.screen());
        last = here;
        bench.transcript.find_next(1);
        bench.find_visible_rows();
    }
    assert_eq!(bench.transcript.search(), Search::NoneAbove, "all of them were visited");
    for n in [54, 540, 549] {
        assert!(seen.contains(&n.to_string()), "{n}: {seen}");
    }
}

#[test]
fn a_text_is_found_in_pages_that_are_not_loaded_yet() {
    let mut bench = Bench::new(conversation(300)).sized(60, 12).paged(4096).open();
    bench.transcript.find("Question 7");
    bench.find_visible_rows();
    assert_eq!(bench.transcript.search(), Search::NoneAbove, "capitals count");
    bench.transcript.find("question 7\u{20}");
    bench.find_visible_rows();
    assert_eq!(bench.transcript.search(), Search::NoneAbove);
    bench.transcript.find("run 12");
    bench.find_visible_rows();
    assert!(bench.screen().contains("Bash   run 129"), "{}", bench.screen());
    bench.transcript.find_next(9);
    bench.find_visible_rows();
    assert!(bench.screen().contains("Bash   run 128"));
    for _ in 0..9 {
        bench.transcript.find_next(1);
        bench.find_visible_rows();
    }
    assert!(bench.screen().contains("Bash   run 12 "));
    assert_eq!(bench.transcript.search(), Search::Found);
    bench.transcript.find_next(-1);
    assert!(bench.screen().contains("Bash   run 120"));
    bench.transcript.find("output");
    bench.find_visible_rows();
    let screen = bench.screen();
    assert!(screen.contains("    output"), "what is folded is unfolded for it: {screen}");
}

#[test]
fn a_match_is_marked_where_it_stands() {
    let mut bench = Bench::new(vec![said("日本語 needle 日本 NEEDLE")]).sized(40, 3).open();
    bench.transcript.find("needle");
    bench.layout();
    let buffer = bench.buffer();
    let is_marked = |x: u16| buffer[(x, 0)].modifier.contains(ratatui::style::Modifier::UNDERLINED);
    let marked: Vec<u16> = (0..40).filter(|x| is_marked(*x)).collect();
    assert_eq!(marked, (9..15).chain(21..27).collect::<Vec<u16>>());
}

#[test]
fn a_block_unfolds_where_it_stands_and_folds_again() {
    let mut bench = Bench::new(conversation(30)).sized(60, 40).open();
    let row = bench.rows().iter().position(|row| row.contains("Bash ")).expect("a call in view");
    assert!(bench.transcript.focus_at(u16::try_from(row).expect("a row")));
    let before = bench.rows();
    bench.transcript.toggle_fold();
    let unfolded = bench.rows();
    assert!(unfolded[row].starts_with("▾ Bash"), "{unfolded:#?}");
    assert!(unfolded[row + 1].contains("$ run"));
    bench.transcript.toggle_fold();
    assert_eq!(bench.rows(), before);
    assert!(before[row].starts_with("▸ Bash"), "{before:#?}");
    bench.transcript.toggle_fold_all();
    assert!(bench.screen().matches("$ run").count() > 1);
}

#[test]
fn the_cursor_goes_from_block_to_block_and_through_long_ones() {
    let long = "row\n".repeat(40);
    let mut bench = Bench::new(vec![you("a"), said(&long), you("b")]).sized(40, 10).open();
    for _ in 0..2 {
        bench.transcript.step(-1);
    }
    assert_eq!(bench.transcript.entry(), bench.log[1].id);
    for _ in 0..80 {
        bench.transcript.step(-1);
    }
    assert_eq!(bench.transcript.entry(), bench.log[0].id);
    assert!(bench.rows()[0].starts_with("› a "));
    for _ in 0..80 {
        bench.transcript.step(1);
    }
    assert_eq!(bench.transcript.entry(), bench.log[2].id);
    assert!(bench.screen().contains("› b "));
}

#[test]
fn blocks_are_copied_as_they_were_written_and_are_named() {
    let log = vec![
        you("**hi**"),
        said("see\n```sh\nls -l\n```\n"),
        call("1", "Bash", json!({"command": "ls"})),
        result(1100, "1", "exit status 0", Some("a\nb"), false),
    ];
    let mut bench = Bench::new(log).open();
    let text = |text: &str| Some(Copy::Text(text.into()));
    bench.transcript.step(-1);
    assert_eq!(bench.transcript.yank(), text("$ ls\nexit status 0\na\nb"));
    assert_eq!(bench.transcript.name_under_cursor(), "the call");
    assert_eq!(bench.transcript.yank_message(), text("see\n```sh\nls -l\n```\n"));
    bench.transcript.step(-1);
    assert_eq!(bench.transcript.yank_code(), text("ls -l\n"));
    assert_eq!(bench.transcript.name_under_cursor(), "the answer");
    bench.transcript.step(-1);
    assert_eq!(bench.transcript.yank(), text("**hi**"));
    assert_eq!(bench.transcript.name_under_cursor(), "your message");
    assert_eq!(bench.transcript.yank_last_answer(), text("see\n```sh\nls -l\n```\n"));
}

#[test]
fn a_shortened_call_is_wanted_whole_when_it_is_unfolded() {
    let content = |text: &str| json!({ "file_path": "/a", "content": text });
    let whole = call("w", "Write", content(&"long\n".repeat(30)));
    let mut cut = whole.clone();
    cut.fact = call("w", "Write", content("long …")).fact;
    let mut bench = Bench::new(Vec::new()).sized(60, 50);
    bench.transcript.asked();
    let line = Line::Cut { cut_bytes: 100_000, entry: Box::new(cut) };
    bench.transcript.page(vec![line], None, Vec::new(), 0);
    assert!(!bench.screen().contains("long"));
    assert_eq!(bench.transcript.wants_whole(), None);
    bench.transcript.unfold();
    assert!(bench.screen().contains("(shortened: the whole entry has 98 KiB)"));
    assert_eq!(bench.transcript.wants_whole(), whole.id);
    bench.transcript.whole(whole);
    let screen = bench.screen();
    assert!(screen.matches("long").count() == 30 && !screen.contains("shortened"), "{screen}");
}

#[test]
fn a_page_that_failed_is_reported_and_requested_again_when_the_view_scrolls() {
    let mut bench = Bench::new(conversation(3)).sized(60, 5);
    bench.layout();
    bench.transcript.asked();
    bench.transcript.page_failed("the connection to the host ended".into());
    assert_eq!(bench.transcript.wants(), None);
    assert!(bench.screen().contains("not loaded: the connection to the host ended"));
    bench.transcript.scroll(Scroll::Lines(-1));
    assert_eq!(bench.transcript.wants(), Some(Wanted::Page(None)));
}

/// What a person might do.
#[derive(Clone, Debug)]
enum Act {
    Scroll(Scroll),
    Step(i32),
    Fold,
    FoldAll,
    Detail(u8),
    Size(u16, u16),
    Say(String),
    Delta(String),
    End,
    Serve,
    Find(String),
    Lag,
}

fn act() -> impl Strategy<Value = Act> {
    let n = -40i32..40;
    prop_oneof![
        n.clone().prop_map(|n| Act::Scroll(Scroll::Lines(n))),
        (-3i32..3).prop_map(|n| Act::Scroll(Scroll::Page(n))),
        (-3i32..3).prop_map(|n| Act::Scroll(Scroll::Turn(n))),
        Just(Act::Scroll(Scroll::Top)),
        Just(Act::Scroll(Scroll::Tail)),
        n.prop_map(Act::Step),
        Just(Act::Fold),
        Just(Act::FoldAll),
        (0u8..3).prop_map(Act::Detail),
        (1u16..90, 1u16..30).prop_map(|(w, h)| Act::Size(w, h)),
        "[a-z日 \n]{1,60}".prop_map(Act::Say),
        "[a-z`#*|>\n -]{1,20}".prop_map(Act::Delta),
        Just(Act::End),
        Just(Act::Serve),
        "[a-z]{1,2}".prop_map(Act::Find),
        Just(Act::Lag),
    ]
}

fn perform(bench: &mut Bench, act: Act) {
    match act {
        Act::Scroll(by) => bench.transcript.scroll(by),
        Act::Step(by) => bench.transcript.step(by),
        Act::Fold => bench.transcript.toggle_fold(),
        Act::FoldAll => bench.transcript.toggle_fold_all(),
        Act::Detail(0) => bench.transcript.set_detail(Detail::Overview),
        Act::Detail(1) => bench.transcript.set_detail(Detail::Normal),
        Act::Detail(_) => bench.transcript.set_detail(Detail::Full),
        Act::Size(width, height) => bench.size = (width, height),
        Act::Say(text) => bench.commit(said(&text)),
        Act::Delta(text) => bench.event(&delta(&text)),
        Act::End => {
            bench.event(&Event::RunEnd { result: RunResult::Finished, entry: None, run: None })
        }
        Act::Serve => drop(bench.serve()),
        Act::Find(needle) => bench.transcript.find(&needle),
        Act::Lag => bench.event(&Event::Lagged),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn after_any_keys_every_row_fits_and_the_end_is_reached(
        acts in proptest::collection::vec(act(), 1..40),
    ) {
        let mut bench = Bench::new(conversation(60)).sized(50, 12).paged(3000).open();
        for act in acts {
            perform(&mut bench, act);
            for row in bench.rows() {
                prop_assert_eq!(crate::rows::width(&row), usize::from(bench.size.0));
            }
        }
        bench.size = (50, 12);
        bench.transcript.set_detail(Detail::Normal);
        bench.event(&Event::RunEnd { result: RunResult::Finished, entry: None, run: None });
        bench.commit(said("the very end"));
        bench.transcript.scroll(Scroll::Tail);
        bench.find_visible_rows();
        prop_assert!(bench.screen().contains("the very end"));
    }

    #[test]
    fn older_pages_never_move_the_line_that_is_read(
        up in proptest::collection::vec(1i32..60, 1..30),
        page in 500usize..6000,
        width in 20u16..90,
    ) {
        let mut bench = Bench::new(conversation(60)).sized(width, 12).paged(page).open();
        for rows in up {
            bench.transcript.scroll(Scroll::Lines(-rows));
            let before = bench.rows();
            let reads = !bench.transcript.is_at_tail();
            if bench.serve() && reads {
                let after = bench.rows();
                // An answer goes to its call.
                let stays = |row: &String| row.starts_with("  ") && !row.contains("  result");
                let top = before.iter().position(|row| stays(row) && !row.trim().is_empty());
                let Some(top) = top else { continue };
                let moved = after.iter().position(|row| *row == before[top]);
                prop_assert!(moved.is_some_and(|at| at <= top), "{before:#?} {after:#?}");
            }
        }
    }
}

#[test]
fn the_speaker_of_a_message_is_shown() {
    let from = |from: Option<&str>, text: &str| {
        let segments = vec![Segment::Text { content: text.into() }];
        let from = from.and_then(|name| yoi::protocol::PodName::parse(name).ok());
        entry(0, Fact::UserInput { segments, taken: None, from })
    };
    let entries =
        vec![from(Some("lead"), "find it"), from(None, "and be quick"), from(Some("root"), "stop")];
    let mut bench = Bench::new(entries).sized(40, 12).open();
    let rows: Vec<String> = bench
        .rows()
        .iter()
        .map(|row| row.trim().to_owned())
        .filter(|row| !row.is_empty())
        .collect();
    let said = [
        "parent lead 12:40",
        "│ find it",
        "▌ and be quick                you 12:40",
        "above root 12:40",
        "│ stop",
    ];
    assert_eq!(rows, said);
}

#[test]
fn the_cursor_says_whether_its_block_unfolds_or_folds() {
    let paste = Segment::Paste { id: 1, chars: 18, lines: 9, content: "x\n".repeat(9) };
    let pasted = Fact::UserInput { segments: vec![paste], taken: None, from: None };
    let log = vec![entry(0, pasted), call("1", "Bash", json!({"command": "ls"})), said("done")];
    let mut bench = Bench::new(log).sized(60, 30).open();
    let mut signs = Vec::new();
    for _ in 0..3 {
        bench.transcript.step(-1);
        for _ in 0..2 {
            let rows = bench.rows();
            let sign =
                rows.iter().find_map(|row| row.chars().next().filter(|c| "›▸▾".contains(*c)));
            signs.extend(sign);
            bench.transcript.toggle_fold();
        }
    }
    // Prose is whole until it is folded by hand.
    assert_eq!(signs, ['›', '▸', '▸', '▾', '▸', '▾']);
}
