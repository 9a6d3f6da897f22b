//! One command tries about a hundred escapes: exactly those succeed that the header reports as
//! open.

use crate::bench::walls;
use crate::escape::cell::Cell;
use crate::escape::git::git;
use crate::escape::settings::HEADER;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::{Child, Stdio};
use yoi::sandbox::{CommandLimits, OTHERS_SHOWN, Outcome, WITHOUT_NAMESPACES};
use yoi::scope::{Permission, Rule};

pub const ATTRIBUTES: &str = WITHOUT_NAMESPACES[0];
pub const LOOKS: &str = WITHOUT_NAMESPACES[1];
pub const LISTS: &str = WITHOUT_NAMESPACES[2];
pub const COUNT: &str = WITHOUT_NAMESPACES[3];
pub const TEMPORARY: &str = WITHOUT_NAMESPACES[4];
pub const GIT_SETTINGS: &str = WITHOUT_NAMESPACES[5];
pub const CACHES: &str = WITHOUT_NAMESPACES[6];
pub const SCRIPTS: &str = WITHOUT_NAMESPACES[7];
pub const SIGNALS: &str = "your other processes can be signalled (needs Landlock 6)";

/// The escapes that succeed in some setting, and the words of the header for them. All others fail
/// in every setting.
pub const OPEN: [(&str, &str); 18] = [
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
    (EXCHANGE, SCRIPTS),
    ("signal_other", SIGNALS),
    ("signal_by_handle", SIGNALS),
    ("signal_all", SIGNALS),
];

/// Two escapes that need a command of their own: temporary files beyond their limit, which end the
/// command, and exchanging an approved script.
const FILL: &str = "fill_temporary_files";
const EXCHANGE: &str = "exchange_script";

/// A machine with the targets of all escapes, and its listening sockets.
struct Scene {
    cell: Cell,
    arguments: String,
    _listeners: (UnixListener, UnixListener, TcpListener),
    shared: String,
    numbered: Vec<String>,
    bystander: Child,
}

/// Another program of the person, which records each signal that it receives.
const BYSTANDER: &str = "
import signal, sys
def note(*_): open(sys.argv[2], 'a').write('signal')
signal.signal(signal.SIGURG, note)
print('ready', flush=True)
sys.stdin.read()
";

fn bystander(cell: &Cell) -> Child {
    let mut child = std::process::Command::new("python3")
        .args(["-c", BYSTANDER, "bystander-971.25"])
        .arg(cell.path("signalled"))
        .current_dir(cell.path("outside"))
        .env("SECRET", "in-the-environment")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    fs::write(cell.path("ws/bystander"), child.id().to_string()).unwrap();
    child
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
        // Several scenes exist at the same time, so the key must be unique.
        let [.., a, b, c, d] = *uuid::Uuid::now_v7().as_bytes();
        let key = u32::from_le_bytes([a, b, c, d & 0x7f]);
        let arguments = format!("{port} {name} {name} {key}");
        let (bystander, numbered) = (bystander(&cell), numbered(key));
        Self { cell, arguments, _listeners: listeners, shared, numbered, bystander }
    }

    /// Tries every escape; returns those that succeed.
    async fn tried(&mut self) -> BTreeSet<String> {
        let cell = &mut self.cell;
        fs::write(cell.path("ws/escapes.py"), include_str!("ways/escapes.py")).unwrap();
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
        let script = self.cell.bench.file("approved.sh", "exit 1");
        self.cell.scripts = vec![yoi::sandbox::script_hash(&script)];
        let exchange = "echo exit 0 > approved.sh; sh approved.sh";
        if self.cell.run(exchange).await.ended.outcome == Outcome::Exited(0) {
            open.insert(EXCHANGE.to_owned());
        }
        open
    }

    /// Whether the change of an escape exists outside the command: in its namespaces it may create
    /// any file in memory.
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

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.bystander.kill().and_then(|()| self.bystander.wait());
        let _ = fs::remove_file(&self.shared);
        let _ = std::process::Command::new("ipcrm").args(&self.numbered).status();
    }
}

/// A System V shared memory segment and message queue, as arguments of `ipcrm`.
fn numbered(key: u32) -> Vec<String> {
    let make = format!(
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint('-m', libc.shmget({key}, 4096, 0o1600), '-q', libc.msgget({key}, 0o1600))"
    );
    let made = std::process::Command::new("python3").args(["-c", &make]).output().unwrap();
    String::from_utf8(made.stdout).unwrap().split_whitespace().map(str::to_owned).collect()
}

/// Exactly those escapes succeed that the header reports as open.
#[tokio::test]
async fn the_ways_that_are_open_are_those_that_the_header_names() {
    let header = walls();
    println!("{HEADER}{}", serde_json::to_string(header).unwrap());
    let mut scene = Scene::set();
    let open = scene.tried().await;
    // Some machines have no kernel keys to list.
    let keys = fs::read_to_string("/proc/keys").unwrap_or_default();
    let ways = OPEN.iter().filter(|(way, _)| *way != "list_keys" || !keys.is_empty());
    let said = |words: &str| header.open.iter().any(|open| open == words);
    let expected: BTreeSet<String> =
        ways.filter(|(_, words)| said(words)).map(|(way, _)| (*way).to_owned()).collect();
    assert_eq!(open, expected, "open, and said to be open: {}", header.text());
    for words in &header.open {
        assert!(OPEN.iter().any(|(_, known)| words == known), "no way shows that {words}");
    }
}
