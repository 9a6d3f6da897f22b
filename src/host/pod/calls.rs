//! The methods of the protocol, as a Pod carries them out.

use crate::host::pod::Pod;
use crate::host::pod::start::accepted;
use crate::host::{Answer, listing, verb};
use crate::protocol::{
    CompletionKind, EntryId, ErrorCode, Event, GoesOnBy, Item, Method, PodName, Refusal, State,
};
use crate::run::{Input, Interrupt, Notification, Start};
use crate::session;
use crate::store::MailboxKind;

impl Pod {
    pub(super) async fn call(&mut self, method: Method, by: Option<PodName>, answer: Answer) {
        if self.newborn && (by.is_none() || by != self.row.parent) {
            let text = format!("pod `{}` is being created; try again when it is", self.row.name);
            return reply(answer, Err(Refusal::invalid(text)));
        }
        let answer = match by {
            Some(_) => answer,
            None => match self.keep_before(&method, answer).await {
                Some(answer) => answer,
                None => return,
            },
        };
        match method {
            Method::Send { input, queue } => {
                self.send(Input { segments: input, from: by }, queue, answer).await
            }
            Method::Notify { message } => {
                let payload = Notification { message, from: None }.payload();
                self.message(MailboxKind::Notify, payload, answer).await;
            }
            Method::PodEvent(event) => self.pod_event(event, answer).await,
            Method::Resume => self.resume(answer).await,
            Method::LeaveOut { result } => self.leave_out(&result, answer).await,
            Method::Cancel => self.interrupt(Interrupt::Cancel, answer).await,
            Method::Pause => self.interrupt(Interrupt::Pause, answer).await,
            Method::Compact => self.compact(answer).await,
            Method::ListRewindTargets => self.list_rewind_targets(answer),
            Method::Rewind { target, expected_head_entries } => {
                let rewound = self.rewind(target, expected_head_entries).await;
                reply(answer, rewound.map(|rewound| rewound.event()));
            }
            Method::UndoRewind { entry, expected_head_entries } => {
                reply(answer, self.undo_rewind(entry, expected_head_entries).await);
            }
            Method::ListCompletions { kind, prefix } => self.complete(kind, prefix, answer),
            method @ (Method::Stop
            | Method::ListPods
            | Method::Restore { .. }
            | Method::Peer { .. }) => self.pass_on(method, answer),
            Method::Open { env } => self.offer(env, answer).await,
            Method::SetModel { model } => self.set_model(&model, answer).await,
            Method::SetEffort { effort } => self.set_effort(effort, answer).await,
            Method::Consent { sends } => self.consent(&sends, answer).await,
            Method::EditQueued { id, input } => self.edit_queued(&id, input, answer).await,
            Method::Steer { id, input } => self.steer(id, input, answer).await,
            Method::Seen => {
                self.set_seen(true).await;
                reply(answer, Ok(Event::done()));
            }
            Method::Later => {
                let put_off = self.put_off().await;
                reply(answer, put_off.map(|()| Event::done()));
            }
            Method::ExplainCommand => self.explain_command(answer),
            _ => reply(answer, Err(Refusal::invalid("this request is not for a pod"))),
        }
    }

    async fn resume(&mut self, answer: Answer) {
        if let Err(refusal) = self.must_be_live() {
            return reply(answer, Err(refusal));
        }
        let Some(answer) = self.resume_pending(answer).await else { return };
        if let Some(run) = self.phase.run().filter(|_| self.info.borrow().retry_at.is_some()) {
            run.try_now.notify_waiters();
            return reply(answer, Ok(Event::done()));
        }
        if let Err(refusal) = self.must_not_run() {
            return reply(answer, Err(refusal));
        }
        // A run that failed is tried again, if its input is in the log.
        if !matches!(self.info.borrow().state, State::Paused | State::Failed) || self.lacks_input()
        {
            let waiting = self.mailbox().await.unwrap_or_default();
            if waiting.iter().any(|row| row.kind == MailboxKind::Agent) {
                // A person wants those read that wake no Pod, too.
                self.start(Start::MailboxMessage).await;
                return reply(answer, Ok(Event::done()));
            }
            if !waiting.is_empty() {
                self.take_next().await;
                return reply(answer, Ok(Event::done()));
            }
            return reply(answer, Err(self.nothing_to_try()));
        }
        self.go_on(None, answer).await;
    }

    /// Whether its run failed and its message was taken back.
    fn lacks_input(&self) -> bool {
        let info = self.info.borrow();
        info.state == State::Failed && info.goes_on_by == Some(GoesOnBy::Message)
    }

    fn nothing_to_try(&self) -> Refusal {
        if !self.lacks_input() {
            return Refusal::not_paused();
        }
        let text = format!("pod `{}` has no run to go on with: send it a message", self.row.name);
        Refusal::new(ErrorCode::NotPaused, text)
    }

    /// Goes on with the run that stopped, without this result of a tool.
    async fn leave_out(&mut self, result: &str, answer: Answer) {
        match self.find_result(result).await {
            Ok(entry) => self.go_on(Some(entry), answer).await,
            Err(refusal) => reply(answer, Err(refusal)),
        }
    }

    async fn go_on(&mut self, without: Option<EntryId>, answer: Answer) {
        if self.lacks_input() {
            return reply(answer, Err(self.nothing_to_try()));
        }
        // A person who continues wants to know now whether the provider answers again.
        if let Ok(Some((_, provider))) = self.provider() {
            provider.gate().end_pause();
        }
        self.start(Start::Resume { without, accepted: Some(accepted(answer)) }).await;
    }

    /// The entry of the newest result that requests carry and whose id ends so.
    async fn find_result(&self, result: &str) -> Result<EntryId, Refusal> {
        self.must_be_live()?;
        self.must_not_run()?;
        let (files, segment, ending) =
            (self.files.clone(), self.row.segment, result.to_lowercase());
        let find = move || -> Option<EntryId> {
            let history = session::fold(&files, segment?, 0).ok()?.replay.history;
            let mut results = history.iter().rev().filter(|kept| {
                matches!(kept.item, Item::ToolResult { .. }) && kept.pruned.is_none()
            });
            results.find_map(|kept| kept.id.filter(|id| id.to_string().ends_with(&ending)))
        };
        let found = tokio::task::spawn_blocking(find).await?;
        let unknown = || {
            let text =
                format!("no result that the model reads has an id that ends with `{result}`");
            Refusal::invalid(text)
        };
        found.filter(|_| !result.is_empty()).ok_or_else(unknown)
    }

    /// Interrupts the run; the answer comes when it has halted.
    async fn interrupt(&mut self, how: Interrupt, answer: Answer) {
        if self.phase.is_running() {
            return self.interrupt_run(how, Some(answer));
        }
        if self.is_undecided() {
            return reply(answer, self.interrupt_pending(how).await);
        }
        if self.info.borrow().state == State::Paused {
            let dropped =
                if how == Interrupt::Cancel { self.drop_run().await } else { Ok(Event::done()) };
            return reply(answer, dropped);
        }
        reply(answer, Err(Refusal::not_running()));
    }

    async fn compact(&mut self, answer: Answer) {
        if let Err(refusal) = self.must_be_free() {
            return reply(answer, Err(refusal));
        }
        self.start(Start::Compact { accepted: Some(accepted(answer)) }).await;
    }

    /// Why a request that needs an idle Pod is refused now.
    fn must_be_free(&self) -> Result<(), Refusal> {
        self.must_be_live()?;
        self.must_not_run()?;
        if self.info.borrow().state == State::Paused {
            let text = "the run is paused: :resume goes on with it, :cancel gives it up";
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }

    /// Why a request that cannot run beside another run is refused now.
    pub(super) fn must_not_run(&self) -> Result<(), Refusal> {
        if !self.phase.is_running() {
            return self.refuse_if_undecided();
        }
        Err(Refusal::already_running())
    }

    pub(super) fn must_be_live(&self) -> Result<(), Refusal> {
        if self.is_live() {
            return Ok(());
        }
        let (name, info) = (&self.row.name, self.info.borrow());
        let text = match (info.state, &info.why) {
            _ if self.admission.host_ends() => return Err(host_ends(name)),
            (State::Failed, Some(why)) if why.contains(":restore") => {
                format!("pod `{name}` failed: {why}")
            }
            (State::Failed, Some(why)) => {
                format!("pod `{name}` failed: {why}; :restore {name} tries again")
            }
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
        let own = self.shared.dirs.own();
        tokio::spawn(async move {
            let list = move || listing::files(&cwd, &scope, own, &prefix);
            let entries = files.run(&dir, list).await;
            reply(answer, entries.map(|entries| Event::Completions { kind, entries }));
        });
    }

    /// A verb that concerns more than this Pod, from the Pod's own socket. It runs in a task of its
    /// own, because it may have to wait for this very Pod. Other Pods are restored in the name of
    /// this one, as by its tool: the ones that it sees.
    fn pass_on(&self, method: Method, answer: Answer) {
        let Some(supervisor) = self.supervisor.upgrade() else {
            return reply(answer, Err(Refusal::internal("the host is ending")));
        };
        let (shared, pod) = (self.shared.clone(), Some(self.row.name.clone()));
        let by = pod.clone().filter(|_| matches!(method, Method::Restore { .. }));
        tokio::spawn(async move {
            reply(answer, verb::carry_out(&shared, &supervisor, by, pod, method).await);
        });
    }
}

/// What a request to a live Pod gets while its host ends.
fn host_ends(name: &PodName) -> Refusal {
    Refusal::internal(format!(
        "the host is ending, so pod `{name}` takes nothing more; start yoi again and repeat it: the pod comes back by itself"
    ))
}

/// Answers; a caller that is gone wants no answer.
pub(super) fn reply(answer: Answer, result: Result<Event, Refusal>) {
    let _ = answer.send(result);
}
