//! Stopping Pods after they are named, and bringing them back after it is known what that does.

use crate::app::{App, Asked, Confirm, Effect, Layer, RequestToken};
use crate::command::done::step_line;
use crate::command::{Breadth, Step, Verb};
use crate::notice::Kind;
use yoi::protocol::{Method, PlanStep, PodName, Restoring, State};

/// Pods that are to come back, and what is known of how they would.
#[derive(Clone, Debug, PartialEq)]
pub struct Planning {
    pub pods: Vec<PodName>,
    pub breadth: Breadth,
    pub step: Step,
    token: RequestToken,
    /// How many of them have been asked about.
    known: usize,
    steps: Vec<PlanStep>,
}

impl App {
    /// Stops one Pod at once; more than one only after all were named.
    pub(super) fn stop(&mut self, pod: Option<&PodName>, breadth: Breadth) -> Vec<Effect> {
        let Some(pod) = self.meant(pod) else {
            return self.say(Kind::Refused, "no Pod is selected: name one, or :open it first");
        };
        let subtree = self.family.subtree(&pod).into_iter();
        let live = subtree.filter(|info| info.state != State::Stopped).count();
        if breadth == Breadth::One || live < 2 {
            return self.order(&[Verb::Stop { pod: Some(pod), breadth }]);
        }
        self.ask_stop_trees(&[pod])
    }

    /// The Pod a verb means: the one it names, else the selected one.
    pub(super) fn meant(&self, pod: Option<&PodName>) -> Option<PodName> {
        pod.or(self.selected()).cloned()
    }

    /// Asks what bringing a Pod back would do; what follows depends on that.
    pub(super) fn plan(
        &mut self,
        pod: Option<&PodName>,
        breadth: Breadth,
        step: Step,
    ) -> Vec<Effect> {
        match self.meant(pod) {
            Some(pod) => self.plan_all(vec![pod], breadth, step),
            None => self.say(Kind::Refused, "which Pod? :restore <pod>"),
        }
    }

    /// Asks what bringing these Pods back would do, one after the other.
    pub(super) fn plan_all(
        &mut self,
        pods: Vec<PodName>,
        breadth: Breadth,
        step: Step,
    ) -> Vec<Effect> {
        let token = self.request_token();
        self.plan_next(Planning { pods, breadth, step, token, known: 0, steps: Vec::new() })
    }

    fn plan_next(&mut self, planning: Planning) -> Vec<Effect> {
        let Some(pod) = planning.pods.get(planning.known).cloned() else {
            return self.plan_known(planning);
        };
        let tree = planning.breadth == Breadth::Tree;
        let method = Method::RestorePods { tree, plan: true };
        vec![Effect::Call { pod: Some(pod), method, asked: Asked::Plan(planning) }]
    }

    /// What would become of one of the Pods is known.
    pub(super) fn planned(&mut self, mut planning: Planning, steps: Vec<PlanStep>) -> Vec<Effect> {
        for step in steps {
            if !planning.steps.iter().any(|known| known.name == step.name) {
                planning.steps.push(step);
            }
        }
        planning.known += 1;
        self.plan_next(planning)
    }

    /// One of several Pods cannot come back: it is said, and the others go on.
    pub(super) fn not_planned(&mut self, mut planning: Planning, why: &str) -> Vec<Effect> {
        let pod = planning.pods.remove(planning.known);
        self.say(Kind::Refused, format!("{pod}: {why}"));
        self.plan_next(planning)
    }

    /// The plan is known: it is carried out when there is nothing to know about it.
    fn plan_known(&mut self, planning: Planning) -> Vec<Effect> {
        let Planning { pods, breadth, step, steps, token, .. } = planning;
        let lines = || steps.iter().map(|step| step_line(step, false)).collect::<Vec<_>>();
        if pods.is_empty() {
            return Vec::new();
        }
        if step == Step::Show {
            let sheet = self.sheet("plan: nothing is done yet", &lines());
            let verb = restore_line(&pods, breadth);
            let late = format!("the plan is ready: {verb} --plan shows it");
            return self.open_for_reply(&token, sheet, late);
        }
        let impossible = |step: &PlanStep| step.what == Restoring::Impossible;
        if !steps.is_empty() && steps.iter().all(impossible) {
            return self.say(Kind::Refused, lines().join(" · "));
        }
        if pods.len() == 1 && steps.iter().all(is_trivial) {
            return self.restore_now(pods, breadth);
        }
        let verb = restore_line(&pods, breadth);
        let late = format!("not restored: {verb} shows what it does and asks");
        let confirm = Confirm::Restore { pods, breadth, steps };
        self.open_for_reply(&token, Layer::Confirm(confirm), late)
    }

    pub(super) fn restore_now(&mut self, pods: Vec<PodName>, breadth: Breadth) -> Vec<Effect> {
        let verb = |pod| Verb::Restore { pod: Some(pod), breadth, step: Step::Do };
        let verbs: Vec<Verb> = pods.into_iter().map(verb).collect();
        self.order(&verbs)
    }
}

/// The line that brings these Pods back, as it is typed.
fn restore_line(pods: &[PodName], breadth: Breadth) -> String {
    let names = pods.iter().map(PodName::as_str).collect::<Vec<_>>().join(" ");
    let tree = if breadth == Breadth::Tree { " --tree" } else { "" };
    format!(":restore {names}{tree}")
}

/// Whether a Pod comes back with everything it had and nothing that was cut off.
fn is_trivial(step: &PlanStep) -> bool {
    let plain = match step.what {
        Restoring::AlreadyLive | Restoring::Idle | Restoring::StaysStopped => true,
        Restoring::Paused | Restoring::Impossible => false,
    };
    plain && step.notes.is_empty()
}
