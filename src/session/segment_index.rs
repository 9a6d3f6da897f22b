//! Where the jumps of a session stand, and where those lead that do not say it. A log is searched for
//! them once, and then only where it grew.

use crate::disk::FileId;
use crate::protocol::name::SegmentId;
use crate::session::glance::glance;
use crate::session::jump::{DOMAIN, Jump, last_jump, line_at};
use crate::session::line::id_at_beginning;
use crate::session::lineage::LogPosition;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes tell whether a file is still the one that was searched: most of them are the id and
/// the text of its last line.
const COMPARED: u64 = 256;

/// The places in the segments that were searched.
#[derive(Debug, Default)]
pub struct JumpPlaces(Mutex<BTreeMap<SegmentId, Arc<Known>>>);

#[derive(Debug, Default)]
struct Known {
    /// `None` before the first search.
    file: Option<FileId>,
    /// The last of the bytes that were searched. A file that does not have them there is another one,
    /// or was changed, and is searched anew.
    last: Vec<u8>,
    /// How many bytes from the beginning of the segment were searched.
    searched: u64,
    /// In the order of the file.
    jumps: Vec<Place>,
}

/// Where a jump stands.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Where its line begins, in bytes.
    at: u64,
    /// Where the line begins before which the session goes on, if the jump only names its id and the
    /// line is one of the [`RECENT`] before it.
    to: Option<u64>,
}

/// How many lines before a jump are known by their ids. The run that an old rollback takes back is
/// mostly shorter: it had no result.
const RECENT: usize = 1024;

impl JumpPlaces {
    /// The last jump whose line lies in a range of whole lines of a segment, and where that line
    /// begins.
    pub fn last(
        &self,
        file: &File,
        segment: SegmentId,
        range: Range<u64>,
    ) -> io::Result<Option<(u64, Jump)>> {
        let Some(known) = self.known(file, segment, &range)? else {
            return last_jump(file, range);
        };
        let before = known.jumps.partition_point(|jump| jump.at < range.end);
        for place in known.jumps[..before].iter().rev().take_while(|jump| jump.at >= range.start) {
            let line = line_at(file, place.at, range.end)?;
            if let Some(jump) = line.and_then(|line| Jump::of_line(&line)) {
                let found = place.to.map(|offset| LogPosition { segment, offset });
                return Ok(Some((place.at, found.map_or(jump, |to| jump.leading_to(to)))));
            }
        }
        Ok(None)
    }

    /// The places as far as the end of the range. `None` where the range begins behind what was
    /// searched, so that what stands before it need not be read, and where it ends in a torn line.
    fn known(
        &self,
        file: &File,
        segment: SegmentId,
        range: &Range<u64>,
    ) -> io::Result<Option<Arc<Known>>> {
        let of = Some(FileId::of(file)?);
        let found = self.lock().get(&segment).filter(|known| known.file == of).cloned();
        let known = match found {
            Some(known) if before(file, known.searched)? == known.last => known,
            Some(_) | None => Arc::default(),
        };
        if range.end <= known.searched {
            return Ok(Some(known));
        }
        let last = before(file, range.end)?;
        if range.start > known.searched || last.last() != Some(&b'\n') {
            return Ok(None);
        }
        let mut jumps = known.jumps.clone();
        jumps.extend(all_jumps(file, known.searched..range.end)?);
        let known = Arc::new(Known { file: of, last, searched: range.end, jumps });
        self.lock().insert(segment, Arc::clone(&known));
        Ok(Some(known))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SegmentId, Arc<Known>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The jumps in a range of whole lines. A gigabyte is searched in a fraction of a second.
fn all_jumps(file: &File, range: Range<u64>) -> io::Result<Vec<Place>> {
    let domain = memchr::memmem::Finder::new(DOMAIN);
    let mut found = Vec::new();
    // The ids of the lines before this one, and where these begin.
    let mut recent = VecDeque::with_capacity(RECENT);
    glance(file, range, |line| {
        let may_be = domain.find(line.head).is_some();
        let jump = if may_be { Jump::of_line(&line.line()?) } else { None };
        if let Some(jump) = jump {
            let wanted = jump.entry_before();
            let known = recent.iter().rev().find(|(id, _)| Some(*id) == wanted);
            // No position leads to before the first line of a segment: that jump keeps its id.
            let to = known.map(|(_, start)| *start).filter(|start| *start > 0);
            found.push(Place { at: line.start, to });
        }
        match id_at_beginning(line.head) {
            Some(id) => {
                if recent.len() == RECENT {
                    recent.pop_front();
                }
                recent.push_back((id, line.start));
            }
            // The id may stand anywhere in the line, so an earlier line may not be the nearest.
            None => recent.clear(),
        }
        Ok(())
    })?;
    Ok(found)
}

/// The bytes before an offset, as many as are compared; fewer at the beginning and where the file ends.
fn before(file: &File, end: u64) -> io::Result<Vec<u8>> {
    let from = end.saturating_sub(COMPARED);
    let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
    let read = file.read_at(&mut bytes, from)?;
    bytes.truncate(read);
    Ok(bytes)
}
