//! Questions that come up where no screen is.

use crate::bench::{Bench, eventually};
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
says = "spawn * and *"
[[when.step]]
call = [{ name = "SpawnPod", args = { name = "{1}", task = "fetch" } }, { name = "SpawnPod", args = { name = "{2}", task = "fetch" } }]
[[when.step]]
text = "spawned"

[[when]]
says = "ask"
[[when.step]]
call = [{ name = "AskPerson", args = { question = "Which name?", choices = ["total", "sum"] } }]
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

#[test]
fn equal_requests_of_a_family_are_one_entry_and_one_decision() {
    let bench = bench();
    let _host = bench.serve();
    let does = |args: &[&str]| {
        let done = bench.yoi(args);
        assert_eq!(done.code, Some(0), "{args:?}: {done:?}");
        done
    };
    does(&["--model", &bench.model(), "-c", ":new lead", "-c", ":new other"]);
    does(&["send", "lead", "spawn one and two"]);
    let needs_you = |pod: &str| bench.pod(pod).is_some_and(|pod| pod["state"] == "needs_you");
    eventually("both ask", || needs_you("one") && needs_you("two"));
    let listed = does(&["inbox"]).out;
    let (name, rest) =
        listed.strip_prefix('[').and_then(|rest| rest.split_once("] ")).expect("a name");
    let first = rest.lines().next().expect("a line");
    assert!(
        ["one, two", "two, one"]
            .map(|pods| format!("{pods} ask: Bash echo fetched"))
            .contains(&first.to_owned()),
        "{listed}"
    );
    assert!(
        rest.contains(&format!("`yoi allow {name} tree --of lead`"))
            && rest.contains("    equal: "),
        "{listed}"
    );
    assert_eq!(listed.matches("ask: ").count(), 1, "{listed}");
    let wrong = bench.yoi(&["allow", name, "tree", "--of", "other", "--yes"]);
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.err.contains("`other` is not above `"), "{wrong:?}");
    let unconfirmed = bench.yoi(&["allow", name, "tree", "--of", "lead"]);
    assert_eq!(unconfirmed.code, Some(3), "{unconfirmed:?}");
    assert!(unconfirmed.err.contains("for lead and its children?"), "{unconfirmed:?}");
    let allowed = does(&["allow", name, "tree", "--of", "lead", "--yes"]);
    assert!(allowed.err.contains("always allowed, for lead and its children"), "{allowed:?}");
    let fetched = |pod: &str| bench.yoi(&["log", pod]).out.contains("It said: fetched");
    eventually("both have fetched", || fetched("one") && fetched("two"));
    does(&["stop", "one"]);
    does(&["send", "lead", "spawn three and four"]);
    eventually("the later ones have fetched", || fetched("three") && fetched("four"));
    let left = || does(&["inbox"]).out;
    eventually("what has ended is listed", || left().contains("done, not seen"));
    assert!(!left().contains(" asks: "), "{}", left());
    does(&["send", "other", "fetch"]);
    eventually("another family asks", || needs_you("other"));
}

#[test]
fn an_unattended_question_is_declined_at_once_and_the_program_exits_3() {
    let bench = bench();
    let done = bench.say("ask");
    assert_eq!(done.code, Some(3), "{done:?}");
    let no_person = "no person is here to answer";
    let result = format!("no answer: {no_person}; go on by yourself, and say what you assumed");
    assert_eq!(done.out, format!("It said: {result}\n"), "{done:?}");
    assert!(
        done.err.contains(&format!("not answered: question: Which name?: {no_person}")),
        "{done:?}"
    );
    let allowed =
        bench.yoi(&["--model", &bench.model(), "--allow", "AskPerson:*", "--no-ui", "-p", "ask"]);
    assert_eq!((allowed.code, allowed.out), (Some(3), done.out), "no rule answers a question");
    for args in [&["--json", "-p", "ask"][..], &["-c", "new ra", "-c", "send ra ask"]] {
        let done = bench.yoi(&[&["--model", &bench.model(), "--no-ui"], args].concat());
        assert_eq!(done.code, Some(3), "{done:?}");
        assert!(done.out.contains(&result), "the run goes on: {done:?}");
    }
}

#[test]
fn a_question_is_answered_from_the_shell_also_after_the_host_was_killed() {
    let bench = bench();
    let host = bench.serve();
    let made = bench.yoi(&["--model", &bench.model(), "-c", "new ra"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    bench.yoi(&["send", "ra", "ask"]);
    let listed = || bench.yoi(&["inbox"]).out;
    eventually("the question waits", || listed().contains("ra asks: Which name?"));
    let shown = listed();
    assert!(shown.contains("    | 1 total\n    | 2 sum\n"), "{shown}");
    drop(host);
    let _host = bench.serve();
    eventually("the question is kept", || listed() == shown);
    let wrong = bench.yoi(&["answer", "ra", "3"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains(r#""3" is none of the choices: 1 total, 2 sum"#), "{wrong:?}");
    let allowed = bench.yoi(&["answer", "ra", "2"]);
    assert_eq!(allowed.code, Some(0), "{allowed:?}");
    assert!(allowed.err.contains("ra: answered: sum · question: Which name?"), "{allowed:?}");
    eventually("the run goes on", || bench.yoi(&["log", "ra"]).out.contains("It said: sum"));
    let late = bench.yoi(&["answer", "ra", "total"]);
    assert_eq!(late.code, Some(2), "{late:?}");
    assert!(late.err.contains("no request `ra` waits: `yoi inbox` shows"), "{late:?}");
}
