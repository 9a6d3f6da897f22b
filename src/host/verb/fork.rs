//! Fork: a second Pod with the same past.

use crate::host::pod::Birth;
use crate::host::pod::resolved::Resolved;
use crate::host::supervisor::{Doing, unfinished};
use crate::host::verb::restore::no_directory;
use crate::host::verb::{Caller, Cx, Verb, create};
use crate::protocol::entry::domain;
use crate::protocol::{Entry, EntryId, Event, PodName, Refusal, SegmentId, SessionId, now_ms};
use crate::scope::lease::Restrictions;
use crate::session::{Files, fork, fork_point};
use crate::store::PodRow;
use crate::trace::OrLog as _;

pub(crate) struct Fork {
    pub(crate) name: Option<PodName>,
    pub(crate) at: Option<EntryId>,
}

impl Verb for Fork {
    const ALLOWED: Caller = Caller::Person;

    /// The new Pod works in the same directory and reads where the first one writes.
    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let source = cx.pod()?;
        let row = cx.shared.store.pod(&source.name).await?;
        let row = row.ok_or_else(|| crate::host::supervisor::missing(&source.name))?;
        let dir = row.cwd.clone();
        if !cx.files(&row.cwd, move || dir.is_dir()).await? {
            let (name, why) = (&source.name, no_directory(&source.name, &row.cwd));
            return Err(Refusal::invalid(format!("pod `{name}` cannot be forked: {why}")));
        }
        let base = source.name.clone();
        let named = cx.family(move |family| {
            let name = family.free_name(self.name, &base)?;
            // The name is kept free until the copy is there.
            let mark = family.mark(&name.key(), Doing::Starting);
            Ok((name, mark))
        });
        let (name, reserved) = named.await?;
        let mut new = forked(&row, name);
        let env = source.parental().await?.env;
        let session = new.session;
        if let Some(segment) = row.segment {
            // Discardable until the store has its Pod, so a crash cleans it up.
            cx.shared.store.discard(session).await?;
            let copied = copy(&cx, row.session, segment, self.at, &new).await;
            if copied.is_err() {
                // What cannot be deleted now goes at the next start.
                unfinished::delete(&cx.shared, session).await.or_log("delete a session");
            }
            new.segment = Some(copied?);
            crate::crash_point!("fork-copied");
        }
        drop(reserved);
        let created = cx.family(move |family| {
            let name = family.free_name(Some(new.name.clone()), &new.name)?;
            Ok(family.create(PodRow { name, ..new }, Birth::New { env }))
        });
        let (handle, _mark) = created.await?;
        crate::crash_point!("fork-stored");
        // Where this fails the next start finds the Pod and its log.
        cx.shared.store.keep_session(session).await.or_log("settle the session in the store");
        if let Err(refusal) = handle.live(Vec::new()).await {
            create::undo(&cx, &handle).await;
            return Err(refusal);
        }
        Ok(Event::Created { info: Box::new(handle.info.borrow().clone()) })
    }
}

fn forked(row: &PodRow, name: PodName) -> PodRow {
    let now = now_ms();
    PodRow {
        name,
        parent: None,
        session: SessionId::new(),
        segment: None,
        // The working tree stays that of the source: one Pod alone decides what becomes of it.
        config: Resolved { own_scope: false, worktree: None, ..Resolved::read(&row.config) }
            .value(),
        created: now,
        since: now,
        seen: true,
        restrictions: Restrictions::default(),
        last_run: None,
        cost: None,
        ephemeral: false,
        ..row.clone()
    }
}

/// Copies a log up to and including an entry into the session of a new Pod, which the copy then
/// names as its own.
async fn copy(
    cx: &Cx,
    of: SessionId,
    segment: SegmentId,
    at: Option<EntryId>,
    new: &PodRow,
) -> Result<SegmentId, Refusal> {
    let data = &cx.shared.dirs.data;
    let (from, to) = (Files::new(data, of), Files::new(data, new.session));
    let source = from.clone();
    let point = tokio::task::spawn_blocking(move || fork_point(&source, segment, at))
        .await?
        .map_err(|error| Refusal::invalid(error.to_string()))?;
    let record = Entry::extension(domain::POD, new.record());
    let (journal, segment) = fork(&from, point, &to, new.session, vec![record]).await?;
    journal.close().await;
    Ok(segment)
}
