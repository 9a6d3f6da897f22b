//! The terminal of the dashboard: taken once, and given back however the program ends.

use crate::app::Capture;
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute, queue};
use ratatui::Frame;
use ratatui::backend::{Backend, CrosstermBackend};
use std::io::{self, BufWriter, Stdout};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a frame that are written at once.
const FRAME: usize = 64 * 1024;

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

/// The terminal, full screen. Dropping it gives it back.
pub struct Screen {
    terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

impl Screen {
    /// Takes the terminal.
    pub fn take() -> io::Result<Self> {
        install_panic_hook();
        enter()?;
        let writer = BufWriter::with_capacity(FRAME, io::stdout());
        let terminal =
            ratatui::Terminal::new(CrosstermBackend::new(writer)).inspect_err(|_| give_back())?;
        Ok(Self { terminal })
    }

    /// Columns and rows.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Paints one frame for this many columns and rows. The terminal shows it whole or not at all.
    pub fn paint(
        &mut self,
        size: (u16, u16),
        draw: impl FnOnce(&mut Frame<'_>),
    ) -> io::Result<Painted> {
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        let painted = paint(&mut self.terminal, size, draw)?;
        queue!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        io::Write::flush(self.terminal.backend_mut())?;
        Ok(painted)
    }

    /// Makes the next frame paint every cell, without a query of the cursor's position.
    pub fn forget(&mut self) -> io::Result<()> {
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Takes or releases the mouse.
    pub fn capture_mouse(&mut self, capture: Capture) -> io::Result<()> {
        let out = self.terminal.backend_mut();
        match capture {
            Capture::Ours => execute!(out, EnableMouseCapture),
            Capture::Terminals => execute!(out, DisableMouseCapture),
        }
    }

    /// Writes a command to the terminal outside of a frame.
    pub fn command(&mut self, command: impl crossterm::Command) -> io::Result<()> {
        execute!(self.terminal.backend_mut(), command)
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

fn enter() -> io::Result<()> {
    TAKEN.store(true, Ordering::SeqCst);
    enable_raw_mode()?;
    let keys = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES
        | KeyboardEnhancementFlags::REPORT_EVENT_TYPES;
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableMouseCapture,
        PushKeyboardEnhancementFlags(keys),
    )
    .inspect_err(|_| give_back())
}

/// Restores the terminal, unless it has been given back already. Errors are ignored: a terminal that
/// cannot be written is gone.
pub fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    let _ = execute!(
        io::stdout(),
        EndSynchronizedUpdate,
        PopKeyboardEnhancementFlags,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show,
    );
    let _ = disable_raw_mode();
    let late = LATE.lock().map(|mut late| std::mem::take(&mut *late)).unwrap_or_default();
    for text in late {
        crate::console::err(&text);
    }
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
    use crate::app::Msg;
    use crate::app::tests::{Bench, pod};
    use ratatui::backend::TestBackend;
    use yoi::protocol::State;

    #[test]
    fn a_terminal_that_shrank_unsaid_is_painted_at_its_real_size() {
        let mut bench = Bench::new(vec![pod("alice", State::Running)]);
        bench.size(120, 40);
        let mut terminal = ratatui::Terminal::new(TestBackend::new(120, 40)).expect("a terminal");
        terminal.backend_mut().resize(60, 20);
        let size = bench.app.size;
        let painted = paint(&mut terminal, size, |frame| crate::view::draw(&bench.app, frame));
        assert_eq!(painted, Ok(Painted::Resized(60, 20)));
        bench.msg(Msg::Resize(60, 20));
        bench.app.prepare_frame();
        let painted = paint(&mut terminal, (60, 20), |frame| crate::view::draw(&bench.app, frame));
        assert_eq!(painted, Ok(Painted::Whole));
        assert!(terminal.backend().to_string().contains("alice"));
    }
}
