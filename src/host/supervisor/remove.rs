//! Deleting a stopped Pod for good.

use crate::host::Members;
use crate::host::pod::Handle;
use crate::host::supervisor::{Supervisor, done, internal, unfinished};
use crate::protocol::{Event, PodName, Refusal, SessionId};
use crate::store::Change;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Supervisor {
    /// Deletes a stopped Pod, its session and its row; its children are nobody's.
    pub(super) async fn remove(&mut self, name: &PodName) -> Result<Event, Refusal> {
        if self.shared.damaged_row(name).is_some() {
            return self.remove_damaged(name).await;
        }
        let handle = self.pod(name)?;
        self.must_not_be_stopping(&handle.name)?;
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
        self.commit_leases(next, Change { remove, ..Change::default() }).await?;
        crate::crash_point!("remove-stored");
        for child in self.children(&handle.name) {
            child.orphaned().await;
        }
        self.leave_family(&handle, row.session).await?;
        Ok(done())
    }

    /// Deletes a Pod whose record cannot be read.
    async fn remove_damaged(&mut self, name: &PodName) -> Result<Event, Refusal> {
        let remove = Some(name.clone());
        self.commit_leases(self.book.clone(), Change { remove, ..Change::default() }).await?;
        self.shared.damaged.send_modify(|rows| {
            let others = rows.iter().filter(|row| row.name.to_ascii_lowercase() != name.key());
            *rows = Arc::new(others.cloned().collect());
        });
        self.shared.feed(None, None, &Event::PodRemoved { name: name.clone() });
        // Its session goes at the next start: which one it is stands in the store alone.
        Ok(done())
    }

    fn children(&self, of: &PodName) -> Vec<Handle> {
        let members = self.shared.members.borrow().clone();
        let is_child = |handle: &&Handle| {
            handle.info.borrow().parent.as_ref().is_some_and(|parent| parent.key() == of.key())
        };
        members.0.values().filter(is_child).cloned().collect()
    }

    /// A Pod is gone from the store: it goes from the family and its session from the disk; what
    /// could not be deleted is said.
    pub(super) async fn leave_family(
        &self,
        handle: &Handle,
        session: SessionId,
    ) -> Result<(), Refusal> {
        self.shared.members.send_modify(|members| {
            let mut map = BTreeMap::clone(&members.0);
            map.remove(&handle.name.key());
            *members = Members(Arc::new(map));
        });
        let name = handle.name.clone();
        self.drop_peers_of(&name);
        self.shared.feed(None, None, &Event::PodRemoved { name: name.clone() });
        let deleted = unfinished::delete(&self.shared, session).await;
        deleted
            .map_err(|e| internal(format!("{name} is gone, but {e}; the next start tries again")))
    }
}
