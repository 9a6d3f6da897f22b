//! What of a Pod is for a person to see to, apart from its requests.

use crate::protocol::{PodInfo, State};

/// Why a Pod without a request is shown to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matter {
    /// It needs a person, for example because a key is missing.
    Needs,
    Failed,
    InCircles,
    /// Its run ended, and the result was not looked at.
    Finished,
}

impl Matter {
    /// The matter of a Pod; `None` where there is nothing to see to.
    pub fn of(info: &PodInfo) -> Option<Self> {
        match info.state {
            State::NeedsYou => Some(Self::Needs),
            State::Failed => Some(Self::Failed),
            State::Running => info.circling.is_some().then_some(Self::InCircles),
            State::Idle => info.unseen.then_some(Self::Finished),
            State::Paused | State::Stopped | State::Damaged | State::Unknown => None,
        }
    }
}
