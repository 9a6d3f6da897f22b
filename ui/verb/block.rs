//! `:block`: no Pod takes messages of an agent of the mesh any more, or they do again.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::mesh::machines::MachineName;
use yoi::protocol::{Event, Method};
use yoi::text::SafeText;

pub static VERB: Verb = of::<Block>(Verb {
    more: &[
        "From then on no Pod of this host accepts messages from this agent, and the agent reads `denied`. yoi \
         recognises an agent by its name, so under another name it can write again. The name of another machine with a \
         colon, as in casa:, blocks all of its agents. :mesh also lists what is blocked.",
    ],
    ..verb("block", "refuse all messages from an agent of the mesh, or accept them again")
});

#[derive(Args)]
struct Block {
    /// The agent, as :mesh lists it, or a machine as in casa:
    agent: String,
    /// Unblock: accept its messages again
    #[arg(long)]
    end: bool,
}

impl Dialogue for Block {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            let method = Method::MeshBlock { name: self.agent.clone(), end: self.end };
            return Next::call(Request::host(method));
        };
        or_end(reply.single().map(|event| {
            let name = SafeText::line(&self.agent);
            Next::End(End::done(match (self.end, self.agent.strip_suffix(':')) {
                (true, _) => {
                    let still = match &event {
                        Event::Mesh(view) => still_blocked(&self.agent, &view.blocked),
                        _ => String::new(),
                    };
                    format!("{name} is no longer blocked{still}")
                }
                (false, None) => {
                    let other =
                        known.family.machine().is_some() && MachineName::parse(&self.agent).is_ok();
                    let machine = if other { " · a machine is blocked with a colon" } else { "" };
                    format!("{name} is blocked: no Pod accepts its messages{machine}")
                }
                (false, Some(machine)) => {
                    let machine = SafeText::line(machine);
                    format!(
                        "the machine {machine} is blocked: no Pod accepts messages of its agents"
                    )
                }
            }))
        }))
    }
}

/// Names that are shown of those that are still blocked.
const NAMED: usize = 3;

/// What else a person blocked that concerns an agent or a machine whose block has ended: its machine, an agent of the
/// machine's name, or agents of the machine.
fn still_blocked(ended: &str, blocked: &[String]) -> String {
    let machine = ended.split(':').next().unwrap_or_default();
    let is_machine = ended.ends_with(':');
    let concerns = |name: &&String| match name.strip_prefix(machine) {
        Some("") => is_machine,
        Some(":") => true,
        Some(agent) => is_machine && agent.starts_with(':'),
        None => false,
    };
    let mut still = blocked.iter().filter(concerns).map(|name| SafeText::line(name).to_string());
    let named: Vec<String> = still.by_ref().take(NAMED).collect();
    let more = match still.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    match named.as_slice() {
        [] => String::new(),
        [one] => format!(" · {one} still is"),
        some => format!(" · {}{more} still are", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_block_names_what_still_holds_of_the_machine_and_the_agent() {
        let blocked = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let still = |ended: &str, names: &[&str]| still_blocked(ended, &blocked(names));
        assert_eq!(still("casa", &["casa2:", "trab:", "pi"]), "");
        assert_eq!(still("casa", &["casa:", "casa:bob"]), " · casa: still is");
        assert_eq!(still("casa:bob", &["casa", "casa:"]), " · casa: still is");
        assert_eq!(still("casa:", &["casa", "casa:bob", "casa2"]), " · casa, casa:bob still are");
        let many = ["casa:a", "casa:b", "casa:c", "casa:d", "casa:e"];
        assert_eq!(still("casa:", &many), " · casa:a, casa:b, casa:c and 2 more still are");
    }
}
