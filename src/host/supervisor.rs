//! The one owner of the family: it creates, restores and removes Pods, decides who may write
//! where, and ends the host when nobody needs it.

use crate::config::choice::Asked;
use crate::config::settings::WorkspaceSettings;
use crate::config::workspace::{Access, Workspace};
use crate::host::pod::{self, Grant, Handle, life};
use crate::host::{Answer, HostError, IdleExit, Members, Shared};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, PodName, Refusal, SessionId, State, now_ms};
use crate::scope::loan::Gaps;
use crate::scope::{Permission, Rule, Scope};
use crate::store::{Opening, PodRow, StoreError, Wanted};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// Orders that wait for the supervisor; when it is full the asker waits.
pub(crate) const ORDERS: usize = 64;
/// How many numbers are tried for a default name that is taken.
const NUMBERS: u32 = 10_000;

/// What the supervisor is asked.
pub(crate) enum Order {
    New {
        new: NewPod,
        answer: Answer,
    },
    Restore {
        name: String,
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
            "{} pods were rebuilt from their logs, stopped; queued messages are gone",
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
/// were created.
pub(crate) async fn bring_back(
    shared: &Shared,
    orders: &mpsc::Sender<Order>,
) -> Result<(), HostError> {
    let mut rows: Vec<PodRow> = Vec::new();
    for row in shared.store.pods().await? {
        match row {
            Ok(row) => rows.push(row),
            // One damaged record never hides the others.
            Err(_) => continue,
        }
    }
    rows.sort_by_key(|row| row.created);
    for row in rows {
        let (wanted, scope, name) = (row.wanted, row.scope.clone(), row.name.clone());
        let handle = pod::spawn(shared, orders.downgrade(), row).await;
        insert(shared, handle.clone());
        if wanted == Wanted::Live {
            let grant = granted(shared, &name, scope, Vec::new());
            // A Pod that cannot live says why in its own state.
            let _ = handle.live(grant).await;
        }
    }
    Ok(())
}

/// Serves orders until the host ends.
pub(crate) async fn run(
    shared: Shared,
    orders: mpsc::WeakSender<Order>,
    mut inbox: mpsc::Receiver<Order>,
    ended: watch::Sender<bool>,
    idle_exit: IdleExit,
) {
    let patience = patience(&shared, idle_exit);
    let mut connections = shared.connections.subscribe();
    let mut give_up = patience.map(|patience| Instant::now() + patience);
    loop {
        let at = give_up.unwrap_or_else(Instant::now);
        tokio::select! {
            order = inbox.recv() => match order {
                None => return,
                Some(Order::Stop { answer }) => {
                    // The asker hears it before the sockets close.
                    let _ = answer.send(Ok(Event::Accepted { entry: None, queued: None }));
                    ended.send_replace(true);
                }
                Some(order) => serve(&shared, &orders, order).await,
            },
            _ = connections.changed() => {
                let alone = *connections.borrow_and_update() == 0;
                give_up = patience.filter(|_| alone).map(|patience| Instant::now() + patience);
            }
            () = tokio::time::sleep_until(at), if give_up.is_some() => {
                if is_idle(&shared) {
                    ended.send_replace(true);
                    give_up = None;
                } else {
                    give_up = patience.map(|patience| Instant::now() + patience);
                }
            }
        }
    }
}

fn patience(shared: &Shared, idle_exit: IdleExit) -> Option<Duration> {
    let minutes = shared.settings.host.idle_exit_min;
    let ends = idle_exit == IdleExit::BySettings && minutes > 0;
    ends.then(|| Duration::from_secs(minutes * 60))
}

fn is_idle(shared: &Shared) -> bool {
    *shared.connections.borrow() == 0
        && shared.family().iter().all(|info| {
            !matches!(info.state, State::Running | State::NeedsYou) && info.queue.is_empty()
        })
}

async fn serve(shared: &Shared, orders: &mpsc::WeakSender<Order>, order: Order) {
    let (answer, result) = match order {
        Order::New { new, answer } => (answer, create(shared, orders, new).await),
        Order::Restore { name, answer } => (answer, restore(shared, &name).await),
        Order::Remove { name, answer } => (answer, remove(shared, &name).await),
        Order::Stop { .. } => return,
    };
    // An asker that is gone wants no answer.
    let _ = answer.send(result);
}

fn insert(shared: &Shared, handle: Handle) {
    shared.members.send_modify(|members| {
        let mut map = BTreeMap::clone(&members.0);
        map.insert(handle.name.key(), handle);
        *members = Members(Arc::new(map));
    });
}

/// Creates a Pod and makes it live.
async fn create(
    shared: &Shared,
    orders: &mpsc::WeakSender<Order>,
    new: NewPod,
) -> Result<Event, Refusal> {
    let workspace = Workspace::of(&new.cwd, &shared.env);
    let workspace = workspace.map_err(|e| Refusal::invalid(e.to_string()))?;
    let cwd = new.cwd.canonicalize();
    let cwd = cwd.map_err(|e| Refusal::invalid(format!("{}: {e}", new.cwd.display())))?;
    let name = name(shared, new.name, &workspace.root)?;
    let says = WorkspaceSettings::load(&workspace.root);
    let env = if new.env.is_empty() { shared.env.clone() } else { new.env };
    let asked = new.model.map(|spec| Asked::new(spec, "--model"));
    let choice = life::choose(shared, asked, &env, &cwd, &says).map_err(Refusal::invalid)?;
    let limits = shared.settings.clone().narrowed(&says).limits;
    let max_turns = new.max_turns.unwrap_or(limits.max_turns.get());
    let (scope, mut notes) = wanted_scope(shared, new.scope, &workspace);
    notes.extend(says.notices.iter().map(ToString::to_string));
    let row = PodRow {
        name: name.clone(),
        parent: None,
        wanted: Wanted::Stopped,
        cwd,
        workspace: workspace.root,
        session: SessionId::new(),
        segment: None,
        config: life::resolved(choice.as_ref(), max_turns),
        scope: scope.clone(),
        created: now_ms(),
        since: now_ms(),
        seen: true,
        last: None,
        env: crate::sandbox::short_env(&env),
        gaps: Gaps::default(),
        last_run: None,
    };
    match shared.store.create_pod(row.clone()).await {
        Ok(()) => {}
        Err(StoreError::Taken(_)) => return Err(taken(&name)),
        Err(error) => return Err(Refusal::internal(error.to_string())),
    }
    crate::crash_point!("pod-stored");
    let handle = pod::spawn(shared, orders.clone(), row).await;
    insert(shared, handle.clone());
    handle.call(crate::protocol::Method::Open { env }).await?;
    handle.live(granted(shared, &name, scope, notes)).await?;
    crate::crash_point!("pod-live");
    let info = Box::new(handle.info.borrow().clone());
    Ok(Event::Created { info })
}

fn taken(name: &PodName) -> Refusal {
    Refusal::invalid(format!("pod name `{name}` is already taken; :open {name} goes there"))
}

/// The name asked for, or the workspace's, numbered when that is taken.
fn name(shared: &Shared, asked: Option<PodName>, root: &Path) -> Result<PodName, Refusal> {
    if let Some(name) = asked {
        return if shared.pod(&name).is_some() { Err(taken(&name)) } else { Ok(name) };
    }
    let base = root.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let base = PodName::from_directory(&base);
    if shared.pod(&base).is_none() {
        return Ok(base);
    }
    (2..NUMBERS)
        .map(|n| base.numbered(n))
        .find(|name| shared.pod(name).is_none())
        .ok_or_else(|| Refusal::invalid(format!("every name like `{base}` is taken; give one")))
}

/// The scope a new Pod asks for, without yoi's own directories.
fn wanted_scope(
    shared: &Shared,
    asked: Option<Vec<Rule>>,
    workspace: &Workspace,
) -> (Scope, Vec<String>) {
    let (permission, notes) = match &workspace.access {
        Access::Write => (Permission::Write, Vec::new()),
        Access::ReadOnly(why) => (Permission::Read, vec![why.clone()]),
    };
    let usual = || vec![Rule { target: workspace.root.clone(), permission, recursive: true }];
    let scope = Scope { allow: asked.unwrap_or_else(usual), deny: Vec::new() };
    let own = shared.dirs.own().into_iter().map(Path::to_path_buf);
    (scope.with_deny(own), notes)
}

/// What a Pod gets of the scope it wants: where a live Pod holds write, it reads.
fn granted(shared: &Shared, name: &PodName, wanted: Scope, mut notes: Vec<String>) -> Grant {
    for other in shared.family() {
        if other.name == *name || matches!(other.state, State::Stopped) {
            continue;
        }
        let theirs = Scope { allow: other.scope.clone(), deny: Vec::new() };
        let Some(path) = wanted.write_conflicts(&theirs).into_iter().next() else { continue };
        notes.push(format!(
            "reads only: {} holds write on {}; :stop {} frees it, --cwd works elsewhere",
            other.name,
            path.display(),
            other.name
        ));
        return Grant { scope: wanted.as_read_only(), notes };
    }
    Grant { scope: wanted, notes }
}

async fn restore(shared: &Shared, name: &str) -> Result<Event, Refusal> {
    let missing = || Refusal::invalid(format!("pod state missing for `{name}`"));
    let parsed = PodName::parse(name).map_err(|_| missing())?;
    let handle = shared.pod(&parsed).ok_or_else(missing)?;
    let info = handle.info.borrow().clone();
    if info.state != State::Stopped {
        let socket = shared.dirs.socket(handle.name.as_str());
        let status = match info.state {
            State::Running => "running",
            State::Paused => "paused",
            _ => "idle",
        };
        return Ok(Event::PodRestored {
            result: json!({
                "action": "already_live", "pod_name": handle.name,
                "socket_path": socket, "status": status,
            }),
        });
    }
    let row = shared.store.pod(&handle.name).await;
    let row = row.map_err(|e| Refusal::internal(e.to_string()))?.ok_or_else(missing)?;
    handle.live(granted(shared, &handle.name, row.scope, Vec::new())).await
}

/// Deletes a stopped Pod, its session and its row.
async fn remove(shared: &Shared, name: &PodName) -> Result<Event, Refusal> {
    let missing = || Refusal::invalid(format!("no pod named `{name}`"));
    let handle = shared.pod(name).ok_or_else(missing)?;
    if handle.info.borrow().state != State::Stopped {
        let text = format!("pod `{name}` is live; :stop {name} comes first");
        return Err(Refusal::invalid(text));
    }
    let row = shared.store.pod(&handle.name).await;
    let row = row.map_err(|e| Refusal::internal(e.to_string()))?.ok_or_else(missing)?;
    let removed = shared.store.remove_pod(&handle.name).await;
    removed.map_err(|e| Refusal::internal(e.to_string()))?;
    shared.members.send_modify(|members| {
        let mut map = BTreeMap::clone(&members.0);
        map.remove(&name.key());
        *members = Members(Arc::new(map));
    });
    shared.feed(None, None, &Event::PodRemoved { name: handle.name.clone() });
    let session = shared.dirs.data.join("sessions").join(row.session.to_string());
    match tokio::fs::remove_dir_all(&session).await {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            let text = format!("{name} is gone, but cannot delete {}: {e}", session.display());
            Err(Refusal::internal(text))
        }
        _ => Ok(Event::Accepted { entry: None, queued: None }),
    }
}
