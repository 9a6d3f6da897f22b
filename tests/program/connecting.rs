//! The ways out of "no model", each played on the screen as its texts say, with a provider of this test.

use crate::bench::{Bench, files, server};
use crate::pty::Terminal;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What a shell gets for a key in its line does not repeat the key, and names the history that has it.
#[test]
fn a_key_in_the_line_of_a_shell_is_not_repeated_and_the_history_is_named() {
    let bench = Bench::new();
    let key = "sk-ant-api03-0123456789";
    for words in [
        &["connect", "anthropic", key][..],
        &["connect", key],
        &["auth", "anthropic", key],
        &["auth", key],
    ] {
        let done = bench.yoi(words);
        let said = format!("{}{}", done.out, done.err);
        assert_ne!(done.code, Some(0), "{words:?}: {done:?}");
        assert!(said.contains("history of your shell"), "{words:?}: {said}");
        let lower = said.to_lowercase().replace('_', "-");
        assert!(!lower.contains("0123456789"), "{words:?}: {said}");
    }
}

const ANSWER: &str = "mangrove is the answer";

/// A provider that speaks all four wires and lists one model.
fn provider() -> SocketAddr {
    counting_provider().0
}

/// The same with the number of requests that came.
fn counting_provider() -> (SocketAddr, Arc<AtomicUsize>) {
    let count: Arc<AtomicUsize> = Arc::default();
    let counted = Arc::clone(&count);
    let address = server(move |stream| {
        counted.fetch_add(1, Ordering::SeqCst);
        // A client that is gone wants no answer.
        let _ = answer(stream);
    });
    (address, count)
}

/// The same with the heads of the requests that came, each in lower case.
fn recording_provider() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorded = Arc::clone(&heads);
    let address = server(move |stream| {
        if let Ok(head) = answer(stream) {
            recorded.lock().expect("no panic").push(head.to_lowercase());
        }
    });
    (address, heads)
}

/// Answers one request and returns its head.
fn answer(mut stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let (mut length, mut head) = (0, first.clone());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        head.push_str(&line);
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request)?;
    let path = first.split([' ', '?']).nth(1).unwrap_or_default();
    let (kind, body) = match path {
        path if path.ends_with("/models") => {
            ("application/json", r#"{"data":[{"id":"qwen3"}]}"#.to_owned())
        }
        path if path.ends_with("/messages") => ("text/event-stream", anthropic()),
        path if path.ends_with("/responses") => ("text/event-stream", responses()),
        path if path.contains(":streamGenerateContent") => ("text/event-stream", gemini()),
        _ => ("text/event-stream", chat()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )?;
    Ok(head)
}

fn anthropic() -> String {
    let usage = r#""usage":{"input_tokens":1,"output_tokens":1}"#;
    let events = [
        (
            "message_start",
            format!(r#""message":{{"id":"m","role":"assistant","content":[],{usage}}}"#),
        ),
        ("content_block_start", r#""index":0,"content_block":{"type":"text","text":""}"#.into()),
        (
            "content_block_delta",
            format!(r#""index":0,"delta":{{"type":"text_delta","text":"{ANSWER}"}}"#),
        ),
        ("content_block_stop", r#""index":0"#.into()),
        (
            "message_delta",
            r#""delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}"#.into(),
        ),
        ("message_stop", r#""index":0"#.into()),
    ];
    let event = |(kind, data)| format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{data}}}\n\n");
    events.map(event).concat()
}

fn responses() -> String {
    let item = format!(
        r#"{{"type":"message","id":"m","role":"assistant","content":[{{"type":"output_text","text":"{ANSWER}"}}]}}"#
    );
    let usage = r#"{"input_tokens":1,"output_tokens":2}"#;
    format!(
        "data: {{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{item}}}\n\n\
         data: {{\"type\":\"response.completed\",\"response\":{{\"status\":\"completed\",\"output\":[{item}],\"usage\":{usage}}}}}\n\n"
    )
}

fn gemini() -> String {
    format!(
        "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{ANSWER}\"}}]}},\"finishReason\":\"STOP\"}}]}}\n\n"
    )
}

fn chat() -> String {
    let delta = format!(r#"{{"role":"assistant","content":"{ANSWER}"}}"#);
    let chunk = |delta: &str, end: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{end}}}]}}\n\n"
        )
    };
    format!("{}{}data: [DONE]\n\n", chunk(&delta, "null"), chunk("{}", "\"stop\""))
}

/// A home without a model, in which the default provider's base URL is this test's.
fn bare(provider: SocketAddr) -> (Bench, String) {
    let bench = Bench::new();
    bench.without_local_models();
    (bench, format!("http://{provider}"))
}

/// Agrees to where the text goes, and waits for the model's answer.
fn agrees_and_reads(terminal: &mut Terminal) {
    terminal.waits_for("Enter: send");
    terminal.press("\r");
    terminal.waits_for(ANSWER);
}

#[test]
fn a_key_in_the_environment_of_the_first_start_leads_to_an_answer_and_the_header_names_all_of_it() {
    let (bench, base) = bare(provider());
    let env = [("ANTHROPIC_API_KEY", "sk-test"), ("ANTHROPIC_BASE_URL", base.as_str())];
    let mut terminal = Terminal::start(&bench, &[], &env, (220, 40));
    terminal.waits_for("ANTHROPIC_API_KEY is set");
    terminal.press("hello\r");
    terminal.waits_for(ANSWER);
    terminal.waits_for("anthropic/claude");
    // Alone on the screen the transcript has a header with room for all of it.
    terminal.press("\x18z");
    terminal.waits_for(base.trim_start_matches("http://"));
    terminal.waits_for("key from ANTHROPIC_API_KEY");
}

#[test]
fn p_answers_at_once_with_a_key_and_names_model_address_and_key_in_one_line() {
    let address = provider();
    let base = format!("http://{address}");
    for (provider, key, url) in [
        ("anthropic", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        ("openai", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
        ("gemini", "GEMINI_API_KEY", "GEMINI_BASE_URL"),
        ("openrouter", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL"),
    ] {
        let (bench, _) = bare(address);
        let yoi = |variables: &[(&str, &str)]| {
            let mut command = bench.command(&["-p", "hello"]);
            command.envs(variables.iter().copied());
            bench.finish(command.spawn().expect("the program starts"))
        };
        let says = |done: &crate::bench::Done, source: &str, why: &str| {
            assert_eq!((done.code, done.out.trim()), (Some(0), ANSWER), "{done:?}");
            let lines: Vec<&str> = done.err.lines().filter(|line| !line.is_empty()).collect();
            let [line] = lines.as_slice() else { panic!("one line: {done:?}") };
            assert!(line.contains(&format!(": {provider}/")), "{line}");
            let of = match provider {
                "gemini" => format!("{base}/v1beta"),
                _ => format!("{base}/v1"),
            };
            assert!(line.ends_with(&format!(" at {of}, {source}, because {why}")), "{line}");
        };
        let of_variable = yoi(&[(key, "sk-test"), (url, &base)]);
        says(&of_variable, &format!("key from {key}"), &format!("{key} is set"));
        let stored = bench.yoi_reading(&["auth", provider], "sk-test\n");
        assert_eq!(stored.code, Some(0), "{stored:?}");
        let of_file = yoi(&[(url, &base)]);
        says(
            &of_file,
            &format!("key stored for {provider}"),
            &format!("a key for {provider} is stored"),
        );
    }
}

#[test]
fn a_command_prints_the_key_once_for_all_messages_and_nothing_of_it_is_logged() {
    let address = provider();
    let (bench, _) = bare(address);
    let (local, runs) = (bench.without_local_models(), bench.path("runs"));
    let script =
        format!("echo run >> {}; echo sk-printed-$((6+1)) | tee /dev/stderr", runs.display());
    bench.settings(&format!(
        "{local}[provider.anthropic]\nbase_url = 'http://{address}'\n\
         key_command = ['sh', '-c', '{script}']\n"
    ));
    let _host = bench.serve();
    let says = format!(" at http://{address}/v1, key printed by key_command of anthropic, because");
    for _ in 0..2 {
        let done = bench.yoi(&["-p", "hello"]);
        assert_eq!((done.code, done.out.trim()), (Some(0), ANSWER), "{done:?}");
        assert!(done.err.contains(&says), "{done:?}");
    }
    assert_eq!(std::fs::read_to_string(&runs).expect("it ran"), "run\n");
    for file in crate::bench::files(&bench.path("home")) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!String::from_utf8_lossy(&bytes).contains("sk-printed-7"), "{}", file.display());
    }
}

#[test]
fn headers_of_the_settings_go_with_each_request_and_their_values_are_shown_nowhere() {
    let (address, heads) = recording_provider();
    let (bench, _) = bare(address);
    let local = bench.without_local_models();
    let table = |model: &str, headers: &str| {
        bench.settings(&format!(
            "{local}{model}\n[provider.anthropic]\nbase_url = 'http://{address}/?api-version=p'\n\
             headers = {{ {headers} }}\n"
        ));
    };
    let yoi = |variables: &[(&str, &str)]| {
        let mut command = bench.command(&["-p", "hello"]);
        command.envs(variables.iter().copied());
        bench.finish(command.spawn().expect("the program starts"))
    };
    table("", "X-Team = '${TEAM_TOKEN}'");
    let token = ("ANTHROPIC_AUTH_TOKEN", "tok-of-gateway-7");
    let done = yoi(&[token, ("TEAM_TOKEN", "team-token-7"), ("ANTHROPIC_API_KEY", "sk-test")]);
    assert_eq!((done.code, done.out.trim()), (Some(0), ANSWER), "{done:?}");
    let says = format!(" at http://{address}/v1, key from ANTHROPIC_AUTH_TOKEN, because");
    assert!(done.err.contains(&says), "{done:?}");
    let head = heads.lock().expect("no panic").pop().expect("a request");
    assert!(head.starts_with("post /v1/messages?api-version=p "), "{head}");
    for line in ["authorization: bearer tok-of-gateway-7\r", "x-team: team-token-7\r"] {
        assert!(head.contains(line), "{head}");
    }
    assert!(!head.contains("x-api-key") && !head.contains("sk-test"), "{head}");
    let unset = yoi(&[token]);
    assert!(heads.lock().expect("no panic").is_empty(), "nothing is sent without a header");
    let says =
        "headers of [provider.anthropic]: its header X-Team takes ${TEAM_TOKEN}, which is not set";
    assert!(unset.err.contains(says) && !unset.err.contains("no key"), "{unset:?}");

    table("model = 'anthropic/'", "x-api-key = '${TEAM_TOKEN}'");
    let done = yoi(&[("TEAM_TOKEN", "team-token-7")]);
    assert_eq!((done.code, done.out.trim()), (Some(0), ANSWER), "{done:?}");
    assert!(done.err.contains("key in the header x-api-key"), "{done:?}");
    let head = heads.lock().expect("no panic").pop().expect("a request");
    assert!(
        head.contains("x-api-key: team-token-7\r"),
        "a header takes the place of a key: {head}"
    );
    for file in crate::bench::files(&bench.path("home")) {
        let bytes = std::fs::read(&file).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("team-token-7") && !text.contains("of-gateway-7"),
            "{}",
            file.display()
        );
    }
}

#[test]
fn without_consent_p_sends_nothing_to_a_server_that_was_found_unless_it_is_given_with_yes() {
    let (bench, _) = bare(provider());
    let (server, asked) = counting_provider();
    let local = bench.without_local_models();
    let nowhere = local.lines().next().expect("a line for ollama");
    bench.settings(
        &local.replace(nowhere, &format!("provider.ollama.base_url = 'http://{server}'")),
    );
    let refused = bench.yoi(&["-p", "hello"]);
    assert_eq!((refused.code, refused.out.as_str()), (Some(3), ""), "{refused:?}");
    assert!(refused.err.contains("--yes") && refused.err.contains(&server.to_string()));
    let lists = asked.load(Ordering::SeqCst);
    assert_eq!(bench.yoi(&["--yes", "-p", "hello"]).out.trim(), ANSWER);
    assert_eq!(bench.yoi(&["-p", "hello"]).out.trim(), ANSWER, "the consent is remembered");
    assert!(asked.load(Ordering::SeqCst) > lists);
}

#[test]
fn text_and_key_go_to_the_address_of_the_environment_that_came_with_the_message() {
    let (bench, _) = bare(provider());
    let (elsewhere, wrong) = counting_provider();
    let (first, at_first) = counting_provider();
    let (second, at_second) = counting_provider();
    let local = bench.without_local_models();
    bench.settings(&format!("{local}provider.anthropic.base_url = 'http://{elsewhere}'\n"));
    assert_eq!(bench.yoi(&["--model", &bench.model(), "-c", "new bob"]).code, Some(0));
    let yoi = |args: &[&str], address: Option<SocketAddr>| {
        let mut command = bench.command(args);
        command.env("ANTHROPIC_API_KEY", "sk-test");
        if let Some(address) = address {
            command.env("ANTHROPIC_BASE_URL", format!("http://{address}"));
        }
        bench.finish(command.spawn().expect("the program starts"))
    };
    let answers = |args: &[&str], address: Option<SocketAddr>| {
        let done = yoi(args, address);
        assert_eq!((done.code, done.out.trim()), (Some(0), ANSWER), "{args:?}: {done:?}");
    };
    assert_eq!(bench.yoi(&["stop", "bob"]).code, Some(0));
    let with_model = ["--pod", "bob", "--model", "anthropic/claude-x", "-p", "hello"];
    answers(&with_model, Some(first));
    answers(&["--pod", "bob", "-p", "hello"], Some(second));
    assert_eq!(bench.yoi(&["restore", "bob"]).code, Some(0));
    answers(&["--pod", "bob", "-p", "hello"], Some(first));
    let set = yoi(&["model", "--pod", "bob", "anthropic/claude-y"], Some(second));
    assert_eq!(set.code, Some(0), "{set:?}");
    answers(&["--pod", "bob", "-p", "hello"], None);
    let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
    assert_eq!((count(&wrong), count(&at_first), count(&at_second)), (0, 2, 2));
}

#[test]
fn a_key_in_the_environment_of_the_next_screen_leads_the_same_pod_to_an_answer() {
    let (bench, base) = bare(provider());
    let mut first = Terminal::open(&bench, &[]);
    first.waits_for("no model yet");
    first.press("hello\r");
    first.waits_for("rehearsal:");
    first.waits_for("○ ws");
    first.press(":quit\r");
    first.ends();
    let env = [("ANTHROPIC_API_KEY", "sk-test"), ("ANTHROPIC_BASE_URL", base.as_str())];
    let mut second = Terminal::with_env(&bench, &[], &env);
    second.waits_for("claude");
    second.press("hello again\r");
    second.waits_for(ANSWER);
}

#[test]
fn a_key_that_is_stored_beside_the_screen_leads_the_next_message_to_an_answer() {
    let (bench, base) = bare(provider());
    let mut terminal = Terminal::with_env(&bench, &[], &[("ANTHROPIC_BASE_URL", base.as_str())]);
    terminal.waits_for("no model yet");
    terminal.press("hello\r");
    terminal.waits_for("rehearsal:");
    terminal.waits_for("○ ws");
    let stored = bench.yoi_reading(&["auth", "anthropic"], "sk-test\n");
    assert_eq!(stored.code, Some(0), "{stored:?}");
    terminal.press("hello again\r");
    terminal.waits_for(ANSWER);
}

#[test]
fn the_lines_of_the_no_model_answer_connect_a_server_while_the_host_runs() {
    let provider = provider();
    let (bench, _) = bare(provider);
    let mut terminal = Terminal::sized(&bench, &[], 120, 50);
    terminal.waits_for("no model yet");
    terminal.press("hello\r");
    terminal.waits_for("key_env");
    let answer = include_str!("../../prompts/no-model.md");
    let lines = answer.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```"));
    let lines = lines.expect("the lines for config.toml").0;
    let address = lines.split('"').find(|part| part.starts_with("http")).expect("an address");
    bench.settings(&lines.replace(address, &format!("http://{provider}/v1")));
    terminal.press(":model mine/any\r");
    terminal.waits_for("uses mine/any");
    terminal.press("hello again\r");
    terminal.waits_for(ANSWER);
}

#[test]
fn a_server_that_starts_on_this_machine_is_found_by_the_next_message() {
    let (bench, _) = bare(provider());
    let mut terminal = Terminal::open(&bench, &[]);
    terminal.waits_for("no model yet");
    terminal.press("hello\r");
    terminal.waits_for("rehearsal:");
    terminal.waits_for("○ ws");
    bench.settings(&format!("provider.ollama.base_url = 'http://{}'\n", provider()));
    terminal.press("hello again\r");
    terminal.waits_for("ollama/qwen3");
    agrees_and_reads(&mut terminal);
}

#[test]
fn model_without_a_model_lists_the_ways_to_connect_one() {
    let (bench, _) = bare(provider());
    let mut terminal = Terminal::sized(&bench, &[], 120, 40);
    terminal.waits_for("no model yet");
    assert!(!terminal.text().contains("ways to connect one"));
    terminal.press(":model\r");
    terminal.waits_for("ways to connect one");
    terminal.press("\r");
    terminal.waits_for("Enter runs it");
    terminal.press("\r");
    terminal.waits_for("a key from platform.claude.com");
}

const KEY: &str = "sk-ant-connect-0123456789abcdef";

/// A provider that takes this key only.
fn strict_provider() -> SocketAddr {
    // A client that is gone wants no answer.
    server(|stream| drop(answer_to_key(stream)))
}

fn answer_to_key(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':').or(head.is_empty().then_some(("", "")))
        else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
        head.push_str(&line);
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request)?;
    let (status, kind, body) = match head.contains(KEY) {
        false => {
            let said = r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
            ("401 Unauthorized", "application/json", said.to_owned())
        }
        true if head.starts_with("GET") => {
            let list = r#"{"data":[{"id":"claude-sonnet-5-5"},{"id":"claude-other"}]}"#;
            ("200 OK", "application/json", list.to_owned())
        }
        true => ("200 OK", "text/event-stream", anthropic()),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// The files below the home and the working directory that hold this text.
fn files_with(bench: &Bench, text: &str) -> Vec<String> {
    let holds = |file: &std::path::PathBuf| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    };
    let name = |file: std::path::PathBuf| {
        file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    };
    files(&bench.path("")).into_iter().filter(holds).map(name).collect()
}

#[test]
fn a_key_is_asked_for_unseen_on_the_first_screen_and_the_first_message_is_answered_with_it() {
    let (bench, base) = bare(strict_provider());
    let env = [("ANTHROPIC_BASE_URL", base.as_str())];
    let mut terminal = Terminal::start(&bench, &[], &env, (100, 30));
    terminal.waits_for("no model yet");
    terminal.press("\r");
    terminal.waits_for("which provider?");
    terminal.press("Anthropic\r");
    terminal.waits_for("key for anthropic");
    terminal.press(&format!("\x1b[200~{KEY}\n\x1b[201~"));
    terminal.waits_for("characters, not shown");
    terminal.press("\r");
    terminal.waits_for("new Pods use anthropic/claude-sonnet-5-5");
    terminal.waits_for("a key for anthropic is stored");
    terminal.press("hello\r");
    terminal.waits_for(ANSWER);
    // Leaving a run that goes on asks first.
    terminal.waits_for("○ ws");
    assert_eq!(terminal.wrote(KEY), 0);
    terminal.press(":quit\r");
    terminal.ends();
    assert_eq!(files_with(&bench, KEY), ["keys.toml"]);
}

#[test]
fn a_wrong_key_is_said_with_what_to_do_and_stored_nowhere() {
    let (bench, base) = bare(strict_provider());
    let env = [("ANTHROPIC_BASE_URL", base.as_str())];
    let mut terminal = Terminal::start(&bench, &[], &env, (160, 30));
    terminal.waits_for("no model yet");
    terminal.press(":connect anthropic\r");
    terminal.waits_for("key for anthropic");
    terminal.press("sk-wrong-key-0123456789\r");
    terminal.waits_for("refused this key (401)");
    terminal.waits_for("check that it is complete");
    terminal.waits_for("nothing was stored: paste the key again");
    terminal.press("\x1b");
    terminal.waits_without("key for anthropic");
    terminal.press(":quit\r");
    terminal.ends();
    assert_eq!(files_with(&bench, "sk-wrong-key-0123456789"), [""; 0]);
    assert_eq!(bench.yoi(&["auth"]).out, "");
}

#[test]
fn esc_leaves_a_server_that_never_answers_and_nothing_is_stored() {
    // It takes connections into its queue and answers none.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let (bench, base) = bare(listener.local_addr().expect("its address"));
    let env = [("ANTHROPIC_BASE_URL", base.as_str())];
    let mut terminal = Terminal::start(&bench, &[], &env, (100, 30));
    terminal.waits_for("no model yet");
    terminal.press(":connect anthropic\r");
    terminal.waits_for("asking anthropic");
    terminal.press("\x1b");
    terminal.waits_for("new Pod in ws");
    terminal.waits_without("asking anthropic");
    terminal.press("typed in the line");
    terminal.waits_for("typed in the line");
}

#[test]
fn connect_in_a_shell_reads_the_key_from_a_pipe_and_fails_with_a_wrong_one() {
    let (bench, base) = bare(strict_provider());
    let connect = |key: &str| {
        let mut command = bench.command(&["connect", "anthropic"]);
        command.env("ANTHROPIC_BASE_URL", &base);
        bench.reading(command, key)
    };
    let wrong = connect("sk-wrong-key-0123456789\n");
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("refused this key (401)"), "{wrong:?}");
    assert!(wrong.err.contains("`yoi connect anthropic` asks again"), "{wrong:?}");
    assert_eq!(bench.yoi(&["auth"]).out, "");
    let right = connect(&format!("{KEY}\n"));
    assert_eq!(right.code, Some(0), "{right:?}");
    assert!(right.err.contains("new Pods use anthropic/claude-sonnet-5-5"), "{right:?}");
    assert!(!right.err.contains(KEY) && !right.out.contains(KEY), "{right:?}");
    assert_eq!(bench.yoi(&["auth"]).out, "anthropic\n");
    let unknown = bench.yoi(&["connect", "nope"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(
        unknown.err.contains("no provider has this name: `yoi connect` lists them"),
        "{unknown:?}"
    );
}

#[test]
fn a_mistake_in_the_table_of_a_provider_is_the_answer_to_its_model_and_stands_once() {
    let (bench, _) = bare(provider());
    let local = bench.without_local_models();
    let table = |lines: &str| bench.settings(&format!("{local}[provider.shed]\n{lines}\n"));
    let greet = || bench.yoi(&["--model", "shed/q", "-p", "hi"]);
    let wrong = |says: &str| {
        let done = greet();
        assert_eq!(done.err.matches(says).count(), 1, "{done:?}");
        for other in ["there is no provider", "has no wire"] {
            assert!(!done.err.contains(other), "{done:?}");
        }
    };
    let both = || {
        table("base_url = 'http://127.0.0.1:9'\nwire = 'openai-chat'");
        wrong("`provider.shed.wire` is");
        table("wire = 'chat'\nbase_url = 'http://127.0.0.1:9/v1/chat/completions'");
        wrong("ends in /chat/completions; yoi adds the end itself");
    };
    both();
    bench.settings(&local);
    let _host = bench.serve();
    both();
    table(
        "wire = 'chat'
base_url = 'http://127.0.0.1:9'
api_key = 'sk-x'",
    );
    wrong(
        "`provider.shed.api_key` does not belong in this file: store a key with `yoi auth <provider>`",
    );
}

#[test]
fn a_variable_of_a_key_that_is_not_set_is_named_where_a_server_needs_none() {
    let (bench, _) = bare(provider());
    let local = bench.without_local_models();
    bench.settings(&format!(
        "{local}[provider.shed]\nwire = 'chat'\nbase_url = 'http://{}/api/v2?key=sesame'\nkey_env = 'SHED_KEY'\n",
        provider()
    ));
    let done = bench.yoi(&["--model", "shed/q", "-p", "hi"]);
    assert_eq!((done.code, done.out.trim()), (Some(0), ANSWER), "{done:?}");
    assert!(done.err.contains("/api/v2, no key (SHED_KEY is not set)"), "{done:?}");
    assert!(!done.err.contains("sesame"), "{done:?}");
}
