//! What is known of the lines of a segment: where its jumps stand, where those lead that do not say it,
//! and which lines are long. A log is searched for them once, and then only where it grew.

use crate::disk::{FileId, open_regular};
use crate::protocol::name::SegmentId;
use crate::session::Files;
use crate::session::glance::{self, Glance, glance};
use crate::session::jump::{DOMAIN, Jump, last_jump, line_at};
use crate::session::line::id_at_beginning;
use crate::session::lineage::LogPosition;
use crate::session::outputs::{self, LONG, LongResult};
use crate::session::two_threads::both;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes tell whether a file is still the one that was searched: most of them are the id and
/// the text of its last line.
const COMPARED: u64 = 256;

/// How many bytes of a log are read by two threads, each half of them. Starting a thread takes longer
/// than reading fewer bytes.
const TWO_THREADS_FROM: u64 = 8 * 1024 * 1024;

/// The indexes of the segments that were searched.
#[derive(Debug)]
pub struct SegmentIndexes {
    known: Mutex<BTreeMap<SegmentId, Arc<SegmentIndex>>>,
    two_threads_from: u64,
}

/// Of a segment, or of its beginning.
#[derive(Debug, Default)]
struct SegmentIndex {
    /// `None` before the first search.
    file: Option<FileId>,
    /// The last of the bytes that were searched. A file that does not have them there is another one,
    /// or was changed, and is searched anew.
    last: Vec<u8>,
    /// How many bytes from the beginning of the segment were searched.
    searched: u64,
    found: Found,
}

/// What a search found, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
struct Found {
    jumps: Vec<Place>,
    /// The lines of at least [`LONG`] bytes, with their line ends: 16 bytes for each.
    long: Vec<Range<u64>>,
}

/// Where a jump stands.
#[derive(Clone, Copy, Debug, PartialEq)]
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

impl Default for SegmentIndexes {
    fn default() -> Self {
        Self { known: Mutex::default(), two_threads_from: TWO_THREADS_FROM }
    }
}

impl SegmentIndexes {
    /// Reads so many bytes and more by two threads.
    #[cfg(test)]
    pub fn with_two_threads_from(bytes: u64) -> Self {
        Self { two_threads_from: bytes, ..Self::default() }
    }

    /// The last jump whose line lies in a range of whole lines of a segment, and where that line
    /// begins.
    pub fn last_jump(
        &self,
        file: &File,
        segment: SegmentId,
        range: Range<u64>,
    ) -> io::Result<Option<(u64, Jump)>> {
        let Some(index) = self.up_to(file, segment, &range)? else {
            return last_jump(file, range);
        };
        let jumps = &index.found.jumps;
        let before = jumps.partition_point(|jump| jump.at < range.end);
        for place in jumps[..before].iter().rev().take_while(|jump| jump.at >= range.start) {
            let line = line_at(file, place.at, range.end)?;
            if let Some(jump) = line.and_then(|line| Jump::of_line(&line)) {
                let found = place.to.map(|offset| LogPosition { segment, offset });
                return Ok(Some((place.at, found.map_or(jump, |to| jump.leading_to(to)))));
            }
        }
        Ok(None)
    }

    /// The index as far as the end of the range. `None` where the range begins behind what was
    /// searched, so that what stands before it need not be read, and where it ends in a torn line.
    fn up_to(
        &self,
        file: &File,
        segment: SegmentId,
        range: &Range<u64>,
    ) -> io::Result<Option<Arc<SegmentIndex>>> {
        let index = self.so_far(file, segment)?;
        if range.end <= index.searched {
            return Ok(Some(index));
        }
        let last = before(file, range.end)?;
        if range.start > index.searched || last.last() != Some(&b'\n') {
            return Ok(None);
        }
        let mut found = index.found.clone();
        found.append(search(file, index.searched..range.end, self.two_threads_from)?);
        let file = Some(FileId::of(file)?);
        let index = Arc::new(SegmentIndex { file, last, searched: range.end, found });
        self.lock().insert(segment, Arc::clone(&index));
        Ok(Some(index))
    }

    /// The index of this file as far as it is known; an empty one if it was not searched or has changed.
    fn so_far(&self, file: &File, segment: SegmentId) -> io::Result<Arc<SegmentIndex>> {
        let of = Some(FileId::of(file)?);
        let known = self.lock().get(&segment).filter(|index| index.file == of).cloned();
        match known {
            Some(index) if before(file, index.searched)? == index.last => Ok(index),
            Some(_) | None => Ok(Arc::default()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<SegmentId, Arc<SegmentIndex>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Found {
    fn append(&mut self, mut behind: Self) {
        self.jumps.append(&mut behind.jumps);
        self.long.append(&mut behind.long);
    }
}

/// Searches a range of whole lines, from `two_threads_from` bytes on with two threads.
fn search(file: &File, range: Range<u64>, two_threads_from: u64) -> io::Result<Found> {
    let length = range.end - range.start;
    let middle = match length >= two_threads_from {
        true => line_behind(file, range.start + length / 2..range.end)?,
        false => None,
    };
    let Some(middle) = middle else { return search_piece(file, range) };
    let piece = |range| search_piece(file, range);
    let (first, second) = both(|| piece(range.start..middle), || piece(middle..range.end));
    let mut found = first?;
    found.append(second?);
    Ok(found)
}

/// Where the first line begins that begins in a range behind its first byte.
fn line_behind(file: &File, range: Range<u64>) -> io::Result<Option<u64>> {
    let mut begins = None;
    let mut at = range.start;
    let mut chunk = vec![0; 1 << 16];
    while begins.is_none() && at < range.end {
        let read = file.read_at(&mut chunk, at)?;
        let newline = memchr::memchr(b'\n', &chunk[..read]);
        begins = newline.map(|newline| at + newline as u64 + 1);
        at = if read == 0 { range.end } else { at + read as u64 };
    }
    Ok(begins.filter(|begins| *begins < range.end))
}

/// Finds the jumps and the long lines of a range.
fn search_piece(file: &File, range: Range<u64>) -> io::Result<Found> {
    let domain = memchr::memmem::Finder::new(DOMAIN);
    let mut found = Found::default();
    // The ids of the lines before this one, and where these begin.
    let mut recent = VecDeque::with_capacity(RECENT);
    glance(file, &[], range, |line| {
        if line.end - line.start >= LONG as u64 {
            found.long.push(line.start..line.end);
        }
        let may_be = domain.find(line.head).is_some();
        let jump = if may_be { Jump::of_line(&line.line()?) } else { None };
        if let Some(jump) = jump {
            let wanted = jump.entry_before();
            let known = recent.iter().rev().find(|(id, _)| Some(*id) == wanted);
            // No position leads to before the first line of a segment: that jump keeps its id.
            let to = known.map(|(_, start)| *start).filter(|start| *start > 0);
            found.jumps.push(Place { at: line.start, to });
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

/// A segment that is read forwards. Of the lines that its index knows as long, only what is asked for
/// is read.
pub struct SegmentReader {
    pub file: File,
    index: Arc<SegmentIndex>,
    two_threads_from: u64,
}

impl SegmentReader {
    pub fn open(files: &Files, segment: SegmentId) -> io::Result<Self> {
        let file = open_regular(&files.segment(segment))?;
        let indexes = files.segment_indexes();
        let index = indexes.so_far(&file, segment)?;
        Ok(Self { file, index, two_threads_from: indexes.two_threads_from })
    }

    /// The lines of a range that are known as long; the range begins and ends between lines.
    pub fn long_lines(&self, range: &Range<u64>) -> &[Range<u64>] {
        let long = &self.index.found.long;
        let first = long.partition_point(|line| line.start < range.start);
        let behind = long.partition_point(|line| line.end <= range.end);
        long.get(first..behind).unwrap_or_default()
    }

    /// Calls a function with the beginning of each whole line of a range.
    pub fn glance(
        &self,
        range: Range<u64>,
        take: impl FnMut(Glance<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        glance(&self.file, self.long_lines(&range), range, take)
    }

    /// How many lines end in a range.
    pub fn count_lines(&self, range: Range<u64>) -> io::Result<usize> {
        glance::count_lines(&self.file, self.long_lines(&range), range)
    }

    /// The tool results that long lines are, in their order; `None` for a line that is something else.
    pub fn results(&self, long: &[Range<u64>]) -> io::Result<Vec<Option<LongResult>>> {
        let bytes: u64 = long.iter().map(|line| line.end - line.start).sum();
        if bytes < self.two_threads_from {
            return outputs::read_all(&self.file, long);
        }
        let mut before = 0;
        let half = long.iter().take_while(|line| {
            before += line.end - line.start;
            before <= bytes / 2
        });
        let (first, second) = long.split_at(half.count());
        let read = |lines: &[Range<u64>]| outputs::read_all(&self.file, lines);
        let (first, second) = both(|| read(first), || read(second));
        let mut results = first?;
        results.append(&mut second?);
        Ok(results)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn two_threads_find_what_one_finds() {
        let id = |n: usize| format!("00000000-0000-7000-8000-{n:012}");
        let mut content = Vec::new();
        for n in 0..600 {
            let rest = match n % 5 {
                0 => format!("\"kind\":\"system\",\"text\":\"{}\"", "x".repeat(n % 3 * LONG)),
                3 => format!(
                    "\"kind\":\"extension\",\"domain\":\"yoi.rolled_back\",\"payload\":{{\"from\":\"{}\"}}",
                    id(n - 2)
                ),
                _ => "\"kind\":\"invoke\",\"trigger\":\"user_send\"".to_owned(),
            };
            writeln!(content, "{{\"id\":\"{}\",\"ts\":{n},{rest}}}", id(n)).unwrap();
        }
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        let length = content.len() as u64;
        let one = search(&file, 0..length, u64::MAX).unwrap();
        assert_eq!((one.jumps.len(), one.long.len()), (120, 80));
        assert!(one.jumps.iter().all(|jump| jump.to.is_some()));
        let mut without_target = 0;
        for end in (0..length).step_by(40_009).map(|end| before_line(&content, end)) {
            let (one, two) = (search(&file, 0..end, u64::MAX), search(&file, 0..end, 1));
            let (one, mut two) = (one.unwrap(), two.unwrap());
            for (one, two) in
                one.jumps.iter().zip(&mut two.jumps).filter(|(_, two)| two.to.is_none())
            {
                // The run before this jump lies over the middle: its beginning is searched when it
                // is asked for.
                without_target += 1;
                two.to = one.to;
            }
            assert_eq!(two, one);
        }
        assert!(without_target > 0);
    }

    /// Where the line that holds an offset begins.
    fn before_line(content: &[u8], offset: u64) -> u64 {
        let offset = usize::try_from(offset).unwrap();
        memchr::memrchr(b'\n', &content[..offset]).map_or(0, |at| at as u64 + 1)
    }
}
