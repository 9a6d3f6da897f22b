//! `:restore`: brings stopped Pods back, after it is known what that does.

use crate::verb::targets::{Meant, Target, list, meant};
use crate::verb::{
    Confirm, Dialogue, End, Known, Next, Reply, Request, Safety, Said, Unasked, Verb, Way, Why, of,
    verb,
};
use crate::wording::moved;
use clap::Args;
use std::path::PathBuf;
use std::slice::from_ref;
use yoi::protocol::{ClientKind, Event, Method, PlanStep, PodInfo, PodName, Refusal, Restoring};

pub static VERB: Verb = of::<Restore>(Verb {
    safety: Safety::TypedOnly,
    client: ClientKind::Lasting,
    more: &[
        "Brings a stopped Pod back with its history, configuration, scope and peers. Nothing is run or sent: a run \
         that was interrupted waits for :resume, and a tool call that was interrupted is not repeated.",
        "If the Pod cannot come back with everything it had, a plan says so first and waits for {line choose}. \
         --plan only shows the plan. --tree also brings back everything below. Several Pods have one plan. Without a \
         screen the plan is carried out at once, and what could not come back is listed.",
        "If the directory of a Pod was moved, --cwd names its new place. From then on the Pod and its whole family \
         work there, with their scopes and leases. If you type the verb in a shell in that directory, yoi finds it \
         by itself.",
        crate::verb::help::MARKS,
        crate::verb::help::SELECTORS,
    ],
    ..verb("restore", "bring stopped Pods back; nothing is run or sent again")
});

#[derive(Args)]
struct Restore {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    /// Only say what would happen
    #[arg(long)]
    plan: bool,
    /// Also bring back everything below them
    #[arg(long)]
    tree: bool,
    /// The new place of a directory that was moved
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    #[arg(skip)]
    meant: Meant,
    /// What was done before the restore.
    #[arg(skip)]
    said: Vec<String>,
    /// Pods of which the host refused even the plan, with its reason.
    #[arg(skip)]
    refused: Vec<String>,
    #[arg(skip)]
    stage: Stage,
}

/// The request that the next reply answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Planning,
    /// A family follows its directory first.
    Relocating,
    CarryingOut,
}

impl Dialogue for Restore {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match (last, self.stage) {
            (None, _) => match meant(known, &self.pods, |info| self.fits(info)) {
                Ok(meant) => {
                    self.meant = meant;
                    self.relocate_or_plan(known)
                }
                Err(end) => Next::End(end),
            },
            (Some(Reply::Results(results)), Stage::Planning) => self.planned(known, results),
            (Some(Reply::Results(results)), Stage::Relocating) => self.relocated(results),
            (Some(Reply::Confirmed), _) => self.carry_out(),
            (Some(Reply::Results(results)), Stage::CarryingOut) => {
                Next::End(self.done(known, results))
            }
            (Some(Reply::Picked(_) | Reply::Key(_)), _) => Next::End(End::default()),
        }
    }
}

impl Restore {
    /// With `--tree`, a live Pod is meant for those below it.
    fn fits(&self, info: &PodInfo) -> bool {
        self.tree || info.state.can_be_restored()
    }

    /// A Pod whose directory was moved follows it before it comes back.
    fn relocate_or_plan(&mut self, known: &Known<'_>) -> Next {
        let found = match (&self.cwd, self.meant.pods.as_slice()) {
            (None, [pod]) if known.way == Way::Shell => {
                known.family.get(pod).and_then(|info| moved::around(info, known.cwd))
            }
            (None, _) => None,
            (Some(dir), [_]) => Some(known.cwd.join(dir)),
            (Some(_), _) => {
                let text = "--cwd is for one pod; its family follows it";
                return Next::End(End::refused(Why::Usage, text));
            }
        };
        let Some((cwd, pod)) = found.zip(self.meant.pods.first()) else { return self.call(true) };
        self.stage = Stage::Relocating;
        Next::call(Request::to(pod.clone(), Method::Relocate { cwd }))
    }

    fn relocated(&mut self, results: Vec<Result<Event, Refusal>>) -> Next {
        for result in results {
            match result {
                Ok(event) => self.said.extend(moved::sentence(&event)),
                // Where the place was found and not named, the restore itself may succeed.
                Err(_) if self.cwd.is_none() => {}
                Err(refusal) => return Next::End(End::refused(Why::Failed, refusal.message)),
            }
        }
        self.stage = Stage::Planning;
        self.call(true)
    }

    fn call(&self, plan: bool) -> Next {
        let method = Method::RestorePods { tree: self.tree, plan };
        let to = |pod: &PodName| Request::to(pod.clone(), method.clone());
        Next::Call(self.meant.pods.iter().map(to).collect())
    }

    fn carry_out(&mut self) -> Next {
        self.stage = Stage::CarryingOut;
        self.call(false)
    }

    /// The plans are known. A plan without losses is carried out at once.
    fn planned(&mut self, known: &Known<'_>, results: Vec<Result<Event, Refusal>>) -> Next {
        let steps = self.take_plans(results);
        if self.meant.pods.is_empty() {
            return Next::End(End::refused(Why::Failed, self.refused.join(" · ")));
        }
        if self.plan {
            let lines = steps.iter().map(|step| ("", line(step)).into()).collect();
            let title = format!("plan for {}: nothing is done yet", list(&self.meant.pods));
            return Next::End(End { said: Said::Text { title, lines }, ..End::default() });
        }
        // The host itself says why a Pod cannot come back.
        let hopeless = steps.iter().all(|step| step.what == Restoring::Impossible);
        if hopeless || !self.meant.is_confirmed(known) && steps.iter().all(is_trivial) {
            return self.carry_out();
        }
        let question = steps.iter().map(line).collect::<Vec<_>>().join("\n");
        let about = self.meant.pods.clone();
        Next::Confirm(Confirm { question, about, enter: "do that", unasked: Unasked::Does })
    }

    /// The steps of all plans, each Pod once. A Pod that has no plan is left out, and its reason kept.
    fn take_plans(&mut self, results: Vec<Result<Event, Refusal>>) -> Vec<PlanStep> {
        let pods = std::mem::take(&mut self.meant.pods);
        let alone = pods.len() == 1;
        let named = pods.clone();
        let mut steps: Vec<PlanStep> = Vec::new();
        for (pod, result) in pods.into_iter().zip(results) {
            match result {
                Ok(event) => {
                    let new = plan_of(event).into_iter();
                    for step in new {
                        // The plan of a Pod does not know that one below it is named, too.
                        let has_own_plan = step.what == Restoring::StaysStopped
                            && step.name != pod
                            && named.contains(&step.name);
                        if !has_own_plan && !steps.iter().any(|known| known.name == step.name) {
                            steps.push(step);
                        }
                    }
                    self.meant.pods.push(pod);
                }
                Err(refusal) if alone => self.refused.push(refusal.message),
                Err(refusal) => self.refused.push(format!("{pod}: {}", refusal.message)),
            }
        }
        steps
    }

    fn done(&mut self, known: &Known<'_>, results: Vec<Result<Event, Refusal>>) -> End {
        let steps = self.take_plans(results);
        let complete = self.refused.is_empty();
        let mut said = std::mem::take(&mut self.said);
        said.append(&mut self.refused);
        if !steps.is_empty() {
            said.push(sentence(known, &steps));
        }
        let text = said.join(" · ");
        if complete { End::done(text) } else { End::refused(Why::Failed, text) }
    }
}

fn plan_of(event: Event) -> Vec<PlanStep> {
    match event {
        Event::Plan { steps, .. } => steps,
        _ => Vec::new(),
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

/// What a restore did, in one sentence.
fn sentence(known: &Known<'_>, steps: &[PlanStep]) -> String {
    let names = |what: Restoring| {
        let those = steps.iter().filter(|step| step.what == what);
        those.map(|step| step.name.as_str()).collect::<Vec<_>>()
    };
    let idle = names(Restoring::Idle);
    let mut said = Vec::new();
    match idle.as_slice() {
        [] => {}
        [one] => said.push(format!("{one} is back; nothing was run or sent again")),
        more => said.push(format!("{} are back; nothing was run or sent again", more.join(", "))),
    }
    let cut_off = steps.iter().filter(|step| step.what == Restoring::Paused);
    said.extend(cut_off.map(|PlanStep { name, .. }| {
        let resume = known.spell_for("resume", from_ref(name));
        format!("{name} is back, paused; {resume} continues")
    }));
    if said.is_empty() {
        said.extend(names(Restoring::AlreadyLive).first().map(|n| format!("{n} is live already")));
    }
    let impossible = steps.iter().filter(|step| step.what == Restoring::Impossible);
    said.extend(impossible.map(line));
    let back = |step: &&PlanStep| step.what != Restoring::Impossible;
    for step in steps.iter().filter(back).filter(|step| !step.notes.is_empty()) {
        said.push(format!("{}: {}", step.name, step.notes.join(" · ")));
    }
    match names(Restoring::StaysStopped).len() {
        0 => {}
        1 => said.push("one below stays stopped".into()),
        many => said.push(format!("{many} below stay stopped")),
    }
    said.join(" · ")
}

/// What becomes of one Pod, in a line.
pub fn line(step: &PlanStep) -> String {
    let will = match step.what {
        Restoring::AlreadyLive => "is live already",
        Restoring::Idle => "comes back idle",
        Restoring::Paused => "comes back paused",
        Restoring::StaysStopped => "stays stopped",
        Restoring::Impossible => "cannot come back",
    };
    let notes: String = step.notes.iter().map(|note| format!(" · {note}")).collect();
    format!("{} {will}{notes}", step.name)
}
