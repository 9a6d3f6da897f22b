//! The command line that starts bash, with and without confinement.

use rustix::fs::Access;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

/// A bash command in a directory, with exactly this environment.
pub fn command(program: &str, cwd: &Path, env: &BTreeMap<String, String>) -> Command {
    let mut command = Command::new("bash");
    command.arg("-c").arg(program).current_dir(cwd).env_clear().envs(env).env("PWD", cwd);
    command
}

/// Why it did not start: because of the directory, else of the shell.
pub fn not_started(cwd: &Path, error: &io::Error) -> String {
    match rustix::fs::access(cwd, Access::EXEC_OK) {
        Err(error) => format!("the directory {} cannot be entered: {error}", cwd.display()),
        Ok(()) => format!("bash: {error}"),
    }
}
