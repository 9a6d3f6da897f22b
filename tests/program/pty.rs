//! The program in a real terminal: keys in, what the terminal shows out.

use crate::bench::{Bench, PATIENCE, eventually};
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A program in a terminal, and what the terminal shows.
pub struct Terminal {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    shown: Arc<Mutex<Shown>>,
    /// Notified when the program wrote something.
    wrote: Arc<Condvar>,
    /// Ends when the terminal is gone.
    reading: Option<std::thread::JoinHandle<()>>,
    gone: Arc<AtomicBool>,
}

struct Shown {
    screen: vt100::Parser,
    /// Everything the program ever wrote.
    bytes: Vec<u8>,
}

impl Terminal {
    /// 80 columns and 24 rows.
    pub fn open(bench: &Bench, args: &[&str]) -> Self {
        Self::sized(bench, args, 80, 24)
    }

    /// The same with these variables in its environment.
    pub fn with_env(bench: &Bench, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::start(bench, args, env, (80, 24))
    }

    pub fn sized(bench: &Bench, args: &[&str], cols: u16, rows: u16) -> Self {
        Self::start(bench, args, &[], (cols, rows))
    }

    pub fn start(
        bench: &Bench,
        args: &[&str],
        env: &[(&str, &str)],
        (cols, rows): (u16, u16),
    ) -> Self {
        Self::run(bench, env!("CARGO_BIN_EXE_yoi"), args, env, (cols, rows))
    }

    /// A shell with the control of jobs.
    pub fn shell(bench: &Bench) -> Self {
        Self::run(bench, "sh", &["-i"], &[("PS1", "shell> ")], (80, 24))
    }

    fn run(
        bench: &Bench,
        program: &str,
        args: &[&str],
        env: &[(&str, &str)],
        (cols, rows): (u16, u16),
    ) -> Self {
        let size = PtySize { rows, cols, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(bench.ws());
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", bench.path("home"));
        command.env("YOI_HOME", bench.path("home"));
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let sized = |n: u16, usual| NonZeroU16::new(if n == 0 { usual } else { n });
        let sized = |n, usual| sized(n, usual).expect("a size above zero");
        let screen = vt100::Parser::new(sized(rows, 24), sized(cols, 80), 0);
        let shown = Arc::new(Mutex::new(Shown { screen, bytes: Vec::new() }));
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (seen, gone) = (shown.clone(), Arc::new(AtomicBool::new(false)));
        let (closed, wrote) = (gone.clone(), Arc::new(Condvar::new()));
        let write = wrote.clone();
        let reading = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut piece) {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                let mut shown = seen.lock().expect("no thread panics with it");
                shown.screen.process(&piece[..n]);
                shown.bytes.extend_from_slice(&piece[..n]);
                write.notify_all();
            }
        });
        let writer = pair.master.take_writer().expect("a writer");
        let (master, writer, reading) = (Some(pair.master), Some(writer), Some(reading));
        Self { master, writer, child, shown, wrote, reading, gone }
    }

    pub fn press(&mut self, keys: &str) {
        let writer = self.writer.as_mut().expect("a terminal that is there");
        writer.write_all(keys.as_bytes()).expect("a terminal that takes keys");
        writer.flush().expect("a terminal that takes keys");
    }

    pub fn text(&self) -> String {
        self.shown.lock().expect("no thread panics with it").screen.screen().contents()
    }

    /// How often the program wrote this.
    pub fn wrote(&self, what: &str) -> usize {
        let shown = self.shown.lock().expect("no thread panics with it");
        String::from_utf8_lossy(&shown.bytes).matches(what).count()
    }

    /// Every row with its colours, and the cursor.
    pub fn rows(&self) -> Vec<String> {
        let shown = self.shown.lock().expect("no thread panics with it");
        let screen = shown.screen.screen();
        let rows = screen.rows_formatted(0, screen.size().1.into());
        let cursor = (!screen.hide_cursor()).then(|| screen.cursor_position());
        let cursor = format!("cursor {cursor:?}");
        rows.chain([cursor]).collect()
    }

    /// Has everything painted that the keys before led to: the program clears the terminal for this key
    /// only, and paints a whole frame then.
    pub fn paints_anew(&mut self) {
        let shown = self.shown.clone();
        let bytes = move || shown.lock().expect("no thread panics with it").bytes.clone();
        let before = bytes().len();
        self.press("\x0c");
        let (clear, frame): (&[u8], &[u8]) = (b"\x1b[2J", b"\x1b[?2026l");
        eventually("the screen is painted anew", || {
            let bytes = bytes();
            let cleared = bytes[before..].windows(clear.len()).position(|piece| piece == clear);
            cleared.is_some_and(|at| bytes[before + at..].len() > frame.len())
                && bytes.ends_with(frame)
        });
    }

    /// Waits until the text on the screen is as wanted; the text that it shows instead.
    pub fn shows(&self, is_wanted: impl Fn(&str) -> bool) -> Result<(), String> {
        let shown = self.shown.lock().expect("no thread panics with it");
        let text = |shown: &Shown| shown.screen.screen().contents();
        let waited = self.wrote.wait_timeout_while(shown, PATIENCE, |s| !is_wanted(&text(s)));
        let (shown, waited) = waited.expect("no thread panics with it");
        if waited.timed_out() { Err(text(&shown)) } else { Ok(()) }
    }

    pub fn waits_for(&self, what: &str) {
        if let Err(text) = self.shows(|text| text.contains(what)) {
            panic!("`{what}` is not on the screen:\n{text}");
        }
    }

    pub fn waits_without(&self, what: &str) {
        if let Err(text) = self.shows(|text| !text.contains(what)) {
            panic!("`{what}` is still on the screen:\n{text}");
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.process_id().expect("a program that was started")
    }

    /// Waits for the end; the exit code.
    pub fn ends(&mut self) -> u32 {
        let mut code = None;
        eventually("the program ends", || {
            code = self.child.try_wait().expect("a child of ours").map(|s| s.exit_code());
            code.is_some()
        });
        code.expect("it ended")
    }

    /// Whether the terminal is as it was before the program: main screen, cursor shown, no mouse,
    /// no bracketed paste.
    pub fn is_as_before(&self) -> bool {
        let shown = self.shown.lock().expect("no thread panics with it");
        let screen = shown.screen.screen();
        !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    /// Whether the terminal echoes and reads whole lines, as a shell expects it.
    pub fn is_cooked(&self) -> bool {
        let master = self.master.as_ref().expect("a terminal that is there");
        let name = master.tty_name().expect("a terminal of this system");
        let modes = std::process::Command::new("stty")
            .args(["-a".as_ref(), "-F".as_ref(), name.as_os_str()])
            .output()
            .expect("stty");
        let modes = String::from_utf8_lossy(&modes.stdout).into_owned();
        modes.contains(" icanon") && modes.contains(" echo ")
    }

    /// The terminal goes away, as when its window is closed. The program must be writing, so that
    /// the reading thread wakes and lets go of its end.
    pub fn vanish(&mut self) {
        self.gone.store(true, Ordering::SeqCst);
        self.reading.take().expect("a reading thread").join().expect("it does not panic");
        self.writer = None;
        self.master = None;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
