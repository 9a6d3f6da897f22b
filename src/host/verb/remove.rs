//! Remove: a stopped Pod goes for good, with its session.

use crate::host::pod::{Fact, Handle};
use crate::host::supervisor::{Family, unfinished};
use crate::host::verb::{Caller, Cx, Verb, worktree};
use crate::llm::rehearsal::{is_tour_directory, plays_tour};
use crate::protocol::{Event, PodName, Refusal};
use crate::trace::OrLog as _;
use std::path::Path;

pub(crate) struct Remove;

impl Verb for Remove {
    const ALLOWED: Caller = Caller::Person;

    /// Its children have no parent any more. The refusal names what could not be deleted.
    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let name = cx.to()?.clone();
        if cx.shared.damaged_row(&name).is_some() {
            // Its session goes at the next start: which one it is stands in the store alone.
            let removed = cx.family(move |family| {
                family.remove(&name);
                Ok(())
            });
            removed.await?;
            return Ok(Event::done());
        }
        let tree = match cx.shared.pod(&name) {
            Some(pod) => worktree::let_go(&cx, &pod).await?,
            None => None,
        };
        let removed = cx.family(move |family| {
            let removed = checked(family, &name)?;
            family.remove(&removed.0.name);
            Ok(removed)
        });
        delete_files(&cx, removed.await?).await?;
        Ok(tree.map_or_else(Event::done, |tree| Event::Worktree(Box::new(tree))))
    }
}

/// Removes the addressed Pod, unless it has become an ordinary one.
pub(crate) async fn ephemeral(cx: &Cx) -> Result<(), Refusal> {
    let name = cx.to()?.clone();
    let removed = cx.family(move |family| {
        let removed = checked(family, &name)?;
        family.remove_ephemeral(&removed.0.name);
        Ok(removed)
    });
    delete_files(cx, removed.await?).await
}

async fn delete_files(cx: &Cx, (handle, children): Removed) -> Result<(), Refusal> {
    crate::crash_point!("remove-stored");
    futures_util::future::join_all(children.iter().map(|child| child.tell(Fact::Orphaned))).await;
    let deleted = unfinished::delete(&cx.shared, handle.session).await;
    deleted.map_err(|e| {
        let text = format!("{} is gone, but {e}; the next start tries again", handle.name);
        Refusal::internal(text)
    })?;
    let info = handle.info.borrow().clone();
    if plays_tour(&info) {
        delete_tour(cx, &info.cwd).await;
    }
    Ok(())
}

/// Deletes the directory that was made for a tour, with the last Pod that works there.
async fn delete_tour(cx: &Cx, cwd: &Path) {
    let is_of_a_tour = |path: &&Path| path.file_name().is_some_and(is_tour_directory);
    let Some(directory) = cwd.ancestors().find(is_of_a_tour).map(Path::to_owned) else { return };
    let members = cx.shared.members.borrow().clone();
    if members.0.values().any(|pod| pod.info.borrow().cwd.starts_with(&directory)) {
        return;
    }
    let deleted = tokio::task::spawn_blocking(move || {
        // A directory elsewhere was not made by yoi, whatever its name is.
        let temporary = std::env::temp_dir().canonicalize()?;
        match directory.parent() == Some(&temporary) {
            true => crate::disk::remove_tree(&directory),
            false => Ok(()),
        }
    });
    if let Ok(deleted) = deleted.await {
        deleted.or_log("delete the directory of a tour");
    }
}

/// A Pod to remove, and its children.
type Removed = (Handle, Vec<Handle>);

fn checked(family: &mut Family, name: &PodName) -> Result<Removed, Refusal> {
    let handle = family.pod(name)?;
    family.must_not_be_stopping(&handle.name)?;
    family.must_not_be_starting(&handle.name)?;
    if family.is_live(name) {
        let text = format!("pod `{name}` is live; :stop {name} comes first");
        return Err(Refusal::invalid(text));
    }
    let children = family.table.children(&name.key());
    let children = children.iter().filter_map(|key| family.name_of(key));
    let children = children.filter_map(|name| family.shared.pod(&name)).collect();
    Ok((handle, children))
}
