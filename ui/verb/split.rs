//! `:split`: shows another Pod's transcript beside the current one.

use crate::verb::dialogue::or_end;
use crate::verb::targets::Target;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Split>(Verb {
    ways: SCREEN,
    more: &[
        "Shows two transcripts side by side: the current Pod's, and that of the Pod named or, without a \
         name, of the one that was current before. Again, or with the same name, it is one.",
        "The composer speaks to the current Pod. {everywhere next-pane} goes through both; a verb that names no Pod is about \
         the one in focus. Where the screen is too narrow, it says how wide it has to be; :zoom makes room.",
    ],
    ..verb("split", "show another Pod's transcript beside the current one, or one again")
});

#[derive(Args)]
struct Split {
    /// The Pod; none is the one that was current before
    pod: Option<Target>,
}

impl Dialogue for Split {
    fn next(&mut self, known: &Known<'_>, _last: Option<Reply>) -> Next {
        let found = self.pod.as_ref().map(|pod| known.target(Some(pod)));
        or_end(found.transpose().map(|pod| Next::End(End::act(Action::Split(pod)))))
    }
}
