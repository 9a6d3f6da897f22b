//! The one owner of the family: it creates, lends, restores and removes, decides who may write
//! where, and ends the host when nobody needs it.

use crate::config::settings::Settings;
use crate::host::pod::{self, Granted, Handle};
use crate::host::{Answer, HostError, IdleExit, Members, Shared};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Lent, PodName, Refusal, SpawnPod, State};
use crate::scope::Rule;
use crate::scope::lease::{Holder, LeaseTable};
use crate::store::{Change, DamagedRow, Decided, Opening, PodRow, StoreError, Wanted};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

mod canonical;
mod create;
mod extend;
mod fork;
mod lend;
mod notes;
mod peer;
mod remove;
mod restore;
mod spawn;
mod stop;
mod unfinished;

/// Orders that wait for the supervisor; when it is full the asker waits.
pub(crate) const ORDERS: usize = 64;

/// What the supervisor is asked.
pub(crate) enum Order {
    New {
        new: NewPod,
        answer: Answer,
    },
    /// A parent makes a child.
    Spawn {
        parent: PodName,
        new: SpawnPod,
        answer: Answer,
    },
    /// The reply is [`Event::PodRestored`].
    Restore {
        name: String,
        answer: Answer,
    },
    /// The reply is [`Event::Plan`].
    RestorePods {
        name: PodName,
        how: Restore,
        answer: Answer,
    },
    /// Stop a Pod, or all below it, too. `by` is the Pod that asks; `None` is a person.
    StopPods {
        name: PodName,
        tree: bool,
        by: Option<PodName>,
        answer: Answer,
    },
    /// These have let go of their turns and logs: the rest of stopping them.
    LetGo {
        names: Vec<PodName>,
        by: Option<PodName>,
        answer: Answer,
    },
    Peer {
        source: PodName,
        name: String,
        answer: Answer,
    },
    Unpeer {
        source: PodName,
        name: String,
        answer: Answer,
    },
    Lend {
        from: PodName,
        to: String,
        rule: Rule,
        answer: Answer,
    },
    Reclaim {
        owner: PodName,
        path: PathBuf,
        answer: Answer,
    },
    Who {
        path: PathBuf,
        answer: Answer,
    },
    /// Give a Pod more than it was made with, until it stops: a person allowed it.
    Extend {
        name: PodName,
        rule: Rule,
        decided: Option<Decided>,
        answer: Answer,
    },
    Fork {
        source: PodName,
        name: Option<PodName>,
        at: Option<crate::protocol::EntryId>,
        answer: Answer,
    },
    Remove {
        name: PodName,
        answer: Answer,
    },
    /// End the host.
    Stop {
        answer: Answer,
    },
}

/// What a restore is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restore {
    /// Everything below it, too.
    pub(crate) tree: bool,
    /// Only say what it would do.
    pub(crate) plan: bool,
}

/// The owner itself.
pub(crate) struct Supervisor {
    shared: Shared,
    orders: mpsc::WeakSender<Order>,
    book: LeaseTable,
    /// The keys of Pods that are letting go, with how many orders wait for each.
    stopping: BTreeMap<String, usize>,
}

/// What the store could not tell is rebuilt from the logs; every Pod found there is stopped.
pub(crate) async fn recover(shared: &Shared, opening: &Opening) -> Result<Vec<String>, HostError> {
    let mut notices = Vec::new();
    if let Some(aside) = &opening.set_aside {
        notices.push(format!("the store was damaged and is kept as {}", aside.display()));
    }
    if !opening.created && opening.set_aside.is_none() {
        return Ok(notices);
    }
    let data = shared.dirs.data.clone();
    let rows = tokio::task::spawn_blocking(move || crate::store::recover(&data)).await;
    let rows = rows.unwrap_or_default();
    if !rows.is_empty() {
        notices.push(format!(
            "{} pods were rebuilt from their logs, stopped; peers, loans, questions and queued \
             messages are gone",
            rows.len()
        ));
    }
    for row in rows {
        match shared.store.create_pod(row).await {
            Ok(()) | Err(StoreError::Taken(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(notices)
}

/// Starts an actor for every known Pod; those that were live become live again, in the order they
/// were created, with what they held.
pub(crate) async fn bring_back(
    shared: &Shared,
    orders: &mpsc::Sender<Order>,
) -> Result<Supervisor, HostError> {
    let (mut rows, mut damaged): (Vec<PodRow>, Vec<DamagedRow>) = (Vec::new(), Vec::new());
    for row in shared.store.pods().await? {
        match row {
            Ok(row) => rows.push(row),
            // One damaged record never hides the others.
            Err(row) => damaged.push(row),
        }
    }
    rows.sort_by_key(|row| row.created);
    shared.damaged.send_replace(Arc::new(damaged));
    let mut book = LeaseTable::default();
    for row in &rows {
        book.add(row.name.key(), holder(row));
    }
    for (id, lease) in shared.store.leases().await? {
        book.load_lease(id, lease);
    }
    // What was read is stored already.
    book.commit();
    unfinished::clear(shared, &mut rows, &mut book).await?;
    shared.peers.send_replace(Arc::new(shared.store.peers().await?));
    crate::host::notify_parent::catch_up(shared, &mut rows).await;
    crate::crash_point!("news-caught-up");
    if book.mend() {
        let leases = book.changes();
        shared.store.change_family(Change { leases, ..Change::default() }).await?;
        book.commit();
    }
    let supervisor = Supervisor {
        shared: shared.clone(),
        orders: orders.downgrade(),
        book,
        stopping: BTreeMap::new(),
    };
    let live: Vec<PodName> =
        rows.iter().filter(|row| row.wanted == Wanted::Live).map(|row| row.name.clone()).collect();
    for row in rows {
        let granted = supervisor.granted(&row.name.key());
        let handle = pod::spawn(shared, orders.downgrade(), row, granted).await;
        insert(shared, handle);
    }
    for name in live {
        if let Some(handle) = shared.pod(&name) {
            // A Pod that cannot live says why in its own state.
            let _ = handle.live(Vec::new()).await;
            crate::crash_point!("pod-back");
        }
    }
    Ok(supervisor)
}

/// A row as the book knows it.
fn holder(row: &PodRow) -> Holder {
    Holder {
        parent: row.parent.as_ref().map(PodName::key),
        wanted: row.scope.clone(),
        live: row.wanted == Wanted::Live,
        restrictions: row.restrictions.clone(),
        created: row.created,
    }
}

fn insert(shared: &Shared, handle: Handle) {
    shared.members.send_modify(|members| {
        let mut map = BTreeMap::clone(&members.0);
        map.insert(handle.name.key(), handle);
        *members = Members(Arc::new(map));
    });
}

impl Supervisor {
    /// Serves orders until the host ends.
    pub(crate) async fn run(
        mut self,
        mut inbox: mpsc::Receiver<Order>,
        ended: watch::Sender<bool>,
        idle_exit: IdleExit,
    ) {
        let patience = patience(&self.shared.settings, idle_exit);
        let mut connections = self.shared.connections.subscribe();
        let mut give_up = patience.map(|patience| Instant::now() + patience);
        loop {
            let at = give_up.unwrap_or_else(Instant::now);
            tokio::select! {
                order = inbox.recv() => match order {
                    None => return,
                    Some(Order::Stop { answer }) => {
                        // The asker hears it before the sockets close.
                        let _ = answer.send(Ok(done()));
                        ended.send_replace(true);
                    }
                    Some(order) => self.serve(order).await,
                },
                _ = connections.changed() => {
                    let alone = *connections.borrow_and_update() == 0;
                    give_up = patience.filter(|_| alone).map(|patience| Instant::now() + patience);
                }
                () = tokio::time::sleep_until(at), if give_up.is_some() => {
                    if self.is_idle() {
                        ended.send_replace(true);
                        give_up = None;
                    } else {
                        give_up = patience.map(|patience| Instant::now() + patience);
                    }
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        *self.shared.connections.borrow() == 0
            && self.shared.family().iter().all(|info| {
                !matches!(info.state, State::Running | State::NeedsYou) && info.queue.is_empty()
            })
    }

    async fn serve(&mut self, order: Order) {
        let (answer, result) = match order {
            Order::New { new, answer } => (answer, self.create(new).await),
            Order::Spawn { parent, new, answer } => (answer, self.spawn(parent, new).await),
            Order::Restore { name, answer } => (answer, self.restore(&name).await),
            Order::RestorePods { name, how, answer } => {
                (answer, self.restore_pods(&name, how).await)
            }
            Order::StopPods { name, tree, by, answer } => {
                return self.stop(&name, tree, by, answer);
            }
            Order::LetGo { names, by, answer } => (answer, self.stopped(names, by).await),
            Order::Peer { source, name, answer } => (answer, self.peer(source, &name).await),
            Order::Unpeer { source, name, answer } => (answer, self.unpeer(source, &name).await),
            Order::Lend { from, to, rule, answer } => (answer, self.lend(&from, &to, rule).await),
            Order::Reclaim { owner, path, answer } => (answer, self.reclaim(&owner, path).await),
            Order::Who { path, answer } => (answer, self.who(path)),
            Order::Extend { name, rule, decided, answer } => {
                (answer, self.extend(&name, rule, decided).await)
            }
            Order::Fork { source, name, at, answer } => {
                (answer, self.fork(&source, name, at).await)
            }
            Order::Remove { name, answer } => (answer, self.remove(&name).await),
            Order::Stop { .. } => return,
        };
        // An asker that is gone wants no answer.
        let _ = answer.send(result);
    }

    /// Puts the book's next page into force: in the store first, in one transaction with `change`,
    /// then for every Pod whose scope it changes.
    async fn commit_leases(
        &mut self,
        mut next: LeaseTable,
        mut change: Change,
    ) -> Result<(), Refusal> {
        change.leases = next.changes();
        let affected: Vec<String> = next.affected().cloned().collect();
        next.commit();
        let stored = self.shared.store.change_family(change).await;
        stored.map_err(|error| match error {
            // The store alone knows the names of records that cannot be read.
            StoreError::Taken(name) => taken(&name),
            error @ StoreError::NotAsked => Refusal::invalid(error.to_string()),
            error => internal(error),
        })?;
        self.book = next;
        self.regrant(&affected).await;
        Ok(())
    }

    /// Puts a page into force that takes from some Pods what they write, unless one of them runs a
    /// command that may be writing there.
    async fn commit_leases_if_unused(
        &mut self,
        next: LeaseTable,
        change: Change,
    ) -> Result<(), Refusal> {
        // First the scope that commands from now on are started with, then a look at what runs.
        let narrowed = self.narrow(&next);
        let used = narrowed.iter().find_map(|(handle, lost)| {
            let command = handle.commands.oldest()?;
            Some(format!(
                "`{}` runs {command}, which may write below {}; wait for it or :pause {}",
                handle.name,
                lost.target.display(),
                handle.name
            ))
        });
        let turned = match used {
            Some(used) => Err(Refusal::invalid(used)),
            None => self.commit_leases(next, change).await,
        };
        for (handle, _) in narrowed {
            let granted = self.granted(&handle.name.key());
            handle.granted.send_replace(granted);
            handle.regranted().await;
        }
        turned
    }

    /// Takes from every Pod what it loses by a page, and says from which ones, with what.
    fn narrow(&self, next: &LeaseTable) -> Vec<(Handle, Rule)> {
        let members = self.shared.members.borrow().clone();
        let mut narrowed = Vec::new();
        for (key, handle) in next.affected().filter_map(|key| members.0.get_key_value(key)) {
            if !next.holder(key).is_some_and(|holder| holder.live) {
                continue;
            }
            let after = next.held(key);
            if let Some(lost) = self.book.held(key).lost(&after) {
                handle.granted.send_modify(|granted| granted.scope = after);
                narrowed.push((handle.clone(), lost));
            }
        }
        narrowed
    }

    /// A Pod that is letting go has no new child, and is neither restored nor deleted meanwhile.
    fn must_not_be_stopping(&self, name: &PodName) -> Result<(), Refusal> {
        if self.stopping.contains_key(&name.key()) {
            let text = format!("pod `{name}` is being stopped; try again when it is");
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }

    /// Tells every Pod what it holds now, where that changed. Its tools know at once; when this
    /// returns every screen was told, too.
    async fn regrant(&self, affected: &[String]) {
        let members = self.shared.members.borrow().clone();
        for (key, handle) in affected.iter().filter_map(|key| members.0.get_key_value(key)) {
            let granted = self.granted(key);
            let changed = handle.granted.send_if_modified(|held| {
                let differs = *held != granted;
                *held = granted;
                differs
            });
            if changed {
                handle.regranted().await;
            }
        }
    }

    /// What a Pod holds by the book.
    fn granted(&self, key: &str) -> Granted {
        let live = self.book.holder(key).is_some_and(|holder| holder.live);
        let scope = if live {
            self.book.held(key)
        } else {
            self.book.holder(key).map(|holder| holder.wanted.clone()).unwrap_or_default()
        };
        let lent = self.book.lent_by(key);
        let lent = lent.filter_map(|loan| {
            Some(Lent { to: self.name_of(&loan.borrower)?, rule: loan.rule.clone() })
        });
        let notes = if live { self.scope_notes(&self.book, key) } else { Vec::new() };
        Granted { scope, lent: lent.collect(), notes }
    }

    /// The name behind a key, as it was written.
    fn name_of(&self, key: &str) -> Option<PodName> {
        let members = self.shared.members.borrow();
        let known = members.0.get(key).map(|handle| handle.name.clone());
        known.or_else(|| PodName::parse(key).ok())
    }

    fn pod(&self, name: &PodName) -> Result<Handle, Refusal> {
        let missing = || Refusal::invalid(format!("no pod named `{name}`"));
        self.shared.pod(name).ok_or_else(missing)
    }

    /// The names of everything below a Pod, parents before children.
    fn below(&self, name: &PodName) -> Vec<PodName> {
        let family = self.shared.family();
        let (mut found, mut at) = (vec![name.clone()], 0);
        while at < found.len() {
            let parent = found[at].key();
            let child = |info: &&crate::protocol::PodInfo| {
                info.parent.as_ref().is_some_and(|p| p.key() == parent)
            };
            found.extend(family.iter().filter(child).map(|info| info.name.clone()));
            at += 1;
        }
        found.split_off(1)
    }
}

/// How long a host without screen and work stays; `None`: for ever.
pub(crate) fn patience(settings: &Settings, idle_exit: IdleExit) -> Option<Duration> {
    match idle_exit {
        IdleExit::Never => None,
        IdleExit::BySettings => settings.host.idle_exit(),
    }
}

/// The reply to an order that leaves nothing to say.
fn done() -> Event {
    Event::Accepted { entry: None, queued: None }
}

fn taken(name: &PodName) -> Refusal {
    Refusal::invalid(format!("pod name `{name}` is already taken; :open {name} goes there"))
}

fn internal(error: impl ToString) -> Refusal {
    Refusal::internal(error.to_string())
}
