//! Unpeer: two Pods are no peers any more.

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
        let ended = cx.family(move |family| {
            let (source, peer) = pair(family, &source, &self.name)?;
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
