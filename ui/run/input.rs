//! The events of the terminal, and the signals. Each is read in a task of its own, so that neither waits
//! for the screen.

use crate::run::terminal;
use crossterm::event::{Event, EventStream};
use futures_util::StreamExt as _;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How many keys wait for the loop; beyond that the terminal is not read.
const KEYS: usize = 256;
/// Signals that wait for the loop.
const SIGNALS: usize = 4;
/// How long the loop gets to end after a signal.
const GRACE: Duration = Duration::from_secs(1);
/// How long the terminal gets to take its last bytes.
const LAST_BYTES: Duration = Duration::from_millis(300);

/// Whether another program owns the terminal: its Ctrl+C is for that program.
static INTERRUPTS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Ignores SIGINT while another program owns the terminal.
pub fn ignore_interrupts(ignored: bool) {
    INTERRUPTS_IGNORED.store(ignored, Ordering::SeqCst);
}

/// The terminal's events. The task ends, and with it the channel, when the terminal does.
pub struct Input {
    pub events: mpsc::Receiver<Event>,
    task: JoinHandle<()>,
}

impl Input {
    /// Starts to read.
    pub fn start() -> Self {
        let (sender, events) = mpsc::channel(KEYS);
        let task = tokio::spawn(async move {
            let mut stream = EventStream::new();
            while let Some(Ok(event)) = stream.next().await {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        Self { events, task }
    }

    /// Stops to read, so that another program can.
    pub async fn stop(self) {
        self.task.abort();
        // The task was aborted just before, so its result is known.
        let _ = self.task.await;
    }
}

/// The signals that end the program, and the terminal's end, which counts as SIGHUP.
pub fn signals() -> std::io::Result<mpsc::Receiver<i32>> {
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

/// A message when the terminal hangs up. A thread waits for that and ends the program after the time limit, because
/// the library that reads keys reads a lost terminal in a loop, and then no task runs.
fn watch_terminal() -> mpsc::Receiver<()> {
    let (sender, gone) = mpsc::channel(1);
    let watch = move || {
        let stdin = std::io::stdin();
        loop {
            // No event is asked for: only a hang-up or an error is reported.
            let mut fds = [rustix::event::PollFd::from_borrowed_fd(
                stdin.as_fd(),
                rustix::event::PollFlags::empty(),
            )];
            match rustix::event::poll(&mut fds, None) {
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return,
                Ok(_) => break,
            }
        }
        // The receiver is gone if the program is ending already.
        let _ = sender.blocking_send(());
        std::thread::sleep(GRACE + LAST_BYTES);
        std::process::exit(128 + SignalKind::hangup().as_raw_value());
    };
    // Without the thread a hang-up still comes as SIGHUP.
    let _ = std::thread::Builder::new().name("terminal".into()).spawn(watch);
    gone
}
