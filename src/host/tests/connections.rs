//! Clients that disconnect, do not read, or send faster than they read: what becomes of their
//! requests, and of everyone else.

use crate::host::tests::Bench;
use crate::protocol::frame::Hello;
use crate::protocol::{Event, IN_FLIGHT, Method, PodName, State, Verdict};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

mod every_verb;
mod silent_mount;
mod silent_path;

/// What has to happen, happens within this time; far longer than it takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Writing is asked about, so that a Pod can be made to need a person.
const RULES: &str = r#"
[[permissions.rule]]
tool = "Write"
action = "ask"
"#;

const SCRIPT: &str = r#"
[[when]]
says = "write *"
[[when.step]]
text = "I write."
call = [{ name = "Write", args = { file_path = "{cwd}/{1}.txt", content = "x" } }]
[[when.step]]
text = "It says: {result}"

[[when]]
says = "hang"
[[when.step]]
text = "Never said."
fault = { hang = 0, times = 9 }

[[when]]
says = "keep *"
text = "Kept."

[[when]]
any = true
text = "You said {1}."
"#;

impl Bench {
    /// A Pod that asks before it writes.
    async fn with_rules() -> (Self, PodName) {
        let bench = Self::with_settings(RULES).await;
        let script = bench.root.join("script.toml");
        std::fs::write(&script, SCRIPT).unwrap();
        let pod = bench.new_pod(Some(&script)).await;
        (bench, pod.name)
    }

    fn host_socket(&self) -> std::path::PathBuf {
        self.host.shared.sockets().host_socket()
    }

    /// A whole run; the events of it are read.
    async fn run(&mut self, pod: &PodName, text: String) {
        self.call(pod, Method::say(text)).await.unwrap();
        self.end().await;
        self.is(pod, State::Idle).await;
    }
}

/// A client that knows lines of JSON and nothing else.
struct Raw {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Raw {
    /// At the host socket, past the hello.
    async fn at_host(bench: &Bench) -> Self {
        let mut raw = Self::at(&bench.host_socket()).await;
        raw.writer.write_all(&Hello::line()).await.unwrap();
        raw.line().await;
        raw
    }

    async fn at(socket: &std::path::Path) -> Self {
        Self::over(UnixStream::connect(socket).await.unwrap())
    }

    fn over(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    async fn at_pod(bench: &Bench, pod: &PodName) -> Self {
        Self::at(&bench.host.shared.sockets().socket(pod.as_str())).await
    }

    async fn send(&mut self, request: &Value) {
        self.writer.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    }

    async fn line(&mut self) -> Value {
        let line = timeout(LIMIT, self.lines.next_line()).await.expect("a line in time");
        serde_json::from_str(&line.unwrap().expect("the host is there")).unwrap()
    }

    /// The next line with this reply id.
    async fn reply(&mut self, id: &str) -> Value {
        loop {
            let line = self.line().await;
            if line["re"] == id {
                return line;
            }
        }
    }
}

fn run(text: &str) -> Value {
    json!({"method": "run", "params": {"input": [{"kind": "text", "content": text}]}})
}

#[tokio::test]
async fn a_decision_is_carried_out_after_its_client_disconnects() {
    let (mut bench, pod) = Bench::with_rules().await;
    for n in 0..10 {
        bench.call(&pod, Method::say(format!("write {n}"))).await.unwrap();
        let asked = bench.next(|e| matches!(e, Event::ApprovalRequested { .. })).await;
        let Event::ApprovalRequested { approval } = asked else { unreachable!() };
        let mut client = Raw::at_host(&bench).await;
        let params =
            json!({"ask": approval.id, "verdict": serde_json::to_value(Verdict::Once).unwrap()});
        client.send(&json!({"id": "1", "method": "answer", "params": params})).await;
        drop(client);
        timeout(LIMIT, bench.end()).await.expect("the run goes on");
        bench.is(&pod, State::Idle).await;
        assert!(bench.root.join(format!("w/{n}.txt")).exists());
    }
}

#[tokio::test]
async fn a_client_that_closes_its_sending_side_still_gets_its_replies() {
    let (bench, pod) = Bench::with_rules().await;
    let mut client = Raw::at_host(&bench).await;
    client.send(&json!({"id": "1", "pod": pod, "method": "run", "params": {"input": []}})).await;
    client.send(&json!({"id": "2", "method": "list_pods"})).await;
    client.writer.shutdown().await.unwrap();
    let mut answered = [client.line().await["re"].clone(), client.line().await["re"].clone()];
    answered.sort_by_key(Value::to_string);
    assert_eq!(answered, ["1", "2"]);
    assert!(client.lines.next_line().await.unwrap().is_none(), "then the host closes");
}

#[tokio::test]
async fn a_client_sends_a_long_message_while_a_page_is_due() {
    let (mut bench, pod) = Bench::with_rules().await;
    for n in 0..20 {
        bench.run(&pod, format!("{n} {}", "x".repeat(40_000))).await;
    }
    let mut client = Raw::at_host(&bench).await;
    let params = json!({"before": null, "max_bytes": 1 << 20});
    client.send(&json!({"id": "page", "pod": pod, "method": "page", "params": params})).await;
    client.lines.get_ref().get_ref().readable().await.expect("the page begins");
    // A message of a person that is larger than the model's window is refused.
    let params = json!({"message": "y".repeat(1_500_000)});
    let long = json!({"id": "long", "pod": pod, "method": "notify", "params": params});
    timeout(LIMIT, client.send(&long)).await.expect("the host reads while the page is due");
    let page = client.reply("page").await;
    assert!(page.to_string().len() > 1_000_000, "the page is larger than what a socket holds");
    assert_eq!(client.reply("long").await["event"], "accepted");
}

#[tokio::test]
async fn a_client_that_sends_much_and_reads_nothing_is_not_read_on_and_hinders_no_other() {
    let (mut bench, pod) = Bench::with_rules().await;
    for n in 0..4 {
        bench.run(&pod, format!("{n} {}", "x".repeat(40_000))).await;
    }
    let mut client = Raw::at_host(&bench).await;
    let page = |n: usize| {
        let params = json!({"before": null, "max_bytes": 1 << 18});
        json!({"id": n.to_string(), "pod": pod, "method": "page", "params": params,
            "note": "z".repeat(4_000)})
    };
    let mut sent = 0;
    // More than a socket holds each way, and more than the host has in flight.
    while timeout(Duration::from_secs(2), client.send(&page(sent))).await.is_ok() {
        sent += 1;
        assert!(sent < 1_000, "the host keeps reading a client that reads nothing");
    }
    assert!(sent >= IN_FLIGHT, "only {sent} requests were read");
    timeout(LIMIT, bench.run(&pod, "hello".into())).await.expect("others are served");
    let mut answered = Vec::new();
    for _ in 0..sent {
        let line = client.line().await;
        assert_eq!(line["event"], "page");
        answered.extend(line["re"].as_str().and_then(|re| re.parse::<usize>().ok()));
    }
    answered.sort_unstable();
    assert_eq!(answered, Vec::from_iter(0..sent), "each request has one reply");
}

#[tokio::test]
async fn requests_of_one_connection_reach_a_pod_in_their_order() {
    let (mut bench, pod) = Bench::with_rules().await;
    bench.call(&pod, Method::say("hang")).await.unwrap();
    bench.next(|e| matches!(e, Event::LlmCallStart { .. })).await;
    let mut client = Raw::at_host(&bench).await;
    for n in 0..IN_FLIGHT * 2 {
        let mut queued = run(&n.to_string());
        (queued["params"]["queue"], queued["pod"], queued["id"]) =
            (json!(true), json!(pod), json!(n.to_string()));
        client.send(&queued).await;
    }
    for n in 0..IN_FLIGHT * 2 {
        assert_eq!(client.line().await["re"], n.to_string());
    }
    let queue = bench.info(&pod).await.queue;
    let texts: Vec<String> =
        queue.iter().map(|queued| crate::protocol::flatten(&queued.input)).collect();
    let expected: Vec<String> = (0..IN_FLIGHT * 2).map(|n| n.to_string()).collect();
    assert_eq!(texts, expected);
}

#[tokio::test]
async fn a_reply_never_overtakes_the_events_that_it_follows() {
    let (bench, _pod) = Bench::with_rules().await;
    let mut client = Raw::at_host(&bench).await;
    client.send(&json!({"id": "w", "method": "watch"})).await;
    client.reply("w").await;
    for n in 0..100 {
        let name = format!("n{n}");
        let params = json!({"name": name, "cwd": bench.root});
        client.send(&json!({"id": name, "method": "new", "params": params})).await;
        let mut shown = false;
        loop {
            let line = client.line().await;
            shown |= line["event"] == "pod_changed" && line["data"]["info"]["name"] == name;
            if line["re"] == name {
                break;
            }
        }
        assert!(shown, "the reply to `new` came before the event of {name}");
    }
}

#[tokio::test]
async fn a_reader_that_falls_behind_in_bytes_gets_one_more_snapshot_and_then_live_events() {
    let (mut bench, pod) = Bench::with_rules().await;
    let mut slow = Raw::at_pod(&bench, &pod).await;
    assert_eq!(slow.line().await["event"], "snapshot");
    // Few events, so that only their bytes can be too many.
    for n in 0..12 {
        bench.run(&pod, format!("keep {n} {}", "x".repeat(400_000))).await;
    }
    let mut bytes = 0;
    let snapshot = loop {
        let line = slow.line().await;
        if line["event"] == "snapshot" {
            break line;
        }
        bytes += line.to_string().len();
    };
    // 1 MiB and the line that fills it, one line being written, and what a socket holds.
    assert!(bytes < 3_000_000, "{bytes} bytes were kept for it");
    let fresh = Raw::at_pod(&bench, &pod).await.line().await;
    assert_eq!(snapshot["data"]["entries"], fresh["data"]["entries"], "it leaves nothing out");
    assert!(!fresh["data"]["entries"].as_array().unwrap().is_empty());
    slow.send(&run("hello")).await;
    loop {
        let line = slow.line().await;
        assert_ne!(line["event"], "snapshot", "one is enough");
        if line["event"] == "run_end" {
            break;
        }
    }
}

/// The blocking pool has 512 threads; commits need one.
#[tokio::test]
async fn readers_that_do_not_read_their_snapshot_do_not_stop_a_commit() {
    const READERS: usize = 520;
    descriptors(3 * READERS as u64);
    let (mut bench, pod) = Bench::with_rules().await;
    // Many pieces, and not so much that the history is compacted.
    for n in 0..31 {
        bench.run(&pod, format!("{n} {}", "x".repeat(10_000))).await;
    }
    let mut reading = Raw::at_pod(&bench, &pod).await;
    assert!(reading.line().await.to_string().len() > 600_000, "more than what waits on its way");
    let socket = bench.host.shared.sockets().socket(pod.as_str());
    let mut readers = Vec::new();
    for _ in 0..READERS {
        let reader = UnixStream::connect(&socket).await.unwrap();
        timeout(LIMIT, reader.readable()).await.expect("the snapshot begins").unwrap();
        readers.push(reader);
    }
    timeout(LIMIT, bench.run(&pod, "hello".into())).await.expect("the run is committed");
    let mut reading = Raw::at_pod(&bench, &pod).await;
    assert_eq!(reading.line().await["event"], "snapshot", "a reader that reads is served");
}

fn descriptors(needed: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let raised = Rlimit { current: Some(needed), maximum: limit.maximum };
        setrlimit(Resource::Nofile, raised).expect("descriptors for this test");
    }
}

#[tokio::test]
async fn a_rewind_is_streamed_to_pod_sockets_with_every_entry_that_is_left() {
    let (mut bench, pod) = Bench::with_rules().await;
    for text in ["one".to_owned(), format!("two\n{}", "x".repeat(300_000)), "three".into()] {
        bench.run(&pod, text).await;
    }
    let (mut classic, mut asking) =
        (Raw::at_pod(&bench, &pod).await, Raw::at_pod(&bench, &pod).await);
    for client in [&mut classic, &mut asking] {
        assert_eq!(client.line().await["event"], "snapshot");
    }
    asking.send(&json!({"id": "t", "method": "list_rewind_targets"})).await;
    let listed = asking.reply("t").await;
    let target = &listed["data"]["targets"][0];
    let params = json!({
        "target": target["id"],
        "expected_head_entries": listed["data"]["head_entries"],
    });
    asking.send(&json!({"id": "r", "method": "rewind_to", "params": params})).await;
    let reply = asking.reply("r").await;
    let event = loop {
        let line = classic.line().await;
        if line["event"] == "rewind_applied" {
            break line;
        }
    };
    assert_eq!(event["data"], reply["data"]);
    // As it was when the event was built in memory: every entry read and written anew.
    let decoded = crate::protocol::Outgoing::decode(event.to_string().as_bytes()).unwrap();
    let Event::RewindApplied { entries, input, summary } = &decoded.event else {
        panic!("{decoded:?}")
    };
    assert_eq!(serde_json::to_value(&decoded.event).unwrap(), event);
    assert_eq!(entries.len(), summary.truncated_to_entries);
    assert_eq!(crate::protocol::flatten(input), "three");
    let mut later = Raw::at_pod(&bench, &pod).await;
    assert_eq!(later.line().await["data"]["entries"], event["data"]["entries"]);
}

#[tokio::test]
async fn a_screen_gets_the_text_of_the_pods_it_follows_and_how_runs_of_the_others_end() {
    let (bench, followed) = Bench::with_rules().await;
    let other = bench.new_pod(Some(&bench.root.join("script.toml"))).await.name;
    let (screen, mut events) = bench.host.client().await.unwrap();
    screen.call(None, Method::Watch).await.unwrap();
    let show = |follows: &[&PodName]| Method::Show {
        pods: Vec::new(),
        follows: Some(follows.iter().copied().cloned().collect()),
    };
    screen.call(None, show(&[&followed])).await.unwrap();
    let mut said = async |pod: &PodName| {
        bench.call(pod, Method::say("keep it")).await.unwrap();
        let (mut text, mut numbers) = (String::new(), Vec::new());
        loop {
            let next = timeout(LIMIT, events.recv()).await.unwrap().unwrap();
            if next.pod.as_ref() != Some(pod) {
                continue;
            }
            numbers.extend(next.seq);
            match next.event {
                Event::TextDelta { text: piece } => text.push_str(&piece),
                Event::RunEnd { .. } => return (text, numbers),
                _ => {}
            }
        }
    };
    let (text, _) = said(&other).await;
    assert_eq!(text, "", "the screen does not follow this Pod");
    let (text, numbers) = said(&followed).await;
    assert_eq!(text, "Kept.");
    assert!(numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{numbers:?}");
    screen.call(None, show(&[&other, &followed])).await.unwrap();
    assert_eq!(said(&other).await.0, "Kept.");
    // A program that names no Pods to follow gets the text of all.
    screen.call(None, Method::Show { pods: Vec::new(), follows: None }).await.unwrap();
    assert_eq!(said(&followed).await.0, "Kept.");
}
