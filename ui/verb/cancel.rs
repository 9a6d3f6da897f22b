//! `:cancel`: drops a run.

use crate::verb::pause::taken_back;
use crate::verb::several::{Each, Several, names};
use crate::verb::targets::Target;
use crate::verb::{Dialogue, Known, Next, Reply, Safety, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodInfo, PodName, State};

pub static VERB: Verb = of::<Cancel>(Verb {
    safety: Safety::TypedOnly,
    more: &[crate::verb::help::SELECTORS],
    ..verb("cancel", "drop the run")
});

#[derive(Args)]
struct Cancel {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Cancel {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        self.several.next(known, last, &self.pods, &EachPod)
    }
}

struct EachPod;

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Cancel
    }

    fn fits(&self, info: &PodInfo) -> bool {
        matches!(info.state, State::Running | State::NeedsYou | State::Paused)
    }

    fn question(&self, pods: &str) -> String {
        format!("drop the runs of {pods}?")
    }

    fn enter(&self) -> &'static str {
        "drop"
    }

    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let pods = names(done);
        if let [(pod, _)] = done
            && let Some(text) = taken_back(known, pod)
        {
            text
        } else if done.len() == 1 {
            format!("dropped the run of {pods}")
        } else {
            format!("dropped the runs of {pods}")
        }
    }
}
