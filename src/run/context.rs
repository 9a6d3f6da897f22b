//! What of the history goes into a request: order repaired, old tool output pruned, size estimated.

use crate::llm::Input;
use crate::protocol::entry::Kept;
use crate::protocol::{Item, Role};
use std::collections::{HashMap, HashSet};

/// The wire name that marks answers given without any model; they are never sent to one.
pub const NO_MODEL: &str = "none";

/// How old tool output is left out of requests.
#[derive(Clone, Copy, Debug)]
pub struct Pruning {
    /// The newest tool output of this many tokens is always sent.
    pub protect: u64,
    /// Nothing is left out for less than this many tokens.
    pub min_savings: u64,
}

/// The input of a request made of `history`. Every tool call is followed by its results in call
/// order, an unanswered one by the word that it was interrupted; thinking that leads to nothing is
/// left out, as are answers that no model gave.
pub fn input(history: &[Kept], pruning: Pruning) -> Vec<Input> {
    let pruned = pruned(history, pruning);
    let mut results = results(history);
    let mut out: Vec<Input> = Vec::with_capacity(history.len());
    let mut open: Vec<String> = Vec::new();
    for kept in history {
        if kept.origin.as_ref().is_some_and(|o| o.wire == NO_MODEL) {
            continue;
        }
        match &kept.item {
            Item::ToolCall { call_id, .. } => {
                open.push(call_id.clone());
                out.push(sent(kept));
            }
            Item::ToolResult { .. } => close(&mut out, &mut open, &mut results, &pruned),
            Item::Reasoning { .. } => out.push(sent(kept)),
            Item::Message { .. } | Item::Unknown(_) => {
                close(&mut out, &mut open, &mut results, &pruned);
                if matches!(&kept.item, Item::Message { role: Role::User | Role::System, .. }) {
                    drop_dangling(&mut out);
                }
                out.push(sent(kept));
            }
        }
    }
    close(&mut out, &mut open, &mut results, &pruned);
    drop_dangling(&mut out);
    out
}

fn sent(kept: &Kept) -> Input {
    Input { item: kept.item.clone(), origin: kept.origin.clone(), native: kept.native.clone() }
}

/// The first result of every call.
fn results(history: &[Kept]) -> HashMap<&str, &Item> {
    let mut results = HashMap::new();
    for kept in history {
        if let Item::ToolResult { call_id, .. } = &kept.item {
            results.entry(call_id.as_str()).or_insert(&kept.item);
        }
    }
    results
}

/// Gives every open call a result, in call order.
fn close(
    out: &mut Vec<Input>,
    open: &mut Vec<String>,
    results: &mut HashMap<&str, &Item>,
    pruned: &HashSet<String>,
) {
    for call_id in open.drain(..) {
        let found = results.remove(call_id.as_str());
        let mut item = found.cloned().unwrap_or_else(|| interrupted(&call_id));
        if pruned.contains(&call_id)
            && let Item::ToolResult { content, images, .. } = &mut item
        {
            *content = Some("[older output left out to save context; call again if needed]".into());
            images.clear();
        }
        out.push(Input { item, origin: None, native: None });
    }
}

/// The result of a call that nothing answered, because a person interrupted it.
pub fn interrupted(call_id: &str) -> Item {
    unanswered(call_id, "[Interrupted by user]")
}

/// The result of a call during which the host ended.
pub fn cut_off(call_id: &str) -> Item {
    unanswered(call_id, "[Cut off: the host ended during this call; it is not run again]")
}

/// The result of a call that was not let pass.
pub fn refused(call_id: &str, why: String) -> Item {
    unanswered(call_id, why)
}

fn unanswered(call_id: &str, why: impl Into<String>) -> Item {
    Item::ToolResult {
        call_id: call_id.to_owned(),
        summary: why.into(),
        content: None,
        is_error: true,
        images: Vec::new(),
    }
}

/// Thinking at the end leads to no answer: providers refuse it.
fn drop_dangling(out: &mut Vec<Input>) {
    while matches!(out.last(), Some(Input { item: Item::Reasoning { .. }, .. })) {
        out.pop();
    }
}

/// Call ids whose output is left out: everything older than the protected newest output, if that
/// saves enough.
fn pruned(history: &[Kept], pruning: Pruning) -> HashSet<String> {
    let (mut newest, mut saved) = (0_u64, 0_u64);
    let mut old = HashSet::new();
    for kept in history.iter().rev() {
        let Item::ToolResult { call_id, content, .. } = &kept.item else { continue };
        if content.is_none() && !kept.is_left() {
            continue;
        }
        let tokens = kept.output_bytes().div_ceil(4);
        if newest >= pruning.protect {
            saved += tokens;
            old.insert(call_id.clone());
        }
        newest += tokens;
    }
    if saved >= pruning.min_savings { old } else { HashSet::new() }
}

/// Tokens by the rule of thumb of four bytes each.
pub fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// How many tokens the next request takes: what the provider counted last, and an estimate for
/// what came since. `measured` is (history length, input tokens) of the last request.
pub fn tokens(system: &str, history: &[Kept], measured: Option<(u64, u64)>) -> u64 {
    let len = history.len() as u64;
    let (from, base) = match measured {
        Some((at, tokens)) if at <= len => (usize::try_from(at).unwrap_or(0), tokens),
        _ => (0, estimate(system.len())),
    };
    base + history[from..].iter().map(|kept| estimate(size(kept))).sum::<u64>()
}

/// Which items have content that a request of `history` carries and that is left in the log.
pub fn wanted(history: &[Kept], pruning: Pruning) -> Vec<usize> {
    if !history.iter().any(Kept::is_left) {
        return Vec::new();
    }
    let pruned = pruned(history, pruning);
    let is_wanted = |kept: &Kept| match &kept.item {
        Item::ToolResult { call_id, .. } => kept.is_left() && !pruned.contains(call_id),
        _ => false,
    };
    (0..history.len()).filter(|at| is_wanted(&history[*at])).collect()
}

impl Pruning {
    /// How many bytes of the newest output are never left out.
    pub fn held(self) -> u64 {
        self.protect.saturating_add(self.min_savings).saturating_mul(4)
    }
}

fn size(kept: &Kept) -> usize {
    match &kept.item {
        Item::Message { content, .. } => content.iter().map(|c| c.text().len()).sum(),
        Item::ToolCall { name, arguments, .. } => name.len() + arguments.len(),
        Item::ToolResult { summary, images, .. } => {
            let content = usize::try_from(kept.output_bytes()).unwrap_or(usize::MAX);
            summary.len() + content + images.len() * 4_000
        }
        Item::Reasoning { text, encrypted_content, .. } => {
            text.len() + encrypted_content.as_ref().map_or(0, String::len)
        }
        Item::Unknown(value) => value.to_string().len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::entry::OutputPlace;

    const ALL: Pruning = Pruning { protect: u64::MAX, min_savings: 0 };

    fn kept(item: Item) -> Kept {
        Kept::new(None, item)
    }
    fn call(id: &str) -> Kept {
        kept(Item::ToolCall { call_id: id.into(), name: "Read".into(), arguments: "{}".into() })
    }
    fn result(id: &str, text: &str) -> Kept {
        kept(Item::ToolResult {
            call_id: id.into(),
            summary: "ok".into(),
            content: Some(text.into()),
            is_error: false,
            images: vec![],
        })
    }
    fn thinking() -> Kept {
        kept(Item::Reasoning {
            text: "hm".into(),
            summary: vec![],
            encrypted_content: None,
            signature: None,
        })
    }
    fn say(role: Role, text: &str) -> Kept {
        kept(Item::message(role, text))
    }
    fn words(input: &[Input]) -> Vec<String> {
        input
            .iter()
            .map(|i| match &i.item {
                Item::ToolCall { call_id, .. } => format!("call {call_id}"),
                Item::ToolResult { call_id, content, .. } => {
                    format!("result {call_id} {}", content.clone().unwrap_or_default())
                }
                Item::Reasoning { .. } => "thinking".into(),
                other => other.text().unwrap_or_default(),
            })
            .collect()
    }

    #[test]
    fn results_follow_in_call_order_whatever_order_they_ended_in() {
        let history = [call("a"), call("b"), result("b", "2"), result("a", "1")];
        assert_eq!(words(&input(&history, ALL)), ["call a", "call b", "result a 1", "result b 2"]);
    }

    #[test]
    fn an_unanswered_call_is_closed_before_the_next_message() {
        let history = [call("a"), say(Role::User, "next")];
        assert_eq!(words(&input(&history, ALL)), ["call a", "result a ", "next"]);
    }

    #[test]
    fn thinking_without_an_answer_is_not_sent() {
        let history = [say(Role::User, "x"), thinking(), say(Role::User, "y"), thinking()];
        assert_eq!(words(&input(&history, ALL)), ["x", "y"]);
    }

    #[test]
    fn old_output_is_left_out_only_when_it_saves_enough() {
        let history = [call("a"), result("a", &"x".repeat(400)), call("b"), result("b", "new")];
        let pruning = Pruning { protect: 1, min_savings: 50 };
        assert!(words(&input(&history, pruning))[1].contains("left out"));
        let pruning = Pruning { protect: 1, min_savings: 500 };
        assert!(words(&input(&history, pruning))[1].contains("xxx"));
    }

    #[test]
    fn an_output_that_is_left_in_the_log_counts_as_it_does_in_memory_and_is_read_when_it_is_sent() {
        let history = [call("a"), result("a", &"x".repeat(400)), call("b"), result("b", "new")];
        let mut left = history.clone();
        left[1].output =
            Some(OutputPlace { segment: crate::protocol::SegmentId::new(), offset: 7, bytes: 400 });
        if let Item::ToolResult { content, .. } = &mut left[1].item {
            *content = None;
        }
        assert_eq!(tokens("", &left, None), tokens("", &history, None));
        let prunes = Pruning { protect: 1, min_savings: 50 };
        assert_eq!(input(&left, prunes), input(&history, prunes));
        assert!(wanted(&left, prunes).is_empty());
        let sends = Pruning { protect: 1, min_savings: 500 };
        assert_eq!(wanted(&left, sends), [1]);
    }

    #[test]
    fn a_measured_token_count_is_not_estimated_again() {
        let history = [say(Role::User, &"a".repeat(4000)), say(Role::Assistant, &"b".repeat(40))];
        assert_eq!(tokens("", &history, Some((1, 100))), 110);
        assert_eq!(tokens("abcd", &history, None), 1 + 1000 + 10);
    }
}
