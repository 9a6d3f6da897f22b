//! The dialogue of verbs that take several Pods: one confirmation names all, each gets a request of its
//! own, and one sentence reports all results.

use crate::verb::targets::{Meant, Target, meant};
use crate::verb::{Confirm, End, Known, Next, Reply, Request, Unasked, Why};
use crate::wording::state;
use yoi::protocol::{Event, HEAD_CHANGED, Method, PodInfo, PodName, Refusal, State};

/// The parts that differ from verb to verb.
pub trait Each {
    /// The request that each Pod gets.
    fn method(&self) -> Method;
    /// Whether a selector means a Pod in this state; one that is named is meant in any.
    fn fits(&self, info: &PodInfo) -> bool;
    /// Whether it does nothing to a Pod in any other state.
    fn needs_fit(&self) -> bool {
        true
    }
    /// The text of the confirmation for several, marked or selected Pods.
    fn question(&self, pods: &str) -> String;
    /// The effect of Enter in the confirmation.
    fn enter(&self) -> &'static str;
    /// What happens to the confirmation without a screen.
    fn unasked(&self) -> Unasked {
        Unasked::Asking
    }
    /// The sentence about the Pods for which it succeeded.
    fn said(&self, known: &Known<'_>, done: &[(PodName, Event)]) -> String;
}

/// How far the dialogue has come.
#[derive(Clone, Debug, Default)]
pub struct Several {
    pods: Vec<PodName>,
}

impl Several {
    /// The next step for these Pods.
    pub fn next(
        &mut self,
        known: &Known<'_>,
        last: Option<Reply>,
        targets: &[Target],
        each: &dyn Each,
    ) -> Next {
        match last {
            None => match meant(known, targets, |info| each.fits(info)) {
                Err(end) => Next::End(end),
                Ok(meant) => self.begin(known, meant, each),
            },
            Some(Reply::Confirmed) => self.call(each.method()),
            Some(Reply::Results(results)) => Next::End(ended(known, &self.pods, results, each)),
            Some(Reply::Picked(_) | Reply::Key(_)) => Next::End(End::default()),
        }
    }

    /// The first step for these Pods.
    pub fn begin(&mut self, known: &Known<'_>, meant: Meant, each: &dyn Each) -> Next {
        let question = each.question(&meant.names(known));
        let is_confirmed = meant.is_confirmed(known);
        self.pods = meant.pods;
        if is_confirmed {
            let does = |info: &PodInfo| each.fits(info) || !each.needs_fit();
            if let Some(end) = without_effect(known, &self.pods, does) {
                return Next::End(end);
            }
            let (about, enter, unasked) = (self.pods.clone(), each.enter(), each.unasked());
            return Next::Confirm(Confirm { question, about, enter, unasked });
        }
        self.call(each.method())
    }

    /// The same step; what it says of the only Pod holds while that Pod is in this state.
    pub fn holds_while(&self, next: Next, state: State) -> Next {
        match next {
            Next::End(end) => Next::End(holds_while(&self.pods, end, state)),
            next => next,
        }
    }

    /// Whether the Pods are known: the next reply is about them.
    pub fn has_begun(&self) -> bool {
        !self.pods.is_empty()
    }

    fn call(&self, method: Method) -> Next {
        let to = |pod: &PodName| Request::to(pod.clone(), method.clone());
        Next::Call(self.pods.iter().map(to).collect())
    }
}

/// The end of a verb whose sentence about the only Pod holds while that Pod is in this state.
pub fn holds_while(pods: &[PodName], end: End, state: State) -> End {
    match pods {
        [pod] => end.while_in(pod.clone(), state),
        _ => end,
    }
}

/// The end of a verb that would do nothing to any of these Pods: no confirmation asks about that.
pub fn without_effect(
    known: &Known<'_>,
    pods: &[PodName],
    fits: impl Fn(&PodInfo) -> bool,
) -> Option<End> {
    let infos: Vec<_> = pods.iter().filter_map(|pod| known.family.get(pod)).collect();
    let state = |info: &&PodInfo| format!("{} ({})", info.name, state::of_pod(info));
    let states = || infos.iter().map(state).collect::<Vec<_>>().join(", ");
    let text = || format!("nothing to do: {}", states());
    (!infos.iter().any(|info| fits(info))).then(|| End::refused(Why::NotThere, text()))
}

/// A confirmation about these Pods.
pub fn confirm(about: &[PodName], question: String, enter: &'static str) -> Next {
    Next::Confirm(confirmation(about, question, enter))
}

/// The same confirmation alone.
pub fn confirmation(about: &[PodName], question: String, enter: &'static str) -> Confirm {
    Confirm { question, about: about.to_vec(), enter, unasked: Unasked::Asking }
}

/// What of these Pods is not finished: their runs, and the messages that wait for one; a line for each, below a question.
pub fn unfinished(known: &Known<'_>, pods: &[PodName]) -> String {
    let infos = || pods.iter().filter_map(|pod| known.family.get(pod));
    let works =
        |info: &&PodInfo| matches!(info.state, State::Running | State::NeedsYou | State::Paused);
    let runs = infos().filter(works).map(|info| info.name.to_string()).collect::<Vec<_>>();
    let queued = infos().filter(|info| !info.queue.is_empty());
    let queued = queued.map(|info| format!("{} ({})", info.name, info.queue.len()));
    let lines = [("not finished", runs), ("with queued messages", queued.collect())];
    let lines = lines.into_iter().filter(|(_, pods)| !pods.is_empty());
    lines.map(|(what, pods)| format!("\n{what}: {}", pods.join(", "))).collect()
}

/// The sentence for all results: first what failed, each with its Pod, then what was done.
pub fn ended(
    known: &Known<'_>,
    pods: &[PodName],
    results: Vec<Result<Event, Refusal>>,
    each: &dyn Each,
) -> End {
    let (mut done, mut failed) = (Vec::new(), Vec::new());
    for (pod, result) in pods.iter().zip(results) {
        match result {
            Ok(event) => done.push((pod.clone(), event)),
            Err(refusal) => failed.push(match for_person(&refusal, Some(pod)) {
                Some(text) => text,
                None if pods.len() == 1 => refusal.message,
                None => format!("{pod}: {}", refusal.message),
            }),
        }
    }
    if failed.is_empty() {
        return End::done(each.said(known, &done));
    }
    if !done.is_empty() {
        failed.push(each.said(known, &done));
    }
    End::refused(Why::Failed, failed.join(" · "))
}

/// What a person reads in place of a refusal whose text programs compare, so that it names no Pod and no way out.
pub fn for_person(refusal: &Refusal, pod: Option<&PodName>) -> Option<String> {
    let name = pod.map_or("the Pod", PodName::as_str);
    if *refusal == Refusal::not_running() {
        return Some(format!("{name} is not running"));
    }
    if *refusal == Refusal::not_paused() {
        return Some(format!("{name} is not paused: a message begins a run"));
    }
    if refusal.message.starts_with(HEAD_CHANGED) {
        return Some(format!(
            "{name} went on since its messages were listed: nothing was taken back"
        ));
    }
    let pause = pod.map_or_else(|| ":pause".to_owned(), |pod| format!(":pause {pod}"));
    let running = || format!("{name} is running: {pause} ends its run, or wait for the end");
    (*refusal == Refusal::already_running()).then(running)
}

/// The Pods of results.
pub fn names<'a>(done: impl IntoIterator<Item = &'a (PodName, Event)>) -> String {
    done.into_iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}
