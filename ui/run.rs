//! The loop of the dashboard: what arrives goes to the app, what the app wishes is done, and a
//! frame is painted when something on it changed.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use yoi::client::{Client, Events};
use yoi::protocol::PodName;

/// Finds or starts the host again after it ended.
pub type Reconnect = Box<
    dyn Fn() -> Pin<Box<dyn Future<Output = anyhow::Result<(Client, Events)>> + Send>>
        + Send
        + Sync,
>;

/// What the dashboard is opened with.
#[derive(Default)]
pub struct Options {
    /// Absolute; the working directory of new Pods.
    pub cwd: PathBuf,
    /// The model of new Pods, when a person chose one.
    pub model: Option<String>,
    /// The environment offered to Pods; also says what the terminal can show.
    pub env: BTreeMap<String, String>,
    /// The theme to begin with; `None` = the default.
    pub theme: Option<String>,
    /// Where `keymap.toml` and `themes/` are looked for.
    pub config_dir: Option<PathBuf>,
    /// The Pod to begin with.
    pub pod: Option<PodName>,
    /// Models that complete after `:model`.
    pub models: Vec<String>,
    /// A sentence to begin with, such as that the host runs inside this process.
    pub notice: Option<String>,
    /// Called when the host ended and the person wants it back; without it the dashboard ends.
    pub reconnect: Option<Reconnect>,
}

/// Why the dashboard ended. The terminal is as it was before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExitReason {
    /// The person left. The sentences say how to come back, and how to end what still runs; they
    /// are for standard error.
    Quit { farewell: Vec<String> },
    /// The host ended and the person did not want it back.
    HostEnded,
    /// A signal; the exit code is 128 + its number.
    Signal(i32),
}

/// Shows the dashboard over a host until the person leaves.
///
/// # Errors
/// The terminal cannot be read or written.
pub async fn dashboard(
    client: Client,
    events: Events,
    options: Options,
) -> anyhow::Result<ExitReason> {
    let _ = (client, events, options);
    anyhow::bail!("the dashboard is not built yet")
}
