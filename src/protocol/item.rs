//! What a model's conversation consists of, in no provider's own shape.

use crate::protocol::method::Segment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One element of a conversation, as it stands in the log (`LoggedItem` of the protocol).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    /// Text from one of the parties.
    Message { role: Role, content: Vec<Content> },
    /// The model calls a tool; `arguments` is a JSON object as text.
    ToolCall { call_id: String, name: String, arguments: String },
    /// What a tool answered. The model reads `summary`, then `content`.
    ToolResult {
        call_id: String,
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        is_error: bool,
        /// Images that belong to the result: blake3 names of files beside the log.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// The model's thinking. `signature` and `encrypted_content` are the provider's, opaque.
    Reasoning {
        #[serde(default)]
        text: String,
        #[serde(default)]
        summary: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        encrypted_content: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A kind from a newer program, or a provider's block without a counterpart; kept as it came.
    #[serde(untagged)]
    Unknown(Value),
}

/// An image kept beside the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// File name under the session's `blobs` directory (blake3, hex).
    pub blob: String,
    /// Such as `image/png`.
    pub media_type: String,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    User,
    Assistant,
    System,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    Text {
        text: String,
    },
    /// The model declined, in its own words.
    Refusal {
        refusal: String,
    },
    #[serde(untagged)]
    Unknown(Value),
}

/// The request settings that the log records; `None` leaves the provider's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestConfig {
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    #[serde(default)]
    pub stop_sequences: Vec<String>,
    /// An effort label or a token budget.
    pub reasoning: Option<Value>,
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl Item {
    /// A plain text message.
    pub fn message(role: Role, text: impl Into<String>) -> Self {
        Self::Message { role, content: vec![Content::Text { text: text.into() }] }
    }

    /// The text of a message, its pieces joined; `None` for every other item.
    pub fn text(&self) -> Option<String> {
        let Self::Message { content, .. } = self else { return None };
        Some(content.iter().map(Content::text).collect())
    }
}

impl Content {
    /// The words of this piece, empty for a kind we do not know.
    pub fn text(&self) -> &str {
        match self {
            Self::Text { text } => text,
            Self::Refusal { refusal } => refusal,
            Self::Unknown(_) => "",
        }
    }
}

/// What the model reads of a user's input: its segments as one text.
pub fn flatten(segments: &[Segment]) -> String {
    segments.iter().map(Segment::flat).collect()
}
