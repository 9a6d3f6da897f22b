//! Watches one command to its end and ends everything that it leaves behind. It runs in the helper,
//! and where a command has a world of its own in the first process of that.

use crate::protocol::{LimitKind, LimitMet};
use crate::sandbox::bash;
use crate::sandbox::confinement::Confinement;
use crate::sandbox::limits::CommandLimits;
use crate::sandbox::order::{Inner, JsonLine, Order, Ready, Report, Streams};
use crate::sandbox::process::{self, Process};
use crate::sandbox::view::Isolation;
use crate::sandbox::{CONFINE_ARG, stage};
use nix::sys::signal::{Signal as KillSignal, kill};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, WaitOptions, WaitStatus};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// What a background process gets to finish by itself after its command did, such as the `tee` of
/// a process substitution.
const MOMENT: Duration = Duration::from_millis(150);
/// Between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);
/// How often the kill is repeated.
const AGAIN: Duration = Duration::from_millis(50);
/// After this time a process that survives SIGKILL is reported as stuck. The helper goes on killing it.
const STUCK: Duration = Duration::from_secs(5);
/// How long it takes to end everything, or to know that something cannot be ended.
pub const LONGEST_END: Duration = Duration::from_secs(GRACE.as_secs() + STUCK.as_secs());
/// Left-over processes named in the report.
const NAMED: usize = 20;

/// What happens around the reaper.
enum ReaperEvent {
    /// A child ended: the command itself or an adopted one.
    Reaped(i32, WaitStatus),
    /// No descendant is left.
    Alone,
    /// The pipe of the order closed.
    Ordered,
}

/// The threads that tell a [`Reaper`] what happens. They are started before the command, so that it
/// does not begin where there are none, and cannot take their place.
pub struct Watchers {
    events: Receiver<ReaperEvent>,
    /// The command is started: its end is waited for from now on.
    started: Sender<()>,
}

/// A running command and what is known of it.
pub struct Reaper {
    leader: i32,
    confinement: Option<Confinement>,
    status: Option<WaitStatus>,
    ordered: bool,
    alone: bool,
    /// What had to be ended.
    names: BTreeMap<Process, String>,
    events: Receiver<ReaperEvent>,
    /// This is the first process of a world: all that it can signal is the command's.
    in_world: bool,
    streams: Streams,
    limits: CommandLimits,
    /// A child ended because it wrote beyond the limit on one file.
    wrote_too_much: bool,
}

/// The order, the first line of standard input. What follows it is left for [`Reaper::watch`].
pub fn read_order<T: JsonLine>() -> Option<T> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    T::parse(&line)
}

pub fn give_back_limit(soft: Option<u64>) {
    let Some(soft) = soft else { return };
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = Some(soft);
    // A limit that cannot be lowered leaves the command with more than it needs.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

/// Starts a command without walls.
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
    confining(stage::next(CONFINE_ARG))
}

/// Waits until that stage runs: it loads its libraries from the root directory it was started in.
pub fn wait_until_started(stage: &mut Child) -> Result<(), String> {
    let answer = stage.stdout.as_mut().ok_or("the last stage has no output")?;
    answer.read_exact(&mut [0]).map_err(|error| format!("the last stage did not start: {error}"))
}

/// Starts that stage from the helper, and waits until it has become the command.
pub fn spawn_confined(mark: &str, order: &Inner) -> Result<(i32, Confinement), String> {
    become_command(confining(stage::first(CONFINE_ARG, mark))?, order)
}

fn confining(mut stage: Command) -> Result<Child, String> {
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(sentence)?;
    stage.stdout(Stdio::piped()).stderr(output).spawn().map_err(sentence)
}

/// Gives that stage its order, and waits until it has become the command.
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

/// What that stage said: how it is confined, then nothing more if all went well.
fn confined(text: &str) -> Result<Confinement, String> {
    let mut confinement = None;
    for ready in text.lines().filter_map(Ready::parse) {
        if let Some(reason) = ready.failed {
            return Err(reason);
        }
        confinement = ready.confinement;
    }
    confinement.ok_or_else(|| "the walls around it could not be raised".into())
}

fn sentence(error: io::Error) -> String {
    error.to_string()
}

/// Kills every descendant that `/proc` lists.
fn kill_below() {
    process::kill_all(|| process::descendants(own_pid()).unwrap_or_default());
}

/// Signals everything in the world whose first process this is.
fn signal_all(signal: KillSignal) {
    // This fails when no process is left, which is the goal.
    let _ = kill(nix::unistd::Pid::from_raw(-1), signal);
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Whether `/proc` is that of this PID namespace: else its numbers are those of other processes.
fn lists_this_process() -> bool {
    std::fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == &*own_pid().to_string())
}

/// Waits for children until none is left. As orphans become children of this process, having no
/// child means having no descendant.
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

/// Reads until the pipe of the order closes, on purpose or because the other end died.
pub fn wait_for_end() {
    let mut rest = [0; 64];
    while matches!(io::stdin().lock().read(&mut rest), Ok(n) if n > 0) {}
}

/// Starts a thread of this stage. An error is a sentence.
pub fn thread(work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let started = std::thread::Builder::new().spawn(work);
    started.map(drop).map_err(|error| format!("a thread that watches it: {error}"))
}

impl Watchers {
    /// Starts them. Called before the command is started, and with the powers that it is to have.
    pub fn start() -> Result<Self, String> {
        let ((tell, events), (started, begin)) = (channel(), channel());
        let ends = tell.clone();
        thread(move || {
            // Without a command this process ends, and this thread with it.
            if begin.recv().is_ok() {
                wait_for_children(&tell);
            }
        })?;
        thread(move || {
            wait_for_end();
            // The receiver is gone only when this process ends.
            let _ = ends.send(ReaperEvent::Ordered);
        })?;
        Ok(Self { events, started })
    }
}

impl Reaper {
    /// Watches a command that was started, and all that comes of it. Orphans have to become children
    /// of this process.
    pub fn watch(watchers: Watchers, leader: i32, confinement: Option<Confinement>) -> Self {
        let Watchers { events, started } = watchers;
        // The thread that waits for it lives until there is no child any more.
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

    /// The same from the first process of a world.
    pub fn watch_world(watchers: Watchers, leader: i32, confinement: Confinement) -> Self {
        Self { in_world: true, ..Self::watch(watchers, leader, Some(confinement)) }
    }

    /// The same for a command with these streams.
    #[must_use]
    pub fn with_streams(self, streams: Streams) -> Self {
        Self { streams, ..self }
    }

    /// The same for a command with these limits.
    #[must_use]
    pub fn with_limits(self, limits: CommandLimits) -> Self {
        Self { limits, ..self }
    }

    /// Waits for the command, then ends what it left.
    pub fn reap(&mut self) -> Report {
        while self.status.is_none() && !self.ordered && !self.alone {
            self.hear(None);
        }
        let ordered = self.status.is_none();
        if !ordered {
            self.wait_alone(MOMENT);
        }
        let left = if self.alone { Ok(Vec::new()) } else { self.end_all() };
        let (stuck, blind) = match left {
            Ok(stuck) => (stuck, None),
            Err(error) => (Vec::new(), Some(process::unseen(&error))),
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

    /// The limit with which the kernel ended a child of this process: the command, or one that outlived its own parent.
    fn limit_met(&self) -> Option<LimitMet> {
        let sized = || self.limits.met(LimitKind::FileSize, Isolation::Namespaces);
        self.wrote_too_much.then(sized).flatten()
    }

    /// TERM, then KILL; the names of what survives both. Whether nothing is left is known by
    /// waiting for children alone; an error says that what is left could not be seen.
    fn end_all(&mut self) -> io::Result<Vec<String>> {
        if self.in_world {
            // Stopped processes neither fork nor take the processor from this one.
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
        Ok(process::descendants(own_pid())?.into_iter().map(Process::name).collect())
    }

    /// The same for the first process of a world whose `/proc` is the machine's: nothing has a name
    /// then, and what is left after this is killed by the kernel when this process ends.
    fn end_unseen(&mut self) {
        signal_all(KillSignal::SIGTERM);
        signal_all(KillSignal::SIGCONT);
        self.wait_alone(GRACE);
        if !self.alone {
            signal_all(KillSignal::SIGKILL);
            self.wait_alone(GRACE);
        }
    }

    /// Goes on killing until no descendant is left. The report has been sent before.
    pub fn outlast(&mut self) {
        while !self.alone {
            kill_below();
            self.wait_alone(GRACE);
        }
    }

    /// Everything alive below, remembered by name; the command itself is not left over.
    fn note_living(&mut self) -> io::Result<Vec<Process>> {
        let living = process::descendants(own_pid())?;
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
            self.hear(Some(end.saturating_duration_since(Instant::now())));
        }
    }

    fn hear(&mut self, limit: Option<Duration>) {
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
