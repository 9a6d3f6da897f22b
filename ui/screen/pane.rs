//! The panes of the dashboard: their state, and the widgets that paint it.

pub mod glyph;
pub mod input;
pub mod file_lookup;
pub mod transcript;
pub mod tree;
pub mod peers;
pub mod inbox;
pub mod page;
pub mod composer;
pub mod words;
pub mod actionbar;
