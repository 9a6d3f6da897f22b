//! A question to a person as the transcript shows it: that the Pod waits, and later what came of it.

use crate::pane::inbox::verdict_words;
use crate::theme::Role;
use serde::Deserialize as _;
use serde_json::Value;
use yoi::protocol::{ApprovalRequest, Verdict};
use yoi::text::SafeText;

/// What was asked, and the answer once there is one.
pub struct Approval {
    pub id: String,
    /// What is asked, in one line.
    line: String,
    pub verdict: Option<Verdict>,
}

impl Approval {
    /// Reads what was asked; `None` when it is not a question as known here.
    pub fn requested(payload: &Value) -> Option<Self> {
        let approval = ApprovalRequest::deserialize(payload).ok()?;
        Some(Self {
            line: SafeText::spelled(approval.line()).into_string(),
            id: approval.id,
            verdict: None,
        })
    }

    /// The sentence that stands in the transcript, and how it looks.
    pub fn sentence(&self) -> (Role, String) {
        match &self.verdict {
            None => (Role::Needs, format!("▲ waits for you: {}", self.line)),
            Some(verdict) => {
                let text = format!("waited for you: {} · {}", self.line, verdict_words(verdict));
                (role(verdict), text)
            }
        }
    }

    pub fn bytes(&self) -> usize {
        self.id.len() + self.line.len() + size_of::<Self>()
    }
}

/// Reads which question was answered, and how.
pub fn decided(payload: &Value) -> Option<(String, Verdict)> {
    let approval = payload.get("ask")?.as_str()?.to_owned();
    Some((approval, Verdict::deserialize(payload.get("verdict")?).ok()?))
}

/// How an answer looks.
pub fn role(verdict: &Verdict) -> Role {
    match verdict {
        Verdict::Once | Verdict::Pod { .. } | Verdict::Tree { .. } | Verdict::Withdrawn { .. } => {
            Role::Dim
        }
        Verdict::Deny { .. } => Role::Warn,
    }
}
