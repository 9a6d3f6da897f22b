//! The helper process: starts one command, in namespaces or with Landlock alone, and ends all its
//! processes when the command ends, when the host requests it, or when the host dies.

use crate::disk::remove_tree;
use crate::sandbox::access::pod_storage::{LayerLock, PodStorage};
use crate::sandbox::access::view::{CommandView, Grant, Network};
use crate::sandbox::access::{env, scripts};
use crate::sandbox::git::check::Snapshot;
use crate::sandbox::process::control_group::ControlGroup;
use crate::sandbox::process::enter::{GROUP, KEEPER, NETWORK};
use crate::sandbox::process::messages::{
    self, BEGIN, ENDED, Inner, JsonLine as _, Order, PREPARED, Report, Stages, Streams, WorldOrder,
};
use crate::sandbox::process::prepare::Prepared;
use crate::sandbox::process::reaper::{self, Reaper, Watchers};
use crate::sandbox::process::reexec::{self, ENTER_ARG, MARK};
use crate::sandbox::process::storage_watch::{Excess, StorageWatch};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tempfile::TempDir;

/// How often that is looked at which a command in the background makes in the scope.
const LOOK_AGAIN: Duration = Duration::from_secs(10);
/// The most sentences of all looks at one command: a command can make any number of files.
const MOST_SEEN: usize = 50;
const UNREADABLE: &str = "the order is not readable";

/// The main function of the helper, for the first argument [`crate::sandbox::process::reexec::HELPER_ARG`]. Reads
/// the order from standard input and writes the report to standard output; the command's output
/// goes to standard error. The word after that argument names the stages that start before there is an order.
pub fn helper_main(mut words: impl Iterator<Item = OsString>) -> ExitCode {
    // Fails only for a group leader, which a fresh child is not; a terminal is lost either way.
    let _ = rustix::process::setsid();
    let done = match words.next() {
        Some(stages) => ahead(&stages),
        None => at_once(),
    };
    done.unwrap_or_else(messages::fail)
}

/// The stages of a command start while its world is computed.
fn at_once() -> Result<ExitCode, String> {
    let mut order = reaper::read_order::<Order>().ok_or(UNREADABLE)?;
    let stages = order.stages();
    match (stages, order.view.take()) {
        (Some(stages), Some(view)) => {
            let started = Started::of(&order.mark(), &stages)?;
            in_a_world(order, view, started)
        }
        (_, view) => beside_others(order, view),
    }
}

/// The stages of a command start before there is an order, which may never come.
fn ahead(stages: &OsStr) -> Result<ExitCode, String> {
    let stages = stages.to_str().and_then(Stages::parse).ok_or("its stages are not readable")?;
    let mark = std::env::var(MARK).unwrap_or_default();
    let mut started = Started::of(&mark, &stages)?;
    let mut order = reaper::read_order::<Order>().ok_or(UNREADABLE)?;
    let fits = order.mark() == mark && order.stages() == Some(stages);
    let view = order.view.take().filter(|_| fits);
    let view = view.ok_or("its stages were started for another command")?;
    started.group.iter_mut().for_each(ControlGroup::begin);
    in_a_world(order, view, started)
}

/// The started stages of a command, which wait for its world. They end when this is dropped.
struct Started {
    child: Child,
    /// The pipe stays open, because closing it means: end everything.
    input: Arc<Mutex<Option<ChildStdin>>>,
    group: Option<ControlGroup>,
}

impl Started {
    fn of(mark: &str, stages: &Stages) -> Result<Self, String> {
        // Without a group the other limits still apply.
        let group = ControlGroup::make(stages.limits, &stages.pod);
        let child = enter(mark, stages, group.as_ref());
        let mut child = child.map_err(|error| error.to_string())?;
        let input = Arc::new(Mutex::new(child.stdin.take()));
        Ok(Self { child, input, group })
    }

    /// What to report if they do not wait any more. They close their output when they end, perhaps after a report.
    fn failed(&mut self) -> Option<Report> {
        let output = self.child.stdout.as_ref()?;
        let mut ended = [PollFd::new(output, PollFlags::IN)];
        // An error counts as still waiting: the missing report will say otherwise.
        let is_over = poll(&mut ended, Some(&Timespec::default())).is_ok_and(|ready| ready > 0);
        let ended = || Report::failed("its stages were killed while they waited".into());
        let report = |report: &Report| report.failed.is_some();
        is_over.then(|| self.report().filter(report).unwrap_or_else(ended))
    }

    /// Starts the command.
    fn send(&self, order: &WorldOrder) {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(input) = input.as_mut() {
            // A write error means that the stage has ended, which its missing report shows.
            let _ = input.write_all(order.line().as_bytes());
        }
    }

    /// Waits for their report; `None` if they ended before they could send one.
    fn report(&mut self) -> Option<Report> {
        let mut line = String::new();
        BufReader::new(self.child.stdout.take()?).read_line(&mut line).ok()?;
        Report::parse(&line)
    }

    fn end(&mut self) {
        close(&self.input);
        // The stage exits right after the first process; its status adds nothing to the report.
        let _ = self.child.wait();
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a command in a world of its own. Its first process watches it; this one waits for the report.
fn in_a_world(order: Order, view: CommandView, mut started: Started) -> Result<ExitCode, String> {
    let (private, limits, streams) = (view.private.clone(), view.limits, order.streams);
    let writes = !view.writes.is_empty();
    let watch = |private| {
        let end = started.input.clone();
        StorageWatch::start(private, limits, move || close(&end))
    };
    let storage = private.clone().map(watch).transpose()?;
    let (order, before, hold) = prepare(order, view)?;
    if let Some(report) = started.failed() {
        return Ok(report.send());
    }
    if !may_begin(streams) {
        drop(started);
        return Ok(not_begun().send());
    }
    // While it waited for the others of its group.
    if let Some(report) = started.failed() {
        return Ok(report.send());
    }
    // If the threads cannot start, the order is not sent, and the closed pipe ends the stage.
    let end = started.input.clone();
    reaper::thread(move || {
        reaper::wait_for_end();
        close(&end);
    })?;
    let before = Arc::new(before);
    let looks = writes.then(|| Looks::start(before.clone())).transpose()?;
    started.send(&order);
    let old_work = order.world.private.as_ref().map_or_else(Vec::new, PodStorage::old_work);
    // What is not removed when this process ends is left to the next command. Names never come back.
    let remove = move || old_work.iter().for_each(|dir| drop(remove_tree(dir)));
    // A command can run without this thread.
    let _ = reaper::thread(remove);
    let report = started.report();
    storage.iter().for_each(StorageWatch::stop);
    started.end();
    let seen = looks.map(Looks::stop).unwrap_or_default();
    let excess = storage.zip(hold.as_ref()).and_then(|(storage, hold)| storage.finish(hold));
    // The last look comes first: what it found may not be in order.
    let undone = undone_after(&before, streams).into_iter().chain(seen.sentences()).collect();
    let mut report = report.unwrap_or_else(watcher_killed);
    report.add_undone(undone);
    report.limit = started.group.as_ref().and_then(ControlGroup::limit_met).or(report.limit);
    if let Some(Excess { met, ended }) = excess {
        report.limit = Some(met);
        report.ended_at_limit = ended;
        let both = private.zip(hold.as_ref());
        if let Some(Err(error)) = both.map(|(private, hold)| private.make_measurable(hold)) {
            report.undone.push(format!(
                "the /tmp and caches of this Pod can be neither read nor emptied: {error}"
            ));
        }
    }
    Ok(report.send())
}

/// Tells the host that the state of all guarded paths is recorded, and waits for its answer.
fn may_begin(streams: Streams) -> bool {
    let answer = || {
        let mut line = String::new();
        // An unreadable answer counts as none.
        let _ = std::io::stdin().lock().read_line(&mut line);
        line.trim_end() == BEGIN
    };
    streams == Streams::Pipes || reexec::send(&format!("{PREPARED}\n")).is_ok() && answer()
}

/// The report of a command that was ended before it started.
fn not_begun() -> Report {
    Report { ordered: true, ..Report::default() }
}

/// The looks at what a command in the background makes in the scope while it runs, which may be for days.
struct Looks {
    /// Closed when the command is over.
    over: mpsc::Sender<()>,
    /// What was moved away, each a sentence.
    seen: mpsc::Receiver<Seen>,
}

/// What was moved away while a command ran, each a sentence, and how many more of them there were.
#[derive(Default)]
struct Seen(BTreeSet<String>, usize);

impl Seen {
    fn add(&mut self, sentences: Vec<String>) {
        for sentence in sentences {
            if self.0.len() < MOST_SEEN {
                self.0.insert(sentence);
            } else if !self.0.contains(&sentence) {
                self.1 += 1;
            }
        }
    }

    fn sentences(self) -> impl Iterator<Item = String> {
        let more = (self.1 > 0).then(|| format!("{} more were moved away while it ran", self.1));
        self.0.into_iter().chain(more)
    }
}

impl Looks {
    fn start(before: Arc<Snapshot>) -> Result<Self, String> {
        let ((over, is_over), (said, seen)) = (mpsc::channel(), mpsc::channel());
        reaper::thread(move || {
            let mut all = Seen::default();
            while is_over.recv_timeout(LOOK_AGAIN) == Err(RecvTimeoutError::Timeout) {
                all.add(before.undo_new());
            }
            // The helper waits for it.
            let _ = said.send(all);
        })?;
        Ok(Self { over, seen })
    }

    fn stop(self) -> Seen {
        drop(self.over);
        self.seen.recv().unwrap_or_default()
    }
}

/// The outcome of a command whose first process could not report.
fn watcher_killed() -> Report {
    let signal = Some(Signal::KILL.as_raw());
    Report { signal, ordered: true, world_killed: true, ..Report::default() }
}

/// Locks the layers of the Pod and computes the world.
fn prepare(
    order: Order,
    mut view: CommandView,
) -> Result<(WorldOrder, Snapshot, Option<LayerLock>), String> {
    let aside = view.in_background;
    let hold = view.private.as_mut().map(|private| private.lock_layers(aside)).transpose();
    let hold = hold.map_err(|error| format!("the caches of its Pod cannot be locked: {error}"))?;
    let (order, before) = Prepared::of(view).world(order)?;
    Ok((order, before, hold))
}

fn enter(mark: &str, stages: &Stages, group: Option<&ControlGroup>) -> std::io::Result<Child> {
    let mut stage = reexec::first(ENTER_ARG, mark);
    if stages.network == Network::On {
        stage.arg(NETWORK);
    }
    if let Some(keeper) = &stages.keeper {
        stage.arg(KEEPER).arg(keeper.line().trim_end());
    }
    if let Some(group) = group {
        stage.arg(GROUP).arg(group.dir());
    }
    stage.stdout(Stdio::piped()).stderr(std::io::stderr().as_fd().try_clone_to_owned()?).spawn()
}

fn close(input: &Mutex<Option<ChildStdin>>) {
    drop(input.lock().unwrap_or_else(PoisonError::into_inner).take());
}

/// What is started among the other processes of this machine.
enum Start {
    /// A command without walls.
    Open(Order),
    Confined(Box<Inner>, Snapshot),
}

/// Runs a command without namespaces: confined by Landlock and seccomp, or unconfined.
fn beside_others(mut order: Order, view: Option<CommandView>) -> Result<ExitCode, String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("this process cannot adopt orphans: {error}"))?;
    reaper::give_back_limit(order.nofile);
    let streams = order.streams;
    let temp = view.is_some().then(|| private_temp(&order.env)).flatten();
    let limits = view.as_ref().map(|view| view.limits).unwrap_or_default();
    let approved: Vec<_> = view.iter().flat_map(|view| view.scripts.clone()).collect();
    let mark = order.mark();
    let prepared = match view {
        None => Start::Open(order),
        Some(mut view) => {
            if let Some(temp) = &temp {
                env::lead_to(temp.path(), &mut order.env);
                view.grants.push(Grant::private(temp.path().to_owned()));
            }
            let (inner, before) = Prepared::of(view).alone(order)?;
            Start::Confined(Box::new(inner), before)
        }
    };
    if !may_begin(streams) {
        return Ok(not_begun().send());
    }
    let watchers = Watchers::start()?;
    for script in &approved {
        scripts::approved(script)?;
    }
    let (leader, confinement, before) = match prepared {
        Start::Open(order) => (reaper::spawn(&order)?, None, Snapshot::default()),
        Start::Confined(inner, before) => {
            let (leader, confinement) = reaper::spawn_confined(&mark, &inner)?;
            (leader, Some(confinement), before)
        }
    };
    let reaper = Reaper::watch(watchers, leader, confinement);
    let mut reaper = reaper.with_streams(streams).with_limits(limits);
    let mut report = reaper.reap();
    report.add_undone(undone_after(&before, streams));
    if let Some(temp) = temp {
        // Files that cannot be removed remain in the system's temporary directory, which the system
        // cleans.
        let _ = remove_tree(&temp.keep());
    }
    let code = report.send();
    reaper.outlast();
    Ok(code)
}

/// Undoes changes to guarded files. A server lives for hours in which a person
/// works in the same directories, so nothing is undone after it.
fn undone_after(before: &Snapshot, streams: Streams) -> Vec<String> {
    if streams == Streams::Pipes {
        return Vec::new();
    }
    // If the host has ended, the changes are undone nevertheless.
    let _ = reexec::send(&format!("{ENDED}\n"));
    before.undo()
}

/// A temporary directory for this command alone; `None` if none can be created. Its path is
/// canonical, so a link that replaces it later is not followed.
fn private_temp(env: &BTreeMap<String, String>) -> Option<TempDir> {
    let base = env.get("TMPDIR").map_or(Path::new("/tmp"), Path::new).canonicalize().ok()?;
    let mode = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("yoi-run-").permissions(mode).tempdir_in(base).ok()
}
