//! Advice to a person about a server that failed.

use crate::config::McpDefinition;
use crate::config::mcp::{Reach, START_DIR};
use crate::mcp::connection::AUTHORIZATION;
use crate::mcp::launch::Launch;
use std::path::Path;

/// Words of programs that found no network.
const NO_NETWORK: [&str; 9] = [
    "ENOTFOUND",
    "EAI_AGAIN",
    "getaddrinfo",
    "name resolution",
    "ENETUNREACH",
    "Network is unreachable",
    "resolve host",
    "dns error",
    "Failed to fetch",
];
/// Words of programs that may not write.
const READ_ONLY: [&str; 2] = ["Read-only file system", "EROFS"];
/// Words of programs that did not find a file or a module.
const NO_FILE: [&str; 4] =
    ["No such file or directory", "Cannot find module", "No module named", "Module not found"];
/// The exit codes of a shell that did not find or could not start a program.
const NO_PROGRAM: [&str; 2] = ["exit code 127", "exit code 126"];

/// The reason why a server failed, with advice: a sentence without a subject, and without secrets.
pub(super) fn with_advice(why: &str, definition: &McpDefinition, launch: &Launch) -> String {
    let advice = advice(why, definition, launch.unread(definition));
    launch.hidden(definition).redact(&format!("{why}; {advice}"))
}

/// Only the words of other programs tell their reasons apart. `unread` is a file of the command line that the server
/// does not see.
fn advice(why: &str, definition: &McpDefinition, unread: Option<&Path>) -> String {
    let McpDefinition { name, reach, network, write, file, of_workspace, .. } = definition;
    // A server over HTTP is reached by yoi itself: no grant of the settings is about it.
    let is_program = matches!(reach, Reach::Program { .. });
    let has = |parts: &[&str]| parts.iter().any(|part| why.contains(part));
    if let Some(path) = unread.filter(|_| has(&["exit code"])) {
        let dir = path.parent().unwrap_or(path);
        let dir = dir.parent().filter(|_| dir.ends_with("bin")).unwrap_or(dir);
        return format!(
            "it does not see {}, which is outside the scope of its pod: `read = [\"{}\"]` below [mcp.{name}] in \
             config.toml lets it read all of that",
            path.display(),
            dir.display()
        );
    }
    if has(&NO_PROGRAM) {
        format!("is its program installed, and on PATH? its command is in {file}")
    } else if !of_workspace && has(&NO_FILE) {
        format!(
            "it starts in {START_DIR}, not in the directory of its pod: write each path in {file} from / on"
        )
    } else if is_program && !network && has(&NO_NETWORK) {
        format!("`network = true` below [mcp.{name}] in config.toml gives it the network")
    } else if is_program && !write && has(&READ_ONLY) {
        format!(
            "`write = true` below [mcp.{name}] in config.toml lets it write what its pod may write"
        )
    } else if has(&["it was not reached"]) {
        format!("does it run? its address is in {file}")
    } else if has(&[AUTHORIZATION]) {
        format!("it is in {file}")
    } else {
        format!("look at `{name}` in {file}; :mcp shows its state")
    }
}
