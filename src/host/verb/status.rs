//! HostStatus: what this host is.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};

pub(crate) struct HostStatus;

impl Verb for HostStatus {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        Ok(Event::Host {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            data_dir: cx.shared.dirs.data.clone(),
            runtime_dir: cx.shared.sockets().runtime.clone(),
        })
    }
}
