//! `:keys`: lists the keys.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Keys>(Verb { ways: SCREEN, ..verb("keys", "list the keys") });

#[derive(Args)]
struct Keys {}

impl Dialogue for Keys {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Keys))
    }
}
