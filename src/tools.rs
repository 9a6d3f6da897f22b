//! What a model may do: files, shell, tasks. A tool is a row in [`TABLE`] and a function from its
//! arguments and a [`Context`] to an [`Output`]; it changes nothing else of the Pod.

use crate::protocol::FileMark;
use crate::protocol::item::Image;

/// What a tool answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// One line, bounded.
    pub summary: String,
    /// The long text, bounded too.
    pub content: Option<String>,
    pub is_error: bool,
    pub images: Vec<Image>,
    /// What files look like now, for read-before-edit.
    pub files: Vec<FileMark>,
}
