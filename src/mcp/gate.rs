//! Filters the messages of a server: admits responses to our requests, and a limited amount of
//! unsolicited messages. It also counts how often the server said that its tools changed, before an answer that follows
//! is handed on.

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcError, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerNotification,
};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::watch;

/// Bytes of unasked messages that a server may send at once, and the bytes in each second after that.
const BURST: f64 = 8.0 * 1024.0 * 1024.0;
const RATE: f64 = 1024.0 * 1024.0;
/// The least size that a message counts as, in bytes.
const LEAST: usize = 1024;

/// Why a connection ended, as a sentence about the server ("it …"); the first one counts.
#[derive(Clone, Debug, Default)]
pub struct Why(Arc<Mutex<Option<String>>>);

/// The gate of one connection; clones share it.
#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<Mutex<State>>,
    why: Why,
    changes: Arc<watch::Sender<u64>>,
}

#[derive(Debug)]
struct State {
    /// The ids of requests of ours without an answer; a server may answer a number as text.
    open: HashSet<String>,
    left: f64,
    at: Instant,
}

/// The verdict about a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admit {
    Pass,
    Drop,
    /// The server sent more than it may: the connection ends.
    End,
}

impl Why {
    pub fn set(&self, why: impl Into<String>) {
        self.lock().get_or_insert_with(|| why.into());
    }

    pub fn get(&self) -> Option<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    pub fn new(why: Why) -> Self {
        let state = State { open: HashSet::new(), left: BURST, at: Instant::now() };
        Self { state: Arc::new(Mutex::new(state)), why, changes: Arc::default() }
    }

    pub fn why(&self) -> &Why {
        &self.why
    }

    /// How often the server said that its tools changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Notes a message of ours.
    pub fn sent(&self, message: &ClientJsonRpcMessage) {
        if let JsonRpcMessage::Request(request) = message {
            self.lock().open.insert(request.id.to_string());
        }
    }

    /// Decides about a message of the server that takes so many bytes.
    pub fn admit(&self, message: &ServerJsonRpcMessage, bytes: usize) -> Admit {
        let admit = self.decide(message, bytes);
        if let (Admit::Pass, JsonRpcMessage::Notification(notification)) = (admit, message)
            && let ServerNotification::ToolListChangedNotification(_) = notification.notification
        {
            self.changes.send_modify(|changes| *changes += 1);
        }
        admit
    }

    fn decide(&self, message: &ServerJsonRpcMessage, bytes: usize) -> Admit {
        let pass = match message {
            JsonRpcMessage::Response(response) if self.is_awaited(&response.id) => {
                return Admit::Pass;
            }
            JsonRpcMessage::Error(JsonRpcError { id: Some(id), .. }) if self.is_awaited(id) => {
                return Admit::Pass;
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => false,
            JsonRpcMessage::Request(_) => true,
            JsonRpcMessage::Notification(notification) => matches!(
                notification.notification,
                ServerNotification::ProgressNotification(_)
                    | ServerNotification::ToolListChangedNotification(_)
                    | ServerNotification::CancelledNotification(_)
            ),
        };
        match self.unasked(bytes) {
            Admit::Pass if !pass => Admit::Drop,
            admit => admit,
        }
    }

    /// Whether a request of ours waits for an answer with this id.
    pub fn awaits(&self, id: &RequestId) -> bool {
        self.lock().open.contains(&id.to_string())
    }

    /// Whether a response belongs to an open request; forgets the request.
    fn is_awaited(&self, id: &RequestId) -> bool {
        self.lock().open.remove(&id.to_string())
    }

    /// Counts the bytes of an unsolicited message.
    pub fn unasked(&self, bytes: usize) -> Admit {
        let mut state = self.lock();
        let now = Instant::now();
        let gained = now.duration_since(state.at).as_secs_f64() * RATE;
        state.left = (state.left + gained).min(BURST);
        state.at = now;
        // A line is shorter than 2^32.
        state.left -= f64::from(u32::try_from(bytes.max(LEAST)).unwrap_or(u32::MAX));
        if state.left >= 0.0 {
            return Admit::Pass;
        }
        drop(state);
        self.why.set("it floods: it sent too many messages that answer no request (8 MiB at once, then 1 MiB a second; each counts as at \
             least 1 KiB)");
        Admit::End
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn message(value: serde_json::Value) -> ServerJsonRpcMessage {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn answers_pass_once_and_a_flood_of_anything_else_ends_the_connection() {
        let gate = Gate::new(Why::default());
        let answer = message(json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
        assert_eq!(gate.admit(&answer, 10), Admit::Drop, "nothing was asked");
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        gate.sent(&serde_json::from_value(ping.clone()).unwrap());
        let other = message(json!({"jsonrpc": "2.0", "id": 2, "result": {}}));
        assert_eq!(gate.admit(&other, 10), Admit::Drop, "it has another id");
        assert_eq!(gate.admit(&answer, 8 << 20), Admit::Pass);
        assert_eq!(gate.admit(&answer, 10), Admit::Drop);
        assert_eq!(gate.admit(&message(ping), 10), Admit::Pass);
        let log = json!({"level": "info", "data": "x"});
        let log = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": log});
        assert_eq!(gate.admit(&message(log), 10), Admit::Drop);
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let changed = message(changed);
        let passed = (0..100_000).take_while(|_| gate.admit(&changed, 60) == Admit::Pass).count();
        assert!((1_000..50_000).contains(&passed), "{passed}");
        assert!(gate.why().get().unwrap().contains("it floods"));
    }
}
