//! A client of MCP servers, whose tools are offered to models. A server is a confined program or is
//! reached over HTTP. It is not trusted: its messages are limited, and a server that floods, hangs,
//! crashes or lies affects only the calls that were made to it.

mod answer;
mod connection;
mod elicitation;
#[cfg(test)]
mod fuzz;
mod gate;
mod handler;
mod http;
mod incoming;
mod launch;
mod listing;
mod names;
mod pipes;
mod pod;
mod pool;
mod schema;
mod server;
mod storage;
mod tool;

pub use launch::{Launch, Surroundings};
pub use listing::{Agreed, Listing, Offer};
pub use pod::{Accepted, Asked, Decided, PodServers, Topic};
pub use pool::Pool;
pub use server::Server;
pub use storage::{kept_in, remove_set_aside, set_aside_unused};
pub use tool::ServerTool;
