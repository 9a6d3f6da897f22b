//! A provider that refuses a history because of one result: the way on that its error names works in a shell and on the
//! screen.

use crate::bench::{Bench, server};
use crate::pty::Terminal;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

const ANSWER: &str = "mangrove is the answer";
/// What the provider refuses.
const TEXT: &str = "TOXIC";

/// A bench whose provider has the model read a file, and refuses requests that hold its text.
fn bench() -> Bench {
    // A client that is gone wants no answer.
    let address = server(|stream| drop(answer(stream)));
    let bench = Bench::new();
    let local = bench.without_local_models();
    bench.settings(&format!(
        "model = 'fake/m'\n{local}[provider.fake]\nwire = 'chat'\nkey_env = []\nbase_url = 'http://{address}'\n"
    ));
    std::fs::write(bench.ws().join("poison.txt"), TEXT).expect("a file");
    bench
}

fn answer(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        line.clear();
    }
    let mut request = vec![0; length];
    reader.read_exact(&mut request)?;
    let request: Value = serde_json::from_slice(&request).unwrap_or_default();
    let (status, body) = reply(request["messages"].as_array().map_or(&[], Vec::as_slice));
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn reply(messages: &[Value]) -> (&'static str, String) {
    let refused = messages.iter().find(|message| message.to_string().contains(TEXT));
    if let Some(message) = refused {
        let id = message["tool_call_id"].as_str().unwrap_or_default();
        let error = json!({"error": {"message": format!("Bad text for tool_call_id {id}")}});
        return ("400 Bad Request", error.to_string());
    }
    let arguments = json!({"file_path": "poison.txt"}).to_string();
    let function = json!({"name": "Read", "arguments": arguments});
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
    let (delta, end) = match messages.iter().any(|message| message["role"] == "tool") {
        true => (json!({"content": ANSWER}), "stop"),
        false => (json!({"tool_calls": [call]}), "tool_calls"),
    };
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": end}]});
    ("200 OK", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// Types a line, and Enter when the line is shown: what comes in one burst may be a paste.
fn enter(terminal: &mut Terminal, line: &str) {
    let words = line.trim_start_matches(':');
    let before = terminal.text().matches(words).count();
    terminal.press(line);
    let typed = |text: &str| text.matches(words).count() > before;
    terminal.shows(typed).unwrap_or_else(|screen| panic!("{line} is not typed:\n{screen}"));
    terminal.press("\r");
}

/// The words that follow a text, up to the next blank or quote.
fn word<'a>(text: &'a str, before: &str) -> &'a str {
    let (_, behind) = text.split_once(before).unwrap_or_else(|| panic!("{before} in {text}"));
    behind.split([' ', '`', '\n']).next().unwrap_or_default()
}

#[test]
fn a_refused_result_is_left_out_by_the_line_that_p_prints() {
    let bench = bench();
    let _host = bench.serve();
    assert_eq!(bench.yoi(&["-c", "new bob"]).code, Some(0));
    let failed = bench.yoi(&["--pod", "bob", "-p", "read it"]);
    assert_eq!((failed.code, failed.out.as_str()), (Some(1), ""), "{failed:?}");
    let result = word(&failed.err, "`yoi resume --without=");
    let line = format!("yoi resume --without={result} bob");
    assert!(failed.err.contains(&format!("`{line}`")), "{failed:?}");
    let rewind = "`yoi rewind 1 --yes --pod bob` goes back";
    assert!(failed.err.contains(rewind), "the other way on: {failed:?}");

    let unknown = bench.yoi(&["resume", "--without=nothing", "bob"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.err.contains("ends with `nothing`"), "{unknown:?}");

    let done = bench.finish(bench.shell(&line).spawn().expect("a shell"));
    assert_eq!(done.code, Some(0), "{done:?}");
    let said = bench.yoi(&["--pod", "bob", "-p", "and now?"]);
    assert_eq!((said.code, said.out.trim()), (Some(0), ANSWER), "{said:?}");
    let log = bench.yoi(&["log", "bob"]);
    let note = "note\n  1 output left the context: a person left it out: its provider refuses it";
    assert!(log.out.contains(note), "{log:?}");
}

#[test]
fn a_refused_result_is_left_out_on_the_screen_as_the_error_says() {
    let bench = bench();
    let mut terminal = Terminal::sized(&bench, &[], 220, 40);
    terminal.waits_for("what to work on");
    enter(&mut terminal, "read it");
    terminal.waits_for(" goes on without it");
    terminal.waits_for("tries again");
    let text = terminal.text();
    let result = word(&text, "--without=");
    enter(&mut terminal, &format!(":resume --without={result}"));
    terminal.waits_for(ANSWER);
    terminal.waits_for("1 output left the context: a person left it out");
}
