//! The repositories where a command may write: what git obeys in them is found before the command and compared after it.

pub mod check;
pub mod config_file;
pub mod linked_tree;
mod named_paths;
pub mod own_repositories;
pub mod repository;
pub mod scan;
pub mod search;
