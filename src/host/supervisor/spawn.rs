//! Children: checked whole before anything happens, made in one transaction, undone when their
//! first message does not arrive.

use crate::config::model_select::WantedModel;
use crate::config::settings::WorkspaceSettings;
use crate::config::workspace::Workspace;
use crate::host::pod::life::{self, Resolved};
use crate::host::pod::{Handle, Parental};
use crate::host::rules;
use crate::host::supervisor::canonical::canonical;
use crate::host::supervisor::create::{Plan, inherited};
use crate::host::supervisor::{Supervisor, internal};
use crate::protocol::{Event, Method, PodName, Refusal, SpawnPod, State};
use crate::scope::lease::NotLent;
use crate::scope::{Permission, Rule, Scope};
use crate::store::Change;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a child may take to accept its first message.
const FIRST_WORD: Duration = Duration::from_secs(5);

impl Supervisor {
    /// Makes a child of a live Pod, lends it scope and gives it its task.
    pub(super) async fn spawn(&mut self, parent: PodName, new: SpawnPod) -> Result<Event, Refusal> {
        let of = self.pod(&parent)?;
        if !self.book.holder(&parent.key()).is_some_and(|holder| holder.live) {
            let text = format!("pod `{parent}` is stopped; :restore {parent} brings it back");
            return Err(Refusal::invalid(text));
        }
        self.must_not_be_stopping(&of.name)?;
        let parental = of.parental().await?;
        let plan = self.plan(&of.name, &parental, &new)?;
        let (name, row) = (plan.name.clone(), plan.row());
        let session = row.session;
        // Nobody's until it has its task.
        self.shared.store.discard(session).await.map_err(internal)?;
        let child = self.add(row, plan.env).await?;
        crate::crash_point!("spawn-stored");
        if let Err(refusal) = self.first_word(&child, &of.name, new.task).await {
            crate::crash_point!("spawn-refused");
            self.unspawn(&child, session).await;
            let text =
                format!("could not start pod `{name}`: {}; nothing is left of it", refusal.message);
            return Err(Refusal::new(refusal.code, text));
        }
        crate::crash_point!("spawn-told");
        // Where this fails the next start finds the task in its log.
        let _ = self.shared.store.settle(session).await;
        let info = Box::new(child.info.borrow().clone());
        Ok(Event::Spawned { info, socket: self.shared.dirs.socket(name.as_str()) })
    }

    async fn first_word(
        &self,
        child: &Handle,
        parent: &PodName,
        task: String,
    ) -> Result<(), Refusal> {
        let say = async {
            child.live(Vec::new()).await?;
            child.call_by(Some(parent.clone()), Method::say(task)).await
        };
        match tokio::time::timeout(FIRST_WORD, say).await {
            Ok(said) => said.map(drop),
            Err(_) => Err(Refusal::internal("it did not accept its task in time")),
        }
    }

    /// Takes a child back that never began.
    async fn unspawn(&mut self, child: &Handle, session: crate::protocol::SessionId) {
        child.let_go().await;
        let mut next = self.book.clone();
        next.remove(&child.name.key());
        let remove = Some(child.name.clone());
        let removed = self.commit_leases(next, Change { remove, ..Change::default() }).await;
        crate::crash_point!("unspawn-stored");
        // Who spawned it reads of it in the answer, and of a child that is gone nobody has news.
        let parent = child.info.borrow().parent.clone();
        child.stopped(parent).await;
        // Where the store cannot be written the child stays, stopped by its own refusal.
        if removed.is_ok() {
            // What of its session stays on the disk is in nobody's way.
            let _ = self.leave_family(child, session).await;
        }
    }

    /// Everything a call asks for, checked; nothing has happened yet.
    fn plan(&self, parent: &PodName, parental: &Parental, new: &SpawnPod) -> Result<Plan, Refusal> {
        let name = self.child_name(parent, &new.name)?;
        let rules = self.lendable(parent, &new.scope)?;
        let scope = self.book.child_scope(&parent.key(), rules);
        let cwd = child_cwd(new.cwd.as_deref(), &parental.cwd, &scope)?;
        self.within_caps(parent)?;
        let resolved = self.child_config(parent, parental, new, &cwd)?;
        let workspace = if cwd.starts_with(&parental.workspace) {
            parental.workspace.clone()
        } else {
            Workspace::of(&cwd, &parental.env).map_or_else(|_| cwd.clone(), |found| found.root)
        };
        let (parent, env) = (Some(parent.clone()), parental.env.clone());
        Ok(Plan { name, parent, cwd, workspace, resolved, scope, env })
    }

    fn child_name(&self, parent: &PodName, asked: &str) -> Result<PodName, Refusal> {
        let name = PodName::parse(asked).map_err(|e| Refusal::invalid(e.to_string()))?;
        if name.key() == parent.key() {
            let text = format!("spawned pod name `{name}` collides with spawner's own name");
            return Err(Refusal::invalid(text));
        }
        if self.shared.pod(&name).is_some() {
            let text = format!(
                "pod name `{name}` is already registered; take another name, or RestorePod if that one is yours and stopped"
            );
            return Err(Refusal::invalid(text));
        }
        Ok(name)
    }

    /// The rules in the form that counts, if the parent may hand all of them on.
    fn lendable(&self, parent: &PodName, asked: &[Rule]) -> Result<Vec<Rule>, Refusal> {
        if asked.is_empty() {
            return Err(Refusal::invalid("scope must not be empty"));
        }
        let mut rules = Vec::new();
        for rule in asked {
            let target = &rule.target;
            if !target.is_absolute() {
                let text = format!("scope.target must be absolute: {}", target.display());
                return Err(Refusal::invalid(text));
            }
            let Some(real) = canonical(target) else {
                let text = format!("scope.target cannot be resolved: {}", target.display());
                return Err(Refusal::invalid(text));
            };
            let rule = Rule { target: real, ..rule.clone() };
            self.book
                .may_lend(&parent.key(), &rule)
                .map_err(|why| self.not_within(parent, &rule, &why))?;
            rules.push(rule);
        }
        Ok(rules)
    }

    /// The sentence for a rule that cannot be lent.
    pub(super) fn not_within(&self, owner: &PodName, rule: &Rule, why: &NotLent) -> Refusal {
        let word = match rule.permission {
            Permission::Read => "read",
            Permission::Write => "write",
        };
        let name =
            |key: &String| self.name_of(key).map_or_else(|| key.clone(), |name| name.to_string());
        let why = match why {
            NotLent::Outside => format!("no rule of `{owner}` gives {word} there"),
            NotLent::LentTo { to, has } if to == has => {
                format!("`{owner}` has lent it to `{}`; it returns when that pod stops", name(to))
            }
            NotLent::LentTo { to, has } => format!(
                "`{owner}` has lent it to `{}` and `{}` has it now; it returns when both stop",
                name(to),
                name(has)
            ),
            NotLent::HeldBy(other) => format!("`{}` holds write there", name(other)),
            NotLent::Denied(deny) => {
                format!("the rule on {} denies it", deny.target.display())
            }
            NotLent::PartOf(region) => format!(
                "a part of {} alone cannot be lent to who reads all of it; lend that whole",
                region.target.display()
            ),
            NotLent::NotLive(who) => format!("`{}` is not live", name(who)),
        };
        let path = rule.target.display();
        Refusal::invalid(format!(
            "requested scope `{path}` is not within spawner `{owner}`'s effective scope: {why}"
        ))
    }

    fn within_caps(&self, parent: &PodName) -> Result<(), Refusal> {
        let limits = &self.shared.settings.limits;
        let above = rules::lineage(&self.shared, parent);
        let root = above.first().unwrap_or(parent);
        let depth = above.len() + 1;
        if depth > limits.depth.get() as usize {
            let text = format!(
                "`{parent}` is {depth} deep already and limits.depth is {}; do it yourself or ask a pod above",
                limits.depth
            );
            return Err(Refusal::invalid(text));
        }
        self.room_below(root)
    }

    /// Whether one more Pod may be live below a root.
    pub(super) fn room_below(&self, root: &PodName) -> Result<(), Refusal> {
        let live = |name: &PodName| {
            self.shared.pod(name).is_some_and(|h| h.info.borrow().state != State::Stopped)
        };
        let children = self.below(root).iter().filter(|name| live(name)).count();
        let most = self.shared.settings.limits.live_children.get() as usize;
        if children >= most {
            let text = format!(
                "{children} pods are live below `{root}` and limits.live_children is {most}; stop one first"
            );
            return Err(Refusal::invalid(text));
        }
        Ok(())
    }

    fn child_config(
        &self,
        parent: &PodName,
        parental: &Parental,
        new: &SpawnPod,
        cwd: &Path,
    ) -> Result<Resolved, Refusal> {
        let asked = new.profile.as_deref();
        let invalid = |text: String| Refusal::invalid(format!("invalid SpawnPod.profile: {text}"));
        let profile = match asked {
            Some("inherit") => None,
            asked => self.profile(asked).map_err(|refusal| invalid(refusal.message))?,
        };
        let mut resolved = parental.resolved.clone();
        resolved.model = inherited(resolved.model.as_ref(), parent);
        if let Some((name, profile)) = profile {
            if let Some(spec) = profile.model {
                let says = WorkspaceSettings::load(&parental.workspace);
                let asked = Some(WantedModel::new(spec, format!("profile {name}")));
                let model = life::choose(&self.shared, asked, &parental.env, cwd, &says);
                resolved.model = model.map_err(invalid)?;
            }
            if let Some(max_turns) = profile.max_turns {
                resolved.max_turns = max_turns.get();
            }
            resolved.instruction = profile.instruction.or(resolved.instruction);
        }
        if let Some(instruction) = &new.instruction {
            resolved.instruction = Some(instruction.clone());
        }
        Ok(resolved)
    }
}

/// Where a child works: where it was told to, else where its parent does if it may read there,
/// else in its first target.
fn child_cwd(asked: Option<&Path>, parents: &Path, scope: &Scope) -> Result<PathBuf, Refusal> {
    if let Some(asked) = asked {
        let refuse = |why: &str| Refusal::invalid(format!("cwd {}: {why}", asked.display()));
        let real = canonical(asked).ok_or_else(|| refuse("it must be an absolute path"))?;
        if !real.is_dir() {
            return Err(refuse("it is no directory"));
        }
        if scope.permission(&real).is_none() {
            return Err(refuse("it is not readable under the scope given to the child"));
        }
        return Ok(real);
    }
    if scope.permission(parents).is_some() {
        return Ok(parents.to_path_buf());
    }
    let targets = scope.allow.iter().map(|rule| &rule.target);
    let home = targets
        .flat_map(|target| target.ancestors())
        .find(|dir| dir.is_dir() && scope.permission(dir).is_some());
    home.map(Path::to_path_buf).ok_or_else(|| {
        Refusal::invalid("no directory in scope is there to work in; create one, or pass cwd")
    })
}
