//! Signals that end the program. The first one asks; a second one, or a loop that does not answer
//! in time, ends it at once.

use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long leaving may take: running turns are paused first (5 s), and their commands ended.
const GRACE: Duration = Duration::from_secs(10);

/// Tells when the program was asked to end. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Signals {
    asked: watch::Receiver<Option<u8>>,
}

impl Signals {
    /// Takes over SIGINT, SIGTERM and SIGHUP.
    pub fn listen() -> std::io::Result<Self> {
        let caught = [
            (2, signal(SignalKind::interrupt())?),
            (15, signal(SignalKind::terminate())?),
            (1, signal(SignalKind::hangup())?),
        ];
        let (tell, asked) = watch::channel(None);
        tokio::spawn(async move {
            let mut caught = caught;
            let number = any(&mut caught).await;
            // Nobody listens when the program ends by itself already.
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

async fn any(caught: &mut [(u8, Signal); 3]) -> u8 {
    let [(a, first), (b, second), (c, third)] = caught;
    tokio::select! {
        _ = first.recv() => *a,
        _ = second.recv() => *b,
        _ = third.recv() => *c,
    }
}
