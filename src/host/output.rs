//! The texts of a Pod's model. Another Pod reads on from where it stopped, a person reads the last
//! run.
//! The log is read from its end, by ids, so that compaction, rewind and restore neither hide a text
//! nor show it twice.

use crate::host::Shared;
use crate::host::pod::View;
use crate::protocol::{
    Entry, EntryId, Event, Fact, Item, PodName, PodOutput, Refusal, Role, SegmentId,
};
use crate::session::{self, LogError, Recent};

/// Bytes of text for another Pod at once: they have to fit into one tool result.
const FOR_PODS: usize = 48 * 1024;
/// Bytes of text for a person at once.
const FOR_PEOPLE: usize = 256 * 1024;

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

/// The texts of a Pod's model since `by` read them last; the place of `by` moves on when its own log
/// holds them. For a person, the texts of the last run.
pub(crate) async fn read(
    shared: &Shared,
    by: Option<&PodName>,
    pod: &PodName,
) -> Result<Event, Refusal> {
    let missing = || Refusal::invalid(crate::tools::pods::missing(pod.as_str()));
    let handle = shared.pod(pod).ok_or_else(missing)?;
    let (since, limit) = match by {
        Some(by) => {
            let cursor = shared.store.cursor(by, &handle.name).await;
            (Since::Entry(cursor?), FOR_PODS)
        }
        None => (Since::LastRun, FOR_PEOPLE),
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

/// Walks back from the end to where the new texts begin.
fn find(view: &View, segment: SegmentId, since: Since, limit: usize) -> Result<Found, LogError> {
    let after = match since {
        Since::Entry(after) => after,
        Since::LastRun => None,
    };
    // A rewind may have taken the entry away; ids ascend with time, so they tell as well.
    let gone = after.is_some_and(|id| session::fetch(&view.files, segment, id).is_err());
    let mut found = Found::default();
    for recent in session::backwards(&view.files, segment, view.end) {
        let Recent { entry, is_cut } = recent?;
        if begins(&entry, since, gone) {
            return Ok(found);
        }
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
    // The entry was rolled back together with a run in which nothing was said.
    found.newest_first.retain(|(id, _)| after.is_none_or(|after| *id > after));
    Ok(found)
}

/// Whether the new texts begin right after this entry.
fn begins(entry: &Entry, since: Since, gone: bool) -> bool {
    match since {
        Since::LastRun => matches!(entry.fact, Fact::Invoke { .. }),
        Since::Entry(None) => false,
        Since::Entry(Some(after)) => {
            // The first line of a rewound segment is younger than what follows it.
            let ordered = !matches!(entry.fact, Fact::SegmentStart { .. });
            entry.id.is_some_and(|id| id == after || (gone && ordered && id < after))
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
