//! The interface of a run to its host: the Pod's relations, the rules of files that bind it, and
//! extensions of its scope by a person or a rule.

use crate::config::McpServers;
use crate::config::policy::Rules;
use crate::config::settings::{Settings, WhenBusy};
use crate::config::workspace_settings::{WorkspaceSettings, file_of, mcp_file_of};
use crate::host::relations::{Relation, relation};
use crate::host::{Shared, supervisor, verb};
use crate::protocol::family::Confined;
use crate::protocol::{Method, PodName, Refusal};
use crate::run::policy::{FamilyView, Policy, Walls};
use crate::run::{self, Begun};
use crate::scope::Rule;
use crate::scope::lease::{self, NotLent};
use crate::store::Decided;
use crate::tools::jobs::Jobs;
use crate::tools::pods::unreachable;
use crate::trace::OrLog as _;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

/// One Pod's view of its family.
struct Family {
    shared: Shared,
    me: PodName,
    supervisor: mpsc::WeakSender<supervisor::Step>,
}

/// The policy that binds a Pod as of now. Reads the workspace's settings. A directory that does not
/// answer is a refusal, because a run without its rules could do what they deny.
pub(crate) async fn policy(
    shared: &Shared,
    me: &PodName,
    workspace: PathBuf,
    supervisor: mpsc::WeakSender<supervisor::Step>,
) -> Result<(Policy, McpServers), Refusal> {
    let workspace_file = file_of(&workspace).display().to_string();
    let trusted = trusted_hash(shared, &workspace).await?;
    let at = workspace.clone();
    let host = shared.clone();
    let read = move || {
        let says = WorkspaceSettings::load(&at).with_trust(trusted.as_deref());
        (host.settings_now().settings, says)
    };
    let (settings, says) = shared.files.run(&workspace, read).await?;
    if !settings.unread.is_empty() {
        return Err(unknown_rules(&settings));
    }
    let mut user = settings.permissions.clone();
    user.default = user.default.or(says.granted.default);
    let user_file = shared.settings.path().display().to_string();
    let servers = servers_of(shared, &settings, &says, &workspace);
    let rules = Rules {
        user,
        user_file,
        workspace: says.rules,
        unread: says.unread,
        trusted: says.granted.rules,
        workspace_file,
    };
    let relations = Family { shared: shared.clone(), me: me.clone(), supervisor };
    let walls = match shared.confinement().await.word {
        Confined::Enforced | Confined::Partly => Walls::Hold,
        Confined::NotEnforced => Walls::Missing,
    };
    Ok((Policy { rules: Arc::new(rules), relations: Arc::new(relations), walls }, servers))
}

fn unknown_rules(settings: &Settings) -> Refusal {
    let why = settings.unread.join("; ");
    Refusal::invalid(format!(
        "{why}; the rules of this file are not known, and nothing runs until it is mended"
    ))
}

/// The MCP servers that the user's settings and a workspace name together.
fn servers_of(
    shared: &Shared,
    settings: &Settings,
    says: &WorkspaceSettings,
    workspace: &Path,
) -> McpServers {
    let user_file = shared.settings.path().display().to_string();
    let mcp_file = mcp_file_of(workspace).display().to_string();
    McpServers::of(&settings.mcp, &user_file, &says.granted.mcp, &mcp_file)
}

/// Reads the current servers again, and returns a sentence about those of an untrusted file.
pub(crate) async fn servers_now(
    shared: &Shared,
    workspace: PathBuf,
) -> Result<(McpServers, Option<String>), Refusal> {
    let (host, root) = (shared.clone(), workspace.clone());
    let servers = move |settings: &Settings, says: WorkspaceSettings| {
        (servers_of(&host, settings, &says, &root), says.untrusted_servers())
    };
    read_now(shared, workspace, servers).await
}

/// The command line that is to run in new working trees of a workspace: the user's, else that of the workspace's file while a
/// person trusts the file.
pub(crate) async fn setup_command(
    shared: &Shared,
    workspace: PathBuf,
) -> Result<Option<String>, Refusal> {
    let setup = |settings: &Settings, says: WorkspaceSettings| {
        settings.worktree.setup.clone().or(says.granted.setup)
    };
    let command = read_now(shared, workspace, setup).await?;
    Ok(command.filter(|command| !command.trim().is_empty()))
}

/// What the settings of the user and of a workspace, read again, say. `Err`: some of the user's cannot be read.
async fn read_now<T: Send + 'static>(
    shared: &Shared,
    workspace: PathBuf,
    of: impl FnOnce(&Settings, WorkspaceSettings) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let trusted = trusted_hash(shared, &workspace).await?;
    let (host, root) = (shared.clone(), workspace.clone());
    let read = move || {
        let says = WorkspaceSettings::load(&root).with_trust(trusted.as_deref());
        let settings = host.settings_now().settings;
        match settings.unread.is_empty() {
            false => Err(unknown_rules(&settings)),
            true => Ok(of(&settings, says)),
        }
    };
    shared.files.run(&workspace, read).await?
}

/// The hash of the settings file that a person trusts in a workspace.
pub(crate) async fn trusted_hash(
    shared: &Shared,
    workspace: &Path,
) -> Result<Option<String>, Refusal> {
    match workspace.to_str() {
        Some(workspace) => Ok(shared.store.trusted_hash(workspace).await?),
        None => Ok(None),
    }
}

/// The ancestors of a Pod, the root first.
pub(crate) fn lineage(shared: &Shared, pod: &PodName) -> Vec<PodName> {
    let parent = |pod: &PodName| shared.any_pod(pod)?.info.borrow().parent.clone();
    let mut above: Vec<PodName> = Vec::new();
    let mut next = parent(pod);
    while let Some(name) = next.filter(|name| !above.contains(name)) {
        next = parent(&name);
        above.push(name);
    }
    above.reverse();
    above
}

/// Gives a live Pod one more rule until it stops. Its ancestors get it and lend it down, so a child
/// is never wider than its parent. The rule and the decision that allows it are stored in one
/// transaction.
pub(crate) async fn extend(
    supervisor: mpsc::Sender<supervisor::Step>,
    name: PodName,
    rule: Rule,
    decided: Option<Decided>,
) -> Result<(), Refusal> {
    supervisor::step(&supervisor, move |family| extend_in(family, &name, &rule, decided)).await?;
    crate::crash_point!("extend-stored");
    Ok(())
}

/// Stores the decision that one call may use a rule that its Pod does not hold. The lease table
/// does not change; a rule that could not be lent is refused as by [`extend`].
pub(crate) async fn allow_once(
    supervisor: mpsc::Sender<supervisor::Step>,
    name: PodName,
    rule: Rule,
    decided: Decided,
) -> Result<(), Refusal> {
    let step = move |family: &mut supervisor::Family| {
        could_extend_in(family, &name, &rule)?;
        family.change.answer = Some(decided);
        Ok(())
    };
    supervisor::step(&supervisor, step).await
}

fn extend_in(
    family: &mut supervisor::Family,
    name: &PodName,
    rule: &Rule,
    decided: Option<Decided>,
) -> Result<(), Refusal> {
    extend_table(family, name, rule)?;
    family.must_be_unused();
    family.change.answer = decided;
    Ok(())
}

fn extend_table(
    family: &mut supervisor::Family,
    name: &PodName,
    rule: &Rule,
) -> Result<(), Refusal> {
    let own = family.shared.dirs.own();
    let own = own.iter().find(|dir| rule.overlaps(&Rule::new(*dir, rule.permission)));
    if let Some(dir) = own {
        let (path, dir) = (rule.target.display(), dir.display());
        let text =
            format!("{path} is in or around yoi's own directory {dir}, which no pod may use");
        return Err(Refusal::invalid(text));
    }
    match family.table.extend(&name.key(), rule) {
        Ok(()) => Ok(()),
        Err(NotLent::HeldBy(holder)) => {
            let (other, path) = (family.named(&holder), rule.target.display());
            let ways = family.ways_to_write(&name.key(), &holder, rule);
            Err(Refusal::invalid(format!("`{other}` holds write on {path}; {ways}")))
        }
        Err(why) => Err(family.not_within(name, rule, &why)),
    }
}

/// Whether [`extend`] would be refused as the family is now; changes nothing.
fn could_extend_in(
    family: &mut supervisor::Family,
    name: &PodName,
    rule: &Rule,
) -> Result<(), Refusal> {
    let before = family.table.savepoint();
    let could = extend_table(family, name, rule);
    family.table.roll_back(before);
    could
}

impl FamilyView for Family {
    fn lineage(&self) -> Vec<PodName> {
        lineage(&self.shared, &self.me)
    }

    fn is_peer(&self, name: &str) -> bool {
        let Ok(name) = PodName::parse(name) else { return false };
        relation(&self.shared, &self.me, &name) == Relation::Peer
    }

    fn unreachable(&self, tool: &str, arguments: &str) -> Option<String> {
        let could_begin =
            |to: &PodName, method: &Method| verb::could_begin(&self.shared, &self.me, to, method);
        unreachable(tool, arguments, &self.me, could_begin)
    }

    fn extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
        let (supervisor, me) = (self.supervisor.clone(), self.me.clone());
        Box::pin(async move {
            let ending = || Refusal::internal("the host is ending");
            extend(supervisor.upgrade().ok_or_else(ending)?, me, rule, None).await
        })
    }

    fn could_extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
        let (supervisor, me) = (self.supervisor.clone(), self.me.clone());
        Box::pin(async move {
            let ending = || Refusal::internal("the host is ending");
            let supervisor = supervisor.upgrade().ok_or_else(ending)?;
            supervisor::step(&supervisor, move |family| could_extend_in(family, &me, &rule)).await
        })
    }

    fn writers_at(&self, paths: Vec<PathBuf>) -> BoxFuture<'static, Result<Vec<String>, Refusal>> {
        let (supervisor, me) = (self.supervisor.clone(), self.me.clone());
        Box::pin(async move {
            let ending = || Refusal::internal("the host is ending");
            let supervisor = supervisor.upgrade().ok_or_else(ending)?;
            let step = move |family: &mut supervisor::Family| {
                let counts = |region: &Rule| paths.iter().any(|path| region.covers(path));
                let writers = family.table.in_the_way_at(&me.key(), counts);
                Ok(writers.iter().map(|other| family.named(other)).collect())
            };
            supervisor::step(&supervisor, step).await
        })
    }

    fn begin_turn(&self, when_busy: WhenBusy) -> BoxFuture<'static, Result<Begun, Refusal>> {
        let (supervisor, me) = (self.supervisor.clone(), self.me.clone());
        let mut turns = self.shared.turns.subscribe();
        Box::pin(async move {
            let ending = || Refusal::internal("the host is ending");
            let sender = supervisor.upgrade().ok_or_else(ending)?;
            let name = me.clone();
            let step = move |family: &mut supervisor::Family| {
                let (turn, writers) = family.begin_turn(&name, when_busy);
                // Whoever does not take the result of this step drops the turn with it.
                let jobs = family.known(&name.key()).map(|pod| pod.jobs);
                let held =
                    turn.map(|turn| HeldTurn { supervisor, me: name, turn: Some(turn), jobs });
                Ok((held, writers))
            };
            match supervisor::step(&sender, step).await? {
                (Some(held), writers) => Ok(Begun::Turn(Box::new(held), writers)),
                (None, writers) if writers.is_empty() => {
                    Err(Refusal::invalid(format!("pod `{me}` is stopped")))
                }
                (None, writers) => {
                    // A host that is gone frees nothing; the run is interrupted then.
                    let freed = Box::pin(async move { drop(turns.changed().await) });
                    Ok(Begun::Busy { writers, freed })
                }
            }
        })
    }
}

/// The turn of a Pod, by the supervisor.
struct HeldTurn {
    supervisor: mpsc::WeakSender<supervisor::Step>,
    me: PodName,
    turn: Option<lease::Turn>,
    /// Its commands in the background.
    jobs: Option<Jobs>,
}

impl HeldTurn {
    fn ended(&mut self) -> Option<BoxFuture<'static, ()>> {
        let (turn, supervisor) = (self.turn.take()?, self.supervisor.upgrade()?);
        let (me, jobs) = (self.me.clone(), self.jobs.take());
        let over = Box::pin(async move {
            let name = me.clone();
            let ends = move |family: &mut supervisor::Family| {
                family.end_turn(&name, turn);
                Ok(())
            };
            let Err(error) = supervisor::step(&supervisor, ends).await else { return };
            tracing::warn!(%error, "a turn to write ends only in memory");
            let forgets = move |family: &mut supervisor::Family| {
                family.forget_turn(&me, turn);
                Ok(())
            };
            supervisor::step(&supervisor, forgets).await.or_log("end a turn to write");
        });
        let Some(jobs) = jobs.filter(|jobs| !jobs.written().is_empty()) else { return Some(over) };
        // What writes on in the background keeps the turn, unless the next run of the Pod begins another one.
        let later = async move {
            jobs.none_writes().await;
            over.await;
        };
        let runtime = tokio::runtime::Handle::try_current();
        Some(Box::pin(async move { drop(runtime.map(|runtime| runtime.spawn(later))) }))
    }
}

impl run::Turn for HeldTurn {
    fn end(mut self: Box<Self>) -> BoxFuture<'static, ()> {
        self.ended().unwrap_or_else(|| Box::pin(std::future::ready(())))
    }
}

impl Drop for HeldTurn {
    /// For a run that was aborted or panicked.
    fn drop(&mut self) {
        if let (Some(ends), Ok(runtime)) = (self.ended(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(ends);
        }
    }
}
