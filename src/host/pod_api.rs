//! The pod_api at which Pods' own tools ask: each order is carried out like a person's, in the Pod's
//! name.

use crate::client::pod_api::Request;
use crate::host::verb::carry_out;
use crate::host::{Shared, supervisor};
use crate::protocol::Refusal;
use tokio::sync::mpsc;

/// Serves until the host ends; nobody waits for another one's answer.
pub(crate) async fn serve(
    shared: Shared,
    orders: mpsc::WeakSender<supervisor::Step>,
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
            let result = carry_out(&shared, &orders, Some(by), pod, method).await;
            let _ = answer.send(result);
        });
    }
}
