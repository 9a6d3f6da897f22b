//! Committing a step: the store first, in one transaction, then the state in memory, then the
//! events.

use crate::host::pod::Handle;
use crate::host::supervisor::family::{Publish, taken};
use crate::host::supervisor::{Family, InUse, NotTaken};
use crate::protocol::name::folded;
use crate::protocol::{Event, PeerEdge, PodName, Refusal};
use crate::scope::Rule;
use crate::store::{Change, StoreError};
use std::sync::Arc;

impl Family {
    pub(super) fn begin(&mut self) {
        self.before = Some(self.table.savepoint());
    }

    /// Undoes the changes of this step.
    pub(super) fn roll_back(&mut self) {
        if let Some(before) = self.before.take() {
            self.table.roll_back(before);
        }
        self.table.commit();
        self.change = Change::default();
        self.publish.clear();
        self.must_be_unused = false;
        self.turn_ended = false;
    }

    /// Commits the changes of this step; returns the Pods whose scope changed.
    pub(super) async fn commit(&mut self) -> Result<Vec<Handle>, NotTaken> {
        let mut change = std::mem::take(&mut self.change);
        change.leases = self.table.changes();
        // First the scope with which new commands start, then a look at the commands that run.
        let frees = std::mem::take(&mut self.turn_ended) || !change.is_empty();
        let narrowed = if self.must_be_unused { self.narrow() } else { Vec::new() };
        let in_use: Vec<InUse> =
            narrowed.iter().filter_map(|(handle, lost)| InUse::of(handle, lost)).collect();
        if in_use.is_empty() {
            // Servers have the scope of their start.
            narrowed.iter().for_each(|(handle, _)| handle.servers.end_writers());
        }
        let stored = if !in_use.is_empty() {
            Err(NotTaken::InUse(in_use))
        } else if change.is_empty() {
            Ok(())
        } else {
            let stored = self.shared.store.change_family(change).await;
            stored.map_err(|error| NotTaken::Refused(refusal(error)))
        };
        if let Err(not_taken) = stored {
            self.roll_back();
            for (handle, _) in narrowed {
                handle.granted.send_replace(self.granted(&handle.name.key()));
            }
            return Err(not_taken);
        }
        for publish in std::mem::take(&mut self.publish) {
            self.publish(publish);
        }
        let changed = self.regrant(&narrowed);
        self.table.commit();
        self.before = None;
        self.must_be_unused = false;
        if frees {
            self.shared.turns.send_replace(());
        }
        Ok(changed)
    }

    /// Narrows the scope of every Pod that loses something; returns those Pods, each with the regions that it loses.
    fn narrow(&self) -> Vec<(Handle, Vec<Rule>)> {
        let mut narrowed = Vec::new();
        for key in self.table.affected().filter(|key| self.table.is_live(key)) {
            let Some(handle) = self.known(key) else { continue };
            let after = self.table.held(key);
            let lost = handle.granted.borrow().scope.write_lost_in(&after);
            if !lost.is_empty() {
                handle.granted.send_modify(|granted| granted.scope = after);
                narrowed.push((handle, lost));
            }
        }
        narrowed
    }

    /// Gives every Pod what it holds now, where that changed. Its tools know at once.
    fn regrant(&self, narrowed: &[(Handle, Vec<Rule>)]) -> Vec<Handle> {
        let mut changed = Vec::new();
        for key in self.table.affected() {
            let Some(handle) = self.known(key) else { continue };
            let granted = self.granted(key);
            let differs = handle.granted.send_if_modified(|held| {
                let differs = *held != granted;
                *held = granted;
                differs
            });
            // A Pod that was narrowed before the commit has a change to show, too.
            if differs || narrowed.iter().any(|(other, _)| other.name == handle.name) {
                changed.push(handle);
            }
        }
        changed
    }

    /// A Pod by its key, listed or not yet.
    pub(crate) fn known(&self, key: &str) -> Option<Handle> {
        let listed = self.shared.members.borrow().0.get(key).cloned();
        listed.or_else(|| self.shared.newborns.borrow().get(key).cloned())
    }

    fn publish(&self, publish: Publish) {
        match publish {
            Publish::Newborn(handle) => self.shared.newborns.send_modify(|newborns| {
                newborns.insert(handle.name.key(), handle);
            }),
            Publish::Listed(handle) => {
                let key = handle.name.key();
                self.shared.members.send_modify(|members| {
                    Arc::make_mut(&mut members.0).insert(key.clone(), handle);
                });
                self.shared.newborns.send_modify(|newborns| drop(newborns.remove(&key)));
            }
            Publish::Removed(name) => self.removed(name),
            Publish::Peered { source, peer } => {
                let edge = PeerEdge::new(source.clone(), peer.clone());
                self.shared.peers.send_modify(|peers| Arc::make_mut(peers).push(edge));
                self.feed(&Event::Peered { source, peer });
            }
            Publish::Unpeered { source, peer } => {
                let edge = PeerEdge::new(source.clone(), peer.clone());
                self.shared.peers.send_modify(|peers| {
                    Arc::make_mut(peers).retain(|other| *other != edge);
                });
                self.feed(&Event::Unpeered { source, peer });
            }
        }
    }

    fn removed(&self, name: PodName) {
        let key = name.key();
        let mut was_listed = false;
        self.shared.members.send_modify(|members| {
            was_listed = Arc::make_mut(&mut members.0).remove(&key).is_some();
        });
        self.shared.newborns.send_modify(|newborns| drop(newborns.remove(&key)));
        let damaged = self.shared.damaged_row(&name).is_some();
        self.shared.damaged.send_modify(|rows| {
            let others = rows.iter().filter(|row| folded(&row.name) != key);
            *rows = Arc::new(others.cloned().collect());
        });
        // The store has dropped its relations.
        self.shared.peers.send_if_modified(|peers| {
            let before = peers.len();
            Arc::make_mut(peers).retain(|edge| edge.other(&name).is_none());
            peers.len() != before
        });
        self.shared.peers_of_removed(&name);
        if was_listed || damaged {
            self.feed(&Event::PodRemoved { name });
        }
    }
}

fn refusal(error: StoreError) -> Refusal {
    match error {
        // The store alone knows the names of records that cannot be read.
        StoreError::Taken(name) => taken(&name),
        error @ (StoreError::NotAsked | StoreError::NoRule(_)) => {
            Refusal::invalid(error.to_string())
        }
        error => error.into(),
    }
}
