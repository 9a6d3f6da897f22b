//! Compaction: the history is handed over in the model's own words to a new segment. The old
//! segment stays, so a rewind can go back behind it.

use crate::llm::{Delta, Failure, Input, Provider, Request, Stop, Usage};
use crate::protocol::entry::{COMPACTED, Kept};
use crate::protocol::{Entry, ErrorCode, Event, Fact, Item, Refusal, Role, SegmentOrigin};
use crate::run::reply_size::{ReplyLimits, ReplySize};
use crate::run::usage::merged;
use crate::run::{
    Accepted, End, Run, Stopped, answer, context, interrupted, prompt, session_state,
};
use futures_util::StreamExt as _;

impl Run {
    /// Compacts when the next request would take too much of the window. A failure is published and
    /// the run goes on as it is.
    pub(crate) async fn compact_when_full(&mut self) -> Result<(), Stopped> {
        let Some((model, _)) = &self.setup.model else { return Ok(()) };
        #[allow(clippy::cast_precision_loss)]
        let full = self.tokens() as f64 >= model.window as f64 * self.setup.limits.compact_at;
        let has_past = unread(&self.session_state.state.history) > 0;
        if model.window == 0 || !full || !has_past || self.session_state.compacted {
            return Ok(());
        }
        match self.compact().await {
            Ok(()) => Ok(()),
            Err(Stopped::Interrupted) => Err(Stopped::Interrupted),
            Err(Stopped::Failed(refusal)) if refusal.code == ErrorCode::Internal => {
                Err(Stopped::Failed(refusal))
            }
            Err(Stopped::Failed(refusal)) => {
                self.session_state.compacted = true;
                self.publish(Event::CompactFailed { error: refusal.message }).await;
                Ok(())
            }
        }
    }

    /// A run that only compacts.
    pub(crate) async fn compact_now(&mut self, accepted: Option<Accepted>) -> End {
        if self.setup.model.is_none() || unread(&self.session_state.state.history) == 0 {
            let why = if self.setup.model.is_none() {
                "there is no model to compact with"
            } else {
                "there is nothing to compact yet"
            };
            let mut start = crate::run::Start::Compact { accepted };
            start.refuse(&Refusal::invalid(why));
            return End::Compacted;
        }
        answer(accepted, None);
        match self.compact().await {
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

    async fn compact(&mut self) -> Result<(), Stopped> {
        self.publish(Event::CompactStart).await;
        self.doing("compacting").await;
        let summary = self.handover().await?;
        let mut history =
            vec![kept(Item::message(Role::System, format!("{}\n\n{summary}", COMPACTED)))];
        history.extend(self.session_state.tasks.snapshot().into_iter().map(kept));
        let places = verbatim(&self.session_state.state.history, self.setup.limits.keep_tokens);
        self.load(places.clone()).await?;
        let places = places.into_iter().map(|at| self.session_state.state.history[at].clone());
        history.extend(places.map(|kept| Kept { output: None, ..kept }));
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
        next.compacted = true;
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

    /// Requests the handover text from the model.
    async fn handover(&mut self) -> Result<String, Stopped> {
        let Some((_, provider)) = self.setup.model.clone() else {
            return Err(failed("there is no model to compact with"));
        };
        self.load_wanted().await?;
        let history = &self.session_state.state.history;
        // Messages that the model has not read yet are kept verbatim, and may take much of the window.
        let past = &history[..unread(history)];
        let mut input = context::input(past, self.setup.limits.pruning);
        let item = Item::message(Role::User, prompt::COMPACTION);
        input.push(Input { item, origin: None, native: None });
        let request = Request {
            system: self.session_state.system.clone(),
            input,
            tools: Vec::new(),
            config: self.session_state.state.config.clone(),
            cache_key: self.session_state.segment.to_string(),
            blobs: self.setup.files.blobs(),
        };
        let asked = past.len() as u64;
        let (mut interrupt, mut usage) = (self.ports.interrupt.clone(), Usage::default());
        let text = tokio::select! {
            biased;
            () = interrupted(&mut interrupt) => None,
            text = collect(&provider, &request, self.setup.limits.reply, &mut usage) => Some(text),
        };
        self.commit_usage(usage, asked).await?;
        match text {
            None => Err(Stopped::Interrupted),
            Some(Ok(text)) if text.trim().is_empty() => Err(failed("the model gave no summary")),
            Some(Ok(text)) => Ok(text),
            Some(Err(failure)) => Err(failed(&failure.to_string())),
        }
    }
}

fn failed(why: &str) -> Stopped {
    Stopped::Failed(Refusal::new(ErrorCode::ProviderError, format!("cannot compact: {why}")))
}

/// The text of an answer. What the provider reports in between is in `usage`, also when the answer
/// fails or this is dropped.
async fn collect(
    provider: &Provider,
    request: &Request,
    limits: ReplyLimits,
    usage: &mut Usage,
) -> Result<String, Failure> {
    let mut deltas = provider.open(request).await?;
    let (mut text, mut size) = (String::new(), ReplySize::new(limits));
    while let Some(delta) = deltas.next().await {
        let delta = delta?;
        size.add(&delta).map_err(|too_large| Failure::Unusable(too_large.to_string()))?;
        match delta {
            Delta::Text(piece) => text.push_str(&piece),
            Delta::End(Stop::EndTurn | Stop::MaxTokens | Stop::Other(_)) => return Ok(text),
            Delta::End(Stop::Refusal(why)) => {
                return Err(Failure::Unusable(format!("the model declined: {why}")));
            }
            Delta::Usage(now) => *usage = merged(*usage, now),
            Delta::End(Stop::ToolUse)
            | Delta::ThinkingStart
            | Delta::Thinking(_)
            | Delta::ToolCallStart { .. }
            | Delta::ToolCallArgs { .. }
            | Delta::Block { .. }
            | Delta::Unseen(_)
            | Delta::Unknown(_) => {}
        }
    }
    Err(Failure::Cut("the answer ended before the provider said so".into()))
}

fn kept(item: Item) -> Kept {
    Kept::new(None, item)
}

/// The index behind the last text of the model and the last tool result. The messages from there on have not been
/// sent to the model yet.
fn unread(history: &[Kept]) -> usize {
    let is_message =
        |kept: &Kept| matches!(kept.item, Item::Message { role: Role::User | Role::System, .. });
    history.iter().rposition(|kept| !is_message(kept)).map_or(0, |at| at + 1)
}

/// The places of the history that a compaction keeps verbatim: the newest message of a person, messages that the
/// model has not read yet, and the newest part that fits into `tokens`.
fn verbatim(history: &[Kept], tokens: u64) -> Vec<usize> {
    let from = tail(history, tokens).min(unread(history));
    let is_input = |kept: &Kept| matches!(kept.item, Item::Message { role: Role::User, .. });
    let newest = history[..from].iter().rposition(is_input);
    let is_after = history[from..].iter().any(is_input);
    newest.filter(|_| !is_after).into_iter().chain(from..history.len()).collect()
}

/// The index at which the newest part of the history begins that fits into `tokens`. The part begins
/// with a reply or a message, so that a call and its result stay together.
fn tail(history: &[Kept], tokens: u64) -> usize {
    let mut from = history.len();
    let mut sum = 0;
    for (at, kept) in history.iter().enumerate().rev() {
        sum += context::tokens("", std::slice::from_ref(kept), None);
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

    #[test]
    fn the_newest_message_of_a_person_and_what_no_request_carried_are_kept_verbatim() {
        let say = |role, text: &str| kept(Item::message(role, text.repeat(100)));
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
            kept(Item::ToolCall { call_id: id.into(), name: "Read".into(), arguments: "{}".into() })
        };
        let result = |id: &str| {
            kept(Item::ToolResult {
                call_id: id.into(),
                summary: "x".repeat(40),
                content: None,
                is_error: false,
                images: vec![],
            })
        };
        let say = || kept(Item::message(Role::User, "y".repeat(40)));
        let history = [say(), call("a"), call("b"), result("a"), result("b"), say()];
        assert_eq!(tail(&history, 10), 5);
        assert_eq!(tail(&history, 25), 5);
        assert_eq!(tail(&history, 36), 1);
        assert_eq!(tail(&history, 1000), 0);
    }
}
