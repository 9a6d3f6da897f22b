//! Paths outside the scope that a command names, from the request to what the command sees.

use crate::bench::Bench;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

const SCRIPT: &str = r#"
[[when]]
says = "look at *"
[[when.step]]
call = [{ name = "Bash", args = { command = "cd {1} && cat a; cat ../beside/a", outside = [{ path = "{1}" }], reason = "to look" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "read *"
[[when.step]]
call = [{ name = "Read", args = { file_path = "{1}" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "build"
[[when.step]]
call = [{ name = "Bash", args = { command = "sh build.sh", needs = ["network"], reason = "to build" } }]
[[when.step]]
text = "It said: {result}"
"#;

/// A bench, and a directory outside its workspace with another one beside it.
fn bench() -> (Bench, String) {
    let bench = Bench::new();
    bench.play(SCRIPT);
    for (dir, text) in [("named", "uno"), ("beside", "due")] {
        let dir = bench.path(dir);
        fs::create_dir(&dir).expect("a directory");
        fs::write(dir.join("a"), text).expect("a file");
    }
    let named = bench.path("named").canonicalize().expect("a path").display().to_string();
    (bench, named)
}

#[test]
fn a_command_that_names_a_path_is_allowed_by_a_rule_for_that_path_and_sees_nothing_beside_it() {
    let (bench, named) = bench();
    let say = format!("look at {named}");
    let done = bench.say(&say);
    assert_eq!(done.code, Some(3), "{done:?}");
    let rule = format!("Bash+read={named}:cd {named} && cat a; cat ../beside/a");
    assert!(done.out.contains(&format!("--allow '{rule}' lets it pass")), "{done:?}");
    for other in ["Bash+read=/srv/*:*", "Bash+write=/srv:*", "Bash+network:*"] {
        let done = bench.yoi(&["--model", &bench.model(), "--allow", other, "-p", &say]);
        assert_eq!(done.code, Some(3), "{other}: {done:?}");
    }
    let done = bench.yoi(&["--model", &bench.model(), "--allow", &rule, "-p", &say]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("uno") && !done.out.contains("due"), "{done:?}");
}

#[test]
fn a_decision_for_the_pod_is_about_the_paths_that_the_request_showed() {
    let (bench, named) = bench();
    let mut child = bench.command(&["--no-ui", "--ask", "wait", "--model", &bench.model()]);
    let mut child = child.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its input");
    let errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut lines = errors.lines().map_while(Result::ok);
    writeln!(input, "look at {named}").expect("an open input");
    lines.find(|line| line.starts_with("[1] ws asks: Bash cd ")).expect("the request");
    let opens = lines.next().expect("what it opens");
    assert_eq!(opens.trim(), format!("opens read {named}, for this command only"));
    writeln!(input, ":allow 1 pod\nlook at {named}\nlook at {named}/../beside")
        .expect("an open input");
    let second = lines.find(|line| line.starts_with("[2] ws asks: ")).expect("another request");
    assert!(second.contains("/../beside"), "the same path is not asked about again: {second}");
    let opens = lines.next().expect("what it opens");
    let beside = named.replace("/named", "/beside");
    assert_eq!(opens.trim(), format!("opens read {beside}, for this command only"));
    writeln!(input, ":deny 2").expect("an open input");
    drop(input);
    std::thread::spawn(move || lines.for_each(drop));
    let done = bench.finish(child);
    assert!(done.out.contains("uno") && !done.out.contains("due"), "{done:?}");
}

#[test]
fn a_command_with_a_script_that_its_pod_can_change_is_allowed_once_only() {
    let (bench, _) = bench();
    let script = bench.ws().join("build.sh");
    fs::write(&script, "echo first").expect("a script");
    let mut child = bench.command(&["--no-ui", "--ask", "wait", "--model", &bench.model()]);
    let mut child = child.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its input");
    let errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut lines = errors.lines().map_while(Result::ok);
    writeln!(input, "build").expect("an open input");
    lines.find(|line| line.starts_with("[1] ws asks: Bash sh build.sh")).expect("the request");
    let runs = lines.next().expect("what it runs");
    // The first digits that sha256sum prints for `echo first`.
    assert!(runs.trim().ends_with("/build.sh, SHA-256 48c38d96b990"), "{runs}");
    let ways = lines.next().expect("how it is decided");
    assert!(
        ways.contains(":allow 1 (it is allowed once only: ") && !ways.contains("pod, :"),
        "{ways}"
    );
    for wider in ["pod", "tree", "pod Bash+network:*"] {
        writeln!(input, ":allow 1 {wider}").expect("an open input");
        lines.find(|line| line.contains("it is allowed once only")).expect("the refusal");
    }
    writeln!(input, ":allow 1").expect("an open input");
    drop(input);
    std::thread::spawn(move || lines.for_each(drop));
    let done = bench.finish(child);
    assert!(done.out.contains("first"), "{done:?}");
    let build = ["--pod", "ws", "-p", "build"];
    let done = bench.yoi(&build);
    assert!(done.code == Some(3) && !done.out.contains("said: first"), "{done:?}");
    assert!(done.out.contains("--allow 'Bash+network:sh build.sh' lets it pass"), "{done:?}");
    let done = bench.yoi(&[&build[..], &["--allow", "Bash+network:sh build.sh"]].concat());
    assert!(done.code == Some(0) && done.out.contains("first"), "{done:?}");
}

#[test]
fn a_file_behind_a_link_that_turned_since_it_was_approved_is_not_read() {
    let (bench, named) = bench();
    let link = bench.ws().join("link");
    std::os::unix::fs::symlink(&named, &link).expect("a link");
    for verdict in ["", "pod"] {
        let mut child = bench.command(&["--no-ui", "--ask", "wait", "--model", &bench.model()]);
        let mut child = child.stdin(Stdio::piped()).spawn().expect("the program starts");
        let mut input = child.stdin.take().expect("its input");
        let errors = BufReader::new(child.stderr.take().expect("its errors"));
        let mut lines = errors.lines().map_while(Result::ok);
        writeln!(input, "read {}", link.join("a").display()).expect("an open input");
        let asked = lines.find(|line| line.contains(" asks: Read ")).expect("the request");
        assert!(asked.contains(&format!("{named}/a")), "the request shows where it leads: {asked}");
        fs::remove_file(&link).expect("the link goes");
        let beside = named.replace("/named", "/beside");
        std::os::unix::fs::symlink(beside, &link).expect("another link");
        writeln!(input, ":allow 1 {verdict}").expect("an open input");
        drop(input);
        std::thread::spawn(move || lines.for_each(drop));
        let done = bench.finish(child);
        assert!(!done.out.contains("due"), "{verdict}: {done:?}");
        assert!(done.out.contains("its path resolves to another target"), "{verdict}: {done:?}");
        fs::remove_file(&link).expect("the link goes");
        std::os::unix::fs::symlink(&named, &link).expect("the first link");
    }
}
