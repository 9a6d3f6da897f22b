//! `:explain`: says why a Pod is in its state, what it waits for, its scope, and what its commands get.

use crate::verb::dialogue::or_end;
use crate::verb::targets::Target;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Said, Verb, of, verb};
use crate::wording::lines::Line;
use crate::wording::{command, state, why};
use clap::Args;
use yoi::protocol::{Event, Method, PodInfo, State};

pub static VERB: Verb = of::<Explain>(Verb {
    more: &[
        "Shows why the Pod is in its state. Below that it lists the files with instructions for the Pod, with their \
         age and whether one changed since the model read it.",
        "Then it shows what the next command of the Pod can use on this machine if it asks for nothing more: the \
         paths that it may write and read, the guarded paths inside them, its own directories, the names of the \
         environment variables that it gets and of those that are withheld, and its limits. The list is computed by \
         the same code that confines the command.",
    ],
    ..verb("explain", "say why a Pod is in its state, and show its scope and its limits")
});

#[derive(Args)]
struct Explain {
    /// The Pod; without it, the selected one
    pod: Option<Target>,
}

impl Dialogue for Explain {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        or_end(known.target(self.pod.as_ref()).and_then(|pod| {
            let info = known.find(&pod)?;
            Ok(match last {
                None if info.state != State::Stopped => {
                    Next::call(Request::to(pod.clone(), Method::ExplainCommand))
                }
                last => Next::End(sheet(known, info, last)),
            })
        }))
    }
}

/// The state of the Pod is known here; what its commands get may not be.
fn sheet(known: &Known<'_>, info: &PodInfo, last: Option<Reply>) -> End {
    let words = why::Known { family: known.family, now: known.now, zone: known.zone };
    let pod = Some(&info.name);
    let worded = |line: Line| Line { text: known.worded(&line.text, pod), ..line };
    let mut lines: Vec<Line> = words.explain(info).into_iter().map(worded).collect();
    lines.extend(match last {
        Some(Reply::Results(results)) => {
            results.into_iter().flat_map(commands).map(Line::from).collect()
        }
        _ => Vec::new(),
    });
    let title = format!("{}: {}", info.name, state::of_pod(info));
    End { said: Said::Text { title, lines }, ..End::default() }
}

fn commands(reply: Result<Event, yoi::protocol::Refusal>) -> Vec<(&'static str, String)> {
    match reply {
        Ok(Event::CommandSheet(sheet)) => command::sheet(&sheet),
        Ok(_) => vec![("commands", "the host did not say what they get".into())],
        Err(refusal) => vec![("commands", refusal.message)],
    }
}
