//! An approval request as the transcript shows it: first that the Pod waits, later the decision.

use crate::screen::pane::inbox::verdict_words;
use crate::theme::Role;
use serde::Deserialize as _;
use serde_json::Value;
use yoi::protocol::{ApprovalRequest, Verdict};
use yoi::text::SafeText;

/// A request, and the decision once there is one.
pub struct Approval {
    pub id: String,
    /// The tool call that waits.
    pub call_id: String,
    /// The action, in one line.
    pub line: String,
    pub verdict: Option<Verdict>,
    /// Whether the row of its call says that it waits.
    pub in_call: bool,
}

impl Approval {
    /// Reads a request; `None` if its payload has an unknown form.
    pub fn requested(payload: &Value) -> Option<Self> {
        let approval = ApprovalRequest::deserialize(payload).ok()?;
        Some(Self {
            line: SafeText::spelled(approval.line()).into_string(),
            id: approval.id,
            call_id: approval.call_id,
            verdict: None,
            in_call: false,
        })
    }

    /// The sentence in the transcript, and its role.
    pub fn sentence(&self) -> (Role, String) {
        match &self.verdict {
            None => (Role::Needs, format!("▲ waits for you: {}", self.line)),
            Some(verdict) => {
                let text = format!("waited for you: {} · {}", self.line, verdict_words(verdict));
                (role(verdict), text)
            }
        }
    }

    /// Whether it needs no row of its own.
    pub fn is_in_call(&self) -> bool {
        self.in_call && self.verdict.is_none()
    }

    pub fn bytes(&self) -> usize {
        self.id.len() + self.call_id.len() + self.line.len() + size_of::<Self>()
    }
}

/// Reads a decision: the id of its request, and the verdict.
pub fn decided(payload: &Value) -> Option<(String, Verdict)> {
    let approval = payload.get("ask")?.as_str()?.to_owned();
    Some((approval, Verdict::deserialize(payload.get("verdict")?).ok()?))
}

/// The role of a decision.
pub fn role(verdict: &Verdict) -> Role {
    match verdict {
        Verdict::Once
        | Verdict::Pod { .. }
        | Verdict::Tree { .. }
        | Verdict::Answer { .. }
        | Verdict::Withdrawn { .. } => Role::Dim,
        Verdict::Deny { .. } => Role::Warn,
    }
}
