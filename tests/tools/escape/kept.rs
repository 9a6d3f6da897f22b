//! The network that commands of one Pod share, and what ends it.

use crate::bench::walls;
use crate::escape::ahead::{all_wait, in_a_world, processes, until, waiting};
use crate::escape::cell::Cell;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;
use yoi::sandbox::{
    CommandLimits, ENTER_ARG, HELPER_ARG, KEEPER_ARG, Need, PATH_SOCKETS, PodStorage,
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

/// The keeper of a Pod, which its explanation names.
fn keeper(cell: &Cell) -> Option<i32> {
    let cost = cell.bench.ctx.pod_world.cost()?;
    Some(cost.split("process ").nth(1)?.split(')').next()?.parse().unwrap())
}

/// The keeper, and the helper that waits with its stages in its network.
async fn all_kept(cell: &Cell) -> Vec<i32> {
    let all = [vec![keeper(cell).expect("a keeper")], all_wait(cell).await].concat();
    let network = |pid| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap();
    assert_eq!(network(all[0]), network(all[4]));
    all
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

/// The keeper ends, and the helper that waits in its network when the next one begins to wait.
#[tokio::test]
async fn commands_with_two_views_in_turn_each_begin_a_network() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    let less = after_a_lend(&cell);
    let mut ended = Vec::new();
    for cell in [&cell, &less, &cell, &less] {
        cell.run(":").await.well();
        let all = all_kept(cell).await;
        until_gone("the earlier network", &ended).await;
        ended = all;
    }
}

#[tokio::test]
async fn a_command_with_more_rights_leaves_the_network_to_the_others() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    let links = "readlink /proc/self/ns/net";
    let shared = cell.run(links).await.well().to_owned();
    let before = keeper(&cell);
    for need in [Need::Network, Need::Git] {
        assert_ne!(beside(&cell, &[need]).run(links).await.well(), shared, "{need:?}");
    }
    assert_eq!(cell.run(links).await.well(), shared);
    assert!(before.is_some() && keeper(&cell) == before);
}

#[tokio::test]
async fn a_network_whose_keeper_was_killed_is_begun_anew() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    let links = "readlink /proc/self/ns/net";
    let first = cell.run(links).await.well().to_owned();
    all_wait(&cell).await;
    let before = keeper(&cell).unwrap();
    kill(before);
    until_gone("the keeper", &[before]).await;
    assert_ne!(cell.run(links).await.well(), first);
    assert!(keeper(&cell).is_some_and(|pid| pid != before));
}

/// The layers over caches live as long as one command: an overlay shows what lay there when it was mounted, but the paths
/// that are hidden in it are those of the disk now.
#[tokio::test]
async fn what_the_person_changes_in_a_cache_between_two_commands_hides_and_shows_what_it_should() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    let cache = cell.path("home/.cache/huggingface");
    let write = |text: &str| {
        fs::create_dir_all(&cache).unwrap();
        fs::write(cache.join("token"), text).unwrap();
    };
    let look = async |when: &str| {
        for _ in 0..2 {
            let did = cell.run("cat ~/.cache/huggingface/token ~/.cache/huggingface/*; true").await;
            assert!(!did.well().contains("hf_"), "{when}: {}", did.text);
        }
    };
    write("hf_first");
    look("a token").await;
    fs::remove_file(cache.join("token")).unwrap();
    look("removed").await;
    write("hf_again");
    look("made again").await;
    fs::rename(&cache, cell.path("outside/moved")).unwrap();
    fs::write(cell.path("outside/moved/token"), "hf_outside").unwrap();
    look("moved away").await;
    fs::create_dir(&cache).unwrap();
    look("missing").await;
    write("hf_later");
    look("written after a command looked").await;
    let npm = cell.path("home/.npm");
    fs::write(npm.join("old"), "old").unwrap();
    let look = "cat ~/.npm/old ~/.npm/new/file; true";
    assert!(cell.run(look).await.well().starts_with("old"));
    fs::write(npm.join("next"), "next").unwrap();
    fs::rename(npm.join("next"), npm.join("old")).unwrap();
    fs::create_dir(npm.join("new")).unwrap();
    fs::write(npm.join("new/file"), "new").unwrap();
    assert_eq!(cell.run(look).await.well(), "nextnew");
}

/// Steps of a history in which commands of different rights follow each other and processes are killed. `YOI_STEPS` sets
/// another number, for a longer look.
const STEPS: u64 = 24;

/// Commands that follow each other all write to the layers of the Pod: none gets a temporary one.
#[tokio::test]
async fn no_history_of_commands_that_follow_each_other_loses_what_they_wrote_to_a_cache() {
    let Some(cell) = with_a_cache(Cell::new()) else { return };
    let views = [beside(&cell, &[]), after_a_lend(&cell), beside(&cell, &[Need::Network])];
    let steps = std::env::var("YOI_STEPS").map_or(STEPS, |steps| steps.parse().unwrap());
    let mut random = 7_u64;
    let mut expected = String::new();
    for n in 0..steps {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let choice = usize::try_from(random >> 40).unwrap();
        let stages = waiting(&cell);
        match choice % 4 {
            0 if let Some(pid) = keeper(&cell) => {
                kill(pid);
                until_gone("the keeper", &[pid]).await;
            }
            // The later stages end with the one that is killed, and the first process with the last stage.
            1 if stages.len() == 4 => {
                let stage = choice / 4 % 4;
                kill(stages[stage]);
                until_gone("its stages", &stages[stage.min(2)..]).await;
            }
            _ => {}
        }
        let view = &views[choice / 16 % 3];
        expected += &format!("{n}\n");
        let did = view.run(&format!("echo {n} >> ~/.npm/all; cat ~/.npm/all")).await;
        assert_eq!(did.well(), expected, "step {n}, choice {choice}");
    }
}

#[tokio::test]
async fn a_network_without_commands_ends_after_a_minute_and_not_before() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    cell.run(":").await.well();
    let all = all_kept(&cell).await;
    // The timers begin.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(keeper(&cell), Some(all[0]));
    tokio::time::advance(Duration::from_millis(10_001)).await;
    until_gone("all", &all).await;
}

#[tokio::test]
async fn a_network_is_explained_and_ends_with_its_pod() {
    let Some(mut cell) = in_a_world(Cell::new()) else { return };
    cell.run(":").await.well();
    let explained = command_sheet(&cell.bench.ctx).limits.concat();
    assert!(explained.contains("holds the network of this Pod"), "{explained}");
    let all = all_kept(&cell).await;
    cell.bench.ctx.pod_world = Default::default();
    until_gone("all", &all).await;
}

/// The pipes of a keeper and of a helper that waits in its network close when the host dies, however it dies.
#[tokio::test]
async fn no_kept_network_outlives_its_host() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    // A shell is the host: it has the only write ends of both pipes.
    let script = "exec 3> >(exec \"$0\" \"$1\"); read -r stages; \
                  exec 4> >(exec \"$0\" \"$2\" \"$stages\"); read -r _; : >&3 >&4";
    let mut host = Command::new("bash")
        .args(["-c", script, &cell.bench.ctx.helper.display().to_string(), KEEPER_ARG, HELPER_ARG])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(host.stdout.take().unwrap());
    let mut line = String::new();
    answers.read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    let (pod, limits) = (PodStorage::of(&cell.bench.ctx.private).key(), CommandLimits::default());
    let keeper = &answer["Ok"];
    let stages = json!({"network": "off", "pod": pod, "limits": limits, "keeper": keeper});
    writeln!(host.stdin.as_ref().unwrap(), "{stages}").unwrap();
    let pid: i32 = keeper["pid"].as_i64().unwrap().try_into().unwrap();
    let all = [vec![pid], all_wait(&cell).await].concat();
    host.kill().unwrap();
    host.wait().unwrap();
    // The output ends with the last process that could write to it.
    answers.read_to_string(&mut line).unwrap();
    until_gone("all", &all).await;
}

/// A process may have got the number of a keeper that has ended.
#[test]
fn stages_enter_no_process_that_is_not_their_keeper() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start: u64 =
        stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    for (start, reason) in
        [(start + 1, "its keeper has ended"), (start, "its keeper has the network of the machine")]
    {
        let keeper = json!({"pid": std::process::id(), "start": start}).to_string();
        let enter = Command::new(&cell.bench.ctx.helper)
            .args([ENTER_ARG, "keeper", &keeper])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let report: Value = serde_json::from_slice(&enter.stdout).unwrap();
        assert_eq!(report["keeper_lost"], true, "{report}");
        assert!(report["failed"].as_str().unwrap().ends_with(reason), "{report}");
    }
}
