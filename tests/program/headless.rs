//! One message, verbs, and lines, without a screen.

use crate::bench::{Bench, files};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The second Pod is in view before the first one has answered.
#[test]
fn every_answer_that_was_asked_for_is_printed_whichever_pod_is_in_view() {
    let bench = Bench::new();
    let script = bench.path("slow.toml");
    let slow = "[[when]]\nsays = \"slow\"\n[[when.step]]\nwait_ms = 400\ntext = \"First.\"\n\n\
                [[when]]\nany = true\ntext = \"Second.\"\n";
    std::fs::write(&script, slow).unwrap();
    let model = format!("rehearsal:{}", script.display());
    let done = bench.yoi_reading(&["--no-ui", "--model", &model], "slow\n:new other\nquick\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("First.\n") && done.out.contains("Second.\n"), "{done:?}");
    assert!(done.err.contains(" answers:"), "{done:?}");
}

#[test]
fn a_message_changes_a_file_through_tool_calls() {
    let bench = Bench::new();
    let done = bench.say("greet world");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.out, "I write a greeting for world.\nDone: world\n");
    let written = fs::read_to_string(bench.ws().join("hello.txt")).expect("a new file");
    assert_eq!(written, "Hello, world!\n");
    assert!(done.err.contains("▸ Write"), "{}", done.err);
}

#[test]
fn the_pod_of_a_message_is_named_after_the_workspace_and_left_stopped() {
    let bench = Bench::new();
    bench.say("hi");
    bench.say("hi again");
    for name in ["ws", "ws-2"] {
        let info = bench.pod(name).expect("a pod of this name");
        assert_eq!(info["state"], "stopped");
    }
}

#[test]
fn a_mistake_in_a_later_verb_is_found_before_the_first_one_is_carried_out() {
    let bench = Bench::new();
    let done = bench.yoi(&["--model", &bench.model(), "-c", ":new x", "-c", ":nosuch"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("nosuch"), "{done:?}");
    assert!(bench.pod("x").is_none(), "nothing was carried out");
}

#[test]
fn a_named_pod_goes_on_where_it_was() {
    let bench = Bench::new();
    bench.say("first");
    let done = bench.yoi(&["--no-ui", "--pod", "ws", "-p", "second"]);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: second\n"), "{done:?}");
    assert!(done.err.contains("restored ws\n"), "{done:?}");
    let inputs: Vec<Value> = bench
        .log("ws")
        .into_iter()
        .filter(|entry| entry["kind"] == "user_input")
        .map(|entry| entry["segments"][0]["content"].clone())
        .collect();
    assert_eq!(inputs, [json!("first"), json!("second")]);
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "stopped");
}

#[test]
fn as_json_every_line_is_an_event_of_the_protocol_with_its_pod() {
    let bench = Bench::new();
    let model = bench.model();
    let done = bench.yoi(&["--no-ui", "--json", "--model", &model, "-p", "greet world"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let events = done.events();
    for event in &events {
        assert_eq!(event["pod"], "ws", "{event}");
        let line = event.to_string();
        let known = yoi::protocol::Outgoing::decode(line.as_bytes()).expect("an event");
        assert!(!matches!(known.event, yoi::protocol::Event::Unknown(_)), "{event}");
    }
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["event"].as_str()).collect();
    for kind in ["created", "user_message", "text_delta", "tool_call_done", "tool_result"] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    let prompts = events.iter().filter(|event| event.to_string().contains("\"system_prompt\""));
    let prompts: Vec<&str> = prompts.filter_map(|event| event["event"].as_str()).collect();
    assert_eq!(prompts, ["entry"], "the system prompt is printed once");
    let end = events.iter().find(|event| event["event"] == "run_end").expect("an end");
    assert_eq!(end["data"]["result"], "finished");
    let numbers: Vec<u64> = events.iter().filter_map(|event| event["seq"].as_u64()).collect();
    let first = numbers.first().copied().unwrap_or(0);
    let expected: Vec<u64> = (first..first + numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "the events of a pod are counted without gaps");
}

#[test]
fn piped_input_is_appended_as_one_block_and_never_read_as_verbs() {
    let bench = Bench::new();
    let args = ["--no-ui", "--model", &bench.model(), "-p", "look at this:"];
    let done = bench.yoi_reading(&args, ":quit\nlast line\n");
    assert_eq!(done.code, Some(0), "{done:?}");
    let log = bench.log("ws");
    let input = log.iter().find(|entry| entry["kind"] == "user_input").expect("an input");
    assert_eq!(input["segments"].as_array().map(Vec::len), Some(2));
    assert_eq!(input["segments"][1]["content"], ":quit\nlast line\n");
    assert_eq!(input["segments"][1]["lines"], 2);
}

#[test]
fn text_in_utf_16_is_read_from_the_standard_input_and_instructions_and_other_bytes_are_refused() {
    let bench = Bench::new();
    let utf16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xfeff).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    std::fs::write(bench.ws().join("AGENTS.md"), utf16("ünder rule")).expect("a file");
    let model = bench.model();
    let args = ["--model", model.as_str(), "-p", "look at this:"];
    let done = bench.yoi_reading(&args, utf16("größer\n"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let log = bench.log("ws");
    let input = log.iter().find(|entry| entry["kind"] == "user_input").expect("an input");
    assert_eq!(input["segments"][1]["content"], "größer\n");
    let all = serde_json::to_string(&log).expect("JSON");
    assert!(all.contains("ünder rule") && !all.contains('\u{fffd}') && !all.contains("\\u0000"));

    let args = ["--model", model.as_str(), "-p", "-"];
    assert_eq!(bench.yoi_reading(&args, b"caf\xe9\n").out, "heard: café\n");
    let refused = bench.yoi_reading(&args, &utf16("no mark")[2..]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("NUL bytes") && refused.err.contains("iconv"), "{refused:?}");
    let lines = bench.yoi_reading(&["--no-ui", "--model", &model], utf16("hi\n"));
    assert!(lines.code == Some(1) && lines.err.contains("UTF-16 (little endian)"), "{lines:?}");
    bench.settings("");
    let file = bench.path("home/config/config.toml");
    std::fs::write(file, utf16("effort = 'low'\n")).expect("a file");
    let settings = bench.yoi(&["--model", &model, "-p", "hi"]);
    assert!(settings.err.contains("UTF-16 (little endian); save it in UTF-8"), "{settings:?}");
}

/// Test runners, editors and cron wrappers leave a pipe open that they never write to.
#[test]
fn an_input_that_says_nothing_is_not_waited_for_and_one_that_began_is() {
    let bench = Bench::new();
    let begin = |args: &[&str]| {
        let mut child = bench.command(args).stdin(Stdio::piped()).spawn().expect("it starts");
        let input = child.stdin.take().expect("its input");
        (child, input)
    };
    let (child, open) = begin(&["--model", &bench.model(), "-p", "hi"]);
    let done = bench.finish(child);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: hi\n"), "{done:?}");
    assert_eq!(
        done.err.matches("no input came in 3 s: going on without it").count(),
        1,
        "{done:?}"
    );
    drop(open);
    let (mut child, mut input) = begin(&["--model", &bench.model(), "-p", "-"]);
    let mut err = BufReader::new(child.stderr.take().expect("its errors"));
    let mut line = String::new();
    err.read_line(&mut line).expect("a line");
    assert_eq!(line, "waiting for the end of the standard input\n");
    input.write_all(b"late").expect("it still reads");
    drop(input);
    let done = bench.finish(child);
    assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: late\n"), "{done:?}");
}

#[test]
fn a_dash_reads_the_whole_prompt_from_standard_input() {
    let bench = Bench::new();
    let done = bench.yoi_reading(&["--model", &bench.model(), "-p", "-"], "one\ntwo");
    assert_eq!((done.code, done.out.as_str()), (Some(0), "heard: one\ntwo\n"), "{done:?}");
}

#[test]
fn lines_are_messages_and_verbs_and_the_end_waits_for_what_runs() {
    let bench = Bench::new();
    let input = "hi\n\n:new other\nrun echo from-a-tool\n";
    let done = bench.yoi_reading(&["--no-ui", "--model", &bench.model()], input);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("It said: from-a-tool"), "{done:?}");
    assert_eq!(bench.pod("ws").expect("the first pod")["state"], "idle");
    assert_eq!(bench.pod("other").expect("the second pod")["state"], "idle");
}

#[test]
fn a_refused_line_is_said_and_the_next_one_is_read() {
    let bench = Bench::new();
    let input = ":opne x\nhi\n";
    let done = bench.yoi_reading(&["--no-ui", "--model", &bench.model()], input);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("did you mean :open?"), "{}", done.err);
    assert_eq!(done.out, "heard: hi\n");
}

#[test]
fn verbs_are_carried_out_in_order_and_the_first_failure_ends_them() {
    let bench = Bench::new();
    let model = bench.model();
    let done = bench.yoi(&[
        "--model",
        &model,
        "-c",
        "new a",
        "-c",
        "send a greet you",
        "-c",
        "stop b",
        "-c",
        "new c",
    ]);
    assert_eq!(done.code, Some(5), "{done:?}");
    assert!(done.last_words().contains("there is no pod `b`"), "{done:?}");
    assert!(bench.pod("a").is_some() && bench.pod("c").is_none());
}

#[test]
fn a_verb_that_starts_a_turn_is_waited_for() {
    let bench = Bench::new();
    let done = bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet you"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(bench.ws().join("hello.txt").exists());
}

#[test]
fn help_prints_the_table_of_verbs() {
    let bench = Bench::new();
    let done = bench.yoi(&["-c", "help"]);
    assert_eq!(done.code, Some(0));
    for verb in [":new", ":stop", ":restore", ":pause", ":rewind", ":quit"] {
        assert!(done.out.contains(verb), "{}", done.out);
    }
}

#[test]
fn a_transcript_is_printed_from_its_beginning() {
    let bench = Bench::new();
    bench.say("greet world");
    let done = bench.yoi(&["log", "ws"]);
    assert_eq!(done.code, Some(0));
    let order = ["you\n  greet world", "I write a greeting", "▸ Write", "Created", "Done: world"];
    let places: Vec<_> = order.iter().map(|part| done.out.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}", done.out);
}

#[test]
fn a_pod_that_cannot_come_back_is_refused_by_the_order_and_by_the_verb() {
    let bench = Bench::new();
    let gone = bench.ws().join("gone");
    fs::create_dir(&gone).expect("a new directory");
    let model = bench.model();
    bench.yoi(&["--model", &model, "-c", "new g --cwd gone", "-c", "stop g"]);
    fs::remove_dir(&gone).expect("an empty directory");
    let why = format!("pod `g` cannot be restored: its directory {} is not there", gone.display());
    for args in [["restore", "g"], ["-c", "restore g"], ["-c", "restore g --tree"]] {
        let done = bench.yoi(&args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert!(done.last_words().contains(&why), "{args:?}: {done:?}");
    }
    let plan = bench.yoi(&["-c", "restore g --plan"]);
    assert_eq!(plan.code, Some(0), "{plan:?}");
    assert!(plan.out.contains("g cannot come back · its directory"), "{plan:?}");
}

#[test]
fn a_pod_follows_its_moved_directory_from_the_shell_and_with_a_message() {
    let bench = Bench::new();
    let (old, new, last) =
        (bench.ws().join("old"), bench.ws().join("new"), bench.ws().join("last"));
    fs::create_dir(&old).expect("a new directory");
    let model = bench.model();
    let first = bench.yoi(&["--model", &model, "-p", "hello", "--pod", "g", "--cwd", "old"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    fs::rename(&old, &new).expect("a moved directory");
    let inside = |dir: &Path, args: &[&str]| {
        let mut command = bench.command(args);
        command.current_dir(dir);
        bench.reading(command, "")
    };
    let listed = inside(&new, &["ls"]);
    let offer = format!("its directory was moved to {}: `yoi restore g` follows it", new.display());
    assert!(listed.out.contains(&offer), "{listed:?}");
    let elsewhere = bench.yoi(&["restore", "g"]);
    assert!(elsewhere.last_words().contains("`yoi restore --cwd=DIR g`"), "{elsewhere:?}");
    let message = inside(&new, &["-p", "hello again", "--pod", "g"]);
    assert_eq!(message.code, Some(0), "{message:?}");
    let follows = format!("g works in {} from now on", new.display());
    assert!(message.err.contains(&follows), "{message:?}");
    fs::rename(&new, &last).expect("a moved directory");
    let restored = inside(&last, &["restore", "g"]);
    assert_eq!(restored.code, Some(0), "{restored:?}");
    let follows = format!("g works in {} from now on · g is back", last.display());
    assert!(restored.err.contains(&follows), "{restored:?}");
}

#[test]
fn explain_says_the_state_and_why_in_text() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "new b", "-c", "stop b"]);
    let peered = bench.yoi(&["--pod", "a", "-c", "peer b"]);
    let said = "a and b are peers · b is stopped; messages to it need :restore b\n";
    assert!(peered.err.ends_with(said), "{peered:?}");
    let done = bench.yoi(&["--pod", "a", "-c", "explain", "-c", "explain b"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let parts = [
        "state          idle since ",
        "because        its run is over; it waits for a message",
        "peers          b (stopped)",
        "works in       ",
        "state          stopped since ",
        "because        it was stopped; :restore b brings it back",
    ];
    let places: Vec<_> = parts.iter().map(|part| done.out.find(part)).collect();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{}", done.out);
    assert_eq!(bench.yoi(&["-c", "explain"]).code, Some(2));
}

#[test]
fn a_pod_is_stopped_restored_and_removed_from_the_shell() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    assert_eq!(bench.yoi(&["rm", "a"]).code, Some(1), "a live pod is not removed");
    assert_eq!(bench.yoi(&["stop", "a"]).code, Some(0));
    assert_eq!(bench.pod("a").expect("the pod")["state"], "stopped");
    assert_eq!(bench.yoi(&["restore", "a"]).code, Some(0));
    assert_eq!(bench.pod("a").expect("the pod")["state"], "idle");
    assert_eq!(bench.yoi(&["stop", "--all"]).code, Some(0));
    assert_eq!(bench.yoi(&["rm", "a", "--yes"]).code, Some(0));
    assert!(bench.pod("a").is_none());
}

#[test]
fn a_message_from_the_shell_or_a_line_restores_a_stopped_pod_first() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    bench.yoi(&["stop", "a"]);
    let done = bench.yoi(&["send", "a", "greet", "you"]);
    assert_eq!((done.code, done.err.trim()), (Some(0), "restored a · sent to a"));
    bench.yoi(&["stop", "a"]);
    let done = bench.yoi(&["-c", ":send a greet you"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    // The stop may have interrupted the run of the first message; then that is said in between.
    let said = done.err.trim();
    assert!(said.starts_with("restored a") && said.ends_with(" · sent to a"), "{done:?}");
}

#[test]
fn old_stopped_pods_are_deleted_together_and_the_live_ones_and_other_workspaces_stay() {
    let bench = Bench::new();
    let other = bench.path("other");
    std::fs::create_dir(&other).expect("a directory");
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "new b", "-c", "new live"]);
    let elsewhere =
        ["new", "far", "--model", &bench.model(), "--cwd", &other.display().to_string()];
    assert_eq!(bench.yoi(&elsewhere).code, Some(0));
    assert_eq!(bench.yoi(&["stop", "a", "b", "far", "--yes"]).code, Some(0));
    let asked = bench.yoi(&["rm", "--older-than", "0m"]);
    assert_eq!(asked.code, Some(3), "{asked:?}");
    assert!(asked.err.contains("delete 2 stopped Pods (a, b; the oldest last active"), "{asked:?}");
    let none = bench.yoi(&["rm", "--older-than", "1d", "--yes"]);
    assert_eq!(none.code, Some(0), "{none:?}");
    assert!(none.err.contains("nothing to delete"), "{none:?}");
    let done = bench.yoi(&["rm", "--older-than", "0m", "--yes"]);
    assert_eq!((done.code, done.last_words()), (Some(0), "deleted 2 Pods: a, b"), "{done:?}");
    assert!(bench.pod("a").is_none() && bench.pod("b").is_none());
    assert!(bench.pod("live").is_some() && bench.pod("far").is_some());
    assert_eq!(bench.yoi(&["-c", ":rm --stopped --all", "--yes"]).code, Some(0));
    assert!(bench.pod("far").is_none() && bench.pod("live").is_some());
}

#[test]
fn the_answers_of_a_pod_that_has_the_name_of_a_deleted_one_are_printed() {
    let bench = Bench::new();
    bench.play("[[when]]\nany = true\ntext = \"heard {input}\"\n");
    let model = bench.model();
    let verbs = ["new d", "send d one", "stop d", "rm d", "new d", "send d two"];
    let verbs = verbs.iter().flat_map(|verb| ["-c", verb]);
    let args: Vec<&str> = ["--yes", "--model", &model].into_iter().chain(verbs).collect();
    let done = bench.yoi(&args);
    assert!(done.code == Some(0) && done.out.contains("heard two"), "{done:?}");
}

#[test]
fn a_verb_that_wants_a_confirmation_needs_a_terminal_or_yes() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet you"]);
    assert_eq!(bench.yoi(&["stop", "a"]).code, Some(0));
    for args in [&["-c", ":rm a"] as &[&str], &["rm", "a"]] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(3), "{args:?}: {done:?}");
        assert!(done.err.contains("delete a and its transcript for good?"), "{args:?}: {done:?}");
        assert!(done.last_words().contains("--yes"), "{args:?}: {done:?}");
    }
    let piped = bench.yoi_reading(&["--no-ui"], ":rm a\n");
    assert_eq!(piped.code, Some(3), "{piped:?}");
    assert!(bench.pod("a").is_some(), "a pod is not deleted unasked");
    bench.yoi(&["restore", "a"]);
    let rewound = bench.yoi(&["--pod", "a", "-c", ":rewind 1"]);
    assert_eq!(rewound.code, Some(3), "{rewound:?}");
    assert_eq!(bench.yoi(&["--pod", "a", "--yes", "-c", ":rewind 1"]).code, Some(0));
    assert_eq!(bench.yoi(&["stop", "a"]).code, Some(0));
    assert_eq!(bench.yoi(&["--yes", "-c", ":rm a"]).code, Some(0));
    assert!(bench.pod("a").is_none());
}

#[test]
fn a_family_is_stopped_and_restored_from_the_shell_after_it_was_named() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "new b"]);
    let done = bench.yoi(&["stop", "a", "b"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.err.contains("stop a, b?"), "{done:?}");
    let done = bench.yoi(&["stop", "--all", "--yes"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("stopped a, b · `yoi restore a b` brings them back"), "{done:?}");
    let done = bench.yoi(&["restore", "a", "b"]);
    assert_eq!((done.code, bench.pod("b").expect("b")["state"].as_str()), (Some(0), Some("idle")));
}

#[test]
fn help_of_one_verb_is_as_long_in_every_way() {
    let bench = Bench::new();
    let long = bench.yoi(&["-c", ":help peer"]);
    assert!(long.out.contains("Peers get nothing else"), "{long:?}");
    assert_eq!(bench.yoi(&["-c", ":peer --help"]).out, long.out);
    assert_eq!(bench.yoi_reading(&["--no-ui"], ":help peer\n").out, long.out);
    let shell = bench.yoi(&["peer", "--help"]);
    let joined = shell.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("Peers get nothing else"), "{shell:?}");
}

#[test]
fn a_shell_says_where_a_verb_works_and_which_command_goes_on() {
    let bench = Bench::new();
    let screen = bench.yoi(&["theme", "day"]);
    let said =
        "yoi: `yoi theme` works only on the screen: start `yoi` and type it there, after a colon";
    assert_eq!((screen.code, screen.last_words()), (Some(2), said), "{screen:?}");
    let theme = bench.yoi(&["--theme", "nosuch", "--no-ui"]);
    assert_eq!(theme.code, Some(2), "{theme:?}");
    assert!(
        theme.err.contains(
            "no theme named nosuch; there are auto, night, day, high-contrast, terminal, mono"
        ),
        "{theme:?}"
    );
    assert_eq!(bench.yoi(&["new", "kid", "--model", &bench.model()]).code, Some(0));
    let taken = bench.yoi(&["new", "kid", "--model", &bench.model()]);
    assert!(taken.err.contains("`yoi send kid \"…\"` goes there"), "{taken:?}");
    assert_eq!(bench.yoi(&["stop", "kid"]).code, Some(0));
    assert_eq!(bench.yoi(&["rm", "kid", "nobody", "--yes"]).code, Some(5));
    assert!(bench.pod("kid").is_some(), "nothing is deleted when one is not there");
    let unnamed = bench.yoi(&["stop"]);
    assert!(unnamed.err.contains("name one, as `yoi ls` lists them"), "{unnamed:?}");
}

#[test]
fn an_answer_without_text_and_tool_call_is_noted_on_standard_error_and_in_the_log_and_fails() {
    let bench = Bench::new();
    bench.play(
        "[[when]]\nsays = \"nothing\"\n[[when.step]]\nstop = \"end_turn\"\n\
         [[when]]\nsays = \"thought\"\n[[when.step]]\nthink = \"I see.\"\n\
         [[when]]\nsays = \"text\"\n[[when.step]]\ntext = \"Yes.\"\n",
    );
    let note = "the model's answer was empty";
    for (pod, prompt, is_empty) in
        [("a", "nothing", true), ("b", "thought", true), ("c", "text", false)]
    {
        let model = bench.model();
        let done = bench.yoi(&["--no-ui", "--model", &model, "--pod", pod, "-p", prompt]);
        assert_eq!(done.code, Some(i32::from(is_empty)), "{done:?}");
        assert_eq!(done.err.matches(note).count(), usize::from(is_empty), "{prompt}: {done:?}");
        assert_eq!(done.out, if is_empty { "" } else { "Yes.\n" });
        let log = bench.yoi(&["log", pod]);
        assert_eq!(log.out.contains(note), is_empty, "{prompt}: {log:?}");
    }
}

#[test]
fn an_entry_of_a_newer_program_is_noted_in_the_printed_log_and_kept_behind_new_messages() {
    let bench = Bench::new();
    bench.say("hi");
    let is_log = |path: &PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let log = files(&bench.data()).into_iter().find(is_log).expect("a log");
    let mut text = fs::read_to_string(&log).expect("a log");
    text += "{\"id\":\"0199f0c0-0000-7000-8000-00000000000a\",\"ts\":7,\"kind\":\"hologram\",\"deep\":[1]}\n";
    fs::write(&log, &text).expect("a writable log");
    let done = bench.yoi(&["--no-ui", "--pod", "ws", "-p", "hi again"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let kept = fs::read_to_string(&log).expect("a log");
    assert!(kept.starts_with(&text) && kept.len() > text.len(), "{kept}");
    let newer = bench.log("ws").into_iter().find(|entry| entry["kind"] == "hologram");
    assert_eq!(newer.expect("the entry")["deep"], json!([1]));
    let done = bench.yoi(&["log", "ws"]);
    assert_eq!(done.out.matches("an entry of a newer yoi: hologram").count(), 1, "{done:?}");
}
