//! `:theme`: chooses the colours.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb =
    of::<Theme>(Verb { ways: SCREEN, more: &[MORE], ..verb("theme", "choose the colours") });

const MORE: &str = "Without a name it lists the themes. auto is night or day, to match the background of the terminal. A file \
                    themes/<name>.toml in the configuration directory changes single roles of a theme, or is one of your \
                    own; the screen reads it again when it changes.";

#[derive(Args)]
struct Theme {
    /// auto, night, day, high-contrast, terminal, mono or one of your own
    #[arg(value_name = "THEME")]
    name: Option<String>,
}

impl Dialogue for Theme {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Theme(self.name.clone())))
    }
}
