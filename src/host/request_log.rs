//! The log of a request: a span around it with its method, its Pod and the requesting Pod, and
//! one line at its end. Arguments are never logged: they hold messages.

use crate::protocol::{Event, PodName, Refusal};
use std::time::Instant;
use tracing::Instrument as _;

/// Carries a request out inside its span.
pub(crate) async fn logged(
    method: &'static str,
    pod: Option<&PodName>,
    by: Option<&PodName>,
    request: impl Future<Output = Result<Event, Refusal>>,
) -> Result<Event, Refusal> {
    let (pod, by) = (pod.map(PodName::as_str), by.map(PodName::as_str));
    let span = tracing::info_span!("request", method, pod, by);
    let begun = Instant::now();
    async {
        let result = request.await;
        let ms = begun.elapsed().as_millis();
        match &result {
            Ok(_) => tracing::debug!(ms, "done"),
            Err(refusal) => tracing::info!(ms, code = ?refusal.code, "refused: {refusal}"),
        }
        result
    }
    .instrument(span)
    .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::capture;

    #[tokio::test]
    async fn the_line_of_a_request_names_method_pod_asker_and_refusal() {
        let (captured, _guard) = capture();
        let (pod, by) = (PodName::parse("bob").unwrap(), PodName::parse("alice").unwrap());
        let refused = async { Err(Refusal::invalid("no, sk-0123456789abc")) };
        assert!(logged("stop", Some(&pod), Some(&by), refused).await.is_err());
        let line = &captured.lines()[0];
        assert!(
            line.contains("request{method=stop pod=bob by=alice}: refused: no, [secret]"),
            "{line}"
        );
    }
}
