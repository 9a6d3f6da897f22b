//! `:pin`: keeps a Pod in a slot.

use crate::verb::dialogue::or_end;
use crate::verb::targets::Target;
use crate::verb::{Action, Dialogue, End, Known, Next, Reply, SCREEN, Verb, of, verb};
use clap::Args;

pub static VERB: Verb = of::<Pin>(Verb {
    ways: SCREEN,
    more: &[
        "Pins a Pod to a slot from 1 to 9. The key of the slot then goes to the Pod, in the tree and after the leader \
         key. The same slot again unpins it. {tree pin} and the key of a slot do the same for the row of the tree.",
        "The key of a slot without a Pod goes to that row of the tree. Pins are stored with the screen of this \
         workspace.",
    ],
    ..verb("pin", "pin a Pod to a slot, or unpin it; without a slot: list the pins")
});

#[derive(Args)]
struct Pin {
    /// The slot
    #[arg(value_name = "1-9", value_parser = digit)]
    slot: Option<u8>,
    /// The Pod; without it, the selected one
    pod: Option<Target>,
}

fn digit(text: &str) -> Result<u8, String> {
    let slot = text.parse().ok().filter(|slot| (1..=9).contains(slot));
    slot.ok_or_else(|| format!("`{text}` is no slot: they are 1 to 9"))
}

impl Dialogue for Pin {
    fn next(&mut self, known: &Known<'_>, _last: Option<Reply>) -> Next {
        let Some(slot) = self.slot else {
            return Next::End(End::act(Action::Pin { slot: None, pod: None }));
        };
        or_end(
            known
                .target(self.pod.as_ref())
                .map(|pod| Next::End(End::act(Action::Pin { slot: Some(slot), pod: Some(pod) }))),
        )
    }
}
