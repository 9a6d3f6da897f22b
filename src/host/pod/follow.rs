//! How a run is followed and interrupted, and how it ends.

use crate::config::model_select::ModelChoice;
use crate::host::Answer;
use crate::host::pod::calls::reply;
use crate::host::pod::phase::{Phase, Running};
use crate::host::pod::resolved;
use crate::host::pod::tail::Interrupted;
use crate::host::pod::{Pod, child_events};
use crate::protocol::{
    Entry, Event, Fact, GoesOnBy, Item, Refusal, Role, RunOutcome, State, now_ms,
};
use crate::run::{ASKED, End, Interrupt, RunEvent, SessionState};
use crate::text::SafeText;
use crate::trace::OrLog as _;

/// How much of a model's last line is shown in lists, in characters.
const LAST_LINE: usize = 160;
/// How often screens that do not follow a Pod learn that its model writes, in milliseconds.
const SIGN_OF_LIFE: u64 = 5_000;
/// The log's words for a run that was aborted.
const ABORTED: &str = "the run did not end in time when its pod was stopped";

impl Pod {
    /// Follows the run; `None` is its end.
    pub(super) async fn on_run_event(&mut self, event: Option<RunEvent>) {
        match event {
            Some(event) => self.publish_run_event(event).await,
            None => self.run_ended().await,
        }
    }

    async fn publish_run_event(&mut self, event: RunEvent) {
        match event {
            RunEvent::Event(event) => {
                // A screen that follows the Pod gets the event itself, and a listing from now on holds its time. The
                // other screens learn now and then that the Pod is not silent.
                let now = now_ms();
                if now.saturating_sub(self.shown_activity) >= SIGN_OF_LIFE {
                    self.shown_activity = now;
                    self.change(|info| info.last_activity = now);
                } else {
                    self.info.send_if_modified(|info| {
                        info.last_activity = now;
                        false
                    });
                }
                self.publisher.publish(&event);
            }
            RunEvent::Committed { entries, end } => {
                self.end = Some(end);
                self.publisher.committed(&entries);
                self.note_entries(&entries).await;
                self.count_after(&entries);
            }
            RunEvent::Rotated { segment, end } => {
                self.row.segment = Some(segment);
                self.end = Some(end);
                self.change(|info| info.segment = Some(segment));
            }
            RunEvent::ApprovalRequested(approval) => self.approval_requested(*approval).await,
            RunEvent::ApprovalDecided(decision) => self.approval_closed(&decision),
            RunEvent::Doing(activity) => self.change(|info| {
                (info.activity, info.retry_at) = (Some(activity), None);
                info.last_activity = now_ms();
            }),
            RunEvent::Waits { activity, until } => self.change(|info| {
                (info.activity, info.retry_at) = (Some(activity), Some(until));
                info.last_activity = now_ms();
            }),
            RunEvent::UsesModel(model, why) => {
                let choice =
                    ModelChoice { model: *model, why, chosen: true, sends: None, notice: None };
                let shared = self.shared.clone();
                self.change(|info| resolved::show_model(&shared, info, Some(&choice)));
            }
            RunEvent::UsesChosenModel => self.show_model(),
            RunEvent::Learned(learned) => {
                let text = serde_json::json!(learned).to_string();
                let stored = self.shared.store.learn(text, learned.since).await;
                stored.or_log("store what a provider does not take");
            }
            RunEvent::Circling(circling) => {
                self.change(|info| info.circling = circling.map(|circling| *circling));
            }
            RunEvent::LimitMet(limit) => self.change(|info| info.limit = limit),
            RunEvent::Context { tokens, cost } => self.change(|info| {
                info.context_tokens = tokens;
                info.cost = cost;
            }),
        }
    }

    /// Entries that change what is shown of the Pod: a queued input that was taken, the last line
    /// of a model's text.
    async fn note_entries(&mut self, entries: &[Entry]) {
        self.note_read(entries);
        for entry in entries {
            if let Some(run) = self.phase.run_mut().filter(|_| child_events::ends_run(&entry.fact))
            {
                run.ended = Some(entry.clone());
            }
            self.run = entry.run().or(self.run);
            if child_events::ends_run(&entry.fact) {
                // What the run waited for is nothing that it did.
                self.change(|info| drop(info.activity.take_if(|doing| doing == ASKED)));
            }
            self.keep_work(entry).await;
            match &entry.fact {
                Fact::UserInput { taken, .. } => {
                    self.last_input = entry.id.map(|id| (id, taken.clone()));
                    let Some(id) = taken else { continue };
                    if let Some(run) = self.phase.run_mut() {
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

    /// The run has ended: its task gives the log back and says how.
    async fn run_ended(&mut self) {
        let Some(mut run) = self.phase.take_run() else { return };
        self.change(|info| info.circling = None);
        let (state, end) = self.result_of(&mut run).await;
        self.phase = Phase::after_run(state);
        self.store_activity().await;
        let ended = run.ended.as_ref().map_or_else(now_ms, |entry| entry.ts);
        let (state, why, by) = match self.pending_state() {
            Some((state, why)) => (state, why, None),
            None => state_after(&end, ended),
        };
        // The parent is notified before the state is shown: the child event waits in its queue then, before every
        // request that a client makes because it saw the state.
        self.run_is_over(&end, run.ended).await;
        self.enter_until(state, why, by);
        self.store_since().await;
        for answer in run.interrupting {
            reply(answer, Ok(Event::done()));
        }
        if matches!(end, End::Finished | End::LimitReached(_) | End::Failed(_)) {
            self.set_seen(false).await;
        }
        self.load_queue().await;
        if !self.admission.is_open() {
            return self.finish_closing().await;
        }
        let goes_on = matches!(
            end,
            End::Finished | End::LimitReached(_) | End::Compacted | End::NotCompacted(_)
        );
        if goes_on {
            self.take_next().await;
        }
    }

    /// The log that the run gives back, and how the run ended. A panic ends it as failed, an abort
    /// as cut off.
    async fn result_of(&mut self, run: &mut Running) -> (Option<SessionState>, End) {
        let error = match (&mut run.task).await {
            Ok(ended) => return ended,
            Err(error) => error,
        };
        match error.try_into_panic() {
            Ok(panic) => {
                let (end, entry) = self.run_broke_off(panic).await;
                run.ended = entry;
                (None, end)
            }
            Err(_) => {
                let cut = RunOutcome::CutOff(ABORTED).entry();
                // Where the log cannot say it, the next opening closes the run as cut off.
                self.write_log(vec![cut]).await.or_log("write the end of an aborted run");
                (None, End::CutOff)
            }
        }
    }

    /// Only shown, so that nothing is lost where this fails.
    async fn store_activity(&self) {
        let activity = self.info.borrow().activity.clone();
        let stored = self.shared.store.set_last(&self.row.name, activity).await;
        stored.or_log("store the last activity");
    }

    /// Only shown, like the last activity.
    async fn store_since(&mut self) {
        self.row.since = self.info.borrow().since;
        let stored = self.shared.store.set_since(&self.row.name, self.row.since).await;
        stored.or_log("store the time of the state");
    }

    /// Interrupts the run; the first interrupt counts. The answer comes when the run has halted.
    pub(super) fn interrupt_run(&mut self, how: Interrupt, answer: Option<Answer>) {
        let Some(run) = self.phase.run_mut() else { return };
        run.interrupting.extend(answer);
        run.interrupt.send_if_modified(|interrupt| {
            let first = *interrupt == Interrupt::Go;
            if first {
                *interrupt = how;
            }
            first
        });
    }

    /// Puts off what the Pod waits for, or how it ended, from now on.
    pub(super) async fn put_off(&mut self) -> Result<(), Refusal> {
        let at = now_ms();
        self.shared.store.set_later(&self.row.name, at).await?;
        self.change(|info| info.later = Some(at));
        Ok(())
    }

    pub(super) async fn set_seen(&mut self, seen: bool) {
        if self.info.borrow().unseen != seen {
            return;
        }
        // Without the mark the Pod is shown as unseen once more, and nothing else happens.
        let stored = self.shared.store.set_seen(&self.row.name, seen).await;
        stored.or_log("store that the Pod was seen");
        self.change(|info| info.unseen = !seen);
    }
}

fn last_line(text: &str) -> Option<String> {
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(SafeText::brief(line, LAST_LINE).into_string())
}

/// The state of a Pod after a run that ended `at` this time, why, and what lets it go on.
fn state_after(end: &End, at: u64) -> (State, Option<String>, Option<GoesOnBy>) {
    let (state, why, by) = match end {
        End::Finished | End::RolledBack | End::Cancelled | End::Compacted => {
            return (State::Idle, None, None);
        }
        End::NotCompacted(why) => {
            let why = format!("the history could not be compacted: {why}; :compact tries again");
            (State::Idle, why, Some(GoesOnBy::Compact))
        }
        End::LimitReached(why) => {
            (State::Idle, format!("{why}; a message continues"), Some(GoesOnBy::Message))
        }
        End::Paused => (State::Paused, Interrupted::paused(at).sentence(), None),
        End::CutOff => (State::Paused, Interrupted::aborted(at, ABORTED).sentence(), None),
        End::Failed(refusal) => (State::Failed, refusal.message.clone(), None),
    };
    (state, Some(why), by)
}
