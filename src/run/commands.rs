//! The commands that a Pod runs right now, for a verb that is about to narrow their scope.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The commands under way, shared by a Pod's run and its host.
#[derive(Clone, Debug, Default)]
pub struct Commands(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    running: Mutex<Running>,
    /// Changes whenever one has ended.
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Running {
    begun: u64,
    now: Vec<(u64, String, CancellationToken)>,
}

/// One command runs as long as this lives.
pub(crate) struct Command {
    commands: Commands,
    id: u64,
}

impl Commands {
    /// A command begins. To be called before its scope is looked up: a step that narrows the scope
    /// first and looks here second either sees the command, or the command gets the narrower scope.
    /// `end` ends it.
    pub(crate) fn begin(&self, what: String, end: CancellationToken) -> Command {
        let mut running = self.0.running();
        running.begun += 1;
        let id = running.begun;
        running.now.push((id, what, end));
        Command { commands: self.clone(), id }
    }

    /// What has been running longest.
    pub fn oldest(&self) -> Option<String> {
        self.0.running().now.first().map(|(_, what, _)| what.clone())
    }

    /// Resolves when those that run now have ended; it may tell them to end.
    pub async fn have_ended(&self, tell: bool) {
        let mut ended = self.0.ended.subscribe();
        let last = {
            let running = self.0.running();
            running.now.iter().filter(|_| tell).for_each(|(_, _, end)| end.cancel());
            running.begun
        };
        while self.0.running().now.iter().any(|(id, ..)| *id <= last) {
            // The sender is in the same place as the receiver.
            let _ = ended.changed().await;
        }
    }
}

impl Inner {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.commands.0.running().now.retain(|(id, ..)| *id != self.id);
        self.commands.0.ended.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_until_it_has_ended() {
        let commands = Commands::default();
        let first = commands.begin("make".into(), CancellationToken::new());
        let second = commands.begin("cargo test".into(), CancellationToken::new());
        assert_eq!(commands.oldest().as_deref(), Some("make"));
        drop(first);
        assert_eq!(commands.oldest().as_deref(), Some("cargo test"));
        drop(second);
        assert_eq!(commands.oldest(), None);
    }
}
