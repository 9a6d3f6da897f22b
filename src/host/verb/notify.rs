//! Notify: background text for a Pod. From a Pod it is a peer's message, under that peer's name.

use crate::host::mesh::delivery;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Method, Refusal};

pub(crate) struct Notify {
    pub(crate) message: String,
}

impl Verb for Notify {
    const ALLOWED: Caller = Caller::Peer;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let (message, pod) = (self.message, cx.pod()?);
        match &cx.by {
            Some(by) => {
                let id = delivery::tell_peer(&cx.shared, by, &pod.name, &message).await?;
                Ok(Event::Accepted { entry: None, queued: Some(id), run: None })
            }
            None => pod.call(Method::Notify { message }).await,
        }
    }
}
