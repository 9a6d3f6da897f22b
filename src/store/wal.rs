//! SQLite's write-ahead log, read to find damage: SQLite itself stops at the first frame that does not
//! add up, and drops what was committed behind it without a word.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// Bytes before the first frame.
const HEADER: usize = 32;
/// Bytes of a frame before its page.
const FRAME: usize = 24;
/// The two first words of a log, without the last bit: it says how words are added up.
const MAGIC: u32 = 0x377f_0682;

/// Whether changes that were committed to this log cannot be read any more. A log that ends in the
/// middle of a change, as a killed program leaves it, is whole. Blocking.
pub fn is_damaged(path: &Path) -> io::Result<bool> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let mut log = BufReader::with_capacity(1 << 16, file);
    let mut header = [0; HEADER];
    if !fill(&mut log, &mut header)? {
        return Ok(false);
    }
    let Some(mut sums) = Sums::of_header(&header) else {
        // Frames behind a header that does not add up are lost.
        return fill(&mut log, &mut [0; FRAME]);
    };
    let (salt, mut is_whole) = (&header[16..24], true);
    let mut frame = [0; FRAME];
    let mut page = vec![0; page_size(&header)];
    while fill(&mut log, &mut frame)? && fill(&mut log, &mut page)? {
        // Frames with another salt were left by an earlier use of the file.
        let of_this_use = frame[8..16] == *salt;
        if is_whole {
            sums.add(&frame[..8]);
            sums.add(&page);
            is_whole = of_this_use && sums.is(&frame[16..24]);
        }
        let commits = word(&frame[4..8]) != 0;
        if !is_whole && of_this_use && commits {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Reads a whole piece; false at the end of the file.
fn fill(log: &mut impl Read, piece: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(piece) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

fn page_size(header: &[u8; HEADER]) -> usize {
    usize::try_from(word(&header[8..12])).unwrap_or_default()
}

fn word(bytes: &[u8]) -> u32 {
    bytes.try_into().map_or(0, u32::from_be_bytes)
}

/// The running checksum of a log.
struct Sums {
    read: fn([u8; 4]) -> u32,
    first: u32,
    second: u32,
}

impl Sums {
    /// The sums behind the header; `None` when it does not add up.
    fn of_header(header: &[u8; HEADER]) -> Option<Self> {
        let magic = word(&header[..4]);
        let read = if magic & 1 == 1 { u32::from_be_bytes } else { u32::from_le_bytes };
        let mut sums = Self { read, first: 0, second: 0 };
        sums.add(&header[..24]);
        let size = page_size(header);
        let is_size = size.is_power_of_two() && (512..=65536).contains(&size);
        (magic & !1 == MAGIC && is_size && sums.is(&header[24..])).then_some(sums)
    }

    fn add(&mut self, bytes: &[u8]) {
        for pair in bytes.chunks_exact(8) {
            let (one, other) = pair.split_at(4);
            let word = |bytes: &[u8]| bytes.try_into().map_or(0, self.read);
            self.first = self.first.wrapping_add(word(one)).wrapping_add(self.second);
            self.second = self.second.wrapping_add(word(other)).wrapping_add(self.first);
        }
    }

    fn is(&self, bytes: &[u8]) -> bool {
        let (first, second) = bytes.split_at(4);
        (self.first, self.second) == (word(first), word(second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;
    use std::fs;
    use std::path::PathBuf;

    /// The log of a database whose program was killed after so many changes.
    fn log_of(dir: &Path, changes: usize) -> PathBuf {
        let (path, killed) = (dir.join("a.db"), dir.join("killed-wal"));
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        db.execute_batch("CREATE TABLE t (x)").unwrap();
        for n in 0..changes {
            db.execute("INSERT INTO t VALUES (?1)", [n.to_string()]).unwrap();
        }
        fs::copy(dir.join("a.db-wal"), &killed).unwrap();
        killed
    }

    #[test]
    fn a_log_that_a_killed_program_left_is_whole_wherever_it_ends() {
        let temp = tempfile::tempdir().unwrap();
        let log = log_of(temp.path(), 5);
        assert!(!is_damaged(&log).unwrap());
        assert!(!is_damaged(&temp.path().join("none")).unwrap());
        let bytes = fs::read(&log).unwrap();
        for end in (0..bytes.len()).step_by(97) {
            fs::write(&log, &bytes[..end]).unwrap();
            assert!(!is_damaged(&log).unwrap(), "cut at byte {end}");
        }
    }

    #[test]
    fn a_byte_that_changed_in_a_log_is_noticed_wherever_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let log = log_of(temp.path(), 5);
        let bytes = fs::read(&log).unwrap();
        let last = bytes.len() - (FRAME + page_size(&bytes[..HEADER].try_into().unwrap()));
        for at in (0..last).step_by(53) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x20;
            fs::write(&log, &damaged).unwrap();
            assert!(is_damaged(&log).unwrap(), "byte {at}");
        }
    }

    #[test]
    fn frames_of_an_earlier_use_of_a_log_are_no_damage() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.db");
        let db = Connection::open(&path).unwrap();
        db.pragma_update(None, "journal_mode", "WAL").unwrap();
        db.execute_batch("CREATE TABLE t (x)").unwrap();
        for n in 0..20_u32 {
            db.execute("INSERT INTO t VALUES (?1)", [n.to_string()]).unwrap();
        }
        db.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        db.execute("INSERT INTO t VALUES (99)", []).unwrap();
        assert!(!is_damaged(&temp.path().join("a.db-wal")).unwrap());
    }
}
