//! `:inbox`: lists what waits for you.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Inbox>(Verb {
    more: &[
        "Lists what waits for you, the oldest first; behind it come the Pods that failed, the runs that go in circles, and what \
         finished and was not looked at. {page choose} gives the keys to the card of a row, {everywhere next-needs-you} to that \
         of the first. On a card {inbox allow-once} allows once, {inbox allow-each} \
         each of several equal ones once, {inbox allow-pod} always for that Pod, {inbox allow-tree} for it and its \
         children, {inbox deny} denies with a reason \
         that the model reads.",
        "A key counts only after the request has been in front of you, unchanged, for a moment. \
         {inbox look-inside} shows the transcript of the Pod and never allows, and the mouse never answers. After an \
         answer the next card comes without the keys: {everywhere next-needs-you} gives them to it.",
        "Of a question, {inbox allow-once} opens the line for your answer, a digit does so with that choice in it, and \
         {line choose} sends it; {inbox deny} declines.",
    ],
    ..verb("inbox", "list what waits for you")
});

#[derive(Args)]
struct Inbox {}

impl Dialogue for Inbox {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Inbox))
    }
}
