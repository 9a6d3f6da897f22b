//! One directory in which a project is built by turns, from a Pod and from outside.

use crate::project::Project;
use serde_json::Value;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A project, a home with the person's caches, and the program's own directories.
pub struct Place {
    project: &'static Project,
    dir: tempfile::TempDir,
}

impl Place {
    pub fn of(project: &'static Project) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let place = Self { project, dir };
        for name in ["home/.cache", "yoi", "fresh", "ws"] {
            fs::create_dir_all(place.path(name)).expect("a new directory");
        }
        let git = "[user]\n\tname = A\n\temail = a@example.com\n[gc]\n\tauto = 0\n";
        fs::write(place.path("home/.gitconfig"), git).expect("a new file");
        fs::write(place.path("script.toml"), script(project)).expect("a new file");
        let fresh = place.path("fresh");
        project.write(&fresh, |line| {
            place.run(line, &fresh);
        });
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Builds the project anew outside; the time of each step.
    pub fn outside(&self) -> Vec<Duration> {
        self.renew();
        let ws = self.path("ws");
        self.project.steps.iter().map(|(_, line)| self.run(line, &ws)).collect()
    }

    /// The same in a new Pod, each step a call of Bash: from the call to its result.
    pub fn inside(&self) -> Vec<Duration> {
        self.renew();
        let model = format!("rehearsal:{}", self.path("script.toml").display());
        let program = std::env::var("YOI").unwrap_or_else(|_| env!("CARGO_BIN_EXE_yoi").into());
        let mut child = self
            .command(&program, &self.path("ws"))
            .args(["--no-ui", "--json", "--model", &model, "-p", "go"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let (mut begun, mut times) = (Instant::now(), Vec::new());
        for line in BufReader::new(child.stdout.take().expect("its output")).lines() {
            let line = line.expect("a line");
            let event: Value = serde_json::from_str(&line).expect("one JSON object a line");
            match event["event"].as_str() {
                Some("tool_call_done") => begun = Instant::now(),
                Some("tool_result") => {
                    times.push(begun.elapsed());
                    let said = event["data"]["summary"].as_str().unwrap_or_default();
                    assert!(said.starts_with("Exit 0"), "{}: {line}", self.project.name);
                }
                Some(_) | None => {}
            }
        }
        let mut said = String::new();
        let _ = child.stderr.take().expect("its errors").read_to_string(&mut said);
        assert!(child.wait().expect("its end").success(), "{}: {said}", self.project.name);
        assert_eq!(times.len(), self.project.steps.len(), "{}: {said}", self.project.name);
        times
    }

    /// Puts the project back as it was before it was ever built.
    fn renew(&self) {
        let ws = self.path("ws");
        fs::remove_dir_all(&ws).expect("a directory that can be removed");
        let (from, to) = (self.path("fresh"), ws);
        let copied = Command::new("cp").arg("-a").arg(from).arg(to).status();
        assert!(copied.expect("cp").success(), "cp -a");
        // What was written before is not part of what is measured.
        rustix::fs::sync();
    }

    fn run(&self, line: &str, dir: &Path) -> Duration {
        let begun = Instant::now();
        let done = self.command("bash", dir).args(["-c", line]).output().expect("bash");
        let took = begun.elapsed();
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
        took
    }

    /// A program with a home of its own, and the toolchains of this machine.
    fn command(&self, program: &str, dir: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(dir)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("YOI_HOME", self.path("yoi"))
            .env("LANG", "C.UTF-8")
            .stdin(Stdio::null());
        let real = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        let rustup = std::env::var_os("RUSTUP_HOME").map_or(real.join(".rustup"), PathBuf::from);
        if rustup.is_dir() {
            command.env("RUSTUP_HOME", rustup);
        }
        command
    }
}

/// A model that calls Bash for one step after the other.
fn script(project: &Project) -> String {
    let mut text = String::from("[[when]]\nany = true\n");
    for (_, line) in project.steps {
        let args = serde_json::json!({ "command": line, "timeout": 600 }).to_string();
        text.push_str(&format!(
            "[[when.step]]\ncall = [{{ name = \"Bash\", args = '''{args}''' }}]\n"
        ));
    }
    text + "[[when.step]]\ntext = \"done\"\n"
}
