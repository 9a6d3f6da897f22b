//! A home of its own for each measurement, with a host that runs in the background.

use crate::figure::Times;
use portable_pty::CommandBuilder;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use yoi::client::{Client, Events, find};
use yoi::protocol::method::NewPod;
use yoi::protocol::{Event, Method, PodInfo, PodName, Refusal, SpawnPod};
use yoi::scope::{Permission, Rule};

/// The longest the host may take for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program that is measured: this build's, or the one that `YOI` names.
pub fn program() -> String {
    std::env::var("YOI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_yoi").into())
}

/// What the model says in measurements: short words, or 200, 100 or 20 pieces a second.
const SCRIPT: &str = r#"
[[when]]
says = "stream"
[[when.step]]
text = "The quick brown fox jumps over the lazy dog.\n"
repeat = 2000
chunk = 10
delay_ms = 5

[[when]]
says = "tick"
[[when.step]]
text = "The quick brown fox jumps over the lazy dog.\n"
repeat = 2000
chunk = 10
delay_ms = 50

[[when]]
says = "pieces"
[[when.step]]
text = "The quick brown fox jumps over the lazy dog.\n"
repeat = 4000
chunk = 10
delay_ms = 10

[[when]]
says = "wait"
[[when.step]]
text = "Never said."
fault = { hang = 0, times = 9 }

[[when]]
any = true
text = "heard: {1}"
"#;

/// A profile whose model has no key where the environment is empty, and room for many children.
const CONFIG: &str = r#"
[profile.keyless]
model = "anthropic/claude-sonnet-4-5"

[limits]
live_children = 2000
"#;

/// Directories, and the host that serves them. Dropping it ends the host.
pub struct Home {
    dir: tempfile::TempDir,
    runtime: tokio::runtime::Runtime,
    host: Option<Child>,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["home", "ws"] {
            fs::create_dir(dir.path().join(name)).expect("a new directory");
        }
        fs::write(dir.path().join("script.toml"), SCRIPT).expect("a writable directory");
        fs::create_dir(dir.path().join("home/config")).expect("a new directory");
        fs::write(dir.path().join("home/config/config.toml"), CONFIG).expect("a writable file");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Self { dir, runtime: runtime.expect("a runtime"), host: None }
    }

    pub fn data(&self) -> PathBuf {
        self.dir.path().join("home/data")
    }

    fn env(&self) -> [(&'static str, String); 6] {
        [
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("HOME", self.dir.path().join("home").display().to_string()),
            ("YOI_HOME", self.dir.path().join("home").display().to_string()),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "xterm-256color".into()),
            ("COLORTERM", "truecolor".into()),
        ]
    }

    /// The program on a terminal.
    pub fn screen_command(&self, args: &[&str]) -> CommandBuilder {
        let mut command = CommandBuilder::new(program());
        command.args(args);
        command.cwd(self.dir.path().join("ws"));
        command.env_clear();
        for (name, value) in self.env() {
            command.env(name, value);
        }
        command
    }

    /// Starts the background host, as the dashboard does, and says how long it took to be ready.
    pub fn start_host(&mut self) -> Duration {
        let started = Instant::now();
        let mut host = Command::new(program())
            .arg("__host")
            .env_clear()
            .envs(self.env())
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut line = String::new();
        let out = host.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        // An earlier version, which `YOI` may name, says it without quotation marks.
        assert_eq!(line.trim_end().trim_matches('"'), "ready");
        self.host = Some(host);
        started.elapsed()
    }

    /// The process id of the running host, whoever started it.
    pub fn host(&self) -> u32 {
        match find::held(&self.data()) {
            find::Held::By(holder) => holder.pid,
            other => panic!("no host runs: {other:?}"),
        }
    }

    /// Ends the host; its Pods are live again at the next start.
    pub fn stop_host(&mut self) {
        let find::Held::By(holder) = find::held(&self.data()) else { return };
        let pid = i32::try_from(holder.pid).ok().and_then(rustix::process::Pid::from_raw);
        // One that has just ended is what is asked for.
        let _ = rustix::process::kill_process(
            pid.expect("a process id"),
            rustix::process::Signal::TERM,
        );
        if let Some(mut host) = self.host.take() {
            host.wait().expect("a host that ran");
        }
        let deadline = Instant::now() + PATIENCE;
        while Path::new(&format!("/proc/{}/exe", holder.pid)).exists() {
            assert!(Instant::now() < deadline, "the host does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Talks to the host.
    pub fn conversation<T>(&self, conversation: impl AsyncFnOnce(&Client, &mut Events) -> T) -> T {
        let data = self.data();
        self.runtime.block_on(async {
            let conversation = async {
                let found = find::connect(&data).await.expect("a connection");
                let (client, mut events) = found.expect("a host runs");
                conversation(&client, &mut events).await
            };
            tokio::time::timeout(PATIENCE, conversation).await.expect("the host answers")
        })
    }

    /// How long the list of all Pods takes, asked for so often.
    pub fn lists(&self, often: usize) -> Times {
        self.conversation(async |client, _| {
            let mut times = Times::default();
            for _ in 0..often {
                let begun = Instant::now();
                client.call(None, Method::ListPods).await.expect("a list");
                times.push(begun.elapsed());
            }
            times
        })
    }

    /// Creates a Pod on the scripted model, in a workspace of its own.
    pub fn new_pod(&self, name: &str) -> PodInfo {
        self.new_pod_in(name, self.dir.path().join("ws").join(name))
    }

    /// The same in the workspace of the terminal.
    pub fn new_pod_beside(&self, name: &str) -> PodInfo {
        self.new_pod_in(name, self.dir.path().join("ws"))
    }

    fn new_pod_in(&self, name: &str, cwd: PathBuf) -> PodInfo {
        fs::create_dir_all(&cwd).expect("a new directory");
        let model = format!("rehearsal:{}", self.dir.path().join("script.toml").display());
        let name = PodName::parse(name).ok();
        let new = NewPod { name, cwd, model: Some(model), ..NewPod::default() };
        let reply = self.conversation(async |client, _| client.call(None, Method::New(new)).await);
        match reply.expect("a new Pod") {
            Event::Created { info } => *info,
            other => panic!("no Pod but {other:?}"),
        }
    }

    /// Makes a child of a Pod that reads its parent's workspace and says one word; how long until
    /// it is there.
    pub fn spawn(&self, parent: &str, name: &str) -> Duration {
        self.spawn_for(parent, name, "hello")
    }

    /// The same of one that waits for its model from then on.
    pub fn spawn_at_work(&self, parent: &str, name: &str) -> Duration {
        self.spawn_for(parent, name, "wait")
    }

    fn spawn_for(&self, parent: &str, name: &str, task: &str) -> Duration {
        let (reply, took) = self.spawn_on(parent, (name, task), None);
        assert!(matches!(reply, Ok(Event::Spawned { .. })), "{reply:?}");
        took
    }

    /// The same with a profile whose model has no key; how long until that is said.
    pub fn spawn_in_vain(&self, parent: &str, name: &str) -> Duration {
        let (reply, took) = self.spawn_on(parent, (name, "hello"), Some("keyless"));
        assert!(reply.is_err(), "{reply:?}");
        took
    }

    fn spawn_on(
        &self,
        parent: &str,
        (name, task): (&str, &str),
        profile: Option<&str>,
    ) -> (Result<Event, Refusal>, Duration) {
        let target = self.dir.path().join("ws").join(parent);
        let target = target.canonicalize().expect("a workspace");
        let scope = vec![Rule::new(target, Permission::Read)];
        let task = task.to_owned();
        let profile = profile.map(str::to_owned);
        let new = SpawnPod { name: name.into(), task, scope, profile, ..SpawnPod::default() };
        let parent = PodName::parse(parent).expect("a name");
        self.conversation(async |client, _| {
            let begun = Instant::now();
            let reply = client.call(Some(&parent), Method::Spawn(new)).await;
            (reply, begun.elapsed())
        })
    }

    /// Says something to a Pod and waits until it has answered.
    pub fn say(&self, pod: &str, text: &str) {
        let pod = PodName::parse(pod).expect("a name");
        self.conversation(async |client, events| {
            client.call(None, Method::Watch).await.expect("a subscription");
            client.call(Some(&pod), Method::say(text)).await.expect("the message is taken");
            while let Some(event) = events.recv().await {
                if matches!(event.event, Event::RunEnd { .. }) {
                    return;
                }
            }
            panic!("the host ended");
        });
    }

    /// Starts a run and does not wait for it.
    pub fn start(&self, pod: &str, text: &str) {
        let pod = PodName::parse(pod).expect("a name");
        let reply =
            self.conversation(async |client, _| client.call(Some(&pod), Method::say(text)).await);
        reply.expect("the message is taken");
    }

    /// The segment of a Pod that has been spoken to.
    pub fn segment(&self, pod: &str) -> PathBuf {
        let listed = self.conversation(async |client, events| {
            client.call(None, Method::Watch).await.expect("a subscription");
            while let Some(event) = events.recv().await {
                if let Event::Family { pods, .. } = event.event {
                    return pods;
                }
            }
            panic!("the host ended");
        });
        let info = listed.into_iter().find(|info| info.name.as_str() == pod).expect("the Pod");
        let file = format!("{}.jsonl", info.segment.expect("it was spoken to"));
        let sessions = fs::read_dir(self.data().join("sessions")).expect("sessions");
        let paths = sessions.flatten().map(|session| session.path().join(&file));
        paths.into_iter().find(|path| path.exists()).expect("its log")
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.stop_host();
    }
}
