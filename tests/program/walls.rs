//! Commands of a Pod and the program itself: what a command was granted never opens the host to it.

use crate::bench::Bench;
use std::fs;

/// Says `received` for each socket that answers, `silent` for each that does not.
const KNOCK: &str = r#"
import socket, sys
for path in sys.argv[1:]:
    try:
        door = socket.socket(socket.AF_UNIX)
        door.settimeout(10)
        door.connect(path)
        door.sendall(b'{"hello":{"protocol":2,"version":"x"}}\n')
        print('heard' if door.recv(1) else 'silent')
    except OSError:
        print('silent')
"#;

fn bench(needs: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.ws().join("knock.py"), KNOCK).expect("a writable workspace");
    let sockets =
        [".host/sock", "a/sock"].map(|name| bench.runtime().join(name).display().to_string());
    let script = format!(
        "[[when]]\nany = true\n[[when.step]]\ncall = [{{ name = \"Bash\", args = {{ \
         command = \"python3 knock.py {}\", {needs} }} }}]\n\
         [[when.step]]\ntext = \"It said: {{result}}\"\n",
        sockets.join(" ")
    );
    bench.play(&script);
    bench
}

#[test]
fn a_command_does_not_reach_the_sockets_of_its_own_host() {
    let bench = bench("timeout = 60");
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a knock"]);
    let log = bench.yoi(&["log", "a"]);
    assert!(log.out.contains("silent") && !log.out.contains("heard"), "{log:?}");
}

#[test]
fn not_even_when_it_may_use_other_sockets() {
    let dir = tempfile::tempdir().expect("a directory");
    let socket = dir.path().canonicalize().expect("a path").join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let named = format!("outside = [{{ path = \"{}\" }}], reason = \"to knock\"", socket.display());
    let bench = bench(&named);
    fs::create_dir_all(bench.path("home/config")).expect("a writable home");
    let rule = "[[permissions.rule]]\ntool = \"Bash+outside\"\naction = \"allow\"\n";
    fs::write(bench.path("home/config/config.toml"), rule).expect("a writable home");
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a knock"]);
    let log = bench.yoi(&["log", "a"]);
    assert!(log.out.contains("silent") && !log.out.contains("heard"), "{log:?}");
}

#[test]
fn the_sockets_of_its_own_host_are_not_given_to_a_command_that_names_them() {
    let bench = Bench::new();
    let socket = bench.runtime().join(".host/sock").display().to_string();
    let script = format!(
        "[[when]]\nany = true\n[[when.step]]\ncall = [{{ name = \"Bash\", args = {{ command = \"true\", \
         outside = [{{ path = \"{socket}\" }}], reason = \"to knock\" }} }}]\n\
         [[when.step]]\ntext = \"It said: {{result}}\"\n"
    );
    bench.play(&script);
    let done = bench.say("knock");
    assert!(done.out.contains("is not opened for connecting: it is yoi's own"), "{done:?}");
}

#[test]
fn the_doctor_says_how_well_commands_are_confined() {
    let done = Bench::new().yoi(&["doctor", "--json"]);
    let page: serde_json::Value = serde_json::from_str(&done.out).expect("one JSON object");
    let findings = page["findings"].as_array().expect("a list");
    let found = findings.iter().find(|found| found["about"] == "commands");
    let word = found.and_then(|found| found["text"].as_str()).expect("a finding about commands");
    let words = ["sandbox on (", "sandbox partly on: ", "sandbox off: "];
    assert!(words.iter().any(|known| word.starts_with(known)), "{word}");
}

#[test]
fn a_shell_explains_what_the_commands_of_a_pod_get() {
    let bench = bench("timeout = 60");
    let _host = bench.serve();
    bench.yoi(&["--model", &bench.model(), "-c", "new a"]);
    for args in [["explain", "a"], ["-c", "explain a"]] {
        let done = bench.yoi(&args);
        let workspace = bench.ws().canonicalize().expect("a path").display().to_string();
        let line = |label: &str| {
            let mut lines = done.out.lines().filter(|line| line.starts_with(label));
            lines.next().unwrap_or_else(|| panic!("{label}: {done:?}")).to_owned()
        };
        assert!(line("they write").contains(&workspace), "{done:?}");
        assert!(line("commands").contains("sandbox "), "{done:?}");
        assert!(line("variables").contains("PATH"), "{done:?}");
    }
}

/// Two messages to a Pod: the first makes a command write beyond its limit, the second runs another one.
const FILL_AND_REST: &str = r#"
[[when]]
says = "fill"
[[when.step]]
call = [
    { name = "Bash", args = { command = "exec head -c 2M /dev/zero > big" } },
    { name = "Bash", args = { command = "true" } },
]
[[when.step]]
text = "It said: {result}"

[[when]]
any = true
[[when.step]]
call = [{ name = "Bash", args = { command = "true" } }]
[[when.step]]
text = "It said: {result}"
"#;

#[test]
fn the_row_of_a_pod_says_that_a_command_met_a_limit_until_the_next_commands_meet_none() {
    let bench = Bench::new();
    bench.settings("[limits]\nfile_mib = 1\n");
    bench.play(FILL_AND_REST);
    let _host = bench.serve();
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a fill"]);
    let limit = bench.pod("a").expect("the Pod")["limit"].clone();
    assert_eq!(limit["kind"], "file_size", "{limit}");
    let sentence = limit["sentence"].as_str().expect("a sentence");
    assert!(sentence.contains("at most 1 MiB"), "{sentence}");
    let log = bench.yoi(&["log", "a"]);
    assert!(log.out.contains(sentence), "the result of the call says the same: {log:?}");
    let list = bench.yoi(&["ls"]);
    assert!(list.out.contains("met a limit: file size"), "{list:?}");
    let explained = bench.yoi(&["explain", "a"]);
    assert!(explained.out.contains(sentence), "{explained:?}");
    bench.yoi(&["-c", "send a rest"]);
    assert_eq!(bench.pod("a").expect("the Pod").get("limit"), None);
}

#[test]
fn commands_around_a_read_run_together_and_the_read_sees_what_they_left() {
    let bench = Bench::new();
    let pipe = bench.ws().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, pipe, 0o600.into()).expect("a pipe");
    bench.play(
        r#"
[[when]]
any = true
[[when.step]]
call = [
    { name = "Bash", args = { command = "cat pipe > a.txt", timeout = 20 } },
    { name = "Read", args = { file_path = "{cwd}/a.txt" } },
    { name = "Bash", args = { command = "echo met > pipe", timeout = 20 } },
]
[[when.step]]
text = "It said: {result}"
"#,
    );
    bench.yoi(&["--model", &bench.model(), "-c", "new a", "-c", "send a go"]);
    let log = bench.yoi(&["log", "a"]);
    assert!(log.out.contains("\tmet") && !log.out.contains("timed out"), "{log:?}");
}
