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
         its run ends.",
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
        let Some(reply) = last else {
            if known.way == Way::Command && self.text == [INPUT] {
                let text =
                    format!("-c reads no standard input: `yoi send {} -` sends it", self.pod);
                return Next::End(End::refused(Why::Usage, text));
            }
            return or_end(known.find(&self.pod).map(|info| {
                self.target = Some(info.name.clone());
                let text = || vec![Segment::Text { content: self.text.join(" ") }];
                let input = self.input.clone().unwrap_or_else(text);
                Next::call(Request::to(info.name.clone(), Method::Send { input, queue: true }))
            }));
        };
        let pod = self.target.as_ref().unwrap_or(&self.pod);
        or_end(reply.single().map(|event| Next::End(End::done(sentence(pod, &event)))))
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
