//! `:split`: shows another Pod's transcript beside the current one.

use crate::verb::dialogue::or_end;
use crate::verb::targets::Target;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Split>(Verb {
    ways: SCREEN,
    more: &[
        "Shows two transcripts side by side: that of the current Pod, and that of the Pod you name. Without a name, \
         the second is the Pod that was current before. The same verb again shows one transcript.",
        "What you write goes to the current Pod. {everywhere next-pane} goes through both transcripts; a verb that \
         names no Pod is about the one in focus. If the screen is too narrow, a notice says how wide it has to be; \
         :zoom makes room.",
    ],
    ..verb("split", "show another Pod's transcript beside the current one, or hide it again")
});

#[derive(Args)]
struct Split {
    /// The Pod; without it, the one that was current before
    pod: Option<Target>,
}

impl Dialogue for Split {
    fn next(&mut self, known: &Known<'_>, _last: Option<Reply>) -> Next {
        let found = self.pod.as_ref().map(|pod| known.target(Some(pod)));
        or_end(found.transpose().map(|pod| Next::End(End::act(Action::Split(pod)))))
    }
}
