//! Deleting a stopped Pod for good.

use crate::host::supervisor::{Supervisor, done, internal};
use crate::protocol::{Event, PodName, Refusal};
use crate::store::Change;

impl Supervisor {
    /// Deletes a stopped Pod, its session and its row; its children are nobody's.
    pub(super) async fn remove(&mut self, name: &PodName) -> Result<Event, Refusal> {
        let handle = self.pod(name)?;
        if self.book.holder(&handle.name.key()).is_some_and(|holder| holder.live) {
            let text = format!("pod `{name}` is live; :stop {name} comes first");
            return Err(Refusal::invalid(text));
        }
        let missing = || Refusal::invalid(format!("no pod named `{name}`"));
        let row = self.shared.store.pod(&handle.name).await;
        let row = row.map_err(internal)?.ok_or_else(missing)?;
        let mut next = self.book.clone();
        next.remove(&handle.name.key());
        let remove = Some(handle.name.clone());
        self.turn_page(next, Change { remove, ..Change::default() }).await?;
        for child in self.children(&handle.name) {
            child.orphaned().await;
        }
        self.leave_family(&handle, row.session).await?;
        Ok(done())
    }

    fn children(&self, of: &PodName) -> Vec<crate::host::pod::Handle> {
        let members = self.shared.members.borrow().clone();
        let is_child = |handle: &&crate::host::pod::Handle| {
            handle.info.borrow().parent.as_ref().is_some_and(|parent| parent.key() == of.key())
        };
        members.0.values().filter(is_child).cloned().collect()
    }
}
