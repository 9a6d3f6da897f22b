//! `yoi mcp install`: makes yoi known to an MCP client. The change of the client's settings is shown first, and
//! everything else in the file stays as it is.

use crate::cli::mcp::install::entry::{Edited, Entry};
use crate::console;
use crate::headless::{Exit, Failure};
use crate::start::Opening;
use clap::ValueEnum as _;
use similar::{Algorithm, ChangeTag};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use yoi::config::dirs::{Env, var};
use yoi::disk;

mod entry;
mod json;
mod toml;

/// The largest settings file that is changed, in bytes.
const MAX_FILE: u64 = 16 * 1024 * 1024;
/// The mode of a settings file that is made: other servers in it may have keys.
const MODE: u32 = 0o600;

/// The MCP clients whose settings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// Claude Code
    Claude,
    /// Codex
    Codex,
    /// Cursor
    Cursor,
    /// Gemini CLI
    Gemini,
    /// opencode
    Opencode,
    /// Visual Studio Code
    Vscode,
    /// Windsurf
    Windsurf,
}

/// How a client writes its servers down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `command` and `args`.
    Plain,
    /// The same with `type: stdio`.
    Typed,
    /// `type: local`, and the arguments in `command`.
    Opencode,
}

impl Client {
    fn title(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Cursor => "Cursor",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Vscode => "Visual Studio Code",
            Self::Windsurf => "Windsurf",
        }
    }

    /// The settings of this client for all folders of a person.
    fn file(self, env: &Env) -> Option<PathBuf> {
        let home = || var(env, "HOME").map(PathBuf::from);
        let dir = |name: &str, usual: &str| {
            var(env, name).map(PathBuf::from).or_else(|| Some(home()?.join(usual)))
        };
        match self {
            Self::Claude => match var(env, "CLAUDE_CONFIG_DIR") {
                Some(dir) => Some(Path::new(dir).join(".claude.json")),
                None => Some(home()?.join(".claude.json")),
            },
            Self::Codex => Some(dir("CODEX_HOME", ".codex")?.join("config.toml")),
            Self::Cursor => Some(home()?.join(".cursor/mcp.json")),
            Self::Gemini => Some(home()?.join(".gemini/settings.json")),
            Self::Opencode => {
                let dir = dir("XDG_CONFIG_HOME", ".config")?.join("opencode");
                let commented = dir.join("opencode.jsonc");
                Some(if commented.exists() { commented } else { dir.join("opencode.json") })
            }
            Self::Vscode => Some(dir("XDG_CONFIG_HOME", ".config")?.join("Code/User/mcp.json")),
            Self::Windsurf => Some(home()?.join(".codeium/windsurf/mcp_config.json")),
        }
    }

    /// Under which key the servers stand, and how each is written.
    fn place(self) -> (&'static str, Shape) {
        match self {
            Self::Claude => ("mcpServers", Shape::Typed),
            Self::Codex => ("mcp_servers", Shape::Plain),
            Self::Cursor | Self::Gemini | Self::Windsurf => ("mcpServers", Shape::Plain),
            Self::Opencode => ("mcp", Shape::Opencode),
            Self::Vscode => ("servers", Shape::Typed),
        }
    }

    fn edit(self, text: &str, entry: Option<&Entry>) -> Result<Edited, String> {
        let (key, shape) = self.place();
        let fields = entry.map(|entry| entry.written(shape));
        match self {
            Self::Codex => toml::edit(text, key, fields.as_ref()),
            _ => json::edit(text, key, fields.as_ref()),
        }
    }

    /// The place of yoi's entry in the settings, and the lines of the entry in a text that was edited.
    fn entry(self, text: &str) -> (String, Vec<String>) {
        let (key, _) = self.place();
        let lines = match self {
            Self::Codex => toml::entry(text, key),
            _ => json::entry(text, key),
        };
        (format!("{key}.{}", entry::SERVER), lines)
    }
}

/// What is done with the settings of a client.
#[derive(Clone, Debug)]
pub enum Change {
    /// Register yoi; the name that its agent asks for on the mesh.
    Install(Option<String>),
    Uninstall,
}

/// The settings of clients that have an entry of yoi, each with the line of a shell that takes it out.
pub fn entries(env: &Env) -> Vec<(PathBuf, String)> {
    let entry = |client: &Client| {
        let file = client.file(env)?;
        // A file that cannot be read or changed is left out: `yoi mcp uninstall` says why.
        let text = read(&file).ok()??;
        let Ok(Edited::Changed(_)) = client.edit(&text, None) else { return None };
        let name = client.to_possible_value()?.get_name().to_owned();
        Some((file, format!("`yoi mcp uninstall {name}`")))
    };
    Client::value_variants().iter().filter_map(entry).collect()
}

/// Shows a change of a client's settings and makes it after a yes.
pub fn change(
    opening: &Opening,
    client: Client,
    change: &Change,
    yes: bool,
) -> Result<(), Failure> {
    let file = client.file(&opening.env);
    let file = file.ok_or_else(|| failed("HOME is not set, so the settings cannot be found"))?;
    // The settings may lie elsewhere, and the link to them shall stay.
    let path = file.canonicalize().unwrap_or_else(|_| file.clone());
    let is_link = file.is_symlink();
    let before = read(&path)?;
    let entry = match change {
        Change::Install(name) => Some(Entry::of(opening, name.as_deref())?),
        Change::Uninstall => None,
    };
    let edited = client.edit(before.as_deref().unwrap_or_default(), entry.as_ref());
    let edited = edited.map_err(|why| {
        failed(format!("{} cannot be changed: {why}; put it right, then try again", path.display()))
    })?;
    let Edited::Changed(after) = edited else {
        console::err(&unchanged(client, change, &path));
        return Ok(());
    };
    let says_nothing =
        after.trim().is_empty() || after.split_whitespace().eq(["{", "}"]) || after.trim() == "{}";
    let after = match change {
        Change::Uninstall if says_nothing && !is_link => None,
        _ => Some(after),
    };
    show(client, &path, before.as_deref().unwrap_or_default(), after.as_deref());
    if !yes && !agreed(&path)? {
        return Err(Failure::new(Exit::Refused, "nothing was changed"));
    }
    write(&path, before.as_deref(), after.as_deref())?;
    console::err(&done(client, change, &path));
    Ok(())
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

/// The text of the settings; `None`: there is no file.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    let at = |error: std::io::Error| failed(format!("cannot read {}: {error}", path.display()));
    let file = match disk::open_regular(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(at)?,
    };
    if file.metadata().map_err(at)?.len() > MAX_FILE {
        return Err(failed(format!("{} is larger than 16 MiB", path.display())));
    }
    std::io::read_to_string(file).map(Some).map_err(at)
}

/// Replaces the settings, if they are still what was shown. A file with nothing in it (`None`) is removed.
fn write(path: &Path, before: Option<&str>, after: Option<&str>) -> Result<(), Failure> {
    if read(path)?.as_deref() != before {
        let text =
            format!("{} was changed meanwhile: nothing was written, try again", path.display());
        return Err(failed(text));
    }
    let Some(after) = after else {
        let at = |error| failed(format!("cannot remove {}: {error}", path.display()));
        return std::fs::remove_file(path).map_err(at);
    };
    if let Some(dir) = path.parent() {
        disk::private_dir(dir).map_err(failed)?;
    }
    let mode = std::fs::metadata(path).map_or(MODE, |found| found.permissions().mode() & 0o777);
    disk::replace(path, after.as_bytes(), mode).map_err(failed)
}

fn agreed(path: &Path) -> Result<bool, Failure> {
    if !console::is_interactive() {
        let text = "nothing was changed: answer at a terminal, or add --yes";
        return Err(Failure::usage(text));
    }
    console::confirms(&format!("change {}?", path.display())).map_err(failed)
}

/// Prints what changes of yoi's entry, with its place. Nothing else of the file is shown: it may hold keys of other
/// servers, and all of it may stand on one line.
fn show(client: Client, path: &Path, before: &str, after: Option<&str>) {
    let path = path.display();
    match after {
        Some(_) => console::out(&format!("--- {path}\n+++ {path}")),
        None => console::out(&format!("--- {path}\n+++ /dev/null")),
    }
    let (place, old) = client.entry(before);
    let (_, new) = client.entry(after.unwrap_or_default());
    console::out(&format!("@@ {place} @@"));
    changed_lines(&old, &new).iter().for_each(|line| console::out(line));
}

/// The lines that differ, each with its sign.
fn changed_lines(old: &[String], new: &[String]) -> Vec<String> {
    let ops = similar::capture_diff_slices(Algorithm::Myers, old, new);
    let changes = ops.iter().flat_map(|op| op.iter_changes(old, new));
    let signed = changes.filter_map(|change| match change.tag() {
        ChangeTag::Equal => None,
        ChangeTag::Delete => Some(format!("-{}", change.value())),
        ChangeTag::Insert => Some(format!("+{}", change.value())),
    });
    signed.collect()
}

fn unchanged(client: Client, change: &Change, path: &Path) -> String {
    let (title, path) = (client.title(), path.display());
    match change {
        Change::Install(_) => format!("{title} knows yoi already; see {path}"),
        Change::Uninstall => format!("{title} does not know yoi; see {path}"),
    }
}

fn done(client: Client, change: &Change, path: &Path) -> String {
    let (title, path) = (client.title(), path.display());
    let begun = match change {
        Change::Install(_) => format!("{title} knows yoi now ({path}): start it anew"),
        Change::Uninstall => format!("{title} does not know yoi any more ({path}): start it anew"),
    };
    match (client, change) {
        (Client::Claude, Change::Install(_)) => format!(
            "{begun}\n`claude --dangerously-load-development-channels server:yoi` is also woken by messages"
        ),
        _ => begun,
    }
}

#[cfg(test)]
#[path = "tests/install.rs"]
mod tests;
