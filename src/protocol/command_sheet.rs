//! What the next command of a Pod gets, and which instruction files the Pod has, for a person who asks.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What a command without needs gets of this machine. All paths are canonical.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSheet {
    /// What it is kept in, and what that leaves open, as a sentence.
    pub sandbox: String,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    /// Caches: what is there can be used, what it writes stays with its Pod.
    pub caches: Vec<PathBuf>,
    /// Places of the command or its Pod alone.
    pub own: Vec<OwnPlace>,
    /// Places inside the others that are worth less.
    pub shut: Vec<ShutPlace>,
    /// What it cannot do although its scope would let it, each a sentence.
    pub cost: Vec<String>,
    /// Names of the variables that it gets.
    pub env: Vec<String>,
    /// Names of variables of the person that it does not get.
    pub withheld: Vec<String>,
    /// Each a sentence.
    pub limits: Vec<String>,
    /// The files that tell the Pod how to work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub instructions: Vec<InstructionFile>,
    /// What the provider of its model refused, so that requests do without it, each a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub learned: Vec<String>,
    /// The mistakes in the settings, each a sentence with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mistakes: Vec<String>,
}

/// A file that tells a Pod how to work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionFile {
    pub path: PathBuf,
    /// Seconds since it was written, where the file system says it.
    pub age_s: Option<u64>,
    /// Whether it is another one than the model was told.
    pub changed: bool,
}

/// A place that no other Pod has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnPlace {
    pub path: PathBuf,
    /// Whether it is there for the next command, too.
    pub kept: bool,
    /// How much it holds.
    pub mib: u32,
}

/// A place of which less is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutPlace {
    pub path: PathBuf,
    /// Whether it can be read; if not, it is empty or missing.
    pub read: bool,
    /// Why, in words.
    pub why: String,
}
