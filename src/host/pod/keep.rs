//! An ephemeral Pod becomes an ordinary one when a person uses it.

use crate::host::pod::Pod;
use crate::host::{Answer, ephemeral};
use crate::protocol::{Method, Refusal};

impl Pod {
    /// Makes an ephemeral Pod ordinary before a person uses it; a refusal is answered here.
    pub(super) async fn keep_before(&mut self, method: &Method, answer: Answer) -> Option<Answer> {
        if !self.row.ephemeral || !self.is_use(method) {
            return Some(answer);
        }
        match self.shared.store.keep_pods(&self.row.name).await {
            Ok(mut kept) => {
                self.is_kept();
                kept.retain(|name| *name != self.row.name);
                let shared = self.shared.clone();
                tokio::spawn(async move { ephemeral::tell(&shared, kept).await });
                Some(answer)
            }
            Err(error) => {
                // A caller that is gone wants no answer.
                let _ = answer.send(Err(Refusal::from(error)));
                None
            }
        }
    }

    /// Whether a person's request goes on with the Pod. Its first message is its task.
    fn is_use(&self, method: &Method) -> bool {
        match method {
            Method::Send { .. } => self.row.segment.is_some(),
            Method::Open { .. }
            | Method::Resume
            | Method::LeaveOut { .. }
            | Method::Compact
            | Method::Rewind { .. }
            | Method::SetModel { .. }
            | Method::SetEffort { .. } => true,
            _ => false,
        }
    }

    pub(super) fn is_kept(&mut self) {
        self.row.ephemeral = false;
        self.change(|info| info.ephemeral = false);
    }
}
