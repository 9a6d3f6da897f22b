//! The helper process: starts one command, adopts everything it leaves behind, and ends it all when
//! the command is over, when it is told to, or when the host died.

use crate::sandbox::CAGE_ARG;
use crate::sandbox::OWN_PROGRAM;
use crate::sandbox::after;
use crate::sandbox::bash;
use crate::sandbox::cage::{Cage, Grant};
use crate::sandbox::confinement::Confinement;
use crate::sandbox::order::{Inner, JsonLine as _, MARK, Order, Ready, Report};
use crate::sandbox::places::Person;
use crate::sandbox::process::{self, Process};
use rustix::io::Errno;
use rustix::process::{Resource, Signal, WaitOptions, WaitStatus};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::Permissions;
use std::io::{self, BufRead, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a background process gets to finish by itself after its command did, such as the `tee` of
/// a process substitution.
const MOMENT: Duration = Duration::from_millis(150);
/// Between the request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);
/// How often the kill is repeated.
const AGAIN: Duration = Duration::from_millis(50);
/// When a survivor is reported as stuck; it is killed on and on nevertheless.
const STUCK: Duration = Duration::from_secs(5);
/// Left-over processes named in the report.
const NAMED: usize = 20;

/// What happens around the helper.
enum HelperEvent {
    /// A child ended: the command itself or an adopted one.
    Reaped(i32, WaitStatus),
    /// No descendant is left.
    Alone,
    /// The pipe from the host closed.
    Ordered,
}

/// The whole life of the helper; called first thing in `main` when the first argument is
/// [`crate::sandbox::HELPER_ARG`]. Order on standard input, report on standard output, the
/// command's output on standard error.
pub fn helper_main(_args: impl Iterator<Item = OsString>) -> ExitCode {
    let mut keeper = match start() {
        Ok(keeper) => keeper,
        Err(reason) => {
            // Without a reader there is nobody to tell.
            let _ = tell(&Report { failed: Some(reason), ..Report::default() });
            return ExitCode::FAILURE;
        }
    };
    let sent = tell(&keeper.keep());
    keeper.outlast();
    if sent.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell(report: &Report) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(report.line().as_bytes())?;
    out.flush()
}

/// Kills what can be seen; whether that was all is decided elsewhere.
fn kill_below() {
    process::kill_all(|| process::descendants(own_pid()).unwrap_or_default());
}

fn own_pid() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// Becomes the keeper of a command: own session, subreaper, then the command, then the threads.
fn start() -> Result<Keeper, String> {
    let mut order = read_order().ok_or("the order is not readable")?;
    // Fails only for a group leader, which a fresh child is not; a terminal is lost either way.
    let _ = rustix::process::setsid();
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("this process cannot adopt orphans: {error}"))?;
    give_back_limit(order.nofile);
    let temp = order.cage.is_some().then(|| private_temp(&order.env)).flatten();
    let before = order.cage.as_ref().map(after::look).unwrap_or_default();
    let (leader, confinement) = match order.cage.take() {
        None => (spawn(&order)?, None),
        Some(cage) => spawn_caged(order, cage, temp.as_ref().map(TempDir::path))?,
    };
    let (tell, events) = channel();
    let reaper = tell.clone();
    std::thread::spawn(move || reap(&reaper));
    std::thread::spawn(move || listen(&tell));
    let names = BTreeMap::new();
    Ok(Keeper {
        leader,
        confinement,
        temp,
        before,
        status: None,
        ordered: false,
        alone: false,
        names,
        events,
    })
}

fn read_order() -> Option<Order> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).ok()?;
    Order::parse(&line)
}

fn give_back_limit(soft: Option<u64>) {
    let Some(soft) = soft else { return };
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    limit.current = Some(soft);
    // A limit that cannot be lowered leaves the command with more than it needs.
    let _ = rustix::process::setrlimit(Resource::Nofile, limit);
}

fn spawn(order: &Order) -> Result<i32, String> {
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

/// A directory only this command and this user have; without one it has no place for temporary
/// files. Its path is canonical from the beginning: what is put in its place later is not followed.
fn private_temp(env: &BTreeMap<String, String>) -> Option<TempDir> {
    let base = env.get("TMPDIR").map_or(Path::new("/tmp"), Path::new).canonicalize().ok()?;
    let mode = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix("yoi-run-").permissions(mode).tempdir_in(base).ok()
}

/// Starts the second stage and waits until it has become the command.
fn spawn_caged(
    order: Order,
    mut cage: Cage,
    temp: Option<&Path>,
) -> Result<(i32, Option<Confinement>), String> {
    let mark = order.env.get(MARK).cloned().unwrap_or_default();
    let mut env = order.env;
    let elsewhere = Person { env: &env }.elsewhere();
    env.extend(elsewhere.into_iter().map(|(name, path)| (name.into(), path.display().to_string())));
    if let Some(temp) = temp.map(Path::to_owned) {
        let shown = temp.display().to_string();
        env.insert("TMPDIR".into(), shown.clone());
        for name in ["TMP", "TEMP"] {
            env.entry(name.into()).and_modify(|value| value.clone_from(&shown));
        }
        cage.grants.push(Grant::private(temp));
    }
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(sentence)?;
    let mut child = Command::new(OWN_PROGRAM)
        .arg(CAGE_ARG)
        .env_clear()
        .env(MARK, mark)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(output)
        .spawn()
        .map_err(sentence)?;
    let inner = Inner { program: order.program, cwd: order.cwd, env, cage };
    let (mut input, mut answer) = (child.stdin.take(), child.stdout.take());
    if let Some(input) = &mut input {
        input.write_all(inner.line().as_bytes()).map_err(sentence)?;
    }
    drop(input);
    let mut text = String::new();
    if let Some(answer) = &mut answer {
        answer.read_to_string(&mut text).map_err(sentence)?;
    }
    let pid = i32::try_from(child.id()).map_err(|_| "its pid is out of range")?;
    confined(&text).map(|confinement| (pid, Some(confinement)))
}

/// What the second stage said: how it is confined, then nothing more if all went well.
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

/// Waits for every child there will ever be. As orphans become children of a subreaper, having no
/// child means having no descendant.
fn reap(tell: &Sender<HelperEvent>) {
    loop {
        let events = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => HelperEvent::Reaped(pid.as_raw_nonzero().get(), status),
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => HelperEvent::Alone,
        };
        let last = matches!(events, HelperEvent::Alone);
        if tell.send(events).is_err() || last {
            return;
        }
    }
}

/// Reads until the host closes the pipe, on purpose or by dying.
fn listen(tell: &Sender<HelperEvent>) {
    let mut rest = [0; 64];
    while matches!(io::stdin().lock().read(&mut rest), Ok(n) if n > 0) {}
    // The keeper is gone only when the helper ends.
    let _ = tell.send(HelperEvent::Ordered);
}

/// A running command and what is known of it.
struct Keeper {
    leader: i32,
    confinement: Option<Confinement>,
    /// Its own directory for temporary files, removed at the end.
    temp: Option<TempDir>,
    /// What must be the same when it is over.
    before: after::Before,
    status: Option<WaitStatus>,
    ordered: bool,
    alone: bool,
    /// What had to be ended.
    names: BTreeMap<Process, String>,
    events: Receiver<HelperEvent>,
}

impl Keeper {
    fn keep(&mut self) -> Report {
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
        if let Some(temp) = self.temp.take() {
            // What cannot be removed lies in the system's temporary directory, which is swept.
            let _ = temp.close();
        }
        Report {
            code: self.status.and_then(WaitStatus::exit_status),
            signal: self.status.and_then(WaitStatus::terminating_signal),
            ordered,
            ended: self.named(),
            stuck,
            blind,
            undone: self.before.mend(),
            confinement: self.confinement.take(),
            failed: None,
        }
    }

    /// TERM, then KILL; the names of what survives both. Whether nothing is left is known by
    /// waiting for children alone; an error says that what is left could not be seen.
    fn end_all(&mut self) -> io::Result<Vec<String>> {
        for process in self.note_living()? {
            process.signal(Signal::TERM);
            // A stopped process hears nothing until it goes on.
            process.signal(Signal::CONT);
        }
        self.wait_alone(GRACE);
        let begun = Instant::now();
        while !self.alone && begun.elapsed() < STUCK {
            self.note_living()?;
            kill_below();
            self.wait_alone(AGAIN);
        }
        if self.alone {
            return Ok(Vec::new());
        }
        Ok(process::descendants(own_pid())?.into_iter().map(Process::name).collect())
    }

    /// Kills for as long as something is alive; nobody waits for it.
    fn outlast(&mut self) {
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
            Ok(HelperEvent::Reaped(pid, status)) if pid == self.leader => {
                self.status = Some(status)
            }
            Ok(HelperEvent::Reaped(..)) | Err(RecvTimeoutError::Timeout) => {}
            Ok(HelperEvent::Ordered) => self.ordered = true,
            Ok(HelperEvent::Alone) | Err(RecvTimeoutError::Disconnected) => self.alone = true,
        }
    }
}
