//! Everything that exists for a command, as it finds it itself, for each kind of grant.

use crate::escape::cell::{Cell, no_world_to_test};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use yoi::scope::{Permission, Rule};

/// Part of the name of all that the person and other Pods have and did not grant.
const NOT_GRANTED: &str = "not-granted";

/// A machine with a person, this Pod and another one. The bench is outside `/tmp`, because a
/// command has a `/tmp` of its own.
fn machine() -> Cell {
    let mut cell = Cell::outside_of_tmp();
    for file in [
        "ws/main.rs",
        "ws/src/lib.rs",
        "ws/src/lent/by-another-pod.rs",
        "ws/kept-not-granted/by-the-parent",
        "docs/guide.md",
        "other-not-granted/of-another-pod",
        "home/diary-not-granted",
        "home/.ssh/id_not-granted",
        "home/.npmrc",
        "own/sessions-not-granted/log.jsonl",
    ] {
        fs::create_dir_all(cell.path(file).parent().unwrap()).unwrap();
        fs::write(cell.path(file), NOT_GRANTED).unwrap();
    }
    cell.bench.ctx.env.retain(|name, _| name == "HOME");
    cell.env("PATH", "/usr/bin:/bin");
    cell.bench.ctx.others = vec![cell.path("other-not-granted")];
    cell.bench.ctx.scope.allow.clear();
    cell
}

fn allow(cell: &mut Cell, path: &str, permission: Permission) {
    let rule = Rule::new(cell.path(path), permission);
    cell.bench.ctx.scope.allow.push(rule);
}

fn deny(cell: &mut Cell, path: &str, permission: Permission) {
    let rule = Rule::new(cell.path(path), permission);
    cell.bench.ctx.scope.deny.push(rule);
}

/// Prints every path: `w` if it can be written, `d`, `f`, `l` or `c` for its kind. The content of
/// system directories is omitted, except for the bench `$R`, which may lie in `/var/tmp`.
const FIND: &str = "find / \\( -path /proc -o -path '/etc/*' -o -path '/usr/*' -o -path '/opt/*' -o \
                    -path '/sys/*' -o -path '/nix/*' -o -path '/gnu/*' -o -path '/snap/*' -o \
                    \\( -path '/var/*/*' ! -path '$R' ! -path '$R/*' \\) \\) \
                    -prune -o -links +0 \\( -type l -printf '  %y %p\\n' -o -writable -printf 'w %y %p\\n' \
                    -o -printf '  %y %p\\n' \\)";
/// Further entries of the root directory, which differ between machines.
const SYSTEM: [&str; 16] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/sys",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/var",
    "/var/lib",
    "/var/cache",
    "/home",
];

/// The paths that every command sees, in the order of the output: `$R` is the directory of the
/// bench, which contains the home directory and `ws`, in which commands run.
const ITS_OWN: [&str; 25] = [
    "  d $R",
    "w d $R/home",
    "w d $R/home/.cache",
    "  d $R/private",
    "  l $R/private/tmp",
    "  d $R/ws",
    "  d /",
    "  d /dev",
    "  l /dev/fd",
    "w c /dev/full",
    "w c /dev/null",
    "  l /dev/ptmx",
    "  d /dev/pts",
    "w c /dev/pts/ptmx",
    "w c /dev/random",
    "w d /dev/shm",
    "  l /dev/stderr",
    "  l /dev/stdin",
    "  l /dev/stdout",
    "w c /dev/tty",
    "w c /dev/urandom",
    "w c /dev/zero",
    "  d /etc",
    "w d /tmp",
    LINK_TO_TMP,
];
/// A command has no `/var/tmp` besides `/tmp`, unless the bench lies there.
const LINK_TO_TMP: &str = "  l /var/tmp";

/// The paths that a command sees, with `$R` for the directory of the bench; `None` without
/// namespaces.
async fn visible(cell: &Cell) -> Option<Vec<String>> {
    if no_world_to_test() {
        return None;
    }
    let root = cell.path("");
    let top = root.to_str().unwrap().trim_end_matches('/').to_owned();
    let did = cell.run(&FIND.replace("$R", &top)).await;
    let mut lines: Vec<String> = Vec::new();
    for line in did.well().lines() {
        let (how, path) = line.split_at(4);
        let path = path.trim();
        // Root may write to every directory; nothing can be made in this one.
        let how = if path == "/dev/pts" { "  d " } else { how };
        let around = path != "/" && Path::new(&top).starts_with(path) && path != top;
        if around || SYSTEM.contains(&path) {
            assert!(!how.starts_with('w'), "{line}");
        } else {
            lines.push(format!("{how}{}", path.replace(&top, "$R")));
        }
    }
    lines.sort_by(|a, b| a[4..].cmp(&b[4..]));
    nowhere_named(cell).await;
    Some(lines)
}

/// No list of the kernel, no environment and no command line names what was not granted, and the system
/// is the one outside.
async fn nowhere_named(cell: &Cell) {
    let lists = "cat /proc/[0-9]*/mountinfo /proc/[0-9]*/environ /proc/[0-9]*/cmdline \
                 /proc/[0-9]*/maps /proc/net/unix /proc/locks /proc/swaps /proc/partitions 2>/dev/null; \
                 ls -l /proc/[0-9]*/fd /proc/[0-9]*/cwd /proc/[0-9]*/root 2>/dev/null; env; true";
    let did = cell.run(lists).await;
    assert!(did.well().contains("PATH=") && did.text.contains(" / "), "{}", did.text);
    // A guarded path in the scope is visible in the list of mounts.
    let said = did.text.lines().filter(|line| !line.contains("/ws/kept-not-granted"));
    let named: Vec<&str> = said.filter(|line| line.contains(NOT_GRANTED)).collect();
    assert!(named.is_empty(), "{named:?}");
    let usr = fs::metadata("/usr").unwrap();
    let did = cell.run("stat -c %d:%i /usr").await;
    assert_eq!(did.well(), format!("{}:{}\n", usr.dev(), usr.ino()));
}

/// The paths that a command sees beyond `ITS_OWN`.
async fn granted(cell: &Cell) -> Option<Vec<String>> {
    let mut seen = visible(cell).await?;
    seen.retain(|line| !ITS_OWN.contains(&line.as_str()));
    Some(seen)
}

#[tokio::test]
async fn a_command_without_a_grant_sees_the_system_and_places_of_its_own() {
    let machine = machine();
    let Some(seen) = visible(&machine).await else { return };
    let in_var_tmp = machine.path("").starts_with("/var/tmp");
    let its_own = ITS_OWN.iter().filter(|line| !(in_var_tmp && **line == LINK_TO_TMP));
    assert_eq!(seen, its_own.copied().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_command_with_a_read_grant_sees_that_besides() {
    let mut cell = machine();
    allow(&mut cell, "docs", Permission::Read);
    let Some(seen) = granted(&cell).await else { return };
    assert_eq!(seen, ["  d $R/docs", "  f $R/docs/guide.md"]);
}

#[tokio::test]
async fn a_command_with_a_write_grant_sees_and_writes_that_besides() {
    let mut cell = machine();
    allow(&mut cell, "ws/src", Permission::Write);
    fs::remove_dir_all(cell.path("ws/src/lent")).unwrap();
    let Some(seen) = granted(&cell).await else { return };
    assert_eq!(seen, ["w d $R/ws/src", "w f $R/ws/src/lib.rs"]);
}

/// It reads the workspace, writes the part that its parent gave, and what its parent denied holds: what is
/// lent to another Pod is read, and what the parent does not hold is an empty directory.
#[tokio::test]
async fn a_command_of_a_child_sees_what_its_parent_gave_it() {
    let mut cell = machine();
    allow(&mut cell, "ws", Permission::Read);
    allow(&mut cell, "ws/src", Permission::Write);
    deny(&mut cell, "ws/src/lent", Permission::Write);
    deny(&mut cell, "ws/kept-not-granted", Permission::Read);
    let Some(seen) = granted(&cell).await else { return };
    let expected = [
        "  d $R/ws/kept-not-granted",
        "  f $R/ws/main.rs",
        "w d $R/ws/src",
        "  d $R/ws/src/lent",
        "  f $R/ws/src/lent/by-another-pod.rs",
        "w f $R/ws/src/lib.rs",
    ];
    assert_eq!(seen, expected);
}
