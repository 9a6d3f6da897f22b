//! `:resume`: continues a paused run.

use crate::verb::several::{Each, Several, names};
use crate::verb::{Dialogue, Known, Next, Reply, Runs, Safety, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodName};

pub static VERB: Verb = of::<Resume>(Verb {
    safety: Safety::Confirms,
    runs: Runs::InTheBackground,
    ..verb("resume", "continue a paused run")
});

#[derive(Args)]
struct Resume {
    /// The Pods; none is the selected one
    #[arg(value_name = "POD")]
    pods: Vec<PodName>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Resume {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        self.several.next(known, last, &self.pods, &EachPod)
    }
}

struct EachPod;

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Resume
    }

    fn question(&self, pods: &str) -> String {
        format!("continue the runs of {pods}?")
    }

    fn enter(&self) -> &'static str {
        "continue"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let pods = names(done);
        if done.len() == 1 { format!("{pods} goes on") } else { format!("{pods} go on") }
    }
}
