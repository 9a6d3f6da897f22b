//! `:queue`: keeps what is written for the end of the run.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Queue>(Verb {
    ways: SCREEN,
    more: &[
        "A message that is written while its Pod runs enters the run before the next model request. The queue is for \
         one that has to wait: it is sent when the run ends. {composer queue} at the end of the text does the same.",
    ],
    ..verb("queue", "send what is written when the run ends, not into the run")
});

#[derive(Args)]
struct Queue {}

impl Dialogue for Queue {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Queue))
    }
}
