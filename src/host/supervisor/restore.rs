//! Bringing stopped Pods back: each with what was stored with it, and told beforehand what that
//! means now.

use crate::host::pod::{Handle, tail};
use crate::host::rules;
use crate::host::supervisor::{Restore, Supervisor, internal};
use crate::protocol::{Event, PlanStep, PodName, Refusal, Restoring, State};
use crate::scope::lease::LeaseTable;
use crate::store::{Change, Wanted};
use serde_json::json;

impl Supervisor {
    /// Restores one Pod; one that is live already is not started twice.
    pub(super) async fn restore(&mut self, name: &str) -> Result<Event, Refusal> {
        let missing = || Refusal::invalid(format!("pod state missing for `{name}`"));
        let parsed = PodName::parse(name).map_err(|_| missing())?;
        if let Some(row) = self.shared.damaged_row(&parsed) {
            return Err(not_restorable(
                &parsed,
                &format!("its record is damaged ({})", row.reason),
            ));
        }
        let handle = self.shared.pod(&parsed).ok_or_else(missing)?;
        self.must_not_be_stopping(&handle.name)?;
        let info = handle.info.borrow().clone();
        let is_live = self.book.holder(&handle.name.key()).is_some_and(|holder| holder.live);
        if is_live && info.state != State::Failed {
            let socket = self.shared.dirs.socket(handle.name.as_str());
            return Ok(Event::PodRestored {
                result: json!({
                    "action": "already_live", "pod_name": handle.name,
                    "socket_path": socket, "status": self.shared.status(&info),
                }),
            });
        }
        self.bring(&handle).await
    }

    /// Makes a stopped Pod live with its own stored configuration, scope and directory.
    async fn bring(&mut self, handle: &Handle) -> Result<Event, Refusal> {
        if let Some(why) = impossible(handle) {
            return Err(not_restorable(&handle.name, &why));
        }
        self.must_have_room(handle)?;
        let mut next = self.book.clone();
        next.go_live(&handle.name.key());
        let wanted = vec![(handle.name.clone(), Wanted::Live)];
        self.commit_leases_if_unused(next, Change { wanted, ..Change::default() }).await?;
        crate::crash_point!("restore-stored");
        let live = handle.live(Vec::new()).await;
        crate::crash_point!("restore-live");
        if live.is_err() {
            let mut next = self.book.clone();
            next.stop(&handle.name.key());
            let wanted = vec![(handle.name.clone(), Wanted::Stopped)];
            self.commit_leases(next, Change { wanted, ..Change::default() }).await?;
            // It was stopped before, which its parent knows.
            let parent = handle.info.borrow().parent.clone();
            handle.stopped(parent).await;
        }
        live.map_err(|refusal| not_restorable(&handle.name, &refusal.message))
    }

    /// The plan for a Pod, or for all below it, too; carried out unless it is only asked for.
    pub(super) async fn restore_pods(
        &mut self,
        name: &PodName,
        how: Restore,
    ) -> Result<Event, Refusal> {
        let first = self.pod(name)?;
        let mut steps = self.steps(&first, how).await;
        if how.plan {
            return Ok(Event::Plan { steps, done: false });
        }
        if let Some(PlanStep { what: Restoring::Impossible, notes, .. }) = steps.first() {
            return Err(not_restorable(&first.name, &notes.join(" · ")));
        }
        for step in &mut steps {
            if !matches!(step.what, Restoring::Idle | Restoring::Paused) {
                continue;
            }
            let handle = self.pod(&step.name)?;
            match self.bring(&handle).await {
                Ok(_) if handle.info.borrow().state == State::Paused => {
                    step.what = Restoring::Paused;
                }
                Ok(_) => step.what = Restoring::Idle,
                Err(refusal) if step.name.key() == first.name.key() => return Err(refusal),
                Err(refusal) => {
                    step.what = Restoring::Impossible;
                    step.notes.push(refusal.message);
                }
            }
        }
        Ok(Event::Plan { steps, done: true })
    }

    /// What would become of a Pod and everything below it, parents first, in the order in which it
    /// would happen.
    async fn steps(&self, first: &Handle, how: Restore) -> Vec<PlanStep> {
        let mut book = self.book.clone();
        let mut steps = vec![self.step(first, &mut book).await];
        for name in self.below(&first.name) {
            let Some(handle) = self.shared.pod(&name) else { continue };
            let live = self.book.holder(&name.key()).is_some_and(|holder| holder.live);
            if how.tree || live {
                steps.push(self.step(&handle, &mut book).await);
            } else {
                let (what, notes) = (Restoring::StaysStopped, Vec::new());
                steps.push(PlanStep { name, what, notes });
            }
        }
        steps
    }

    async fn step(&self, handle: &Handle, book: &mut LeaseTable) -> PlanStep {
        let (name, key) = (handle.name.clone(), handle.name.key());
        if let Err(refusal) = self.must_not_be_stopping(&name) {
            let notes = vec![refusal.message];
            return PlanStep { name, what: Restoring::Impossible, notes };
        }
        if book.holder(&key).is_some_and(|holder| holder.live) {
            return PlanStep { name, what: Restoring::AlreadyLive, notes: Vec::new() };
        }
        if let Some(why) = impossible(handle) {
            return PlanStep { name, what: Restoring::Impossible, notes: vec![why] };
        }
        book.go_live(&key);
        let mut notes = self.scope_notes(book, &key);
        let what = match self.cut_off(handle).await {
            Ok(None) => Restoring::Idle,
            Ok(Some(cut)) => {
                notes.extend(cut);
                Restoring::Paused
            }
            Err(refusal) => {
                notes.push(refusal.message);
                Restoring::Impossible
            }
        };
        PlanStep { name, what, notes }
    }

    /// A child counts among those that may be live below its root.
    fn must_have_room(&self, handle: &Handle) -> Result<(), Refusal> {
        match rules::lineage(&self.shared, &handle.name).first() {
            Some(root) => self.room_below(root),
            None => Ok(()),
        }
    }

    /// How a turn was interrupted, and which calls of it are not repeated; `None` when none was.
    async fn cut_off(&self, handle: &Handle) -> Result<Option<Vec<String>>, Refusal> {
        let gone = || internal(format!("pod `{}` is gone", handle.name));
        let view = handle.look().await.ok_or_else(gone)?;
        let Some(segment) = view.segment else { return Ok(None) };
        let look = move || {
            let Some(why) = tail::read(&view.files, segment)?.interrupted else { return Ok(None) };
            let calls = tail::open_calls(&view.files, segment)?;
            let cut = calls.iter().map(|call| format!("{call} was cut off and is not repeated"));
            Ok::<_, String>(Some(std::iter::once(why).chain(cut).collect()))
        };
        tokio::task::spawn_blocking(look).await.map_err(internal)?.map_err(internal)
    }
}

/// Why a Pod cannot come back at all.
fn impossible(handle: &Handle) -> Option<String> {
    let cwd = handle.info.borrow().cwd.clone();
    (!cwd.is_dir()).then(|| format!("its directory {} is not there", cwd.display()))
}

fn not_restorable(name: &PodName, why: &str) -> Refusal {
    Refusal::invalid(format!("pod `{name}` cannot be restored: {why}"))
}
