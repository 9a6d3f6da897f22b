//! Remove: a stopped Pod goes for good, with its session.

use crate::host::pod::{Fact, Handle};
use crate::host::supervisor::{Family, done, unfinished};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, PodName, Refusal};

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
            return Ok(done());
        }
        let removed = cx.family(move |family| {
            let removed = checked(family, &name)?;
            family.remove(&removed.0.name);
            Ok(removed)
        });
        delete_files(&cx, removed.await?).await?;
        Ok(done())
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
    })
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
