//! The person's editor. It owns the terminal while it runs, as a job of a shell does: a process group
//! of its own in the foreground, so that Ctrl+C and Ctrl+Z reach the editor and nothing else.

use crate::screen::run::terminal;
use nix::sys::signal::{SigSet, Signal};
use rustix::process::{Pid, WaitOptions, WaitStatus, getpgrp, kill_process_group, waitpid};
use rustix::termios::tcsetpgrp;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use yoi::text::Decoded;

/// The shell outlives the Ctrl+C that the editor gets, so that the editor's status counts.
const OUTLIVES: &str = "trap : INT QUIT\n";
/// The editor waits for a line before it reads the terminal, which it owns from then on.
const IN_FOREGROUND: &str = "read -r _ || exit 126\nexec </dev/tty\n";

/// Editors that go to a line for `+12`.
const TAKE_A_LINE: [&str; 13] = [
    "vi",
    "vim",
    "nvim",
    "view",
    "nano",
    "pico",
    "emacs",
    "emacsclient",
    "hx",
    "helix",
    "micro",
    "kak",
    "joe",
];

/// Opens `text` in the editor and returns the saved text; the error is a sentence. Blocks until the
/// editor ends.
pub fn edit(editor: &str, text: &str) -> Result<String, String> {
    let file = draft_file(text).map_err(|error| format!("cannot write the draft: {error}"))?;
    let path = file.path();
    let ended = ended(run(editor, path), editor);
    ended.map_err(|why| format!("{why}; the draft is as it was"))?;
    let saved = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Decoded::of(&saved).text.into_owned())
}

/// Opens a file in the editor, at this line where the editor is known to take one. Blocks until the editor ends.
pub fn open(editor: &str, file: &Path, line: Option<u64>) -> Result<(), String> {
    if !file.is_file() {
        return Err(format!("no file is at {}", file.display()));
    }
    let program = editor.split_whitespace().next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default();
    let line = line.filter(|_| TAKE_A_LINE.contains(&name));
    let editor = line.map_or(editor.to_owned(), |line| format!("{editor} +{line}"));
    ended(run(&editor, file), &editor)
}

/// Opens a file of settings at the line that sets this key, and makes the file if there is none. Blocks until the editor
/// ends.
pub fn open_settings(editor: &str, file: &Path, key: &str) -> Result<(), String> {
    let why = |error: io::Error| format!("{}: {error}", file.display());
    if !file.exists() {
        File::create_new(file).map_err(why)?;
    }
    let text = Decoded::of(&std::fs::read(file).map_err(why)?).text.into_owned();
    open(editor, file, line_of(key, &text))
}

/// The line of a TOML file that sets this key, which is named with its table; counted from 1.
fn line_of(key: &str, text: &str) -> Option<u64> {
    let mut table = String::new();
    for (at, line) in (1..).zip(text.lines().map(str::trim)) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.trim_start_matches('[').split(']').next().unwrap_or_default();
            table = format!("{name}.");
        } else if let Some((own, _)) = line.split_once('=')
            && key.strip_prefix(&table) == Some(own.trim())
        {
            return Some(at);
        }
    }
    None
}

/// A sentence for an editor that did not end well.
fn ended(status: io::Result<WaitStatus>, editor: &str) -> Result<(), String> {
    let status = status.map_err(|error| format!("cannot run {editor}: {error}"))?;
    let how = match (status.exit_status(), status.terminating_signal()) {
        (Some(0), _) => return Ok(()),
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        (None, None) => "an unknown status".to_owned(),
    };
    Err(format!("{editor} ended with {how}"))
}

fn draft_file(text: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("yoi-draft-").suffix(".md").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

fn run(editor: &str, file: &Path) -> io::Result<WaitStatus> {
    // Without a controlling terminal there is no foreground process group.
    let Ok(tty) = File::open("/dev/tty") else {
        let child = command(editor, "", file).spawn()?;
        return wait(pid_of(&child)?, || Ok(()));
    };
    let mut command = command(editor, IN_FOREGROUND, file);
    let mut child = command.stdin(Stdio::piped()).process_group(0).spawn()?;
    let group = pid_of(&child)?;
    let foreground = Foreground { tty, ours: getpgrp() };
    foreground.give_to(group)?;
    if let Some(mut gate) = child.stdin.take() {
        gate.write_all(b"\n")?;
    }
    wait(group, || {
        foreground.give_to(foreground.ours)?;
        // This process stops here, and the shell that started it gets the terminal.
        terminal::stop_group()?;
        foreground.give_to(group)?;
        kill_process_group(group, rustix::process::Signal::CONT)?;
        Ok(())
    })
}

/// The editor may be a command with arguments: the shell takes it apart.
fn command(editor: &str, before: &str, file: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{OUTLIVES}{before}{editor} \"$1\"")).arg("sh").arg(file);
    command
}

fn pid_of(child: &Child) -> io::Result<Pid> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::Error::other("the editor has no process id"))
}

/// Waits for the end of the editor. Calls `suspend` when the editor was stopped; `suspend` returns when
/// this process is continued.
fn wait(pid: Pid, suspend: impl Fn() -> io::Result<()>) -> io::Result<WaitStatus> {
    loop {
        match waitpid(Some(pid), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => suspend()?,
            Ok(Some((_, status))) => return Ok(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The foreground process group of the terminal. Dropping it makes this process the foreground again.
struct Foreground {
    tty: File,
    ours: Pid,
}

impl Foreground {
    /// A process in the background that changes the foreground would be stopped by SIGTTOU; blocked,
    /// that signal is not sent.
    fn give_to(&self, group: Pid) -> io::Result<()> {
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGTTOU);
        blocked.thread_block()?;
        let given = tcsetpgrp(&self.tty, group);
        blocked.thread_unblock()?;
        Ok(given?)
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        // This fails only when the terminal is gone, which ends the dashboard anyway.
        let _ = self.give_to(self.ours);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_its_table() {
        let text = "model = 'a'\nlimits.depth = 3\n[limits] # of runs\nmax_turns = 5\n\n[profile.quick]\n max_turns=7\n";
        let line = |key| line_of(key, text);
        assert_eq!((line("model"), line("limits.depth")), (Some(1), Some(2)));
        assert_eq!((line("limits.max_turns"), line("profile.quick.max_turns")), (Some(4), Some(7)));
        assert_eq!((line("max_turns"), line("profile.quick.model")), (None, None));
    }
}
