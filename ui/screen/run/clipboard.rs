//! Puts copies into the clipboard: by the terminal, or by a program of the display.

use crate::screen::app::{Clipboard, Msg};
use crate::screen::run::{Arrived, Loop};
use crossterm::clipboard::CopyToClipboard;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// How long a program may take for a copy.
const PATIENCE: Duration = Duration::from_secs(2);

impl Loop {
    /// Copies a text. If a program does not take it, the text comes back as [`Msg::NotCopied`].
    pub(super) fn copy(&mut self, text: String) -> io::Result<()> {
        let way = self.app.setup.clipboard;
        let Clipboard::Program(words) = way else {
            return self.screen.command(CopyToClipboard::to_clipboard_from(text));
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

/// Runs a program with this text as its input. A process that it leaves to serve the clipboard is not killed.
pub async fn give(words: &[&str], text: &str) -> io::Result<()> {
    let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
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
