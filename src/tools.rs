//! The tools that a model can call: files, shell, tasks, other Pods. A tool is a row in `TABLE` and
//! a function from its arguments and a `Context` to an `Output`; it changes nothing else of the
//! Pod.

mod question;
mod attachment;
mod bash;
mod command_changes;
mod command_sheet;
mod credentials;
mod edit;
mod fault;
pub(crate) mod file_kind;
pub(crate) mod file_text;
mod glob;
mod glob_pattern;
mod grep;
mod guard;
mod ignore_pattern;
mod ignored;
mod input;
mod job_writes;
pub mod jobs;
pub mod text_limit;
pub(crate) mod line_diff;
mod live_output;
mod outside;
mod path_threads;
mod person;
mod scoped_path;
pub mod pods;
mod read;
mod put;
pub(crate) mod saved_output;
mod scripts;
mod secret_cut;
pub mod tasks;
mod tool_set;
mod touch;
pub(crate) mod walk;
mod write;

use crate::client::pod_api::PodApi;
use crate::config::policy::Rules;
use crate::llm::ToolSpec;
use crate::protocol::item::Image;
use crate::protocol::mesh::SentMessage;
use crate::protocol::{
    Credential, EntryId, FileMark, LimitMet, LinesChanged, OutsidePath, PodName, QUESTION_TOOL,
    ScriptHash,
};
use crate::sandbox::{CommandLimits, Isolation, Need, PodStorage, PodWorld, StartGroup, UserPaths};
use crate::scope::Scope;
use fault::Fault;
use jobs::Jobs;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

pub use attachment::{Attachment, attachment};
pub use bash::{CommandTime, in_background, needless, run_without_call, succeeded};
pub use command_sheet::command_sheet;
pub use credentials::{Credentials, may_be_a_credential};
pub use guard::{CHANGES_GIT, purpose};
pub use outside::{CommandNeeds, command_needs};
pub use path_threads::PathThreads;
pub use person::{AskedPerson, PersonPort, PersonReply};
pub use question::question;
pub use scripts::MAX_SCRIPTS;
pub use tool_set::{ExternalTool, NameTaken, ToolSet};
pub use touch::{Touch, touched};

/// Bytes of content a result holds, when nothing else is configured.
pub const MAX_OUTPUT: usize = 64 * 1024;

/// The most bytes of a result for a model with this window in tokens, 0 where that is not known: a quarter of what it
/// reads, at four bytes a token.
pub fn max_output(window: u64) -> usize {
    match window {
        0 => MAX_OUTPUT,
        window => MAX_OUTPUT.min(usize::try_from(window).unwrap_or(usize::MAX)),
    }
}
/// The time that a call on files has to finish after an interrupt.
const LAST_ACTS: Duration = Duration::from_secs(5);
/// Characters of a summary.
const MAX_SUMMARY: usize = 200;
/// Characters of an error: it may name two paths and the way out.
const MAX_ERROR: usize = 2000;

/// The result of a tool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// One line, bounded.
    pub summary: String,
    /// The long text, bounded too.
    pub content: Option<String>,
    pub is_error: bool,
    pub images: Vec<Image>,
    /// The hashes of files after the call, for read-before-edit.
    pub files: Vec<FileMark>,
    /// The position up to which the call has read another Pod's output.
    pub read: Option<Reading>,
    /// The message that was sent.
    pub sent: Option<SentMessage>,
    /// The limit that a command met.
    pub limit: Option<LimitMet>,
    /// The lines of its file that Write or Edit changed.
    pub lines: Option<LinesChanged>,
}

/// A position up to which a Pod's output has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    pub pod: PodName,
    pub upto: EntryId,
}

/// A built-in tool.
pub struct Tool {
    pub name: &'static str,
    pub description: &'static str,
    pub lane: Lane,
    /// The arguments that rules match and requests show. A tool of the lanes `Look` and `Change`
    /// that names `file_path` reads or changes that file, and needs an approval if the scope lacks
    /// it.
    pub telling: &'static [&'static str],
    schema: fn() -> Value,
    /// Whether a call can start with these arguments; reads nothing else.
    takes: fn(&str, &str) -> Result<(), Fault>,
    act: Act,
}

/// Which calls of one reply may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Changes nothing: runs together with others of its kind.
    Look,
    /// Changes files: one after the other in call order, not beside `Shell`.
    Change,
    /// Runs commands: together with others of its kind, not beside `Change`.
    Shell,
    /// Changes the task list, ends a command in the background or asks the person: one after the other in call order.
    Note,
    /// Concerns other Pods: a barrier, alone and in call order.
    Pods,
}

/// The function of a tool.
enum Act {
    /// On the blocking pool, over files.
    Files(fn(&str, &Context, &CancellationToken) -> Result<Output, Fault>),
    /// A command under its helper.
    Shell,
    /// Ends a command in the background.
    StopJob,
    /// On the task list; a change is handed back in [`Done::tasks`].
    Tasks(fn(&str, &mut tasks::Tasks) -> Result<Output, Fault>),
    /// One call to the host.
    Pods(&'static pods::Verb),
}

/// The environment of a call, as of its start.
#[derive(Clone, Debug)]
pub struct Context {
    /// Absolute; where commands start and searches begin.
    pub cwd: PathBuf,
    pub scope: Scope,
    /// The scope that a person gave to this Pod or to one above it. A model may have chosen `scope` in it.
    pub given: Scope,
    /// The environment of commands, already without secrets.
    pub env: BTreeMap<String, String>,
    /// The files that were read or written so far: canonical path to blake3 hash (hex).
    pub read: BTreeMap<PathBuf, String>,
    /// The directory of images and former contents, each named by its blake3 hash.
    pub blobs: PathBuf,
    /// The directory of long command output; always readable.
    pub outputs: PathBuf,
    /// The directory with the `/tmp` and the cache layers of this Pod's commands.
    pub private: PathBuf,
    pub tasks: tasks::Tasks,
    /// The program that runs as the helper of commands ([`crate::sandbox::OWN_PROGRAM`]).
    pub helper: PathBuf,
    /// The soft limit of open files that commands get back; `None` leaves it.
    pub old_nofile: Option<u64>,
    /// What the Pod's commands share.
    pub pod_world: PodWorld,
    /// The Pod's commands in the background.
    pub jobs: Jobs,
    /// yoi's own directories: no command can access them, whatever its grants.
    pub own: Vec<PathBuf>,
    /// The time limits of commands.
    pub command_time: CommandTime,
    /// The resource limits of commands.
    pub command_limits: CommandLimits,
    /// The isolation of commands on this machine.
    pub isolation: Isolation,
    /// The version of Landlock that confines commands; 0 is none.
    pub landlock: u32,
    /// The paths that other live Pods may write: no command writes there, whatever its grants.
    pub others: Vec<PathBuf>,
    /// The commands of the same reply, which start together.
    pub group: StartGroup,
    /// The canonical path of the decision: a call of a file tool acts on no other path.
    pub path: Option<PathBuf>,
    /// The needs that were granted to this call before it started.
    pub needs: Vec<Need>,
    /// The paths outside the scope that this call was granted.
    pub outside: Vec<OutsidePath>,
    /// What commands of this Pod may ask for by name.
    pub credentials: Arc<Credentials>,
    /// Those that were granted to this call.
    pub granted_credentials: Vec<Credential>,
    /// The scripts that were approved with this call.
    pub scripts: Vec<ScriptHash>,
    /// Where an external tool asks the person while its call runs; `None` where no run is under way.
    pub person: Option<PersonPort>,
    /// The rules of files that bind the Pod: a search leaves out what they deny to Read.
    pub rules: Arc<Rules>,
    /// The interface to the host; `None` without one.
    pub pod_api: Option<PodApi>,
    /// Bytes of content in one result, at most [`MAX_OUTPUT`]; fewer for a model with a small window.
    pub max_output: usize,
}

/// The outcome of a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    pub output: Output,
    /// The task list after the call, if it changed.
    pub tasks: Option<tasks::Tasks>,
}

/// Every built-in tool, by name; [`ToolSet`] is what a Pod has.
pub const TABLE: &[Tool] = &[
    Tool {
        name: QUESTION_TOOL,
        description: question::DESCRIPTION,
        lane: Lane::Note,
        telling: &["question"],
        schema: input::schema::<question::Input>,
        takes: question::takes,
        act: Act::Files(question::not_carried_out),
    },
    Tool {
        name: "Bash",
        description: bash::DESCRIPTION,
        lane: Lane::Shell,
        telling: &["command"],
        schema: input::schema::<bash::Input>,
        takes: bash::takes,
        act: Act::Shell,
    },
    Tool {
        name: "BashOutput",
        description: jobs::OUTPUT,
        lane: Lane::Look,
        telling: &["id"],
        schema: input::schema::<jobs::OutputInput>,
        takes: input::takes::<jobs::OutputInput>,
        act: Act::Files(jobs::read),
    },
    Tool {
        name: "BashStop",
        description: jobs::STOP,
        lane: Lane::Note,
        telling: &["id"],
        schema: input::schema::<jobs::StopInput>,
        takes: input::takes::<jobs::StopInput>,
        act: Act::StopJob,
    },
    Tool {
        name: "Edit",
        description: edit::DESCRIPTION,
        lane: Lane::Change,
        telling: &["file_path"],
        schema: input::schema::<edit::Input>,
        takes: input::takes::<edit::Input>,
        act: Act::Files(edit::edit),
    },
    Tool {
        name: "Glob",
        description: glob::DESCRIPTION,
        lane: Lane::Look,
        telling: &["pattern", "path"],
        schema: input::schema::<glob::Input>,
        takes: input::takes::<glob::Input>,
        act: Act::Files(glob::glob),
    },
    Tool {
        name: "Grep",
        description: grep::DESCRIPTION,
        lane: Lane::Look,
        telling: &["pattern", "path"],
        schema: input::schema::<grep::Input>,
        takes: input::takes::<grep::Input>,
        act: Act::Files(grep::grep),
    },
    Tool {
        name: "ListPods",
        description: pods::list::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::list::Input>,
        takes: input::takes::<pods::list::Input>,
        act: Act::Pods(&pods::list::VERB),
    },
    Tool {
        name: "Read",
        description: read::DESCRIPTION,
        lane: Lane::Look,
        telling: &["file_path"],
        schema: input::schema::<read::Input>,
        takes: input::takes::<read::Input>,
        act: Act::Files(read::read),
    },
    Tool {
        name: "ReadPodOutput",
        description: pods::output::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::Named>,
        takes: input::takes::<pods::Named>,
        act: Act::Pods(&pods::output::VERB),
    },
    Tool {
        name: "RestorePod",
        description: pods::restore::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::Named>,
        takes: input::takes::<pods::Named>,
        act: Act::Pods(&pods::restore::VERB),
    },
    Tool {
        name: "SendToPeerPod",
        description: pods::peer::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::peer::Input>,
        takes: input::takes::<pods::peer::Input>,
        act: Act::Pods(&pods::peer::VERB),
    },
    Tool {
        name: "SendToPod",
        description: pods::send::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::send::Input>,
        takes: input::takes::<pods::send::Input>,
        act: Act::Pods(&pods::send::VERB),
    },
    Tool {
        name: "SpawnPod",
        description: pods::spawn::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::spawn::Input>,
        takes: input::takes::<pods::spawn::Input>,
        act: Act::Pods(&pods::spawn::VERB),
    },
    Tool {
        name: "StopPod",
        description: pods::stop::DESCRIPTION,
        lane: Lane::Pods,
        telling: &["name"],
        schema: input::schema::<pods::stop::Input>,
        takes: input::takes::<pods::stop::Input>,
        act: Act::Pods(&pods::stop::VERB),
    },
    Tool {
        name: "TaskCreate",
        description: tasks::CREATE,
        lane: Lane::Note,
        telling: &[],
        schema: input::schema::<tasks::Create>,
        takes: input::takes::<tasks::Create>,
        act: Act::Tasks(tasks::create),
    },
    Tool {
        name: "TaskGet",
        description: tasks::GET,
        lane: Lane::Look,
        telling: &[],
        schema: input::schema::<tasks::Get>,
        takes: input::takes::<tasks::Get>,
        act: Act::Tasks(tasks::get),
    },
    Tool {
        name: "TaskList",
        description: tasks::LIST,
        lane: Lane::Look,
        telling: &[],
        schema: input::schema::<tasks::List>,
        takes: input::takes::<tasks::List>,
        act: Act::Tasks(tasks::list),
    },
    Tool {
        name: "TaskUpdate",
        description: tasks::UPDATE,
        lane: Lane::Note,
        telling: &[],
        schema: input::schema::<tasks::Update>,
        takes: input::takes::<tasks::Update>,
        act: Act::Tasks(tasks::update),
    },
    Tool {
        name: "Write",
        description: write::DESCRIPTION,
        lane: Lane::Change,
        telling: &["file_path"],
        schema: input::schema::<write::Input>,
        takes: input::takes::<write::Input>,
        act: Act::Files(write::write),
    },
];

/// The tools of a Pod that takes part in the agent mesh, by name.
pub const MESH: &[Tool] = &[
    Tool {
        name: "agent_send",
        description: pods::agents::SEND_DESCRIPTION,
        lane: Lane::Pods,
        telling: &["to"],
        schema: input::schema::<pods::agents::Send>,
        takes: input::takes::<pods::agents::Send>,
        act: Act::Pods(&pods::agents::SEND),
    },
    Tool {
        name: "list_peers",
        description: pods::agents::LIST_DESCRIPTION,
        lane: Lane::Pods,
        telling: &[],
        schema: input::schema::<pods::agents::List>,
        takes: input::takes::<pods::agents::List>,
        act: Act::Pods(&pods::agents::LIST),
    },
];

/// The built-in tool of this name.
pub fn find(name: &str) -> Option<&'static Tool> {
    TABLE.iter().chain(MESH).find(|tool| tool.name == name)
}

impl Tool {
    /// This tool, as it is described to the model.
    pub fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: self.name.into(),
            description: self.description.into(),
            schema: (self.schema)(),
        }
    }
}

async fn act(
    tool: &'static Tool,
    arguments: &str,
    ctx: &Context,
    cancel: &CancellationToken,
    live: &mut (dyn FnMut(String) + Send),
) -> Result<Done, Fault> {
    match tool.act {
        Act::Shell => bash::bash(arguments, ctx, cancel, live).await.map(Done::of),
        Act::StopJob => jobs::stop(arguments, ctx).await.map(Done::of),
        Act::Files(work) => {
            let (arguments, ctx, stop) = (arguments.to_owned(), ctx.clone(), cancel.clone());
            let work = move || work(&arguments, &ctx.canonical(), &stop);
            tokio::select! {
                result = tokio::task::spawn_blocking(work) => match result {
                    Ok(result) => result.map(Done::of),
                    Err(_) => Err(Fault::Internal(format!("{} broke off", tool.name))),
                },
                () = left_behind(cancel) => Err(Fault::Execution(format!(
                    "{} was interrupted and a path of it does not answer", tool.name
                ))),
            }
        }
        Act::Pods(verb) => {
            pods::act(verb, arguments, ctx.pod_api.as_ref(), cancel).await.map(Done::of)
        }
        Act::Tasks(work) => {
            let mut tasks = ctx.tasks.clone();
            let output = work(arguments, &mut tasks)?;
            Ok(Done { output, tasks: (tasks != ctx.tasks).then_some(tasks) })
        }
    }
}

/// Waits until the time of an interrupted call is over. A file system that never answers blocks the
/// call's thread; the run continues without it.
async fn left_behind(cancel: &CancellationToken) {
    cancel.cancelled().await;
    tokio::time::sleep(LAST_ACTS).await;
}

impl Context {
    /// The directory that this Pod's tools use as `/tmp`.
    fn tmp(&self) -> PathBuf {
        PodStorage::of(&self.private).tmp()
    }

    /// A copy with canonical directories, to compare with canonical paths, and without the secrets
    /// in its scope.
    fn canonical(&self) -> Self {
        let mut ctx = self.clone();
        for path in [&mut ctx.cwd, &mut ctx.outputs, &mut ctx.private] {
            // The directories of a Pod are made when they are needed.
            if let Ok(found) = crate::files::resolve(path) {
                *path = found.path;
            }
        }
        let secrets = UserPaths { env: &ctx.env }.secrets().into_iter();
        let real =
            secrets.flat_map(|path| crate::files::canonical(&path).into_iter().chain([path]));
        let inside: Vec<PathBuf> = real.filter(|path| ctx.scope.reaches(path)).collect();
        ctx.scope = ctx.scope.with_deny(inside);
        ctx
    }
}

impl Done {
    fn of(output: Output) -> Self {
        Self { output, tasks: None }
    }
}

impl Output {
    /// A result with only a summary.
    fn line(summary: impl Into<String>) -> Self {
        Self { summary: summary.into(), ..Self::default() }
    }

    fn with(summary: impl Into<String>, content: impl Into<String>) -> Self {
        Self { content: Some(content.into()), ..Self::line(summary) }
    }

    fn error(text: impl Into<String>) -> Self {
        let summary = text_limit::cut(&text.into(), MAX_ERROR);
        Self { is_error: true, ..Self::line(summary) }
    }

    fn failed(fault: &Fault) -> Self {
        Self::error(fault.to_string())
    }

    /// Takes the values of credentials out.
    fn cut(&mut self, credentials: &Credentials) {
        self.summary = credentials.cut_text(std::mem::take(&mut self.summary));
        self.content = self.content.take().map(|text| credentials.cut_text(text));
    }

    fn bound(&mut self, max: usize) {
        if !self.is_error {
            self.summary = text_limit::cut(&self.summary.replace('\n', " "), MAX_SUMMARY);
        }
        self.content = self.content.take().map(|text| text_limit::cut_bytes(text, max));
    }
}
