//! Rules that the tests of remote-pi assert and no other test here names. `tests/mesh/README.md` has the table of all.

use crate::mesh::member::Received;
use crate::mesh::tests::bench::{Bench, message, raw_json, say, soon};
use crate::mesh::tests::member::{ack, foreign};
use crate::mesh::{Id, Status, To, join, roster};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

#[test]
fn ids_are_uuids_of_version_7_in_the_order_of_their_milliseconds() {
    let (first, before) = (Id::new(), crate::protocol::now_ms());
    while crate::protocol::now_ms() <= before {
        std::thread::yield_now();
    }
    let later = Id::new();
    for id in [first, later] {
        let parsed = uuid::Uuid::parse_str(id.as_str()).expect("a UUID");
        assert_eq!(parsed.get_version_num(), 7, "{id}");
    }
    assert!(first.as_str() < later.as_str(), "{first} {later}");
}

#[tokio::test]
async fn each_kind_of_envelope_comes_as_it_was_sent() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_bob, mut bobs) = bench.member("bob").await;
    let one = || To::One("bob".into());
    let answered = Id::new();
    for (to, body, re) in [
        (one(), json!({"a": [1, {"b": null}]}), None),
        (one(), json!("text\n\"quoted\" ✓"), None),
        (one(), json!(["an", "answer"]), Some(answered)),
        (To::Broadcast, json!(null), None),
        (To::Many(vec!["bob".into(), "ghost".into()]), json!(7.5), None),
    ] {
        let sent = alice.send(to.clone(), &raw_json(&body), re).await;
        let got = message(&mut bobs).await;
        let value: Value = serde_json::from_str(got.body.get()).unwrap();
        assert_eq!((got.from.as_str(), got.to, got.id), ("alice", to, sent.id));
        assert_eq!((value, got.re), (body, re));
    }
}

#[tokio::test]
async fn a_lone_member_leads_and_lists_itself() {
    let bench = Bench::new();
    let (alone, _inbox) = bench.member("alone").await;
    assert!(alone.standing().leading);
    assert_eq!(roster(&bench.socket(), "probe").await.unwrap(), ["alone"]);
    assert_eq!(alone.peers().await.unwrap(), Vec::<String>::new(), "itself is no peer");
}

#[tokio::test]
async fn two_requests_at_once_are_both_answered() {
    let bench = Bench::new();
    let (alice, mut inbox) = bench.member("alice").await;
    let (bob, mut bobs) = bench.member("bob").await;
    let answering = async {
        // In the other order.
        let questions = [message(&mut bobs).await, message(&mut bobs).await];
        for question in questions.iter().rev() {
            bob.send(To::One("alice".into()), &question.body, Some(question.id)).await;
        }
    };
    let (first, second, ()) =
        tokio::join!(say(&alice, "bob", "1"), say(&alice, "bob", "2"), answering);
    let answers = [message(&mut inbox).await, message(&mut inbox).await];
    for (sent, text) in [(first, "\"1\""), (second, "\"2\"")] {
        let answer = answers.iter().find(|answer| answer.re == Some(sent.id)).expect("an answer");
        assert_eq!((sent.status, answer.body.get()), (Status::Received, text));
    }
}

#[tokio::test]
async fn a_message_to_an_idle_agent_is_acknowledged_within_200_ms() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let _idle = bench.raw("idle").await;
    let mut fastest = Duration::MAX;
    // The fastest of several counts, because a loaded machine may stop this process for longer.
    for _ in 0..10 {
        let begun = Instant::now();
        assert_eq!(say(&alice, "idle", "hi").await.status, Status::Received);
        fastest = fastest.min(begun.elapsed());
    }
    assert!(fastest < Duration::from_millis(200), "{fastest:?}");
}

#[tokio::test]
async fn an_agent_in_the_middle_of_a_turn_still_receives_and_gets_it_afterwards() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_busy, mut later) = bench.member("busy").await;
    for text in ["first", "second"] {
        assert_eq!(
            say(&alice, "busy", text).await.status,
            Status::Received,
            "it takes nothing now"
        );
    }
    for text in ["\"first\"", "\"second\""] {
        assert_eq!(message(&mut later).await.body.get(), text);
    }
}

#[tokio::test]
async fn a_registration_that_is_refused_changes_nothing_for_anyone() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut alice = bench.raw("alice").await;
    for line in [r#"{"type":"register","name":7}"#, r#"{"type":"register"}"#, r#"{"name":"alice"}"#]
    {
        let mut refused = bench.connect().await;
        refused.write(&format!("{line}\n")).await;
        assert_eq!(refused.line().await, None, "{line}");
    }
    assert!(alice.so_far().await.is_empty(), "no one came and no one left");
    assert_eq!(alice.names().await, ["leader", "alice"]);
}

#[tokio::test]
async fn a_name_with_a_colon_that_is_here_is_no_address_on_another_machine() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let mut here = bench.raw("casa:bob").await;
    assert_eq!(say(&alice, "casa:bob", "hi").await.status, Status::Received);
    assert_eq!(here.message().await["from"], "alice");
    for elsewhere in ["casa:carol", ":bob", "casa:", "casa:bob:x"] {
        let sent = say(&alice, elsewhere, "hi").await;
        let reason = sent.reason.expect("a reason");
        assert!(sent.status == Status::Denied && reason.contains("other machines"), "{reason}");
    }
}

#[tokio::test]
async fn an_acknowledgement_of_another_machine_settles_no_message_to_this_one() {
    let bench = Bench::new();
    let (_foreign, mut raw, member, _inbox) = foreign(&bench).await;
    let (sent, ()) = tokio::join!(say(&member, "bob", "hi"), async {
        let line = raw.next().await.unwrap();
        for forged in ["casa:broker", "mallory", "brokers"] {
            raw.write(&ack(forged, &line["id"], "received")).await;
        }
        let error = json!({"from": "_relay", "to": "alice#2", "id": "7b889f2f2a8945c5cf89d75e7f959357",
            "re": line["id"], "body": {"type": "transport_error", "reason": "not_authorized"}});
        raw.write(&format!("{error}\n")).await;
        raw.write(&ack("broker", &line["id"], "busy")).await;
    });
    assert_eq!(sent.status, Status::Denied, "as the leader said");
}

#[tokio::test]
async fn an_acknowledgement_without_a_message_of_ours_is_no_message() {
    let bench = Bench::new();
    let (_foreign, mut raw, _member, mut inbox) = foreign(&bench).await;
    raw.write(&ack("broker", &json!(Id::new().to_string()), "received")).await;
    raw.write(&ack("casa:broker", &json!(Id::new().to_string()), "received")).await;
    let line =
        json!({"from": "bob", "to": "alice#2", "id": Id::new().to_string(), "re": null, "body": 1});
    raw.write(&format!("{line}\n")).await;
    let first = soon("a message", inbox.next()).await;
    assert!(matches!(first, Some(Received::Message(message)) if message.from == "bob"));
}

#[tokio::test]
async fn three_that_start_at_once_have_one_leader_and_the_others_follow() {
    let bench = Bench::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| join(bench.options(name)));
    let (a, b, c) = tokio::join!(a, b, c);
    let members = [a.unwrap(), b.unwrap(), c.unwrap()];
    let leading = members.iter().filter(|(member, _)| member.standing().leading).count();
    assert_eq!(leading, 1);
    for (member, _) in &members {
        assert_eq!(member.peers().await.unwrap().len(), 2);
    }
}
