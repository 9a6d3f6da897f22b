//! One entry in pieces: it may be larger than what host and client should hold in memory.

use crate::disk::open_regular;
use crate::protocol::name::{EntryId, SegmentId};
use crate::protocol::piece::{ByteRange, LineShape, MAX_PIECE};
use crate::session::lineage::LogPosition;
use crate::session::locate::{locate, place_id};
use crate::session::texts::TextScanner;
use crate::session::{Files, LogError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// What is read at once while a line is measured, in bytes.
const CHUNK: usize = 1 << 17;
/// Bytes of one character at most.
const CHARACTER: u64 = 4;

/// A part of an entry's line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The entry, named by its place: found without a search.
    pub entry: EntryId,
    pub start: u64,
    pub line: String,
    /// About the whole line; given with the piece that begins at 0.
    pub shape: Option<LineShape>,
}

/// Reads a range of an entry's line. The piece begins and ends between characters. Blocking.
pub fn piece(
    files: &Files,
    segment: SegmentId,
    id: EntryId,
    range: ByteRange,
) -> Result<Piece, LogError> {
    let LogPosition { segment, offset } = locate(files, segment, None, id)?;
    let path = files.segment(segment);
    let read = || -> io::Result<_> {
        let file = open_regular(&path)?;
        let shape = (range.start == 0).then(|| shape(&file, offset)).transpose()?;
        let (start, line) = characters(&file, offset, range)?;
        Ok((shape, start, line))
    };
    let (shape, start, line) = read().map_err(LogError::reading(&path))?;
    let line = String::from_utf8(line).map_err(|error| LogError::Damaged {
        path: path.clone(),
        byte: offset + start,
        reason: error.to_string(),
    })?;
    Ok(Piece { entry: place_id(segment, offset), start, line, shape })
}

/// The size of the line at an offset, and where its texts lie.
fn shape(file: &File, offset: u64) -> io::Result<LineShape> {
    let mut scanner = TextScanner::default();
    let mut total = 0;
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = file.read_at(&mut chunk, offset + total)?;
        let end = chunk[..read].iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(read)];
        scanner.push(part);
        total += part.len() as u64;
        if end.is_some() || read == 0 {
            return Ok(LineShape { total, texts: scanner.texts });
        }
    }
}

/// The bytes of a range, brought to the borders of characters, and where they begin.
fn characters(file: &File, offset: u64, range: ByteRange) -> io::Result<(u64, Vec<u8>)> {
    let before = range.start.min(CHARACTER - 1);
    let wanted = before + range.bytes.clamp(CHARACTER, MAX_PIECE);
    let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(CHUNK)];
    let read = read_fully(file, &mut bytes, offset + range.start - before)?;
    bytes.truncate(read);
    let is_border = |byte: &u8| byte & 0b1100_0000 != 0b1000_0000;
    let before = usize::try_from(before).unwrap_or(0).min(bytes.len());
    let first = bytes[..bytes.len().min(before + 1)].iter().rposition(is_border).unwrap_or(before);
    bytes.drain(..first);
    if let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
        bytes.truncate(end);
    } else if let Some(last) = bytes.iter().rposition(is_border)
        && std::str::from_utf8(&bytes[last..]).is_err()
    {
        bytes.truncate(last);
    }
    Ok((range.start - (before - first) as u64, bytes))
}

fn read_fully(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], offset + read as u64)? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}
