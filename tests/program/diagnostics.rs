//! What the program writes about itself, and what it says about the machine.

use crate::bench::{Bench, eventually};
use std::os::unix::fs::PermissionsExt as _;

/// The log lines of all processes of a bench.
fn log(bench: &Bench) -> String {
    std::fs::read_to_string(bench.path("home/state/yoi.log")).unwrap_or_default()
}

#[test]
fn a_host_in_the_background_logs_into_the_state_directory() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    bench.yoi(&["restore", "a"]);
    let pid = bench.host_pid().expect("a host in the background");
    assert_eq!(bench.yoi(&["host", "stop"]).code, Some(0));
    eventually("the host is gone", || bench.host_pid().is_none());
    let log = log(&bench);
    for said in ["host started", "host ended"] {
        let written = log.lines().any(|l| l.contains(&format!("INFO {pid} ")) && l.contains(said));
        assert!(written, "{said}: {log}");
    }
    let mode = |name: &str| {
        let meta = std::fs::metadata(bench.path(name)).expect("a file of the state directory");
        meta.permissions().mode() & 0o777
    };
    assert_eq!((mode("home/state"), mode("home/state/yoi.log")), (0o700, 0o600));
    assert!(!bench.data().join("host.log").exists(), "there is one log");
}
