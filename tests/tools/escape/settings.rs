//! Every way out, tried in every setting: what is not stopped in one is exactly what the header says to be
//! open there, and the docs list it.
//!
//! A setting is what a machine forbids. A small program makes it before the helper starts, so that the
//! program that is tested finds it as it would find such a machine.

use crate::escape::cell::Cell;
use crate::escape::git::git;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use yoi::sandbox::{
    CommandLimits, Confinement, OTHERS_SHOWN, Outcome, Sandbox, WITHOUT_NAMESPACES,
};
use yoi::scope::{Permission, Rule};

const ATTRIBUTES: &str = WITHOUT_NAMESPACES[0];
const LOOKS: &str = WITHOUT_NAMESPACES[1];
const LISTS: &str = WITHOUT_NAMESPACES[2];
const COUNT: &str = WITHOUT_NAMESPACES[3];
const TEMPORARY: &str = WITHOUT_NAMESPACES[4];
const GIT_SETTINGS: &str = WITHOUT_NAMESPACES[5];
const CACHES: &str = WITHOUT_NAMESPACES[6];
const SIGNALS: &str = "your other processes can be signalled (needs Landlock 6)";

/// The ways that are open somewhere, and the words that say so. All others are stopped in every setting.
const OPEN: [(&str, &str); 17] = [
    ("mode_outside", ATTRIBUTES),
    ("owner_outside", ATTRIBUTES),
    ("time_outside", ATTRIBUTES),
    ("attribute_outside", ATTRIBUTES),
    ("look_outside", LOOKS),
    ("watch_outside", LOOKS),
    ("list_kept", LOOKS),
    ("list_others", OTHERS_SHOWN),
    ("list_others", LISTS),
    ("list_keys", LISTS),
    ("processes", COUNT),
    ("read_git_password", GIT_SETTINGS),
    ("write_cache", CACHES),
    (FILL, TEMPORARY),
    ("signal_other", SIGNALS),
    ("signal_by_handle", SIGNALS),
    ("signal_all", SIGNALS),
];

/// The one way that a command of its own tries, because it ends with it: temporary files beyond their limit.
const FILL: &str = "fill_temporary_files";

/// A machine with everything that a command could want, and what of it listens.
struct Scene {
    cell: Cell,
    arguments: String,
    _listeners: (UnixListener, UnixListener, TcpListener),
    shared: String,
    numbered: Vec<String>,
}

impl Scene {
    fn set() -> Self {
        let mut cell = Cell::outside_of_tmp();
        for (file, text) in [
            ("outside/to-remove", "x"),
            ("outside/to-move", "x"),
            ("other/file", "hidden"),
            ("own/yoi.db", "hidden"),
            ("home/.ssh/id", "hidden"),
            ("home/.netrc", "hidden"),
            ("home/.gitconfig", "[http]\n\textraHeader = token\n"),
            ("home/.cache/tool", "x"),
            ("ws/own", "x"),
            ("ws/deep/lent/file", "lent"),
            ("ws/kept/file", "hidden"),
            ("ws/bin/tool", "x"),
            ("ws/.yoi/config.toml", ""),
            ("ws/evil/config", ""),
        ] {
            fs::create_dir_all(cell.path(file).parent().unwrap()).unwrap();
            fs::write(cell.path(file), text).unwrap();
        }
        git(&cell.path("ws"), &["init", "-q"]);
        git(&cell.path("ws"), &["commit", "-q", "--allow-empty", "-m", "x"]);
        for (path, permission) in
            [("ws/deep/lent", Permission::Write), ("ws/kept", Permission::Read)]
        {
            let rule = Rule::new(cell.path(path), permission);
            cell.bench.ctx.scope.deny.push(rule);
        }
        cell.bench.ctx.others = vec![cell.path("other")];
        cell.env("PATH", format!("{}:/usr/bin:/bin", cell.path("ws/bin").display()));
        cell.limits = CommandLimits {
            processes: 320,
            shm_mib: 2,
            file_mib: 16,
            tmp_mib: 2,
            ..CommandLimits::default()
        };
        let name = format!("yoi-test-{}", uuid::Uuid::now_v7());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let listeners = (
            UnixListener::bind(cell.path("outside/door")).unwrap(),
            UnixListener::bind_addr(&abstract_address).unwrap(),
            TcpListener::bind("127.0.0.1:0").unwrap(),
        );
        let shared = format!("/dev/shm/{name}");
        fs::write(&shared, "hidden").unwrap();
        let port = listeners.2.local_addr().unwrap().port();
        // Several scenes are set at once.
        let [.., a, b, c, d] = *uuid::Uuid::now_v7().as_bytes();
        let key = u32::from_le_bytes([a, b, c, d & 0x7f]);
        let arguments = format!("{port} {name} {name} {key}");
        Self { cell, arguments, _listeners: listeners, shared, numbered: numbered(key) }
    }

    /// Tries every way in this setting: which of them are open, and what the header says.
    async fn tried(&mut self, setting: &str) -> (BTreeSet<String>, Confinement) {
        let cell = &mut self.cell;
        let header = enter(cell, setting).await;
        fs::write(cell.path("ws/escapes.py"), include_str!("settings/escapes.py")).unwrap();
        let did = cell.run(&format!("exec python3 escapes.py {}", self.arguments)).await;
        let mut open = BTreeSet::new();
        for line in did.well().lines() {
            let (name, succeeded) = line.split_once(' ').expect(line);
            if succeeded == "True" && self.left(name) {
                open.insert(name.to_owned());
            }
        }
        assert!(did.text.lines().count() > 90, "{}", did.text);
        let fill = "head -c 8M /dev/zero > $TMPDIR/large; \
                    for i in $(seq 500); do [ -e go ] || sleep 0.01; done";
        if self.cell.run(fill).await.ended.outcome == Outcome::Exited(0) {
            open.insert(FILL.to_owned());
        }
        (open, header)
    }

    /// Whether it is there outside what this way leads to; a world of its own lets a command make in memory
    /// what it likes.
    fn left(&self, name: &str) -> bool {
        let is = |path: &str| self.cell.path(path).symlink_metadata().is_ok();
        let mode = |path: &str| self.cell.path(path).metadata().map_or(0, |meta| meta.mode());
        match name {
            "leave_npmrc" => is("home/.npmrc"),
            "leave_program" => is("home/bin"),
            "write_cache" => is("home/.cache/new"),
            "lead_git_astray" => is("ws/.git/commondir"),
            "lose_head" => !is("ws/.git/HEAD"),
            "set_id" => mode("ws/set-id") & 0o6000 != 0,
            "signal_other" | "signal_by_handle" | "signal_all" => is("signalled"),
            _ => true,
        }
    }
}

/// Makes the commands of a cell run in this setting: what the header says there.
async fn enter(cell: &mut Cell, setting: &str) -> Confinement {
    let helper = cell.bench.ctx.helper.display().to_string();
    let python = std::env::split_paths(&std::env::var("PATH").unwrap())
        .map(|dir| dir.join("python3"))
        .find(|path| path.exists())
        .expect("python3");
    let (root, wrapper) = (cell.path("").display().to_string(), cell.path("setting"));
    let head = format!(
        "#!{}\nSETTING = {setting:?}\nROOT = {root:?}\nHELPER = {helper:?}\n",
        python.display()
    );
    fs::write(&wrapper, head + include_str!("settings/setting.py")).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o700)).unwrap();
    cell.bench.ctx.helper = wrapper.clone();
    let header = Sandbox { helper: wrapper, nofile: None }.probe().await;
    cell.isolation = header.isolation();
    header
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.shared);
        let _ = std::process::Command::new("ipcrm").args(&self.numbered).status();
    }
}

/// Memory and a queue that have a number instead of a place, as arguments of `ipcrm`.
fn numbered(key: u32) -> Vec<String> {
    let make = format!(
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint('-m', libc.shmget({key}, 4096, 0o1600), '-q', libc.msgget({key}, 0o1600))"
    );
    let made = std::process::Command::new("python3").args(["-c", &make]).output().unwrap();
    String::from_utf8(made.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// What is open is what the header says, and every word of the header is true.
async fn in_setting(setting: &str) -> Confinement {
    let mut scene = Scene::set();
    let (open, header) = scene.tried(setting).await;
    // Some machines have no keys to show, whatever the walls.
    let keys = fs::read_to_string(scene.cell.path("keys")).unwrap_or_default();
    let ways = OPEN.iter().filter(|(way, _)| *way != "list_keys" || !keys.is_empty());
    let said = |words: &str| header.open.iter().any(|open| open == words);
    let expected: BTreeSet<String> =
        ways.filter(|(_, words)| said(words)).map(|(way, _)| (*way).to_owned()).collect();
    assert_eq!(open, expected, "{setting}: open, and said to be open: {}", header.text());
    for words in &header.open {
        assert!(
            OPEN.iter().any(|(_, known)| words == known),
            "{setting}: no way shows that {words}"
        );
    }
    println!("{setting}: {} ways are open; {}", open.len(), header.text());
    header
}

/// The walls that are there: where this machine has namespaces and Landlock, all of them.
#[tokio::test]
async fn with_all_walls_no_way_out_is_open() {
    let header = in_setting("all walls").await;
    assert!(!Cell::new().mounted().await || header.open.is_empty(), "{header:?}");
}

#[tokio::test]
async fn without_user_namespaces_the_ways_are_open_that_the_header_names() {
    let header = in_setting("no user namespaces").await;
    assert!(header.no_world.is_some(), "{header:?}");
}

/// Landlock is one more wall around a world in which there is nothing else.
#[tokio::test]
async fn without_landlock_no_way_out_of_a_world_is_open() {
    let header = in_setting("no Landlock").await;
    assert_eq!(header.abi, 0);
}

#[tokio::test]
async fn in_a_container_the_ways_are_open_that_the_header_names() {
    in_setting("container").await;
    let header = in_setting("container that forbids namespaces").await;
    assert!(header.no_world.is_some(), "{header:?}");
}

const SETTINGS: [&str; 5] = [
    "all walls",
    "no user namespaces",
    "no Landlock",
    "container",
    "container that forbids namespaces",
];

/// A file of git's settings, a line of it that leads git to another file, and that file.
const LEADS: [(&str, &str, &str); 11] = [
    (".git/config", "[core]\n\thooksPath = one ; for us\n", "one/pre-commit"),
    (".git/config", "[core]\n\thooksPath = \\\n two\n", "two/pre-commit"),
    (".git/config", "[core] hooksPath = three\n", "three/pre-commit"),
    (".git/config", "[CORE]\n\tHOOKSPATH = \"four/hooks\"\n", "four/hooks/pre-commit"),
    (".git/config", "[core]\n\thooksPath = .husky/hooks\n", "tools/hooks/pre-commit"),
    (".git/config", "[core]\n\thooksPath = to/../eight\n", "deep/eight/pre-commit"),
    (".git/config", "[include]\n\tpath = ../team.conf # x\n", "team.conf"),
    (".git/config", "[includeIf \"onbranch:x\"]\n\tpath = ../branch.conf\n", "branch.conf"),
    (".git/config.worktree", "[core]\n\thooksPath = five\n", "five/pre-commit"),
    ("../home/.gitconfig", "[core]\n\thooksPath = six\n", "six/pre-commit"),
    ("../home/.config/git/config", "[core]\n\thooksPath = seven\n", "seven/pre-commit"),
];

/// A repository whose settings lead to all of these; `.husky` is a link to `tools`, and `to` one to `deep/er`.
fn led_astray() -> Cell {
    let cell = Cell::outside_of_tmp();
    let ws = cell.path("ws");
    git(&ws, &["init", "-q"]);
    symlink("tools", ws.join(".husky")).unwrap();
    fs::create_dir_all(ws.join("deep/er")).unwrap();
    symlink("deep/er", ws.join("to")).unwrap();
    for (file, line, led) in LEADS {
        for path in [file, led] {
            fs::create_dir_all(ws.join(path).parent().unwrap()).unwrap();
        }
        let mut settings = File::options().append(true).create(true).open(ws.join(file)).unwrap();
        settings.write_all(line.as_bytes()).unwrap();
        fs::write(ws.join(led), "person").unwrap();
    }
    cell
}

#[tokio::test]
async fn no_spelling_leads_git_to_a_file_that_a_command_changed_in_any_setting() {
    for setting in SETTINGS {
        let mut cell = led_astray();
        let ws = cell.path("ws");
        enter(&mut cell, setting).await;
        let led = LEADS.map(|(_, _, led)| led).join(" ");
        let change = format!(
            "for led in {led}; do echo evil > $led; rm -f $led; echo evil > $led; done; \
             rm -f .husky; mkdir -p .husky/hooks; echo evil > .husky/hooks/pre-commit; true"
        );
        cell.run(&change).await.well();
        assert_eq!(fs::read_link(ws.join(".husky")).unwrap(), Path::new("tools"), "{setting}");
        for (_, line, led) in LEADS {
            let kept = fs::read_to_string(ws.join(led)).unwrap_or_default();
            assert_eq!(kept, "person", "{setting}: {line}");
            fs::remove_file(ws.join(led)).unwrap();
            let directory = Path::new(led).parent().filter(|dir| dir.iter().count() > 0);
            directory.map(|dir| fs::remove_dir(ws.join(dir))).transpose().unwrap();
        }
        // What is not there is not made, or moved aside after the command.
        let make =
            format!("for led in {led}; do mkdir -p $(dirname $led); echo evil > $led; done; true");
        cell.run(&make).await.well();
        for (_, line, led) in LEADS {
            assert!(!ws.join(led).exists(), "{setting}: {line}");
        }
    }
}

#[test]
fn the_docs_list_what_is_open_in_a_setting() {
    let docs = include_str!("../../../docs/confinement.md");
    for (way, open) in OPEN {
        assert!(docs.contains(open), "{way}: {open}");
    }
    let list = docs.split("this is open then:").nth(1).unwrap().trim_start();
    let listed: BTreeSet<&str> =
        list.lines().map_while(|line| line.strip_prefix("* ")).map(str::trim).collect();
    assert_eq!(listed, BTreeSet::from(WITHOUT_NAMESPACES));
    let shown: BTreeSet<&str> = OPEN.iter().map(|(_, open)| *open).collect();
    assert_eq!(listed.difference(&shown).count(), 0, "no way shows what the docs list");
}
