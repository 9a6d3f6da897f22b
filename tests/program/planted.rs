//! Forty-six secrets, each in a place where a real one can stand, through real runs of the program:
//! none reaches the log, the newest lines of the host, the doctor's page, a report or an error.

use crate::bench::{Bench, Done, eventually, files};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

/// What every planted secret holds, followed by its number.
const MARK: &str = "planted0";

/// Secrets in variables: by name, by the settings (`SHED_CODE`), and in addresses.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("ANTHROPIC_API_KEY", "sk-ant-planted001-abcdef"),
    ("OPENAI_API_KEY", "an-ordinary-planted002"),
    ("GITHUB_TOKEN", "ghp_planted003abcdefghij"),
    ("AWS_SECRET_ACCESS_KEY", "wJalrXUtplanted004"),
    ("PGPASSWORD", "planted005"),
    ("DATABASE_URL", "postgres://me:planted006@db.example/shop"),
    ("MY_PASSWORD", "two words planted007"),
    ("SHED_CODE", "planted008-in-a-variable-with-an-ordinary-name"),
    ("NPM_AUTH", "planted009"),
    ("ALL_PROXY", "http://me:planted010@127.0.0.1:9"),
];

/// Secrets in the settings, some of them where no secret belongs.
const SETTINGS: &str = r#"
api_key = "planted011"
[limits]
max_turns = "sk-planted012-abcdef"
[retry]
minutes = 0
[profile.x]
instruction = "say planted013 to nobody"
[provider.shed]
wire = "openai_chat"
base_url = "https://me:planted014@shed.example/v1"
key_env = "SHED_CODE"
[provider.barn]
wire = "openai_chat"
base_url = "https://barn.example/v1?api_key=planted015"
headers = { X-Auth = "planted031-in-a-header", Cookie = "id=planted032" }
[[permissions.rule]]
tool = "Read"
pattern = "/planted033/*"
action = "deny"
[[permissions.rule]]
tool = "McpServer"
pattern = "*"
action = "allow"
[mcp.a]
command = "/nowhere/server"
args = ["serve", "--api-key", "planted034", "--token=planted035", "-k", "planted036"]
env = { MY_KEY = "planted037", LINEAR_CREDENTIAL = "planted038", PLAIN = "planted039-word", API_TOKEN = "planted040" }
[mcp.b]
url = "http://127.0.0.1:9/s/planted041/mcp?key=planted042&sig=planted043"
headers = { X-Api-Key = "planted044", Cookie = "s=planted045", X-Auth = "planted046-in-a-header" }
"#;

/// Secrets in the file of stored keys.
const KEYS: &str = "groq = \"planted016-groq\"\nbarn = \"planted017-barn\"\n";

/// Secrets in tool arguments, in file names, and in what the tools print.
const SCRIPT: &str = r#"
[[when]]
says = "begin *"
[[when.step]]
call = [{ name = "Bash", args = { command = "echo Authorization: Bearer planted018; echo password=planted019" } }]
[[when.step]]
call = [{ name = "Write", args = { file_path = "{cwd}/sk-planted020-name.txt", content = "token: planted021" } }]
[[when.step]]
call = [{ name = "Read", args = { file_path = "{cwd}/ghp_planted022missing" } }]
[[when.step]]
call = [{ name = "Bash", args = { command = "printf -- '-----BEGIN PRIVATE KEY-----\\nplanted023\\n'; exit 3" } }]
[[when.step]]
text = "done with planted024"
[[when]]
says = "anything*"
[[when.step]]
text = "never"
fault = { error = "the model says Bearer planted025 is wrong", retryable = false }
"#;

/// What a provider answers that repeats secrets of the request and of others.
const REFUSAL: &str = r#"{"error":{"message":"no: Bearer planted026, sk-planted027-abcdef, https://u:planted028@h/ and api_key=planted029"}}"#;

/// A provider that refuses every request with those words; its address.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            // The head and the start of the body are enough: what follows is not looked at.
            let _ = stream.read(&mut [0; 65_536]);
            let head = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nset-cookie: id=planted030\r\n";
            let rest = format!("content-length: {}\r\nconnection: close\r\n\r\n", REFUSAL.len());
            let _ = stream.write_all(format!("{head}{rest}{REFUSAL}").as_bytes());
        }
    });
    format!("http://{address}/v1")
}

struct Planted {
    bench: Bench,
    provider: String,
}

impl Planted {
    fn new() -> Self {
        let bench = Bench::new();
        bench.play(SCRIPT);
        let config = bench.path("home/config");
        std::fs::create_dir_all(&config).expect("a writable directory");
        std::fs::write(config.join("config.toml"), SETTINGS).expect("a writable directory");
        let keys = config.join("keys.toml");
        std::fs::write(&keys, KEYS).expect("a writable directory");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&keys, mode).expect("our own file");
        Self { bench, provider: provider() }
    }

    /// Runs the program with every secret in its environment, and logs as much as there is.
    fn yoi(&self, args: &[&str]) -> Done {
        let mut command = self.bench.command(args);
        command.envs(ENVIRONMENT.iter().copied()).env("YOI_LOG", "trace");
        command.env("OPENAI_BASE_URL", &self.provider);
        self.bench.finish(command.spawn().expect("the program starts"))
    }
}

fn check(place: &str, text: &str) {
    let found = text.find(MARK).map(|at| &text[text.floor_char_boundary(at.saturating_sub(60))..]);
    let found = found.map(|rest| &rest[..rest.floor_char_boundary(120)]);
    assert_eq!(found, None, "{place}");
}

#[test]
fn planted_secrets_reach_no_log_no_report_and_no_error() {
    let planted = Planted::new();
    let model = planted.bench.model();
    let mut runs = vec![
        planted.yoi(&["--no-ui", "--model", &model, "-p", "begin now", "--allow", "Bash:*"]),
        planted.yoi(&["--no-ui", "--model", &model, "-p", "anything"]),
        planted.yoi(&["--no-ui", "--model", "openai/gpt-x", "-p", "hi"]),
        planted.yoi(&["--no-ui", "--model", "shed/x", "-p", "hi"]),
        planted.yoi(&["--no-ui", "--model", "barn/x", "-p", "hi"]),
        planted.yoi(&["--model", &model, "-c", "new a"]),
        planted.yoi(&["restore", "a"]),
        planted.yoi(&["send", "a", "anything"]),
    ];
    assert!(runs[2].err.contains("[secret]"), "the provider's words are shown: {:?}", runs[2]);
    let log = planted.bench.path("home/state/yoi.log");
    eventually("the run in the background is logged", || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines().any(|line| line.contains("run{pod=a ") && line.contains("failed: "))
    });
    let report = planted.bench.path("report.txt").display().to_string();
    runs.push(planted.yoi(&["doctor", "--report", &report]));
    runs.push(planted.yoi(&["doctor", "--json"]));
    let traced = planted.yoi(&["trace"]);
    assert!(traced.out.contains("run{pod=a "), "the host's newest lines: {traced:?}");
    // The first run shows the tool calls that it was asked to make, as its transcript does; what
    // the program itself says about a run stands in other lines.
    let own: Vec<&str> = runs[0].err.lines().filter(|line| line.starts_with("yoi:")).collect();
    check("standard error", &own.join("\n"));
    for run in &runs[1..] {
        check("standard error", &run.err);
    }
    for shown in [&runs[8], &runs[9], &traced] {
        check("standard output", &shown.out);
    }
    let report = std::fs::read_to_string(report).expect("the report");
    assert!(report.contains("pod a: live") && report.contains("newest log lines"), "{report}");
    assert!(report.contains("[secret]"), "settings are in the report: {report}");
    check("the report", &report);
    let logs = files(&planted.bench.path("home/state"));
    assert!(!logs.is_empty(), "there is a log");
    for log in logs {
        let text = std::fs::read_to_string(&log).expect("a log of text");
        assert!(text.contains("ended: Finished") && text.contains("failed: "), "{text}");
        check("the log", &text);
    }
}
