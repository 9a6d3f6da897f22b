//! The stages before a command starts: each is this program with an argument of its own.

use crate::sandbox::order::{JsonLine as _, MARK, Report};
use crate::sandbox::{OWN_NAME, OWN_PROGRAM};
use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};

/// Starts the first stage after the helper, with only the mark of the command in its environment,
/// and its order on standard input.
pub fn first(argument: &str, mark: &str) -> Command {
    stage(argument, OsStr::new(mark))
}

/// Starts the stage after this one, in the same way.
pub fn next(argument: &str) -> Command {
    stage(argument, &std::env::var_os(MARK).unwrap_or_default())
}

fn stage(argument: &str, mark: &OsStr) -> Command {
    let mut stage = Command::new(OWN_PROGRAM);
    stage
        .arg0(OWN_NAME)
        .arg(argument)
        .env_clear()
        .env(MARK, mark)
        .current_dir("/")
        .stdin(Stdio::piped());
    stage
}

/// Sends the report. The exit code shows whether that succeeded.
pub fn report(report: &Report) -> ExitCode {
    if send(&report.line()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Sends a line to the stage before this one, or to the host.
pub fn send(line: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(line.as_bytes())?;
    out.flush()
}

/// Reports why the command did not start.
pub fn failed(reason: String) -> ExitCode {
    report(&Report::failed(reason));
    ExitCode::FAILURE
}
