//! Names of Pods in any script, from the directory to the screen.

use crate::bench::Bench;
use crate::pty::Terminal;

#[test]
fn a_directory_in_any_script_names_its_pod_everywhere() {
    let bench = Bench::new();
    for (dir, name) in [("日本", "日本"), ("Cafe\u{301}", "Caf\u{e9}"), ("検査 (1)", "検査--1")]
    {
        let cwd = bench.ws().join(dir);
        std::fs::create_dir(&cwd).expect("a new directory");
        // A workspace of its own.
        std::fs::create_dir(cwd.join(".git")).expect("a new directory");
        let cwd = cwd.to_str().expect("a path in UTF-8").to_owned();
        let made = bench.yoi(&["--cwd", &cwd, "--model", &bench.model(), "--keep", "-p", "hi"]);
        assert_eq!((made.code, made.out.trim_end()), (Some(0), "heard: hi"), "{made:?}");
        assert_eq!(bench.pod(name).expect("the pod")["state"], "stopped");
        assert_eq!(bench.yoi(&["restore", name]).code, Some(0));
        let upper = name.to_uppercase();
        let sent = bench.yoi(&["--pod", &upper, "-p", "again"]);
        assert_eq!((sent.code, sent.out.trim_end()), (Some(0), "heard: again"), "{sent:?}");
    }
    let table = bench.yoi(&["ls"]).out;
    let column = |line: &str| {
        let before = &line[..line.find("done").expect("its state")];
        unicode_width::UnicodeWidthStr::width(before)
    };
    let columns: Vec<usize> = table.lines().skip(1).map(column).collect();
    assert_eq!(columns, [9, 9, 9], "{table}");
    let terminal = Terminal::open(&bench, &["--pod", "日本"]);
    terminal.waits_for("heard: again");
    terminal.waits_for("\n 日本 ›");
    let socket = bench.runtime().join("日本/sock");
    assert!(socket.exists(), "{}", socket.display());
}
