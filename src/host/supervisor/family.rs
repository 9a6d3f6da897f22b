//! The family as a step sees it: everything in memory, nothing that can wait.

use crate::config::settings::WhenBusy;
use crate::host::pod::resolved::Resolved;
use crate::host::pod::{self, Birth, Granted, Handle};
use crate::host::supervisor::marks::Marked;
use crate::host::supervisor::{Doing, Mark, Step, missing};
use crate::host::{Shared, notify_parent};
use crate::protocol::{Event, Lent, PeerEdge, PodName, Refusal, StoppedPod, now_ms};
use crate::scope::lease::{Holder, LeaseTable, NotLent, Savepoint, Turn};
use crate::scope::{Permission, Rule, Scope};
use crate::store::{Change, ChildMessage, PodRow, Relocated, Wanted};
use crate::text::shell_word;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// How many numbers are tried for a default name that is taken.
const NUMBERS: u32 = 10_000;

/// The family, and what the step at hand changes of it.
pub(crate) struct Family {
    pub(crate) shared: Shared,
    pub(crate) table: LeaseTable,
    pub(super) marks: BTreeMap<String, Vec<Marked>>,
    pub(super) supervisor: mpsc::WeakSender<Step>,
    /// A request to end the host was taken.
    pub(crate) ends: bool,
    /// The change for the store, beside the leases that differ.
    pub(crate) change: Change,
    /// The events to publish once the change is stored.
    pub(super) publish: Vec<Publish>,
    /// Whether a Pod that runs a command must not lose what it writes.
    pub(super) must_be_unused: bool,
    /// Whether a turn to write has ended.
    pub(super) turn_ended: bool,
    pub(super) before: Option<Savepoint>,
}

/// A change for every screen.
pub(super) enum Publish {
    Newborn(Handle),
    Listed(Handle),
    Removed(PodName),
    Peered { source: PodName, peer: PodName },
    Unpeered { source: PodName, peer: PodName },
}

impl Family {
    pub(crate) fn new(
        shared: Shared,
        table: LeaseTable,
        supervisor: mpsc::WeakSender<Step>,
    ) -> Self {
        Self {
            shared,
            table,
            marks: BTreeMap::new(),
            supervisor,
            ends: false,
            change: Change::default(),
            publish: Vec::new(),
            must_be_unused: false,
            turn_ended: false,
            before: None,
        }
    }

    /// A Pod that is listed.
    pub(crate) fn pod(&self, name: &PodName) -> Result<Handle, Refusal> {
        self.shared.pod(name).ok_or_else(|| missing(name))
    }

    pub(crate) fn is_live(&self, name: &PodName) -> bool {
        self.table.is_live(&name.key())
    }

    /// A live Pod, under its own name.
    pub(crate) fn live(&self, name: &PodName) -> Result<Handle, Refusal> {
        let handle = self.pod(name)?;
        if self.is_live(name) {
            return Ok(handle);
        }
        let text = format!("pod `{name}` is stopped; :restore {name} brings it back");
        Err(Refusal::invalid(text))
    }

    /// The name behind a key, as it was written.
    pub(crate) fn name_of(&self, key: &str) -> Option<PodName> {
        let members = self.shared.members.borrow();
        let known = members.0.get(key).map(|handle| handle.name.clone());
        known
            .or_else(|| self.shared.newborns.borrow().get(key).map(|handle| handle.name.clone()))
            .or_else(|| PodName::parse(key).ok())
    }

    /// The name behind a key in words, also of a Pod that is gone.
    pub(crate) fn named(&self, key: &str) -> String {
        self.name_of(key).map_or_else(|| key.to_owned(), |name| name.to_string())
    }

    /// Whether no Pod has this name, nor one that is being created.
    pub(crate) fn is_free(&self, name: &PodName) -> bool {
        let key = name.key();
        self.table.holder(&key).is_none()
            && self.shared.pod(name).is_none()
            && self.starting(&key).is_none()
    }

    /// The wanted name, if it is free, else this one, numbered when it is taken.
    pub(crate) fn free_name(
        &self,
        asked: Option<PodName>,
        base: &PodName,
    ) -> Result<PodName, Refusal> {
        if let Some(name) = asked {
            return if self.is_free(&name) { Ok(name) } else { Err(taken(&name)) };
        }
        if self.is_free(base) {
            return Ok(base.clone());
        }
        (2..NUMBERS)
            .map(|n| base.numbered(n))
            .find(|name| self.is_free(name))
            .ok_or_else(|| Refusal::invalid(format!("every name like `{base}` is taken; give one")))
    }

    /// Creates a Pod: its row, its leases and that it is live are one change. Its actor is started
    /// here, stopped; the verb that holds the mark makes it live and has it listed.
    pub(crate) fn create(&mut self, mut row: PodRow, birth: Birth) -> (Handle, Mark) {
        row.wanted = Wanted::Live;
        if let Some(parent) = row.parent.as_ref().and_then(|parent| self.shared.pod(parent)) {
            row.ephemeral = parent.info.borrow().ephemeral;
        }
        let key = row.name.key();
        self.table.add(key.clone(), Holder { live: false, ..holder(&row) });
        self.table.go_live(&key);
        self.must_be_unused = true;
        let granted = Arc::new(watch::Sender::new(self.granted(&key)));
        let child = matches!(birth, Birth::Child { .. });
        let handle = pod::spawn(&self.shared, self.supervisor.clone(), row.clone(), granted, birth);
        let listed = if child { Publish::Newborn } else { Publish::Listed };
        self.publish.push(listed(handle.clone()));
        self.change.discard = child.then_some(row.session);
        self.change.create = Some(row);
        let mark = self.mark(&key, Doing::Starting);
        (handle, mark)
    }

    /// Lists a child whose first message is committed: from now on it is a Pod like every other one.
    pub(crate) fn list(&mut self, child: &Handle) {
        self.publish.push(Publish::Listed(child.clone()));
    }

    /// Makes Pods live, each parent before its children.
    pub(crate) fn go_live(&mut self, names: &[PodName]) {
        let keys: Vec<String> = names.iter().map(PodName::key).collect();
        self.table.go_live_all(&keys);
        self.must_be_unused = true;
        let since = now_ms();
        let live = names.iter().map(|name| (name.clone(), Wanted::Live, since));
        self.change.wanted.extend(live);
    }

    /// Refuses this step when it takes a region from a Pod whose command may be writing there.
    pub(crate) fn must_be_unused(&mut self) {
        self.must_be_unused = true;
    }

    /// Begins the turn of a live Pod, and names the Pods that write where it wants to. Where it is to wait for them, no
    /// turn begins.
    pub(crate) fn begin_turn(
        &mut self,
        name: &PodName,
        when_busy: WhenBusy,
    ) -> (Option<Turn>, Vec<String>) {
        let before = self.table.savepoint();
        let turn = self.table.begin_turn(&name.key());
        let writers = self.table.in_the_way_of(&name.key());
        // Also one whose record is damaged.
        let writers: Vec<String> = writers.iter().map(|other| self.named(other)).collect();
        if when_busy == WhenBusy::Wait && !writers.is_empty() {
            self.table.roll_back(before);
            return (None, writers);
        }
        self.must_be_unused = true;
        (turn, writers)
    }

    pub(crate) fn end_turn(&mut self, name: &PodName, turn: Turn) {
        self.table.end_turn(&name.key(), turn);
        self.must_be_unused = true;
        self.turn_ended = true;
    }

    /// Ends a turn of which nothing could be stored: only in memory, so that the Pods that wait can begin theirs.
    pub(crate) fn forget_turn(&mut self, name: &PodName, turn: Turn) {
        self.table.forget_turn(&name.key(), turn);
        self.turn_ended = true;
    }

    /// These Pods get other places: what they hold below `from` lies below `to`.
    pub(crate) fn relocate(
        &mut self,
        keys: &[String],
        places: Vec<Relocated>,
        from: &Path,
        to: &Path,
    ) {
        self.table.relocate(keys, from, to);
        self.change.relocated = places;
        self.must_be_unused = true;
    }

    /// Stops those of these Pods that are live; their leases go back, and their parents get child
    /// events. `by` is the Pod that stops them: a parent that stops its own child gets no event.
    pub(crate) fn stop(
        &mut self,
        names: &[PodName],
        by: Option<&PodName>,
        silent: bool,
    ) -> Stopped {
        let since = now_ms();
        let keys: Vec<String> = names.iter().map(PodName::key).collect();
        let were_live: BTreeSet<String> =
            keys.iter().filter(|key| self.table.is_live(key)).cloned().collect();
        let returned = self.table.stop_all(&keys);
        let mut stopped = Stopped { were_live, ..Stopped::default() };
        for (name, back) in names.iter().zip(returned) {
            let lender = back.first().and_then(|lease| self.name_of(&lease.lender));
            let returned = back.into_iter().map(|lease| lease.rule).collect();
            let gained = Vec::new();
            stopped.pods.push(StoppedPod { name: name.clone(), returned, lender, gained });
            if stopped.were_live.contains(&name.key()) {
                self.change.wanted.push((name.clone(), Wanted::Stopped, since));
                stopped.notified.extend(self.child_stopped(name, since, by, silent));
            }
        }
        self.change.message.extend(stopped.notified.iter().cloned());
        for gained in self.gained() {
            // The Pods that were named come last; a lender is told of what is back by `returned`.
            let wrote = |pod: &&mut StoppedPod| {
                let granted = self.known(&pod.name.key()).map(|handle| handle.granted.clone());
                let may = |scope: &Scope| scope.permission(&gained.rule.target);
                granted.is_some_and(|g| may(&g.borrow().scope) == Some(Permission::Write))
            };
            let from = stopped.pods.iter_mut().rev().find(wrote);
            if let Some(from) = from.filter(|pod| pod.lender.as_ref() != Some(&gained.to)) {
                from.gained.push(gained);
            }
        }
        stopped
    }

    /// Where live Pods write by the table and do not by what they were last granted.
    fn gained(&self) -> Vec<Lent> {
        let live = self.table.affected().filter(|key| self.table.is_live(key));
        let gained = live.filter_map(|key| self.known(key).map(|handle| (key, handle)));
        let gained = gained.flat_map(|(key, handle)| {
            let rules = self.table.held(key).write_lost_in(&handle.granted.borrow().scope);
            rules.into_iter().map(move |rule| Lent { to: handle.name.clone(), rule })
        });
        gained.collect()
    }

    fn child_stopped(
        &self,
        name: &PodName,
        since: u64,
        by: Option<&PodName>,
        silent: bool,
    ) -> Option<ChildMessage> {
        let key = name.key();
        let parent = self.table.holder(&key)?.parent.as_ref()?;
        let parent = self.name_of(parent)?;
        let handle = self.known(&key)?;
        // A stop by the parent itself, or a silent one, is stored as taken, so that no start sends it either.
        let taken = silent || by.is_some_and(|by| by.key() == parent.key());
        let message = notify_parent::of_stop(&handle.name, handle.session, since);
        Some(ChildMessage { parent, message, taken })
    }

    /// Deletes a Pod that is not live.
    pub(crate) fn remove(&mut self, name: &PodName) {
        self.table.remove(&name.key());
        self.change.remove = Some(name.clone());
        self.publish.push(Publish::Removed(name.clone()));
    }

    /// The same, refused when the Pod has become an ordinary one.
    pub(crate) fn remove_ephemeral(&mut self, name: &PodName) {
        self.change.only_ephemeral = true;
        self.remove(name);
    }

    pub(crate) fn peer(&mut self, source: PodName, peer: PodName) {
        self.change.peers.push((PeerEdge::new(source.clone(), peer.clone()), true));
        self.publish.push(Publish::Peered { source, peer });
    }

    pub(crate) fn unpeer(&mut self, source: PodName, peer: PodName) {
        self.change.peers.push((PeerEdge::new(source.clone(), peer.clone()), false));
        self.publish.push(Publish::Unpeered { source, peer });
    }

    /// What a Pod holds by the table.
    pub(crate) fn granted(&self, key: &str) -> Granted {
        let live = self.table.is_live(key);
        let scope = if live {
            self.table.held(key)
        } else {
            self.table.holder(key).map(|holder| holder.wanted.clone()).unwrap_or_default()
        };
        let lent = self.table.lent_by(key);
        let lent = lent.filter_map(|lease| {
            Some(Lent { to: self.name_of(&lease.borrower)?, rule: lease.rule.clone() })
        });
        let notes = if live { self.scope_notes(key) } else { Vec::new() };
        Granted { scope, given: self.table.given_by_person(key), lent: lent.collect(), notes }
    }

    /// Whether `count` more Pods may be live below a root.
    pub(crate) fn room_below(&self, root: &PodName) -> Result<usize, Refusal> {
        let below = self.table.below(&root.key());
        let live = below.iter().filter(|key| self.table.is_live(key)).count();
        let most = self.shared.settings.last().settings.limits.live_children.get() as usize;
        if live >= most {
            let text = format!(
                "{live} pods are live below `{root}` and limits.live_children is {most}; stop one first"
            );
            return Err(Refusal::invalid(text));
        }
        Ok(most - live)
    }

    /// The sentence for a rule that cannot be lent.
    pub(crate) fn not_within(&self, owner: &PodName, rule: &Rule, why: &NotLent) -> Refusal {
        let word = match rule.permission {
            Permission::Read => "read",
            Permission::Write => "write",
        };
        let why = match why {
            NotLent::Outside => format!("no rule of `{owner}` gives {word} there"),
            NotLent::LentTo { to, has } => {
                let to = self.named(to);
                let reclaim = format!(
                    ":reclaim {} takes it back",
                    shell_word(&rule.target.display().to_string())
                );
                match self.named(has) {
                    has if has == to => format!(
                        "`{owner}` has lent it to `{to}`; {reclaim}, or it returns when that pod stops"
                    ),
                    has => format!(
                        "`{owner}` has lent it to `{to}` and `{has}` has it now; {reclaim}, or it returns when both stop"
                    ),
                }
            }
            NotLent::HeldBy(other) => format!("`{}` holds write there", self.named(other)),
            NotLent::Denied(deny) => {
                format!("the rule on {} denies it", deny.target.display())
            }
            NotLent::PartOf(region) => format!(
                "the borrower reads all of {0}, so that a part of it cannot be lent for writing; lend {0}",
                region.target.display()
            ),
            NotLent::NotLive(key) => format!("`{}` is not live", self.named(key)),
        };
        let path = rule.target.display();
        Refusal::invalid(format!("`{owner}` cannot give {word} on {path}: {why}"))
    }

    /// Publishes to every screen.
    pub(super) fn feed(&self, event: &Event) {
        self.shared.feed(None, None, event);
    }
}

/// The result of a stop.
#[derive(Default)]
pub(crate) struct Stopped {
    pub(crate) pods: Vec<StoppedPod>,
    /// The keys of those that were live.
    pub(crate) were_live: BTreeSet<String>,
    /// The child events for their parents.
    pub(crate) notified: Vec<ChildMessage>,
}

/// The holder of a lease that a row describes.
pub(super) fn holder(row: &PodRow) -> Holder {
    let Resolved { spawned, own_scope: own, .. } = Resolved::read(&row.config);
    Holder {
        parent: row.parent.as_ref().map(PodName::key),
        wanted: row.scope.clone(),
        spawned,
        own,
        live: row.wanted == Wanted::Live,
        turn: None,
        restrictions: row.restrictions.clone(),
        created: row.created,
    }
}

pub(super) fn taken(name: &PodName) -> Refusal {
    Refusal::invalid(format!("pod name `{name}` is already taken; :open {name} goes there"))
}
