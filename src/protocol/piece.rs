//! An entry of the log that is too large to send in one line: pieces of its JSON, and where the
//! words that a person reads lie in it.

use serde::{Deserialize, Serialize};

/// A part of an entry's line, in bytes of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    pub start: u64,
    /// At most this much is sent; the host sends at most [`MAX_PIECE`].
    pub bytes: u64,
}

/// The longest piece that is sent at once, in bytes.
pub const MAX_PIECE: u64 = 1024 * 1024;

/// A JSON string inside a line, without its quotes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextSpan {
    /// The name of its field: `text`, `refusal`, `arguments`, `summary`, `content` or `body`.
    pub field: String,
    pub start: u64,
    /// The byte behind it.
    pub end: u64,
}

/// What the first piece of a line says about all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineShape {
    /// The size of the line in bytes, without its end.
    pub total: u64,
    /// Its texts, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<TextSpan>,
}
