//! An entry of any size, read piece by piece: neither side holds all of it.

use crate::client::Client;
use crate::protocol::{
    ByteRange, EntryId, Event, LineShape, MAX_PIECE, Method, PodName, Refusal, TextSpan, Unescape,
};

/// An open entry of a Pod's log: its shape and its first piece are known.
pub struct WholeEntry {
    client: Client,
    pod: PodName,
    /// The entry, named by its place: the host finds it without a search.
    entry: EntryId,
    shape: LineShape,
    /// Its first piece, which came with the shape.
    first: String,
}

/// How far a part of a line has been read, in bytes of the line.
pub struct Reading {
    at: u64,
    end: u64,
}

impl WholeEntry {
    /// Learns the size of an entry and where its texts lie.
    pub async fn open(client: Client, pod: PodName, entry: EntryId) -> Result<Self, Refusal> {
        let range = ByteRange { start: 0, bytes: MAX_PIECE };
        let method = Method::Fetch { entry, range: Some(range) };
        match client.call(Some(&pod), method).await? {
            Event::FetchedRange { entry, line, shape: Some(shape), .. } => {
                Ok(Self { client, pod, entry, shape, first: line })
            }
            _ => Err(unexpected()),
        }
    }

    /// The entry, named by its place: the host finds it without a search.
    pub fn place(&self) -> EntryId {
        self.entry
    }

    /// Where its texts lie.
    pub fn texts(&self) -> &[TextSpan] {
        &self.shape.texts
    }

    /// The reading of its whole line.
    pub fn line(&self) -> Reading {
        Reading { at: 0, end: self.shape.total }
    }

    /// The reading of one text, as it stands in the line.
    pub fn span(&self, span: &TextSpan) -> Reading {
        Reading { at: span.start, end: span.end }
    }

    /// The next piece of a reading; `None` at its end.
    pub async fn next(&self, reading: &mut Reading) -> Result<Option<String>, Refusal> {
        if reading.at >= reading.end {
            return Ok(None);
        }
        let left = usize::try_from(reading.end - reading.at).unwrap_or(usize::MAX);
        // What the other side sent decides whether a piece ends between two characters.
        let within = |piece: &str| piece.get(..left.min(piece.len())).map(str::to_owned);
        let piece = match self.held_from(reading.at) {
            Some(piece) => within(piece),
            None => within(&self.fetch(reading.at, reading.end - reading.at).await?),
        };
        let piece = piece.ok_or_else(unexpected)?;
        reading.at += piece.len() as u64;
        Ok(Some(piece))
    }

    fn held_from(&self, at: u64) -> Option<&str> {
        let rest = self.first.get(usize::try_from(at).ok()?..)?;
        Some(rest).filter(|rest| !rest.is_empty())
    }

    async fn fetch(&self, start: u64, bytes: u64) -> Result<String, Refusal> {
        let range = ByteRange { start, bytes: bytes.min(MAX_PIECE) };
        let method = Method::Fetch { entry: self.entry, range: Some(range) };
        match self.client.call(Some(&self.pod), method).await? {
            Event::FetchedRange { start: from, line, .. } if from == start && !line.is_empty() => {
                Ok(line)
            }
            _ => Err(unexpected()),
        }
    }

    /// The next piece of a text, decoded; `None` at its end.
    pub async fn next_text(
        &self,
        reading: &mut Reading,
        decoder: &mut Unescape,
    ) -> Result<Option<String>, Refusal> {
        let Some(piece) = self.next(reading).await? else {
            return if decoder.rest().is_empty() { Ok(None) } else { Err(unexpected()) };
        };
        let text = decoder.push(&piece).map_err(|error| Refusal::internal(error.to_string()))?;
        Ok(Some(text))
    }
}

fn unexpected() -> Refusal {
    Refusal::internal(
        "the host did not send the piece of the entry that was asked for: is it another version?",
    )
}
