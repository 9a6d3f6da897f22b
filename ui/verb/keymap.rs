//! `:keymap`: chooses the keys.

use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Keymap>(Verb {
    ways: SCREEN,
    more: &[MORE],
    ..verb("keymap", "choose the keys of panes and pages")
});

const MORE: &str = "Without a name it lists the keymaps. vim gives panes and pages the keys of vim; the line keeps its own. \
                    keymap.toml in the configuration directory changes single keys of either; the screen reads it again \
                    when it changes, and :keys lists every key.";

#[derive(Args)]
struct Keymap {
    /// default or vim
    #[arg(value_name = "KEYMAP")]
    name: Option<String>,
}

impl Dialogue for Keymap {
    fn next(&mut self, _known: &Known<'_>, _last: Option<Reply>) -> Next {
        Next::End(End::act(Action::Keymap(self.name.clone())))
    }
}
