//! A tool call as the transcript shows it: its arguments, its progress and its result.

use crate::screen::pane::transcript::parts::LongText;
use crate::screen::pane::transcript::{clean, outcome};
use crate::theme::Role;
use crate::wording::duration;
use serde_json::{Map, Value};
use std::cell::OnceCell;
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

/// The names of tools in their rows, where these are shorter than the names that the model calls.
const NAMES: &[(&str, &str)] = &[
    ("SpawnPod", "Spawn"),
    ("SendToPod", "Send"),
    ("SendToPeerPod", "Send"),
    ("agent_send", "Send"),
    ("StopPod", "Stop"),
    ("RestorePod", "Restore"),
    ("ListPods", "Pods"),
    ("ReadPodOutput", "Output"),
    ("list_agents", "Agents"),
    ("TaskCreate", "Task"),
    ("TaskUpdate", "Task"),
    ("TaskGet", "Task"),
    ("TaskList", "Tasks"),
    ("AskPerson", "Ask"),
];

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
    /// It runs once a person has decided on it.
    NeedsPerson,
    /// It runs once a person has decided on a call before it.
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
    /// The words for a result as hoped, once they were needed.
    words: OnceCell<String>,
}

impl Outcome {
    pub fn bytes(&self) -> usize {
        self.summary.len() + self.content.as_ref().map_or(0, String::len) + size_of::<Self>()
    }

    /// A result of only a summary.
    pub fn new(summary: String, is_error: bool, ts: u64) -> Self {
        let (content, long, sent) = (None, None, None);
        Self { summary, content, is_error, images: 0, ts, long, sent, words: OnceCell::new() }
    }

    /// The words for a result as hoped, made once.
    pub fn words(&self, make: impl FnOnce() -> String) -> String {
        self.words.get_or_init(make).clone()
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

    /// Its name in its row.
    pub fn short_name(&self) -> String {
        let short = NAMES.iter().find(|(name, _)| *name == self.name).map(|(_, short)| *short);
        match short {
            Some(short) => short.to_owned(),
            // A tool of a server: mcp__<server>__<tool>.
            None => {
                let own = self.name.strip_prefix("mcp__").unwrap_or(&self.name);
                clean::one_line(own).replacen("__", "/", 1)
            }
        }
    }

    /// Its state in a few words, or how long it has been going on.
    pub fn status(&self, now: u64) -> (Role, String) {
        let elapsed = || duration::elapsed(now.saturating_sub(self.since.unwrap_or(now)));
        match (&self.outcome, self.progress) {
            (Some(outcome), _) => {
                let outcome::State { role, words, .. } = outcome::state(self, outcome);
                (role, words)
            }
            (None, Progress::Asked) => (Role::Dim, "…".into()),
            (None, Progress::Running) => (Role::Text, elapsed()),
            (None, Progress::NeedsPerson) => {
                (Role::Needs, format!("▲ waits for you {}", elapsed()))
            }
            (None, Progress::Waiting) => (Role::Dim, "waits".into()),
            (None, Progress::Over) => (Role::Warn, "no result".into()),
        }
    }

    /// The path in its summary, without the lines that it reads.
    pub fn path(&self) -> &str {
        let is_range = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '-');
        match self.brief.rsplit_once(':') {
            Some((path, range)) if is_range(range) => path,
            _ => &self.brief,
        }
    }

    /// Begins its wait for the decision on a request of this call, made at `ts`. Returns whether it is that call.
    pub fn wait(&mut self, call_id: &str, ts: u64) -> bool {
        let is_it = self.call_id == call_id;
        self.progress = if is_it { Progress::NeedsPerson } else { Progress::Waiting };
        if is_it && ts > 0 {
            self.since = Some(ts);
        }
        is_it
    }

    /// Whether its summary begins with a path.
    pub fn is_of_path(&self) -> bool {
        matches!(self.name.as_str(), "Read" | "Write" | "Edit")
    }

    /// Whether its summary names paths, and no command or message.
    pub fn names_paths(&self) -> bool {
        self.is_of_path() || matches!(self.name.as_str(), "Glob" | "Grep" | "SpawnPod")
    }

    /// The line of the file with which the new text of an edit begins: its result numbers the lines around it.
    pub fn first_line(&self, new: &str) -> Option<usize> {
        let content = self.outcome.as_ref()?.content.as_deref()?;
        let first = new.lines().next()?;
        content.lines().find_map(|line| {
            let (number, text) = line.split_once('\t')?;
            text.ends_with(first).then(|| number.trim().parse().ok())?
        })
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
    let lent = rules.map(|rule| format!("{} {}", text(rule, "permission"), text(rule, "target")));
    let of = |key: &str| arguments.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let tree = match arguments.get("worktree") {
        Some(Value::Bool(true)) => "working tree".to_owned(),
        Some(Value::String(branch)) => format!("working tree {branch}"),
        _ => String::new(),
    };
    let about = lent.chain([tree, of("task")]).filter(|words| !words.is_empty());
    format!("{}  {}", of("name"), about.collect::<Vec<_>>().join(" · "))
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
        assert_eq!(said("SpawnPod", spawn).as_deref(), Some("scout  read /r · look"));
        let spawn = r#"{"name":"kid","task":"mend","worktree":"fix"}"#;
        assert_eq!(said("SpawnPod", spawn).as_deref(), Some("kid  working tree fix · mend"));
        let send = r#"{"body":"hi","to":["bob","pi-1"],"re":"7"}"#;
        assert_eq!(said("agent_send", send).as_deref(), Some(r#"["bob","pi-1"]  hi"#));
        let stop = r#"{"tree":true,"name":"scout"}"#;
        assert_eq!(said("StopPod", stop).as_deref(), Some("scout  tree: true"));
        assert_eq!(said("Bash", r#"{"command":"car"#).as_deref(), Some("car"));
        assert_eq!(said("Bash", r#"{"com"#), None);
    }

    #[test]
    fn the_row_of_a_call_says_what_came_of_it() {
        let state = |name: &str, arguments: &str, summary: &str, is_error, took: u64| {
            let mut tool = Tool::called("1".into(), name.into(), arguments.into(), Some(1_000));
            tool.outcome = Some(Rc::new(Outcome::new(summary.into(), is_error, 1_000 + took)));
            tool.status(0)
        };
        let hoped = |name, arguments, summary| {
            let (role, words) = state(name, arguments, summary, false, 500);
            assert_eq!(role, Role::Dim, "{summary}");
            words
        };
        assert_eq!(hoped("Bash", "{}", "Exit 0 after 1.0 s"), "ok");
        assert_eq!(hoped("Read", "{}", "Read 214 line(s) from /a (1-214 of 900)"), "214 lines");
        assert_eq!(hoped("Read", "{}", "Listed 1 of 1 entries in directory /a"), "1 entry");
        assert_eq!(hoped("Read", "{}", "Read image /a (image/png, 2 KiB)"), "image");
        assert_eq!(hoped("Grep", "{}", "Found 6 match(es) in 2 file(s) in /a"), "6 hits");
        assert_eq!(
            hoped("Grep", "{}", "Found at least 9 file(s) with matches in /"),
            "over 9 files"
        );
        assert_eq!(hoped("Glob", "{}", "Found 1 file(s) in /a"), "1 file");
        let content = r#"{"content":"a\nb\n"}"#;
        assert_eq!(hoped("Write", content, "Created /a (4 bytes)"), "new · 2 lines");
        assert_eq!(hoped("Write", content, "Overwrote /a (4 bytes)"), "2 lines");
        let edit = r#"{"old_string":"a\nb","new_string":"a\nc\nd"}"#;
        assert_eq!(hoped("Edit", edit, "Edited /a (1) (3 replacement(s)), as meant"), "+6 −3");
        assert_eq!(hoped("mcp__git__log", "{}", "done"), "ok");
        let ended = |summary: &str, is_error| state("Bash", "{}", summary, is_error, 14_000);
        assert_eq!(ended("Exit 0 after 14.0 s", false), (Role::Dim, "ok · 14s".into()));
        assert_eq!(ended("Exit 101 after 14 s", false), (Role::Error, "exit 101 · 14s".into()));
        assert_eq!(ended("Ended by signal 9 after 1 s", false).1, "signal 9 · 14s");
        let outside = "path is outside allowed scope: /etc/shadow";
        assert_eq!(ended(outside, true), (Role::Error, "refused: outside its scope".into()));
        assert_eq!(ended("denied: a person said no", true), (Role::Error, "refused".into()));
        assert_eq!(ended("timed out after 9 s", true), (Role::Error, "failed".into()));
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
