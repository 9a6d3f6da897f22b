//! `--no-ui --serve`: only the host, until a signal ends it.

use crate::headless::exit::{Exit, Failure, after_host};
use crate::headless::signal::Signals;
use crate::start::{self, Opening};
use yoi::protocol::ClientKind;

/// Runs a host in this process until SIGTERM, SIGINT or SIGHUP. Refuses when one runs already.
pub async fn serve(opening: &Opening) -> Result<(), Failure> {
    let signals = Signals::of_the_process()?;
    if start::attach(opening, ClientKind::Brief).await?.is_some() {
        let data = opening.dirs.data.display();
        let message =
            format!("a host runs already for {data}: `yoi host` shows it, `yoi host stop` ends it");
        return Err(Failure::new(Exit::Failed, message));
    }
    let (host, client, mut events) = start::inside(opening).await?;
    for mistake in host.mistakes_in_settings() {
        crate::console::err(&mistake);
    }
    crate::console::err(&format!("yoi: serving on {}", opening.dirs.host_socket().display()));
    let ended = loop {
        tokio::select! {
            number = signals.asked() => break Err(Failure::new(Exit::Signal(number), String::new())),
            ending = host.ended() => break after_host(ending),
            // The host closes this connection when it fails, and its reason is available then.
            event = events.recv() => if event.is_none() { break after_host(host.ended().await) },
        }
    };
    drop(client);
    host.end().await;
    ended
}
