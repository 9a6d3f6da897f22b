use super::*;
use crate::config::models::Wire;
use crate::llm::bench::{
    DOT, blocks, call, cut_blocks, fault, foreign, model, native, plain, request, result,
    rich_result, run, shown, thought, usage,
};
use crate::llm::cause::Cause;
use crate::llm::sse::Event;
use crate::llm::wire::{Decode as _, Fault, Progress};
use crate::llm::{Delta, Input, Stop, Usage};
use crate::protocol::{Item, Role};

fn server() -> Model {
    model(Wire::Chat)
}

fn chunk(delta: Value) -> Value {
    json!({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn call_piece(fields: Value, name: Option<&str>, arguments: &str) -> Value {
    let mut call = fields;
    call["function"] = json!({"arguments": arguments});
    if let Some(name) = name {
        call["function"]["name"] = json!(name);
    }
    chunk(json!({"tool_calls": [call]}))
}

fn done() -> Value {
    json!("[DONE]")
}

fn items(events: &[Value]) -> Vec<Item> {
    let (deltas, _) = run(Decoder::default(), events);
    blocks(&deltas).into_iter().map(|(item, _)| item).collect()
}

/// The request as a server reads it.
fn body(request: &Request, model: &Model) -> Value {
    serde_json::from_slice(&super::body(request, model)).unwrap()
}

#[test]
fn text_streams_and_is_committed_whole_with_its_usage() {
    let events = [
        chunk(json!({"role": "assistant", "content": "", "refusal": null})),
        chunk(json!({"content": "Hel"})),
        chunk(json!({"content": "lo"})),
        finish("stop"),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 64},
            "completion_tokens_details": {"reasoning_tokens": 4}}}),
        done(),
    ];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::EndTurn));
    assert_eq!(shown(&deltas), [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
    assert_eq!(blocks(&deltas), [(Item::message(Role::Assistant, "Hello"), None)]);
    assert_eq!(
        usage(&deltas),
        Usage {
            input: Some(100),
            output: Some(9),
            cache_read: Some(64),
            cache_write: None,
            reasoning: Some(4),
        }
    );
}

#[test]
fn calls_are_complete_when_the_finish_reason_says_tool_calls() {
    let events = [
        chunk(json!({"role": "assistant", "content": null})),
        chunk(json!({"content": "I look."})),
        call_piece(json!({"index": 0, "id": "call_a", "type": "function"}), Some("Read"), ""),
        call_piece(json!({"index": 0}), None, "{\"path\":"),
        call_piece(json!({"index": 0}), None, "\"a\"}"),
        call_piece(json!({"index": 1, "id": "call_b", "type": "function"}), Some("Bash"), "{}"),
        finish("tool_calls"),
        done(),
    ];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::ToolUse));
    let args = |id: &str, json: &str| Delta::ToolCallArgs { id: id.into(), json: json.into() };
    let begin = |id: &str, name: &str| Delta::ToolCallStart { id: id.into(), name: name.into() };
    assert_eq!(
        shown(&deltas),
        [
            Delta::Text("I look.".into()),
            begin("call_a", "Read"),
            args("call_a", "{\"path\":"),
            args("call_a", "\"a\"}"),
            begin("call_b", "Bash"),
            args("call_b", "{}"),
        ]
    );
    let function = json!({"name": "Read", "arguments": "{\"path\":\"a\"}"});
    let read = json!({"id": "call_a", "type": "function", "function": function});
    let bash = json!({"id": "call_b", "type": "function", "function": {"name": "Bash", "arguments": "{}"}});
    assert_eq!(
        blocks(&deltas),
        [
            (Item::message(Role::Assistant, "I look."), None),
            (call("call_a", "Read", "{\"path\":\"a\"}"), Some(read)),
            (call("call_b", "Bash", "{}"), Some(bash)),
        ]
    );
}

/// The names and arguments of the calls, without their ids, which are made up where they lack.
fn calls(events: &[Value]) -> Vec<(String, String)> {
    let call = |item| match item {
        Item::ToolCall { call_id, name, arguments } => {
            assert!(!call_id.is_empty());
            (name, arguments)
        }
        other => panic!("{other:?}"),
    };
    items(events).into_iter().map(call).collect()
}

fn two_reads() -> Vec<(String, String)> {
    ["a", "b"].map(|path| ("Read".into(), format!("{{\"path\":\"{path}\"}}"))).to_vec()
}

#[test]
fn whole_calls_under_one_index_are_two_calls() {
    for fields in [
        [json!({"index": 0, "id": "x1"}), json!({"index": 0, "id": "x2"})],
        [json!({"index": 0}), json!({"index": 0})],
        [json!({"index": 0, "id": ""}), json!({"index": 1, "id": ""})],
        [json!({"id": "x1"}), json!({"id": "x2"})],
        [json!({}), json!({})],
    ] {
        let [one, two] = fields;
        let events = [
            call_piece(one, Some("Read"), "{\"path\":\"a\"}"),
            call_piece(two, Some("Read"), "{\"path\":\"b\"}"),
            finish("stop"),
            done(),
        ];
        assert_eq!(calls(&events), two_reads());
    }
}

#[test]
fn a_call_of_any_number_of_pieces_is_read_in_one_pass() {
    const PIECES: usize = 2_000;
    let piece = "x".repeat(16 * 1024);
    let first = call_piece(json!({"index": 0, "id": "a"}), Some("Write"), "{\"content\":\"");
    let middle = call_piece(json!({"index": 0}), None, &piece);
    let last = call_piece(json!({"index": 0}), None, "\"}");
    let events = std::iter::once(first).chain(std::iter::repeat_n(middle, PIECES)).chain([
        last,
        finish("tool_calls"),
        done(),
    ]);
    let found = calls(&events.collect::<Vec<_>>());
    let [(_, arguments)] = &found[..] else { panic!("{} calls", found.len()) };
    assert_eq!(arguments.len(), PIECES * piece.len() + "{\"content\":\"\"}".len());
}

#[test]
fn pieces_of_a_call_find_each_other_without_index_or_id() {
    for (first, later, name) in [
        (json!({"id": "x1"}), json!({}), None),
        (json!({"id": "x1"}), json!({"id": "x1"}), Some("Read")),
        (json!({"index": 0}), json!({"index": 0}), Some("Read")),
        (json!({"index": 0, "id": "x1"}), json!({"index": 0, "id": "x1"}), Some("Read")),
    ] {
        let events = [
            call_piece(first, Some("Read"), "{\"path\":"),
            call_piece(later, name, "\"a\"}"),
            finish("tool_calls"),
            done(),
        ];
        assert_eq!(calls(&events), two_reads()[..1]);
    }
}

#[test]
fn words_between_the_pieces_of_a_call_do_not_end_it() {
    for words in ["\n", "let me see"] {
        let events = [
            call_piece(json!({"index": 0, "id": "x"}), Some("Read"), "{\"path\":"),
            chunk(json!({"content": words})),
            call_piece(json!({"index": 0}), None, "\"a\""),
            chunk(json!({"content": words})),
            call_piece(json!({"index": 0}), None, "}"),
            finish("tool_calls"),
        ];
        let mut found = items(&events);
        let Some(Item::ToolCall { arguments, .. }) = found.pop() else { panic!("{found:?}") };
        assert_eq!(arguments, "{\"path\":\"a\"}");
        let said = Item::message(Role::Assistant, words.repeat(2));
        assert_eq!(found, if words == "\n" { vec![] } else { vec![said] });
    }
}

#[test]
fn white_space_between_the_pieces_of_a_thought_does_not_split_it() {
    let events = [
        chunk(json!({"content": "\n"})),
        chunk(json!({"reasoning_content": "a"})),
        chunk(json!({"content": "\n"})),
        chunk(json!({"reasoning_content": "b"})),
        chunk(json!({"content": "\n"})),
        chunk(json!({"content": "\nok"})),
        finish("stop"),
    ];
    assert_eq!(items(&events), [thought("ab"), Item::message(Role::Assistant, "\n\nok")]);
    assert_eq!(items(&[chunk(json!({"content": " \n"})), finish("stop")]), []);
}

#[test]
fn a_finish_reason_in_each_chunk_splits_no_block_and_does_not_shorten_the_wait() {
    let mut call = call_piece(json!({"index": 0, "id": "x"}), Some("Read"), "{\"path\":");
    let mut events =
        vec![chunk(json!({"content": "a"})), chunk(json!({"content": "b"})), call.take()];
    events.push(call_piece(json!({"index": 0}), None, "\"a\"}"));
    for event in &mut events {
        event["choices"][0]["finish_reason"] = json!("stop");
    }
    let read = items(&events);
    assert_eq!(read.len(), 2);
    assert_eq!(read[0], Item::message(Role::Assistant, "ab"));
    let mut decoder = Decoder::default();
    for event in [finish("stop"), chunk(json!({"content": "b"}))] {
        let event = Event { name: String::new(), data: event.to_string() };
        decoder.event(&event, &mut Vec::new()).unwrap();
    }
    assert_eq!(decoder.progress(), Progress::Open);
}

#[test]
fn a_message_in_one_piece_is_an_answer_and_its_repetition_is_none() {
    let whole = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": "hi",
        "tool_calls": [{"id": "x", "type": "function", "function": {"name": "Read", "arguments": "{\"path\":\"a\"}"}}]}}]});
    let once = items(std::slice::from_ref(&whole));
    assert_eq!(once.len(), 2);
    let streamed = [
        chunk(json!({"content": "hi"})),
        call_piece(json!({"index": 0, "id": "x"}), Some("Read"), "{\"path\":\"a\"}"),
        whole,
    ];
    assert_eq!(items(&streamed), once);
}

#[test]
fn a_call_in_the_form_before_there_were_several_is_read() {
    let call = |name: Option<&str>, arguments: &str| {
        let mut function = json!({"arguments": arguments});
        function["name"] = json!(name);
        chunk(json!({"function_call": function}))
    };
    let events = [call(Some("Read"), "{\"path\":"), call(None, "\"a\"}"), finish("function_call")];
    assert_eq!(calls(&events), two_reads()[..1]);
}

#[test]
fn usage_is_read_wherever_a_server_puts_it() {
    let counts = json!({"prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 4});
    let mut in_choice = finish("stop");
    in_choice["choices"][0]["usage"] = counts.clone();
    let mut in_null = json!({"choices": [], "usage": null});
    in_null["x_groq"] = json!({"usage": counts});
    for event in
        [in_choice, in_null, json!({"choices": [], "usage": counts}), json!({"usage": counts})]
    {
        let (deltas, _) = run(Decoder::default(), &[event, done()]);
        let usage = usage(&deltas);
        assert_eq!((usage.input, usage.output, usage.cache_read), (Some(9), Some(3), Some(4)));
    }
}

#[test]
fn the_pieces_of_a_name_are_one_name() {
    for names in [["Bash", "Output"], ["BashOutput", "BashOutput"], ["BashOutput", ""]] {
        let piece = |name| call_piece(json!({"index": 0}), Some(name), "");
        let arguments = call_piece(json!({"index": 0}), None, "{}");
        let events = [piece(names[0]), piece(names[1]), arguments, finish("tool_calls"), done()];
        let (deltas, _) = run(Decoder::default(), &events);
        let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
        let [Item::ToolCall { name, .. }] = &items[..] else { panic!("{items:?}") };
        assert_eq!(name, "BashOutput", "{names:?}");
    }
}

#[test]
fn arguments_that_are_encoded_twice_are_the_object_in_them() {
    let events = [
        call_piece(json!({"index": 0, "id": "c"}), Some("Bash"), r#""{\"command\": "#),
        call_piece(json!({"index": 0}), None, r#"\"ls\"}""#),
        finish("tool_calls"),
        done(),
    ];
    let (deltas, _) = run(Decoder::default(), &events);
    assert_eq!(cut_blocks(&deltas), [false]);
    let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
    let [Item::ToolCall { arguments, .. }] = &items[..] else { panic!("{items:?}") };
    assert_eq!(arguments, r#"{"command":"ls"}"#);
}

#[test]
fn arguments_may_be_an_object_and_come_before_the_name() {
    let object = json!({"tool_calls": [{"index": 0, "function": {"name": "Read", "arguments": {"path": "a"}}}]});
    assert_eq!(calls(&[chunk(object), finish("stop"), done()]), two_reads()[..1]);
    let events = [
        call_piece(json!({"index": 0, "id": "x"}), None, "{\"path\":"),
        call_piece(json!({"index": 0}), Some("Read"), "\"a\"}"),
        finish("tool_calls"),
    ];
    assert_eq!(calls(&events), two_reads()[..1]);
}

#[test]
fn thinking_goes_with_every_call_to_the_servers_that_demand_it() {
    let input = vec![
        plain(Item::message(Role::User, "q")),
        foreign(Wire::Chat, call("c1", "Read", "{}"), json!({})),
        plain(result("c1", "ok")),
        plain(Item::message(Role::Assistant, "so")),
        plain(Item::message(Role::User, "and?")),
    ];
    let request = request(input);
    let thinking = |host: &str| {
        let model = Model { base_url: format!("https://{host}/v1"), ..server() };
        let messages = body(&request, &model)["messages"].clone();
        messages.as_array().unwrap().iter().map(|m| m.get("reasoning_content").is_some()).collect()
    };
    let none: Vec<bool> = thinking("api.groq.com");
    assert_eq!(none, [false; 6]);
    for host in ["api.deepseek.com", "api.moonshot.ai"] {
        let with_calls: Vec<bool> = thinking(host);
        assert_eq!(with_calls, [false, false, true, false, false, false]);
    }
}

#[test]
fn thinking_comes_under_either_name_and_ends_where_the_text_begins() {
    for name in ["reasoning_content", "reasoning"] {
        let events = [
            chunk(json!({name: "let ", "content": null})),
            chunk(json!({name: "me", "content": ""})),
            chunk(json!({"content": "ok"})),
            finish("stop"),
            done(),
        ];
        let (deltas, _) = run(Decoder::default(), &events);
        let think = |words: &str| Delta::Thinking(words.into());
        let expected = [Delta::ThinkingStart, think("let "), think("me"), Delta::Text("ok".into())];
        assert_eq!(shown(&deltas), expected);
        assert_eq!(
            blocks(&deltas),
            [
                (thought("let me"), Some(json!({name: "let me"}))),
                (Item::message(Role::Assistant, "ok"), None),
            ]
        );
    }
    let twice = [chunk(json!({"reasoning_content": "x", "reasoning": "x"})), finish("stop")];
    assert_eq!(items(&twice), [thought("x")]);
}

#[test]
fn the_thinking_of_routers_is_joined_piece_by_piece_and_kept_to_the_end() {
    let text = |words: &str| json!({"type": "reasoning.text", "text": words, "index": 0});
    let signed = json!({"type": "reasoning.text", "signature": "sig", "index": 0});
    let secret = json!({"type": "reasoning.encrypted", "data": "enc", "index": 1});
    let events = [
        chunk(json!({"reasoning": "a", "reasoning_details": [text("a")]})),
        chunk(json!({"reasoning": "b", "reasoning_details": [text("b")]})),
        chunk(json!({"reasoning_details": [signed]})),
        chunk(json!({"content": "ok"})),
        chunk(json!({"reasoning_details": [secret]})),
        finish("stop"),
    ];
    let (deltas, _) = run(Decoder::default(), &events);
    let natives: Vec<Value> =
        blocks(&deltas).into_iter().filter_map(|(_, native)| native).collect();
    let joined = json!({"type": "reasoning.text", "text": "ab", "signature": "sig", "index": 0});
    assert_eq!(
        natives,
        [
            json!({"reasoning": "ab", "reasoning_details": [joined]}),
            json!({"reasoning_details": [secret]}),
        ]
    );
}

#[test]
fn content_in_parts_is_read_and_what_is_unknown_is_kept() {
    let thinking = json!({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]});
    let odd = json!({"type": "reference", "ids": [1]});
    let content = json!([thinking, {"type": "text", "text": "ok"}, odd]);
    let events =
        [chunk(json!({"content": content, "audio": {"id": "x"}, "name": null})), finish("stop")];
    let (deltas, _) = run(Decoder::default(), &events);
    let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
    assert_eq!(items, [thought("hm"), Item::message(Role::Assistant, "ok")]);
    assert!(deltas.contains(&Delta::Unknown(odd)));
    assert!(deltas.contains(&Delta::Unknown(json!({"audio": {"id": "x"}}))));
    let odd = json!({"type": "new_event"});
    assert_eq!(run(Decoder::default(), &[odd.clone(), done()]).0, [Delta::Unknown(odd)]);
}

#[test]
fn signatures_beside_a_call_are_kept_with_it() {
    let extra = json!({"google": {"thought_signature": "s"}});
    let piece = json!({"index": 0, "id": "x", "extra_content": extra});
    let events = [call_piece(piece, Some("Read"), "{}"), finish("tool_calls")];
    let (deltas, _) = run(Decoder::default(), &events);
    assert_eq!(blocks(&deltas)[0].1.as_ref().unwrap()["extra_content"], extra);
}

#[test]
fn either_a_finish_reason_or_done_ends_an_answer_and_nothing_else_does() {
    let hi = chunk(json!({"content": "hi"}));
    let read = call_piece(json!({"index": 0, "id": "x"}), Some("Read"), "{}");
    let stop = |events: &[Value]| run(Decoder::default(), events).1;
    assert_eq!(stop(&[hi.clone(), finish("stop")]), Some(Stop::EndTurn));
    assert_eq!(stop(&[hi.clone(), done()]), Some(Stop::EndTurn));
    assert_eq!(stop(&[read.clone(), done()]), Some(Stop::ToolUse));
    assert_eq!(stop(&[read.clone(), finish("stop")]), Some(Stop::ToolUse));
    assert_eq!(stop(&[hi.clone(), finish("length")]), Some(Stop::MaxTokens));
    assert_eq!(
        stop(&[hi.clone(), finish("content_filter")]),
        Some(Stop::Refusal("content_filter".into()))
    );
    assert_eq!(stop(&[hi.clone(), finish("odd")]), Some(Stop::Other("odd".into())));
    assert_eq!(stop(&[hi.clone(), finish("model_length")]), Some(Stop::ContextExceeded));
    assert_eq!(stop(&[read.clone(), finish("length")]), Some(Stop::MaxTokens));
    assert_eq!(stop(&[read.clone(), finish("odd")]), Some(Stop::Other("odd".into())));
    for broken in ["error", "abort", "insufficient_system_resource", "network_error"] {
        let failed = fault(Decoder::default(), &[hi.clone(), finish(broken)]);
        assert!(
            matches!(failed, Fault::Reported { cause: Cause::Passes, .. }),
            "{broken}: {failed:?}"
        );
    }
    assert_eq!(stop(&[hi, read]), None);
}

#[test]
fn a_call_without_a_closed_object_of_arguments_is_marked_as_cut() {
    for (arguments, cut) in
        [("", true), ("{\"a\": \"}", true), ("{}", false), ("{\"a\": 1}", false)]
    {
        let piece = call_piece(json!({"index": 0, "id": "x"}), Some("Read"), arguments);
        let (deltas, _) = run(Decoder::default(), &[piece, finish("length")]);
        assert_eq!(cut_blocks(&deltas), [cut], "{arguments}");
    }
}

#[test]
fn a_refusal_is_the_models_own_words() {
    let events =
        [chunk(json!({"refusal": "I "})), chunk(json!({"refusal": "won't"})), finish("stop")];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::Refusal("I won't".into())));
    let content = vec![crate::protocol::item::Content::Refusal { refusal: "I won't".into() }];
    assert_eq!(blocks(&deltas)[0].0, Item::Message { role: Role::Assistant, content });
}

#[test]
fn an_error_inside_the_stream_is_typed() {
    let error = |code: Value| {
        let event = json!({"error": {"message": "no", "code": code}, "choices": []});
        let Fault::Reported { message, cause } = fault(Decoder::default(), &[event]) else {
            panic!()
        };
        (message, cause == Cause::Passes)
    };
    assert_eq!(error(json!(502)), ("no (502)".into(), true));
    let mut in_choice = finish("error");
    in_choice["choices"][0]["error"] = json!({"message": "gone", "code": 502});
    let expected = Fault::Reported { message: "gone (502)".into(), cause: Cause::Passes };
    assert_eq!(fault(Decoder::default(), &[in_choice]), expected);
    assert!(!error(json!("context_length_exceeded")).1);
}

#[test]
fn a_conversation_is_sent_in_the_shape_that_strict_servers_take() {
    let request = request(vec![
        plain(Item::message(Role::User, "one")),
        plain(Item::message(Role::System, "note")),
        plain(Item::message(Role::Assistant, "two")),
        plain(call("c1", "Read", "{\"path\":\"a\"}")),
        plain(call("c2", "Bash", "[]")),
        plain(result("c1", "3 lines")),
        plain(result("c2", "done")),
        plain(call("c3", "Bash", "{}")),
        plain(result("c3", "done")),
        plain(Item::message(Role::User, "three")),
    ]);
    let body = body(&request, &server());
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "one\n\nnote"},
            {"role": "assistant", "content": "two",
                "tool_calls": [call("c1", "Read", "{\"path\":\"a\"}"), call("c2", "Bash", "{}")]},
            {"role": "tool", "tool_call_id": "c1", "content": "3 lines"},
            {"role": "tool", "tool_call_id": "c2", "content": "done"},
            {"role": "assistant", "content": null, "tool_calls": [call("c3", "Bash", "{}")]},
            {"role": "tool", "tool_call_id": "c3", "content": "done"},
            {"role": "user", "content": "three"},
        ])
    );
    assert_eq!(body["tools"][1]["function"]["name"], "Bash");
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
}

#[test]
fn images_follow_the_last_result_of_their_batch() {
    let (dir, rich) = rich_result("c1");
    let mut request = request(vec![
        plain(call("c1", "Read", "{}")),
        plain(call("c2", "Read", "{}")),
        plain(rich),
        plain(result("c2", "ok")),
        plain(Item::message(Role::User, "and?")),
    ]);
    request.blobs = dir.path().into();
    let messages = body(&request, &server())["messages"].clone();
    assert_eq!(messages[2]["content"], "error: 1 line\nthe content");
    assert_eq!(messages[3]["tool_call_id"], "c2");
    assert_eq!(
        messages[4]["content"],
        json!([
            {"type": "text", "text": "Images of the tool results above:"},
            {"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{DOT}")}},
            {"type": "text", "text": "and?"},
        ])
    );
}

#[test]
fn a_model_of_mistral_speaks_between_a_result_and_what_a_person_says() {
    let (dir, rich) = rich_result("c1");
    let mut request = request(vec![
        plain(Item::message(Role::User, "go")),
        plain(call("c1", "Read", "{}")),
        plain(rich),
        plain(call("c2", "Read", "{}")),
        plain(result("c2", "ok")),
        plain(Item::message(Role::User, "not that")),
        plain(Item::message(Role::User, "this")),
    ]);
    request.blobs = dir.path().into();
    let roles = |model: &Model| {
        let body = body(&request, model);
        let messages = body["messages"].as_array().unwrap().clone();
        messages
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let others = ["system", "user", "assistant", "tool", "user", "assistant", "tool", "user"];
    assert_eq!(roles(&server()), others);
    let mistral = [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ];
    assert_eq!(roles(&Model { provider: "mistral".into(), ..server() }), mistral);
    assert_eq!(roles(&Model { model: "mistralai/Devstral-Small".into(), ..server() }), mistral);
}

#[test]
fn a_model_gets_its_thinking_back_where_it_made_calls_also_in_later_turns() {
    let think = |words: &str| {
        let value = json!({"reasoning_content": words, "reasoning_details": [{"text": words}]});
        native(Wire::Chat, thought(words), value)
    };
    let question = || plain(Item::message(Role::User, "q"));
    let said = plain(Item::message(Role::Assistant, "a"));
    let used = [plain(call("c1", "Read", "{}")), plain(result("c1", "ok"))];
    let turn = |thinking| [vec![question(), thinking], used.to_vec()].concat();
    let without_calls = [question(), think("without use"), said.clone()];
    let first = [turn(think("old")), vec![think("then"), said], without_calls.to_vec()].concat();
    let messages = |input: &[Input]| body(&request(input.to_vec()), &server())["messages"].clone();
    let before = messages(&first);
    let all = messages(&[first, turn(think("new"))].concat());
    assert_eq!(before.as_array().unwrap()[..], all.as_array().unwrap()[..7], "the beginning stays");
    assert_eq!(all[2]["reasoning_content"], "old");
    assert_eq!(all[2]["reasoning_details"], json!([{"text": "old"}]));
    assert_eq!(all[4]["reasoning_content"], "then");
    assert_eq!(all[6], json!({"role": "assistant", "content": "a"}));
    assert_eq!(all[8]["reasoning_content"], "new");
    let other = foreign(Wire::Chat, thought("x"), json!({"reasoning_content": "x"}));
    let messages = body(&request(vec![question(), other]), &server())["messages"].clone();
    assert_eq!(messages.as_array().unwrap().len(), 2);
}

#[test]
fn each_server_gets_the_settings_it_knows() {
    let mut request = request(vec![plain(Item::message(Role::User, "q"))]);
    request.config.max_tokens = Some(100);
    request.config.reasoning = Some(json!("low"));
    let openai = Model {
        provider: "openai".into(),
        own_url: true,
        url_variable: None,
        dialect: None,
        reasoning: Reasoning::Effort,
        ..server()
    };
    let own = body(&request, &openai);
    assert_eq!(own["max_completion_tokens"], 100);
    assert_eq!(own["prompt_cache_key"], wire::cache_key(&request));
    assert_eq!(own["reasoning_effort"], "low");
    assert_eq!(own.get("max_tokens"), None);
    let other = body(&request, &server());
    assert_eq!(other["max_tokens"], 100);
    assert_eq!((other.get("prompt_cache_key"), other.get("reasoning_effort")), (None, None));
}

#[test]
fn anthropics_models_behind_a_router_get_cache_markers() {
    let claude = Model {
        provider: "openrouter".into(),
        model: "anthropic/claude".into(),
        reasoning: Reasoning::Effort,
        ..server()
    };
    let turn = || [Item::message(Role::User, "q"), Item::message(Role::Assistant, "a")].map(plain);
    let mut request = request([turn(), turn(), turn()].concat());
    request.config.reasoning = Some(json!("high"));
    let body = body(&request, &claude);
    let marked: Vec<bool> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"][0].get("cache_control").is_some())
        .collect();
    assert_eq!(marked, [true, true, false, true, false, true, false]);
    assert_eq!(body["reasoning"], json!({"effort": "high"}));
}

/// R1, Qwen and GLM behind a server that does not part their thinking.
#[test]
fn thinking_in_tags_at_the_beginning_of_a_message_is_thinking_however_it_is_cut() {
    let kinds = |text: &str, size: usize| -> Vec<(bool, String)> {
        let chars: Vec<char> = text.chars().collect();
        let piece = |chars: &[char]| {
            let words: String = chars.iter().collect();
            json!({"choices": [{"delta": {"content": words}}]})
        };
        let mut events: Vec<Value> = chars.chunks(size).map(piece).collect();
        events.push(json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}));
        let (deltas, _) = crate::llm::bench::run(Decoder::default(), &events);
        let kind = |(item, native): (Item, Option<Value>)| match item {
            Item::Reasoning { text, .. } => {
                assert_eq!(native, Some(json!({"think": text})), "no server takes it back");
                (true, text)
            }
            item => (false, item.text().unwrap_or_default()),
        };
        crate::llm::bench::blocks(&deltas).into_iter().map(kind).collect()
    };
    let text = |words: &str| vec![(false, words.to_owned())];
    for size in [1, 2, 5, 100] {
        let both = vec![(true, "a <b".to_owned()), (false, "fine".to_owned())];
        assert_eq!(kinds("\n<think>a <b</think>\n\nfine", size), both, "{size}");
        for whole in ["say <think>x</think>", "<thinking>x", "<thi", "< think>x</think>"] {
            assert_eq!(kinds(whole, size), text(whole), "{size}");
        }
    }
}
