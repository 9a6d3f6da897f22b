//! The tools for other Pods. Each parses its arguments, sends the host request of the verb of the
//! same name, and formats the reply for a model.

pub mod agents;
pub mod list;
pub mod output;
pub mod peer;
pub mod restore;
pub mod send;
pub mod spawn;
pub mod stop;

use crate::client::pod_api::PodApi;
use crate::protocol::{ErrorCode, Event, Method, PodName, Refusal, SpawnPod, WhileRunning};
use crate::tools::fault::Fault;
use crate::tools::{Act, Output};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a tool waits for the host.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// How long it waits for a working tree, which git and the setup command of a project make, each with a limit of its own; and
/// for commands that have to end first.
const LONG_PATIENCE: Duration = Duration::from_secs(3600);
/// How long a tool waits for a stop, so that the caller always has a result within 8 s.
pub const STOP_PATIENCE: Duration = Duration::from_millis(7_800);

/// One call to the host.
pub struct HostRequest {
    /// The Pod that it concerns.
    pub pod: PodName,
    /// The name as the model wrote it, for the result.
    pub named: String,
    pub method: Method,
}

/// The arguments of a tool that needs only the name of a Pod.
#[derive(Deserialize, JsonSchema)]
pub struct Named {
    /// The Pod's name.
    name: String,
}

/// The functions of a tool for Pods.
pub struct Verb {
    /// The arguments and the calling Pod, as a request.
    pub request: fn(&str, &PodName) -> Result<HostRequest, Fault>,
    /// Formats the host's reply; `None` for a reply to another request.
    pub tell: fn(&str, Event) -> Option<Output>,
    /// The host's refusal in words.
    pub refused: fn(&str, Refusal) -> Fault,
    pub patience: Duration,
    /// The sentence about the state when the host did not reply in time.
    pub late: &'static str,
}

/// Carries out a verb; ends early when the Pod is cancelled.
pub async fn act(
    verb: &Verb,
    arguments: &str,
    pod_api: Option<&PodApi>,
    cancel: &CancellationToken,
) -> Result<Output, Fault> {
    let Some(pod_api) = pod_api else {
        return Err(Fault::Execution("no other pod can be reached from here".into()));
    };
    let HostRequest { pod, named, method } = (verb.request)(arguments, pod_api.me())?;
    let patience = match &method {
        Method::Spawn(SpawnPod { worktree, running, .. })
            if worktree.is_some() || *running != WhileRunning::Refuse =>
        {
            LONG_PATIENCE
        }
        _ => verb.patience,
    };
    let answer = tokio::select! {
        biased;
        () = cancel.cancelled() => return Err(Fault::cancelled()),
        answer = tokio::time::timeout(patience, pod_api.call(Some(&pod), method)) => answer,
    };
    match answer {
        Err(_) => Err(Fault::Execution(format!("`{named}`: {}", verb.late))),
        Ok(Err(refusal)) => Err((verb.refused)(&named, refusal)),
        Ok(Ok(event)) => (verb.tell)(&named, event)
            .ok_or_else(|| Fault::Internal("the host answered something else".into())),
    }
}

/// Why a call of this tool cannot succeed: its arguments name no Pod, or the host would refuse the
/// request, as `check` says. `None` for every other tool.
pub fn unreachable(
    tool: &str,
    arguments: &str,
    me: &PodName,
    check: impl Fn(&PodName, &Method) -> Result<(), Refusal>,
) -> Option<String> {
    let Act::Pods(verb) = crate::tools::find(tool)?.act else { return None };
    let fault = match (verb.request)(arguments, me) {
        Err(fault) => fault,
        Ok(HostRequest { pod, named, method }) => {
            (verb.refused)(&named, check(&pod, &method).err()?)
        }
    };
    Some(fault.to_string())
}

/// Turns a refusal into an error; its code determines the kind of the error.
pub fn plain(_named: &str, refusal: Refusal) -> Fault {
    match refusal.code {
        ErrorCode::InvalidRequest => Fault::Argument(refusal.message),
        ErrorCode::Internal => Fault::Internal(refusal.message),
        ErrorCode::AlreadyRunning
        | ErrorCode::NotRunning
        | ErrorCode::NotPaused
        | ErrorCode::ProviderError
        | ErrorCode::ToolError => Fault::Execution(refusal.message),
    }
}

/// The error for a name that is not that of a child or descendant.
pub fn not_spawned(name: &str) -> String {
    format!("no spawned pod named `{name}`")
}

/// The error for a message to a Pod that is stopped.
pub fn stopped(name: &str) -> String {
    format!("pod `{name}` is stopped; bring it back with RestorePod, then send again")
}

/// The error for a name without a Pod, in the wording that clients of a Pod's socket know.
pub fn missing(name: &str) -> String {
    format!("pod state missing for `{name}`")
}

/// Parses the name of a child; an invalid name is the name of no child.
fn child(name: &str) -> Result<PodName, Fault> {
    PodName::parse(name).map_err(|_| Fault::Argument(not_spawned(name)))
}

/// The name of any Pod.
fn any(name: &str) -> Result<PodName, Fault> {
    PodName::parse(name).map_err(|_| Fault::Argument(missing(name)))
}

#[cfg(test)]
mod tests;
