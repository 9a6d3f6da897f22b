//! Starts this program again, as one of the processes of a command: the first argument says which.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

/// The hidden first argument under which the program is the helper.
pub const HELPER_ARG: &str = "__run";
/// The hidden first argument of the keeper of a Pod's network.
pub const KEEPER_ARG: &str = "__keep";
/// The hidden first argument of the stage that enters namespaces of its own.
pub const ENTER_ARG: &str = "__enter";
/// The hidden first argument of the first process in them.
pub const INIT_ARG: &str = "__init";
/// The hidden first argument of the last stage, which confines itself and executes the command.
pub const CONFINE_ARG: &str = "__confine";
/// The program itself, also when its file was replaced since it started.
pub const OWN_PROGRAM: &str = "/proc/self/exe";
/// The name by which lists of processes show the program, started in that way.
pub const OWN_NAME: &str = "yoi";

/// The variable that marks all processes of a command, so that they are found without the helper.
pub const MARK: &str = "YOI_RUN";

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

/// Sends a line to the stage before this one, or to the host.
pub fn send(line: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(line.as_bytes())?;
    out.flush()
}
