//! Finding the host of this data directory, or starting one: in the background, so that Pods
//! outlive the terminal, or inside this process.

use anyhow::{Context as _, anyhow, bail};
use directories::{BaseDirs, ProjectDirs};
use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use yoi::client::{Client, ConnectError, Events, find};
use yoi::config::dirs::{Dirs, Env, Usual};
use yoi::host::{Ending, Host, HostError, HostLockError, IdleExit, Options, Reader};
use yoi::protocol::{ClientKind, Method, PodName};
use yoi::sandbox::{OWN_NAME, OWN_PROGRAM};
use yoi::text::SafeText;

/// The hidden command under which this program is a background host.
pub const HOST_ARG: &str = "__host";
/// How often a host that lost the race for the directory is looked for again.
const TRIES: u32 = 10;
/// The argument of a background host that ends with its last client. The first one is on its standard input.
const BRIEF_ARG: &str = "brief";
/// Threads of a host's runtime; the work is waiting, not computing.
const WORKERS: usize = 2;
/// With this variable set, a process gives large blocks of memory back to the system when it frees
/// them (mallopt(3)). Otherwise the first long answer raises the threshold of glibc, and later ones
/// stay in the heaps of the threads.
const GIVE_BACK: (&str, &str) = ("MALLOC_MMAP_THRESHOLD_", "131072");
/// Threads for file work that a host has from its beginning, and how long each of those stays that it has.
const RESERVED: usize = 2;
const ALWAYS: Duration = Duration::from_secs(10 * 365 * 24 * 3600);
/// The name of each of them, and of those that run tasks.
const THREAD: &str = "host";
/// How long an idle thread for file work of the dashboard waits before it exits.
const KEEP: Duration = Duration::from_secs(2);

/// The context of the command line: directories, environment and the working directory.
#[derive(Clone, Debug)]
pub struct Opening {
    pub dirs: Dirs,
    pub env: Env,
    pub cwd: PathBuf,
}

/// The one line that a background host writes to the program that started it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Started {
    /// The host can be reached.
    Ready,
    /// Another host has the data directory.
    Taken,
    /// The host ended, with the reason.
    Failed(String),
}

/// The host that runs for this data directory, if any.
pub async fn attach(
    opening: &Opening,
    kind: ClientKind,
) -> anyhow::Result<Option<(Client, Events)>> {
    Ok(find::connect_as(&opening.dirs.data, kind).await?)
}

/// The running host, or a new one in the background.
pub async fn attach_or_start(
    opening: &Opening,
    kind: ClientKind,
) -> anyhow::Result<(Client, Events)> {
    for _ in 0..TRIES {
        if let Some(found) = attach(opening, kind).await? {
            return Ok(found);
        }
        let Some((pid, pipe)) = tokio::task::spawn_blocking(move || start(kind)).await?? else {
            continue;
        };
        match Client::over_socket_of(pid, UnixStream::from_std(pipe)?, kind).await {
            // The host was ended right after its start.
            Err(ConnectError::Closed | ConnectError::Io(_)) => {}
            greeted => return Ok(greeted?),
        }
    }
    let (data, log) = (opening.dirs.data.display(), opening.dirs.state.join(yoi::trace::LOG_FILE));
    bail!("no host answers for {data}; see {}", log.display())
}

/// For a command that only reads: the running host, or a new one in the background. Where none can run because the data
/// directory cannot be written, a reader of that directory, and a sentence that says so.
pub async fn attach_to_read(
    opening: &Opening,
) -> anyhow::Result<(Client, Events, Option<(Reader, String)>)> {
    if let Some((client, events)) = attach(opening, ClientKind::Brief).await? {
        return Ok((client, events, None));
    }
    if let Some(error) = Reader::is_needed(&opening.dirs.data) {
        let data = opening.dirs.data.display();
        let reader = Reader::open(options(opening, IdleExit::Never)).await;
        let reader = reader.with_context(|| {
            format!("{data} cannot be written, and a copy of its database cannot be used")
        })?;
        let (client, events) = reader.client().await?;
        let why = format!(
            "{data} cannot be written: {error}; no host runs there, and this is what the last one left"
        );
        return Ok((client, events, Some((reader, why))));
    }
    let (client, events) = attach_or_start(opening, ClientKind::Brief).await?;
    Ok((client, events, None))
}

/// How an attempt to end the host came out.
#[derive(Debug)]
pub enum Stopped {
    /// It ended, and interrupted the runs of these Pods.
    Ended(Vec<PodName>),
    /// The person did not want these runs to be interrupted.
    Kept,
    NoHost,
}

/// Ends the host that runs, also one of an older program; its live Pods are live again at the next start.
/// Where that interrupts runs, the person agrees first.
pub async fn stop(
    opening: &Opening,
    agrees: impl FnOnce(&[PodName]) -> std::io::Result<bool>,
) -> anyhow::Result<Stopped> {
    let found = find::connect_to_end(&opening.dirs.data).await?;
    let Some((client, mut events)) = found else { return Ok(Stopped::NoHost) };
    let running = find::running_in(&client, &mut events).await.unwrap_or_default();
    if !running.is_empty() && !agrees(&running)? {
        return Ok(Stopped::Kept);
    }
    client.call(None, Method::Stop).await.map_err(|refusal| anyhow!("{refusal}"))?;
    // The host closes the connection when it has ended.
    while events.recv().await.is_some() {}
    Ok(Stopped::Ended(running))
}

/// Starts a background host and waits until it can be reached, or says why it cannot. A host for a brief client is
/// returned with its process id and a pipe to it: that client cannot come too late.
fn start(kind: ClientKind) -> anyhow::Result<Option<(u32, StdStream)>> {
    let mut host = std::process::Command::new(OWN_PROGRAM);
    if !gives_back() {
        host.env(GIVE_BACK.0, GIVE_BACK.1);
    }
    host.arg0(OWN_NAME).arg(HOST_ARG).stdin(Stdio::null());
    let pipe = match kind {
        ClientKind::Lasting => None,
        ClientKind::Brief => {
            let (ours, theirs) = StdStream::pair()?;
            ours.set_nonblocking(true)?;
            host.arg(BRIEF_ARG).stdin(OwnedFd::from(theirs));
            Some(ours)
        }
    };
    let mut child = host
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a host in the background (`yoi --inside` needs none)")?;
    let Some(out) = child.stdout.take() else { bail!("the host has no pipe to answer on") };
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    let started = serde_json::from_str(&line);
    if !matches!(started, Ok(Started::Ready)) {
        // A host that runs outlives this program; one that failed is reaped here.
        let _ = child.wait();
    }
    match started {
        Ok(Started::Ready) => Ok(pipe.map(|pipe| (child.id(), pipe))),
        // A host that was faster is found by the caller.
        Ok(Started::Taken) => Ok(None),
        Ok(Started::Failed(why)) => bail!("{why}"),
        Err(_) => bail!("the host ended before it was ready; `yoi --no-ui --serve` shows why"),
    }
}

/// Whether the variable is set: by a person, or by the program that started this one.
fn gives_back() -> bool {
    std::env::var_os(GIVE_BACK.0).is_some()
}

/// Begins this program anew, with the variable set that makes a host give memory back. Returns where
/// it is set already, and where the system does not let it: then the host keeps more memory.
pub fn again_as_host() {
    if gives_back() {
        return;
    }
    let mut words = std::env::args_os();
    let name = words.next().unwrap_or_else(|| "yoi".into());
    let mut again = std::process::Command::new(OWN_PROGRAM);
    again.arg0(name).args(words).env(GIVE_BACK.0, GIVE_BACK.1);
    let error = again.exec();
    tracing::warn!("cannot begin anew as a host: {error}");
}

/// Starts a host in this process and connects to it. A client that watches it learns of mistakes in the settings.
pub async fn inside(opening: &Opening) -> anyhow::Result<(Host, Client, Events)> {
    let host = Host::start(options(opening, IdleExit::Never)).await?;
    let (client, events) = host.client().await?;
    Ok((host, client, events))
}

/// The options of a host of this program.
fn options(opening: &Opening, idle_exit: IdleExit) -> Options {
    Options {
        dirs: opening.dirs.clone(),
        env: opening.env.clone(),
        helper: OWN_PROGRAM.into(),
        old_nofile: raise_nofile(),
        idle_exit,
    }
}

/// Raises the soft limit of open files to the hard one, and returns the earlier limit.
fn raise_nofile() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    // A limit that cannot be raised stays: fewer Pods can be live at once.
    setrlimit(Resource::Nofile, raised).ok().and(current)
}

/// The runtime of a program that may be the host. It has [`RESERVED`] threads for file work from the
/// beginning and keeps them: where the machine has none left, because a command took them all, work waits for
/// one of these, and tokio does not panic.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_keep_alive(ALWAYS)
        .thread_name(THREAD)
        .enable_all()
        .build()?;
    let together = Arc::new(Barrier::new(RESERVED + 1));
    for _ in 0..RESERVED {
        let together = Arc::clone(&together);
        // Each waits for the others, so that each has a thread of its own.
        runtime.spawn_blocking(move || together.wait());
    }
    together.wait();
    Ok(runtime)
}

/// The runtime of the dashboard: one thread. The host is another process, and an event that has to
/// wake a second thread on its way to the screen costs more than all else that is done with it.
pub fn dashboard_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().thread_keep_alive(KEEP).enable_all().build()
}

/// The background host: its own session, no terminal, its output in the log file.
pub fn host_main() -> ExitCode {
    // A process that leads a session already keeps it.
    let _ = rustix::process::setsid();
    // Tools such as pgrep(1) find a process by the name of its file, which is `exe` here.
    let _ = rustix::thread::set_name(c"yoi");
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&format!("cannot start the host: {error}")),
    };
    runtime.block_on(background())
}

async fn background() -> ExitCode {
    let env: Env = environment();
    let dirs = match Dirs::open(&env, usual().as_ref()) {
        Ok(dirs) => dirs,
        Err(error) => return failed(&error.to_string()),
    };
    yoi::trace::start(&env, Some(&dirs.state));
    let opening = Opening { dirs, env, cwd: PathBuf::from("/") };
    let is_brief = std::env::args_os().nth(2).is_some_and(|word| word == BRIEF_ARG);
    let starter = match is_brief.then(starter).transpose() {
        Ok(starter) => starter,
        Err(error) => return failed(&format!("cannot serve the program that started it: {error}")),
    };
    let idle_exit = if is_brief { IdleExit::WithLastClient } else { IdleExit::BySettings };
    let host = match Host::start(options(&opening, idle_exit)).await {
        Ok(started) => started,
        Err(HostError::HostLock(HostLockError::Taken { .. } | HostLockError::Ending { .. })) => {
            answer(&Started::Taken);
            return ExitCode::FAILURE;
        }
        Err(error) => return failed(&error.to_string()),
    };
    // A host that held its working directory would keep that from being unmounted.
    let _ = std::env::set_current_dir("/");
    answer(&Started::Ready);
    if let Some(starter) = starter {
        host.serve_starter(starter);
    }
    yoi::trace::redirect_output();
    for notice in host.mistakes_in_settings() {
        tracing::warn!("{notice}");
    }
    let ending = until_ended(&host).await;
    host.end().await;
    // The log says why a host failed.
    if matches!(ending, Ok(Ending::Asked)) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The pipe to the program that started this host.
fn starter() -> std::io::Result<UnixStream> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    // The other end learns that this one is closed.
    rustix::stdio::dup2_stdin(std::fs::File::open("/dev/null")?)?;
    let pipe = StdStream::from(input);
    pipe.set_nonblocking(true)?;
    UnixStream::from_std(pipe)
}

/// The environment as text; variables that are no text are left out, because none of ours is one. Where HOME
/// is not set, it is the home directory of the account, as in [`usual`].
pub fn environment() -> Env {
    let mut env: Env = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let home = BaseDirs::new().and_then(|dirs| dirs.home_dir().to_str().map(str::to_owned));
    env.extend(home.map(|home| ("HOME".to_owned(), home)));
    env
}

/// The directories of this program in the account of its user by the XDG rules. A home directory whose path is
/// no text counts as none: [`environment`] has no HOME then, and without it commands could read the keys in it.
pub fn usual() -> Option<Usual> {
    BaseDirs::new()?.home_dir().to_str()?;
    let dirs = ProjectDirs::from("", "", "yoi")?;
    Some(Usual {
        config: dirs.config_dir().into(),
        data: dirs.data_dir().into(),
        state: dirs.state_dir()?.into(),
        runtime: dirs.runtime_dir().map(Into::into),
    })
}

/// Resolves when a signal or the host itself ends the host.
async fn until_ended(host: &Host) -> std::io::Result<Ending> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let mut hup = signal(SignalKind::hangup())?;
    Ok(tokio::select! {
        _ = term.recv() => Ending::Asked,
        _ = int.recv() => Ending::Asked,
        _ = hup.recv() => Ending::Asked,
        ending = host.ended() => ending,
    })
}

/// Ends a host that could not start, with the reason.
fn failed(why: &str) -> ExitCode {
    answer(&Started::Failed(SafeText::line(why).to_string()));
    ExitCode::FAILURE
}

/// Writes the line for the starter, if it still reads.
fn answer(started: &Started) {
    // Words and a safe sentence always encode.
    let line = serde_json::to_string(started).unwrap_or_default();
    crate::console::out(&SafeText::line(line));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_threads_for_file_work_from_its_beginning() {
        let runtime = runtime().unwrap();
        let named = |task: &std::fs::DirEntry| {
            let name = std::fs::read_to_string(task.path().join("comm"));
            name.is_ok_and(|name| name.trim() == THREAD)
        };
        let tasks = || std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let (all, begun) = (WORKERS + RESERVED, std::time::Instant::now());
        // Each thread gives itself its name.
        while tasks().filter(named).count() < all && begun.elapsed() < Duration::from_secs(10) {
            std::thread::yield_now();
        }
        assert_eq!(tasks().filter(named).count(), all);
        drop(runtime);
    }
}
