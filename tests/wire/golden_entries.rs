//! A golden line for every entry of the log and for what entries are made of.

use crate::{every_variant, golden};
use serde_json::json;
use yoi::protocol::entry::Kept;
use yoi::protocol::item::Image;
use yoi::protocol::mesh::SentMessage;
use yoi::protocol::{
    AgentOrigin, Content, Entry, Fact, FileMark, Item, NotificationSource, Origin, PodEvent,
    PodName, RequestConfig, Role, Segment, SegmentOrigin, SentByPerson, SystemItem, Trigger, Work,
};

const ID: &str = "01a1fff2-d277-7d93-b554-1afe8ed56657";

fn origin() -> Origin {
    Origin { wire: "anthropic".into(), provider: "anthropic".into(), model: "m".into() }
}

fn said() -> Item {
    Item::message(Role::Assistant, "hello")
}

fn result() -> Item {
    Item::ToolResult {
        call_id: "c".into(),
        summary: "s".into(),
        content: None,
        is_error: false,
        images: vec![],
    }
}

#[test]
fn every_fact_has_its_line() {
    let from = SegmentOrigin { segment_id: ID.parse().expect("a uuid"), at_turn_index: 3 };
    let config = RequestConfig { max_tokens: Some(1000), ..RequestConfig::default() };
    let kept = Kept {
        id: ID.parse().ok(),
        origin: Some(origin()),
        native: Some(json!({"type": "text"})),
        ..Kept::new(None, said())
    };
    every_variant!(
        Fact,
        vec![
            (
                Fact::SegmentStart {
                    session_id: ID.parse().expect("a uuid"),
                    system_prompt: Some("p".into()),
                    config: config.clone(),
                    history: vec![kept],
                    forked_from: Some(from),
                    compacted_from: Some(from),
                },
                r#"{"kind":"segment_start","session_id":"01a1fff2-d277-7d93-b554-1afe8ed56657","system_prompt":"p","config":{"max_tokens":1000,"reasoning":null},"history":[{"id":"01a1fff2-d277-7d93-b554-1afe8ed56657","origin":{"wire":"anthropic","provider":"anthropic","model":"m"},"native":{"type":"text"},"kind":"message","role":"assistant","content":[{"kind":"text","text":"hello"}]}],"forked_from":{"segment_id":"01a1fff2-d277-7d93-b554-1afe8ed56657","at_turn_index":3},"compacted_from":{"segment_id":"01a1fff2-d277-7d93-b554-1afe8ed56657","at_turn_index":3}}"#,
            ),
            (Fact::Invoke { trigger: Trigger::UserSend }, r#"{"kind":"invoke","trigger":"user_send"}"#),
            (
                Fact::UserInput { segments: vec![Segment::Text { content: "hi".into() }], taken: None, from: None },
                r#"{"kind":"user_input","segments":[{"kind":"text","content":"hi"}]}"#,
            ),
            (
                Fact::UserInput { segments: vec![], taken: Some("q".into()), from: yoi::protocol::PodName::parse("alice").ok() },
                r#"{"kind":"user_input","segments":[],"taken":"q","from":"alice"}"#,
            ),
            (
                Fact::AssistantItem { item: said(), origin: None, native: None, partial: false },
                r#"{"kind":"assistant_item","item":{"kind":"message","role":"assistant","content":[{"kind":"text","text":"hello"}]}}"#,
            ),
            (
                Fact::AssistantItem {
                    item: said(),
                    origin: Some(origin()),
                    native: Some(json!({"t": 1})),
                    partial: true,
                },
                r#"{"kind":"assistant_item","item":{"kind":"message","role":"assistant","content":[{"kind":"text","text":"hello"}]},"origin":{"wire":"anthropic","provider":"anthropic","model":"m"},"native":{"t":1},"partial":true}"#,
            ),
            (
                Fact::ToolResult { item: result(), files: vec![], sent: None },
                r#"{"kind":"tool_result","item":{"kind":"tool_result","call_id":"c","summary":"s"}}"#,
            ),
            (
                Fact::ToolResult {
                    item: result(),
                    files: vec![FileMark {
                        path: "/w/a".into(),
                        hash: "00".into(),
                        before: Some("11".into()),
                    }],
                    sent: None,
                },
                r#"{"kind":"tool_result","item":{"kind":"tool_result","call_id":"c","summary":"s"},"files":[{"path":"/w/a","hash":"00","before":"11"}]}"#,
            ),
            (
                Fact::ToolResult {
                    item: result(),
                    files: vec![],
                    sent: Some(SentMessage {
                        id: "m".into(),
                        status: "received".into(),
                        pods: yoi::protocol::PodName::parse("bob").into_iter().collect(),
                        handed_over: true,
                    }),
                },
                r#"{"kind":"tool_result","item":{"kind":"tool_result","call_id":"c","summary":"s"},"sent":{"id":"m","status":"received","pods":["bob"],"handed_over":true}}"#,
            ),
            (
                Fact::SystemItem { item: SystemItem::Interrupt { body: "b".into() }, taken: Some("m".into()) },
                r#"{"kind":"system_item","item":{"kind":"interrupt","body":"b"},"taken":"m"}"#,
            ),
            (Fact::TurnEnd { turn_count: 3 }, r#"{"kind":"turn_end","turn_count":3}"#),
            (
                Fact::RunCompleted { interrupted: false, result: "finished".into(), work: None },
                r#"{"kind":"run_completed","interrupted":false,"result":"finished"}"#,
            ),
            (
                Fact::RunCompleted {
                    interrupted: true,
                    result: "paused".into(),
                    work: Some(Box::new(Work { by_rules: 2, ..Work::default() })),
                },
                r#"{"kind":"run_completed","interrupted":true,"result":"paused","work":{"lines":{"added":0,"removed":0},"by_walls":0,"by_rules":2,"by_person":0,"tasks_not_begun":0}}"#,
            ),
            (
                Fact::RunErrored { interrupted: true, message: "Cancelled".into(), work: None },
                r#"{"kind":"run_errored","interrupted":true,"message":"Cancelled"}"#,
            ),
            (
                Fact::ConfigChanged { config: RequestConfig { reasoning: Some(json!("high")), ..config } },
                r#"{"kind":"config_changed","config":{"max_tokens":1000,"reasoning":"high"}}"#,
            ),
            (
                Fact::LlmUsage {
                    history_len: 1,
                    input_total_tokens: 10,
                    cache_read_tokens: 2,
                    cache_write_tokens: 3,
                    output_tokens: 5,
                    cost: Some(0.5),
                },
                r#"{"kind":"llm_usage","history_len":1,"input_total_tokens":10,"cache_read_tokens":2,"cache_write_tokens":3,"output_tokens":5,"cost":0.5}"#,
            ),
            (
                Fact::Extension { domain: "yoi.cut".into(), payload: json!({"at": 1}) },
                r#"{"kind":"extension","domain":"yoi.cut","payload":{"at":1}}"#,
            ),
            (
                Fact::Unknown(json!({"kind": "from_the_future", "x": [1]})),
                r#"{"kind":"from_the_future","x":[1]}"#,
            ),
        ],
        SegmentStart Invoke UserInput AssistantItem ToolResult SystemItem TurnEnd RunCompleted
        RunErrored ConfigChanged LlmUsage Extension Unknown
    );
}

#[test]
fn an_entry_carries_its_id_and_time_beside_the_fact() {
    let entry =
        Entry { id: ID.parse().ok(), ts: 7, run: None, fact: Fact::TurnEnd { turn_count: 1 } };
    golden(&entry, &format!(r#"{{"id":"{ID}","ts":7,"kind":"turn_end","turn_count":1}}"#));
    let of_run = Entry { run: ID.parse().ok(), ..entry };
    golden(
        &of_run,
        &format!(r#"{{"id":"{ID}","ts":7,"kind":"turn_end","turn_count":1,"run":"{ID}"}}"#),
    );
    let old = Entry { id: None, ts: 7, run: None, fact: Fact::TurnEnd { turn_count: 1 } };
    golden(&old, r#"{"ts":7,"kind":"turn_end","turn_count":1}"#);
}

#[test]
fn an_unknown_entry_is_kept_with_its_id_and_time() {
    let line = format!(r#"{{"id":"{ID}","ts":7,"kind":"later","deep":{{"a":[null]}}}}"#);
    let entry: Entry = serde_json::from_str(&line).expect("an entry");
    assert_eq!(entry.fact, Fact::Unknown(json!({"kind": "later", "deep": {"a": [null]}})));
    golden(&entry, &line);
}

#[test]
fn every_item_has_its_line() {
    every_variant!(
        Item,
        vec![
            (
                Item::message(Role::User, "hi"),
                r#"{"kind":"message","role":"user","content":[{"kind":"text","text":"hi"}]}"#,
            ),
            (
                Item::ToolCall { call_id: "c".into(), name: "Read".into(), arguments: "{}".into() },
                r#"{"kind":"tool_call","call_id":"c","name":"Read","arguments":"{}"}"#,
            ),
            (
                Item::ToolResult {
                    call_id: "c".into(),
                    summary: "s".into(),
                    content: Some("long".into()),
                    is_error: true,
                    images: vec![Image { blob: "00".into(), media_type: "image/png".into() }],
                },
                r#"{"kind":"tool_result","call_id":"c","summary":"s","content":"long","is_error":true,"images":[{"blob":"00","media_type":"image/png"}]}"#,
            ),
            (
                Item::Reasoning {
                    text: "t".into(),
                    summary: vec!["s".into()],
                    encrypted_content: Some("e".into()),
                    signature: Some("g".into()),
                },
                r#"{"kind":"reasoning","text":"t","summary":["s"],"encrypted_content":"e","signature":"g"}"#,
            ),
            (Item::Unknown(json!({"kind": "later"})), r#"{"kind":"later"}"#),
        ],
        Message ToolCall ToolResult Reasoning Unknown
    );
}

#[test]
fn every_piece_of_a_message_has_its_line() {
    every_variant!(
        Content,
        vec![
            (Content::Text { text: "t".into() }, r#"{"kind":"text","text":"t"}"#),
            (Content::Refusal { refusal: "no".into() }, r#"{"kind":"refusal","refusal":"no"}"#),
            (
                Content::Image(Image { blob: "00".into(), media_type: "image/png".into() }),
                r#"{"kind":"image","blob":"00","media_type":"image/png"}"#,
            ),
            (Content::Unknown(json!({"kind": "later"})), r#"{"kind":"later"}"#),
        ],
        Text Refusal Image Unknown
    );
}

#[test]
fn every_system_item_has_its_line() {
    let body = || "b".to_owned();
    every_variant!(
        SystemItem,
        vec![
            (
                SystemItem::Notification { message: "m".into(), body: body(), from: None },
                r#"{"kind":"notification","message":"m","body":"b"}"#,
            ),
            (
                SystemItem::PodEvent {
                    event: PodEvent::ShutDown { pod_name: "kid".into() },
                    body: body(),
                },
                r#"{"kind":"pod_event","event":{"kind":"shut_down","pod_name":"kid"},"body":"b"}"#,
            ),
            (
                SystemItem::FileAttachment { path: "p".into(), body: body(), images: vec![] },
                r#"{"kind":"file_attachment","path":"p","body":"b"}"#,
            ),
            (
                SystemItem::FileAttachment {
                    path: "p".into(),
                    body: body(),
                    images: vec![Image { blob: "00".into(), media_type: "image/png".into() }],
                },
                r#"{"kind":"file_attachment","path":"p","body":"b","images":[{"blob":"00","media_type":"image/png"}]}"#,
            ),
            (
                SystemItem::Knowledge { slug: "s".into(), body: body() },
                r#"{"kind":"knowledge","slug":"s","body":"b"}"#,
            ),
            (
                SystemItem::Workflow { slug: "s".into(), body: body() },
                r#"{"kind":"workflow","slug":"s","body":"b"}"#,
            ),
            (
                SystemItem::TaskReminder { source: "task_inactivity".into(), body: body() },
                r#"{"kind":"task_reminder","source":"task_inactivity","body":"b"}"#,
            ),
            (SystemItem::Interrupt { body: body() }, r#"{"kind":"interrupt","body":"b"}"#),
            (
                SystemItem::Unknown(json!({"kind": "later", "body": "b"})),
                r#"{"kind":"later","body":"b"}"#,
            ),
        ],
        Notification PodEvent FileAttachment Knowledge Workflow TaskReminder Interrupt Unknown
    );
    assert_eq!(SystemItem::Unknown(json!({"kind": "later", "body": "b"})).body(), "b");
}

#[test]
fn every_source_of_a_notification_has_its_line() {
    let pod = || PodName::parse("kid").expect("a name");
    every_variant!(
        NotificationSource,
        vec![
            (NotificationSource::Peer(pod()), r#"{"peer":"kid"}"#),
            (NotificationSource::WaitingChild(pod()), r#"{"waiting_child":"kid"}"#),
            (
                NotificationSource::Agent(AgentOrigin {
                    name: "pi-1".into(),
                    id: "01a1ffb6-a2cb-7796-b04c-890887088394".into(),
                    re: None,
                    pod: false,
                }),
                r#"{"agent":{"name":"pi-1","id":"01a1ffb6-a2cb-7796-b04c-890887088394"}}"#,
            ),
            (
                NotificationSource::Agent(AgentOrigin {
                    name: "bob".into(),
                    id: "01a1ffb6-a2cb-7796-b04c-890887088394".into(),
                    re: Some("01a1ffb6-a2cb-7796-b04c-890887088395".into()),
                    pod: true,
                }),
                r#"{"agent":{"name":"bob","id":"01a1ffb6-a2cb-7796-b04c-890887088394","re":"01a1ffb6-a2cb-7796-b04c-890887088395","pod":true}}"#,
            ),
            (
                NotificationSource::Person(Box::new(SentByPerson {
                    to: "pi-1".into(),
                    sent: SentMessage {
                        id: "m".into(),
                        status: "denied".into(),
                        pods: vec![],
                        handed_over: false,
                    },
                    reason: Some("blocked".into()),
                })),
                r#"{"person":{"to":"pi-1","sent":{"id":"m","status":"denied"},"reason":"blocked"}}"#,
            ),
            (NotificationSource::Unknown(json!({"mesh": "casa"})), r#"{"mesh":"casa"}"#),
        ],
        Peer WaitingChild Agent Person Unknown
    );
}

#[test]
fn every_trigger_has_its_word() {
    for (trigger, word) in [
        (Trigger::UserSend, "user_send"),
        (Trigger::Notify, "notify"),
        (Trigger::PodEvent, "pod_event"),
        (Trigger::SystemReminder, "system_reminder"),
        (Trigger::Wakeup, "wakeup"),
    ] {
        golden(&trigger, &format!("\"{word}\""));
    }
}

#[test]
fn settings_for_sampling_in_an_entry_of_an_earlier_release_are_kept() {
    let earlier = r#"{"ts":7,"kind":"config_changed","config":{"max_tokens":1000,"temperature":0.5,"top_p":0.9,"top_k":5,"stop_sequences":["END"],"reasoning":"high"}}"#;
    let read: Entry = serde_json::from_str(earlier).expect("an entry");
    let Fact::ConfigChanged { config } = &read.fact else { panic!("{read:?}") };
    assert_eq!((config.max_tokens, &config.reasoning), (Some(1000), &Some("high".into())));
    let written: serde_json::Value = serde_json::to_value(&read).expect("JSON");
    let expected: serde_json::Value = serde_json::from_str(earlier).expect("JSON");
    assert_eq!(written, expected);
}
