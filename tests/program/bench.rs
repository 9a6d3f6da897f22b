//! A home and a workspace of its own for every test, and ways to run the program in them.

use crate::hangs;
use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for the program before it says that the program hangs.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The same, or as many seconds as `YOI_PATIENCE` says: a long run makes long logs.
fn patience() -> Duration {
    let seconds = std::env::var("YOI_PATIENCE").ok().and_then(|text| text.parse().ok());
    seconds.map_or(PATIENCE, Duration::from_secs)
}

/// What the scripted model does in most tests.
pub const SCRIPT: &str = r#"
[[when]]
says = "greet *"
[[when.step]]
text = "I write a greeting for {1}."
call = [{ name = "Write", args = { file_path = "{cwd}/hello.txt", content = "Hello, {1}!\n" } }]
[[when.step]]
text = "Done: {1}"

[[when]]
says = "run *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "slow*"
[[when.step]]
text = "word "
repeat = 2000
chunk = 5
delay_ms = 20

[[when]]
says = "fail*"
[[when.step]]
text = "never"
fault = { error = "the model is ill", retryable = false }

[[when]]
any = true
text = "heard: {1}"
"#;

/// The program under test. `YOI` may name another build of it, so that a long run is that of a released one.
fn program() -> String {
    std::env::var("YOI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_yoi").to_owned())
}

/// What a run of the program ended with.
#[derive(Debug)]
pub struct Done {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Done {
    /// The lines of standard output, each a JSON object.
    pub fn events(&self) -> Vec<Value> {
        self.out.lines().map(|l| serde_json::from_str(l).expect("one JSON object a line")).collect()
    }

    pub fn last_words(&self) -> &str {
        self.err.lines().last().unwrap_or("")
    }
}

/// A place for one test. Dropping it ends the host that may run in the background.
pub struct Bench {
    dir: tempfile::TempDir,
    /// The network namespace in which its programs run, if not in that of the test.
    pub space: Option<String>,
}

impl Bench {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["home", "ws"] {
            fs::create_dir(dir.path().join(name)).expect("a new directory");
        }
        fs::write(dir.path().join("script.toml"), SCRIPT).expect("a writable directory");
        hangs::watch(dir.path());
        Self { dir, space: None }
    }

    /// A place below `/tmp` whose path is as long as the one of the directories in `tests/earlier`.
    pub fn of_earlier_data() -> Self {
        let dir = tempfile::Builder::new().prefix("yoi-").rand_bytes(6).tempdir_in("/tmp");
        let dir = dir.expect("a temporary directory");
        for name in ["home", "ws"] {
            fs::create_dir(dir.path().join(name)).expect("a new directory");
        }
        hangs::watch(dir.path());
        Self { dir, space: None }
    }

    /// Notes that the test goes on: a long one does not hang.
    pub fn goes_on(&self) {
        hangs::watch(self.dir.path());
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The workspace.
    pub fn ws(&self) -> PathBuf {
        self.path("ws")
    }

    pub fn data(&self) -> PathBuf {
        self.path("home/data")
    }

    pub fn runtime(&self) -> PathBuf {
        self.path("home/run")
    }

    /// Settings by which no model server of this machine is found, whatever runs on it; further lines may
    /// follow.
    pub fn without_local_models(&self) -> String {
        let dead = || std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let nowhere = || format!("http://{}", dead().local_addr().expect("its address"));
        let settings = format!(
            "provider.ollama.base_url = '{}'\nprovider.lmstudio.base_url = '{}'\n",
            nowhere(),
            nowhere()
        );
        self.settings(&settings);
        settings
    }

    /// Writes `config.toml`.
    pub fn settings(&self, text: &str) {
        fs::create_dir_all(self.path("home/config")).expect("a writable home");
        fs::write(self.path("home/config/config.toml"), text).expect("a writable home");
    }

    /// The model that plays the script.
    pub fn model(&self) -> String {
        format!("rehearsal:{}", self.path("script.toml").display())
    }

    /// Makes the scripted model do something else.
    pub fn play(&self, script: &str) {
        fs::write(self.path("script.toml"), script).expect("a writable directory");
    }

    /// The program, in the workspace, with nothing of this process's environment but the PATH.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.prepared(&program(), "");
        command.args(args);
        command
    }

    /// A line of a shell in the same place, in which `yoi` is the program.
    pub fn shell(&self, line: &str) -> Command {
        let programs = self.path("bin");
        if !programs.is_dir() {
            fs::create_dir(&programs).expect("a new directory");
            std::os::unix::fs::symlink(program(), programs.join("yoi")).expect("a new link");
        }
        let mut command = self.prepared("sh", &format!("{}:", programs.display()));
        command.args(["-c", line]);
        command
    }

    /// Another program in the same place.
    pub fn program(&self, program: &str) -> Command {
        self.prepared(program, "")
    }

    fn prepared(&self, program: &str, programs: &str) -> Command {
        let mut command = match &self.space {
            None => Command::new(program),
            Some(space) => {
                let mut command = Command::new("ip");
                // It replaces itself by the program.
                command.args(["netns", "exec", space, program]);
                command
            }
        };
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .current_dir(self.ws())
            .env_clear()
            .env("PATH", format!("{programs}{path}"))
            .env("HOME", self.path("home"))
            .env("YOI_HOME", self.path("home"))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub fn yoi(&self, args: &[&str]) -> Done {
        self.finish(self.command(args).spawn().expect("the program starts"))
    }

    /// Runs the program with this standard input.
    pub fn yoi_reading(&self, args: &[&str], input: impl AsRef<[u8]>) -> Done {
        self.reading(self.command(args), input)
    }

    /// Runs a command to its end with this standard input.
    pub fn reading(&self, mut command: Command, input: impl AsRef<[u8]>) -> Done {
        let file = self.path("stdin");
        fs::write(&file, input).expect("a writable directory");
        let input = fs::File::open(&file).expect("the file just written");
        self.finish(command.stdin(input).spawn().expect("the program starts"))
    }

    /// One message to a fresh Pod on the scripted model.
    pub fn say(&self, prompt: &str) -> Done {
        self.yoi(&["--no-ui", "--model", &self.model(), "-p", prompt])
    }

    /// Waits for the end of a run.
    pub fn finish(&self, child: Child) -> Done {
        let pid = child.id();
        let (send, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || send.send(child.wait_with_output()));
        let Ok(output) = ended.recv_timeout(patience()) else {
            signal(pid, "KILL");
            panic!("the program did not end within {:?}", patience());
        };
        let output = output.expect("a program that ran");
        Done {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A host in the foreground, once it serves.
    pub fn serve(&self) -> Host {
        let child = self.command(&["--no-ui", "--serve"]).spawn().expect("the program starts");
        let pid = child.id();
        let host = Host { child };
        eventually("the host serves", || {
            self.host_pid() == Some(pid)
                && self.socket().is_some_and(|s| UnixStream::connect(s).is_ok())
        });
        host
    }

    /// The socket of the running host, as the lock file says.
    pub fn socket(&self) -> Option<PathBuf> {
        let text = fs::read_to_string(self.data().join("host.lock")).ok()?;
        let holder: Value = serde_json::from_str(&text).ok()?;
        let socket = PathBuf::from(holder["socket"].as_str()?);
        socket.exists().then_some(socket)
    }

    /// The process id of the running host.
    pub fn host_pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.data().join("host.lock")).ok()?;
        let holder: Value = serde_json::from_str(&text).ok()?;
        let pid = u32::try_from(holder["pid"].as_u64()?).ok()?;
        alive(pid).then_some(pid)
    }

    /// What `yoi ls --all --json` says of a Pod.
    pub fn pod(&self, name: &str) -> Option<Value> {
        let done = self.yoi(&["ls", "--all", "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.events().into_iter().find(|info| info["name"] == name)
    }

    /// The entries of a Pod's log.
    pub fn log(&self, name: &str) -> Vec<Value> {
        let done = self.yoi(&["log", name, "--json"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        done.events()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _unwatched = hangs::Unwatch(self.dir.path());
        if self.host_pid().is_some() {
            let _ = self.command(&["host", "stop"]).output();
        }
        if let Some(pid) = self.host_pid() {
            signal(pid, "KILL");
        }
    }
}

/// A host that this test started.
pub struct Host {
    pub child: Child,
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
/// A server on a free port, which hands each connection to `answer`, one after the other.
pub fn server(mut answer: impl FnMut(&TcpStream) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(&stream)));
    address
}

pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill -{name} {pid}");
}

/// Whether a process runs; one that ended and was not waited for does not.
pub fn alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    state.is_some_and(|state| state != 'Z' && state != 'X')
}

/// Waits until something outside this process is so; fails when it does not become so.
pub fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    let patience = patience();
    let deadline = Instant::now() + patience;
    while !so() {
        assert!(Instant::now() < deadline, "in {patience:?} it did not happen that {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Every file below a directory.
pub fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|t| t.is_dir()) {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
