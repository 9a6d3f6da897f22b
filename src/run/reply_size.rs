//! How large the reply of a model may become. Sizes are counted as the log holds them, in bytes of
//! JSON, while the reply arrives: a model without end is stopped before it fills memory and disk.

use crate::llm::Delta;
use crate::protocol::{Entry, Fact, Item, MAX_LINE, MAX_VALUES, ValueCount, value_memory};
use crate::session::json_size;
use serde_json::Value;
use std::collections::HashMap;

/// What an entry takes besides the text of its block, in bytes: an answer of many empty blocks is
/// counted, too.
const ENTRY: u64 = 256;
/// Tool calls in one reply.
const CALLS: usize = 1024;
/// What is left of a line for the fields around a block, in bytes.
const AROUND: u64 = 1 << 20;

/// The largest sizes of a reply, in bytes of log.
#[derive(Clone, Copy, Debug)]
pub struct ReplyLimits {
    pub whole: u64,
    /// One block: a text, a thought or a tool call.
    pub block: u64,
    /// The arguments of one tool call.
    pub arguments: u64,
}

/// A limit that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error(
        "the model was stopped: its reply is over {} MiB (limits.reply_mib in config.toml); what came \
         before is kept",
        .0 >> 20
    )]
    Reply(u64),
    #[error(
        "the model was stopped: one block of its reply is over {} MiB (limits.block_mib in \
         config.toml); what came before is kept",
        .0 >> 20
    )]
    Block(u64),
    #[error(
        "the model was stopped: the arguments of one tool call are over {} MiB (limits.argument_mib \
         in config.toml); what came before is kept, and the call is not carried out",
        .0 >> 20
    )]
    Arguments(u64),
    #[error(
        "the model was stopped: its reply has more than {0} tool calls; what came before is kept"
    )]
    Calls(usize),
    #[error(
        "the model was stopped: the arguments of one tool call hold more than {MAX_VALUES} JSON values; \
         what came before is kept, and the call is not carried out"
    )]
    Values,
}

/// The size of a reply as far as it arrived.
pub(crate) struct ReplySize {
    limits: ReplyLimits,
    whole: u64,
    /// The open text or thought.
    block: u64,
    thinking: bool,
    /// The arguments of each open call.
    calls: HashMap<String, Arguments>,
    /// Calls that began or came whole.
    begun: usize,
}

/// The arguments of a call as far as they arrived.
#[derive(Clone, Copy, Default)]
struct Arguments {
    bytes: u64,
    values: ValueCount,
}

impl ReplySize {
    pub(crate) fn new(limits: ReplyLimits) -> Self {
        Self { limits, whole: 0, block: 0, thinking: false, calls: HashMap::new(), begun: 0 }
    }

    /// Counts a delta; one that passes a limit is to be left out, with all that follows.
    pub(crate) fn add(&mut self, delta: &Delta) -> Result<(), TooLarge> {
        match delta {
            Delta::Text(text) => self.words(text, false),
            Delta::Thinking(text) => self.words(text, true),
            Delta::ThinkingStart => self.whole(ENTRY),
            Delta::ToolCallStart { id, name } => {
                self.begins(id)?;
                self.whole(ENTRY + (id.len() + name.len()) as u64)
            }
            Delta::ToolCallArgs { id, json } => {
                let more = in_json(json);
                let arguments = self.calls.entry(id.clone()).or_default();
                arguments.bytes += more;
                arguments.values.add(json);
                if arguments.values.exceeds_limit() {
                    return Err(TooLarge::Values);
                }
                let bytes = arguments.bytes;
                self.arguments(bytes)?;
                self.whole(more)
            }
            Delta::Block { item, native, .. } => self.complete(item, native.as_ref()),
            Delta::Unseen(bytes) => self.whole(*bytes as u64),
            Delta::Garbled(why) => self.whole(why.len() as u64),
            Delta::Usage(_)
            | Delta::Learned(_)
            | Delta::Unended(_)
            | Delta::Unknown(_)
            | Delta::End(_) => Ok(()),
        }
    }

    fn begins(&mut self, id: &str) -> Result<(), TooLarge> {
        if self.calls.insert(id.to_owned(), Arguments::default()).is_none() {
            self.begun += 1;
        }
        if self.begun > CALLS { Err(TooLarge::Calls(CALLS)) } else { Ok(()) }
    }

    fn words(&mut self, text: &str, thinking: bool) -> Result<(), TooLarge> {
        if std::mem::replace(&mut self.thinking, thinking) != thinking {
            self.block = 0;
        }
        let more = in_json(text);
        self.block += more;
        self.block_of(self.block)?;
        self.whole(more)
    }

    /// A block as it will stand in the log; what streamed of it was counted. The provider's own form of it
    /// counts as far as it takes more memory than the block.
    fn complete(&mut self, item: &Item, native: Option<&Value>) -> Result<(), TooLarge> {
        let streamed = match item {
            Item::ToolCall { call_id, arguments, .. } => {
                self.arguments(in_json(arguments))?;
                if ValueCount::is_too_many(arguments) {
                    return Err(TooLarge::Values);
                }
                if !self.calls.contains_key(call_id) {
                    self.begins(call_id)?;
                }
                self.calls.remove(call_id).map_or(0, |arguments| arguments.bytes)
            }
            Item::Message { .. } | Item::Reasoning { .. } => std::mem::take(&mut self.block),
            Item::ToolResult { .. } | Item::Unknown(_) => 0,
        };
        let size = json_size(item);
        self.block_of(size.saturating_sub(ENTRY))?;
        let native = native.map_or(0, value_memory) as u64;
        self.whole(size.saturating_sub(streamed) + native.saturating_sub(size))
    }

    fn arguments(&self, bytes: u64) -> Result<(), TooLarge> {
        let limit = self.limits.arguments;
        if bytes > limit { Err(TooLarge::Arguments(limit)) } else { self.block_of(bytes) }
    }

    fn block_of(&self, bytes: u64) -> Result<(), TooLarge> {
        let limit = self.limits.block;
        if bytes > limit { Err(TooLarge::Block(limit)) } else { Ok(()) }
    }

    fn whole(&mut self, more: u64) -> Result<(), TooLarge> {
        self.whole += more;
        let limit = self.limits.whole;
        if self.whole > limit { Err(TooLarge::Reply(limit)) } else { Ok(()) }
    }
}

/// Leaves the provider's own form of a block out where the line with it would be longer than a line
/// may be. The model then gets the block as any other model would.
pub(crate) fn within_a_line(mut entry: Entry) -> Entry {
    if let Fact::AssistantItem { item, native, .. } = &mut entry.fact
        && native.as_ref().is_some_and(|form| json_size(item) + json_size(form) > LINE)
    {
        *native = None;
    }
    entry
}

const LINE: u64 = MAX_LINE as u64 - AROUND;

/// The length of a text inside a JSON string.
fn in_json(text: &str) -> u64 {
    let escaped = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(escaped).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Origin, Role};
    use proptest::prelude::*;
    use serde_json::json;

    const SMALL: ReplyLimits = ReplyLimits { whole: 100_000, block: 1_000, arguments: 500 };

    /// The limit that is passed first, and by which delta.
    fn passed(deltas: impl IntoIterator<Item = Delta>) -> Option<(usize, TooLarge)> {
        let mut size = ReplySize::new(SMALL);
        let mut deltas = deltas.into_iter().enumerate();
        deltas.find_map(|(at, delta)| Some((at, size.add(&delta).err()?)))
    }

    fn text(text: &str) -> Delta {
        Delta::Text(text.into())
    }

    fn endless(delta: Delta) -> impl Iterator<Item = Delta> {
        std::iter::repeat_n(delta, 1_000_000)
    }

    #[test]
    fn a_text_is_counted_as_the_log_escapes_it() {
        assert_eq!(passed([text(&"x".repeat(1_000))]), None);
        assert_eq!(passed([text(&"\n".repeat(501))]), Some((0, TooLarge::Block(1_000))));
    }

    #[test]
    fn a_block_begins_to_count_anew_when_the_one_before_it_is_complete() {
        let said = "x".repeat(900);
        let item = Item::message(Role::Assistant, said.clone());
        let block = Delta::Block { item, native: None, cut: false };
        let two = [text(&said), block.clone(), text(&said), block];
        assert_eq!(passed(two), None);
        let thought = Delta::Thinking(said.clone());
        assert_eq!(passed([thought, text(&said)]), None);
        assert_eq!(passed([text(&said), text(&said)]), Some((1, TooLarge::Block(1_000))));
    }

    #[test]
    fn every_kind_of_answer_without_end_passes_a_limit() {
        let call = |id: usize| Delta::ToolCallStart { id: id.to_string(), name: "Read".into() };
        let json = Delta::ToolCallArgs { id: "a".into(), json: "{\"".into() };
        let empty =
            Delta::Block { item: Item::message(Role::Assistant, ""), native: None, cut: false };
        let over = |limit: Option<(usize, TooLarge)>| limit.expect("a limit").1;
        assert_eq!(over(passed(endless(text("x")))), TooLarge::Block(1_000));
        assert_eq!(over(passed(endless(Delta::Thinking("x".into())))), TooLarge::Block(1_000));
        assert_eq!(over(passed(endless(json))), TooLarge::Arguments(500));
        assert_eq!(over(passed((0..).map(call))), TooLarge::Reply(100_000));
        assert_eq!(over(passed(endless(Delta::ThinkingStart))), TooLarge::Reply(100_000));
        assert_eq!(over(passed(endless(Delta::Unseen(1)))), TooLarge::Reply(100_000));
        assert_eq!(over(passed(endless(empty))), TooLarge::Reply(100_000));
    }

    #[test]
    fn a_reply_has_at_most_so_many_tool_calls_however_they_arrive() {
        let limits = ReplyLimits { whole: 1 << 40, block: 1 << 20, arguments: 1 << 20 };
        let start = |id: usize| Delta::ToolCallStart { id: id.to_string(), name: "Read".into() };
        let whole = |id: usize| {
            let (call_id, name) = (id.to_string(), "Read".into());
            let item = Item::ToolCall { call_id, name, arguments: "{}".into() };
            Delta::Block { item, native: None, cut: false }
        };
        let streamed = |id: usize| [start(id), whole(id)];
        let stop = |deltas: Vec<Delta>| {
            let mut size = ReplySize::new(limits);
            deltas.iter().find_map(|delta| size.add(delta).err())
        };
        let many = 0..=CALLS;
        let stopped = Some(TooLarge::Calls(CALLS));
        assert_eq!(stop(many.clone().map(start).collect()), stopped);
        assert_eq!(stop(many.clone().map(whole).collect()), stopped);
        assert_eq!(stop(many.flat_map(streamed).collect()), stopped);
        assert_eq!(stop((0..CALLS).flat_map(streamed).collect()), None);
    }

    #[test]
    fn a_block_that_did_not_stream_is_counted_when_it_is_complete() {
        let arguments = "x".repeat(501);
        let item = Item::ToolCall { call_id: "c".into(), name: "Write".into(), arguments };
        let whole = Delta::Block { item, native: None, cut: false };
        assert_eq!(passed([whole]), Some((0, TooLarge::Arguments(500))));
    }

    #[test]
    fn arguments_of_many_small_values_are_refused_before_anything_reads_them() {
        let limits = ReplyLimits { whole: 1 << 30, block: 1 << 30, arguments: 1 << 30 };
        let stop = |deltas: Vec<Delta>| {
            let mut size = ReplySize::new(limits);
            deltas.iter().find_map(|delta| size.add(delta).err())
        };
        let piece = || Delta::ToolCallArgs { id: "c".into(), json: "[0,".repeat(1_000) };
        let pieces = |count: usize| (0..count).map(|_| piece()).collect();
        assert_eq!(stop(pieces(MAX_VALUES / 2_000)), None);
        assert_eq!(stop(pieces(MAX_VALUES / 2_000 + 1)), Some(TooLarge::Values));
        let arguments = "[0,".repeat(MAX_VALUES / 2 + 1);
        let item = Item::ToolCall { call_id: "c".into(), name: "Write".into(), arguments };
        assert_eq!(
            stop(vec![Delta::Block { item, native: None, cut: false }]),
            Some(TooLarge::Values)
        );
    }

    #[test]
    fn what_a_provider_adds_to_its_form_of_a_block_is_counted() {
        let block = |more: Value| {
            let native = Some(json!({"type": "text", "text": "hi", "more": more}));
            Delta::Block { item: Item::message(Role::Assistant, "hi"), native, cut: false }
        };
        assert_eq!(passed([block(Value::Null)]), None);
        let long = block(json!("x".repeat(100_000)));
        assert_eq!(passed([long]), Some((0, TooLarge::Reply(100_000))));
        let many = block(json!(vec![json!({"": 0}); 200]));
        assert_eq!(passed([many]), Some((0, TooLarge::Reply(100_000))));
    }

    #[test]
    fn a_passed_limit_is_named_with_its_setting() {
        let mib = |bytes: u64| bytes << 20;
        for (error, size, setting) in [
            (TooLarge::Reply(mib(128)), "128 MiB", "limits.reply_mib"),
            (TooLarge::Block(mib(60)), "60 MiB", "limits.block_mib"),
            (TooLarge::Arguments(mib(56)), "56 MiB", "limits.argument_mib"),
        ] {
            let said = error.to_string();
            assert!(said.contains(size) && said.contains(setting), "{said}");
        }
    }

    #[test]
    fn the_form_of_the_provider_is_left_out_of_a_line_that_would_be_too_long() {
        let said = |length: usize| {
            let text = "x".repeat(length);
            let native = Some(json!({ "type": "text", "text": text }));
            let origin = Some(Origin { wire: "w".into(), provider: "p".into(), model: "m".into() });
            let item = Item::message(Role::Assistant, text);
            within_a_line(Entry::new(Fact::AssistantItem { item, origin, native, partial: false }))
        };
        let has_native =
            |entry: &Entry| matches!(&entry.fact, Fact::AssistantItem { native: Some(_), .. });
        assert!(has_native(&said(1_000)));
        let long = said(MAX_LINE / 2);
        assert!(!has_native(&long) && json_size(&long) < MAX_LINE as u64);
    }

    proptest! {
        #[test]
        fn the_length_of_a_text_in_json_is_what_encoding_gives(text in "\\PC*|[\\x00-\\x7f]*") {
            let encoded = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(in_json(&text), encoded.len() as u64 - 2);
        }
    }
}
