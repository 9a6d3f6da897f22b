//! What a run learns of its host before its calls start: the Pod's place in the family, the rules
//! of files that bind it, and scope that a person or a rule lets it have.

use crate::config::policy::Rules;
use crate::config::settings::WorkspaceSettings;
use crate::host::relations::{Relation, Relations};
use crate::host::supervisor::Order;
use crate::host::{Shared, supervisor};
use crate::protocol::family::Confined;
use crate::protocol::{PodName, Refusal};
use crate::run::policy::{FamilyView, Policy, Walls};
use crate::scope::Rule;
use crate::store::Decided;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// One Pod's view of its family.
struct Family {
    shared: Shared,
    me: PodName,
    supervisor: mpsc::WeakSender<supervisor::Order>,
}

/// The policy that binds a Pod as of now. Reads the workspace's settings.
pub(crate) async fn policy(
    shared: &Shared,
    me: &PodName,
    workspace: PathBuf,
    supervisor: mpsc::WeakSender<supervisor::Order>,
) -> Policy {
    let workspace_file = workspace.join(".yoi/config.toml").display().to_string();
    let rules = Rules {
        user: shared.settings.permissions.clone(),
        user_file: shared.dirs.config.join("config.toml").display().to_string(),
        workspace: self::workspace(workspace).await.rules,
        workspace_file,
    };
    let kin = Family { shared: shared.clone(), me: me.clone(), supervisor };
    let walls = match shared.confinement().await.word {
        Confined::Enforced | Confined::Partly => Walls::Stand,
        Confined::NotEnforced => Walls::Missing,
    };
    Policy { rules: Arc::new(rules), kin: Arc::new(kin), walls }
}

/// What a workspace's own file says.
pub(crate) async fn workspace(root: PathBuf) -> WorkspaceSettings {
    let load = tokio::task::spawn_blocking(move || WorkspaceSettings::load(&root));
    load.await.unwrap_or_default()
}

/// The ancestors of a Pod, the root first.
pub(crate) fn lineage(shared: &Shared, pod: &PodName) -> Vec<PodName> {
    let parent = |pod: &PodName| shared.pod(pod)?.info.borrow().parent.clone();
    let mut above: Vec<PodName> = Vec::new();
    let mut next = parent(pod);
    while let Some(name) = next.filter(|name| !above.contains(name)) {
        next = parent(&name);
        above.push(name);
    }
    above.reverse();
    above
}

/// Adds a rule to what a live Pod holds, together with the answer that allows it, if one does.
pub(crate) async fn extend(
    orders: mpsc::Sender<supervisor::Order>,
    name: PodName,
    rule: Rule,
    decided: Option<Decided>,
) -> Result<(), Refusal> {
    let ending = || Refusal::internal("the host is ending");
    let (answer, reply) = oneshot::channel();
    orders.send(Order::Extend { name, rule, decided, answer }).await.map_err(|_| ending())?;
    reply.await.map_err(|_| ending())?.map(drop)
}

impl FamilyView for Family {
    fn lineage(&self) -> Vec<PodName> {
        lineage(&self.shared, &self.me)
    }

    fn is_peer(&self, name: &str) -> bool {
        let Ok(name) = PodName::parse(name) else { return false };
        Relations::now(&self.shared).relation(&self.me, &name) == Relation::Peer
    }

    fn extend(&self, rule: Rule) -> BoxFuture<'static, Result<(), Refusal>> {
        let (supervisor, me) = (self.supervisor.clone(), self.me.clone());
        Box::pin(async move {
            let ending = || Refusal::internal("the host is ending");
            extend(supervisor.upgrade().ok_or_else(ending)?, me, rule, None).await
        })
    }
}
