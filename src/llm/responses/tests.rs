use super::*;
use crate::config::models::Wire;
use crate::llm::Input;
use crate::llm::bench::{
    DOT, blocks, call, cut_blocks, fault, foreign, model, native, plain, request, result,
    rich_result, run, shown, thought, usage,
};
use crate::llm::cause::Cause;
use crate::llm::wire::Fault;
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::{Item, Role};

fn gpt() -> Model {
    Model { reasoning: Reasoning::Effort, ..model(Wire::Responses) }
}

fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

fn piece(kind: &str, index: u64, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": index, "delta": delta})
}

fn completed(output: &[Value]) -> Value {
    json!({"type": "response.completed", "response": {"status": "completed", "output": output,
        "usage": {"input_tokens": 1000, "input_tokens_details": {"cached_tokens": 800},
            "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 20}}}})
}

fn message(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn function_call(n: u64, name: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("call_{n}"),
        "name": name, "arguments": arguments})
}

/// The request as a server reads it.
fn body(request: &Request, model: &Model) -> Value {
    serde_json::from_slice(&super::body(request, model)).unwrap()
}

#[test]
fn text_streams_and_is_committed_whole_with_its_usage() {
    let whole = message("Hello");
    let empty = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    let events = [
        json!({"type": "response.created", "response": {}}),
        added(0, &empty),
        json!({"type": "response.content_part.added", "output_index": 0}),
        piece("output_text", 0, "Hel"),
        piece("output_text", 0, "lo"),
        done(0, &whole),
        completed(std::slice::from_ref(&whole)),
    ];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::EndTurn));
    assert_eq!(shown(&deltas), [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
    assert_eq!(blocks(&deltas), [(Item::message(Role::Assistant, "Hello"), Some(whole))]);
    assert_eq!(
        usage(&deltas),
        Usage {
            input: Some(1000),
            output: Some(50),
            cache_read: Some(800),
            cache_write: None,
            reasoning: Some(20),
        }
    );
}

#[test]
fn reasoning_keeps_its_encrypted_form_and_streams_its_summary() {
    let bare = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let part = |text: &str| json!({"type": "summary_text", "text": text});
    let whole = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "enc",
        "summary": [part("first"), part("second")]});
    let paragraph = json!({"type": "response.reasoning_summary_part.added", "output_index": 0});
    let events = [
        added(0, &bare),
        paragraph.clone(),
        piece("reasoning_summary_text", 0, "first"),
        paragraph,
        piece("reasoning_summary_text", 0, "second"),
        done(0, &whole),
        completed(std::slice::from_ref(&whole)),
    ];
    let (deltas, _) = run(Decoder::default(), &events);
    let think = |words: &str| Delta::Thinking(words.into());
    assert_eq!(
        shown(&deltas),
        [Delta::ThinkingStart, think("first"), think("\n\n"), think("second")]
    );
    let item = Item::Reasoning {
        text: "first\n\nsecond".into(),
        summary: vec!["first".into(), "second".into()],
        encrypted_content: Some("enc".into()),
        signature: None,
    };
    assert_eq!(blocks(&deltas), [(item, Some(whole))]);
}

#[test]
fn two_calls_that_stream_side_by_side_are_kept_apart() {
    let (one, two) = (function_call(1, "Read", ""), function_call(2, "Bash", ""));
    let events = [
        added(0, &one),
        added(1, &two),
        piece("function_call_arguments", 0, "{\"path\":"),
        piece("function_call_arguments", 1, "{}"),
        piece("function_call_arguments", 0, "\"a\"}"),
        done(0, &function_call(1, "Read", "{\"path\":\"a\"}")),
        done(1, &function_call(2, "Bash", "nonsense")),
        completed(&[]),
    ];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::ToolUse));
    let args = |id: &str, json: &str| Delta::ToolCallArgs { id: id.into(), json: json.into() };
    assert_eq!(
        shown(&deltas)[2..],
        [args("call_1", "{\"path\":"), args("call_2", "{}"), args("call_1", "\"a\"}")]
    );
    let expected = [
        (
            call("call_1", "Read", "{\"path\":\"a\"}"),
            Some(function_call(1, "Read", "{\"path\":\"a\"}")),
        ),
        (call("call_2", "Bash", "nonsense"), Some(function_call(2, "Bash", "{}"))),
    ];
    assert_eq!(blocks(&deltas), expected);
}

#[test]
fn items_that_a_server_never_closes_are_still_committed() {
    let two = function_call(2, "Bash", "{\"command\":\"ls\"}");
    let open = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    let events = [added(0, &open), piece("output_text", 0, "hi"), completed(&[message("hi"), two])];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::ToolUse));
    let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
    let expected =
        [Item::message(Role::Assistant, "hi"), call("call_2", "Bash", "{\"command\":\"ls\"}")];
    assert_eq!(items, expected);
    let bare = [piece("output_text", 0, "only pieces"), completed(&[])];
    let (deltas, _) = run(Decoder::default(), &bare);
    assert_eq!(blocks(&deltas)[0].0, Item::message(Role::Assistant, "only pieces"));
}

#[test]
fn an_item_whose_id_is_another_in_each_event_is_one_item() {
    let with_id = |id: &str| {
        let mut call = function_call(1, "Bash", "{}");
        call["id"] = json!(id);
        call
    };
    let other_call = json!({"type": "function_call", "id": "fc_d", "call_id": "call_9",
        "name": "Bash", "arguments": "{}"});
    for last in [with_id("fc_c"), other_call] {
        let mut hello = message("Hello");
        hello["id"] = json!("msg_c");
        let events = [
            added(
                0,
                &json!({"type": "message", "id": "msg_a", "role": "assistant", "content": []}),
            ),
            json!({"type": "response.output_text.delta", "output_index": 0, "item_id": "msg_b",
                "delta": "Hello"}),
            done(0, &message("Hello")),
            added(1, &with_id("fc_a")),
            done(1, &with_id("fc_b")),
            completed(&[hello, last]),
        ];
        let (deltas, stop) = run(Decoder::default(), &events);
        assert_eq!(stop, Some(Stop::ToolUse));
        let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
        let expected = [Item::message(Role::Assistant, "Hello"), call("call_1", "Bash", "{}")];
        assert_eq!(items, expected);
    }
}

#[test]
fn items_without_an_index_or_with_the_same_one_are_kept_apart() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let empty = json!({"type": "message", "id": "msg_1", "role": "assistant", "content": []});
    let piece = |kind: &str, id: &str, delta: &str| json!({"type": format!("response.{kind}.delta"), "item_id": id, "delta": delta});
    let item = |event: &str, item: &Value| json!({"type": format!("response.output_item.{event}"), "item": item});
    let mut events = vec![
        item("added", &reasoning),
        piece("reasoning_text", "rs_1", "thought"),
        item("added", &empty),
        piece("output_text", "msg_1", "the answer is the longer text"),
        item("done", &reasoning),
        item("done", &message("the answer is the longer text")),
        completed(&[]),
    ];
    for index in [None, Some(3)] {
        for event in &mut events {
            event["output_index"] = json!(index);
        }
        let (deltas, _) = run(Decoder::default(), &events);
        let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
        let [Item::Reasoning { text, .. }, answer] = items.as_slice() else {
            panic!("two items: {items:?}")
        };
        assert_eq!(text, "thought");
        assert_eq!(*answer, Item::message(Role::Assistant, "the answer is the longer text"));
    }
}

#[test]
fn a_thought_is_not_mixed_with_its_summary() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let events = [
        added(0, &reasoning),
        piece("reasoning_summary_text", 0, "in short"),
        piece("reasoning_text", 0, "at length"),
        done(0, &reasoning),
        completed(&[]),
    ];
    let (deltas, _) = run(Decoder::default(), &events);
    assert!(
        matches!(&blocks(&deltas)[0].0, Item::Reasoning { text, .. } if text == "at length"),
        "{deltas:?}"
    );
}

#[test]
fn unknown_items_and_events_are_kept_in_their_place() {
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let odd = json!({"type": "response.web_search_call.searching", "output_index": 0});
    let events = [odd.clone(), done(0, &search), completed(std::slice::from_ref(&search))];
    let (deltas, _) = run(Decoder::default(), &events);
    assert_eq!(deltas[0], Delta::Unknown(odd));
    assert_eq!(blocks(&deltas), [(Item::Unknown(search.clone()), Some(search))]);
}

#[test]
fn a_refusal_is_the_models_own_words() {
    let part = json!({"type": "refusal", "refusal": "I will not"});
    let whole = json!({"type": "message", "id": "m", "role": "assistant", "content": [part]});
    let events = [piece("refusal", 0, "I will not"), done(0, &whole), completed(&[])];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::Refusal("I will not".into())));
    let content = vec![crate::protocol::item::Content::Refusal { refusal: "I will not".into() }];
    assert_eq!(blocks(&deltas)[0].0, Item::Message { role: Role::Assistant, content });
}

#[test]
fn an_incomplete_answer_says_why() {
    let incomplete = |reason: &str| {
        let response = json!({"output": [], "incomplete_details": {"reason": reason}});
        json!({"type": "response.incomplete", "response": response})
    };
    let broken = fault(Decoder::default(), &[incomplete("")]);
    assert!(matches!(broken, Fault::Reported { cause: Cause::Passes, .. }), "{broken:?}");
    let incomplete = |reason: &str| run(Decoder::default(), &[incomplete(reason)]).1.unwrap();
    assert_eq!(incomplete("max_output_tokens"), Stop::MaxTokens);
    assert_eq!(incomplete("content_filter"), Stop::Refusal("content_filter".into()));
    assert_eq!(incomplete("new"), Stop::Other("new".into()));
}

#[test]
fn calls_that_the_provider_did_not_complete_are_marked_as_cut() {
    let call = |n: u64, status: &str| {
        let mut call = function_call(n, "Now", "");
        call["status"] = json!(status);
        call
    };
    let response = |output: &[Value]| {
        let response =
            json!({"output": output, "incomplete_details": {"reason": "max_output_tokens"}});
        json!({"type": "response.incomplete", "response": response})
    };
    let (first, second) = (call(0, "in_progress"), call(1, "in_progress"));
    let open = [added(0, &first), added(1, &second), response(&[])];
    assert_eq!(cut_blocks(&run(Decoder::default(), &open).0), [true, true]);
    let said =
        [done(0, &call(0, "completed")), response(&[call(0, "completed"), call(1, "incomplete")])];
    assert_eq!(cut_blocks(&run(Decoder::default(), &said).0), [false, true]);
    assert_eq!(run(Decoder::default(), &said).1, Some(Stop::MaxTokens));
}

#[test]
fn errors_inside_the_stream_are_typed() {
    let failed = json!({"type": "response.failed",
        "response": {"error": {"code": "server_error", "message": "oops"}}});
    let message = "oops (server_error)".to_owned();
    let expected = Fault::Reported { message, cause: Cause::Passes };
    assert_eq!(fault(Decoder::default(), &[failed]), expected);
    for event in [
        json!({"type": "error", "code": "invalid_prompt", "message": "no"}),
        json!({"type": "error", "error": {"code": "invalid_prompt", "message": "no"}}),
        json!({"error": {"code": "invalid_prompt", "message": "no"}}),
    ] {
        let message = "no (invalid_prompt)".to_owned();
        let expected = Fault::Reported { message, cause: Cause::Lasts };
        assert_eq!(fault(Decoder::default(), &[event]), expected);
    }
}

#[test]
fn what_a_final_event_holds_completes_what_deltas_lacked() {
    let field = |kind: &str, key: &str, text: &str| json!({"type": format!("response.{kind}.done"), "output_index": 0, key: text});
    let mut empty = message("");
    let thought = json!({"type": "reasoning", "id": "r", "summary": []});
    for content in [json!([]), json!([{"type": "output_text", "text": ""}])] {
        empty["content"] = content;
        let events = [
            added(0, &empty),
            piece("output_text", 0, "he"),
            field("output_text", "text", "hello"),
            done(0, &empty),
            completed(&[]),
        ];
        let (deltas, _) = run(Decoder::default(), &events);
        assert_eq!(blocks(&deltas)[0].0, Item::message(Role::Assistant, "hello"));
    }
    let whole = field("function_call_arguments", "arguments", "{\"a\":1}");
    let read = function_call(0, "Read", "");
    for pieces in [vec![], vec![piece("function_call_arguments", 0, "{\"a\"")]] {
        let mut events = vec![added(0, &read)];
        events.extend(pieces);
        events.extend([whole.clone(), done(0, &read), completed(&[])]);
        let (deltas, stop) = run(Decoder::default(), &events);
        let Item::ToolCall { arguments, .. } = &blocks(&deltas)[0].0 else { panic!() };
        assert_eq!((arguments.as_str(), stop), ("{\"a\":1}", Some(Stop::ToolUse)));
    }
    for kind in ["reasoning_text", "reasoning_summary_text"] {
        let events =
            [added(0, &thought), field(kind, "text", "hm"), done(0, &thought), completed(&[])];
        let Item::Reasoning { text, .. } = &blocks(&run(Decoder::default(), &events).0)[0].0 else {
            panic!()
        };
        assert_eq!(text, "hm");
    }
}

#[test]
fn an_event_that_comes_twice_makes_no_second_item() {
    let (text, read) = (message("hi"), function_call(1, "Read", "{\"a\":1}"));
    let events = [
        added(0, &text),
        done(0, &text),
        added(1, &read),
        done(1, &read),
        completed(&[text.clone(), read.clone()]),
    ];
    let expected = run(Decoder::default(), &events);
    for (place, event) in events.iter().enumerate() {
        let mut twice = events.to_vec();
        twice.insert(place, event.clone());
        let (deltas, stop) = run(Decoder::default(), &twice[..6 - usize::from(place == 4)]);
        assert_eq!((blocks(&deltas), stop), (blocks(&expected.0), expected.1.clone()), "{event}");
    }
}

#[test]
fn a_response_in_one_piece_is_the_same_answer() {
    let output = [message("hi"), function_call(1, "Read", "{}")];
    let whole =
        json!({"object": "response", "status": "completed", "output": output, "error": null});
    let (deltas, stop) = run(Decoder::default(), &[whole]);
    assert_eq!((blocks(&deltas).len(), stop), (2, Some(Stop::ToolUse)));
    let failed = json!({"object": "response", "status": "failed", "error": {"code": "server_error", "message": "x"}});
    assert!(matches!(fault(Decoder::default(), &[failed]), Fault::Reported { .. }));
}

#[test]
fn a_stream_without_its_last_event_was_cut() {
    let events = [done(0, &message("hi"))];
    assert_eq!(run(Decoder::default(), &events).1, None);
}

#[test]
fn a_request_is_stateless_and_names_its_cache() {
    let request = request(vec![
        plain(Item::message(Role::User, "one")),
        plain(call("c1", "Read", "")),
        plain(result("c1", "3 lines")),
        plain(Item::message(Role::System, "note")),
        plain(Item::message(Role::Assistant, "two")),
    ]);
    let body = body(&request, &gpt());
    assert_eq!(
        body["input"],
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"type": "function_call", "call_id": "c1", "name": "Read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "3 lines"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "note"}]},
            {"type": "message", "role": "assistant", "content": "two"},
        ])
    );
    assert_eq!((&body["store"], &body["stream"]), (&json!(false), &json!(true)));
    let other = Request { conversation: "another".into(), ..request.clone() };
    assert_eq!(body["prompt_cache_key"], wire::cache_key(&other), "one prompt, one cache");
    let other = Request { system: "be long".into(), ..request.clone() };
    assert_ne!(body["prompt_cache_key"], wire::cache_key(&other));
    assert_eq!(body["instructions"], "be brief");
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["reasoning"], json!({"summary": "auto"}));
    assert_eq!(body["tools"][0]["name"], "Read");
    assert_eq!(body["tools"][0]["strict"], json!(false));
}

#[test]
fn reasoning_settings_go_only_to_models_that_reason() {
    let mut request = request(vec![]);
    request.config.reasoning = Some(json!("low"));
    let effort = body(&request, &gpt());
    assert_eq!(effort["reasoning"], json!({"effort": "low", "summary": "auto"}));
    let plain = body(&request, &model(Wire::Responses));
    assert_eq!((plain.get("reasoning"), plain.get("include")), (None, None));
}

#[test]
fn native_items_go_back_verbatim_to_their_model_and_as_text_to_another() {
    let reasoning =
        json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "e", "summary": []});
    let said = |wrap: fn(Wire, Item, Value) -> Input| {
        let input = vec![
            wrap(Wire::Responses, thought("hm"), reasoning.clone()),
            wrap(Wire::Responses, Item::message(Role::Assistant, "hi"), message("hi")),
        ];
        body(&request(input), &gpt())["input"].clone()
    };
    assert_eq!(said(native), json!([reasoning, message("hi")]));
    let text = json!({"type": "message", "role": "assistant", "content": "hi"});
    assert_eq!(said(foreign), json!([text]));
}

#[test]
fn thoughts_that_lead_nowhere_are_left_out() {
    let rs = |id: &str| json!({"type": "reasoning", "id": id, "encrypted_content": "e"});
    let bare = json!({"type": "reasoning", "id": "rs_4", "summary": []});
    let think = |value| native(Wire::Responses, thought("hm"), value);
    let fc = function_call(1, "Read", "{}");
    let input = vec![
        think(rs("rs_1")),
        plain(Item::message(Role::User, "go on")),
        think(rs("rs_2")),
        native(Wire::Responses, call("call_1", "Read", "{}"), fc.clone()),
        plain(result("call_1", "ok")),
        think(bare),
        native(Wire::Responses, Item::message(Role::Assistant, "hi"), message("hi")),
        think(rs("rs_3")),
    ];
    let kinds: Vec<Value> = body(&request(input), &gpt())["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item.get("id").unwrap_or(&item["type"]).clone())
        .collect();
    assert_eq!(json!(kinds), json!(["message", "rs_2", "fc_1", "function_call_output", "msg_1"]));
}

#[test]
fn a_failed_result_with_an_image_says_so_and_shows_it() {
    let (dir, rich) = rich_result("c1");
    let mut request = request(vec![plain(call("c1", "Read", "{}")), plain(rich)]);
    request.blobs = dir.path().into();
    assert_eq!(
        body(&request, &gpt())["input"][1]["output"],
        json!([
            {"type": "input_text", "text": "error: 1 line\nthe content"},
            {"type": "input_image", "image_url": format!("data:image/png;base64,{DOT}")},
        ])
    );
}
