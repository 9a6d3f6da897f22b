//! Spawn: a child of a live Pod. All checks come first; the child is created in one transaction,
//! listed when its first message is committed, and removed if that message is refused.

use crate::config::catalogue::Names;
use crate::config::model_select::{ModelChoice, WantedModel};
use crate::config::workspace::Workspace;
use crate::host::ephemeral;
use crate::host::models::{self, Local, Search};
use crate::host::paths::canonical;
use crate::host::pod::resolved::Resolved;
use crate::host::pod::{Birth, Fact, Handle, Parental};
use crate::host::supervisor::{Family, unfinished};
use crate::host::verb::create::{self, Plan};
use crate::host::verb::{Caller, Cx, Verb};
use crate::host::worktree::{self, Top};
use crate::protocol::{ErrorCode, Event, Method, PodName, Refusal, SpawnPod};
use crate::scope::{Permission, Rule, Scope};
use crate::tools::jobs::EndedBy;
use crate::trace::OrLog as _;
use futures_util::future::join;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a child may take to accept its first message.
const FIRST_MESSAGE: Duration = Duration::from_secs(5);

impl Verb for SpawnPod {
    const ALLOWED: Caller = Caller::Itself;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let parent = cx.pod()?;
        let from = parent.info.borrow().cwd.clone();
        let asked = Asked::read(&self, &parent.name, &from, &cx).await?;
        let checking = asked.clone();
        let scope = cx.family(move |family| checking.check(family)).await?;
        let parental = parent.parental().await?;
        let plan = match asked.top.clone() {
            None => plan(&self, &parent.name, parental, scope, &cx).await?,
            Some(top) => plan_in_tree(&self, &asked, top, parental, scope, &cx).await?,
        };
        let tree = plan.resolved.worktree.clone();
        let plan = Arc::new(plan);
        let created = cx.family_when_unused(self.running, move |family: &mut Family| {
            // The family may have changed since the first check.
            asked.check(family)?;
            let (row, env) = (plan.row(asked.name.clone()), plan.env.clone());
            Ok(family.create(row, Birth::Child { env }))
        });
        let created = created.await;
        let (child, _mark) = created.inspect_err(|_| tree.iter().for_each(worktree::give_up))?;
        crate::crash_point!("spawn-stored");
        let begun = async {
            let notes = worktree::ready(&cx.shared, &child).await?;
            let name = parent.name.clone();
            // That may have taken minutes.
            let still = cx.family(move |family| {
                let parent = family.live(&name)?.name;
                family.must_not_be_stopping(&parent)
            });
            still.await?;
            first_message(&child, &parent.name, self.task).await?;
            Ok(notes)
        };
        let notes = match begun.await {
            Ok(notes) => notes,
            Err(refusal) => {
                crate::crash_point!("spawn-refused");
                return Err(undo(&cx, &child, refusal).await);
            }
        };
        crate::crash_point!("spawn-told");
        list(&cx, &child).await?;
        let mut info = Box::new(child.info.borrow().clone());
        info.notes.extend(notes);
        Ok(Event::Spawned { info, socket: cx.shared.sockets().socket(child.name.as_str()) })
    }
}

/// The name and the scope that a call wants, in the form that scopes compare.
#[derive(Clone)]
struct Asked {
    parent: PodName,
    name: PodName,
    /// Empty: read of what the parent may read.
    rules: Vec<Rule>,
    /// The top of the repository from which a working tree for it is made.
    top: Option<PathBuf>,
    /// Where working trees lie.
    place: PathBuf,
}

impl Asked {
    /// Relative paths are meant from the directory `from` of the parent.
    async fn read(new: &SpawnPod, parent: &PodName, from: &Path, cx: &Cx) -> Result<Self, Refusal> {
        let name = PodName::parse(&new.name).map_err(|e| Refusal::invalid(e.to_string()))?;
        if name.key() == parent.key() {
            let text = format!("a child cannot have its parent's name `{name}`");
            return Err(Refusal::invalid(text));
        }
        // If that Pod cannot be deleted, the name stays taken.
        ephemeral::give_way(cx, &name).await.or_log("delete an ephemeral pod");
        let (named, above) = (name.clone(), parent.clone());
        cx.family(move |family| must_be_free(family, &named, &above)).await?;
        let mut rules = Vec::new();
        for rule in &new.scope {
            let target = create::scope_target(&rule.target, from, cx).await?;
            rules.push(Rule { target, ..rule.clone() });
        }
        let top = match &new.worktree {
            None => None,
            Some(_) if !rules.is_empty() => {
                return Err(Refusal::invalid(
                    "scope and worktree cannot be joined: a child with a working tree works in that alone",
                ));
            }
            Some(_) => Some(top_of(new.cwd.as_deref(), from, cx).await?),
        };
        let place = cx.shared.dirs.worktrees();
        // Scopes name it so; before the first one is made it holds nothing.
        let place = canonical(cx, &place).await.unwrap_or(place);
        Ok(Self { parent: parent.clone(), name, rules, top, place })
    }

    /// Whether the parent may have this child now; the child's scope.
    fn check(&self, family: &mut Family) -> Result<Scope, Refusal> {
        let parent = family.live(&self.parent)?.name;
        family.must_not_be_stopping(&parent)?;
        must_be_free(family, &self.name, &parent)?;
        let rules = match &self.top {
            // With its working tree a child writes what a commit needs of the repository.
            Some(top) => vec![Rule::new(top, Permission::Write)],
            None if self.rules.is_empty() => readable(family, &parent)?,
            None => self.rules.clone(),
        };
        for rule in &rules {
            let lent = family.table.may_lend(&parent.key(), rule);
            lent.map_err(|why| family.not_within(&parent, rule, &why))?;
        }
        let place = Rule::new(&self.place, Permission::Write);
        if self.top.is_some() && family.table.may_lend(&parent.key(), &place).is_ok() {
            return Err(Refusal::invalid(format!(
                "your scope holds {}, where working trees lie, so a child's would be yours as well: use scope",
                self.place.display()
            )));
        }
        within_limits(family, &parent)?;
        let rules = if self.top.is_some() { Vec::new() } else { rules };
        Ok(family.table.child_scope(&parent.key(), rules))
    }
}

/// The top of the repository that a call means, by the directory that it names or that of the parent.
async fn top_of(cwd: Option<&Path>, from: &Path, cx: &Cx) -> Result<PathBuf, Refusal> {
    let cwd = cwd.map_or(from.to_owned(), |cwd| from.join(cwd));
    let at = canonical(cx, &cwd).await?;
    let (dir, env) = (at.clone(), cx.shared.env.clone());
    cx.files(&at, move || Workspace::root_of(&dir, &env)).await
}

/// Rules to read what a Pod may read and lend, none inside another.
fn readable(family: &Family, parent: &PodName) -> Result<Vec<Rule>, Refusal> {
    let held = family.table.held(&parent.key()).as_read_only().allow;
    let may_lend = |rule: &Rule| family.table.may_lend(&parent.key(), rule).is_ok();
    let held: Vec<Rule> = held.into_iter().filter(may_lend).collect();
    let mut rules: Vec<Rule> = Vec::new();
    for rule in &held {
        let inside = |other: &Rule| other != rule && other.contains(rule);
        if !held.iter().any(inside) && !rules.contains(rule) {
            rules.push(rule.clone());
        }
    }
    match rules.is_empty() {
        true => Err(Refusal::invalid(
            "scope is missing, and there is nothing that you may read and lend",
        )),
        false => Ok(rules),
    }
}

/// The parent may have forgotten a child of its own: a rewind took the spawn out of its history.
fn must_be_free(family: &Family, name: &PodName, parent: &PodName) -> Result<(), Refusal> {
    if family.is_free(name) {
        return Ok(());
    }
    let is_own = family.table.above(&name.key()).first() == Some(&parent.key());
    Err(Refusal::invalid(match (is_own, family.table.is_live(&name.key())) {
        (true, true) => format!(
            "you have a child `{name}` already, and it is live: SendToPod gives it a task, StopPod stops it, or take another name"
        ),
        (true, false) => format!(
            "you have a child `{name}` already, which is stopped: RestorePod brings it back, or take another name"
        ),
        (false, _) => format!("pod name `{name}` is already registered; take another name"),
    }))
}

fn within_limits(family: &Family, parent: &PodName) -> Result<(), Refusal> {
    let settings = family.shared.settings.last().settings;
    let limits = &settings.limits;
    let above = family.table.above(&parent.key());
    let generation = above.len();
    if generation >= limits.depth.get() as usize {
        let text = format!(
            "`{parent}` is {generation} generations below the first pod and limits.depth is {}; do it yourself \
             or ask a pod above",
            limits.depth
        );
        return Err(Refusal::invalid(text));
    }
    let root = above.last().and_then(|key| family.name_of(key));
    family.room_below(root.as_ref().unwrap_or(parent)).map(drop)
}

/// Everything but the name.
async fn plan(
    new: &SpawnPod,
    parent: &PodName,
    parental: Parental,
    scope: Scope,
    cx: &Cx,
) -> Result<Plan, Refusal> {
    let cwd = match &new.cwd {
        Some(asked) => asked_cwd(&parental.cwd.join(asked), &scope, cx).await?,
        None => usual_cwd(&parental.cwd, &scope, cx).await?,
    };
    let resolved = child_config(new, parent, &parental, &cwd, cx).await?;
    let workspace = if cwd.starts_with(&parental.workspace) {
        parental.workspace
    } else {
        let (at, env, above) = (cwd.clone(), parental.env.clone(), parental.workspace);
        let trees = cx.shared.dirs.worktrees();
        // The rules of the parent's workspace bind a child that works in a working tree, too.
        let root = move || match worktree::top_of(&trees, &at) {
            Some(_) => above,
            None => Workspace::root_of(&at, &env),
        };
        cx.files(&cwd, root).await?
    };
    let (parent, env) = (Some(parent.clone()), parental.env);
    // The state of its parent at this moment decides.
    Ok(Plan { parent, cwd, workspace, resolved, scope, env, ephemeral: false })
}

/// Everything but the name of a child that works in a working tree of its own: it is made from the repository of its parent's,
/// if that has one, and begins at the commit of the parent's.
async fn plan_in_tree(
    new: &SpawnPod,
    asked: &Asked,
    top: PathBuf,
    parental: Parental,
    scope: Scope,
    cx: &Cx,
) -> Result<Plan, Refusal> {
    let repository = worktree::made_from(&cx.shared, &top).await;
    let (trees, at) = (cx.shared.dirs.worktrees(), top.clone());
    let in_tree = cx.files(&top, move || worktree::top_of(&trees, &at).is_some()).await?;
    // The rules of the parent's workspace bind a child that works in a working tree, too.
    let is_of_parents = in_tree || top.starts_with(&parental.workspace);
    let workspace = if is_of_parents { parental.workspace.clone() } else { top.clone() };
    let resolved = child_config(new, &asked.parent, &parental, &top, cx).await?;
    let wanted = new.worktree.clone().unwrap_or_default();
    let tree =
        create::plan_tree(Top { path: top, repository }, asked.name.clone(), wanted, cx).await?;
    let allow = vec![Rule::new(tree.path.clone(), Permission::Write)];
    Ok(Plan {
        parent: Some(asked.parent.clone()),
        cwd: tree.path.clone(),
        workspace,
        resolved: Resolved { own_scope: true, worktree: Some(tree), ..resolved },
        scope: Scope { allow, ..scope },
        env: parental.env,
        ephemeral: false,
    })
}

/// The directory that the call names.
async fn asked_cwd(asked: &Path, scope: &Scope, cx: &Cx) -> Result<PathBuf, Refusal> {
    let refuse = |why: &str| Refusal::invalid(format!("cwd {}: {why}", asked.display()));
    let real = canonical(cx, asked).await.map_err(|refusal| refuse(&refusal.message))?;
    let dir = real.clone();
    if !cx.files(&real, move || dir.is_dir()).await? {
        return Err(refuse("it is no directory"));
    }
    if scope.permission(&real).is_none() {
        return Err(refuse("it is not readable under the scope given to the child"));
    }
    Ok(real)
}

/// The parent's directory if the child may read there, else its first target that exists.
async fn usual_cwd(parents: &Path, scope: &Scope, cx: &Cx) -> Result<PathBuf, Refusal> {
    if scope.permission(parents).is_some() {
        return Ok(parents.to_path_buf());
    }
    for rule in &scope.allow {
        let (target, scope) = (rule.target.clone(), scope.clone());
        let find = move || {
            let mut dirs = target.ancestors();
            let home = dirs.find(|dir| dir.is_dir() && scope.permission(dir).is_some());
            home.map(Path::to_path_buf)
        };
        if let Some(home) = cx.files(&rule.target, find).await? {
            return Ok(home);
        }
    }
    let text = "no directory in scope is there to work in; create one, or pass cwd";
    Err(Refusal::invalid(text))
}

async fn child_config(
    new: &SpawnPod,
    parent: &PodName,
    parental: &Parental,
    cwd: &Path,
    cx: &Cx,
) -> Result<Resolved, Refusal> {
    let invalid = |text: String| Refusal::invalid(format!("invalid SpawnPod.profile: {text}"));
    let reading = cx.shared.read_settings().await?;
    let profile = match new.profile.as_deref() {
        Some("inherit") => None,
        asked => {
            create::profile(&reading.settings, asked).map_err(|refusal| invalid(refusal.message))?
        }
    };
    let mut resolved = parental.resolved.clone();
    resolved.spawned = true;
    (resolved.own_scope, resolved.worktree) = (false, None);
    resolved.model = inherited(resolved.model.as_ref(), parent);
    if let Some((name, profile)) = profile {
        if let Some(spec) = profile.model.as_ref().and_then(Names::first) {
            let asked = Some(WantedModel::new(spec, format!("profile {name}")));
            let (env, workspace) = (parental.env.clone(), parental.workspace.clone());
            let search = Search { wanted: asked, env, cwd: cwd.to_owned(), workspace };
            let found = models::find(&cx.shared, search, Local::Ignored).await?;
            resolved.model = found.choice.map_err(invalid)?;
        }
        resolved.effort = profile.effort.or(resolved.effort);
        if let Some(max_turns) = profile.max_turns {
            resolved.max_turns = max_turns.get();
        }
        resolved.instruction = profile.instruction.or(resolved.instruction);
    }
    resolved.effort = new.effort.or(resolved.effort);
    if let Some(instruction) = &new.instruction {
        resolved.instruction = Some(instruction.clone());
    }
    Ok(resolved)
}

/// The model that a child inherits.
fn inherited(choice: Option<&ModelChoice>, parent: &PodName) -> Option<ModelChoice> {
    let mut choice = choice?.clone();
    choice.why = format!("model from {parent}");
    Some(choice)
}

/// Makes the child live and gives it its task.
async fn first_message(child: &Handle, parent: &PodName, task: String) -> Result<(), Refusal> {
    let give = async {
        child.live(Vec::new()).await?;
        child.call_by(Some(parent.clone()), Method::say(task)).await
    };
    match tokio::time::timeout(FIRST_MESSAGE, give).await {
        Ok(given) => given.map(drop),
        Err(_) => Err(Refusal::internal("it did not accept its task in time")),
    }
}

/// Makes the child an ordinary Pod after it got its task.
async fn list(cx: &Cx, child: &Handle) -> Result<(), Refusal> {
    let listed = child.clone();
    cx.family(move |family| {
        family.list(&listed);
        Ok(())
    })
    .await?;
    child.tell(Fact::Listed).await;
    // If this fails, the next start finds the task in its log.
    cx.shared.store.keep_session(child.session).await.or_log("settle the session in the store");
    Ok(())
}

/// Removes a child that did not start, and returns the reason. A child whose first message was
/// committed nevertheless remains as a stopped Pod.
async fn undo(cx: &Cx, child: &Handle, refusal: Refusal) -> Refusal {
    join(child.prepare_stop(), child.jobs.close(EndedBy::Stop)).await;
    let name = &child.name;
    if unfinished::has_task(&cx.shared, child.session).await {
        return keep(cx, child, &refusal).await;
    }
    worktree::undo(&cx.shared, child).await;
    let removed = name.clone();
    let removed = cx.family(move |family| {
        family.remove(&removed);
        Ok(())
    });
    let removed = removed.await;
    crate::crash_point!("unspawn-stored");
    // The parent reads the reason in the refusal.
    child.tell(Fact::Stopped).await;
    if removed.is_err() {
        // If the database cannot be written, the child stays listed, so that a person can stop it.
        let _ = list(cx, child).await;
    } else {
        // A session that stays on the disk is deleted at the next start.
        unfinished::delete(&cx.shared, child.session).await.or_log("delete a session");
    }
    let text = format!("could not start pod `{name}`: {}; nothing is left of it", refusal.message);
    Refusal::new(refusal.code, text)
}

async fn keep(cx: &Cx, child: &Handle, refusal: &Refusal) -> Refusal {
    let name = child.name.clone();
    let stopped = name.clone();
    let parent = child.info.borrow().parent.clone();
    let by = parent.clone();
    let stopping = cx.family(move |family| {
        family.stop(std::slice::from_ref(&stopped), by.as_ref(), false);
        Ok(())
    });
    if stopping.await.is_ok() {
        child.tell(Fact::Stopped).await;
    }
    // The child is in the database already; listing it fails only at the end of the host.
    let _ = list(cx, child).await;
    let text = format!(
        "pod `{name}` has its task but {}; it is stopped, RestorePod brings it back",
        refusal.message
    );
    Refusal::new(ErrorCode::Internal, text)
}
