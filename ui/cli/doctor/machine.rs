//! The machine: directories, free disk space, sockets, limits, and the sandbox of commands.

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::within;
use rustix::fs::{Access, access, statfs, statvfs};
use rustix::process::{Resource, getrlimit, getuid};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use yoi::config::dirs::Dirs;
use yoi::protocol::family::Confined;
use yoi::sandbox::{Confinement, Delegated, Isolation, Sandbox};

/// How long the check of one directory may take: it may be on a mount that never answers.
const LOOK: Duration = Duration::from_secs(1);
/// How long the test of the sandbox may take.
const WALLS: Duration = Duration::from_secs(2);
/// Free disk space in bytes: below the first limit a warning, below the second one broken.
const LITTLE: u64 = 200 << 20;
const NONE: u64 = 5 << 20;
/// The limit of open files below which a large family does not fit: each Pod has a socket.
const FEW_FILES: u64 = 1_024;
/// File systems on which locks and the database are not reliable, by their number in the kernel.
const REMOTE: &[(u64, &str)] =
    &[(0x6969, "NFS"), (0x6573_5546, "FUSE"), (0xff53_4d42, "CIFS"), (0xfe53_4d42, "SMB")];

/// The program, its directories and their disks.
pub async fn directories(dirs: &Dirs) -> Vec<Finding> {
    let places = [
        ("settings", &dirs.config, "YOI_CONFIG_DIR"),
        ("data", &dirs.data, "YOI_DATA_DIR"),
        ("state", &dirs.state, "YOI_STATE_DIR"),
    ];
    let mut found = Vec::new();
    for (name, dir, variable) in places {
        let looked = {
            let dir = dir.clone();
            within(LOOK, move || directory(name, &dir, variable)).await
        };
        found.push(looked.unwrap_or_else(|| {
            let text = format!("{}: the file system does not answer", dir.display());
            Finding::broken("disk", name, text, format!("mend the mount, or set {variable}"))
        }));
    }
    found
}

fn directory(name: &str, dir: &Path, variable: &str) -> Finding {
    let shown = dir.display();
    // A missing directory is created below its nearest ancestor that exists.
    let Some(there) = dir.ancestors().find(|dir| dir.exists()) else {
        return Finding::broken(
            "disk",
            name,
            format!("{shown}: no such path"),
            format!("set {variable}"),
        );
    };
    let elsewhere = format!("set {variable} to a directory of yours");
    let free = statvfs(there).map_or(u64::MAX, |fs| fs.f_bavail.saturating_mul(fs.f_frsize));
    let room = format!("{shown}, {} free", size(free));
    if let Err(error) = access(there, Access::WRITE_OK | Access::EXEC_OK) {
        return Finding::broken(
            "disk",
            name,
            format!("{shown} cannot be written: {error}"),
            elsewhere,
        );
    }
    if let Some(finding) = owner(name, dir, &elsewhere) {
        return finding;
    }
    let way_out = "make room on that disk: what is said is saved before it is shown";
    if free < NONE {
        return Finding::broken("disk", name, room, way_out);
    }
    if free < LITTLE {
        return Finding::warning("disk", name, room, way_out);
    }
    let kind = statfs(there).map_or(0, |fs| fs.f_type.cast_unsigned() & 0xffff_ffff);
    match REMOTE.iter().find(|(number, _)| *number == kind) {
        Some((_, kind)) => {
            let text = format!("{room}, on {kind}: locks may not hold there");
            Finding::warning("disk", name, text, format!("set {variable} to a local directory"))
        }
        None => Finding::ok("disk", name, room),
    }
}

/// The finding about a directory whose owner or mode is wrong.
fn owner(name: &str, dir: &Path, elsewhere: &str) -> Option<Finding> {
    let found = fs::metadata(dir).ok()?;
    let shown = dir.display();
    if !found.is_dir() {
        return Some(Finding::broken("disk", name, format!("{shown} is no directory"), elsewhere));
    }
    if found.uid() != getuid().as_raw() {
        let text = format!("{shown} belongs to user {}", found.uid());
        return Some(Finding::broken("disk", name, text, elsewhere));
    }
    let mode = found.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        let text = format!("{shown} has mode {mode:o}: other users can look into it");
        Finding::warning("disk", name, text, format!("chmod 700 {shown}"))
    })
}

/// The directory of the sockets, and whether their paths are short enough.
pub async fn sockets(dirs: &Dirs) -> Finding {
    let dirs = dirs.clone();
    within(LOOK, move || sockets_now(&dirs)).await.unwrap_or_else(|| {
        let way_out = "set YOI_RUNTIME_DIR to a local directory of yours";
        Finding::broken("host", "sockets", "the file system does not answer", way_out)
    })
}

fn sockets_now(dirs: &Dirs) -> Finding {
    let name = "sockets";
    let way_out = "set YOI_RUNTIME_DIR to a directory of yours";
    let (runtime, socket) = (dirs.runtime.display(), dirs.host_socket());
    if !socket.starts_with(&dirs.runtime) {
        let text = format!(
            "{runtime} is too long for a socket's path: they lie below {}",
            socket.parent().and_then(Path::parent).unwrap_or(&socket).display()
        );
        return Finding::warning("host", name, text, "set YOI_RUNTIME_DIR to a shorter path");
    }
    if let Ok(owner) = fs::read(dirs.runtime.join(".data"))
        && let owner = PathBuf::from(String::from_utf8_lossy(&owner).into_owned())
        && owner != dirs.data
        && owner.exists()
    {
        let text = format!("{runtime} serves {}; <data>/run is taken instead", owner.display());
        return Finding::warning("host", name, text, way_out);
    }
    match fs::metadata(&dirs.runtime) {
        Ok(found) if !found.is_dir() || found.uid() != getuid().as_raw() => {
            Finding::broken("host", name, format!("{runtime} is not a directory of yours"), way_out)
        }
        _ => Finding::ok("host", name, runtime.to_string()),
    }
}

/// The limits of the kernel for this user.
pub fn limits() -> Vec<Finding> {
    let mut found = vec![open_files()];
    let number = |file: &str| fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    if let Some(watches) = number("/proc/sys/fs/inotify/max_user_watches") {
        let text = format!("inotify: {watches} watches (for tools that watch files)");
        found.push(Finding::ok("limits", "watches", text));
    }
    if number("/proc/sys/user/max_user_namespaces") == Some(0) {
        let text = "user namespaces are off: holes in a scope are made in a weaker way";
        let way_out = "sysctl user.max_user_namespaces=10000";
        found.push(Finding::warning("limits", "namespaces", text, way_out));
    }
    found
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let shown = |limit: Option<u64>| limit.map_or("unlimited".to_owned(), |n| n.to_string());
    let text = format!(
        "{} open files, raised to {} by the host",
        shown(limit.current),
        shown(limit.maximum)
    );
    if limit.maximum.is_some_and(|most| most < FEW_FILES) {
        let way_out = format!("ulimit -Hn {FEW_FILES} or more: each live Pod needs a socket");
        return Finding::warning("limits", "files", text, way_out);
    }
    Finding::ok("limits", "files", text)
}

/// How well commands are confined here, and whether a command is limited as a whole.
pub async fn walls() -> Vec<Finding> {
    match tokio::time::timeout(WALLS, Sandbox::default().probe()).await {
        Ok(confinement) => {
            let delegated = within(LOOK, || Delegated::find().is_some()).await.unwrap_or(false);
            let groups = control_groups(confinement.isolation(), delegated);
            vec![confined(&confinement), groups]
        }
        Err(_) => {
            let way_out = "look at the log: a command could not be started in time";
            let text = "not known: the trial took too long";
            vec![Finding::warning("commands", "commands", text, way_out)]
        }
    }
}

/// The groups of programs that are started from here; a host that already runs may have others.
fn control_groups(isolation: Isolation, delegated: bool) -> Finding {
    let text = match (isolation, delegated) {
        (Isolation::Namespaces, true) => {
            "each command and each Pod has one: memory and processes are counted together"
        }
        (Isolation::Namespaces, false) => {
            "none is delegated to programs that start here: memory is counted for each process by itself"
        }
        (Isolation::LandlockOnly, _) => {
            "commands without namespaces get none: memory is counted for each process by itself"
        }
    };
    Finding::ok("commands", "control group", text)
}

fn confined(confinement: &Confinement) -> Finding {
    let landlock = match confinement.abi {
        0 => "no Landlock".to_owned(),
        abi => format!("Landlock {abi}"),
    };
    let mut text = format!("{} ({landlock})", confinement.text());
    for cost in &confinement.cost {
        text.push_str(&format!("; {cost}"));
    }
    let way_out = match confinement.word {
        Confined::Enforced => return Finding::ok("commands", "commands", text),
        Confined::Partly => "a newer kernel closes the rest; see docs/confinement.md",
        Confined::NotEnforced => {
            "boot a kernel with Landlock (lsm=landlock,…), and allow user namespaces; until then \
             policy asks for each command"
        }
    };
    Finding::warning("commands", "commands", text, way_out)
}

fn size(bytes: u64) -> String {
    match bytes {
        u64::MAX => "unknown room".into(),
        _ if bytes >= 10 << 30 => format!("{} GB", bytes >> 30),
        _ => format!("{} MB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    #[test]
    fn confinement_is_reported_with_its_level_its_gaps_and_its_cost() {
        let partly = Confinement {
            word: Confined::Partly,
            open: vec!["signals".into()],
            cost: vec!["no view of its own".into()],
            abi: 3,
            no_world: None,
        };
        let found = confined(&partly);
        assert_eq!(found.text, "sandbox partly on: signals (Landlock 3); no view of its own");
        assert_eq!(found.level, Level::Warning);
        let none = confined(&Confinement::none("why"));
        assert_eq!(none.text, "sandbox off: why (no Landlock)");
        assert!(none.way_out.unwrap().contains("lsm=landlock"));
    }

    #[test]
    fn it_is_said_whether_a_command_is_limited_as_a_whole() {
        let text = |isolation, delegated| control_groups(isolation, delegated).text;
        let (world, bare) = (Isolation::Namespaces, Isolation::LandlockOnly);
        assert!(text(world, true).contains("counted together"));
        assert!(text(world, false).starts_with("none is delegated"));
        for delegated in [true, false] {
            assert!(text(bare, delegated).starts_with("commands without namespaces get none"));
        }
    }

    #[test]
    fn a_directory_that_others_may_read_is_named_with_the_command_that_closes_it() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("data");
        assert_eq!(directory("data", &dir, "V").level, Level::Ok, "it is made when it is needed");
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
        let found = directory("data", &dir, "V");
        assert_eq!(found.level, Level::Warning);
        assert_eq!(found.way_out.unwrap(), format!("chmod 700 {}", dir.display()));
    }

    #[test]
    fn a_file_in_place_of_a_directory_is_broken() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("data");
        fs::write(&file, "").unwrap();
        assert_eq!(directory("data", &file, "V").level, Level::Broken);
    }

    #[tokio::test]
    async fn a_socket_path_that_is_too_long_is_reported_with_the_directory_in_use() {
        let env = |runtime: &str| {
            [("YOI_HOME", "/y"), ("YOI_RUNTIME_DIR", runtime)]
                .map(|(n, v)| (n.into(), v.into()))
                .into()
        };
        let long = format!("/{}", "d".repeat(110));
        let found = sockets(&Dirs::find(&env(&long), None).unwrap()).await;
        assert!(found.level == Level::Warning && found.text.contains("/tmp/yoi-"), "{found:?}");
        assert_eq!(sockets(&Dirs::find(&env("/r"), None).unwrap()).await.level, Level::Ok);
    }
}
