//! New Pods that a person makes.

use crate::config::dirs::Env;
use crate::config::model_select::{ModelChoice, WantedModel};
use crate::config::settings::WorkspaceSettings;
use crate::config::workspace::{Access, Workspace};
use crate::host::Shared;
use crate::host::pod::life::Resolved;
use crate::host::pod::{self, Handle, life};
use crate::host::supervisor::canonical::canonical;
use crate::host::supervisor::{Supervisor, holder, insert, taken};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodName, Refusal, SessionId, now_ms};
use crate::scope::lease::{Holder, Restrictions};
use crate::scope::{Permission, Rule, Scope};
use crate::store::{Change, PodRow, Wanted};
use std::path::{Path, PathBuf};

/// How many numbers are tried for a default name that is taken.
const NUMBERS: u32 = 10_000;

/// What a new Pod is made of, checked.
pub(super) struct Plan {
    pub(super) name: PodName,
    pub(super) parent: Option<PodName>,
    pub(super) cwd: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) resolved: Resolved,
    pub(super) scope: Scope,
    pub(super) env: Env,
}

impl Plan {
    pub(super) fn row(&self) -> PodRow {
        let now = now_ms();
        PodRow {
            name: self.name.clone(),
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
            last: None,
            env: crate::sandbox::short_env(&self.env),
            restrictions: Restrictions::default(),
            last_run: None,
        }
    }
}

impl Supervisor {
    /// Creates a Pod and makes it live.
    pub(super) async fn create(&mut self, new: NewPod) -> Result<Event, Refusal> {
        let workspace = Workspace::of(&new.cwd, &self.shared.env);
        let workspace = workspace.map_err(|e| Refusal::invalid(e.to_string()))?;
        let cwd = new.cwd.canonicalize();
        let cwd = cwd.map_err(|e| Refusal::invalid(format!("{}: {e}", new.cwd.display())))?;
        let name = self.free_name(new.name, &workspace.root)?;
        let says = WorkspaceSettings::load(&workspace.root);
        let env = if new.env.is_empty() { self.shared.env.clone() } else { new.env };
        let profile = self.profile(new.profile.as_deref())?;
        let asked = new.model.map(|spec| WantedModel::new(spec, "--model"));
        let of_profile = |name: &str| format!("profile {name}");
        let asked = asked.or_else(|| {
            let (name, profile) = profile.as_ref()?;
            Some(WantedModel::new(profile.model.clone()?, of_profile(name)))
        });
        let model = life::choose(&self.shared, asked, &env, &cwd, &says);
        let model = model.map_err(Refusal::invalid)?;
        let limits = self.shared.settings.clone().narrowed(&says).limits;
        let profile = profile.map(|(_, profile)| profile).unwrap_or_default();
        let max_turns = new.max_turns.or(profile.max_turns.map(std::num::NonZeroU32::get));
        let resolved = Resolved {
            model,
            max_turns: max_turns.unwrap_or(limits.max_turns.get()),
            instruction: profile.instruction,
        };
        let asked = new.scope.map(|rules| rules.into_iter().map(real).collect()).transpose()?;
        let (scope, mut notes) = wanted_scope(&self.shared, asked, &workspace);
        notes.extend(says.notices.iter().map(ToString::to_string));
        let workspace = workspace.root;
        let plan = Plan { name, parent: None, cwd, workspace, resolved, scope, env };
        let row = plan.row();
        let handle = self.add(row, plan.env).await?;
        crate::crash_point!("pod-stored");
        handle.live(notes).await?;
        crate::crash_point!("pod-live");
        let info = Box::new(handle.info.borrow().clone());
        Ok(Event::Created { info })
    }

    /// Makes a row, what is lent to it and its being live one fact; then starts its actor, which
    /// is live in the book from here on.
    pub(super) async fn add(&mut self, mut row: PodRow, env: Env) -> Result<Handle, Refusal> {
        row.wanted = Wanted::Live;
        let key = row.name.key();
        let mut next = self.book.clone();
        next.add(key.clone(), Holder { live: false, ..holder(&row) });
        next.go_live(&key);
        let create = Some(row.clone());
        self.commit_leases_if_unused(next, Change { create, ..Change::default() }).await?;
        let granted = self.granted(&key);
        let handle = pod::spawn(&self.shared, self.orders.clone(), row, granted).await;
        insert(&self.shared, handle.clone());
        handle.call(Method::Open { env }).await?;
        Ok(handle)
    }

    /// The profile asked for, with its name; `None` and `default` are the one of that name, when
    /// the user has one.
    pub(super) fn profile(
        &self,
        asked: Option<&str>,
    ) -> Result<Option<(String, crate::config::settings::Profile)>, Refusal> {
        let profiles = &self.shared.settings.profile;
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

    /// The name asked for, or the workspace's, numbered when that is taken.
    pub(super) fn free_name(
        &self,
        asked: Option<PodName>,
        root: &Path,
    ) -> Result<PodName, Refusal> {
        if let Some(name) = asked {
            return if self.shared.pod(&name).is_some() { Err(taken(&name)) } else { Ok(name) };
        }
        let base = root.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        self.numbered(&PodName::from_directory(&base))
    }

    /// This name, or with the first number that makes it free.
    pub(super) fn numbered(&self, base: &PodName) -> Result<PodName, Refusal> {
        if self.shared.pod(base).is_none() {
            return Ok(base.clone());
        }
        (2..NUMBERS)
            .map(|n| base.numbered(n))
            .find(|name| self.shared.pod(name).is_none())
            .ok_or_else(|| Refusal::invalid(format!("every name like `{base}` is taken; give one")))
    }
}

/// A rule in the form that counts.
fn real(rule: Rule) -> Result<Rule, Refusal> {
    let text = || format!("scope.target must be absolute: {}", rule.target.display());
    let target = canonical(&rule.target).ok_or_else(|| Refusal::invalid(text()))?;
    Ok(Rule { target, ..rule })
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

/// A model as a child takes it over.
pub(super) fn inherited(choice: Option<&ModelChoice>, parent: &PodName) -> Option<ModelChoice> {
    let mut choice = choice?.clone();
    choice.why = format!("as {parent}");
    Some(choice)
}
