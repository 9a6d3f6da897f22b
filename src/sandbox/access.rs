//! What a command may reach: the paths of its scope, of the system, of tools and caches, without secrets and guarded files,
//! and its limits.

pub mod confinement;
pub mod directory;
pub mod env;
pub mod limits;
pub mod path_json;
pub mod places;
pub mod pod_storage;
pub mod project;
pub mod resolve;
pub mod scripts;
mod tree_size;
pub mod view;
