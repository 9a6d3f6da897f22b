//! The helper that waits for the next command of a Pod, with the stages of that command.

use crate::escape::cell::{Cell, no_world_to_test};
use crate::escape::git;
use serde_json::json;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use yoi::sandbox::{
    CommandLimits, CommandView, HELPER_ARG, Isolation, Need, PodStorage, StartGroup,
};
use yoi::scope::{Permission, Rule};

/// Without namespaces a command is started at once, and no helper waits.
pub fn in_a_world(cell: Cell) -> Option<Cell> {
    (!no_world_to_test() && cell.has_world()).then_some(cell)
}

/// A Pod that has run a command, and so has a helper that waits.
async fn after_a_command() -> Option<Cell> {
    let cell = in_a_world(Cell::new())?;
    cell.run("echo first > /tmp/a").await.well();
    Some(cell)
}

/// The processes of this machine that live, with the words of their command lines and their parents.
pub fn processes() -> Vec<(i32, String, i32)> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let process = |pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit(')').next()?.split_whitespace();
        let is_alive = fields.next()? != "Z";
        let words = String::from_utf8_lossy(&line).replace('\0', " ");
        is_alive.then_some((pid, words, fields.next()?.parse().ok()?))
    };
    pids.filter_map(process).collect()
}

/// The helper that waits for a command of the Pod, and its stages, outer ones first.
pub fn waiting(cell: &Cell) -> Vec<i32> {
    let all = processes();
    let key = PodStorage::of(&cell.bench.ctx.private).key();
    // The first word is the name of the program or its path.
    let ahead = format!("yoi {HELPER_ARG} {{");
    let is_ahead = |words: &str| {
        let at = words.find(' ').map_or(0, |end| end.saturating_sub("yoi".len()));
        words[at..].starts_with(&ahead) && words.contains(&key)
    };
    let helper = all.iter().find(|(_, words, _)| is_ahead(words));
    let mut found: Vec<i32> = helper.iter().map(|(pid, ..)| *pid).collect();
    while let Some(child) = all.iter().find(|(.., parent)| found.last() == Some(parent)) {
        found.push(child.0);
    }
    found
}

/// Waits until a helper waits with its three stages.
pub async fn all_wait(cell: &Cell) -> Vec<i32> {
    until("a helper waits", || waiting(cell).len() == 4).await;
    waiting(cell)
}

pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_next_command_runs_under_the_helper_that_waits_for_it() {
    let Some(cell) = after_a_command().await else { return };
    let before = all_wait(&cell).await;
    let meanwhile = async {
        until("the command begins", || cell.path("ws/ready").exists()).await;
        let now: Vec<i32> = processes().into_iter().map(|(pid, ..)| pid).collect();
        assert!(before.iter().all(|pid| now.contains(pid)), "it runs the command");
        fs::write(cell.path("ws/go"), "").unwrap();
    };
    let program = "touch ready; until [ -e go ]; do sleep 0.01; done; cat /tmp/a";
    let (did, ()) = tokio::join!(cell.run(program), meanwhile);
    assert_eq!(did.well(), "first\n");
    let after = all_wait(&cell).await;
    assert!(after.iter().all(|pid| !before.contains(pid)), "each command has its own");
}

/// The helper, the stage in its namespaces, their first process, and the last stage: the kernel may kill any of them.
#[tokio::test]
async fn a_command_whose_waiting_helper_or_stage_was_killed_runs_all_the_same() {
    let Some(cell) = after_a_command().await else { return };
    for stage in 0..4 {
        kill_while_it_waits(&cell, stage).await;
        let did = cell.run("echo $0; cat /tmp/a").await;
        assert_eq!(did.well(), "bash\nfirst\n", "{stage}");
        assert!(did.ended.undone.is_empty() && did.ended.limit.is_none(), "{:?}", did.ended);
    }
}

/// Kills the helper (0) or a stage of it.
async fn kill_while_it_waits(cell: &Cell, stage: usize) {
    let found = all_wait(cell).await;
    let pid = found[stage].to_string();
    let killed = Command::new("kill").args(["-KILL", &pid]).status().unwrap();
    assert!(killed.success());
    // The later ones end with it, and the first process with the last stage.
    let ends = &found[stage.min(2)..];
    until("they end", || processes().iter().all(|(pid, ..)| !ends.contains(pid))).await;
}

/// A state of the guarded files that is recorded while another command changes them would be taken for the person's.
#[tokio::test]
async fn a_killed_helper_is_replaced_before_another_command_of_the_reply_begins() {
    let Some(mut cell) = in_a_world(git::repository()) else { return };
    cell.run(":").await.well();
    kill_while_it_waits(&cell, 2).await;
    let mut other = Cell::new();
    other.bench.ctx = cell.bench.ctx.clone();
    let mut group = StartGroup::of(2);
    (cell.group, other.group) = (group.remove(0), group.remove(0));
    let (one, two) = tokio::join!(
        cell.run("touch one; until [ -e two ]; do sleep 0.01; done"),
        other
            .run("echo ../.alt > .git/commondir; touch two; until [ -e one ]; do sleep 0.01; done")
    );
    one.well();
    two.well();
    assert!(!cell.path("ws/.git/commondir").exists(), "it is undone");
}

#[tokio::test]
async fn a_command_with_more_rights_leaves_the_waiting_helper_to_the_next_one() {
    let Some(mut cell) = after_a_command().await else { return };
    let before = all_wait(&cell).await;
    let links = "readlink /proc/self/ns/net";
    cell.needs = vec![Need::Network];
    let machine = fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(cell.run(links).await.well().trim(), machine.to_str().unwrap());
    assert_eq!(waiting(&cell), before);
    cell.needs.clear();
    assert_ne!(cell.run(links).await.well().trim(), machine.to_str().unwrap());
    assert!(!waiting(&cell).contains(&before[0]));
}

#[tokio::test]
async fn what_was_lent_after_a_helper_began_to_wait_is_not_written() {
    let Some(mut cell) = after_a_command().await else { return };
    fs::create_dir(cell.path("ws/lent")).unwrap();
    cell.run("echo x > lent/before").await.well();
    all_wait(&cell).await;
    cell.bench.ctx.scope.deny.push(Rule::new(cell.path("ws/lent"), Permission::Write));
    cell.run("echo x > lent/after").await.refused();
    assert!(!cell.path("ws/lent/after").exists());
}

#[tokio::test]
async fn a_helper_waits_a_minute_and_no_longer() {
    let Some(cell) = after_a_command().await else { return };
    let found = all_wait(&cell).await;
    // The timer begins.
    tokio::task::yield_now().await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(50)).await;
    assert_eq!(waiting(&cell), found);
    tokio::time::advance(Duration::from_millis(10_001)).await;
    until("they end", || processes().iter().all(|(pid, ..)| !found.contains(pid))).await;
}

/// The stages that a command of the Pod of this cell gets.
fn stages(cell: &Cell) -> String {
    let pod = PodStorage::of(&cell.bench.ctx.private).key();
    let limits = CommandLimits::default();
    json!({"network": "off", "pod": pod, "limits": limits}).to_string()
}

#[tokio::test]
async fn a_helper_that_waits_ends_with_its_host() {
    let Some(cell) = in_a_world(Cell::new()) else { return };
    // A shell is the host: it has the only write end of the pipe.
    let script = "exec 3> >(exec \"$@\"); read -r _; : >&3";
    let mut host = Command::new("bash")
        .args(["-c", script, "host"])
        .arg(&cell.bench.ctx.helper)
        .args([HELPER_ARG, &stages(&cell)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let found = all_wait(&cell).await;
    host.kill().unwrap();
    host.wait().unwrap();
    // The output ends with the last process that could write to it.
    let mut said = String::new();
    host.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("the order is not readable"), "{said}");
    // A process closes its output a moment before it is gone.
    until("they end", || processes().iter().all(|(pid, ..)| !found.contains(pid))).await;
}

#[tokio::test]
async fn stages_are_used_for_no_command_that_has_others() {
    let Some(cell) = in_a_world(Cell::with(&[Need::Network])) else { return };
    let ctx = &cell.bench.ctx;
    let person = yoi::sandbox::UserPaths { env: &ctx.env };
    let (private, isolation) = (Some(ctx.private.as_path()), Isolation::Namespaces);
    let around = yoi::sandbox::ViewInputs::new(&ctx.scope, person);
    let around = yoi::sandbox::ViewInputs { needs: &cell.needs, private, isolation, ..around };
    let view = CommandView::new(&around);
    let order = json!({"program": ":", "cwd": ctx.cwd, "env": {}, "nofile": null, "view": view});
    let mut helper = Command::new(&ctx.helper)
        .args([HELPER_ARG, &stages(&cell)])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = helper.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, format!("{order}\nbegin\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(helper.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("its stages were started for another command"), "{line}");
    assert!(!helper.wait().unwrap().success());
}
