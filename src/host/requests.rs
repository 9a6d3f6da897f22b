//! The requests of one connection: those with small replies are begun in the order of their lines; each is run to its end
//! in a task of its own, also when its client is gone. A large reply that waits is not made for a client that is gone.

use crate::protocol::{IN_FLIGHT, MAX_LINE, Refusal};
use futures_util::FutureExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Bytes of request lines in flight on one connection: as many as the longest line has. So every line that is read can be
/// begun, but 64 of the longest are never held at once.
const LINE_BYTES: usize = MAX_LINE;
/// Requests in flight whose replies can be large (pages, whole entries). The others wait, so a
/// client that requests many and reads none costs this many replies.
const LARGE: usize = 2;

/// What of a connection is in flight. Dropping it ends [`Replies`] after the last reply.
pub(crate) struct Requests<T> {
    slots: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    large: Arc<Semaphore>,
    replies: mpsc::Sender<Reply<T>>,
}

/// The replies, in the order in which the requests end; `None` after the last one.
pub(crate) type Replies<T> = mpsc::Receiver<Reply<T>>;

/// How a request ended. Its slot is free again when this is dropped, which is after the reply was
/// written.
pub(crate) struct Reply<T> {
    pub(crate) id: Option<String>,
    pub(crate) outcome: T,
    _slot: Slot,
}

/// A request's share of what its connection may have in flight.
struct Slot {
    _request: Option<OwnedSemaphorePermit>,
    _bytes: Option<OwnedSemaphorePermit>,
    _large: Option<OwnedSemaphorePermit>,
}

/// How large a reply can get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Large,
}

impl<T: From<Refusal> + Send + 'static> Requests<T> {
    pub(crate) fn new() -> (Self, Replies<T>) {
        // A reply holds a slot, so there is always room for it.
        let (replies, written) = mpsc::channel(IN_FLIGHT);
        let requests = Self {
            slots: Arc::new(Semaphore::new(IN_FLIGHT)),
            bytes: Arc::new(Semaphore::new(LINE_BYTES)),
            large: Arc::new(Semaphore::new(LARGE)),
            replies,
        };
        (requests, written)
    }

    /// Begins the request of a line of `bytes` bytes. Waits while too much is in flight; the
    /// connection is not read on meanwhile.
    ///
    /// The first step of the request is taken here: a small one enters the queue of its Pod or of the supervisor, so small
    /// requests arrive there in the order of their lines. A large one may wait for its turn first. The rest is a task.
    pub(crate) async fn begin(
        &self,
        id: Option<String>,
        bytes: usize,
        size: Size,
        request: impl Future<Output = T> + Send + 'static,
    ) {
        let mut slot = self.slot(bytes).await;
        let (replies, large) = (self.replies.clone(), self.large.clone());
        let mut request = Box::pin(async move {
            if size == Size::Large {
                slot._large = large.acquire_owned().await.ok();
                if replies.is_closed() {
                    return;
                }
            }
            let outcome = caught(request).await.unwrap_or_else(T::from);
            // A connection that is gone wants no reply.
            let _ = replies.try_send(Reply { id, outcome, _slot: slot });
        });
        let first_step = std::future::poll_fn(|cx| Poll::Ready(request.as_mut().poll(cx)));
        // Without a budget: a step that yields instead of entering the queue would lose its place.
        if tokio::task::unconstrained(first_step).await.is_pending() {
            tokio::spawn(request);
        }
    }

    /// Replies to a line that is no request.
    pub(crate) async fn refuse(&self, id: Option<String>, refusal: Refusal) {
        self.begin(id, 0, Size::Small, std::future::ready(T::from(refusal))).await;
    }

    async fn slot(&self, bytes: usize) -> Slot {
        let bytes = u32::try_from(bytes.min(LINE_BYTES)).unwrap_or(u32::MAX);
        // These semaphores are never closed.
        Slot {
            _request: self.slots.clone().acquire_owned().await.ok(),
            _bytes: self.bytes.clone().acquire_many_owned(bytes).await.ok(),
            _large: None,
        }
    }
}

/// The outcome of a request, or a refusal if it panics.
pub(crate) async fn caught<T>(request: impl Future<Output = T>) -> Result<T, Refusal> {
    AssertUnwindSafe(request).catch_unwind().await.map_err(|_| failed())
}

/// The reply to a request that panicked.
fn failed() -> Refusal {
    Refusal::internal(
        "the host could not finish this request because of a mistake in the program; yoi.log says where",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[derive(Debug, PartialEq)]
    enum Outcome {
        Done(usize),
        Refused(String),
    }

    impl From<Refusal> for Outcome {
        fn from(refusal: Refusal) -> Self {
            Self::Refused(refusal.message)
        }
    }

    #[tokio::test]
    async fn a_request_runs_to_its_end_after_its_connection_is_gone() {
        let (requests, replies) = Requests::new();
        let (go_on, waits) = oneshot::channel::<()>();
        let (done, finished) = oneshot::channel();
        let request = async move {
            waits.await.expect("the test lets it go on");
            done.send(()).expect("the test waits");
            Outcome::Done(1)
        };
        requests.begin(None, 10, Size::Small, request).await;
        drop((requests, replies));
        go_on.send(()).expect("the request was not dropped");
        finished.await.expect("it ran to its end");
    }

    /// The queue of the Pod is full, so each request has to wait for its place in it.
    #[tokio::test]
    async fn requests_reach_a_full_queue_in_the_order_of_their_lines() {
        let (requests, _replies) = Requests::new();
        let (pod, mut inbox) = mpsc::channel(1);
        for n in 0..IN_FLIGHT {
            let pod = pod.clone();
            let request = async move {
                pod.send(n).await.expect("the pod is there");
                Outcome::Done(n)
            };
            requests.begin(None, 10, Size::Small, request).await;
        }
        for n in 0..IN_FLIGHT {
            assert_eq!(inbox.recv().await, Some(n));
        }
    }

    #[tokio::test]
    async fn no_more_than_64_requests_are_in_flight_until_a_reply_is_written() {
        let (requests, mut replies) = Requests::new();
        for n in 0..IN_FLIGHT {
            requests.begin(None, 10, Size::Small, async move { Outcome::Done(n) }).await;
        }
        let mut next =
            std::pin::pin!(requests.begin(None, 10, Size::Small, async { Outcome::Done(99) }));
        assert!(futures_util::poll!(&mut next).is_pending(), "64 replies wait to be written");
        drop(replies.recv().await.expect("a reply"));
        next.await;
    }

    #[tokio::test]
    async fn lines_in_flight_are_bounded_in_bytes() {
        let (requests, mut replies) = Requests::new();
        requests.begin(None, MAX_LINE - 10, Size::Small, async { Outcome::Done(0) }).await;
        let mut next =
            std::pin::pin!(requests.begin(None, 100, Size::Small, async { Outcome::Done(1) }));
        assert!(futures_util::poll!(&mut next).is_pending(), "10 bytes are left");
        drop(replies.recv().await.expect("a reply"));
        next.await;
    }

    #[tokio::test]
    async fn requests_with_large_replies_wait_for_one_another_and_hold_up_no_small_one() {
        let (requests, mut replies) = Requests::new();
        for n in 0..LARGE + 1 {
            requests.begin(None, 10, Size::Large, async move { Outcome::Done(n) }).await;
        }
        requests.begin(None, 10, Size::Small, async { Outcome::Done(99) }).await;
        let mut held = Vec::new();
        for n in (0..LARGE).chain([99]) {
            let reply = replies.recv().await.expect("a reply");
            assert_eq!(reply.outcome, Outcome::Done(n));
            held.push(reply);
        }
        assert!(replies.try_recv().is_err(), "the large replies are not written yet");
        held.clear();
        assert_eq!(replies.recv().await.map(|r| r.outcome), Some(Outcome::Done(LARGE)));
    }

    #[tokio::test]
    async fn a_large_reply_that_waits_is_not_made_for_a_client_that_is_gone() {
        let (requests, mut replies) = Requests::new();
        for n in 0..LARGE {
            requests.begin(None, 10, Size::Large, async move { Outcome::Done(n) }).await;
        }
        let held = replies.recv().await.expect("a reply");
        let (begun, is_begun) = oneshot::channel::<()>();
        let waits = async move {
            begun.send(()).expect("the test waits");
            Outcome::Done(99)
        };
        requests.begin(None, 10, Size::Large, waits).await;
        drop((replies, held));
        assert!(is_begun.await.is_err(), "its task ended without it");
    }

    #[tokio::test]
    async fn a_request_that_panics_is_replied_to() {
        let (requests, mut replies) = Requests::new();
        let request = async { panic!("a mistake, made on purpose by this test") };
        requests.begin(Some("q".into()), 10, Size::Small, request).await;
        let reply = replies.recv().await.expect("a reply");
        assert_eq!(reply.id.as_deref(), Some("q"));
        assert!(matches!(reply.outcome, Outcome::Refused(why) if why.contains("yoi.log")));
    }
}
