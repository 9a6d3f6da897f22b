//! How a Pod becomes live: its socket, and what the end of its log says.

use crate::host::pod::calls::reply;
use crate::host::pod::tail::Tail;
use crate::host::pod::{Handle, Pod, child_events};
use crate::host::{Answer, ListenError, listener};
use crate::protocol::{Event, GoesOnBy, Refusal, State};
use crate::store::Wanted;
use crate::trace::OrLog as _;
use serde_json::json;
use tokio::task::JoinHandle;

impl Pod {
    /// Opens the Pod's socket and makes it live. Nothing is sent to a model.
    pub(super) async fn go_live(&mut self, notes: Vec<String>, host_starts: bool, answer: Answer) {
        if self.admission.host_ends() {
            return reply(answer, Err(Refusal::internal("the host is ending")));
        }
        if self.phase.is_running() {
            // A message woke the Pod first; its run owns the log and says how it ends.
            return reply(answer, Ok(self.restored()));
        }
        self.notes = notes;
        let result = self.become_live(host_starts).await;
        if let Err(refusal) = &result {
            // The state says why the Pod is not live; :restore tries again.
            let why = Some(refusal.message.clone());
            self.show(State::Failed, why, Some(GoesOnBy::Restore));
        }
        reply(answer, result);
    }

    async fn become_live(&mut self, host_starts: bool) -> Result<Event, Refusal> {
        self.must_have_worktree()?;
        let mut tail = self.look_back().await?;
        self.mark_taken(std::mem::take(&mut tail.taken)).await;
        if let Some(segment) = self.row.segment {
            self.after_jump(segment, tail.jump).await;
        }
        if self.listener.is_none() && !self.shared.only_reads {
            self.listener = Some(self.open_listener()?);
        }
        self.admission.reopen();
        self.jobs.open();
        if !self.shared.only_reads {
            self.end_jobs_of_former_host().await;
        }
        let was_live = std::mem::replace(&mut self.row.wanted, Wanted::Live) == Wanted::Live;
        self.show_confinement().await;
        self.notes.extend(self.resolved.worktree.as_ref().and_then(|tree| tree.setup.clone()));
        self.show_granted();
        self.change(|info| {
            // The run counted exactly; the log holds only what a provider counted last.
            if info.context_tokens == 0 {
                info.context_tokens = tail.context_tokens;
            }
            info.last_activity = info.last_activity.max(tail.newest);
        });
        self.count_lines();
        self.load_queue().await;
        if was_live {
            self.restore_pending(tail.approval.take()).await?;
        } else {
            self.close_stopped(tail.approval.take()).await?;
        }
        let failed = tail.failed.take().filter(|_| host_starts);
        let (state, why) = match (&tail.interrupted, failed) {
            (Some(interrupted), _) => (State::Paused, Some(interrupted.sentence())),
            (None, Some(why)) => (State::Failed, Some(why)),
            (None, None) => {
                (State::Idle, child_events::waiting(&self.mailbox().await.unwrap_or_default()))
            }
        };
        let (state, why) = self.pending_state().unwrap_or((state, why));
        self.enter(state, why);
        if let Some(interrupted) = tail.interrupted.as_ref()
            && host_starts
            && state == State::Paused
            && interrupted.is_by_host()
        {
            self.run_was_cut(interrupted).await;
        }
        if !self.shared.only_reads {
            self.join_mesh_if_wanted().await;
        }
        if was_live {
            let since = self.since(state, &tail);
            self.change(|info| info.since = since);
        }
        Ok(self.restored())
    }

    /// When a Pod that was live before this host came into its state: the time of the event that
    /// brought it there. The end of a host is no such event, except for a run that it interrupts.
    fn since(&self, state: State, tail: &Tail) -> u64 {
        let asked = self.pending.as_ref().map(|pending| pending.approval.since);
        let event = match state {
            State::NeedsYou => asked,
            State::Paused => tail.interrupted.as_ref().map(|interrupted| interrupted.at),
            _ => tail.ended.map(|ended| ended.max(self.row.since)),
        };
        event.unwrap_or(self.row.since)
    }

    /// Marks mailbox messages that the end of the log holds. Where this fails the marks are made
    /// when the log is opened for the next run.
    async fn mark_taken(&self, taken: Vec<String>) {
        if !taken.is_empty() {
            let marked = self.shared.store.take_message(&self.row.name, taken).await;
            marked.or_log("mark mailbox messages as taken");
        }
    }

    async fn show_confinement(&mut self) {
        let confinement = self.shared.confinement().await;
        let word = confinement.word;
        self.notes.extend(confinement.note());
        self.change(|info| info.confined = Some(word));
    }

    fn restored(&self) -> Event {
        let info = self.info.borrow();
        Event::PodRestored {
            result: json!({
                "action": "restored", "pod_name": self.row.name,
                "socket_path": self.shared.sockets().socket(self.row.name.as_str()),
                "state": info.state, "why": info.why,
            }),
        }
    }

    fn open_listener(&self) -> Result<JoinHandle<()>, ListenError> {
        let Some(requests) = self.requests.upgrade() else { return Ok(tokio::spawn(async {})) };
        let handle = Handle {
            name: self.row.name.clone(),
            session: self.row.session,
            created: self.row.created,
            requests,
            info: self.info.subscribe(),
            granted: self.granted.clone(),
            commands: self.commands.clone(),
            jobs: self.jobs.clone(),
            servers: self.used_servers.clone(),
        };
        listener::open_pod(&self.shared, handle)
    }

    /// Opens the socket of a live Pod again.
    pub(super) fn reopen_socket(&mut self) {
        if self.listener.is_none() {
            return;
        }
        match self.open_listener() {
            Ok(new) => drop(self.listener.replace(new).inspect(JoinHandle::abort)),
            Err(error) => {
                tracing::warn!(pod = %self.row.name, "the socket cannot be made again: {error}");
            }
        }
    }

    /// Closes the socket of a live Pod.
    pub(super) fn close_socket(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.abort();
            listener::close_pod(&self.shared, &self.row.name);
        }
    }
}
