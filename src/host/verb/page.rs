//! Page and Fetch: pieces of a Pod's transcript.

use crate::host::pod::View;
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{ByteRange, EntryId, Event, Refusal, SegmentId};
use crate::session::{self, LogError, Piece};

pub(crate) struct Page {
    pub(crate) before: Option<EntryId>,
    pub(crate) max_bytes: u64,
}

impl Verb for Page {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let view = cx.pod()?.view().await?;
        let (seq, in_flight) = (view.seq, view.in_flight);
        let Some(segment) = view.segment else {
            return Ok(Event::Page { entries: Vec::new(), before: None, in_flight, seq });
        };
        let read =
            move || session::page(&view.files, segment, view.end, self.before, self.max_bytes);
        let page = tokio::task::spawn_blocking(read).await??;
        Ok(Event::Page { entries: page.entries, before: page.before, in_flight, seq })
    }
}

pub(crate) struct Fetch {
    pub(crate) entry: EntryId,
    pub(crate) range: Option<ByteRange>,
}

impl Verb for Fetch {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let view = cx.pod()?.view().await?;
        let none = || Refusal::invalid("that entry is not in this transcript");
        let segment = view.segment.ok_or_else(none)?;
        let read = move || fetch(&view, segment, self.entry, self.range);
        let fetched = tokio::task::spawn_blocking(read).await?;
        fetched.map_err(|e| Refusal::invalid(e.to_string()))
    }
}

/// Blocking.
fn fetch(
    view: &View,
    segment: SegmentId,
    entry: EntryId,
    range: Option<ByteRange>,
) -> Result<Event, LogError> {
    let Some(range) = range else {
        let entry = session::fetch(&view.files, segment, entry)?;
        return Ok(Event::Fetched { entry: Box::new(entry) });
    };
    let Piece { entry, start, line, shape } = session::piece(&view.files, segment, entry, range)?;
    Ok(Event::FetchedRange { entry, start, line, shape })
}
