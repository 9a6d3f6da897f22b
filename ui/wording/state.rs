//! The words for the states of a Pod.

use yoi::protocol::{LastRun, PodInfo, State};

/// The word for a state.
pub fn of(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::NeedsYou => "needs you",
        State::Paused => "paused",
        State::Idle => "idle",
        State::Stopped => "stopped",
        State::Failed => "failed",
        State::Damaged => "damaged",
        State::Unknown => "unknown",
    }
}

/// How a run ended, in words.
pub fn of_end(run: &LastRun) -> String {
    run.result.replace('_', " ")
}

/// The word for the state of a Pod; an idle Pod whose result has not been seen is *done*.
pub fn of_pod(info: &PodInfo) -> &'static str {
    match info.state {
        State::Idle if info.unseen => "done",
        state => of(state),
    }
}

/// How many commands of a Pod run in the background, in words; `None` if none does.
pub fn in_background(info: &PodInfo) -> Option<String> {
    match info.jobs {
        0 => None,
        1 => Some("1 command in the background".into()),
        more => Some(format!("{more} commands in the background")),
    }
}
