//! The dashboard in a real terminal: opened, typed into, left in every way there is.

use crate::bench::{Bench, alive, eventually, signal};
use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read as _, Write};
use std::num::NonZeroU16;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

const ROWS: u16 = 24;
const COLS: u16 = 80;

/// A program in a terminal, and what the terminal shows.
struct Terminal {
    master: Option<Box<dyn MasterPty + Send>>,
    writer: Option<Box<dyn Write + Send>>,
    child: Box<dyn portable_pty::Child + Send + Sync>,
    shown: Arc<Mutex<Shown>>,
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
    fn open(bench: &Bench, args: &[&str]) -> Self {
        let size = PtySize { rows: ROWS, cols: COLS, pixel_width: 0, pixel_height: 0 };
        let pair = native_pty_system().openpty(size).expect("a terminal");
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_yoi"));
        command.args(args);
        command.cwd(bench.ws());
        command.env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", bench.path("home"));
        command.env("YOI_HOME", bench.path("home"));
        command.env("TERM", "xterm-256color");
        command.env("LANG", "C.UTF-8");
        let child = pair.slave.spawn_command(command).expect("the program starts");
        drop(pair.slave);
        let sized = |n: u16| NonZeroU16::new(n).expect("a size above zero");
        let screen = vt100::Parser::new(sized(ROWS), sized(COLS), 0);
        let shown = Arc::new(Mutex::new(Shown { screen, bytes: Vec::new() }));
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let (seen, gone) = (shown.clone(), Arc::new(AtomicBool::new(false)));
        let closed = gone.clone();
        let reading = std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(n @ 1..) = reader.read(&mut piece) {
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                let mut shown = seen.lock().expect("no thread panics with it");
                shown.screen.process(&piece[..n]);
                shown.bytes.extend_from_slice(&piece[..n]);
            }
        });
        let writer = pair.master.take_writer().expect("a writer");
        let (master, writer, reading) = (Some(pair.master), Some(writer), Some(reading));
        Self { master, writer, child, shown, reading, gone }
    }

    fn press(&mut self, keys: &str) {
        let writer = self.writer.as_mut().expect("a terminal that is there");
        writer.write_all(keys.as_bytes()).expect("a terminal that takes keys");
        writer.flush().expect("a terminal that takes keys");
    }

    fn text(&self) -> String {
        self.shown.lock().expect("no thread panics with it").screen.screen().contents()
    }

    fn waits_for(&self, what: &str) {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            eventually(&format!("the screen shows `{what}`"), || {
                last = self.text();
                last.contains(what)
            });
        }));
        assert!(found.is_ok(), "`{what}` is not on the screen:\n{}", self.text());
    }

    fn pid(&self) -> u32 {
        self.child.process_id().expect("a program that was started")
    }

    /// Waits for the end; the exit code.
    fn ends(&mut self) -> u32 {
        let mut code = None;
        eventually("the program ends", || {
            code = self.child.try_wait().expect("a child of ours").map(|s| s.exit_code());
            code.is_some()
        });
        code.expect("it ended")
    }

    /// Whether the terminal is as it was before the program: main screen, cursor shown, no mouse,
    /// no bracketed paste.
    fn is_as_before(&self) -> bool {
        let shown = self.shown.lock().expect("no thread panics with it");
        let screen = shown.screen.screen();
        !screen.alternate_screen()
            && !screen.hide_cursor()
            && !screen.bracketed_paste()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    /// Whether the terminal echoes and reads whole lines, as a shell expects it.
    fn is_cooked(&self) -> bool {
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
    fn vanish(&mut self) {
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

const SCRIPT: &str = r#"
[[when]]
says = "tell *"
[[when.step]]
text = "It begins. The middle of it. And it ends here."
chunk = 4
delay_ms = 30

[[when]]
says = "slow*"
[[when.step]]
text = "word "
repeat = 5000
chunk = 5
delay_ms = 20

[[when]]
any = true
text = "heard: {1}"
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.play(SCRIPT);
    bench
}

#[test]
fn the_dashboard_opens_streams_an_answer_and_leaves_the_terminal_as_it_was() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::open(&bench, &["--model", &model]);
    terminal.waits_for("No Pod works here");
    terminal.press("tell me a story\r");
    terminal.waits_for("It begins.");
    assert!(!terminal.text().contains("ends here"), "the answer streams");
    terminal.waits_for("And it ends here.");
    terminal.waits_for("idle");
    terminal.press(":quit\r");
    assert_eq!(terminal.ends(), 0);
    eventually("the terminal is as before", || terminal.is_as_before());
    assert!(terminal.is_cooked());
    assert!(bench.host_pid().is_some(), "the host goes on");
}

#[test]
fn the_next_dashboard_shows_the_same_transcript() {
    let bench = bench();
    let model = bench.model();
    let mut first = Terminal::open(&bench, &["--model", &model]);
    first.waits_for("No Pod works here");
    first.press("remember the word mangrove\r");
    first.waits_for("heard: remember the word mangrove");
    first.waits_for("idle");
    first.press(":quit\r");
    assert_eq!(first.ends(), 0);
    let second = Terminal::open(&bench, &[]);
    second.waits_for("heard: remember the word mangrove");
}

#[test]
fn two_dashboards_show_the_same() {
    let bench = bench();
    let model = bench.model();
    let mut one = Terminal::open(&bench, &["--model", &model]);
    one.waits_for("No Pod works here");
    one.press("first words\r");
    one.waits_for("heard: first words");
    let mut other = Terminal::open(&bench, &["--pod", "ws"]);
    other.waits_for("heard: first words");
    other.press("second words\r");
    for terminal in [&one, &other] {
        terminal.waits_for("heard: second words");
    }
}

#[test]
fn sigterm_restores_the_terminal_and_leaves_the_pods_running() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::open(&bench, &["--model", &model]);
    terminal.waits_for("No Pod works here");
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    signal(terminal.pid(), "TERM");
    assert_eq!(terminal.ends(), 143);
    eventually("the terminal is as before", || terminal.is_as_before());
    assert!(terminal.is_cooked());
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "running");
}

#[test]
fn a_vanished_terminal_ends_the_dashboard_and_nothing_else() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::open(&bench, &["--model", &model]);
    terminal.waits_for("No Pod works here");
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    let pid = terminal.pid();
    terminal.vanish();
    eventually("the dashboard is gone", || !alive(pid));
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "running");
}

#[test]
fn a_killed_dashboard_hurts_nobody() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::open(&bench, &["--model", &model]);
    terminal.waits_for("No Pod works here");
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    signal(terminal.pid(), "KILL");
    terminal.ends();
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "running");
}

#[test]
fn inside_the_host_ends_with_the_screen_and_its_turn_is_paused() {
    let bench = bench();
    let model = bench.model();
    let mut terminal = Terminal::open(&bench, &["--inside", "--model", &model]);
    terminal.waits_for("No Pod works here");
    terminal.press("slow, please\r");
    terminal.waits_for("word word");
    signal(terminal.pid(), "TERM");
    assert_eq!(terminal.ends(), 143);
    assert!(bench.host_pid().is_none(), "no host is left");
    assert_eq!(bench.pod("ws").expect("the pod")["state"], "paused");
}

#[test]
fn a_key_is_typed_unseen() {
    let bench = bench();
    let mut terminal = Terminal::open(&bench, &["auth", "anthropic"]);
    terminal.waits_for("key for anthropic");
    eventually("the terminal does not echo", || !terminal.is_cooked());
    terminal.press("sk-unseen\r");
    assert_eq!(terminal.ends(), 0);
    terminal.waits_for("stored the key");
    assert!(!terminal.text().contains("sk-unseen"), "{}", terminal.text());
    assert!(terminal.is_cooked());
    assert_eq!(bench.yoi(&["auth"]).out, "anthropic\n");
}

#[test]
#[cfg(feature = "crash-points")]
fn a_panic_restores_the_terminal_before_it_is_told() {
    let bench = bench();
    let mut terminal = Terminal::open(&bench, &[]);
    terminal.waits_for("No Pod works here");
    terminal.press("panic!");
    assert_ne!(terminal.ends(), 0);
    eventually("the terminal is as before", || terminal.is_as_before());
    assert!(terminal.is_cooked());
    terminal.waits_for("the panic that was asked for");
}
