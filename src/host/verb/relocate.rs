//! Relocate: a family whose directory was moved follows it to its new place.

use crate::config::workspace::{Access, Workspace};
use crate::host::paths::canonical;
use crate::host::pod::{Fact, Handle};
use crate::host::supervisor::Family;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PodName, PodStatus, Refusal};
use crate::scope::relocated;
use crate::store::Relocated;
use std::path::{Path, PathBuf};

/// The addressed Pod, whose directory is gone, works in `cwd` from now on. Its whole family follows: directories, scopes,
/// leases and restrictions below the moved directory get their places in the new one.
pub(crate) struct Relocate {
    pub(crate) cwd: PathBuf,
}

/// A directory and its new place.
#[derive(Clone)]
struct Move {
    from: PathBuf,
    to: PathBuf,
}

impl Verb for Relocate {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let pod = cx.pod()?;
        let (old, root) = {
            let info = pod.info.borrow();
            (info.cwd.clone(), info.workspace.clone())
        };
        let dir = old.clone();
        if cx.files(&old, move || dir.is_dir()).await? {
            return Err(Refusal::invalid(format!(
                "pod `{}` works in {}, which is still there; only a pod whose directory is gone gets another one",
                pod.name,
                old.display()
            )));
        }
        let cwd = canonical(&cx, &self.cwd).await?;
        let (at, env) = (cwd.clone(), cx.shared.env.clone());
        let workspace = cx.files(&cwd, move || Workspace::of(&at, &env)).await?;
        let workspace = workspace.map_err(|error| Refusal::invalid(error.to_string()))?;
        if let Access::ReadOnly(why) = workspace.access {
            return Err(Refusal::invalid(why));
        }
        let moved = Move::of(&old, &root, &cwd);
        let (name, parts) = (pod.name.clone(), moved.clone());
        let found = workspace.root.clone();
        crate::crash_point!("move-asked");
        let followers = cx.family(move |family| relocate(family, &name, &parts, &found)).await?;
        crate::crash_point!("move-stored");
        let mut pods = Vec::new();
        for (pod, place) in followers {
            pods.push(pod.name.clone());
            pod.tell(Fact::Relocated(Box::new(place))).await;
        }
        Ok(Event::Relocated { from: moved.from, to: moved.to, pods })
    }
}

impl Move {
    /// What was moved: the workspace of a Pod where its directory stands at the same place in the new one, else its
    /// directory alone.
    fn of(old: &Path, root: &Path, new: &Path) -> Self {
        let below = old.strip_prefix(root).ok().filter(|below| new.ends_with(below));
        match below.map(|below| new.ancestors().nth(below.components().count())) {
            Some(Some(to)) => Self { from: root.to_owned(), to: to.to_owned() },
            _ => Self { from: old.to_owned(), to: new.to_owned() },
        }
    }
}

/// Moves the family of a Pod, from its topmost one down; returns those that moved with their new places.
fn relocate(
    family: &mut Family,
    first: &PodName,
    Move { from, to }: &Move,
    root: &Path,
) -> Result<Vec<(Handle, Relocated)>, Refusal> {
    let top = family.table.above(&first.key()).pop().unwrap_or_else(|| first.key());
    let mut keys = vec![top.clone()];
    keys.extend(family.table.below(&top));
    let mut moved = Vec::new();
    for key in &keys {
        let Some(pod) = family.name_of(key).and_then(|name| family.shared.pod(&name)) else {
            continue;
        };
        let Some(holder) = family.table.holder(key) else { continue };
        let info = pod.info.borrow().clone();
        let scope = holder.wanted.relocated(from, to);
        let cwd = relocated(&info.cwd, from, to);
        if cwd.is_none() && scope == holder.wanted {
            continue;
        }
        family.must_not_be_stopping(&pod.name)?;
        family.must_not_be_starting(&pod.name)?;
        if family.shared.status(&info) == PodStatus::Running {
            let name = &pod.name;
            let text = format!("pod `{name}` is in the middle of a run; :pause {name} first");
            return Err(Refusal::invalid(text));
        }
        let workspace = match (relocated(&info.workspace, from, to), &cwd) {
            (Some(workspace), _) => workspace,
            (None, Some(_)) => root.to_owned(),
            (None, None) => info.workspace,
        };
        let cwd = cwd.unwrap_or(info.cwd);
        let place = Relocated { pod: pod.name.clone(), cwd, workspace, scope };
        moved.push((pod, place));
    }
    family.relocate(&keys, moved.iter().map(|(_, place)| place.clone()).collect(), from, to);
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_moves_where_the_directory_has_its_place_in_it_else_the_directory_alone() {
        for (old, root, new, from, to) in [
            ("/a/p", "/a/p", "/b/q", "/a/p", "/b/q"),
            ("/a/p/x/y", "/a/p", "/b/q/x/y", "/a/p", "/b/q"),
            ("/a/p/x/y", "/a/p", "/b/y", "/a/p/x/y", "/b/y"),
            ("/a/p/x", "/a/p", "/x", "/a/p", "/"),
            ("/a/p", "/other", "/b", "/a/p", "/b"),
        ] {
            let Move { from: moved, to: place } =
                Move::of(Path::new(old), Path::new(root), Path::new(new));
            assert_eq!((moved, place), (from.into(), to.into()), "{old} {new}");
        }
    }
}
