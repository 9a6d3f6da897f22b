//! `:later`: puts off what a Pod waits for.

use crate::verb::several::{Each, Several, names};
use crate::verb::targets::Target;
use crate::verb::{Dialogue, Known, Next, Reply, Safety, Verb, of, verb};
use clap::Args;
use yoi::client::family::Matter;
use yoi::protocol::{Event, Method, PodInfo, PodName};

pub static VERB: Verb = of::<Later>(Verb {
    safety: Safety::Confirms,
    more: &[
        "What the Pod waits for, or how it ended, comes last among what needs you, on every screen, until the Pod needs \
         something else. Nothing is answered by it.",
        crate::verb::help::SELECTORS,
    ],
    ..verb("later", "put off what Pods wait for: it comes last")
});

#[derive(Args)]
struct Later {
    /// The Pods; none is the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Later {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        self.several.next(known, last, &self.pods, &EachPod)
    }
}

struct EachPod;

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Later
    }

    fn fits(&self, info: &PodInfo) -> bool {
        Matter::of(info).is_some()
    }

    fn question(&self, pods: &str) -> String {
        format!("put off what {pods} wait for?")
    }

    fn enter(&self) -> &'static str {
        "put off"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        format!("{}: later", names(done))
    }
}
