//! `:notices`: lists past notices.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb =
    of::<Notices>(Verb { ways: SCREEN, ..verb("notices", "list past notices") });

#[derive(Args)]
struct Notices {}

impl Dialogue for Notices {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Notices))
    }
}
