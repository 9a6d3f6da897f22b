//! The servers of a host: one process for each server and scope, shared by the Pods that use it.

use crate::config::McpDefinition;
use crate::mcp::launch::Launch;
use crate::mcp::server::Server;
use crate::protocol::McpServerInfo;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// All servers that run; clones share them.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<BTreeMap<String, Weak<Server>>>>);

impl Pool {
    /// The server of this key, started if it does not run.
    pub fn server(&self, key: &str, definition: &McpDefinition, launch: Launch) -> Arc<Server> {
        let mut servers = self.lock();
        servers.retain(|_, server| server.strong_count() > 0);
        let running = servers.get(key).and_then(Weak::upgrade);
        if let Some(server) = running.filter(|server| !server.is_ended()) {
            return server;
        }
        let server = Server::start(definition.clone(), launch);
        servers.insert(key.to_owned(), Arc::downgrade(&server));
        server
    }

    /// Every server that runs or is to run, by name.
    pub fn list(&self) -> Vec<McpServerInfo> {
        let servers: Vec<Arc<Server>> = self.lock().values().filter_map(Weak::upgrade).collect();
        let running = servers.iter().filter(|server| !server.is_ended());
        let mut list: Vec<McpServerInfo> = running.map(|server| server.info()).collect();
        list.sort_by(|a, b| (&a.name, a.users.first()).cmp(&(&b.name, b.users.first())));
        list
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Server>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
