//! `:send`: sends a message to a Pod.

use crate::verb::dialogue::or_end;
use crate::verb::words;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Runs, Verb, Way, Why, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodName, Segment};

pub static VERB: Verb = of::<Send>(Verb {
    runs: Runs::InTheBackground,
    more: &[
        "The text stands as it is typed: quotes in it are a part of it. A Pod that is busy gets it when \
         its run ends. A Pod that is stopped or failed is restored first.",
        "In a shell a single `-` is the text of the standard input, as in `yoi send <pod> -`; no other message \
         reads it.",
    ],
    ..verb("send", "send a message to a Pod")
});

/// The message that stands for the standard input.
pub const INPUT: &str = "-";

#[derive(Args)]
pub struct Send {
    /// The Pod
    pub pod: PodName,
    /// The message
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
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
            let text = format!("-c reads no standard input: `yoi send {} -` sends it", self.pod);
            return Err(End::refused(Why::Usage, text));
        }
        let info = known.find(&self.pod)?;
        self.target = Some(info.name.clone());
        if !info.state.can_be_restored() {
            return Ok(self.send());
        }
        self.stage = Stage::Restoring;
        Ok(Next::call(Request::to(
            info.name.clone(),
            Method::RestorePods { tree: false, plan: false },
        )))
    }

    fn pod(&self) -> &PodName {
        self.target.as_ref().unwrap_or(&self.pod)
    }

    fn send(&self) -> Next {
        let text = || vec![Segment::Text { content: self.text.join(" ") }];
        let input = self.input.clone().unwrap_or_else(text);
        Next::call(Request::to(self.pod().clone(), Method::Send { input, queue: true }))
    }

    fn answered(&mut self, event: &Event) -> Next {
        let pod = self.pod();
        let said = match &self.stage {
            Stage::Restoring => {
                self.stage = Stage::SendingToRestored(losses(event));
                return self.send();
            }
            Stage::Sending => sentence(pod, event),
            Stage::SendingToRestored(losses) => {
                format!("restored {pod}{losses} · {}", sentence(pod, event))
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

/// What is said of a message that the host accepted.
pub fn sentence(pod: &PodName, reply: &Event) -> String {
    match reply {
        Event::Accepted { queued: Some(_), .. } => {
            format!("queued for {pod}: it is sent when the run ends")
        }
        _ => format!("sent to {pod}"),
    }
}
