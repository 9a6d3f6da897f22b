//! Events that carry a whole log, as classic clients are sent them: the lines of the log are JSON
//! already, so they are copied from the file piece by piece, and the log is never held in memory.

use crate::disk::open_regular;
use crate::host::line_writer::write;
use crate::protocol::SegmentId;
use crate::session::{Files, Stretch};
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use tokio::io::AsyncWrite;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// How much of a log is held for one reader, in bytes.
const PIECE: usize = 64 * 1024;
/// Pieces that are read at once, for all readers of all Pods. A reader that does not read holds
/// none, so the pool of blocking threads (512, also for pages and file work) is never full of them.
const READS: usize = 8;

static READING: Semaphore = Semaphore::const_new(READS);

/// A log, up to where it has been published.
#[derive(Clone, Debug)]
pub(crate) struct LogRange {
    pub(crate) files: Files,
    /// The newest segment.
    pub(crate) segment: SegmentId,
    /// Where that ends; `None` is all of it.
    pub(crate) end: Option<u64>,
}

/// Writes one line: the event `kind`, whose data holds the readable entries of `log`, if there is
/// one, and the members of `rest`, which is an object.
pub(crate) async fn write_entries<W: AsyncWrite + Unpin>(
    writer: &mut W,
    re: Option<&str>,
    kind: &str,
    log: Option<LogRange>,
    rest: &Value,
) -> io::Result<()> {
    let re = re.map(|re| format!(r#""re":{},"#, Value::from(re))).unwrap_or_default();
    let head = format!(r#"{{{re}"event":"{kind}","data":{{"entries":["#);
    write(writer, head.as_bytes()).await?;
    if let Some(log) = log {
        copy(writer, log).await?;
    }
    // The members go on in the object that is already open.
    write(writer, format!("],{}}}\n", &rest.to_string()[1..]).as_bytes()).await
}

/// Copies the entries, parted by commas. A log that cannot be read has none to show.
async fn copy<W: AsyncWrite + Unpin>(writer: &mut W, log: LogRange) -> io::Result<()> {
    let Ok(mut pieces) = reading(move || Pieces::of(&log)).await else { return Ok(()) };
    loop {
        let (rest, piece) = reading(move || pieces.next().map(|piece| (pieces, piece))).await?;
        if piece.is_empty() {
            return Ok(());
        }
        pieces = rest;
        write(writer, &piece).await?;
    }
}

/// Reads on a blocking thread, one of [`READS`].
async fn reading<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    // The semaphore is never closed.
    let _read = READING.acquire().await;
    spawn_blocking(read).await.map_err(io::Error::other)?
}

/// What is still to be copied.
struct Pieces {
    files: Files,
    /// The file of the first range.
    file: Option<(SegmentId, File)>,
    /// Lines that follow one another in a file are one range.
    ranges: VecDeque<Stretch>,
    /// Whether a comma stands before the next range.
    comma: bool,
}

impl Pieces {
    fn of(log: &LogRange) -> io::Result<Self> {
        Ok(Self { files: log.files.clone(), file: None, ranges: ranges(log)?, comma: false })
    }

    /// The next bytes of the array, none at its end.
    fn next(&mut self) -> io::Result<Vec<u8>> {
        let mut piece = Vec::with_capacity(PIECE);
        while piece.len() < PIECE {
            let Some(Stretch { segment, range }) = self.ranges.front_mut() else { break };
            if self.file.as_ref().is_none_or(|(of, _)| of != segment) {
                self.file = Some((*segment, open_regular(&self.files.segment(*segment))?));
            }
            let Some((_, file)) = &self.file else { break };
            if std::mem::take(&mut self.comma) {
                piece.push(b',');
            }
            let from = piece.len();
            let room = (PIECE - from) as u64;
            let end = range.end.min(range.start + room);
            let length = usize::try_from(end - range.start).unwrap_or(0);
            piece.resize(from + length, 0);
            file.read_exact_at(&mut piece[from..], range.start)?;
            // JSON text has no newline inside: each one parts two entries.
            piece[from..].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b',');
            range.start = end;
            if range.is_empty() {
                self.ranges.pop_front();
                self.comma = true;
            }
        }
        Ok(piece)
    }
}

/// Where the readable entries lie.
fn ranges(log: &LogRange) -> io::Result<VecDeque<Stretch>> {
    let spans =
        crate::session::spans(&log.files, log.segment, log.end).map_err(io::Error::other)?;
    let mut ranges: VecDeque<Stretch> = VecDeque::new();
    for span in spans {
        match ranges.back_mut() {
            Some(last)
                if last.segment == span.segment && last.range.end + 1 == span.range.start =>
            {
                last.range.end = span.range.end;
            }
            _ => ranges.push_back(span),
        }
    }
    Ok(ranges)
}
