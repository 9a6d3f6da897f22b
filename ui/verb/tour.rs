//! `:tour`: plays five scenes.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Tour>(Verb {
    ways: SCREEN,
    ..verb("tour", "play five scenes with a script in place of a model, in a temporary directory")
});

#[derive(Args)]
struct Tour {}

impl Dialogue for Tour {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Tour))
    }
}
