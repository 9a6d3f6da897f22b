//! ListPods: the Pods that a Pod may see, or all of the host.

use crate::host::listing;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct ListPods;

impl Verb for ListPods {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        match &cx.to {
            Some(_) => Ok(listing::of_pod(&cx.pod()?.name, &cx.shared)),
            None => Ok(listing::of_host(&cx.shared)),
        }
    }
}
