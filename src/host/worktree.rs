//! Working trees of git in which Pods work, each on a branch of its own. One is planned with its Pod, made by git before the
//! Pod first becomes live, and deleted only by a person, or with its Pod when all of it is committed.

mod git;
mod setup;

use crate::config::dirs::{Env, private_tree};
use crate::disk::remove_tree;
use crate::host::Shared;
use crate::host::pod::{Handle, Parental};
use crate::protocol::{
    LinesChanged, NewWorktree, PodName, Refusal, State, WorktreeInfo, WorktreeState,
};
use crate::sandbox::repository_of;
use git::{Git, Loss, Report};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The most numbers that are tried behind the name of a Pod.
const NUMBERS: u32 = 1000;

/// The working tree of a Pod, as the store keeps it in the configuration of the Pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Worktree {
    /// The working tree from whose repository it is made, canonical.
    pub(crate) repository: PathBuf,
    pub(crate) path: PathBuf,
    pub(crate) branch: String,
    /// The working tree whose commit a new branch begins at; `None`: that of `repository`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<PathBuf>,
    /// The commit at which the branch was checked out first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) start: Option<String>,
    /// Whether git has made it, and its setup command ended, since it was planned or dropped. Until then no Pod has worked
    /// there.
    #[serde(default)]
    pub(crate) made: bool,
    /// Whether it stays when its Pod is deleted.
    #[serde(default)]
    pub(crate) kept: bool,
    /// How the setup command ended, unless it just succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) setup: Option<String>,
}

impl Worktree {
    /// The directory that was made for it alone.
    fn home(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// As lists show it before git was asked.
    pub(crate) fn info(&self) -> WorktreeInfo {
        WorktreeInfo { path: self.path.clone(), branch: self.branch.clone(), lines: None }
    }
}

/// The top from whose repository a working tree is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Top {
    pub(crate) path: PathBuf,
    /// If it is the working tree of a Pod, that from which it was made.
    pub(crate) repository: Option<PathBuf>,
}

/// Plans the working tree of a new Pod, and makes the directory in which it is to lie. Blocking.
pub(crate) fn plan(
    place: &Path,
    top: Top,
    pod: &PodName,
    asked: NewWorktree,
) -> Result<Worktree, String> {
    if repository_of(&top.path).is_none() {
        return Err(format!(
            "the workspace {} is not in a git repository of yours, or not the top of one, so no working tree can be made: \
             cwd names the top of a repository; `git init` and a first commit make one",
            top.path.display()
        ));
    }
    let (repository, from) = match top.repository {
        Some(repository) => (repository, Some(top.path)),
        None => (top.path, None),
    };
    let branch = asked.branch.filter(|branch| !branch.is_empty());
    let branch = branch.unwrap_or_else(|| pod.to_string());
    let branch = branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned();
    if branch.is_empty() || branch.starts_with('-') {
        return Err(format!("`{branch}` cannot be the name of a branch"));
    }
    let home = new_directory(place, pod)?;
    let path = home.join(repository.file_name().unwrap_or("tree".as_ref()));
    let (start, setup) = (None, None);
    Ok(Worktree { repository, path, branch, from, start, made: false, kept: false, setup })
}

/// A new directory with the name of a Pod, numbered when there is one already.
fn new_directory(place: &Path, pod: &PodName) -> Result<PathBuf, String> {
    let failed = |dir: &Path, error| format!("{} cannot be made: {error}", dir.display());
    private_tree(place).map_err(|error| failed(place, error))?;
    // A link above it would make another path of it for the kernel.
    let place = place.canonicalize().map_err(|error| failed(place, error))?;
    let names = (1..NUMBERS).map(|n| if n == 1 { pod.clone() } else { pod.numbered(n) });
    for dir in names.map(|name| place.join(name.as_str())) {
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&dir, error)),
        }
    }
    Err(format!("every directory like {} is taken", place.join(pod.as_str()).display()))
}

/// Makes the working tree of a Pod that is to become live, unless it is there.
pub(crate) async fn ready(shared: &Shared, pod: &Handle) -> Result<(), Refusal> {
    let Parental { resolved, env, .. } = pod.parental().await?;
    let Some(mut tree) = resolved.worktree else { return Ok(()) };
    if tree.made && fs::symlink_metadata(&tree.path).is_ok() {
        return Ok(());
    }
    if shared.only_reads {
        return Ok(());
    }
    if std::mem::take(&mut tree.made) {
        // A person deleted it: what is made in its place is not complete until the end.
        pod.keep_worktree(tree.clone()).await?;
    }
    if fs::symlink_metadata(&tree.path).is_ok() {
        // What git left there when it was cut off, or what a person put there: it is not deleted.
        let aside = set_aside(&tree)?;
        shared.add_notice(format!(
            "{} was not complete and is made anew; what lay there is {}",
            tree.path.display(),
            aside.display()
        ));
    }
    let home = tree.home();
    fs::create_dir_all(home)
        .map_err(|error| Refusal::internal(format!("{}: {error}", home.display())))?;
    let git = Git { shared, env: &env, tree: &tree };
    git.forget(Loss::Refused).await?;
    let start = tree.start.clone().or(Some(git.make().await?));
    let setup = setup::run(shared, pod).await;
    pod.keep_worktree(Worktree { start, made: true, setup, ..tree }).await
}

/// Takes back the directory of a working tree that was planned for a Pod which was not stored.
pub(crate) fn give_up(tree: &Worktree) {
    // It is empty; one that stays is in no way.
    let _ = fs::remove_dir(tree.home());
}

/// Takes back the working tree of a Pod that could not be created and never was live. What stays is named in a notice.
pub(crate) async fn undo(shared: &Shared, pod: &Handle) {
    if let Ok((tree, env)) = of(pod).await {
        take_back(shared, &tree, &env).await;
    }
}

/// The same for a Pod that is known from the store alone.
pub(crate) async fn take_back(shared: &Shared, tree: &Worktree, env: &Env) {
    let deleted = async {
        delete_directory(shared, tree, &tree.path).await?;
        forget(shared, env, tree, Loss::Refused).await
    };
    if let Err(why) = deleted.await {
        shared.add_notice(format!("a working tree could not be taken back: {}", why.message));
    }
}

/// The last of what a program said, at most so many bytes.
fn end_of(said: &str, bytes: usize) -> &str {
    let said = said.trim();
    let from = said.ceil_char_boundary(said.len().saturating_sub(bytes));
    said[from..].trim()
}

/// Moves what lies at the path of a working tree to a name that is given once; that name.
fn set_aside(tree: &Worktree) -> Result<PathBuf, Refusal> {
    let aside = tree.home().join(format!("aside-{}", uuid::Uuid::now_v7()));
    fs::rename(&tree.path, &aside)
        .map_err(|error| Refusal::internal(format!("{}: {error}", tree.path.display())))?;
    Ok(aside)
}

/// Removes what the repository has of a working tree that is deleted, and the directory in which it lay.
async fn forget(shared: &Shared, env: &Env, tree: &Worktree, loss: Loss) -> Result<(), Refusal> {
    // git starts there; a person may have deleted it, too.
    let _ = fs::create_dir_all(tree.home());
    Git { shared, env, tree }.forget(loss).await.map_err(|why| {
        Refusal::internal(format!(
            "{} is not there, but {} still lists it: {}",
            tree.path.display(),
            tree.repository.display(),
            why.message
        ))
    })?;
    // A person may have put something beside it.
    let _ = fs::remove_dir(tree.home());
    Ok(())
}

/// Refuses a working tree that does not lie where yoi makes them.
fn must_be_ours(shared: &Shared, tree: &Worktree) -> Result<(), Refusal> {
    let place = shared.dirs.worktrees();
    let is_ours = place.canonicalize().is_ok_and(|place| tree.home().parent() == Some(&place));
    is_ours.then_some(()).ok_or_else(|| {
        let (path, place) = (tree.path.display(), place.display());
        Refusal::invalid(format!(
            "{path} does not lie in {place}, where yoi makes working trees: delete it yourself"
        ))
    })
}

/// Deletes the directory of a working tree, which lies at `path` now.
async fn delete_directory(shared: &Shared, tree: &Worktree, path: &Path) -> Result<(), Refusal> {
    must_be_ours(shared, tree)?;
    let directory = path.to_owned();
    let removed = tokio::task::spawn_blocking(move || remove_tree(&directory)).await?;
    removed.map_err(|error| {
        Refusal::internal(format!("{} could not be deleted whole: {error}", path.display()))
    })
}

/// Refuses if a Pod that is not stopped may write in a working tree.
fn must_be_alone(shared: &Shared, name: &PodName, tree: &Worktree) -> Result<(), Refusal> {
    let meets = |path: &Path| path.starts_with(&tree.path) || tree.path.starts_with(path);
    let members = shared.members.borrow().clone();
    let writer = members.0.values().find(|pod| {
        let scope = &pod.granted.borrow().scope;
        pod.info.borrow().state != State::Stopped
            && scope.allow.iter().any(|rule| meets(&rule.target))
    });
    let Some(Handle { name: other, .. }) = writer else { return Ok(()) };
    Err(Refusal::invalid(format!(
        "pod `{other}` may write in the working tree of `{name}`; :stop {other} comes first"
    )))
}

/// What lists show of a working tree now; `None` if git cannot say it.
pub(crate) async fn counted(shared: &Shared, env: &Env, tree: &Worktree) -> Option<WorktreeInfo> {
    let report = Git { shared, env, tree }.look().await;
    let report = report.inspect_err(|why| tracing::debug!("a working tree: {why}")).ok()?;
    Some(info_of(tree, &report))
}

fn info_of(tree: &Worktree, report: &Report) -> WorktreeInfo {
    let Report { branch, added, removed, .. } = report.clone();
    let branch = branch.unwrap_or_else(|| "no branch".into());
    let lines = Some(LinesChanged { added, removed });
    WorktreeInfo { path: tree.path.clone(), branch, lines }
}

/// The state of the working tree of a Pod.
pub(crate) async fn state(shared: &Shared, pod: &Handle) -> Result<WorktreeState, Refusal> {
    let (tree, env) = of(pod).await?;
    state_of(shared, &env, &tree).await
}

async fn state_of(shared: &Shared, env: &Env, tree: &Worktree) -> Result<WorktreeState, Refusal> {
    let is_there = tree.made && fs::symlink_metadata(&tree.path).is_ok();
    let (repository, kept, setup) = (tree.repository.clone(), tree.kept, tree.setup.clone());
    if !is_there {
        let (info, unsaved, digest) = (tree.info(), Vec::new(), String::new());
        return Ok(WorktreeState {
            info,
            repository,
            is_there,
            kept,
            ahead: 0,
            unsaved,
            setup,
            digest,
        });
    }
    let report = Git { shared, env, tree }.look().await?;
    let info = info_of(tree, &report);
    let Report { ahead, unsaved, digest, .. } = report;
    Ok(WorktreeState { info, repository, is_there, kept, ahead, unsaved, setup, digest })
}

async fn of(pod: &Handle) -> Result<(Worktree, Env), Refusal> {
    let Parental { resolved, env, .. } = pod.parental().await?;
    let name = &pod.name;
    let none = || {
        Refusal::invalid(format!(
            "pod `{name}` has no working tree of its own; :new --worktree makes a pod with one"
        ))
    };
    Ok((resolved.worktree.ok_or_else(none)?, env))
}

/// Has the working tree stay when its Pod is deleted.
pub(crate) async fn keep(pod: &Handle) -> Result<(), Refusal> {
    let (tree, _) = of(pod).await?;
    pod.keep_worktree(Worktree { kept: true, ..tree }).await
}

/// Deletes the directory of a stopped Pod's working tree, if it is as the person was shown it and no other Pod works there.
/// The branch stays.
pub(crate) async fn delete(shared: &Shared, pod: &Handle, digest: &str) -> Result<(), Refusal> {
    let (tree, env) = of(pod).await?;
    must_be_alone(shared, &pod.name, &tree)?;
    let state = state_of(shared, &env, &tree).await?;
    if state.digest != digest {
        let path = tree.path.display();
        let text = format!("{path} changed after it was shown; :worktree shows it as it is now");
        return Err(Refusal::invalid(text));
    }
    let branch = state.info.branch;
    let is_branch = branch != tree.branch && !branch.contains(' ');
    let branch = if is_branch { branch } else { tree.branch.clone() };
    let tree = Worktree { made: false, branch, setup: None, ..tree };
    if !state.is_there {
        pod.keep_worktree(tree.clone()).await?;
        return forget(shared, &env, &tree, Loss::Refused).await;
    }
    must_be_ours(shared, &tree)?;
    // Only what was shown is deleted, by a name at which nothing else comes to lie.
    let shown = set_aside(&tree)?;
    let deleted = async {
        pod.keep_worktree(tree.clone()).await?;
        delete_directory(shared, &tree, &shown).await
    };
    deleted.await.map_err(|why| {
        let (path, shown) = (tree.path.display(), shown.display());
        Refusal::internal(format!("what lay at {path} is {shown} now: {}", why.message))
    })?;
    forget(shared, &env, &tree, Loss::Agreed).await
}

/// Deletes the working tree of a stopped Pod that is deleted, if nothing would be lost. `Err` says why it stays.
pub(crate) async fn let_go(shared: &Shared, pod: &Handle) -> Result<(), String> {
    let Ok((tree, _)) = of(pod).await else { return Ok(()) };
    let stays = |why: &str| {
        let (path, repository) = (tree.path.display(), tree.repository.display());
        Err(format!(
            "the working tree {path} of {} stays, because {why}; `git worktree remove --force --force` in {repository} deletes it",
            pod.name
        ))
    };
    if tree.kept {
        return stays("it was kept with :worktree keep");
    }
    match state(shared, pod).await {
        Err(why) => stays(&why.message),
        Ok(state) if !state.unsaved.is_empty() => stays("not all that lies there is committed"),
        Ok(state) => match delete(shared, pod, &state.digest).await {
            Ok(()) => Ok(()),
            Err(why) => stays(&why.message),
        },
    }
}
