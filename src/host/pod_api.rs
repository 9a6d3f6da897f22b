//! The pod_api at which Pods' own tools ask: each order is carried out like a person's, in the Pod's
//! name.

use crate::client::pod_api::Request;
use crate::host::verb::carry_out;
use crate::host::{Shared, authority, supervisor};
use crate::protocol::Refusal;
use tokio::sync::mpsc;

/// Serves until the host ends; nobody waits for another one's answer.
pub(crate) async fn serve(
    shared: Shared,
    orders: mpsc::WeakSender<supervisor::Order>,
    mut requests: mpsc::Receiver<Request>,
) {
    while let Some(Request { by, pod, method, answer }) = requests.recv().await {
        let Some(orders) = orders.upgrade() else {
            // A tool that was cancelled wants no answer.
            let _ = answer.send(Err(Refusal::internal("the host is ending")));
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let result = match authority::check(&shared, &by, pod.as_ref(), method) {
                Ok(method) => carry_out(&shared, &orders, Some(by), pod, method).await,
                Err(refusal) => Err(refusal),
            };
            let _ = answer.send(result);
        });
    }
}
