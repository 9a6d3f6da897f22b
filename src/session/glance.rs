//! Each line, or a look at its beginning: as fast as the file can be read, whatever the lines hold.

use crate::session::jump::line_at;
use crate::session::line::Head;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// How much of each line is kept, in bytes.
const KEPT: usize = 256;
/// What is read at once, in bytes. A larger buffer would be mapped and unmapped for each range.
const CHUNK: usize = 1 << 16;

/// A whole line, of which only the beginning was read.
pub struct Glance<'f> {
    file: &'f File,
    pub start: u64,
    /// Behind its line end.
    pub end: u64,
    /// As much of it as is kept.
    pub head: &'f [u8],
}

impl<'f> Glance<'f> {
    /// The kind of the entry, and what follows it in a line that this program wrote.
    pub fn kind(&self) -> io::Result<(Cow<'f, str>, &'f [u8])> {
        if let Some((kind, rest)) = kind(self.head) {
            return Ok((kind.into(), rest));
        }
        let line = self.line()?;
        let kind = Head::read(&line).map(|head| head.kind.into_owned());
        Ok((kind.unwrap_or_default().into(), &[]))
    }

    /// All of the line.
    pub fn line(&self) -> io::Result<Vec<u8>> {
        Ok(line_at(self.file, self.start, self.end)?.unwrap_or_default())
    }
}

/// The kind of a line that begins as this program writes lines, and what follows it.
pub fn kind(head: &[u8]) -> Option<(&str, &[u8])> {
    const UUID: usize = 36;
    let rest = head.strip_prefix(b"{\"id\":\"")?.get(UUID..)?.strip_prefix(b"\",\"ts\":")?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = rest[digits..].strip_prefix(b",\"kind\":\"")?;
    let end = memchr::memchr(b'"', rest)?;
    Some((std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]))
}

/// Calls a function with each whole line of a range, without its line end, and the offset where it
/// begins.
pub fn whole_lines(
    file: &File,
    range: Range<u64>,
    mut take: impl FnMut(u64, &[u8]),
) -> io::Result<()> {
    // The beginning of a line that ends in a later chunk.
    let (mut begun, mut start) = (Vec::new(), range.start);
    chunks(file, range, |at, chunk| {
        let mut from = 0;
        for newline in memchr::memchr_iter(b'\n', chunk) {
            let part = &chunk[from..newline];
            if begun.is_empty() {
                take(start, part);
            } else {
                begun.extend_from_slice(part);
                take(start, &begun);
                begun.clear();
            }
            from = newline + 1;
            start = at + from as u64;
        }
        begun.extend_from_slice(&chunk[from..]);
        Ok(())
    })
}

/// Calls a function with the beginning of each whole line of a range. Of the lines of the range that are
/// given as `long`, only the beginning is read.
pub fn glance(
    file: &File,
    long: &[Range<u64>],
    range: Range<u64>,
    mut take: impl FnMut(Glance<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let (mut head, mut at) = (Vec::with_capacity(KEPT), range.start);
    for line in long {
        glance_each(file, at..line.start, &mut head, &mut take)?;
        let length = usize::try_from(line.end - line.start).unwrap_or(KEPT);
        head.resize(length.saturating_sub(1).min(KEPT), 0);
        file.read_exact_at(&mut head, line.start)?;
        take(Glance { file, start: line.start, end: line.end, head: &head })?;
        head.clear();
        at = line.end;
    }
    glance_each(file, at..range.end, &mut head, &mut take)
}

/// As [`glance`], where no line is known as long. `head` is an empty buffer.
fn glance_each(
    file: &File,
    range: Range<u64>,
    head: &mut Vec<u8>,
    take: &mut impl FnMut(Glance<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let mut start = range.start;
    chunks(file, range, |at, chunk| {
        let mut from = 0;
        for newline in memchr::memchr_iter(b'\n', chunk) {
            keep(head, &chunk[from..newline]);
            let end = at + newline as u64 + 1;
            take(Glance { file, start, end, head })?;
            head.clear();
            (start, from) = (end, newline + 1);
        }
        keep(head, &chunk[from..]);
        Ok(())
    })?;
    head.clear();
    Ok(())
}

fn keep(head: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT - head.len();
    head.extend_from_slice(&bytes[..bytes.len().min(room)]);
}

/// How many lines end in a range. The lines of the range that are given as `long` are not read.
pub fn count_lines(file: &File, long: &[Range<u64>], range: Range<u64>) -> io::Result<usize> {
    let (mut lines, mut at) = (long.len(), range.start);
    let mut count = |range| {
        chunks(file, range, |_, chunk| {
            lines += memchr::memchr_iter(b'\n', chunk).count();
            Ok(())
        })
    };
    for line in long {
        count(at..line.start)?;
        at = line.end;
    }
    count(at..range.end)?;
    Ok(lines)
}

fn chunks(
    file: &File,
    range: Range<u64>,
    mut take: impl FnMut(u64, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let fitting = |left: u64| usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
    let mut buffer = vec![0; fitting(range.end.saturating_sub(range.start))];
    let mut at = range.start;
    while at < range.end {
        let wanted = fitting(range.end - at);
        match file.read_at(&mut buffer[..wanted], at)? {
            0 => break,
            read => {
                take(at, &buffer[..read])?;
                at += read as u64;
            }
        }
    }
    Ok(())
}
