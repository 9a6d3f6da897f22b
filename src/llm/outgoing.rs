//! The conversation as an API takes it: one pass over the input of each request, before a wire gives it its form.
//! A part depends only on the parts before it, so that a request begins like the one before it and the provider finds its
//! cache. There are two exceptions: thinking is dropped where nothing follows from it, and a user line is added behind the
//! last words of the model.

use crate::config::models::{Model, Wire};
use crate::llm::{Request, wire};
use crate::protocol::item::{Content, Image};
use crate::protocol::{Item, Role};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

/// Replaces a blank message, because APIs refuse one.
const BLANK: &str = "[an empty message]";
/// A user message that is added before the first words of the model, and behind its last ones, where the API refuses a
/// conversation that does not begin and end with the user.
const GO_ON: &str = "Go on.";
/// The longest id of a call that is sent: the limit of `OpenAI`.
const MAX_ID: usize = 40;
/// The longest name of a tool that all APIs take.
const MAX_NAME: usize = 64;

/// A part of the conversation. `native` is the provider's own form, where the model that is asked made the part.
#[derive(Debug)]
pub enum Part<'a> {
    /// What a person or the runtime says. The APIs know no third voice here, and the words of files and peers must not
    /// weigh as much as the system prompt.
    User(String),
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

/// What the servers of some providers demand of a conversation on the Chat wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Nothing beyond the wire.
    None,
    /// Ids of nine letters and digits, the model's words between a result and what a person says, no thinking: the API
    /// of Mistral and the templates of its models on other servers.
    Mistral,
    /// Thinking with each message that makes calls.
    Thinking,
}

/// The demands of some providers. In each row: the provider, whose name may stand in the address instead; parts of the
/// names of models for which other servers demand the same; the demand.
const DEMANDS: [(&str, &[&str], Demand); 3] = [
    (
        "mistral",
        &["mistral", "ministral", "mixtral", "magistral", "devstral", "codestral", "pixtral"],
        Demand::Mistral,
    ),
    ("deepseek", &[], Demand::Thinking),
    ("moonshot", &[], Demand::Thinking),
];

impl Demand {
    pub fn of(model: &Model) -> Self {
        let (name, url) = (model.model.to_lowercase(), &model.base_url);
        let demands = |(provider, families, _): &&(&str, &[&str], Self)| {
            model.provider == *provider
                || url.contains(&format!("{provider}."))
                || families.iter().any(|family| name.contains(family))
        };
        let found = DEMANDS.iter().find(demands).filter(|_| model.wire == Wire::Chat);
        found.map_or(Self::None, |(_, _, demand)| *demand)
    }
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
            Item::Reasoning { .. } => native.map(Part::Thinking),
            Item::Unknown(_) => native.map(Part::Other),
        });
    }
    let demand = Demand::of(model);
    drop_thinking(&mut parts, model.wire, demand);
    if matches!(model.wire, Wire::Responses | Wire::Chat) && demand != Demand::Mistral {
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

fn is_of_model(part: &Part) -> bool {
    !matches!(part, Part::User(_) | Part::Result(_))
}

/// Drops thinking from which nothing follows: an API refuses it or makes no use of it. On the Chat wire thinking stays
/// before a call and behind one of the same turn, also when that turn is old.
fn drop_thinking(parts: &mut Vec<Part>, wire: Wire, demand: Demand) {
    let is_chat = wire == Wire::Chat;
    let mut has_called = false;
    let called: Vec<bool> = parts
        .iter()
        .map(|part| {
            has_called =
                !matches!(part, Part::User(_)) && (has_called || matches!(part, Part::Call(_)));
            has_called
        })
        .collect();
    let mut leads = false;
    let kept = parts.iter().zip(called).rev().map(|(part, has_called)| match part {
        Part::Thinking(_) => demand != Demand::Mistral && (leads || is_chat && has_called),
        Part::Model { .. } | Part::Other(_) if is_chat => true,
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
    is_nine: bool,
    taken: HashSet<String>,
    /// The calls without a result, by the id in the log, each with the id in the request.
    open: VecDeque<(&'a str, String)>,
}

impl<'a> Ids<'a> {
    fn of(model: &Model) -> Self {
        let is_nine = Demand::of(model) == Demand::Mistral;
        Self { wire: model.wire, is_nine, taken: HashSet::new(), open: VecDeque::new() }
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
        let known = [given, Some(call_id)].into_iter().flatten();
        let known = known.map(str::to_owned).find(|id| self.takes(id));
        let id = known.unwrap_or_else(|| {
            let made = |n: u32| wire::call_id_of(format!("{call_id} {n}").as_bytes());
            (0..).map(made).find(|id| !self.taken.contains(id)).unwrap_or_default()
        });
        self.taken.insert(id.clone());
        self.open.push_back((call_id, id.clone()));
        let plain = plain_name(name);
        let native = native.map(|native| {
            let mut native = Cow::Borrowed(native);
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

    fn takes(&self, id: &str) -> bool {
        let more = if self.wire == Wire::Anthropic { "_-" } else { "_-.:" };
        let is_plain = |c: char| c.is_ascii_alphanumeric() || !self.is_nine && more.contains(c);
        let has_length = match self.is_nine {
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

/// A name that every API takes, and the name itself where it is one: a letter, then letters, digits, `_` and `-`.
fn plain_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if begins && name.len() <= MAX_NAME && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let start = if begins { "" } else { "tool_" };
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(start.chars().chain(plain).take(MAX_NAME).collect())
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
    fn a_call_keeps_the_id_of_its_server_until_that_comes_again() {
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
    fn names_of_calls_have_a_form_that_every_api_takes() {
        let long = "n".repeat(65);
        for (name, plain) in [
            ("Read", "Read"),
            ("mcp__git__log", "mcp__git__log"),
            ("functions.Bash", "functions_Bash"),
            ("Bash<|channel|>commentary", "Bash__channel__commentary"),
            ("", "tool_"),
            ("1st", "tool_1st"),
            ("_private", "tool__private"),
            ("naïve tool", "na_ve_tool"),
            (long.as_str(), &long[..64]),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
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
        let think = |wire| native(wire, thought("hm"), json!({"type": "thinking"}));
        for wire in [Wire::Anthropic, Wire::Responses, Wire::Gemini] {
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
            ];
            let expected = ["user q", "thinking", "call c1 Read", "result c1 ok", "user and?"];
            assert_eq!(on(wire, &input), expected, "{wire:?}");
        }
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

    #[test]
    fn providers_and_families_of_models_have_their_demands() {
        let demand = |provider: &str, name: &str, base_url: &str| {
            let (provider, model_name) = (provider.to_owned(), name.to_owned());
            let base_url = base_url.to_owned();
            Demand::of(&Model { provider, model: model_name, base_url, ..model(Wire::Chat) })
        };
        let local = "http://127.0.0.1:9/v1";
        assert_eq!(demand("mistral", "m", local), Demand::Mistral);
        assert_eq!(demand("mine", "Devstral-24B", local), Demand::Mistral);
        assert_eq!(demand("mine", "m", "https://api.deepseek.com/v1"), Demand::Thinking);
        assert_eq!(demand("moonshot", "kimi-k2.6", local), Demand::Thinking);
        assert_eq!(demand("groq", "kimi-k2", local), Demand::None);
    }
}
