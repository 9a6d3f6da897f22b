//! `:send`: sends a message to a Pod, or to an agent of the mesh in the name of the selected Pod.

use crate::verb::dialogue::or_end;
use crate::verb::words;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Runs, Verb, Way, Why, of, verb};
use clap::Args;
use yoi::protocol::method::Addressees;
use yoi::protocol::{Event, Method, PodName, Segment};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Send>(Verb {
    runs: Runs::Unattended,
    more: &[
        "The text stands as it is typed: quotes in it are a part of it. A Pod that is busy gets it when \
         its run ends. A Pod that is stopped or failed is restored first.",
        "A name that no Pod has is that of an agent of the mesh, if the selected Pod takes part there: the agent gets \
         the message from that Pod, and an answer comes to it.",
        "In a shell a single `-` is the text of the standard input, as in `yoi send <pod> -`; no other message \
         reads it. Options stand before or behind the text; a word of the text that begins with `-` stands behind `--`.",
    ],
    ..verb("send", "send a message to a Pod or an agent")
});

/// The message that stands for the standard input.
pub const INPUT: &str = "-";

#[derive(Args)]
pub struct Send {
    /// The Pod, or an agent of the mesh
    pub addressee: String,
    /// The message
    #[arg(required = true, trailing_var_arg = true)]
    pub text: Vec<String>,
    /// The message when it does not come from a line.
    #[arg(skip)]
    input: Option<Vec<Segment>>,
    #[arg(skip)]
    target: Option<PodName>,
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
        or_end(reply.single().map(|event| self.answered(&event)))
    }
}

impl Send {
    fn begin(&mut self, known: &Known<'_>) -> Result<Next, End> {
        if known.way == Way::Command && self.text == [INPUT] {
            let name = SafeText::line(&self.addressee);
            let text = format!("-c reads no standard input: `yoi send {name} -` sends it");
            return Err(End::refused(Why::Usage, text));
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
        Ok(Next::call(Request::to(pod, Method::RestorePods { tree: false, plan: false })))
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
        let text = || vec![Segment::Text { content: self.text.join(" ") }];
        let input = self.input.clone().unwrap_or_else(text);
        Next::call(Request::to(pod, Method::Send { input, queue: true }))
    }

    fn send_to_agent(&self, sender: PodName) -> Next {
        let flat = |input: &Vec<Segment>| input.iter().map(Segment::flat).collect::<String>();
        let body = self.input.as_ref().map_or_else(|| self.text.join(" "), flat);
        let to = Addressees::One(self.addressee.clone());
        let method = Method::MeshSend { to, body: body.into(), re: None };
        Next::call(Request::to(sender, method))
    }

    fn answered(&mut self, event: &Event) -> Next {
        if let (Stage::SendingToAgent, Event::MeshSent { status, reason, .. }) =
            (&self.stage, event)
        {
            return Next::End(outcome(&self.addressee, status, reason.as_deref()));
        }
        let Some(pod) = self.target.clone() else { return Next::End(End::default()) };
        let said = match &self.stage {
            Stage::Restoring => {
                self.stage = Stage::SendingToRestored(losses(event));
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
        "received" | "sent" => End::done(format!("{agent} has the message ({status}){why}")),
        "timeout" => End::refused(
            Why::Failed,
            format!("{agent} did not acknowledge the message, which may have arrived{why}"),
        ),
        _ => End::refused(Why::Failed, format!("{agent} did not get the message ({status}){why}")),
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
