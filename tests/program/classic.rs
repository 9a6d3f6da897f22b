//! A client written from the description of the protocol alone, in another language, replays the
//! recorded scenes against our sockets.

use crate::bench::{Bench, eventually};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn a_classic_client_hears_what_was_recorded_but_for_the_intended_differences() {
    let bench = Bench::new();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let script = fs::read_to_string(vectors.join("mock.toml")).expect("the script");
    bench.play(&script);
    let dirs = ["alpha", "beta"].map(|pod| bench.ws().join(pod));
    for dir in &dirs {
        fs::create_dir_all(dir.join(".git")).expect("a workspace of its own");
    }
    // The predecessor had no questions: what it refused is refused here, too.
    let rule = "[[permissions.rule]]\ntool = \"Read\"\npattern = \"/etc/*\"\naction = \"deny\"\n";
    fs::create_dir_all(bench.path("home/config")).expect("a new directory");
    fs::write(bench.path("home/config/config.toml"), rule).expect("a new file");
    fs::write(dirs[0].join("note.txt"), "hello file\n").expect("a new file");
    let (model, [alpha, beta]) = (bench.model(), dirs.map(|dir| dir.display().to_string()));
    let made = bench.yoi(&[
        "-c",
        &format!("new alpha --cwd {alpha} --model {model}"),
        "-c",
        &format!("new beta --cwd {beta} --model {model}"),
    ]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let _host = bench.serve();
    let socket = |pod: &str| bench.runtime().join(pod).join("sock");
    eventually("both pods listen", || socket("alpha").exists() && socket("beta").exists());
    let pair = |left: &str, right: &Path| format!("{left}={}", right.display());
    let output = Command::new("python3")
        .arg(vectors.join("replay.py"))
        .args(["--vectors".as_ref(), vectors.join("pod-socket.jsonl").as_os_str()])
        .args(["--differences".as_ref(), vectors.join("differences.json").as_os_str()])
        .args(["--socket", &pair("alpha", &socket("alpha"))])
        .args(["--socket", &pair("beta", &socket("beta"))])
        .args(["--map", &pair("/w", &bench.ws())])
        .args(["--map", &pair("/home/u/.yoi", &bench.path("home"))])
        .output()
        .expect("python3 (scripts/test installs it)");
    let said = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{err}");
    assert!(said.contains("228 recorded events compared"), "{said}");
}
