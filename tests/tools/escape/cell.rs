//! A bench that runs commands with the confinement that a test chooses.

use crate::bench::{Bench, walls};
use crate::escape::ways;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use yoi::protocol::family::Confined;
use yoi::protocol::{OutsideAccess, OutsidePath, ScriptHash};
use yoi::sandbox::{
    Command, CommandLimits, CommandView, Confinement, Ended, Isolation, Need, Outcome, Sandbox,
    SandboxError, StartGroup, UserPaths, ViewInputs,
};

pub struct Cell {
    pub bench: Bench,
    pub needs: Vec<Need>,
    /// The paths that [`Need::Outside`] means.
    pub outside: Vec<OutsidePath>,
    /// The scripts that were approved.
    pub scripts: Vec<ScriptHash>,
    pub isolation: Isolation,
    pub limits: CommandLimits,
    /// The commands that start together with the next one.
    pub group: StartGroup,
    /// Whether its commands run as one in the background does.
    pub in_background: bool,
    /// The directories of the scope that it then writes, relative to the bench.
    pub writes: Vec<&'static str>,
    /// The timeout of a command in seconds.
    pub seconds: u64,
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Did {
    pub ended: Ended,
    pub text: String,
}

/// The home directory is the test's own; the toolchains are those of this machine.
fn toolchains(env: &mut BTreeMap<String, String>) {
    let real = std::env::var("HOME").unwrap_or_default();
    for (name, usual) in [
        ("CARGO_HOME", ".cargo"),
        ("RUSTUP_HOME", ".rustup"),
        ("PYENV_ROOT", ".pyenv"),
        ("NVM_DIR", ".nvm"),
    ] {
        let place = std::env::var(name).unwrap_or_else(|_| format!("{real}/{usual}"));
        if Path::new(&place).is_dir() {
            env.insert(name.into(), place);
        }
    }
}

impl Cell {
    /// A workspace, and a file outside it that says `outside`.
    pub fn new() -> Self {
        Self::on(Bench::new())
    }

    /// A cell in a directory outside `/tmp`, wherever the repository is, because a command has a
    /// `/tmp` of its own.
    pub fn outside_of_tmp() -> Self {
        let build = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let dir = if build.starts_with("/tmp") { Path::new("/var/tmp") } else { build };
        Self::on(Bench::below(dir))
    }

    fn on(mut bench: Bench) -> Self {
        fs::write(bench.path("outside/secret"), "outside").unwrap();
        bench.ctx.own = vec![bench.path("own")];
        toolchains(&mut bench.ctx.env);
        let (needs, limits) = (Vec::new(), CommandLimits::default());
        let (outside, scripts) = (Vec::new(), Vec::new());
        Self {
            bench,
            needs,
            outside,
            scripts,
            isolation: walls().isolation(),
            limits,
            group: StartGroup::default(),
            in_background: false,
            writes: Vec::new(),
            seconds: 120,
        }
    }

    pub fn with(needs: &[Need]) -> Self {
        Self { needs: needs.into(), ..Self::new() }
    }

    /// A cell whose commands name these paths outside the scope.
    pub fn naming(paths: &[(OutsideAccess, &str)]) -> Self {
        let mut cell = Self::with(&[Need::Outside]);
        cell.name(paths);
        cell
    }

    /// From now on commands name these paths, relative to the bench.
    pub fn name(&mut self, paths: &[(OutsideAccess, &str)]) {
        self.needs = vec![Need::Outside];
        let named = |(access, path): &(OutsideAccess, &str)| OutsidePath {
            path: self.path(path),
            access: *access,
        };
        self.outside = paths.iter().map(named).collect();
    }

    /// A cell without mounts, as on a machine that forbids user namespaces.
    pub fn without_mounts() -> Self {
        Self { isolation: Isolation::LandlockOnly, ..Self::new() }
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.bench.path(relative)
    }

    pub fn env(&mut self, name: &str, value: impl Into<String>) {
        self.bench.ctx.env.insert(name.into(), value.into());
    }

    pub async fn run(&self, program: &str) -> Did {
        self.try_run(program).await.unwrap()
    }

    /// Runs a command that may fail to start.
    pub async fn try_run(&self, program: &str) -> Result<Did, SandboxError> {
        let ctx = &self.bench.ctx;
        let person = UserPaths { env: &ctx.env };
        let (scope, given, own, others) = (&ctx.scope, &ctx.given, &ctx.own, &ctx.others);
        let needs = &self.needs;
        let (isolation, limits) = (self.isolation, self.limits);
        let outputs = Some(ctx.outputs.as_path());
        let private = Some(ctx.private.as_path());
        let (outside, names) = (self.outside.as_slice(), [].as_slice());
        let around = ViewInputs {
            scope,
            given,
            person,
            own,
            needs,
            outside,
            names,
            others,
            outputs,
            private,
            isolation,
            limits,
        };
        let view = CommandView::new(&around);
        let (scripts, in_background) = (self.scripts.clone(), self.in_background);
        let writes = self.writes.iter().map(|dir| self.path(dir)).collect();
        let view = Some(CommandView { scripts, in_background, writes, ..view });
        let timeout = Duration::from_secs(self.seconds);
        let (program, cwd, env) = (program.into(), ctx.cwd.clone(), ctx.env.clone());
        let command = Command { program, cwd, env, timeout, view, group: self.group.clone() };
        let (helper, world) = (ctx.helper.clone(), ctx.pod_world.clone());
        let sandbox = Sandbox { helper, nofile: None, world };
        let mut bytes = Vec::new();
        let ended = sandbox.run(&command, &self.bench.cancel, |part| bytes.extend(part)).await?;
        Ok(Did { ended, text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Runs a command without any confinement.
    pub async fn free(&self, program: &str) -> Ended {
        let ctx = &self.bench.ctx;
        let timeout = Duration::from_secs(120);
        let (program, cwd, env) = (program.into(), ctx.cwd.clone(), ctx.env.clone());
        let command =
            Command { program, cwd, env, timeout, view: None, group: StartGroup::default() };
        let sandbox = Sandbox { helper: ctx.helper.clone(), ..Sandbox::default() };
        sandbox.run(&command, &self.bench.cancel, |_| {}).await.unwrap()
    }

    pub async fn python(&self, program: &str) -> Did {
        fs::write(self.path("ws/program.py"), program).unwrap();
        self.run("exec python3 program.py").await
    }

    /// Whether namespaces, or else Landlock of at least version `abi`, prevent what a test tries.
    /// If not, asserts that the confinement reports it as open.
    pub fn covered(&self, abi: u32, what: &str) -> bool {
        let confinement = walls();
        if self.has_world() || confinement.abi >= abi {
            return true;
        }
        println!("not covered: {what} needs Landlock {abi}, this kernel has {}", confinement.abi);
        assert_ne!(confinement.word, Confined::Enforced, "{confinement:?}");
        false
    }

    /// Fails where commands run without namespaces, before a test that would exhaust the machine
    /// there.
    #[track_caller]
    pub fn only_in_a_world(&self) {
        assert!(self.has_world(), "not tried without a world");
    }

    /// Fails where the number of a command's processes is not limited, before a test that would
    /// exhaust the machine there.
    #[track_caller]
    pub fn only_where_processes_are_counted(&self) {
        self.only_in_a_world();
        let unlimited = walls().open.iter().any(|open| open == ways::COUNT);
        assert!(!unlimited, "not tried without a limit of processes");
    }

    /// Whether its commands run in namespaces.
    pub fn has_world(&self) -> bool {
        self.isolation == Isolation::Namespaces
    }
}

/// The setting in which `settings.rs` started this program.
pub const SETTING: &str = "YOI_SETTING";

/// Whether a test that needs namespaces is skipped, because this machine forbids them. In a setting
/// none is skipped: `settings.rs` lists the tests that fail there.
pub fn no_world_to_test() -> bool {
    let left_out = walls().no_world.is_some() && std::env::var_os(SETTING).is_none();
    assert!(left_out || walls().word != Confined::NotEnforced, "nothing holds these commands");
    if left_out {
        println!("not covered: {}", walls().text());
    }
    left_out
}

/// A time to sleep with which no other program that runs these tests finds the process.
pub fn seconds(of: &str) -> String {
    format!("{of}{:07}", std::process::id())
}

/// Whether a process with these words in its command line runs on this machine.
pub fn runs(words: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").contains(words)
    })
}

impl Did {
    pub fn confinement(&self) -> &Confinement {
        self.ended.confinement.as_ref().unwrap()
    }

    #[track_caller]
    pub fn well(&self) -> &str {
        assert_eq!(self.ended.outcome, Outcome::Exited(0), "{}", self.text);
        &self.text
    }

    /// Asserts that `count` changes of the command were undone after it; without namespaces
    /// Landlock may have refused them instead.
    #[track_caller]
    pub fn undone(&self, count: usize) {
        let undone = self.ended.undone.len();
        let refused_before = walls().no_world.is_some() && undone < count;
        assert!(undone == count || refused_before, "not {count}: {:?}", self.ended);
    }

    #[track_caller]
    pub fn refused(&self) {
        assert_ne!(self.ended.outcome, Outcome::Exited(0), "not refused: {}", self.text);
        assert!(!self.text.contains("outside\n"), "{}", self.text);
        const WALLS: [&str; 13] = [
            "must be superuser",
            "permission denied",
            "No such file or directory",
            "No such process",
            "Connection refused",
            "Network is unreachable",
            "Permission denied",
            "Operation not permitted",
            "Read-only file system",
            "Device or resource busy",
            "cross-device link",
            "Invalid cross-device",
            "Function not implemented",
        ];
        assert!(WALLS.iter().any(|wall| self.text.contains(wall)), "no wall: {}", self.text);
    }
}
