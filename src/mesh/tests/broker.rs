//! The rules of the wire that a leader of ours keeps, byte by byte where it matters.

use crate::mesh::tests::bench::{Bench, message, new_id};
use crate::mesh::{Options, join};
use serde_json::json;

#[tokio::test]
async fn the_first_line_is_the_acknowledgement_and_others_hear_of_the_newcomer() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut alice = bench.raw("alice").await;
    let mut bob = bench.connect().await;
    bob.write("{\"type\":\"register\",\"name\":\"bob\"}\n").await;
    let expected =
        "{\"type\":\"register_ack\",\"address_assigned\":\"bob\",\"name_assigned\":\"bob\"}\n";
    assert_eq!(bob.line().await.as_deref(), Some(expected));
    let joined = alice.next().await.unwrap();
    assert_eq!(joined["body"], json!({"type": "peer_joined", "name": "bob", "address": "bob"}));
    assert_eq!(
        (&joined["from"], &joined["to"], &joined["re"]),
        (&json!("broker"), &json!("alice"), &json!(null))
    );
    assert_eq!(alice.names().await, ["leader", "alice", "bob"]);
}

#[tokio::test]
async fn a_unicast_is_delivered_as_it_was_written_and_acknowledged_then() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    let id = new_id().to_uppercase();
    let body = r#"{"n":12345678901234567890,"f":1.0,"e":1e400,"s":"\u00e1"}"#;
    alice
        .write(&format!(
            r#"{{"x":1,"body":{body},"re":null,"id":"{id}","to":"bob","from":"mallory"}}"#
        ))
        .await;
    alice.write("\r\n").await;
    let expected = format!(
        "{{\"from\":\"alice\",\"to\":\"bob\",\"id\":\"{id}\",\"re\":null,\"body\":{body}}}\n"
    );
    assert_eq!(bob.line().await, Some(expected));
    let ack = alice.message().await;
    assert_eq!(
        (&ack["from"], &ack["to"], &ack["re"]),
        (&json!("broker"), &json!("alice"), &json!(id))
    );
    assert_eq!(ack["body"], json!({"type": "ack", "status": "received", "target": "bob"}));
}

#[tokio::test]
async fn pipelined_messages_and_their_acknowledgements_keep_their_order() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    let mut lines = String::new();
    let ids: Vec<String> = (0..3000).map(|_| new_id()).collect();
    for (at, id) in ids.iter().enumerate() {
        lines +=
            &format!("{}\n", json!({"from": "a", "to": "bob", "id": id, "re": null, "body": at}));
    }
    alice.write(&lines).await;
    for (at, id) in ids.iter().enumerate() {
        let message = bob.message().await;
        assert_eq!((&message["id"], &message["body"]), (&json!(id), &json!(at)));
    }
    for id in &ids {
        assert_eq!(alice.message().await["re"], json!(id));
    }
}

#[tokio::test]
async fn a_foreign_member_hears_nothing_of_itself_of_unknown_names_of_arrays_and_of_broadcasts() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    for to in
        [json!("alice"), json!("ghost"), json!("casa:bob"), json!(["bob"]), json!("broadcast")]
    {
        alice.send(to, json!(1)).await;
    }
    assert_eq!(alice.so_far().await, Vec::<serde_json::Value>::new());
    let (one, all) = (bob.message().await, bob.message().await);
    assert_eq!((&one["to"], &all["to"]), (&json!(["bob"]), &json!("broadcast")));
}

#[tokio::test]
async fn an_array_goes_to_each_name_but_the_sender_and_twice_to_one_that_stands_twice() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut alice = bench.raw("alice").await;
    let (mut bob, mut carol) = (bench.raw("bob").await, bench.raw("carol").await);
    let to = json!(["bob", "carol", "alice", "ghost", "bob", "broadcast"]);
    alice.send(to.clone(), json!("m")).await;
    for _ in 0..2 {
        assert_eq!(bob.message().await["to"], to);
    }
    assert_eq!(carol.message().await["to"], to);
    assert!(alice.so_far().await.is_empty() && bob.so_far().await.is_empty());
}

#[tokio::test]
async fn what_is_no_envelope_is_dropped_and_the_connection_lives() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    let id = new_id();
    for line in [
        "not json".to_owned(),
        "[]".to_owned(),
        String::new(),
        r#"{"from":"a","to":"bob","id":"abc","re":null,"body":1}"#.to_owned(),
        format!(r#"{{"from":"a","to":"bob","id":"{id}","body":1}}"#),
        format!(r#"{{"from":"","to":"bob","id":"{id}","re":null,"body":1}}"#),
        format!(r#"{{"from":"a","to":[],"id":"{id}","re":null,"body":1}}"#),
        format!(r#"{{"from":"a","to":"bob","id":"{id}","re":null}}"#),
        r#"{"type":"register","name":"again"}"#.to_owned(),
    ] {
        alice.write(&format!("{line}\n")).await;
    }
    alice.write(&format!(r#"{{"from":"a","to":"bob","id":"{id}","re":null,"body":"#)).await;
    alice.writer.writable().await.unwrap();
    let split = "still \u{2713}\"}\n".as_bytes().to_vec();
    use tokio::io::AsyncWriteExt as _;
    for byte in [b"\"".as_slice(), &split[..7], &split[7..]] {
        alice.writer.write_all(byte).await.unwrap();
    }
    assert_eq!(bob.message().await["body"], "still \u{2713}");
    assert_eq!(alice.message().await["re"], json!(id));
}

#[tokio::test]
async fn a_connection_that_does_not_register_first_is_closed_without_a_word() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    for line in [
        "hello",
        r#"{"type":"hello"}"#,
        r#"{"type":"register"}"#,
        r#"{"type":"register","name":5}"#,
        "[]",
    ] {
        let mut raw = bench.connect().await;
        raw.write(&format!("{line}\n")).await;
        assert_eq!(raw.line().await, None, "{line}");
    }
}

#[tokio::test]
async fn the_members_can_be_listed_without_joining() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut alice = bench.raw("alice").await;
    let mut probe = bench.connect().await;
    probe.write("{\"type\":\"list_peers\"}\n").await;
    let listed = probe.next().await.unwrap();
    assert_eq!((&listed["to"], &listed["re"]), (&json!("observer"), &json!(null)));
    assert_eq!(listed["body"]["peers"], json!(["leader", "alice"]));
    assert_eq!(listed["body"]["peers_detailed"][1], json!({"name": "alice", "address": "alice"}));
    assert!(alice.so_far().await.is_empty());
    probe.write("{\"type\":\"register\",\"name\":\"late\"}\n").await;
    assert_eq!(probe.next().await.unwrap()["name_assigned"], "late");
}

#[tokio::test]
async fn a_taken_name_gets_a_number_that_is_free_again_after_its_member_left() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("bob").await;
    let second = bench.raw("bob").await;
    let mut third = bench.raw("bob").await;
    assert_eq!((second.name.as_str(), third.name.as_str()), ("bob#2", "bob#3"));
    drop(second);
    let left = third.next().await.unwrap();
    assert_eq!(left["body"], json!({"type": "peer_left", "name": "bob#2", "address": "bob#2"}));
    assert_eq!(bench.raw("bob").await.name, "bob#2");
}

#[tokio::test]
async fn half_a_close_is_a_leave() {
    use tokio::io::AsyncWriteExt as _;
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    bob.writer.shutdown().await.unwrap();
    assert_eq!(bob.line().await, None);
    assert_eq!(alice.next().await.unwrap()["body"]["type"], "peer_joined");
    assert_eq!(alice.next().await.unwrap()["body"]["type"], "peer_left");
}

#[tokio::test]
async fn a_leader_that_leaves_routes_what_its_members_had_written_before() {
    let bench = Bench::new();
    let (leader, inbox) = bench.member("leader").await;
    drop(inbox);
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    alice.names().await;
    let (mut ids, mut lines) = (Vec::new(), String::new());
    for number in 0..500 {
        let id = new_id();
        let line = json!({"from": "a", "to": "bob", "id": id, "re": null, "body": number});
        lines += &format!("{line}\n");
        ids.push(id);
    }
    alice.write(&lines).await;
    // Without a farewell, as when both handles of a member are dropped.
    drop(leader);
    for id in &ids {
        assert_eq!(bob.message().await["id"], json!(id));
        assert_eq!(alice.message().await["re"], json!(id));
    }
}

#[tokio::test]
async fn a_leader_that_leaves_acknowledges_what_is_confirmed_meanwhile() {
    let bench = Bench::new();
    let (leader, inbox) = bench.member("leader").await;
    drop(inbox);
    let confirms = Options { confirms: true, leads: false, ..bench.options("carol") };
    let (_carol, mut carols) = crate::mesh::join(confirms).await.unwrap();
    let mut alice = bench.raw("alice").await;
    let id = alice.send("carol", json!("keep this")).await;
    let message = message(&mut carols).await;
    let confirming = async {
        // The leader has begun to end.
        while bench.path().exists() {
            tokio::task::yield_now().await;
        }
        carols.confirm(&message).await;
        let ack = alice.message().await;
        assert_eq!((&ack["re"], &ack["body"]["status"]), (&json!(id), &json!("received")));
    };
    tokio::join!(leader.leave(), confirming);
}

#[tokio::test]
async fn the_audit_has_a_line_for_each_envelope_in_their_order() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    let mut ids = Vec::new();
    for to in [
        json!("bob"),
        json!("ghost"),
        json!("alice"),
        json!("broadcast"),
        json!(["bob", "x", "bob"]),
    ] {
        ids.push(alice.send(to, json!({"secret": 1})).await);
    }
    alice.send("broker", json!({"type": "list_peers"})).await;
    for _ in 0..4 {
        bob.message().await;
    }
    leader.leave().await;
    let text = std::fs::read_to_string(bench.audit()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> =
        lines.iter().map(|line| (&line["id"], &line["delivered"], &line["ack_status"])).collect();
    let (bob, none) = (json!(["bob"]), json!([]));
    let (all, twice) = (json!(["leader", "bob"]), json!(["bob", "bob"]));
    let (received, silent) = (json!("received"), json!("none"));
    let expected = [
        (&json!(ids[0]), &bob, &received),
        (&json!(ids[1]), &none, &silent),
        (&json!(ids[2]), &none, &silent),
        (&json!(ids[3]), &all, &silent),
        (&json!(ids[4]), &twice, &silent),
    ];
    assert_eq!(found, expected);
    assert!(!text.contains("secret"), "{text}");
    let keys = r#""from":"alice","to":"bob","id":""#;
    assert!(text.starts_with("{\"ts\":") && text.contains(keys), "{text}");
}

#[tokio::test]
async fn the_audit_says_what_became_of_each_message_to_one_agent() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let confirming = Options { confirms: true, ..bench.options("pod") };
    let (pod, mut inbox) = join(confirming).await.unwrap();
    let mut alice = bench.raw("alice").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(alice.send("pod", json!("hi")).await);
    }
    ids.push(alice.send("leader", json!("hi")).await);
    let (kept, denied) = (message(&mut inbox).await, message(&mut inbox).await);
    inbox.deny(&denied, "blocked".to_owned()).await;
    inbox.confirm(&kept).await;
    // The line of the leader, which is written at once, and two lines of the Pod.
    for _ in 0..3 {
        alice.message().await;
    }
    drop(inbox);
    pod.leave().await;
    leader.leave().await;
    let text = std::fs::read_to_string(bench.audit()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let found: Vec<_> =
        lines.map(|line| json!([line["id"], line["delivered"], line["ack_status"]])).collect();
    let expected = [
        json!([ids[0], ["pod"], "received"]),
        json!([ids[1], [], "denied"]),
        json!([ids[2], ["pod"], "timeout"]),
        json!([ids[3], ["leader"], "received"]),
    ];
    assert_eq!(found, expected);
}
