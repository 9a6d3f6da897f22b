//! Text brought to a width: measured, cut, filled and wrapped, for every pane, layer and list.

mod cut;
mod link;
mod measure;
mod paint;
mod wrap;

pub use cut::{cut, cut_front, cut_middle, pad, right, shorten};
pub use link::Link;
pub use measure::{columns, row_width, width};
pub use paint::paint;
pub use wrap::{Break, Paragraph, half, wrap, wrap_anywhere, wrap_text};

use crate::theme::Role;
use ratatui::style::Modifier;

/// How a piece of text looks: a role of the theme, and emphasis of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextStyle {
    pub role: Role,
    pub emphasis: Modifier,
}

impl From<Role> for TextStyle {
    fn from(role: Role) -> Self {
        Self { role, emphasis: Modifier::empty() }
    }
}

/// Text of one style.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub style: TextStyle,
    /// What the terminal opens for a click on it.
    pub link: Option<Link>,
}

impl Piece {
    pub fn new(text: impl Into<String>, style: impl Into<TextStyle>) -> Self {
        Self { text: text.into(), style: style.into(), link: None }
    }

    /// A part of this piece: its look and its link with another text.
    pub fn part(&self, text: &str) -> Self {
        Self { text: text.to_owned(), style: self.style, link: self.link.clone() }
    }
}

/// One line of the screen.
pub type Row = Vec<Piece>;
