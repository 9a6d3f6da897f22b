//! The gateway to other machines, as a leader of ours has it.

use crate::mesh::tests::bench::{Bench, Raw, id_of, message, new_id, raw_json, say, soon};
use crate::mesh::{Inbox, JoinError, Member, Options, Status, To, join};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::UnixListener;

/// A gateway that reaches one agent of another machine.
async fn gateway(bench: &Bench) -> (Member, Inbox) {
    let (member, inbox) = join(Options::gateway(bench.socket())).await.unwrap();
    member.reaches(vec!["casa:bob".into(), "local".into(), "casa:broker".into()]).await;
    // The leader has read it before it answers this.
    member.peers().await.unwrap();
    (member, inbox)
}

/// What became of a message, for its sender, as the leader of which machine says it.
async fn said(raw: &mut Raw, id: &str) -> (Value, Value) {
    let line = raw.message().await;
    assert_eq!((&line["re"], &line["body"]["target"]), (&json!(id), &json!("casa:bob")));
    (line["from"].clone(), line["body"]["status"].clone())
}

#[tokio::test]
async fn agents_of_other_machines_are_listed_written_to_and_answer_through_the_gateway() {
    let bench = Bench::new();
    let (ours, _inbox) = bench.member("ours").await;
    let mut raw = bench.raw("pi-1").await;
    let (member, mut inbox) = gateway(&bench).await;
    assert!(raw.so_far().await.is_empty(), "no one is told that an agent joined");
    assert_eq!(raw.names().await, ["ours", "pi-1", "casa:bob"]);
    let why = || "casa is away".to_owned();
    for (at, status) in ["received", "denied", "timeout", "timeout"].into_iter().enumerate() {
        let id = raw.send("casa:bob", json!(at)).await;
        let message = message(&mut inbox).await;
        assert_eq!((message.from.as_str(), message.body.get()), ("pi-1", at.to_string().as_str()));
        assert_eq!((message.to.clone(), message.id), (To::One("casa:bob".into()), id_of(&id)));
        match at {
            0 => inbox.confirm(&message).await,
            1 => inbox.deny(&message, why()).await,
            2 => inbox.queue(&message, why()).await,
            _ => inbox.leave_unknown(&message, why()).await,
        }
        assert_eq!(said(&mut raw, &id).await, (json!("casa:broker"), json!(status)));
    }
    // A member of ours is told that it is queued, and why.
    let (sent, ()) = tokio::join!(say(&ours, "casa:bob", "hi"), async {
        let message = message(&mut inbox).await;
        inbox.queue(&message, why()).await;
    });
    assert_eq!((sent.status, sent.reason), (Status::Queued, Some(why())));
    let (id, re) = (id_of(&new_id()), id_of(&new_id()));
    let answer = |from: &str, to: &str| {
        let (from, to) = (Some(from.to_owned()), To::One(to.to_owned()));
        let member = &member;
        async move { member.pass_on(from, id, to, &raw_json(&json!("yes")), Some(re)).await.status }
    };
    assert_eq!(answer("casa:bob", "pi-1").await, Status::Received);
    let line = raw.message().await;
    assert_eq!((&line["from"], &line["body"]), (&json!("casa:bob"), &json!("yes")));
    assert_eq!((&line["id"], &line["re"]), (&json!(id.to_string()), &json!(re.to_string())));
    assert_eq!(answer("casa:bob", "ghost").await, Status::Denied);
    // It speaks for no member of this machine, and for no leader.
    for from in ["ours", "broker", "casa:broker", "casa:x:broker"] {
        assert_eq!(answer(from, "pi-1").await, Status::Denied, "{from}");
    }
    assert_eq!(raw.so_far().await, Vec::<Value>::new());
    // What is no address of another machine gets no further than this one.
    for to in [format!("casa:{}", "x".repeat(257)), "casa:a\nb".to_owned(), "Casa:bob".to_owned()] {
        let sent = say(&ours, &to, "hi").await;
        assert!(sent.status == Status::Denied && sent.reason.unwrap().contains("`machine:name`"));
    }
    let to = To::Many(vec!["pi-1".into(), "casa:bob".into(), "casa:away".into(), "ghost".into()]);
    let sent = ours.send(to, &raw_json(&json!("all")), None).await;
    let why = "casa:away: it is not listed now, so it is not known whether it gets the message; \
               ghost: no agent of this name is here";
    assert_eq!((sent.status, sent.reason.as_deref()), (Status::Sent, Some(why)));
    assert_eq!(
        (message(&mut inbox).await.id, raw.message().await["body"].clone()),
        (sent.id, json!("all"))
    );
    let several = raw.send(json!(["ours", "casa:bob", "casa:carol"]), json!("all")).await;
    let several = (message(&mut inbox).await, id_of(&several));
    assert_eq!(several.0.id, several.1);
    member.leave().await;
    assert_eq!(raw.names().await, ["ours", "pi-1"]);
    let sent = say(&ours, "casa:bob", "hi").await;
    assert!(sent.status == Status::Denied && sent.reason.unwrap().contains("other machines"));
}

#[tokio::test]
async fn one_id_to_two_agents_of_other_machines_is_two_messages() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (_member, mut inbox) = gateway(&bench).await;
    let (mut raw, id) = (bench.raw("pi-1").await, new_id());
    let line =
        |to: &str| format!("{}\n", json!({"from": "x", "to": to, "id": id, "re": null, "body": 1}));
    let status = async |raw: &mut Raw| raw.message().await["body"]["status"].clone();
    raw.write(&line("casa:bob")).await;
    let first = message(&mut inbox).await;
    // While the outcome of the one is not known, it is not taken for that of the other.
    raw.write(&line("casa:carol")).await;
    assert_eq!(status(&mut raw).await, "denied");
    inbox.confirm(&first).await;
    assert_eq!(status(&mut raw).await, "received");
    raw.write(&line("casa:carol")).await;
    let second = message(&mut inbox).await;
    assert_eq!(second.to, To::One("casa:carol".into()));
    inbox.deny(&second, "no".into()).await;
    assert_eq!(status(&mut raw).await, "denied");
    // What comes again is answered as before, and given once.
    raw.write(&line("casa:bob")).await;
    assert_eq!(status(&mut raw).await, "received");
    raw.write(&line("casa:carol")).await;
    assert_eq!(status(&mut raw).await, "denied");
    assert!(inbox.try_next().is_none());
}

#[tokio::test]
async fn no_member_is_taken_for_an_agent_of_another_machine_or_for_the_gateway() {
    let bench = Bench::new();
    let (ours, mut ours_inbox) = bench.member("ours").await;
    let mut squatter = bench.raw("casa:bob").await;
    assert_eq!(say(&ours, "casa:bob", "hi").await.status, Status::Received);
    squatter.message().await;
    let (_member, mut inbox) = gateway(&bench).await;
    // It is listed once, denied with the reason, and gets nothing of what is addressed to the other machine.
    assert_eq!(squatter.names().await, ["ours", "casa:bob"]);
    squatter.send("ours", json!("I am bob")).await;
    let denied = squatter.message().await["body"].clone();
    assert_eq!(denied["status"], "denied");
    assert!(denied["reason"].as_str().unwrap().contains("join under another name"), "{denied}");
    squatter.send("broadcast", json!("I am bob")).await;
    squatter.send(json!(["ours"]), json!("I am bob")).await;
    squatter.send("broker", json!({"type": "yoi_elsewhere", "agents": ["casa:mine"]})).await;
    let (sent, ()) = tokio::join!(say(&ours, "casa:bob", "to the other one"), async {
        let message = message(&mut inbox).await;
        inbox.confirm(&message).await;
    });
    assert_eq!(sent.status, Status::Received);
    assert_eq!(squatter.so_far().await, Vec::<Value>::new());
    assert_eq!(squatter.names().await, ["ours", "casa:bob"]);
    while let Some(received) = ours_inbox.try_next() {
        assert!(!matches!(received, crate::mesh::Received::Message(_)), "{received:?}");
    }
    // There is one gateway.
    assert!(soon("an answer", join(Options::gateway(bench.socket()))).await.is_err());
    let mut raw = bench.connect().await;
    raw.write("{\"type\":\"register\",\"name\":\"gateway:broker\"}\n").await;
    assert_eq!(raw.next().await.unwrap()["name_assigned"], "agent");
}

#[tokio::test]
async fn a_leader_that_knows_no_gateway_has_no_member_of_its_name() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path().parent().unwrap()).unwrap();
    let listener = UnixListener::bind(bench.path()).unwrap();
    // As remote-pi 0.4.2 does with a first line that it does not know.
    let leads = async {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut first = String::new();
            let read = BufReader::new(stream).read_line(&mut first).await.unwrap();
            assert!(read == 0 || first.contains("\"type\":\"yoi_gateway\""), "{first}");
        }
    };
    tokio::select! {
        () = leads => {}
        joined = join(Options::gateway(bench.socket())) => {
            assert!(matches!(joined, Err(JoinError::Closed(_))), "{joined:?}");
        }
    }
}
