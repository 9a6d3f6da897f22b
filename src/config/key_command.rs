//! Keys that a command of the person prints, such as `pass show anthropic`. The command runs when the first
//! request needs the key, and the key is kept in memory alone.

use crate::config::dirs::Env;
use crate::config::keys::Secret;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::OnceCell;

/// How long a command may take: a person may have to unlock a key ring.
const DEADLINE: Duration = Duration::from_secs(30);
/// The most bytes that are read of a command's output.
const MOST: u64 = 64 * 1024;

/// No key came from a command. No text repeats what the command printed.
#[derive(Debug, thiserror::Error)]
pub enum KeyCommandError {
    #[error("key_command of {provider} cannot be started: {program}: {cause}")]
    NotStarted { provider: String, program: String, cause: io::Error },
    #[error("key_command of {0} printed no key within {1:?}: run it in a shell to see why")]
    Late(String, Duration),
    #[error("key_command of {provider} failed ({how}): run it in a shell to see why")]
    Failed { provider: String, how: String },
    #[error("key_command of {0} printed no key: its first line must be the key")]
    Empty(String),
}

/// How a command ended that gave no key.
fn ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit code {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The program of a key command, as it would be started in `env`. The command does not run: it may ask a person for a
/// password.
pub fn program_of(argv: &[String], env: &Env) -> Result<PathBuf, String> {
    let name = argv.first().ok_or("it names no program")?;
    let places: Vec<PathBuf> = match name.contains('/') {
        // The command runs in this directory.
        true => vec![Path::new("/").join(name)],
        false => {
            let path = env.get("PATH").map(String::as_str).unwrap_or_default();
            std::env::split_paths(path).map(|dir| dir.join(name)).collect()
        }
    };
    let can_start = |path: &&PathBuf| {
        path.is_file() && rustix::fs::access(path.as_path(), rustix::fs::Access::EXEC_OK).is_ok()
    };
    if let Some(found) = places.iter().find(can_start) {
        return Ok(found.clone());
    }
    Err(match places.iter().find(|path| path.exists()) {
        Some(path) => format!("{} is no program that you may start", path.display()),
        None if name.contains('/') => format!("there is no {name}"),
        None => format!("there is no {name} on PATH"),
    })
}

/// A command that prints a key; clones share the key.
#[derive(Clone)]
pub struct KeyCommand {
    provider: String,
    argv: Vec<String>,
    env: Arc<Env>,
    deadline: Duration,
    key: Arc<OnceCell<Secret>>,
    printed: PrintedKeys,
}

/// The keys that commands printed to this process; clones share them.
#[derive(Clone, Default)]
pub struct PrintedKeys(Arc<Mutex<ByCommand>>);

type ByCommand = BTreeMap<Vec<String>, Arc<OnceCell<Secret>>>;

impl PrintedKeys {
    /// The command that prints the key of a provider; it runs in `env`.
    pub fn command(&self, provider: &str, argv: &[String], env: Env) -> KeyCommand {
        let key = self.lock().entry(argv.to_vec()).or_default().clone();
        KeyCommand {
            provider: provider.to_owned(),
            argv: argv.to_vec(),
            env: Arc::new(env),
            deadline: DEADLINE,
            key,
            printed: self.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByCommand> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Two commands are equal while they share the key that one of them printed or will print.
impl PartialEq for KeyCommand {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.key, &other.key)
    }
}

impl Eq for KeyCommand {}

impl KeyCommand {
    /// The key: the one that the command printed before, else the command runs. Callers that come
    /// meanwhile wait for that one run.
    pub async fn key(&self) -> Result<Secret, KeyCommandError> {
        self.key.get_or_try_init(|| self.run()).await.cloned()
    }

    /// The provider refused the key: the command runs again for the next run of a Pod.
    pub fn forget(&self) {
        let mut printed = self.printed.lock();
        if printed.get(&self.argv).is_some_and(|key| Arc::ptr_eq(key, &self.key)) {
            printed.remove(&self.argv);
        }
    }

    async fn run(&self) -> Result<Secret, KeyCommandError> {
        let provider = || self.provider.clone();
        let failed = |how| KeyCommandError::Failed { provider: provider(), how };
        let not_started = |cause| KeyCommandError::NotStarted {
            provider: provider(),
            program: self.argv.first().cloned().unwrap_or_default(),
            cause,
        };
        let (program, args) = self
            .argv
            .split_first()
            .ok_or_else(|| not_started(io::Error::other("it names no program")))?;
        let of_home = |word: &String| match (word.strip_prefix("~/"), self.env.get("HOME")) {
            (Some(rest), Some(home)) => Path::new(home).join(rest).into_os_string(),
            _ => word.into(),
        };
        let mut command = Command::new(of_home(program));
        command
            .args(args.iter().map(of_home))
            .env_clear()
            .envs(self.env.iter())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // What it prints there may hold a part of the key.
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        let output = async {
            // A program on a mount that never answers keeps its thread, not one of the runtime.
            let started = tokio::task::spawn_blocking(move || command.spawn()).await;
            let mut child =
                Group(started.map_err(io::Error::other).flatten().map_err(not_started)?);
            let mut text = Vec::new();
            let mut stdout = child.0.stdout.take().map(|stdout| stdout.take(MOST));
            if let Some(stdout) = &mut stdout {
                let read = stdout.read_to_end(&mut text).await;
                read.map_err(|error| failed(format!("its output cannot be read: {error}")))?;
            }
            drop(stdout);
            match child.0.wait().await {
                Ok(status) if status.success() => Ok(text),
                Ok(status) => Err(failed(ended(status))),
                Err(error) => Err(failed(error.to_string())),
            }
        };
        let text = tokio::time::timeout(self.deadline, output)
            .await
            .map_err(|_| KeyCommandError::Late(provider(), self.deadline))??;
        let text = String::from_utf8_lossy(&text);
        match text.lines().next().map(str::trim) {
            Some(key) if !key.is_empty() => Ok(Secret::new(key)),
            _ => Err(KeyCommandError::Empty(provider())),
        }
    }
}

impl fmt::Debug for KeyCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyCommand").field("provider", &self.provider).finish_non_exhaustive()
    }
}

/// A command with all that it started; all of it ends with this value.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // A command that was waited for has no id any more.
        let pid = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(pid) = pid.and_then(rustix::process::Pid::from_raw) {
            // An error says that the group ended meanwhile.
            let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(printed: &PrintedKeys, script: &str) -> KeyCommand {
        let argv = ["sh", "-c", script].map(str::to_owned);
        let path = std::env::var("PATH").unwrap_or_default();
        printed.command("prov", &argv, Env::from([("PATH".into(), path)]))
    }

    #[tokio::test]
    async fn a_command_runs_once_for_all_and_again_after_its_key_was_refused() {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("runs");
        let script = format!(
            "echo run >> '{0}'; echo \" sk-$(wc -l < '{0}' | tr -d ' ') \"; echo login: me",
            runs.display()
        );
        let printed = PrintedKeys::default();
        let (first, second) = (shell(&printed, &script), shell(&printed, &script));
        let (one, two) = tokio::join!(first.key(), second.key());
        assert_eq!(one.unwrap().expose(), "sk-1");
        assert_eq!(two.unwrap().expose(), "sk-1");
        first.forget();
        // The other one holds the same old key and must not drop the new one.
        let next = shell(&printed, &script);
        assert_eq!(next.key().await.unwrap().expose(), "sk-2");
        second.forget();
        assert_eq!(shell(&printed, &script).key().await.unwrap().expose(), "sk-2");
    }

    #[tokio::test]
    async fn a_command_that_gives_no_key_is_named_and_its_output_is_not() {
        let printed = PrintedKeys::default();
        for (script, words) in [
            ("echo sk-part; exit 1", "failed (exit code 1)"),
            ("echo sk-part >&2; exit 78", "failed (exit code 78)"),
            ("echo sk-part; kill -9 $$", "failed (ended by signal 9)"),
            ("echo; echo sk-part", "its first line must be the key"),
        ] {
            let error = shell(&printed, script).key().await.unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(said.contains("key_command of prov") && said.contains(words), "{said}");
            assert!(!said.contains("sk-part"), "{said}");
        }
        let argv = ["/nowhere/pass".to_owned()];
        let error = printed.command("prov", &argv, Env::new()).key().await.unwrap_err().to_string();
        assert!(error.contains("key_command of prov cannot be started"), "{error}");
    }

    #[test]
    fn a_program_is_found_as_the_command_would_be_started() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("data"), "").unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        let env = Env::from([("PATH".into(), format!("{}:{path}", dir.path().display()))]);
        let found = |name: &str| program_of(&[name.to_owned()], &env);
        assert!(found("sh").unwrap().ends_with("sh"));
        assert_eq!(found("/bin/sh").unwrap(), Path::new("/bin/sh"));
        assert_eq!(found("no-such-program").unwrap_err(), "there is no no-such-program on PATH");
        assert_eq!(found("/nowhere/pass").unwrap_err(), "there is no /nowhere/pass");
        assert!(found("data").unwrap_err().ends_with("data is no program that you may start"));
        assert_eq!(program_of(&[], &env).unwrap_err(), "it names no program");
    }

    #[tokio::test]
    async fn a_command_that_hangs_ends_at_its_deadline_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let printed = PrintedKeys::default();
        let pids = dir.path().join("pids");
        let script = format!("sleep 1000 & echo $! > '{}'; wait", pids.display());
        let command =
            KeyCommand { deadline: Duration::from_millis(500), ..shell(&printed, &script) };
        let error = command.key().await.unwrap_err().to_string();
        assert!(error.contains("printed no key within 500ms"), "{error}");
        let pid: i32 = std::fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
        let is_alive = || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !state.is_empty() && !state.contains(") Z ")
        };
        let begun = std::time::Instant::now();
        while is_alive() {
            assert!(begun.elapsed() < Duration::from_secs(10), "{pid} was not ended");
            tokio::task::yield_now().await;
        }
    }
}
