//! `yoi install` copies this program below a directory such as `~/.local`, with its manual page and the completions of the
//! shells; `yoi uninstall` takes them back, and says what else of yoi lies where.

use crate::cli::{args, man, mcp};
use crate::console;
use crate::headless::{Exit, Failure};
use crate::start::{self, Opening};
use clap_complete::Shell;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use yoi::config::dirs::{Dirs, SHORT_DIRS, short_prefix, var};
use yoi::disk;
use yoi::llm::rehearsal;
use yoi::protocol::ClientKind;

/// The place of the program below the prefix.
const PROGRAM: &str = "bin/yoi";
/// The places of the page and the scripts below the prefix, where man, bash and fish look for them; zsh is told.
const MAN: &str = "share/man/man1/yoi.1";
const SCRIPTS: [(&str, Shell); 3] = [
    ("share/bash-completion/completions/yoi", Shell::Bash),
    ("share/zsh/site-functions/_yoi", Shell::Zsh),
    ("share/fish/vendor_completions.d/yoi.fish", Shell::Fish),
];

/// The completions of a shell.
pub fn completions(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut args::command(), "yoi", &mut script);
    script
}

/// Copies the program, its manual page and the completions below `to`; with `plan` it only says where they would go.
pub fn install(opening: &Opening, to: Option<PathBuf>, plan: bool) -> Result<(), Failure> {
    let prefix = prefix(opening, to)?;
    let program = std::env::current_exe().map_err(|why| failed("the running program", why))?;
    let page = man::page().map_err(|why| failed("the manual page", why))?;
    let scripts = SCRIPTS.map(|(place, shell)| (place, completions(shell)));
    let texts = std::iter::once((MAN, page.into_bytes())).chain(scripts);
    let place = prefix.join(PROGRAM);
    if place.canonicalize().is_ok_and(|there| there == program) {
        console::out(&format!("{} is this program", place.display()));
    } else {
        let read = || fs::read(&program).map_err(|why| failed(&program.display().to_string(), why));
        put(&place, 0o755, plan, read)?;
    }
    for (place, text) in texts {
        put(&prefix.join(place), 0o644, plan, || Ok(text))?;
    }
    let bin = prefix.join("bin");
    let path = var(&opening.env, "PATH").unwrap_or_default();
    if !std::env::split_paths(path).any(|dir| dir == bin) {
        console::err(&format!(
            "{} is not in PATH: add it, or call the file by its path",
            bin.display()
        ));
    }
    Ok(())
}

/// Writes a file whole or not at all, and says so; with `plan` it only says it.
fn put(
    path: &Path,
    mode: u32,
    plan: bool,
    bytes: impl FnOnce() -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    if plan {
        console::out(&format!("would write {}", path.display()));
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir).map_err(|why| failed(&dir.display().to_string(), why))?;
    }
    let written = disk::replace(path, &bytes()?, mode);
    written.map_err(|why| Failure::new(Exit::Failed, why.to_string()))?;
    console::out(&format!("wrote {}", path.display()));
    Ok(())
}

/// What `uninstall` deletes.
#[derive(Clone, Copy)]
pub struct Deletes {
    /// Settings, keys, Pods and transcripts, too.
    pub all: bool,
    /// Nothing: it only says what it would delete.
    pub plan: bool,
    /// It does not ask.
    pub yes: bool,
}

/// Deletes the files of `install` below `to`, and with `all` the directories of yoi in their usual places. With `plan` it
/// only says so.
pub async fn uninstall(
    opening: &Opening,
    to: Option<PathBuf>,
    Deletes { all, plan, yes }: Deletes,
) -> Result<(), Failure> {
    let prefix = prefix(opening, to)?;
    if start::attach(opening, ClientKind::Brief).await?.is_some() {
        let text = "a host is running: `yoi host stop` ends it";
        if !plan {
            return Err(Failure::new(Exit::Failed, format!("{text}, then repeat this")));
        }
        console::err(text);
    }
    let place = prefix.join(PROGRAM);
    let is_ours = !place.exists() || is_yoi(&place);
    if !is_ours {
        let stays = "is another program: it stays, with its manual page and completions";
        console::out(&format!("{} {stays}", place.display()));
    }
    if all && !plan && !yes && !agrees()? {
        return Err(Failure::new(Exit::Failed, "nothing was deleted"));
    }
    let texts = std::iter::once(MAN).chain(SCRIPTS.map(|(place, _)| place));
    for place in texts.filter(|_| is_ours) {
        delete(&prefix.join(place), plan, |file| fs::remove_file(file))?;
    }
    directories(opening, all, plan)?;
    // Last: whatever fails before can be repeated.
    if is_ours { delete(&place, plan, |file| fs::remove_file(file)) } else { Ok(()) }
}

/// Asks whether settings, keys, Pods and transcripts may go, where a person can answer.
fn agrees() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage("--all deletes keys and transcripts: --yes says that it may"));
    }
    console::err("this deletes settings, keys, Pods and their transcripts for good; go on? (y/N)");
    let mut line = String::new();
    io::stdin().read_line(&mut line).map_err(|why| failed("the answer", why))?;
    Ok(matches!(line.trim(), "y" | "yes"))
}

/// Whether a file is this program or a copy of it.
fn is_yoi(place: &Path) -> bool {
    let Ok(own) = std::env::current_exe() else { return false };
    let (Ok(known), Ok(found)) = (own.metadata(), place.metadata()) else { return false };
    if !found.is_file() || found.len() != known.len() {
        return false;
    }
    matches!((fs::read(own), fs::read(place)), (Ok(own), Ok(there)) if own == there)
}

/// Deletes the directories in their usual places, or says that they stay.
fn directories(opening: &Opening, all: bool, plan: bool) -> Result<(), Failure> {
    let mut unnamed = opening.env.clone();
    unnamed.retain(|name, _| !name.starts_with("YOI_"));
    let usual = Dirs::find(&unnamed, start::usual().as_ref()).ok();
    let dirs = |of: &Dirs| [&of.config, &of.data, &of.state, &of.runtime].map(PathBuf::clone);
    let usual = usual.as_ref().map(dirs).unwrap_or_default();
    // Afterwards this program is gone.
    let by = if plan { "--all deletes it" } else { "delete it yourself" };
    let what = "files of a tour";
    for dir in tours() {
        match all {
            true => delete(&dir, plan, disk::remove_tree)?,
            false => console::out(&format!("stays: {} ({what}): {by}", dir.display())),
        }
    }
    let own = opening.dirs.own();
    for dir in socket_dirs() {
        let shown = dir.display();
        match (all, own.contains(&dir)) {
            (true, true) => delete(&dir, plan, disk::remove_tree)?,
            (true, false) => {
                let whose = "sockets of another data directory";
                console::out(&format!("stays: {shown} ({whose}): delete it once no host uses it"));
            }
            (false, _) => console::out(&format!("stays: {shown} (sockets): {by}")),
        }
    }
    for (file, line) in mcp::entries(&opening.env) {
        let what = format!("an entry of yoi for an MCP client; {line} takes it out");
        console::out(&format!("stays: {} ({what})", file.display()));
    }
    let kinds = ["settings and keys", "Pods and their transcripts", "states of screens", "sockets"];
    for (dir, what) in dirs(&opening.dirs).into_iter().zip(kinds) {
        let shown = dir.display();
        match (all, usual.contains(&dir)) {
            _ if !dir.exists() => {}
            (true, true) => delete(&dir, plan, disk::remove_tree)?,
            // It was named by the person, and may hold more.
            (true, false) => console::out(&format!("stays: {shown} ({what}): delete it yourself")),
            (false, _) => console::out(&format!("stays: {shown} ({what}): {by}")),
        }
    }
    Ok(())
}

/// The directories of tours that were not removed with their Pods, of this user.
fn tours() -> Vec<PathBuf> {
    own_directories(&std::env::temp_dir(), rehearsal::is_tour_directory)
}

/// The directories of this user for sockets whose paths are too long for the runtime directory.
fn socket_dirs() -> Vec<PathBuf> {
    own_directories(Path::new(SHORT_DIRS), |name| {
        name.to_str().is_some_and(|name| name.starts_with(&short_prefix()))
    })
}

/// The directories of this user in `place` whose names are these.
fn own_directories(place: &Path, is_one: impl Fn(&OsStr) -> bool) -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let is_own = |entry: &fs::DirEntry| {
        is_one(&entry.file_name())
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == user)
    };
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.filter(is_own).map(|entry| entry.path()).collect();
    found.sort();
    found
}

/// Deletes what is at a path and says so; with `plan` it only says it.
fn delete(
    path: &Path,
    plan: bool,
    delete: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), Failure> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let target = fs::read_link(path).ok();
    if !plan {
        delete(path).map_err(|why| failed(&path.display().to_string(), why))?;
    }
    let done = if plan { "would delete" } else { "deleted" };
    let what = match &target {
        Some(target) => format!("the link {}; {} stays", path.display(), target.display()),
        None => path.display().to_string(),
    };
    console::out(&format!("{done} {what}"));
    Ok(())
}

/// Where the files go: `~/.local`, unless a person names another place.
fn prefix(opening: &Opening, to: Option<PathBuf>) -> Result<PathBuf, Failure> {
    if let Some(to) = to {
        return std::path::absolute(&to).map_err(|why| failed(&to.display().to_string(), why));
    }
    let home = var(&opening.env, "HOME").filter(|home| home.starts_with('/'));
    let home = home.ok_or_else(|| Failure::usage("HOME is not set: name a directory with --to"))?;
    Ok(Path::new(home).join(".local"))
}

fn failed(what: &str, why: io::Error) -> Failure {
    Failure::new(Exit::Failed, format!("{what}: {why}"))
}
