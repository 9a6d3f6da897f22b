//! The working tree of git in which a Pod works on a branch of its own, as a person sees it.

use crate::protocol::work::LinesChanged;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The working tree that a new Pod asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewWorktree {
    /// The branch, which is made if there is none of this name; `None`: it has the name of the Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// The working tree of a Pod, as every list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeInfo {
    pub path: PathBuf,
    /// The branch that is checked out there.
    pub branch: String,
    /// The lines that were added and removed since the branch was checked out first, with those that are not committed;
    /// `None` until they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<LinesChanged>,
}

/// What a person does with the working tree of a Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum WorktreeChange {
    /// It stays when its Pod is deleted.
    Keep,
    /// Its directory is deleted. The branch stays.
    Drop {
        /// The [`WorktreeState::digest`] that the person was shown.
        digest: String,
    },
}

/// The working tree of a Pod as git reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorktreeState {
    pub info: WorktreeInfo,
    /// The working tree from whose repository it was made.
    pub repository: PathBuf,
    /// Whether its directory is there; restoring the Pod makes it again on its branch.
    pub is_there: bool,
    /// Whether it stays when its Pod is deleted.
    pub kept: bool,
    /// The number of commits since the branch was checked out first.
    pub ahead: u64,
    /// The abbreviated hash and the subject of the last of them, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<String>,
    /// What would be lost with the directory: a line of `git status` each, and commits that are on no branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsaved: Vec<String>,
    /// How the setup command ended, unless it just succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// Differs when any of this changed, but for `kept` and `setup`.
    pub digest: String,
    /// Why it stays although its Pod is deleted; only in the reply to `remove`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stays: Option<String>,
}
