//! The commands that run in the background: ListJobs and StopJob.

use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};
use crate::tools::jobs::EndedBy;

/// Those of every Pod.
pub(crate) struct ListJobs;

impl Verb for ListJobs {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let members = cx.shared.members.borrow().clone();
        let jobs = members.0.values().flat_map(|pod| pod.jobs.list(&pod.name));
        Ok(Event::Jobs { jobs: jobs.collect() })
    }
}

/// Ends one of the addressed Pod.
pub(crate) struct StopJob {
    pub(crate) id: String,
}

impl Verb for StopJob {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        let ended = pod.jobs.stop(&self.id, &pod.name, EndedBy::Person).await;
        Ok(Event::Jobs { jobs: vec![ended.map_err(Refusal::invalid)?] })
    }
}
