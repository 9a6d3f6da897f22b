use super::*;
use crate::config::models::Wire;
use crate::llm::bench::{
    DOT, blocks, call, fault, foreign, model, native, plain, request, result, rich_result, run,
    shown, thought, usage,
};
use crate::llm::cause::Cause;
use crate::llm::sse::Event;
use crate::llm::wire::{Decode as _, Fault, Progress};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::{Item, Role};

fn gemini() -> Model {
    model(Wire::Gemini)
}

fn parts(parts: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

fn finish(reason: &str) -> Value {
    json!({"candidates": [{"finishReason": reason, "index": 0}], "usageMetadata": {
        "promptTokenCount": 1000, "cachedContentTokenCount": 600,
        "candidatesTokenCount": 30, "thoughtsTokenCount": 12, "totalTokenCount": 1042}})
}

/// The request as a server reads it.
fn body(request: &Request, model: &Model) -> Value {
    serde_json::from_slice(&super::body(request, model)).unwrap()
}

#[test]
fn text_streams_and_is_committed_whole_with_its_usage() {
    let events = [
        parts(json!([{"text": "Hel"}])),
        parts(json!([{"text": "lo"}])),
        parts(json!([{"text": ""}])),
        finish("STOP"),
    ];
    let (deltas, stop) = run(Decoder::default(), &events);
    assert_eq!(stop, Some(Stop::EndTurn));
    assert_eq!(shown(&deltas), [Delta::Text("Hel".into()), Delta::Text("lo".into())]);
    let expected = (Item::message(Role::Assistant, "Hello"), Some(json!({"text": "Hello"})));
    assert_eq!(blocks(&deltas), [expected]);
    assert_eq!(
        usage(&deltas),
        Usage {
            input: Some(1000),
            output: Some(42),
            cache_read: Some(600),
            cache_write: None,
            reasoning: Some(12),
        }
    );
}

#[test]
fn thoughts_are_shown_and_signatures_stay_with_their_part() {
    let events = [
        parts(json!([{"text": "let ", "thought": true}])),
        parts(json!([{"text": "me", "thought": true}])),
        parts(json!([{"text": "ok"}])),
        parts(json!([{"text": "", "thoughtSignature": "s1"}])),
        parts(json!([{"text": "more"}])),
        finish("STOP"),
    ];
    let (deltas, _) = run(Decoder::default(), &events);
    assert_eq!(shown(&deltas)[0], Delta::ThinkingStart);
    assert_eq!(
        blocks(&deltas),
        [
            (thought("let me"), None),
            (
                Item::message(Role::Assistant, "ok"),
                Some(json!({"text": "ok", "thoughtSignature": "s1"})),
            ),
            (Item::message(Role::Assistant, "more"), Some(json!({"text": "more"}))),
        ]
    );
}

#[test]
fn a_signature_alone_is_kept_as_a_part_of_its_own() {
    let alone = json!({"text": "", "thoughtSignature": "s"});
    let thinking = json!({"text": "hm", "thought": true});
    let (deltas, _) = run(Decoder::default(), &[parts(json!([thinking, alone])), finish("STOP")]);
    let last = blocks(&deltas).pop().unwrap();
    assert_eq!(last, (Item::Unknown(alone.clone()), Some(alone)));
}

#[test]
fn two_calls_in_one_event_get_ids_of_their_own() {
    let one =
        json!({"functionCall": {"name": "Read", "args": {"path": "a"}}, "thoughtSignature": "s"});
    let two = json!({"functionCall": {"name": "Read"}});
    let named = json!({"functionCall": {"name": "Bash", "id": "g7", "args": {}}});
    let event = parts(json!([{"text": "I look."}, one, two, named]));
    let (deltas, stop) = run(Decoder::default(), &[event, finish("STOP")]);
    assert_eq!(stop, Some(Stop::ToolUse));
    let blocks = blocks(&deltas);
    let natives: Vec<Value> = blocks.iter().filter_map(|(_, native)| native.clone()).collect();
    assert_eq!(natives, [json!({"text": "I look."}), one, two, named]);
    let made: Vec<(String, String)> = blocks
        .into_iter()
        .filter_map(|(item, _)| match item {
            Item::ToolCall { call_id, arguments, .. } => Some((call_id, arguments)),
            _ => None,
        })
        .collect();
    assert_eq!(made[0].1, "{\"path\":\"a\"}");
    assert_eq!(made[1].1, "{}");
    assert_ne!(made[0].0, made[1].0);
    assert_eq!(made[2].0, "g7");
}

#[test]
fn unknown_parts_and_events_are_kept_in_their_place() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let odd = json!({"newThing": 1});
    let (deltas, _) = run(
        Decoder::default(),
        &[parts(json!([{"text": "a"}, code, {"text": "b"}])), odd.clone(), finish("STOP")],
    );
    let items: Vec<Item> = blocks(&deltas).into_iter().map(|(item, _)| item).collect();
    let say = |words: &str| Item::message(Role::Assistant, words);
    assert_eq!(items, [say("a"), Item::Unknown(code), say("b")]);
    assert!(deltas.contains(&Delta::Unknown(odd)));
}

#[test]
fn every_finish_reason_has_its_meaning() {
    let stop = |reason: &str| run(Decoder::default(), &[finish(reason)]).1.unwrap();
    assert_eq!(stop("MAX_TOKENS"), Stop::MaxTokens);
    assert_eq!(stop("SAFETY"), Stop::Refusal("SAFETY".into()));
    assert_eq!(stop("IMAGE_RECITATION"), Stop::Refusal("IMAGE_RECITATION".into()));
    for broken in ["OTHER", "UNEXPECTED_TOOL_CALL"] {
        let failed = fault(Decoder::default(), &[finish(broken)]);
        assert!(
            matches!(failed, Fault::Reported { cause: Cause::Passes, .. }),
            "{broken}: {failed:?}"
        );
    }
    assert_eq!(stop("NEW"), Stop::Other("NEW".into()));
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}});
    let expected = Some(Stop::Refusal("PROHIBITED_CONTENT".into()));
    assert_eq!(run(Decoder::default(), &[blocked]).1, expected);
}

#[test]
fn errors_inside_the_stream_are_typed() {
    let error = |event: Value| match fault(Decoder::default(), &[event]) {
        Fault::Reported { cause, .. } => cause == Cause::Passes,
        other => panic!("{other:?}"),
    };
    assert!(error(json!({"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}})));
    assert!(!error(json!({"error": {"code": 400, "message": "no"}})));
    assert!(error(finish("MALFORMED_FUNCTION_CALL")));
}

#[test]
fn a_finish_reason_in_each_event_ends_the_answer_with_the_last_one_only() {
    let part = |text: &str| json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]});
    let (deltas, stop) = run(Decoder::default(), &[part("a"), part("b")]);
    assert_eq!(blocks(&deltas)[0].0, Item::message(Role::Assistant, "ab"));
    assert_eq!((blocks(&deltas).len(), stop), (1, Some(Stop::EndTurn)));
    let mut decoder = Decoder::default();
    for event in [part("a"), parts(json!([{"text": "b"}]))] {
        let event = Event { name: String::new(), data: event.to_string() };
        decoder.event(&event, &mut Vec::new()).unwrap();
    }
    assert_eq!(decoder.progress(), Progress::Open, "the next event may take its time");
}

#[test]
fn a_stream_without_a_finish_reason_was_cut() {
    assert_eq!(run(Decoder::default(), &[parts(json!([{"text": "a"}]))]).1, None);
}

#[test]
fn a_conversation_is_sent_with_roles_joined_and_results_named() {
    let request = request(vec![
        plain(Item::message(Role::User, "one")),
        plain(Item::message(Role::Assistant, "two")),
        plain(call("c1", "Read", "{\"path\":\"a\"}")),
        native(
            Wire::Gemini,
            call("g7", "Bash", "{}"),
            json!({"functionCall": {"name": "Bash", "id": "g7", "args": {}}, "thoughtSignature": "s"}),
        ),
        plain(result("c1", "3 lines")),
        plain(result("g7", "done")),
        plain(Item::message(Role::System, "note")),
    ]);
    let body = body(&request, &gemini());
    let response = |name: &str| json!({"name": name, "response": {"output": "3 lines"}});
    assert_eq!(
        body["contents"],
        json!([
            {"role": "user", "parts": [{"text": "one"}]},
            {"role": "model", "parts": [
                {"text": "two"},
                {"functionCall": {"name": "Read", "args": {"path": "a"}}, "thoughtSignature": UNSIGNED},
                {"functionCall": {"name": "Bash", "id": "g7", "args": {}}, "thoughtSignature": "s"},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": response("Read")},
                {"functionResponse": {"name": "Bash", "id": "g7", "response": {"output": "done"}}},
            ]},
            {"role": "user", "parts": [{"text": "note"}]},
        ])
    );
    assert_eq!(body["systemInstruction"], json!({"parts": [{"text": "be brief"}]}));
    let declared = &body["tools"][0]["functionDeclarations"];
    assert_eq!(declared[0]["parametersJsonSchema"]["type"], "object");
    assert_eq!(body.get("generationConfig"), None);
}

#[test]
fn thoughts_and_foreign_blocks_stay_behind() {
    let sign = json!({"text": "", "thoughtSignature": "s"});
    let input = |wrap: fn(Wire, Item, Value) -> crate::llm::Input| {
        let question = plain(Item::message(Role::User, "q"));
        let input = vec![
            question,
            plain(thought("hm")),
            wrap(Wire::Gemini, Item::Unknown(sign.clone()), sign.clone()),
        ];
        body(&request(input), &gemini())["contents"].clone()
    };
    assert_eq!(input(native)[1], json!({"role": "model", "parts": [sign]}));
    assert_eq!(input(foreign).as_array().unwrap().len(), 1);
}

#[test]
fn a_failed_result_with_an_image_says_so_and_shows_it_after_all_results() {
    let (dir, rich) = rich_result("c1");
    let mut request = request(vec![
        plain(Item::message(Role::User, "q")),
        plain(call("c1", "Read", "{}")),
        plain(call("c2", "Bash", "{}")),
        plain(rich),
        plain(result("c2", "ok")),
    ]);
    request.blobs = dir.path().into();
    assert_eq!(
        body(&request, &gemini())["contents"].as_array().unwrap()[2..],
        [
            json!({"role": "user", "parts": [
                {"functionResponse": {"name": "Read", "response": {"error": "1 line\nthe content"}}},
                {"functionResponse": {"name": "Bash", "response": {"output": "ok"}}},
            ]}),
            json!({"role": "user", "parts": [
                {"text": "Images of the tool results above:"},
                {"inlineData": {"mimeType": "image/png", "data": DOT}},
            ]}),
        ]
    );
}

#[test]
fn settings_go_in_the_form_the_model_takes() {
    let mut request = request(vec![]);
    request.config.max_tokens = Some(100);
    let config = |reasoning, setting: Value| {
        let mut request = request.clone();
        request.config.reasoning = Some(setting);
        body(&request, &Model { reasoning, ..gemini() })["generationConfig"].clone()
    };
    let budget = config(Reasoning::Budget, json!(512));
    assert_eq!(budget["thinkingConfig"], json!({"includeThoughts": true, "thinkingBudget": 512}));
    let level = config(Reasoning::Effort, json!("low"));
    assert_eq!(level["thinkingConfig"], json!({"includeThoughts": true, "thinkingLevel": "low"}));
    let none = config(Reasoning::None, json!(512));
    assert_eq!(none, json!({"maxOutputTokens": 100}));
}
