//! Commands that run in the background, as a person sees them.

use crate::protocol::PodName;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A command of a Pod that runs in the background, or has ended since the host started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobInfo {
    pub pod: PodName,
    /// `job-1`; a Pod never gives one twice.
    pub id: String,
    pub command: String,
    /// The directories of the scope that it writes; elsewhere it writes only below `/tmp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<PathBuf>,
    /// When it started; milliseconds since the Unix epoch.
    pub since: u64,
    /// When it ended, in the same unit; `None` while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    /// How it ended: `Exit 1 after 3.0 s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The last line that it wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<String>,
}
