//! Stopping Pods after they are named, and bringing them back after it is known what that does.

use crate::app::{App, Ask, Asked, Effect, Overlay};
use crate::command::done::step_line;
use crate::command::{Breadth, Step, Verb};
use crate::notice::Kind;
use yoi::protocol::{Method, PlanStep, PodName, Restoring, State};

impl App {
    /// Stops one Pod at once; more than one only after all were named.
    pub(super) fn stop(&mut self, pod: Option<&PodName>, breadth: Breadth) -> Vec<Effect> {
        let Some(pod) = self.meant(pod) else {
            return self.say(Kind::Refused, "no Pod is selected: name one, or :open it first");
        };
        let live = self.family.subtree(&pod).into_iter().filter(|i| i.state != State::Stopped);
        let names: Vec<PodName> = live.map(|info| info.name.clone()).collect();
        if breadth == Breadth::One || names.len() < 2 {
            return self.stop_now(pod, breadth);
        }
        self.overlay = Some(Overlay::Ask(Ask::StopTree { pod, names }));
        Vec::new()
    }

    pub(super) fn stop_now(&mut self, pod: PodName, breadth: Breadth) -> Vec<Effect> {
        let method = Method::StopPods { tree: breadth == Breadth::Tree };
        let verb = Verb::Stop { pod: Some(pod.clone()), breadth };
        vec![Effect::Call { asked: Asked::Verb(verb, Some(pod.clone())), pod: Some(pod), method }]
    }

    /// The Pod a verb means: the one it names, else the selected one.
    fn meant(&self, pod: Option<&PodName>) -> Option<PodName> {
        pod.or(self.selected()).cloned()
    }

    /// Asks what bringing a Pod back would do; what follows depends on that.
    pub(super) fn plan(
        &mut self,
        pod: Option<&PodName>,
        breadth: Breadth,
        step: Step,
    ) -> Vec<Effect> {
        let Some(pod) = self.meant(pod) else {
            return self.say(Kind::Refused, "which Pod? :restore <pod>");
        };
        let method = Method::RestorePods { tree: breadth == Breadth::Tree, plan: true };
        let asked = Asked::Plan { pod: pod.clone(), breadth, step };
        vec![Effect::Call { pod: Some(pod), method, asked }]
    }

    /// The plan is known: it is carried out when there is nothing to know about it.
    pub(super) fn planned(
        &mut self,
        pod: PodName,
        breadth: Breadth,
        step: Step,
        steps: Vec<PlanStep>,
    ) -> Vec<Effect> {
        if step == Step::Show {
            let lines: Vec<String> = steps.iter().map(|step| step_line(step, false)).collect();
            return self.open_sheet("plan: nothing is done yet", &lines);
        }
        let impossible = |step: &PlanStep| step.what == Restoring::Impossible;
        if !steps.is_empty() && steps.iter().all(impossible) {
            let lines: Vec<String> = steps.iter().map(|step| step_line(step, false)).collect();
            return self.say(Kind::Refused, lines.join(" · "));
        }
        if steps.iter().all(is_trivial) {
            return self.restore_now(pod, breadth);
        }
        self.overlay = Some(Overlay::Ask(Ask::Restore { pod, breadth, steps }));
        Vec::new()
    }

    pub(super) fn restore_now(&mut self, pod: PodName, breadth: Breadth) -> Vec<Effect> {
        let method = Method::RestorePods { tree: breadth == Breadth::Tree, plan: false };
        let verb = Verb::Restore { pod: Some(pod.clone()), breadth, step: Step::Do };
        vec![Effect::Call { asked: Asked::Verb(verb, Some(pod.clone())), pod: Some(pod), method }]
    }
}

/// Whether a Pod comes back with everything it had and nothing that was cut off.
fn is_trivial(step: &PlanStep) -> bool {
    let plain = match step.what {
        Restoring::AlreadyLive | Restoring::Idle | Restoring::StaysStopped => true,
        Restoring::Paused | Restoring::Impossible => false,
    };
    plain && step.notes.is_empty()
}
