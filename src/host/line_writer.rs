//! Writing to a client that may read slowly, or not at all.

use std::io::{Error, ErrorKind, Result};
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

/// A reader that takes nothing for this long is closed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Writes all of `bytes`, however slowly the reader takes them, as long as it takes some.
pub(crate) async fn write<W: AsyncWrite + Unpin>(writer: &mut W, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        let Ok(taken) = timeout(PATIENCE, writer.write(bytes)).await else {
            return Err(ErrorKind::TimedOut.into());
        };
        bytes = match taken? {
            0 => return Err(Error::from(ErrorKind::WriteZero)),
            taken => &bytes[taken..],
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_for_60_s_is_closed() {
        let (mut ours, _theirs) = tokio::io::duplex(16);
        let begun = tokio::time::Instant::now();
        let error = write(&mut ours, &[0; 64]).await.expect_err("no reader takes it");
        assert_eq!((error.kind(), begun.elapsed()), (ErrorKind::TimedOut, PATIENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_is_served_as_long_as_it_reads() {
        let (mut ours, mut theirs) = tokio::io::duplex(16);
        let writing = tokio::spawn(async move { write(&mut ours, &[7; 64]).await });
        let mut read = Vec::new();
        for _ in 0..4 {
            tokio::time::advance(PATIENCE / 2).await;
            let mut piece = [0; 16];
            theirs.read_exact(&mut piece).await.expect("a piece");
            read.extend(piece);
        }
        writing.await.expect("no panic").expect("all of it");
        assert_eq!(read, [7; 64]);
    }
}
