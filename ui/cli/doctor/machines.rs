//! The server over which this machine reaches others: whether it admits this machine, takes its messages, and has the
//! same time.

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::host::Reached;
use std::path::Path;
use std::time::Duration;
use yoi::mesh::machines::{Credentials, MachineName, NotStored, tried};
use yoi::protocol::mesh::MeshView;
use yoi::protocol::{Event, Method};

const ABOUT: &str = "mesh";
const NAME: &str = "other machines";
/// How long the server, or the host, may take.
const ANSWER: Duration = Duration::from_secs(3);
/// Clocks that differ by more than so many milliseconds are worth a warning: rates and times of messages are wrong.
const APART: i64 = 2_000;

/// Connects once, and sends this machine something that its host drops; nothing where this machine joined no others.
pub async fn findings(state: &Path) -> Vec<Finding> {
    let credentials = match Credentials::read(state) {
        Ok(Some(found)) => found,
        Ok(None) => return Vec::new(),
        Err(error) => {
            let way_out = "run `yoi mesh join` with the line that was printed for this machine";
            return vec![Finding::broken(ABOUT, NAME, error.to_string(), way_out)];
        }
    };
    let Credentials { machine, server, .. } = &credentials;
    let stored = match tokio::time::timeout(ANSWER, tried(&credentials)).await {
        Ok(Ok(stored)) => stored,
        Ok(Err(error)) => return vec![Finding::broken(ABOUT, NAME, error.to_string(), LOOK)],
        Err(_) => {
            let text = format!(
                "{server} does not answer within {} s, or does not take what {machine} sends",
                ANSWER.as_secs()
            );
            return vec![Finding::broken(ABOUT, NAME, text, LOOK)];
        }
    };
    let text = format!("{server} admits {machine}; TLS, with the certificate that it joined with");
    vec![Finding::ok(ABOUT, NAME, text), of_stream(machine, stored)]
}

/// Whether the server takes messages and holds some for this machine.
fn of_stream(machine: &MachineName, stored: Result<(), NotStored>) -> Finding {
    let name = "messages";
    match stored {
        Ok(()) => {
            let text = format!("the server takes messages of {machine}, and holds what is for it");
            Finding::ok(ABOUT, name, text)
        }
        Err(NotStored::NoSuchMachine(machine)) => {
            let text = format!(
                "the server holds nothing for {machine}: it has no stream, or no JetStream"
            );
            let way_out = format!(
                "where the server is, run `yoi mesh init --add {machine}`, and here the command that it prints"
            );
            Finding::broken(ABOUT, name, text, way_out)
        }
        Err(error) => Finding::broken(ABOUT, name, error.to_string(), ROOM),
    }
}

/// Whether the clocks of the server and of this machine agree, as the running host knows.
pub async fn clock(reached: Option<&Reached>) -> Option<Finding> {
    let call = reached?.client.call(None, Method::MeshAgents);
    let Ok(Ok(Event::Mesh(MeshView { machine, .. }))) = tokio::time::timeout(ANSWER, call).await
    else {
        return None;
    };
    machine?.clock_ms.map(of_clock)
}

fn of_clock(ahead_ms: i64) -> Finding {
    let name = "clock";
    let seconds = Duration::from_millis(ahead_ms.unsigned_abs()).as_secs_f64();
    let side = if ahead_ms < 0 { "behind" } else { "ahead of" };
    let text = format!("the clock of the server is {seconds:.1} s {side} the one of this machine");
    match ahead_ms.abs() > APART {
        false => Finding::ok(ABOUT, name, text),
        true => {
            let way_out = "set both clocks, for example with an NTP client (timedatectl)";
            Finding::warning(ABOUT, name, text, way_out)
        }
    }
}

/// What to do where the server cannot be connected to.
const LOOK: &str =
    "see whether the server runs and its port is open; everything on this machine works without it";
/// What to do where the server takes no message.
const ROOM: &str =
    "see whether the disk of the server has room, and whether this machine takes what waits for it";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    #[test]
    fn a_clock_that_is_far_off_is_worth_a_warning_and_a_missing_stream_says_what_to_do() {
        let near = of_clock(-1_940);
        assert_eq!(
            (near.level, near.text.as_str()),
            (Level::Ok, "the clock of the server is 1.9 s behind the one of this machine")
        );
        let far = of_clock(65_000);
        assert_eq!(far.level, Level::Warning);
        assert!(far.text.contains("65.0 s ahead of") && far.way_out.is_some(), "{far:?}");
        let casa = MachineName::parse("casa").expect("a name");
        assert_eq!(of_stream(&casa, Ok(())).level, Level::Ok);
        let none = of_stream(&casa, Err(NotStored::NoSuchMachine(casa.clone())));
        assert!(none.way_out.is_some_and(|way| way.contains("--add casa")));
        let silent = of_stream(&casa, Err(NotStored::Silent));
        assert!(silent.level == Level::Broken && silent.text.contains("its disk may be full"));
    }
}
