//! `:block`: no Pod takes messages of an agent of the mesh any more, or they do again.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::mesh::machines::MachineName;
use yoi::protocol::Method;
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
        or_end(reply.single().map(|_| {
            let name = SafeText::line(&self.agent);
            Next::End(End::done(match (self.end, self.agent.strip_suffix(':')) {
                (true, _) => format!("{name} is no longer blocked"),
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
