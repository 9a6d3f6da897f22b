//! Watches one command until it ends, and ends its remaining processes. It runs in the helper or,
//! for a command in namespaces, in the first process of its world.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::access::confinement::{Confinement, Isolation};
use crate::sandbox::access::limits::CommandLimits;
use crate::sandbox::process::bash;
use crate::sandbox::process::messages::{Inner, JsonLine, Order, Ready, Report, Streams};
use crate::sandbox::process::procfs::{self, Process};
use crate::sandbox::process::reexec::{self, CONFINE_ARG};
use nix::sys::signal::{Signal as KillSignal, kill};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, WaitOptions, WaitStatus};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The time that a background process has to finish by itself after its command, such as the `tee`
/// of a process substitution.
const MOMENT: Duration = Duration::from_millis(150);
/// The time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// The interval at which the kill is repeated.
const AGAIN: Duration = Duration::from_millis(50);
/// After this time a process that survives SIGKILL is reported as stuck. The helper continues to
/// kill it.
const STUCK: Duration = Duration::from_secs(5);
/// The longest time to end everything, or to find that a process cannot be ended.
pub const LONGEST_END: Duration = Duration::from_secs(GRACE.as_secs() + STUCK.as_secs());
/// The most remaining processes that a report names.
const NAMED: usize = 20;

/// An event that the reaper handles.
enum ReaperEvent {
    /// A child ended: the command itself or an adopted one.
    Reaped(i32, WaitStatus),
    /// No descendant is left.
    Alone,
    /// The host closed the pipe of the order.
    Ordered,
}

/// The threads that send events to a [`Reaper`]. They start before the command: if no thread can be
/// created no command starts, and the command cannot use up the limit on processes first.
pub struct Watchers {
    events: Receiver<ReaperEvent>,
    /// Tells the threads that the command has started, so that they wait for its end.
    started: Sender<()>,
}

/// A running command and its state.
pub struct Reaper {
    leader: i32,
    confinement: Option<Confinement>,
    status: Option<WaitStatus>,
    ordered: bool,
    alone: bool,
    /// The processes that had to be ended, with their names.
    names: BTreeMap<Process, String>,
    events: Receiver<ReaperEvent>,
    /// Whether this is the first process of a world, which can signal only processes of the
    /// command.
    in_world: bool,
    streams: Streams,
    limits: CommandLimits,
    /// Whether a child was killed because it exceeded the limit on the size of a file.
    wrote_too_much: bool,
}

/// Reads the order, the first line of standard input. Later bytes are left for [`Reaper::watch`].
pub fn read_order<T: JsonLine>() -> Option<T> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    T::parse(&line)
}

pub fn give_back_limit(soft: Option<u64>) {
    let Some(soft) = soft else { return };
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = Some(soft);
    // If the limit cannot be lowered, the command has more than it needs.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// Starts an unconfined command.
pub fn spawn(order: &Order) -> Result<i32, String> {
    let pipe = || io::stderr().as_fd().try_clone_to_owned().map(Stdio::from);
    let (out, err) = (pipe().map_err(sentence)?, pipe().map_err(sentence)?);
    let child = bash::command(&order.program, &order.cwd, &order.env)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .spawn();
    match child {
        Ok(child) => i32::try_from(child.id()).map_err(|_| "its pid is out of range".into()),
        Err(error) => Err(bash::not_started(&order.cwd, &error)),
    }
}

/// Starts the stage that confines itself, which waits for its order.
pub fn start_last_stage() -> Result<Child, String> {
    confining(reexec::next(CONFINE_ARG))
}

/// Waits until that stage runs, because it loads its libraries from the root directory in which it
/// was started.
pub fn wait_until_started(stage: &mut Child) -> Result<(), String> {
    let answer = stage.stdout.as_mut().ok_or("the last stage has no output")?;
    answer.read_exact(&mut [0]).map_err(|error| format!("the last stage did not start: {error}"))
}

/// Waits until the order can be read or never comes. The stage waits for it, too, perhaps for long, and the kernel may kill it
/// when memory runs out.
pub fn wait_for_order(stage: &Child) -> Result<(), String> {
    let (input, answer) =
        (io::stdin(), stage.stdout.as_ref().ok_or("the last stage has no output")?);
    let mut ready = [PollFd::new(&input, PollFlags::IN), PollFd::new(answer, PollFlags::IN)];
    poll(&mut ready, None).map_err(|error| error.to_string())?;
    match ready[1].revents().is_empty() {
        true => Ok(()),
        false => Err("the last stage was killed while it waited".into()),
    }
}

/// Starts that stage from the helper, and waits until it has executed the command.
pub fn spawn_confined(mark: &str, order: &Inner) -> Result<(i32, Confinement), String> {
    become_command(confining(reexec::first(CONFINE_ARG, mark))?, order)
}

fn confining(mut stage: Command) -> Result<Child, String> {
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(sentence)?;
    stage.stdout(Stdio::piped()).stderr(output).spawn().map_err(sentence)
}

/// Sends that stage its request, and waits until it has executed the command.
pub fn become_command(mut child: Child, order: &Inner) -> Result<(i32, Confinement), String> {
    let (mut input, mut answer) = (child.stdin.take(), child.stdout.take());
    if let Some(input) = &mut input {
        input.write_all(order.line().as_bytes()).map_err(sentence)?;
    }
    drop(input);
    let mut text = String::new();
    if let Some(answer) = &mut answer {
        answer.read_to_string(&mut text).map_err(sentence)?;
    }
    let pid = i32::try_from(child.id()).map_err(|_| "its pid is out of range")?;
    confined(&text).map(|confinement| (pid, confinement))
}

/// Parses the messages of that stage: its confinement, followed by an error if the start failed.
fn confined(text: &str) -> Result<Confinement, String> {
    let mut confinement = None;
    for ready in text.lines().filter_map(Ready::parse) {
        if let Some(reason) = ready.failed {
            return Err(reason);
        }
        confinement = ready.confinement;
    }
    confinement.ok_or_else(|| "its confinement could not be set up".into())
}

fn sentence(error: io::Error) -> String {
    error.to_string()
}

/// Kills every descendant that `/proc` lists.
fn kill_below() {
    procfs::kill_all(|| procfs::descendants(own_pid()).unwrap_or_default());
}

/// Signals all other processes of the world, as its first process.
fn signal_all(signal: KillSignal) {
    // This fails when no process is left, which is the goal.
    let _ = kill(nix::unistd::Pid::from_raw(-1), signal);
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether `/proc` belongs to this PID namespace: otherwise its ids are those of other processes.
fn lists_this_process() -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == &*own_pid().to_string())
}

/// Waits for children until none is left. Orphans become children of this process, so without
/// children it has no descendants.
fn wait_for_children(tell: &Sender<ReaperEvent>) {
    loop {
        let events = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => ReaperEvent::Reaped(pid.as_raw_nonzero().get(), status),
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => ReaperEvent::Alone,
        };
        let last = matches!(events, ReaperEvent::Alone);
        if tell.send(events).is_err() || last {
            return;
        }
    }
}

/// Reads until the pipe of the order closes, by a request or because the other end died.
pub fn wait_for_end() {
    let mut rest = [0; 64];
    while matches!(io::stdin().lock().read(&mut rest), Ok(n) if n > 0) {}
}

/// Starts a thread of this stage. The error is a sentence.
pub fn thread(work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| format!("no thread could be started to watch it: {error}"))
}

impl Watchers {
    /// Starts the threads. Called before the command is started, and with its capabilities.
    pub fn start() -> Result<Self, String> {
        let ((tell, events), (started, begin)) = (channel(), channel());
        let ends = tell.clone();
        thread(move || {
            // Without a command this process ends, and so does this thread.
            if begin.recv().is_ok() {
                wait_for_children(&tell);
            }
        })?;
        thread(move || {
            wait_for_end();
            // The receiver is dropped only when this process ends.
            let _ = ends.send(ReaperEvent::Ordered);
        })?;
        Ok(Self { events, started })
    }
}

impl Reaper {
    /// Watches a started command and its descendants. Requires that orphans become children of this
    /// process.
    pub fn watch(watchers: Watchers, leader: i32, confinement: Option<Confinement>) -> Self {
        let Watchers { events, started } = watchers;
        // The thread that waits for it runs until there is no child.
        let _ = started.send(());
        let (status, names) = (None, BTreeMap::new());
        let (ordered, alone, in_world, wrote_too_much) = (false, false, false, false);
        let (streams, limits) = (Streams::Output, CommandLimits::default());
        Self {
            leader,
            confinement,
            status,
            ordered,
            alone,
            names,
            events,
            in_world,
            streams,
            limits,
            wrote_too_much,
        }
    }

    /// A reaper in the first process of a world.
    pub fn watch_world(watchers: Watchers, leader: i32, confinement: Confinement) -> Self {
        Self { in_world: true, ..Self::watch(watchers, leader, Some(confinement)) }
    }

    /// Sets the streams of the command.
    #[must_use]
    pub fn with_streams(self, streams: Streams) -> Self {
        Self { streams, ..self }
    }

    /// Sets the limits of the command.
    #[must_use]
    pub fn with_limits(self, limits: CommandLimits) -> Self {
        Self { limits, ..self }
    }

    /// Waits for the command, then ends its remaining processes.
    pub fn reap(&mut self) -> Report {
        while self.status.is_none() && !self.ordered && !self.alone {
            self.next_event(None);
        }
        let ordered = self.status.is_none();
        if !ordered {
            self.wait_alone(MOMENT);
        }
        let left = if self.alone { Ok(Vec::new()) } else { self.end_all() };
        let (stuck, blind) = match left {
            Ok(stuck) => (stuck, None),
            Err(error) => (Vec::new(), Some(procfs::unseen(&error))),
        };
        Report {
            code: self.status.and_then(WaitStatus::exit_status),
            signal: self.status.and_then(WaitStatus::terminating_signal),
            ordered,
            ended: self.named(),
            stuck,
            blind,
            confinement: self.confinement.take(),
            limit: self.limit_met(),
            ..Report::default()
        }
    }

    /// The limit for which the kernel killed a child of this process: the command, or a process
    /// that outlived its parent.
    fn limit_met(&self) -> Option<LimitMet> {
        let sized = || self.limits.met(LimitKind::FileSize, Isolation::Namespaces);
        self.wrote_too_much.then(sized).flatten()
    }

    /// Sends SIGTERM, then SIGKILL; returns the names of processes that survive both. Only waiting
    /// for children shows whether any is left; an error means that the remaining ones could not be
    /// listed.
    fn end_all(&mut self) -> io::Result<Vec<String>> {
        if self.in_world {
            // Stopped processes cannot fork and use no processor time.
            signal_all(KillSignal::SIGSTOP);
        }
        if self.in_world && !lists_this_process() {
            self.end_unseen();
            return Ok(Vec::new());
        }
        if self.streams == Streams::Output {
            for process in self.note_living()? {
                process.signal(Signal::TERM);
                // A stopped process handles SIGTERM only after SIGCONT.
                process.signal(Signal::CONT);
            }
            self.wait_alone(GRACE);
        }
        let begun = Instant::now();
        while !self.alone && begun.elapsed() < STUCK {
            // The command line of a process that keeps forking can be read only while it is stopped.
            if self.in_world {
                signal_all(KillSignal::SIGSTOP);
            }
            self.note_living()?;
            if self.in_world {
                signal_all(KillSignal::SIGKILL);
            } else {
                kill_below();
            }
            self.wait_alone(AGAIN);
        }
        if self.alone {
            return Ok(Vec::new());
        }
        Ok(procfs::descendants(own_pid())?.into_iter().map(Process::name).collect())
    }

    /// Ends the processes of a world whose `/proc` is the machine's: their names are unknown there,
    /// and the kernel kills the remaining ones when this process, the first one of the world, ends.
    fn end_unseen(&mut self) {
        signal_all(KillSignal::SIGTERM);
        signal_all(KillSignal::SIGCONT);
        self.wait_alone(GRACE);
        if !self.alone {
            signal_all(KillSignal::SIGKILL);
            self.wait_alone(GRACE);
        }
    }

    /// Continues to kill until no descendant is left. The report was sent before.
    pub fn outlast(&mut self) {
        while !self.alone {
            kill_below();
            self.wait_alone(GRACE);
        }
    }

    /// Records the names of all living descendants except the command itself.
    fn note_living(&mut self) -> io::Result<Vec<Process>> {
        let living = procfs::descendants(own_pid())?;
        for process in living.iter().filter(|process| process.pid != self.leader) {
            self.names.entry(*process).or_insert_with(|| process.name());
        }
        Ok(living)
    }

    fn named(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names.values().take(NAMED).cloned().collect();
        if self.names.len() > NAMED {
            names.push(format!("and {} more", self.names.len() - NAMED));
        }
        names
    }

    fn wait_alone(&mut self, limit: Duration) {
        let end = Instant::now() + limit;
        while !self.alone && Instant::now() < end {
            self.next_event(Some(end.saturating_duration_since(Instant::now())));
        }
    }

    fn next_event(&mut self, limit: Option<Duration>) {
        let events = match limit {
            None => self.events.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(limit) => self.events.recv_timeout(limit),
        };
        match events {
            Ok(ReaperEvent::Reaped(pid, status)) => {
                self.wrote_too_much |= status.terminating_signal() == Some(Signal::XFSZ.as_raw());
                if pid == self.leader {
                    self.status = Some(status);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Ok(ReaperEvent::Ordered) => self.ordered = true,
            Ok(ReaperEvent::Alone) | Err(RecvTimeoutError::Disconnected) => self.alone = true,
        }
    }
}
