//! The interface of a run to its host: the Pod's relations, the rules of files that bind it, and
//! extensions of its scope by a person or a rule.

use crate::config::McpServers;
use crate::config::policy::Rules;
use crate::config::settings::Settings;
use crate::config::workspace_settings::{WorkspaceSettings, file_of, mcp_file_of};
use crate::host::relations::{Relation, relation};
use crate::host::{Shared, supervisor, verb};
use crate::protocol::family::Confined;
use crate::protocol::{Method, PodName, Refusal};
use crate::run::policy::{FamilyView, Policy, Walls};
use crate::scope::Rule;
use crate::scope::lease::NotLent;
use crate::store::Decided;
use crate::tools::pods::unreachable;
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
    let trusted = trusted_hash(shared, &workspace).await?;
    let (host, root) = (shared.clone(), workspace.clone());
    let read = move || {
        let says = WorkspaceSettings::load(&root).with_trust(trusted.as_deref());
        let settings = host.settings_now().settings;
        match settings.unread.is_empty() {
            false => Err(unknown_rules(&settings)),
            true => Ok((servers_of(&host, &settings, &says, &root), says.untrusted_servers())),
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
    if own.iter().any(|dir| rule.target.starts_with(dir) || dir.starts_with(&rule.target)) {
        let text = format!("{} is yoi's own; no pod is given that", rule.target.display());
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
}
