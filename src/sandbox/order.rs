//! What host and helper say to each other, a line each. The host sends an order; the helper says [`PREPARED`], and
//! begins when the host answers with [`BEGIN`]; it says [`ENDED`] when all that the command started is gone, and sends
//! its report when it has undone what the command may not leave. A server begins at once and says nothing in between.

use crate::protocol::LimitMet;
use crate::sandbox::Command;
use crate::sandbox::confinement::Confinement;
use crate::sandbox::plan::Give;
use crate::sandbox::view::CommandView;
use crate::sandbox::world::World;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The variable that marks everything a command starts, so that it is found without its helper.
pub const MARK: &str = "YOI_RUN";

/// The helper has looked at what is guarded. The command did not begin.
pub const PREPARED: &str = "prepared";
/// The answer of the host.
pub const BEGIN: &str = "begin";
/// The command and all it started are gone.
pub const ENDED: &str = "ended";

/// What to run. The end of the pipe after it means: end everything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    pub program: String,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// The soft limit of open files to give back.
    pub nofile: Option<u64>,
    /// The walls around it; `None` is no walls.
    #[serde(default)]
    pub view: Option<CommandView>,
    #[serde(default)]
    pub streams: Streams,
}

/// Where the standard streams of a command lead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Streams {
    /// Its input is empty; both outputs come together, to the host.
    #[default]
    Output,
    /// Three pipes of its own, which the host sends through the socket in the place of the output. Such a
    /// program is a server: it gets no time to end by itself.
    Pipes,
}

/// What the first process of a world builds, and what it starts there.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorldOrder {
    pub world: World,
    pub inner: Inner,
}

/// What the stage that confines itself is to become.
#[derive(Debug, Serialize, Deserialize)]
pub struct Inner {
    pub program: String,
    pub cwd: PathBuf,
    pub env: BTreeMap<String, String>,
    /// The soft limit of open files to give back.
    pub nofile: Option<u64>,
    #[serde(default)]
    pub streams: Streams,
    /// The view without grants and holes; `gives` has them resolved on this disk.
    pub view: CommandView,
    pub gives: Vec<Give>,
    /// What the helper already knows to be unprotected, and what the command cannot do.
    pub open: Vec<String>,
    pub cost: Vec<String>,
}

/// The message of the last stage before it executes the command, and again if that failed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Ready {
    pub confinement: Option<Confinement>,
    pub failed: Option<String>,
}

/// How it ended.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The exit code of the command.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The host ended the command before it ended by itself.
    pub ordered: bool,
    /// What else had to be ended.
    pub ended: Vec<String>,
    /// What is still alive in spite of everything.
    pub stuck: Vec<String>,
    /// Why the helper cannot see what is left. It stays until nothing is, and somebody else has to
    /// end it.
    #[serde(default)]
    pub blind: Option<String>,
    /// What it left that would lead others astray, and what became of it.
    #[serde(default)]
    pub undone: Vec<String>,
    /// The first process of its world was killed, and with it the command.
    #[serde(default)]
    pub world_killed: bool,
    /// The limit that the helper saw it meet.
    #[serde(default)]
    pub limit: Option<LimitMet>,
    /// It was ended because of that limit.
    #[serde(default)]
    pub ended_at_limit: bool,
    /// How well it was confined; `None` where no walls were asked for.
    #[serde(default)]
    pub confinement: Option<Confinement>,
    /// Why nothing was started.
    pub failed: Option<String>,
}

impl Inner {
    /// The request for the last stage, after the paths of the view were resolved.
    pub fn of(order: Order, view: CommandView, gives: Vec<Give>) -> Self {
        let Order { program, cwd, env, nofile, streams, .. } = order;
        let view = CommandView { grants: Vec::new(), holes: Vec::new(), ..view };
        Self { program, cwd, env, nofile, streams, view, gives, open: Vec::new(), cost: Vec::new() }
    }
}

impl Order {
    /// The mark of the command, which every stage carries.
    pub fn mark(&self) -> String {
        self.env.get(MARK).cloned().unwrap_or_default()
    }

    pub fn of(command: &Command, nofile: Option<u64>, mark: &str) -> Self {
        let mut env = command.env.clone();
        env.insert(MARK.into(), mark.into());
        let (program, cwd) = (command.program.clone(), command.cwd.clone());
        let (view, streams) = (command.view.clone(), Streams::Output);
        Self { program, cwd, env, nofile, view, streams }
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

impl JsonLine for Order {}
impl JsonLine for Report {}
impl JsonLine for WorldOrder {}
impl JsonLine for Inner {}
impl JsonLine for Ready {}
