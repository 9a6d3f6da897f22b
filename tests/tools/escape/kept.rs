//! The world that commands of one Pod share, and what ends it.

use crate::bench::walls;
use crate::escape::ahead::{all_wait, in_a_world, processes, until, waiting};
use crate::escape::cell::Cell;
use crate::escape::closed::without_power;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use yoi::protocol::LimitKind;
use yoi::sandbox::{
    Around, CommandLimits, CommandView, ENTER_ARG, HELPER_ARG, KEEPER_ARG, Need, PATH_SOCKETS,
    Person, PodStorage, StartGroup,
};
use yoi::scope::{Permission, Rule};
use yoi::tools::command_sheet;

/// Another command of the same Pod.
fn beside(cell: &Cell, needs: &[Need]) -> Cell {
    let mut other = Cell::with(needs);
    other.bench.ctx = cell.bench.ctx.clone();
    other
}

/// A command of the same Pod after it lent a directory away.
fn after_a_lend(cell: &Cell) -> Cell {
    let mut less = beside(cell, &[]);
    less.bench.ctx.scope.deny.push(Rule::new(cell.path("ws/lent"), Permission::Write));
    less
}

/// A Pod with a cache in its person's home directory.
fn with_a_cache(cell: Cell) -> Option<Cell> {
    let cell = in_a_world(cell)?;
    fs::create_dir(cell.path("home/.npm")).unwrap();
    Some(cell)
}

/// The keepers of a Pod: helpers of this test that have its layers locked.
fn keepers(cell: &Cell) -> Vec<i32> {
    let caches = cell.bench.ctx.private.join("caches");
    let start = format!("{} {KEEPER_ARG}", env!("CARGO_BIN_EXE_yoi"));
    let holds = |pid: i32| {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        files.into_iter().any(|file| fs::read_link(file.path()).is_ok_and(|at| at == caches))
    };
    let all = processes().into_iter();
    all.filter(|(pid, words, _)| words.starts_with(&start) && holds(*pid))
        .map(|(pid, ..)| pid)
        .collect()
}

fn kill(pid: i32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

async fn until_gone(what: &str, pids: &[i32]) {
    until(what, || processes().iter().all(|(pid, ..)| !pids.contains(pid))).await;
}

/// Serves one word on 127.0.0.1 and at a socket in `/tmp`, and says at which port.
const SERVER: &str = "
import os, socket, threading, time
tcp = socket.create_server(('127.0.0.1', 0))
local = socket.socket(socket.AF_UNIX)
local.bind('/tmp/socket')
local.listen()
def serve(listener):
    while True:
        with listener.accept()[0] as peer:
            peer.sendall(b'served')
for listener in (tcp, local):
    threading.Thread(target=serve, args=(listener,), daemon=True).start()
open('port.new', 'w').write(str(tcp.getsockname()[1]))
os.rename('port.new', 'port')
while not os.path.exists('go'):
    time.sleep(0.01)
";

const CLIENT: &str = "
import socket
def ask(socket, place):
    try:
        socket.connect(place)
        return socket.recv(9).decode()
    except OSError as error:
        return type(error).__name__
print(ask(socket.socket(), ('127.0.0.1', int(open('port').read()))), end=' ')
print(ask(socket.socket(socket.AF_UNIX), '/tmp/socket'))
";
const CONNECT: &str = "exec python3 client.py";

/// Runs `work` while a command of the Pod serves.
async fn while_served(cell: &Cell, work: impl Future<Output = ()>) {
    fs::write(cell.path("ws/server.py"), SERVER).unwrap();
    fs::write(cell.path("ws/client.py"), CLIENT).unwrap();
    let meanwhile = async {
        until("it serves", || cell.path("ws/port").exists()).await;
        work.await;
        fs::write(cell.path("ws/go"), "").unwrap();
    };
    let (did, ()) = tokio::join!(cell.run("exec python3 server.py"), meanwhile);
    did.well();
}

#[tokio::test]
async fn commands_of_a_pod_reach_each_other_and_other_pods_and_more_rights_do_not() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    while_served(&cell, async {
        let local = if walls().abi < PATH_SOCKETS { "served" } else { "PermissionError" };
        assert_eq!(cell.run(CONNECT).await.well(), format!("served {local}\n"));
        let mut other = beside(&cell, &[]);
        other.bench.ctx.private = cell.path("another");
        other.bench.ctx.pod_world = Default::default();
        let text = other.run(CONNECT).await.text;
        assert!(text.starts_with("ConnectionRefusedError FileNotFoundError"), "{text}");
        let more = beside(&cell, &[Need::Network]).run(CONNECT).await.text;
        assert!(!more.starts_with("served"), "{more}");
    })
    .await;
}

#[tokio::test]
async fn after_a_lend_the_next_command_has_less_and_meets_no_command_that_has_more() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    fs::create_dir(cell.path("ws/lent")).unwrap();
    cell.run("echo x > lent/before").await.well();
    let less = after_a_lend(&cell);
    while_served(&cell, async {
        less.run("echo x > lent/after").await.refused();
        let text = less.run(CONNECT).await.text;
        assert!(text.starts_with("ConnectionRefusedError"), "another network: {text}");
    })
    .await;
    assert!(!cell.path("ws/lent/after").exists());
    less.run("echo x > lent/after").await.refused();
    cell.run("echo x > lent/returned").await.well();
}

/// Its keeper and the helper that waits in it end first, and nothing of an earlier world stays.
#[tokio::test]
async fn commands_with_two_views_in_turn_each_begin_a_world_and_keep_what_the_caches_got() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    let less = after_a_lend(&cell);
    let mut expected = String::new();
    for (n, cell) in [&cell, &less, &cell, &less].into_iter().enumerate() {
        let ended = [keepers(cell), waiting(cell)].concat();
        let did = cell.run(&format!("cat ~/.npm/all; echo {n} >> ~/.npm/all")).await;
        assert!(did.text.ends_with(&expected), "{n}: {}", did.text);
        expected += &format!("{n}\n");
        all_wait(cell).await;
        assert_eq!(keepers(cell).len(), 1);
        until_gone("the earlier world", &ended).await;
    }
}

#[tokio::test]
async fn a_command_with_more_rights_ends_a_world_without_commands_and_gets_the_caches() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    cell.run("echo first > ~/.npm/a").await.well();
    let ended = [keepers(&cell), all_wait(&cell).await].concat();
    assert_eq!(ended.len(), 5);
    let more = beside(&cell, &[Need::Network]);
    assert_eq!(more.run("cat ~/.npm/a; echo second > ~/.npm/b").await.well(), "first\n");
    until_gone("the world", &ended).await;
    assert_eq!(cell.run("cat ~/.npm/*").await.well(), "first\nsecond\n");
}

#[tokio::test]
async fn sixteen_commands_at_once_write_to_one_cache() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    let one = async |n: usize, group: StartGroup| {
        let mut own = beside(&cell, &[]);
        own.group = group;
        own.run(&format!("echo {n} > ~/.npm/{n}; echo {n} >> /tmp/all")).await.well().to_owned()
    };
    let all = StartGroup::of(16).into_iter().enumerate().map(|(n, group)| one(n, group));
    futures_util::future::join_all(all).await;
    let listed = cell.run("ls ~/.npm; wc -l < /tmp/all").await.well().to_owned();
    assert_eq!(listed.lines().count(), 17, "{listed}");
    assert!(listed.ends_with("16\n"), "{listed}");
    assert_eq!(fs::read_dir(cell.path("home/.npm")).unwrap().count(), 0);
}

#[tokio::test]
async fn a_world_whose_keeper_was_killed_is_begun_anew_without_the_layers_that_are_in_use() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    cell.run("echo first > ~/.npm/a").await.well();
    let before = keepers(&cell);
    assert_eq!(before.len(), 1);
    while_served(&cell, async {
        kill(before[0]);
        until_gone("the keeper", &before).await;
        assert_eq!(cell.run("cat ~/.npm/a; echo lost > ~/.npm/b").await.well(), "first\n");
    })
    .await;
    assert_eq!(cell.run("cat ~/.npm/a; ls ~/.npm").await.well(), "first\na\n");
    let after = keepers(&cell);
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");
}

/// The layer of a keeper must not lie over what a grant means.
#[tokio::test]
async fn a_scope_in_a_cache_is_written_itself_and_the_cache_around_it_is_not() {
    let Some(mut cell) = with_a_cache(Cell::new()) else { return };
    let (own, around) = (cell.path("home/.npm/own"), cell.path("home/.npm/around"));
    fs::create_dir(&own).unwrap();
    cell.bench.ctx.scope.allow.push(Rule::new(&own, Permission::Write));
    for n in ["1", "2"] {
        cell.run(&format!("echo {n} | tee ~/.npm/own/a ~/.npm/around")).await.well();
        assert_eq!(fs::read_to_string(own.join("a")).unwrap().trim(), n);
    }
    assert!(!around.exists());
    assert_eq!(cell.run("cat ~/.npm/around").await.well(), "2\n");
}

/// An overlay shows the directory that was there when it was mounted.
#[tokio::test]
async fn a_cache_that_the_person_replaced_is_never_written_and_gets_a_new_layer() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    cell.run("echo first > ~/.npm/a").await.well();
    for _ in 0..2 {
        fs::rename(cell.path("home/.npm"), cell.path("home/old")).unwrap();
        fs::create_dir(cell.path("home/.npm")).unwrap();
        assert_eq!(cell.run("cat ~/.npm/a; echo x > ~/.npm/b").await.well(), "first\n");
        assert_eq!(fs::read_dir(cell.path("home/.npm")).unwrap().count(), 0);
        fs::remove_dir(cell.path("home/old")).unwrap();
    }
    assert_eq!(keepers(&cell).len(), 1);
}

/// What an overlay has mounted must not be changed below it.
#[tokio::test]
async fn a_closed_directory_in_a_cache_is_reported_and_opened_when_its_world_has_ended() {
    let Some(mut cell) = with_a_cache(without_power()) else { return };
    cell.limits = CommandLimits { cache_mib: 2, ..CommandLimits::default() };
    let closes = "mkdir -p ~/.npm/closed; exec 3> ~/.npm/closed/big; chmod 0 ~/.npm/closed; \
                  head -c 4M /dev/zero >&3";
    let storage = PodStorage::of(&cell.bench.ctx.private);
    let npm = cell.path("home/.npm").canonicalize().unwrap();
    let closed = storage.kept_layer(&npm).join("closed");
    let mode = || fs::metadata(&closed).unwrap().permissions().mode() & 0o777;
    let mut other = beside(&cell, &[]);
    other.limits = cell.limits;
    let meanwhile = async {
        until("it runs", || cell.path("ws/ready").exists()).await;
        let did = cell.run(closes).await;
        let met = did.ended.limit.as_ref().expect("a limit");
        assert!(met.kind == LimitKind::Space && met.sentence.contains("measured"), "{met:?}");
        assert_eq!(mode(), 0, "another command has it mounted");
        fs::write(cell.path("ws/go"), "").unwrap();
    };
    let long = "touch ready; until [ -e go ]; do sleep 0.01; done";
    let (_, ()) = tokio::join!(other.run(long), meanwhile);
    assert_eq!(cell.run("ls ~/.npm/closed").await.well(), "big\n");
    assert_eq!(mode(), 0o700);
    let met = cell.run("head -c 4M /dev/zero > ~/.npm/more").await.ended.limit;
    assert!(met.is_some_and(|met| met.sentence.contains("2 MiB")));
}

#[tokio::test]
async fn a_world_without_commands_ends_after_a_minute_and_not_before() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    cell.run(":").await.well();
    let all = [keepers(&cell), all_wait(&cell).await].concat();
    assert_eq!(all.len(), 5);
    // The timers begin.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(keepers(&cell), all[..1]);
    tokio::time::advance(Duration::from_millis(10_001)).await;
    until_gone("the world", &all).await;
}

#[tokio::test]
async fn a_world_is_explained_and_ends_with_its_pod() {
    let Some(mut cell) = in_a_world(Cell::new()) else { return };
    cell.run(":").await.well();
    let explained = command_sheet(&cell.bench.ctx).limits.concat();
    assert!(explained.contains("a keeper holds the network and the caches ("), "{explained}");
    let all = [keepers(&cell), all_wait(&cell).await].concat();
    cell.bench.ctx.pod_world = Default::default();
    until_gone("the world", &all).await;
}

/// The order of a keeper for the Pod of this cell.
fn order(cell: &Cell) -> String {
    let ctx = &cell.bench.ctx;
    let private = Some(ctx.private.as_path());
    let around = Around { private, ..Around::new(&ctx.scope, Person { env: &ctx.env }) };
    let view = CommandView::new(&around);
    format!("{}\n", json!({"view": view, "env": ctx.env, "make_measurable": false}))
}

/// The pipes of a keeper and of a helper that waits in its world close when the host dies, however it dies.
#[tokio::test]
async fn no_kept_world_outlives_its_host() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    fs::write(cell.path("order"), order(&cell)).unwrap();
    // A shell is the host: it has the only write ends of both pipes.
    let script = "exec 3> >(exec \"$0\" \"$1\"); cat \"$3\" >&3; read -r stages; \
                  exec 4> >(exec \"$0\" \"$2\" \"$stages\"); read -r _; : >&3 >&4";
    let mut host = Command::new("bash")
        .args(["-c", script, &cell.bench.ctx.helper.display().to_string(), KEEPER_ARG, HELPER_ARG])
        .arg(cell.path("order"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(host.stdout.take().unwrap());
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let (pod, limits) = (PodStorage::of(&cell.bench.ctx.private).key(), CommandLimits::default());
    let keeper = &answer["Ok"]["keeper"];
    let stages = json!({"network": "off", "pod": pod, "limits": limits, "keeper": keeper});
    writeln!(host.stdin.as_ref().unwrap(), "{stages}").unwrap();
    let all = [keepers(&cell), all_wait(&cell).await].concat();
    assert_eq!(all.len(), 5, "{line}");
    let network = |pid| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    assert_eq!(network(all[0]), network(all[4]));
    host.kill().unwrap();
    host.wait().unwrap();
    // The output ends with the last process that could write to it.
    answers.read_to_string(&mut line).unwrap();
    until_gone("the world", &all).await;
}

/// A process may have got the number of a keeper that has ended.
#[test]
fn stages_enter_no_process_that_is_not_their_keeper() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 =
        stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let storage = json!({"dir": cell.bench.ctx.private});
    for (start, reason) in
        [(start + 1, "its keeper has ended"), (start, "its keeper has namespaces of the machine")]
    {
        let process = json!({"pid": std::process::id(), "start": start});
        let keeper = json!({"process": process, "storage": storage}).to_string();
        let enter = Command::new(&cell.bench.ctx.helper)
            .args([ENTER_ARG, "keeper", &keeper])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&enter.stdout).unwrap();
        assert_eq!(report["world_lost"], true, "{report}");
        assert!(report["failed"].as_str().unwrap().ends_with(reason), "{report}");
    }
}

#[test]
fn a_kept_world_does_not_hold_a_file_system_that_the_person_unmounts() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    fs::write(cell.path("order"), order(&cell)).unwrap();
    fs::create_dir(cell.path("ws/disk")).unwrap();
    let script = "set -e; mount --bind \"$3\" \"$3\"; mount --make-shared \"$3\"; mount -t tmpfs disk \"$3/disk\"
        coproc \"$1\" \"$2\"; cat \"$4\" >&${COPROC[1]}; read -r _ <&${COPROC[0]}
        mounted() { grep -c \"$3/disk\" /proc/$COPROC_PID/mountinfo || true; }
        mounted \"$@\"; umount \"$3/disk\"; mounted \"$@\"";
    let run = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "bash", "-c", script, "person"])
        .arg(&cell.bench.ctx.helper)
        .args([KEEPER_ARG.as_ref(), cell.path("ws").as_os_str(), cell.path("order").as_os_str()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&run.stdout), "1\n0\n", "{run:?}");
}
