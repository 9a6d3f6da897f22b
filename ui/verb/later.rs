//! `:later`: puts off what a Pod waits for.

use crate::verb::decision::is_named;
use crate::verb::several::{Each, Several, names};
use crate::verb::targets::{Target, meant};
use crate::verb::{Dialogue, End, Known, Next, Reply, Request, Safety, Verb, Why, of, verb};
use clap::Args;
use yoi::client::family::Matter;
use yoi::protocol::{ApprovalRequest, Event, Method, PodInfo, PodName};

pub static VERB: Verb = of::<Later>(Verb {
    safety: Safety::Confirms,
    more: &[
        "Moves the card of the Pod to the end of the inbox, on every screen, until the Pod needs something else. \
         This decides nothing.",
        "To put off the request of an MCP client or of an agent, name it by the end of its id, which :inbox shows.",
        crate::verb::help::SELECTORS,
    ],
    ..verb("later", "move the cards of Pods to the end of the inbox")
});

#[derive(Args)]
struct Later {
    /// The Pods; without any, the selected one
    #[arg(value_name = "POD")]
    pods: Vec<Target>,
    #[arg(skip)]
    several: Several,
    /// The client or agent whose request is put off.
    #[arg(skip)]
    client: Option<String>,
}

impl Dialogue for Later {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        if let Some(client) = &self.client {
            let results = match last {
                Some(Reply::Results(results)) => results,
                Some(Reply::Confirmed | Reply::Picked(_) | Reply::Key(_)) | None => Vec::new(),
            };
            let refused = results.into_iter().find_map(Result::err);
            let done = || End::done(format!("{client}: later"));
            let refused = refused.map(|refusal| End::refused(Why::Failed, refusal.message));
            return Next::End(refused.unwrap_or_else(done));
        }
        if let Some(request) = self.request_of_client(known) {
            self.client = Some(request.asker());
            let method = Method::PutOff { approval: request.id.clone() };
            return Next::Call(vec![Request::host(method)]);
        }
        match last {
            None => match meant(known, &self.pods, |info| EachPod.fits(info)) {
                Ok(meant) => match idle_among(known, &meant.pods) {
                    Some(pod) => {
                        let text = format!("{pod} waits for nothing that could be put off");
                        Next::End(End::refused(Why::NotThere, text))
                    }
                    None => self.several.begin(known, meant, &EachPod),
                },
                Err(end) => Next::End(end),
            },
            last => self.several.next(known, last, &self.pods, &EachPod),
        }
    }
}

impl Later {
    /// The request of a client or an agent that the only word names, where it names no Pod.
    fn request_of_client<'a>(&self, known: &Known<'a>) -> Option<&'a ApprovalRequest> {
        let [Target::Pod(name)] = self.pods.as_slice() else { return None };
        let of_client =
            |request: &&ApprovalRequest| !request.is_of_pod() && is_named(request, name.as_str());
        let is_pod = known.family.get(name).is_some();
        known.family.approvals().iter().find(of_client).filter(|_| !is_pod)
    }
}

/// The first of these Pods for which the inbox holds nothing.
fn idle_among<'a>(known: &Known<'_>, pods: &'a [PodName]) -> Option<&'a PodName> {
    let waits = |pod: &PodName| {
        let has_request = known.family.approvals().iter().any(|request| request.is_of(pod));
        has_request || known.family.get(pod).is_some_and(|info| EachPod.fits(info))
    };
    pods.iter().find(|pod| !waits(pod))
}

struct EachPod;

impl Each for EachPod {
    fn method(&self) -> Method {
        Method::Later
    }

    fn fits(&self, info: &PodInfo) -> bool {
        Matter::of(info).is_some()
    }

    fn needs_fit(&self) -> bool {
        false
    }

    fn question(&self, pods: &str) -> String {
        format!("put off what {pods} wait for?")
    }

    fn enter(&self) -> &'static str {
        "put off"
    }

    fn said(&self, _known: &Known<'_>, done: &[(PodName, Event)]) -> String {
        format!("{}: later", names(done))
    }
}
