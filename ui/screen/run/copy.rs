//! Copies a text from the log: a short one goes to the clipboard, a long one to a file.

use crate::screen::app::{CLIPBOARD, Copied, Msg};
use crate::screen::pane::transcript::{CodeLines, LogCopy, Source};
use crate::screen::run::{Arrived, Loop};
use std::io;
use std::path::{Path, PathBuf};
use tokio::sync::mpsc;
use yoi::client::Client;
use yoi::client::whole_entry::WholeEntry;
use yoi::disk::{create_with, private_dir};
use yoi::protocol::{
    Entry, EntryId, Event, Fact, Item, Method, PodName, Refusal, Unescape, flatten,
};
use yoi::text::SafeStream;

/// How many pieces wait for the disk; the reading waits for room.
const PIECES: usize = 4;
/// The error of a copy whose text could not be read to its end.
const GIVEN_UP: &str = "the text could not be read to its end";

/// The input of the writer. If the pieces stop without an end, the copy fails.
enum Piece {
    Text(String),
    End,
}

impl Loop {
    /// Copies from the log in a task of its own; the copy comes back as a message.
    pub(super) fn copy_from_log(&self, pod: PodName, copy: LogCopy) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        let directory = self.copies.clone();
        tokio::spawn(async move {
            let copied = match directory {
                Some(directory) => copy_all(client, &pod, &copy, &directory).await,
                None => Err("there is no directory for copies".to_owned()),
            };
            // The loop is gone when the dashboard has been left; then the copy is not needed.
            let _ = sender.send(Arrived::Msg(Msg::Copied(copied))).await;
        });
    }
}

async fn copy_all(
    client: Client,
    pod: &PodName,
    copy: &LogCopy,
    directory: &Path,
) -> Result<Copied, String> {
    let (sender, receiver) = mpsc::channel(PIECES);
    let (directory, name) = (directory.to_owned(), name(pod, copy.entry));
    let writer =
        tokio::task::spawn_blocking(move || write_copy(receiver, &directory, &name, CLIPBOARD));
    let (pod, safe) = (pod.clone(), SafeStream::default());
    let read = Reader { client, pod, sender, safe, code: None }.read(copy).await;
    let written = writer.await.map_err(|error| error.to_string())?;
    // If the writer ended early, its error is the reason, also for the reading.
    match (read, written) {
        (Err(Failed::Read(refusal)), _) => Err(refusal.message),
        (_, written) => written,
    }
}

/// The name of a copy, without its end.
fn name(pod: &PodName, entry: Option<EntryId>) -> String {
    let entry = entry.map_or_else(|| "text".to_owned(), |entry| entry.to_string());
    // The end of an id tells entries apart; its beginning is the time.
    let short = entry.rsplit('-').next().unwrap_or(&entry);
    format!("{pod}-{short}")
}

/// Why the reading of a copy ended early.
enum Failed {
    Read(Refusal),
    /// The writer has ended.
    Writer,
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Read(refusal)
    }
}

/// Reads the sources of a copy and hands their safe text to the writer.
struct Reader {
    client: Client,
    pod: PodName,
    sender: mpsc::Sender<Piece>,
    safe: SafeStream,
    /// The filter for one block of code; `None` if the whole text is copied.
    code: Option<CodeLines>,
}

impl Reader {
    async fn read(mut self, copy: &LogCopy) -> Result<(), Failed> {
        if copy.code {
            // The text is read twice, so that it need not be kept until its last block is known.
            self.code = Some(CodeLines::default());
            self.sources(copy).await?;
            self.code = self.code.map(CodeLines::last);
            self.safe = SafeStream::default();
        }
        self.sources(copy).await?;
        self.send(Piece::End).await
    }

    async fn sources(&mut self, copy: &LogCopy) -> Result<(), Failed> {
        for source in &copy.sources {
            match source {
                Source::Text(text) => self.text(text).await?,
                Source::Fields(entry, fields) => self.fields(*entry, fields).await?,
                Source::Message(entry) => {
                    let text = message(&self.entry(*entry).await?);
                    self.text(&text).await?;
                }
                Source::Command(entry) => {
                    let text = command(&self.entry(*entry).await?);
                    self.text(&text).await?;
                }
            }
        }
        if let Some(code) = &mut self.code {
            let end = code.end();
            self.send(Piece::Text(end)).await?;
        }
        Ok(())
    }

    async fn fields(&mut self, entry: EntryId, fields: &[&str]) -> Result<(), Failed> {
        let whole = WholeEntry::open(self.client.clone(), self.pod.clone(), entry).await?;
        for span in whole.texts().iter().filter(|span| fields.contains(&span.field.as_str())) {
            let (mut reading, mut decoder) = (whole.span(span), Unescape::default());
            while let Some(text) = whole.next_text(&mut reading, &mut decoder).await? {
                self.text(&text).await?;
            }
        }
        Ok(())
    }

    async fn text(&mut self, text: &str) -> Result<(), Failed> {
        let safe = self.safe.push(text).into_string();
        let text = match &mut self.code {
            Some(code) => code.push(&safe),
            None => safe,
        };
        self.send(Piece::Text(text)).await
    }

    async fn send(&self, piece: Piece) -> Result<(), Failed> {
        self.sender.send(piece).await.map_err(|_closed| Failed::Writer)
    }

    async fn entry(&self, entry: EntryId) -> Result<Entry, Failed> {
        match self.client.call(Some(&self.pod), Method::Fetch { entry, range: None }).await? {
            Event::Fetched { entry } => Ok(*entry),
            _ => Err(Refusal::internal("the host did not answer with an entry").into()),
        }
    }
}

/// The message of a person.
fn message(entry: &Entry) -> String {
    match &entry.fact {
        Fact::UserInput { segments, .. } => flatten(segments),
        Fact::AssistantItem { item, .. } => item.text().unwrap_or_default(),
        _ => String::new(),
    }
}

/// The command of a call.
fn command(entry: &Entry) -> String {
    let Fact::AssistantItem { item: Item::ToolCall { arguments, .. }, .. } = &entry.fact else {
        return String::new();
    };
    let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
    arguments["command"].as_str().unwrap_or_default().to_owned()
}

/// Takes the pieces of a text. Up to `most` bytes it stays in memory; a longer one goes to a new file in
/// `directory`, which appears whole or not at all. Blocking.
fn write_copy(
    mut pieces: mpsc::Receiver<Piece>,
    directory: &Path,
    name: &str,
    most: usize,
) -> Result<Copied, String> {
    let mut text = String::new();
    loop {
        match pieces.blocking_recv() {
            Some(Piece::Text(more)) => text.push_str(&more),
            Some(Piece::End) => return Ok(Copied::Text(text)),
            None => return Err(GIVEN_UP.into()),
        }
        if text.len() > most {
            break;
        }
    }
    private_dir(directory).map_err(|error| error.to_string())?;
    let path = free(directory, name);
    let mut size = 0;
    let written = create_with(&path, 0o600, |file| {
        let mut text = text;
        loop {
            file.write_all(text.as_bytes())?;
            size += text.len() as u64;
            text = match pieces.blocking_recv() {
                Some(Piece::Text(more)) => more,
                Some(Piece::End) => return Ok(()),
                None => return Err(io::Error::other(GIVEN_UP)),
            };
        }
    });
    written.map_err(|error| error.to_string())?;
    Ok(Copied::File(path, size))
}

/// A path in the directory that is not in use.
fn free(directory: &Path, name: &str) -> PathBuf {
    let first = directory.join(format!("{name}.txt"));
    let others = (2..).map(|n: u32| directory.join(format!("{name}-{n}.txt")));
    std::iter::once(first.clone()).chain(others).find(|path| !path.exists()).unwrap_or(first)
}

#[cfg(test)]
mod tests;
