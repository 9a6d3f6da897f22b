//! What becomes of the output of a command: merged, bounded, streamed, saved.

use crate::bench::{Bench, content};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use yoi::tools;

#[tokio::test]
async fn both_outputs_come_merged_in_order_and_the_exit_code_is_no_error() {
    let mut bench = Bench::new();
    let output = bench.bash("echo one; echo two >&2; echo three; exit 3").await;
    assert_eq!(content(&output), "one\ntwo\nthree\n");
    assert!(output.summary.starts_with("Exit 3 after "), "{}", output.summary);
    let output = bench.bash("true").await;
    assert!(output.summary.ends_with(", no output") && output.content.is_none());
    let output = bench.bash("kill -9 $$").await;
    assert!(output.summary.starts_with("Ended by signal 9 after "));
}

#[tokio::test]
async fn a_command_runs_in_the_working_directory_with_empty_input_and_its_own_environment() {
    let mut bench = Bench::new();
    bench.ctx.env.insert("GREETING".into(), "hello".into());
    bench.ctx.old_nofile = Some(123);
    // A tool with a place of its own is not led elsewhere.
    for tool in [".npm", ".cargo", "go", ".gradle"] {
        fs::create_dir(bench.path("home").join(tool)).unwrap();
    }
    let output = bench.bash("pwd; cat; echo $GREETING; ulimit -n; readlink /proc/self/fd/0").await;
    let expected = format!("{}\nhello\n123\n/dev/null\n", bench.ctx.cwd.display());
    assert_eq!(content(&output), expected);
    let output = bench.bash("env | cut -d= -f1 | sort | tr '\\n' ' '").await;
    assert_eq!(content(&output), "GREETING HOME PATH PWD SHLVL TMPDIR YOI_RUN _ ");
    let _open = fs::File::create(bench.path("open-in-the-host")).unwrap();
    let output = bench.bash("ls -l /proc/self/fd").await;
    assert!(content(&output).contains("0 -> /dev/null"));
    assert!(!content(&output).contains("open-in-the-host"), "{output:?}");
}

#[tokio::test]
async fn short_output_is_whole_and_long_output_is_its_beginning_its_end_and_a_file() {
    let mut bench = Bench::new();
    let output = bench.bash("seq 1 5000").await;
    assert_eq!(content(&output).lines().count(), 5000);
    assert!(!bench.ctx.outputs.exists());
    let output = bench.bash("seq 1 20000").await;
    let (head, note, tail) = parted(content(&output));
    let number = |line: Option<&str>| line.unwrap().parse::<usize>().unwrap();
    let (first, last) = (number(head.lines().last()) + 1, number(tail.lines().next()) - 1);
    assert!(head.starts_with("1\n2\n") && tail.ends_with("\n20000\n"), "{note}");
    let said = format!("[lines {first} to {last}, ");
    assert!(
        note.starts_with(&said)
            && note.contains("of 106.3 KiB, are left out here; all of it is in "),
        "{note}"
    );
    assert!(head.len() + tail.len() > 29_900 && content(&output).len() < 31_000);
    let all: String = (1..=20000).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(saved(note)).unwrap(), all);
}

#[tokio::test]
async fn long_lines_at_the_beginning_of_an_output_stay() {
    let mut bench = Bench::new();
    let line = "for n in $(seq 1 100); do printf 'line %s %03200d\\n' $n 0; done";
    let output = bench.bash(line).await;
    let (head, note, tail) = parted(content(&output));
    assert!(head.starts_with("line 1 000") && head.lines().count() == 4, "{note}");
    assert!(tail.starts_with("line 97 000") && tail.lines().count() == 4, "{note}");
    assert!(note.starts_with("[lines 5 to 96, "), "{note}");
}

/// The beginning, the line about what is left out, and the end.
fn parted(text: &str) -> (&str, &str, &str) {
    let at = text.find("[lines ").unwrap();
    let (note, tail) = text[at..].split_once('\n').unwrap();
    (&text[..at], note, tail)
}

/// The path that the note names.
fn saved(note: &str) -> PathBuf {
    note.rsplit_once(" in ").unwrap().1.trim_end_matches(']').into()
}

#[tokio::test]
async fn a_saved_output_can_be_read_and_searched_but_not_written() {
    let mut bench = Bench::new();
    bench.ctx.scope = bench.ctx.scope.clone().with_deny([bench.path("outputs")]);
    let output = bench.bash("seq 1 9000").await;
    let path = saved(parted(content(&output)).1);
    let part = json!({"file_path": path, "offset": 1500, "limit": 1});
    assert!(content(&bench.call("Read", part).await).starts_with("  1501\t1501\n"));
    let found = bench
        .call("Grep", json!({"pattern": "^2718$", "path": path, "output_mode": "content"}))
        .await;
    assert!(content(&found).ends_with(":2718:2718"));
    assert!(bench.write(&path, "x").await.is_error);
}

#[tokio::test]
async fn a_long_line_without_an_end_is_shown_by_its_beginning_and_its_end() {
    let mut bench = Bench::new();
    let output =
        bench.bash("printf 日本; head -c 100000 /dev/zero | tr '\\0' x; printf 日本").await;
    let (head, note, tail) = parted(content(&output));
    assert!(head.starts_with("日本xxx") && tail.ends_with("xxx日本"), "{note}");
    assert!(note.starts_with("[lines 1 to 1, 68.") && content(&output).len() < 31_000, "{note}");
    let output = bench.bash("for n in $(seq 1 20000); do printf 日本; done").await;
    assert!(!content(&output).contains('\u{fffd}'), "no character is parted");
}

#[tokio::test]
async fn binary_output_becomes_text() {
    let mut bench = Bench::new();
    let output = bench.bash("printf 'a\\0\\377b'").await;
    assert_eq!(content(&output), "a\u{fffd}\u{fffd}b");
    for bytes in [20_000, 300_000] {
        let output = bench.bash(&format!("head -c {bytes} /dev/urandom; echo; echo end")).await;
        let text = content(&output);
        assert!(text.len() < 31_000 && !text.contains('\0') && text.ends_with("end\n"), "{bytes}");
    }
}

#[tokio::test]
async fn a_result_holds_what_a_person_would_see_and_its_file_what_was_written() {
    let mut bench = Bench::new();
    let frames = |count| {
        format!(
            "for i in $(seq 1 {count}); do printf '\\r\\033[32mobjects %05d\\033[0m' $i; done; \
             printf '\\nerror: \\033[31mdisk full\\033[0m\\n'"
        )
    };
    let output = bench.bash(&frames(9)).await;
    assert_eq!(content(&output), "objects 00009\nerror: disk full\n");
    assert!(!bench.ctx.outputs.exists());
    let output = bench.bash(&frames(5000)).await;
    let (shown, note) = content(&output).split_once("full\n").unwrap();
    assert_eq!(shown, "objects 05000\nerror: disk ");
    assert!(
        note.starts_with(
            "[this is what a terminal shows of 112.3 KiB; all of it, as it was written, is in "
        ),
        "{note}"
    );
    let written = fs::read_to_string(saved(note.trim_end())).unwrap();
    assert_eq!(written.matches('\r').count(), 5000);
    // The budget is for what is seen: frames between two halves cost nothing of it.
    let output = bench.bash(&format!("seq 1 2000; {}; seq 1 2000", frames(5000))).await;
    assert_eq!(content(&output).lines().count(), 4003);
    let output = bench.bash(&format!("seq 1 9000; {}", frames(5000))).await;
    let (head, note, tail) = parted(content(&output));
    assert!(
        head.starts_with("1\n2\n") && tail.ends_with("\n9000\nobjects 05000\nerror: disk full\n")
    );
    assert!(note.contains("are left out here; all of it, as it was written, is in "), "{note}");
}

#[tokio::test]
async fn the_live_stream_is_what_was_written_in_whole_characters() {
    let bench = Bench::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut live = {
        let seen = seen.clone();
        move |text: String| seen.lock().unwrap().push(text)
    };
    // The wait is what splits the character over two writes.
    let command = "printf 'a\\346\\227'; sleep 0.2; printf '\\245b'";
    let input = json!({"command": command}).to_string();
    tools::ToolSet::default().run("Bash", &input, &bench.ctx, &bench.cancel, &mut live).await;
    assert_eq!(seen.lock().unwrap().concat(), "a日b");
}

#[tokio::test]
async fn of_a_flood_the_beginning_is_kept_and_said_to_be() {
    let mut bench = Bench::new();
    let output = bench.bash("head -c 70000000 /dev/zero").await;
    assert!(content(&output).contains("the first 64.0 MiB are in "));
}

#[tokio::test]
async fn a_place_that_cannot_take_the_output_is_said_and_the_end_is_shown() {
    let mut bench = Bench::new();
    bench.ctx.outputs = bench.file("not-a-directory", "").join("below");
    let output = bench.bash("seq 1 9000").await;
    assert!(content(&output).contains("it could not be saved: "));
    assert!(content(&output).ends_with("\n9000\n"));
}
