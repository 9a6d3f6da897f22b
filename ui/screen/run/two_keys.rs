//! A question before there is a screen, answered by one key.

use crate::console;
use crate::screen::run::input::{self, FromTerminal, Input};
use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use std::io;

/// The terminal gives each key at once while this lives.
struct RawMode;

impl RawMode {
    fn enter() -> io::Result<Self> {
        enable_raw_mode().map(|()| Self)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        // A terminal that is gone needs no mode.
        let _ = disable_raw_mode();
    }
}

/// Says what each key does, and waits for Enter, or for Esc, Ctrl+C, a signal or the end of the terminal. Returns whether it was Enter.
///
/// # Errors
/// The terminal cannot be read or written.
pub async fn enter_or_esc(enter: &str, esc: &str) -> io::Result<bool> {
    let mut signals = input::signals()?;
    let _raw = RawMode::enter()?;
    // A key from before the question is no answer to it.
    rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush)?;
    console::prompt(&format!("Enter {enter}, Esc {esc} "))?;
    let mut keys = Input::start()?;
    let is_enter = loop {
        tokio::select! {
            event = keys.events.recv() => match event {
                Some(event) => match meaning(&event) {
                    Some(is_enter) => break is_enter,
                    None => continue,
                },
                None => break false,
            },
            _ = signals.recv() => break false,
        }
    };
    keys.stop().await;
    Ok(is_enter)
}

/// `None` for everything but the keys that answer.
fn meaning(event: &FromTerminal) -> Option<bool> {
    let FromTerminal::Event(Event::Key(key)) = event else { return None };
    match key.code {
        _ if key.kind == KeyEventKind::Release => None,
        KeyCode::Enter => Some(true),
        KeyCode::Esc => Some(false),
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => Some(false),
        _ => None,
    }
}
