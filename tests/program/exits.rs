//! Every exit code of the program without a screen, brought about.

use crate::bench::{Bench, Done, SCRIPT, eventually, signal};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::process::Stdio;

#[test]
fn finished_is_0() {
    assert_eq!(Bench::new().say("hi").code, Some(0));
}

#[test]
fn failed_is_1_and_says_why_last() {
    let done = Bench::new().say("fail now");
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.last_words().contains("the model is ill"), "{done:?}");
}

#[test]
fn a_wrong_command_line_is_2() {
    let bench = Bench::new();
    for args in [&["--flying"] as &[&str], &["alice"], &["-p", ""], &["-c", "fly"], &["--json"]] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(!done.err.is_empty());
    }
}

/// Without a Pod both are about new Pods, and a command of the shell chooses nothing that would be gone with it.
#[test]
fn the_shell_names_the_values_of_effort_and_chooses_none_for_new_pods() {
    let bench = Bench::new();
    let wrong = bench.yoi(&["effort", "banana"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    for value in ["low", "medium", "high", "max", "off", "default"] {
        assert!(wrong.err.contains(value), "{value}: {wrong:?}");
    }
    bench.settings("effort = \"low\"\n");
    let asked = bench.yoi(&["effort"]);
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "new Pods: effort low\n"), "{asked:?}");
    for args in [&["effort", "high"], &["model", "rehearsal:@tour"]] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.err.contains("add --pod <name>") && done.out.is_empty(), "{args:?}: {done:?}");
    }
}

#[test]
fn a_model_or_theme_that_is_not_there_is_2_and_the_sentence_names_it() {
    let bench = Bench::new();
    for (args, named) in [
        (&["--model", "nope/x", "-p", "hi"] as &[&str], "there is no provider nope"),
        (&["--model", "nonsense", "-c", "new a"], "not of the form provider/model"),
        (&["--model", "rehearsal:/not/there.toml", "-p", "hi"], "/not/there.toml"),
        (&["--theme", "pink", "-p", "hi"], "pink"),
    ] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(2), "{args:?}: {done:?}");
        assert!(done.err.contains(named) && done.out.is_empty(), "{args:?}: {done:?}");
    }
}

#[test]
fn a_model_of_new_pods_that_is_not_there_is_refused_and_not_reported_as_used() {
    let bench = Bench::new();
    for args in [&["-c", "model nope/x"] as &[&str], &["model", "nope/x"]] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert!(done.err.contains("there is no provider nope"), "{args:?}: {done:?}");
        assert!(!done.err.contains("new Pods use"), "{args:?}: {done:?}");
    }
    let listed = {
        bench.without_local_models();
        bench.yoi(&["-c", "model"])
    };
    assert!(listed.out.contains("yoi connect anthropic"), "{listed:?}");
}

#[test]
fn an_undecided_approval_request_exits_with_3() {
    let bench = Bench::new();
    // The key that the model needs is set nowhere: the pod waits for a person.
    let done = bench.yoi(&["--no-ui", "--model", "anthropic/", "-p", "hi"]);
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.last_words().contains("ANTHROPIC_API_KEY"), "{done:?}");
}

#[test]
fn stopped_short_is_4() {
    let bench = Bench::new();
    let script = format!("{SCRIPT}\n");
    let endless = script.replace(
        "[[when]]\nsays = \"run *\"",
        "[[when]]\nsays = \"forever\"\n[[when.step]]\ncall = [{ name = \"Bash\", args = { command = \"true\" } }]\n[[when.step]]\ncall = [{ name = \"Bash\", args = { command = \"true\" } }]\n[[when.step]]\ntext = \"done\"\n\n[[when]]\nsays = \"run *\"",
    );
    bench.play(&endless);
    let config = bench.path("home/config");
    std::fs::create_dir_all(&config).expect("a writable home");
    std::fs::write(config.join("config.toml"), "[limits]\nmax_turns = 1\n").expect("a new file");
    let done = bench.say("forever");
    assert_eq!(done.code, Some(4), "{done:?}");
    assert!(done.last_words().contains("limit"), "{done:?}");
}

#[test]
fn no_such_pod_is_5() {
    let bench = Bench::new();
    for args in [
        &["--pod", "nobody", "-c", "stop"] as &[&str],
        &["log", "nobody"],
        &["stop", "nobody"],
        &["rm", "nobody", "--yes"],
        &["rm", "nobody"],
    ] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(5), "{args:?}: {done:?}");
        assert!(done.last_words().contains("there is no pod `nobody`"), "{done:?}");
    }
}

#[test]
fn no_such_pod_is_5_wherever_a_verb_names_it() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    let verbs =
        ["stop nobody", "peer nobody", "unpeer nobody", "lend a nobody x", "explain nobody"];
    for verb in verbs {
        let done = bench.yoi(&["--pod", "a", "-c", verb]);
        assert_eq!(done.code, Some(5), "{verb}: {done:?}");
        assert!(done.last_words().contains("there is no pod `nobody`"), "{verb}: {done:?}");
    }
    let done = bench.yoi(&["--pod", "a", "-c", "peer a"]);
    assert_eq!(done.code, Some(1), "{done:?}");
}

#[test]
fn a_host_of_another_version_is_5_and_both_are_named() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.data()).expect("a writable home");
    let socket = bench.path("sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut lock = File::create(bench.data().join("host.lock")).expect("a new file");
    lock.lock().expect("a file that nobody else locks");
    let holder = serde_json::json!({
        "pid": std::process::id(), "version": "99.0.0", "socket": socket
    });
    writeln!(lock, "{holder}").expect("a writable file");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let hello = "{\"hello\":{\"protocol\":99,\"version\":\"99.0.0\"}}\n";
        stream.write_all(hello.as_bytes()).expect("a client that reads");
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line
    });
    let done = bench.yoi(&["ls"]);
    assert_eq!(done.code, Some(5), "{done:?}");
    let words = done.last_words();
    assert!(words.contains("protocol 99") && words.contains("99.0.0"), "{words}");
    assert!(words.contains("this program speaks 2") && words.contains("newer yoi"), "{words}");
    let hello = answering.join().expect("the answering thread");
    assert!(hello.contains("\"protocol\":2"), "{hello}");
    // It is this test's own lock: nobody is to be ended.
    drop(lock);
    std::fs::remove_file(bench.data().join("host.lock")).expect("the file made above");
}

#[test]
fn no_model_is_69_and_says_how_to_connect_one() {
    let bench = Bench::new();
    bench.without_local_models();
    let done = bench.yoi(&["--no-ui", "-p", "hi"]);
    assert_eq!(done.code, Some(69), "{done:?}");
    assert_eq!(done.out, "", "an answer is a model's");
    for way in ["--model", "ANTHROPIC_API_KEY", "yoi connect anthropic", "home/config/config.toml"]
    {
        assert!(done.err.contains(way), "{way}: {done:?}");
    }
    for of_screen in [":model", ":tour", "need not be repeated"] {
        assert!(!done.err.contains(of_screen), "{of_screen}: {done:?}");
    }
    assert!(done.err.contains("then give the message again"), "{done:?}");
}

#[test]
fn a_provider_that_refuses_the_key_is_a_failure_and_no_refusal_of_its_filter() {
    let bench = Bench::new();
    for status in [401, 403] {
        let step = format!("text = 'never'\nfault = {{ status = {status}, times = 9 }}\n");
        bench.play(&format!("[[when]]\nany = true\n[[when.step]]\n{step}"));
        let done = bench.yoi(&["--model", &bench.model(), "-p", "hi"]);
        assert_eq!(done.code, Some(1), "{done:?}");
        assert!(!done.err.contains("given up"), "another request would not help: {done:?}");
    }
}

#[test]
fn a_mistake_in_the_settings_is_said_once_by_a_program_without_a_screen() {
    let bench = Bench::new();
    bench.settings("modle = 'x'\n");
    let done = bench.yoi(&["--model", &bench.model(), "-p", "hello"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.err.matches("`modle`").count(), 1, "{done:?}");
    assert!(done.err.starts_with("config.toml:1:1: "), "{done:?}");
    bench.settings("model = 'x'\n[broken\n");
    let done = bench.yoi(&["--model", &bench.model(), "-p", "hello"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert_eq!(done.err.matches("unclosed table").count(), 1, "{done:?}");
    assert!(!done.err.contains("rehearsal:"), "no Pod was made for it: {done:?}");
}

#[test]
fn a_message_right_after_a_correction_of_the_settings_is_of_the_corrected_ones() {
    let bench = Bench::new();
    let host = bench.serve();
    let said = |what: &str| bench.yoi(&["--model", &bench.model(), "-p", what]);
    let kept = "effort = 'high'\n";
    bench.settings(&format!("modle = 'x'\n{kept}"));
    let done = said("hello");
    assert!(done.err.contains("`modle`") && !done.err.contains("effort high"), "{done:?}");
    bench.settings(kept);
    let done = said("hello");
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!done.err.contains("modle") && done.err.contains("effort high"), "{done:?}");
    drop(host);
}

#[test]
fn no_model_because_of_a_mistake_in_the_settings_names_the_mistake() {
    let bench = Bench::new();
    bench.without_local_models();
    bench.settings("model = \"a/b\"\n[broken\n");
    let done = bench.yoi(&["--no-ui", "-p", "hi"]);
    assert_eq!(done.code, Some(69), "{done:?}");
    let words = done.last_words();
    assert!(
        words.contains("nothing was sent: correct ") && words.contains("config.toml"),
        "{words}"
    );
    assert!(done.err.contains("config.toml:2:8: unclosed table"), "{done:?}");
    assert!(!done.err.contains("ANTHROPIC_API_KEY"), "a model would not help: {done:?}");
}

#[test]
fn a_dead_provider_ends_the_run_with_a_sentence_that_names_it() {
    let bench = Bench::new();
    bench.settings("[retry]\nminutes = 0\n");
    // A port that was free a moment ago: no process listens there.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = free.local_addr().expect("its address");
    drop(free);
    let mut command = bench.command(&["--no-ui", "--model", "anthropic/claude-x", "-p", "hi"]);
    command
        .env("ANTHROPIC_API_KEY", "sk-test")
        .env("ANTHROPIC_BASE_URL", format!("http://{address}"));
    let done = bench.finish(command.spawn().expect("the program starts"));
    assert_eq!(done.code, Some(1), "{done:?}");
    let words = done.last_words();
    assert!(words.contains("anthropic") && words.contains("127.0.0.1"), "{words}");
    assert!(words.to_lowercase().contains("refused") || words.contains("connect"), "{words}");
    assert!(words.contains("--model takes another model") && !words.contains(":model"), "{words}");
}

/// The command in a directory that is deleted before the program starts.
fn in_a_deleted_directory(bench: &Bench, args: &[&str]) -> Done {
    let own = bench.command(&[]);
    let program = own.get_program();
    let mut shell = std::process::Command::new("sh");
    let script = r#"mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@""#;
    shell.arg("-c").arg(script).arg(program).args(args).current_dir(bench.ws()).env_clear();
    shell.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    bench.finish(shell.spawn().expect("a shell"))
}

#[test]
fn in_a_deleted_directory_only_what_needs_one_is_refused() {
    let bench = Bench::new();
    assert_eq!(bench.yoi(&["--model", &bench.model(), "-c", "new a"]).code, Some(0));
    let commands: [&[&str]; 6] =
        [&["ls"], &["restore", "a"], &["host"], &["log", "a"], &["stop", "a"], &["host", "stop"]];
    for command in commands {
        let done = in_a_deleted_directory(&bench, command);
        assert_eq!(done.code, Some(0), "{command:?}: {done:?}");
    }
    let done = in_a_deleted_directory(&bench, &["--model", &bench.model(), "-p", "hello"]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.err.contains("the working directory was deleted"), "{done:?}");
    let done = in_a_deleted_directory(&bench, &["--model", &bench.model(), "-c", "new b"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("gone (deleted)"), "{done:?}");
}

#[test]
fn a_closed_standard_error_is_no_fault() {
    let bench = Bench::new();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = bench.command(&["host", "stop"]);
    let done = bench.finish(command.stderr(writer).spawn().expect("the program starts"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let log = std::fs::read_to_string(bench.path("home/state/yoi.log")).unwrap_or_default();
    assert!(!log.contains("panic"), "{log}");
}

#[test]
fn a_reply_that_its_limit_cuts_is_continued_three_times_and_then_the_program_exits_4() {
    let bench = Bench::new();
    bench.play("[[when]]\nany = true\n[[when.step]]\ntext = 'a part'\nstop = 'max_tokens'\n");
    let done = bench.say("write");
    assert_eq!(done.code, Some(4), "{done:?}");
    assert!(done.err.contains("cut by its limit"), "{done:?}");
}

#[test]
fn a_declined_reply_exits_3_with_the_words_of_the_provider() {
    let bench = Bench::new();
    bench.play("[[when]]\nany = true\n[[when.step]]\nfault = { refuse = 'not that' }\n");
    let done = bench.say("write");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.err.contains("declined to answer: not that"), "{done:?}");
}

#[test]
fn a_call_that_the_limit_cut_is_not_run() {
    let bench = Bench::new();
    bench.play(
        r#"
[[when]]
any = true
[[when.step]]
stop = "max_tokens"
call = [
    { name = "Glob", args = { pattern = "*.a" } },
    { name = "Write", args = { file_path = "{cwd}/a", content = "one" }, cut = 17 },
]
[[when.step]]
text = "{result}"
stop = "max_tokens"
call = [{ name = "TaskList", args = {}, cut = 0 }]
[[when.step]]
text = "{result}"
stop = "max_tokens"
call = [{ name = "TaskList", args = {} }]
[[when.step]]
text = "{result}"
"#,
    );
    let done = bench.say("write");
    assert_eq!(done.code, Some(0), "{done:?}");
    let said = "the limit of output tokens cut the arguments of this call after 17 bytes";
    assert!(done.out.contains(said), "{done:?}");
    assert!(done.out.contains("cut this call before it was complete"), "{done:?}");
    let last = done.out.rsplit("before it was complete").next().unwrap_or_default();
    assert!(!last.contains("not run"), "a complete call without arguments runs: {done:?}");
    assert!(!bench.ws().join("a").exists());
}

#[test]
fn replies_of_cut_calls_alone_end_as_cut_replies_do() {
    let bench = Bench::new();
    let call = "call = [{ name = 'TaskList', args = {}, cut = 0 }]";
    let step = format!("[[when.step]]\nstop = 'max_tokens'\n{call}\n");
    bench.play(&format!("[[when]]\nany = true\n{}", step.repeat(9)));
    let done = bench.say("write");
    assert_eq!(done.code, Some(4), "{done:?}");
    assert!(done.last_words().contains("limit of output tokens"), "{done:?}");
}

#[test]
fn no_call_of_a_declined_reply_is_run_and_the_program_exits_3() {
    let bench = Bench::new();
    let call = "call = [{ name = 'Write', args = { file_path = '{cwd}/a', content = 'b' } }]";
    let fault = "fault = { refuse = 'not that' }";
    bench.play(&format!("[[when]]\nany = true\n[[when.step]]\n{call}\n{fault}\n"));
    let done = bench.say("write");
    assert_eq!(done.code, Some(3), "{done:?}");
    assert!(done.err.contains("declined to answer: not that"), "{done:?}");
    assert!(!bench.ws().join("a").exists());
}

#[test]
fn a_provider_that_pauses_for_ever_and_a_window_that_stays_full_end_the_run_with_their_reason() {
    for (stop, code, words) in [
        ("pause", 4, "paused its reply"),
        ("context_exceeded", 1, "context window is full"),
        ("odd", 0, "a reason that yoi does not know: odd"),
    ] {
        let bench = Bench::new();
        bench.play(&format!("[[when]]\nany = true\n[[when.step]]\ntext = 'a'\nstop = '{stop}'\n"));
        let done = bench.say("write");
        assert_eq!(done.code, Some(code), "{done:?}");
        assert!(done.err.contains(words), "{done:?}");
    }
}

#[test]
fn a_run_that_failed_before_a_child_event_started_one_that_finished_exits_0() {
    let bench = Bench::new();
    std::fs::create_dir(bench.ws().join("a")).expect("a writable workspace");
    bench.play(
        r#"
[[when]]
says = "go"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "kid", task = "dig", scope = [{ target = "{cwd}/a", permission = "write" }] } }]
[[when.step]]
fault = { status = 400 }

[[when]]
says = "dig"
[[when.step]]
text = "dug"
wait_ms = 500

[[when]]
note = "*[Notification]*"
text = "The kid is done."
"#,
    );
    let done = bench.say("go");
    assert!(done.out.contains("The kid is done."), "{done:?}");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn a_change_that_another_pod_keeps_a_run_from_making_exits_3_and_names_the_pod() {
    let bench = Bench::new();
    let _host = bench.serve();
    let model = bench.model();
    let made = bench.yoi(&["--model", &model, "-c", "new a"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    // The Pod that rests keeps nobody from writing.
    let wrote = bench.say("greet one");
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    assert!(bench.ws().join("hello.txt").exists());
    let busy = bench.command(&["--pod", "a", "-p", "slow"]).spawn().expect("the program starts");
    let runs = || bench.pod("a").is_some_and(|pod| pod["state"] == "running");
    eventually("a writes in its turn", runs);
    for prompt in ["greet two", "run echo two > two.txt"] {
        let refused = bench.say(prompt);
        assert_eq!(refused.code, Some(3), "{refused:?}");
        let said = refused.last_words();
        assert!(said.contains("a change was refused, because a writes there"), "{refused:?}");
        assert!(said.contains("--pod a"), "{refused:?}");
    }
    let read = bench.say("run cat hello.txt");
    assert_eq!(read.code, Some(0), "what only reads is no refusal: {read:?}");
    assert!(read.out.contains("Hello, one!"), "{read:?}");
    for other in ["echo Read-only file system", "touch /usr/x; echo EROFS", "touch /usr/x"] {
        let read = bench.say(&format!("run {other}"));
        assert_eq!(read.code, Some(0), "nobody writes there: {read:?}");
    }
    assert!(!bench.ws().join("two.txt").exists());
    signal(busy.id(), "TERM");
    bench.finish(busy);
    let wrote = bench.say("run echo three > three.txt");
    assert_eq!(wrote.code, Some(0), "{wrote:?}");
    assert!(bench.ws().join("three.txt").exists());
}

#[test]
fn a_run_that_waits_for_another_writer_names_it_and_the_way_out_in_both_forms() {
    let bench = Bench::new();
    bench.settings("scope.when_busy = \"wait\"\n");
    let _host = bench.serve();
    let model = bench.model();
    for pod in ["a", "plain", "json"] {
        assert_eq!(bench.yoi(&["new", pod, "--model", &model]).code, Some(0));
    }
    let busy = bench.command(&["--pod", "a", "-p", "slow"]).spawn().expect("the program starts");
    eventually("a runs", || bench.pod("a").is_some_and(|pod| pod["state"] == "running"));
    let start = |args: &[&str]| bench.command(args).spawn().expect("the program starts");
    let plain = start(&["--pod", "plain", "-p", "hi"]);
    let json = start(&["--pod", "json", "--json", "-p", "hi"]);
    let waits = "waits until a has ended its run";
    for pod in ["plain", "json"] {
        eventually(pod, || bench.pod(pod).is_some_and(|pod| pod["activity"] == waits));
    }
    signal(busy.id(), "TERM");
    bench.finish(busy);
    let (plain, json) = (bench.finish(plain), bench.finish(json));
    assert_eq!((plain.code, json.code), (Some(0), Some(0)), "{plain:?} {json:?}");
    for (said, way) in [(&plain.err, "`yoi pause a` frees it"), (&json.out, ":pause a frees it")] {
        assert!(said.contains(waits) && said.contains(way), "{said}");
    }
}

#[test]
fn a_compaction_that_fails_exits_1_and_says_why_in_the_shell_and_as_a_line() {
    let bench = Bench::new();
    let _host = bench.serve();
    bench.play("[[when]]\nsays = 'hi'\ntext = 'hello'\n\n[[when]]\nsays = '*'\n[[when.step]]\ntext = 'never'\nfault = { error = 'the model is ill', retryable = false }\n");
    assert_eq!(bench.yoi(&["new", "lead", "--model", &bench.model()]).code, Some(0));
    assert_eq!(bench.yoi(&["send", "lead", "hi"]).code, Some(0));
    eventually("the answer", || {
        serde_json::Value::from(bench.log("lead")).to_string().contains("hello")
            && bench.pod("lead").is_some_and(|pod| pod["state"] == "idle")
    });
    for args in [&["compact", "lead"] as &[&str], &["--pod", "lead", "-c", "compact"]] {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert!(done.last_words().contains("the model is ill"), "{args:?}: {done:?}");
        assert_eq!(done.err.matches("the model is ill").count(), 1, "{args:?}: {done:?}");
    }
    let listed = bench.yoi(&["ls"]);
    assert!(listed.out.contains("`yoi compact lead` tries again"), "{listed:?}");
    assert!(!listed.out.contains("resume"), "{listed:?}");
}
