//! `:resume`: continues a paused run.

use crate::verb::several::{Each, Several, names, targets};
use crate::verb::{Dialogue, End, Known, Next, Reply, Runs, Safety, Unasked, Verb, of, verb};
use clap::Args;
use std::cmp::Reverse;
use yoi::protocol::{Event, Method, PodInfo, PodName, State};

pub static VERB: Verb = of::<Resume>(Verb {
    safety: Safety::Confirms,
    runs: Runs::Unattended,
    more: &[
        "Continues a run that was paused, or that the end of the host interrupted.",
        "--without leaves out one result of a tool that the provider refuses; the error of the run names it. The log \
         and a file keep its text.",
        "--tree continues every paused run of the Pod and all below it, --all every one there is.",
        crate::verb::help::MARKS,
    ],
    ..verb("resume", "continue paused runs")
});

#[derive(Args)]
struct Resume {
    /// The Pods; none is the selected one
    #[arg(value_name = "POD")]
    pods: Vec<PodName>,
    /// Everything below them that is paused, too
    #[arg(long)]
    tree: bool,
    /// Every Pod that is paused
    #[arg(long, conflicts_with_all = ["pods", "tree"])]
    all: bool,
    /// The end of the id of a tool's result: the run goes on without it
    #[arg(long, value_name = "RESULT", conflicts_with_all = ["tree", "all"])]
    without: Option<String>,
    #[arg(skip)]
    several: Several,
}

impl Dialogue for Resume {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        if last.is_some() || !(self.tree || self.all) {
            return self.several.next(known, last, &self.pods, &EachPod(self.without.as_deref()));
        }
        let paused = match self.paused(known) {
            Ok(paused) => paused,
            Err(end) => return Next::End(end),
        };
        if paused.is_empty() {
            return Next::End(End::shown("no pod is paused there"));
        }
        self.several.begin(known, paused, &EachPod(None))
    }
}

impl Resume {
    /// The paused Pods that are meant, children before their parents: a parent then reads that they go on.
    fn paused(&self, known: &Known<'_>) -> Result<Vec<PodName>, End> {
        let mut all: Vec<&PodInfo> = if self.all {
            known.family.all().iter().collect()
        } else {
            let heads = targets(known, &self.pods)?;
            heads.iter().flat_map(|pod| known.family.subtree(pod)).collect()
        };
        all.retain(|info| info.state == State::Paused);
        all.sort_by_key(|info| Reverse(known.family.lineage(info).len()));
        let mut names: Vec<PodName> = Vec::new();
        for info in all {
            if !names.contains(&info.name) {
                names.push(info.name.clone());
            }
        }
        Ok(names)
    }
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
