//! Handles requests of a server: only `ping` is answered. Progress is passed to its call.

use rmcp::ClientHandler;
use rmcp::RoleClient;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::NotificationContext;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// The client's side of one connection; clones share it. It declares no capability, so sampling, roots and
/// elicitation are refused.
#[derive(Clone, Debug, Default)]
pub struct Handler {
    progress: Arc<Mutex<HashMap<ProgressToken, mpsc::Sender<String>>>>,
}

/// The registration of a call for its progress, until this is dropped.
pub struct Following {
    handler: Handler,
    token: ProgressToken,
}

impl Handler {
    /// From now on progress with this token goes to `to`; what does not fit is dropped.
    pub fn follow(&self, token: ProgressToken, to: mpsc::Sender<String>) -> Following {
        self.lock().insert(token.clone(), to);
        Following { handler: self.clone(), token }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProgressToken, mpsc::Sender<String>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.handler.lock().remove(&self.token);
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let me = Implementation::new("yoi", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), me)
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let Some(to) = self.lock().get(&progress.progress_token).cloned() else { return };
        // A screen that lags misses a line; the result holds everything.
        let _ = to.try_send(sentence(&progress));
    }
}

/// Bytes of a message about progress.
const MAX_MESSAGE: usize = 500;

fn sentence(progress: &ProgressNotificationParam) -> String {
    let message = progress.message.as_deref().unwrap_or_default();
    let message = &message[..message.floor_char_boundary(MAX_MESSAGE)];
    let count = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    format!("[{count}] {message}\n")
}
