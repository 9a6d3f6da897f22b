//! The verbs: each request that a person, a client or a Pod makes is carried out here. A verb is one
//! type in a file of its own that says which Pods may request it and how it is carried out; it
//! needs one more line, in [`dispatch`].

use crate::host::pod::Handle;
use crate::host::request_log::logged;
use crate::host::supervisor::{self, Family, InUse, NotTaken, Step, missing};
use crate::host::{Shared, authority};
use crate::protocol::{Event, Method, PodName, Refusal, WhileRunning};
use crate::store::DamagedRow;
use futures_util::future::join_all;
use std::collections::HashMap;
use std::path::Path;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

/// The requests that MCP clients may make, and a person's consent to them.
pub(crate) mod client;
/// What a new Pod is made of.
mod create;
mod decide;
mod end;
mod find_model;
mod fork;
mod jobs;
mod lend;
mod list;
mod mesh;
mod new;
mod notify;
/// Pages and entries of a transcript; screens ask for them, no person does.
mod page;
mod peer;
mod policy;
mod put_off;
mod read_output;
mod reclaim;
mod relocate;
/// Also for ephemeral Pods, which are removed by age.
pub(crate) mod remove;
mod restore;
mod revoke;
mod send;
mod since;
mod spawn;
mod status;
mod stop;
mod trace;
mod try_notify;
mod trust;
mod unpeer;
mod mcp;
mod who;
mod worktree;

/// A verb with its arguments.
pub(crate) trait Verb: Sized + Send + 'static {
    /// Which Pods may request it; a person may request every verb.
    const ALLOWED: Caller;

    /// Carries the verb out, to its end. It may take several steps; each step on the family is
    /// whole, and a mark that it holds ends with it.
    fn run(self, cx: Cx) -> impl Future<Output = Result<Event, Refusal>> + Send;
}

/// Which Pod may request a verb, by its relation to the addressed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// No Pod, only a person.
    Person,
    /// The addressed Pod itself.
    Itself,
    /// A Pod above the addressed one.
    Above,
    /// A peer of the addressed Pod.
    Peer,
}

/// What a verb may use.
#[derive(Clone)]
pub(crate) struct Cx {
    pub(crate) shared: Shared,
    /// The Pod that makes the request; `None` is a person.
    pub(crate) by: Option<PodName>,
    /// The addressed Pod.
    pub(crate) to: Option<PodName>,
    pub(crate) supervisor: mpsc::Sender<Step>,
    /// Cancelled when the asker does not wait for the reply any more.
    pub(crate) gone: CancellationToken,
}

impl Cx {
    /// The addressed Pod's name.
    pub(crate) fn to(&self) -> Result<&PodName, Refusal> {
        let text = "this request needs a pod: add \"pod\": its name";
        self.to.as_ref().ok_or_else(|| Refusal::invalid(text))
    }

    /// The addressed Pod, if it is listed.
    pub(crate) fn pod(&self) -> Result<Handle, Refusal> {
        let name = self.to()?;
        self.shared.pod(name).ok_or_else(|| self.damaged_or_missing(name))
    }

    fn damaged_or_missing(&self, name: &PodName) -> Refusal {
        match self.shared.damaged_row(name) {
            None => missing(name),
            Some(DamagedRow { name, reason, .. }) => Refusal::invalid(format!(
                "the record of pod `{name}` is damaged ({reason}); :rm {name} deletes it"
            )),
        }
    }

    /// One step on the family: a pure function, committed in one transaction, then published, then
    /// shown on every screen.
    pub(crate) async fn family<T: Send + 'static>(
        &self,
        step: impl FnOnce(&mut Family) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        supervisor::step(&self.supervisor, step).await
    }

    /// As [`Cx::family`], for a step that may take from Pods what commands of theirs write: these are refused, waited for
    /// or ended first, as the request says. A wait ends without a change when the asker is gone or the host ends.
    pub(crate) async fn family_when_unused<T: Send + 'static>(
        &self,
        running: WhileRunning,
        step: impl FnOnce(&mut Family) -> Result<T, Refusal> + Clone + Send + 'static,
    ) -> Result<T, Refusal> {
        // They hold over the next attempt, too: what has ended in one Pod does not begin again before the last has ended.
        let mut waits = HashMap::new();
        loop {
            // Each attempt looks anew at what runs, with the smaller scope in force.
            let in_use = match supervisor::attempt(&self.supervisor, step.clone()).await {
                Err(NotTaken::InUse(in_use)) => in_use,
                taken => return Ok(taken?),
            };
            let tell = match running {
                WhileRunning::Refuse => return Err(self.in_use(in_use)),
                WhileRunning::Wait => false,
                WhileRunning::End => true,
            };
            waits.extend(in_use.iter().map(InUse::wait));
            tokio::select! {
                biased;
                () = self.gone.cancelled() => return Err(given_up()),
                _ = self.shared.ended() => return Err(given_up()),
                _ = join_all(in_use.iter().map(|in_use| in_use.ended(tell))) => {}
            }
        }
    }

    /// The refusal of a request that could wait or end what is in its way.
    fn in_use(&self, in_use: Vec<InUse>) -> Refusal {
        let Refusal { code, message } = NotTaken::InUse(in_use).into();
        let ways = match self.by {
            None => "--wait waits until it has ended, --end ends it first",
            Some(_) => "running: \"wait\" waits until it has ended, running: \"end\" ends it first",
        };
        Refusal::new(code, format!("{message}; {ways}"))
    }

    /// Waits until no verb is starting or stopping the Pod of this name, but no longer than a stop takes.
    pub(crate) async fn settled(&self, name: &PodName) -> Result<(), Refusal> {
        let end = Instant::now() + stop::IN_ANY_CASE;
        loop {
            let key = name.key();
            let changing = self.family(move |family| Ok(family.changing(&key))).await?;
            let Some(mut over) = changing else { return Ok(()) };
            // Ends when the mark is dropped, which closes the channel.
            if timeout_at(end, over.changed()).await.is_err() {
                return Ok(());
            }
        }
    }

    /// Work on a path, on threads of its own and with a deadline.
    pub(crate) async fn files<T: Send + 'static>(
        &self,
        path: &Path,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        self.shared.files.run(path, work).await
    }
}

/// Carries a request out, and logs how it ended: a person's, or a Pod's (`by`).
pub(crate) async fn carry_out(
    shared: &Shared,
    supervisor: &mpsc::Sender<Step>,
    by: Option<PodName>,
    pod: Option<PodName>,
    method: Method,
) -> Result<Event, Refusal> {
    carry_out_for(shared, supervisor, by, pod, method, CancellationToken::new()).await
}

/// As [`carry_out`], for an asker that may be gone before the reply: then a request that waits changes nothing.
pub(crate) async fn carry_out_for(
    shared: &Shared,
    supervisor: &mpsc::Sender<Step>,
    by: Option<PodName>,
    pod: Option<PodName>,
    method: Method,
    gone: CancellationToken,
) -> Result<Event, Refusal> {
    let (name, asker, to) = (method.name(), by.clone(), pod.clone());
    let cx = Cx { shared: shared.clone(), by, to: pod, supervisor: supervisor.clone(), gone };
    logged(name, to.as_ref(), asker.as_ref(), dispatch(cx, method)).await
}

fn given_up() -> Refusal {
    Refusal::invalid(
        "the request was given up while commands ran that may write there; every scope is as before",
    )
}

/// One line for each verb.
async fn dispatch(cx: Cx, method: Method) -> Result<Event, Refusal> {
    match method {
        Method::New(new) => authorized(new, cx).await,
        Method::Spawn(spawn) => authorized(spawn, cx).await,
        Method::Fork { name, at } => authorized(fork::Fork { name, at }, cx).await,
        Method::Stop if cx.to.is_none() => authorized(end::End, cx).await,
        Method::Stop => authorized(stop::Shutdown, cx).await,
        Method::StopPods { tree, unless_busy, silent } => {
            authorized(stop::Stop { tree, unless_busy, silent }, cx).await
        }
        Method::Restore { name } => authorized(restore::RestoreByName { name }, cx).await,
        Method::Relocate { cwd } => authorized(relocate::Relocate { cwd }, cx).await,
        Method::RestorePods { tree, plan } => authorized(restore::Restore { tree, plan }, cx).await,
        Method::Remove => authorized(remove::Remove, cx).await,
        Method::Peer { name } => authorized(peer::Peer { name }, cx).await,
        Method::Unpeer { name } => authorized(unpeer::Unpeer { name }, cx).await,
        Method::Lend { to, rule, running } => {
            authorized(lend::Lend { to, rule, running }, cx).await
        }
        Method::Reclaim { path, running } => {
            authorized(reclaim::Reclaim { path, running }, cx).await
        }
        Method::ListServers { workspace } => authorized(mcp::ListServers { workspace }, cx).await,
        Method::ListJobs => authorized(jobs::ListJobs, cx).await,
        Method::Worktree { change } => authorized(worktree::Worktree { change }, cx).await,
        Method::StopJob { id } => authorized(jobs::StopJob { id }, cx).await,
        Method::Who { path } => authorized(who::WhoHolds { path }, cx).await,
        Method::Since { at } => authorized(since::Since { at }, cx).await,
        Method::Decide { approval: id, verdict } => {
            authorized(decide::Decide { id, verdict }, cx).await
        }
        Method::PutOff { approval } => authorized(put_off::PutOff { approval }, cx).await,
        Method::ListPolicy => authorized(policy::ListPolicy, cx).await,
        Method::Revoke { rule } => authorized(revoke::Revoke { rule }, cx).await,
        Method::Trust { workspace, sha256 } => {
            authorized(trust::Trust { workspace, sha256 }, cx).await
        }
        Method::ListPods => authorized(list::ListPods, cx).await,
        Method::ReadOutput => authorized(read_output::ReadOutput, cx).await,
        Method::FindModel { cwd, model, env } => {
            authorized(find_model::FindModel { cwd, model, env }, cx).await
        }
        Method::HostStatus => authorized(status::HostStatus, cx).await,
        Method::TryNotify => authorized(try_notify::TryNotify, cx).await,
        Method::Trace { filter } => authorized(trace::Trace { filter }, cx).await,
        Method::Page { before, max_bytes } => {
            authorized(page::Page { before, max_bytes }, cx).await
        }
        Method::Fetch { entry, range } => authorized(page::Fetch { entry, range }, cx).await,
        Method::Send { input, queue } => authorized(send::Send { input, queue }, cx).await,
        Method::Notify { message } => authorized(notify::Notify { message }, cx).await,
        Method::MeshJoin => authorized(mesh::Join, cx).await,
        Method::MeshLeave => authorized(mesh::Leave, cx).await,
        Method::MeshAgents => authorized(mesh::Agents, cx).await,
        Method::MeshSend { to, body, re } => {
            authorized(mesh::SendToAgents { to, body, re }, cx).await
        }
        Method::MeshBlock { name, end } => authorized(mesh::Block { name, end }, cx).await,
        Method::Show { .. } => {
            Err(Refusal::invalid("only a connection of a person to the host socket shows Pods"))
        }
        Method::Attend { .. } => Err(Refusal::invalid(
            "only a connection of a person to the host socket attends messages",
        )),
        Method::ActAs(_) => {
            Err(Refusal::invalid("only a connection to the host socket acts as a client"))
        }
        Method::LeaveOut { .. } => {
            authority::check(&cx, Caller::Person)?;
            // A program that has ended, such as `-p`, left the Pod stopped.
            let pod = cx.pod()?;
            if send::must_be_live(&pod).is_err() {
                let restore = restore::RestoreByName { name: pod.name.to_string() };
                authorized(restore, cx.clone()).await?;
            }
            pod.call_by(cx.by, method).await
        }
        Method::PodEvent(_)
        | Method::Watch
        | Method::Resume
        | Method::Cancel
        | Method::Pause
        | Method::Compact
        | Method::ListRewindTargets
        | Method::Rewind { .. }
        | Method::UndoRewind { .. }
        | Method::ListCompletions { .. }
        | Method::Open { .. }
        | Method::SetModel { .. }
        | Method::SetEffort { .. }
        | Method::Consent { .. }
        | Method::EditQueued { .. }
        | Method::Steer { .. }
        | Method::ExplainCommand
        | Method::Seen
        | Method::Later => {
            // The Pod's own actor carries it out.
            authority::check(&cx, Caller::Person)?;
            cx.pod()?.call_by(cx.by, method).await
        }
    }
}

/// Whether the host would begin this request of a Pod's tool as the family is now.
pub(crate) fn could_begin(
    shared: &Shared,
    by: &PodName,
    to: &PodName,
    method: &Method,
) -> Result<(), Refusal> {
    let may = |allowed| authority::may(shared, by, to, allowed);
    match method {
        Method::Notify { .. } => may(notify::Notify::ALLOWED),
        Method::ReadOutput => may(read_output::ReadOutput::ALLOWED),
        Method::StopPods { .. } => may(stop::Stop::ALLOWED),
        Method::Send { .. } => {
            may(send::Send::ALLOWED)?;
            shared.pod(to).map_or(Ok(()), |pod| send::must_be_live(&pod))
        }
        Method::Restore { name } => restore::named(shared, Some(by), name).map(drop),
        _ => Ok(()),
    }
}

async fn authorized<V: Verb>(verb: V, cx: Cx) -> Result<Event, Refusal> {
    authority::check(&cx, V::ALLOWED)?;
    verb.run(cx).await
}
