//! The state of a call's paths on the disk before it starts.

use crate::run::batch::Call;
use crate::tools::{self, CommandNeeds, PathThreads, Touch};

/// The state of a call's paths on the disk before it starts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen {
    /// A call without a path.
    Plain,
    Path(Touch),
    Command(CommandNeeds),
}

impl Seen {
    pub(super) fn of(call: &Call, ctx: &tools::Context) -> Self {
        if call.name == "Bash" {
            return Self::Command(tools::command_needs(&call.arguments, ctx));
        }
        tools::touched(&call.name, &call.arguments, ctx).map_or(Self::Plain, Self::Path)
    }

    /// Why no approval can grant the needs of the call.
    pub(super) fn closed(&self) -> Option<&str> {
        match self {
            Self::Plain => None,
            Self::Path(touch) => touch.closed.as_deref(),
            Self::Command(command) => command.closed.as_deref(),
        }
    }

    /// Why the call fails even if it is allowed.
    pub(super) fn fails(&self) -> Option<String> {
        match self {
            Self::Path(touch) => touch.fails.clone(),
            Self::Plain | Self::Command(_) => None,
        }
    }
}

/// The state of a call's paths, or the error that prevented reading it.
pub(super) type Looked = Result<Seen, String>;

/// Examines each call separately, so that a panic for one call affects no other.
pub(super) async fn look(
    calls: &[Call],
    threads: &PathThreads,
    see: impl Fn(&Call) -> Seen + Clone + Send + 'static,
) -> Vec<Looked> {
    let looking = calls.iter().cloned().map(|call| {
        let see = see.clone();
        threads.run(move || see(&call))
    });
    let looked = futures_util::future::join_all(looking).await;
    let not_started = |why| format!("not started: {why}");
    looked.into_iter().map(|seen| seen.map_err(not_started)).collect()
}
