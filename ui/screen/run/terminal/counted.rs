//! Counts the bytes that reach the terminal.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A writer, and how many bytes it was given so far.
pub struct Counted<W> {
    inner: W,
    written: Arc<AtomicU64>,
}

impl<W: Write> Counted<W> {
    /// The writer, and its count, which grows as it writes.
    pub fn new(inner: W) -> (Self, Arc<AtomicU64>) {
        let written = Arc::<AtomicU64>::default();
        (Self { inner, written: written.clone() }, written)
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.written.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
