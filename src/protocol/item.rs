//! The items of a model's conversation, in a form of their own for all providers.

use crate::protocol::method::Segment;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One item of a conversation, as the log holds it (`LoggedItem` in the specification of the log).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Item {
    /// A message; `role` is its author.
    Message { role: Role, content: Vec<Content> },
    /// The model calls a tool; `arguments` is a JSON object as text.
    ToolCall { call_id: String, name: String, arguments: String },
    /// The result of a tool call. The model reads `summary`, then `content`.
    ToolResult {
        call_id: String,
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(default, skip_serializing_if = "is_false")]
        is_error: bool,
        /// Images of the result, kept beside the log.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
    },
    /// The model's thinking. `signature` and `encrypted_content` are opaque
    /// data of the provider, sent back unchanged.
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
    /// An item that this version cannot read, or a provider's block without a counterpart here; kept
    /// unchanged.
    #[serde(untagged)]
    Unknown(Value),
}

/// An image kept beside the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// File name under the session's `blobs` directory (blake3, hex).
    pub blob: String,
    /// The media type, such as `image/png`.
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
    /// An image that was attached to a message.
    Image(Image),
    #[serde(untagged)]
    Unknown(Value),
}

/// How much a model is to think before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
    Max,
    /// As little as the model allows.
    Off,
}

impl Effort {
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Max, Self::Off];

    /// The name in settings, on the command line and in the header.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Max => "max",
            Self::Off => "off",
        }
    }
}

/// The request settings that the log records; what is `None` is not sent, and the provider's default holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestConfig {
    pub max_tokens: Option<u64>,
    /// An effort label or a token budget.
    pub reasoning: Option<Value>,
    /// What logs of earlier releases name besides. It is kept as it is and never sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
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

    /// The images of a message or of a result.
    pub fn images(&self) -> Vec<&Image> {
        match self {
            Self::Message { content, .. } => content.iter().filter_map(Content::image).collect(),
            Self::ToolResult { images, .. } => images.iter().collect(),
            Self::ToolCall { .. } | Self::Reasoning { .. } | Self::Unknown(_) => Vec::new(),
        }
    }

    /// The text of a message, its pieces in a row; `None` for every other item.
    pub fn text(&self) -> Option<String> {
        let Self::Message { content, .. } = self else { return None };
        Some(content.iter().map(Content::text).collect())
    }
}

impl Content {
    /// The text of this piece; empty for an image and an unknown kind.
    pub fn text(&self) -> &str {
        match self {
            Self::Text { text } => text,
            Self::Refusal { refusal } => refusal,
            Self::Image(_) | Self::Unknown(_) => "",
        }
    }

    fn image(&self) -> Option<&Image> {
        match self {
            Self::Image(image) => Some(image),
            Self::Text { .. } | Self::Refusal { .. } | Self::Unknown(_) => None,
        }
    }
}

/// The segments of a user's input as the one text that the model reads.
pub fn flatten(segments: &[Segment]) -> String {
    segments.iter().map(Segment::flat).collect()
}
