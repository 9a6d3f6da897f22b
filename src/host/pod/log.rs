//! The log of a Pod between its runs. A run owns the log while it lasts: what the Pod writes
//! itself is written here, and only here, with no run under way and no other writer left.

use crate::host::pod::Pod;
use crate::host::pod::tail::{self, Tail};
use crate::protocol::{Entry, Refusal};
use crate::session::Journal;

impl Pod {
    /// Commits entries to the log and publishes them. A run that was cut off is closed first.
    pub(super) async fn write_log(&mut self, entries: Vec<Entry>) -> Result<(), Refusal> {
        let Some(segment) = self.row.segment else { return Ok(()) };
        self.log_must_be_free()?;
        self.close_log().await;
        let (journal, opened) = Journal::open_with(&self.files, segment, entries.clone()).await?;
        journal.close().await;
        self.end = Some(opened.end);
        self.publisher.committed(&entries);
        Ok(())
    }

    /// How the last run ended. The log of a run that was cut off is closed first, so that what
    /// arrived of the run is seen.
    pub(super) async fn look_back(&mut self) -> Result<Tail, Refusal> {
        let Some(segment) = self.row.segment else { return Ok(Tail::default()) };
        self.log_must_be_free()?;
        self.close_log().await;
        self.files.no_writer().await;
        let files = self.files.clone();
        let tail = tokio::task::spawn_blocking(move || tail::read(&files, segment)).await??;
        if tail.open && !self.shared.only_reads {
            let (journal, _) = Journal::open(&self.files, segment).await?;
            journal.close().await;
        }
        Ok(tail)
    }

    /// Closes the log that the last run left open for the next one.
    pub(super) async fn close_log(&mut self) {
        if let Some(log) = self.phase.take_log() {
            log.close().await;
        }
    }

    /// A run that is under way may write at any moment.
    fn log_must_be_free(&self) -> Result<(), Refusal> {
        if self.phase.is_running() {
            let text = format!("the run of pod `{}` writes to its log", self.row.name);
            return Err(Refusal::internal(text));
        }
        Ok(())
    }
}
