//! `:zoom`: shows the transcripts alone.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Zoom>(Verb {
    ways: SCREEN,
    ..verb("zoom", "show only the transcripts, in the whole width, or all panes again")
});

#[derive(Args)]
struct Zoom {}

impl Dialogue for Zoom {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Zoom))
    }
}
