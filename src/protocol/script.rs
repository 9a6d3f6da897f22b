//! Scripts that a command runs, identified by their content.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A script with its content at the time of the policy decision.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScriptHash {
    /// Canonical.
    pub path: PathBuf,
    /// The SHA-256 of its content, in lower-case hexadecimal digits; `unknown` if it could not be
    /// read. A second entry for the same path says `not held` if another Pod may exchange the
    /// script while the command runs.
    pub sha256: String,
}

/// Replaces the SHA-256 of an unreadable script. It has too few digits for a hash, so a rule with
/// it matches no script.
const UNREAD: &str = "unknown";
/// Replaces the SHA-256 of a script that another Pod may exchange, in the same way.
const UNHELD: &str = "not held";

impl ScriptHash {
    /// A script that does not exist yet or cannot be read.
    pub fn unread(path: PathBuf) -> Self {
        Self { path, sha256: UNREAD.into() }
    }

    /// Whether the content is unknown.
    pub fn is_unread(&self) -> bool {
        self.sha256 == UNREAD
    }

    /// A mark beside the hash of a script: another Pod may exchange it while the command runs.
    pub fn unheld(path: PathBuf) -> Self {
        Self { path, sha256: UNHELD.into() }
    }

    /// Whether this is such a mark.
    pub fn is_unheld(&self) -> bool {
        self.sha256 == UNHELD
    }

    /// Whether this is a content with which a script can be compared.
    pub fn is_content(&self) -> bool {
        !self.is_unread() && !self.is_unheld()
    }

    /// The digits that a request shows; `sha256sum` begins with them.
    pub fn short(&self) -> &str {
        self.sha256.get(..12).unwrap_or(&self.sha256)
    }
}
