//! Limits of a command are enforced, and its result names the limit that it met.

use crate::escape::cell::{Cell, no_world_to_test};
use std::path::PathBuf;
use yoi::protocol::{LimitKind, LimitMet};
use yoi::sandbox::{CommandLimits, Delegated, Outcome};

#[tokio::test]
async fn a_process_of_a_command_opens_as_many_files_as_the_settings_say() {
    let mut cell = Cell::new();
    cell.bench.ctx.command_limits.open_files = 100;
    let output = cell.bench.bash("ulimit -Sn; ulimit -Hn; ulimit -n 101 || echo no more").await;
    let content = output.content.unwrap();
    assert!(content.starts_with("100\n100\n") && content.contains("no more"), "{content}");
    let open = "import os\nheld = []\nwhile True: held.append(os.dup(0))";
    cell.bench.file("open.py", open);
    let output = cell.bench.bash("exec python3 open.py").await;
    let met = output.limit.expect("a limit that was met");
    assert_eq!(met.kind, LimitKind::OpenFiles);
    assert!(met.sentence.contains("at most 100 files and sockets open"), "{met:?}");
}

/// A program whose parent has ended writes too large a file, and the line ends after it. It waits for the end of its
/// parent: a shell that lives yet would take the end of the program to itself.
const ORPHAN: &str = "((until test -e ended; do sleep 0.01; done; exec head -c 2M /dev/zero > big) & \
                      echo $! > pid); : > ended; \
                      while kill -0 $(cat pid) 2> /dev/null; do sleep 0.01; done";

/// The last line of a result about a limit, and the limit that the row of the Pod shows.
async fn said(cell: &mut Cell, command: &str) -> (String, Option<LimitKind>) {
    let output = cell.bench.bash(command).await;
    let content = output.content.unwrap_or_default();
    let line = content.lines().find(|line| line.contains("[limits] in config.toml"));
    (line.unwrap_or_default().to_owned(), output.limit.map(|met| met.kind))
}

#[tokio::test]
async fn a_place_in_memory_without_room_is_named_whatever_the_command_did_then() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    let limits = CommandLimits { home_mib: 4, shm_mib: 2, ..CommandLimits::default() };
    cell.bench.ctx.command_limits = limits;
    let home = format!("4 MiB in {}", cell.path("home").display());
    let cases = [
        ("dd if=/dev/zero of=~/x bs=1M", home.as_str()),
        ("dd if=/dev/zero of=~/x bs=1M; echo done", &home),
        ("dd if=/dev/zero of=/dev/shm/x bs=1M 2> /dev/null | tail -1", "2 MiB in /dev/shm"),
        ("(for i in $(seq 300); do : > /dev/shm/$i; done) 2> /dev/null", "for at most 256 files"),
    ];
    for (command, words) in cases {
        let (line, kind) = said(&mut cell, command).await;
        let seen = line.starts_with("[the command met a limit: ") && line.contains(words);
        assert!(seen && kind == Some(LimitKind::Space), "{command}: {line} {kind:?}");
    }
    let (line, kind) = said(&mut cell, "dd if=/dev/zero of=~/x bs=1M; rm ~/x").await;
    let possible = "[a program may have met a limit: a command has 4 MiB in its home directory";
    assert!(line.starts_with(possible) && kind.is_none(), "{line} {kind:?}");
    let (line, kind) = said(&mut cell, "head -c 1M /dev/zero > ~/x").await;
    assert_eq!((line.as_str(), kind), ("", None));
}

#[tokio::test]
async fn a_program_that_met_a_limit_inside_a_line_leaves_a_word_about_it() {
    let mut cell = Cell::new();
    if no_world_to_test() {
        return;
    }
    cell.only_where_processes_are_counted();
    let limits =
        CommandLimits { file_mib: 1, memory_mib: 200, processes: 310, ..CommandLimits::default() };
    cell.bench.ctx.command_limits = limits;
    cell.bench.file(
        "fork.py",
        "import os, time\nwhile True:\n    if os.fork() == 0:\n        time.sleep(60)",
    );
    let big = "python3 -c 'a = bytearray(400 << 20)'";
    // The command line, the sentence about a limit, and whether the row of the Pod shows the limit.
    let cases = [
        ("head -c 2M /dev/zero > big; ls; echo end", "writes has at most 1 MiB", true),
        (ORPHAN, "at most 1 MiB", true),
        (&format!("{big}; echo done"), "at most 200 MiB of memory", false),
        (&format!("{big} 2>&1 | tail -1"), "at most 200 MiB of memory", false),
        (big, "at most 200 MiB of memory", true),
        (
            "kill -ABRT $$",
            "may have met a limit: a process of a command has at most 200 MiB",
            false,
        ),
        ("for i in $(seq 800); do sleep 20 & done 2>&1 | tail -2", "at most 310 processes", true),
        ("python3 fork.py; echo end", "at most 310 processes", false),
    ];
    for (command, words, row) in cases {
        let (line, kind) = said(&mut cell, command).await;
        assert!(line.contains(words) && kind.is_some() == row, "{command}: {line} {kind:?}");
    }
    cell.bench
        .file("log", "#define EFBIG 27 /* File too large */\nit ran out of memory, says the log\n");
    let (line, kind) = said(&mut cell, "cat log").await;
    assert_eq!((line.as_str(), kind), ("", None));
}

/// Where commands get control groups, the group in which they lie; a command without a world gets none.
fn groups(cell: &Cell) -> Option<Delegated> {
    let groups = Delegated::find();
    if groups.is_none() {
        println!("not covered: no controllers of cgroup v2 are delegated to this user here");
    }
    groups.filter(|_| cell.has_world())
}

/// Where the kernel's controllers are delegated to this user, the commands of a Pod have one group around theirs.
#[tokio::test]
async fn commands_of_a_pod_that_run_at_the_same_time_have_limits_together() {
    let mut cell = Cell::new();
    let Some(groups) = groups(&cell) else { return };
    cell.limits = CommandLimits { memory_mib: 96, ..CommandLimits::default() };
    // Two processes with 60 MiB each: below the limit of a command, but two such commands exceed
    // that of the Pod.
    let hold = "import os, time\nfor _ in range(2):\n    if os.fork() == 0:\n        \
                held = bytearray(b'x') * (60 << 20)\n        time.sleep(5)\n        os._exit(0)\n\
                for _ in range(2): os.wait()";
    let did = cell.python(hold).await;
    assert_eq!((did.ended.outcome, did.ended.limit.clone()), (Outcome::Exited(0), None), "{did:?}");
    let (one, other) = tokio::join!(cell.python(hold), cell.python(hold));
    let met: Vec<LimitMet> = [one, other].into_iter().filter_map(|did| did.ended.limit).collect();
    let first = met.first().expect("one of the two met a limit");
    assert!(first.kind == LimitKind::Memory, "{met:?}");
    assert!(
        first.sentence.starts_with("the commands of a Pod that run at the same time"),
        "{met:?}"
    );
    assert_eq!(groups.abandoned(), Vec::<PathBuf>::new(), "no group outlives its commands");
}

/// Where the kernel's controllers are delegated to this user, a control group counts a whole command.
#[tokio::test]
async fn memory_and_processes_of_a_command_are_counted_together_in_a_control_group() {
    let mut cell = Cell::new();
    let Some(groups) = groups(&cell) else { return };
    cell.limits = CommandLimits { memory_mib: 96, processes: 40, ..CommandLimits::default() };
    let together = "import os, time\nfor _ in range(4):\n    if os.fork() == 0:\n        \
                    held = bytearray(b'x') * (40 << 20)\n        time.sleep(1)\n        os._exit(0)\n\
                    for _ in range(4): os.wait()";
    let did = cell.python(together).await;
    let met = did.ended.limit.clone().expect("a limit that was met");
    assert_eq!(met.kind, LimitKind::Memory, "{did:?}");
    assert!(met.sentence.contains("at most 160 MiB of memory together"), "{met:?}");
    let did = cell.python("held = bytearray(b'x') * (40 << 20)").await;
    assert_eq!((did.ended.outcome, did.ended.limit.clone()), (Outcome::Exited(0), None), "{did:?}");
    let many = "import os, time\nfor _ in range(100):\n    if os.fork() == 0:\n        time.sleep(60)\n        \
                os._exit(0)";
    let did = cell.python(many).await;
    // An ordinary user meets the limit of a user namespace first, and the program says so.
    let kind = did.ended.limit.as_ref().map(|met| met.kind);
    let root = rustix::process::geteuid().is_root();
    assert_eq!(kind, root.then_some(LimitKind::Processes), "{did:?}");
    assert_eq!(groups.abandoned(), Vec::<PathBuf>::new(), "no group outlives its command");
}
