//! A run that repeats a failing or denied call, noticed by comparing calls and outputs, without a model.

use serde::{Deserialize, Serialize};

/// A call that a run makes again and again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Circling {
    pub kind: CircleKind,
    /// How many times in a row.
    pub times: u32,
    /// The call, in one line.
    pub call: String,
    /// The first time; milliseconds since the Unix epoch.
    pub since: u64,
}

/// What is the same each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CircleKind {
    /// The call fails with the same output.
    Failure,
    /// The call is denied, and made again as it was.
    Denied,
    /// From a newer host.
    #[serde(other)]
    Unknown,
}
