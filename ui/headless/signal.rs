//! Signals that end the program. After the first one the program ends in order; a second signal, or the
//! end of the time for that, ends it at once.

use crate::headless::exit::{Exit, Failure};
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long ending in order may take: runs are paused first (5 s), and their commands ended.
const GRACE: Duration = Duration::from_secs(10);

/// A handle that tells when a signal has come. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Signals {
    asked: watch::Receiver<Option<u8>>,
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
        let (tell, asked) = watch::channel(None);
        tokio::spawn(async move {
            let mut caught = caught;
            let number = any(&mut caught).await;
            // No receiver is left if the program is ending already.
            let _ = tell.send(Some(number));
            let second = tokio::time::timeout(GRACE, any(&mut caught)).await;
            let number = second.unwrap_or(number);
            std::process::exit(128 + i32::from(number));
        });
        Ok(Self { asked })
    }

    /// The number of the signal, once one came. Cancel-safe.
    pub async fn asked(&mut self) -> u8 {
        match self.asked.wait_for(Option::is_some).await {
            Ok(number) => number.unwrap_or(15),
            Err(_) => std::future::pending().await,
        }
    }
}

fn unheard(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("cannot listen for signals: {error}"))
}

async fn any(caught: &mut [(u8, Signal); 3]) -> u8 {
    let [(a, first), (b, second), (c, third)] = caught;
    tokio::select! {
        _ = first.recv() => *a,
        _ = second.recv() => *b,
        _ = third.recv() => *c,
    }
}
