//! The core of yoi: a runtime that owns a family of LLM agents ("Pods").
//!
//! The modules are listed bottom to top, and this list is the architecture: a module may use only
//! the modules listed before it. `tests/layers.rs` reads this list and checks every `crate::` path.
#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used)]
// `print!` panics when its reader is gone.
#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Points at which tests make the program end; compiled out of releases.
pub mod crash;
/// Delays between retries.
pub mod backoff;
/// Untrusted text, made safe to show.
pub mod text;
/// The few ways files are written: replace and append, every error with its path.
pub mod disk;
/// Diagnostics: a ring in memory and a rotated file of lines, without secrets.
pub mod trace;
/// Which paths a Pod may read and write.
pub mod scope;
/// The one way in which a file is opened for a Pod.
pub mod files;
/// The words on the wire: ids, items, methods, events, replies, refusals, line framing.
pub mod protocol;
/// Models and providers, secrets, settings, the directories of yoi on this machine.
pub mod config;
/// The agent mesh of this machine: members, their leader and its election, on the wire of remote-pi.
pub mod mesh;
/// The session log of a Pod: append-only JSONL in segments; replay, rewind, pages from the tail.
pub mod session;
/// The records of all Pods, in one SQLite database.
pub mod store;
/// Starts, confines and ends commands, with a helper process.
pub mod sandbox;
/// Model providers: one request out, one stream of deltas in; the scripted model.
pub mod llm;
/// The handle to a running host, in this process or across a socket.
pub mod client;
/// The tools that a model calls: files, shell, tasks.
pub mod tools;
/// MCP servers: other programs that offer tools to models.
pub mod mcp;
/// The MCP server of yoi: a client of it is an agent of the mesh and a caller of Pods.
pub mod bridge;
/// One run: model, tools, model, until the model is done; compaction.
pub mod run;
/// The Pods that run here: supervisor, one actor per Pod, sockets.
pub mod host;
