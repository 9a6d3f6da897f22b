//! Scripts that a command runs, known by their content.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A script as it was when a command was looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScriptHash {
    /// Canonical.
    pub path: PathBuf,
    /// The SHA-256 of its content, in lower-case hexadecimal digits.
    pub sha256: String,
}

impl ScriptHash {
    /// The digits that a request shows; `sha256sum` begins with them.
    pub fn short(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }
}
