//! What a Pod does with each order.

use crate::config::model_select::{ModelChoice, WantedModel};
use crate::config::settings::WorkspaceSettings;
use crate::host::pod::life::Resolved;
use crate::host::pod::runs::accepted;
use crate::host::pod::{Pod, life};
use crate::host::{Answer, listing, verb};
use crate::protocol::{
    CompletionKind, ErrorCode, Event, Method, PodEvent, PodName, Refusal, Segment, State,
};
use crate::run::{Input, Interrupt, Start};
use crate::store::{MailboxKind, MailboxMessage};
use serde_json::json;
use std::collections::BTreeMap;

impl Pod {
    pub(super) async fn call(&mut self, method: Method, by: Option<PodName>, answer: Answer) {
        if self.newborn && (by.is_none() || by != self.row.parent) {
            let text = format!("pod `{}` is being created; try again when it is", self.row.name);
            return reply(answer, Err(Refusal::invalid(text)));
        }
        match method {
            Method::Send { input, queue } => {
                self.send(Input { segments: input, from: by }, queue, answer).await
            }
            Method::Notify { message } => {
                self.message(MailboxKind::Notify, json!({ "message": message }), answer).await;
            }
            Method::PodEvent(event) => self.pod_event(event, answer).await,
            Method::Resume => self.resume(answer).await,
            Method::Cancel => self.interrupt(Interrupt::Cancel, answer).await,
            Method::Pause => self.interrupt(Interrupt::Pause, answer).await,
            Method::Compact => self.compact(answer).await,
            Method::ListRewindTargets => self.list_rewind_targets(answer),
            Method::Rewind { target, expected_head_entries } => {
                let rewound = self.rewind(target, expected_head_entries).await;
                reply(answer, rewound.map(|rewound| rewound.event()));
            }
            Method::ListCompletions { kind, prefix } => self.complete(kind, prefix, answer),
            method @ (Method::Stop
            | Method::ListPods
            | Method::Restore { .. }
            | Method::Peer { .. }) => self.pass_on(method, answer),
            Method::Open { env } => self.offer(env, answer).await,
            Method::SetModel { model } => self.set_model(&model, answer).await,
            Method::EditQueued { id, input } => self.edit_queued(&id, input, answer).await,
            Method::Steer { id, input } => self.steer(id, input, answer).await,
            Method::Seen => {
                self.set_seen(true).await;
                reply(answer, Ok(done()));
            }
            Method::Watch
            | Method::Page { .. }
            | Method::Fetch { .. }
            | Method::New(_)
            | Method::Remove
            | Method::HostStatus
            | Method::Trace { .. }
            | Method::Spawn(_)
            | Method::StopPods { .. }
            | Method::ReadOutput
            | Method::RestorePods { .. }
            | Method::Unpeer { .. }
            | Method::Lend { .. }
            | Method::Reclaim { .. }
            | Method::Who { .. }
            | Method::Decide { .. }
            | Method::ListPolicy
            | Method::Revoke { .. }
            | Method::Fork { .. } => {
                reply(answer, Err(Refusal::invalid("this order is not for a pod")));
            }
        }
    }

    /// A message. A busy Pod refuses it or, asked to, puts it into its queue.
    async fn send(&mut self, input: Input, queue: bool, answer: Answer) {
        if let Err(refusal) = self.must_be_live() {
            return reply(answer, Err(refusal));
        }
        if let (false, Err(refusal)) = (queue, self.must_not_run()) {
            return reply(answer, Err(refusal));
        }
        let keyless = self.run.is_none() && self.key_is_missing();
        if self.run.is_none() && !self.waits() && !(keyless && queue) {
            let accepted = Some(accepted(answer));
            return self.start(Start::User { input, taken: None, accepted }).await;
        }
        let payload = input.payload();
        match self.put(MailboxKind::Input, payload).await {
            Ok(row) => {
                self.load_queue().await;
                if keyless {
                    self.next_of_inbox().await;
                }
                reply(answer, Ok(Event::Accepted { entry: None, queued: Some(row.id) }));
            }
            Err(refusal) => reply(answer, Err(refusal)),
        }
    }

    /// A row in the mailbox, durable when this returns.
    async fn put(
        &self,
        kind: MailboxKind,
        payload: serde_json::Value,
    ) -> Result<MailboxMessage, Refusal> {
        self.mailbox_must_have_room().await?;
        let id = uuid::Uuid::now_v7().to_string();
        let row = MailboxMessage { id, kind, payload, created: crate::protocol::now_ms() };
        let stored = self.shared.store.add_message(&self.row.name, row.clone()).await;
        stored.map_err(|e| Refusal::internal(e.to_string()))?;
        crate::crash_point!("mail-stored");
        Ok(row)
    }

    /// Messages of people and Pods are bounded; what a child tells is a fact and always stored.
    async fn mailbox_must_have_room(&self) -> Result<(), Refusal> {
        let waiting = self.shared.store.waiting_messages(&self.row.name).await;
        let waiting = waiting.map_err(|e| Refusal::internal(e.to_string()))?;
        let limit = self.shared.settings.limits.mailbox;
        if waiting < u64::from(limit.get()) {
            return Ok(());
        }
        let name = &self.row.name;
        Err(Refusal::invalid(format!(
            "{waiting} messages wait for pod `{name}` and limits.mailbox is {limit}; try again when \
             it has taken some, or drop some from its queue"
        )))
    }

    /// Something for the inbox that is no queued input: a running turn takes it before its next
    /// request, an idle Pod wakes, a paused one waits.
    async fn message(&mut self, kind: MailboxKind, payload: serde_json::Value, answer: Answer) {
        if let Err(refusal) = self.must_be_live() {
            return reply(answer, Err(refusal));
        }
        match self.put(kind, payload).await {
            Ok(row) => self.hand_over(row),
            Err(refusal) => return reply(answer, Err(refusal)),
        }
        reply(answer, Ok(done()));
        let state = self.info.borrow().state;
        if matches!(state, State::Idle | State::Failed) {
            self.next_of_inbox().await;
        }
    }

    async fn pod_event(&mut self, event: PodEvent, answer: Answer) {
        if event.sentence().is_none() {
            return reply(answer, Ok(done()));
        }
        let payload = serde_json::to_value(&event).unwrap_or_default();
        self.message(MailboxKind::PodEvent, payload, answer).await;
    }

    async fn resume(&mut self, answer: Answer) {
        if let Err(refusal) = self.must_be_live() {
            return reply(answer, Err(refusal));
        }
        let Some(answer) = self.resume_answered(answer).await else { return };
        if let Err(refusal) = self.must_not_run() {
            return reply(answer, Err(refusal));
        }
        if self.info.borrow().state != State::Paused {
            if !self.waiting().await.unwrap_or_default().is_empty() {
                self.next_of_inbox().await;
                return reply(answer, Ok(done()));
            }
            let refusal = Refusal::new(ErrorCode::NotPaused, "Pod is not paused");
            return reply(answer, Err(refusal));
        }
        self.start(Start::Resume { accepted: Some(accepted(answer)) }).await;
    }

    /// The running turn is asked to halt, and the asker hears when it has.
    async fn interrupt(&mut self, how: Interrupt, answer: Answer) {
        if self.run.is_some() {
            return self.interrupt_run(how, Some(answer));
        }
        if self.waits() {
            return reply(answer, self.interrupt_waiting(how).await);
        }
        if self.info.borrow().state == State::Paused {
            let dropped =
                if how == Interrupt::Cancel { self.drop_turn().await } else { Ok(done()) };
            return reply(answer, dropped);
        }
        reply(answer, Err(Refusal::new(ErrorCode::NotRunning, "Pod is not running")));
    }

    async fn compact(&mut self, answer: Answer) {
        if let Err(refusal) = self.must_be_free() {
            return reply(answer, Err(refusal));
        }
        self.start(Start::Compact { accepted: Some(accepted(answer)) }).await;
    }

    /// Why an order that needs the whole Pod cannot be carried out now.
    fn must_be_free(&self) -> Result<(), Refusal> {
        self.must_be_live()?;
        self.must_not_run()?;
        if self.info.borrow().state == State::Paused {
            let text = "the turn is paused: :resume goes on with it, :cancel drops it";
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }

    /// Why an order that a running turn stands in the way of cannot be carried out now.
    pub(super) fn must_not_run(&self) -> Result<(), Refusal> {
        if self.run.is_none() {
            return self.must_not_wait();
        }
        Err(Refusal::new(ErrorCode::AlreadyRunning, "Pod is already executing a turn"))
    }

    pub(super) fn must_be_live(&self) -> Result<(), Refusal> {
        if self.is_live() {
            return Ok(());
        }
        let (name, info) = (&self.row.name, self.info.borrow());
        let text = match (info.state, &info.why) {
            (State::Failed, Some(why)) => format!("pod `{name}` failed: {why}"),
            _ => format!("pod `{name}` is stopped; :restore {name} brings it back"),
        };
        Err(Refusal::invalid(text))
    }

    fn complete(&self, kind: CompletionKind, prefix: String, answer: Answer) {
        if !matches!(kind, CompletionKind::File) {
            return reply(answer, Ok(Event::Completions { kind, entries: Vec::new() }));
        }
        let (cwd, scope) = (self.row.cwd.clone(), self.granted.borrow().scope.clone());
        let (files, dir) = (self.shared.files.clone(), listing::completed_dir(&cwd, &prefix));
        tokio::spawn(async move {
            let list = move || listing::files(&cwd, &scope, &prefix);
            let entries = files.run(&dir, list).await;
            reply(answer, entries.map(|entries| Event::Completions { kind, entries }));
        });
    }

    /// A verb that concerns more than this Pod, at its own socket. It is not waited for here: it
    /// may have to wait for this very Pod.
    fn pass_on(&self, method: Method, answer: Answer) {
        let Some(supervisor) = self.supervisor.upgrade() else {
            return reply(answer, Err(Refusal::internal("the host is ending")));
        };
        let (shared, pod) = (self.shared.clone(), Some(self.row.name.clone()));
        tokio::spawn(async move {
            reply(answer, verb::carry_out(&shared, &supervisor, None, pod, method).await);
        });
    }

    /// A client's environment: commands and keys come from it from now on.
    async fn offer(&mut self, env: BTreeMap<String, String>, answer: Answer) {
        crate::config::keys::register_secrets(&env, &self.shared.settings);
        self.env.extend(env);
        reply(answer, Ok(done()));
        self.go_on_with_key().await;
    }

    async fn set_model(&mut self, spec: &str, answer: Answer) {
        let choice = match self.choose(WantedModel::new(spec, ":model")).await {
            Ok(choice) => choice,
            Err(refusal) => return reply(answer, Err(refusal)),
        };
        let resolved = Resolved { model: Some(choice.clone()), ..self.resolved.clone() };
        let config = resolved.value();
        if let Err(error) = self.shared.store.set_config(&self.row.name, &config).await {
            return reply(answer, Err(Refusal::internal(error.to_string())));
        }
        self.row.config = config;
        self.change(|info| life::show_model(info, Some(&choice)));
        self.resolved = resolved;
        reply(answer, Ok(done()));
        self.go_on_with_key().await;
    }

    /// The model of that name, as the settings of the user and of the workspace define it.
    async fn choose(&self, asked: WantedModel) -> Result<ModelChoice, Refusal> {
        let (shared, env) = (self.shared.clone(), self.env.clone());
        let (workspace, cwd) = (self.row.workspace.clone(), self.row.cwd.clone());
        let choose = move || {
            let workspace = WorkspaceSettings::load(&workspace);
            life::choose(&shared, Some(asked), &env, &cwd, &workspace)
        };
        let chosen = self.shared.files.run(&self.row.workspace, choose).await?;
        chosen.map_err(Refusal::invalid)?.ok_or_else(|| Refusal::invalid("name a model"))
    }

    /// A Pod that waited for a key and has one now takes up what waits for it.
    async fn go_on_with_key(&mut self) {
        if self.run.is_some() || self.waits() || self.key_is_missing() || !self.is_live() {
            return;
        }
        if self.info.borrow().state != State::NeedsYou {
            return;
        }
        if let Some(answered) = self.given_answer() {
            return self.start(Start::ApprovalDecided { answered, accepted: None }).await;
        }
        self.enter(State::Idle, None);
        self.next_of_inbox().await;
    }

    fn key_is_missing(&self) -> bool {
        self.resolved.model.as_ref().is_some_and(|choice| self.key(choice).is_err())
    }

    async fn edit_queued(&mut self, id: &str, input: Option<Vec<Segment>>, answer: Answer) {
        if self.run.as_ref().is_some_and(|run| run.handed.contains(id)) {
            return reply(answer, Err(not_queued()));
        }
        let (store, name) = (&self.shared.store, &self.row.name);
        let edited = match input {
            Some(input) => {
                let payload = Input { segments: input, from: None }.payload();
                store.edit_message(name, id, &payload).await
            }
            None => store.drop_message(name, id).await,
        };
        self.load_queue().await;
        reply(
            answer,
            match edited {
                Ok(true) => Ok(done()),
                Ok(false) => Err(not_queued()),
                Err(error) => Err(Refusal::internal(error.to_string())),
            },
        );
    }

    /// Into the running turn with it; an idle Pod starts a turn instead.
    async fn steer(&mut self, id: Option<String>, input: Vec<Segment>, answer: Answer) {
        if let Err(refusal) = self.must_be_live() {
            return reply(answer, Err(refusal));
        }
        let row = match id {
            Some(id) => self.queued(&id).await,
            None => {
                let payload = Input { segments: input, from: None }.payload();
                self.put(MailboxKind::Input, payload).await
            }
        };
        match row {
            Err(refusal) => reply(answer, Err(refusal)),
            Ok(row) if self.run.is_some() || self.waits() => {
                self.load_queue().await;
                let queued = Some(row.id.clone());
                self.hand_over(row);
                reply(answer, Ok(Event::Accepted { entry: None, queued }));
            }
            Ok(row) => self.start_queued(row, Some(accepted(answer))).await,
        }
    }

    async fn queued(&self, id: &str) -> Result<MailboxMessage, Refusal> {
        let rows = self.waiting().await.map_err(|e| Refusal::internal(e.to_string()))?;
        let found = rows.into_iter().find(|row| row.id == id && row.kind == MailboxKind::Input);
        found.ok_or_else(not_queued)
    }
}

fn not_queued() -> Refusal {
    Refusal::invalid("that message is not in the queue any more")
}

/// Answers; an asker that is gone wants no answer.
pub(super) fn reply(answer: Answer, result: Result<Event, Refusal>) {
    let _ = answer.send(result);
}

/// The reply to an order that leaves no entry of its own.
pub(super) fn done() -> Event {
    Event::Accepted { entry: None, queued: None }
}
