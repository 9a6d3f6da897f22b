//! `:theme`: chooses the colours.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Theme>(Verb { ways: SCREEN, ..verb("theme", "choose the colours") });

#[derive(Args)]
struct Theme {
    /// night, day, mono or one of your own
    #[arg(value_name = "THEME")]
    name: String,
}

impl Dialogue for Theme {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Theme(self.name.clone())))
    }
}
