//! Which reply a request gets, and the deltas it is made of.

use crate::llm::rehearsal::pattern::Fill;
use crate::llm::rehearsal::script::{Call, FaultKind, On, Pace, Script, Step, When};
use crate::llm::{Delta, Failure, Input, Request, Stop, Usage, wire};
use crate::protocol::entry::IMAGE_BYTES;
use crate::protocol::{Item, Role};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

/// What happens next in a reply.
pub enum Act {
    Say(Delta),
    Stream(Text),
    /// Milliseconds.
    Wait(u64),
    Hang,
    Fail(Failure),
}

/// A text that comes piece by piece; the pieces are made as they are said.
pub struct Text {
    of: TextOf,
    text: String,
    /// The bytes that were said.
    said: usize,
    pace: Pace,
}

/// What a text is part of.
enum TextOf {
    Answer,
    Thinking,
    /// The arguments of the call with this id.
    Arguments(String),
}

impl Text {
    /// Milliseconds before the next piece.
    pub fn delay_ms(&self) -> u64 {
        self.pace.delay_ms
    }

    /// One delta for every `chunk` characters; together they are the text.
    pub fn next(&mut self) -> Option<Delta> {
        let rest = self.text.get(self.said..).filter(|rest| !rest.is_empty())?;
        let end = rest.char_indices().nth(self.pace.chunk).map_or(rest.len(), |(at, _)| at);
        let piece = rest[..end].to_owned();
        self.said += end;
        Some(match &self.of {
            TextOf::Answer => Delta::Text(piece),
            TextOf::Thinking => Delta::Thinking(piece),
            TextOf::Arguments(id) => Delta::ToolCallArgs { id: id.clone(), json: piece },
        })
    }
}

/// The line of a system prompt that says where the Pod works.
const CWD: &str = "Working directory: ";
/// What a Pod asks for when its context is full.
const COMPACTION: &str = include_str!("../../../prompts/compaction.md");
const ADDED_NOTHING: &str = "The script has nothing to add.";
const HANDOVER: &str =
    "This conversation was a rehearsal; its script answers from here on as before.";

/// Where a request stands in a script.
struct Position<'a> {
    when: Option<&'a When>,
    /// Tool rounds since the message that is answered.
    round: usize,
    /// What was already said of this reply, and in how many pieces.
    said: String,
    pieces: usize,
    /// Whether the message asks to hand the conversation over.
    handover: bool,
    fill: Fill,
}

/// Refuses a request that is longer than the script reads.
pub fn check_length(script: &Script, request: &Request) -> Result<(), Failure> {
    let (bytes, most) = (bytes(request), script.reads.unwrap_or(u64::MAX));
    if bytes <= most {
        return Ok(());
    }
    let words = format!("rehearsal: prompt is too long: {bytes} bytes, the script reads {most}");
    Err(Failure::TooLong { message: words.clone(), provider_text: words })
}

/// The reply to a request. Fails at once where a provider would: on a fault before any answer.
pub fn reply(script: &Script, request: &Request) -> Result<Vec<Act>, Failure> {
    let position = find(script, request);
    let Some(step) = position.when.and_then(|when| when.steps.get(position.round)) else {
        return Ok(plain(script, &position, request));
    };
    let filled = |text: &str| position.fill.text(text).map_err(|name| unfilled(script, name));
    let whole = filled(&step.text)?;
    let text = match rest(&whole, &position.said) {
        Rest::All => whole.as_str(),
        Rest::Tail(tail) => tail,
        Rest::Nothing if step.calls.is_empty() => ADDED_NOTHING,
        Rest::Nothing => "",
    };
    let fault = due(script, step, request, &position);
    if let Some(FaultKind::Status { status, retry_after_s }) = fault {
        return Err(Failure::Status {
            status: *status,
            retry_after: retry_after_s.map(Duration::from_secs),
            message: format!("rehearsal: the script answers with HTTP {status}"),
            provider_text: String::new(),
        });
    }
    let mut acts = Acts::new(step.pace);
    if position.said.is_empty() {
        acts.think(&filled(&step.think)?);
    }
    let calls = |acts: &mut Acts| {
        for (index, call) in step.calls.iter().enumerate() {
            let arguments =
                arguments(call, &position.fill).map_err(|name| unfilled(script, name))?;
            acts.call(call_id(request, index), call.name.clone(), arguments, call.cut);
        }
        Ok(())
    };
    if let Some(fault) = fault {
        // As providers do that count the input before they answer.
        if let Some(Usage { input, cache_read, cache_write, .. }) = step.usage {
            let counted = Usage { input, cache_read, cache_write, ..Usage::default() };
            acts.say(Delta::Usage(counted));
        }
        if matches!(fault, FaultKind::Refuse(_)) {
            calls(&mut acts)?;
        }
        acts.broken(fault, text);
        return Ok(acts.all);
    }
    acts.text(text);
    calls(&mut acts)?;
    acts.say(Delta::Usage(step.usage.unwrap_or_else(|| estimate(request, text))));
    acts.say(Delta::End(stop(step)));
    Ok(acts.all)
}

fn unfilled(script: &Script, name: &str) -> Failure {
    let file = script.file.display();
    Failure::Unusable(format!(
        "{file}: {{{name}}} cannot be filled: the system prompt has no line \"{CWD}…\""
    ))
}

/// A reply the script does not hold: a handover, the end of a story, or its `otherwise`.
fn plain(script: &Script, position: &Position<'_>, request: &Request) -> Vec<Act> {
    let known = || {
        let says = script.when.iter().filter_map(|when| match &when.on {
            On::Says(patterns) => patterns.first().map(|pattern| format!("{:?}", pattern.source())),
            On::Any | On::Note(_) => None,
        });
        says.collect::<Vec<_>>().join(", ")
    };
    let text = match (position.when, &script.otherwise) {
        (None, _) if position.handover => HANDOVER.to_owned(),
        _ if !position.said.is_empty() => ADDED_NOTHING.to_owned(),
        (Some(when), _) => {
            format!("The script ends here, after its {} steps for this.", when.steps.len())
        }
        (None, Some(otherwise)) => otherwise.trim().to_owned(),
        (None, None) => format!(
            "{} has no line for this. It knows: {}.",
            script.file.display(),
            Some(known()).filter(|known| !known.is_empty()).unwrap_or("nothing".into())
        ),
    };
    let mut acts = Acts::new(Pace { chunk: 12, delay_ms: 0, wait_ms: 0 });
    acts.text(&text);
    acts.say(Delta::Usage(estimate(request, &text)));
    acts.say(Delta::End(Stop::EndTurn));
    acts.all
}

/// Finds the message to answer and what was done about it so far.
fn find<'a>(script: &'a Script, request: &Request) -> Position<'a> {
    let input = &request.input;
    let anchor = input.iter().rposition(|input| match &input.item {
        Item::Message { role: Role::User, .. } => true,
        Item::Message { role: Role::System, .. } => note(script, &text_of(input)).is_some(),
        _ => false,
    });
    let text = anchor.map(|at| text_of(&input[at])).unwrap_or_default();
    let is_note = anchor
        .is_some_and(|at| matches!(&input[at].item, Item::Message { role: Role::System, .. }));
    let handover = text.trim() == COMPACTION.trim();
    let found = if is_note {
        note(script, &text)
    } else {
        says(script, &text).filter(|(when, _)| !handover || when.on != On::Any)
    };
    let (when, captures) = found.map_or((None, Vec::new()), |(when, all)| (Some(when), all));
    let cwd = request.system.lines().find_map(|line| line.strip_prefix(CWD)).map(str::to_owned);
    let fill = Fill { input: text, captures, result: String::new(), cwd };
    let mut position = Position { when, round: 0, said: String::new(), pieces: 0, handover, fill };
    let mut in_results = false;
    for input in &input[anchor.map_or(0, |at| at + 1)..] {
        let result = matches!(input.item, Item::ToolResult { .. });
        match &input.item {
            Item::ToolResult { summary, content, .. } => {
                if !in_results {
                    position.round += 1;
                    position.said.clear();
                    position.pieces = 0;
                }
                position.fill.result = content.as_ref().unwrap_or(summary).trim().to_owned();
            }
            Item::Message { role: Role::Assistant, .. } => {
                position.said.push_str(&text_of(input));
                position.pieces += 1;
            }
            _ => {}
        }
        in_results = result
            || (in_results && matches!(input.item, Item::Message { role: Role::System, .. }));
    }
    position
}

fn text_of(input: &Input) -> String {
    input.item.text().unwrap_or_default()
}

fn says<'a>(script: &'a Script, text: &str) -> Option<(&'a When, Vec<String>)> {
    script.when.iter().find_map(|when| match &when.on {
        On::Says(patterns) => {
            patterns.iter().find_map(|pattern| pattern.captures(text)).map(|found| (when, found))
        }
        On::Any => Some((when, vec![text.trim().to_owned()])),
        On::Note(_) => None,
    })
}

fn note<'a>(script: &'a Script, text: &str) -> Option<(&'a When, Vec<String>)> {
    script.when.iter().find_map(|when| match &when.on {
        On::Note(pattern) => pattern.captures(text).map(|found| (when, found)),
        On::Says(_) | On::Any => None,
    })
}

/// The fault of a step, unless it happened as often as it should.
fn due<'a>(
    script: &Script,
    step: &'a Step,
    request: &Request,
    position: &Position<'_>,
) -> Option<&'a FaultKind> {
    let fault = step.fault.as_ref()?;
    let Some(times) = fault.times else { return Some(&fault.kind) };
    (attempts(script, request, position) < times).then_some(&fault.kind)
}

enum Rest<'a> {
    All,
    Tail(&'a str),
    Nothing,
}

/// What is left to say of a text of which something was said.
fn rest<'a>(whole: &'a str, said: &str) -> Rest<'a> {
    if said.is_empty() {
        return Rest::All;
    }
    if !whole.is_empty() && said.starts_with(whole.trim_end()) {
        return Rest::Nothing;
    }
    match whole.strip_prefix(said).or_else(|| whole.strip_prefix(said.trim_end())) {
        Some(tail) => Rest::Tail(tail),
        None => Rest::All,
    }
}

/// How often this reply was tried: pieces of it that stand in the conversation, or, before there
/// is any, how often this process was asked for it.
fn attempts(script: &Script, request: &Request, position: &Position<'_>) -> usize {
    static ASKED: LazyLock<Mutex<HashMap<blake3::Hash, usize>>> = LazyLock::new(Mutex::default);
    if position.pieces > 0 {
        return position.pieces;
    }
    let key = format!(
        "{}\n{}\n{}\n{}",
        script.file.display(),
        request.conversation,
        request.input.len(),
        position.round
    );
    let mut asked = ASKED.lock().unwrap_or_else(PoisonError::into_inner);
    let count = asked.entry(blake3::hash(key.as_bytes())).or_default();
    *count += 1;
    *count - 1
}

/// The same request gets the same ids, and no other request of this conversation gets them.
fn call_id(request: &Request, index: usize) -> String {
    let key = format!("{}\n{}\n{index}", request.conversation, request.input.len());
    format!("call_{}", &blake3::hash(key.as_bytes()).to_hex()[..16])
}

fn arguments(call: &Call, fill: &Fill) -> Result<String, &'static str> {
    fn filled(value: &Value, fill: &Fill) -> Result<Value, &'static str> {
        Ok(match value {
            Value::String(text) => Value::String(fill.text(text)?),
            Value::Array(all) => {
                Value::Array(all.iter().map(|one| filled(one, fill)).collect::<Result<_, _>>()?)
            }
            Value::Object(all) => {
                let pairs = all.iter().map(|(key, one)| Ok((key.clone(), filled(one, fill)?)));
                Value::Object(pairs.collect::<Result<_, &'static str>>()?)
            }
            other => other.clone(),
        })
    }
    Ok(filled(&call.args, fill)?.to_string())
}

fn stop(step: &Step) -> Stop {
    match step.stop.as_deref() {
        Some("max_tokens") => Stop::MaxTokens,
        Some("context_exceeded") => Stop::ContextExceeded,
        Some("pause") => Stop::Pause,
        Some("end_turn") => Stop::EndTurn,
        Some("tool_use") => Stop::ToolUse,
        Some(other) => Stop::Other(other.to_owned()),
        None if step.calls.is_empty() => Stop::EndTurn,
        None => Stop::ToolUse,
    }
}

fn head(text: &str, chars: usize) -> String {
    text.chars().take(chars).collect()
}

/// The bytes of a request, without the tools; an image counts as so much text.
fn bytes(request: &Request) -> u64 {
    let size = |input: &Input| match &input.item {
        Item::Message { .. } => text_of(input).len(),
        Item::ToolCall { arguments, .. } => arguments.len(),
        Item::ToolResult { summary, content, images, .. } => {
            let images = images.len() * usize::try_from(IMAGE_BYTES).unwrap_or(usize::MAX);
            summary.len() + content.as_ref().map_or(0, String::len) + images
        }
        Item::Reasoning { text, .. } => text.len(),
        Item::Unknown(_) => 0,
    };
    (request.system.len() + request.input.iter().map(size).sum::<usize>()) as u64
}

/// Tokens by the rule of thumb of four bytes each.
fn estimate(request: &Request, answer: &str) -> Usage {
    let tokens = |bytes: u64| Some(bytes.div_ceil(4));
    let (input, output) = (tokens(bytes(request)), tokens(answer.len() as u64));
    Usage { input, output, ..Usage::default() }
}

/// The reply as it grows.
struct Acts {
    pace: Pace,
    all: Vec<Act>,
}

impl Acts {
    fn new(pace: Pace) -> Self {
        let all = if pace.wait_ms > 0 { vec![Act::Wait(pace.wait_ms)] } else { Vec::new() };
        Self { pace, all }
    }

    fn say(&mut self, delta: Delta) {
        self.all.push(Act::Say(delta));
    }

    fn stream(&mut self, text: &str, of: TextOf) {
        self.all.push(Act::Stream(Text { of, text: text.to_owned(), said: 0, pace: self.pace }));
    }

    fn pieces(&mut self, text: &str) {
        self.stream(text, TextOf::Answer);
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.pieces(text);
        self.say(Delta::Block {
            item: Item::message(Role::Assistant, text),
            native: None,
            cut: false,
        });
    }

    fn think(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.say(Delta::ThinkingStart);
        self.stream(text, TextOf::Thinking);
        let item = Item::Reasoning {
            text: text.to_owned(),
            summary: Vec::new(),
            encrypted_content: None,
            signature: None,
        };
        self.say(Delta::Block { item, native: None, cut: false });
    }

    fn call(&mut self, id: String, name: String, mut arguments: String, cut: Option<usize>) {
        if let Some(bytes) = cut {
            arguments.truncate(arguments.floor_char_boundary(bytes));
        }
        self.say(Delta::ToolCallStart { id: id.clone(), name: name.clone() });
        self.stream(&arguments, TextOf::Arguments(id.clone()));
        let arguments = wire::received_arguments(&arguments);
        let item = Item::ToolCall { call_id: id.clone(), name, arguments };
        self.say(Delta::Block { item, native: None, cut: cut.is_some() });
    }

    /// What comes before things go wrong, and how they do.
    fn broken(&mut self, fault: &FaultKind, text: &str) {
        match fault {
            FaultKind::Cut(after) => {
                self.pieces(&head(text, *after));
                let words = "rehearsal: the script cuts the stream".to_owned();
                self.all.push(Act::Fail(Failure::Cut(words)));
            }
            FaultKind::Hang(after) => {
                self.pieces(&head(text, *after));
                self.all.push(Act::Hang);
            }
            FaultKind::Error { message, retryable, after } => {
                self.pieces(&head(text, *after));
                let (message, provider_text) = (message.clone(), message.clone());
                let retryable = *retryable;
                self.all.push(Act::Fail(Failure::Provider { message, provider_text, retryable }));
            }
            FaultKind::Refuse(words) => self.say(Delta::End(Stop::Refusal(words.clone()))),
            FaultKind::Status { .. } => {}
        }
    }
}
