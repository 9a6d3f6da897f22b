//! The messages between host and helper, one a line. The host sends an order; the helper sends
//! [`PREPARED`], and starts the command when the host sends [`BEGIN`]. It sends [`ENDED`] when all
//! processes of the command have ended, and its report when changes of guarded files are undone. A
//! server starts at once, and its helper sends only the report.

use crate::protocol::LimitMet;
use crate::sandbox::access::confinement::{Confinement, Isolation};
use crate::sandbox::access::limits::CommandLimits;
use crate::sandbox::access::pod_storage::PodStorage;
use crate::sandbox::access::view::{CommandView, Network};
use crate::sandbox::mounts::plan::PathRule;
use crate::sandbox::mounts::world::World;
use crate::sandbox::process::procfs::Process;
use crate::sandbox::process::reexec::{self, MARK};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

/// The helper has recorded the state of the guarded paths and has not started the command.
pub const PREPARED: &str = "prepared";
/// The answer of the host.
pub const BEGIN: &str = "begin";
/// All processes of the command have ended.
pub const ENDED: &str = "ended";

/// The most bytes that the host reads from a helper. The model of a Pod chooses the names in some of them.
pub const MOST_BYTES: u64 = 4 * 1024 * 1024;
/// The most bytes of sentences in [`Report::undone`]. In JSON a byte becomes at most six.
const MOST_UNDONE: usize = 64 * 1024;

/// What must be known of a command before its stages can start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stages {
    pub network: Network,
    /// The name of its Pod's control group; empty for a command without a Pod.
    pub pod: String,
    pub limits: CommandLimits,
    /// The keeper whose network they enter; `None` gives them one of their own.
    pub keeper: Option<Process>,
}

/// The command to run. When the host closes the pipe, the helper ends everything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub program: String,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// The soft limit of open files to give back.
    pub nofile: Option<u64>,
    /// The access of the command; `None` starts it unconfined.
    #[serde(default)]
    pub view: Option<CommandView>,
    #[serde(default)]
    pub streams: Streams,
    /// The keeper of the network that it shares with other commands of its Pod.
    pub keeper: Option<Process>,
}

/// The standard streams of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// An empty input; both outputs merged in one pipe to the host.
    #[default]
    Output,
    /// Three pipes, which the host sends through a socket instead of the output pipe. Such a
    /// program is a server, and is killed without time to end by itself.
    Pipes,
}

/// The world that its first process builds, and the stage that it starts there.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorldOrder {
    pub world: World,
    pub inner: Inner,
}

/// The command that the last stage executes after it confined itself.
#[derive(Debug, Serialize, Deserialize)]
pub struct Inner {
    pub program: String,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// The soft limit of open files to give back.
    pub nofile: Option<u64>,
    #[serde(default)]
    pub streams: Streams,
    /// The view without grants and holes; `rules` has them resolved on this disk.
    pub view: CommandView,
    pub rules: Vec<PathRule>,
    /// Known gaps of the confinement, and legitimate actions that it prevents.
    pub open: Vec<String>,
    pub cost: Vec<String>,
}

/// The message of the last stage before it executes the command, and again if that failed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ready {
    pub confinement: Option<Confinement>,
    pub failed: Option<String>,
}

/// The outcome of the command.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The exit code of the command.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The host ended the command.
    pub ordered: bool,
    /// Remaining processes that had to be ended.
    pub ended: Vec<String>,
    /// Processes that could not be ended.
    pub stuck: Vec<String>,
    /// Why the helper cannot list the remaining processes. It runs until none is left, and the host
    /// has to end them.
    #[serde(default)]
    pub blind: Option<String>,
    /// Sentences about the changes of guarded files that were undone.
    #[serde(default)]
    pub undone: Vec<String>,
    /// The names of what it left in the home directory, which is discarded.
    #[serde(default)]
    pub lost: Vec<String>,
    /// The first process of its world was killed, and with it the command.
    #[serde(default)]
    pub world_killed: bool,
    /// The limit that the helper saw the command meet.
    #[serde(default)]
    pub limit: Option<LimitMet>,
    /// It was ended because of that limit.
    #[serde(default)]
    pub ended_at_limit: bool,
    /// Its confinement; `None` if it was started unconfined.
    #[serde(default)]
    pub confinement: Option<Confinement>,
    /// Why nothing was started.
    pub failed: Option<String>,
    /// It was not started because the network of its keeper cannot be entered.
    #[serde(default)]
    pub keeper_lost: bool,
}

impl Report {
    /// Nothing was started, for this reason.
    pub fn failed(reason: String) -> Self {
        Self { failed: Some(reason), ..Self::default() }
    }

    /// The network of a keeper cannot be entered.
    pub fn keeper_lost(reason: &str) -> Self {
        Self { keeper_lost: true, ..Self::failed(format!("the network of its Pod: {reason}")) }
    }

    /// Sends the report to the process before this one, or to the host. The exit code shows whether that succeeded.
    pub fn send(&self) -> ExitCode {
        if reexec::send(&self.line()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Adds the sentences that fit, and the number of those that do not.
    pub fn add_undone(&mut self, sentences: Vec<String>) {
        let mut bytes = 0;
        let fits = |sentence: &String| {
            bytes += sentence.len();
            bytes <= MOST_UNDONE
        };
        let all = sentences.len();
        let first: Vec<String> = sentences.into_iter().take_while(fits).collect();
        let more = all - first.len();
        self.undone.extend(first);
        if more > 0 {
            self.undone.push(format!("{more} more change(s) of guarded files are not listed"));
        }
    }
}

/// Reports why the command did not start.
pub fn fail(reason: String) -> ExitCode {
    Report::failed(reason).send();
    ExitCode::FAILURE
}

impl Inner {
    /// The request for the last stage, after the paths of the view were resolved.
    pub fn of(order: Order, view: CommandView, rules: Vec<PathRule>) -> Self {
        let Order { program, cwd, env, nofile, streams, .. } = order;
        let view = CommandView { grants: Vec::new(), holes: Vec::new(), ..view };
        Self { program, cwd, env, nofile, streams, view, rules, open: Vec::new(), cost: Vec::new() }
    }
}

impl Stages {
    /// Those of a command with this view; `None` if it gets no namespaces.
    pub fn of(view: &CommandView, keeper: Option<Process>) -> Option<Self> {
        (view.isolation == Isolation::Namespaces).then(|| Self {
            network: view.network,
            pod: view.private.as_ref().map_or_else(String::new, PodStorage::key),
            limits: view.limits,
            keeper,
        })
    }
}

/// A new value of [`MARK`].
pub fn new_mark() -> String {
    uuid::Uuid::now_v7().to_string()
}

impl Order {
    /// The mark of the command, which every stage carries.
    pub fn mark(&self) -> String {
        self.env.get(MARK).cloned().unwrap_or_default()
    }

    /// The stages of the command; `None` if it gets no namespaces.
    pub fn stages(&self) -> Option<Stages> {
        Stages::of(self.view.as_ref()?, self.keeper)
    }
}

/// A value that host, helper and its second stage send each other as one line of JSON.
pub trait JsonLine: Serialize + DeserializeOwned {
    fn line(&self) -> String {
        // Strings, numbers and a path; a path that is not UTF-8 is refused by the helper as empty.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    fn parse(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}

impl JsonLine for Stages {}
impl JsonLine for Process {}
/// The answer of a keeper; the error is a sentence.
impl JsonLine for Result<Process, String> {}
impl JsonLine for Order {}
impl JsonLine for Report {}
impl JsonLine for WorldOrder {}
impl JsonLine for Inner {}
impl JsonLine for Ready {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_the_changes_that_fit_and_counts_the_others() {
        let mut report = Report::default();
        report.add_undone(vec!["short".into()]);
        assert_eq!(report.undone, ["short"]);
        report.add_undone((0..100).map(|_| "\u{1}".repeat(1024)).collect());
        assert_eq!(report.undone.len(), 1 + 64 + 1);
        let last = report.undone.last().map(String::as_str);
        assert_eq!(last, Some("36 more change(s) of guarded files are not listed"));
        assert!(report.line().len() as u64 <= MOST_BYTES);
    }
}
