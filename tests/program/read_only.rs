//! A home on a read-only file system: no host can run there, and what the last one left is read all the same.

use crate::bench::{Bench, Done, alive, eventually, files, signal};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

/// What the shell says where this machine lets a test make no mounts of its own.
const NO_MOUNTS: i32 = 99;

impl Bench {
    /// Runs the program in a view of the files in which the home is read-only; `None` where there can be no such view.
    fn yoi_read_only(&self, line: &str) -> Option<Done> {
        let root = rustix::process::geteuid().is_root();
        let user = if root { "" } else { "--map-root-user" };
        let mounted = format!(
            "unshare {user} --mount sh -c 'mount --bind $HOME $HOME && mount -o remount,bind,ro $HOME || exit {NO_MOUNTS}
             exec yoi {line}'"
        );
        let done = self.finish(self.shell(&mounted).spawn().expect("a shell"));
        let is_possible = done.code != Some(NO_MOUNTS) && !done.err.starts_with("unshare:");
        if !is_possible {
            eprintln!("not covered: this machine lets a test make no mounts ({})", done.err.trim());
        }
        is_possible.then_some(done)
    }

    /// Every file of the data directory: its content and when it was changed.
    fn data_files(&self) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
        let mut paths = files(&self.data());
        paths.sort();
        let read = |path: PathBuf| {
            let changed = path.metadata().and_then(|found| found.modified());
            (path.clone(), fs::read(path).expect("a file"), changed.expect("a time"))
        };
        paths.into_iter().map(read).collect()
    }

    /// Kills the host that runs in the background.
    fn kill_host(&self) {
        let pid = self.host_pid().expect("a host in the background");
        signal(pid, "KILL");
        eventually("the host is gone", || !alive(pid));
    }
}

/// What a line of `yoi ls --json` says, without the number of the last event: it counts for one host.
fn infos(done: &Done) -> Vec<Value> {
    let mut infos = done.events();
    for info in &mut infos {
        info.as_object_mut().expect("an object").remove("seq");
    }
    infos
}

#[test]
fn ls_and_log_print_of_a_read_only_home_what_they_print_with_a_host() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet you"]);
    bench.yoi(&["-c", "new b", "-c", "stop b"]);
    assert_eq!(bench.say("once").code, Some(0));
    let host = bench.serve();
    let lines = ["ls --all --json", "log a", "log a --raw", "log a --json"];
    let with_host: Vec<Done> =
        lines.iter().map(|line| bench.yoi(&line.split(' ').collect::<Vec<_>>())).collect();
    let Some(served) = bench.yoi_read_only(lines[0]) else { return };
    assert_eq!(
        (served.out.as_str(), served.err.as_str()),
        (with_host[0].out.as_str(), ""),
        "a host that can be reached is used"
    );
    bench.kill_host();
    drop(host);
    let before = bench.data_files();
    let why = format!("{} cannot be written: Read-only file system", bench.data().display());
    for (line, with_host) in lines.iter().zip(&with_host) {
        let read = bench.yoi_read_only(line).expect("the same view");
        assert_eq!((read.code, with_host.code), (Some(0), Some(0)), "{line}: {read:?}");
        assert!(read.err.starts_with(&why) && read.err.lines().count() == 1, "{line}: {read:?}");
        match line.starts_with("ls") {
            true => assert_eq!(infos(&read), infos(with_host)),
            false => assert_eq!(read.out, with_host.out, "{line}"),
        }
    }
    let table = bench.yoi_read_only("ls").expect("the same view").out;
    let names: Vec<&str> = table.lines().filter_map(|row| row.split(' ').next()).collect();
    assert_eq!(names, ["POD", "a", "b"], "{table}");
    let unknown = bench.yoi_read_only("log nope").expect("the same view");
    assert_eq!(unknown.code, Some(5), "{unknown:?}");
    assert!(unknown.last_words().contains("there is no pod `nope`"), "{unknown:?}");
    for refused in ["-p hi", "stop a"] {
        let done = bench.yoi_read_only(refused).expect("the same view");
        assert_eq!((done.code, done.err.lines().count()), (Some(1), 1), "{done:?}");
        assert!(done.err.contains("host.lock: Read-only file system"), "{done:?}");
    }
    assert!(bench.data_files() == before, "a file of the data directory was changed");
}

#[test]
fn what_a_killed_host_had_not_brought_into_its_database_is_read_from_a_read_only_home() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet you"]);
    assert_eq!(bench.yoi(&["send", "a", "slow"]).code, Some(0));
    bench.yoi(&["-c", "new late"]);
    bench.kill_host();
    let before = bench.data_files();
    let logged = fs::metadata(bench.data().join("yoi.db-wal")).expect("a write-ahead log");
    assert!(logged.len() > 0, "the host was killed before it emptied its write-ahead log");
    let Some(listed) = bench.yoi_read_only("ls --json") else { return };
    let log = bench.yoi_read_only("log a --json").expect("the same view").events();
    assert!(bench.data_files() == before, "a file of the data directory was changed");
    let [a, late] = &listed.events()[..] else { panic!("{listed:?}") };
    assert_eq!(
        (&a["name"], &a["state"], &late["name"]),
        (&"a".into(), &"paused".into(), &"late".into())
    );
    let inputs = log.iter().filter(|entry| entry["kind"] == "user_input").count();
    assert_eq!(inputs, 2, "both messages that were acknowledged");
    // A host that starts says the same of each Pod, and begins its log with the same entries.
    let with_host = bench.yoi(&["ls", "--json"]);
    assert_eq!(infos(&listed), infos(&with_host));
    assert_eq!(bench.log("a")[..log.len()], log[..]);
}
