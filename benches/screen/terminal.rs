//! A terminal with the real program in it: it draws what comes, answers what a terminal is asked,
//! and knows when each frame was complete.

use portable_pty::{Child, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::figure::Times;
use crate::home::Home;

const ROWS: NonZeroU16 = NonZeroU16::new(40).expect("not zero");
const COLUMNS: NonZeroU16 = NonZeroU16::new(120).expect("not zero");
/// The longest anything is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Keys that a person types while something else goes on.
const KEYS: u32 = 400;
/// Letters before they are deleted again.
const LINE: u32 = 40;
/// Between two of these keys, in milliseconds.
const PAUSE: [u64; 4] = [20, 33, 47, 61];

/// The program on a screen. Dropping it ends the program.
pub struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    writer: Writer,
    shared: Arc<Shared>,
    started: Instant,
    /// Open as long as the terminal is.
    _master: Box<dyn MasterPty + Send>,
}

type Writer = Arc<Mutex<Box<dyn Write + Send>>>;

struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

/// What has come so far.
pub struct Seen {
    parser: vt100::Parser<Reported>,
    pub bytes: u64,
    ended: bool,
}

/// What the program told the terminal beside text.
#[derive(Default)]
struct Reported {
    frames: u64,
    /// When the last frame was complete.
    frame: Option<Instant>,
    /// Answers that the program waits for.
    answers: Vec<u8>,
}

impl vt100::Callbacks for Reported {
    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        end: char,
    ) {
        match (first, params, end) {
            // The end of a synchronized update.
            (Some(b'?'), [[2026]], 'l') => {
                self.frames += 1;
                self.frame = Some(Instant::now());
            }
            (Some(b'?'), _, 'u') => self.answers.extend_from_slice(b"\x1b[?0u"),
            (None, _, 'c') => self.answers.extend_from_slice(b"\x1b[?62;22c"),
            (None, [[6]], 'n') => {
                let (row, column) = screen.cursor_position();
                let answer = format!("\x1b[{};{}R", row + 1, column + 1);
                self.answers.extend_from_slice(answer.as_bytes());
            }
            _ => {}
        }
    }
}

impl Seen {
    /// What a person reads on the screen.
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    pub fn shows(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    pub fn frames(&self) -> u64 {
        self.parser.callbacks().frames
    }

    fn cursor(&self) -> (u16, u16) {
        self.parser.screen().cursor_position()
    }
}

impl Terminal {
    /// Starts the program in a home's workspace.
    pub fn open(home: &Home, args: &[&str]) -> Self {
        let size =
            PtySize { rows: ROWS.get(), cols: COLUMNS.get(), pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a pseudo-terminal");
        let mut reader = pair.master.try_clone_reader().expect("its reader");
        let writer = pair.master.take_writer().expect("its writer");
        let writer: Writer = Arc::new(Mutex::new(writer));
        let parser = vt100::Parser::new_with_callbacks(ROWS, COLUMNS, 0, Reported::default());
        let seen = Mutex::new(Seen { parser, bytes: 0, ended: false });
        let shared = Arc::new(Shared { seen, changed: Condvar::new() });
        let (screen, answers) = (Arc::clone(&shared), Arc::clone(&writer));
        let started = Instant::now();
        let child =
            pair.slave.spawn_command(home.screen_command(args)).expect("the program starts");
        drop(pair.slave);
        std::thread::spawn(move || watch(&mut reader, &screen, &answers));
        Self { child, writer, shared, started, _master: pair.master }
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("the program runs")
    }

    /// Sends keys.
    pub fn send(&self, keys: &str) {
        let mut writer = lock(&self.writer);
        writer
            .write_all(keys.as_bytes())
            .and_then(|()| writer.flush())
            .expect("the terminal is open");
    }

    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&lock(&self.shared.seen))
    }

    /// Waits until the screen is so, and says how long after the start that frame was complete.
    pub fn until(&self, what: &str, mut so: impl FnMut(&Seen) -> bool) -> Duration {
        self.wait(what, |seen| so(seen) && seen.frames() > 0) - self.started
    }

    /// Types and waits for the frame that shows it: the one after which the cursor stands
    /// elsewhere. How long that took.
    pub fn echo(&self, key: &str) -> Duration {
        let (frames, cursor) = self.seen(|seen| (seen.frames(), seen.cursor()));
        self.after(key, |seen| seen.frames() > frames && seen.cursor() != cursor)
    }

    /// Types a while as a person does, and how long each key took.
    pub fn typed(&self) -> Times {
        let mut times = Times::default();
        for (n, pause) in (0..KEYS).zip(PAUSE.into_iter().cycle()) {
            std::thread::sleep(Duration::from_millis(pause));
            times.push(self.echo(if (n / LINE).is_multiple_of(2) { "x" } else { "\x7f" }));
        }
        times
    }

    /// Sends a key and waits for the next frame, whatever it shows.
    pub fn frame_after(&self, key: &str) -> Duration {
        let frames = self.seen(Seen::frames);
        self.after(key, |seen| seen.frames() > frames)
    }

    fn after(&self, key: &str, so: impl FnMut(&Seen) -> bool) -> Duration {
        let sent = Instant::now();
        self.send(key);
        self.wait(&format!("{key:?} is seen"), so) - sent
    }

    /// When the last frame was complete, once the screen is so.
    fn wait(&self, what: &str, mut so: impl FnMut(&Seen) -> bool) -> Instant {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = lock(&self.shared.seen);
        loop {
            if so(&seen) {
                return seen.parser.callbacks().frame.unwrap_or_else(Instant::now);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero() && !seen.ended, "in vain until {what}:\n{}", seen.text());
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Draws what the program writes, until it ends.
fn watch(reader: &mut Box<dyn Read + Send>, shared: &Shared, writer: &Writer) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = reader.read(&mut bytes) {
        let mut seen = lock(&shared.seen);
        seen.parser.process(&bytes[..length]);
        seen.bytes += length as u64;
        let answers = std::mem::take(&mut seen.parser.callbacks_mut().answers);
        drop(seen);
        if !answers.is_empty() {
            // A program that ended reads no answer.
            let _ = lock(writer).write_all(&answers);
        }
        shared.changed.notify_all();
    }
    lock(&shared.seen).ended = true;
    shared.changed.notify_all();
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
