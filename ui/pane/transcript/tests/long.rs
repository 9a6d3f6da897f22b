//! Long texts: every line is reached, found and drawn, and only what is near the view is held.

use super::*;
use crate::pane::transcript::parts::PART;

/// An answer of so many numbered lines.
fn numbered(lines: usize) -> String {
    (0..lines)
        .map(|n| format!("line {n} of the answer, and some words that make it longer\n"))
        .collect()
}

/// The numbers of the lines in view.
fn numbers(bench: &mut Bench) -> Vec<usize> {
    let number = |row: &String| {
        row.trim_matches([' ', '▎']).strip_prefix("line ")?.split(' ').next()?.parse().ok()
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
    assert_eq!(bench.transcript.search(), Search::Nothing);
}
