//! Credentials of the settings, from the request to what is written of them.

use crate::bench::{Bench, Done, files};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

/// The value of the variable, which stands nowhere but in the environment of its command.
const TOKEN: &str = "ghp_this-token-stands-nowhere-123";

const SETTINGS: &str = r#"
[credential.github]
env = ["GH_TOKEN"]

[credential.other]
env = ["NOT_SET"]

[credential.empty]

[credential.key]
ssh_agent = true

[shell]
pass = ["GH_TOKEN"]
"#;

const SCRIPT: &str = r#"
[[when]]
says = "push *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}", needs = ["credential:github"], reason = "to push" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "plain *"
[[when.step]]
call = [{ name = "Bash", args = { command = "{1}" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "wants *"
[[when.step]]
call = [{ name = "Bash", args = { command = "true", needs = ["credential:{1}"], reason = "to push" } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "serve"
[[when.step]]
call = [{ name = "Bash", args = { command = "true", needs = ["credential:github"], reason = "r", background = true } }]
[[when.step]]
text = "It said: {result}"

[[when]]
says = "read *"
[[when.step]]
call = [{ name = "Read", args = { file_path = "{1}" } }]
[[when.step]]
text = "It said: {result}"
"#;

/// A bench with these settings; `None` on a machine where no credential is given.
fn bench() -> Option<Bench> {
    let bench = Bench::new();
    bench.play(SCRIPT);
    bench.settings(SETTINGS);
    let said = say(&bench, "wants github", &[&allow("true")]).out;
    let is_given = !said.contains("cannot be granted on this machine");
    assert!(said.contains("It said: ") || !is_given, "{said}");
    is_given.then_some(bench)
}

/// Says something to the Pod, with these rules that allow.
fn say(bench: &Bench, text: &str, allow: &[&str]) -> Done {
    let model = bench.model();
    let mut command = bench.command(&["--no-ui", "--model", &model, "-p", text]);
    for rule in allow {
        command.args(["--allow", rule]);
    }
    bench.finish(command.env("GH_TOKEN", TOKEN).spawn().expect("the program starts"))
}

fn allow(line: &str) -> String {
    format!("Bash+credential=github:{line}")
}

#[test]
fn a_credential_is_seen_by_the_command_that_was_allowed_to_and_its_value_is_written_nowhere() {
    let Some(bench) = bench() else { return };
    let line =
        "printenv GH_TOKEN | tee /tmp/kept | base64; cat /tmp/kept; printenv GH_TOKEN | wc -c";
    let refused = say(&bench, &format!("push {line}"), &[]);
    let needs = "(credential github): no person is here to decide; --allow";
    assert!(refused.code == Some(3) && refused.err.contains(needs), "{refused:?}");
    for rule in ["Bash:*", "*:*", &allow("printenv*"), &allow("printenv GH_TOKEN")] {
        assert_eq!(say(&bench, &format!("push {line}"), &[rule]).code, Some(3), "{rule}");
    }
    let done = say(&bench, &format!("push {line}"), &[&allow(line)]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let value = format!("[credential github]\n{}", TOKEN.len() + 1);
    assert!(done.out.contains(&value), "{done:?}");
    assert_eq!(done.out.matches("[credential github]").count(), 2, "{done:?}");

    let plain = say(&bench, "plain printenv GH_TOKEN; echo $?", &[]);
    assert!(plain.out.contains("It said: 1"), "no other command sees it: {plain:?}");
    for path in files(&bench.path("home")) {
        // The Pod's own directory of temporary files has what the command put there.
        let kept = path.ends_with("tmp/kept");
        let bytes = fs::read(&path).unwrap_or_default();
        let found = bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
        assert!(!found || kept, "the value stands in {}", path.display());
    }
}

#[test]
fn what_another_tool_reads_of_the_value_is_taken_out_too() {
    let Some(bench) = bench() else { return };
    fs::write(bench.ws().join(".env"), format!("TOKEN={TOKEN}\n")).expect("a file");
    let file = bench.ws().join(".env").display().to_string();
    for text in
        [format!("read {file}"), "plain cat .env".into(), format!("plain grep TOKEN {file}")]
    {
        let done = say(&bench, &text, &[]);
        assert!(done.out.contains("TOKEN=[credential github]"), "{done:?}");
        assert!(!done.out.contains(TOKEN) && !done.err.contains(TOKEN), "{done:?}");
    }
}

#[test]
fn a_credential_that_cannot_be_given_is_refused_without_asking_anybody() {
    let Some(bench) = bench() else { return };
    for (name, why) in [
        (
            "gitlab",
            r#"no credential is named "gitlab": there are credential:empty, credential:github, credential:key, credential:other"#,
        ),
        ("other", "NOT_SET is not set where yoi was started"),
        ("key", "SSH_AUTH_SOCK is not set where yoi was started"),
        ("empty", "[credential.empty] in config.toml has neither env nor ssh_agent"),
    ] {
        let done = say(&bench, &format!("wants {name}"), &["*:*"]);
        assert!(done.out.contains(why), "{name}: {done:?}");
        assert!(!done.err.contains("no person is here"), "{done:?}");
    }
    let done = say(&bench, "serve", &[&allow("true")]);
    assert!(done.out.contains("background cannot be joined with needs"), "{done:?}");
    fs::create_dir(bench.ws().join(".yoi")).expect("a directory");
    let theirs = "[credential.mine]\nenv = [\"GH_TOKEN\"]\n";
    fs::write(bench.ws().join(".yoi/config.toml"), theirs).expect("a file");
    let done = say(&bench, "wants mine", &["*:*"]);
    assert!(done.out.contains(r#"no credential is named "mine""#), "{done:?}");
    let said = ".yoi/config.toml:1:2: credential is ignored";
    assert!(done.err.contains(said), "{done:?}");
}

#[test]
fn a_request_says_what_its_command_gets_and_a_rule_of_the_pod_covers_this_line_alone() {
    let Some(bench) = bench() else { return };
    for arguments in
        [&["init", "-q"] as &[&str], &["remote", "add", "origin", "https://127.0.0.1:9/x"]]
    {
        let mut git = std::process::Command::new("git");
        let status = git.args(arguments).current_dir(bench.ws()).status().expect("git");
        assert!(status.success(), "{arguments:?}");
    }
    let model = bench.model();
    let mut child = bench.command(&["--no-ui", "--yes", "--ask", "wait", "--model", &model]);
    child.env("GH_TOKEN", TOKEN);
    let mut child = child.stdin(Stdio::piped()).spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("its input");
    let errors = BufReader::new(child.stderr.take().expect("its errors"));
    let mut lines = errors.lines().map_while(Result::ok);
    writeln!(input, "push printenv GH_TOKEN").expect("an open input");
    lines.find(|line| line.contains(" asks: Bash printenv GH_TOKEN")).expect("the request");
    let gives = lines.next().expect("what it gives");
    let all = "gives the credential github (the variable GH_TOKEN), to this command only";
    assert_eq!(gives.trim(), all);
    let ways = lines.next().expect("how it is decided");
    assert!(ways.contains("needs the credential github") && !ways.contains(" pod"), "{ways}");
    writeln!(input, ":allow 1 pod").expect("an open input");
    lines.find(|line| line.contains("once")).expect("no rule for what may obey the Pod");
    writeln!(input, ":allow 1\npush git ls-remote origin").expect("an open input");
    lines.find(|line| line.contains(" asks: Bash git ls-remote origin")).expect("a request");
    let ways = lines.find(|line| line.contains(":allow 2 pod")).expect("a rule is offered");
    assert!(!ways.contains("tree"), "{ways}");
    writeln!(input, ":allow 2 tree").expect("an open input");
    lines.find(|line| line.contains("and not to everything below it")).expect("a refusal");
    writeln!(input, ":allow 2 pod {}", allow("git ls-remote *")).expect("an open input");
    lines.find(|line| line.contains("does not allow the call")).expect("a refusal");
    writeln!(input, ":allow 2 pod\npush git ls-remote origin\npush git ls-remote --tags origin")
        .expect("an open input");
    let next = lines.find(|line| line.starts_with("[3] ")).expect("another request");
    assert!(next.contains("--tags"), "the same line is not asked about again: {next}");
    writeln!(input, ":deny 3").expect("an open input");
    drop(input);
    std::thread::spawn(move || lines.for_each(drop));
    let done = bench.finish(child);
    assert_eq!(done.out.matches("[credential github]").count(), 1, "{done:?}");
    assert!(!done.out.contains(TOKEN), "{done:?}");
}
