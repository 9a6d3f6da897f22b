//! The commands of a Pod that run in the background: each outlives the call that starts it, and ends by itself, by
//! BashStop, by a person, or with its Pod. Of the scope it writes only the directories that its call named: the other
//! commands of the Pod read there meanwhile, and they are not lent as long as it runs.

mod output;

use crate::protocol::{JobInfo, PodName, now_ms};
use crate::sandbox::{Command, Ended, KeptNetwork, Sandbox, SandboxError};
use crate::scope::{Permission, Rule};
use crate::text::SafeText;
use crate::tools::fault::Fault;
use crate::tools::jobs::output::JobOutput;
use crate::tools::{Context, Output, bash, input};
use futures_util::future::{BoxFuture, join_all};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

/// How many commands of one Pod run in the background at the same time at most.
pub const MOST: usize = 8;
/// How many that have ended are listed.
const LISTED: usize = 8;
/// A command in the background has no time limit; this is one that hardly any command reaches.
pub const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);
const CLOSED: &str = "the pod is being stopped, so nothing starts in the background";
/// The most directories that a sentence names, and characters of each.
const NAMED: usize = 5;
const PATH: usize = 200;
/// One that starts, in a sentence.
const STARTS: &str = "a command that starts in the background";
/// The end of the summary of a call that started one.
pub const RUNS: &str = " runs in the background";
/// Characters of a command line in a sentence.
const LABEL: usize = 80;
/// The same where a person decides what may run beside it.
const IN_REQUEST: usize = 1000;

pub const OUTPUT: &str = "Reads what a command in the background wrote (Bash with background: true): from \
where the last call for it stopped, or from a byte offset; the result names the next one. It also says whether the \
command still runs, or how it ended. You are told when one ends, so do not wait for that with this tool.";
pub const STOP: &str = "Ends a command in the background, with everything that it started, and returns the end \
of its output.";

/// What the host records of a Pod's commands in the background.
pub trait JobRecords: Send + Sync {
    /// Records that a command starts. Returns its number, which no earlier one of the Pod has; the error is a sentence.
    fn begins(&self, command: String) -> BoxFuture<'static, Result<u32, String>>;
    /// Records that it has ended, and what the model is told, if it is.
    fn ended(&self, number: u32, notice: Option<JobNotice>) -> BoxFuture<'static, ()>;
}

/// What the model is told of a command that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobNotice {
    pub message: String,
    /// Whether this starts a run of an idle Pod.
    pub wakes: bool,
}

/// Whose request ended a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedBy {
    Model,
    Person,
    /// The Pod was stopped.
    Stop,
    /// Another Pod is to write what it wrote.
    Lent,
    /// The host ended. This is recorded only where something was undone: else the next host says that the command ended
    /// with this one.
    Host,
}

/// The commands of one Pod in the background. Clones are the same.
#[derive(Clone)]
pub struct Jobs(Arc<Inner>);

struct Inner {
    records: Arc<dyn JobRecords>,
    state: Mutex<State>,
    running: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    /// In the order of their numbers.
    jobs: Vec<Arc<Job>>,
    /// What those are to write that have a place and no number yet.
    starting: Vec<Arc<[PathBuf]>>,
    /// The requests that wait until those have ended which write there.
    waiting: Vec<Arc<Waiting>>,
    /// Whether none can start, because the Pod is stopped or the host ends.
    is_closed: bool,
}

/// A command in the background.
#[derive(Debug)]
struct Job {
    number: u32,
    command: String,
    /// The directories of the scope that it writes.
    writes: Arc<[PathBuf]>,
    since: u64,
    began: Instant,
    output: Mutex<JobOutput>,
    end: CancellationToken,
    ended_by: Mutex<Option<EndedBy>>,
    result: watch::Sender<Option<Finished>>,
    /// The network of the Pod's commands when it started: later ones may share another.
    network: OnceLock<Option<KeptNetwork>>,
}

/// How a command in the background ended.
#[derive(Clone, Debug)]
struct Finished {
    at: u64,
    /// As that of a call: `Exit 1 after 3.0 s`.
    summary: String,
    /// Remarks of yoi, and the end of the output.
    content: String,
    /// Why it did not start.
    not_started: Option<String>,
    /// Whether something that it made was moved away.
    has_undone: bool,
}

/// A place for a command that starts, and what it is to write.
struct Place(Jobs, Arc<[PathBuf]>);

/// A request that waits until nothing writes in these regions; none starts there as long as this lives.
pub struct Wait(Jobs, Arc<Waiting>);

struct Waiting {
    regions: Vec<Rule>,
    /// A sentence.
    what: String,
}

#[derive(Deserialize, JsonSchema)]
pub struct OutputInput {
    /// What Bash returned: job-1.
    id: String,
    /// The first byte to read; without it, what is new.
    offset: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub struct StopInput {
    /// What Bash returned: job-1.
    id: String,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Jobs").field(&*self.0.running.borrow()).finish()
    }
}

impl Jobs {
    pub fn new(records: Arc<dyn JobRecords>) -> Self {
        let (state, running) = (Mutex::default(), watch::Sender::new(0));
        Self(Arc::new(Inner { records, state, running }))
    }

    /// The number of those that run.
    pub fn running(&self) -> watch::Receiver<usize> {
        self.0.running.subscribe()
    }

    /// Whether any runs.
    pub fn any_runs(&self) -> bool {
        self.state().jobs.iter().any(|job| job.runs())
    }

    /// Those that run, each with its command line: `job-1 (npm run dev), which writes /w/dist`.
    pub fn named(&self) -> Vec<String> {
        let state = self.state();
        let running = state.jobs.iter().filter(|job| job.runs());
        running.map(|job| job.labelled(IN_REQUEST) + &job.writing(", which writes ")).collect()
    }

    /// Those that run and write in the scope: `job-1 (npm run dev) writes /w/dist`.
    pub fn writers(&self) -> Vec<String> {
        let state = self.state();
        let writers = state.jobs.iter().filter(|job| job.runs() && !job.writes.is_empty());
        writers.map(|job| job.label() + &job.writing(" writes ")).collect()
    }

    /// The directories of the scope that those write which run or start.
    pub fn written(&self) -> Vec<PathBuf> {
        self.state().written().flat_map(|(_, dirs)| dirs.to_vec()).collect()
    }

    /// Those that may write in one of these regions, each as `job-1 (npm run dev)`.
    pub fn that_write_in(&self, regions: &[Rule]) -> Vec<String> {
        let state = self.state();
        let writing = state.written_in(regions);
        writing.map(|(job, _)| job.map_or_else(|| STARTS.to_owned(), |job| job.label())).collect()
    }

    /// Resolves when none writes in the scope.
    pub async fn none_writes(&self) {
        self.none_writes_in(&[Rule::new("/", Permission::Write)], None).await;
    }

    /// Resolves when none may write in one of these regions; `end` ends those that do.
    pub async fn none_writes_in(&self, regions: &[Rule], end: Option<EndedBy>) {
        let mut running = self.running();
        loop {
            let is_written = {
                let state = self.state();
                let writing = state.written_in(regions).filter_map(|(job, _)| job);
                end.iter().for_each(|by| writing.clone().for_each(|job| job.tell_to_end(*by)));
                state.written_in(regions).next().is_some()
            };
            if !is_written {
                return;
            }
            // The sender is in the same place as the receiver.
            let _ = running.changed().await;
        }
    }

    /// Begins the wait of a request for what writes in these regions, as this sentence says.
    pub fn wait(&self, regions: Vec<Rule>, what: String) -> Wait {
        let waiting = Arc::new(Waiting { regions, what });
        self.state().waiting.push(waiting.clone());
        self.count();
        Wait(self.clone(), waiting)
    }

    /// The requests that wait, each in a sentence.
    pub fn waiting(&self) -> Vec<String> {
        self.state().waiting.iter().map(|waiting| waiting.what.clone()).collect()
    }

    /// Those that run in another network than this one of a command, named as by [`Jobs::named`].
    pub fn apart(&self, network: Option<KeptNetwork>) -> Vec<String> {
        let state = self.state();
        let apart = state.jobs.iter().filter(|job| job.runs() && !job.shares(network));
        apart.map(|job| job.label()).collect()
    }

    /// All that run, and the newest that have ended.
    pub fn list(&self, pod: &PodName) -> Vec<JobInfo> {
        self.state().jobs.iter().map(|job| job.info(pod)).collect()
    }

    /// Whether the one with this number runs.
    pub fn runs(&self, number: u32) -> bool {
        self.state().jobs.iter().any(|job| job.number == number && job.runs())
    }

    /// Ends one, and returns it when it has ended; the error is a sentence.
    pub async fn stop(&self, id: &str, pod: &PodName, by: EndedBy) -> Result<JobInfo, String> {
        let job = self.find(id)?;
        if !job.runs() {
            return Err(job.has_ended());
        }
        job.finish(by).await;
        Ok(job.info(pod))
    }

    /// Ends all of them; resolves when they have ended. None starts until [`Jobs::open`].
    pub async fn close(&self, by: EndedBy) {
        let jobs = {
            let mut state = self.state();
            state.is_closed = true;
            state.jobs.clone()
        };
        join_all(jobs.iter().map(|job| job.finish(by))).await;
    }

    /// Lets them start again.
    pub fn open(&self) {
        self.state().is_closed = false;
    }

    /// Starts a command. When this resolves it runs, or the result says why not.
    pub async fn start(
        &self,
        command: Command,
        sandbox: Sandbox,
        ctx: &Context,
        cancel: &CancellationToken,
    ) -> Result<Output, Fault> {
        let writes = command.view.iter().flat_map(|view| view.writes.clone()).collect();
        let place = self.place(writes).map_err(Fault::Argument)?;
        let (group, world) = (command.group.clone(), sandbox.world.clone());
        let (started, starts) = oneshot::channel();
        // It belongs to the Pod from now on, and not to the call, which may be dropped.
        tokio::spawn(self.clone().run(command, sandbox, ctx.clone(), place, started));
        let job = starts.await.map_err(|_| Fault::Internal("the command was lost".into()))??;
        tokio::select! {
            () = group.started() => {}
            () = job.ended() => {}
            () = cancel.cancelled() => job.finish(EndedBy::Model).await,
        }
        job.network.get_or_init(|| world.network());
        if let Some(finished) = job.result.borrow().clone() {
            if let Some(why) = finished.not_started {
                return Err(Fault::Execution(why));
            }
            if cancel.is_cancelled() {
                return Err(Fault::cancelled());
            }
        }
        let id = job.id();
        let path = job.output().path().display().to_string();
        let writing = job.writing(" and in ");
        Ok(Output::with(
            format!("{id}{RUNS}"),
            format!(
                "[BashOutput reads what {id} writes, BashStop ends it; you are told when it ends. Its output: {path}. It has \
                 no time limit, and ends with this pod. It reads your scope, and writes only below /tmp{writing}.]\n"
            ),
        ))
    }

    /// Lists a command that starts, unless none may start any more: whoever ends all of them ends this one, too.
    fn add(&self, job: Arc<Job>) -> bool {
        let mut state = self.state();
        if state.is_closed {
            return false;
        }
        state.jobs.push(job);
        let ended = state.jobs.iter().filter(|job| !job.runs()).count();
        let mut unlisted = ended.saturating_sub(LISTED);
        state.jobs.retain(|job| {
            let is_listed = job.runs() || unlisted == 0;
            unlisted -= usize::from(!is_listed);
            is_listed
        });
        true
    }

    /// Records and lists a command, hands it to the call that starts it, and watches it to its end.
    async fn run(
        self,
        command: Command,
        sandbox: Sandbox,
        ctx: Context,
        place: Place,
        started: oneshot::Sender<Result<Arc<Job>, Fault>>,
    ) {
        let job = match self.begin(&command, &ctx, place.1.clone()).await {
            Ok(job) => job,
            // The call may be over.
            Err(why) => return drop(started.send(Err(why))),
        };
        drop(place);
        self.count();
        if started.send(Ok(job.clone())).is_err() {
            job.end.cancel();
        }
        let mut cut = ctx.credentials.cut();
        let write = |bytes: &[u8]| job.output().push(&cut.push(bytes));
        let ended = sandbox.run(&command, &job.end, write).await;
        job.output().push(&cut.finish());
        let finished = job.finished(ended, &ctx);
        // The result of the call that starts it says what stopped an unstarted one.
        let has_started = command.group.has_started();
        let notice = has_started.then(|| job.notice(&finished)).flatten();
        if job.ended_by() != Some(EndedBy::Host) || !has_started || notice.is_some() {
            self.0.records.ended(job.number, notice).await;
        }
        job.result.send_replace(Some(finished));
        self.count();
    }

    async fn begin(
        &self,
        command: &Command,
        ctx: &Context,
        writes: Arc<[PathBuf]>,
    ) -> Result<Arc<Job>, Fault> {
        let number = self.0.records.begins(command.program.clone()).await;
        let number = number.map_err(Fault::Execution)?;
        let job = Arc::new(Job {
            number,
            command: command.program.clone(),
            writes,
            since: now_ms(),
            began: Instant::now(),
            output: Mutex::new(JobOutput::new(&ctx.outputs, &id_of(number))),
            end: CancellationToken::new(),
            ended_by: Mutex::default(),
            result: watch::Sender::new(None),
            network: OnceLock::new(),
        });
        if self.add(job.clone()) {
            return Ok(job);
        }
        self.0.records.ended(number, None).await;
        Err(Fault::Argument(CLOSED.into()))
    }

    fn place(&self, writes: Arc<[PathBuf]>) -> Result<Place, String> {
        let mut state = self.state();
        let running: Vec<String> =
            state.jobs.iter().filter(|job| job.runs()).map(|job| job.id()).collect();
        if state.is_closed {
            return Err(CLOSED.into());
        }
        if running.len() + state.starting.len() >= MOST {
            return Err(format!(
                "{MOST} commands of this pod run in the background, which is the most ({}): end one with BashStop first",
                running.join(", ")
            ));
        }
        let meets =
            |dir: &PathBuf, other: &PathBuf| dir.starts_with(other) || other.starts_with(dir);
        for (job, dirs) in state.written() {
            if let Some(dir) = dirs.iter().find(|dir| writes.iter().any(|own| meets(own, dir))) {
                return Err(format!(
                    "writes: {} is written by {} already: name another directory, or end that one with BashStop",
                    dir.display(),
                    job.map_or_else(|| STARTS.to_owned(), |job| job.label())
                ));
            }
        }
        if let Some(waiting) = state.waiting.iter().find(|other| overlap(&writes, &other.regions)) {
            return Err(format!("writes: {}: name another directory", waiting.what));
        }
        state.starting.push(writes.clone());
        Ok(Place(self.clone(), writes))
    }

    fn count(&self) {
        let runs = || self.state().jobs.iter().filter(|job| job.runs()).count();
        // What they write may have changed, too.
        self.0.running.send_modify(|running| *running = runs());
    }

    fn find(&self, id: &str) -> Result<Arc<Job>, String> {
        let state = self.state();
        let found = state.jobs.iter().find(|job| job.id() == id.trim()).cloned();
        found.ok_or_else(|| {
            let runs: Vec<String> =
                state.jobs.iter().filter(|job| job.runs()).map(|job| job.id()).collect();
            let now = match runs.is_empty() {
                true => "none runs now".to_owned(),
                false => format!("{} run(s) now", runs.join(", ")),
            };
            format!("no command in the background has the id {}: {now}", SafeText::quoted(id))
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }
}

#[cfg(test)]
impl Jobs {
    /// Starts a command without a process, which runs until it is told to end.
    pub(crate) fn pretend(&self, number: u32, writes: Vec<PathBuf>) -> Result<(), String> {
        let place = self.place(writes.into())?;
        let job = Arc::new(Job {
            number,
            command: "true".into(),
            writes: place.1.clone(),
            since: 0,
            began: Instant::now(),
            output: Mutex::new(JobOutput::new(Path::new("/"), &id_of(number))),
            end: CancellationToken::new(),
            ended_by: Mutex::default(),
            result: watch::Sender::new(None),
            network: OnceLock::new(),
        });
        self.add(job.clone());
        drop(place);
        let jobs = self.clone();
        tokio::spawn(async move {
            job.end.cancelled().await;
            let (summary, content) = (String::new(), String::new());
            let finished =
                Finished { at: 0, summary, content, not_started: None, has_undone: false };
            job.result.send_replace(Some(finished));
            jobs.count();
        });
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let own = state.starting.iter().position(|writes| Arc::ptr_eq(writes, &self.1));
        own.map(|own| state.starting.remove(own));
        drop(state);
        self.0.count();
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.state().waiting.retain(|waiting| !Arc::ptr_eq(waiting, &self.1));
        self.0.count();
    }
}

impl State {
    /// Of [`State::written`], those that write in one of these regions.
    fn written_in(
        &self,
        regions: &[Rule],
    ) -> impl Iterator<Item = (Option<&Job>, &[PathBuf])> + Clone {
        self.written().filter(|(_, dirs)| overlap(dirs, regions))
    }

    /// What each writes in the scope that runs or starts; one that starts has no number yet.
    fn written(&self) -> impl Iterator<Item = (Option<&Job>, &[PathBuf])> + Clone {
        let running = self.jobs.iter().filter(|job| job.runs());
        let running = running.map(|job| (Some(&**job), &*job.writes));
        let starting = self.starting.iter().map(|writes| (None, &**writes));
        running.chain(starting).filter(|(_, dirs)| !dirs.is_empty())
    }
}

impl Job {
    fn id(&self) -> String {
        id_of(self.number)
    }

    fn label(&self) -> String {
        self.labelled(LABEL)
    }

    fn labelled(&self, characters: usize) -> String {
        format!("{} ({})", self.id(), SafeText::brief(&self.command, characters))
    }

    /// What it writes in the scope, after these words; empty if nothing.
    fn writing(&self, words: &str) -> String {
        let quoted = |dir: &PathBuf| {
            SafeText::quoted(&SafeText::brief(dir.display().to_string(), PATH)).into_string()
        };
        let dirs: Vec<String> = self.writes.iter().take(NAMED).map(quoted).collect();
        let more = match self.writes.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        if dirs.is_empty() { String::new() } else { format!("{words}{}{more}", dirs.join(", ")) }
    }

    fn runs(&self) -> bool {
        self.result.borrow().is_none()
    }

    /// Whether it is in this network.
    fn shares(&self, network: Option<KeptNetwork>) -> bool {
        network.is_some() && self.network.get().is_none_or(|own| *own == network)
    }

    fn has_ended(&self) -> String {
        let summary = self.result.borrow().as_ref().map(|finished| finished.summary.clone());
        format!("{} has ended: {}", self.id(), summary.unwrap_or_default())
    }

    fn output(&self) -> MutexGuard<'_, JobOutput> {
        lock(&self.output)
    }

    fn ended_by(&self) -> Option<EndedBy> {
        *lock(&self.ended_by)
    }

    async fn ended(&self) {
        // The sender is in the same place as the receiver.
        let _ = self.result.subscribe().wait_for(Option::is_some).await;
    }

    /// Ends it; the first reason counts.
    async fn finish(&self, by: EndedBy) {
        self.tell_to_end(by);
        self.ended().await;
    }

    /// Tells it to end.
    fn tell_to_end(&self, by: EndedBy) {
        if self.runs() {
            lock(&self.ended_by).get_or_insert(by);
            self.end.cancel();
        }
    }

    fn info(&self, pod: &PodName) -> JobInfo {
        let finished = self.result.borrow().clone();
        JobInfo {
            pod: pod.clone(),
            id: self.id(),
            command: self.command.clone(),
            writes: self.writes.to_vec(),
            since: self.since,
            ended_at: finished.as_ref().map(|finished| finished.at),
            outcome: finished.map(|finished| finished.summary),
            last_line: self.output().last_line(),
        }
    }

    fn finished(&self, ended: Result<Ended, SandboxError>, ctx: &Context) -> Finished {
        let took = self.began.elapsed();
        let end = self.output().finish();
        let has_undone = ended.as_ref().is_ok_and(|ended| !ended.undone.is_empty());
        let is_unstarted =
            matches!(ended, Err(SandboxError::NotStarted(_) | SandboxError::KeeperLost(_)));
        let output = match &ended {
            Ok(ended) => bash::ended_in_background(ended, took, end, ctx),
            Err(_) if is_unstarted && self.end.is_cancelled() => {
                Output::error("cancelled before it did anything")
            }
            Err(error) => Output { content: end, ..Output::error(error.to_string()) },
        };
        let not_started = is_unstarted.then(|| output.summary.clone());
        let content = output.content.unwrap_or_default();
        Finished { at: now_ms(), summary: output.summary, content, not_started, has_undone }
    }

    /// What the model is told; nothing where it ended the command itself.
    fn notice(&self, finished: &Finished) -> Option<JobNotice> {
        let by = self.ended_by();
        let why = match by {
            None => "ended",
            Some(EndedBy::Host) if finished.has_undone => {
                "was ended because the host of this pod ended, and was not started again"
            }
            Some(EndedBy::Model | EndedBy::Host) => return None,
            Some(EndedBy::Person) => "was ended by a person",
            Some(EndedBy::Stop) => "was ended because this pod was stopped",
            Some(EndedBy::Lent) => "was ended because another pod is to write what it wrote",
        };
        let Finished { summary, content, .. } = finished;
        let lines: String =
            SafeText::lines(content).lines().map(|line| format!("\n> {line}")).collect();
        let end =
            if lines.is_empty() { String::new() } else { format!(". Its output ends so:{lines}") };
        let message = format!("{} {why} in the background: {summary}{end}", self.label());
        Some(JobNotice { message, wakes: by.is_none() })
    }
}

/// The message about a command that was running when the host ended.
pub fn ended_with_host(number: u32, command: &str) -> String {
    let (id, command) = (id_of(number), SafeText::brief(command, LABEL));
    format!(
        "{id} ({command}) ended in the background when the host of this pod ended, and was not started again. BashOutput \
         reads what it wrote until then."
    )
}

/// Whether one of these directories, or something in it, lies in one of these regions.
fn overlap(dirs: &[PathBuf], regions: &[Rule]) -> bool {
    let mut dirs = dirs.iter().map(|dir| Rule::new(dir, Permission::Write));
    dirs.any(|dir| regions.iter().any(|region| region.overlaps(&dir)))
}

fn id_of(number: u32) -> String {
    format!("job-{number}")
}

/// BashOutput. Blocking.
pub fn read(arguments: &str, ctx: &Context, _: &CancellationToken) -> Result<Output, Fault> {
    let OutputInput { id, offset } = input::parse("BashOutput", arguments)?;
    let job = match ctx.jobs.find(&id) {
        Ok(job) => job,
        // One of an earlier host, or that is not listed any more.
        Err(why) => return output::of_former(&ctx.outputs, id.trim(), offset, why),
    };
    let state = if job.runs() {
        let apart = match ctx.pod_world.network() {
            network @ Some(_) if !job.shares(network) => {
                "; commands of now do not reach its ports, because the access of this pod changed since it started"
            }
            _ => "",
        };
        format!("{} runs, for {:.0} s so far{apart}", job.id(), job.began.elapsed().as_secs_f64())
    } else {
        job.has_ended()
    };
    let shown = job.output().shown(offset, !job.runs())?;
    Ok(Output::with(state, shown))
}

/// BashStop.
pub async fn stop(arguments: &str, ctx: &Context) -> Result<Output, Fault> {
    let StopInput { id } = input::parse("BashStop", arguments)?;
    let job = ctx.jobs.find(&id).map_err(Fault::Argument)?;
    if !job.runs() {
        return Err(Fault::Argument(job.has_ended()));
    }
    job.finish(EndedBy::Model).await;
    let finished = job.result.borrow().clone();
    let content = finished.map(|finished| finished.content).unwrap_or_default();
    let mut output = Output::line(format!("{} is ended", job.id()));
    output.content = Some(content).filter(|content| !content.is_empty());
    Ok(output)
}

/// The file of the output of the command with this id.
pub(crate) fn path_of(outputs: &Path, id: &str) -> std::path::PathBuf {
    outputs.join(format!("{id}.txt"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
