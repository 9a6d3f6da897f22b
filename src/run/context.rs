//! Makes the input of a request from the history: results stand behind their calls, words replace outputs that left the
//! context, and the size is estimated.

use crate::llm::Input;
use crate::protocol::entry::{Kept, Pruned};
use crate::protocol::{Item, Role};
use crate::text::SafeText;
use std::collections::HashMap;
use std::sync::Arc;

/// Characters of an answer in the summary of its result.
const MAX_ANSWER_LINE: usize = 200;

/// The wire name that marks answers given without any model; they are never sent to one.
pub const NO_MODEL: &str = "none";

/// The input of a request made of `history`, whose items it shares. The calls of a reply are followed by their results in
/// call order, one without a result by a word about that; what the model said behind its calls stays there. Answers that no
/// model gave are left out.
pub fn input(history: &[Arc<Kept>]) -> Vec<Input> {
    let results = results(history);
    let mut out: Vec<Input> = Vec::with_capacity(history.len());
    let mut open: Vec<(usize, &str)> = Vec::new();
    let close = |out: &mut Vec<Input>, open: &mut Vec<(usize, &str)>| {
        out.extend(open.drain(..).map(|(place, call_id)| match results.get(&place) {
            Some(at) => result(&history[*at]),
            None => Arc::new(Kept::new(None, lost(call_id))),
        }));
    };
    for (place, kept) in history.iter().enumerate() {
        if kept.origin.as_ref().is_some_and(|o| o.wire == NO_MODEL) {
            continue;
        }
        match &kept.item {
            Item::ToolResult { .. } => {
                close(&mut out, &mut open);
                continue;
            }
            Item::Message { role: Role::User | Role::System, .. } => {
                close(&mut out, &mut open);
            }
            Item::ToolCall { call_id, .. } => open.push((place, call_id)),
            Item::Message { role: Role::Assistant, .. }
            | Item::Reasoning { .. }
            | Item::Unknown(_) => {}
        }
        out.push(Arc::clone(kept));
    }
    close(&mut out, &mut open);
    out
}

/// The place of the result of each call, by the place of the call. In a log of an earlier release an id may come again
/// in each reply: a result is that of the newest reply with such a call that waits for one.
pub(crate) fn results(history: &[Arc<Kept>]) -> HashMap<usize, usize> {
    let mut waiting: HashMap<&str, Vec<(usize, usize)>> = HashMap::new();
    let (mut paired, mut reply) = (HashMap::new(), 0);
    for (place, kept) in history.iter().enumerate() {
        match &kept.item {
            Item::ToolCall { call_id, .. } => {
                waiting.entry(call_id).or_default().push((reply, place));
            }
            Item::ToolResult { call_id, .. } => {
                reply = place;
                let Some(calls) = waiting.get_mut(call_id.as_str()) else { continue };
                let newest = calls.last().map(|(reply, _)| *reply);
                let first = calls.iter().position(|(reply, _)| Some(*reply) == newest);
                paired.extend(first.map(|first| (calls.remove(first).1, place)));
            }
            Item::Message { role: Role::User | Role::System, .. } => reply = place,
            Item::Message { .. } | Item::Reasoning { .. } | Item::Unknown(_) => {}
        }
    }
    paired
}

/// A result as a request carries it.
fn result(kept: &Arc<Kept>) -> Input {
    let (Item::ToolResult { call_id, summary, is_error, .. }, Some(pruned)) =
        (&kept.item, &kept.pruned)
    else {
        return Arc::clone(kept);
    };
    // The provider may refuse the summary, too.
    let (summary, content) = match pruned.refused {
        true => (in_place_of(pruned), None),
        false => (summary.clone(), Some(in_place_of(pruned))),
    };
    let (call_id, is_error) = (call_id.clone(), *is_error);
    let item = Item::ToolResult { call_id, summary, content, is_error, images: Vec::new() };
    Arc::new(Kept::new(kept.id, item))
}

/// The words in the place of an output that left the context.
fn in_place_of(pruned: &Pruned) -> String {
    match &pruned.file {
        Some(file) if pruned.refused => {
            format!(
                "[a person left this result out, because the provider refuses requests that hold it; a copy of its \
                 output is in {}, reading all of it may be refused again]",
                file.display()
            )
        }
        None if pruned.refused => {
            "[a person left this result out, because the provider refuses requests that hold it]".into()
        }
        Some(file) => {
            format!(
                "[this output was left out to save context; a copy of it is in {}: Read that, or call again, where the call \
                 changes nothing, for what is there now]",
                file.display()
            )
        }
        None => "[this output was left out to save context; call again if you need it and the call changes nothing]".into(),
    }
}

/// The result of a call whose own result is not in the log.
fn lost(call_id: &str) -> Item {
    unanswered(call_id, "[The result of this call is lost; the call may have run]")
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

/// The result of a question: the answer of the person, whole, and its beginning as the summary.
pub fn answered(call_id: &str, answer: &str) -> Item {
    let summary = SafeText::brief(answer, MAX_ANSWER_LINE).into_string();
    Item::ToolResult {
        call_id: call_id.to_owned(),
        content: (summary != answer).then(|| answer.to_owned()),
        summary,
        is_error: false,
        images: Vec::new(),
    }
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

/// Tokens by the rule of thumb of four bytes each.
pub fn estimate(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

/// How many tokens the next request takes: what the provider counted last, and an estimate for
/// what came since. `beginning` is the size of system prompt and tools in bytes, `measured` is (history
/// length, input tokens) of the last request; a length of 0 measures nothing.
pub fn tokens(beginning: usize, history: &[Arc<Kept>], measured: Option<(u64, u64)>) -> u64 {
    let len = history.len() as u64;
    let (from, base) = match measured {
        Some((at, tokens)) if at > 0 && at <= len => (usize::try_from(at).unwrap_or(0), tokens),
        _ => (0, estimate(beginning)),
    };
    base + history[from..].iter().map(|kept| estimate(size(kept))).sum::<u64>()
}

/// The same, rather too many than too few: an estimate may be too small, and then a reply that is as large as the rest of the
/// window does not fit.
pub fn ample_tokens(beginning: usize, history: &[Arc<Kept>], measured: Option<(u64, u64)>) -> u64 {
    let measured = measured.filter(|(at, _)| *at > 0 && *at <= history.len() as u64);
    let tokens = tokens(beginning, history, measured);
    let estimated = tokens - measured.map_or(0, |(_, tokens)| tokens);
    tokens + estimated / 8
}

/// Which items have content that a request of `history` carries and that is left in the log.
pub fn wanted(history: &[Arc<Kept>]) -> Vec<usize> {
    let is_wanted = |at: &usize| history[*at].is_left() && history[*at].pruned.is_none();
    (0..history.len()).filter(is_wanted).collect()
}

fn size(kept: &Kept) -> usize {
    match &kept.item {
        Item::Message { content, .. } => content.iter().map(|c| c.text().len()).sum(),
        Item::ToolCall { name, arguments, .. } => name.len() + arguments.len(),
        Item::ToolResult { summary, .. } => {
            let output = match &kept.pruned {
                Some(pruned) => in_place_of(pruned).len(),
                None => usize::try_from(kept.output_tokens() * 4).unwrap_or(usize::MAX),
            };
            summary.len() + output
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

    fn kept(item: Item) -> Arc<Kept> {
        Arc::new(Kept::new(None, item))
    }
    fn call(id: &str) -> Arc<Kept> {
        kept(Item::ToolCall { call_id: id.into(), name: "Read".into(), arguments: "{}".into() })
    }
    fn result(id: &str, text: &str) -> Arc<Kept> {
        kept(Item::ToolResult {
            call_id: id.into(),
            summary: "ok".into(),
            content: Some(text.into()),
            is_error: false,
            images: vec![],
        })
    }
    fn thinking() -> Arc<Kept> {
        kept(Item::Reasoning {
            text: "hm".into(),
            summary: vec![],
            encrypted_content: None,
            signature: None,
        })
    }
    fn say(role: Role, text: &str) -> Arc<Kept> {
        kept(Item::message(role, text))
    }
    fn prune(kept: &mut Arc<Kept>, pruned: Pruned) {
        Arc::make_mut(kept).pruned = Some(pruned);
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
        assert_eq!(words(&input(&history)), ["call a", "call b", "result a 1", "result b 2"]);
    }

    #[test]
    fn each_call_of_an_old_log_keeps_its_result_although_all_have_the_same_id() {
        let turn = |text: &str| [call("Bash:0"), result("Bash:0", text)];
        let said = [call("Bash:0"), say(Role::User, "stop"), say(Role::User, "go on")];
        let history = [&said[..], &turn("1"), &turn("2")].concat();
        let (open, one, two) = ("result Bash:0 ", "result Bash:0 1", "result Bash:0 2");
        let expected =
            ["call Bash:0", open, "stop", "go on", "call Bash:0", one, "call Bash:0", two];
        assert_eq!(words(&input(&history)), expected);
    }

    #[test]
    fn two_calls_of_one_id_in_one_reply_get_their_results_in_order() {
        let history = [call("c"), call("c"), result("c", "1"), result("c", "2")];
        assert_eq!(words(&input(&history)), ["call c", "call c", "result c 1", "result c 2"]);
    }

    #[test]
    fn what_the_model_says_behind_its_calls_stays_before_their_results() {
        let remark = say(Role::Assistant, "I look.");
        let history =
            [call("a"), remark, thinking(), call("b"), result("a", "1"), result("b", "2")];
        let expected = ["call a", "I look.", "thinking", "call b", "result a 1", "result b 2"];
        assert_eq!(words(&input(&history)), expected);
    }

    #[test]
    fn a_request_shares_the_items_of_the_history_and_copies_none() {
        let history = [say(Role::User, "x"), thinking(), call("a"), result("a", "1")];
        let history = [&history[..], &[say(Role::Assistant, "y")]].concat();
        let carried = input(&history);
        let shared = carried.iter().zip(&history).filter(|(sent, kept)| Arc::ptr_eq(sent, kept));
        assert_eq!((shared.count(), carried.len()), (5, 5));
    }

    #[test]
    fn an_unanswered_call_is_closed_before_the_next_message() {
        let history = [call("a"), say(Role::User, "next")];
        let carried = input(&history);
        assert_eq!(words(&carried), ["call a", "result a ", "next"]);
        let Item::ToolResult { summary, .. } = &carried[1].item else { panic!() };
        assert!(
            summary.contains("is lost"),
            "nothing says that a person interrupted it: {summary}"
        );
    }

    #[test]
    fn an_output_that_left_the_context_is_replaced_by_the_file_that_holds_it() {
        let mut history = [call("a"), result("a", &"x".repeat(400)), call("b"), result("b", "new")];
        let before = tokens(0, &history, None);
        prune(&mut history[1], Pruned { file: Some("/outputs/a.txt".into()), refused: false });
        assert!(words(&input(&history))[1].contains("a copy of it is in /outputs/a.txt:"));
        assert!(tokens(0, &history, None) < before);
        prune(&mut history[1], Pruned::default());
        assert!(words(&input(&history))[1].contains("call again"));
    }

    #[test]
    fn of_a_result_that_a_person_left_out_nothing_is_sent_and_the_model_reads_who_left_it_out() {
        let mut history = [call("a"), result("a", &"x".repeat(400))];
        for file in [Some("/outputs/a.txt"), None] {
            prune(&mut history[1], Pruned { file: file.map(Into::into), refused: true });
            let Item::ToolResult { summary, content, .. } = &input(&history)[1].item else {
                panic!()
            };
            assert!(summary.starts_with("[a person left this result out, because"), "{summary}");
            assert_eq!(summary.contains("is in /outputs/a.txt,"), file.is_some(), "{summary}");
            assert_eq!(*content, None);
        }
    }

    #[test]
    fn an_output_that_is_left_in_the_log_counts_as_it_does_in_memory_and_is_read_when_it_is_sent() {
        let history = [call("a"), result("a", &"x".repeat(400)), call("b"), result("b", "new")];
        let mut left = history.clone();
        let kept = Arc::make_mut(&mut left[1]);
        kept.output =
            Some(OutputPlace { segment: crate::protocol::SegmentId::new(), offset: 7, bytes: 400 });
        if let Item::ToolResult { content, .. } = &mut kept.item {
            *content = None;
        }
        assert_eq!(tokens(0, &left, None), tokens(0, &history, None));
        assert_eq!(wanted(&left), [1]);
        prune(&mut left[1], Pruned::default());
        assert!(wanted(&left).is_empty());
    }

    #[test]
    fn a_measured_token_count_is_not_estimated_again() {
        let history = [say(Role::User, &"a".repeat(4000)), say(Role::Assistant, &"b".repeat(40))];
        assert_eq!(tokens(0, &history, Some((1, 100))), 110);
        assert_eq!(tokens(4, &history, None), 1 + 1000 + 10);
        assert_eq!(ample_tokens(0, &history, Some((1, 100))), 110 + 1, "only of what is estimated");
        assert_eq!(ample_tokens(4, &history, None), 1011 + 126);
        assert_eq!(ample_tokens(4, &history, Some((3, 100))), 1011 + 126, "of a longer history");
    }
}
