//! The conversation as an API takes it: one pass over the input of each request, before a wire gives it its form.
//! A part depends only on the parts before it, so that a request begins like the one before it and the provider finds its
//! cache. The exceptions are thinking from which nothing follows, which is dropped, and the user lines that some APIs need before
//! the first and behind the last words of the model.

use crate::config::catalogue::Catalogue;
use crate::config::models::{Dialect, Model, Wire};
use crate::config::url;
use crate::llm::calls::plain_name;
use crate::llm::{Request, wire};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

/// Replaces a blank message, because APIs refuse one.
const BLANK: &str = "[an empty message]";
/// A user message that is added before the first words of the model, and behind its last ones, where the API refuses a
/// conversation that does not begin and end with the user. A resumed run does not reach this: it commits a note of its own.
const GO_ON: &str = "Go on.";
/// The longest id of a call that is sent to a server which did not give it: the limit of `OpenAI`.
const MAX_ID: usize = 40;

/// A part of the conversation. `native` is the provider's own form, where the model that is asked made the part.
#[derive(Debug)]
pub enum Part<'a> {
    /// What a person or the runtime says. The APIs know no third voice here, and the words of files and peers must not
    /// weigh as much as the system prompt.
    User(String),
    /// An image that belongs to the words of the user before it.
    Image(&'a Image),
    Model {
        words: String,
        native: Option<&'a Value>,
    },
    Call(ToolCall<'a>),
    Result(ToolResult<'a>),
    /// Thinking of the model that is asked; it is valid only as the provider made it.
    Thinking(&'a Value),
    /// A block of the model that is asked without a counterpart here.
    Other(&'a Value),
}

#[derive(Debug)]
pub struct ToolCall<'a> {
    pub id: String,
    pub name: Cow<'a, str>,
    pub arguments: &'a str,
    pub native: Option<Cow<'a, Value>>,
}

#[derive(Debug)]
pub struct ToolResult<'a> {
    pub id: String,
    pub summary: &'a str,
    pub content: Option<&'a str>,
    pub is_error: bool,
    pub images: &'a [Image],
}

/// The parts of the conversation for `model`.
pub fn parts<'a>(request: &'a Request, model: &Model) -> Vec<Part<'a>> {
    let origin = wire::origin(model);
    let mut ids = Ids::of(model);
    let mut parts = Vec::with_capacity(request.input.len() + 1);
    for input in &request.input {
        let native = wire::native(input, &origin);
        parts.extend(match &input.item {
            Item::Message { role, content } => message(*role, content, native),
            Item::ToolCall { call_id, name, arguments } => {
                Some(Part::Call(ids.call(call_id, name, arguments, native)))
            }
            Item::ToolResult { call_id, summary, content, is_error, images } => {
                Some(Part::Result(ToolResult {
                    id: ids.result(call_id),
                    summary,
                    content: content.as_deref(),
                    is_error: *is_error,
                    images,
                }))
            }
            Item::Reasoning { .. } => native.filter(|n| is_signed(n, model)).map(Part::Thinking),
            // The Chat wire takes no other blocks.
            Item::Unknown(_) => native.filter(|_| model.wire != Wire::Chat).map(Part::Other),
        });
        if matches!(input.item, Item::Message { .. }) {
            parts.extend(input.item.images().into_iter().map(Part::Image));
        }
    }
    let dialect = Catalogue::dialect(model);
    drop_thinking(&mut parts, model.wire, dialect);
    if matches!(model.wire, Wire::Responses | Wire::Chat) && dialect != Dialect::Mistral {
        return parts;
    }
    if !matches!(parts.first(), Some(Part::User(_))) {
        parts.insert(0, Part::User(GO_ON.to_owned()));
    }
    // A reply that Anthropic paused within a tool of its server goes on from there.
    let is_paused = |part: &Part| matches!(part, Part::Other(_)) && model.wire == Wire::Anthropic;
    if parts.last().is_some_and(|last| is_of_model(last) && !is_paused(last)) {
        parts.push(Part::User(GO_ON.to_owned()));
    }
    parts
}

fn message<'a>(role: Role, content: &[Content], native: Option<&'a Value>) -> Option<Part<'a>> {
    let words: String = content.iter().map(Content::text).collect();
    let is_blank = words.trim().is_empty();
    match role {
        Role::User | Role::System if is_blank => Some(Part::User(BLANK.to_owned())),
        Role::User | Role::System => Some(Part::User(words)),
        // A signature of Gemini counts without words.
        Role::Assistant
            if is_blank && native.is_none_or(|n| n.get("thoughtSignature").is_none()) =>
        {
            None
        }
        Role::Assistant => Some(Part::Model { words, native }),
    }
}

/// Whether an API takes this thought back: that of Anthropic refuses one without a signature. Servers that imitate it may
/// send none and want their thoughts back.
fn is_signed(thought: &Value, model: &Model) -> bool {
    let has = |key: &str| !wire::text(thought, key).is_empty();
    let is_own = model.wire == Wire::Anthropic && url::host(&model.base_url) == "api.anthropic.com";
    !is_own || has("signature") || has("data")
}

fn is_of_model(part: &Part) -> bool {
    !matches!(part, Part::User(_) | Part::Image(_) | Part::Result(_))
}

/// Drops thinking from which nothing follows: an API refuses it or makes no use of it. On the Chat wire thinking stays
/// before a call and behind one of the same turn, also when that turn is old.
fn drop_thinking(parts: &mut Vec<Part>, wire: Wire, dialect: Dialect) {
    let is_chat = wire == Wire::Chat;
    let mut has_called = false;
    let called: Vec<bool> = parts
        .iter()
        .map(|part| {
            has_called = !matches!(part, Part::User(_) | Part::Image(_))
                && (has_called || matches!(part, Part::Call(_)));
            has_called
        })
        .collect();
    let mut leads = false;
    let kept = parts.iter().zip(called).rev().map(|(part, has_called)| match part {
        Part::Thinking(_) => dialect != Dialect::Mistral && (leads || is_chat && has_called),
        Part::Model { .. } if is_chat => true,
        _ => {
            leads = is_of_model(part);
            true
        }
    });
    let mut kept: Vec<bool> = kept.collect();
    parts.retain(|_| kept.pop().unwrap_or(true));
}

/// The ids of the calls of a request: each is new in it and has a form that its API takes.
struct Ids<'a> {
    wire: Wire,
    is_mistral: bool,
    taken: HashSet<String>,
    /// The calls without a result, by the id in the log, each with the id in the request.
    open: VecDeque<(&'a str, String)>,
}

impl<'a> Ids<'a> {
    fn of(model: &Model) -> Self {
        let is_mistral = Catalogue::dialect(model) == Dialect::Mistral;
        Self { wire: model.wire, is_mistral, taken: HashSet::new(), open: VecDeque::new() }
    }

    /// The call keeps the id that this provider gave it, where that is possible.
    fn call(
        &mut self,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
        native: Option<&'a Value>,
    ) -> ToolCall<'a> {
        let (id_at, name_at) = match self.wire {
            Wire::Anthropic | Wire::Rehearsal => ("/id", "/name"),
            Wire::Responses => ("/call_id", "/name"),
            Wire::Chat => ("/id", "/function/name"),
            Wire::Gemini => ("/functionCall/id", "/functionCall/name"),
        };
        let given = native.and_then(|native| native.pointer(id_at)).and_then(Value::as_str);
        let given = given.filter(|id| self.takes_back(id));
        let known = given.or_else(|| Some(call_id).filter(|id| self.takes(id)));
        let id = known.map(str::to_owned).unwrap_or_else(|| {
            let made = |n: u32| wire::call_id_of(format!("{call_id} {n}").as_bytes());
            (0..).map(made).find(|id| !self.taken.contains(id)).unwrap_or_default()
        });
        self.taken.insert(id.clone());
        self.open.push_back((call_id, id.clone()));
        let plain = plain_name(name);
        let arguments_at = match self.wire {
            Wire::Anthropic | Wire::Rehearsal => Some("/input"),
            Wire::Gemini => Some("/functionCall/args"),
            Wire::Responses | Wire::Chat => None,
        };
        let native = native.map(|native| {
            let mut native = Cow::Borrowed(native);
            // A server takes no other arguments than an object, not even those that it sent.
            if let Some(at) = arguments_at
                && native.pointer(at).is_some_and(|known| !known.is_object())
                && let Some(value) = native.to_mut().pointer_mut(at)
            {
                *value = Value::Object(wire::arguments(arguments));
            }
            // A server may have sent none; that of Gemini needs none.
            if !id_at[1..].contains('/')
                && native.get(&id_at[1..]).is_none()
                && let Some(fields) = native.to_mut().as_object_mut()
            {
                fields.insert(id_at[1..].to_owned(), Value::from(id.as_str()));
            }
            for (at, text) in [(id_at, id.as_str()), (name_at, &plain)] {
                if native.pointer(at).is_some_and(|known| known.as_str() != Some(text))
                    && let Some(value) = native.to_mut().pointer_mut(at)
                {
                    *value = Value::from(text);
                }
            }
            native
        });
        ToolCall { id, name: plain, arguments, native }
    }

    /// Whether a server takes this id that it gave itself. Some of them keep in it what the next request needs.
    fn takes_back(&self, id: &str) -> bool {
        match self.is_mistral {
            true => self.takes(id),
            false => !id.is_empty() && !self.taken.contains(id),
        }
    }

    /// Whether every server of this wire takes this id.
    fn takes(&self, id: &str) -> bool {
        let more = if self.wire == Wire::Anthropic { "_-" } else { "_-.:" };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || !self.is_mistral && more.contains(c);
        let has_length = match self.is_mistral {
            true => id.len() == 9,
            false => (1..=MAX_ID).contains(&id.len()),
        };
        has_length && id.chars().all(is_plain) && !self.taken.contains(id)
    }

    /// Equal ids are those of an old log: the results stand in the order of the calls.
    fn result(&mut self, call_id: &str) -> String {
        let place = self.open.iter().position(|(id, _)| *id == call_id);
        let open = place.and_then(|place| self.open.remove(place));
        open.map_or_else(|| call_id.to_owned(), |(_, id)| id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::Input;
    use crate::llm::bench::{call, foreign, model, native, plain, request, result, thought};
    use serde_json::json;

    fn said(role: Role, words: &str) -> Input {
        plain(Item::message(role, words))
    }

    /// The parts in a few words each.
    fn brief(parts: &[Part]) -> Vec<String> {
        let brief = |part: &Part| match part {
            Part::User(words) => format!("user {words}"),
            Part::Image(image) => format!("image {}", image.blob),
            Part::Model { words, .. } => format!("model {words}"),
            Part::Call(call) => format!("call {} {}", call.id, call.name),
            Part::Result(result) => format!("result {} {}", result.id, result.summary),
            Part::Thinking(_) => "thinking".into(),
            Part::Other(_) => "other".into(),
        };
        parts.iter().map(brief).collect()
    }

    fn on(wire: Wire, input: &[Input]) -> Vec<String> {
        brief(&parts(&request(input.to_vec()), &model(wire)))
    }

    /// A call in the form of Chat Completions.
    fn chat_call(log_id: &str, wire_id: &str, name: &str) -> Input {
        let form = json!({"id": wire_id, "function": {"name": name, "arguments": "{}"}});
        native(Wire::Chat, call(log_id, name, "{}"), form)
    }

    #[test]
    fn a_server_never_gets_arguments_back_that_are_no_object() {
        let of_gemini = |args: Value| json!({"functionCall": {"name": "Read", "args": args}});
        let of_anthropic = |args: Value| json!({"type": "tool_use", "id": "toolu_1", "name": "Read", "input": args});
        for (sent, back) in [
            (json!(["x"]), json!({})),
            (json!(null), json!({})),
            (json!("{\"path\": \"a\"}"), json!({"path": "a"})),
            (json!({"path": "b"}), json!({"path": "b"})),
        ] {
            let text = sent.as_str().map_or_else(|| sent.to_string(), str::to_owned);
            let forms = [
                (Wire::Gemini, of_gemini(sent.clone()), "/functionCall/args"),
                (Wire::Anthropic, of_anthropic(sent.clone()), "/input"),
            ];
            for (wire, form, at) in forms {
                let input = [native(wire, call("toolu_1", "Read", &text), form)];
                let request = request(input.to_vec());
                let parts = parts(&request, &model(wire));
                let native = parts.iter().find_map(|part| match part {
                    Part::Call(call) => call.native.as_deref(),
                    _ => None,
                });
                assert_eq!(native.and_then(|native| native.pointer(at)), Some(&back), "{wire:?}");
            }
        }
    }

    #[test]
    fn a_call_keeps_the_id_of_its_server_until_the_same_id_comes_again() {
        let input = [
            chat_call("aaaaaaaa1", "functions.Bash:0", "Bash"),
            plain(result("aaaaaaaa1", "one")),
            chat_call("aaaaaaaa2", "functions.Bash:0", "Bash"),
            plain(result("aaaaaaaa2", "two")),
        ];
        let expected = [
            "call functions.Bash:0 Bash",
            "result functions.Bash:0 one",
            "call aaaaaaaa2 Bash",
            "result aaaaaaaa2 two",
        ];
        assert_eq!(on(Wire::Chat, &input), expected);
        let request = request(input.to_vec());
        let parts = parts(&request, &model(Wire::Chat));
        let Part::Call(ToolCall { native: Some(native), .. }) = &parts[2] else { panic!() };
        assert_eq!(native["id"], "aaaaaaaa2");
        assert!(on(Wire::Anthropic, &input)[1].starts_with("call aaaaaaaa1"), "of another model");
    }

    #[test]
    fn a_server_gets_back_an_id_of_any_form_that_it_gave_and_no_other_server_does() {
        // As a gateway makes them that keeps the signature of a thought in the id.
        let long = format!("call_1__thought__{}+/==", "Ab9".repeat(300));
        let input = [chat_call("aaaaaaaa1", &long, "Bash"), plain(result("aaaaaaaa1", "one"))];
        let expected = [format!("call {long} Bash"), format!("result {long} one")];
        assert_eq!(on(Wire::Chat, &input), expected);
        assert!(on(Wire::Anthropic, &input)[1].starts_with("call aaaaaaaa1"));
        let mistral = Model { dialect: Some(Dialect::Mistral), ..model(Wire::Chat) };
        let request = request(input.to_vec());
        assert_eq!(brief(&parts(&request, &mistral))[1], "call aaaaaaaa1 Bash");
    }

    #[test]
    fn equal_ids_of_an_old_log_become_different_ones_and_stay_so() {
        let reply = |words: &str| {
            [
                said(Role::User, "q"),
                plain(call("Bash:0", "Bash", "{}")),
                plain(result("Bash:0", words)),
            ]
        };
        let ids = |input: &[Input]| on(Wire::Anthropic, input);
        let (one, two) = (ids(&reply("one")), ids(&[reply("one"), reply("two")].concat()));
        assert_eq!(two[..3], one[..], "the beginning stays");
        let id = |line: &str| line.split(' ').nth(1).unwrap().to_owned();
        assert_eq!((id(&two[1]), id(&two[4])), (id(&two[2]), id(&two[5])));
        assert_ne!(id(&two[1]), id(&two[4]));
        assert!(two[2].ends_with("one") && two[5].ends_with("two"));
        for id in [id(&two[1]), id(&two[4])] {
            assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
        }
    }

    #[test]
    fn the_name_of_a_call_is_plain_in_the_form_of_the_provider_too() {
        let request = request(vec![chat_call("aaaaaaaa1", "c1", "Bash<|channel|>")]);
        let parts = parts(&request, &model(Wire::Chat));
        let Part::Call(ToolCall { native: Some(native), .. }) = &parts[0] else { panic!() };
        assert_eq!(
            native["function"]["name"], "Bash__channel__",
            "also in the form of the provider"
        );
    }

    #[test]
    fn blank_words_of_the_model_are_left_out_and_those_of_a_person_are_named() {
        let blank = json!({"type": "text", "text": "\n\n"});
        let input = [
            said(Role::User, " "),
            native(Wire::Anthropic, Item::message(Role::Assistant, "\n\n"), blank),
            plain(call("c1", "Read", "{}")),
            plain(result("c1", "ok")),
        ];
        assert_eq!(
            on(Wire::Anthropic, &input),
            ["user [an empty message]", "call c1 Read", "result c1 ok"]
        );
        let signed = json!({"text": "", "thoughtSignature": "s"});
        let input = [native(Wire::Gemini, Item::message(Role::Assistant, ""), signed)];
        assert_eq!(on(Wire::Gemini, &input)[1], "model ");
    }

    #[test]
    fn thinking_that_leads_to_nothing_is_left_out() {
        let think =
            |wire| native(wire, thought("hm"), json!({"type": "thinking", "signature": "s"}));
        for wire in [Wire::Anthropic, Wire::Responses, Wire::Chat, Wire::Gemini] {
            let input = [
                said(Role::User, "q"),
                think(wire),
                plain(call("c1", "Read", "{}")),
                think(wire),
                plain(result("c1", "ok")),
                think(wire),
                foreign(wire, thought("of another"), json!({})),
                said(Role::Assistant, " "),
                said(Role::User, "and?"),
                think(wire),
                said(Role::User, "well?"),
                think(wire),
            ];
            let expected =
                ["user q", "thinking", "call c1 Read", "result c1 ok", "user and?", "user well?"];
            let on = on(wire, &input);
            if wire == Wire::Chat {
                let expected =
                    [&expected[..3], &["thinking"], &expected[3..4], &["thinking"], &expected[4..]];
                assert_eq!(on, expected.concat(), "thinking of a turn with calls goes back");
            } else {
                assert_eq!(on, expected, "{wire:?}");
            }
        }
    }

    #[test]
    fn a_thought_without_a_signature_goes_back_only_to_a_server_that_wants_it() {
        let input = |signature: &str| {
            let form = json!({"type": "thinking", "thinking": "hm", "signature": signature});
            vec![
                said(Role::User, "q"),
                native(Wire::Anthropic, thought("hm"), form),
                plain(call("c1", "Read", "{}")),
                plain(result("c1", "ok")),
            ]
        };
        let sent = |signature: &str, base_url: &str| {
            let model = Model { base_url: base_url.into(), ..model(Wire::Anthropic) };
            brief(&parts(&request(input(signature)), &model))
        };
        let own = "https://api.anthropic.com/v1";
        assert_eq!(sent("", own)[1], "call c1 Read");
        assert_eq!(sent("s", own)[1], "thinking");
        assert_eq!(sent("", "https://api.deepseek.com/anthropic/v1")[1], "thinking");
    }

    #[test]
    fn a_conversation_begins_and_ends_with_the_user_where_the_api_needs_it() {
        let input = [said(Role::Assistant, "hi")];
        for wire in [Wire::Anthropic, Wire::Gemini] {
            assert_eq!(on(wire, &input), ["user Go on.", "model hi", "user Go on."], "{wire:?}");
        }
        for wire in [Wire::Chat, Wire::Responses] {
            assert_eq!(on(wire, &input), ["model hi"], "{wire:?}");
        }
        let paused = json!({"type": "server_tool_use"});
        let input =
            [said(Role::User, "q"), native(Wire::Anthropic, Item::Unknown(paused.clone()), paused)];
        assert_eq!(on(Wire::Anthropic, &input), ["user q", "other"], "a paused reply goes on");
    }
}
