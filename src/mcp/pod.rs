//! The servers that one Pod uses, and the decisions of a person about them.

use crate::config::McpDefinition;
use crate::mcp::launch::Launch;
use crate::mcp::pool::Pool;
use crate::mcp::server::{InUse, Server};
use crate::protocol::PodName;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The servers of one Pod; clones share them.
#[derive(Clone)]
pub struct PodServers(Arc<Inner>);

struct Inner {
    pool: Pool,
    pod: PodName,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<String, Held>,
    /// The decisions of a person for this Pod, until its host ends.
    decided: BTreeMap<Asked, Decided>,
    /// The current problems. Each was reported when it occurred.
    wrong: BTreeMap<Topic, String>,
    /// For each server the tools that are offered, as of a list.
    accepted: BTreeMap<String, Accepted>,
}

struct Held {
    key: String,
    using: InUse,
}

/// The subject of an approval request: the tool name of its rule, the server, and the hash that the
/// request showed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub tool: String,
    pub server: String,
    pub sha256: String,
}

/// A person's decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    Agreed,
    /// Holds the sentence about it.
    Refused(String),
}

/// The problems that a Pod can have with its servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Topic {
    /// A server of the settings that cannot be used, as a sentence.
    Settings(String),
    /// A server that is not started for this Pod.
    NotStarted(String),
    /// A server that failed.
    Failed(String),
    /// Tools of a server that are narrowed or left out because of their names or schemas.
    Unfit(String),
    /// Tools of a server that no person approved.
    Refused(String),
    /// Tools beyond the limit of tools.
    NoRoom,
}

/// The approved tools of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The hash of the list.
    pub list: String,
    /// The server's names of the tools.
    pub tools: BTreeSet<String>,
}

impl PodServers {
    pub fn new(pool: Pool, pod: PodName) -> Self {
        Self(Arc::new(Inner { pool, pod, state: Mutex::default() }))
    }

    /// Whether the Pod uses exactly this server now.
    pub fn holds(&self, name: &str, key: &str) -> bool {
        let state = self.lock();
        let held = state.held.get(name).filter(|held| held.key == key);
        held.is_some_and(|held| !held.using.server.is_ended())
    }

    /// Makes the Pod use this server, instead of another one with its name.
    pub fn hold(&self, key: String, definition: &McpDefinition, launch: Launch) {
        let using = self.0.pool.server(&key, definition, launch).join(&self.0.pod);
        self.lock().held.insert(definition.name.clone(), Held { key, using });
    }

    /// Ends the use of the server of this name, unless it has this key.
    pub fn release(&self, name: &str, unless: Option<&str>) {
        self.lock().held.retain(|held, by| held != name || Some(by.key.as_str()) == unless);
    }

    /// Ends the use of all other servers, and forgets the problems of others and of former settings.
    pub fn keep_only(&self, names: &BTreeSet<&str>, settings: &[String]) {
        let mut state = self.lock();
        state.held.retain(|name, _| names.contains(name.as_str()));
        state.wrong.retain(|topic, _| match topic {
            Topic::Settings(why) => settings.contains(why),
            Topic::NotStarted(name)
            | Topic::Failed(name)
            | Topic::Unfit(name)
            | Topic::Refused(name) => names.contains(name.as_str()),
            Topic::NoRoom => true,
        });
    }

    /// Ends the use of all servers.
    pub fn clear(&self) {
        self.keep_only(&BTreeSet::new(), &[]);
    }

    /// Ends the use of every server that may write: the scope of the Pod became narrower.
    pub fn end_writers(&self) {
        self.lock().held.retain(|_, held| {
            let server = &held.using.server;
            if server.definition.write {
                server.end_now();
            }
            !server.definition.write
        });
    }

    /// The servers that the Pod uses, by name.
    pub fn servers(&self) -> Vec<Arc<Server>> {
        self.lock().held.values().map(|held| held.using.server.clone()).collect()
    }

    pub fn decision(&self, asked: &Asked) -> Option<Decided> {
        self.lock().decided.get(asked).cloned()
    }

    pub fn decide(&self, asked: Asked, decided: Decided) {
        self.lock().decided.insert(asked, decided);
    }

    pub fn accepted(&self, server: &str) -> Option<Accepted> {
        self.lock().accepted.get(server).cloned()
    }

    pub fn accept(&self, server: &str, accepted: Accepted) {
        self.lock().accepted.insert(server.to_owned(), accepted);
    }

    /// Notes a problem, and returns whether it has to be reported. A failure of a server is
    /// reported once until the server works again, whatever its text is.
    pub fn is_wrong(&self, topic: Topic, why: &str) -> bool {
        let is_failure = matches!(topic, Topic::Failed(_));
        let before = self.lock().wrong.insert(topic, why.to_owned());
        before.is_none_or(|before| !is_failure && before != why)
    }

    /// Forgets a problem that is over.
    pub fn is_right(&self, topic: &Topic) {
        self.lock().wrong.remove(topic);
    }

    /// The servers and tools that this Pod does not get, with the reasons.
    pub fn withheld(&self) -> Vec<(String, String)> {
        let state = self.lock();
        let of = |(topic, why): (&Topic, &String)| match topic {
            Topic::NotStarted(server) | Topic::Refused(server) => {
                Some((server.clone(), why.clone()))
            }
            Topic::Settings(_) | Topic::Failed(_) | Topic::Unfit(_) | Topic::NoRoom => None,
        };
        state.wrong.iter().filter_map(of).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
