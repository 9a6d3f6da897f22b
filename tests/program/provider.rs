//! A model server of our own, over the chat wire, that writes down every request it gets. A
//! message `job N` is answered with a tool call that appends N to a file outside.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server; it ends with the test's process.
pub struct Provider {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Provider {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let seen = seen.clone();
                // A client that was killed in the middle is what these tests are about.
                std::thread::spawn(move || drop(serve(stream, &seen)));
            }
        });
        Self { address, asked }
    }

    /// What a user writes into `config.toml` to reach it, as provider `fake`.
    pub fn settings(&self) -> String {
        format!(
            "[provider.fake]\nwire = \"openai_chat\"\nbase_url = \"http://{}/v1\"\n",
            self.address
        )
    }

    /// The conversations that were sent, in order.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("no thread panics with it").clone()
    }
}

fn serve(stream: TcpStream, asked: &Mutex<Vec<Value>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    let Some(body) = request(&mut reader)? else { return Ok(()) };
    let body: Value = serde_json::from_slice(&body)?;
    asked.lock().expect("no thread panics with it").push(body["messages"].clone());
    writer.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
    )?;
    for chunk in answer(&body["messages"]) {
        writer.write_all(format!("data: {chunk}\n\n").as_bytes())?;
        writer.flush()?;
    }
    writer.write_all(b"data: [DONE]\n\n")?;
    writer.shutdown(std::net::Shutdown::Both)
}

/// The body of the next request.
fn request(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(body))
}

fn answer(messages: &Value) -> Vec<Value> {
    let last = messages.as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    let text = match &last["content"] {
        Value::Array(parts) => parts.iter().filter_map(|p| p["text"].as_str()).collect(),
        content => content.as_str().unwrap_or("").to_owned(),
    };
    let job = text.strip_prefix("job ").filter(|_| last["role"] == "user");
    let deltas = match job {
        Some(job) => {
            let arguments = json!({"command": format!("echo {job} >> ledger")}).to_string();
            let call = json!({
                "index": 0, "id": format!("call-{job}"), "type": "function",
                "function": {"name": "Bash", "arguments": arguments}
            });
            vec![
                json!({"role": "assistant", "content": "I do "}),
                json!({"content": job}),
                json!({"tool_calls": [call]}),
            ]
        }
        None => vec![json!({"role": "assistant", "content": "so "}), json!({"content": "done"})],
    };
    let reason = if job.is_some() { "tool_calls" } else { "stop" };
    let chunk = |delta: Value, reason: Value| {
        json!({
            "id": "c", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]
        })
    };
    let mut chunks: Vec<Value> = deltas.into_iter().map(|d| chunk(d, Value::Null)).collect();
    chunks.push(chunk(json!({}), json!(reason)));
    chunks
}
