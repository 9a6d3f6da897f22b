//! A provider of one model. It hands on the words of each request and answers by the last message:
//! `tool …` calls a tool first; `stall …` and `half …` do not end when they come for the first time.

use crate::walks::words::{is_message, of_text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;

/// What a request for a summary ends with.
const SUMMARY: &str = include_str!("../../../prompts/compaction.md");

/// Starts the provider and returns its address. Its tools write into `dir`.
pub fn provider(dir: PathBuf, requests: mpsc::Sender<Vec<String>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("its address"));
    std::thread::spawn(move || {
        let seen = Arc::new(Mutex::new(BTreeSet::new()));
        for connection in listener.incoming() {
            let (dir, requests, seen) = (dir.clone(), requests.clone(), seen.clone());
            let connection = connection.expect("a connection");
            // A host that was killed reads no answer.
            std::thread::spawn(move || drop(answer(connection, &dir, &requests, &seen)));
        }
    });
    url
}

fn answer(
    connection: TcpStream,
    dir: &Path,
    requests: &mpsc::Sender<Vec<String>>,
    seen: &Mutex<BTreeSet<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection);
    let request = body(&mut reader)?;
    let read = read(&request);
    let last = read.last().cloned().unwrap_or_default();
    let message = read.iter().rev().find(|words| is_message(words)).cloned().unwrap_or_default();
    let first = seen.lock().expect("no thread panics with it").insert(message.clone());
    let (delta, ends) = if request.to_string().contains(&json!(SUMMARY.trim()).to_string()[1..80]) {
        (json!({"content": format!("summary of {}", read.len())}), true)
    } else if last.starts_with("tool ") {
        (call(dir, &last), true)
    } else if last.starts_with("half ") && first {
        (json!({"content": format!("begun {last}")}), false)
    } else if last.starts_with("stall ") && first {
        (json!({}), false)
    } else {
        (json!({"content": format!("re {message}")}), true)
    };
    // The test that read the requests may have ended.
    let _ = requests.blocking_send(read);
    let mut connection = reader.into_inner();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    connection.write_all(head.as_bytes())?;
    connection.write_all(event(&delta, &Value::Null).as_bytes())?;
    if ends {
        let reason = if delta["tool_calls"].is_null() { "stop" } else { "tool_calls" };
        connection.write_all(event(&json!({}), &reason.into()).as_bytes())?;
        return connection.write_all(b"data: [DONE]\n\n");
    }
    // Until the other side has had enough.
    connection.read_to_end(&mut Vec::new()).map(drop)
}

/// The body of an HTTP request.
pub fn body(reader: &mut BufReader<TcpStream>) -> std::io::Result<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a number");
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

fn call(dir: &Path, message: &str) -> Value {
    let path = dir.join(file_of(message));
    let arguments = json!({"file_path": path, "content": message}).to_string();
    let function = json!({"name": "Write", "arguments": arguments});
    json!({"tool_calls": [{"index": 0, "id": message, "type": "function", "function": function}]})
}

/// The file that the tool of a message writes; its content is the message.
pub fn file_of(message: &str) -> String {
    format!("{}.txt", message.replace(' ', "-"))
}

fn event(delta: &Value, reason: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
    format!("data: {}\n\n", json!({"choices": [choice]}))
}

/// The words of the messages of a request, but for the system prompt and the request for a summary.
fn read(request: &Value) -> Vec<String> {
    let mut words = Vec::new();
    for message in request["messages"].as_array().expect("messages").iter().skip(1) {
        let parts = match &message["content"] {
            Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
            content => content.as_str().into_iter().collect::<Vec<_>>(),
        };
        if message["role"] == "tool" {
            words.push("result".into());
        } else {
            // Texts that follow each other are parted by an empty line.
            let texts = parts.iter().flat_map(|text| {
                let text = text.split(SUMMARY.trim()).next().unwrap_or_default();
                text.split("\n\n").filter_map(of_text)
            });
            words.extend(texts);
        }
        let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
        words.extend((0..calls).map(|_| "call".to_owned()));
    }
    words
}
