//! Orders for several Pods at once: all are named, one question stands for them, each gets an order
//! of its own, and what came of it is said together.

use crate::app::{App, Asked, Confirm, Effect, Layer};
use crate::command::{self, Breadth, Call, Verb};
use crate::notice::Kind;
use yoi::protocol::{Event, PodName, State};

/// Orders that were given together and have not all been answered.
#[derive(Debug)]
pub struct Batch {
    verb: Verb,
    /// How many answers are still to come.
    waiting: usize,
    done: Vec<(PodName, Event)>,
    /// What went wrong, each with the name of its Pod.
    failed: Vec<String>,
}

impl App {
    /// Asks about verbs that were given for several Pods, or for Pods that were only marked.
    pub(super) fn together(&mut self, verbs: Vec<Verb>) -> Vec<Effect> {
        let mut pods = Vec::new();
        for name in verbs.iter().filter_map(Verb::pod) {
            match self.family.get(name) {
                Some(info) => pods.push(info.name.clone()),
                None => return self.say(Kind::Refused, format!("no Pod named {name}")),
            }
        }
        match verbs.first() {
            Some(Verb::Restore { breadth, step, .. }) => {
                let (breadth, step) = (*breadth, *step);
                self.plan_all(pods, breadth, step)
            }
            Some(Verb::Stop { breadth: Breadth::Tree, .. }) => self.ask_stop_trees(&pods),
            Some(Verb::Remove(_)) => self.ask_remove(&pods),
            Some(verb) => {
                let (what, enter) = question(verb, &list(&pods));
                self.ask_several(what, enter, verbs)
            }
            None => Vec::new(),
        }
    }

    pub(super) fn ask_several(
        &mut self,
        what: String,
        enter: &'static str,
        verbs: Vec<Verb>,
    ) -> Vec<Effect> {
        self.open_layer(Layer::Confirm(Confirm::Several { what, enter, verbs }))
    }

    /// Names everything below these Pods before it is stopped with them.
    pub(super) fn ask_stop_trees(&mut self, pods: &[PodName]) -> Vec<Effect> {
        let mut names: Vec<PodName> = Vec::new();
        for info in pods.iter().flat_map(|pod| self.family.subtree(pod)) {
            if info.state != State::Stopped && !names.contains(&info.name) {
                names.push(info.name.clone());
            }
        }
        let (heads, them) = (list(pods), if pods.len() > 1 { "them" } else { "it" });
        let what =
            format!("stop {} Pods, {heads} and all below {them}: {}", names.len(), list(&names));
        let stop = |pod: &PodName| Verb::Stop { pod: Some(pod.clone()), breadth: Breadth::Tree };
        self.ask_several(what, "stop them", pods.iter().map(stop).collect())
    }

    /// Deleting asks first, and only what is stopped can be deleted.
    pub(super) fn ask_remove(&mut self, pods: &[PodName]) -> Vec<Effect> {
        let mut found = Vec::new();
        for pod in pods {
            match self.family.get(pod) {
                // The host alone knows those whose records cannot be read.
                None => found.push(pod.clone()),
                Some(info) if info.state != State::Stopped => {
                    let text = format!("{pod} is live: :stop {pod} comes first");
                    return self.say(Kind::Refused, text);
                }
                Some(info) => found.push(info.name.clone()),
            }
        }
        let transcripts = if found.len() > 1 { "their transcripts" } else { "its transcript" };
        let what = format!("delete {} and {transcripts} for good?", list(&found));
        self.ask_several(what, "delete", found.into_iter().map(Verb::Remove).collect())
    }

    /// Gives the orders: one for each Pod, none waiting for another.
    pub(super) fn order(&mut self, verbs: &[Verb]) -> Vec<Effect> {
        verbs.iter().for_each(|verb| self.marks_used(verb));
        let calls: Vec<_> = verbs
            .iter()
            .filter_map(|verb| match command::call(verb, self.here()) {
                Ok(Call::Host { pod: Some(pod), method }) => Some((verb, pod, method)),
                Ok(Call::Host { pod: None, .. } | Call::Local) | Err(_) => None,
            })
            .collect();
        let alone = calls.len() < 2;
        let batch = self.batches.keys().max().map_or(0, |last| last + 1);
        if let (false, Some(verb)) = (alone, verbs.first()) {
            let (verb, waiting) = (verb.clone(), calls.len());
            let begun = Batch { verb, waiting, done: Vec::new(), failed: Vec::new() };
            self.batches.insert(batch, begun);
        }
        let token = self.request_token();
        let effect = |(verb, pod, method): (&Verb, PodName, _)| Effect::Call {
            asked: if alone {
                Asked::Verb(verb.clone(), Some(pod.clone()), token.clone())
            } else {
                Asked::Together(batch, pod.clone())
            },
            pod: Some(pod),
            method,
        };
        calls.into_iter().map(effect).collect()
    }

    /// One of the orders was answered; with the last one all of it is said.
    pub(super) fn came_back(
        &mut self,
        batch: u64,
        pod: PodName,
        reply: Result<Event, String>,
    ) -> Vec<Effect> {
        let Some(orders) = self.batches.get_mut(&batch) else { return Vec::new() };
        orders.waiting -= 1;
        match reply {
            Ok(event) => orders.done.push((pod, event)),
            Err(why) => orders.failed.push(format!("{pod}: {why}")),
        }
        if orders.waiting > 0 {
            return Vec::new();
        }
        let Some(orders) = self.batches.remove(&batch) else { return Vec::new() };
        self.tour_step();
        let kind = if orders.failed.is_empty() { Kind::Done } else { Kind::Refused };
        let mut said = orders.failed;
        if !orders.done.is_empty() {
            said.push(command::done_all(&orders.verb, &orders.done));
        }
        self.say(kind, said.join(" · "))
    }
}

/// What is asked about these Pods, and what Enter does.
fn question(verb: &Verb, pods: &str) -> (String, &'static str) {
    let (what, enter) = match verb {
        Verb::Stop { .. } => (format!("stop {pods}?"), "stop"),
        Verb::Pause(_) => (format!("pause {pods}?"), "pause"),
        Verb::Resume(_) => (format!("go on with the turns of {pods}?"), "go on"),
        Verb::Cancel(_) => (format!("drop the turns of {pods}?"), "drop"),
        Verb::Compact(_) => (format!("shorten the histories of {pods}?"), "shorten"),
        _ => (format!("do that with {pods}?"), "do that"),
    };
    (what, enter)
}

fn list(pods: &[PodName]) -> String {
    pods.iter().map(PodName::as_str).collect::<Vec<_>>().join(", ")
}
