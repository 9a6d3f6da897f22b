//! Messages for a Pod: inputs, notifications and child events, and the queue of inputs.

use crate::host::Answer;
use crate::host::mesh::delivery;
use crate::host::pod::Pod;
use crate::host::pod::calls::reply;
use crate::host::pod::start::accepted;
use crate::protocol::{Begun, ErrorCode, Event, PodEvent, Refusal, Segment, flatten, now_ms};
use crate::run::{Input, Interrupt, Start, context};
use crate::store::{MailboxKind, MailboxMessage};
use crate::trace::OrLog as _;
use serde_json::Value;

impl Pod {
    /// An input. A busy Pod refuses it or, with `queue`, puts it into its queue. With `queue`, what waited before it is sent
    /// before it.
    pub(super) async fn send(&mut self, input: Input, queue: bool, answer: Answer) {
        if let Err(refusal) = self.must_take_input(queue) {
            return reply(answer, Err(refusal));
        }
        let idle = !self.phase.is_running();
        if idle {
            self.find_model_again().await;
            if let Some(refusal) = self.unagreed() {
                return reply(answer, Err(refusal));
            }
        }
        if let Err(refusal) = self.must_fit(&input.segments) {
            return reply(answer, Err(refusal));
        }
        let keyless = idle && self.key_is_missing();
        let takes_it = idle && !self.is_undecided() && !(keyless && queue);
        let waits_behind = if takes_it && queue { self.next_input().await } else { None };
        if takes_it && waits_behind.is_none() && self.may_begin_for(input.from.as_ref()) {
            let accepted = Some(accepted(answer));
            return self.start_now(Start::User { input, taken: None, accepted }).await;
        }
        match self.put(MailboxKind::Input, input.payload()).await {
            Ok(row) => {
                if let Some(first) = waits_behind {
                    self.start_queued(first, None).await;
                    self.wake().await;
                }
                self.load_queue().await;
                if keyless {
                    self.take_next().await;
                }
                reply(answer, Ok(Event::Accepted { entry: None, queued: Some(row.id), run: None }));
            }
            Err(refusal) => reply(answer, Err(refusal)),
        }
    }

    fn must_take_input(&self, queue: bool) -> Result<(), Refusal> {
        self.must_be_live()?;
        if queue { Ok(()) } else { self.must_not_run() }
    }

    /// A message that the model could never read whole is refused before it is recorded: it can be neither sent
    /// nor left out.
    fn must_fit(&self, input: &[Segment]) -> Result<(), Refusal> {
        let Some(model) = self.resolved.model.as_ref().map(|choice| &choice.model) else {
            return Ok(());
        };
        let tokens = context::estimate(flatten(input).len());
        if model.window == 0 || tokens <= model.window {
            return Ok(());
        }
        let (model, window) = (model.spec(), model.window);
        Err(Refusal::invalid(format!(
            "the message has about {tokens} tokens and {model} reads {window} at most: shorten it, put the \
             text into a file and name that, or choose a model with a larger window"
        )))
    }

    /// Commits a message to the mailbox; it is durable when this returns.
    pub(super) async fn put(
        &self,
        kind: MailboxKind,
        payload: Value,
    ) -> Result<MailboxMessage, Refusal> {
        let id = uuid::Uuid::now_v7().to_string();
        let row = MailboxMessage { id, kind, payload, created: now_ms() };
        match delivery::put(&self.shared, &self.row.name, row.clone()).await? {
            None => Ok(row),
            Some(reason) => Err(Refusal::invalid(reason)),
        }
    }

    /// A message that is no queued input: a run takes it before its next request, an idle Pod
    /// wakes, a paused one waits.
    pub(super) async fn message(&mut self, kind: MailboxKind, payload: Value, answer: Answer) {
        if let Err(refusal) = self.must_be_live() {
            return reply(answer, Err(refusal));
        }
        match self.put(kind, payload).await {
            Ok(row) => self.hand_over(row),
            Err(refusal) => return reply(answer, Err(refusal)),
        }
        reply(answer, Ok(Event::done()));
        self.wake().await;
    }

    pub(super) async fn pod_event(&mut self, event: PodEvent, answer: Answer) {
        if event.sentence().is_none() {
            return reply(answer, Ok(Event::done()));
        }
        let payload = serde_json::to_value(&event).unwrap_or_default();
        self.message(MailboxKind::PodEvent, payload, answer).await;
    }

    pub(super) async fn edit_queued(
        &mut self,
        id: &str,
        input: Option<Vec<Segment>>,
        answer: Answer,
    ) {
        let edited = self.replace_queued(id, input).await;
        self.load_queue().await;
        reply(answer, edited);
    }

    async fn replace_queued(
        &self,
        id: &str,
        input: Option<Vec<Segment>>,
    ) -> Result<Event, Refusal> {
        if self.phase.run().is_some_and(|run| run.handed.contains(id)) {
            let why = "the run takes that message next: pause it first";
            return Err(Refusal::invalid(why));
        }
        let (store, name) = (&self.shared.store, &self.row.name);
        let found = match input {
            Some(input) => {
                self.must_fit(&input)?;
                let payload = Input { segments: input, from: None }.payload();
                store.edit_input(name, id, &payload).await?
            }
            None => store.drop_input(name, id).await?,
        };
        if found { Ok(Event::done()) } else { Err(not_queued()) }
    }

    /// The program that attended this message is gone: the message is taken out of the queue, or the run that it
    /// began is paused.
    pub(super) async fn sender_gone(&mut self, message: Begun) {
        if let Begun::Queued(id) = &message {
            match self.replace_queued(id, None).await {
                Ok(_) => {
                    tracing::info!(pod = %self.row.name, "took a message back whose program is gone");
                    return self.load_queue().await;
                }
                // It stays in the queue, where a person sees it; a run that it did not begin goes on.
                Err(error) if error.code != ErrorCode::InvalidRequest => {
                    return Err::<(), _>(error).or_log("take a message back whose program is gone");
                }
                Err(_) => {}
            }
        }
        if !self.answers(&message) {
            return;
        }
        if self.phase.is_running() {
            tracing::info!(pod = %self.row.name, "paused a run whose program is gone");
            self.interrupt_run(Interrupt::Pause, None);
        } else if self.is_undecided() {
            let paused = self.interrupt_pending(Interrupt::Pause).await;
            paused.map(drop).or_log("pause a run whose program is gone");
        }
    }

    /// Whether the last run began with this message. A run that a child event began since then belongs to it, too.
    fn answers(&self, message: &Begun) -> bool {
        let last = self.last_input.as_ref();
        match message {
            _ if last.is_some_and(|(id, taken)| message.names(*id, taken.as_deref())) => true,
            // The events of the run that say so may still be on their way.
            Begun::Entry(id) => last.is_none_or(|(last, _)| last < id),
            Begun::Queued(id) => self
                .phase
                .run()
                .is_some_and(|run| run.handed.contains(id) && !run.taken.contains(id)),
        }
    }

    /// Puts an input into the run that is under way; an idle Pod starts a run instead. A new input is stored
    /// once it is known that a run takes it: one that is refused never runs later.
    pub(super) async fn steer(&mut self, id: Option<String>, input: Vec<Segment>, answer: Answer) {
        let runs = self.phase.is_running() || self.is_undecided();
        let input = Input { segments: input, from: None };
        let row = match id {
            None if !runs => return self.send(input, false, answer).await,
            None => self.put_live(input).await,
            Some(id) => self.queued_input(&id).await,
        };
        match row {
            Err(refusal) => reply(answer, Err(refusal)),
            Ok(row) if runs => {
                let queued = Some(row.id.clone());
                self.hand_over(row);
                self.load_queue().await;
                reply(answer, Ok(Event::Accepted { entry: None, queued, run: None }));
            }
            Ok(row) => self.start_queued(row, Some(accepted(answer))).await,
        }
    }

    async fn put_live(&self, input: Input) -> Result<MailboxMessage, Refusal> {
        self.must_be_live()?;
        self.must_fit(&input.segments)?;
        self.put(MailboxKind::Input, input.payload()).await
    }

    async fn queued_input(&self, id: &str) -> Result<MailboxMessage, Refusal> {
        self.must_be_live()?;
        let rows = self.mailbox().await?;
        let found = rows.into_iter().find(|row| row.id == id && row.kind == MailboxKind::Input);
        found.ok_or_else(not_queued)
    }
}

fn not_queued() -> Refusal {
    Refusal::invalid("that message is not in the queue any more")
}
