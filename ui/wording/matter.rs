//! What a Pod without a request is about that waits for a person, why it waits, and what can be done about it.

use crate::wording::now::again;
use crate::wording::plain::plain;
use crate::wording::state;
use yoi::client::family::inbox::Item;
use yoi::client::family::{Family, Matter};
use yoi::protocol::{GoesOnBy, PodInfo};

/// What a person can do about an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    pub does: &'static str,
    pub by: By,
}

/// What the digit of a step writes, and Enter sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    /// The line of a verb.
    Verb(String),
    /// A message to the Pod, which enters its run.
    Message(&'static str),
}

/// What a run that goes in circles is told, unless the person writes something else.
const NUDGE: &str = "You do the same again and again with the same outcome: say what blocks you, or try another way.";

/// What a person can do about an item by a digit, in the order of the digits.
pub fn steps(item: &Item<'_>) -> Vec<Step> {
    let Item::Pod(info, matter) = item else { return Vec::new() };
    let name = &info.name;
    let step = |does, line| Step { does, by: By::Verb(line) };
    let stop = || step("stop", format!("stop {name}"));
    match matter {
        Matter::Needs | Matter::Finished => Vec::new(),
        Matter::Failed => {
            let go_on = match info.goes_on_by {
                None => Some(step("go on", format!("resume {name}"))),
                Some(GoesOnBy::Restore) => Some(step("restore", format!("restore {name}"))),
                Some(_) => None,
            };
            go_on.into_iter().chain([stop()]).collect()
        }
        Matter::InCircles => vec![
            Step { does: "nudge", by: By::Message(NUDGE) },
            step("pause", format!("pause {name}")),
            stop(),
        ],
    }
}

/// Why a Pod without a request waits for a person.
pub fn why(info: &PodInfo, matter: Matter, family: &Family) -> String {
    let state = || state::of_pod(info).to_owned();
    match matter {
        Matter::InCircles => info.circling.as_ref().map_or_else(state, again),
        Matter::Failed => match info.parent.as_ref().and_then(|name| family.get(name)) {
            Some(parent) => format!("failed · its parent: {}", state::of_pod(parent)),
            None => state(),
        },
        Matter::Finished => "done, not seen".into(),
        Matter::Needs => info.why.clone().unwrap_or_else(state),
    }
}

/// What such a Pod is about: the error, the call, or the result.
pub fn about(info: &PodInfo, matter: Matter) -> Option<String> {
    match matter {
        Matter::Needs => None,
        Matter::Failed => {
            let error = info.last_result.as_ref().and_then(|run| run.error.clone());
            Some(error.or_else(|| info.why.clone()).unwrap_or_default())
        }
        Matter::InCircles => info.circling.as_ref().map(|circling| circling.call.clone()),
        Matter::Finished => info.activity.as_deref().map(plain),
    }
}
