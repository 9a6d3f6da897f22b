//! What new Pods are made of: the parts that `new`, `spawn` and `fork` share.

use crate::config::dirs::Env;
use crate::config::settings::{Profile, Settings};
use crate::host::paths::canonical;
use crate::host::pod::Handle;
use crate::host::pod::resolved::Resolved;
use crate::host::verb::Cx;
use crate::host::worktree::{self, Top, Worktree};
use crate::protocol::{NewWorktree, PodName, Refusal, SessionId, now_ms};
use crate::scope::Scope;
use crate::scope::lease::Restrictions;
use crate::store::{PodRow, Wanted};
use crate::trace::OrLog as _;
use std::path::{Path, PathBuf};

/// A new Pod, checked but for its name.
pub(super) struct Plan {
    pub(super) parent: Option<PodName>,
    pub(super) cwd: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) resolved: Resolved,
    pub(super) scope: Scope,
    pub(super) env: Env,
    pub(super) ephemeral: bool,
}

impl Plan {
    pub(super) fn row(&self, name: PodName) -> PodRow {
        let now = now_ms();
        PodRow {
            name,
            parent: self.parent.clone(),
            wanted: Wanted::Stopped,
            cwd: self.cwd.clone(),
            workspace: self.workspace.clone(),
            session: SessionId::new(),
            segment: None,
            config: self.resolved.value(),
            scope: self.scope.clone(),
            created: now,
            since: now,
            seen: true,
            later: None,
            last: None,
            env: crate::sandbox::short_env(&self.env),
            restrictions: Restrictions::default(),
            last_run: None,
            cost: None,
            ephemeral: self.ephemeral,
        }
    }
}

/// The profile of that name, with its name; `None` and `default` are the one of that name, when the
/// user has one.
pub(super) fn profile(
    settings: &Settings,
    asked: Option<&str>,
) -> Result<Option<(String, Profile)>, Refusal> {
    let profiles = &settings.profile;
    let name = asked.unwrap_or("default");
    match profiles.get(name) {
        Some(profile) => Ok(Some((name.to_owned(), profile.clone()))),
        None if name == "default" => Ok(None),
        None => {
            let mut known = vec!["default".to_owned(), "inherit".to_owned()];
            known.extend(profiles.keys().filter(|name| *name != "default").cloned());
            let known = known.join(", ");
            let text = format!("profile not found: {name}; there are: {known}");
            Err(Refusal::invalid(text))
        }
    }
}

/// Plans the working tree of a new Pod.
pub(super) async fn plan_tree(
    top: Top,
    pod: PodName,
    asked: NewWorktree,
    cx: &Cx,
) -> Result<Worktree, Refusal> {
    let (place, at) = (cx.shared.dirs.worktrees(), top.path.clone());
    let planned = cx.files(&at, move || worktree::plan(&place, top, &pod, asked)).await?;
    planned.map_err(Refusal::invalid)
}

/// Takes back a Pod that could not become live: its name is free again.
pub(super) async fn undo(cx: &Cx, handle: &Handle) {
    let name = handle.name.clone();
    let removed = cx.family(move |family| {
        family.stop(std::slice::from_ref(&name), None, false);
        family.remove(&name);
        Ok(())
    });
    // Where this fails the Pod stays, failed, and can be deleted.
    removed.await.or_log("take back a pod that could not become live");
}

/// The path of a rule in the form that scopes compare. A relative one is meant from `from`, the directory of the Pod or
/// client that asks.
pub(super) async fn scope_target(target: &Path, from: &Path, cx: &Cx) -> Result<PathBuf, Refusal> {
    let named = |refusal: Refusal| {
        Refusal::new(refusal.code, format!("scope.target cannot be resolved: {refusal}"))
    };
    canonical(cx, &from.join(target)).await.map_err(named)
}
