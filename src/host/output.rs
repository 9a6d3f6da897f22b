//! The texts of a Pod's model. Another Pod reads on from where it stopped, a person or an MCP client reads the
//! last run.
//! The log is read from its end, by ids, so that compaction, rewind and restore neither hide a text
//! nor show it twice.

use crate::host::Shared;
use crate::host::pod::View;
use crate::protocol::{
    Entry, EntryId, Event, Fact, Item, PodName, PodOutput, Refusal, Role, SegmentId,
};
use crate::session::{self, Files, Lineage, LogError, LogPosition, Recent};

/// Bytes of text for another Pod, or for a client, at once: they have to fit into one tool result.
const FOR_PODS: usize = 48 * 1024;
/// Bytes of text for a person at once.
const FOR_PEOPLE: usize = 256 * 1024;

/// The reader of a Pod's texts.
#[derive(Clone, Copy)]
pub(crate) enum Reader<'a> {
    /// Another Pod; its place moves on when its own log holds the texts.
    Pod(&'a PodName),
    Client,
    Person,
}

/// Where the new texts begin.
#[derive(Clone, Copy)]
enum Since {
    /// After this entry; `None` is the beginning.
    Entry(Option<EntryId>),
    LastRun,
}

/// Texts and where they end.
#[derive(Debug, Default)]
struct Found {
    newest_first: Vec<(EntryId, String)>,
    bytes: usize,
    cut: bool,
}

/// The texts of a Pod's model since another Pod read them last; for a client or a person, those of the last run.
pub(crate) async fn read(
    shared: &Shared,
    reader: Reader<'_>,
    pod: &PodName,
) -> Result<Event, Refusal> {
    let missing = || Refusal::invalid(crate::tools::pods::missing(pod.as_str()));
    let handle = shared.pod(pod).ok_or_else(missing)?;
    let (since, limit) = match reader {
        Reader::Pod(by) => {
            let cursor = shared.store.cursor(by, &handle.name).await;
            (Since::Entry(cursor?), FOR_PODS)
        }
        Reader::Client => (Since::LastRun, FOR_PODS),
        Reader::Person => (Since::LastRun, FOR_PEOPLE),
    };
    let view = handle.view().await?;
    // Looked at after the log: no text of a run that has ended is given as one under way.
    let info = handle.info.borrow().clone();
    let found = match view.segment {
        None => Ok(Found::default()),
        Some(segment) => {
            let find = move || find(&view, segment, since, limit);
            tokio::task::spawn_blocking(find).await?
        }
    };
    let found = found?;
    Ok(Event::Output(Box::new(PodOutput {
        name: info.name,
        state: info.state,
        why: info.why,
        upto: found.newest_first.first().map(|(newest, _)| *newest),
        texts: found.newest_first.into_iter().rev().map(|(_, text)| text).collect(),
        cut: found.cut,
        last_result: info.last_result,
    })))
}

/// Bytes of a result that its parent is notified with, and how far back in the log it may stand.
const RESULT: usize = 8 * 1024;
const RESULT_WITHIN: u64 = 1024 * 1024;

/// The last message of the run that ended with this entry, of a long one the beginning. `None` if it has none.
pub(crate) async fn result_of(files: Files, segment: SegmentId, end: EntryId) -> Option<String> {
    let find = move || {
        let mut ended = false;
        for recent in session::backwards(&files, segment, None).within(RESULT_WITHIN) {
            let Recent { entry, is_cut, .. } = recent.ok()?;
            if !ended {
                ended = entry.id == Some(end);
                continue;
            }
            if matches!(entry.fact, Fact::Invoke { .. }) {
                return None;
            }
            let Some(text) = said(&entry) else { continue };
            return match is_cut {
                true => said(&session::fetch(&files, segment, entry.id?).ok()?),
                false => Some(text),
            };
        }
        None
    };
    // Without it, the parent reads the output with a call.
    let text = tokio::task::spawn_blocking(find).await.ok().flatten()?;
    Some(match text.len() <= RESULT {
        true => text,
        false => format!("{} […]", &text[..text.floor_char_boundary(RESULT)]),
    })
}

/// Walks back from the end to where the new texts begin.
fn find(view: &View, segment: SegmentId, since: Since, limit: usize) -> Result<Found, LogError> {
    let mut begin = Begin::of(view, segment, since)?;
    let mut found = Found::default();
    for recent in session::backwards(&view.files, segment, view.end) {
        let recent = recent?;
        if begin.is_behind(&recent)? {
            return Ok(found);
        }
        let Recent { entry, is_cut, .. } = recent;
        let entry = match entry.id.filter(|_| is_cut && said(&entry).is_some()) {
            Some(id) => session::fetch(&view.files, segment, id)?,
            None => entry,
        };
        if let (Some(id), Some(text)) = (entry.id, said(&entry))
            && !found.take(id, text, limit)
        {
            return Ok(found);
        }
    }
    Ok(found)
}

/// Where the new texts begin. It is a place in the log, not an id or a time: the entry that was read last
/// may have been taken back since, and the clock may have been set back.
enum Begin<'f> {
    Session,
    LastRun,
    Behind { last: LogPosition, files: &'f Files, lineage: Lineage<'f> },
}

impl<'f> Begin<'f> {
    fn of(view: &'f View, segment: SegmentId, since: Since) -> Result<Self, LogError> {
        let after = match since {
            Since::LastRun => return Ok(Self::LastRun),
            Since::Entry(None) => return Ok(Self::Session),
            Since::Entry(Some(after)) => after,
        };
        let files = &view.files;
        match session::locate(files, segment, None, after) {
            Ok(last) => Ok(Self::Behind { last, files, lineage: Lineage::new(files, segment) }),
            // The log was exchanged.
            Err(LogError::NoSuchEntry { .. }) => Ok(Self::LastRun),
            Err(error) => Err(error),
        }
    }

    /// Whether an entry is older than the new texts, so that reading backwards can stop.
    fn is_behind(&mut self, Recent { entry, at, .. }: &Recent) -> Result<bool, LogError> {
        match self {
            Self::Session => Ok(false),
            Self::LastRun => Ok(matches!(entry.fact, Fact::Invoke { .. })),
            Self::Behind { last, .. } if at.segment == last.segment => Ok(at.offset <= last.offset),
            Self::Behind { last, files, lineage } => {
                if lineage.is_older(at.segment, last.segment) {
                    return Ok(true);
                }
                // Earlier versions copied the lines before a rewind into a new segment.
                let copied = |id| session::holds(files, last.segment, id);
                entry.id.filter(|_| said(entry).is_some()).map_or(Ok(false), copied)
            }
        }
    }
}

/// The words of a model in an entry.
fn said(entry: &Entry) -> Option<String> {
    let Fact::AssistantItem { item: item @ Item::Message { role: Role::Assistant, .. }, .. } =
        &entry.fact
    else {
        return None;
    };
    item.text().filter(|text| !text.trim().is_empty())
}

impl Found {
    /// Takes an older text; false when there is no room for it. The newest one is never left out
    /// whole.
    fn take(&mut self, id: EntryId, mut text: String, limit: usize) -> bool {
        let room = limit.saturating_sub(self.bytes);
        if text.len() > room {
            self.cut = true;
            if self.newest_first.is_empty() {
                text.drain(..text.ceil_char_boundary(text.len() - room));
                self.newest_first.push((id, text));
            }
            return false;
        }
        self.bytes += text.len();
        self.newest_first.push((id, text));
        true
    }
}
