//! Models and providers, secrets, settings, and where things lie on this machine. Everything here
//! reads an environment that is passed in, never the one of the process.

/// A sentence about a place in a file.
pub mod complaint;
/// Where yoi keeps its files.
pub mod dirs;
/// Keys of providers: where one comes from, and the file that holds the stored ones.
pub mod keys;
/// A model to talk to, resolved.
pub mod models;

pub use complaint::Complaint;
pub use dirs::{ConfigError, Dirs, Env};
pub use keys::{Keys, KeysError, MissingKey, Secret};
pub use models::{KeySource, Model, Price, Reasoning, Wire};
