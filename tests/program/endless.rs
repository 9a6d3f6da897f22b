//! A provider whose answer does not end: the most memory that a host, in a process of its own, takes for it.

use crate::answers::memory;
use crate::bench::{Bench, Host};
use serde_json::{Value, json};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

/// The most that an answer costs beyond a fixed amount, in parts of the largest block; SECURITY.md says it.
const PARTS: u64 = 8;
const FIXED: u64 = 32 << 20;
/// The limits of the test, in MiB: reply, block, arguments. `YOI_LONG` takes the usual ones, which want a release
/// build.
const SMALL: [u64; 3] = [16, 8, 8];
const USUAL: [u64; 3] = [128, 60, 56];

/// What a provider streams: events once, then one event again and again.
struct Answer {
    name: &'static str,
    wire: &'static str,
    begin: Vec<String>,
    again: Box<dyn Fn(u64) -> String + Send>,
}

fn chat(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta}]}).to_string()
}

fn answer(name: &'static str, again: impl Fn(u64) -> String + Send + 'static) -> Answer {
    Answer { name, wire: "chat", begin: Vec::new(), again: Box::new(again) }
}

/// Ways to answer without an end.
fn answers(limits: [u64; 3]) -> Vec<Answer> {
    let text = "x\n\"".repeat(1_000);
    let (thought, piece) = (text.clone(), text.clone());
    let call = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
        "function": {"name": "Write", "arguments": "{\"content\": \""}}]});
    let arguments =
        |json: &str| chat(&json!({"tool_calls": [{"index": 0, "function": {"arguments": json}}]}));
    let listed = json!({"tool_calls": [{"index": 0, "id": "c", "type": "function",
        "function": {"name": "Write", "arguments": "{\"content\": ["}}]});
    let many = "{\"\":0},".repeat(1_000);
    // No more blocks than this, so that the test ends in time: each block is committed when it is complete.
    let words = "x".repeat(usize::try_from(limits[0] << 8).expect("a small number"));
    let started = |block: Value| {
        move |n| {
            json!({"type": "content_block_start", "index": n, "content_block": block}).to_string()
        }
    };
    let junk = "j".repeat(1 << 20);
    let small = json!({"type": "x", "more": vec![json!({"": 0}); 1_000]});
    vec![
        answer("text", move |_| chat(&json!({"content": text}))),
        answer("thought", move |_| chat(&json!({"reasoning_content": thought}))),
        Answer { begin: vec![chat(&call)], ..answer("arguments", move |_| arguments(&piece)) },
        Answer { begin: vec![chat(&listed)], ..answer("values", move |_| arguments(&many)) },
        answer("blocks", move |n| match n % 2 {
            0 => chat(&json!({"reasoning_content": words})),
            _ => chat(&json!({"content": words})),
        }),
        answer("calls", |n| {
            let name = "Read".repeat(2_000);
            let function = json!({"name": name, "arguments": "{}"});
            chat(&json!({"tool_calls": [{"index": n, "id": n.to_string(), "function": function}]}))
        }),
        Answer {
            wire: "anthropic",
            ..answer(
                "unfinished blocks",
                started(json!({"type": "text", "text": "", "more": junk})),
            )
        },
        Answer { wire: "anthropic", ..answer("small values", started(small)) },
    ]
}

/// Serves this answer to every request, until the other side closes; the address.
fn provider(answer: Answer) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            // It ends with an error when the host closes.
            let _ = stream(connection, &answer);
        }
    });
    url
}

fn stream(mut connection: TcpStream, answer: &Answer) -> std::io::Result<()> {
    let _ = connection.read(&mut [0; 1 << 16])?;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    connection.write_all(head.as_bytes())?;
    let again = (0..).map(|n| (answer.again)(n));
    for event in answer.begin.iter().cloned().chain(again) {
        connection.write_all(format!("data: {event}\n\n").as_bytes())?;
    }
    Ok(())
}

/// A host with this provider as its only model.
fn host(answer: Answer, [reply, block, argument]: [u64; 3]) -> (Bench, Host) {
    let bench = Bench::new();
    let (wire, url) = (answer.wire, provider(answer));
    bench.settings(&format!(
        "model = 'fake/m'\n[provider.fake]\nwire = '{wire}'\nkey_env = []\nbase_url = '{url}'\n\
         [limits]\nreply_mib = {reply}\nblock_mib = {block}\nargument_mib = {argument}\n"
    ));
    let host = bench.serve();
    (bench, host)
}

/// What the answer added to the most memory that the host ever held, and why its run ended.
fn cost(answer: Answer, limits: [u64; 3]) -> (u64, String) {
    let (bench, host) = host(answer, limits);
    let pid = host.child.id();
    let (before, program) = (memory(pid, "VmRSS:"), memory(pid, "RssFile:"));
    // The most so far begins anew.
    fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("a process of this user");
    let done = bench.yoi(&["-p", "go"]);
    // Pages of the program itself that were first used meanwhile belong to no answer.
    let first_used = memory(pid, "RssFile:").saturating_sub(program);
    (memory(pid, "VmHWM:").saturating_sub(before + first_used), done.err)
}

/// One event is held whole until its end: at most 64 MiB, and the values that are decoded from it.
const EVENT: u64 = 64 << 20;

#[test]
fn one_event_costs_a_host_at_most_a_stated_amount_of_memory() {
    let text = "x".repeat(40 << 20);
    let values = "[],".repeat(20 << 20);
    let line = |json: &str| format!("{{\"choices\":[{{\"index\":0,\"delta\":{{{json}}}}}]}}");
    let (text, values) =
        (line(&format!("\"content\":\"{text}\"")), line(&format!("\"x\":[{values}0]")));
    for (name, event, said) in [
        ("a long text", text, "limits.block_mib"),
        ("many values", values, "one event holds more than 262144 JSON values"),
        ("no end", "x".repeat(80 << 20), "one event is longer than 64 MiB"),
    ] {
        let (cost, end) = cost(answer(name, move |_| event.clone()), SMALL);
        println!("{name}: {} MiB; {}", cost >> 20, end.trim());
        assert!(end.contains(said), "{name}: {end}");
        assert!(cost < FIXED + 4 * EVENT, "{name}: {cost} bytes");
    }
}

#[test]
fn an_answer_without_end_costs_a_host_at_most_a_stated_amount_of_memory() {
    let limits = if std::env::var_os("YOI_LONG").is_some() { USUAL } else { SMALL };
    let most = FIXED + PARTS * (limits[1] << 20);
    for answer in answers(limits) {
        let name = answer.name;
        let (cost, end) = cost(answer, limits);
        println!("{name}: {} of {} MiB; {}", cost >> 20, most >> 20, end.trim());
        assert!(end.contains("the model was stopped"), "{name}: {end}");
        assert!(cost < most, "{name}: {cost} of {most} bytes");
    }
}
