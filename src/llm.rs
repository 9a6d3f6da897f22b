//! Model providers: one request out, one stream of deltas in. Each wire is one module that
//! knows only its own JSON; the scripted model is one more.

use crate::protocol::entry::Kept;
use crate::protocol::{Item, RequestConfig};
use futures_util::Stream;
use serde_json::Value;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

pub mod adjust;
pub mod anthropic;
pub mod calls;
pub mod cause;
pub mod chat;
pub mod effort;
pub mod gate;
pub mod gemini;
pub mod http;
pub mod json;
pub mod messages;
pub mod outgoing;
pub mod provider;
pub mod refused;
pub mod rehearsal;
pub mod responses;
pub mod retry;
pub mod sse;
pub mod trial;
pub mod wire;

#[cfg(test)]
pub(crate) mod bench;
#[cfg(test)]
mod faults;
#[cfg(test)]
pub(crate) mod tests;

pub use http::{Http, Timeouts, install_crypto};
pub use provider::{Key, Provider};
pub use retry::Policy;

/// A tool as a model is told about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub schema: Value,
}

/// One element of the conversation to send, shared with the history in which it stands: a request copies no text.
/// The provider's own block is sent verbatim when `origin` is the model asked now; to any other only text
/// and tool calls are sent.
pub type Input = Arc<Kept>;

/// One request: everything a provider needs to answer, in no provider's own shape.
#[derive(Clone, Debug)]
pub struct Request {
    pub system: Arc<str>,
    pub input: Vec<Input>,
    pub tools: Vec<ToolSpec>,
    pub config: RequestConfig,
    /// The conversation that the request goes on with.
    pub conversation: String,
    /// About how many tokens the provider counts for all that stands above, rather too many than too few.
    pub tokens: u64,
    /// Where the images of tool results lie (file name = `Image::blob`).
    pub blobs: PathBuf,
}

/// A piece of the answer, in the order the model produced it.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    Text(String),
    ThinkingStart,
    Thinking(String),
    ToolCallStart {
        id: String,
        name: String,
    },
    /// A raw fragment of the call's JSON arguments.
    ToolCallArgs {
        id: String,
        json: String,
    },
    /// A block has ended: the item to commit and the provider's own form of it. Its text is the
    /// whole, not the rest. Tool call arguments are the text that came, `{}` when there was none; a
    /// text that is no JSON object is kept, and its call is not run.
    Block {
        item: Item,
        native: Option<Value>,
        /// The reply ended within this block: the provider did not say that it is complete.
        cut: bool,
    },
    /// So many bytes came that no other delta shows before its block is complete: citations, the notes
    /// of a router, a call without a name. They count to the size of the answer.
    Unseen(usize),
    Usage(Usage),
    /// The provider refused this, and accepted the request without it.
    Learned(Vec<adjust::Learned>),
    /// A part of the answer could not be read and may have held words: why.
    Garbled(String),
    /// The connection ended in order, and nothing said that the answer, which has content, is complete. What follows is
    /// right where the provider never says so; else the answer failed for this reason.
    Unended(Failure),
    /// A block or event we do not know; kept for the trace, never an error.
    Unknown(Value),
    /// The answer is complete. A stream that ends without it was cut.
    End(Stop),
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    EndTurn,
    ToolUse,
    /// The limit of output tokens cut the reply.
    MaxTokens,
    /// The context window was full before the reply was complete.
    ContextExceeded,
    /// The provider paused; the same request with the reply so far continues it.
    Pause,
    /// The model or the provider declined; its words or the word of its filter, never empty.
    Refusal(String),
    /// A word that no wire documents.
    Other(String),
    /// The connection ended in order, and the provider gave no reason for the end of its reply.
    Unnamed,
}

impl Stop {
    /// Whether the model ended its reply itself, so that every block in it is whole.
    pub fn is_own_end(&self) -> bool {
        matches!(self, Self::EndTurn | Self::ToolUse)
    }
}

/// Tokens of one request, cumulative within it; `None` = not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input tokens, cached ones included.
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
    /// Part of `output`.
    pub reasoning: Option<u64>,
}

/// Why a request or its stream failed. The text names provider, host and cause. `provider_text` is what the provider wrote
/// itself, in one line and without status codes, empty where it gave no reason: only that may be searched for a cause.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// No connection within the time for it.
    #[error("{0}")]
    Connect(String),
    /// The provider answered with an HTTP error.
    #[error("{message}")]
    Status { status: u16, retry_after: Option<Duration>, message: String, provider_text: String },
    /// Nothing came within the time allowed to the first event or between events.
    #[error("{0}")]
    Timeout(String),
    /// The answer broke off before the provider said it was complete, perhaps before it began.
    #[error("{0}")]
    Cut(String),
    /// The provider reported an error inside the stream.
    #[error("{message}")]
    Provider { message: String, provider_text: String, retryable: bool },
    /// The request, or the request with the reply that it asks for, is longer than the model reads.
    #[error("{message}")]
    TooLong { message: String, provider_text: String },
    /// A filter of the provider for content refused the request.
    #[error("{message}")]
    Filtered { message: String, provider_text: String },
    /// The request cannot be made: no key, a bad address, a script that does not fit.
    #[error("{0}")]
    Unusable(String),
}

/// The answer as it arrives.
pub type Deltas = Pin<Box<dyn Stream<Item = Result<Delta, Failure>> + Send>>;
