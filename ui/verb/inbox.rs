//! `:inbox`: lists what waits for you.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Inbox>(Verb {
    more: &[
        "Lists what waits for you, oldest first; then Pods that failed, runs that go in circles, and finished work \
         that you have not looked at. {page choose} on a row opens its card and gives it the keys; {everywhere \
         next-needs-you} does this for the first card.",
        "On the card of a request, {inbox allow-once} allows it once, {inbox allow-each} allows all equal requests \
         once, {inbox allow-pod} allows such calls of this Pod from now on, {inbox allow-tree} also those of its \
         children, and {inbox deny} denies it with a reason that the model reads.",
        "A key counts only after the request has been in front of you, unchanged, for a moment. {inbox look-inside} \
         shows the transcript of the Pod and never allows anything, and the mouse never answers. After an answer the \
         next card appears but does not get the keys: {everywhere next-needs-you} gives them to it.",
        "On the card of a question, {inbox allow-once} opens the line for your answer, a digit opens it with that \
         choice, and {line choose} sends it; {inbox deny} declines to answer.",
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
