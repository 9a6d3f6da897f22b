//! Questions that come up where no screen is.

use crate::bench::Bench;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

const SCRIPT: &str = r#"
[[when]]
says = "fetch"
[[when.step]]
call = [{ name = "Bash", args = { command = "echo fetched", needs = ["network"], reason = "crates" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
any = true
text = "heard: {1}"
"#;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.play(SCRIPT);
    bench
}

#[test]
fn an_unattended_approval_request_is_denied_with_the_rule_that_allows_it_and_exits_with_3() {
    let bench = bench();
    let done = bench.say("fetch");
    assert_eq!(done.code, Some(3), "{done:?}");
    let way = "no person is here to decide; --allow 'Bash+network:echo fetched' lets it pass";
    assert_eq!(done.out, format!("It said: denied: {way}\n"), "{done:?}");
    assert!(done.err.contains(&format!("denied: Bash echo fetched (network): {way}")), "{done:?}");
    assert_eq!(done.err.matches("denied: ").count(), 1, "said once: {done:?}");
}

#[test]
fn a_named_pod_that_a_message_makes_is_introduced_once() {
    let bench = bench();
    let done = bench.yoi(&["--model", &bench.model(), "--pod", "kim", "-p", "hello"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert_eq!(done.err.matches("kim: rehearsal:").count(), 1, "{done:?}");
}

#[test]
fn a_call_that_the_command_line_allows_passes() {
    let bench = bench();
    let args =
        ["--model", &bench.model(), "--allow", "Bash+network:echo *", "--no-ui", "-p", "fetch"];
    let done = bench.yoi(&args);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("fetched"), "{done:?}");
    let log = bench.log("ws");
    let kinds: Vec<&str> = log.iter().filter_map(|entry| entry["domain"].as_str()).collect();
    assert!(kinds.contains(&"yoi.asked") && kinds.contains(&"yoi.answered"), "{kinds:?}");
}

#[test]
fn a_rule_for_the_screen_is_a_mistake() {
    let done = bench().yoi(&["--allow", "Bash:ls"]);
    assert_eq!(done.code, Some(2), "{done:?}");
}

#[test]
fn a_question_is_answered_by_whoever_types_lines() {
    let bench = bench();
    let mut child = bench.command(&["--no-ui", "--ask", "wait", "--model", &bench.model()]);
    let mut child = child.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its input");
    let errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut lines = errors.lines().map_while(Result::ok);
    writeln!(input, "fetch").expect("an open input");
    let question = lines.find(|line| line.starts_with("[1] ws asks: ")).expect("the question");
    assert_eq!(question, "[1] ws asks: Bash echo fetched");
    let more = lines.next().expect("what can be said");
    assert!(more.contains("network access (the model says: crates); :allow 1"), "{more}");
    writeln!(input, ":allow 1").expect("an open input");
    drop(input);
    std::thread::spawn(move || lines.for_each(drop));
    let done = bench.finish(child);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("fetched"), "{done:?}");
}

#[test]
fn a_request_is_decided_from_the_shell_by_the_name_that_the_inbox_prints() {
    let bench = bench();
    let _host = bench.serve();
    let mut child = bench.command(&["--ask", "wait", "--model", &bench.model(), "-p", "fetch"]);
    let mut child = child.stdin(Stdio::null()).spawn().expect("the program starts");
    let errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut lines = errors.lines().map_while(Result::ok);
    lines.find(|line| line.contains("] ws asks: ")).expect("the request");
    let ways = lines.next().expect("how it is decided");
    assert!(ways.contains("`yoi allow ") && !ways.contains(":allow"), "{ways}");
    std::thread::spawn(move || lines.for_each(drop));
    let listed = bench.yoi(&["inbox"]).out;
    let named = listed.strip_prefix('[').and_then(|rest| rest.split_once("] ws asks: Bash echo"));
    let name = named.unwrap_or_else(|| panic!("{listed}")).0;
    assert!(listed.contains(&format!("`yoi allow {name} pod`")), "{listed}");
    let other = bench.yoi(&["allow", "1"]);
    assert_eq!(other.code, Some(2), "a number of another conversation: {other:?}");
    let rule = bench.yoi(&["allow", name, "pod"]);
    assert_eq!(rule.code, Some(3), "{rule:?}");
    let question = "always allow Bash+network: echo fetched for ws?";
    assert!(rule.err.contains(question) && rule.err.contains("--yes"), "{rule:?}");
    let allowed = bench.yoi(&["allow", name]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    assert!(allowed.err.contains("ws: allowed once · Bash echo fetched"), "{allowed:?}");
    let done = bench.finish(child);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("fetched"), "{done:?}");
    let over = bench.yoi(&["deny", name, "too late"]);
    assert_eq!(over.code, Some(2), "{over:?}");
}
