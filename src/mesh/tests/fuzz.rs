//! Damaged and invented lines against a leader and against a member: both go on, and pass nothing on that is no
//! envelope. `YOI_FUZZ` is the number of seconds; without it a moment.

use crate::mesh::envelope::Envelope;
use crate::mesh::tests::bench::{Bench, Raw, message, new_id, say, soon};
use crate::mesh::{Status, join};
use crate::protocol::damaged;
use proptest::prelude::*;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixListener;

/// A sender that no member is.
const FORGED: &str = "forged-sender";

/// Lines with which every part of an envelope begins to be read.
fn seeds() -> Vec<String> {
    let id = new_id();
    let line = |to: &str, body: &str| {
        format!(r#"{{"from":"{FORGED}","to":{to},"id":"{id}","re":"{id}","body":{body}}}"#)
    };
    vec![
        line("\"bob\"", r#"{"type":"ack","status":"received","target":"bob"}"#),
        line("\"broadcast\"", "[1,2.5e300,\"\\ud800\"]"),
        line(r#"["bob","bob","hostile"]"#, "null"),
        line("\"broker\"", r#"{"type":"list_peers"}"#),
        line("\"broker\"", &format!(r#"{{"type":"yoi_confirmed","id":"{id}"}}"#)),
        line("\"broker\"", r#"{"type":"list_peers_reply","peers":["a"],"peers_detailed":[{}]}"#),
        line("\"broker\"", r#"{"type":"peer_joined","name":"x"}"#),
        r#"{"type":"register","name":"x","yoi":{"version":1,"confirms":true}}"#.to_owned(),
    ]
}

/// Bytes that are nearly lines of the mesh, or none at all.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = damaged::line(seeds(), 200);
    prop::collection::vec(line, 1..20).prop_map(|lines| {
        let mut all = lines.join(&b'\n');
        all.push(b'\n');
        all
    })
}

/// Waits until the leader has routed what a member wrote, and reads what came back: a queue that fills would hide what
/// the test looks for. Lines are compared as text, because a body may be JSON that has no value here (`"\\ud800"`).
async fn routed(member: &mut Raw) {
    let id = member.send("broker", serde_json::json!({"type": "list_peers"})).await;
    let answer = format!("\"re\":\"{id}\"");
    while !member.line().await.expect("an open connection").contains(&answer) {}
}

#[tokio::test]
async fn a_leader_passes_envelopes_on_whatever_a_member_writes() {
    let bench = Bench::new();
    let (leader, inbox) = bench.member("leader").await;
    drop(inbox);
    let (mut bob, mut hostile) = (bench.raw("bob").await, bench.raw("hostile").await);
    for (round, piece) in damaged::values(bytes()).enumerate() {
        hostile.writer.write_all(&piece).await.expect("a member is not closed for what it writes");
        routed(&mut hostile).await;
        let text = format!("round {round}");
        let (sent, ()) = tokio::join!(say(&leader, "bob", &text), async {
            loop {
                let line = bob.line().await.expect("an open connection");
                let envelope = Envelope::read(&line).expect("an envelope");
                assert!(envelope.ids().is_some(), "{line}");
                if envelope.from == "leader" && envelope.body.contains(&text) {
                    return;
                }
                assert!(envelope.from != FORGED, "{line}");
            }
        });
        assert_eq!(sent.status, Status::Received);
        let mut newcomer = bench.connect().await;
        // Closed at its first line if that is no registration; then the rest cannot be written.
        let _ = newcomer.writer.write_all(&piece).await;
    }
}

#[tokio::test]
async fn a_member_takes_messages_whatever_its_leader_writes() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
    let listener = UnixListener::bind(bench.path()).unwrap();
    let (joined, stream) = tokio::join!(join(bench.options("alice")), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream
            .write_all(b"{\"type\":\"register_ack\",\"name_assigned\":\"alice\"}\n")
            .await
            .unwrap();
        stream
    });
    let (_member, mut inbox) = joined.unwrap();
    let mut stream = stream;
    for (round, piece) in damaged::values(bytes()).enumerate() {
        soon("writing", stream.write_all(&piece)).await.expect("the member stays");
        let id = new_id();
        let last =
            format!(r#"{{"from":"last","to":"alice","id":"{id}","re":null,"body":{round}}}"#);
        stream.write_all(format!("\n{last}\n").as_bytes()).await.unwrap();
        while message(&mut inbox).await.id.as_str() != id {}
    }
}
