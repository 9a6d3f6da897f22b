//! A home, a model server and the program as a host, started and killed at will.

use crate::hub::{Hub, within};
use crate::ledger::Acknowledged;
use crate::provider::Provider;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// How soon after a kill the last command has ended.
const ENDED_IN: Duration = Duration::from_secs(30);

/// The place of one test. When the test fails it stays and is named.
pub struct Bench {
    dir: Option<tempfile::TempDir>,
    root: PathBuf,
    pub provider: Provider,
    pub acknowledged: Arc<Mutex<Acknowledged>>,
}

/// A running host.
pub struct Host {
    child: Child,
    socket: PathBuf,
}

impl Bench {
    pub async fn new(pace: Duration) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = dir.path().canonicalize().expect("a directory");
        let provider = Provider::start(pace).await;
        let config = root.join("home/config");
        std::fs::create_dir_all(&config).expect("a new directory");
        std::fs::write(config.join("config.toml"), provider.settings()).expect("a new file");
        Self { dir: Some(dir), root, provider, acknowledged: Arc::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn data(&self) -> PathBuf {
        self.root.join("home/data")
    }

    /// What the tools left, each in the directory of its Pod.
    pub fn effects(&self) -> String {
        let mut found = Vec::new();
        collect(&self.root, "out/effects", &mut found);
        found.iter().map(|file| std::fs::read_to_string(file).expect("a ledger")).collect()
    }

    /// Makes the directory of a Pod: one for its ledger, one to lend.
    pub fn room(&self, path: &Path) {
        for part in ["out", "lent"] {
            std::fs::create_dir_all(path.join(part)).expect("a new directory");
        }
    }

    /// Starts a host.
    pub async fn serve(&self) -> Host {
        self.try_serve(&[]).await.expect("a host that serves")
    }

    /// Starts a host with these settings in its environment; what it said when it ended before it
    /// could be reached.
    pub async fn try_serve(&self, env: &[(&str, String)]) -> Result<Host, String> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_yoi"))
            .args(["--no-ui", "--serve"])
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.root)
            .env("YOI_HOME", self.root.join("home"))
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stderr.take().expect("its errors")).lines();
        let mut said = Vec::new();
        loop {
            match within("the host", lines.next_line()).await {
                Ok(Some(line)) if line.contains("serving on ") => break,
                Ok(Some(line)) => said.push(line),
                Ok(None) | Err(_) => {
                    let status = child.wait().await;
                    return Err(format!("{status:?}: {}", said.join("; ")));
                }
            }
        }
        // Somebody must read on, or the host would wait for a full pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let lock = std::fs::read(self.data().join("host.lock")).expect("the lock file");
        let lock: Value = serde_json::from_slice(&lock).expect("who holds the lock");
        let socket = lock["socket"].as_str().expect("a path").into();
        Ok(Host { child, socket })
    }

    /// A new connection; `None` when the host ended meanwhile.
    pub async fn connect(&self, host: &Host) -> Option<Hub> {
        Hub::open(&host.socket, self.acknowledged.clone()).await
    }

    /// Creates a Pod with a workspace of its own.
    pub async fn new_pod(&self, hub: &Hub, name: &str) -> Option<Value> {
        let cwd = self.path(name);
        self.room(&cwd);
        let env = json!({"PATH": std::env::var("PATH").unwrap_or_default()});
        let new = json!({"name": name, "cwd": cwd, "model": "fake/m", "env": env});
        let reply = hub.call(None, "new", new).await?;
        assert_eq!(reply["event"], "created", "{reply}");
        Some(reply)
    }

    /// No process that works in a directory of this place is left; those that end the commands of
    /// a killed host get a moment to do so.
    pub async fn no_process_left(&self) {
        let begun = std::time::Instant::now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return;
            }
            assert!(begun.elapsed() < ENDED_IN, "processes are left: {left:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// The command lines of those that work in a directory of this place.
    fn processes(&self) -> Vec<String> {
        let all = std::fs::read_dir("/proc").expect("the processes").flatten();
        let here = all.filter(|process| {
            let cwd = std::fs::read_link(process.path().join("cwd"));
            cwd.is_ok_and(|cwd| cwd.starts_with(&self.root))
        });
        here.filter_map(|process| std::fs::read_to_string(process.path().join("cmdline")).ok())
            .map(|line| line.replace('\0', " "))
            .collect()
    }

    /// The Pods whose sockets are there, whether anybody listens or not.
    pub fn sockets(&self) -> std::collections::BTreeSet<String> {
        let run = std::fs::read_dir(self.root.join("home/run")).expect("the sockets").flatten();
        let pods = run.filter(|pod| pod.path().join("sock").exists());
        let names = pods.map(|pod| pod.file_name().to_string_lossy().into_owned());
        names.filter(|name| !name.starts_with('.')).collect()
    }

    /// Every file below the data directory whose name ends so.
    pub fn files(&self, ending: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.data().join("sessions"), ending, &mut found);
        found
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Some(dir) = self.dir.take()
        {
            eprintln!("the files of the failed test are in {}", dir.keep().display());
        }
    }
}

impl Host {
    pub async fn kill(mut self) {
        self.child.kill().await.expect("a child can be killed");
    }

    /// Waits until it is gone by itself; whether it was killed.
    #[cfg(feature = "crash-points")]
    pub async fn died(mut self) -> bool {
        use std::os::unix::process::ExitStatusExt as _;
        let status = within("the end of the host", self.child.wait()).await;
        status.expect("a child can be waited for").signal() == Some(9)
    }

    /// Whether it still runs.
    #[cfg(feature = "crash-points")]
    pub fn lives(&mut self) -> bool {
        self.child.try_wait().expect("a child can be waited for").is_none()
    }
}

fn collect(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        // Links are not followed: the directory that a Pod has for its `/tmp` may hold one to `/tmp`.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}
