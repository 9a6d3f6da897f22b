//! `:block`: no Pod takes messages of an agent of the mesh any more, or they do again.

use crate::verb::dialogue::or_end;
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Verb, of, verb};
use clap::Args;
use yoi::protocol::Method;
use yoi::text::SafeText;

pub static VERB: Verb = of::<Block>(Verb {
    more: &[
        "From then on no Pod of this host takes messages of this agent, and the agent is told `denied`. An agent is \
         recognised by its name, so under another name it can write again. :mesh also lists blocked agents.",
    ],
    ..verb("block", "refuse all messages of an agent of the mesh, or take them again")
});

#[derive(Args)]
struct Block {
    /// The agent, as :mesh lists it
    agent: String,
    /// Take its messages again: end the block
    #[arg(long)]
    end: bool,
}

impl Dialogue for Block {
    fn next(&mut self, _: &Known<'_>, last: Option<Reply>) -> Next {
        let Some(reply) = last else {
            let method = Method::MeshBlock { name: self.agent.clone(), end: self.end };
            return Next::call(Request::host(method));
        };
        or_end(reply.single().map(|_| {
            let name = SafeText::line(&self.agent);
            Next::End(End::done(match self.end {
                true => format!("{name} is not blocked any more"),
                false => format!("{name} is blocked: no Pod takes its messages"),
            }))
        }))
    }
}
