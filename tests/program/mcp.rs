//! Pods and servers of MCP: programs of other makers, good ones and bad ones.

use crate::bench::{Bench, Done, Host, eventually, signal};
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SERVER: &str = include_str!("../mcp/server.py");

/// A bench whose settings name the server `demo`, with further lines below `[mcp.demo]`.
fn bench(mode: &str, more: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.ws().join("server.py"), SERVER).expect("a writable workspace");
    bench.settings(&bench.demo("demo", mode, more));
    bench
}

impl Bench {
    /// Settings that name a server in the workspace, with further lines below `[mcp.<name>]`.
    fn demo(&self, name: &str, mode: &str, more: &str) -> String {
        let file = self.ws().join("server.py").display().to_string();
        format!("[mcp.{name}]\ncommand = \"python3\"\nargs = [\"{file}\", \"{mode}\"]\n{more}\n")
    }

    /// The model calls these tools one after the other, and says each result.
    fn plan(&self, calls: &[(&str, &str)]) {
        let step = |(tool, arguments): &(&str, &str)| {
            format!(
                "[[when.step]]\ntext = \"<{{result}}>\"\n\
                 call = [{{ name = \"{tool}\", args = '{arguments}' }}]\n"
            )
        };
        let steps: String = calls.iter().map(step).collect();
        self.play(&format!(
            "[[when]]\nany = true\n{steps}[[when.step]]\ntext = \"<{{result}}>\"\n"
        ));
    }

    /// One call of a tool of the server by a fresh Pod.
    fn call(&self, tool: &str, arguments: &str) -> Done {
        self.plan(&[(&format!("mcp__demo__{tool}"), arguments)]);
        self.go(&[])
    }

    /// A run of a fresh Pod that may start the server.
    fn go(&self, more: &[&str]) -> Done {
        let model = self.model();
        let start = ["--no-ui", "--allow", "McpServer:demo", "--model", &model, "-p", "go"];
        self.yoi(&[&start, more].concat())
    }

    /// A bad server fails only its own call, with this text; a file tool in the same run still works.
    #[track_caller]
    fn harms_only_its_call(&self, tool: &str, arguments: &str, said: &str) {
        let name = format!("mcp__demo__{tool}");
        let file = r#"{"file_path": "after.txt", "content": "it went on"}"#;
        let file = file.replace("after.txt", &self.ws().join("after.txt").display().to_string());
        self.plan(&[(&name, arguments), ("Write", &file)]);
        let begun = Instant::now();
        let done = self.go(&[]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(done.out.contains(said), "{said}: {done:?}");
        let after = fs::read_to_string(self.ws().join("after.txt"));
        assert_eq!(after.expect("the file of the next call"), "it went on");
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
    }
}

#[test]
fn a_pod_uses_the_tools_of_a_server_that_policy_lets_start() {
    let bench = bench("good", "");
    let done = bench.call("echo", r#"{"text": "hello there"}"#);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("hello there"), "{done:?}");
}

#[test]
fn a_server_that_policy_does_not_let_start_is_asked_about_with_all_that_it_gets() {
    let bench = bench("good", "env = { A = \"${HOME}\" }\nnetwork = true");
    bench.plan(&[("mcp__demo__echo", r#"{"text": "hello"}"#)]);
    let args = ["--no-ui", "--model", &bench.model(), "-p", "go"];
    let done = bench.yoi(&args);
    assert_eq!(done.code, Some(0), "the model was refused nothing: {done:?}");
    let said = "MCP server `demo`: not started: denied: no person is here to decide; --allow 'McpServer+sha256=";
    assert!(done.err.contains(said), "{done:?}");
    assert_eq!(done.err.matches("no person is here").count(), 1, "{done:?}");
    let rule = r#"tool = "McpServer", pattern = "demo", action = "allow""#;
    assert!(done.err.contains(rule), "{done:?}");
    assert!(done.out.contains("Tool 'mcp__demo__echo' not found"), "{done:?}");
    let rule = rule.replace(", ", "\n");
    let settings = fs::read_to_string(bench.path("home/config/config.toml")).expect("the settings");
    bench.settings(&format!("{settings}[[permissions.rule]]\n{rule}\n"));
    let done = bench.yoi(&args);
    assert!(
        done.out.contains(r#"--allow 'mcp__demo__echo():{"text":"hello"}'"#),
        "it starts, as it was told: {done:?}"
    );
    let asked = bench.log("ws").into_iter().find(|entry| entry["domain"] == "yoi.asked");
    let details = asked.expect("a request")["payload"]["details"].to_string();
    for part in [
        &format!("command: python3 {} good", bench.ws().join("server.py").display()),
        "started in: /\\n",
        "variables it gets: A",
        "your variables it takes: HOME",
        "network: yes",
        "only reads the scope",
        "config.toml",
    ] {
        assert!(details.contains(part), "{part}: {details}");
    }
}

#[test]
fn a_decision_about_a_server_holds_for_its_definition_and_no_other() {
    let bench = bench("good", "");
    bench.plan(&[("mcp__demo__echo", r#"{"text": "hello"}"#)]);
    let plain = ["--no-ui", "--model", &bench.model(), "-p", "go"];
    let done = bench.yoi(&plain);
    let rule = done.err.split("--allow '").nth(1).and_then(|rest| rest.split('\'').next());
    let rule = rule.expect("the rule that lets it start");
    let done = bench.yoi(&[&["--allow", rule], &plain[..]].concat());
    assert!(done.code == Some(0) && done.out.contains("<hello"), "{done:?}");
    bench.settings("[mcp.demo]\ncommand = \"python3\"\nargs = [\"other.py\", \"good\"]\n");
    let done = bench.yoi(&[&["--allow", rule], &plain[..]].concat());
    assert!(done.err.contains("MCP server `demo`: not started: denied"), "{done:?}");
}

#[test]
fn a_server_has_the_walls_of_a_command_and_only_reads_the_scope_unless_it_may_write() {
    let outside = tempfile::tempdir().expect("a directory");
    fs::write(outside.path().join("secret"), "hidden").expect("a new file");
    let secret = outside.path().join("secret").display().to_string();
    let bench = bench("good", "env = { GIVEN = \"${HOME}\" }");
    bench.plan(&[
        ("mcp__demo__read", &format!(r#"{{"path": "{secret}"}}"#)),
        ("mcp__demo__read", r#"{"path": "server.py"}"#),
        ("mcp__demo__write", r#"{"path": "new", "text": "x"}"#),
        ("mcp__demo__env", r#"{"name": "GIVEN"}"#),
        ("mcp__demo__env", r#"{"name": "YOI_HOME"}"#),
    ]);
    let done = bench.go(&[]);
    assert!(!done.out.contains("hidden") && !bench.ws().join("new").exists(), "{done:?}");
    assert!(done.out.contains("def watch():"), "the end of the file of the server: {done:?}");
    assert!(done.out.contains(&format!("<{}", bench.path("home").display())), "{done:?}");
    assert!(done.out.contains("<None"), "{done:?}");
    bench.settings(&bench.demo("demo", "good", "write = true"));
    let done = bench.call("write", r#"{"path": "new", "text": "x"}"#);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(fs::read_to_string(bench.ws().join("new")).expect("a new file"), "x", "{done:?}");
}

#[test]
fn a_server_outside_of_the_scope_starts_where_the_settings_let_it_read() {
    let outside = tempfile::tempdir().expect("a directory");
    let dir = outside.path().canonicalize().expect("its path").display().to_string();
    fs::write(outside.path().join("server.py"), SERVER).expect("a new file");
    let bench = Bench::new();
    let settings = format!("[mcp.demo]\ncommand = \"python3\"\nargs = [\"{dir}/server.py\"]\n");
    let reading = format!("{settings}read = [\"{dir}\"]\n");
    bench.settings(&reading);
    bench.plan(&[
        ("mcp__demo__read", &format!(r#"{{"path": "{dir}/server.py"}}"#)),
        ("mcp__demo__write", &format!(r#"{{"path": "{dir}/new", "text": "x"}}"#)),
    ]);
    bench.yoi(&["--no-ui", "--model", &bench.model(), "-p", "go"]);
    let asked = bench.log("ws").into_iter().find(|entry| entry["domain"] == "yoi.asked");
    let details = asked.expect("a request")["payload"]["details"].to_string();
    let read = format!("only reads the scope of this pod, and reads {dir}");
    assert!(details.contains(&read), "{details}");
    let done = bench.go(&[]);
    assert!(done.out.contains("def watch():"), "{done:?}");
    assert!(!outside.path().join("new").exists(), "{done:?}");
    bench.settings(&settings);
    let done = bench.go(&[]);
    let advice = format!("`read = [\"{dir}\"]` below [mcp.demo] in config.toml");
    assert!(done.err.contains(&advice), "{done:?}");
    bench.settings("[mcp.demo]\ncommand = \"python3\"\nread = [\"relative\"]\n");
    let done = bench.go(&[]);
    assert!(
        done.err.contains("`read` names relative, which begins with neither / nor ~/"),
        "{done:?}"
    );
}

#[test]
fn a_server_that_is_denied_while_a_pod_uses_it_ends_also_if_its_definition_changed() {
    let bench = bench("good", "");
    let set = |more: &str, action: &str| {
        let rule = format!("[[permissions.rule]]\ntool = \"McpServer\"\naction = \"{action}\"\n");
        bench.settings(&format!("{}{rule}", bench.demo("demo", "good", more)));
    };
    set("write = true", "allow");
    let _host = bench.serve();
    bench.plan(&[("mcp__demo__count", "{}")]);
    let model = bench.model();
    let said = |verb: &str| {
        let done = bench.yoi(&["--model", &model, "-c", verb]);
        assert_eq!(done.code, Some(0), "{done:?}");
        let log = bench.yoi(&["log", "a"]).out;
        log.rsplit("<").next().map(str::to_owned).unwrap_or(log)
    };
    said("new a");
    assert!(said("send a go").contains("call 1"));
    assert!(said("send a go").contains("call 2"), "the same process");
    set("write = true", "deny");
    let denied = said("send a go");
    assert!(denied.contains("Tool 'mcp__demo__count' not found"), "the new rule counts: {denied}");
    set("write = true", "allow");
    assert!(said("send a go").contains("call 1"), "the process had ended");
    set("write = false", "deny");
    let denied = said("send a go");
    assert!(denied.contains("Tool 'mcp__demo__count' not found"), "not the old one: {denied}");
}

#[test]
fn a_server_of_the_settings_runs_no_file_of_the_directory_in_which_its_pod_works() {
    let bench = bench("good", "");
    let done = bench.call("cwd", "{}");
    assert_eq!(done.out, "<>\n</>\n", "{done:?}");
    for (args, said) in
        [("\"-m\", \"server\"", "No module named server"), ("\"server.py\"", "No such file")]
    {
        bench.settings(&format!("[mcp.demo]\ncommand = \"python3\"\nargs = [{args}]\n"));
        let done = bench.call("cwd", "{}");
        let advice = "it starts in /, not in the directory of its pod: write each path in ";
        assert!(done.err.contains(said) && done.err.contains(advice), "{done:?}");
        assert!(done.out.contains("Tool 'mcp__demo__cwd' not found"), "{done:?}");
    }
}

#[test]
fn calls_of_one_run_go_to_one_process_and_nothing_of_it_stays() {
    let bench = bench("good", "");
    bench.plan(&[("mcp__demo__count", "{}"), ("mcp__demo__count", "{}")]);
    let done = bench.go(&[]);
    assert_eq!(done.out, "<>\n<call 1>\n<call 2>\n", "{done:?}");
    eventually("the server has ended", || {
        let processes = fs::read_dir("/proc").expect("a list of processes").flatten();
        let mut cwds = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
        !cwds.any(|cwd| cwd == bench.ws())
    });
}

#[test]
fn a_long_answer_is_kept_in_a_file_as_the_output_of_a_command_is() {
    let bench = bench("good", "");
    let done = bench.call("long", r#"{"lines": 5000}"#);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.starts_with("<>\n<line 0\nline 1\n"), "{done:?}");
    assert!(done.out.contains(", are left out here; all of it is in "), "{done:?}");
    let path = done.out.split("all of it is in ").nth(1).and_then(|rest| rest.split(']').next());
    let all = fs::read_to_string(path.expect("a path")).expect("the file");
    assert!(all.contains("line 0\n") && all.contains("line 4999\n"));
}

#[test]
fn images_and_resources_of_an_answer_are_kept() {
    let bench = bench("good", "");
    let done = bench.call("things", "{}");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("[resource note://1]\na note"), "{done:?}");
    assert!(done.out.contains("[resource x: file:///x]"), "{done:?}");
    let pdf = done.out.split(" is in ").nth(1).and_then(|rest| rest.split(']').next());
    assert_eq!(fs::read(pdf.expect("a path")).expect("the file"), b"%PDF-1.4");
    let log = bench.log("ws");
    let images = log.iter().filter_map(|entry| entry["item"]["images"].as_array());
    let images: Vec<&Value> = images.flatten().collect();
    assert_eq!(images.len(), 1, "the broken one came as words");
    assert_eq!(images[0]["media_type"], "image/png", "whatever the server calls it");
    let said = "[an image/png that is broken: its end is missing, 30 bytes, is in ";
    assert!(done.out.contains(said), "{done:?}");
}

#[test]
fn a_call_that_fails_is_an_error_for_the_model() {
    let done = bench("good", "").call("fail", "{}");
    assert!(done.out.contains("it went wrong"), "{done:?}");
    assert!(done.err.contains("error: fail said that it failed"), "{done:?}");
}

#[test]
fn a_server_that_crashes_in_a_call_fails_that_call_and_is_started_again() {
    let bench = bench("good", "");
    bench.plan(&[("mcp__demo__crash", "{}"), ("mcp__demo__echo", r#"{"text": "back again"}"#)]);
    let done = bench.go(&[]);
    assert!(done.code == Some(0) && done.out.contains("<back again"), "{done:?}");
    assert!(done.out.contains("ended while it worked on the call"), "{done:?}");
    assert!(done.out.contains("exit code 3") && done.out.contains("about to crash"), "{done:?}");
}

#[test]
fn a_server_that_does_not_start_is_said_with_its_last_words_and_the_run_goes_on() {
    let bench = bench("crash-start", "");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "Tool 'mcp__demo__echo' not found");
    let done = bench.go(&[]);
    assert!(done.err.contains("MCP server `demo`: it closed its output"), "{done:?}");
    assert!(done.err.contains("exit code 1; it said: no token"), "{done:?}");
    bench.settings(
        "[mcp.demo]\ncommand = \"sh\"\nargs = [\"-c\", \"echo login $WORD failed, token=$WORD >&2; exit 1\"]\n\
         env = { WORD = \"open-sesame\" }\n",
    );
    let done = bench.go(&[]);
    assert!(done.err.contains("it said: login [secret] failed, token=[secret])"), "{done:?}");
    assert!(!done.err.contains("sesame"), "{done:?}");
    bench.settings("[mcp.demo]\ncommand = \"no-such-program\"\n");
    let done = bench.go(&[]);
    assert!(done.err.contains("is its program installed, and on PATH?"), "{done:?}");
}

#[test]
fn a_server_that_never_answers_the_greeting_is_given_up() {
    let bench = bench("hang-start", "start_s = 1");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "Tool 'mcp__demo__echo' not found");
    let done = bench.go(&[]);
    assert!(done.err.contains("it did not answer `initialize` within 1 s"), "{done:?}");
}

#[test]
fn a_server_that_lies_in_its_greeting_is_refused() {
    let bench = bench("lying-start", "");
    let done = bench.call("echo", r#"{"text": "x"}"#);
    assert!(done.err.contains("its answer to `initialize` is none of MCP"), "{done:?}");
}

#[test]
fn a_server_that_speaks_only_the_version_without_sessions_is_called() {
    let done = bench("stateless", "").call("echo", r#"{"text": "hello"}"#);
    assert!(done.code == Some(0) && done.out.contains("<hello"), "{done:?}");
}

#[test]
fn a_call_that_is_never_answered_ends_after_its_time() {
    let bench = bench("hang-call", "timeout_s = 1");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "did not answer within 1 s");
}

#[test]
fn a_server_that_floods_ends_alone() {
    let bench = bench("flood-call", "");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "it floods");
}

#[test]
fn a_server_that_floods_with_what_is_no_message_ends_alone() {
    let bench = bench("garbage-call", "");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "it floods");
}

#[test]
fn a_line_without_an_end_ends_its_server_alone() {
    let bench = bench("huge-line", "");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "a line of more than 8 MiB");
}

#[test]
fn an_answer_over_the_limit_fails_its_call_and_the_server_goes_on() {
    let bench = bench("good", "");
    let count = ("mcp__demo__count", "{}");
    bench.plan(&[count, ("mcp__demo__huge", "{}"), count]);
    let done = bench.go(&[]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("its answer is longer than 8 MiB"), "{done:?}");
    assert!(done.out.contains("<call 2"), "the server was started again: {done:?}");
}

#[test]
fn an_answer_without_an_end_ends_its_server_alone() {
    let bench = bench("endless-answer", "");
    bench.harms_only_its_call("echo", r#"{"text": "x"}"#, "a line of more than 64 MiB");
}

#[test]
fn noise_on_the_standard_streams_and_bytes_that_are_no_text_harm_nothing() {
    for mode in ["flood-errors", "chatty", "not-utf8"] {
        let done = bench(mode, "").call("echo", r#"{"text": "hello"}"#);
        assert!(done.code == Some(0) && done.out.contains("<hello"), "{mode}: {done:?}");
    }
}

#[test]
fn answers_to_what_was_not_asked_and_of_no_form_are_nothing() {
    let bench = bench("wrong-answers", "");
    let done = bench.call("echo", r#"{"text": "x"}"#);
    assert!(done.code == Some(0) && !done.out.contains("not yours"), "{done:?}");
    assert!(
        done.out.contains("echo answered") && done.out.contains("nothing came back"),
        "{done:?}"
    );
}

#[test]
fn tools_that_lie_about_their_schema_are_left_out_or_narrowed_and_said() {
    let bench = bench("lies", "");
    let long = format!("mcp__demo__{}", "x".repeat(100));
    let done = bench.call("odd", r#"{"a": 1}"#);
    assert!(done.out.contains("there is no odd"), "the server was asked: {done:?}");
    for part in ["`no-object` is left out", "`remote` is left out", "`odd` is offered without"] {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
    let greeting = bench.log("ws").iter().map(Value::to_string).collect::<String>();
    assert!(!greeting.contains(&long), "names are shortened");
    let many = self::bench("many-tools", "").call("t1", "{}");
    assert!(many.err.contains("4872 tools beyond the first 128 are left out"), "{many:?}");
    assert!(many.out.contains("there is no t1"), "{many:?}");
}

#[test]
fn a_server_that_wants_a_model_is_refused() {
    let bench = bench("asks", "write = true");
    let done = bench.call("echo", r#"{"text": "hello"}"#);
    assert!(done.code == Some(0) && done.out.contains("<hello"), "{done:?}");
    let answers = fs::read_to_string(bench.ws().join("answers")).unwrap_or_default();
    let answers: Vec<&str> = answers.lines().filter(|line| line.contains("\"id\"")).collect();
    assert!(!answers.is_empty(), "each request of the server is answered");
    assert!(answers.iter().all(|line| line.contains("\"error\"")), "{answers:?}");
}

#[test]
fn servers_of_a_workspace_count_only_while_its_content_is_trusted() {
    let bench = bench("good", "");
    bench.settings("");
    let file = bench.ws().join(".mcp.json");
    let text = r#"{"mcpServers": {"demo": {"command": "python3", "args": ["server.py"]}}}"#;
    fs::write(&file, text).expect("a writable workspace");
    let done = bench.call("echo", r#"{"text": "hello"}"#);
    assert!(done.out.contains("Tool 'mcp__demo__echo' not found"), "{done:?}");
    assert!(!done.err.contains("denied"), "nothing is asked before it is trusted: {done:?}");
    let trusted = bench.yoi(&["--yes", "-c", "trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted:?}");
    let done = bench.go(&[]);
    assert!(done.out.contains("<hello"), "{done:?}");
    fs::write(&file, text.replace("server.py", "evil.py")).expect("a writable workspace");
    let done = bench.go(&[]);
    assert!(done.out.contains("Tool 'mcp__demo__echo' not found"), "{done:?}");
}

#[test]
fn a_tool_that_is_not_as_it_was_waits_for_a_person_and_the_others_go_on() {
    let bench = bench("changing", "");
    bench.plan(&[("mcp__demo__echo", r#"{"text": "hello"}"#), ("mcp__demo__count", "{}")]);
    let done = bench.go(&[]);
    assert!(done.code == Some(0) && done.out.contains("<hello"), "the first list: {done:?}");
    fs::write(bench.ws().join("changed"), "").expect("a writable workspace");
    let done = bench.go(&[]);
    assert_eq!(done.code, Some(0), "the model was refused nothing: {done:?}");
    let said = "MCP server `demo`: new or changed tools are left out: echo, new (denied: no person";
    assert!(done.err.contains(said), "{done:?}");
    assert!(done.err.contains(r#"tool = "McpTools", pattern = "demo""#), "{done:?}");
    let mut log = bench.log("ws-2").into_iter();
    let asked = log.find(|entry| entry["payload"]["tool"] == "McpTools").expect("a request");
    let details = asked["payload"]["details"].as_str().expect("details").to_owned();
    let before = "description before:\n    Says a text again.\n  description now:\n    Says a text again, and sends it";
    assert!(details.contains(before) && details.contains("new (new):"), "{details}");
    assert!(done.out.contains("Tool 'mcp__demo__echo' not found"), "{done:?}");
    assert!(done.out.contains("<call 1"), "what did not change is offered: {done:?}");
    let done = bench.go(&["--allow", "McpTools:demo"]);
    assert!(done.code == Some(0) && done.out.contains("<hello"), "{done:?}");
    let done = bench.go(&[]);
    assert!(done.err.contains(said), "that was for one Pod, and this is another: {done:?}");
}

#[test]
fn a_list_that_changes_in_a_run_counts_from_the_next_turn_on() {
    let bench = bench("changing", "write = true");
    let wait = r#"{"command": "touch changed; until [ -e listed-again ]; do sleep 0.05; done"}"#;
    let echo = ("mcp__demo__echo", r#"{"text": "hello"}"#);
    bench.plan(&[echo, ("Bash", wait), ("mcp__demo__new", "{}")]);
    let done = bench.go(&["--allow", "McpTools:demo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("<there is no new"), "the server was called: {done:?}");
}

#[test]
fn a_tool_that_a_call_adds_is_offered_with_the_next_request() {
    let bench = bench("changing", "write = true");
    bench.plan(&[("mcp__demo__grow", "{}"), ("mcp__demo__new", "{}")]);
    let done = bench.go(&["--allow", "McpTools:demo"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("<there is no new"), "the server was called: {done:?}");
}

#[test]
fn an_interrupted_call_is_cancelled_at_the_server_and_its_progress_is_shown() {
    let bench = bench("good", "write = true");
    bench.plan(&[("mcp__demo__slow", "{}")]);
    let model = bench.model();
    let args = ["--no-ui", "--json", "--allow", "McpServer:demo", "--model", &model, "-p", "go"];
    let mut child = bench.command(&args).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let progress =
        lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("of 1000] step")));
    assert!(progress.is_some(), "its progress is shown");
    signal(child.id(), "INT");
    let cancelled = bench.ws().join("was-cancelled");
    eventually("the server knows that the call is cancelled", move || cancelled.exists());
    lines.for_each(drop);
    assert_eq!(bench.finish(child).code, Some(130));
}

#[test]
fn servers_are_listed_with_their_state_their_tools_and_their_last_error() {
    let bench = bench("crash-start", "");
    let done = bench.yoi(&["-c", "mcp"]);
    assert!(done.out.contains("demo: not started: no live Pod uses it"), "{done:?}");
    let file = bench.ws().join(".mcp.json");
    let text = r#"{"mcpServers": {"theirs": {"command": "x"}}}"#;
    fs::write(file, text).expect("a writable workspace");
    let _host = bench.serve();
    let allow = "[[permissions.rule]]\ntool = \"McpServer\"\naction = \"allow\"\n";
    let good = bench.demo("good", "good", "");
    let bad = bench.demo("demo", "crash-start", "");
    bench.settings(&format!("{good}{bad}{allow}"));
    bench.play("[[when]]\nany = true\ntext = \"heard\"\n");
    let done = bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a hi"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let done = bench.yoi(&["-c", "mcp"]);
    for part in [
        "good: ready, 12 tools · used by a",
        "mcp__good__echo",
        "demo: does not work now · used by a",
        "exit code 1; it said: no token",
        "its MCP servers (theirs) are ignored until you trust this file",
    ] {
        assert!(done.out.contains(part), "{part}: {done:?}");
    }
}

#[test]
fn a_server_that_the_settings_do_not_name_any_more_withdraws_its_request() {
    let bench = bench("good", "");
    bench.plan(&[]);
    let _host = bench.serve();
    let args = ["--no-ui", "--ask", "wait", "--model", &bench.model(), "-p", "go"];
    let child = bench.command(&args).spawn().expect("the program starts");
    eventually("the request waits", || bench.yoi(&["inbox"]).out.contains("McpServer"));
    bench.settings("");
    let done = bench.finish(child);
    assert_eq!(done.code, Some(0), "the run goes on without it: {done:?}");
    let said = "MCP server `demo`: not started: ";
    assert!(
        done.err.contains(said) && done.err.contains("does not name `demo` any more"),
        "{done:?}"
    );
    let inbox = bench.yoi(&["inbox"]);
    assert!(!inbox.out.contains("McpServer"), "{inbox:?}");
}

#[test]
fn servers_are_listed_with_what_a_pod_does_not_get_and_why() {
    let bench = bench("good", "");
    let rule = |tool: &str, action: &str| {
        format!("[[permissions.rule]]\ntool = \"{tool}\"\naction = \"{action}\"\n")
    };
    let rules = [rule("McpServer", "allow"), rule("McpTools", "deny")].concat();
    let needy = "[mcp.needy]\ncommand = \"x\"\nenv = { TOKEN = \"${NO_SUCH_TOKEN}\" }\n";
    let changing = bench.demo("demo", "changing", "");
    bench.settings(&[needy, &changing, &rules].concat());
    bench.play("[[when]]\nany = true\ntext = \"heard\"\n");
    let _host = bench.serve();
    let model = bench.model();
    let verbs = |verbs: &[&str]| {
        let args = verbs.iter().flat_map(|verb| ["-c", verb]);
        bench.yoi(&["--model", &model].into_iter().chain(args).collect::<Vec<_>>()).out
    };
    verbs(&["new a", "send a hi"]);
    let listed = verbs(&["mcp"]);
    let part = "a: not started: its variable TOKEN takes ${NO_SUCH_TOKEN}, which is not set where yoi was started";
    assert!(listed.contains("needy: not started\n") && listed.contains(part), "{listed}");
    fs::write(bench.ws().join("changed"), "").expect("a writable workspace");
    let left_out = "a: new or changed tools are left out: echo, new (";
    eventually("the changed tools are left out", || {
        verbs(&["send a hi"]);
        verbs(&["mcp"]).contains(left_out)
    });
}

/// A server over HTTP of this machine, ended with the value.
struct Web {
    child: Child,
    port: u16,
}

impl Web {
    fn start(mode: &str) -> Self {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/web.py");
        let mut command = Command::new("python3");
        let child = command.args([file, mode]).stdout(Stdio::piped()).spawn();
        let mut child = child.expect("python3 starts");
        let output = child.stdout.take().expect("its output");
        let line = BufReader::new(output).lines().next().expect("a line").expect("its text");
        Self { child, port: line.parse().expect("its port") }
    }

    /// A bench whose settings name this server.
    fn bench(&self) -> Bench {
        let bench = Bench::new();
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        let headers = "headers = { Authorization = \"Bearer ${HOME}\" }\ntimeout_s = 2";
        bench.settings(&format!("[mcp.demo]\nurl = \"{url}\"\n{headers}\n"));
        bench
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_server_over_http_is_used_with_its_headers_and_each_call_waits_for_an_approval_or_a_rule() {
    let web = Web::start("good");
    let bench = web.bench();
    let echo = ("mcp__demo__echo", r#"{"text": "hello"}"#);
    bench.plan(&[echo, ("mcp__demo__header", "{}")]);
    let done = bench.go(&["--allow", "mcp__demo__*:*"]);
    let header = format!("<Bearer {}", bench.path("home").display());
    assert!(done.code == Some(0) && done.out.contains("<hello"), "{done:?}");
    assert!(done.out.contains(&header), "{done:?}");
    let done = bench.go(&[]);
    assert_eq!(done.code, Some(3), "{done:?}");
    let exact = r#"mcp__demo__echo():{"text":"hello"}"#;
    assert!(done.err.contains(&format!("--allow '{exact}'")), "{done:?}");
    let header = ["--allow", "mcp__demo__header:*"];
    for (echo, code) in [
        (exact, 0),
        ("mcp__demo__echo(text):hel*", 0),
        ("mcp__demo__echo:hel*", 0),
        (r#"mcp__demo__echo():{"text":"hell"}"#, 3),
        ("mcp__demo__echo(name):*", 3),
    ] {
        let done = bench.go(&[&["--allow", echo][..], &header].concat());
        assert_eq!(done.code, Some(code), "{echo}: {done:?}");
        assert_eq!(done.out.contains("<hello"), code == 0, "{echo}: {done:?}");
    }
}

#[test]
fn a_server_that_wants_oauth_or_leads_elsewhere_is_refused_with_what_to_do() {
    let said = |mode: &str| {
        let web = Web::start(mode);
        let bench = web.bench();
        bench.call("echo", "{}").err
    };
    let oauth = said("oauth");
    assert!(oauth.contains("MCP server `demo`: it asks for OAuth"), "{oauth}");
    assert!(oauth.contains("write a token of that service into `headers`"), "{oauth}");
    let moved = said("moved");
    assert!(moved.contains("MCP server `demo`: ") && moved.contains("307"), "{moved}");
    let mut gone = Web::start("good");
    let bench = gone.bench();
    gone.child.kill().expect("it runs");
    gone.child.wait().expect("it ends");
    let gone = bench.call("echo", "{}").err;
    assert!(gone.contains("it was not reached") && gone.contains("refused"), "{gone}");
}

#[test]
fn a_server_over_http_that_hangs_or_floods_fails_its_own_calls() {
    for (mode, said) in [
        ("hangs", "did not answer within 2 s"),
        ("floods", "it floods"),
        ("huge", "its answer is longer than 8 MiB"),
        ("huge-body", "its answer is longer than 2 MiB"),
    ] {
        let web = Web::start(mode);
        let bench = web.bench();
        let file = bench.ws().join("after.txt").display().to_string();
        let write = format!(r#"{{"file_path": "{file}", "content": "it went on"}}"#);
        bench.plan(&[("mcp__demo__echo", "{}"), ("Write", &write)]);
        let done = bench.go(&["--allow", "mcp__demo__*:*"]);
        assert!(done.code == Some(0) && done.out.contains(said), "{mode}: {done:?}");
        assert!(done.out.contains("MCP server `demo`"), "{mode}: {done:?}");
        assert!(std::path::Path::new(&file).exists(), "{mode}: {done:?}");
    }
}

#[test]
fn pods_with_one_scope_share_a_process_which_ends_with_the_last_and_a_narrowed_scope_ends_a_writer()
{
    let bench = bench("good", "");
    let server = |name: &str, more: &str| bench.demo(name, "good", more);
    let rule = "[[permissions.rule]]\ntool = \"McpServer\"\naction = \"allow\"\n";
    let settings = [server("reader", ""), server("writer", "write = true"), rule.to_owned()];
    bench.settings(&settings.concat());
    fs::create_dir(bench.ws().join("part")).expect("a writable workspace");
    let _host = bench.serve();
    let model = bench.model();
    let verbs = |verbs: &[&str]| {
        let args = verbs.iter().flat_map(|verb| ["-c", verb]);
        let done = bench.yoi(&["--model", &model].into_iter().chain(args).collect::<Vec<_>>());
        assert_eq!(done.code, Some(0), "{done:?}");
    };
    let counted = |pod: &str, server: &str| {
        bench.plan(&[(&format!("mcp__{server}__count"), "{}")]);
        verbs(&[&format!("send {pod} go")]);
        let log = bench.yoi(&["log", pod]).out;
        let last = log.lines().rfind(|line| line.trim().starts_with("call "));
        last.map(|line| line.trim().to_owned()).unwrap_or(log)
    };
    verbs(&["new a", "new c"]);
    assert_eq!(counted("a", "reader"), "call 1", "a starts it");
    assert_eq!(counted("c", "reader"), "call 2", "c uses the same process");
    assert_eq!(counted("a", "writer"), "call 1", "a starts it");
    assert_eq!(counted("a", "writer"), "call 2", "it lives on between the runs");
    verbs(&["new b", &format!("lend a b {}", bench.ws().join("part").display())]);
    assert_eq!(counted("a", "writer"), "call 1", "it was ended with the old scope");
    verbs(&["stop a", "stop b", "stop c"]);
    eventually("no server runs without a user", || {
        let processes = fs::read_dir("/proc").expect("a list of processes").flatten();
        let cwds = processes.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
        // The host itself was started there.
        cwds.filter(|cwd| *cwd == bench.ws()).count() == 1
    });
}

#[test]
fn the_question_of_a_server_is_declined_at_once_without_a_person() {
    let bench = bench("questions", "");
    let done = bench.call("ask", "{}");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.out.contains(r#"<{"action": "decline"}"#), "{done:?}");
    let said =
        r#"not answered: question of the MCP server "demo": Who are you?: no person is here"#;
    assert!(done.err.contains(said), "{done:?}");
}

#[test]
fn the_question_of_a_server_is_answered_from_the_shell_with_what_its_form_wants() {
    let bench = bench("questions", "timeout_s = 1");
    bench.plan(&[("mcp__demo__ask", "{}")]);
    let _host = bench.serve();
    let model = bench.model();
    let args =
        ["--no-ui", "--ask", "wait", "--allow", "McpServer:demo", "--model", &model, "-p", "go"];
    let child = bench.command(&args).stdin(Stdio::null()).spawn().expect("the program starts");
    eventually("the question waits", || bench.yoi(&["inbox"]).out.contains("Who are you?"));
    let listed = bench.yoi(&["inbox"]).out;
    assert!(listed.contains(r#"] the MCP server "demo", for ws asks: Who are you?"#), "{listed}");
    assert!(listed.contains("| name (Name): a text of at least 1 characters"), "{listed}");
    assert!(listed.contains("| age: a whole number of at least 18, may be left out"), "{listed}");
    let since = Instant::now();
    eventually("the time of a call is over", || since.elapsed() > Duration::from_secs(2));
    let wrong = bench.yoi(&["answer", "ws", "name=Ann Lee age=17"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    let said = r#""age": "17" is not a whole number of at least 18"#;
    assert!(wrong.err.contains(said), "{wrong:?}");
    let answered = bench.yoi(&["answer", "ws", "name=Ann Lee age=30"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    let done = bench.finish(child);
    let reply = r#"<{"action": "accept", "content": {"age": 30, "name": "Ann Lee"}}"#;
    assert!(done.code == Some(0) && done.out.contains(reply), "{done:?}");
}

/// A Pod `ra` of a host, with a call whose server asks the person. The question waits.
fn waiting_question(bench: &Bench) -> Host {
    bench.plan(&[("mcp__demo__ask", "{}")]);
    let host = bench.serve();
    let rule = "[[permissions.rule]]\ntool = \"McpServer\"\naction = \"allow\"\n";
    bench.settings(&format!("{}{rule}", bench.demo("demo", "questions", "")));
    let made = bench.yoi(&["--model", &bench.model(), "-c", "new ra"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    bench.yoi(&["send", "ra", "go"]);
    eventually("the question waits", || waits(bench));
    host
}

fn waits(bench: &Bench) -> bool {
    bench.yoi(&["inbox"]).out.contains("Who are you?")
}

#[test]
fn an_answer_to_a_server_that_was_killed_with_the_host_reaches_the_model() {
    let bench = bench("questions", "");
    drop(waiting_question(&bench));
    let _host = bench.serve();
    eventually("the question is kept", || waits(&bench));
    let answered = bench.yoi(&["answer", "ra", "name=Ann"]);
    assert_eq!(answered.code, Some(0), "{answered:?}");
    eventually("the model reads it", || {
        let log = bench.yoi(&["log", "ra"]).out;
        log.contains("the host ended while the MCP server waited") && log.contains("answer: Ann")
    });
}

#[test]
fn an_interrupted_run_withdraws_the_question_of_a_server() {
    let bench = bench("questions", "");
    let _host = waiting_question(&bench);
    let paused = bench.yoi(&["pause", "ra"]);
    assert_eq!(paused.code, Some(0), "{paused:?}");
    eventually("nothing waits", || !waits(&bench));
    let late = bench.yoi(&["answer", "ra", "name=Ann"]);
    assert_eq!(late.code, Some(2), "{late:?}");
}

#[test]
fn an_ended_stream_is_requested_again_after_the_time_that_the_server_says() {
    let web = Web::start("retry");
    let bench = web.bench();
    bench.plan(&[("mcp__demo__echo", r#"{"text": "hello"}"#)]);
    let done = bench.go(&["--allow", "mcp__demo__*:*"]);
    let paused =
        done.out.split("asked again after ").nth(1).and_then(|rest| rest.split(' ').next());
    let paused: u64 = paused.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("{done:?}"));
    assert!((250..1000).contains(&paused), "the server says 300 ms: {done:?}");
}
