//! The terminal of the dashboard: taken once, and given back however the program ends.

use crate::screen::app::Capture;
use crate::screen::view::Links;
use crate::screen::{program_status, reply};
use counted::Counted;
use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, DisableMouseCapture, EnableBracketedPaste,
    EnableFocusChange, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
    PushKeyboardEnhancementFlags,
};
use crossterm::style::Print;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    SetTitle, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use linked::{Hyperlinks, LinkedBackend};
use named_colours::NamedColours;
use ratatui::Frame;
use ratatui::backend::{Backend, CrosstermBackend};
use std::io::{self, BufWriter, Stdout};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Counts what is written.
mod counted;
/// Writes the cells of a frame.
mod linked;
/// Writes named colours by their own codes.
mod named_colours;

/// Bytes of a frame that are written at once.
const FRAME: usize = 64 * 1024;

/// The size of a terminal that does not say its own.
const COLUMNS: u16 = 80;
const ROWS: u16 = 24;
/// Reports clicks, the wheel and movements with a button held, with columns beyond 223. Other movements are not
/// asked for: nothing here follows the pointer.
const MOUSE: &str = "\x1b[?1000h\x1b[?1002h\x1b[?1006h";
/// Asks tmux for keys such as Shift+Enter: it does not know the kitty protocol.
const TMUX_KEYS: &str = "\x1b[>4;1m";
const TMUX_PLAIN_KEYS: &str = "\x1b[>4m";
/// Keeps the title that the window had, and brings it back.
const KEEP_TITLE: &str = "\x1b[22;2t";
const FORMER_TITLE: &str = "\x1b[23;2t";

/// Whether the terminal has records of this program.
static HAS_RECORDS: AtomicBool = AtomicBool::new(false);
/// Whether the dashboard has the terminal now.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// The reports of tasks that panicked while the screen was shown; printed when the terminal is given back.
static LATE: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The result of painting a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Painted {
    Whole,
    /// The frame was not painted, because the terminal has this many columns and rows now.
    Resized(u16, u16),
}

/// What the frames are written to.
type Output = NamedColours<BufWriter<Counted<Stdout>>>;

/// The terminal, full screen. Dropping it gives it back.
pub struct Screen {
    terminal: ratatui::Terminal<LinkedBackend<Output>>,
    /// How many bytes were written so far.
    written: Arc<AtomicU64>,
}

impl Screen {
    /// Takes the terminal.
    pub fn take() -> io::Result<Self> {
        install_panic_hook();
        enter()?;
        let (counted, written) = Counted::new(io::stdout());
        let writer = NamedColours::new(BufWriter::with_capacity(FRAME, counted));
        let links = Hyperlinks::of_terminal(|name| std::env::var(name).ok());
        let terminal = ratatui::Terminal::new(LinkedBackend::new(writer, links))
            .inspect_err(|_| give_back())?;
        Ok(Self { terminal, written })
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        size()
    }

    /// Paints one frame, which has these links, for this many columns and rows. The terminal shows it whole or not
    /// at all.
    pub fn paint(
        &mut self,
        size: (u16, u16),
        links: Links,
        draw: impl FnOnce(&mut Frame<'_>),
    ) -> io::Result<Painted> {
        self.terminal.backend_mut().links = links;
        queue!(self.out(), BeginSynchronizedUpdate)?;
        let painted = paint(&mut self.terminal, size, draw)?;
        queue!(self.out(), EndSynchronizedUpdate)?;
        io::Write::flush(self.out())?;
        Ok(painted)
    }

    fn out(&mut self) -> &mut CrosstermBackend<Output> {
        &mut self.terminal.backend_mut().inner
    }

    /// How many bytes were written so far.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Makes the next frame paint every cell, without a query of the cursor's position.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Takes or releases the mouse.
    pub fn capture_mouse(&mut self, capture: Capture) -> io::Result<()> {
        let out = self.out();
        match capture {
            Capture::Ours => execute!(out, Print(MOUSE)),
            Capture::Terminals => execute!(out, DisableMouseCapture),
        }
    }

    /// Writes a command to the terminal outside of a frame.
    pub fn command(&mut self, command: impl crossterm::Command) -> io::Result<()> {
        execute!(self.out(), command)
    }

    pub fn set_title(&mut self, title: &str) -> io::Result<()> {
        if !takes_control_strings() {
            return Ok(());
        }
        execute!(self.out(), SetTitle(title))
    }

    /// Rings the bell, and shows the text where the terminal can.
    pub fn notify(&mut self, text: &str) -> io::Result<()> {
        let ways = Notification::of_terminal();
        execute!(self.out(), Print(notification(text, ways, is_in_tmux())))
    }

    /// Asks the terminal what it can do and how it looks.
    pub fn query(&mut self) -> io::Result<()> {
        if !takes_control_strings() {
            return Ok(());
        }
        execute!(self.out(), Print(reply::queries()))
    }

    /// Sends reports of the Program Status Protocol.
    pub fn report(&mut self, sequences: &[String]) -> io::Result<()> {
        HAS_RECORDS.store(true, Ordering::SeqCst);
        execute!(self.out(), Print(sequences.concat()))
    }

    /// Takes the terminal again after [`give_back`].
    pub fn retake(&mut self) -> io::Result<()> {
        enter()?;
        self.forget()
    }
}

/// Paints a frame after asking the terminal for its size: the event about a new size may come later.
fn paint<B: Backend>(
    terminal: &mut ratatui::Terminal<B>,
    size: (u16, u16),
    draw: impl FnOnce(&mut Frame<'_>),
) -> Result<Painted, B::Error> {
    let mut painted = Painted::Whole;
    terminal.draw(|frame| {
        let area = frame.area();
        if (area.width, area.height) == size {
            draw(frame);
        } else {
            painted = Painted::Resized(area.width, area.height);
        }
    })?;
    Ok(painted)
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Columns and rows of the terminal. One that does not tell them, such as a serial line, is set to 80x24: what runs in
/// it later reads the same.
pub fn size() -> io::Result<(u16, u16)> {
    let mut size = rustix::termios::tcgetwinsize(io::stdout())?;
    if size.ws_col == 0 || size.ws_row == 0 {
        let or = |cells: u16, usual| if cells == 0 { usual } else { cells };
        (size.ws_col, size.ws_row) = (or(size.ws_col, COLUMNS), or(size.ws_row, ROWS));
        rustix::termios::tcsetwinsize(io::stdout(), size)?;
    }
    Ok((size.ws_col, size.ws_row))
}

fn enter() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    size()?;
    let keys = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
        | KeyboardEnhancementFlags::REPORT_EVENT_TYPES
        | KeyboardEnhancementFlags::REPORT_ALTERNATE_KEYS;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange,
        Print(if takes_control_strings() { KEEP_TITLE } else { "" }),
        Print(MOUSE),
        PushKeyboardEnhancementFlags(keys),
        Print(if is_in_tmux() { TMUX_KEYS } else { "" }),
    )
    .inspect_err(|_| give_back())
}

fn is_in_tmux() -> bool {
    std::env::var_os("TMUX").is_some_and(|socket| !socket.is_empty())
}

fn takes_control_strings() -> bool {
    drops_unknown_strings(&std::env::var("TERM").unwrap_or_default())
}

/// Whether a terminal of this name drops control strings that it does not know; some print them.
fn drops_unknown_strings(term: &str) -> bool {
    let prints = ["linux", "dumb", "eterm", "cons25"].iter().any(|name| term.starts_with(name));
    !(term.is_empty() || prints)
}

/// How the terminal shows a notification besides the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Notification {
    BellOnly,
    /// OSC 9, of iTerm2: also Ghostty, kitty, WezTerm and others.
    Osc9,
    /// OSC 777, of urxvt: also foot and the terminals of VTE.
    Osc777,
}

impl Notification {
    fn of_terminal() -> Self {
        let term = std::env::var("TERM").unwrap_or_default();
        let by_urxvt = ["rxvt", "foot"].iter().any(|name| term.starts_with(name));
        match () {
            () if !takes_control_strings() => Self::BellOnly,
            () if by_urxvt || std::env::var_os("VTE_VERSION").is_some() => Self::Osc777,
            () => Self::Osc9,
        }
    }
}

/// The sequences of a notification. tmux hands a control string on to its terminal where the person lets it
/// (`allow-passthrough`), and the bell always.
fn notification(text: &str, way: Notification, in_tmux: bool) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    let string = match way {
        Notification::BellOnly => String::new(),
        Notification::Osc9 => format!("\x1b]9;{text}\x1b\\"),
        Notification::Osc777 => format!("\x1b]777;notify;yoi;{text}\x1b\\"),
    };
    let string = match in_tmux && !string.is_empty() {
        true => format!("\x1bPtmux;{}\x1b\\", string.replace('\x1b', "\x1b\x1b")),
        false => string,
    };
    string + "\x07"
}

/// Restores the terminal, unless it has been given back already. Errors are ignored: a terminal that
/// cannot be written is gone.
pub fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let has_records = HAS_RECORDS.swap(false, Ordering::SeqCst);
    let records = if has_records { program_status::clear(&None) } else { String::new() };
    let _ = execute!(
        io::stdout(),
        EndSynchronizedUpdate,
        Print(if is_in_tmux() { TMUX_PLAIN_KEYS } else { "" }),
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableBracketedPaste,
        DisableFocusChange,
        Print(if takes_control_strings() { FORMER_TITLE } else { "" }),
        Print(records),
        LeaveAlternateScreen,
        cursor::Show,
    );
    let _ = disable_raw_mode();
    let late = LATE.lock().map(|mut late| std::mem::take(&mut *late)).unwrap_or_default();
    for text in late {
        crate::console::err(&text);
    }
}

/// Stops the process group, as Ctrl+Z of a shell does, so that a script that waits for this process stops, too.
/// Returns when it is continued; at once where no shell could continue it.
pub fn stop_group() -> io::Result<()> {
    use rustix::process::{Signal, getpgrp, getsid, kill_current_process_group};
    // Nobody above the first process of a session controls jobs.
    if getsid(None)? == getpgrp() {
        return Ok(());
    }
    // This process handles SIGTSTP itself, so that it would not stop it.
    Ok(kill_current_process_group(Signal::STOP)?)
}

/// A panic of the screen restores the terminal before it is reported. A panic of another task of this
/// process is reported when the screen is left.
fn install_panic_hook() {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    if INSTALLED.swap(true, Ordering::SeqCst) {
        return;
    }
    let (thread, task) = (std::thread::current().id(), tokio::task::try_id());
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let same_task = tokio::task::try_id() == task;
        let ours = same_task && (task.is_some() || std::thread::current().id() == thread);
        if TAKEN.load(Ordering::SeqCst) && !ours {
            if let Ok(mut late) = LATE.lock() {
                late.push(info.to_string());
            }
            return;
        }
        give_back();
        before(info);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::app::Msg;
    use crate::screen::app::tests::{Bench, pod};
    use ratatui::backend::TestBackend;
    use yoi::protocol::State;

    #[test]
    fn a_notification_cannot_end_its_own_sequence_and_reaches_through_tmux() {
        let text = "ann needs you: \x1b\\\x07 the\u{9c} network";
        let bare = notification(text, Notification::Osc9, false);
        assert_eq!(bare, "\x1b]9;ann needs you: \\ the network\x1b\\\x07");
        let urxvt = notification("ann is done", Notification::Osc777, false);
        assert_eq!(urxvt, "\x1b]777;notify;yoi;ann is done\x1b\\\x07");
        let tmux = notification("ann is done", Notification::Osc9, true);
        assert_eq!(tmux, "\x1bPtmux;\x1b\x1b]9;ann is done\x1b\x1b\\\x1b\\\x07");
        assert_eq!(notification("ann is done", Notification::BellOnly, true), "\x07");
    }

    #[test]
    fn a_terminal_that_shrank_unsaid_is_painted_at_its_real_size() {
        let mut bench = Bench::new(vec![pod("alice", State::Running)]);
        bench.size(120, 40);
        let mut terminal = ratatui::Terminal::new(TestBackend::new(120, 40)).expect("a terminal");
        terminal.backend_mut().resize(60, 20);
        let size = bench.app.size;
        let painted =
            paint(&mut terminal, size, |frame| crate::screen::view::draw(&bench.app, frame));
        assert_eq!(painted, Ok(Painted::Resized(60, 20)));
        bench.msg(Msg::Resize(60, 20));
        bench.app.prepare_frame();
        let painted =
            paint(&mut terminal, (60, 20), |frame| crate::screen::view::draw(&bench.app, frame));
        assert_eq!(painted, Ok(Painted::Whole));
        assert!(terminal.backend().to_string().contains("alice"));
    }
}
