//! The commands that a Pod runs right now, for a verb that is about to narrow their scope.

use std::sync::{Arc, Mutex, PoisonError};

/// The commands under way, shared by a Pod's run and its host.
#[derive(Clone, Debug, Default)]
pub struct Commands(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    begun: u64,
    now: Vec<(u64, String)>,
}

/// One command runs as long as this lives.
pub(crate) struct Command {
    commands: Commands,
    id: u64,
}

impl Commands {
    /// A command begins. To be called before its scope is looked up: a step that narrows the scope
    /// first and looks here second either sees the command, or the command gets the narrower scope.
    pub(crate) fn begin(&self, what: String) -> Command {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.begun += 1;
        let id = running.begun;
        running.now.push((id, what));
        Command { commands: self.clone(), id }
    }

    /// What has been running longest.
    pub fn oldest(&self) -> Option<String> {
        let running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.now.first().map(|(_, what)| what.clone())
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        let mut running = self.commands.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.now.retain(|(id, _)| *id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_until_it_has_ended() {
        let commands = Commands::default();
        let first = commands.begin("make".into());
        let second = commands.begin("cargo test".into());
        assert_eq!(commands.oldest().as_deref(), Some("make"));
        drop(first);
        assert_eq!(commands.oldest().as_deref(), Some("cargo test"));
        drop(second);
        assert_eq!(commands.oldest(), None);
    }
}
