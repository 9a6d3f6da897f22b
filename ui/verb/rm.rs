//! `:rm`: deletes stopped Pods and their transcripts.

use crate::verb::several::{Each, confirm, ended, list, names};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Safety, Verb, Why, of, verb};
use clap::Args;
use yoi::protocol::{Event, Method, PodName};

pub static VERB: Verb = of::<Remove>(Verb {
    safety: Safety::TypedOnly,
    ..verb("rm", "delete stopped Pods and their transcripts (asks)")
});

#[derive(Args)]
struct Remove {
    /// The Pods
    #[arg(value_name = "POD", required = true)]
    pods: Vec<PodName>,
    #[arg(skip)]
    targets: Vec<PodName>,
}

impl Dialogue for Remove {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match last {
            None => self.begin(known),
            Some(Reply::Confirmed) => {
                let remove = |pod: &PodName| Request::to(pod.clone(), Method::Remove);
                Next::Call(self.targets.iter().map(remove).collect())
            }
            Some(Reply::Results(results)) => {
                let unknown = |pod: &&PodName| known.family.get(pod).is_none();
                match self.targets.iter().find(unknown) {
                    Some(pod) if results.iter().all(Result::is_err) => {
                        Next::End(known.no_such(pod.as_str()))
                    }
                    _ => Next::End(ended(known, &self.targets, results, self)),
                }
            }
            Some(Reply::Picked(_)) => Next::End(End::default()),
        }
    }
}

impl Remove {
    /// Only a stopped Pod can be deleted. A Pod whose records cannot be read is in no list, and the host
    /// deletes it all the same when it is named alone. Of several, all are known or none is deleted.
    fn begin(&mut self, known: &Known<'_>) -> Next {
        for pod in &self.pods {
            if self.pods.len() > 1
                && let Err(unknown) = known.find(pod)
            {
                return Next::End(unknown);
            }
            let info = known.family.get(pod);
            if info.is_some_and(|info| !info.state.is_at_rest()) {
                let stop = known.spell(&format!("stop {pod}"));
                let text = format!("{pod} is live: {stop} comes first");
                return Next::End(End::refused(Why::Failed, text));
            }
            let name = info.map_or(pod, |info| &info.name);
            if !self.targets.contains(name) {
                self.targets.push(name.clone());
            }
        }
        confirm(&self.targets, self.question(&list(&self.targets)), self.enter())
    }
}

impl Each for Remove {
    fn method(&self) -> Method {
        Method::Remove
    }

    fn question(&self, pods: &str) -> String {
        let their = if self.targets.len() > 1 { "their transcripts" } else { "its transcript" };
        format!("delete {pods} and {their} for good?")
    }

    fn enter(&self) -> &'static str {
        "delete"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        format!("deleted {}", names(done))
    }
}
