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
pub(crate) use git::Loss;
use git::{Git, Report};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long git may take to compare a working tree with its branch, if a person waits for it.
const TO_SHOW: Duration = Duration::from_secs(600);
/// How long it may take if it only counts lines.
const TO_COUNT: Duration = Duration::from_secs(30);
/// In the place of a branch where none is checked out. No branch is called so: a name has no blank.
const NO_BRANCH: &str = "no branch";
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
    /// The commit of the branch if it was made for this working tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) new_branch: Option<String>,
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

/// What becomes of a working tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// git has it, without files; the commit of its branch, if that is new.
    Begun {
        new_branch: Option<String>,
    },
    /// It is complete: the commit at which it begins, and [`Worktree::setup`].
    Made {
        commit: String,
        setup: Option<String>,
    },
    Kept,
    /// It is deleted. Its branch is the one that was checked out last.
    Dropped {
        branch: String,
        loss: Loss,
    },
}

impl Worktree {
    /// The working tree after a change.
    pub(crate) fn changed(self, change: Change) -> Result<Self, Refusal> {
        Ok(match change {
            Change::Made { commit, setup } => {
                let start = self.start.or(Some(commit));
                Self { start, made: true, setup, ..self }
            }
            Change::Begun { new_branch } => Self { new_branch, ..self },
            Change::Kept => Self { kept: true, ..self },
            Change::Dropped { loss: Loss::Refused, .. } if self.kept => {
                return Err(Refusal::invalid("it was kept with :worktree keep"));
            }
            Change::Dropped { branch, loss: _ } => {
                Self { made: false, branch, setup: None, ..self }
            }
        })
    }

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
    let shown = top.path.display();
    let Some((own, shared)) = repository_of(&top.path) else {
        return Err(format!(
            "no working tree can be made: {shown} is not the top of a git repository of yours; cwd names one, and `git init` \
             and a first commit make one"
        ));
    };
    if own == shared && !own.starts_with(&top.path) {
        return Err(format!(
            "{shown} is a submodule, and git makes no further working tree of one: clone it, and name the clone as cwd"
        ));
    }
    if top.path.as_os_str().as_bytes().contains(&b'\n') {
        return Err(format!("no working tree is made of {shown}, whose name has a line break"));
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
    let (start, new_branch, setup) = (None, None, None);
    let (made, kept) = (false, false);
    Ok(Worktree { repository, path, branch, from, start, new_branch, made, kept, setup })
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

/// Makes the working tree of a Pod that is to become live, unless it is there. Returns notes for the person.
pub(crate) async fn ready(shared: &Shared, pod: &Handle) -> Result<Vec<String>, Refusal> {
    let Parental { resolved, env, .. } = pod.parental().await?;
    let Some(tree) = resolved.worktree else { return Ok(Vec::new()) };
    let git = Git { shared, env: &env, tree: &tree };
    if tree.made && fs::symlink_metadata(&tree.path).is_ok() {
        return Ok(git.must_belong().err().map(|why| why.message).into_iter().collect());
    }
    let mut notes = Vec::new();
    if shared.only_reads {
        return Ok(notes);
    }
    if tree.made {
        // A person deleted it: what is made in its place is not complete until the end.
        let branch = tree.branch.clone();
        pod.change_worktree(Change::Dropped { branch, loss: Loss::Agreed }).await?;
    }
    if fs::symlink_metadata(&tree.path).is_ok() {
        git.must_not_be_by_hand()?;
        // What git left there when it was cut off, or what a person put there: it is not deleted.
        let aside = set_aside(&tree)?;
        detach(&aside)?;
        notes.push(format!(
            "{} was not complete and is made anew; what lay there is {}",
            tree.path.display(),
            aside.display()
        ));
    }
    git.forget(Loss::Refused).await?;
    let new_branch = git.make().await?;
    pod.change_worktree(Change::Begun { new_branch: new_branch.clone() }).await?;
    let checked_out = git.check_out().await;
    if checked_out.is_err() {
        let tree = &Worktree { new_branch: new_branch.clone(), ..tree.clone() };
        take_back(shared, tree, &env).await;
        pod.change_worktree(Change::Begun { new_branch: None }).await?;
    }
    let commit = checked_out?;
    let branch = &tree.branch;
    notes.extend(match (&tree.start, new_branch) {
        (Some(start), Some(_)) => Some(format!(
            "its branch {branch} was gone and is made anew at {commit}; it began at {start} before"
        )),
        (None, None) => Some(format!("its branch {branch} was there already, at {commit}")),
        _ => None,
    });
    let setup = setup::run(shared, pod).await;
    pod.change_worktree(Change::Made { commit, setup }).await?;
    Ok(notes)
}

/// Takes back the directory of a working tree that was planned for a Pod which was not stored.
pub(crate) fn give_up(tree: &Worktree) {
    remove_home(tree);
}

/// Removes the directory that was made for a working tree, unless a person put something beside that.
fn remove_home(tree: &Worktree) {
    let _ = fs::remove_dir(tree.home());
}

/// Takes back the working tree of a Pod that could not be created and never was live. What stays is named in a notice.
pub(crate) async fn undo(shared: &Shared, pod: &Handle) {
    match of(pod).await {
        Ok((tree, env)) => take_back(shared, &tree, &env).await,
        Err(why) if pod.info.borrow().worktree.is_some() => {
            shared.add_notice(format!("a working tree could not be taken back: {}", why.message));
        }
        Err(_) => {}
    }
}

/// Deletes a working tree in which no Pod has worked, and the branch that was made for it, unless that has new commits.
pub(crate) async fn take_back(shared: &Shared, tree: &Worktree, env: &Env) {
    let deleted = async {
        delete_directory(shared, tree, &tree.path).await?;
        forget(shared, env, tree, Loss::Refused).await?;
        if let Some(commit) = &tree.new_branch {
            Git { shared, env, tree }.delete_branch(commit).await?;
            remove_home(tree);
        }
        Ok::<_, Refusal>(())
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

/// Moves what lies at the path of a working tree to a new path beside it, and returns that.
fn set_aside(tree: &Worktree) -> Result<PathBuf, Refusal> {
    let aside = tree.home().join(format!("aside-{}", uuid::Uuid::now_v7()));
    fs::rename(&tree.path, &aside)
        .map_err(|error| Refusal::internal(format!("{}: {error}", tree.path.display())))?;
    Ok(aside)
}

/// Detaches a directory from git: the record that its `.git` names will soon belong to another working tree.
fn detach(aside: &Path) -> Result<(), Refusal> {
    let (git, former) = (aside.join(".git"), aside.join("git-was"));
    match fs::rename(&git, &former) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Refusal::internal(format!("{}: {error}", git.display())))
        }
        _ => Ok(()),
    }
}

/// Removes what the repository has of a working tree that is deleted, and the directory in which it lay.
async fn forget(shared: &Shared, env: &Env, tree: &Worktree, loss: Loss) -> Result<(), Refusal> {
    Git { shared, env, tree }.forget(loss).await.map_err(|why| {
        Refusal::internal(format!(
            "{} is not there, but {} still lists it: {}",
            tree.path.display(),
            tree.repository.display(),
            why.message
        ))
    })?;
    remove_home(tree);
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

/// The working tree from whose repository the one at this path was made for a Pod.
pub(crate) async fn made_from(shared: &Shared, path: &Path) -> Option<PathBuf> {
    let works_there =
        |pod: &&Handle| pod.info.borrow().worktree.as_ref().is_some_and(|tree| tree.path == path);
    let members = shared.members.borrow().clone();
    let (tree, _) = of(members.0.values().find(works_there)?).await.ok()?;
    Some(tree.repository)
}

/// The top of the working tree made by yoi in which a directory lies, canonical.
pub(crate) fn top_of(place: &Path, dir: &Path) -> Option<PathBuf> {
    let place = place.canonicalize().ok()?;
    let mut inside = dir.strip_prefix(&place).ok()?.components();
    Some(place.join(inside.next()?).join(inside.next()?))
}

/// Another Pod, live or stopped, whose working directory is in a working tree.
fn other_in(shared: &Shared, name: &PodName, tree: &Worktree) -> Option<PodName> {
    let members = shared.members.borrow().clone();
    let mut others = members.0.values().filter(|pod| pod.name != *name);
    others.find(|pod| pod.info.borrow().cwd.starts_with(&tree.path)).map(|pod| pod.name.clone())
}

/// What lists show of a working tree now; `None` if git cannot say it.
pub(crate) async fn counted(shared: &Shared, env: &Env, tree: &Worktree) -> Option<WorktreeInfo> {
    let report = Git { shared, env, tree }.look(TO_COUNT).await;
    let report = report.inspect_err(|why| tracing::debug!("a working tree: {why}")).ok()?;
    Some(info_of(tree, &report))
}

fn info_of(tree: &Worktree, report: &Report) -> WorktreeInfo {
    let branch = report.branch.clone().unwrap_or_else(|| NO_BRANCH.into());
    let lines = Some(LinesChanged { added: report.added, removed: report.removed });
    WorktreeInfo { path: tree.path.clone(), branch, lines }
}

/// The state of the working tree of a Pod.
pub(crate) async fn state(shared: &Shared, pod: &Handle) -> Result<WorktreeState, Refusal> {
    let (tree, env) = of(pod).await?;
    state_of(shared, &env, &tree).await
}

/// The state of a working tree of which git was not asked.
fn unknown(tree: &Worktree) -> WorktreeState {
    WorktreeState {
        info: tree.info(),
        repository: tree.repository.clone(),
        is_there: false,
        kept: tree.kept,
        ahead: 0,
        commits: Vec::new(),
        unsaved: Vec::new(),
        setup: tree.setup.clone(),
        stays: None,
        digest: String::new(),
    }
}

async fn state_of(shared: &Shared, env: &Env, tree: &Worktree) -> Result<WorktreeState, Refusal> {
    let is_there = tree.made && fs::symlink_metadata(&tree.path).is_ok();
    let unknown = WorktreeState { is_there, ..unknown(tree) };
    if !is_there {
        return Ok(unknown);
    }
    let report = Git { shared, env, tree }.look(TO_SHOW).await?;
    let info = info_of(tree, &report);
    let Report { ahead, commits, unsaved, digest, .. } = report;
    Ok(WorktreeState { info, ahead, commits, unsaved, digest, ..unknown })
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
    of(pod).await?;
    pod.change_worktree(Change::Kept).await
}

/// Deletes the directory of a stopped Pod's working tree, if it is as the person was shown it and no other Pod works there.
/// The branch stays. One that was kept meanwhile goes only if a person `agreed`.
pub(crate) async fn delete(
    shared: &Shared,
    pod: &Handle,
    digest: &str,
    agreed: Loss,
) -> Result<(), Refusal> {
    let (tree, env) = of(pod).await?;
    must_be_alone(shared, &pod.name, &tree)?;
    let state = state_of(shared, &env, &tree).await?;
    if state.digest != digest {
        let path = tree.path.display();
        let text = format!("{path} changed after it was shown; :worktree shows it as it is now");
        return Err(Refusal::invalid(text));
    }
    let branch = state.info.branch;
    let branch = if branch == NO_BRANCH { tree.branch.clone() } else { branch };
    let dropped = Change::Dropped { branch, loss: agreed };
    if !state.is_there {
        pod.change_worktree(dropped).await?;
        return forget(shared, &env, &tree, Loss::Refused).await;
    }
    must_be_ours(shared, &tree)?;
    must_be_alone(shared, &pod.name, &tree)?;
    pod.change_worktree(dropped).await?;
    // Only what was shown is deleted, by a name at which nothing else comes to lie.
    let shown = set_aside(&tree)?;
    delete_directory(shared, &tree, &shown).await.map_err(|why| {
        let (path, shown) = (tree.path.display(), shown.display());
        Refusal::internal(format!("what lay at {path} is {shown} now: {}", why.message))
    })?;
    forget(shared, &env, &tree, Loss::Agreed).await
}

/// Deletes the working tree of a stopped Pod that is deleted, if nothing would be lost; what became of it.
pub(crate) async fn let_go(shared: &Shared, pod: &Handle) -> Option<WorktreeState> {
    let (tree, _) = of(pod).await.ok()?;
    let stays = delete_if_saved(shared, pod, &tree).await.err();
    // Another branch may have been checked out last.
    let (tree, _) = of(pod).await.ok()?;
    let is_there = fs::symlink_metadata(&tree.path).is_ok();
    Some(WorktreeState { is_there, stays, ..unknown(&tree) })
}

/// `Err` says why it stays.
async fn delete_if_saved(shared: &Shared, pod: &Handle, tree: &Worktree) -> Result<(), String> {
    if tree.kept {
        return Err("it was kept with :worktree keep".into());
    }
    if let Some(other) = other_in(shared, &pod.name, tree) {
        return Err(format!("`{other}` works there, too"));
    }
    let state = state(shared, pod).await.map_err(|why| why.message)?;
    if !state.unsaved.is_empty() {
        return Err("not all that lies there is committed".into());
    }
    let deleted = delete(shared, pod, &state.digest, Loss::Refused).await;
    deleted.map_err(|why| why.message)
}
