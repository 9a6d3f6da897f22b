//! The events of the terminal, and the signals. Each is read in a task of its own, so that neither waits
//! for the screen.

use crate::screen::reply::Reply;
use crate::screen::run::saved::LAST;
use crate::screen::run::terminal;
use crossterm::event::Event;
use parser::Parser;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub mod parser;
mod sequence;

/// How many keys wait for the loop; beyond that the terminal is not read.
const KEYS: usize = 256;
/// How many bytes are read at once.
const READ: usize = 4096;
/// How long a byte ESC waits for the rest of its sequence before it is the key Esc; longer where a network may
/// come between them.
const ESCAPE: Duration = Duration::from_millis(50);
const ESCAPE_SSH: Duration = Duration::from_millis(100);
/// Signals that wait for the loop.
const SIGNALS: usize = 4;
/// How long the loop gets to end after a signal: it writes the state of the screen last.
const GRACE: Duration = LAST.saturating_add(Duration::from_millis(500));
/// How long the terminal gets to take its last bytes.
const LAST_BYTES: Duration = Duration::from_millis(300);

/// Whether another program owns the terminal: its Ctrl+C is for that program.
static INTERRUPTS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Ignores SIGINT while another program owns the terminal.
pub fn ignore_interrupts(ignored: bool) {
    INTERRUPTS_IGNORED.store(ignored, Ordering::SeqCst);
}

/// What the terminal sends.
#[derive(Debug)]
pub enum FromTerminal {
    Event(Event),
    Reply(Reply),
}

/// The terminal's events. The channel ends when the terminal does.
pub struct Input {
    pub events: mpsc::Receiver<FromTerminal>,
    /// Closing it ends the reading.
    stop: OwnedFd,
    reading: JoinHandle<()>,
    parsing: JoinHandle<()>,
}

impl Input {
    /// Starts to read standard input.
    ///
    /// # Errors
    /// There are no file descriptors or no memory left.
    pub fn start() -> io::Result<Self> {
        let (sender, events) = mpsc::channel(KEYS);
        let (reads, bytes) = mpsc::channel(1);
        let (stopped, stop) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let events_of = EventsOf {
            bytes,
            resizes: signal(SignalKind::window_change())?,
            parser: Parser::new(escape_wait()),
        };
        // The shell shares the terminal's file description, which therefore stays blocking.
        let reading = tokio::task::spawn_blocking(move || read(&stopped, &reads));
        let parsing = tokio::spawn(events_of.send_to(sender));
        Ok(Self { events, stop, reading, parsing })
    }

    /// Stops to read, so that another program can.
    pub async fn stop(self) {
        let Self { events, stop, reading, parsing } = self;
        drop((events, stop));
        // Neither task has a result.
        let _ = parsing.await;
        let _ = reading.await;
    }
}

/// How long a byte ESC waits for the rest of its sequence.
fn escape_wait() -> Duration {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    if ["SSH_CONNECTION", "SSH_TTY"].iter().any(is_set) { ESCAPE_SSH } else { ESCAPE }
}

/// Reads the terminal until it ends, or until the other end of `stopped` or `reads` is closed.
fn read(stopped: &OwnedFd, reads: &mpsc::Sender<Vec<u8>>) {
    let terminal = io::stdin();
    let mut buffer = [0; READ];
    loop {
        let mut fds = [PollFd::new(&terminal, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) if !fds[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        match rustix::io::read(&terminal, &mut buffer) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => return,
            Ok(count) => {
                if reads.blocking_send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        }
    }
}

/// What the events come from.
struct EventsOf {
    bytes: mpsc::Receiver<Vec<u8>>,
    resizes: Signal,
    parser: Parser,
}

impl EventsOf {
    /// Sends all events until there are no more bytes or nobody receives.
    async fn send_to(mut self, sender: mpsc::Sender<FromTerminal>) {
        while let Some(events) = self.next().await {
            let replies = self.parser.take_replies().into_iter().map(FromTerminal::Reply);
            for event in events.into_iter().map(FromTerminal::Event).chain(replies) {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        }
    }

    /// The next events; none when bytes came that are not an event yet.
    async fn next(&mut self) -> Option<Vec<Event>> {
        tokio::select! {
            biased;
            bytes = self.bytes.recv() => Some(self.parser.feed(&bytes?, Instant::now())),
            Some(()) = self.resizes.recv() => {
                let (columns, rows) = terminal::size().ok()?;
                Some(vec![Event::Resize(columns, rows)])
            }
            () = until(self.parser.deadline()) => Some(self.parser.expire(Instant::now())),
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

/// The signals that stop and continue this process from outside.
pub struct JobSignals {
    stop: Signal,
    go_on: Signal,
}

/// What a shell, or a person at another terminal, does with this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobSignal {
    /// SIGTSTP: the process is to stop.
    Stop,
    /// SIGCONT: the process was stopped and goes on.
    Continued,
}

impl JobSignals {
    /// Listens for the signals; from now on SIGTSTP does not stop the process by itself.
    pub fn listen() -> io::Result<Self> {
        let listen = |of: rustix::process::Signal| signal(SignalKind::from_raw(of.as_raw()));
        Ok(Self {
            stop: listen(rustix::process::Signal::TSTP)?,
            go_on: listen(rustix::process::Signal::CONT)?,
        })
    }

    pub async fn next(&mut self) -> JobSignal {
        tokio::select! {
            Some(()) = self.stop.recv() => JobSignal::Stop,
            Some(()) = self.go_on.recv() => JobSignal::Continued,
            else => std::future::pending().await,
        }
    }
}

/// The signals that end the program, and the terminal's end, which counts as SIGHUP.
pub fn signals() -> io::Result<mpsc::Receiver<i32>> {
    let (sender, signals) = mpsc::channel(SIGNALS);
    let mut term = signal(SignalKind::terminate())?;
    let mut hup = signal(SignalKind::hangup())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut gone = watch_terminal();
    tokio::spawn(async move {
        let kind = loop {
            tokio::select! {
                _ = term.recv() => break SignalKind::terminate(),
                _ = hup.recv() => break SignalKind::hangup(),
                _ = int.recv() => {
                    if !INTERRUPTS_IGNORED.load(Ordering::SeqCst) {
                        break SignalKind::interrupt();
                    }
                }
                Some(()) = gone.recv() => break SignalKind::hangup(),
            }
        };
        let number = kind.as_raw_value();
        // If the loop hangs, this task ends the program after the time limit.
        let _ = sender.try_send(number);
        tokio::time::sleep(GRACE).await;
        std::thread::spawn(terminal::give_back);
        tokio::time::sleep(LAST_BYTES).await;
        std::process::exit(128 + number);
    });
    Ok(signals)
}

/// A message when the terminal hangs up. A thread waits for that, because the terminal is not read while the
/// loop is busy or another program has it.
fn watch_terminal() -> mpsc::Receiver<()> {
    let (sender, gone) = mpsc::channel(1);
    let watch = move || {
        let stdin = io::stdin();
        loop {
            // No event is asked for: only a hang-up or an error is reported.
            let mut fds = [PollFd::from_borrowed_fd(stdin.as_fd(), PollFlags::empty())];
            match poll(&mut fds, None) {
                Err(Errno::INTR) => {}
                Err(_) => return,
                Ok(_) => break,
            }
        }
        // The receiver is gone if the program is ending already.
        let _ = sender.blocking_send(());
    };
    // Without the thread a hang-up still comes as SIGHUP.
    let _ = std::thread::Builder::new().name("terminal".into()).spawn(watch);
    gone
}

#[cfg(test)]
pub mod tests;
