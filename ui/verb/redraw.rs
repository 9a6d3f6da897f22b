//! `:redraw`: paints the screen anew.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Redraw>(Verb { ways: SCREEN, ..verb("redraw", "redraw the screen") });

#[derive(Args)]
struct Redraw {}

impl Dialogue for Redraw {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Redraw))
    }
}
