//! How a Pod's own tools reach the host: the requests that a person makes, in the Pod's name and
//! under its authority.

use crate::protocol::{Event, Method, PodName, Refusal};
use tokio::sync::{mpsc, oneshot};

/// Requests of Pods that wait for the host; when so many do, the next tool waits.
pub const WAITING: usize = 64;

/// A Pod's handle to its host; cheap to clone.
#[derive(Clone, Debug)]
pub struct PodApi {
    me: PodName,
    requests: mpsc::Sender<Request>,
}

/// A request of a Pod.
#[derive(Debug)]
pub struct Request {
    /// The Pod that makes the request.
    pub by: PodName,
    /// The addressed Pod; `None` is the host.
    pub pod: Option<PodName>,
    pub method: Method,
    pub answer: oneshot::Sender<Result<Event, Refusal>>,
}

impl PodApi {
    /// A handle for this Pod over the host's inbox.
    pub fn new(me: PodName, requests: mpsc::Sender<Request>) -> Self {
        Self { me, requests }
    }

    /// The Pod that this handle belongs to.
    pub fn me(&self) -> &PodName {
        &self.me
    }

    /// Sends a request and waits for its one reply.
    pub async fn call(&self, pod: Option<&PodName>, method: Method) -> Result<Event, Refusal> {
        let ending = || Refusal::internal("the host is ending");
        let (answer, reply) = oneshot::channel();
        let request = Request { by: self.me.clone(), pod: pod.cloned(), method, answer };
        self.requests.send(request).await.map_err(|_| ending())?;
        reply.await.map_err(|_| ending())?
    }
}
