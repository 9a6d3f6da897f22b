//! `yoi install` copies this program below a directory such as `~/.local`, with its manual page and the completions of the
//! shells; `yoi uninstall` takes them back, and says what else of yoi lies where.

use crate::cli::{args, man};
use crate::console;
use crate::headless::{Exit, Failure};
use crate::start::{self, Opening};
use clap_complete::Shell;
use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use yoi::config::dirs::var;
use yoi::protocol::ClientKind;

/// The place of the program below the prefix.
const PROGRAM: &str = "bin/yoi";
/// The places of the pages and scripts below the prefix, where man and the shells look for them.
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

/// Writes a file whole or not at all, and says so.
fn put(
    place: &Path,
    mode: u32,
    plan: bool,
    bytes: impl FnOnce() -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    if plan {
        console::out(&format!("would write {}", place.display()));
        return Ok(());
    }
    let bytes = bytes()?;
    let dir = place.parent().unwrap_or(Path::new("/"));
    let write = || -> io::Result<()> {
        fs::create_dir_all(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(&bytes)?;
        file.as_file().set_permissions(Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        // A file that runs is not written into: another one takes its name.
        file.persist(place)?;
        Ok(())
    };
    write().map_err(|why| failed(&place.display().to_string(), why))?;
    console::out(&format!("wrote {}", place.display()));
    Ok(())
}

/// Deletes what `install` wrote below `to`, and with `all` also settings, keys, logs and the state of screens. With `plan`
/// it only says what lies where.
pub async fn uninstall(
    opening: &Opening,
    to: Option<PathBuf>,
    all: bool,
    plan: bool,
) -> Result<(), Failure> {
    let prefix = prefix(opening, to)?;
    if !plan && start::attach(opening, ClientKind::Brief).await?.is_some() {
        let text = "Pods are live: `yoi host stop` ends their host, then repeat this";
        return Err(Failure::new(Exit::Failed, text));
    }
    let places = [PROGRAM, MAN].into_iter().chain(SCRIPTS.map(|(place, _)| place));
    for file in places.map(|place| prefix.join(place)) {
        if file.symlink_metadata().is_ok() {
            take(&file, plan, |file| fs::remove_file(file))?;
        }
    }
    let dirs = &opening.dirs;
    let kinds = [
        (&dirs.config, "settings and keys"),
        (&dirs.data, "Pods and their transcripts"),
        (&dirs.state, "states of screens, the log of the program"),
        (&dirs.runtime, "sockets"),
    ];
    for (dir, what) in kinds {
        if !dir.exists() {
            continue;
        }
        // A directory with another name was chosen by the person, and may hold more.
        let is_only_ours = dir.file_name().is_some_and(|name| name == "yoi");
        match (all, is_only_ours) {
            (true, true) => take(dir, plan, |dir| fs::remove_dir_all(dir))?,
            (true, false) => {
                let text = format!("stays: {} ({what}): delete it yourself", dir.display());
                console::out(&text);
            }
            (false, _) => {
                console::out(&format!("stays: {} ({what}); --all deletes it", dir.display()));
            }
        }
    }
    Ok(())
}

fn take(
    path: &Path,
    plan: bool,
    remove: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), Failure> {
    if plan {
        console::out(&format!("would delete {}", path.display()));
        return Ok(());
    }
    match remove(path) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => {
            Err(failed(&path.display().to_string(), why))
        }
        _ => {
            console::out(&format!("deleted {}", path.display()));
            Ok(())
        }
    }
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
