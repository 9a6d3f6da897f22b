//! Several clients at the socket of one Pod: what each is told, and what is nobody else's business.

use crate::host::tests::Bench;
use crate::host::tests::pods::family;
use crate::protocol::{Event, Method, PodName, State};
use crate::store::Wanted;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// A client of the Pod socket that knows lines of JSON and nothing else.
struct Plain {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
    snapshot: Value,
}

impl Plain {
    async fn at(bench: &Bench, pod: &PodName) -> Self {
        let socket = bench.host.shared.sockets().socket(pod.as_str());
        let (reader, writer) = UnixStream::connect(socket).await.unwrap().into_split();
        let lines = BufReader::new(reader).lines();
        let mut plain = Self { lines, writer, snapshot: Value::Null };
        plain.snapshot = plain.until("snapshot").await;
        plain
    }

    async fn line(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the pod is there");
        serde_json::from_str(&line).unwrap()
    }

    /// The data of the next such event; what comes before it is passed over.
    async fn until(&mut self, event: &str) -> Value {
        loop {
            let line = self.line().await;
            if line["event"] == event {
                return line["data"].clone();
            }
        }
    }

    /// The one line that answers this request.
    async fn reply(&mut self, request: &Value) -> Value {
        self.say(request).await;
        loop {
            let line = self.line().await;
            if line["re"] == request["id"] {
                return line;
            }
        }
    }

    async fn say(&mut self, line: &Value) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
}

fn run(text: &str) -> Value {
    json!({"method": "run", "params": {"input": [{"kind": "text", "content": text}]}})
}

#[tokio::test]
async fn a_client_that_connects_during_a_run_gets_input_status_and_streamed_text() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.streamed("This answer ").await;
    let late = Plain::at(&bench, &pod).await;
    assert_eq!(late.snapshot["status"], "running");
    let entries = late.snapshot["entries"].as_array().unwrap();
    let typed = entries.iter().find(|entry| entry["kind"] == "user_input").unwrap();
    assert_eq!(typed["segments"][0]["content"], "hang");
    assert_eq!(late.snapshot["in_flight"][0]["text"], "This answer ");
    bench.call(&pod, Method::Pause).await.unwrap();
    bench.is(&pod, State::Paused).await;
    let later = Plain::at(&bench, &pod).await;
    assert_eq!(later.snapshot["status"], "paused");
    assert!(later.snapshot["in_flight"].is_null(), "{}", later.snapshot);
}

#[tokio::test]
async fn a_client_that_connects_during_a_long_answer_gets_its_end_and_how_much_is_left_out() {
    let (mut bench, pod) = Bench::scripted().await;
    let script = "[[when]]\nany = true\n[[when.step]]\ntext = \"日本\"\nrepeat = 500_000\n\
                  chunk = 10_000\nfault = { hang = 1_000_000 }\n";
    std::fs::write(bench.root.join("script.toml"), script).unwrap();
    bench.call(&pod, Method::say("go")).await.unwrap();
    let mut all = 0;
    while all < 3_000_000 {
        match bench.next(|e| matches!(e, Event::TextDelta { .. } | Event::Lagged)).await {
            Event::TextDelta { text } => all += text.len(),
            _ => break,
        }
    }
    let whole = |snapshot: &Value| {
        let block = &snapshot["in_flight"][0];
        let text = block["text"].as_str().unwrap_or_default();
        assert!(text.len() <= 1 << 20, "{} bytes", text.len());
        block["skipped"].as_u64().unwrap_or(0) + text.len() as u64
    };
    let mut late = Plain::at(&bench, &pod).await;
    while whole(&late.snapshot) < 3_000_000 {
        late = Plain::at(&bench, &pod).await;
    }
}

#[tokio::test]
async fn an_input_that_was_taken_back_is_in_no_snapshot() {
    let (mut bench, pod) = Bench::scripted().await;
    bench.call(&pod, Method::say("wait")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    bench.call(&pod, Method::Pause).await.unwrap();
    bench.is(&pod, State::Idle).await;
    let late = Plain::at(&bench, &pod).await;
    let entries = late.snapshot["entries"].as_array().unwrap();
    assert!(entries.iter().all(|entry| entry["kind"] != "user_input"), "{entries:?}");
}

#[tokio::test]
async fn a_reply_and_a_refusal_go_to_the_asker_only() {
    let (bench, pod) = Bench::scripted().await;
    let mut asking = Plain::at(&bench, &pod).await;
    let mut other = Plain::at(&bench, &pod).await;
    asking.say(&json!({"method": "list_pods", "id": "q1"})).await;
    asking.say(&json!({"method": "resume", "id": "q2"})).await;
    asking.say(&json!({"method": "no_such_order", "id": "q3"})).await;
    let mut answered = Vec::new();
    while answered.len() < 3 {
        let line = asking.line().await;
        answered.push((line["re"].to_string(), line["event"].to_string()));
    }
    answered.sort();
    let expected = [("q1", "pods_listed"), ("q2", "error"), ("q3", "error")];
    assert_eq!(answered, expected.map(|(re, event)| (format!("\"{re}\""), format!("\"{event}\""))));
    asking.say(&run("hello")).await;
    loop {
        let line = other.line().await;
        assert!(line["event"] != "pods_listed" && line["event"] != "error", "{line}");
        if line["event"] == "run_end" {
            break;
        }
    }
}

#[tokio::test]
async fn everyone_at_the_socket_hears_the_turn() {
    let (bench, pod) = Bench::scripted().await;
    let mut one = Plain::at(&bench, &pod).await;
    let mut two = Plain::at(&bench, &pod).await;
    one.say(&run("hello")).await;
    for client in [&mut one, &mut two] {
        assert_eq!(client.until("user_message").await["segments"][0]["content"], "hello");
        assert_eq!(client.until("text_done").await["text"], "You said hello.");
        let end = client.until("run_end").await;
        assert_eq!(end, serde_json::json!({ "result": "finished" }), "no field of ours");
        assert_eq!(client.until("status").await["status"], "idle");
    }
}

#[tokio::test]
async fn a_client_that_connects_and_leaves_changes_nothing() {
    let (bench, pod) = Bench::scripted().await;
    let mut stays = Plain::at(&bench, &pod).await;
    for _ in 0..3 {
        drop(Plain::at(&bench, &pod).await);
    }
    stays.say(&run("hello")).await;
    let first = stays.line().await;
    assert_ne!(first["event"], "error", "{first}");
    stays.until("run_end").await;
}

#[tokio::test]
async fn the_socket_of_a_pod_restores_only_pods_that_its_pod_sees() {
    let pods = [
        ("alice", None, Wanted::Live),
        ("kid", Some("alice"), Wanted::Stopped),
        ("stranger", None, Wanted::Stopped),
    ];
    let bench = family(&pods, &[]).await;
    let [alice, kid, stranger] =
        ["alice", "kid", "stranger"].map(|pod| PodName::parse(pod).unwrap());
    let mut plain = Plain::at(&bench, &alice).await;
    let restore =
        |pod: &PodName| json!({"id": pod, "method": "restore_pod", "params": {"name": pod}});
    let refused = plain.reply(&restore(&stranger)).await;
    let text = "pod `stranger` is not visible to `alice`; ListPods shows what is";
    assert_eq!(refused["data"]["message"], text, "{refused}");
    assert_eq!(bench.info(&stranger).await.state, State::Stopped);
    let restored = plain.reply(&restore(&kid)).await;
    assert_eq!(restored["data"]["result"]["action"], "restored", "{restored}");
    assert_eq!(bench.info(&kid).await.state, State::Idle);
}

#[tokio::test]
async fn a_request_for_another_pod_is_refused_on_the_socket_of_a_pod() {
    let pods = [("alice", None, Wanted::Live), ("bob", None, Wanted::Live)];
    let bench = family(&pods, &[]).await;
    let alice = PodName::parse("alice").unwrap();
    let mut plain = Plain::at(&bench, &alice).await;
    let shutdown = json!({"id": "1", "pod": "bob", "method": "shutdown"});
    let refused = plain.reply(&shutdown).await;
    let why = refused["data"]["message"].as_str();
    assert!(why.is_some_and(|why| why.contains("socket of pod `alice`")), "{refused}");
    for pod in [alice, PodName::parse("bob").unwrap()] {
        assert_eq!(bench.info(&pod).await.state, State::Idle);
    }
    let own = json!({"id": "2", "pod": "Alice", "method": "list_pods"});
    assert_eq!(plain.reply(&own).await["event"], "pods_listed");
}

/// Lines that another user gets from a socket: none when the connection is closed at once.
fn lines_for_another_user(socket: std::path::PathBuf) -> Vec<String> {
    let connect = move || {
        let other = rustix::process::Uid::from_raw(65534);
        // The identity of this thread alone; it ends with the thread.
        rustix::thread::set_thread_res_uid(other, other, other).unwrap();
        let stream = std::os::unix::net::UnixStream::connect(socket).unwrap();
        std::io::BufRead::lines(std::io::BufReader::new(stream)).map_while(Result::ok).collect()
    };
    std::thread::spawn(connect).join().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn another_user_who_can_open_the_sockets_is_not_served() {
    use std::os::unix::fs::PermissionsExt as _;
    if !rustix::process::getuid().is_root() {
        eprintln!("only root can connect as another user: not tested");
        return;
    }
    let (bench, pod) = Bench::scripted().await;
    let sockets = bench.host.shared.sockets();
    for socket in [sockets.host_socket(), sockets.socket(pod.as_str())] {
        // As if somebody had opened everything on the way.
        for path in socket.ancestors().take_while(|path| path.starts_with(&bench.root)) {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
        }
        let at = socket.clone();
        let lines = tokio::task::spawn_blocking(move || lines_for_another_user(at)).await.unwrap();
        assert_eq!(lines, Vec::<String>::new(), "{}", socket.display());
        let own = UnixStream::connect(&socket).await.unwrap();
        let first = BufReader::new(own).lines().next_line().await.unwrap();
        assert!(first.is_some(), "the own user is served at {}", socket.display());
    }
}
