//! The refusals that errors of the rooms below become.

use crate::host::ListenError;
use crate::protocol::Refusal;
use crate::session::LogError;
use crate::store::StoreError;
use tokio::task::JoinError;

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<LogError> for Refusal {
    fn from(error: LogError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<ListenError> for Refusal {
    fn from(error: ListenError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<JoinError> for Refusal {
    fn from(error: JoinError) -> Self {
        Self::internal(error.to_string())
    }
}
