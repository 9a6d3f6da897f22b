//! The host's side of a command: starts its helper, waits for the others of its group, and reads its output and report.

pub mod limit_words;
pub mod next_helper;
pub mod overview;
pub mod pod_world;
pub mod server;
pub mod start_group;

use crate::protocol::LimitMet;
use crate::sandbox::access::confinement::{Confinement, Isolation};
use crate::sandbox::access::places::UserPaths;
use crate::sandbox::access::view::{CommandView, ViewInputs};
use crate::sandbox::process::enter;
use crate::sandbox::process::init::NOT_BUILT;
use crate::sandbox::process::messages::{
    self, JsonLine as _, Order, Report, Stages, Streams, new_mark,
};
use crate::sandbox::process::procfs::{self, Process};
use crate::sandbox::process::reexec::{HELPER_ARG, KEEPER_ARG, MARK, OWN_NAME, OWN_PROGRAM};
use pod_world::{Joined, PodWorld};
use start_group::StartGroup;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines, Take};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

/// How long the helper may take to end everything after a request, before it is killed itself:
/// longer than the first process of a world may take.
const HELPER_GRACE: Duration = Duration::from_secs(enter::GRACE.as_secs() + 3);
/// How long it may take to undo changes after the last process of the command has ended.
const UNDO_TIME: Duration = Duration::from_secs(120);
/// How long output is still read after the report while another process keeps the pipe open.
const DRAIN: Duration = Duration::from_millis(500);
/// How long a probe may take, and where it finds its shell.
const PROBE: Duration = Duration::from_secs(5);
const PROBE_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// How often the world of a command is planned anew that could not be built, because others changed the paths meanwhile.
const BUILDS: usize = 50;
/// What the reason says then.
const CHANGED: [&str; 4] = ["No such file", "Not a directory", "Stale file handle", "meanwhile"];
const NONE_LEFT: &str = "this machine allows you no more processes or threads: end some of your programs, then \
                         try again";
const NOT_REPORTED: &str = "the test command did not report its confinement";
const KILLED_BEFORE: &str =
    "the process that watches the command was killed before the command began";
const WORLD_KILLED: &str = "the process that watches this command was killed, by the kernel when \
memory runs out or by another program, and everything the command had started ended with it";
/// The most bytes of output read at once.
const CHUNK: usize = 16 * 1024;
/// How much output of a command in the background is read without a pause, in bytes. It can write for ever.
pub const WITHOUT_PAUSE: u64 = 64 * 1024 * 1024;
/// The pause before each further part.
const PAUSE: Duration = Duration::from_millis(10);

/// Starts commands.
#[derive(Clone, Debug)]
pub struct Sandbox {
    /// The program that runs as the helper when its first argument is [`HELPER_ARG`].
    pub helper: PathBuf,
    /// The soft limit of open files a command gets, if the host has raised its own.
    pub nofile: Option<u64>,
    /// What the commands of a Pod share.
    pub world: PodWorld,
}

/// One command, run by `bash -c`.
#[derive(Clone, Debug)]
pub struct Command {
    pub program: String,
    /// Absolute, a directory.
    pub cwd: PathBuf,
    /// The whole environment of the command.
    pub env: BTreeMap<String, String>,
    /// After this time it is ended with all its processes.
    pub timeout: Duration,
    /// The access of the command; `None` starts it unconfined.
    pub view: Option<CommandView>,
    /// The commands that start together with it.
    pub group: StartGroup,
}

/// The outcome of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub outcome: Outcome,
    /// The names of the remaining processes, which were ended.
    pub left_over: Vec<String>,
    /// Processes that could not be ended, for example because they belong to another user.
    pub stuck: Vec<String>,
    /// The changes to guarded files that were undone after it, each a sentence.
    pub undone: Vec<String>,
    /// The names of what it left in the home directory, which is discarded.
    pub lost: Vec<String>,
    /// The limit that its helper saw it meet.
    pub limit: Option<LimitMet>,
    /// Its confinement; `None` if it was started unconfined.
    pub confinement: Option<Confinement>,
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with this exit code.
    Exited(i32),
    /// By this signal, which yoi did not send.
    Signalled(i32),
    TimedOut,
    Cancelled,
    /// It was ended because of the limit in [`Ended::limit`].
    AtLimit,
}

/// Why a command did not start, or why its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// Nothing was started.
    #[error("the command could not be started: {0}")]
    NotStarted(String),
    /// Nothing was started, because the network of the Pod's keeper could not be entered.
    #[error("the command could not be started: {0}")]
    KeeperLost(String),
    /// The helper was killed; its processes are ended, as far as they were found.
    #[error(
        "the process that watches the command was killed{}; what the command changed in files that git and other \
         programs execute was not undone: look at them (`git status`, `.git/hooks`, `.git/config`)",
        named(.ended, .stuck)
    )]
    HelperLost { ended: Vec<String>, stuck: Vec<String> },
}

/// Whether a world could not be built because others changed its paths meanwhile.
fn is_of_a_change(why: &str) -> bool {
    why.contains(NOT_BUILT) && CHANGED.iter().any(|words| why.contains(words))
}

fn named(ended: &[String], stuck: &[String]) -> String {
    let list = |what: &str, names: &[String]| match names {
        [] => String::new(),
        names => format!("; {what}: {}", names.join(", ")),
    };
    list("ended", ended) + &list("could not be ended and still runs", stuck)
}

impl Default for Sandbox {
    fn default() -> Self {
        Self { helper: OWN_PROGRAM.into(), nofile: None, world: PodWorld::default() }
    }
}

impl Command {
    /// The request for this command, whose processes have this mark.
    fn order(&self, nofile: Option<u64>, mark: String) -> Order {
        let mut env = self.env.clone();
        env.insert(MARK.into(), mark);
        let (program, cwd) = (self.program.clone(), self.cwd.clone());
        let (view, streams) = (self.view.clone(), Streams::Output);
        Order { program, cwd, env, nofile, view, streams, keeper: None }
    }
}

impl Sandbox {
    /// Runs a command until it ends, times out, or `cancel` fires. `on_output` gets merged standard
    /// output and error as they arrive; the command waits while it works. When this returns, all
    /// processes of the command have ended. Dropping the future ends the command, too.
    pub async fn run(
        &self,
        command: &Command,
        cancel: &CancellationToken,
        mut on_output: impl FnMut(&[u8]) + Send,
    ) -> Result<Ended, SandboxError> {
        let mut joined = tokio::select! {
            joined = self.world.join(self, command) => joined,
            // The command is then cancelled before it begins.
            () = cancel.cancelled() => None,
        };
        let keeper = |joined: &Option<Joined>| joined.as_ref().map(|joined| joined.keeper);
        let mut waiting = self.world.next.take(command, keeper(&joined));
        let mut built = 0;
        loop {
            let had_waited = waiting.is_some();
            let (child, mark) = match waiting.take() {
                Some(waiting) => waiting,
                None => (self.helper().spawn().map_err(|e| self.not_started(&e))?, new_mark()),
            };
            let keeper = keeper(&joined);
            let order = Order { keeper, ..command.order(self.nofile, mark) };
            let mut phase = Phase::Begins(Start { sandbox: self, command, keeper });
            let limit = command.timeout;
            let ended =
                watch_to_end(child, &order, &mut phase, limit, cancel, &mut on_output).await;
            // The others of the group have not begun either: they wait until this command is ready.
            let may_retry = matches!(phase, Phase::Begins(_));
            match (&ended, keeper) {
                (Err(SandboxError::KeeperLost(_)), Some(keeper)) if may_retry => {
                    self.world.lost(keeper).await;
                    joined = None;
                }
                // A path may be gone that was there when the world was planned. In a group others run already, and what
                // they changed must not count as it was before.
                (Err(SandboxError::NotStarted(why)), _)
                    if command.group.is_alone() && built < BUILDS && is_of_a_change(why) =>
                {
                    built += 1;
                }
                // The helper or a stage may have been killed while it waited.
                (Err(_), _) if may_retry && had_waited => {}
                _ => return ended,
            }
        }
    }

    /// Probes the confinement of commands on this machine: runs an empty command in namespaces or,
    /// if these cannot be created, with Landlock alone.
    pub async fn probe(&self) -> Confinement {
        match self.probe_in(Isolation::Namespaces).await {
            Ok(confinement) => confinement,
            Err(reason) => {
                let degraded = self.probe_in(Isolation::LandlockOnly).await;
                degraded.unwrap_or_else(Confinement::none).without_world(reason)
            }
        }
    }

    async fn probe_in(&self, isolation: Isolation) -> Result<Confinement, String> {
        let env = BTreeMap::from([("PATH".to_owned(), PROBE_PATH.to_owned())]);
        let scope = crate::scope::Scope::default();
        let around = ViewInputs { isolation, ..ViewInputs::new(&scope, UserPaths { env: &env }) };
        let view = Some(CommandView::new(&around));
        let (program, cwd) = (":".to_owned(), PathBuf::from("/"));
        let command =
            Command { program, cwd, env, timeout: PROBE, view, group: StartGroup::default() };
        match self.run(&command, &CancellationToken::new(), |_| {}).await {
            Ok(ended) => ended.confinement.ok_or_else(|| NOT_REPORTED.to_owned()),
            Err(SandboxError::NotStarted(reason)) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The command line of the helper; the output of the command goes to its standard error.
    fn helper(&self) -> tokio::process::Command {
        self.process(HELPER_ARG)
    }

    /// The command line of a keeper, which is killed when it is dropped. It says nothing on standard error.
    fn keeper(&self) -> tokio::process::Command {
        let mut keeper = self.process(KEEPER_ARG);
        keeper.stderr(Stdio::null()).kill_on_drop(true);
        keeper
    }

    fn process(&self, argument: &str) -> tokio::process::Command {
        let mut process = tokio::process::Command::new(&self.helper);
        process.arg0(OWN_NAME).arg(argument).env_clear().current_dir("/");
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        process
    }

    /// The command line of a helper that starts these stages at once, and then waits for its order.
    fn helper_ahead(&self, mark: &str, stages: &Stages) -> tokio::process::Command {
        let mut helper = self.helper();
        helper.arg(stages.line().trim_end()).env(MARK, mark);
        helper
    }

    fn not_started(&self, error: &std::io::Error) -> SandboxError {
        if error.kind() == std::io::ErrorKind::WouldBlock {
            return SandboxError::NotStarted(NONE_LEFT.into());
        }
        SandboxError::NotStarted(format!("{}: {error}", self.helper.display()))
    }
}

/// Sends the request to a helper, and watches the command to its end. The pipe of the request stays open, because
/// closing it tells the helper to end the command.
async fn watch_to_end(
    mut child: Child,
    order: &Order,
    phase: &mut Phase<'_>,
    limit: Duration,
    cancel: &CancellationToken,
    on_output: impl FnMut(&[u8]) + Send,
) -> Result<Ended, SandboxError> {
    let (Some(mut control), Some(reports)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(SandboxError::NotStarted("its pipes are missing".into()));
    };
    let (line, output, deadline) = (order.line(), child.stderr.take(), Instant::now() + limit);
    // A helper that cannot be written to is dead, and its missing report says so.
    let is_sent = tokio::select! {
        sent = timeout_at(deadline, control.write_all(line.as_bytes())) => matches!(sent, Ok(Ok(()))),
        () = cancel.cancelled() => false,
    };
    let control = is_sent.then_some(control);
    let reports = BufReader::new(reports.take(messages::MOST_BYTES)).lines();
    let in_background = order.view.as_ref().is_some_and(|view| view.in_background);
    let at_once = if in_background { WITHOUT_PAUSE } else { u64::MAX };
    let watch = Watch { control, reports, output, on_output, phase, at_once, next_read: None };
    if let Some((report, ordered)) = watch.until_report((deadline, limit), cancel).await {
        return finish(child, report, ordered).await;
    }
    let lost = lost(child, &order.mark()).await;
    Err(match phase {
        Phase::Begins(_) | Phase::Waits(_) | Phase::Ends { begun: false, .. } => {
            SandboxError::NotStarted(KILLED_BEFORE.into())
        }
        Phase::Runs | Phase::Ends { .. } | Phase::Undoes(..) => lost,
    })
}

/// A running command at the host.
struct Watch<'a, 'b, F> {
    control: Option<ChildStdin>,
    reports: Lines<BufReader<Take<ChildStdout>>>,
    output: Option<ChildStderr>,
    on_output: F,
    phase: &'a mut Phase<'b>,
    /// How many more bytes are read without a pause.
    at_once: u64,
    next_read: Option<Instant>,
}

/// What starts a command.
#[derive(Clone, Copy)]
struct Start<'a> {
    sandbox: &'a Sandbox,
    command: &'a Command,
    keeper: Option<Process>,
}

/// The state of a command.
#[derive(Clone, Copy)]
enum Phase<'a> {
    /// Its helper records the state of the guarded paths.
    Begins(Start<'a>),
    /// Its helper is ready and waits for those of the group.
    Waits(Start<'a>),
    Runs,
    /// It was asked to end, perhaps before it began.
    Ends {
        why: Outcome,
        since: Instant,
        begun: bool,
    },
    /// All its processes have ended, and its helper undoes changes of guarded files.
    Undoes(Option<Outcome>, Instant),
}

impl<F: FnMut(&[u8])> Watch<'_, '_, F> {
    /// Reads output until the helper reports; `None` if the helper ended without a report. The command must begin before
    /// the deadline, and end within the limit after it began.
    async fn until_report(
        mut self,
        (mut deadline, limit): (Instant, Duration),
        cancel: &CancellationToken,
    ) -> Option<(Report, Option<Outcome>)> {
        let mut buffer = vec![0; CHUNK];
        let line = loop {
            let patience = match *self.phase {
                Phase::Begins(_) | Phase::Waits(_) | Phase::Runs => deadline,
                Phase::Ends { since, .. } => since + HELPER_GRACE,
                Phase::Undoes(_, since) => since + UNDO_TIME,
            };
            let can_end = matches!(*self.phase, Phase::Begins(_) | Phase::Waits(_) | Phase::Runs);
            tokio::select! {
                line = self.reports.next_line() => match line {
                    Ok(Some(line)) if self.on_line(&line) => {}
                    line => break line,
                },
                read = read(&mut self.output, self.next_read, &mut buffer) => self.take(read, &buffer),
                () = all_ready(*self.phase) => {
                    self.begin().await;
                    deadline = Instant::now() + limit;
                }
                () = cancel.cancelled(), if can_end => self.end(Outcome::Cancelled),
                () = sleep_until(patience) => match can_end {
                    true => self.end(Outcome::TimedOut),
                    false => return None,
                },
            }
        };
        self.drain(&mut buffer).await;
        let report = Report::parse(&line.ok()??)?;
        let end_request = match *self.phase {
            Phase::Ends { why, .. } => Some(why),
            Phase::Undoes(why, _) => why,
            Phase::Begins(_) | Phase::Waits(_) | Phase::Runs => None,
        };
        Some((report, end_request))
    }

    /// Handles a line of the helper. Returns whether it was a message before the report.
    fn on_line(&mut self, line: &str) -> bool {
        *self.phase = match (line, *self.phase) {
            (messages::PREPARED, Phase::Begins(start)) => Phase::Waits(start),
            (messages::PREPARED, phase) => phase,
            (messages::ENDED, Phase::Ends { why, .. }) => Phase::Undoes(Some(why), Instant::now()),
            (messages::ENDED, _) => Phase::Undoes(None, Instant::now()),
            _ => return false,
        };
        true
    }

    async fn begin(&mut self) {
        let before = std::mem::replace(self.phase, Phase::Runs);
        if let Some(control) = &mut self.control {
            let line = format!("{}\n", messages::BEGIN);
            // A helper that cannot be written to is dead, and its missing report says so.
            let _ = control.write_all(line.as_bytes()).await;
        }
        if let Phase::Waits(Start { sandbox, command, keeper }) = before {
            command.group.begin();
            sandbox.world.next.start(sandbox, command, keeper);
        }
    }

    /// Tells the helper to end the command, by closing its pipe.
    fn end(&mut self, why: Outcome) {
        self.control = None;
        let begun = matches!(self.phase, Phase::Runs);
        *self.phase = Phase::Ends { why, since: Instant::now(), begun };
    }

    fn take(&mut self, read: usize, buffer: &[u8]) {
        match read {
            0 => self.output = None,
            n => {
                self.at_once = self.at_once.saturating_sub(n as u64);
                self.next_read = (self.at_once == 0).then(|| Instant::now() + PAUSE);
                (self.on_output)(&buffer[..n]);
            }
        }
    }

    async fn drain(&mut self, buffer: &mut [u8]) {
        let end = Instant::now() + DRAIN;
        while self.output.is_some() && Instant::now() < end {
            let Ok(n) = timeout(DRAIN, read(&mut self.output, None, buffer)).await else {
                return;
            };
            self.take(n, buffer);
        }
    }
}

/// Resolves when a ready command may start; pending for ever in every other phase.
async fn all_ready(phase: Phase<'_>) {
    match phase {
        Phase::Waits(start) => start.command.group.ready().await,
        _ => std::future::pending().await,
    }
}

/// The number of bytes read, not before this moment; 0 at the end of the output. Pending for ever after that.
async fn read(output: &mut Option<ChildStderr>, from: Option<Instant>, buffer: &mut [u8]) -> usize {
    if let Some(from) = from {
        sleep_until(from).await;
    }
    match output {
        Some(pipe) => pipe.read(buffer).await.unwrap_or(0),
        None => std::future::pending().await,
    }
}

async fn finish(
    mut child: Child,
    mut report: Report,
    ordered: Option<Outcome>,
) -> Result<Ended, SandboxError> {
    if let Some(why) = report.blind.take() {
        end_for(&child, why, &mut report).await;
    }
    if report.stuck.is_empty() {
        // It exits right after its report; its status adds nothing.
        let _ = timeout(DRAIN, child.wait()).await;
    }
    if let Some(reason) = report.failed {
        let is_lost = report.keeper_lost;
        let why = if is_lost { SandboxError::KeeperLost } else { SandboxError::NotStarted };
        return Err(why(reason));
    }
    let outcome = match (report.ordered, ordered, report.signal) {
        _ if report.ended_at_limit => Outcome::AtLimit,
        (true, Some(why), _) => why,
        (_, _, Some(signal)) => Outcome::Signalled(signal),
        _ => Outcome::Exited(report.code.unwrap_or(0)),
    };
    let Report { ended: left_over, stuck, mut undone, lost, limit, confinement, .. } = report;
    if report.world_killed {
        undone.push(WORLD_KILLED.to_owned());
    }
    Ok(Ended { outcome, left_over, stuck, undone, lost, limit, confinement })
}

/// Ends the descendants of a helper that is alive but cannot read `/proc`.
async fn end_for(child: &Child, why: String, report: &mut Report) {
    let root = child.id().and_then(|pid| i32::try_from(pid).ok());
    let work = move || root.map(|root| procfs::end_below(root, HELPER_GRACE));
    match tokio::task::spawn_blocking(work).await {
        Ok(Some((ended, stuck))) => {
            report.ended.extend(ended);
            report.stuck.extend(stuck);
        }
        Ok(None) | Err(_) => report.stuck.push(why),
    }
}

/// Kills a helper that ended without a report or does not answer, and all processes with its mark.
async fn lost(mut child: Child, mark: &str) -> SandboxError {
    // An error means that the helper has exited already.
    let _ = child.kill().await;
    let mark = format!("{}={mark}", MARK);
    let end = move || procfs::end_marked(&mark, HELPER_GRACE);
    let (ended, stuck) = tokio::task::spawn_blocking(end).await.unwrap_or_default();
    SandboxError::HelperLost { ended, stuck }
}
