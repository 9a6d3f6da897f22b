//! The host of this data directory: whether one runs, of which version, and how fast it answers.

use crate::cli::doctor::finding::Finding;
use std::path::Path;
use std::time::{Duration, Instant};
use yoi::client::{Client, ConnectError, Events, find};
use yoi::protocol::{Event, Method};

const ABOUT: &str = "host";
const NAME: &str = "host";
/// What to do where a new host would help.
const STOP: &str = "yoi host stop, then yoi: no Pod is lost by it";
const NONE: &str = "none runs; the next `yoi` starts one";
const NEWER: &str = "start that newer yoi, or update this one";
/// How long a host may take to answer.
const ANSWER: Duration = Duration::from_secs(2);
/// From this time on an answer counts as slow.
const SLOW: Duration = Duration::from_millis(250);

/// A connection to a host that answered.
pub struct Reached {
    pub client: Client,
    /// Kept, so that the connection lives as long as the handle.
    _events: Events,
}

/// The finding about the host, and the connection to it.
pub async fn finding(data: &Path) -> (Finding, Option<Reached>) {
    let held = find::held(data);
    let holder = match held {
        find::Held::NoHost => {
            return (Finding::ok(ABOUT, NAME, NONE), None);
        }
        find::Held::Starting => {
            let text = "a process holds the lock of the data directory but has not written its address yet";
            let way_out = "try again in a moment; else end the process that holds host.lock";
            return (Finding::warning(ABOUT, NAME, text, way_out), None);
        }
        find::Held::By(holder) => holder,
    };
    let begun = Instant::now();
    let connect = async {
        let kill = |reason: String| (reason, kill(holder.pid));
        let found = find::connect(data).await.map_err(|error| match error {
            ConnectError::OtherVersion(other) if other.is_older() => {
                (other.to_string(), STOP.to_owned())
            }
            ConnectError::OtherVersion(other) => (other.to_string(), NEWER.to_owned()),
            error => kill(error.to_string()),
        })?;
        let Some((client, events)) = found else { return Ok(None) };
        let reached = Reached { client, _events: events };
        match reached.client.call(None, Method::HostStatus).await {
            Ok(Event::Host { version, .. }) => Ok(Some((reached, version))),
            Ok(_) => Err(kill("it answers with another event".into())),
            Err(refusal) => Err(kill(refusal.message)),
        }
    };
    let process = format!("process {}", holder.pid);
    match tokio::time::timeout(ANSWER, connect).await {
        Ok(Ok(None)) => (Finding::ok(ABOUT, NAME, NONE), None),
        Ok(Ok(Some((reached, version)))) => {
            (running(&process, &version, begun.elapsed()), Some(reached))
        }
        Ok(Err((reason, way_out))) => {
            let text = format!("{process}, version {}: {reason}", holder.version);
            (Finding::broken(ABOUT, NAME, text, way_out), None)
        }
        Err(_) => {
            let text = format!("{process} does not answer within {} s", ANSWER.as_secs());
            (Finding::broken(ABOUT, NAME, text, kill(holder.pid)), None)
        }
    }
}

/// How a host ends that answers nobody: a stopped or hung process does not read the signal that asks it to end.
fn kill(pid: u32) -> String {
    format!(
        "kill -CONT {pid} if you stopped it, else kill -9 {pid}; then start yoi: no Pod is lost"
    )
}

fn running(process: &str, version: &str, took: Duration) -> Finding {
    let text = format!("{process}, version {version}, answers in {} ms", took.as_millis());
    if version != env!("CARGO_PKG_VERSION") {
        let text = format!("{text}; this program is {}", env!("CARGO_PKG_VERSION"));
        return Finding::warning(ABOUT, NAME, text, STOP);
    }
    if took > SLOW {
        return Finding::warning(ABOUT, NAME, format!("{text}: that is slow"), STOP);
    }
    Finding::ok(ABOUT, NAME, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    #[test]
    fn a_host_of_another_version_and_a_slow_one_are_warnings() {
        let level = |version, ms| running("process 1", version, Duration::from_millis(ms)).level;
        assert_eq!(level(env!("CARGO_PKG_VERSION"), 3), Level::Ok);
        assert_eq!(level("0.0.1", 3), Level::Warning);
        assert_eq!(level(env!("CARGO_PKG_VERSION"), 900), Level::Warning);
    }

    /// A host that took the lock and accepts connections, and never says anything.
    #[tokio::test(start_paused = true)]
    async fn a_host_that_never_answers_is_broken_and_its_process_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let socket = temp.path().join("sock");
        let _silent = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let lock = std::fs::File::create(find::lock_file(temp.path())).unwrap();
        let holder = find::Holder { pid: 4711, version: "0.1.0".into(), socket };
        std::fs::write(find::lock_file(temp.path()), serde_json::to_vec(&holder).unwrap()).unwrap();
        lock.lock().unwrap();
        let (finding, reached) = finding(temp.path()).await;
        assert!(reached.is_none());
        assert_eq!(finding.level, Level::Broken);
        assert_eq!(finding.way_out.as_deref(), Some(kill(4711).as_str()));
    }
}
