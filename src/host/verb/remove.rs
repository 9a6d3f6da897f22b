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
        let (handle, children) = cx.family(move |family| remove(family, &name)).await?;
        crate::crash_point!("remove-stored");
        futures_util::future::join_all(children.iter().map(|child| child.tell(Fact::Orphaned)))
            .await;
        let deleted = unfinished::delete(&cx.shared, handle.session).await;
        deleted.map_err(|e| {
            let text = format!("{} is gone, but {e}; the next start tries again", handle.name);
            Refusal::internal(text)
        })?;
        Ok(done())
    }
}

fn remove(family: &mut Family, name: &PodName) -> Result<(Handle, Vec<Handle>), Refusal> {
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
    family.remove(&handle.name);
    Ok((handle, children))
}
