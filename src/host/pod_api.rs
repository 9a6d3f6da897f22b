//! Requests of Pods' own tools: each is carried out like a person's, in the name of the Pod.

use crate::client::pod_api::Request;
use crate::host::requests::caught;
use crate::host::verb::carry_out_for;
use crate::host::{Shared, supervisor};
use crate::protocol::Refusal;
use std::pin::pin;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Serves until the host ends. Each request runs in a task of its own.
pub(crate) async fn serve(
    shared: Shared,
    steps: mpsc::WeakSender<supervisor::Step>,
    mut requests: mpsc::Receiver<Request>,
) {
    while let Some(Request { by, pod, method, mut answer }) = requests.recv().await {
        let Some(steps) = steps.upgrade() else {
            // The tool may have been cancelled.
            let _ = answer.send(Err(Refusal::internal("the host is ending")));
            continue;
        };
        let shared = shared.clone();
        tokio::spawn(async move {
            let gone = CancellationToken::new();
            let request = carry_out_for(&shared, &steps, Some(by), pod, method, gone.clone());
            let mut request = pin!(caught(request));
            let result = tokio::select! {
                biased;
                result = &mut request => result,
                () = answer.closed() => {
                    gone.cancel();
                    request.await
                }
            };
            let _ = answer.send(result.flatten());
        });
    }
}
