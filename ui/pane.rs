//! The panes of the dashboard: plain structs with `apply` and a way to draw themselves.

pub mod glyph;
pub mod input;
pub mod transcript;
pub mod tree;
pub mod peers;
pub mod inbox;
pub mod composer;
pub mod actionbar;
