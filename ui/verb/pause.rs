//! `:pause`: interrupts a run so that it can continue.

use crate::verb::several::{Each, Several};
use crate::verb::targets::{Target, list};
use crate::verb::{Dialogue, Known, Next, Reply, Safety, Verb, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodInfo, PodName, RunResult, State};

pub static VERB: Verb = of::<Pause>(Verb {
    safety: Safety::Confirms,
    more: &[crate::verb::help::SELECTORS],
    ..verb("pause", "interrupt the run so that it can continue")
});

#[derive(Args)]
struct Pause {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    #[arg(skip)]
    several: Several,
    #[arg(skip)]
    each: EachPod,
}

impl Dialogue for Pause {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        if last.is_none() {
            let paused = known.family.all().iter().filter(|info| info.state == State::Paused);
            self.each.paused_before = paused.map(|info| info.name.clone()).collect();
        }
        let next = self.several.next(known, last, &self.pods, &self.each);
        self.several.holds_while(next, State::Paused)
    }
}

#[derive(Clone, Debug, Default)]
struct EachPod {
    /// The Pods that needed no pause.
    paused_before: Vec<PodName>,
}

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Pause
    }

    fn fits(&self, info: &PodInfo) -> bool {
        matches!(info.state, State::Running | State::NeedsYou)
    }

    fn question(&self, pods: &str) -> String {
        format!("pause {pods}?")
    }

    fn enter(&self) -> &'static str {
        "pause"
    }

    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let pods = done.iter().map(|(pod, _)| pod.clone());
        let (pods, others): (Vec<PodName>, Vec<_>) = pods.partition(|pod| is_paused(known, pod));
        let (before, now): (Vec<_>, Vec<_>) =
            pods.iter().cloned().partition(|pod| self.paused_before.contains(pod));
        let mut said = Vec::new();
        if !now.is_empty() {
            said.push(format!("paused {}", list(&now)));
        }
        if !before.is_empty() {
            let are = if before.len() > 1 { "are" } else { "is" };
            said.push(format!("{} {are} paused already", list(&before)));
        }
        if !pods.is_empty() {
            said.push(format!("{} continues", known.go_on(&pods)));
            said.push(format!("{} drops the run", known.spell_for("cancel", &pods)));
        }
        said.extend(others.iter().map(|pod| ended(known, pod)));
        said.join(" · ")
    }
}

/// Whether a pause left the Pod paused: a run that had just ended, or that is taken back, leaves it idle.
fn is_paused(known: &Known<'_>, pod: &PodName) -> bool {
    known.family.get(pod).is_none_or(|info| info.state != State::Idle)
}

/// What became of a run that was interrupted and is not paused now.
fn ended(known: &Known<'_>, pod: &PodName) -> String {
    taken_back(known, pod).unwrap_or_else(|| format!("{pod} had finished before"))
}

/// The sentence for a run that was taken back with its message, because no answer had begun.
pub fn taken_back(known: &Known<'_>, pod: &PodName) -> Option<String> {
    let info = known.family.get(pod).filter(|info| info.state == State::Idle)?;
    let last = info.last_result.as_ref()?;
    let is_back = last.result == RunResult::RolledBack.word();
    is_back.then(|| format!("{pod} had not begun to answer: the message was taken back"))
}
