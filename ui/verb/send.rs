//! `:send`: sends a message to a Pod, or to an agent of the mesh in the name of the selected Pod.

use crate::verb::dialogue::or_end;
use crate::verb::several::{Each, confirm, ended, names};
use crate::verb::targets::{Target, list, meant};
use crate::verb::words;
use crate::verb::{
    Action, Dialogue, End, Known, Next, Reply, Request, Runs, Safety, Verb, Way, Why, of, verb,
};
use clap::Args;
use yoi::protocol::method::Addressees;
use yoi::protocol::{Event, Method, PodInfo, PodName, Segment, State};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Send>(Verb {
    safety: Safety::Confirms,
    runs: Runs::Unattended,
    more: &[
        "The text is sent as you type it; quotes are part of it. A Pod that is busy gets it when its run ends. A Pod \
         that is stopped or failed is restored first.",
        "A selector such as @idle or alice/** stands for all Pods that it matches: they are listed, and after a \
         confirmation each gets the message. :help stop lists the selectors.",
        "If no Pod has the name, and the selected Pod takes part in the agent mesh, the agent of that name gets the \
         message from the selected Pod, which also gets the answer.",
        "In a shell, a single `-` in place of the text stands for the standard input: `yoi send <pod> -`. Put \
         options before or after the text, and `--` before a text with words that begin with `-`.",
    ],
    ..verb("send", "send a message to a Pod or an agent")
});

/// The message that stands for the standard input.
pub const INPUT: &str = "-";

#[derive(Args)]
pub struct Send {
    /// The Pod, a selector for several, or an agent of the mesh
    pub addressee: String,
    /// The message
    #[arg(required = true, trailing_var_arg = true)]
    pub text: Vec<String>,
    /// The message when it does not come from a line.
    #[arg(skip)]
    input: Option<Vec<Segment>>,
    #[arg(skip)]
    target: Option<PodName>,
    /// The Pods that a selector found.
    #[arg(skip)]
    several: Vec<PodName>,
    #[arg(skip)]
    stage: Stage,
}

/// The request that the next reply answers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Sending,
    Restoring,
    /// To an agent of the mesh, in the name of the selected Pod.
    SendingToAgent,
    /// With what its Pod came back without.
    SendingToRestored(String),
}

impl Send {
    /// The same with a message that was read from elsewhere.
    pub fn with(self, input: Vec<Segment>) -> Self {
        Self { input: Some(input), ..self }
    }
}

/// The Pod to which a line sends a message.
pub fn addressee(line: &str) -> Option<PodName> {
    let words = words::split_unfinished(line.trim_start_matches(':'));
    let mut words = words.into_iter().map(|word| word.text);
    let pod = words.next().filter(|verb| verb == VERB.name).and(words.next())?;
    PodName::parse(&pod).ok().filter(|_| words.next().is_some_and(|text| text != INPUT))
}

impl Dialogue for Send {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else { return or_end(self.begin(known)) };
        if !self.several.is_empty() {
            return self.next_of_several(known, reply);
        }
        or_end(reply.single().map(|event| self.answered(known, &event)))
    }
}

impl Send {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        if known.way == Way::Command && self.text == [INPUT] {
            let name = SafeText::line(&self.addressee);
            let text = format!("-c reads no standard input: `yoi send {name} -` sends it");
            return Err(End::refused(Why::Usage, text));
        }
        if let Ok(target) = self.addressee.parse::<Target>()
            && target.is_selector()
        {
            return self.begin_several(known, target);
        }
        let pod = PodName::parse(&self.addressee).ok();
        let Some(info) = pod.and_then(|pod| known.family.get(&pod)) else {
            let sender = known.selected.filter(|pod| is_on_mesh(known, pod));
            let sender = sender.ok_or_else(|| self.unknown(known))?;
            self.stage = Stage::SendingToAgent;
            return Ok(self.send_to_agent(sender.clone()));
        };
        let pod = info.name.clone();
        self.target = Some(pod.clone());
        if !info.state.can_be_restored() {
            return Ok(self.send(pod));
        }
        self.stage = Stage::Restoring;
        Ok(Next::call(restore(&pod)))
    }

    /// The message goes to several Pods, which the confirmation names.
    fn begin_several(&mut self, known: &Known<'_>, target: Target) -> Result<Next, End> {
        let meant = meant(known, &[target], |info| self.fits(info))?;
        let question = self.question(&meant.names(known));
        self.several = meant.pods;
        let first = match self.stopped(known).as_slice() {
            [] => String::new(),
            [one] => format!(" {one} is restored first."),
            stopped => format!(" {} are restored first.", list(stopped)),
        };
        Ok(confirm(&self.several, question + &first, self.enter()))
    }

    fn next_of_several(&mut self, known: &Known<'_>, reply: Reply) -> Next {
        match (reply, &self.stage) {
            (Reply::Confirmed, _) => match self.stopped(known).as_slice() {
                [] => self.send_to_each(),
                stopped => {
                    self.stage = Stage::Restoring;
                    Next::Call(stopped.iter().map(restore).collect())
                }
            },
            // A Pod that did not come back refuses the message.
            (Reply::Results(_), Stage::Restoring) => {
                self.stage = Stage::Sending;
                self.send_to_each()
            }
            (Reply::Results(results), _) => Next::End(ended(known, &self.several, results, self)),
            (Reply::Picked(_) | Reply::Key(_), _) => Next::End(End::default()),
        }
    }

    /// Those among several Pods that have to be restored before they take a message.
    fn stopped(&self, known: &Known<'_>) -> Vec<PodName> {
        let info = |name: &PodName| known.family.get(name);
        let stopped = |name: &&PodName| info(name).is_some_and(|info| info.state.can_be_restored());
        self.several.iter().filter(stopped).cloned().collect()
    }

    fn send_to_each(&self) -> Next {
        let send = |pod: &PodName| Request::to(pod.clone(), self.method());
        Next::Call(self.several.iter().map(send).collect())
    }

    /// The refusal for a name that no Pod has, if the selected Pod reaches no agent.
    fn unknown(&self, known: &Known<'_>) -> End {
        let name = SafeText::line(&self.addressee);
        match known.selected {
            // A text that is not a Pod name can only be the name of an agent.
            Some(pod) if PodName::parse(&self.addressee).is_err() => End::refused(
                Why::NotThere,
                format!(
                    "there is no pod `{name}`, and {pod} reaches no agents: :mesh join has it join the mesh"
                ),
            ),
            _ => known.no_such(&name),
        }
    }

    fn send(&self, pod: PodName) -> Next {
        Next::call(Request::to(pod, self.method()))
    }

    fn send_to_agent(&self, sender: PodName) -> Next {
        let flat = |input: &Vec<Segment>| input.iter().map(Segment::flat).collect::<String>();
        let body = self.input.as_ref().map_or_else(|| self.text.join(" "), flat);
        let to = Addressees::One(self.addressee.clone());
        let method = Method::MeshSend { to, body: body.into(), re: None };
        Next::call(Request::to(sender, method))
    }

    fn answered(&mut self, known: &Known<'_>, event: &Event) -> Next {
        if let (Stage::SendingToAgent, Event::MeshSent { status, reason, .. }) =
            (&self.stage, event)
        {
            return Next::End(outcome(&self.addressee, status, reason.as_deref()));
        }
        let Some(pod) = self.target.clone() else { return Next::End(End::default()) };
        let said = match &self.stage {
            Stage::Restoring => {
                self.stage = Stage::SendingToRestored(known.worded(&losses(event), Some(&pod)));
                return self.send(pod);
            }
            Stage::Sending | Stage::SendingToAgent => sentence(&pod, event),
            Stage::SendingToRestored(losses) => {
                format!("restored {pod}{losses} · {}", sentence(&pod, event))
            }
        };
        Next::End(End::done(said))
    }
}

impl Each for Send {
    fn method(&self) -> Method {
        let text = || vec![Segment::Text { content: self.text.join(" ") }];
        Method::Send { input: self.input.clone().unwrap_or_else(text), queue: true }
    }

    fn fits(&self, info: &PodInfo) -> bool {
        info.state != State::Damaged
    }

    fn question(&self, pods: &str) -> String {
        format!("send this message to {pods}?")
    }

    fn enter(&self) -> &'static str {
        "send"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        let is_queued = |event: &Event| matches!(event, Event::Accepted { queued: Some(_), .. });
        let (queued, sent): (Vec<_>, Vec<_>) = done.iter().partition(|(_, event)| is_queued(event));
        let parts =
            [("sent to", names(sent), ""), ("queued for", names(queued), ", until their runs end")];
        let parts = parts.iter().filter(|(_, names, _)| !names.is_empty());
        parts
            .map(|(how, names, until)| format!("{how} {names}{until}"))
            .collect::<Vec<_>>()
            .join(" · ")
    }
}

fn restore(pod: &PodName) -> Request {
    Request::to(pod.clone(), Method::RestorePods { tree: false, plan: false })
}

/// What a restored Pod came back without, such as a scope that another Pod writes now.
fn losses(event: &Event) -> String {
    let Event::Plan { steps, .. } = event else { return String::new() };
    steps.iter().flat_map(|step| &step.notes).map(|note| format!(", {note}")).collect()
}

fn is_on_mesh(known: &Known<'_>, pod: &PodName) -> bool {
    known.family.get(pod).is_some_and(|info| info.mesh.is_some())
}

/// The sentence about a message to an agent.
fn outcome(agent: &str, status: &str, reason: Option<&str>) -> End {
    let agent = SafeText::line(agent);
    let why = reason.map(|reason| format!(": {}", SafeText::line(reason))).unwrap_or_default();
    match status {
        "queued" => End::done(format!("queued for {agent}{why}")),
        "received" | "sent" => End::done(format!("{agent} has the message ({status}){why}")),
        "timeout" => End::refused(
            Why::Failed,
            format!("{agent} did not acknowledge the message, which may have arrived{why}"),
        ),
        _ => {
            let text = format!("{agent} did not get the message ({status}){why}");
            End { action: Some(Action::TypeAgain), ..End::refused(Why::Failed, text) }
        }
    }
}

/// What is said of a message that the host accepted.
pub fn sentence(pod: &PodName, reply: &Event) -> String {
    match reply {
        Event::Accepted { queued: Some(_), .. } => {
            format!("queued for {pod}: it is sent when the run ends")
        }
        _ => format!("sent to {pod}"),
    }
}
