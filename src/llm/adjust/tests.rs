use super::*;
use crate::config::models::Reasoning;
use crate::llm::bench;
use crate::protocol::item::Image;
use serde_json::json;

fn without(path: &str) -> Option<Adjustment> {
    Some(Adjustment::Without { path: path.into(), value: None })
}

/// A request on a wire with all that it may have.
fn whole(wire: Wire) -> (Request, Model) {
    let model = Model { reasoning: Reasoning::Effort, ..bench::model(wire) };
    let mut request = bench::request(vec![bench::plain(Item::message(Role::User, "q"))]);
    request.config.max_tokens = Some(64_000);
    request.config.reasoning = Some(json!("none"));
    (request, model)
}

/// What a refusal with this status teaches.
fn learned(status: u16, wire: Wire, words: &str) -> Option<Adjustment> {
    let (request, model) = whole(wire);
    let mut sent: Value = serde_json::from_slice(&adjusted_body(&request, &model, &[])).unwrap();
    sent["more"] = json!({"type": "image"});
    let failure = bench::refusal(status, words);
    parse_refusal(&failure, &refusal_text(&failure)?, &model, &sent, &request, &[])
}

/// The words of errors as documentation of the providers and reports about programs of this kind quote them.
#[test]
fn what_a_refusal_names_is_read_in_the_words_of_each_server() {
    use Adjustment::{MaxTokens, NoImages, NoMarkers, NoSystem, Renamed};
    let renamed = Renamed { from: "max_tokens".into(), to: "max_completion_tokens".into() };
    let none = Some(json!("none"));
    let no_value = Adjustment::Without { path: "/reasoning_effort".into(), value: none };
    let (chat, responses) = (Wire::Chat, Wire::Responses);
    for (wire, words, expected) in [
        // OpenAI.
        (
            chat,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            Some(renamed),
        ),
        (
            chat,
            "Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'low', 'medium', and 'high'.",
            Some(no_value),
        ),
        (
            chat,
            "Unrecognized request argument supplied: reasoning_effort",
            without("/reasoning_effort"),
        ),
        (
            chat,
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            Some(NoSystem),
        ),
        (
            chat,
            "max_tokens is too large: 64000. This model supports at most 16384 completion tokens, whereas you provided 64000.",
            Some(MaxTokens(16_384)),
        ),
        (responses, "Unsupported parameter: max_output_tokens", without("/max_output_tokens")),
        (
            responses,
            "Your organization must be verified to generate reasoning summaries.",
            without("/reasoning/summary"),
        ),
        (
            responses,
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            without("/reasoning/effort"),
        ),
        (responses, "Encrypted content is not supported with this model.", without("/include")),
        // Azure, xAI, Mistral, vLLM, Groq, DeepSeek, OpenRouter, Ollama.
        (chat, "Unknown parameter: 'stream_options'.", without("/stream_options")),
        (
            responses,
            "Argument not supported on this model: parallel_tool_calls",
            without("/parallel_tool_calls"),
        ),
        (
            chat,
            r#"[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]"#,
            without("/stream_options"),
        ),
        (
            chat,
            "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
            Some(MaxTokens(8192)),
        ),
        (
            chat,
            "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
            Some(MaxTokens(8192)),
        ),
        (
            chat,
            "Failed to deserialize the JSON body: messages[0]: unknown variant `image_url`, expected `text`",
            Some(NoImages),
        ),
        (chat, "No endpoints found that support image input", Some(NoImages)),
        (chat, "\"gemma3\" does not support thinking", without("/reasoning_effort")),
        (
            chat,
            "think value \"none\" is not supported for this model",
            Some(Adjustment::Without {
                path: "/reasoning_effort".into(),
                value: Some(json!("none")),
            }),
        ),
        (
            chat,
            "Model grok-4 does not support parameter reasoningEffort.",
            without("/reasoning_effort"),
        ),
        (
            responses,
            "Argument not supported on this model: parallelToolCalls",
            without("/parallel_tool_calls"),
        ),
        (chat, "System role not supported", Some(NoSystem)),
        // Anthropic, and gateways before it.
        (
            Wire::Anthropic,
            "max_tokens: 64000 > 32000, which is the maximum allowed number of output tokens for claude-opus-4-20250514",
            Some(MaxTokens(32_000)),
        ),
        (Wire::Anthropic, "adaptive thinking is not supported on this model", without("/thinking")),
        (
            Wire::Anthropic,
            "output_config: Extra inputs are not permitted",
            without("/output_config"),
        ),
        (
            Wire::Anthropic,
            "messages.0.content.1.text.cache_control: Extra inputs are not permitted",
            Some(NoMarkers),
        ),
        // Google.
        (
            Wire::Gemini,
            "Thinking level is not supported for this model.",
            without("/generationConfig/thinkingConfig/thinkingLevel"),
        ),
        (
            Wire::Gemini,
            "Developer instruction is not enabled for models/gemma-3-27b-it",
            Some(NoSystem),
        ),
        (
            Wire::Gemini,
            "Unable to submit request because it has a maxOutputTokens value of 64000 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
            Some(MaxTokens(8192)),
        ),
        // What no field of the request mends.
        (Wire::Anthropic, "messages.3.content.0: Invalid `signature` in `thinking` block", None),
        (
            Wire::Anthropic,
            "messages.1.content.0.image.source.base64: image exceeds 5 MB maximum",
            None,
        ),
        (chat, "You uploaded an unsupported image. Please make sure your image is valid.", None),
        (
            chat,
            "The `reasoning_content` in the thinking mode must be passed back to the API.",
            Some(Adjustment::ThinkingWithCalls),
        ),
        (
            chat,
            "'max_tokens' is too large: 32000. Your request has 1000 input tokens (32000 > 32768 - 1000)",
            None,
        ),
        (chat, "Unknown parameter: 'temperature'.", None),
        (chat, "Invalid schema for function 'Read'", None),
    ] {
        assert_eq!(learned(400, wire, words), expected, "{words}");
    }
}

/// As servers and gateways said it in reports; the numbers in their forms.
#[test]
fn a_limit_is_read_with_its_groups_of_digits_and_no_other_number_is_taken_for_one() {
    let limit = |words: &str| learned(400, Wire::Chat, words);
    for number in ["16384", "16,384", "16 384", "16.384", "16384."] {
        let words = format!("max_tokens (64000) exceeds the maximum of {number}");
        assert_eq!(limit(&words), Some(Adjustment::MaxTokens(16_384)), "{words}");
        let words = format!("max_tokens is 64,000; at most {number} output tokens (error 1.2.384)");
        assert_eq!(limit(&words), Some(Adjustment::MaxTokens(16_384)), "{words}");
    }
    for (words, expected) in [
        (
            "max_tokens=64000 cannot be greater than max_model_len=max_total_tokens=8192. Please request fewer output tokens. (parameter=max_tokens, value=64000)",
            Some(8192),
        ),
        (
            "Param Incorrect (max_tokens is too large: 64000. This model supports at most 32768 completion tokens, whereas you provided 64000.)",
            Some(32_768),
        ),
        (
            r#"[{"type":"less_than_equal","loc":["body","max_tokens"],"msg":"Input should be less than or equal to 8192","input":64000,"ctx":{"le":8192}}]"#,
            Some(8192),
        ),
        ("max_tokens: 64,000 > 32,000 of claude-3-5-haiku-20241022", Some(32_000)),
        ("max_tokens must be positive (request 384 of node 12)", None),
        ("max_tokens is too large, you have 1,023 credits", None),
        ("`max_tokens` must be greater than `thinking.budget_tokens` (16384)", None),
        ("max_tokens is of gpt-4096 and llama_8192", None),
    ] {
        assert_eq!(limit(words), expected.map(Adjustment::MaxTokens), "{words}");
    }
}

#[test]
fn a_failure_of_the_server_or_of_the_moment_teaches_only_what_it_says_is_not_supported() {
    use Adjustment::{NoImages, NoSystem};
    let (chat, anthropic) = (Wire::Chat, Wire::Anthropic);
    for (wire, words, of_500, of_400) in [
        (chat, "An unexpected error occurred while reasoning", None, without("/reasoning_effort")),
        (anthropic, "thinking is unavailable", None, without("/thinking")),
        (anthropic, "The thinking model is temporarily unavailable", None, None),
        (chat, "reasoning is not supported while this node is overloaded", None, None),
        (chat, "max_tokens 64000 of at most 8192", None, Some(Adjustment::MaxTokens(8192))),
        (
            chat,
            "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj",
            Some(NoImages),
            Some(NoImages),
        ),
        (chat, "System role not supported", Some(NoSystem), Some(NoSystem)),
        (
            chat,
            "\"gemma3\" does not support thinking",
            without("/reasoning_effort"),
            without("/reasoning_effort"),
        ),
    ] {
        assert_eq!(learned(400, wire, words), of_400, "{words}");
        for status in [500, 501] {
            assert_eq!(learned(status, wire, words), of_500, "{status}: {words}");
        }
        for status in [401, 403, 429, 503] {
            assert_eq!(learned(status, wire, words), None, "{status}: {words}");
        }
    }
}

#[test]
fn only_a_model_that_reads_no_image_is_remembered_as_one() {
    for words in [
        "This model does not support image inputs",
        "Model does not support images. Please use a model that does.",
        "This model doesn't support the image content block that you provided",
        "Invalid content type. image_url is only supported by certain models.",
        "The provided model is not a vision model. Please provide a vision model.",
        "At most 0 image(s) may be provided in one prompt.",
    ] {
        assert_eq!(learned(400, Wire::Chat, words), Some(Adjustment::NoImages), "{words}");
    }
    for words in [
        "we only support image formats png and jpeg",
        "We do not support image formats other than PNG",
        "The server does not support images from a URL",
        "does not support image size of 9000x9000",
        "The image data you provided does not represent a valid image",
    ] {
        assert_eq!(learned(400, Wire::Chat, words), None, "{words}");
    }
}

#[test]
fn a_refusal_of_an_element_turns_nothing_off_and_the_end_of_a_sentence_is_no_element() {
    let (anthropic, responses) = (Wire::Anthropic, Wire::Responses);
    for (wire, words) in [
        (anthropic, "Invalid `signature` in `thinking` block"),
        (anthropic, "Invalid signature in thinking block"),
        (anthropic, "messages.3.content.13: thinking is invalid"),
        (anthropic, "[{'loc': ['body', 'messages', 4, 'thinking'], 'msg': 'unexpected'}]"),
        (
            anthropic,
            "messages.5.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.",
        ),
        (
            responses,
            "The encrypted content gAAA...DQ== could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
        ),
        (responses, "Invalid 'input[4].encrypted_content': reasoning is not valid"),
    ] {
        assert_eq!(learned(400, wire, words), None, "{words}");
    }
    // Moonshot, DeepSeek: what the messages of other models lack can be added.
    for words in [
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        "Missing `reasoning_content` field in the assistant message at message index 112.",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
    ] {
        assert_eq!(learned(400, Wire::Chat, words), Some(Adjustment::ThinkingWithCalls), "{words}");
        assert_eq!(learned(400, Wire::Responses, words), None, "{words}");
    }
    for words in [
        "Invalid input. reasoning_effort is not supported",
        "reasoning_effort is not supported with these messages. Remove it",
        "Input should be 'low', 'medium' or 'high' for reasoning_effort, not an object",
    ] {
        assert_eq!(learned(400, Wire::Chat, words), without("/reasoning_effort"), "{words}");
    }
}

/// A conversation in which a model thought, called and was answered, on each wire with the names that its API gives.
fn with_thought(wire: Wire) -> (Request, Model) {
    let (mut request, model) = whole(wire);
    let (thought, call) = match wire {
        Wire::Anthropic => (
            json!({"type": "thinking", "thinking": "hm", "signature": "SIG"}),
            json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {}}),
        ),
        Wire::Responses => (
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SIG"}),
            json!({"type": "function_call", "id": "fc_1", "call_id": "c", "name": "Read", "arguments": "{}"}),
        ),
        Wire::Chat => (
            json!({"reasoning_content": "hm", "reasoning_details": [{"signature": "SIG"}]}),
            json!({"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}),
        ),
        _ => (
            json!({"text": "hm", "thought": true, "thoughtSignature": "SIG"}),
            json!({"functionCall": {"name": "Read", "args": {}}, "thoughtSignature": "SIG"}),
        ),
    };
    request.input.extend([
        bench::native(wire, bench::thought("hm"), thought),
        bench::native(wire, bench::call("a", "Read", "{}"), call),
        bench::plain(bench::result("a", "one")),
    ]);
    (request, model)
}

#[test]
fn thoughts_that_a_server_refuses_are_left_out_with_what_is_joined_to_them() {
    let (anthropic, responses) = (Wire::Anthropic, Wire::Responses);
    for (wire, status, words) in [
        (anthropic, 400, "messages.1.content.0: Invalid `signature` in `thinking` block"),
        (anthropic, 400, "messages.1.content.0.thinking.signature: Field required"),
        (anthropic, 400, "messages.1.content.0: thinking blocks cannot be modified"),
        (
            responses,
            400,
            "The encrypted content SIG could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
        ),
        (
            responses,
            400,
            "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_9'.",
        ),
        (
            responses,
            404,
            "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        ),
        (responses, 404, "Item rs_1 of type reasoning not found"),
        (
            responses,
            400,
            "Item \"rs_1\" of type \"reasoning\" was provided without its required following item.",
        ),
        (responses, 400, "Item with id 'fc_1' not found."),
        (
            responses,
            400,
            "Duplicate item found with id msg_1. Remove duplicate items from your input",
        ),
        (responses, 400, "Invalid 'input[2].id': 'call_1'. Expected an ID that begins with 'fc'."),
        (responses, 400, "Unknown parameter: 'input[1].summary'."),
        (Wire::Chat, 400, "Invalid signature in thinking block"),
        (Wire::Chat, 400, "'messages.1' : property 'reasoning_content' is unsupported"),
        (Wire::Gemini, 400, "Thought signature is not valid."),
    ] {
        let (request, model) = with_thought(wire);
        let sent = adjusted_body(&request, &model, &[]);
        let failures = [
            bench::refusal(status, words),
            Failure::Provider {
                message: words.into(),
                provider_text: words.into(),
                retryable: false,
            },
        ];
        for failure in failures {
            let text = refusal_text(&failure).unwrap();
            let json = serde_json::from_slice(&sent).unwrap();
            let learned = parse_refusal(&failure, &text, &model, &json, &request, &[]);
            assert_eq!(learned, Some(Adjustment::NoThoughts), "{words}");
        }
        let known = [Learned::new(&model, Adjustment::NoThoughts, &bench::refusal(400, words))];
        let after = String::from_utf8(adjusted_body(&request, &model, &known)).unwrap();
        assert!(String::from_utf8(sent).unwrap().contains("SIG"), "{wire:?}");
        for gone in ["SIG", "hm", "rs_1", "fc_1"] {
            assert!(!after.contains(gone), "{wire:?}: {after}");
        }
        assert!(after.contains("Read") && after.contains("one"), "{after}");
    }
}

#[test]
fn a_reply_is_as_large_as_the_window_has_room_for_beside_its_prompt() {
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini] {
        let asked = |window: u64, tokens: u64, known: &[Adjustment]| {
            let (mut request, model) = whole(wire);
            request.tokens = tokens;
            let model = Model { window, ..model };
            let why = Failure::Unusable("no".into());
            let known: Vec<Learned> =
                known.iter().map(|one| Learned::new(&model, one.clone(), &why)).collect();
            let body = adjusted_body(&request, &model, &known);
            sayings::limit_of(&serde_json::from_slice(&body).unwrap()).unwrap().1
        };
        assert_eq!(asked(0, 7_000, &[]), 64_000, "{wire:?}: the window is not known");
        assert_eq!(asked(200_000, 7_000, &[]), 64_000, "{wire:?}");
        assert_eq!(asked(8_192, 5_000, &[]), 3_192, "{wire:?}");
        assert_eq!(
            asked(8_192, 9_000, &[]),
            512,
            "{wire:?}: its provider says that it does not fit"
        );
        let learned = [Adjustment::Window(8_192)];
        assert_eq!(asked(0, 5_000, &learned), 3_192, "{wire:?}");
        assert_eq!(asked(200_000, 5_000, &learned), 3_192, "{wire:?}");
        assert_eq!(asked(200_000, 9_000, &learned), 64_000, "{wire:?}: it reads more than it said");
    }
}

#[test]
fn the_words_count_before_the_status_where_a_server_may_lack_responses() {
    let learned = |words| learned(404, Wire::Responses, words);
    let no_images = Some(Adjustment::NoImages);
    assert_eq!(learned("No endpoints found that support image input"), no_images);
    assert_eq!(learned("Not Found"), Some(Adjustment::ChatWire));
    assert_eq!(learned(""), Some(Adjustment::ChatWire));
    assert_eq!(learned("the node is temporarily away"), None);
    for of_model in [
        "The model `m1` does not exist or you do not have access to it.",
        "model_not_found",
        "model 'm1' not found, try pulling it first",
        "No such model: m1",
    ] {
        assert_eq!(learned(of_model), None, "{of_model}");
    }
    let unknown_route =
        "Unknown request URL: POST /v1/responses. Please check the model guide, not found";
    assert_eq!(learned(unknown_route), Some(Adjustment::ChatWire));
}

#[test]
fn another_name_is_learned_only_where_the_server_says_to_use_it() {
    let because = "max_tokens is wrong because max_completion_tokens is set";
    assert_eq!(learned(400, Wire::Chat, because), None);
    let renamed = "max_tokens is deprecated: use max_completion_tokens";
    assert!(matches!(learned(400, Wire::Chat, renamed), Some(Adjustment::Renamed { .. })));
}

#[test]
fn a_request_obeys_what_was_learned_and_nothing_else_of_it_changes() {
    let learned = |wire, adjustments: Vec<Adjustment>| {
        let (request, model) = whole(wire);
        let failure = Failure::Unusable("no".into());
        let known = adjustments.into_iter().map(|one| Learned::new(&model, one, &failure));
        let known: Vec<Learned> = known.collect();
        let json = |known: &[Learned]| -> Value {
            serde_json::from_slice(&adjusted_body(&request, &model, known)).unwrap()
        };
        (json(&[]), json(&known))
    };
    let (mut before, after) = learned(Wire::Chat, without("/stream_options").into_iter().collect());
    before.as_object_mut().unwrap().remove("stream_options");
    assert_eq!(before, after);
    let value = |value: &str| Adjustment::Without {
        path: "/reasoning_effort".into(),
        value: Some(json!(value)),
    };
    let (before, after) = learned(Wire::Chat, vec![value("low")]);
    assert_eq!(before, after, "another value stays");
    assert_eq!(learned(Wire::Chat, vec![value("none")]).1.get("reasoning_effort"), None);
    let to = "max_completion_tokens";
    let renamed = Adjustment::Renamed { from: "max_tokens".into(), to: to.into() };
    let (_, after) = learned(Wire::Chat, vec![Adjustment::MaxTokens(9), renamed]);
    assert_eq!((after.get("max_tokens"), &after[to]), (None, &json!(9)));
    for wire in [Wire::Chat, Wire::Responses, Wire::Anthropic, Wire::Gemini] {
        let (before, after) = learned(wire, vec![Adjustment::NoSystem]);
        assert_eq!(before.to_string().matches("be brief").count(), 1);
        assert_eq!(after.to_string().matches("be brief").count(), 1, "{wire:?}: {after}");
        for name in ["system", "instructions", "systemInstruction"] {
            assert_eq!(after.get(name), None, "{wire:?}");
        }
        assert!(!after.to_string().contains("\"role\":\"system\""), "{wire:?}");
    }
    let (before, after) = learned(Wire::Anthropic, vec![Adjustment::NoMarkers]);
    assert!(before.to_string().contains("cache_control"));
    assert!(!after.to_string().contains("cache_control"), "{after}");
}

#[test]
fn calls_of_other_models_get_thinking_once_a_server_asked_for_it() {
    let model = bench::model(Wire::Chat);
    let input = vec![
        bench::plain(Item::message(Role::User, "q")),
        bench::plain(bench::call("a", "Read", "{}")),
        bench::plain(bench::result("a", "one")),
        bench::plain(Item::message(Role::Assistant, "done")),
    ];
    let request = bench::request(input);
    let failure = Failure::Unusable("no".into());
    let known = [Learned::new(&model, Adjustment::ThinkingWithCalls, &failure)];
    let messages = |known: &[Learned]| -> Vec<Value> {
        let body = adjusted_body(&request, &model, known);
        let body: Value = serde_json::from_slice(&body).unwrap();
        body["messages"].as_array().unwrap().clone()
    };
    let thinks = |message: &Value| message.get("reasoning_content").is_some();
    assert!(!messages(&[]).iter().any(thinks));
    let calls = |message: &Value| message.get("tool_calls").is_some();
    let after = messages(&known);
    assert_eq!(after.iter().filter(|message| calls(message)).count(), 1);
    assert!(after.iter().all(|message| calls(message) == thinks(message)), "{after:?}");
}

/// The words of servers, as reports quote them, and what a request can do without.
#[test]
fn a_kind_of_refusal_is_known_in_words_that_no_list_has() {
    use Adjustment::{FilledContent, NoImages, NoMarkers, NoSystem, OwnIds};
    let empty = || Some(FilledContent(String::new()));
    for (wire, words, expected) in [
        (Wire::Chat, "invalid params, role system not supported (2013)", Some(NoSystem)),
        (Wire::Chat, "This model doesn't support system messages. Try again.", Some(NoSystem)),
        (
            Wire::Chat,
            "system is not one of ['user','assistant'] - 'messages.0.role'",
            Some(NoSystem),
        ),
        (Wire::Chat, "Conversation roles must alternate user/assistant/...", Some(NoSystem)),
        (Wire::Chat, "Invalid value for 'content': expected a string, got null.", empty()),
        (Wire::Chat, "messages.2.content: Input should be a valid string", empty()),
        (
            Wire::Chat,
            "Tool call id was f.Bash:0 but must be a-z, A-Z, 0-9, with a length of 9.",
            Some(OwnIds),
        ),
        (
            Wire::Chat,
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum length 40",
            Some(OwnIds),
        ),
        (
            Wire::Anthropic,
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            Some(OwnIds),
        ),
        (
            Wire::Anthropic,
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            Some(NoMarkers),
        ),
        (Wire::Responses, "Unsupported parameter: store", without("/store")),
        (
            Wire::Responses,
            "tools[0].strict: Extra inputs are not permitted",
            without("/tools/0/strict"),
        ),
        (Wire::Chat, "Streaming is not supported for this model", without("/stream")),
        (
            Wire::Chat,
            "messages.content.type error: image_url not allowed for text model",
            Some(NoImages),
        ),
        (Wire::Chat, "Image input not supported for this model", Some(NoImages)),
        (Wire::Chat, "Image dimensions exceed 2000 pixels", None),
        (
            Wire::Chat,
            "Invalid request: the message at position 2 with role 'assistant' must not be empty",
            empty(),
        ),
        (Wire::Chat, "tools: must not be empty", None),
        (Wire::Chat, "'model' must not be empty", None),
        (
            Wire::Gemini,
            "Unable to submit request because thinking_level is not supported by this model.",
            without("/generationConfig/thinkingConfig/thinkingLevel"),
        ),
        (Wire::Chat, "Could not process image", None),
    ] {
        assert_eq!(learned(400, wire, words), expected, "{words}");
    }
}

#[test]
fn a_picture_that_is_refused_without_its_place_is_the_newest_one_that_was_not_accepted() {
    let picture = |call: &str, blob: &str| {
        let mut item = bench::result(call, "read");
        let image = Image { blob: blob.into(), media_type: "image/png".into() };
        let Item::ToolResult { images, .. } = &mut item else { unreachable!() };
        images.push(image);
        bench::plain(item)
    };
    let (mut request, model) = whole(Wire::Anthropic);
    let reply = |id: &str| {
        let native = json!({"type": "tool_use", "id": id, "name": "Read", "input": {}});
        bench::native(Wire::Anthropic, bench::call(id, "Read", "{}"), native)
    };
    request.input.extend([reply("a"), picture("a", "old"), reply("b"), picture("b", "new")]);
    let of_new = Adjustment::NoImage("new".into());
    assert_eq!(pictures::newest(&request, &model, &[]), Some(of_new.clone()));
    let why = bench::refusal(400, "Could not process image");
    let known = [Learned::new(&model, of_new, &why)];
    assert_eq!(pictures::newest(&request, &model, &known), None, "the old one was accepted");
    let sent = String::from_utf8(adjusted_body(&request, &model, &known)).unwrap();
    assert!(sent.contains("[an image that the provider refused]"), "{sent}");
    assert_eq!(sent.matches("an image that is lost").count(), 1, "the old one stays: {sent}");
}

#[test]
fn calls_are_named_anew_with_their_results_and_nothing_else_is() {
    for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat] {
        let (request, model) = with_thought(wire);
        let known = [Learned::new(&model, Adjustment::OwnIds, &bench::refusal(400, "id"))];
        let sent = String::from_utf8(adjusted_body(&request, &model, &known)).unwrap();
        let given = if wire == Wire::Anthropic { "toolu_1" } else { "\"c\"" };
        let own = crate::llm::wire::call_id_of(given.trim_matches('"').as_bytes());
        assert_eq!(sent.matches(own.as_str()).count(), 2, "{wire:?}: {sent}");
        assert!(!sent.contains(given), "{wire:?}: {sent}");
        assert_eq!(sent.contains("fc_1"), wire == Wire::Responses, "an item keeps its id");
    }
}
