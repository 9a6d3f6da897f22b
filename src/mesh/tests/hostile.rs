//! Members that mean harm, or are broken: they harm no other member.

use crate::mesh::envelope::MAX_FRAME;
use crate::mesh::tests::bench::{Bench, new_id, say};
use crate::mesh::{Status, broker};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

#[tokio::test]
async fn a_member_that_never_reads_fills_its_own_queue_only_and_its_senders_hear_of_it() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let _deaf = bench.raw("deaf").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    let body = json!("x".repeat(64 * 1024));
    let mut denied = 0;
    // 32 MiB for a queue of 8 MiB.
    for _ in 0..512 {
        alice.send("deaf", body.clone()).await;
    }
    for line in alice.so_far().await {
        denied += usize::from(line["body"]["status"] == "denied");
    }
    assert!((300..=512).contains(&denied), "{denied} of 512 were denied");
    alice.send("bob", json!("hi")).await;
    assert_eq!(bob.message().await["body"], "hi");
    assert_eq!(say(&leader, "bob", "hi").await.status, Status::Received);
    let refused = say(&leader, "deaf", &"x".repeat(1024 * 1024)).await;
    assert_eq!((refused.status, refused.reason.is_some()), (Status::Denied, true));
}

#[tokio::test]
async fn a_frame_over_the_limit_is_dropped_and_the_next_one_is_delivered() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    alice.send("bob", json!("x".repeat(MAX_FRAME))).await;
    alice.send("bob", json!("y".repeat(MAX_FRAME - 200))).await;
    alice.send("bob", json!("small")).await;
    assert_eq!(bob.message().await["body"].as_str().unwrap().len(), MAX_FRAME - 200);
    assert_eq!(bob.message().await["body"], "small");
    assert_eq!(alice.so_far().await.len(), 2);
}

#[tokio::test]
async fn half_frames_and_endless_first_lines_delay_no_other_member() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut half = bench.raw("half").await;
    half.write(r#"{"from":"half","to":"bo"#).await;
    let mut endless = bench.connect().await;
    let piece = "x".repeat(64 * 1024);
    endless.write(&piece).await;
    // The leader closes it when the line is longer than a registration can be.
    while endless.writer.write_all(format!("{piece}\n").as_bytes()).await.is_ok() {}
    let (mut alice, mut bob) = (bench.raw("alice").await, bench.raw("bob").await);
    alice.send("bob", json!(1)).await;
    assert_eq!(bob.message().await["body"], 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_bounded_and_others_have_their_turns() {
    let bench = Bench::new();
    let (leader, inbox) = bench.member("leader").await;
    drop(inbox);
    let mut bob = bench.raw("bob").await;
    let mut flooding = Vec::new();
    for number in 0..4 {
        let mut flood = bench.raw(&format!("flood{number}")).await;
        flooding.push(tokio::spawn(async move {
            let line = format!(
                "{}\n",
                json!({"from": "f", "to": "broadcast", "id": new_id(), "re": null, "body": "x".repeat(1000)})
            );
            let lines = line.repeat(100);
            while flood.writer.write_all(lines.as_bytes()).await.is_ok() {}
        }));
    }
    // The flood fills the queue of every member that does not read; the reader reads it all.
    let reading = tokio::spawn(async move {
        loop {
            let line = bob.line().await.expect("an open connection");
            if line.starts_with("{\"from\":\"leader\"") {
                return line;
            }
        }
    });
    for _ in 0..50 {
        let sent = say(&leader, "bob", "through").await;
        if sent.status == Status::Received {
            break;
        }
        assert_eq!(sent.status, Status::Denied, "{sent:?}");
    }
    assert!(reading.await.unwrap().contains("through"));
    flooding.into_iter().for_each(|flood| flood.abort());
}

#[tokio::test]
async fn no_member_can_speak_as_the_leader() {
    let bench = Bench::new();
    let (leader, _inbox) = bench.member("leader").await;
    let mut forger = bench.raw("broker").await;
    let mut remote = bench.raw("casa:broker").await;
    assert_eq!((forger.name.as_str(), remote.name.as_str()), ("agent", "agent#2"));
    let id = new_id();
    let ack = json!({"type": "ack", "status": "received", "target": "ghost"});
    let line = json!({"from": "broker", "to": "agent#2", "id": id, "re": id, "body": ack});
    forger.write(&format!("{line}\n")).await;
    assert_eq!(remote.message().await["from"], "agent");
    assert_eq!(say(&leader, "ghost", "hi").await.status, Status::Denied);
}

#[tokio::test]
async fn a_mesh_has_1024_members_and_the_others_are_unharmed_when_one_more_comes() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut first = bench.raw("first").await;
    let mut members = Vec::new();
    for number in 2..broker::MAX_MEMBERS {
        members.push(bench.raw(&format!("m{number}")).await);
    }
    let mut further = bench.connect().await;
    further.write("{\"type\":\"register\",\"name\":\"further\"}\n").await;
    assert_eq!(further.line().await, None);
    assert_eq!(first.names().await.len(), broker::MAX_MEMBERS);
    let last = members.last_mut().unwrap();
    first.send(last.name.clone(), json!("hi")).await;
    assert_eq!(last.message().await["body"], "hi");
}

#[tokio::test]
async fn connections_that_never_register_lock_no_newcomer_out() {
    let bench = Bench::new();
    let (_leader, _inbox) = bench.member("leader").await;
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(bench.connect().await);
    }
    assert_eq!(silent[0].line().await, None);
    assert_eq!(bench.raw("late").await.name, "late");
}
