//! The servers that one Pod uses, and what a person agreed to for it.

use crate::config::McpDefinition;
use crate::mcp::launch::Launch;
use crate::mcp::pool::Pool;
use crate::mcp::server::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The servers of one Pod; clones share them.
#[derive(Clone)]
pub struct PodServers(Arc<Inner>);

struct Inner {
    pool: Pool,
    pod: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<String, Held>,
    /// What a person decided for this Pod until its host ends, by the hash that was shown.
    decided: BTreeMap<String, Decided>,
    /// Sentences that were said.
    said: BTreeSet<String>,
    /// For each server the tools that are offered, as of a list.
    accepted: BTreeMap<String, Accepted>,
}

struct Held {
    key: String,
    server: Arc<Server>,
}

/// A person's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    Agreed,
    Refused,
}

/// The tools of a list that a person agreed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The hash of the list.
    pub list: String,
    /// The server's names of the tools.
    pub tools: BTreeSet<String>,
}

impl PodServers {
    pub fn new(pool: Pool, pod: &str) -> Self {
        Self(Arc::new(Inner { pool, pod: pod.to_owned(), state: Mutex::default() }))
    }

    /// Whether the Pod uses exactly this server now.
    pub fn holds(&self, name: &str, key: &str) -> bool {
        self.lock().held.get(name).is_some_and(|held| held.key == key)
    }

    /// From now on the Pod uses this server, in the place of one of the same name.
    pub fn hold(&self, key: String, definition: &McpDefinition, launch: Launch) {
        let server = self.0.pool.server(&key, definition, launch);
        server.join(&self.0.pod);
        let before = self.lock().held.insert(definition.name.clone(), Held { key, server });
        self.leave(before);
    }

    /// The Pod uses no other servers than these any more.
    pub fn keep_only(&self, names: &BTreeSet<&str>) {
        let mut state = self.lock();
        let gone: Vec<String> =
            state.held.keys().filter(|name| !names.contains(name.as_str())).cloned().collect();
        let left: Vec<Held> = gone.iter().filter_map(|name| state.held.remove(name)).collect();
        drop(state);
        self.leave(left);
    }

    /// The Pod uses no server any more.
    pub fn clear(&self) {
        self.keep_only(&BTreeSet::new());
    }

    /// Ends the use of every server that may write: the scope of the Pod became narrower.
    pub fn end_writers(&self) {
        let mut state = self.lock();
        let writes =
            |(name, held): (&String, &Held)| held.server.definition.write.then(|| name.clone());
        let names: Vec<String> = state.held.iter().filter_map(writes).collect();
        let left: Vec<Held> = names.iter().filter_map(|name| state.held.remove(name)).collect();
        drop(state);
        for held in &left {
            held.server.end_now();
        }
        self.leave(left);
    }

    /// The servers that the Pod uses, by name.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.lock().held.values().map(|held| held.server.clone()).collect()
    }

    pub fn decision(&self, hash: &str) -> Option<Decided> {
        self.lock().decided.get(hash).copied()
    }

    pub fn decide(&self, hash: &str, decided: Decided) {
        self.lock().decided.insert(hash.to_owned(), decided);
    }

    pub fn accepted(&self, server: &str) -> Option<Accepted> {
        self.lock().accepted.get(server).cloned()
    }

    pub fn accept(&self, server: &str, accepted: Accepted) {
        self.lock().accepted.insert(server.to_owned(), accepted);
    }

    /// Whether this sentence was not said before; it counts as said from now on.
    pub fn is_new(&self, sentence: &str) -> bool {
        self.lock().said.insert(sentence.to_owned())
    }

    fn leave(&self, held: impl IntoIterator<Item = Held>) {
        for Held { server, .. } in held {
            server.leave(&self.0.pod);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for held in state.held.values() {
            held.server.leave(&self.pod);
        }
    }
}
