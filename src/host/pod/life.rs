//! How a Pod becomes live, stops, and what is known about it in between.

use crate::config::dirs::Env;
use crate::config::keys::Keys;
use crate::config::model_select::{ModelChoice, ModelContext, WantedModel, choose as choose_model};
use crate::config::settings::WorkspaceSettings;
use crate::host::pod::calls::{done, reply};
use crate::host::pod::child_events;
use crate::host::pod::tail::{self, Tail};
use crate::host::pod::{Handle, Pod, TO_FINISH, next};
use crate::host::{Answer, Shared, listener};
use crate::protocol::{Event, PodInfo, Queued, Refusal, RunOutcome, State};
use crate::run::{Input, Interrupt};
use crate::session::Journal;
use crate::store::{MailboxKind, MailboxMessage, PodRow, Wanted};
use crate::trace::OrLog as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;
use tokio::sync::oneshot;

/// The resolved configuration of a Pod, as the store keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Resolved {
    #[serde(default)]
    pub(crate) model: Option<ModelChoice>,
    #[serde(default = "default_max_turns")]
    pub(crate) max_turns: u32,
    /// Stands in the place of the general instruction in the system prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) instruction: Option<String>,
}

fn default_max_turns() -> u32 {
    200
}

impl Resolved {
    /// What the store holds; what cannot be read of it falls back to nothing chosen.
    pub(crate) fn read(config: &Value) -> Self {
        serde_json::from_value(config.clone()).unwrap_or(Self {
            model: None,
            max_turns: default_max_turns(),
            instruction: None,
        })
    }

    /// As a value for the store.
    pub(crate) fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// The model that was asked for, or by the rules when none was.
pub(crate) fn choose(
    shared: &Shared,
    asked: Option<WantedModel>,
    env: &Env,
    cwd: &Path,
    workspace: &WorkspaceSettings,
) -> Result<Option<ModelChoice>, String> {
    let keys = Keys::at(&shared.dirs.config);
    let place = ModelContext { settings: &shared.settings, workspace, env, keys: &keys, cwd };
    choose_model(asked.as_ref(), &place).map_err(|e| e.to_string())
}

/// Shows a choice of model.
pub(crate) fn show_model(info: &mut PodInfo, choice: Option<&ModelChoice>) {
    let Some(choice) = choice else {
        return;
    };
    info.model = choice.model.spec();
    info.model_why.clone_from(&choice.why);
    info.model_chosen = choice.chosen;
    info.model_sends.clone_from(&choice.sends);
    info.context_window = choice.model.window;
}

/// What is known of a Pod from the store alone.
pub(crate) fn info(row: &PodRow, resolved: &Resolved, queue: Vec<Queued>) -> PodInfo {
    let mut info = PodInfo {
        name: row.name.clone(),
        parent: row.parent.clone(),
        state: State::Stopped,
        since: row.since,
        seq: 0,
        why: None,
        activity: row.last.clone(),
        unseen: !row.seen,
        cwd: row.cwd.clone(),
        workspace: row.workspace.clone(),
        model: String::new(),
        model_why: String::new(),
        model_chosen: false,
        model_sends: None,
        context_tokens: 0,
        context_window: 0,
        cost: None,
        scope: row.scope.allow.clone(),
        deny: row.scope.deny.clone(),
        lent: Vec::new(),
        last_activity: row.last_run.as_ref().map_or(row.since, |run| run.at),
        last_result: row.last_run.clone(),
        confined: None,
        notes: Vec::new(),
        queue,
        segment: row.segment,
    };
    show_model(&mut info, resolved.model.as_ref());
    info
}

/// The queued inputs among the rows of a mailbox.
pub(crate) fn queue(rows: Vec<MailboxMessage>) -> Vec<Queued> {
    let inputs = rows.into_iter().filter(|row| row.kind == MailboxKind::Input);
    inputs
        .filter_map(|row| Some(Queued { id: row.id, input: Input::read(row.payload)?.segments }))
        .collect()
}

impl Pod {
    /// Opens the Pod's socket and takes its place among the living. Nothing is sent to a model.
    pub(super) async fn go_live(&mut self, notes: Vec<String>, answer: Answer) {
        self.notes = notes;
        let result = self.become_live().await;
        if let Err(refusal) = &result {
            // It shows why it does not live; :restore tries again.
            self.show(State::Failed, Some(refusal.message.clone()));
        }
        reply(answer, result);
    }

    async fn become_live(&mut self) -> Result<Event, Refusal> {
        let internal = |e: String| Refusal::internal(e);
        let tail = self.look_back().await.map_err(internal)?;
        if !tail.taken.is_empty() {
            // Where this fails the marks are made when the log is opened for the next run.
            self.shared
                .store
                .take_message(&self.row.name, tail.taken)
                .await
                .or_log("mark mailbox messages as taken");
        }
        if self.listener.is_none() {
            self.listener = Some(self.open_listener().map_err(|e| internal(e.to_string()))?);
        }
        (self.released, self.end_at) = (false, None);
        let was_live = std::mem::replace(&mut self.row.wanted, Wanted::Live) == Wanted::Live;
        let confinement = self.shared.confinement().await;
        let word = confinement.word;
        self.notes.extend(confinement.note());
        self.change(|info| info.confined = Some(word));
        self.show_granted();
        self.change(|info| info.context_tokens = tail.context_tokens);
        self.load_queue().await;
        self.recall(tail.asked.filter(|_| was_live)).await;
        let (state, why) = match tail.interrupted {
            Some(why) => (State::Paused, Some(why)),
            None => (State::Idle, child_events::at_hand(&self.waiting().await.unwrap_or_default())),
        };
        let (state, why) = self.left_waiting().unwrap_or((state, why));
        self.enter(state, why);
        if was_live {
            // The end of a host changes nothing about how long a Pod has been resting.
            let since = self.row.since;
            self.change(|info| info.since = since);
        }
        Ok(Event::PodRestored {
            result: json!({
                "action": "restored", "pod_name": self.row.name,
                "socket_path": self.shared.dirs.socket(self.row.name.as_str()),
                "state": self.info.borrow().state, "why": self.info.borrow().why,
            }),
        })
    }

    fn open_listener(&self) -> Result<tokio::task::JoinHandle<()>, listener::ListenError> {
        let Some(requests) = self.requests.upgrade() else { return Ok(tokio::spawn(async {})) };
        let (name, created) = (self.row.name.clone(), self.row.created);
        let session = self.row.session;
        let info = self.info.subscribe();
        let granted = self.granted.clone();
        let commands = self.commands.clone();
        let handle = Handle { name, session, created, requests, info, granted, commands };
        listener::open_pod(&self.shared, handle)
    }

    /// Shows what the Pod holds now.
    pub(super) fn show_granted(&mut self) {
        let granted = self.granted.borrow().clone();
        let mut notes = granted.notes;
        notes.extend(self.notes.iter().cloned());
        self.change(|info| {
            info.notes = notes;
            info.scope = granted.scope.allow;
            info.deny = granted.scope.deny;
            info.lent = granted.lent;
        });
    }

    /// Makes the socket of a live Pod anew.
    pub(super) fn reopen(&mut self) {
        if self.listener.is_none() {
            return;
        }
        if let Ok(new) = self.open_listener()
            && let Some(old) = self.listener.replace(new)
        {
            old.abort();
        }
    }

    /// How the last run ended. One that was cut off is closed in the log first, so that what
    /// arrived of it is seen.
    async fn look_back(&mut self) -> Result<Tail, String> {
        let Some(segment) = self.row.segment else { return Ok(Tail::default()) };
        let files = self.files.clone();
        let look = move || tail::read(&files, segment);
        let tail = tokio::task::spawn_blocking(look).await.map_err(|e| e.to_string())??;
        if !tail.open {
            return Ok(tail);
        }
        let (journal, _) = Journal::open(&self.files, segment).await.map_err(|e| e.to_string())?;
        journal.close().await;
        Ok(tail)
    }

    /// Gives the paused turn up; the log says so before anyone is told.
    pub(super) async fn drop_turn(&mut self) -> Result<Event, Refusal> {
        if let Some(segment) = self.row.segment {
            self.close_log().await;
            let internal = |e: crate::session::LogError| Refusal::internal(e.to_string());
            let (journal, _) = Journal::open(&self.files, segment).await.map_err(internal)?;
            let entries = vec![RunOutcome::Cancelled.entry()];
            let end = journal.commit(entries.clone()).await.map_err(internal)?;
            crate::crash_point!("drop-committed");
            journal.close().await;
            self.end = Some(end);
            self.publisher.committed(&entries);
        }
        self.enter(State::Idle, None);
        Ok(done())
    }

    /// Takes no more orders and ends the turn; the asker hears when it is over.
    pub(super) async fn let_go(&mut self, answer: oneshot::Sender<()>) {
        self.letting_go.push(answer);
        self.released = true;
        if self.run.is_some() {
            self.end_at = Some(tokio::time::Instant::now() + TO_FINISH);
            self.interrupt_run(Interrupt::Stop, None);
        } else {
            self.finish_leaving().await;
        }
    }

    /// A turn that did not end by itself in time is ended. Its commands end with it: their helper
    /// hears of it by its pipe.
    pub(super) fn end_run(&mut self) {
        self.end_at = None;
        if let Some(run) = &self.run {
            run.task.abort();
        }
    }

    /// The store says so: it is stopped, and restorable. A turn that is still there is ended.
    pub(super) async fn stopped(&mut self) {
        self.row.wanted = Wanted::Stopped;
        self.end_run();
        while self.run.is_some() {
            let out = next(&mut self.run).await;
            self.on_run_event(out).await;
        }
        (self.released, self.end_at) = (false, None);
        self.end_questions().await;
        self.close_log().await;
        self.publisher.publish(&Event::Stopped);
        self.show_granted();
        self.enter(State::Stopped, None);
        let Some(listener) = self.listener.take() else { return };
        listener.abort();
        listener::close_pod(&self.shared, &self.row.name);
    }

    /// The host ends: what runs is paused, nothing is stopped.
    pub(super) async fn leave(&mut self, answer: oneshot::Sender<()>) {
        self.leaving = Some(answer);
        if self.run.is_some() {
            self.interrupt_run(Interrupt::Leave, None);
        } else {
            self.finish_leaving().await;
        }
    }

    /// No turn runs any more: what remains of letting go, or of leaving.
    pub(super) async fn finish_leaving(&mut self) {
        self.end_at = None;
        self.close_log().await;
        for answer in std::mem::take(&mut self.letting_go) {
            // Who waited may have been answered for us.
            let _ = answer.send(());
        }
        let Some(leaving) = self.leaving.take() else { return };
        if let Some(listener) = self.listener.take() {
            listener.abort();
            listener::close_pod(&self.shared, &self.row.name);
        }
        self.publisher.publish(&Event::Stopped);
        // The host may have stopped waiting.
        let _ = leaving.send(());
    }
}
