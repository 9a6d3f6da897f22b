//! Puts copies into the clipboard: by the terminal, or by a program of the display.

use crate::screen::app::{Clipboard, Msg};
use crate::screen::run::{Arrived, Loop};
use crossterm::Command;
use crossterm::clipboard::CopyToClipboard;
use crossterm::style::Print;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;

/// The bytes of a copy in one string for GNU screen, which takes 768 at most.
const PIECE: usize = 512;
/// How long a program may take for a copy.
const PATIENCE: Duration = Duration::from_secs(2);

impl Loop {
    /// Copies a text. If a program does not take it, the text comes back as [`Msg::NotCopied`].
    pub(super) fn copy(&mut self, text: String) -> io::Result<()> {
        let way = self.app.setup.clipboard;
        let words = match way {
            Clipboard::Terminal => {
                return self.screen.command(CopyToClipboard::to_clipboard_from(text));
            }
            Clipboard::GnuScreen => {
                let copy = through_gnu_screen(&CopyToClipboard::to_clipboard_from(text));
                return self.screen.command(Print(copy));
            }
            Clipboard::Program(words) => words,
        };
        let sender = self.sender.clone();
        tokio::spawn(async move {
            let taken = tokio::time::timeout(PATIENCE, give(words, &text)).await;
            let why = match taken {
                Ok(Ok(())) => return,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            let why = format!("{}: {why}", way.name());
            // A loop that is over copies nothing.
            let _ = sender.send(Arrived::Msg(Msg::NotCopied(text, why))).await;
        });
        Ok(())
    }
}

/// The sequence of a copy for GNU screen, which hands on to its terminal what stands in short device control strings. The
/// sequence itself ends with BEL, because ST would end such a string.
fn through_gnu_screen(copy: &impl Command) -> String {
    let mut sequence = String::new();
    // Writing into a text does not fail.
    let _ = copy.write_ansi(&mut sequence);
    let sequence = sequence.replace("\x1b\\", "\x07");
    let pieces = sequence.as_bytes().chunks(PIECE).map(String::from_utf8_lossy);
    pieces.map(|piece| format!("\x1bP{piece}\x1b\\")).collect()
}

/// Runs a program with this text as its input. A process that it leaves to serve the clipboard is not killed.
pub async fn give(words: &[&str], text: &str) -> io::Result<()> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = tokio::process::Command::new(program);
    command.args(arguments).process_group(0).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut written = Ok(());
    if let Some(mut input) = child.stdin.take() {
        written = input.write_all(text.as_bytes()).await;
    }
    // The status of a program that did not read its input says more than the broken pipe.
    let status = child.wait().await?;
    if status.success() { written } else { Err(io::Error::other(status.to_string())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_goes_through_gnu_screen_in_strings_that_it_takes() {
        let short = through_gnu_screen(&CopyToClipboard::to_clipboard_from("foo"));
        assert_eq!(short, "\x1bP\x1b]52;c;Zm9v\x07\x1b\\");
        let long = through_gnu_screen(&CopyToClipboard::to_clipboard_from("x".repeat(3_000)));
        let strings: Vec<&str> = long.split("\x1b\\").collect();
        assert!(strings.len() > 4 && strings.iter().all(|string| string.len() < 768));
        let handed_on: String =
            strings.iter().map(|string| string.trim_start_matches("\x1bP")).collect();
        let whole = &handed_on["\x1b]52;c;".len()..];
        assert_eq!(whole.trim_end_matches('\x07').len(), 4_000, "base64 of all of it");
    }
}
