//! New: a Pod that a person makes.

use crate::config::model_select::WantedModel;
use crate::config::settings::Settings;
use crate::config::workspace::{Access, Workspace};
use crate::host::Shared;
use crate::host::models::{self, Found, Local, Search};
use crate::host::pod::Birth;
use crate::host::pod::resolved::Resolved;
use crate::host::supervisor::Doing;
use crate::host::verb::create::{self, Plan};
use crate::host::verb::{Caller, Cx, Verb};
use crate::host::worktree::{self, Top};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, NewWorktree, PodName, Refusal};
use crate::run::WORK;
use crate::scope::{Permission, Rule, Scope};
use std::path::{Path, PathBuf};

impl Verb for NewPod {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        make(self, &cx, None).await
    }
}

/// Makes a Pod; `note` stands behind the general instruction in its system prompt.
pub(super) async fn make(new: NewPod, cx: &Cx, note: Option<&str>) -> Result<Event, Refusal> {
    let asked = new.name.clone();
    let wanted = asked.clone();
    let named = (new.cwd.clone(), new.scope.clone().unwrap_or_default());
    let worktree = new.worktree.clone();
    if worktree.is_some() && new.scope.is_some() {
        return Err(Refusal::invalid(
            "the scope of a pod with a working tree is that working tree",
        ));
    }
    let (mut plan, notes) = plan(new, cx).await?;
    if let Some(note) = note {
        must_lead_there(&plan, named)?;
        let general = plan.resolved.instruction.as_deref().unwrap_or(WORK);
        plan.resolved.instruction = Some(format!("{general}\n\n{note}"));
    }
    let base = plan.workspace.file_name().map(|name| name.to_string_lossy().into_owned());
    let base = worktree.as_ref().and_then(|tree| tree.branch.clone()).or(base);
    let base = PodName::from_directory(&base.unwrap_or_default());
    let asked = match worktree {
        None => asked,
        Some(worktree) => Some(in_worktree(&mut plan, worktree, asked, base.clone(), cx).await?),
    };
    let tree = plan.resolved.worktree.clone();
    let created = cx.family(move |family| {
        let name = family.free_name(asked, &base)?;
        let (row, env) = (plan.row(name), plan.env);
        Ok(family.create(row, Birth::New { env }))
    });
    // The mark lasts until the Pod is live.
    let created = created.await.inspect_err(|_| tree.iter().for_each(worktree::give_up));
    let (handle, _mark) = match (created, wanted) {
        (Err(refusal), Some(name)) => {
            // A caller that is refused because the name is taken finds the Pod of that name in the list.
            cx.settled(&name).await?;
            return Err(refusal);
        }
        (created, _) => created?,
    };
    crate::crash_point!("pod-stored");
    let live = match worktree::ready(&cx.shared, &handle).await {
        Ok(of_tree) => handle.live(notes.into_iter().chain(of_tree).collect()).await,
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = live {
        worktree::undo(&cx.shared, &handle).await;
        create::undo(cx, &handle).await;
        return Err(refusal);
    }
    crate::crash_point!("pod-live");
    let info = Box::new(handle.info.borrow().clone());
    Ok(Event::Created { info })
}

/// Plans a working tree, in which the Pod works instead of the workspace. The rules of the workspace still apply. Returns
/// the name of the Pod, which no other Pod can take while the tree is planned.
async fn in_worktree(
    plan: &mut Plan,
    asked: NewWorktree,
    name: Option<PodName>,
    base: PodName,
    cx: &Cx,
) -> Result<PodName, Refusal> {
    let reserved = cx.family(move |family| {
        let name = family.free_name(name, &base)?;
        let mark = family.mark(&name.key(), Doing::Starting);
        Ok((name, mark))
    });
    let (name, _mark) = reserved.await?;
    if plan.scope.permission(&plan.workspace) != Some(Permission::Write) {
        let text =
            format!("no working tree is made of {}, which is read only", plan.workspace.display());
        return Err(Refusal::invalid(text));
    }
    let top = Top { path: plan.workspace.clone(), repository: None };
    let tree = create::plan_tree(top, name.clone(), asked, cx).await?;
    let rule = Rule::new(tree.path.clone(), Permission::Write);
    plan.scope = Scope { allow: vec![rule], deny: Vec::new() }.with_deny(cx.shared.dirs.own());
    plan.cwd.clone_from(&tree.path);
    plan.resolved.worktree = Some(tree);
    Ok(name)
}

/// Everything but the name, and notes for a person.
async fn plan(new: NewPod, cx: &Cx) -> Result<(Plan, Vec<String>), Refusal> {
    let shared = &cx.shared;
    let (workspace, cwd) = place(&new.cwd, cx).await?;
    let env = if new.env.is_empty() { shared.env.clone() } else { new.env };
    let reading = cx.shared.read_settings().await?;
    let profile = create::profile(&reading.settings, new.profile.as_deref())?;
    let asked = new.model.map(|spec| WantedModel::new(spec, "--model"));
    let asked = asked.or_else(|| {
        let (name, profile) = profile.as_ref()?;
        let spec = profile.model.as_ref()?.first()?;
        Some(WantedModel::new(spec, format!("profile {name}")))
    });
    let (at, root) = (cwd.clone(), workspace.root.clone());
    let search = Search { wanted: asked, env: env.clone(), cwd: at, workspace: root };
    let Found { choice, says, reading } = models::find(shared, search, Local::Probed).await?;
    let limits = Settings::clone(&reading.settings).narrowed(&says).limits;
    let profile = profile.map(|(_, profile)| profile).unwrap_or_default();
    let max_turns = new.max_turns.or(profile.max_turns.map(std::num::NonZeroU32::get));
    let resolved = Resolved {
        model: choice.map_err(Refusal::invalid)?,
        effort: new.effort.or(profile.effort),
        max_turns: max_turns.unwrap_or(limits.max_turns.get()),
        instruction: profile.instruction,
        directory_id: None,
        spawned: false,
        own_scope: false,
        worktree: None,
    };
    let asked = match new.scope {
        Some(rules) => Some(real(rules, &cwd, cx).await?),
        None => None,
    };
    let (scope, mut notes) = wanted_scope(shared, asked, &workspace);
    notes.extend(says.notices.iter().map(ToString::to_string));
    let workspace = workspace.root;
    let ephemeral = new.ephemeral;
    Ok((Plan { parent: None, cwd, workspace, resolved, scope, env, ephemeral }, notes))
}

/// The person who allowed a client's Pod saw where its paths led.
fn must_lead_there(plan: &Plan, (cwd, scope): (PathBuf, Vec<Rule>)) -> Result<(), Refusal> {
    let holds = |rule: &Rule| plan.scope.allow.contains(rule);
    if plan.cwd == cwd && scope.iter().all(holds) && plan.scope.allow.len() == scope.len() {
        return Ok(());
    }
    Err(Refusal::invalid("its paths resolve to other targets than when it was allowed; call again"))
}

/// The workspace of a directory, and the canonical directory.
async fn place(cwd: &Path, cx: &Cx) -> Result<(Workspace, PathBuf), Refusal> {
    let (env, at) = (cx.shared.env.clone(), cwd.to_owned());
    let find = move || {
        let workspace = Workspace::of(&at, &env).map_err(|e| e.to_string())?;
        let cwd = at.canonicalize().map_err(|e| format!("{}: {e}", at.display()))?;
        crate::files::refuse_not_text(&cwd).map_err(|e| e.to_string())?;
        Ok((workspace, cwd))
    };
    cx.files(cwd, find).await?.map_err(|text: String| Refusal::invalid(text))
}

/// Rules in the form that scopes compare.
async fn real(rules: Vec<Rule>, cwd: &Path, cx: &Cx) -> Result<Vec<Rule>, Refusal> {
    let mut found = Vec::new();
    for rule in rules {
        let target = create::scope_target(&rule.target, cwd, cx).await?;
        found.push(Rule { target, ..rule });
    }
    Ok(found)
}

/// The scope of a new Pod, without yoi's own directories.
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
    (scope.with_deny(shared.dirs.own()), notes)
}
