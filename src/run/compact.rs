//! Compaction: the history is handed over in the model's own words to a new segment. The old
//! segment stays, so a rewind can go back behind it.

use crate::llm::adjust::Learned;
use crate::llm::{Delta, Failure, Provider, Request, Stop, Usage};
use crate::protocol::entry::{COMPACTED, Kept, Pruned, compaction_summary};
use crate::protocol::{
    Action, AlertSource, Entry, ErrorCode, Event, Fact, Item, Refusal, Role, SegmentOrigin,
};
use crate::run::reply_size::ReplySize;
use crate::run::stream::{Failures, NoReply, Patience};
use crate::run::usage::merged;
use crate::run::{
    Accepted, End, Recorded, Run, Stopped, answer, attach, context, interrupted, prompt, pruning,
    session_state,
};
use crate::tools::pods;
use futures_util::StreamExt as _;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How much a compaction must free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compaction {
    /// It is made in time: where no model summarises, the history stays as it is.
    InTime,
    /// The provider takes no request before it: it comes about without a model, too.
    TooLong,
    /// The provider took none after that either: no model summarises, and messages alone stay word for word.
    Bare,
}

impl Run {
    /// Compacts when the next request would take too much of the window. A failure is published and
    /// the run goes on as it is.
    pub(crate) async fn compact_when_full(&mut self) -> Result<(), Stopped> {
        let Some((model, _)) = &self.setup.models.model else { return Ok(()) };
        #[allow(clippy::cast_precision_loss)]
        let full = self.tokens() as f64 >= model.window as f64 * self.setup.limits.compact_at;
        let has_past = unread(&self.session_state.state.history) > 0;
        if model.window == 0 || !full || !has_past || self.session_state.compacted.is_some() {
            return Ok(());
        }
        match self.compact(Compaction::InTime).await {
            Ok(()) => Ok(()),
            Err(Stopped::Interrupted) => Err(Stopped::Interrupted),
            Err(Stopped::Failed(refusal)) if refusal.code == ErrorCode::Internal => {
                Err(Stopped::Failed(refusal))
            }
            Err(Stopped::Failed(refusal)) => {
                self.session_state.compacted = Some(Compaction::InTime);
                self.publish(Event::CompactFailed { error: refusal.message }).await;
                Ok(())
            }
        }
    }

    /// A run that only compacts.
    pub(crate) async fn compact_now(&mut self, accepted: Option<Accepted>) -> End {
        if self.setup.models.model.is_none() || unread(&self.session_state.state.history) == 0 {
            let why = if self.setup.models.model.is_none() {
                "there is no model to compact with"
            } else {
                "there is nothing to compact yet"
            };
            let mut start = crate::run::Start::Compact { accepted };
            start.refuse(&Refusal::invalid(why));
            return End::Compacted;
        }
        answer(accepted, Recorded::default());
        match self.compact(Compaction::InTime).await {
            Ok(()) => End::Compacted,
            Err(Stopped::Interrupted) => {
                self.publish(Event::CompactFailed { error: "cancelled".into() }).await;
                End::Compacted
            }
            Err(Stopped::Failed(refusal)) => {
                self.publish(Event::CompactFailed { error: refusal.message.clone() }).await;
                match refusal.code {
                    ErrorCode::Internal => End::Failed(refusal),
                    _ => End::NotCompacted(refusal.message),
                }
            }
        }
    }

    /// Begins a new segment with a summary.
    pub(crate) async fn compact(&mut self, compaction: Compaction) -> Result<(), Stopped> {
        self.count_compaction()?;
        self.publish(Event::CompactStart).await;
        self.doing("compacting").await;
        let history = &self.session_state.state.history;
        let (summary, places) = match compaction {
            Compaction::Bare => (without_a_model(history, 2 * MAX_MESSAGE), messages(history)),
            Compaction::InTime | Compaction::TooLong => {
                let summary = self.summary_by_settings(compaction).await?;
                let keep = self.setup.limits.keep_tokens.min(self.reads(compaction) / 8);
                (summary, verbatim(&self.session_state.state.history, keep))
            }
        };
        let facts = self.facts(&places, compaction).await;
        let handover = format!("{COMPACTED}\n\n{summary}{facts}");
        let mut history = vec![kept(Item::message(Role::System, handover))];
        history.extend(self.session_state.tasks.snapshot().into_iter().map(kept));
        self.load(places.clone()).await?;
        let places = places.into_iter().map(|at| &self.session_state.state.history[at]);
        history.extend(places.map(|kept| Kept { output: None, ..Kept::clone(kept) }));
        let (turn_count, cost) =
            (self.session_state.state.turn_count, self.session_state.state.cost);
        // The cache is lost here anyway: the prompt is made of the files, the scope and the date of today.
        let system = session_state::new_prompt(&self.setup, &self.ports.out).await?;
        let start = session_state::Start {
            system,
            history,
            compacted_from: Some(SegmentOrigin {
                segment_id: self.session_state.segment,
                at_turn_index: turn_count,
            }),
            run: self.session_state.state.run,
            under_way: self.trigger,
        };
        let session = self.setup.session;
        if let Some(cost) = cost {
            self.setup.identity[session_state::COST] = cost.into();
        }
        crate::crash_point!("compact-summarised");
        let mut next = session_state::begin(&self.setup, session, start, &self.ports.out)
            .await
            .map_err(Stopped::Failed)?;
        next.compacted = Some(compaction);
        // A row may be handed over once more after its entry fell behind the compaction.
        next.state.taken.clone_from(&self.session_state.state.taken);
        crate::crash_point!("compact-switched");
        std::mem::replace(&mut self.session_state, next).close().await;
        crate::crash_point!("compact-closed");
        // The count goes on, also for a reader of the new segment alone.
        self.commit(vec![Entry::new(Fact::TurnEnd { turn_count })]).await?;
        self.publish(Event::CompactDone { new_segment_id: self.session_state.segment }).await;
        self.publish_context().await;
        Ok(())
    }

    /// Refuses a compaction where so many followed each other that the run does not get on: a model makes the same calls
    /// again, whose outputs do not fit, until the limit of requests.
    fn count_compaction(&mut self) -> Result<(), Stopped> {
        let (count, at) = self.compactions;
        let count = if self.requests - at > MAX_APART { 1 } else { count + 1 };
        self.compactions = (count, self.requests);
        if count <= MAX_IN_A_ROW {
            return Ok(());
        }
        Err(failed(&format!(
            "the last {MAX_IN_A_ROW} compactions did not make room for the calls of the model; `:model` takes a model with a \
             larger window, a message can name smaller steps"
        )))
    }

    /// The tokens that the model reads, as far as is known: fewer than a request that its provider refused.
    fn reads(&self, compaction: Compaction) -> u64 {
        let window = self.setup.models.model.as_ref().map_or(0, |(model, _)| model.window);
        match compaction {
            Compaction::InTime => window,
            Compaction::TooLong | Compaction::Bare => window.min(self.tokens()),
        }
    }

    /// The summary by the model that the settings name for it, else by that of the Pod.
    async fn summary_by_settings(&mut self, compaction: Compaction) -> Result<String, Stopped> {
        if let Some(named) = self.setup.summary_model.clone() {
            let spec = named.0.spec();
            let own = self.setup.models.model.replace(named);
            let summary = self.summary(Compaction::InTime).await;
            self.setup.models.model = own;
            self.use_chosen_model().await;
            match summary {
                Err(Stopped::Failed(refusal)) => {
                    let said =
                        format!("{spec}: {}; the model of the Pod summarises", refusal.message);
                    self.publish(attach::alert(AlertSource::Pod, said)).await;
                }
                summary => return summary,
            }
        }
        self.summary(compaction).await
    }

    /// The summary of the history up to what the model has not read yet.
    async fn summary(&mut self, compaction: Compaction) -> Result<String, Stopped> {
        self.load_wanted().await?;
        self.offered = self.tools_now();
        let history = &self.session_state.state.history;
        // Messages that the model has not read yet are kept verbatim, and may take much of the window.
        let past = history[..unread(history)].to_vec();
        // A request that is too long is made again with less.
        let mut sent = past.clone();
        let (mut failures, mut unusable) = (Failures::default(), 0);
        self.failing_since = None;
        loop {
            let (failure, until) = match self.request_summary(&sent, unusable == 0).await? {
                Ok(text) => return Ok(text),
                Err(NoReply::Failed(failure, until)) => (failure, until),
                Err(NoReply::Outdated) if !self.has_other_model() => continue,
                Err(NoReply::Outdated) if !self.uses_own_model() => {
                    return Err(failed("another model was chosen"));
                }
                Err(NoReply::Outdated) => {
                    self.use_chosen_model().await;
                    (failures, self.failing_since) = (Failures::default(), None);
                    continue;
                }
            };
            let why = match failure {
                Failure::TooLong { .. } if leave_out(&mut sent) => continue,
                Failure::Unusable(_) if unusable < MAX_UNUSABLE => {
                    unusable += 1;
                    continue;
                }
                failure if failure.retryable() => {
                    let turn = self.session_state.state.turn_count;
                    match self.back_off(turn, &mut failures, &failure, until).await {
                        Ok(()) => continue,
                        Err(Stopped::Interrupted) => return Err(Stopped::Interrupted),
                        Err(Stopped::Failed(refusal)) => refusal.message,
                    }
                }
                failure => {
                    let request = self.carrying(context::input(&sent), 0);
                    let refusal = Refusal::new(ErrorCode::ProviderError, failure.to_string());
                    self.name_refused(refusal, &failure, &request).await.message
                }
            };
            if compaction == Compaction::InTime {
                return Err(failed(&why));
            }
            tracing::warn!("the history is shortened without a model: {why}");
            return Ok(without_a_model(&past, 4 * MAX_MESSAGE));
        }
    }

    /// The model's summary of this history: the request that it would get next, with one message more. It is as long as
    /// the window has room for by an estimate where it `is_bounded`.
    async fn request_summary(
        &mut self,
        past: &[Arc<Kept>],
        is_bounded: bool,
    ) -> Result<Result<String, NoReply>, Stopped> {
        let Some((_, provider)) = self.setup.models.model.clone() else {
            return Err(failed("there is no model to compact with"));
        };
        let mut input = context::input(past);
        let item = Item::message(Role::User, prompt::COMPACTION);
        input.push(Arc::new(kept(item)));
        let measured = self.session_state.state.usage.filter(|_| self.uses_own_model());
        let measured = measured.filter(|(at, _)| *at <= past.len() as u64);
        let tokens = match is_bounded {
            true => context::ample_tokens(self.beginning(), &input, measured),
            false => 0,
        };
        let request = Arc::new(self.carrying(input, tokens));
        self.note_shut_gate();
        let (mut interrupt, mut usages) = (self.ports.interrupt.clone(), <[Usage; 2]>::default());
        let mut learned = Vec::new();
        let text = tokio::select! {
            biased;
            () = interrupted(&mut interrupt) => None,
            text = self.collect(&provider, &request, &mut usages, &mut learned) => Some(text),
        };
        self.commit_learned(learned).await?;
        // The tokens of this request measure the context only if the Pod's own model got the whole history.
        let history = &self.session_state.state.history;
        let is_whole = self.uses_own_model()
            && past.len() == unread(history)
            && past.iter().zip(history).all(|(sent, kept)| sent.pruned == kept.pruned);
        self.commit_usage(usages[1], 0).await?;
        self.commit_usage(usages[0], if is_whole { past.len() as u64 } else { 0 }).await?;
        text.ok_or(Stopped::Interrupted)
    }

    /// Whether the model of the Pod summarises, not the one that the settings name for it.
    fn uses_own_model(&self) -> bool {
        let named = self.setup.summary_model.as_ref().map(|(model, _)| model);
        named != self.setup.models.model.as_ref().map(|(model, _)| model)
    }

    /// The text of an answer. What the provider reports in between is in `usages`, as [`Run::gives_no_reasons`] has them,
    /// and `learned`, also when the answer fails or this is dropped.
    async fn collect(
        &self,
        provider: &Provider,
        request: &Arc<Request>,
        usages: &mut [Usage; 2],
        learned: &mut Vec<Learned>,
    ) -> Result<String, NoReply> {
        let mut deltas = self.send_through_gate(provider, request, Patience::Bounded).await?;
        let (mut text, mut size) = (String::new(), ReplySize::new(self.setup.limits.reply));
        let unusable = |why: &str| NoReply::from(Failure::Unusable(why.to_owned()));
        while let Some(delta) = deltas.next().await {
            let delta = delta?;
            size.add(&delta).map_err(|too_large| unusable(&too_large.to_string()))?;
            match delta {
                Delta::Text(piece) => text.push_str(&piece),
                Delta::Learned(new) => learned.extend(new),
                Delta::Unended(failure) => {
                    if !self.gives_no_reasons(request, usages).await {
                        return Err(failure.into());
                    }
                }
                Delta::Usage(now) => usages[0] = merged(usages[0], now),
                Delta::End(Stop::MaxTokens | Stop::ContextExceeded | Stop::Pause) => {
                    return Err(unusable("the summary was cut"));
                }
                Delta::End(Stop::Refusal(why)) => {
                    return Err(unusable(&format!("the model declined: {why}")));
                }
                Delta::End(Stop::EndTurn | Stop::ToolUse | Stop::Other(_) | Stop::Unnamed) => {
                    return match text.trim() {
                        "" => Err(unusable("the model gave no summary")),
                        _ => Ok(text),
                    };
                }
                Delta::ThinkingStart
                | Delta::Thinking(_)
                | Delta::ToolCallStart { .. }
                | Delta::ToolCallArgs { .. }
                | Delta::Block { .. }
                | Delta::Unseen(_)
                | Delta::Garbled(_)
                | Delta::Unknown(_) => {}
            }
        }
        Err(Failure::Cut("the answer ended before the provider said so".into()).into())
    }

    /// Makes the next request shorter, because the model does not take the last one: old outputs leave the context,
    /// then the history is compacted, then the outputs leave that no request has carried, and then only the newest
    /// messages stay.
    pub(crate) async fn shorten(&mut self, why: &str) -> Result<(), Stopped> {
        let history = &self.session_state.state.history;
        let (old, all) = (pruning::prunable(history), pruning::outputs(history));
        let compacted = self.session_state.compacted;
        let reason = "the request was too long for the model";
        let said = if !old.is_empty() {
            let count = old.len();
            self.prune(old, reason).await?;
            format!("{reason}: {count} old outputs left the context")
        } else if unread(history) > 0 && matches!(compacted, None | Some(Compaction::InTime)) {
            self.compact(Compaction::TooLong).await?;
            format!("{reason}: the history was compacted")
        } else if !all.is_empty() {
            let count = all.len();
            self.prune(all, reason).await?;
            format!("{reason}: {count} outputs left the context")
        } else if messages(history).len() < history.len() && compacted != Some(Compaction::Bare) {
            self.compact(Compaction::Bare).await?;
            format!("{reason}: the history was compacted to its newest messages")
        } else {
            return Err(Stopped::Failed(Refusal::new(
                ErrorCode::ProviderError,
                format!(
                    "{why}; nothing more can leave the context: `:rewind` takes messages back, `:model` takes a \
                     model with a larger window, and a smaller `max_output` of the provider in config.toml leaves more \
                     of the window to the conversation"
                ),
            )));
        };
        self.publish(attach::alert(AlertSource::Pod, said)).await;
        Ok(())
    }

    /// What the next model must know beside the summary, from what the runtime itself knows. In a small window it
    /// is shorter.
    async fn facts(&self, kept_verbatim: &[usize], compaction: Compaction) -> String {
        let state = &self.session_state.state;
        let reads = usize::try_from(self.reads(compaction)).unwrap_or(usize::MAX);
        let others = (0..state.history.len()).filter(|place| !kept_verbatim.contains(place));
        let said = others.filter_map(|place| match &state.history[place].item {
            item @ Item::Message { role: Role::User, .. } => item.text(),
            _ => None,
        });
        let said: Vec<String> = said.map(|text| head(&text, MAX_MESSAGE.min(reads / 32))).collect();
        let said = said[said.len().saturating_sub(MAX_MESSAGES)..].iter();
        let calls = match compaction {
            Compaction::Bare => calls(&state.history),
            Compaction::InTime | Compaction::TooLong => String::new(),
        };
        let files = state.files.keys().rev().take(MAX_FILES.min(reads / 400));
        let pods = match &self.setup.tools.pod_api {
            Some(api) => {
                let none = CancellationToken::new();
                let pods = pods::act(&pods::list::VERB, "{}", Some(api), &none).await;
                let list = pods.ok().and_then(|list| list.content);
                list.filter(|list| serde_json::from_str(list).is_ok_and(has_others))
            }
            None => None,
        };
        let approved =
            self.answers().await.into_iter().filter(|(_, action)| *action == Action::Allow);
        let approved = approved.take(MAX_RULES).map(|(rule, _)| format!("- {rule}\n"));
        let sections = [
            (
                "What the person said, oldest first",
                said.map(|text| format!("- {text}\n")).collect(),
            ),
            ("The newest tool calls, whose outputs left", calls),
            (
                "Files touched (Read again before you edit)",
                files.map(|path| format!("- {}\n", path.display())).collect(),
            ),
            ("Pods", pods.unwrap_or_default()),
            ("Allowed by the person", approved.collect()),
        ];
        let section = |(title, text): (&str, String)| match text.is_empty() {
            true => String::new(),
            false => format!("\n\n# {title}\n{text}"),
        };
        sections.into_iter().map(section).collect()
    }
}

/// Whether a list of Pods names another one than the Pod itself.
fn has_others(list: Vec<serde_json::Value>) -> bool {
    list.len() > 1
}

/// The most compactions in a row, and the most requests between two of them.
const MAX_IN_A_ROW: u32 = 6;
const MAX_APART: u32 = 2;
/// The most summaries that are no use before a compaction fails.
const MAX_UNUSABLE: u32 = 1;
/// The most messages of the person that a compaction repeats, and the most characters of each.
const MAX_MESSAGES: usize = 12;
const MAX_MESSAGE: usize = 1_000;
/// The most files that a compaction names.
const MAX_FILES: usize = 50;
/// The most rules that a compaction names.
const MAX_RULES: usize = 20;
/// The most calls that the smallest handover names, and the most characters of the arguments and the result of each.
const MAX_CALLS: usize = 20;
const MAX_CALL: usize = 100;

/// The end of a text.
fn tail_of(text: &str, chars: usize) -> String {
    match text.char_indices().rev().nth(chars.saturating_sub(1)) {
        Some((start, _)) if start > 0 => format!("…{}", &text[start..]),
        _ => text.to_owned(),
    }
}

/// The beginning of a text.
fn head(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Makes the request for a summary shorter: the oldest half of the outputs that are still in it leaves, then the
/// oldest half of all; `false` where nothing is left to leave.
fn leave_out(sent: &mut Vec<Arc<Kept>>) -> bool {
    let outputs = pruning::outputs(sent);
    if outputs.is_empty() {
        let half = sent.len() / 2;
        sent.drain(..half);
        return half > 0;
    }
    for place in &outputs[..outputs.len().div_ceil(2)] {
        Arc::make_mut(&mut sent[*place]).pruned = Some(Pruned::default());
    }
    true
}

/// A handover where no model summarises a history: the beginning of the last one, and the end of the model's last
/// message, each of so many characters.
fn without_a_model(past: &[Arc<Kept>], chars: usize) -> String {
    let former = past.iter().rev().find_map(|kept| compaction_summary(&kept.item));
    let former = former.map(|text| head(&text, chars));
    let last = past.iter().rev().find_map(|kept| match &kept.item {
        Item::Message { role: Role::Assistant, .. } => kept.item.text(),
        _ => None,
    });
    let last = last.map(|text| tail_of(&text, chars));
    let parts = [("The handover before this one", former), ("The end of your last message", last)];
    let parts = parts.into_iter().filter_map(|(title, text)| Some((title, text?)));
    let parts: String = parts.map(|(title, text)| format!("\n\n# {title}\n{text}")).collect();
    format!("No summary could be made.{parts}")
}

/// A line for each of the newest calls: its tool, the beginning of its arguments and of its result.
fn calls(history: &[Arc<Kept>]) -> String {
    let results = context::results(history);
    let summary = |place| match &history[*results.get(&place)?].item {
        Item::ToolResult { summary, .. } => Some(summary.as_str()),
        _ => None,
    };
    let lines = history.iter().enumerate().filter_map(|(place, kept)| match &kept.item {
        Item::ToolCall { name, arguments, .. } => {
            let result = summary(place).unwrap_or("no result");
            let (arguments, result) = (head(arguments, MAX_CALL), head(result, MAX_CALL));
            Some(format!("- {name} {arguments}: {result}\n"))
        }
        _ => None,
    });
    let lines: Vec<String> = lines.collect();
    let before = lines.len().saturating_sub(MAX_CALLS);
    let more = if before > 0 {
        format!("- {before} earlier calls are not listed\n")
    } else {
        String::new()
    };
    more + &lines[before..].concat()
}

fn failed(why: &str) -> Stopped {
    Stopped::Failed(Refusal::new(ErrorCode::ProviderError, format!("cannot compact: {why}")))
}

fn kept(item: Item) -> Kept {
    Kept::new(None, item)
}

/// The index from which on the model has not read the history yet: behind its last reply, or, where that has calls
/// whose results no request has carried, its beginning, so that the calls stay with their results.
pub(crate) fn unread(history: &[Arc<Kept>]) -> usize {
    let Some(last) = history.iter().rposition(|kept| pruning::is_of_model(kept)) else { return 0 };
    let has_results =
        history[last..].iter().any(|kept| matches!(kept.item, Item::ToolResult { .. }));
    if !has_results {
        return last + 1;
    }
    history[..last].iter().rposition(|kept| !pruning::is_of_model(kept)).map_or(0, |at| at + 1)
}

/// The places of the history that a compaction keeps verbatim: the newest message of a person, messages that the
/// model has not read yet, and the newest part that fits into `tokens`.
pub(crate) fn verbatim(history: &[Arc<Kept>], tokens: u64) -> Vec<usize> {
    let from = tail(history, tokens).min(unread(history));
    let is_input = |kept: &Arc<Kept>| matches!(kept.item, Item::Message { role: Role::User, .. });
    let newest = history[..from].iter().rposition(is_input);
    let is_after = history[from..].iter().any(is_input);
    newest.filter(|_| !is_after).into_iter().chain(from..history.len()).collect()
}

/// The places of what even the smallest compaction keeps: the newest message of a person, and messages that the model
/// has not read yet.
fn messages(history: &[Arc<Kept>]) -> Vec<usize> {
    let from =
        history.iter().rposition(|kept| pruning::is_of_model(kept)).map_or(0, |last| last + 1);
    let is_message = |place: &usize| {
        let item = &history[*place].item;
        matches!(item, Item::Message { .. }) && compaction_summary(item).is_none()
    };
    let is_input =
        |place: &usize| matches!(history[*place].item, Item::Message { role: Role::User, .. });
    let newest = (0..history.len()).rev().find(is_input);
    newest
        .filter(|newest| *newest < from)
        .into_iter()
        .chain((from..history.len()).filter(is_message))
        .collect()
}

/// The index at which the newest part of the history begins that fits into `tokens`. The part begins
/// with a reply or a message, so that a call and its result stay together.
fn tail(history: &[Arc<Kept>], tokens: u64) -> usize {
    let mut from = history.len();
    let mut sum = 0;
    for (at, kept) in history.iter().enumerate().rev() {
        sum += context::tokens(0, std::slice::from_ref(kept), None);
        if sum > tokens {
            break;
        }
        let after_call = at > 0
            && matches!(history[at - 1].item, Item::ToolCall { .. } | Item::Reasoning { .. });
        if !matches!(kept.item, Item::ToolResult { .. }) && !after_call {
            from = at;
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(item: Item) -> Arc<Kept> {
        Arc::new(kept(item))
    }

    #[test]
    fn the_newest_message_of_a_person_and_what_no_request_carried_are_kept_verbatim() {
        let say = |role, text: &str| shared(Item::message(role, text.repeat(100)));
        let history = [
            say(Role::User, "old"),
            say(Role::Assistant, "done"),
            say(Role::User, "new"),
            say(Role::Assistant, "first"),
            say(Role::Assistant, "second"),
        ];
        assert_eq!((unread(&history), verbatim(&history, 1)), (5, vec![2]));
        assert_eq!(verbatim(&history, 200), [2, 4], "and the newest part that fits");
        assert_eq!(verbatim(&history, 10_000), [0, 1, 2, 3, 4]);
        assert_eq!((unread(&history[..3]), verbatim(&history[..3], 1)), (2, vec![2]));
        let mut woken = history.to_vec();
        woken.push(say(Role::System, "a child has finished"));
        assert_eq!((unread(&woken), verbatim(&woken, 1)), (5, vec![2, 5]));
        assert_eq!((unread(&history[..1]), verbatim(&history[..1], 1)), (0, vec![0]));
    }

    #[test]
    fn a_call_is_never_parted_from_its_result() {
        let call = |id: &str| {
            shared(Item::ToolCall {
                call_id: id.into(),
                name: "Read".into(),
                arguments: "{}".into(),
            })
        };
        let result = |id: &str| {
            shared(Item::ToolResult {
                call_id: id.into(),
                summary: "x".repeat(40),
                content: None,
                is_error: false,
                images: vec![],
            })
        };
        let say = || shared(Item::message(Role::User, "y".repeat(40)));
        let history = [say(), call("a"), call("b"), result("a"), result("b"), say()];
        assert_eq!(tail(&history, 10), 5);
        assert_eq!(tail(&history, 25), 5);
        assert_eq!(tail(&history, 36), 1);
        assert_eq!(tail(&history, 1000), 0);
    }
}
