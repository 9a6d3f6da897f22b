//! Where the jumps of a session stand. A log is searched for them once, and then only where it grew.

use crate::protocol::name::SegmentId;
use crate::session::jump::{Jump, all_jumps, last_jump, line_at};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes tell whether a file is still the one that was searched: most of them are the id and
/// the text of its last line.
const COMPARED: u64 = 256;

/// The places in the segments that were searched.
#[derive(Debug, Default)]
pub struct JumpPlaces(Mutex<BTreeMap<SegmentId, Arc<Known>>>);

#[derive(Debug, Default)]
struct Known {
    /// Device and inode of the file.
    file: (u64, u64),
    /// The last of the bytes that were searched. A file that does not have them there is another one,
    /// or was changed, and is searched anew.
    last: Vec<u8>,
    /// How many bytes from the beginning of the segment were searched.
    searched: u64,
    /// Where the lines of jumps begin, in bytes, ascending.
    at: Vec<u64>,
}

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
        let before = known.at.partition_point(|at| *at < range.end);
        for at in known.at[..before].iter().rev().take_while(|at| **at >= range.start) {
            let line = line_at(file, *at, range.end)?;
            if let Some(jump) = line.and_then(|line| Jump::of_line(&line)) {
                return Ok(Some((*at, jump)));
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
        let metadata = file.metadata()?;
        let of = (metadata.dev(), metadata.ino());
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
        let mut at = known.at.clone();
        at.extend(all_jumps(file, known.searched..range.end)?);
        let known = Arc::new(Known { file: of, last, searched: range.end, at });
        self.lock().insert(segment, Arc::clone(&known));
        Ok(Some(known))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SegmentId, Arc<Known>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes before an offset, as many as are compared; fewer at the beginning and where the file ends.
fn before(file: &File, end: u64) -> io::Result<Vec<u8>> {
    let from = end.saturating_sub(COMPARED);
    let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
    let read = file.read_at(&mut bytes, from)?;
    bytes.truncate(read);
    Ok(bytes)
}
