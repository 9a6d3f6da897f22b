//! `:quit`: leaves; the Pods go on.

use crate::verb::{Action, CONVERSATION, Dialogue, End, Known, Next, Reply, Verb, of, verb};
use clap::Args;

pub static VERB: Verb =
    of::<Quit>(Verb { ways: CONVERSATION, ..verb("quit", "leave the screen; Pods go on") });

#[derive(Args)]
struct Quit {}

impl Dialogue for Quit {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Quit))
    }
}
