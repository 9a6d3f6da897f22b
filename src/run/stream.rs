//! One model call: the request, its retries and continuations, and the stream of its reply.

use crate::llm::adjust::Learned;
use crate::llm::retry::{clock_at, clock_in};
use crate::llm::{Delta, Deltas, Failure, Input, Provider, Request, Stop, Usage, cause, effort};
use crate::protocol::entry::{GO_ON, domain};
use crate::protocol::item::{Item, RequestConfig, Role};
use crate::protocol::{AlertSource, Entry, ErrorCode, Event, Fact, Origin, Refusal, SystemItem};
use crate::run::batch::Call;
use crate::run::models::chosen;
use crate::run::repeated::Repeated;
use crate::run::reply_size::{ReplyLimits, ReplySize, within_a_line};
use crate::run::screens::LastShown;
use crate::run::usage::merged;
use crate::run::{Run, RunEvent, Stopped, Viewers, attach, context, interrupted};
use crate::session::{Partial, Replay};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// After so long a request that then broke, the next failure is the first one again.
const LONG_REQUEST: Duration = Duration::from_secs(60);

/// The most calls in a row that a server could not read and whose request is made again.
const MAX_SAMPLES: u32 = 3;

/// The most bytes of a provider's refusal that are stored.
const MAX_REFUSAL: usize = 64 * 1024;

/// A committed reply.
pub(crate) struct Complete {
    pub(crate) calls: Vec<Call>,
    /// The ids of the calls within which the reply ended.
    pub(crate) cut_calls: Vec<String>,
    pub(crate) stop: Stop,
}

/// Why a request got no reply.
pub(crate) enum NoReply {
    /// It failed; until then the gate of its provider is shut because of it.
    Failed(Failure, Option<Instant>),
    /// A person chose another model or effort before a reply began: it is to be made anew.
    Outdated,
}

impl From<Failure> for NoReply {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure, None)
    }
}

/// How long failed requests are made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Patience {
    /// For the time of the settings: there is another way on.
    #[default]
    Bounded,
    /// Without end while a screen shows the Pod, and for the time of the settings from when the last one left.
    WhileShown,
}

/// The failures in a row of the requests for one reply.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    count: u32,
    patience: Patience,
}

/// The outcome of one request.
enum Reply {
    Done(Complete),
    /// The reply had neither text nor calls; its cost is in the log.
    Empty,
    Interrupted,
    /// As [`NoReply::Outdated`].
    Outdated,
    /// `shown`: a part of the reply had arrived. `until`: the provider is overloaded, and its gate is shut until then.
    Broken {
        failure: Failure,
        shown: bool,
        until: Option<Instant>,
    },
}

/// An answer that is being received.
struct Answer {
    size: ReplySize,
    /// The received part of the open block.
    text: String,
    repeated: Repeated,
    thinking: String,
    /// Complete blocks that wait for the end: tool calls count only in a complete reply, and later
    /// blocks keep their order.
    held: Vec<(Item, Option<Value>)>,
    /// The ids of the calls within which the reply ended.
    cut_calls: Vec<String>,
    usage: Usage,
    shown: bool,
    said: bool,
    /// Whether a visible text or a tool call has arrived.
    has_content: bool,
    /// Why the first part of it could not be read that may have held words.
    garbled: Option<String>,
    /// The last published activity of the run.
    doing: &'static str,
}

impl Answer {
    fn new(limits: ReplyLimits, broken_text: String) -> Self {
        Self {
            size: ReplySize::new(limits),
            text: String::new(),
            repeated: Repeated::of(broken_text),
            thinking: String::new(),
            held: Vec::new(),
            cut_calls: Vec::new(),
            usage: Usage::default(),
            shown: false,
            said: false,
            has_content: false,
            garbled: None,
            doing: ASKED,
        }
    }
}

/// Why a run waits at the gate of its provider.
const OVERLOADED: &str = "its provider takes no requests now";

/// The activity of a run before the first part of a reply has arrived.
pub(crate) const ASKED: &str = "waiting for its model";

/// The same while the provider is asked a second time.
const ASKED_AGAIN: &str =
    "asking once more, because its provider gave no reason for the end of the reply";

/// The activity of a run while its model sends this.
fn writes(delta: &Delta) -> Option<&'static str> {
    match delta {
        Delta::Text(_) => Some("writing its answer"),
        Delta::ThinkingStart | Delta::Thinking(_) => Some("thinking"),
        Delta::ToolCallStart { .. } | Delta::ToolCallArgs { .. } => Some("writing a tool call"),
        Delta::Block { .. }
        | Delta::Usage(_)
        | Delta::Learned(_)
        | Delta::Unseen(_)
        | Delta::Garbled(_)
        | Delta::Unended(_)
        | Delta::Unknown(_)
        | Delta::End(_) => None,
    }
}

impl Run {
    /// Makes one model request and commits its reply.
    pub(crate) async fn request_reply(&mut self) -> Result<Complete, Stopped> {
        let llm_call = self.session_state.state.turn_count;
        self.publish(Event::LlmCallStart { llm_call }).await;
        let (mut failures, mut continued, mut may_repeat) = (self.no_failures(), 0, true);
        loop {
            if self.use_chosen_model().await {
                failures = self.no_failures();
            }
            let asked = Instant::now();
            match self.request(may_repeat).await? {
                // Some models end a reply at once and answer the same request when it is made again.
                Reply::Empty => may_repeat = false,
                Reply::Done(reply) => {
                    self.session_state.compacted = None;
                    return Ok(reply);
                }
                Reply::Interrupted => return Err(Stopped::Interrupted),
                Reply::Outdated => {}
                Reply::Broken { failure: Failure::TooLong { message, .. }, .. } => {
                    self.shorten(&message).await?;
                }
                Reply::Broken { failure, shown, until } => {
                    if shown && failure.retryable() {
                        if asked.elapsed() > LONG_REQUEST {
                            failures = self.no_failures();
                        }
                        continued += 1;
                        self.go_on(llm_call, continued, &failure).await?;
                    }
                    match self.back_off(llm_call, &mut failures, &failure, until).await {
                        Err(Stopped::Failed(_)) if self.falls_back(&failure) => {
                            self.fall_back(&failure).await?;
                            failures = self.no_failures();
                        }
                        Err(Stopped::Failed(refusal)) => {
                            if let Failure::Filtered { provider_text, .. } = &failure {
                                return Err(self.declined(refusal, provider_text, false).await);
                            }
                            let request = self.next_request();
                            let named = self.name_refused(refusal, &failure, &request).await;
                            return Err(Stopped::Failed(named));
                        }
                        waited => waited?,
                    }
                }
            }
        }
    }

    /// A model that another one can replace is not waited for without end.
    fn patience(&self) -> Patience {
        if self.setup.models.fallbacks.is_empty() {
            Patience::WhileShown
        } else {
            Patience::Bounded
        }
    }

    fn no_failures(&mut self) -> Failures {
        self.failing_since = None;
        Failures { count: 0, patience: self.patience() }
    }

    /// When the run gives a provider up that has failed since then; `None` while a screen shows the Pod.
    fn gives_up(&self, patience: Patience, since: Instant) -> Option<Instant> {
        let budget = self.setup.retries.budget;
        let from = match (patience, self.setup.viewers.last_shown()) {
            (Patience::WhileShown, LastShown::Now) if !budget.is_zero() => return None,
            (Patience::WhileShown, LastShown::Until(left)) => left.max(since),
            (Patience::Bounded | Patience::WhileShown, _) => since,
        };
        from.checked_add(budget)
    }

    /// The text of the reply whose connection broke, where the next reply is to go on behind it.
    fn broken_text(&self) -> String {
        let [.., part, note] = self.session_state.state.history.as_slice() else {
            return String::new();
        };
        let is_note = note.item.text().as_deref() == Some(GO_ON);
        is_note.then(|| part.item.text()).flatten().unwrap_or_default()
    }

    async fn go_on(&mut self, llm_call: u64, attempt: u32, why: &Failure) -> Result<(), Stopped> {
        if self.ends_with_own_text() {
            let item = SystemItem::Interrupt { body: GO_ON.into() };
            self.commit(vec![Entry::new(Fact::SystemItem { item, taken: None })]).await?;
        }
        let reason = why.to_string();
        let max_attempts = self.setup.retries.attempts();
        self.publish(Event::LlmContinuation { llm_call, attempt, max_attempts, reason }).await;
        Ok(())
    }

    /// Waits before the next attempt, or fails when there is none. Where the gate of the provider is shut, `until` then, the
    /// next request waits there. A model that a person chooses meanwhile is asked at once.
    pub(crate) async fn back_off(
        &mut self,
        llm_call: u64,
        failures: &mut Failures,
        failure: &Failure,
        until: Option<Instant>,
    ) -> Result<(), Stopped> {
        if self.has_other_model() {
            return Ok(());
        }
        failures.count += 1;
        let now = Instant::now();
        let (first, patience) = (*self.failing_since.get_or_insert(now), failures.patience);
        let is_given_up = self.falls_back(failure)
            && self.setup.models.model.as_ref().is_some_and(|(_, p)| p.is_away());
        let left = self.gives_up(patience, first).map(|at| at.saturating_duration_since(now));
        let wait = match until.map(|until| until.saturating_duration_since(now)) {
            Some(pause) => left.is_none_or(|left| pause < left).then_some(pause),
            None => self.setup.retries.wait(failures.count, left, failure, random()),
        };
        let is_given_up = is_given_up || is_sample(failure) && failures.count > MAX_SAMPLES;
        let Some(wait) = wait.filter(|_| !is_given_up) else {
            return Err(self.given_up(failure, now - first));
        };
        self.say_retry(llm_call, failures.count, now - first, wait, failure).await;
        if until.is_some() {
            return Ok(());
        }
        let (mut interrupt, mut viewers) =
            (self.ports.interrupt.clone(), self.setup.viewers.clone());
        let mut models = self.ports.chosen.clone();
        loop {
            let gives_up = self.gives_up(patience, first);
            self.waits(state_of(failure), now + wait, gives_up).await;
            tokio::select! {
                () = sleep_until(now + wait) => return Ok(()),
                () = self.ports.try_now.notified() => return Ok(()),
                () = chosen(&mut models) => return Ok(()),
                () = interrupted(&mut interrupt) => return Err(Stopped::Interrupted),
                () = at(gives_up) => return Err(self.given_up(failure, first.elapsed())),
                () = self.other_time(&mut viewers, patience, first, gives_up) => {}
            }
        }
    }

    /// Why a run ends whose provider failed for so long. A failure that no second request could mend says itself what to do.
    fn given_up(&self, failure: &Failure, after: Duration) -> Stopped {
        let Stopped::Failed(mut refusal) = provider_error(failure) else {
            return provider_error(failure);
        };
        if is_sample(failure) {
            let way_on = "; the model may do the same each time: :model takes another one";
            refusal.message.push_str(way_on);
        } else if failure.retryable() {
            let minutes = self.setup.retries.budget.as_secs() / 60;
            let after = if after.as_secs() == 0 {
                "at once".into()
            } else {
                format!("after {}", in_words(after))
            };
            refusal.message.push_str(&format!(
                "; given up {after}, because `[retry] minutes` is {minutes}: a larger number waits longer, and :model takes \
                 another model"
            ));
        }
        Stopped::Failed(refusal)
    }

    /// Resolves when screens came or went, so that the run gives its provider up at another time than this.
    async fn other_time(
        &self,
        viewers: &mut Viewers,
        patience: Patience,
        since: Instant,
        gives_up: Option<Instant>,
    ) {
        while self.gives_up(patience, since) == gives_up {
            viewers.changed().await;
        }
    }

    /// Shows why the run waits for its provider, until when, and when it gives it up.
    async fn waits(&self, why: &str, until: Instant, gives_up: Option<Instant>) {
        let wait = |at: Instant| at.saturating_duration_since(Instant::now());
        let mut activity = format!("{why}, tries again {}", clock_in(wait(until)));
        if let Some(end) = gives_up {
            activity.push_str(&format!(", gives up {}", clock_in(wait(end))));
        }
        let wait = u64::try_from(wait(until).as_millis()).unwrap_or(u64::MAX);
        let until = crate::protocol::now_ms().saturating_add(wait);
        self.send(RunEvent::Waits { activity, until }).await;
    }

    async fn say_retry(
        &self,
        llm_call: u64,
        failed_attempt: u32,
        elapsed: Duration,
        wait: Duration,
        failure: &Failure,
    ) {
        let max_attempts = self.setup.retries.attempts().max(failed_attempt.saturating_add(1));
        tracing::warn!(failed_attempt, wait_ms = wait.as_millis(), "retrying: {failure}");
        let status = match failure {
            Failure::Status { status, .. } => Some(*status),
            _ => None,
        };
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        self.publish(Event::LlmRetry {
            llm_call,
            failed_attempt,
            max_attempts,
            wait_ms: millis(wait),
            elapsed_ms: millis(elapsed),
            status,
            error: failure.to_string(),
        })
        .await;
    }

    /// Makes one request. If it `may_repeat` it, an empty reply is not the answer.
    async fn request(&mut self, may_repeat: bool) -> Result<Reply, Stopped> {
        self.publish_context().await;
        self.load_wanted().await?;
        self.offered = self.tools_now();
        self.doing(ASKED).await;
        self.note_shut_gate();
        let mut interrupt = self.ports.interrupt.clone();
        let request = Arc::new(self.next_request());
        let opened = tokio::select! {
            biased;
            () = interrupted(&mut interrupt) => return Ok(Reply::Interrupted),
            opened = self.open(&request) => opened,
        };
        let mut deltas = match opened {
            Ok(deltas) => deltas,
            Err(NoReply::Outdated) => return Ok(Reply::Outdated),
            Err(NoReply::Failed(failure, until)) => {
                return Ok(Reply::Broken { failure, shown: false, until });
            }
        };
        let asked = self.session_state.state.history.len() as u64;
        let mut answer = Answer::new(self.setup.limits.reply, self.broken_text());
        let failure = loop {
            let delta = tokio::select! {
                biased;
                () = interrupted(&mut interrupt) => {
                    self.keep_partial(answer, asked).await?;
                    return Ok(Reply::Interrupted);
                }
                delta = deltas.next() => delta,
            };
            match delta {
                Some(Ok(Delta::Unended(failure))) => {
                    let mut usages = <[Usage; 2]>::default();
                    let gives_none = tokio::select! {
                        biased;
                        () = interrupted(&mut interrupt) => false,
                        gives_none = self.gives_no_reasons(&request, &mut usages) => gives_none,
                    };
                    self.commit_usage(usages[1], 0).await?;
                    if !gives_none {
                        break failure;
                    }
                }
                Some(Ok(Delta::End(stop))) => {
                    return self.end(answer, asked, stop, may_repeat).await;
                }
                Some(Ok(delta)) => match answer.size.add(&delta) {
                    Ok(()) => self.receive(&mut answer, delta).await?,
                    Err(too_large) => {
                        // Ends the connection, so that the provider stops generating.
                        drop((deltas, delta));
                        self.keep_partial(answer, asked).await?;
                        return Err(provider_error(&Failure::Unusable(too_large.to_string())));
                    }
                },
                Some(Err(failure)) => break failure,
                None => break Failure::Cut("the answer ended before the provider said so".into()),
            }
        };
        let shown = answer.shown;
        self.keep_partial(answer, asked).await?;
        Ok(Reply::Broken { failure, shown, until: None })
    }

    /// The settings of a request to the model that is asked now, whichever one the log began with.
    pub(crate) fn request_config(&self) -> RequestConfig {
        let config = self.session_state.state.config.clone();
        let Some((model, _)) = &self.setup.models.model else { return config };
        let effort = *self.setup.effort.borrow();
        RequestConfig {
            max_tokens: (model.max_output > 0).then_some(model.max_output),
            reasoning: effort.and_then(|effort| effort::setting(model, effort)),
            ..config
        }
    }

    async fn open(&self, request: &Arc<Request>) -> Result<Deltas, NoReply> {
        let Some((_, provider)) = &self.setup.models.model else {
            return Ok(without_a_model(self.setup.without_model.clone()));
        };
        self.send_through_gate(provider, request, self.patience()).await
    }

    /// Whether the provider gives no reason for the end of its replies: a second reply to the same request has none
    /// either. It is not shown, because the first one is the answer; what it used is in the second of `usages`.
    pub(crate) async fn gives_no_reasons(
        &self,
        request: &Arc<Request>,
        usages: &mut [Usage; 2],
    ) -> bool {
        let Some((_, provider)) = &self.setup.models.model else { return true };
        if provider.ends_unnamed() {
            return true;
        }
        self.doing(ASKED_AGAIN).await;
        let opened = self.send_through_gate(provider, request, Patience::Bounded).await;
        let (Ok(mut deltas), mut size) = (opened, ReplySize::new(self.setup.limits.reply)) else {
            return false;
        };
        while let Some(Ok(delta)) = deltas.next().await {
            match delta {
                Delta::Unended(_) => return true,
                Delta::Usage(now) => usages[1] = merged(usages[1], now),
                delta if size.add(&delta).is_err() => return false,
                _ => {}
            }
        }
        false
    }

    /// A request that finds the gate of its provider shut waits for the provider from now on.
    pub(crate) fn note_shut_gate(&mut self) {
        let asked = self.setup.models.model.as_ref();
        if asked.is_some_and(|(_, asked)| asked.gate().shut_until().is_some()) {
            self.failing_since.get_or_insert_with(Instant::now);
        }
    }

    /// Sends a request when the gate of its provider lets it through.
    pub(crate) async fn send_through_gate(
        &self,
        provider: &Provider,
        request: &Arc<Request>,
        patience: Patience,
    ) -> Result<Deltas, NoReply> {
        let gate = provider.gate();
        let since = self.failing_since.unwrap_or_else(Instant::now);
        let say = |until| self.waits(OVERLOADED, until, self.gives_up(patience, since));
        let shut_until = gate.shut_until();
        let waits = shut_until.is_some();
        let is_shown = || self.setup.viewers.last_shown() == LastShown::Now;
        let passing = gate.pass(is_shown, say);
        tokio::pin!(passing);
        let (mut viewers, mut asked) = (self.setup.viewers.clone(), None);
        let (mut models, mut effort) = (self.ports.chosen.clone(), self.setup.effort.clone());
        // The request has the effort of now.
        effort.mark_unchanged();
        let pass = loop {
            let gives_up = self.gives_up(patience, since);
            // A run whose time is over asks, and one that no pause can help asks at once.
            let is_hopeless = gate.shut_until().zip(gives_up).is_some_and(|(end, at)| {
                end > at && since.checked_add(self.setup.retries.budget) == Some(at)
            });
            let next_try = gives_up.map(|at| if is_hopeless { since } else { at });
            let next_try = next_try.map(|at| asked.map_or(at, |again| at.max(again)));
            tokio::select! {
                biased;
                () = chosen(&mut models) => return Err(NoReply::Outdated),
                Ok(()) = effort.changed() => return Err(NoReply::Outdated),
                pass = &mut passing => break pass,
                () = self.ports.try_now.notified() => gate.end_pause(),
                () = at(next_try) => {
                    gate.end_pause();
                    asked = Some(Instant::now() + self.setup.retries.cap);
                }
                () = self.other_time(&mut viewers, patience, since, gives_up) => {
                    if let Some(until) = gate.shut_until() {
                        say(until).await;
                    }
                }
            }
        };
        if waits {
            self.doing(ASKED).await;
        }
        let opened = tokio::select! {
            biased;
            () = chosen(&mut models) => return Err(NoReply::Outdated),
            opened = provider.open(request) => opened,
        };
        match opened {
            Ok(deltas) => {
                pass.answered();
                provider.set_away(false);
                Ok(deltas)
            }
            Err(failure) if failure.is_overload() => {
                let until = pass.refused(&failure, &self.setup.retries, random());
                Err(NoReply::Failed(failure, Some(until)))
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// The request for the next reply.
    fn next_request(&self) -> Request {
        let Replay { history, usage, .. } = &self.session_state.state;
        let tokens = context::ample_tokens(self.beginning(), history, *usage);
        self.carrying(context::input(history), tokens)
    }

    /// The request that carries this input, behind the beginning that all requests of a segment share. `tokens` is an
    /// estimate of its size.
    pub(crate) fn carrying(&self, input: Vec<Input>, tokens: u64) -> Request {
        Request {
            tokens,
            system: self.session_state.system.clone(),
            input,
            tools: self.offered.specs(),
            config: self.request_config(),
            conversation: self.session_state.segment.to_string(),
            blobs: self.setup.files.blobs(),
        }
    }

    async fn receive(&mut self, answer: &mut Answer, delta: Delta) -> Result<(), Stopped> {
        let shows = !matches!(
            delta,
            Delta::Usage(_)
                | Delta::Learned(_)
                | Delta::Unseen(_)
                | Delta::Garbled(_)
                | Delta::Unended(_)
                | Delta::Unknown(_)
        );
        answer.shown |= shows;
        self.acted |= answer.shown;
        if let Some(doing) = writes(&delta).filter(|doing| *doing != answer.doing) {
            answer.doing = doing;
            self.doing(doing).await;
        }
        match delta {
            Delta::Text(text) => {
                let text = answer.repeated.new_part(text);
                if text.is_empty() {
                    return Ok(());
                }
                self.session_state.journal.stream(Partial::Text, &text);
                answer.text.push_str(&text);
                self.publish(Event::TextDelta { text }).await;
            }
            Delta::ThinkingStart => self.publish(Event::ThinkingStart).await,
            Delta::Thinking(text) => {
                self.session_state.journal.stream(Partial::Thinking, &text);
                answer.thinking.push_str(&text);
                self.publish(Event::ThinkingDelta { text }).await;
            }
            Delta::ToolCallStart { id, name } => {
                self.publish(Event::ToolCallStart { id, name }).await
            }
            Delta::ToolCallArgs { id, json } => {
                self.publish(Event::ToolCallArgsDelta { id, json }).await;
            }
            Delta::Block { item, native, cut } => self.block(answer, item, native, cut).await?,
            Delta::Usage(usage) => answer.usage = merged(answer.usage, usage),
            Delta::Learned(learned) => {
                self.commit_learned(learned).await?;
            }
            Delta::Garbled(why) => {
                answer.garbled.get_or_insert(why);
            }
            Delta::Unseen(_) | Delta::Unended(_) | Delta::Unknown(_) | Delta::End(_) => {}
        }
        Ok(())
    }

    /// What a provider does not take is noted in the log and stored for all Pods, and every screen learns of it.
    pub(crate) async fn commit_learned(&mut self, learned: Vec<Learned>) -> Result<(), Stopped> {
        if learned.is_empty() {
            return Ok(());
        }
        let said: Vec<String> = learned.iter().map(Learned::sentence).collect();
        let payload = json!({"sentences": said});
        self.commit(vec![Entry::extension(domain::LEARNED, payload)]).await?;
        for learned in learned {
            self.publish(attach::alert(AlertSource::Pod, learned.sentence())).await;
            self.send(RunEvent::Learned(Box::new(learned))).await;
        }
        Ok(())
    }

    /// A complete block is committed at once, unless it must wait for the whole answer.
    async fn block(
        &mut self,
        answer: &mut Answer,
        item: Item,
        native: Option<Value>,
        cut: bool,
    ) -> Result<(), Stopped> {
        answer.has_content |= has_content(&item);
        let (item, native) = match answer.repeated.new_block(&item) {
            None => (item, native),
            Some(new) if new.is_empty() => {
                answer.text.clear();
                return Ok(());
            }
            // The provider's own form has the whole text.
            Some(new) => (Item::message(Role::Assistant, new), None),
        };
        match &item {
            Item::Reasoning { .. } => answer.thinking.clear(),
            Item::Message { .. } => answer.text.clear(),
            Item::ToolCall { .. } | Item::ToolResult { .. } | Item::Unknown(_) => {}
        }
        if let Item::ToolCall { call_id, .. } = &item
            && cut
        {
            answer.cut_calls.push(call_id.clone());
        }
        if matches!(item, Item::ToolCall { .. }) || !answer.held.is_empty() {
            answer.held.push((item, native));
            return Ok(());
        }
        crate::crash_point!("block-received");
        let done = done(&item);
        answer.said |= matches!(item, Item::Message { .. });
        let entry = self.said(item, native, false);
        self.commit(vec![entry]).await?;
        self.session_state.journal.stream_done();
        crate::crash_point!("block-committed");
        if let Some(event) = done {
            self.publish(event).await;
        }
        Ok(())
    }

    fn said(&self, item: Item, native: Option<Value>, partial: bool) -> Entry {
        let origin = match &self.setup.models.model {
            Some((_, provider)) => provider.origin(),
            None => Origin {
                wire: context::NO_MODEL.into(),
                provider: String::new(),
                model: String::new(),
            },
        };
        let origin = Some(origin);
        within_a_line(Entry::new(Fact::AssistantItem { item, origin, native, partial }))
    }

    /// Commits the held blocks of a complete reply together with its cost.
    async fn end(
        &mut self,
        mut answer: Answer,
        asked: u64,
        stop: Stop,
        may_repeat: bool,
    ) -> Result<Reply, Stopped> {
        let calls: Vec<Call> = answer.held.iter().filter_map(|(item, _)| call(item)).collect();
        let events: Vec<Event> = answer.held.iter().filter_map(|(item, _)| done(item)).collect();
        let mut entries: Vec<Entry> = Vec::with_capacity(answer.held.len() + 1);
        for (item, native) in std::mem::take(&mut answer.held) {
            entries.push(self.said(item, native, false));
        }
        let is_empty = !answer.has_content && !matches!(stop, Stop::Refusal(_));
        let is_end = stop.is_own_end() || stop == Stop::Unnamed;
        if is_empty && may_repeat && is_end && self.setup.models.model.is_some() {
            entries.extend(self.usage_entry(answer.usage, asked));
            if !entries.is_empty() {
                self.commit(entries).await?;
            }
            self.session_state.journal.stream_done();
            self.publish_usage(answer.usage).await;
            tracing::warn!("the answer was empty: asking once more");
            return Ok(Reply::Empty);
        }
        if let Some(why) = &answer.garbled {
            let said = format!("a part of this reply could not be read and is missing: {why}");
            self.publish(attach::alert(AlertSource::Pod, said)).await;
            let note = json!({"reason": "garbled", "words": why});
            entries.push(Entry::extension(domain::STOPPED, note));
        } else if is_empty {
            entries.push(Entry::extension(domain::EMPTY_ANSWER, json!({})));
        }
        entries.extend(stopped_entry(&stop));
        entries.extend(self.usage_entry(answer.usage, asked));
        crate::crash_point!("reply-received");
        if !entries.is_empty() {
            self.commit(entries).await?;
        }
        self.session_state.journal.stream_done();
        crate::crash_point!("reply-committed");
        for event in events {
            self.publish(event).await;
        }
        self.publish_usage(answer.usage).await;
        let llm_call = self.session_state.state.turn_count;
        self.publish(Event::LlmCallEnd { llm_call }).await;
        self.publish_context().await;
        Ok(Reply::Done(Complete { calls, cut_calls: answer.cut_calls, stop }))
    }

    /// Keeps the received part of a broken reply in the history, without unfinished tool calls.
    async fn keep_partial(&mut self, answer: Answer, asked: u64) -> Result<(), Stopped> {
        let mut entries: Vec<Entry> = Vec::new();
        if !answer.thinking.is_empty() {
            let item = Item::Reasoning {
                text: answer.thinking,
                summary: Vec::new(),
                encrypted_content: None,
                signature: None,
            };
            entries.push(self.said(item, None, true));
        }
        for (item, native) in answer.held {
            if !matches!(item, Item::ToolCall { .. }) {
                entries.push(self.said(item, native, false));
            }
        }
        if !answer.text.is_empty() {
            let item = Item::message(Role::Assistant, answer.text);
            entries.push(self.said(item, None, true));
        }
        entries.extend(self.usage_entry(answer.usage, asked));
        self.publish_usage(answer.usage).await;
        if !entries.is_empty() {
            self.commit(entries).await?;
        }
        self.session_state.journal.stream_done();
        self.publish_context().await;
        Ok(())
    }
}

/// The reply to a message without a model.
fn without_a_model(text: String) -> Deltas {
    let item = Item::message(Role::Assistant, text.clone());
    let deltas = [
        Delta::Text(text),
        Delta::Block { item, native: None, cut: false },
        Delta::End(Stop::EndTurn),
    ];
    Box::pin(futures_util::stream::iter(deltas.map(Ok)))
}

/// Whether a block is a tool call or a message with something to read.
fn has_content(item: &Item) -> bool {
    match item {
        Item::ToolCall { .. } => true,
        Item::Message { .. } => item.text().is_some_and(|text| !text.trim().is_empty()),
        Item::Reasoning { .. } | Item::ToolResult { .. } | Item::Unknown(_) => false,
    }
}

fn call(item: &Item) -> Option<Call> {
    let Item::ToolCall { call_id, name, arguments } = item else { return None };
    Some(Call { id: call_id.clone(), name: name.clone(), arguments: arguments.clone() })
}

/// Why a reply ended, where that is not its own end.
pub(crate) fn stopped_entry(stop: &Stop) -> Option<Entry> {
    let (reason, words) = match stop {
        Stop::EndTurn | Stop::ToolUse => return None,
        Stop::MaxTokens => ("max_tokens", ""),
        Stop::ContextExceeded => ("context_exceeded", ""),
        Stop::Pause => ("pause", ""),
        Stop::Refusal(words) => ("refusal", words.as_str()),
        Stop::Other(word) => ("other", word.as_str()),
        Stop::Unnamed => ("unnamed", ""),
    };
    let words = &words[..words.floor_char_boundary(MAX_REFUSAL)];
    Some(Entry::extension(domain::STOPPED, json!({"reason": reason, "words": words})))
}

/// The event for a complete block.
fn done(item: &Item) -> Option<Event> {
    match item {
        Item::Message { .. } => item.text().map(|text| Event::TextDone { text }),
        Item::Reasoning { text, summary, .. } => {
            let text = if text.is_empty() { summary.join("\n\n") } else { text.clone() };
            Some(Event::ThinkingDone { text })
        }
        Item::ToolCall { call_id, name, arguments } => Some(Event::ToolCallDone {
            id: call_id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        }),
        Item::ToolResult { .. } | Item::Unknown(_) => None,
    }
}

/// Whether a server could not read a call that its model wrote. The same model may write it so each time.
fn is_sample(failure: &Failure) -> bool {
    let (Failure::Provider { provider_text, .. } | Failure::Status { provider_text, .. }) = failure
    else {
        return false;
    };
    cause::is_bad_sample(&provider_text.to_lowercase())
}

/// Resolves then; never without a time.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Evenly between 0 and 1: the low bits of a UUIDv7 are random.
fn random() -> f64 {
    let low = uuid::Uuid::now_v7().as_u64_pair().1;
    f64::from(u32::try_from(low & 0xffff_ffff).unwrap_or(0)) / f64::from(u32::MAX)
}

/// How long a run waited, in words.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds / 60),
    }
}

fn provider_error(failure: &Failure) -> Stopped {
    let text = match limited_until(failure, &jiff::Zoned::now()) {
        Some(limited) => format!("{failure} ({limited})"),
        None => failure.to_string(),
    };
    Stopped::Failed(Refusal::new(ErrorCode::ProviderError, text))
}

/// The reason for a wait in two or three words.
fn state_of(failure: &Failure) -> &'static str {
    match failure {
        Failure::Connect(_) => "not reachable",
        Failure::Timeout(_) => "silent",
        Failure::Cut(_) => "cut off",
        Failure::Status { status: 429, .. } => "limited",
        Failure::Status { .. } | Failure::Provider { .. } => "failed",
        Failure::TooLong { .. } | Failure::Filtered { .. } | Failure::Unusable(_) => "refused",
    }
}

/// When a rate limit of a provider ends, if the provider reports it: `rate limited until 12:40:05`,
/// with the date when that is another day.
fn limited_until(failure: &Failure, now: &jiff::Zoned) -> Option<String> {
    let Failure::Status { status: 429, retry_after: Some(wait), .. } = failure else {
        return None;
    };
    let until = now.checked_add(*wait).ok()?;
    Some(format!("rate limited until {}", clock_at(&until, now)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_that_says_when_it_answers_again_is_quoted_with_the_time() {
        let now: jiff::Zoned = "2026-11-22T12:39:00+01:00[Europe/Berlin]".parse().unwrap();
        let limited = |status: u16, seconds: Option<u64>| {
            let retry_after = seconds.map(Duration::from_secs);
            let (message, provider_text) = (String::new(), String::new());
            limited_until(&Failure::Status { status, retry_after, message, provider_text }, &now)
        };
        assert_eq!(limited(429, Some(65)).as_deref(), Some("rate limited until 12:40:05"));
        let tomorrow = limited(429, Some(24 * 3600));
        assert_eq!(tomorrow.as_deref(), Some("rate limited until 2026-11-23 12:39"));
        assert_eq!(limited(429, None), None);
        assert_eq!(limited(503, Some(5)), None);
    }
}
