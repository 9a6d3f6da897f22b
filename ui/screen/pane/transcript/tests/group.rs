//! Consecutive reads are one row.

use super::*;
use yoi::protocol::event::RunResult;

fn read(id: &str, path: &str, lines: u64) -> [Entry; 2] {
    let summary = format!("Read {lines} line(s) from {path}");
    let content = format!("     1\tthe text of {path}\n");
    [
        call(id, "Read", json!({ "file_path": path })),
        result(1_100, id, &summary, Some(&content), false),
    ]
}

/// The rows of the pane that say something.
fn filled(bench: &mut Bench) -> Vec<String> {
    let rows = bench.rows().into_iter().map(|row| row.trim_end().to_owned());
    rows.filter(|row| !row.is_empty()).collect()
}

fn three_reads() -> Vec<Entry> {
    let reads = [
        read("1", "/w/src/cart.rs", 200),
        read("2", "/w/src/total.rs", 13),
        read("3", "/w/Cargo.toml", 1),
    ];
    [vec![you("go")], reads.concat(), vec![said("done")]].concat()
}

#[test]
fn reads_one_after_the_other_are_one_row_that_unfolds_and_folds_again() {
    let mut bench = Bench::new(three_reads()).sized(50, 20).open();
    let folded = filled(&mut bench);
    assert_eq!(folded[1..], ["  Read   3 files                        214 lines", "  done"]);
    bench.transcript.step(-2);
    bench.transcript.toggle_fold();
    let apart = [
        "▸ Read   src/cart.rs                    200 lines",
        "  Read   src/total.rs                    13 lines",
        "  Read   Cargo.toml                        1 line",
    ];
    assert_eq!(filled(&mut bench)[1..4], apart);
    // Each of them unfolds by itself now.
    bench.transcript.step(1);
    bench.transcript.unfold();
    assert!(bench.screen().contains("the text of /w/src/total.rs"), "{}", bench.screen());
    bench.transcript.fold();
    bench.transcript.step(-1);
    bench.transcript.fold();
    assert_eq!(
        filled(&mut bench)[1..],
        ["▸ Read   3 files                        214 lines", "  done"]
    );
}

#[test]
fn reads_stay_apart_when_their_page_is_loaded_again() {
    let mut bench = Bench::new(three_reads()).sized(50, 20).open();
    bench.transcript.step(-2);
    bench.transcript.unfold();
    let mut again = Bench::new(bench.log.clone()).sized(50, 20);
    again.transcript.open_at(bench.transcript.bookmark());
    again.find_visible_rows();
    assert_eq!(again.screen().matches("Read ").count(), 3, "{}", again.screen());
    bench.transcript.fold();
    assert_eq!(bench.screen().matches("Read ").count(), 1, "{}", bench.screen());
}

#[test]
fn a_read_joins_the_row_above_it_as_soon_as_it_streams_and_leaves_it_when_it_fails() {
    let [first, done] = read("1", "/w/a", 2);
    let mut bench = Bench::new(vec![you("go"), first, done]).sized(50, 20).open();
    assert_eq!(filled(&mut bench)[1], "  Read   a                                2 lines");
    bench.event(&Event::ToolCallStart { id: "2".into(), name: "Read".into() });
    bench.commit(call("2", "Read", json!({"file_path": "/w/b"})));
    bench.layout();
    bench.now += 2_000;
    assert_eq!(filled(&mut bench)[1..], ["  Read   2 files                               1s"]);
    assert_eq!(bench.transcript.wakes_at(bench.now), Some(NOON + 3_000));
    bench.commit(result(3_000, "2", "no such file: /w/b", None, true));
    bench.event(&Event::RunEnd { result: RunResult::Finished, entry: None, run: None });
    let rows = filled(&mut bench);
    assert_eq!(rows[1], "  Read   a                                2 lines");
    assert_eq!(rows[2], "  Read   b                               ✕ failed");
    assert_eq!(rows[3], "    no such file: /w/b");
}

#[test]
fn a_match_in_a_read_of_a_group_shows_that_read_and_a_copy_names_the_files() {
    let mut bench = Bench::new(three_reads()).sized(50, 20).open();
    bench.transcript.step(-2);
    let files = "/w/src/cart.rs\n/w/src/total.rs\n/w/Cargo.toml";
    assert_eq!(bench.transcript.yank(), Some(Copy::Text(files.into())));
    bench.transcript.find("text of /w/src/total");
    bench.find_visible_rows();
    assert_eq!(bench.transcript.search(), Search::Found);
    let screen = bench.screen();
    assert!(screen.contains("the text of /w/src/total.rs"), "{screen}");
    assert!(screen.contains("  Read   src/cart.rs"), "{screen}");
}

#[test]
fn full_detail_and_a_call_between_them_keep_reads_apart() {
    let between = call("x", "Bash", json!({"command": "ls"}));
    let log = [vec![you("go")], read("1", "/w/a", 2).to_vec(), vec![between]].concat();
    let log = [log, read("2", "/w/b", 2).to_vec(), read("3", "/w/c", 2).to_vec()].concat();
    let mut bench = Bench::new(log).sized(50, 40).open();
    let screen = bench.screen();
    assert!(screen.contains("Read   a ") && screen.contains("Read   2 files"), "{screen}");
    bench.transcript.set_detail(Detail::Full);
    assert_eq!(bench.screen().matches("Read  ").count(), 3, "{}", bench.screen());
}

#[test]
fn a_long_row_of_reads_costs_what_is_in_view() {
    let reads = (0..2_000).flat_map(|n| read(&format!("{n}"), &format!("/w/{n}"), 1));
    let mut bench = Bench::new(reads.collect()).sized(60, 10).paged(20_000).open();
    let rows = filled(&mut bench);
    assert!(rows.last().is_some_and(|row| row.contains(" files ")), "{rows:#?}");
    bench.transcript.scroll(Scroll::Top);
    bench.find_visible_rows();
    assert!(bench.rows()[0].contains(" files "), "{:#?}", bench.rows());
    assert!(bench.transcript.cached.len() < 300, "{}", bench.transcript.cached.len());
}
