//! Members of ours: what they promise, with a leader of ours and with a leader of another program.

use crate::mesh::member::Received;
use crate::mesh::tests::bench::{Bench, Raw, id_of, message, raw_json, say, soon};
use crate::mesh::{Member, Status, To, join, roster};
use serde_json::{Value, json};
use tokio::net::UnixListener;

#[tokio::test]
async fn a_message_arrives_and_its_answer_names_it() {
    let bench = Bench::new();
    let (alice, mut inbox) = bench.member("alice").await;
    let (bob, mut bobs) = bench.member("bob").await;
    assert!(alice.standing().leading && !bob.standing().leading && bob.standing().led_by_yoi);
    let body = raw_json(&json!({"q": [1, 2]}));
    let sent = alice.send(To::One("bob".into()), &body, None).await;
    assert_eq!((sent.status, &sent.reason), (Status::Received, &None));
    let question = message(&mut bobs).await;
    assert_eq!(
        (question.from.as_str(), question.id, question.body.get()),
        ("alice", sent.id, body.get())
    );
    let answer = bob.send(To::One("alice".into()), &raw_json(&json!("a")), Some(question.id)).await;
    assert_eq!(answer.status, Status::Received);
    assert_eq!(message(&mut inbox).await.re, Some(sent.id));
}

#[tokio::test]
async fn an_unknown_name_is_denied_at_once_and_oneself_is_refused() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let begun = tokio::time::Instant::now();
    for (to, status) in [
        ("ghost", Status::Denied),
        ("casa:bob", Status::Denied),
        ("alice", Status::Refused),
        ("broker", Status::Refused),
        ("casa:broker", Status::Refused),
    ] {
        let sent = say(&alice, to, "hi").await;
        assert!(sent.status == status && sent.reason.is_some(), "{to}: {sent:?}");
    }
    let large = raw_json(&json!("x".repeat(crate::mesh::MAX_FRAME)));
    assert_eq!(alice.send(To::Broadcast, &large, None).await.status, Status::Refused);
    assert_eq!(
        alice.send(To::Many(Vec::new()), &raw_json(&json!(1)), None).await.status,
        Status::Refused
    );
    assert!(begun.elapsed() < crate::mesh::member::ACK_WAIT);
}

#[tokio::test]
async fn no_message_of_a_caller_is_a_request_of_its_member_to_the_leader() {
    let bench = Bench::new();
    let (_alice, _inbox) = bench.member("alice").await;
    let (bob, _bobs) = bench.member("bob").await;
    let sent =
        bob.send(To::One("broker".into()), &raw_json(&json!({"type": "yoi_leaving"})), None).await;
    assert_eq!(sent.status, Status::Refused);
    assert_eq!(roster(&bench.socket(), "probe").await.unwrap(), ["alice", "bob"]);
}

#[tokio::test]
async fn broadcasts_and_arrays_are_sent_and_come_to_the_others() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_bob, mut bobs) = bench.member("bob").await;
    let many = |names: &[&str]| To::Many(names.iter().map(ToString::to_string).collect());
    for to in [To::Broadcast, many(&["bob", "alice"])] {
        let sent = alice.send(to.clone(), &raw_json(&json!(1)), None).await;
        assert_eq!((sent.status, sent.reason), (Status::Sent, None));
        assert_eq!(message(&mut bobs).await.to, to);
    }
    // What is not acknowledged says at least who is not there.
    let sent = alice.send(many(&["ghost", "bob", "x", "ghost"]), &raw_json(&json!(1)), None).await;
    let absent = "ghost: no agent of this name is here; x: no agent of this name is here";
    assert_eq!((sent.status, sent.reason.as_deref()), (Status::Sent, Some(absent)));
    let sent = alice.send(To::One("bob,x".into()), &raw_json(&json!(1)), None).await;
    assert!(sent.status == Status::Denied && sent.reason.unwrap().contains("in an array"));
}

#[tokio::test]
async fn members_are_listed_without_oneself_and_without_joining() {
    let bench = Bench::new();
    let (alice, mut inbox) = bench.member("alice").await;
    let (bob, _bobs) = bench.member("bob").await;
    assert_eq!(alice.peers().await.unwrap(), ["bob"]);
    assert_eq!(roster(&bench.socket(), "probe").await.unwrap(), ["alice", "bob"]);
    bob.leave().await;
    let Some(Received::PeerJoined(joined)) = inbox.next().await else { panic!("bob joined") };
    let Some(Received::PeerLeft(left)) = inbox.next().await else {
        panic!("bob left, and no probe came")
    };
    assert_eq!((joined.as_str(), left.as_str()), ("bob", "bob"));
}

#[tokio::test]
async fn a_message_to_a_member_that_leaves_before_it_took_it_is_denied() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let deaf = bench.raw("deaf").await;
    // More bytes than the kernel keeps for a member that does not read.
    let large = "x".repeat(512 * 1024);
    let (sent, ()) = tokio::join!(say(&alice, "deaf", &large), async {
        // Answered behind the message, so the message is queued by then.
        while alice.peers().await.is_err() {}
        drop(deaf);
    });
    assert_eq!(sent.status, Status::Denied, "{sent:?}");
}

#[tokio::test]
async fn a_member_that_takes_its_messages_late_loses_none_and_keeps_their_order() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_bob, mut bobs) = bench.member("bob").await;
    let (room, more) = (crate::mesh::member::INBOX, 1000);
    for number in 0..room {
        assert_eq!(
            say(&alice, "bob", &number.to_string()).await.status,
            Status::Received,
            "{number}"
        );
    }
    let sending = async {
        for number in room..room + more {
            assert_eq!(
                say(&alice, "bob", &number.to_string()).await.status,
                Status::Received,
                "{number}"
            );
        }
    };
    let taking = async {
        for number in 0..room + more {
            assert_eq!(message(&mut bobs).await.body.get(), format!("\"{number}\""));
        }
    };
    tokio::join!(sending, taking);
}

/// A leader of another program, for one member.
pub(super) struct Foreign {
    listener: UnixListener,
}

impl Foreign {
    fn new(bench: &Bench) -> Self {
        std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
        Self { listener: UnixListener::bind(bench.path()).unwrap() }
    }

    /// Takes a member as 0.4.2 does; lines of `before` come first.
    async fn take(&self, before: &str) -> Raw {
        let (stream, _) = soon("a member", self.listener.accept()).await.unwrap();
        let mut raw = Raw::over(stream);
        let register = raw.next().await.unwrap();
        assert_eq!((&register["type"], &register["name"]), (&json!("register"), &json!("alice")));
        raw.write(before).await;
        raw.write("{\"type\":\"register_ack\",\"name_assigned\":\"alice#2\"}\n").await;
        raw
    }
}

pub(super) async fn foreign(bench: &Bench) -> (Foreign, Raw, Member, crate::mesh::Inbox) {
    let foreign = Foreign::new(bench);
    let (joined, raw) = tokio::join!(join(bench.options("alice")), foreign.take("garbage\n\n"));
    let (member, inbox) = joined.unwrap();
    (foreign, raw, member, inbox)
}

pub(super) fn ack(from: &str, re: &Value, status: &str) -> String {
    let id = crate::mesh::tests::bench::new_id();
    let body = json!({"type": "ack", "status": status, "target": "bob"});
    format!("{}\n", json!({"from": from, "to": "alice#2", "id": id, "re": re, "body": body}))
}

#[tokio::test]
async fn under_a_foreign_leader_the_assigned_name_is_used_and_acknowledgements_count() {
    let bench = Bench::new();
    let (_foreign, mut raw, member, _inbox) = foreign(&bench).await;
    let standing = member.standing();
    assert_eq!(
        (standing.name.as_str(), standing.leading, standing.led_by_yoi),
        ("alice#2", false, false)
    );
    let (sent, ()) = tokio::join!(say(&member, "bob", "hi"), async {
        let line = raw.next().await.unwrap();
        let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
        assert_eq!((keys.len(), &line["from"], &line["re"]), (5, &json!("alice#2"), &Value::Null));
        // Neither a member nor the leader of a machine that was not addressed can acknowledge.
        for forged in ["mallory", "casa:broker"] {
            raw.write(&ack(forged, &line["id"], "received")).await;
        }
        raw.write(&ack("broker", &line["id"], "denied")).await;
    });
    assert_eq!(sent.status, Status::Denied);
}

#[tokio::test]
async fn an_address_on_another_machine_is_answered_by_its_leader_or_the_relay() {
    let bench = Bench::new();
    let (_foreign, mut raw, member, _inbox) = foreign(&bench).await;
    let (sent, ()) = tokio::join!(say(&member, "casa:bob", "hi"), async {
        let line = raw.next().await.unwrap();
        raw.write(&ack("casa:broker", &line["id"], "received")).await;
    });
    assert_eq!(sent.status, Status::Received);
    for (reason, status) in [
        ("offline", Status::Timeout),
        ("not_authorized", Status::Denied),
        ("bad_envelope", Status::Denied),
        ("new word", Status::Timeout),
    ] {
        let (sent, ()) = tokio::join!(say(&member, "casa:bob", "hi"), async {
            let line = raw.next().await.unwrap();
            let error = json!({"from": "_relay", "to": "alice#2", "id": "7b889f2f2a8945c5cf89d75e7f959357",
                "re": line["id"], "body": {"type": "transport_error", "reason": reason}});
            raw.write(&format!("{error}\n")).await;
        });
        assert!(sent.status == status && sent.reason.is_some(), "{reason}: {sent:?}");
    }
}

#[tokio::test]
async fn a_foreign_leader_that_dies_fails_what_is_in_flight_and_ours_leads_next() {
    let bench = Bench::new();
    let (foreign, mut raw, member, mut inbox) = foreign(&bench).await;
    let begun = tokio::time::Instant::now();
    let (sent, ()) = tokio::join!(say(&member, "bob", "hi"), async {
        raw.next().await.unwrap();
        drop((foreign, raw));
    });
    assert_eq!(sent.status, Status::Timeout);
    let Some(Received::Rejoined(standing)) = inbox.next().await else { panic!("it joined again") };
    assert!(standing.leading && standing.name == "alice", "{standing:?}");
    assert!(begun.elapsed() < crate::mesh::member::ACK_WAIT);
}

#[tokio::test]
async fn messages_of_a_foreign_leader_that_are_no_envelopes_are_dropped() {
    let bench = Bench::new();
    let (_foreign, mut raw, _member, mut inbox) = foreign(&bench).await;
    let id = crate::mesh::tests::bench::new_id();
    raw.write("[]\n{\"from\":\"bob\"}\n").await;
    raw.write(&format!(
        "{}\n",
        json!({"from": "bob", "to": "alice#2", "id": id, "re": null, "body": 7})
    ))
    .await;
    let found = message(&mut inbox).await;
    assert_eq!((found.id, found.body.get()), (id_of(&id), "7"));
}

/// A member that confirms what it keeps.
async fn confirming(bench: &Bench, name: &str) -> (Member, crate::mesh::Inbox) {
    let options = crate::mesh::Options { confirms: true, ..bench.options(name) };
    soon("joining", join(options)).await.unwrap()
}

#[tokio::test]
async fn a_message_to_a_member_that_confirms_is_received_when_that_has_kept_it() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_bob, mut bobs) = confirming(&bench, "bob").await;
    let mut foreign = bench.raw("foreign").await;
    let id = foreign.send("bob", json!(1)).await;
    let first = message(&mut bobs).await;
    assert_eq!(foreign.so_far().await, Vec::<Value>::new());
    bobs.confirm(&first).await;
    let ack = foreign.message().await;
    assert_eq!((&ack["re"], &ack["body"]["status"]), (&json!(id), &json!("received")));
    let (sent, ()) = tokio::join!(say(&alice, "bob", "hi"), async {
        let second = message(&mut bobs).await;
        bobs.confirm(&second).await;
    });
    assert_eq!(sent.status, Status::Received);
}

#[tokio::test]
async fn of_a_message_that_was_not_confirmed_nothing_is_known_when_its_addressee_leaves() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (bob, mut bobs) = confirming(&bench, "bob").await;
    let (sent, ()) = tokio::join!(say(&alice, "bob", "hi"), async {
        message(&mut bobs).await;
        bob.leave().await;
    });
    assert_eq!(sent.status, Status::Timeout);
    assert!(sent.reason.unwrap().contains("before it confirmed"));
}

#[tokio::test]
async fn no_member_can_confirm_what_went_to_another_one() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (_bob, mut bobs) = confirming(&bench, "bob").await;
    let (mut alice, mut mallory) = (bench.raw("alice").await, bench.raw("mallory").await);
    let id = alice.send("bob", json!(1)).await;
    message(&mut bobs).await;
    mallory.send("broker", json!({"type": "yoi_confirmed", "id": id})).await;
    // The same id of another sender takes no acknowledgement away.
    let line = json!({"from": "m", "to": "bob", "id": id, "re": null, "body": 2});
    mallory.write(&format!("{line}\n")).await;
    assert_eq!(mallory.so_far().await[0]["body"]["status"], "denied");
    assert_eq!(alice.so_far().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_message_that_its_addressee_denies_is_denied_with_its_reason() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_bob, mut bobs) = confirming(&bench, "bob").await;
    let (sent, ()) = tokio::join!(say(&alice, "bob", "hi"), async {
        let first = message(&mut bobs).await;
        bobs.deny(&first, "the mailbox is full".to_owned()).await;
    });
    assert_eq!(
        (sent.status, sent.reason.as_deref()),
        (Status::Denied, Some("the mailbox is full"))
    );
}

#[tokio::test]
async fn a_message_that_comes_again_is_answered_as_before_and_given_once() {
    let bench = Bench::new();
    let (alice, _inbox) = bench.member("alice").await;
    let (_bob, mut bobs) = confirming(&bench, "bob").await;
    let (id, body) = (crate::mesh::Id::new(), raw_json(&json!("once")));
    let again = || alice.send_as(id, To::One("bob".into()), &body, None);
    let (first, ()) = tokio::join!(again(), async {
        let first = message(&mut bobs).await;
        bobs.confirm(&first).await;
    });
    assert_eq!(first.status, Status::Received);
    assert_eq!(again().await.status, Status::Received);
    let (other, ()) = tokio::join!(say(&alice, "bob", "next"), async {
        let next = message(&mut bobs).await;
        assert_eq!(next.body.get(), "\"next\"");
        bobs.deny(&next, "no".to_owned()).await;
    });
    assert_eq!(other.status, Status::Denied);
}

#[tokio::test]
async fn what_is_in_flight_when_a_leader_ends_is_sent_again_in_order_and_given_once() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let (alice, _alices) = bench.member("alice").await;
    let (_bob, mut bobs) = confirming(&bench, "bob").await;
    let (kept, lost) = (raw_json(&json!("kept")), raw_json(&json!("lost")));
    let to = || To::One("bob".into());
    let first = alice.send(to(), &kept, None);
    let second = alice.send(to(), &lost, None);
    let taking = async {
        // The first one is kept, and its leader ends before it hears of that.
        let first = message(&mut bobs).await;
        let second = message(&mut bobs).await;
        leader.leave().await;
        bobs.confirm(&first).await;
        bobs.confirm(&second).await;
        // A message behind them, under the next leader, is the next one that bob is given.
        let third = message(&mut bobs).await;
        bobs.confirm(&third).await;
        [first, second, third].map(|message| message.body.get().to_owned())
    };
    let third = async {
        let third = raw_json(&json!("third"));
        loop {
            let sent = alice.send(to(), &third, None).await;
            if sent.status == Status::Received {
                return sent;
            }
        }
    };
    let ((first, second), taken, third) = soon("all arrives", async {
        tokio::join!(async { tokio::join!(first, second) }, taking, third)
    })
    .await;
    assert_eq!([first, second, third].map(|sent| sent.status), [Status::Received; 3]);
    assert_eq!(taken, ["\"kept\"", "\"lost\"", "\"third\""]);
}

#[tokio::test]
async fn what_may_have_reached_a_member_that_does_not_confirm_is_not_sent_again() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let (alice, _alices) = bench.member("alice").await;
    let deaf = bench.raw("deaf").await;
    // More bytes than the kernel keeps for a member that does not read.
    let large = "x".repeat(2 * 1024 * 1024);
    let (sent, _raw) = tokio::join!(say(&alice, "deaf", &large), async {
        // The leader has the message when it answers, which takes a busy machine longer than a list is waited for.
        while alice.peers().await.is_err() {}
        leader.leave().await;
        drop(deaf);
        loop {
            // The other agent joins the next leader under its name.
            if let Ok(stream) = tokio::net::UnixStream::connect(bench.path()).await {
                let mut raw = Raw::over(stream);
                raw.write("{\"type\":\"register\",\"name\":\"deaf\"}\n").await;
                if raw.next().await.is_some() {
                    return raw;
                }
            }
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(sent.status, Status::Timeout, "{sent:?}");
}
