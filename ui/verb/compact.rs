//! `:compact`: shortens the history.

use crate::verb::several::{Each, Several, names};
use crate::verb::targets::Target;
use crate::verb::{Dialogue, Known, Next, Reply, Runs, Safety, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodInfo, PodName, State};

pub static VERB: Verb = of::<Compact>(Verb {
    safety: Safety::Confirms,
    runs: Runs::Awaited,
    more: &[crate::verb::help::SELECTORS],
    ..verb("compact", "shorten the history now; :rewind can still go back further")
});

#[derive(Args)]
struct Compact {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Compact {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let next = self.several.next(known, last, &self.pods, &EachPod);
        self.several.holds_while(next, State::Running)
    }
}

struct EachPod;

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Compact
    }

    fn fits(&self, info: &PodInfo) -> bool {
        matches!(info.state, State::Idle | State::Failed)
    }

    fn question(&self, pods: &str) -> String {
        format!("shorten the histories of {pods}?")
    }

    fn enter(&self) -> &'static str {
        "shorten"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let pods = names(done);
        if done.len() == 1 {
            format!("compacting the history of {pods}")
        } else {
            format!("compacting the histories of {pods}")
        }
    }
}
