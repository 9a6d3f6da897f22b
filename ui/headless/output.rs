//! Standard output and standard error, each written by a thread of its own: a reader that does not
//! read holds up no task and costs a bounded amount of memory.

use crate::headless::exit::{Exit, Failure};
use std::io::{self, IsTerminal as _, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Mutex, MutexGuard, Notify, mpsc, oneshot};
use yoi::text::SafeText;

/// Pieces that wait for a reader. Streamed pieces are small, and many come at once.
const WAITING: usize = 4096;
/// From this many waiting bytes on, the output is full.
const FULL: usize = 1024 * 1024;
/// The number of the signal that a write to a closed pipe stands for.
const SIGPIPE: u8 = 13;
/// Notes that wait for the reader of standard error. Approval requests beyond them are shown later, other
/// notes are dropped.
const NOTES: usize = 256;

/// A piece of output.
#[derive(Debug)]
pub enum Piece {
    /// Text that a terminal can show.
    Safe(SafeText<'static>),
    /// Committed text, unchanged: for a pipe or a file, never for a terminal.
    Committed(String),
    /// A note between pieces of text, where both go to one terminal or file.
    Note(SafeText<'static>),
}

/// A request to the thread that writes a stream.
enum WriteRequest {
    Write(Piece),
    /// Answered when everything before it is written.
    Flush(oneshot::Sender<()>),
}

/// A handle to both streams; clones share them.
#[derive(Clone)]
pub struct Output {
    out: mpsc::Sender<WriteRequest>,
    notes: Notes,
    waiting: Arc<Waiting>,
    /// Locked while pieces that belong together are written, so that no other piece comes between them.
    exclusive: Arc<Mutex<()>>,
    /// Why the text could not be written.
    failed: Arc<OnceLock<io::Error>>,
}

/// How much waits for the reader of the text.
#[derive(Default)]
struct Waiting {
    bytes: AtomicUsize,
    /// Notified after each piece that was written.
    written: Notify,
}

impl Waiting {
    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= FULL
    }
}

/// The stream that notes go to.
#[derive(Clone)]
enum Notes {
    /// The stream of the text: both streams are one terminal or file.
    Among,
    Apart(mpsc::Sender<WriteRequest>),
}

/// The output takes no piece now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The reader of the output went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

impl Output {
    /// The streams of this process.
    pub fn standard() -> Self {
        let terminal = io::stdout().is_terminal() && io::stderr().is_terminal();
        // With `2>&1` a note stands where it was said, not wherever its own thread gets to write it.
        let one_file = || {
            let [out, err] = [rustix::fs::fstat(io::stdout()), rustix::fs::fstat(io::stderr())];
            out.is_ok_and(|out| {
                err.is_ok_and(|err| (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino))
            })
        };
        let shared = terminal || one_file();
        Self::over(Box::new(io::stdout()), Box::new(io::stderr()), shared)
    }

    /// `shared`: both go to one terminal or file, so that a note must not land inside a line of the text.
    pub fn over(out: Box<dyn Write + Send>, err: Box<dyn Write + Send>, shared: bool) -> Self {
        let (exclusive, failed) = (Arc::new(Mutex::new(())), Arc::new(OnceLock::new()));
        let (notes, among) = if shared {
            (Notes::Among, Some(err))
        } else {
            (Notes::Apart(Writer::new(err).start(NOTES)), None)
        };
        let waiting = Arc::new(Waiting::default());
        let writer = Writer { err: among, ..Writer::new(out) };
        let writer =
            Writer { failed: Arc::clone(&failed), waiting: Arc::clone(&waiting), ..writer };
        Self { out: writer.start(WAITING), notes, waiting, exclusive, failed }
    }

    /// The exclusive right to write: no other piece comes between those written while it is held.
    pub async fn exclusive(&self) -> MutexGuard<'_, ()> {
        self.exclusive.lock().await
    }

    /// Writes a piece if there is room and no other task holds [`Output::exclusive`]. The piece is made only
    /// then.
    pub fn try_write(&self, piece: impl FnOnce() -> Piece) -> Result<(), Full> {
        let _exclusive = self.exclusive.try_lock().map_err(|_| Full)?;
        if self.waiting.is_full() {
            return Err(Full);
        }
        match self.out.try_reserve() {
            Ok(room) => room.send(self.counted(piece())),
            // A closed output is noticed by `closed`.
            Err(mpsc::error::TrySendError::Closed(())) => {}
            Err(mpsc::error::TrySendError::Full(())) => return Err(Full),
        }
        Ok(())
    }

    /// Writes a piece when the reader has taken enough of what came before. To be called with
    /// [`Output::exclusive`].
    pub async fn write(&self, piece: Piece) -> Result<(), Closed> {
        self.less_waits().await?;
        self.out.send(self.counted(piece)).await.map_err(|_| Closed)
    }

    fn counted(&self, piece: Piece) -> WriteRequest {
        self.waiting.bytes.fetch_add(piece.len(), Ordering::Relaxed);
        WriteRequest::Write(piece)
    }

    async fn less_waits(&self) -> Result<(), Closed> {
        while self.waiting.is_full() {
            tokio::select! {
                () = self.waiting.written.notified() => {}
                () = self.out.closed() => return Err(Closed),
            }
        }
        Ok(())
    }

    /// Room for one piece, once there is some. Cancel-safe.
    pub async fn room(&self) -> Result<(), Closed> {
        let _exclusive = self.exclusive.lock().await;
        self.less_waits().await?;
        self.out.reserve().await.map(drop).map_err(|_| Closed)
    }

    /// Writes a note that only informs: without room for it, it is dropped.
    pub fn note(&self, note: SafeText<'static>) {
        // The reader of standard error has not read the last 256 notes.
        let _ = self.try_note(note);
    }

    /// Writes a note if there is room for it. A stream that was closed takes every note.
    pub fn try_note(&self, note: SafeText<'static>) -> Result<(), Full> {
        // A note in the stream of the text is small and not counted.
        match self.notes().try_send(WriteRequest::Write(Piece::Note(note))) {
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => Ok(()),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Full),
        }
    }

    /// Resolves when there is room for a note. Cancel-safe.
    pub async fn room_for_note(&self) {
        // A stream that was closed takes every note.
        let _ = self.notes().reserve().await;
    }

    fn notes(&self) -> &mpsc::Sender<WriteRequest> {
        match &self.notes {
            Notes::Among => &self.out,
            Notes::Apart(notes) => notes,
        }
    }

    /// Whether text and notes go to one terminal or file.
    pub fn is_shared(&self) -> bool {
        matches!(self.notes, Notes::Among)
    }

    /// Resolves when the text cannot be written any more. After a closed pipe the failure has the exit code
    /// of SIGPIPE. Cancel-safe.
    pub async fn closed(self) -> Failure {
        self.out.closed().await;
        self.failure()
    }

    /// Why the text cannot be written any more.
    pub fn failure(&self) -> Failure {
        match self.failed.get() {
            Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Failure::new(Exit::Failed, format!("cannot write the standard output: {error}"))
            }
            _ => Failure::new(Exit::Signal(SIGPIPE), ""),
        }
    }

    /// Waits until everything is written, or its reader went away.
    pub async fn flush(&self) {
        flush(&self.out).await;
        self.flush_notes().await;
    }

    /// Waits until all notes are written, or their reader went away.
    pub async fn flush_notes(&self) {
        flush(self.notes()).await;
    }
}

async fn flush(requests: &mpsc::Sender<WriteRequest>) {
    let (done, flushed) = oneshot::channel();
    if requests.send(WriteRequest::Flush(done)).await.is_ok() {
        // An output that was closed meanwhile drops the sender.
        let _ = flushed.await;
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Safe(text) | Self::Note(text) => text.len(),
            Self::Committed(text) => text.len(),
        }
    }
}

/// Writes to a stream in a thread of its own.
struct Writer {
    out: Box<dyn Write + Send>,
    /// The stream for notes, where both streams are one terminal.
    err: Option<Box<dyn Write + Send>>,
    waiting: Arc<Waiting>,
    failed: Arc<OnceLock<io::Error>>,
}

impl Writer {
    fn new(out: Box<dyn Write + Send>) -> Self {
        Self { out, err: None, waiting: Arc::default(), failed: Arc::default() }
    }

    /// Starts the thread; it ends with the last handle, or when the stream was closed.
    fn start(mut self, waiting: usize) -> mpsc::Sender<WriteRequest> {
        let (requests, mut taken) = mpsc::channel(waiting);
        std::thread::spawn(move || {
            while let Some(request) = taken.blocking_recv() {
                if let Err(error) = self.carry_out(request) {
                    // The first error is the reason.
                    let _ = self.failed.set(error);
                    return;
                }
            }
        });
        requests
    }

    fn carry_out(&mut self, request: WriteRequest) -> io::Result<()> {
        let piece = match request {
            WriteRequest::Write(piece) => piece,
            WriteRequest::Flush(done) => {
                // The receiver is gone if the caller was cancelled.
                let _ = done.send(());
                return Ok(());
            }
        };
        let written = match (&piece, &mut self.err) {
            (Piece::Safe(text), _) => write(&mut self.out, text.as_bytes()),
            (Piece::Committed(text), _) => write(&mut self.out, text.as_bytes()),
            (Piece::Note(note), None) => write(&mut self.out, format!("{note}\n").as_bytes()),
            (Piece::Note(note), Some(err)) => {
                // If standard error is closed, notes are dropped and the text is still written.
                let _ = write(err, format!("{note}\n").as_bytes());
                Ok(())
            }
        };
        // Notes were not counted when they were queued.
        let counted = if matches!(piece, Piece::Note(_)) { 0 } else { piece.len() };
        let less = |bytes: usize| Some(bytes.saturating_sub(counted));
        let _ = self.waiting.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.waiting.written.notify_one();
        written
    }
}

fn write(stream: &mut Box<dyn Write + Send>, bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes)?;
    stream.flush()
}
