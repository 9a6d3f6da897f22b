//! `:resume`: continues a paused run.

use crate::verb::several::{Each, Several, names};
use crate::verb::targets::{Meant, Target, meant, with_below};
use crate::verb::{Dialogue, End, Known, Next, Reply, Runs, Safety, Unasked, Verb, of, verb};
use crate::wording::why::WayOn;
use clap::Args;
use std::cmp::Reverse;
use yoi::protocol::{Event, Method, PodInfo, PodName, State};

pub static VERB: Verb = of::<Resume>(Verb {
    safety: Safety::Confirms,
    runs: Runs::Unattended,
    more: &[
        "Continues a run that was paused, or that the end of the host interrupted. --tree continues every paused run \
         of the Pod and of all below it, --all continues every paused run.",
        "If a provider refuses one result of a tool, the error of the run names it, and --without continues the run \
         without that result. Its text stays in the log and in a file.",
        crate::verb::help::MARKS,
        crate::verb::help::SELECTORS,
    ],
    ..verb("resume", "continue paused runs")
});

#[derive(Args)]
struct Resume {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    /// Also everything below them that is paused
    #[arg(long)]
    tree: bool,
    /// Every Pod that is paused
    #[arg(long, conflicts_with_all = ["pods", "tree"])]
    all: bool,
    /// Leave out this tool result (the end of its id): the run goes on without it
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["tree", "all"])]
    without: Option<String>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Resume {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let each = EachPod(self.without.as_deref());
        if last.is_some() {
            return self.several.next(known, last, &self.pods, &each);
        }
        match self.meant(known, &each) {
            Ok(meant) if meant.pods.is_empty() => Next::End(End::shown("no pod is paused there")),
            Ok(meant) => self.several.begin(known, meant, &each),
            Err(end) => Next::End(end),
        }
    }
}

impl Resume {
    /// The Pods that are meant, children before their parents: a parent then reads that they go on.
    fn meant(&self, known: &Known<'_>, each: &EachPod<'_>) -> Result<Meant, End> {
        let mut meant = match (self.all, self.tree) {
            (true, _) => {
                let paused = known.family.all().iter().filter(|info| is_paused(info));
                Meant::by_option(paused.map(|info| info.name.clone()).collect())
            }
            (_, true) => self.trees(known)?,
            _ => meant(known, &self.pods, |info| each.fits(info))?,
        };
        meant.pods.sort_by_key(|pod| Reverse(known.family.depth(pod)));
        Ok(meant)
    }

    /// The paused Pods among those of the line and below them, each once.
    fn trees(&self, known: &Known<'_>) -> Result<Meant, End> {
        let mut meant = meant(known, &self.pods, |_| true)?;
        meant.pods = with_below(known, &meant.pods, is_paused);
        Ok(meant)
    }
}

fn is_paused(info: &PodInfo) -> bool {
    info.state == State::Paused
}

/// With the result that the run goes on without.
struct EachPod<'a>(Option<&'a str>);

impl Each for EachPod<'_> {
    fn method(&self) -> Method {
        match self.0 {
            Some(result) => Method::LeaveOut { result: result.to_owned() },
            None => Method::Resume,
        }
    }

    fn fits(&self, info: &PodInfo) -> bool {
        WayOn::of(info).is_some() || info.retry_at.is_some()
    }

    fn question(&self, pods: &str) -> String {
        format!("continue the runs of {pods}?")
    }

    fn enter(&self) -> &'static str {
        "continue"
    }

    fn unasked(&self) -> Unasked {
        Unasked::Does
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let pods = names(done);
        if done.len() == 1 { format!("{pods} goes on") } else { format!("{pods} go on") }
    }
}
