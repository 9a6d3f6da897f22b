//! A tool call as the transcript shows it: its arguments, its progress and its result.

use crate::pane::transcript::clean;
use crate::pane::transcript::parts::LongText;
use crate::theme::Role;
use crate::wording::duration;
use serde_json::{Map, Value};
use std::rc::Rc;
use yoi::protocol::mesh::SentMessage;
use yoi::text::SafeText;

/// How much of a running command's output is kept, in bytes.
const LIVE_OUTPUT: usize = 64 * 1024;
/// How much of arguments that are being written is kept, in bytes; the whole ones come when they are
/// complete.
const LIVE_ARGUMENTS: usize = 64 * 1024;
/// How many bytes of streaming arguments are read for the one-line summary.
const BRIEF_WITHIN: usize = 2048;
/// The longest text of a one-liner, in characters; the screen cuts it further.
const BRIEF: usize = 400;

pub struct Tool {
    pub call_id: String,
    pub name: String,
    /// A JSON object as text; incomplete while it streams.
    pub arguments: String,
    /// Its summary in one line.
    pub brief: String,
    pub outcome: Option<Rc<Outcome>>,
    /// Its output so far.
    pub output: String,
    pub progress: Progress,
    /// When it was called, or when the wait for a decision or for a decided call before it ended; in
    /// milliseconds.
    pub since: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The model is still writing its arguments.
    Asked,
    Running,
    /// It runs once a person has decided on it, or on a call before it.
    Waiting,
    /// It has ended.
    Over,
}

/// The result of a tool.
pub struct Outcome {
    pub summary: String,
    pub content: Option<String>,
    pub is_error: bool,
    pub images: usize,
    pub ts: u64,
    /// The content in the log of which this is the beginning.
    pub long: Option<LongText>,
    /// The message that the call sent.
    pub sent: Option<SentMessage>,
}

impl Outcome {
    pub fn bytes(&self) -> usize {
        self.summary.len() + self.content.as_ref().map_or(0, String::len) + size_of::<Self>()
    }

    /// Its success in a word. A command with an exit status other than 0 has not failed as a tool, but is
    /// marked as well.
    fn verdict(&self) -> (Role, String) {
        let status = self.summary.strip_prefix("Exit ").and_then(|rest| rest.split(' ').next());
        match (self.is_error, status) {
            (true, _) => (Role::Error, "error".into()),
            (false, Some(status)) if status != "0" => {
                (Role::Error, format!("exit {}", clean::one_line(status)))
            }
            (false, _) => (Role::Dim, "ok".into()),
        }
    }

    pub fn plain(&self) -> String {
        match &self.content {
            Some(content) => format!("{}\n{content}", self.summary),
            None => self.summary.clone(),
        }
    }
}

impl Tool {
    /// A call whose arguments are known.
    pub fn called(call_id: String, name: String, arguments: String, since: Option<u64>) -> Self {
        let brief = brief(&name, &arguments).unwrap_or_default();
        Self {
            call_id,
            name,
            arguments,
            brief,
            outcome: None,
            output: String::new(),
            progress: Progress::Over,
            since,
        }
    }

    /// The remark in the summary of a command: guarded files that it changed, processes that it
    /// left running.
    pub fn remark(&self) -> Option<String> {
        let outcome = self.outcome.as_ref().filter(|_| self.name == "Bash")?;
        let (_, remark) = outcome.summary.split_once("; ")?;
        Some(clean::one_line(remark).into_owned())
    }

    /// A call whose arguments are being written.
    pub fn asked(call_id: String, name: String) -> Self {
        let progress = Progress::Asked;
        Self { progress, ..Self::called(call_id, name, String::new(), None) }
    }

    pub fn more_arguments(&mut self, json: &str) {
        let room = LIVE_ARGUMENTS.saturating_sub(self.arguments.len());
        self.arguments.push_str(&json[..json.floor_char_boundary(room)]);
        if self.arguments.len() <= BRIEF_WITHIN
            && let Some(brief) = brief(&self.name, &self.arguments)
        {
            self.brief = brief;
        }
    }

    pub fn more_output(&mut self, text: &str) {
        self.output.push_str(text);
        if self.output.len() > LIVE_OUTPUT {
            let cut = self.output.len() - LIVE_OUTPUT / 2;
            let line = self.output[..].bytes().skip(cut).position(|b| b == b'\n');
            let mut at = line.map_or(cut, |line| cut + line + 1);
            while !self.output.is_char_boundary(at) {
                at += 1;
            }
            self.output.drain(..at);
        }
    }

    pub fn bytes(&self) -> usize {
        let own = self.arguments.len() + self.output.len() + self.brief.len() + size_of::<Self>();
        own + self.outcome.as_ref().map_or(0, |outcome| outcome.bytes())
    }

    pub fn plain(&self) -> String {
        format!("{}\n{}", self.requested(), self.answered()).trim_end().to_owned()
    }

    /// Its arguments as text.
    pub fn requested(&self) -> String {
        match self.argument("command") {
            Some(command) => format!("$ {command}"),
            None => format!("{} {}", self.name, self.arguments),
        }
    }

    /// Its result, or its output so far.
    pub fn answered(&self) -> String {
        self.outcome.as_ref().map_or(self.output.clone(), |outcome| outcome.plain())
    }

    /// The arguments, once they are whole.
    pub fn parsed(&self) -> Option<Map<String, Value>> {
        serde_json::from_str(&self.arguments).ok()
    }

    /// One argument that is a text.
    pub fn argument(&self, name: &str) -> Option<String> {
        self.parsed()?.get(name)?.as_str().map(String::from)
    }

    /// The file that it reads or writes, and the line that it reads from.
    pub fn file(&self) -> Option<(String, Option<u64>)> {
        let arguments = begun(&self.arguments)?;
        let path = arguments.get("file_path")?.as_str()?;
        let line =
            arguments.get("offset").and_then(Value::as_u64).map(|offset| offset.saturating_add(1));
        Some((path.to_owned(), line))
    }

    /// Its state in a word, with the time it took or has been taking.
    pub fn status(&self, now: u64) -> (Role, String) {
        match (&self.outcome, self.progress) {
            (Some(outcome), _) => {
                let (role, word) = outcome.verdict();
                let took = self.since.filter(|since| *since > 0 && outcome.ts >= *since);
                let took = took.map(|since| format!("  {}", duration::took(outcome.ts - since)));
                (role, format!("{word}{}", took.unwrap_or_default()))
            }
            (None, Progress::Asked) => (Role::Dim, "…".into()),
            (None, Progress::Running) => {
                let since = self.since.unwrap_or(now);
                (Role::Text, format!("… {}", duration::elapsed(now.saturating_sub(since))))
            }
            (None, Progress::Waiting) => (Role::Dim, "waits".into()),
            (None, Progress::Over) => (Role::Warn, "no result".into()),
        }
    }
}

/// Arguments of which the end may be missing, inside a text.
fn begun(arguments: &str) -> Option<Map<String, Value>> {
    let whole = serde_json::from_str(arguments);
    whole.or_else(|_| serde_json::from_str(&format!("{arguments}\"}}"))).ok()
}

/// The one-line summary of a call; `None` while its arguments are too incomplete.
fn brief(name: &str, arguments: &str) -> Option<String> {
    let parsed = begun(arguments)?;
    let text = |key: &str| parsed.get(key).and_then(Value::as_str).unwrap_or("");
    let brief = match name {
        "Bash" => one_line_of_all(text("command")),
        "Read" => format!("{}{}", text("file_path"), lines_of(&parsed)),
        "Write" | "Edit" => text("file_path").to_owned(),
        "Glob" | "Grep" => match text("path") {
            "" => text("pattern").to_owned(),
            path => format!("{}  in {path}", text("pattern")),
        },
        "TaskCreate" => text("subject").to_owned(),
        "AskPerson" => text("question").to_owned(),
        "SpawnPod" => spawned(&parsed),
        "agent_send" => words(&parsed, ["to", "body"]),
        "SendToPod" | "SendToPeerPod" => format!("{}  {}", text("name"), text("message")),
        _ => all(&parsed),
    };
    Some(SafeText::brief(brief.replace('\n', " "), BRIEF).into_string())
}

/// Some arguments without their names.
fn words(arguments: &Map<String, Value>, keys: [&str; 2]) -> String {
    let values = keys.iter().filter_map(|key| arguments.get(*key)).map(plain_value);
    values.collect::<Vec<_>>().join("  ")
}

/// The summary of a spawned child: its name, the scope it is lent, and its task.
fn spawned(arguments: &Map<String, Value>) -> String {
    let text =
        |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let rules = arguments.get("scope").and_then(Value::as_array).into_iter().flatten();
    let lent = rules.map(|rule| format!("  {} {}", text(rule, "permission"), text(rule, "target")));
    let of = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or("");
    format!("{}{}  {}", of("name"), lent.collect::<String>(), of("task"))
}

fn lines_of(arguments: &Map<String, Value>) -> String {
    let number = |key: &str| arguments.get(key).and_then(Value::as_u64);
    match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (from, None) => format!(":{}-", from.unwrap_or(0) + 1),
        (from, Some(many)) => {
            let from = from.unwrap_or(0);
            format!(":{}-{}", from + 1, from + many)
        }
    }
}

/// A command on one line: its first line, and a mark if there are more.
fn one_line_of_all(command: &str) -> String {
    let mut lines = command.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or("").to_owned();
    if lines.next().is_some() { first + " …" } else { first }
}

/// All arguments; the first ones without their names.
fn all(arguments: &Map<String, Value>) -> String {
    let mut words: Vec<String> = Vec::new();
    for key in ["name", "taskid"] {
        words.extend(arguments.get(key).map(plain_value));
    }
    for (key, value) in arguments.iter().filter(|(key, _)| !["name", "taskid"].contains(&&***key)) {
        let value = plain_value(value);
        words.push(format!("{key}: {}", clean::one_line(&value)));
    }
    words.join("  ")
}

/// A JSON value as a person would write it.
pub fn plain_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_says_what_it_is_about_in_one_line() {
        let said = |name: &str, arguments: &str| brief(name, arguments);
        assert_eq!(said("Bash", r#"{"command":"cd x\nmake"}"#).as_deref(), Some("cd x …"));
        let read = r#"{"file_path":"/a","offset":9,"limit":10}"#;
        assert_eq!(said("Read", read).as_deref(), Some("/a:10-19"));
        let grep = r#"{"pattern":"fn x","path":"/src"}"#;
        assert_eq!(said("Grep", grep).as_deref(), Some("fn x  in /src"));
        let spawn =
            r#"{"name":"scout","task":"look","scope":[{"target":"/r","permission":"read"}]}"#;
        assert_eq!(said("SpawnPod", spawn).as_deref(), Some("scout  read /r  look"));
        let send = r#"{"body":"hi","to":["bob","pi-1"],"re":"7"}"#;
        assert_eq!(said("agent_send", send).as_deref(), Some(r#"["bob","pi-1"]  hi"#));
        let stop = r#"{"tree":true,"name":"scout"}"#;
        assert_eq!(said("StopPod", stop).as_deref(), Some("scout  tree: true"));
        assert_eq!(said("Bash", r#"{"command":"car"#).as_deref(), Some("car"));
        assert_eq!(said("Bash", r#"{"com"#), None);
    }

    #[test]
    fn a_command_that_did_not_end_well_says_so() {
        let verdict = |summary: &str, is_error| {
            let summary = summary.to_owned();
            Outcome { summary, content: None, is_error, images: 0, ts: 0, long: None, sent: None }
                .verdict()
        };
        assert_eq!(verdict("Exit 0 after 1.0 s", false), (Role::Dim, "ok".into()));
        assert_eq!(verdict("Exit 101 after 1.0 s", false), (Role::Error, "exit 101".into()));
        assert_eq!(verdict("Read 3 line(s)", false), (Role::Dim, "ok".into()));
        assert_eq!(verdict("path is read-only", true), (Role::Error, "error".into()));
    }

    #[test]
    fn the_output_of_a_running_command_stays_bounded() {
        let mut tool = Tool::asked("1".into(), "Bash".into());
        for n in 0..20_000 {
            tool.more_output(&format!("line {n} 日本\n"));
        }
        assert!(tool.output.len() <= LIVE_OUTPUT);
        assert!(tool.output.ends_with("line 19999 日本\n") && tool.output.starts_with("line "));
    }
}
