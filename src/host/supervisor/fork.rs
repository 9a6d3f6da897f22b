//! A second Pod with the same past.

use crate::host::pod::life::Resolved;
use crate::host::supervisor::{Supervisor, internal, unfinished};
use crate::protocol::entry::domain;
use crate::protocol::{
    Entry, EntryId, Event, PodName, Refusal, SegmentId, SegmentOrigin, SessionId, now_ms,
};
use crate::scope::lease::Restrictions;
use crate::session::Files;
use crate::store::PodRow;

impl Supervisor {
    /// A new Pod in the same directory with the history of another one, up to and including an
    /// entry. It reads where the first one writes.
    pub(super) async fn fork(
        &mut self,
        source: &PodName,
        name: Option<PodName>,
        at: Option<EntryId>,
    ) -> Result<Event, Refusal> {
        let handle = self.pod(source)?;
        let row = self.shared.store.pod(&handle.name).await.map_err(internal)?;
        let row = row.ok_or_else(|| Refusal::invalid(format!("no pod named `{source}`")))?;
        let name = match name {
            Some(name) => self.free_name(Some(name), &row.workspace)?,
            None => self.numbered(&handle.name)?,
        };
        let (session, now) = (SessionId::new(), now_ms());
        let mut new = PodRow {
            name,
            parent: None,
            session,
            segment: None,
            created: now,
            since: now,
            seen: true,
            restrictions: Restrictions::default(),
            last_run: None,
            ..row.clone()
        };
        new.config = Resolved::read(&new.config).value();
        let env = handle.parental().await?.env;
        if let Some(segment) = row.segment {
            // Nobody's until the store has its Pod.
            self.shared.store.discard(session).await.map_err(internal)?;
            let copied = self.copy(row.session, segment, at, &new).await;
            if copied.is_err() {
                // What cannot be deleted now goes at the next start.
                let _ = unfinished::delete(&self.shared, session).await;
            }
            new.segment = Some(copied?);
            crate::crash_point!("fork-copied");
        }
        let handle = self.add(new, env).await?;
        crate::crash_point!("fork-stored");
        // Where this fails the next start finds the Pod and its log.
        let _ = self.shared.store.settle(session).await;
        handle.live(Vec::new()).await?;
        Ok(Event::Created { info: Box::new(handle.info.borrow().clone()) })
    }

    /// Copies a log up to and including an entry into the session of a new Pod, which the copy then
    /// names as its own.
    async fn copy(
        &self,
        of: SessionId,
        segment: SegmentId,
        at: Option<EntryId>,
        new: &PodRow,
    ) -> Result<SegmentId, Refusal> {
        let session = new.session;
        let from = Files::new(&self.shared.dirs.data, of);
        let to = Files::new(&self.shared.dirs.data, session);
        let count = crate::session::entries_through(&from, segment, at);
        let count = tokio::task::spawn_blocking(count).await.map_err(internal)?;
        let (keep, turn) = count.map_err(|e| Refusal::invalid(e.to_string()))?;
        let origin = SegmentOrigin { segment_id: segment, at_turn_index: turn };
        let forked = crate::session::fork_into(&from, segment, keep, origin, &to, Some(session));
        let (journal, segment, _) = forked.await.map_err(internal)?;
        let own = Entry::extension(domain::POD, new.record());
        let named = journal.commit(vec![own]).await;
        journal.close().await;
        named.map_err(internal)?;
        Ok(segment)
    }
}
