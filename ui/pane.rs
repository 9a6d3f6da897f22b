//! The panes of the dashboard: plain structs with `apply` and a way to draw themselves.

pub mod transcript;
pub mod tree;
pub mod composer;
pub mod actionbar;
