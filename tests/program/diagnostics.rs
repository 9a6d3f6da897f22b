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

#[test]
fn the_doctor_names_a_broken_thing_with_its_way_out_and_fails() {
    let bench = Bench::new();
    let fine = bench.yoi(&["doctor"]);
    assert_eq!(fine.code, Some(0), "{fine:?}");
    assert!(fine.out.contains("no host") || fine.out.contains("none runs"), "{fine:?}");
    assert!(!bench.path("home/state").exists(), "looking changes nothing");
    assert_eq!(fine.out.lines().filter(|line| *line == "settings").count(), 1, "{fine:?}");
    std::fs::create_dir_all(bench.path("home/config")).expect("a writable directory");
    std::fs::write(bench.path("home/config/config.toml"), "model = [").expect("a writable file");
    std::fs::write(bench.path("home/data"), "").expect("a file in place of the data directory");
    let broken = bench.yoi(&["doctor"]);
    assert_eq!(broken.code, Some(1), "{broken:?}");
    let line = |name: &str| {
        let found = broken.out.lines().position(|line| line.contains(name));
        let at = found.unwrap_or_else(|| panic!("no line about {name}: {broken:?}"));
        broken.out.lines().skip(at).take(2).collect::<Vec<_>>().join("\n")
    };
    assert!(line("BROKEN   data").contains("YOI_DATA_DIR"), "{broken:?}");
    assert!(line("config.toml:1:").contains("-> "), "{broken:?}");
    std::fs::remove_file(bench.path("home/data")).expect("our own file");
}

#[test]
fn the_doctor_names_every_broken_theme_and_the_keymap_with_line_and_column() {
    let bench = Bench::new();
    std::fs::create_dir_all(bench.path("home/config/themes")).expect("a writable directory");
    let write = |file: &str, text: &str| {
        std::fs::write(bench.path("home/config").join(file), text).expect("a writable file");
    };
    write("config.toml", "[ui]\ntheme = \"mine\"\n");
    write("themes/mine.toml", "[roles]\n\nnosuch = \"red\"\n");
    write("themes/other.toml", "[roles\n");
    write("keymap.toml", "[everywhere]\n\"ctrl-q\" = \"nosuch\"\n");
    let found = bench.yoi(&["doctor"]);
    for place in ["themes/mine.toml:3:1:", "themes/other.toml:1:", "keymap.toml:2:12:"] {
        assert!(found.out.contains(place), "{place}: {found:?}");
    }
}

#[test]
fn without_home_the_account_names_it_and_a_relative_xdg_directory_is_ignored() {
    let user = rustix::process::getuid().as_raw().to_string();
    let accounts = std::fs::read_to_string("/etc/passwd").expect("the accounts of this machine");
    let account = accounts.lines().find(|line| line.split(':').nth(2) == Some(&user));
    let Some(home) = account.and_then(|line| line.split(':').nth(5)) else {
        eprintln!("this user has no account: not tested");
        return;
    };
    let bench = Bench::new();
    let mut command = bench.command(&["doctor"]);
    command.env_remove("HOME").env_remove("YOI_HOME");
    command.env("XDG_DATA_HOME", "share").env("XDG_CONFIG_HOME", bench.path("home"));
    let done = bench.finish(command.spawn().expect("the program starts"));
    assert!(done.out.contains(&format!("{home}/.local/share/yoi")), "{done:?}");
    let config = bench.path("home/yoi").display().to_string();
    assert!(done.out.contains(&config), "{config}: {done:?}");
}

#[test]
fn the_doctor_works_without_a_home() {
    let bench = Bench::new();
    let mut command = bench.command(&["doctor", "--json"]);
    command.env("HOME", "home").env_remove("YOI_HOME");
    let done = bench.finish(command.spawn().expect("the program starts"));
    assert_eq!(done.code, Some(1), "{done:?}");
    let page: serde_json::Value = serde_json::from_str(&done.out).expect("one JSON object");
    assert_eq!(page["broken"], true);
}

#[test]
fn a_report_is_for_its_owner_and_holds_what_the_host_logged() {
    let bench = Bench::new();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a greet a-private-name"]);
    bench.yoi(&["restore", "a"]);
    let path = bench.path("report.txt");
    let done = bench.yoi(&["doctor", "--report", &path.display().to_string()]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains(&path.display().to_string()), "{done:?}");
    let report = std::fs::read_to_string(&path).expect("the report");
    let pid = bench.host_pid().expect("a host in the background");
    for said in [format!("process {pid}"), format!("INFO {pid} "), "pod a: live".into()] {
        assert!(report.contains(&said), "{said}: {report}");
    }
    assert!(!report.contains("a-private-name"), "no message is in a report: {report}");
    let mode = std::fs::metadata(&path).expect("the report").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}
