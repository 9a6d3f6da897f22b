//! `:queue`: keeps what is written for the end of the run.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Queue>(Verb {
    ways: SCREEN,
    more: &[
        "A message that you send while its Pod runs enters the run before the next model request. A queued message \
         is sent when the run ends. {composer queue} at the end of the text queues it, too.",
    ],
    ..verb("queue", "send the message when the run ends, instead of into the run")
});

#[derive(Args)]
struct Queue {}

impl Dialogue for Queue {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Queue))
    }
}
