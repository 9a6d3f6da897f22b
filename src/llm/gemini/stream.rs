//! The answer of Gemini: each event is a small answer of its own, a list of parts. Parts of one
//! kind that follow each other are one block here.

use crate::llm::cause::Cause;
use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Ending, Fault, at, list, text};
use crate::llm::{Delta, Stop, Usage};
use crate::protocol::{Item, Role};
use serde_json::{Map, Value, json};

/// Reads the events of one answer.
#[derive(Default)]
pub struct Decoder {
    open: Option<Open>,
    called: bool,
    ending: Ending,
}

/// Words under construction.
struct Open {
    thought: bool,
    words: String,
    /// What else came with them, such as a signature.
    more: Map<String, Value>,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let data = wire::parse(event)?;
        let known = data.get("usageMetadata").is_some() || data.get("candidates").is_some();
        let blocked = text(at(&data, "promptFeedback"), "blockReason");
        if !blocked.is_empty() {
            let words = text(at(&data, "promptFeedback"), "blockReasonMessage");
            self.ending.because(Stop::Refusal(refusal(words, blocked)));
        } else if !known {
            out.push(Delta::Unknown(data));
            return Ok(());
        }
        // First, because a reply that breaks off costs, too.
        if let Some(usage) = data.get("usageMetadata") {
            out.push(Delta::Usage(count(usage)));
        }
        if let Some(candidate) = list(&data, "candidates").first() {
            self.candidate(candidate, out)?;
        }
        Ok(())
    }

    fn ending(&mut self) -> &mut Ending {
        &mut self.ending
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop> {
        let stop = self.ending.stop(self.called)?;
        self.close(out);
        Some(stop)
    }
}

impl Decoder {
    fn candidate(&mut self, candidate: &Value, out: &mut Vec<Delta>) -> Result<(), Fault> {
        for part in list(at(candidate, "content"), "parts") {
            self.part(part, out);
        }
        for key in ["groundingMetadata", "citationMetadata", "urlContextMetadata"] {
            if let Some(found) = candidate.get(key) {
                out.push(Delta::Unknown(json!({key: found})));
            }
        }
        let words = text(candidate, "finishMessage");
        self.ending.because(match text(candidate, "finishReason") {
            "" => return Ok(()),
            // The model made an invalid call, or stopped without a named reason. The same request usually succeeds when
            // it is sent again.
            reason @ ("MALFORMED_FUNCTION_CALL"
            | "MALFORMED_RESPONSE"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MISSING_THOUGHT_SIGNATURE"
            | "OTHER") => {
                let words = if words.is_empty() { "the reply is of no use" } else { words };
                let message = refusal(words, reason);
                return Err(Fault::Reported { message, cause: Cause::Passes });
            }
            reason => match wire::stop(reason) {
                Stop::Refusal(_) => Stop::Refusal(refusal(words, reason)),
                stop => stop,
            },
        });
        Ok(())
    }

    fn part(&mut self, part: &Value, out: &mut Vec<Delta>) {
        self.ending.piece();
        if part.get("functionCall").is_some() {
            self.close(out);
            return self.call(part, out);
        }
        let (Some(words), Some(fields)) =
            (part.get("text").and_then(Value::as_str), part.as_object())
        else {
            self.close(out);
            let native = Some(part.clone());
            return out.push(Delta::Block {
                item: Item::Unknown(part.clone()),
                native,
                cut: false,
            });
        };
        let thought = at(part, "thought").as_bool().unwrap_or(false);
        let signed = part.get("thoughtSignature").is_some();
        if self.open.as_ref().is_none_or(|open| open.thought != thought) {
            if words.is_empty() && !signed {
                return;
            }
            self.close(out);
            if thought {
                out.push(Delta::ThinkingStart);
            }
            self.open = Some(Open { thought, words: String::new(), more: Map::new() });
        }
        if let Some(open) = &mut self.open {
            open.words.push_str(words);
            let more = fields.iter().filter(|(key, _)| !matches!(key.as_str(), "text" | "thought"));
            for (key, value) in more {
                out.push(wire::kept_field(key, value));
                open.more.insert(key.clone(), value.clone());
            }
        }
        if !words.is_empty() {
            let words = words.to_owned();
            out.push(if thought { Delta::Thinking(words) } else { Delta::Text(words) });
        }
        if signed {
            // Signed words must come back as they are, nothing joined to them.
            self.close(out);
        }
    }

    fn call(&mut self, part: &Value, out: &mut Vec<Delta>) {
        self.called = true;
        let call = at(part, "functionCall");
        let given = text(call, "id");
        let id = if given.is_empty() { wire::call_id() } else { given.to_owned() };
        let name = text(call, "name").to_owned();
        let arguments = wire::received_arguments(&at(call, "args").to_string());
        out.push(Delta::ToolCallStart { id: id.clone(), name: name.clone() });
        out.push(Delta::ToolCallArgs { id: id.clone(), json: arguments.clone() });
        let item = Item::ToolCall { call_id: id, name, arguments };
        // The wire sends a call whole.
        out.push(Delta::Block { item, native: Some(part.clone()), cut: false });
    }

    fn close(&mut self, out: &mut Vec<Delta>) {
        let Some(Open { thought, words, mut more }) = self.open.take() else { return };
        let signature = more.get("thoughtSignature").and_then(Value::as_str).map(str::to_owned);
        let signed = signature.is_some();
        more.insert("text".into(), json!(words));
        let item = match (thought, words.is_empty()) {
            // The wire takes no thoughts back, only signatures.
            (true, _) => {
                more.insert("thought".into(), json!(true));
                Item::Reasoning { text: words, summary: vec![], encrypted_content: None, signature }
            }
            (false, true) => Item::Unknown(Value::Object(more.clone())),
            (false, false) => Item::message(Role::Assistant, words),
        };
        let native = (signed || !thought).then_some(Value::Object(more));
        out.push(Delta::Block { item, native, cut: false });
    }
}

fn refusal(words: &str, reason: &str) -> String {
    if words.is_empty() { reason.to_owned() } else { format!("{words} ({reason})") }
}

fn count(usage: &Value) -> Usage {
    let number = |key| at(usage, key).as_u64();
    let thoughts = number("thoughtsTokenCount");
    let said = number("candidatesTokenCount");
    let output = said.or(thoughts).map(|_| said.unwrap_or(0) + thoughts.unwrap_or(0));
    Usage {
        input: number("promptTokenCount"),
        output,
        cache_read: number("cachedContentTokenCount"),
        cache_write: None,
        reasoning: thoughts,
    }
}
