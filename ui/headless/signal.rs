//! Signals that end the program. After the first one the program ends in order; a later signal, or the
//! end of the time for that, ends it at once.

use crate::headless::exit::{Exit, Failure};
use futures_util::stream::{Stream, StreamExt as _, unfold};
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

/// How long ending in order may take: runs are paused first (5 s), and their commands ended.
const GRACE: Duration = Duration::from_secs(10);

/// How long after the first signal a second one counts as the same: `timeout` signals its child and then the whole
/// group, and a key of a terminal reaches every process of its group.
const SAME: Duration = Duration::from_secs(1);

/// A handle that tells when a signal has come. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Signals {
    asked: watch::Sender<Option<u8>>,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM and SIGHUP.
    pub fn of_the_process() -> Result<Self, Failure> {
        let of = |number: u8, kind| signal(kind).map(|signal| (number, signal)).map_err(unheard);
        let caught = [
            of(2, SignalKind::interrupt())?,
            of(15, SignalKind::terminate())?,
            of(1, SignalKind::hangup())?,
        ];
        let asked = watch::Sender::default();
        let caught = unfold(caught, async |mut caught| Some((any(&mut caught).await, caught)));
        let tell = asked.clone();
        tokio::spawn(async move {
            let Some(number) = watch_for(pin!(caught), &tell).await else { return };
            std::process::exit(128 + i32::from(number));
        });
        Ok(Self { asked })
    }

    /// As if a signal came.
    #[cfg(test)]
    pub fn come(&self, number: u8) {
        self.asked.send_replace(Some(number));
    }

    /// The number of the signal, once one came. Cancel-safe.
    pub async fn asked(&self) -> u8 {
        match self.asked.subscribe().wait_for(Option::is_some).await {
            Ok(number) => number.unwrap_or(15),
            Err(_) => std::future::pending().await,
        }
    }
}

fn unheard(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"))
}

/// Tells of the first signal. Resolves when the program has to end at once.
async fn watch_for(
    mut signals: impl Stream<Item = u8> + Unpin,
    tell: &watch::Sender<Option<u8>>,
) -> Option<u8> {
    let number = signals.next().await?;
    tell.send_replace(Some(number));
    Some(end_at_once(number, &mut signals).await)
}

/// Resolves when the program has to end at once: with a later signal, or with the first one when its time is
/// over.
async fn end_at_once(first: u8, mut signals: impl Stream<Item = u8> + Unpin) -> u8 {
    let begun = Instant::now();
    loop {
        match tokio::time::timeout_at(begun + GRACE, signals.next()).await {
            Ok(Some(_)) if begun.elapsed() < SAME => {}
            Ok(again) => return again.unwrap_or(first),
            Err(_) => return first,
        }
    }
}

async fn any(caught: &mut [(u8, Signal); 3]) -> u8 {
    let [(a, first), (b, second), (c, third)] = caught;
    tokio::select! {
        _ = first.recv() => *a,
        _ = second.recv() => *b,
        _ = third.recv() => *c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::poll;
    use tokio::sync::mpsc;

    #[tokio::test(start_paused = true)]
    async fn a_signal_right_after_the_first_one_is_the_same_and_a_later_one_ends_the_program() {
        let (signal, mut signals) = mpsc::unbounded_channel();
        let begun = Instant::now();
        let received = unfold(&mut signals, async |signals| Some((signals.recv().await?, signals)));
        let received = pin!(received);
        let mut ends = pin!(end_at_once(15, received));
        assert!(poll!(&mut ends).is_pending());
        tokio::time::advance(SAME / 2).await;
        signal.send(15).expect("it is awaited");
        assert!(poll!(&mut ends).is_pending(), "timeout sends its signal twice");
        tokio::time::advance(SAME).await;
        signal.send(2).expect("it is awaited");
        assert_eq!(ends.await, 2);
        assert!(begun.elapsed() < GRACE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_signal_ends_the_program_when_its_time_is_over() {
        let begun = Instant::now();
        assert_eq!(end_at_once(1, futures_util::stream::pending()).await, 1);
        assert_eq!(begun.elapsed(), GRACE);
    }
}
