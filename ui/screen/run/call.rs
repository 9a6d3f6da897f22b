//! Calls to the host from a loop that must not wait for their replies.

use futures_util::FutureExt as _;
use tokio::sync::mpsc;
use yoi::client::Client;
use yoi::protocol::{Event, Method, PodName, Refusal};

/// Begins a call before it returns, so that requests reach the host in the order of these calls. A
/// task waits for the reply and sends the message that is made of it.
pub fn begin<M: Send + 'static>(
    client: &Client,
    (pod, method): (Option<PodName>, Method),
    sender: &mpsc::Sender<M>,
    message: impl FnOnce(Result<Event, Refusal>) -> M + Send + 'static,
) {
    let (client, sender) = (client.clone(), sender.clone());
    let mut call = Box::pin(async move { client.call(pod.as_ref(), method).await });
    let early = (&mut call).now_or_never();
    tokio::spawn(async move {
        let reply = match early {
            Some(reply) => reply,
            None => call.await,
        };
        // The receiver is gone when the dashboard has been left; then the reply is not needed.
        let _ = sender.send(message(reply)).await;
    });
}
