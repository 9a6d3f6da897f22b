//! `:open`: goes to a Pod.

use crate::verb::dialogue::or_end;
use crate::verb::targets::{Target, one};
use crate::verb::{Action, CONVERSATION, Dialogue, End, Known, Next, Reply, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Open>(Verb { ways: CONVERSATION, ..verb("open", "go to a Pod") });

#[derive(Args)]
struct Open {
    /// The Pod
    pod: Target,
}

impl Dialogue for Open {
    fn next(&mut self, known: &Known<'_>, _last: Option<Reply>) -> Next {
        let found = one(known, &self.pod);
        or_end(found.map(|info| Next::End(End::act(Action::GoTo(info.name.clone())))))
    }
}
