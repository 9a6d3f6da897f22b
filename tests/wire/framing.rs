//! Orders with their address, events with theirs, and what a malformed line is answered.

use proptest::prelude::*;
use serde_json::{Value, json};
use yoi::protocol::frame::{Hello, MAX_ID, Malformed};
use yoi::protocol::{ClientKind, Event, Incoming, Method, Outgoing, PodName};

fn alice() -> Option<PodName> {
    PodName::parse("alice").ok()
}

fn value(line: &[u8]) -> Value {
    assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1, "one newline, at the end");
    assert_eq!(line.last(), Some(&b'\n'));
    serde_json::from_slice(line).expect("one JSON value a line")
}

#[test]
fn an_order_carries_its_id_and_address() {
    let order = Incoming { id: Some("7".into()), pod: alice(), method: Method::Pause };
    let line = order.encode().expect("a line");
    assert_eq!(value(&line), json!({"id": "7", "pod": "alice", "method": "pause"}));
    assert_eq!(Incoming::decode(&line), Ok(order));
}

#[test]
fn an_order_without_id_and_address_is_a_plain_method() {
    let order = Incoming { id: None, pod: None, method: Method::ListPods };
    assert_eq!(value(&order.encode().expect("a line")), json!({"method": "list_pods"}));
    assert_eq!(Incoming::decode(br#"{"method":"list_pods"}"#), Ok(order));
}

#[test]
fn an_event_carries_reply_address_and_count() {
    let event = Event::TextDelta { text: "a\nb".into() };
    let outgoing = Outgoing { re: Some("7".into()), pod: alice(), seq: Some(3), event };
    let line = outgoing.encode();
    let expected = json!({
        "re": "7", "pod": "alice", "seq": 3, "event": "text_delta", "data": {"text": "a\nb"}
    });
    assert_eq!(value(&line), expected);
    assert_eq!(Outgoing::decode(&line).expect("an event"), outgoing);
}

#[test]
fn an_unknown_event_is_kept_and_sent_on_as_it_came() {
    let line = br#"{"re":"7","pod":"alice","seq":3,"event":"later","data":{"x":1}}"#;
    let outgoing = Outgoing::decode(line).expect("an event");
    assert_eq!(outgoing.event, Event::Unknown(json!({"event": "later", "data": {"x": 1}})));
    assert_eq!(outgoing.seq, Some(3));
    let again = outgoing.encode();
    assert_eq!(value(&again), serde_json::from_slice::<Value>(line).expect("JSON"));
    assert_eq!(Outgoing::decode(&again).expect("an event"), outgoing);
}

#[test]
fn a_malformed_line_is_answered_with_the_words_of_the_predecessor() {
    let text = |line: &[u8]| Incoming::decode(line).expect_err("malformed").to_string();
    assert_eq!(text(b"not json"), "invalid method: expected ident at line 1 column 2");
    let run = text(br#"{"method":"run"}"#);
    assert_eq!(run, "invalid method: missing field `params` at line 1 column 16");
    let fly = text(br#"{"method":"fly"}"#);
    assert!(
        fly.starts_with("invalid method: unknown variant `fly`, expected one of `run`"),
        "{fly}"
    );
    assert!(text(b"\xff\xfe").starts_with("invalid method: "));
}

#[test]
fn a_malformed_order_is_answered_under_its_id() {
    let refused = Incoming::decode(br#"{"id":"9","method":"fly"}"#).expect_err("malformed");
    assert_eq!(refused.id.as_deref(), Some("9"));
}

#[test]
fn a_request_id_has_at_most_64_bytes() {
    let line = |id: &str| json!({"id": id, "method": "pause"}).to_string();
    assert!(Incoming::decode(line(&"x".repeat(MAX_ID)).as_bytes()).is_ok());
    let refused = Incoming::decode(line(&"x".repeat(MAX_ID + 1)).as_bytes());
    let message = "the request id is longer than 64 bytes".to_owned();
    assert_eq!(refused, Err(Malformed { id: None, message }));
}

#[test]
fn an_order_for_an_impossible_name_is_refused_under_its_id() {
    let refused = Incoming::decode(br#"{"id":"1","pod":"../x","method":"pause"}"#);
    let refused = refused.expect_err("no Pod can be called that");
    assert!(refused.to_string().contains("invalid pod name: ../x"), "{refused}");
    assert_eq!(refused.id.as_deref(), Some("1"));
}

#[test]
fn both_sides_say_hello_with_protocol_and_version() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(value(&Hello::line()), json!({"hello": {"protocol": 2, "version": version}}));
    let brief = json!({"hello": {"protocol": 2, "version": version, "brief": true}});
    assert_eq!(value(&Hello::ours(ClientKind::Brief).encode()), brief);
}

proptest! {
    #[test]
    fn any_text_survives_the_wire(text in ".*", id in "[ -~]{0,64}") {
        let order = Incoming { id: Some(id), pod: alice(), method: Method::say(text) };
        let line = order.encode().expect("a line");
        prop_assert_eq!(line.iter().filter(|b| **b == b'\n').count(), 1);
        prop_assert_eq!(Incoming::decode(&line), Ok(order));
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Incoming::decode(&bytes);
        let _ = Outgoing::decode(&bytes);
    }
}

#[test]
fn a_line_of_very_many_values_is_refused_before_they_are_read() {
    let many = "{\"\":0},".repeat(yoi::protocol::MAX_VALUES);
    let line = format!("{{\"id\":\"7\",\"method\":\"list\",\"x\":[{many}0]}}");
    let refused = Incoming::decode(line.as_bytes()).unwrap_err();
    let message = format!("the line has more than {} JSON values", yoi::protocol::MAX_VALUES);
    assert_eq!(refused, Malformed { id: Some("7".into()), message });
}
