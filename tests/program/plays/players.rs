//! What each line of the texts does, looked at after it ran.

use crate::bench::{Done, alive, eventually, signal};
use crate::machines::Server;
use crate::mesh;
use crate::plays::place::Place;
use crate::plays::texts::{commands, document};
use crate::pty::Terminal;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// Runs a line that must succeed.
fn ends(done: Done) -> String {
    assert_eq!(done.code, Some(0), "{done:?}");
    done.out
}

/// The texts of the user's messages in a Pod's log.
fn messages(place: &Place, pod: &str) -> Vec<String> {
    let log = place.does(&format!("yoi log {pod} --json"));
    let entries = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let inputs = entries.filter(|entry| entry["kind"] == "user_input");
    inputs.map(|entry| entry["segments"].to_string()).collect()
}

pub fn a_fresh_pod_answers(place: &Place, line: &str) {
    assert_eq!(place.does(line), "heard: fix the failing test\n");
    assert_eq!(place.listed(), Vec::<String>::new(), "the Pod of one message is in no list");
    let ephemeral = place.bench.pod("ws").expect("the fresh Pod");
    assert_eq!(ephemeral["state"], "stopped", "{ephemeral}");
}

pub fn the_named_pod_is_begun_and_goes_on(place: &Place, line: &str) {
    let line = match line.contains("-p ") {
        true => line.to_owned(),
        false => format!("{} -p 'and now the docs'", place.filled(line)),
    };
    for sent in 1..=2 {
        assert_eq!(place.does(&line), "heard: and now the docs\n");
        assert_eq!(messages(place, "docs").len(), sent);
    }
    assert!(place.listed().contains(&"docs".to_owned()));
}

pub fn the_diff_is_text(place: &Place, line: &str) {
    let answer = place.does(line);
    assert!(answer.starts_with("heard: review this"), "{answer}");
    assert!(answer.contains("+the new words") && answer.contains("+:stop --all"), "{answer}");
}

pub fn the_diff_is_the_message(place: &Place, line: &str) {
    let pod = if line.contains("docs") { "docs" } else { "api" };
    place.run(&format!("yoi restore {pod}"));
    let diff =
        |line: &str| if line.contains("git") { line.into() } else { format!("git diff | {line}") };
    place.does(&diff(&place.filled(line)));
    let sent = || messages(place, pod).last().cloned().unwrap_or_default();
    assert!(sent().contains("the new words"), "{}", sent());
    // The other half of the sentence: no other message reads the standard input.
    place.until(pod, "idle");
    for line in [format!("yoi send {pod} look"), format!("yoi -c ':send {pod} look'")] {
        let done = place.run(&diff(&line));
        assert!(sent().contains("look") && !sent().contains("new words"), "{}", sent());
        let way = format!("the piped input was not sent: `yoi send {pod} -` sends it");
        assert!(done.err.contains(&way), "{done:?}");
        place.until(pod, "idle");
    }
    let refused = place.run(&diff(&format!("yoi -c ':send {pod} -'")));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains(&format!("`yoi send {pod} -` sends it")), "{refused:?}");
}

pub fn the_words_behind_the_dashes_are_the_message(place: &Place, line: &str) {
    place.does("yoi new lead");
    place.until("docs", "idle");
    place.does(line);
    let last = messages(place, "docs").pop().unwrap_or_default();
    assert!(last.contains(r#""content":"--help is out""#), "{last}");
    place.until("docs", "idle");
}

pub fn each_line_is_an_event(place: &Place, line: &str) {
    let line = if line.contains('<') { line } else { "yoi -p - --json < prompt.txt" };
    let out = place.does(line);
    let events = out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let events: Vec<Value> = events.collect();
    let entries = events.iter().filter(|event| event["event"] == "entry").map(Value::to_string);
    let entries = entries.collect::<String>();
    assert!(entries.contains("a long prompt") && entries.contains("heard: "), "{out}");
}

pub fn verbs_run_in_order(place: &Place, line: &str) {
    place.does(line);
    assert!(place.listed().contains(&"api".to_owned()));
    assert!(messages(place, "api").concat().contains("hello"));
}

pub fn only_what_is_allowed_passes(place: &Place, line: &str) {
    let line = match line.split(' ').next() {
        Some("yoi") if line.contains("-p") => line.to_owned(),
        _ => "yoi -p test --allow 'Bash+network:cargo *'".to_owned(),
    };
    let done = place.run(&line);
    assert_eq!(done.code, Some(3), "the second command is denied: {done:?}");
    let said = |what: &str| assert!(done.err.contains(what), "{what}: {done:?}");
    said("allowed by --allow 'Bash+network:cargo *': Bash cargo --version");
    said("denied: Bash true (network): no person is here to decide");
}

pub fn lines_are_messages_and_verbs(place: &Place, line: &str) {
    let line = if line.starts_with("yoi") { line.to_owned() } else { format!("yoi {line}") };
    let out = ends(place.run_reading(&line, "hello\n:who .\n:quit\n"));
    assert!(out.contains("heard: hello") && out.contains("may read and write"), "{out}");
}

pub fn the_pod_is_stopped(place: &Place, line: &str) {
    place.until("api", "idle");
    place.does(&place.filled(line));
    assert_eq!(place.state("api").as_deref(), Some("stopped"));
}

pub fn the_pods_of_the_selector_are_stopped(place: &Place, line: &str) {
    place.until("docs", "idle");
    let refused = place.run("yoi stop 'docs/**'");
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("stop docs") && refused.err.contains("--yes"), "{refused:?}");
    place.does(line);
    assert_eq!(place.state("docs").as_deref(), Some("stopped"));
}

pub fn the_pod_is_deleted_after_a_confirmation(place: &Place, line: &str) {
    place.run("yoi stop api");
    let refused = place.run(r#"yoi -c ":rm api""#);
    assert_eq!(refused.code, Some(3), "{refused:?}");
    assert!(refused.err.contains("--yes"), "{refused:?}");
    let mut terminal = Terminal::open(&place.bench, &["-c", ":rm api"]);
    terminal.waits_for("[y/N]");
    terminal.press("n\r");
    terminal.ends();
    assert_eq!(place.state("api").as_deref(), Some("stopped"));
    match line {
        "yoi <verb> --yes" => place.does("yoi rm api --yes"),
        line if line.contains("-c") => place.does(line),
        _ => place.does(r#"yoi -c ":rm api" --yes"#),
    };
    assert_eq!(place.state("api"), None);
}

pub fn nothing_young_is_deleted(place: &Place, line: &str) {
    let before = place.does("yoi ls --all");
    let done = place.run(line);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains("nothing to delete"), "{done:?}");
    assert_eq!(place.does("yoi ls --all").lines().count(), before.lines().count());
}

pub fn the_pods_are_listed(place: &Place, line: &str) {
    let out = place.does(line);
    assert!(["api", "docs"].iter().any(|pod| out.contains(pod)), "{out}");
}

pub fn agents_of_the_mesh_are_listed_and_hear(place: &Place, _line: &str) {
    let _member = mesh::tail(&place.bench, "listener");
    assert!(place.does("yoi mesh ls").contains("listener"));
    assert!(place.does("yoi mesh send listener 'are you there'").contains("received"));
    eventually("the message is printed", || {
        mesh::read(&place.bench, "listener.out").contains("are you there")
    });
}

pub fn the_messages_of_the_mesh_are_listed(place: &Place, _line: &str) {
    let _member = mesh::tail(&place.bench, "listener");
    place.does("yoi mesh send listener 'are you there'");
    eventually("the message is noted", || {
        place.does("yoi mesh audit listener").contains("yoi -> listener: received")
    });
}

pub fn two_machines_are_connected(place: &Place, _line: &str) {
    let Some(server) = Server::start(&place.bench) else { return };
    let joins = server.admit("casa");
    assert!(place.does(&joins).contains("this machine is casa"));
    assert!(place.does("yoi doctor").contains("admits casa"));
    let joins = server.admit("trab");
    let done = place.run_reading("yoi mesh join -", &joins);
    assert!(done.code == Some(0) && done.out.contains("this machine is trab"), "{done:?}");
    let removed = place.run(&format!("yoi mesh init {} --remove trab", server.dir()));
    assert!(removed.code == Some(0) && removed.err.contains("trab is refused"), "{removed:?}");
    let refused = place.run("yoi doctor");
    assert!(refused.out.contains("does not admit this machine"), "{refused:?}");
    assert!(place.does("yoi mesh leave").contains("is no longer connected"));
}

pub fn an_mcp_client_is_answered(place: &Place, line: &str) {
    place.does("mkdir -p part");
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let request = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    let line = if line == "--name" { "yoi mcp --name <NAME>" } else { line };
    let done = place.run_reading(&place.filled(line), &format!("{request}\n"));
    assert!(done.code == Some(0) && done.out.contains("on the agent mesh"), "{done:?}");
    assert!(!line.contains("--name") || done.out.contains("`docs`"), "{done:?}");
    assert!(!line.contains("--cwd") || done.out.contains("`part`"), "{done:?}");
}

pub fn an_mcp_client_learns_of_yoi(place: &Place, line: &str) {
    let settings = place.bench.path("home/.cursor/mcp.json");
    place.does("yoi mcp install cursor --yes");
    assert!(fs::read_to_string(&settings).expect("settings").contains("\"yoi\""));
    let done = place.run(&line.replace("<client>", "cursor"));
    let uninstalls = line.contains("uninstall");
    assert_eq!(done.code, Some(if uninstalls { 2 } else { 0 }), "{done:?}");
    let said = if uninstalls { "nothing was changed" } else { "knows yoi already" };
    assert!(done.err.contains(said), "{done:?}");
}

pub fn the_commands_of_the_pod_are_explained(place: &Place, line: &str) {
    let out = place.does(&place.filled(line));
    assert!(out.contains("sandbox") && out.contains("HOME"), "{out}");
}

pub fn the_pod_of_one_message_is_listed(place: &Place, line: &str) {
    place.does("yoi -p hello");
    assert!(!place.does("yoi ls").contains("ephemeral"));
    assert!(place.does(line).contains("ephemeral"));
}

pub fn the_transcript_is_printed(place: &Place, line: &str) {
    let pod = if line.contains("docs") { "docs" } else { "api" };
    if pod == "api" {
        place.does("yoi send api 'and now the docs'");
        place.until("api", "idle");
    }
    let line = match line.strip_prefix("yoi log --") {
        Some(option) => format!("yoi log {pod} --{option}"),
        None => place.filled(line),
    };
    let out = place.does(&line);
    assert!(out.contains("heard: and now the docs"), "{out}");
    if line.contains("--json") {
        out.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect("JSON")));
    }
}

pub fn the_host_is_shown(place: &Place, line: &str) {
    place.does("yoi send docs hello || yoi restore docs");
    place.does("yoi send docs hello");
    assert!(
        place
            .does(line)
            .contains(&format!("process    {}", place.bench.host_pid().expect("a host")))
    );
}

pub fn the_doctor_reports(place: &Place, line: &str) {
    let done = place.run(line);
    let is_broken = match line.contains("--json") {
        true => done.out.contains("\"broken\":true"),
        false => done.out.contains("BROKEN"),
    };
    assert_eq!(done.code, Some(i32::from(is_broken)), "{done:?}");
    assert!(done.out.contains("sandbox") && done.out.contains("rehearsal:"), "{done:?}");
}

pub fn a_report_is_written(place: &Place, line: &str) {
    let named = line.contains("[file]");
    let line = line.replace("[file]", "report.txt").replace(" [<FILE>]", "");
    let done = place.run(&line);
    let written = done.err.split_once("wrote ").and_then(|(_, rest)| rest.split_once(": look"));
    let written = written.unwrap_or_else(|| panic!("{done:?}")).0;
    let file = place.bench.ws().join(written);
    let in_state = file.starts_with(place.bench.path("home/state"));
    assert!(named == file.ends_with("ws/report.txt") && named != in_state, "{}", file.display());
    let report = fs::metadata(&file).expect("a report");
    assert_eq!(report.permissions().mode() & 0o777, 0o600);
}

pub fn the_manual_page_is_read_by_man(place: &Place, line: &str) {
    let line = if line.starts_with("yoi") { line.to_owned() } else { format!("yoi man | {line}") };
    let page = place.does(&line);
    let page = if line.contains('|') { page } else { place.does(&format!("{line} | man -l -")) };
    assert!(page.contains("EXIT STATUS") && page.contains(":stop [pod"), "{page}");
}

pub fn the_dashboard_sends_the_message(place: &Place, line: &str) {
    place.does("yoi stop api && yoi rm api --yes");
    let words: Vec<&str> = match line.split_once('"') {
        Some((_, text)) => vec![text.trim_end_matches('"')],
        None => line.split(' ').skip(1).collect(),
    };
    let text = words.last().expect("a message");
    let terminal = Terminal::open(&place.bench, &words);
    terminal.waits_for(&format!("heard: {text}"));
}

pub fn the_dashboard_opens(place: &Place, _line: &str) {
    place.does("yoi stop api && yoi rm api --yes");
    let mut terminal = Terminal::open(&place.bench, &[]);
    terminal.waits_for("what to work on");
    terminal.press("hello\r");
    terminal.waits_for("heard: hello");
    terminal.waits_for("○ ws");
    terminal.press(":quit\r");
    assert_eq!(terminal.ends(), 0);
    let again = Terminal::open(&place.bench, &[]);
    again.waits_for("heard: hello");
}

pub fn the_model_is_chosen(place: &Place, line: &str) {
    let option = place.filled(line.trim_start_matches("yoi "));
    let said = place.does(&format!("yoi {option} -c :model"));
    assert!(said.contains("new Pods use anthropic/claude-sonnet-4-5"), "{said}");
}

pub fn the_effort_is_chosen(place: &Place, line: &str) {
    let option = line.trim_start_matches("yoi ").trim_end_matches(" <EFFORT>");
    let said = place.does(&format!("yoi {option} high -c ':new strong' -c ':effort'"));
    assert!(said.contains("strong: effort high"), "{said}");
}

pub fn the_models_are_listed(place: &Place, line: &str) {
    let listed = place.does(line);
    let is_json = line.ends_with("--json");
    let of = |model: &str| listed.lines().find(|row| row.contains(model)).unwrap_or_default();
    let row = of("anthropic/claude-sonnet-4-5");
    assert!(row.contains(if is_json { r#""output":15"# } else { "$3 / $15" }), "{listed}");
    assert_eq!(of("openai/").is_empty(), line.ends_with("sonnet"), "{listed}");
    let unknown = place.run("yoi models nothing-has-this-name");
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
    assert!(unknown.err.contains("no known model has nothing-has-this-name"), "{unknown:?}");
}

pub fn the_script_answers(place: &Place, line: &str) {
    place.bench.settings(&place.bench.without_local_models());
    assert_eq!(place.does(&format!("yoi {} -p hello", place.filled(line))), "heard: hello\n");
}

pub fn the_script_answers_on_the_screen(place: &Place, line: &str) {
    place.does("yoi stop api && yoi rm api --yes");
    place.bench.without_local_models();
    let line = place.filled(line);
    let mut terminal = Terminal::open(&place.bench, &line.split(' ').skip(1).collect::<Vec<_>>());
    terminal.waits_for("what to work on");
    terminal.press("hello\r");
    terminal.waits_for("heard: hello");
}

pub fn the_standard_input_is_the_message(place: &Place, line: &str) {
    let out = ends(place.run_reading(&format!("yoi -p {line}"), "from a file"));
    assert_eq!(out, "heard: from a file\n");
}

pub fn a_message_is_answered(place: &Place, line: &str) {
    for option in line.trim_start_matches("yoi ").split(", ") {
        let option = option.replace(" <TEXT>", "");
        assert_eq!(place.does(&format!("yoi {option} hello")), "heard: hello\n");
    }
}

pub fn a_verb_is_carried_out(place: &Place, line: &str) {
    for option in line.trim_start_matches("yoi ").split(", ") {
        let option = option.replace(" <VERB>", "");
        let said = place.does(&format!("yoi {option} ':who .' {option} 'who ..'"));
        assert_eq!(said.matches("may read and write").count(), 1, "{said}");
    }
}

pub fn the_pod_is_kept(place: &Place, line: &str) {
    place.does(&format!("yoi -p hello {}", line.trim_start_matches("yoi ")));
    assert_eq!(place.listed().len(), 2);
}

pub fn the_pod_of_one_message_becomes_ordinary(place: &Place, line: &str) {
    place.does("yoi -p hello");
    let before = place.listed().len();
    let list = place.does("yoi ls --all");
    let fresh = list.lines().find(|row| row.contains("ephemeral")).expect("a Pod");
    let name = fresh.split(' ').next().expect("its name");
    place.does(&line.replace("<pod>", name));
    assert_eq!(place.listed().len(), before + 1);
}

pub fn control_characters_are_printed(place: &Place, line: &str) {
    assert_eq!(place.does("yoi -p ring"), "a bell \n");
    let raw = place.does(&format!("yoi -p ring {}", line.trim_start_matches("yoi ")));
    assert!(raw.contains('\u{7}'), "{raw:?}");
}

pub fn the_request_waits(place: &Place, line: &str) {
    let option = line.trim_start_matches("yoi ").replace("<UNATTENDED>", "wait");
    let waits = place.bench.shell(&format!("yoi -p 'use the network: true' {option}")).spawn();
    let waits = waits.expect("a shell");
    let mut printed = String::new();
    eventually("the request is printed", || {
        printed = place.does("yoi inbox");
        printed.contains("yoi allow ")
    });
    let name = printed.split_once("`yoi allow ").and_then(|(_, rest)| rest.split_once('`'));
    place.does(&format!("yoi allow {}", name.expect("its name").0));
    let done = place.bench.finish(waits);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains(&format!("`yoi allow {}`", name.expect("its name").0)), "{done:?}");
}

pub fn a_host_serves_until_sigterm(place: &Place, _line: &str) {
    place.run("yoi host stop");
    let mut host = place.bench.serve();
    signal(host.child.id(), "TERM");
    eventually("the host ends", || host.child.try_wait().expect("a child").is_some());
}

pub fn each_verb_of_the_shell_is_a_command(place: &Place, line: &str) {
    let page = document("docs/verbs.md");
    let rows = page.lines().filter_map(|row| row.strip_prefix("| `:"));
    let commands = commands(&place.does("yoi --help"));
    for row in rows {
        let verb = row.split([' ', '`']).next().expect("a verb");
        let place_of = row.trim_end_matches(" |").rsplit(" | ").next().expect("where it works");
        let of_the_shell = place_of.contains("everywhere") || place_of.contains("shell");
        // A command of the program has the name of this verb of the screen.
        let is_both = verb == "mesh" || verb == "mcp";
        let is_command = commands.contains(&verb.to_owned());
        assert_eq!(is_command, of_the_shell || is_both, "{verb}: {place_of}");
        if of_the_shell {
            let help = place.does(&format!("{} --help", line.replace("<verb>", verb)));
            assert!(help.contains("--pod <NAME>"), "{help}");
        }
    }
}

pub fn the_pod_that_is_named_is_meant(place: &Place, _line: &str) {
    place.does("yoi new docs --cwd ..");
    place.does("yoi stop --pod docs");
    assert_eq!(place.state("docs").as_deref(), Some("stopped"));
    assert_eq!(place.state("api").as_deref(), Some("idle"));
}

pub fn the_request_is_printed(place: &Place, line: &str) {
    let name = place.request();
    assert!(place.does(line).contains(&format!("`yoi allow {name}`")));
}

pub fn the_request_is_allowed(place: &Place, line: &str) {
    let rest = "[pod|tree [<tool>:<pattern>]]";
    assert!(line.ends_with(rest), "{line}");
    let way = line.replace(rest, "").replace("<name>", &place.request());
    place.does(&way);
    place.waits_no_more();
    for (scope, rule) in [("pod", ""), ("tree", " 'Bash+network:true*'")] {
        let way = line.replace(rest, &format!("{scope}{rule} --yes"));
        place.does(&way.replace("<name>", &place.request()));
        place.waits_no_more();
        revokes_the_rule(place);
    }
}

fn revokes_the_rule(place: &Place) {
    let policy = place.does("yoi policy");
    let first_words = policy.lines().filter_map(|rule| rule.split(' ').next());
    let number = first_words.filter_map(|word| word.parse::<u64>().ok()).next();
    let number = number.unwrap_or_else(|| panic!("no rule with a number: {policy}"));
    place.does(&format!("yoi policy revoke {number}"));
}

pub fn the_equal_requests_are_allowed(place: &Place, line: &str) {
    place.does(&line.replace("<name>", &place.request()));
    place.waits_no_more();
}

pub fn the_request_is_allowed_for_a_family(place: &Place, line: &str) {
    let way = line.replace("<name>", &place.request()).replace("<pod>", "api --yes");
    place.does(&way);
    place.waits_no_more();
    revokes_the_rule(place);
}

pub fn the_request_is_denied(place: &Place, line: &str) {
    let way = line.replace("<name>", &place.request()).replace("[why]", "not today");
    place.does(&way);
    place.waits_no_more();
    assert!(place.does("yoi log api").contains("not today"));
}

pub fn the_question_is_answered(place: &Place, line: &str) {
    place.does("yoi send api 'ask me'");
    place.until("api", "needs_you");
    let way = place.filled(&line.replace("<name>", "<pod>").replace("<answer>", "both of them"));
    place.does(&way);
    place.waits_no_more();
    assert!(place.does("yoi log api").contains("both of them"));
}

pub fn the_lines_of_the_host_are_shown(place: &Place, line: &str) {
    place.does("yoi send api hello");
    place.until("api", "idle");
    let all = place.does(&line.replace(" [words]", ""));
    let some = place.does(&line.replace("[words]", "pod=api"));
    assert!(!some.is_empty() && some.lines().count() <= all.lines().count(), "{some}");
    assert!(some.lines().all(|line| line.contains("pod=api")), "{some}");
}

pub fn the_host_logs_more(place: &Place, line: &str) {
    place.run("yoi host stop");
    let (variable, command) = line.split_once(' ').expect("a variable and a command");
    let (name, value) = variable.split_once('=').expect("a variable");
    assert_eq!(command, "yoi");
    let terminal = Terminal::with_env(&place.bench, &[], &[(name, value)]);
    terminal.waits_for("api");
    let log = place.bench.path("home/state/yoi.log");
    eventually("the log holds more", || {
        fs::read_to_string(&log).is_ok_and(|log| log.contains(" DEBUG "))
    });
}

pub fn the_host_ends(place: &Place, line: &str) {
    place.does("yoi send api hello");
    let host = place.bench.host_pid().expect("a host");
    place.does(line);
    eventually("the host is gone", || !alive(host));
}

pub fn the_interrupted_runs_go_on(place: &Place, line: &str) {
    place.does("yoi send api hello");
    assert!(place.does(line).is_empty(), "no run is paused");
}

pub fn a_key_is_stored(place: &Place, line: &str) {
    ends(place.run_reading(&place.filled(line), "sk-test\n"));
    assert_eq!(place.does("yoi auth"), "anthropic\n");
    let keys = fs::metadata(place.bench.path("home/config/keys.toml")).expect("a file");
    assert_eq!(keys.permissions().mode() & 0o777, 0o600);
}

/// No provider is reached from a test: that a key is tried first is seen by its not being stored.
pub fn a_key_is_tried_and_stored(place: &Place, line: &str) {
    let line = format!("ANTHROPIC_BASE_URL=http://127.0.0.1:9 {}", place.filled(line));
    let done = place.run_reading(&line, "sk-test\n");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("anthropic at 127.0.0.1:9 refused the connection"), "{done:?}");
    assert_eq!(place.does("yoi auth"), "");
}

pub fn a_key_is_removed(place: &Place, line: &str) {
    a_key_is_stored(place, "yoi auth anthropic");
    place.does(&line.replace("auth", "auth anthropic"));
    assert_eq!(place.does("yoi auth"), "");
}

pub fn the_shell_reads_the_completions(place: &Place, line: &str) {
    place.does(&format!("{} > completions && bash -n completions", place.filled(line)));
}

/// The files of an installed program below its prefix.
const INSTALLED: [&str; 5] = [
    "bin/yoi",
    "share/man/man1/yoi.1",
    "share/bash-completion/completions/yoi",
    "share/zsh/site-functions/_yoi",
    "share/fish/vendor_completions.d/yoi.fish",
];

pub fn the_program_is_installed(place: &Place, line: &str) {
    let prefix = if line.contains("--to") { "ws/part" } else { "home/.local" };
    let prefix = place.bench.path(prefix);
    let said = place.does(&place.filled(line));
    if line.contains("--plan") {
        assert!(said.contains("would write") && !prefix.exists(), "{said}");
        return;
    }
    for file in INSTALLED {
        let file = prefix.join(file);
        assert!(file.is_file() && said.contains(&file.display().to_string()), "{said}");
    }
    let program = prefix.join("bin/yoi").display().to_string();
    assert!(place.does(&format!("{program} --version")).starts_with("yoi "));
    let again = place.does(&format!("{program} install --to {}", prefix.display()));
    assert!(again.contains(&format!("{program} is this program")), "{again}");
}

pub fn the_installed_program_is_taken_back(place: &Place, line: &str) {
    let to = if line.contains("--to") { " --to part" } else { "" };
    let prefix = place.bench.path(if to.is_empty() { "home/.local" } else { "ws/part" });
    place.does(&format!("yoi install{to}"));
    place.does("yoi new kept");
    let live = place.run(&place.filled(line));
    if line.contains("--plan") {
        assert!(live.out.contains("would delete"), "{live:?}");
        place.does("yoi mcp install claude --yes");
        let user = rustix::process::getuid().as_raw();
        let sockets = format!("/tmp/yoi-{user}-{:012x}", std::process::id());
        std::fs::create_dir_all(&sockets).expect("a directory for sockets");
        let said = place.run(&place.filled(line)).out;
        std::fs::remove_dir(&sockets).expect("our own directory");
        assert!(said.contains(&format!("stays: {sockets} (sockets)")), "{said}");
        let entry = ".claude.json (an entry of yoi for an MCP client; `yoi mcp uninstall claude`";
        assert!(said.contains(entry), "{said}");
        assert!(INSTALLED.iter().all(|file| prefix.join(file).is_file()));
        return;
    }
    assert!(live.code == Some(1) && live.err.contains("yoi host stop"), "{live:?}");
    place.does("yoi host stop");
    let mut line = place.filled(line);
    if line.contains("--all") {
        let asked = place.run(&line);
        assert!(asked.code == Some(2) && asked.err.contains("--yes"), "{asked:?}");
        assert!(INSTALLED.iter().all(|file| prefix.join(file).is_file()));
        line += " --yes";
    }
    let said = place.does(&line);
    assert!(INSTALLED.iter().all(|file| !prefix.join(file).exists()), "{said}");
    let data = place.bench.path("home/data").display().to_string();
    assert!(said.contains(&format!("stays: {data}")), "{said}");
    assert!(place.does("yoi ls").contains("kept"), "a Pod stays");
}

pub fn the_pod_works_in_the_directory(place: &Place, line: &str) {
    place.does(&format!("mkdir part && {} -p hello", place.filled(line)));
    let list = place.does("yoi ls --all");
    assert!(list.contains("ws/part"), "{list}");
}

pub fn the_theme_is_checked(place: &Place, line: &str) {
    let help = place.does("yoi --help");
    let themes = help.split_once("The colours: ").expect("the colours").1;
    let themes = themes.split(" or one").next().expect("names").split(", ");
    for theme in themes {
        place.does(&format!("{} -p hello", line.replace("<NAME>", theme)));
    }
    assert_eq!(place.run(&format!("{} -p hello", line.replace("<NAME>", "pink"))).code, Some(2));
}

pub fn the_host_is_inside(place: &Place, line: &str) {
    place.run("yoi host stop");
    place.does("yoi rm api --yes || yoi -c 'stop api' -c 'rm api' --yes");
    let terminal = Terminal::open(&place.bench, &[line.trim_start_matches("yoi ")]);
    terminal.waits_for("what to work on");
    assert_eq!(place.bench.host_pid(), Some(terminal.pid()));
}

pub fn the_version_is_printed(place: &Place, line: &str) {
    let version = format!("yoi {}\n", env!("CARGO_PKG_VERSION"));
    for option in line.trim_start_matches("yoi ").split(", ") {
        assert_eq!(place.does(&format!("yoi {option}")), version);
    }
}

pub fn the_socket_of_the_pod_takes_a_message(place: &Place, line: &str) {
    place.does("yoi send api hello");
    place.until("api", "idle");
    let socket = place.bench.runtime().join("api/sock");
    let line = line.replace("<PATH>", &socket.display().to_string());
    place.does(&format!("{line} api 'through the socket'"));
    place.until("api", "idle");
    assert!(messages(place, "api").concat().contains("through the socket"));
}
