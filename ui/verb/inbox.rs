//! `:inbox`: goes to the requests that wait for you, or lists them without a screen.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Inbox>(Verb {
    more: &[
        "Shows what waits for you as a card, the oldest first; behind it come the Pods that failed, the runs that go in circles, \
         and what finished and was not looked at. {inbox allow-once} allows once, {inbox allow-each} \
         each of several equal ones once, {inbox allow-pod} always for that Pod, {inbox allow-tree} for it and its \
         children, {inbox deny} denies with a reason \
         that the model reads.",
        "A key counts only after the request has been in front of you, unchanged, for a moment. \
         {inbox look-inside} shows the transcript of the Pod and never allows, and the mouse never answers. After an \
         answer the next card comes without the keys: {everywhere next-needs-you} gives them to it.",
        "Of a question, {inbox allow-once} opens the line for your answer, a digit does so with that choice in it, and \
         {line choose} sends it; {inbox deny} declines.",
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
