//! Reads a transcript from a place to its end, page by page, so that its length does not matter.

use crate::client::Client;
use crate::protocol::event::Line;
use crate::protocol::{EntryId, Event, InFlight, Method, PodName, Refusal};
use std::collections::VecDeque;

/// The size of a page, in bytes of the log.
const PAGE: u64 = 1024 * 1024;
/// How many entries are remembered to find the place again; the last ones may be taken back by a
/// rewind.
const REMEMBERED: usize = 64;

/// The position of a reader in a transcript.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The entries that were read last, the newest last.
    last: VecDeque<EntryId>,
    /// Whether every entry from the beginning was read.
    from_start: bool,
    /// The first entry to read, if none was read yet.
    next: Option<EntryId>,
}

impl Place {
    /// The position before the first entry.
    pub fn start() -> Self {
        Self { from_start: true, ..Self::default() }
    }

    /// The position behind these lines, the last ones of the transcript.
    pub fn behind(lines: &[Line]) -> Self {
        let mut place = Self { from_start: lines.is_empty(), ..Self::default() };
        lines.iter().filter_map(Line::id).for_each(|id| place.read(id));
        place
    }

    /// Whether the position can be found in the transcript.
    pub fn is_known(&self) -> bool {
        self.from_start || self.next.is_some() || !self.last.is_empty()
    }

    /// Sets the position to before this entry, if none is known yet. The entry is the first one that came.
    pub fn begin_at(&mut self, id: EntryId) {
        if !self.is_known() {
            self.next = Some(id);
        }
    }

    /// Moves behind an entry.
    pub fn read(&mut self, id: EntryId) {
        self.next = None;
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(id);
    }

    pub fn has_read(&self, id: EntryId) -> bool {
        self.last.contains(&id)
    }

    /// How many of these lines were read already; `None` if the place is not among them.
    pub fn within(&self, lines: &[Line]) -> Option<usize> {
        let read = |line: &Line| line.id().is_some_and(|id| self.has_read(id));
        let next = |line: &Line| self.next.is_some() && line.id() == self.next;
        let behind = lines.iter().rposition(read).map(|at| at + 1);
        behind.or_else(|| lines.iter().position(next))
    }
}

/// One page of a transcript.
pub struct Page {
    pub lines: Vec<Line>,
    before: Option<EntryId>,
    /// The number of the last event that the page accounts for.
    pub seq: u64,
    /// Whether a text was being streamed.
    pub streaming: bool,
}

/// The end of a transcript that holds at least its last entry.
pub async fn last_page(client: &Client, pod: &PodName) -> Result<Page, Refusal> {
    page(client, pod, None, 1).await
}

async fn page(
    client: &Client,
    pod: &PodName,
    before: Option<EntryId>,
    max_bytes: u64,
) -> Result<Page, Refusal> {
    match client.call(Some(pod), Method::Page { before, max_bytes }).await? {
        Event::Page { entries, before, in_flight, seq } => {
            let streaming = in_flight.iter().any(|block| matches!(block, InFlight::Text { .. }));
            Ok(Page { lines: entries, before, seq, streaming })
        }
        _ => Err(Refusal::internal("the host did not answer with a page")),
    }
}

/// The pages behind a place, oldest first.
pub struct PagesBehind {
    client: Client,
    pod: PodName,
    /// The lines behind the place on its page.
    first: Option<Vec<Line>>,
    /// The entries at which the pages between the first and the newest one end, in reverse order.
    ends: Vec<EntryId>,
    /// The newest page, kept because it would begin at a later entry if it were read again.
    newest: Option<Vec<Line>>,
    /// The number of the last event that the newest page accounts for.
    pub seq: u64,
    /// Whether a text was being streamed when the newest page was read.
    pub streaming: bool,
}

impl PagesBehind {
    /// Goes back from the end of a transcript to a place. If the transcript does not hold the place any
    /// more, there are no pages: no entry is printed twice.
    pub async fn find(client: Client, pod: PodName, place: &Place) -> Result<Self, Refusal> {
        let mut at = page(&client, &pod, None, PAGE).await?;
        let (seq, streaming) = (at.seq, at.streaming);
        let (mut ends, mut newest) = (Vec::new(), None);
        let first = loop {
            let begun = place.from_start && at.before.is_none();
            if let Some(read) = place.within(&at.lines).or(begun.then_some(0)) {
                ends.pop();
                break Some(at.lines.split_off(read));
            }
            let Some(before) = at.before else {
                (ends, newest) = (Vec::new(), None);
                break None;
            };
            if ends.is_empty() {
                newest = Some(at.lines);
            }
            ends.push(before);
            at = page(&client, &pod, Some(before), PAGE).await?;
        };
        Ok(Self { client, pod, first, ends, newest, seq, streaming })
    }

    /// The next page; `None` behind the newest one.
    pub async fn next(&mut self) -> Result<Option<Vec<Line>>, Refusal> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.ends.pop() {
            Some(end) => Ok(Some(page(&self.client, &self.pod, Some(end), PAGE).await?.lines)),
            None => Ok(self.newest.take()),
        }
    }
}
