//! The refusals that errors of the rooms below become, and the text of panics.

use crate::host::ListenError;
use crate::protocol::Refusal;
use std::any::Any;
use tokio::task::JoinError;

impl From<ListenError> for Refusal {
    fn from(error: ListenError) -> Self {
        Self::internal(error.to_string())
    }
}

/// The text of a panic.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "a panic without a text".into())
}

impl From<JoinError> for Refusal {
    fn from(error: JoinError) -> Self {
        Self::internal(error.to_string())
    }
}
