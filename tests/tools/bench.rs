//! A workspace and a context of calls, which stores the state of a Pod between calls.

use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use yoi::sandbox::{Confinement, Sandbox};
use yoi::scope::{Permission, Rule, Scope};
use yoi::tools::jobs::{JobNotice, JobRecords, Jobs};
use yoi::tools::{self, Context, Done, Output};

/// The confinement of commands on this machine, as a host probes it at its start.
pub fn walls() -> &'static Confinement {
    static WALLS: OnceLock<Confinement> = OnceLock::new();
    let probe = || {
        let sandbox = Sandbox {
            helper: env!("CARGO_BIN_EXE_yoi").into(),
            nofile: None,
            world: Default::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(sandbox.probe())
    };
    // The probe runs in a new thread, because this one may belong to an async runtime.
    WALLS.get_or_init(|| std::thread::spawn(probe).join().unwrap())
}

/// What a host records of commands in the background: the last number, and what was told of each that ended.
#[derive(Default)]
pub struct Records {
    last: AtomicU32,
    pub ended: watch::Sender<Vec<(u32, Option<JobNotice>)>>,
}

impl JobRecords for Records {
    fn begins(&self, _: String) -> BoxFuture<'static, Result<u32, String>> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        Box::pin(async move { Ok(number) })
    }

    fn ended(&self, number: u32, notice: Option<JobNotice>) -> BoxFuture<'static, ()> {
        self.ended.send_modify(|ended| ended.push((number, notice)));
        Box::pin(async {})
    }
}

pub struct Bench {
    pub ctx: Context,
    pub cancel: CancellationToken,
    pub records: Arc<Records>,
    root: PathBuf,
    _dir: TempDir,
}

impl Bench {
    /// A workspace `ws` that may be written, and `outside` that may not be touched.
    pub fn new() -> Self {
        Self::of(tempfile::tempdir().unwrap())
    }

    /// A bench below a directory.
    pub fn below(dir: &Path) -> Self {
        Self::of(tempfile::tempdir_in(dir).unwrap())
    }

    fn of(dir: TempDir) -> Self {
        let root = dir.path().canonicalize().unwrap();
        for name in ["ws", "outside", "home"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        let scope = Scope::new(vec![Rule::new(root.join("ws"), Permission::Write)]);
        let records = Arc::new(Records::default());
        let ctx = Context {
            cwd: root.join("ws"),
            given: scope.clone(),
            scope,
            env: BTreeMap::from([
                ("PATH".into(), std::env::var("PATH").unwrap()),
                ("HOME".into(), root.join("home").display().to_string()),
            ]),
            read: BTreeMap::new(),
            blobs: root.join("blobs"),
            outputs: root.join("outputs"),
            private: root.join("private"),
            tasks: tools::tasks::Tasks::default(),
            helper: env!("CARGO_BIN_EXE_yoi").into(),
            old_nofile: None,
            pod_world: Default::default(),
            jobs: Jobs::new(records.clone()),
            own: Vec::new(),
            command_time: Default::default(),
            command_limits: Default::default(),
            isolation: walls().isolation(),
            landlock: walls().abi,
            others: Vec::new(),
            group: Default::default(),
            path: None,
            needs: Vec::new(),
            outside: Vec::new(),
            credentials: Default::default(),
            granted_credentials: Vec::new(),
            scripts: Vec::new(),
            person: None,
            rules: Default::default(),
            pod_api: None,
            max_output: tools::MAX_OUTPUT,
        };
        Self { ctx, cancel: CancellationToken::new(), records, root, _dir: dir }
    }

    /// A path inside the directory of this bench.
    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Makes a file in the workspace.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.ctx.cwd.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Calls a tool and remembers what a Pod would.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Output {
        let text = arguments.to_string();
        let Done { output, tasks } =
            tools::ToolSet::default().run(name, &text, &self.ctx, &self.cancel, &mut |_| {}).await;
        for mark in &output.files {
            self.ctx.read.insert(mark.path.clone(), mark.hash.clone());
        }
        self.ctx.tasks = tasks.unwrap_or_else(|| self.ctx.tasks.clone());
        output
    }

    pub async fn bash(&mut self, command: &str) -> Output {
        self.call("Bash", serde_json::json!({"command": command})).await
    }

    pub async fn read(&mut self, path: &Path) -> Output {
        self.call("Read", serde_json::json!({"file_path": path})).await
    }

    pub async fn write(&mut self, path: &Path, content: &str) -> Output {
        self.call("Write", serde_json::json!({"file_path": path, "content": content})).await
    }

    pub async fn edit(&mut self, path: &Path, old: &str, new: &str) -> Output {
        let input = serde_json::json!({"file_path": path, "old_string": old, "new_string": new});
        self.call("Edit", input).await
    }
}

/// The error text of a refused call.
#[track_caller]
pub fn argument_error(output: &Output) -> &str {
    assert!(output.is_error, "not refused: {output:?}");
    assert_eq!(output.content, None);
    assert!(output.files.is_empty());
    output.summary.as_str()
}

/// The content of a call that went well.
#[track_caller]
pub fn content(output: &Output) -> &str {
    assert!(!output.is_error, "{output:?}");
    without_note(output)
}

/// The content without the last line, which names what is open where the confinement is incomplete.
pub fn without_note(output: &Output) -> &str {
    let content = output.content.as_deref().unwrap_or("");
    let here = Confinement { no_world: None, ..walls().clone() };
    let note = here.note().map(|note| format!("[{note}]\n"));
    note.and_then(|note| content.strip_suffix(note.as_str())).unwrap_or(content)
}
