//! Unpeer: two Pods are no peers any more.

use crate::host::verb::peer::{are_peers, pair};
use crate::host::verb::{Caller, Cx, Verb};
use crate::mesh::machines::address;
use crate::protocol::{Event, Refusal};

pub(crate) struct Unpeer {
    pub(crate) name: String,
}

impl Verb for Unpeer {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let source = cx.to()?.clone();
        // What is said to another machine waits until it is connected again.
        let own = cx.shared.mesh.machines.own();
        let name = match address(&self.name) {
            Some((machine, agent)) if own.as_ref() == Some(&machine) => agent.to_owned(),
            Some(_) => {
                cx.shared.end_peer(&cx.pod()?.name, &self.name).await?;
                return Ok(Event::done());
            }
            None => self.name,
        };
        let ended = cx.family(move |family| {
            let (source, peer) = pair(family, &source, &name)?;
            if !are_peers(family, &source, &peer) {
                return Err(Refusal::invalid(format!("{source} and {peer} are no peers")));
            }
            family.unpeer(source, peer);
            Ok(())
        });
        ended.await?;
        crate::crash_point!("unpeer-stored");
        Ok(Event::done())
    }
}
