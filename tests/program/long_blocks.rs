//! A long answer on the screen: every line of it is reached and found, and a copy of it is whole.

use crate::bench::{Bench, signal};
use crate::pty::Terminal;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// About 4 MB of numbered lines.
const LINES: usize = 100_000;

fn answer() -> String {
    (0..LINES).map(|n| format!("line {n}: 日本 and \"words\" of a long answer\n")).collect()
}

/// A Pod that has said the answer.
fn bench() -> Bench {
    let bench = Bench::new();
    let text = answer();
    bench.play(&format!(
        "[[when]]\nany = true\n[[when.step]]\nchunk = 9000\ntext = '''\n{text}'''\n"
    ));
    let done = bench.say("say it");
    assert_eq!(done.code, Some(0), "{}", done.err);
    bench
}

/// A screen over that Pod, with the keys in its transcript.
fn screen(bench: &Bench) -> Terminal {
    let mut terminal = Terminal::sized(bench, &["--pod", "ws"], 120, 24);
    terminal.waits_for(&format!("line {}:", LINES - 1));
    terminal.press("\t\t");
    terminal.waits_for("y copy");
    terminal
}

fn copies(bench: &Bench) -> Vec<PathBuf> {
    let files = fs::read_dir(bench.path("home/state/copies")).into_iter().flatten().flatten();
    files.map(|file| file.path()).collect()
}

#[test]
fn the_lines_of_an_answer_of_4_mb_are_reached_found_and_copied_to_a_private_file() {
    let bench = bench();
    let mut terminal = screen(&bench);
    terminal.press("g");
    terminal.waits_for("line 0:");
    terminal.press("G");
    terminal.waits_for(&format!("line {}:", LINES - 1));
    terminal.press("/LINE 50000:\r");
    terminal.waits_for("not in ws");
    terminal.press("/line 50000:\r");
    terminal.waits_for("line 50001:");
    terminal.press("y");
    terminal.waits_for("copied 4.");
    let [copy] = &copies(&bench)[..] else { panic!("{:?}", copies(&bench)) };
    let name = copy.file_name().expect("a name").to_string_lossy().into_owned();
    terminal.waits_for(&name);
    assert!(fs::read_to_string(copy).expect("text") == answer(), "the copy is another text");
    let mode = |path: &std::path::Path| fs::metadata(path).expect("there").permissions().mode();
    assert_eq!(mode(copy) & 0o777, 0o600);
    assert_eq!(mode(copy.parent().expect("a directory")) & 0o777, 0o700);
}

#[test]
fn a_host_that_dies_while_a_long_answer_is_searched_leaves_a_screen_that_goes_on() {
    let bench = bench();
    let mut terminal = screen(&bench);
    terminal.press("/line 3:\r");
    signal(bench.host_pid().expect("a host"), "KILL");
    terminal.waits_for("the host ended");
    terminal.press("\x1b\r");
    terminal.waits_for(&format!("line {}:", LINES - 1));
}
