//! A transcript from a place in it to its end, read in pages: its length does not matter.

use crate::headless::exit::{Exit, Failure};
use std::collections::VecDeque;
use yoi::client::Client;
use yoi::protocol::event::Line;
use yoi::protocol::{EntryId, Event, InFlight, Method, PodName};

/// How much of the log one page holds, in bytes.
const PAGE: u64 = 1024 * 1024;
/// Entries that are remembered to find the place again; the last ones may have been taken back.
const REMEMBERED: usize = 64;

/// Where a reader stands in a transcript.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The entries that were read last, the newest last.
    last: VecDeque<EntryId>,
    /// Everything from the beginning on was read.
    from_start: bool,
}

impl Place {
    /// Before the first entry.
    pub fn start() -> Self {
        Self { from_start: true, ..Self::default() }
    }

    /// Behind these lines, which are the end of the transcript.
    pub fn behind(lines: &[Line]) -> Self {
        let mut place = Self { from_start: lines.is_empty(), ..Self::default() };
        lines.iter().filter_map(id_of).for_each(|id| place.read(id));
        place
    }

    /// Goes on behind an entry.
    pub fn read(&mut self, id: EntryId) {
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(id);
    }

    pub fn has_read(&self, id: EntryId) -> bool {
        self.last.contains(&id)
    }

    /// How many of these lines were read already, if the place is among them.
    fn within(&self, lines: &[Line]) -> Option<usize> {
        let read = |line: &Line| id_of(line).is_some_and(|id| self.has_read(id));
        lines.iter().rposition(read).map(|at| at + 1)
    }
}

/// The id of a line of a page.
pub fn id_of(line: &Line) -> Option<EntryId> {
    match line {
        Line::Whole(entry) | Line::Cut { entry, .. } => entry.id,
        Line::Damaged { .. } => None,
    }
}

/// One page of a transcript.
pub struct Page {
    pub lines: Vec<Line>,
    before: Option<EntryId>,
    /// The number of the last event that the page accounts for.
    pub seq: u64,
    /// A text was being streamed.
    pub streaming: bool,
}

/// The end of a transcript that holds at least its last entry.
pub async fn last_page(client: &Client, pod: &PodName) -> Result<Page, Failure> {
    page(client, pod, None, 1).await
}

async fn page(
    client: &Client,
    pod: &PodName,
    before: Option<EntryId>,
    max_bytes: u64,
) -> Result<Page, Failure> {
    match client.call(Some(pod), Method::Page { before, max_bytes }).await? {
        Event::Page { entries, before, in_flight, seq } => {
            let streaming = in_flight.iter().any(|block| matches!(block, InFlight::Text { .. }));
            Ok(Page { lines: entries, before, seq, streaming })
        }
        _ => Err(Failure::new(Exit::Failed, "the host did not answer with a page")),
    }
}

/// The pages behind a place, oldest first.
pub struct PagesBehind {
    client: Client,
    pod: PodName,
    /// What follows the place on its page.
    first: Option<Vec<Line>>,
    /// Where the pages between the first and the newest one end, the next one last.
    ends: Vec<EntryId>,
    /// Kept from the walk: read again later, it would begin further on.
    newest: Option<Vec<Line>>,
    /// The number of the last event that the newest page accounts for.
    pub seq: u64,
    /// A text was being streamed when the newest page was read.
    pub streaming: bool,
}

impl PagesBehind {
    /// Walks back from the end of a transcript to a place. Where the place is not in it any more,
    /// nothing is read: what was read before must not be read again.
    pub async fn find(client: Client, pod: PodName, place: &Place) -> Result<Self, Failure> {
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
    pub async fn next(&mut self) -> Result<Option<Vec<Line>>, Failure> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        match self.ends.pop() {
            Some(end) => Ok(Some(page(&self.client, &self.pod, Some(end), PAGE).await?.lines)),
            None => Ok(self.newest.take()),
        }
    }
}
