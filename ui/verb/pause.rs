//! `:pause`: interrupts a run so that it can continue.

use crate::verb::several::{Each, Several, list};
use crate::verb::{Dialogue, Known, Next, Reply, Runs, Safety, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodName};

pub static VERB: Verb = of::<Pause>(Verb {
    safety: Safety::Confirms,
    runs: Runs::Nothing,
    ..verb("pause", "interrupt the run so that it can continue")
});

#[derive(Args)]
struct Pause {
    /// The Pods; none is the selected one
    #[arg(value_name = "POD")]
    pods: Vec<PodName>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Pause {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        self.several.next(known, last, &self.pods, &EachPod)
    }
}

struct EachPod;

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Pause
    }

    fn question(&self, pods: &str) -> String {
        format!("pause {pods}?")
    }

    fn enter(&self) -> &'static str {
        "pause"
    }

    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let pods: Vec<PodName> = done.iter().map(|(pod, _)| pod.clone()).collect();
        let (go_on, drop) = (known.go_on(&pods), known.spell("cancel"));
        format!("paused {} · {go_on} goes on · {drop} drops the turn", list(&pods))
    }
}
