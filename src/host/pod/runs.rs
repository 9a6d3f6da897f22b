//! How a Pod's runs start, are followed, and end.

use crate::client::pod_api::PodApi;
use crate::config::dirs::Env;
use crate::config::keys::MissingKey;
use crate::config::settings::Settings;
use crate::host::pod::calls::{done, reply};
use crate::host::pod::{CLOSE_AFTER, Pod, Running, child_events};
use crate::host::{Answer, pod::life};
use crate::llm::Provider;
use crate::protocol::{Entry, Event, Fact, Item, Refusal, Role, State};
use crate::run::{self, Accepted, End, Input, Interrupt, Limits, Ports, RunEvent, Setup, Start};
use crate::scope::Permission;
use crate::store::{MailboxKind, MailboxMessage, StoreError};
use crate::tools;
use crate::trace::OrLog as _;
use std::collections::BTreeSet;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tracing::Instrument as _;

/// What a run may have said before its actor has read it.
const OUT: usize = 256;
/// Rows that may wait for a running turn; the rest waits in the store.
const MAILBOX: usize = 128;
/// Answers on their way to a run; it asks one question at a time.
const ANSWERS: usize = 4;

impl Pod {
    /// Starts a run. The Pod must be live and free.
    pub(super) async fn start(&mut self, start: Start) {
        let model = match self.provider() {
            Ok(model) => model,
            Err(missing) => return self.needs_key(start, &missing),
        };
        let setup = Setup {
            pod: self.row.name.clone(),
            session: self.row.session,
            files: self.files.clone(),
            store: self.shared.store.clone(),
            model,
            tools: self.tools(),
            tool_set: self.shared.tools.subscribe(),
            limits: limits(&self.shared.settings, self.resolved.max_turns),
            policy: crate::llm::retry::Policy::default(),
            workspace: self.row.workspace.clone(),
            identity: self.row.record(),
            instruction: self.resolved.instruction.clone(),
            scope: {
                let granted = self.granted.clone();
                std::sync::Arc::new(move || granted.borrow().scope.clone())
            },
            commands: self.commands.clone(),
            others: self.others(),
            rules: self.policy().await,
        };
        let row = match &start {
            Start::User { taken, .. } => taken.clone(),
            Start::MailboxMessage
            | Start::Resume { .. }
            | Start::ApprovalDecided { .. }
            | Start::Compact { .. } => None,
        };
        let (out_tx, out) = mpsc::channel(OUT);
        let (interrupt, interrupted) = watch::channel(Interrupt::Go);
        let (mailbox, inbox) = mpsc::channel(MAILBOX);
        if !matches!(start, Start::MailboxMessage) {
            self.offer_waiting(&mailbox).await;
        }
        let (answers, answered) = mpsc::channel(ANSWERS);
        let ports =
            Ports { out: out_tx, interrupt: interrupted, mailbox: inbox, answers: answered };
        self.close_at = None;
        // Published first, so that nobody hears of the run's beginning while the Pod seems to rest.
        self.enter(State::Running, None);
        let span = self.run_span();
        let run = run::run(setup, self.session_state.take(), self.row.segment, start, ports);
        let task = tokio::spawn(run.instrument(span));
        let (handed, interrupting) = (BTreeSet::from_iter(row), Vec::new());
        let (taken, ended) = (BTreeSet::new(), None);
        self.run = Some(Running {
            task,
            out,
            interrupt,
            mailbox,
            answers,
            handed,
            taken,
            interrupting,
            ended,
        });
    }

    /// Around everything that a run logs; the run adds its id, that of its first log entry.
    fn run_span(&self) -> tracing::Span {
        let model = self.resolved.model.as_ref().map(|choice| choice.model.spec());
        let (pod, model) = (self.row.name.as_str(), model.as_deref());
        tracing::info_span!("run", pod, model, id = tracing::field::Empty)
    }

    /// Notifications that wait come along with whatever run is next.
    async fn offer_waiting(&mut self, mailbox: &mpsc::Sender<MailboxMessage>) {
        for row in self.shared.store.messages(&self.row.name).await.unwrap_or_default() {
            if row.kind != MailboxKind::Input && mailbox.try_send(row).is_err() {
                return;
            }
        }
    }

    /// The model and its provider, `None` when no model is known.
    fn provider(&self) -> Result<Option<(crate::config::models::Model, Provider)>, MissingKey> {
        let Some(choice) = &self.resolved.model else { return Ok(None) };
        let key = self.key(choice)?;
        let (timeouts, http) = (self.shared.timeouts, self.shared.http.clone());
        Ok(Some((choice.model.clone(), Provider::new(&choice.model, key, timeouts, http))))
    }

    /// The key of a model: from what clients offered this Pod, else from the environment that the
    /// host was started in. So a family goes on after a restart, whoever speaks to it first.
    pub(super) fn key(
        &self,
        choice: &crate::config::model_select::ModelChoice,
    ) -> Result<Option<crate::config::keys::Secret>, MissingKey> {
        let keys = crate::config::keys::Keys::at(&self.shared.dirs.config);
        let offered = keys.resolve(&choice.model.key, &self.env);
        offered.or_else(|missing| {
            keys.resolve(&choice.model.key, &self.shared.env).map_err(|_| missing)
        })
    }

    fn needs_key(&mut self, start: Start, missing: &MissingKey) {
        let provider = self.resolved.model.as_ref().map_or("", |choice| &choice.model.provider);
        let why = format!("no key for {provider}: {missing}");
        start.refused(&Refusal::new(crate::protocol::ErrorCode::ProviderError, why.clone()));
        self.enter(State::NeedsYou, Some(why));
    }

    async fn policy(&self) -> run::Policy {
        let (workspace, supervisor) = (self.row.workspace.clone(), self.supervisor.clone());
        crate::host::rules::policy(&self.shared, &self.row.name, workspace, supervisor).await
    }

    /// Looks up what every other live Pod may write.
    fn others(&self) -> run::OthersNow {
        let (shared, own) = (self.shared.clone(), self.row.name.key());
        std::sync::Arc::new(move || {
            let members = shared.members.borrow().clone();
            let others = members.0.iter().filter(|(key, _)| **key != own);
            let live = others.filter(|(_, handle)| handle.info.borrow().state != State::Stopped);
            let written = live.flat_map(|(_, handle)| {
                let scope = handle.granted.borrow().scope.clone();
                scope.allow.into_iter().filter(|rule| rule.permission == Permission::Write)
            });
            written.map(|rule| rule.target).collect()
        })
    }

    fn tools(&self) -> tools::Context {
        tools::Context {
            cwd: self.row.cwd.clone(),
            scope: self.granted.borrow().scope.clone(),
            env: command_env(&self.shared.settings, &self.env),
            read: std::collections::BTreeMap::new(),
            blobs: self.files.blobs(),
            outputs: self.files.outputs(),
            tasks: tools::tasks::Tasks::default(),
            helper: self.shared.helper.clone(),
            old_nofile: self.shared.old_nofile,
            own: self.shared.dirs.own().map(std::path::Path::to_owned).into(),
            command_time: command_time(&self.shared.settings),
            others: Vec::new(),
            needs: Vec::new(),
            pod_api: Some(PodApi::new(self.row.name.clone(), self.shared.pod_api.clone())),
            max_output: tools::MAX_OUTPUT,
        }
    }

    /// Follows the run; `None` is its end.
    pub(super) async fn on_run_event(&mut self, out: Option<RunEvent>) {
        match out {
            Some(out) => self.follow(out).await,
            None => self.run_ended().await,
        }
    }

    /// Tells what the run said.
    async fn follow(&mut self, out: RunEvent) {
        match out {
            RunEvent::Event(event) => self.publisher.publish(&event),
            RunEvent::Committed { entries, end } => {
                self.end = Some(end);
                self.publisher.committed(&entries);
                self.note_entries(&entries).await;
            }
            RunEvent::Rotated { segment, end } => {
                self.row.segment = Some(segment);
                self.end = Some(end);
                self.change(|info| info.segment = Some(segment));
            }
            RunEvent::ApprovalRequested(approval) => self.asked(*approval).await,
            RunEvent::ApprovalDecided(answered) => self.closed(&answered),
            RunEvent::Doing(what) => self.change(|info| {
                info.activity = Some(what);
                info.last_activity = crate::protocol::now_ms();
            }),
            RunEvent::Context { tokens, cost } => self.change(|info| {
                info.context_tokens = tokens;
                info.cost = cost;
            }),
        }
    }

    /// Entries that change what is shown of the Pod: a queued input that was taken, the last words.
    async fn note_entries(&mut self, entries: &[Entry]) {
        for entry in entries {
            if let Some(run) = self.run.as_mut().filter(|_| child_events::ends_run(&entry.fact)) {
                run.ended = Some(entry.clone());
            }
            match &entry.fact {
                Fact::UserInput { taken: Some(id), .. } => {
                    if let Some(run) = &mut self.run {
                        run.taken.insert(id.clone());
                    }
                    self.load_queue().await;
                }
                Fact::AssistantItem {
                    item: item @ Item::Message { role: Role::Assistant, .. },
                    ..
                } => {
                    let line = item.text().and_then(|text| last_line(&text));
                    self.change(|info| info.activity = line.or(info.activity.take()));
                }
                _ => {}
            }
        }
    }

    /// The run is over: its task gives the mind back and says how it ended.
    async fn run_ended(&mut self) {
        let Some(mut run) = self.run.take() else { return };
        let (session_state, end) = match run.task.await {
            Ok(ended) => ended,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => {
                    let (end, entry) = self.run_broke_off(panic).await;
                    run.ended = entry;
                    (None, end)
                }
                Err(_) => (None, End::CutOff),
            },
        };
        self.session_state = session_state;
        self.close_at = self.session_state.is_some().then(|| Instant::now() + CLOSE_AFTER);
        let last = self.info.borrow().activity.clone();
        // What it did last is only shown; losing it loses nothing.
        self.shared.store.set_last(&self.row.name, last).await.or_log("store the last activity");
        let (state, why) = self.left_waiting().unwrap_or_else(|| self.rest_after(&end));
        let child_event = matches!(end, End::Finished | End::LimitReached | End::Failed(_));
        // Published first: while news of it are on their way, somebody is at work.
        self.run_is_over(&end, run.ended).await;
        self.enter(state, why);
        self.row.since = self.info.borrow().since;
        // Only shown, like what it did last.
        self.shared
            .store
            .set_since(&self.row.name, self.row.since)
            .await
            .or_log("store the time of the state");
        for answer in run.interrupting {
            reply(answer, Ok(done()));
        }
        if child_event {
            self.set_seen(false).await;
        }
        self.load_queue().await;
        if self.leaving.is_some() || self.released {
            return self.finish_leaving().await;
        }
        if matches!(end, End::Finished | End::LimitReached | End::Compacted) {
            self.next_of_inbox().await;
        }
    }

    /// How the Pod rests after a run.
    fn rest_after(&self, end: &End) -> (State, Option<String>) {
        match end {
            End::Finished | End::RolledBack | End::Cancelled | End::Compacted => {
                (State::Idle, None)
            }
            End::LimitReached => {
                let why = format!("stopped after {} model requests", self.resolved.max_turns);
                (State::Idle, Some(why))
            }
            End::Paused => (State::Paused, Some("paused; :resume goes on".into())),
            End::CutOff => (State::Paused, Some("cut off; :resume goes on".into())),
            End::Failed(refusal) => (State::Failed, Some(refusal.message.clone())),
        }
    }

    /// Whatever arrived while the turn ended wakes the Pod now: notifications first, then the
    /// first queued input.
    pub(super) async fn next_of_inbox(&mut self) {
        if self.run.is_some() || self.waits() || !self.is_live() {
            return;
        }
        let rows = self.waiting().await.unwrap_or_default();
        if rows.iter().any(|row| row.kind != MailboxKind::Input) {
            return self.start(Start::MailboxMessage).await;
        }
        let Some(row) = rows.into_iter().next() else { return };
        self.start_queued(row, None).await;
    }

    /// A queued input starts its own run.
    pub(super) async fn start_queued(&mut self, row: MailboxMessage, accepted: Option<Accepted>) {
        match Input::read(row.payload) {
            Some(input) => {
                self.start(Start::User { input, taken: Some(row.id), accepted }).await;
            }
            // A row nobody can read would block the queue for ever.
            None => {
                self.shared
                    .store
                    .drop_message(&self.row.name, &row.id)
                    .await
                    .or_log("drop a mailbox message");
                self.load_queue().await;
            }
        }
    }

    /// Asks the running turn to halt.
    pub(super) fn interrupt_run(&mut self, how: Interrupt, asker: Option<Answer>) {
        if let Some(run) = &mut self.run {
            run.interrupting.extend(asker);
            run.interrupt.send_if_modified(|interrupt| {
                let first = *interrupt == Interrupt::Go;
                if first {
                    *interrupt = how;
                }
                first
            });
        }
    }

    /// Hands a stored row to the running turn; when that is full, the row wakes the Pod later.
    pub(super) fn hand_over(&mut self, row: MailboxMessage) {
        if let Some(run) = &mut self.run {
            let id = row.id.clone();
            if run.mailbox.try_send(row).is_ok() {
                run.handed.insert(id);
            }
        }
    }

    /// What waits in the mailbox. A row that the history holds does not, even when the store did
    /// not mark it yet, or could not.
    pub(super) async fn waiting(&self) -> Result<Vec<MailboxMessage>, StoreError> {
        let mut rows = self.shared.store.messages(&self.row.name).await?;
        rows.retain(|row| {
            let before = self
                .session_state
                .as_ref()
                .is_some_and(|session_state| session_state.has_taken(&row.id));
            !before && !self.run.as_ref().is_some_and(|run| run.taken.contains(&row.id))
        });
        Ok(rows)
    }

    pub(super) async fn load_queue(&mut self) {
        let rows = self.waiting().await.unwrap_or_default();
        let queue = life::queue(rows);
        self.change(|info| info.queue = queue);
    }

    pub(super) async fn set_seen(&mut self, seen: bool) {
        if self.info.borrow().unseen != seen {
            return;
        }
        // The mark is a convenience: without it the Pod is shown as unseen once more.
        self.shared
            .store
            .set_seen(&self.row.name, seen)
            .await
            .or_log("store that the Pod was seen");
        self.change(|info| info.unseen = !seen);
    }
}

/// The numbers that bound a run.
pub(crate) fn limits(settings: &Settings, max_turns: u32) -> Limits {
    let compaction = &settings.compaction;
    Limits {
        max_turns,
        compact_at: compaction.threshold_ratio.get(),
        keep_tokens: compaction.keep_tokens,
        pruning: run::context::Pruning {
            protect: compaction.prune_protect,
            min_savings: compaction.prune_min,
        },
    }
}

/// How long a command of a Pod may take.
pub(crate) fn command_time(settings: &Settings) -> tools::CommandTime {
    let seconds = |value: std::num::NonZeroU64| std::time::Duration::from_secs(value.get());
    let shell = &settings.shell;
    tools::CommandTime { default: seconds(shell.timeout_s), max: seconds(shell.max_timeout_s) }
}

/// The environment of a Pod's commands: without keys of providers, unless the user passes them.
pub(crate) fn command_env(settings: &Settings, offered: &Env) -> Env {
    let pass = &settings.shell.pass;
    let mut env = crate::sandbox::command_env(offered, pass);
    let keys = crate::config::catalogue::Catalogue::with(settings).key_variables();
    env.retain(|name, _| pass.contains(name) || !keys.contains(name));
    env
}

/// Turns what a run reports into the one reply to its order.
pub(super) fn accepted(answer: Answer) -> Accepted {
    let (accepted, committed) = oneshot::channel();
    tokio::spawn(async move {
        let reply =
            committed.await.unwrap_or_else(|_| Err(Refusal::internal("the run ended early")));
        // An asker that is gone wants no answer.
        let _ = answer.send(reply.map(|entry| Event::Accepted { entry, queued: None }));
    });
    accepted
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(160).collect())
}
