//! `:inbox`: goes to the requests that wait for you, or lists them without a screen.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Inbox>(Verb {
    more: &[
        "Goes to what waits for you. a allows once, A from now on for that Pod, T for everything below it \
         too, D denies with a reason that the model reads.",
        "A key counts only after the request has been in front of you, unchanged, for a moment. Enter \
         never allows, and the mouse never answers.",
    ],
    ..verb("inbox", "go to what waits for you")
});

#[derive(Args)]
struct Inbox {}

impl Dialogue for Inbox {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Inbox))
    }
}
