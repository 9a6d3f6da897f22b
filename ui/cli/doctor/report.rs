//! One file for a bug report: the page, the settings, the newest log lines and what the store
//! holds. No message, no prompt, no tool output; redacted as a whole before it is written.

use crate::cli::doctor::host::Reached;
use crate::cli::doctor::within;
use crate::headless::{Exit, Failure};
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;
use yoi::config::dirs::{Dirs, Env};
use yoi::protocol::{Event, Method};
use yoi::text::SafeText;

/// How long reading files may take together.
const FILES: Duration = Duration::from_secs(2);
/// How long the host may take to send its newest log lines.
const LINES: Duration = Duration::from_secs(2);
/// How much of each log file is taken, from its end, in bytes.
const LOG_TAIL: u64 = 256 * 1024;
/// The largest settings file that is taken, in bytes.
const SETTINGS: u64 = 256 * 1024;
/// The variables that change how yoi behaves. No other variable is reported: even its name tells what
/// else the person does.
const VARIABLES: &[&str] = &[
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TERM_PROGRAM",
    "TMUX",
    "STY",
    "ZELLIJ",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "YOI_HOME",
    "YOI_CONFIG_DIR",
    "YOI_DATA_DIR",
    "YOI_RUNTIME_DIR",
    "YOI_STATE_DIR",
    "YOI_MODEL",
    "YOI_LOG",
    "RUST_LOG",
    "XDG_RUNTIME_DIR",
    "SHELL",
];

/// The keys of the settings whose texts are names and choices.
const HARMLESS: &[&str] = &[
    "model",
    "effort",
    "scope.when_busy",
    "host.resume",
    "compaction.model",
    "permissions.default",
    "permissions.rule.tool",
    "permissions.rule.action",
    "profile.*.model",
    "profile.*.effort",
    "provider.*.wire",
    "provider.*.default_model",
    "provider.*.reasoning",
    "provider.*.key_env",
    "models.*.reasoning",
    "shell.pass",
    "credential.*.env",
    "ui.theme",
];
/// The keys whose texts are addresses.
const ADDRESSES: &[&str] = &["provider.*.base_url", "mcp.*.url"];

/// Writes the report, readable by its owner only, and returns its path.
pub async fn write(
    page: &str,
    dirs: &Dirs,
    env: &Env,
    host: Option<&Reached>,
    file: Option<PathBuf>,
) -> Result<PathBuf, Failure> {
    let mut text = format!("yoi {} report\n\n{page}", env!("CARGO_PKG_VERSION"));
    add(&mut text, "system", &system());
    add(&mut text, "environment", &environment(env));
    let lines = match host {
        Some(host) => recent(host).await,
        None => "no host answers".into(),
    };
    add(&mut text, "newest log lines of the host", &lines);
    let taken = dirs.clone();
    let parts = within(FILES, move || of_files(&taken)).await.unwrap_or_else(|| {
        vec![("files".into(), "the file system does not answer in time".into())]
    });
    for (title, part) in parts {
        add(&mut text, &title, &part);
    }
    let text = SafeText::lines(yoi::trace::redact(&text)).into_string();
    let path = file.unwrap_or_else(|| dirs.state.join(default_name()));
    save(&path, &text)?;
    Ok(path)
}

fn add(text: &mut String, title: &str, part: &str) {
    text.push_str(&format!("\n== {title}\n{}\n", part.trim_end()));
}

/// The default name of a report. It is in the state directory, which no Pod can read.
fn default_name() -> String {
    format!("report-{}.txt", jiff::Zoned::now().strftime("%Y%m%d-%H%M%S"))
}

fn save(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: yoi::disk::DiskError| Failure::new(Exit::Failed, e.to_string());
    if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
        yoi::disk::private_dir(dir).map_err(failed)?;
    }
    yoi::disk::create(path, text.as_bytes(), 0o600).map_err(failed)
}

fn system() -> String {
    let kernel = std::fs::read_to_string("/proc/version").unwrap_or_default();
    format!("{} {}\n{kernel}", std::env::consts::OS, std::env::consts::ARCH)
}

fn environment(env: &Env) -> String {
    let set = VARIABLES.iter().filter_map(|name| Some(format!("{name}={}\n", env.get(*name)?)));
    set.collect()
}

async fn recent(host: &Reached) -> String {
    let method = Method::Trace { filter: String::new() };
    match tokio::time::timeout(LINES, host.client.call(None, method)).await {
        Ok(Ok(Event::Trace { lines })) => lines.join("\n"),
        Ok(Ok(_)) => "the host answers with another event".into(),
        Ok(Err(refusal)) => refusal.message,
        Err(_) => "the host does not answer in time".into(),
    }
}

/// The sections of the report that come from files: titles and texts. Blocking.
fn of_files(dirs: &Dirs) -> Vec<(String, String)> {
    let settings = dirs.config.join("config.toml");
    let mut parts = vec![
        (settings.display().to_string(), settings_text(&settings)),
        ("store".into(), store(&dirs.data.join("yoi.db"))),
    ];
    for file in yoi::trace::files(&dirs.state).into_iter().rev() {
        if let Some(text) = tail(&file, LOG_TAIL) {
            parts.push((file.display().to_string(), text));
        }
    }
    parts
}

/// The settings, with the length of each text that may be a secret or is sent to models.
fn settings_text(file: &Path) -> String {
    match std::fs::metadata(file) {
        Ok(found) if !found.is_file() || found.len() > SETTINGS => {
            return "no plain file, or too large".into();
        }
        Ok(_) => {}
        Err(error) => return error.to_string(),
    }
    match std::fs::read_to_string(file).map(|text| text.parse::<toml::Table>()) {
        Ok(Ok(mut table)) => {
            for (key, value) in table.iter_mut() {
                shorten(value, &mut vec![key.clone()]);
            }
            table.to_string()
        }
        // The text of the parser is left out, because it quotes the line.
        Ok(Err(_)) => "no TOML; the page says where".into(),
        Err(error) => error.to_string(),
    }
}

/// Leaves of the texts of the settings only those that are harmless by their key, and of addresses the host. Of every
/// other text, whatever its key is called, only the length is left: keys, headers, arguments and commands stand there.
fn shorten(value: &mut toml::Value, path: &mut Vec<String>) {
    match value {
        toml::Value::Table(inner) => {
            for (key, value) in inner.iter_mut() {
                path.push(key.clone());
                shorten(value, path);
                path.pop();
            }
        }
        toml::Value::Array(inner) => inner.iter_mut().for_each(|value| shorten(value, path)),
        toml::Value::String(text) if !is(path, HARMLESS) => {
            let length = format!("({} bytes)", text.len());
            let host = host(text).filter(|_| is(path, ADDRESSES));
            *text = host.map_or_else(|| length.clone(), |host| format!("{host} {length}"));
        }
        _ => {}
    }
}

/// Whether one of these keys is at this path; `*` is any name.
fn is(path: &[String], keys: &[&str]) -> bool {
    let fits = |key: &&str| {
        let names: Vec<&str> = key.split('.').collect();
        names.len() == path.len()
            && names.iter().zip(path).all(|(name, at)| *name == "*" || name == at)
    };
    keys.iter().any(fits)
}

/// The scheme and the host of an address, without a name, a password, a path and a query.
fn host(address: &str) -> Option<String> {
    let (scheme, rest) = address.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit('@').next()?;
    Some(format!("{scheme}://{host}"))
}

fn store(path: &Path) -> String {
    if !path.exists() {
        return "none: no Pod was made yet".into();
    }
    let counts = match yoi::store::counts(path) {
        Ok(counts) => counts,
        Err(error) => return error.to_string(),
    };
    let mut text = format!("schema {}\n", counts.version);
    for (table, rows) in counts.rows {
        text.push_str(&format!("{table}: {rows}\n"));
    }
    for (pod, wanted) in counts.pods {
        text.push_str(&format!("pod {pod}: {wanted}\n"));
    }
    text
}

/// The last lines of a log file; `None` when it does not exist or cannot be read.
fn tail(file: &Path, bytes: u64) -> Option<String> {
    let mut file = File::open(file).ok()?;
    let size = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(bytes))).ok()?;
    let mut text = Vec::new();
    file.take(bytes).read_to_end(&mut text).ok()?;
    let text = String::from_utf8_lossy(&text).into_owned();
    // The first line is incomplete: a secret in it would not be recognised, so it is dropped.
    match text.split_once('\n').filter(|_| size > bytes) {
        Some((_, whole)) => Some(whole.to_owned()),
        None => Some(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_report_is_for_its_owner_and_never_replaces_a_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("new/report.txt");
        save(&path, "text").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(save(&path, "other").is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn of_the_settings_a_report_has_names_and_choices_and_of_other_texts_the_length() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("config.toml");
        let text = r#"
model = "a/b"
effort = "high"
api_key = "HIDE 1"
instructions = ["HIDE 2"]
[profile.x]
instruction = "HIDE 3"
model = "c/d"
[provider.y]
wire = "openai_chat"
base_url = "https://me:HIDE@host.example:8443/HIDE/v1?key=HIDE"
headers = { X-Auth = "HIDE 4" }
key_command = "print HIDE"
[mcp.z]
command = "HIDE"
args = ["--key", "HIDE"]
env = { PLAIN = "HIDE" }
url = "https://host.example/s/HIDE#HIDE"
[[permissions.rule]]
tool = "Bash+network"
pattern = "curl -H HIDE*"
action = "allow"
"#;
        std::fs::write(&file, text).unwrap();
        let shown = settings_text(&file);
        assert!(!shown.contains("HIDE") && !shown.contains("me:"), "{shown}");
        for kept in [
            "model = \"a/b\"",
            "api_key = \"(6 bytes)\"",
            "model = \"c/d\"",
            "https://host.example:8443 (",
            "https://host.example (",
            "PLAIN = \"(4 bytes)\"",
            "tool = \"Bash+network\"",
        ] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        std::fs::write(&file, "model = HIDE").unwrap();
        assert!(!settings_text(&file).contains("HIDE"));
    }

    #[test]
    fn the_tail_of_a_log_begins_with_a_whole_line() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("yoi.log");
        std::fs::write(&file, "first line\nsecond line\n").unwrap();
        assert_eq!(tail(&file, 16).unwrap(), "second line\n");
        assert_eq!(tail(&file, 100).unwrap(), "first line\nsecond line\n");
        assert_eq!(tail(&temp.path().join("none"), 100), None);
    }
}
