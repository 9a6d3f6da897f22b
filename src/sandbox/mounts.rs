//! The file system that a command sees, and how it is mounted.

pub mod build;
pub mod git_settings;
pub mod mountinfo;
pub mod plan;
mod sockets;
pub mod world;
