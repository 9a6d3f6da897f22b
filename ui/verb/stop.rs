//! `:stop`: stops Pods, or everything below them, too.

use crate::verb::several::{Each, confirmation, ended, holds_while, unfinished, without_effect};
use crate::verb::targets::{Meant, Target, list, meant, with_below};
use crate::verb::{Confirm, Dialogue, End, Known, Next, Reply, Request, Safety, Verb, of, verb};
use crate::wording::scope;
use clap::Args;
use std::fmt::Write as _;
use yoi::protocol::{Event, Method, PodInfo, PodName, State, StoppedPod};
use yoi::scope::Permission;

pub static VERB: Verb = of::<Stop>(Verb {
    safety: Safety::TypedOnly,
    more: &[
        "Stops the Pod: it has 5 s to finish, then yoi ends everything that it started. What was lent to it returns \
         at once. :restore brings the Pod back.",
        "With --tree, everything below it is stopped, too. Several Pods are listed and confirmed once; those that \
         could not be stopped are listed afterwards.",
        crate::verb::help::MARKS,
        crate::verb::help::SELECTORS,
        "{everywhere back} and {everywhere interrupt} only pause a run; :cancel drops it.",
    ],
    ..verb("stop", "stop Pods, or all below them too (asks for several); :restore brings them back")
});

#[derive(Args)]
struct Stop {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    /// Also stop everything below them
    #[arg(long)]
    tree: bool,
    /// Stop every Pod
    #[arg(long, conflicts_with_all = ["pods", "tree"])]
    all: bool,
    #[arg(skip)]
    meant: Meant,
}

impl Dialogue for Stop {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => self.begin(known),
            Some(Reply::Confirmed) => self.call(),
            Some(Reply::Results(results)) => {
                let end = ended(known, &self.meant.pods, results, self);
                Next::End(holds_while(&self.meant.pods, end, State::Stopped))
            }
            Some(Reply::Picked(_) | Reply::Key(_)) => Next::End(End::default()),
        }
    }

    fn confirmation_now(&self, known: &Known<'_>) -> Option<Confirm> {
        // Once it was asked for, it is about what is left.
        let names = || self.question(&self.meant.names(known));
        let question = self.confirmation(known).unwrap_or_else(names);
        Some(confirmation(&self.meant.pods, question, self.enter()))
    }
}

impl Stop {
    fn begin(&mut self, known: &Known<'_>) -> Next {
        self.meant = match self.all {
            true => Meant::by_option(live(known).cloned().collect()),
            false => match meant(known, &self.pods, |info| self.fits(info)) {
                Ok(meant) => meant,
                Err(end) => return Next::End(end),
            },
        };
        if self.meant.pods.is_empty() {
            return Next::End(End::shown("every pod is stopped already"));
        }
        let fits = |info: &PodInfo| self.tree || self.fits(info);
        if self.meant.is_confirmed(known)
            && let Some(end) = without_effect(known, &self.meant.pods, fits)
        {
            return Next::End(end);
        }
        // They are stopped in this order. A parent that is stopped first is not woken when its children stop.
        self.meant.pods.sort_by_key(|pod| known.family.depth(pod));
        match self.confirmation(known) {
            Some(_) => self.confirmation_now(known).map_or_else(|| self.call(), Next::Confirm),
            None => self.call(),
        }
    }

    /// What is asked before more is stopped than one Pod that was named.
    fn confirmation(&self, known: &Known<'_>) -> Option<String> {
        let below = self.below(known);
        if self.tree && below.len() > 1 {
            let them = if self.meant.pods.len() > 1 { "them" } else { "it" };
            let (heads, all) = (list(&self.meant.pods), list(&below));
            let count = below.len();
            let unfinished = unfinished(known, &below);
            return Some(format!(
                "stop {count} Pods, {heads} and all below {them}: {all}{unfinished}"
            ));
        }
        let question =
            || self.question(&self.meant.names(known)) + &unfinished(known, &self.meant.pods);
        self.meant.is_confirmed(known).then(question)
    }

    /// The live Pods among these and below them, each once.
    fn below(&self, known: &Known<'_>) -> Vec<PodName> {
        with_below(known, &self.meant.pods, |info| info.state != State::Stopped)
    }

    /// The live Pods below these that are not stopped with them, for the end of a sentence.
    fn going_on(&self, known: &Known<'_>) -> String {
        let mut below = self.below(known);
        below.retain(|name| !self.meant.pods.contains(name));
        match below.as_slice() {
            [] => String::new(),
            [one] => format!(" · {one} below goes on"),
            several => format!(" · {} below go on", list(several)),
        }
    }

    fn call(&self) -> Next {
        let stop = |pod: &PodName| Request::to(pod.clone(), self.method());
        Next::Call(self.meant.pods.iter().map(stop).collect())
    }
}

fn live<'a>(known: &Known<'a>) -> impl Iterator<Item = &'a PodName> {
    let live = known.family.all().iter().filter(|info| info.state != State::Stopped);
    live.map(|info| &info.name)
}

impl Each for Stop {
    fn method(&self) -> Method {
        Method::StopPods { tree: self.tree, unless_busy: false, silent: false }
    }

    fn fits(&self, info: &PodInfo) -> bool {
        !info.state.is_at_rest()
    }

    fn question(&self, pods: &str) -> String {
        format!("stop {pods}?")
    }

    fn enter(&self) -> &'static str {
        if self.tree { "stop them" } else { "stop" }
    }

    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let lists: Vec<(&PodName, &[StoppedPod])> =
            done.iter().map(|(name, reply)| (name, stopped_of(reply))).collect();
        let mut text = sentence(known, &lists);
        if !self.tree {
            text += &self.going_on(known);
        }
        text
    }
}

fn stopped_of(reply: &Event) -> &[StoppedPod] {
    match reply {
        Event::PodsStopped { stopped } => stopped,
        _ => &[],
    }
}

/// The Pods that were stopped, and which of their scope went back to which Pod; one list for each Pod that
/// was named.
fn sentence(known: &Known<'_>, lists: &[(&PodName, &[StoppedPod])]) -> String {
    // Children come first: the last is the one that was named.
    let named: Vec<_> = lists.iter().filter_map(|(_, list)| list.last()).collect();
    let named: Vec<_> = named.into_iter().map(|pod| pod.name.as_str()).collect();
    let stopped: Vec<&StoppedPod> = lists.iter().flat_map(|(_, list)| list.iter().rev()).collect();
    if stopped.is_empty() {
        let names: Vec<_> = lists.iter().map(|(name, _)| name.as_str()).collect();
        let are = if names.len() > 1 { "are" } else { "is" };
        return format!("{} {are} stopped already", names.join(", "));
    }
    let names: Vec<_> = stopped.iter().map(|pod| pod.name.as_str()).collect();
    let mut text = format!("stopped {}", names.join(", "));
    // Several Pods are stopped one after the other: an earlier one may hand over to a later one.
    let stopped_too = |name: &PodName| names.contains(&name.as_str());
    let gained = stopped.iter().flat_map(|pod| &pod.gained);
    for gained in gained.filter(|gained| !stopped_too(&gained.to)) {
        // Writing into a string cannot fail.
        let _ = write!(text, " · {} may {} now", gained.to, scope::rule(&gained.rule));
    }
    for pod in &stopped {
        // A path lent for reading was never gone from its lender.
        let mut back = pod.returned.clone();
        back.retain(|rule| rule.permission == Permission::Write);
        let lender = pod.lender.as_ref().filter(|name| !names.contains(&name.as_str()));
        let Some(lender) = lender.filter(|_| !back.is_empty()) else { continue };
        // Writing into a string cannot fail.
        let _ = write!(text, " · {lender} has {} again", scope::rules(&back));
    }
    let tree = if lists.iter().any(|(_, list)| list.len() > 1) { " --tree" } else { "" };
    let them = if stopped.len() == 1 { "it" } else { "them" };
    let restore = known.spell(&format!("restore {}{tree}", named.join(" ")));
    let _ = write!(text, " · {restore} brings {them} back");
    text
}
