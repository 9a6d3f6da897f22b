//! A screen that is left and opened again.

use crate::bench::{Bench, eventually, signal};
use crate::pty::Terminal;

/// Ctrl+X, the leader.
const LEADER: &str = "\x18";
const PAGE_UP: &str = "\x1b[5~";
const LEFT: &str = "\x1b[D";
const DRAFT: &str = "漢字の下書き and more";

fn bench() -> Bench {
    let bench = Bench::new();
    let rows: String = (1..=150).map(|n| format!("row {n}\\n\\n")).collect();
    bench.play(&format!(
        r#"
[[when]]
says = "many"
text = "{rows}That was all."

[[when]]
says = "spawn"
[[when.step]]
call = [
  {{ name = "SpawnPod", args = {{ name = "kid", task = "hello", profile = "inherit", scope = [{{ target = "{{cwd}}/sub", permission = "write" }}] }} }},
]
[[when.step]]
text = "It is there."

[[when]]
any = true
text = "Noted."
"#
    ));
    std::fs::create_dir(bench.ws().join("sub")).expect("a new directory");
    bench
}

/// A screen with a family, folds, a pin, a theme and a draft, in the middle of a transcript.
fn in_use(bench: &Bench, columns: u16, rows: u16) -> Terminal {
    let mut terminal = Terminal::sized(bench, &["--model", &bench.model()], columns, rows);
    terminal.waits_for("what to work on");
    terminal.press("spawn\r");
    terminal.waits_for("It is there.");
    eventually("the child is idle", || {
        bench.pod("kid").is_some_and(|kid| kid["state"] == "idle" && !kid["last_result"].is_null())
            && bench.pod("ws").is_some_and(|ws| ws["state"] == "idle")
    });
    terminal.press(":new bob\r");
    terminal.waits_for("bob is ready");
    terminal.press(":open ws\r");
    terminal.waits_for("It is there.");
    let before = bench.pod("ws").expect("the pod")["last_result"].clone();
    terminal.press("many\r");
    terminal.waits_for("That was all.");
    let is_over = |ws: serde_json::Value| ws["state"] == "idle" && ws["last_result"] != before;
    eventually("the run is over", || bench.pod("ws").is_some_and(is_over));
    // The Pod reads its log for this request behind everything that the end of its run leads to.
    bench.log("ws");
    eventually("its end is seen", || bench.pod("ws").is_some_and(|ws| ws["unseen"] == false));
    // Two lines that come at once would be a paste.
    terminal.press(":theme day\r");
    terminal.paints_anew();
    terminal.press(":pin 4\r");
    terminal.waits_for("4 is ws");
    // Folds the row of the tree, then writes a draft with the cursor inside.
    terminal.press(&format!("{LEADER}t"));
    terminal.press("h");
    terminal.press(&format!("{LEADER}c"));
    terminal.press(DRAFT);
    terminal.press(&LEFT.repeat(3));
    // The child, of which no person has seen the end, is folded away.
    terminal.waits_without("done");
    terminal
}

fn left(terminal: &mut Terminal) {
    terminal.press(&format!("{LEADER}q"));
    assert_eq!(terminal.ends(), 0);
}

fn is_the_same_after_it_was_left(bench: &Bench, mut first: Terminal, columns: u16, rows: u16) {
    first.paints_anew();
    let before = first.rows();
    let text = first.text();
    assert!(text.contains(DRAFT) && text.contains("row "), "{text}");
    left(&mut first);
    let open = || Terminal::sized(bench, &[], columns, rows);
    let mut second = open();
    // The action bar of the first screen may still show a notice.
    let bar = usize::from(rows) - 1;
    let without_bar = |mut rows: Vec<String>| {
        rows.remove(bar);
        rows
    };
    shows(&second, &without_bar(before), without_bar);
    second.paints_anew();
    let whole = second.rows();
    left(&mut second);
    shows(&open(), &whole, |rows| rows);
}

/// Waits until the terminal shows these rows.
fn shows(terminal: &Terminal, rows: &[String], part: impl Fn(Vec<String>) -> Vec<String>) {
    let same = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("the screen is the same", || part(terminal.rows()) == rows);
    }));
    if same.is_err() {
        let now = part(terminal.rows());
        let differ = rows.iter().zip(&now).filter(|(before, now)| before != now);
        let differ: Vec<_> = differ.collect();
        panic!("these rows differ: {differ:#?}\n{}", terminal.text());
    }
}

#[test]
fn a_screen_of_80x24_is_the_same_after_it_was_left() {
    let bench = bench();
    let mut first = in_use(&bench, 80, 24);
    first.press(&PAGE_UP.repeat(4));
    is_the_same_after_it_was_left(&bench, first, 80, 24);
}

#[test]
fn a_screen_of_200x60_is_the_same_after_it_was_left() {
    let bench = bench();
    let mut first = in_use(&bench, 200, 60);
    first.press(&format!("{LEADER}:split bob\r"));
    first.waits_for("bob stands beside it");
    // The cursor of the transcript is on a block of its own; the keys are in the composer again.
    first.press(&format!("{LEADER}r{}", PAGE_UP.repeat(2)));
    first.press(&format!("kk{LEADER}c"));
    is_the_same_after_it_was_left(&bench, first, 200, 60);
}

#[test]
fn a_draft_outlives_the_kill_of_its_screen() {
    let bench = bench();
    let mut first = Terminal::open(&bench, &["--model", &bench.model()]);
    first.waits_for("what to work on");
    first.press(DRAFT);
    let kept = || {
        // A file under its own name is whole.
        let mut files = crate::bench::files(&bench.path("home/state/screens"));
        files.retain(|file| file.extension().is_some_and(|extension| extension == "json"));
        let mut texts = files.iter().filter_map(|file| std::fs::read_to_string(file).ok());
        texts.any(|text| text.contains(DRAFT))
    };
    eventually("the draft is written", kept);
    signal(first.pid(), "KILL");
    first.ends();
    Terminal::open(&bench, &[]).waits_for(DRAFT);
}

#[test]
fn a_changed_instruction_file_enters_the_history_once_and_a_compaction_makes_the_prompt_anew() {
    let bench = Bench::new();
    let _host = bench.serve();
    std::fs::write(bench.ws().join("AGENTS.md"), "use tabs\n").expect("a writable workspace");
    assert_eq!(bench.yoi(&["new", "lead", "--model", &bench.model()]).code, Some(0));
    let say = |text: &str| {
        assert_eq!(bench.yoi(&["send", "lead", text]).code, Some(0));
        let answer = format!("heard: {text}");
        let log = || serde_json::Value::from(bench.log("lead")).to_string();
        eventually(&answer, || {
            log().contains(&answer) && bench.pod("lead").is_some_and(|pod| pod["state"] == "idle")
        });
        log()
    };
    let notes = |log: &str| log.matches("[Changed: instructions]").count();
    assert_eq!(notes(&say("one")), 0);
    std::fs::write(bench.ws().join("AGENTS.md"), "use spaces\n").expect("a writable workspace");
    let log = say("two");
    assert_eq!(notes(&log), 1, "{log}");
    assert!(log.contains("use spaces"), "{log}");
    assert_eq!(notes(&say("three")), 1, "it is noted once");
    assert_eq!(bench.yoi(&["compact", "lead"]).code, Some(0));
    let prompts = || -> Vec<String> {
        let log = bench.log("lead");
        let starts = log.iter().filter(|entry| entry["kind"] == "segment_start");
        starts.map(|start| start["system_prompt"].to_string()).collect()
    };
    eventually("the prompt is made anew", || {
        prompts().last().is_some_and(|prompt| prompt.contains("use spaces"))
    });
    say("four");
    let last = prompts().pop().expect("a prompt");
    assert!(!last.contains("use tabs"), "{last}");
}
