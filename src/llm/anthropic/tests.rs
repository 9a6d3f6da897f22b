use super::*;
use crate::config::models::Wire;
use crate::llm::bench::{
    DOT, blocks, call, cut_blocks, fault, foreign, model, native, plain, request, result,
    rich_result, run, shown, thought, usage,
};
use crate::llm::cause::Cause;
use crate::llm::wire::Fault;
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::{Item, Role};

fn claude() -> Model {
    model(Wire::Anthropic)
}

fn start(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

fn begin() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [],
        "usage": {"input_tokens": 10, "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 30, "output_tokens": 1}}})
}

fn end(reason: &str) -> [Value; 2] {
    [
        json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 42}}),
        json!({"type": "message_stop"}),
    ]
}

fn answer(blocks: impl IntoIterator<Item = Value>, reason: &str) -> Vec<Value> {
    std::iter::once(begin()).chain(blocks).chain(end(reason)).collect()
}

/// The request as a server reads it.
fn body(request: &Request, model: &Model) -> Value {
    serde_json::from_slice(&super::body(request, model)).unwrap()
}

#[test]
fn text_streams_and_is_committed_whole_with_its_usage() {
    let events = answer(
        [
            json!({"type": "ping"}),
            start(0, json!({"type": "text", "text": ""})),
            delta(0, json!({"type": "text_delta", "text": "Hel"})),
            delta(0, json!({"type": "text_delta", "text": "lo"})),
            stop(0),
        ],
        "end_turn",
    );
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::EndTurn));
    assert_eq!(shown(&deltas), [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
    let expected =
        (Item::message(Role::Assistant, "Hello"), Some(json!({"type": "text", "text": "Hello"})));
    assert_eq!(blocks(&deltas), [expected]);
    assert_eq!(
        usage(&deltas),
        Usage {
            input: Some(140),
            output: Some(42),
            cache_read: Some(100),
            cache_write: Some(30),
            reasoning: None,
        }
    );
}

#[test]
fn thinking_keeps_its_signature_and_redacted_thinking_its_data() {
    let events = answer(
        [
            start(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "let me "})),
            delta(0, json!({"type": "thinking_delta", "thinking": "see"})),
            delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
            stop(0),
            start(1, json!({"type": "redacted_thinking", "data": "b64"})),
            stop(1),
        ],
        "end_turn",
    );
    let (deltas, _) = run(Decoder::default(), &events);
    let think = |words: &str| Delta::Thinking(words.into());
    assert_eq!(shown(&deltas), [Delta::ThinkingStart, think("let me "), think("see")]);
    let reasoning =
        |text: &str, encrypted: Option<&str>, signature: Option<&str>| Item::Reasoning {
            text: text.into(),
            summary: Vec::new(),
            encrypted_content: encrypted.map(str::to_owned),
            signature: signature.map(str::to_owned),
        };
    assert_eq!(
        blocks(&deltas),
        [
            (
                reasoning("let me see", None, Some("c2ln")),
                Some(json!({"type": "thinking", "thinking": "let me see", "signature": "c2ln"})),
            ),
            (
                reasoning("", Some("b64"), None),
                Some(json!({"type": "redacted_thinking", "data": "b64"})),
            ),
        ]
    );
}

#[test]
fn two_calls_arrive_in_pieces_and_in_order() {
    let events = answer(
        [
            start(0, json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}})),
            delta(0, json!({"type": "input_json_delta", "partial_json": ""})),
            delta(0, json!({"type": "input_json_delta", "partial_json": "{\"path\":"})),
            delta(0, json!({"type": "input_json_delta", "partial_json": "\"a\"}"})),
            stop(0),
            start(1, json!({"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}})),
            stop(1),
        ],
        "tool_use",
    );
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::ToolUse));
    let args = |json: &str| Delta::ToolCallArgs { id: "toolu_1".into(), json: json.into() };
    let begin = |id: &str, name: &str| Delta::ToolCallStart { id: id.into(), name: name.into() };
    assert_eq!(
        shown(&deltas),
        [begin("toolu_1", "Read"), args("{\"path\":"), args("\"a\"}"), begin("toolu_2", "Bash")]
    );
    let natives: Vec<Value> =
        blocks(&deltas).into_iter().filter_map(|(_, native)| native).collect();
    assert_eq!(
        natives,
        [
            json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a"}}),
            json!({"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}}),
        ]
    );
    let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
    assert_eq!(items, [call("toolu_1", "Read", "{\"path\":\"a\"}"), call("toolu_2", "Bash", "{}")]);
}

#[test]
fn arguments_that_break_off_are_kept_as_they_came_and_sent_back_as_an_empty_object() {
    let events = answer(
        [
            start(0, json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}})),
            delta(0, json!({"type": "input_json_delta", "partial_json": "{\"path\": \"a"})),
            stop(0),
        ],
        "max_tokens",
    );
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::MaxTokens));
    let (item, native) = blocks(&deltas).remove(0);
    assert_eq!(item, call("t", "Read", "{\"path\": \"a"));
    assert_eq!(native.unwrap()["input"], json!({}));
}

#[test]
fn unknown_blocks_deltas_and_events_are_kept_in_their_place() {
    let search =
        json!({"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [1]});
    let odd_delta = delta(2, json!({"type": "new_delta", "x": 1}));
    let odd_event = json!({"type": "new_event", "y": 2});
    let events = answer(
        [
            start(0, search.clone()),
            delta(0, json!({"type": "input_json_delta", "partial_json": "{\"q\":\"x\"}"})),
            stop(0),
            start(1, found.clone()),
            stop(1),
            start(2, json!({"type": "text", "text": ""})),
            odd_delta.clone(),
            delta(2, json!({"type": "citations_delta", "citation": {"url": "u"}})),
            delta(2, json!({"type": "text_delta", "text": "ok"})),
            stop(2),
            odd_event.clone(),
        ],
        "end_turn",
    );
    let (deltas, _) = run(Decoder::default(), &events);
    let mut search = search;
    search["input"] = json!({"q": "x"});
    assert_eq!(
        blocks(&deltas),
        [
            (Item::Unknown(search.clone()), Some(search)),
            (Item::Unknown(found.clone()), Some(found)),
            (
                Item::message(Role::Assistant, "ok"),
                Some(json!({"type": "text", "text": "ok", "citations": [{"url": "u"}]})),
            ),
        ]
    );
    assert_eq!(
        shown(&deltas),
        [Delta::Unknown(odd_delta), Delta::Text("ok".into()), Delta::Unknown(odd_event)]
    );
}

#[test]
fn a_refusal_carries_the_words_that_came_with_it() {
    let refused = |details: Value| {
        let delta = json!({"stop_reason": "refusal", "stop_details": details});
        let events = [
            begin(),
            json!({"type": "message_delta", "delta": delta}),
            json!({"type": "message_stop"}),
        ];
        run(Decoder::default(), &events).1
    };
    let words = json!({"type": "refusal", "explanation": "not this"});
    assert_eq!(refused(words), Some(Stop::Refusal("not this".into())));
    assert_eq!(refused(Value::Null), Some(Stop::Refusal("refusal".into())));
}

#[test]
fn every_stop_reason_has_its_meaning() {
    let stop = |reason: &str| run(Decoder::default(), &answer([], reason)).1.unwrap();
    assert_eq!(stop("stop_sequence"), Stop::EndTurn);
    assert_eq!(stop("pause_turn"), Stop::Pause);
    assert_eq!(stop("model_context_window_exceeded"), Stop::ContextExceeded);
    assert_eq!(stop("new"), Stop::Other("new".into()));
}

#[test]
fn a_call_that_the_provider_did_not_close_is_marked_as_cut() {
    let begun =
        |index| start(index, json!({"type": "tool_use", "id": "t", "name": "Now", "input": {}}));
    for (blocks, cut) in [(vec![begun(0)], [true].as_slice()), (vec![begun(0), stop(0)], &[false])]
    {
        let (deltas, _) = run(Decoder::default(), &answer(blocks, "max_tokens"));
        assert_eq!(cut_blocks(&deltas), cut);
    }
}

#[test]
fn an_error_event_is_typed_by_its_kind() {
    let error = |kind: &str| {
        let event = json!({"type": "error", "error": {"type": kind, "message": "Overloaded"}});
        fault(Decoder::default(), &[begin(), event])
    };
    let message = "Overloaded (overloaded_error)".to_owned();
    assert_eq!(error("overloaded_error"), Fault::Reported { message, cause: Cause::Passes });
    let Fault::Reported { cause, .. } = error("invalid_request_error") else { panic!() };
    assert_eq!(cause, Cause::Lasts);
}

#[test]
fn a_stop_reason_ends_an_answer_without_message_stop_and_nothing_before_it_does() {
    let text = json!({"type": "text", "text": "hi"});
    let call = json!({"type": "tool_use", "id": "t", "name": "Now", "input": {}});
    for (block, reason, whole) in
        [(text, "end_turn", Stop::EndTurn), (call, "tool_use", Stop::ToolUse)]
    {
        let mut events = answer([start(0, block), stop(0)], reason);
        let last = run(Decoder::default(), &events);
        events.pop();
        assert_eq!(run(Decoder::default(), &events), last);
        assert_eq!(last.1, Some(whole));
        events.pop();
        assert_eq!(run(Decoder::default(), &events).1, None);
    }
}

#[test]
fn an_event_that_comes_twice_or_not_at_all_loses_no_words_and_makes_no_call() {
    let tool = json!({"type": "tool_use", "id": "t", "name": "Read", "input": {}});
    let text = json!({"type": "text", "text": ""});
    let events = answer(
        [
            start(0, text),
            delta(0, json!({"type": "text_delta", "text": "hi"})),
            stop(0),
            start(1, tool),
            delta(1, json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})),
            stop(1),
        ],
        "tool_use",
    );
    let expected = run(Decoder::default(), &events);
    for (place, event) in events.iter().enumerate() {
        let mut twice = events.clone();
        twice.insert(place, event.clone());
        let (deltas, stop) = run(Decoder::default(), &twice);
        let is_delta = event["type"] == "content_block_delta";
        if !is_delta {
            assert_eq!(
                (blocks(&deltas), stop),
                (blocks(&expected.0), expected.1.clone()),
                "{event}"
            );
        }
    }
    let mut without = events.clone();
    without.remove(1);
    let (deltas, _) = run(Decoder::default(), &without);
    assert_eq!(blocks(&deltas)[0], blocks(&expected.0)[0]);
    let mut late = events;
    late.swap(5, 6);
    let damaged = fault(Decoder::default(), &late);
    assert!(matches!(damaged, Fault::Garbled(_)), "{damaged:?}");
}

#[test]
fn a_message_in_one_piece_is_the_same_answer() {
    let (text, tool) = (
        json!({"type": "text", "text": "hi"}),
        json!({"type": "tool_use", "id": "t", "name": "Read", "input": {"a": 1}}),
    );
    let whole = json!({"type": "message", "content": [text, tool], "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "output_tokens": 3}});
    let (deltas, stop) = run(Decoder::default(), &[whole]);
    assert_eq!(stop, Some(Stop::ToolUse));
    let item = Item::message(Role::Assistant, "hi");
    assert_eq!(
        blocks(&deltas),
        [(item, Some(text)), (call("t", "Read", r#"{"a":1}"#), Some(tool))]
    );
    assert_eq!((usage(&deltas).input, usage(&deltas).output), (Some(5), Some(3)));
}

#[test]
fn a_conversation_is_sent_with_roles_joined_and_four_cache_markers() {
    let id = wire::call_id_of(b"functions.Read:0 0");
    let request = request(vec![
        plain(Item::message(Role::User, "one")),
        plain(Item::message(Role::Assistant, "two")),
        plain(call("functions.Read:0", "Read", "{\"path\":\"a\"}")),
        plain(call("c2", "Bash", "broken")),
        plain(Item::message(Role::System, "meanwhile")),
        plain(result("functions.Read:0", "3 lines")),
        plain(result("c2", "done")),
        plain(Item::message(Role::Assistant, "three")),
        plain(Item::message(Role::User, "")),
        plain(Item::message(Role::User, "four")),
    ]);
    let marker = json!({"type": "ephemeral"});
    let body = body(&request, &claude());
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": marker}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "two"},
                {"type": "tool_use", "id": id, "name": "Read", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "Bash", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": id, "content": "3 lines"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "done"},
                {"type": "text", "text": "meanwhile", "cache_control": marker},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "three"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "[an empty message]"},
                {"type": "text", "text": "four", "cache_control": marker},
            ]},
        ])
    );
    assert_eq!(
        body["system"],
        json!([{"type": "text", "text": "be brief", "cache_control": marker}])
    );
    assert_eq!(body["tools"][1].get("cache_control"), None, "the one of the system covers them");
    assert_eq!(body["tools"][1]["input_schema"]["type"], "object");
    assert_eq!(body.to_string().matches("ephemeral").count(), 4);
    assert_eq!((&body["max_tokens"], &body["stream"]), (&json!(4096), &json!(true)));
}

#[test]
fn native_blocks_go_back_verbatim_to_their_model_and_as_text_to_another() {
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let text = json!({"type": "text", "text": "ok", "citations": []});
    let said = |wrap: fn(Wire, Item, Value) -> crate::llm::Input| {
        request(vec![
            plain(Item::message(Role::User, "q")),
            wrap(Wire::Anthropic, thought("hm"), thinking.clone()),
            wrap(Wire::Anthropic, Item::Unknown(json!({"odd": 1})), json!({"odd": 1})),
            wrap(Wire::Anthropic, Item::message(Role::Assistant, "ok"), text.clone()),
        ])
    };
    let content = |request| body(&request, &claude())["messages"][1]["content"].clone();
    assert_eq!(content(said(native)), json!([thinking, {"odd": 1}, text]));
    assert_eq!(content(said(foreign)), json!([{"type": "text", "text": "ok"}]));
}

#[test]
fn a_failed_result_with_an_image_says_so_and_shows_it() {
    let (dir, rich) = rich_result("c1");
    let question = plain(Item::message(Role::User, "q"));
    let mut request = request(vec![question, plain(call("c1", "Read", "{}")), plain(rich)]);
    request.blobs = dir.path().into();
    let result = |model: &Model, request: &Request| {
        body(request, model)["messages"][2]["content"][0].clone()
    };
    let seen = result(&claude(), &request);
    assert_eq!(seen["is_error"], json!(true));
    assert_eq!(
        seen["content"],
        json!([
            {"type": "text", "text": "1 line\nthe content"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": DOT}},
        ])
    );
    let blind = Model { images: false, ..claude() };
    let words = result(&blind, &request)["content"][1]["text"].to_string();
    assert!(words.contains("cannot see"), "{words}");
    request.blobs = "/nowhere".into();
    let words = result(&claude(), &request)["content"][1]["text"].to_string();
    assert!(words.contains("/nowhere/b1"), "{words}");
}

#[test]
fn thinking_is_requested_in_the_form_that_the_model_takes() {
    let request = request(vec![plain(Item::message(Role::User, "q"))]);
    let thinking_of = |reasoning, setting: Value, request: &Request| {
        let request = Request {
            config: crate::protocol::RequestConfig {
                reasoning: Some(setting),
                ..request.config.clone()
            },
            ..request.clone()
        };
        body(&request, &Model { reasoning, ..claude() })
    };
    let budget = thinking_of(Reasoning::Budget, json!(2000), &request);
    assert_eq!(budget["thinking"], json!({"type": "enabled", "budget_tokens": 2000}));
    let most = thinking_of(Reasoning::Budget, json!(99_999), &request);
    assert_eq!(most["thinking"]["budget_tokens"], 4095);
    let effort = thinking_of(Reasoning::Effort, json!("high"), &request);
    assert_eq!(effort["thinking"]["type"], "adaptive");
    assert_eq!(effort["output_config"], json!({"effort": "high"}));
    for (form, setting) in [
        (Reasoning::Effort, json!(2000)),
        (Reasoning::Budget, json!("high")),
        (Reasoning::None, json!(2000)),
    ] {
        let other = thinking_of(form, setting, &request);
        assert_eq!(other.get("thinking"), None);
    }
}

#[test]
fn a_turn_that_another_model_began_with_a_call_goes_on_without_a_thinking_budget() {
    let asked = plain(Item::message(Role::User, "q"));
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let tool_use = json!({"type": "tool_use", "id": "c1", "name": "Read", "input": {}});
    let own_call = native(Wire::Anthropic, call("c1", "Read", "{}"), tool_use);
    let own_thought = native(Wire::Anthropic, thought("hm"), thinking);
    let thinks = |input: Vec<crate::llm::Input>| {
        let mut request = request(input);
        request.config.reasoning = Some(json!(2000));
        let model = Model { reasoning: Reasoning::Budget, ..claude() };
        body(&request, &model).get("thinking").is_some()
    };
    let answer = plain(result("c1", "ok"));
    assert!(!thinks(vec![asked.clone(), plain(call("c1", "Read", "{}")), answer.clone()]));
    let turn = [asked.clone(), own_thought, own_call.clone(), answer.clone()];
    assert!(thinks(turn.to_vec()));
    let later = [own_call, answer.clone()];
    assert!(thinks([turn.to_vec(), later.to_vec()].concat()));
    assert!(thinks(vec![asked.clone(), plain(call("c1", "Read", "{}")), answer, asked]));
}
