//! Which paths a Pod may read and write. Pure: paths come in canonical, nothing here touches a disk.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What may be done with a path. Write includes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    Read,
    Write,
}

/// One path and what may be done with it (`ScopeRule` of the protocol).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Rule {
    /// Absolute.
    pub target: PathBuf,
    pub permission: Permission,
    /// Whether everything below the target is covered; if not, only the target and its direct
    /// children are.
    #[serde(default = "yes")]
    pub recursive: bool,
}

fn yes() -> bool {
    true
}

/// What a Pod holds: the maximum of the matching allows, capped by the matching denies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scope {
    pub allow: Vec<Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
}
