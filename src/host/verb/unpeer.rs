//! Unpeer: two Pods are no peers any more.

use crate::host::mesh::machines::Named;
use crate::host::verb::peer::{are_peers, pair};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct Unpeer {
    pub(crate) name: String,
}

impl Verb for Unpeer {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let source = cx.to()?.clone();
        // What is said to another machine waits until it is connected again.
        let name = match cx.shared.mesh.machines.named(&self.name) {
            Named::OfAnother(..) => {
                cx.shared.end_peer(&cx.pod()?.name, &self.name).await?;
                return Ok(Event::done());
            }
            Named::OfThisMachine(name) => name.to_owned(),
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
