//! Gives each tool call of a reply an id of ours. The log, the screens and the next request find the result of a call by
//! its id, and a server may repeat an id in each reply, give one to several calls, make it long, or use a form that other
//! APIs refuse. The id of the wire stays in the provider's own form of the call.

use crate::llm::sse::Event;
use crate::llm::wire::{self, Decode, Ending, Fault};
use crate::llm::{Delta, Stop};
use crate::protocol::Item;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

/// The most bytes of the id of a call in the provider's own form. Gateways put the signature of a thought into it, which
/// has some thousand.
const MAX_ID: usize = 16 << 10;
/// The longest name of a tool that all APIs take.
const MAX_NAME: usize = 64;
/// How much of a longer name is kept, and what follows it. No tool has such a name, so its call is refused.
const KEPT: usize = 48;
const TOO_LONG: &str = "_name_too_long";

/// Reads the events of one answer as `inner` does, and names its calls anew.
pub struct OwnIds {
    inner: Box<dyn Decode>,
    /// The ids of the wire in this reply, as hashes, each with our id while its call is open.
    ids: HashMap<blake3::Hash, Option<String>>,
    /// Hashes of the id, name and arguments of each complete call. An equal one counts as the same call, sent twice.
    complete: HashSet<blake3::Hash>,
}

impl OwnIds {
    pub fn new(inner: impl Decode + 'static) -> Self {
        Self { inner: Box::new(inner), ids: HashMap::new(), complete: HashSet::new() }
    }

    fn take(&mut self, delta: Delta, out: &mut Vec<Delta>) {
        match delta {
            Delta::ToolCallStart { id, name } => out.push(self.start(&id, name)),
            Delta::ToolCallArgs { id, json } => out.push(self.arguments(&id, json)),
            Delta::Block { item: Item::ToolCall { call_id, name, arguments }, native, cut } => {
                self.block(call_id, name, arguments, native, cut, out);
            }
            other => out.push(other),
        }
    }

    /// A second call with an id of the wire is shown when it is complete: until then it may be the first one, sent again.
    fn start(&mut self, wire_id: &str, name: String) -> Delta {
        let hash = blake3::hash(wire_id.as_bytes());
        if self.ids.contains_key(&hash) {
            return Delta::Unseen(wire_id.len() + name.len());
        }
        let id = wire::call_id();
        self.ids.insert(hash, Some(id.clone()));
        Delta::ToolCallStart { id, name: bounded_name(name) }
    }

    fn arguments(&self, wire_id: &str, json: String) -> Delta {
        match self.ids.get(&blake3::hash(wire_id.as_bytes())) {
            Some(Some(id)) => Delta::ToolCallArgs { id: id.clone(), json },
            _ => Delta::Unseen(json.len()),
        }
    }

    fn block(
        &mut self,
        wire_id: String,
        name: String,
        arguments: String,
        native: Option<Value>,
        cut: bool,
        out: &mut Vec<Delta>,
    ) {
        let whole = [&wire_id, &name, &arguments].map(|part| blake3::hash(part.as_bytes()));
        let whole = whole.map(|hash| *hash.as_bytes()).concat();
        let open = self.ids.insert(blake3::hash(wire_id.as_bytes()), None).flatten();
        if !self.complete.insert(blake3::hash(&whole)) {
            tracing::warn!("the provider sent a tool call twice: {}", bounded_name(name));
            return out.push(Delta::Unseen(arguments.len()));
        }
        // The provider's own form would keep the long text.
        let native = native.filter(|_| wire_id.len() <= MAX_ID && name.len() <= MAX_NAME);
        let name = bounded_name(name);
        let call_id = open.unwrap_or_else(|| {
            let id = wire::call_id();
            out.push(Delta::ToolCallStart { id: id.clone(), name: name.clone() });
            id
        });
        let item = Item::ToolCall { call_id, name, arguments };
        out.push(Delta::Block { item, native, cut });
    }
}

impl Decode for OwnIds {
    fn event(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
        let mut deltas = Vec::new();
        let result = self.inner.event(event, &mut deltas);
        deltas.into_iter().for_each(|delta| self.take(delta, out));
        result
    }

    fn ending(&mut self) -> &mut Ending {
        self.inner.ending()
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Option<Stop> {
        let mut deltas = Vec::new();
        let stop = self.inner.finish(&mut deltas);
        deltas.into_iter().for_each(|delta| self.take(delta, out));
        stop
    }
}

/// The name of a call as the log has it: a long one is cut.
fn bounded_name(name: String) -> String {
    if name.len() <= MAX_NAME {
        return name;
    }
    let plain = plain_name(&name).into_owned();
    tracing::warn!(bytes = name.len(), "a model called a tool by a name that is too long: {plain}");
    plain
}

/// A name that every API takes, and the name itself where it is one: a letter, then letters, digits, `_` and `-`.
pub fn plain_name(name: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_long = name.len() > MAX_NAME;
    if begins && !is_long && name.chars().all(is_plain) {
        return Cow::Borrowed(name);
    }
    let (kept, end) = if is_long { (KEPT, TOO_LONG) } else { (MAX_NAME, "") };
    let start = if begins { "" } else { "tool_" };
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    Cow::Owned(start.chars().chain(plain).take(kept).chain(end.chars()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::bench::call;
    use serde_json::json;

    /// Gives these deltas, one at each event.
    struct Fixed(std::vec::IntoIter<Delta>);

    impl Decode for Fixed {
        fn event(&mut self, _: &Event, out: &mut Vec<Delta>) -> Result<(), Fault> {
            out.extend(self.0.next());
            Ok(())
        }
        fn ending(&mut self) -> &mut Ending {
            unreachable!("only the answer reads it")
        }
        fn finish(&mut self, _: &mut Vec<Delta>) -> Option<Stop> {
            None
        }
    }

    fn named(deltas: Vec<Delta>) -> Vec<Delta> {
        let count = deltas.len();
        let mut decoder = OwnIds::new(Fixed(deltas.into_iter()));
        let mut out = Vec::new();
        let event = Event { name: String::new(), data: String::new() };
        (0..count).for_each(|_| decoder.event(&event, &mut out).unwrap());
        out
    }

    fn start(id: &str, name: &str) -> Delta {
        Delta::ToolCallStart { id: id.into(), name: name.into() }
    }
    fn piece(id: &str, json: &str) -> Delta {
        Delta::ToolCallArgs { id: id.into(), json: json.into() }
    }
    fn block(id: &str, name: &str, arguments: &str) -> Delta {
        let native = Some(json!({"id": id}));
        Delta::Block { item: call(id, name, arguments), native, cut: false }
    }
    fn id_of(delta: &Delta) -> Option<&str> {
        match delta {
            Delta::ToolCallStart { id, .. }
            | Delta::ToolCallArgs { id, .. }
            | Delta::Block { item: Item::ToolCall { call_id: id, .. }, .. } => Some(id),
            _ => None,
        }
    }

    #[test]
    fn all_pieces_of_a_call_get_one_id_that_every_provider_takes() {
        let deltas = named(vec![
            start("Bash:0", "Bash"),
            start("Bash:1", "Bash"),
            piece("Bash:1", "{"),
            piece("Bash:0", "{}"),
            block("Bash:0", "Bash", "{}"),
            block("Bash:1", "Bash", "{}"),
        ]);
        let ids: Vec<&str> = deltas.iter().filter_map(id_of).collect();
        let (a, b) = (ids[0], ids[1]);
        assert_eq!(ids, [a, b, b, a, a, b]);
        assert_ne!(a, b);
        for id in [a, b] {
            assert!(id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
        }
        let Delta::Block { native, .. } = &deltas[4] else { panic!() };
        assert_eq!(native, &Some(json!({"id": "Bash:0"})), "the id of the wire stays");
    }

    #[test]
    fn a_call_that_is_sent_twice_is_one_call_and_another_of_its_id_gets_its_own() {
        let one = [start("c", "Read"), piece("c", "{}"), block("c", "Read", "{}")];
        let other = [start("c", "Read"), piece("c", "[]"), block("c", "Read", "[]")];
        let deltas = named([one.clone(), other, one].concat());
        let ids: Vec<&str> = deltas.iter().filter_map(id_of).collect();
        let (a, b) = (ids[0], ids[3]);
        assert_eq!(ids, [a, a, a, b, b], "{deltas:?}");
        assert_ne!(a, b);
    }

    #[test]
    fn a_call_that_comes_whole_begins_with_its_block() {
        let deltas = named(vec![block("", "", "{}")]);
        assert!(matches!(&deltas[..], [Delta::ToolCallStart { .. }, Delta::Block { .. }]));
        assert_eq!(id_of(&deltas[0]), id_of(&deltas[1]));
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
            (long.as_str(), &[&long[..48], TOO_LONG].concat()),
        ] {
            assert_eq!(plain_name(name), plain, "{name}");
        }
    }

    #[test]
    fn a_long_id_or_name_is_not_kept() {
        for (id, name) in
            [("i".repeat(MAX_ID + 1), "Read".into()), ("c".into(), "ü ".repeat(1 << 19))]
        {
            let deltas = named(vec![block(&id, &name, "{}")]);
            let Delta::Block { item: Item::ToolCall { name: kept, .. }, native, .. } = &deltas[1]
            else {
                panic!()
            };
            assert_eq!(native, &None);
            assert!(kept.len() <= 64, "{kept}");
            assert_eq!(kept.ends_with(TOO_LONG), name.len() > MAX_NAME);
        }
        let deltas = named(vec![block(&"i".repeat(MAX_ID), &"n".repeat(64), "{}")]);
        assert!(matches!(&deltas[1], Delta::Block { native: Some(_), .. }));
    }
}
