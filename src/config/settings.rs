//! The user's settings (`config.toml` in the configuration directory). A mistake never stops the
//! program: it becomes a diagnostic with its position, and the default stays in force for that one
//! key.

use crate::config::catalogue::{Known, Names, Provider};
use crate::config::diagnostic::Diagnostic;
use crate::config::mcp::McpServer;
use crate::config::plain_file;
use crate::config::policy::{self, Permissions};
use crate::config::settings::limits::Limits;
use crate::protocol::{Effort, PodName, SettingsMistake};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::io;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// The values in use while the file has a mistake.
pub const IN_USE: &str = "until then a new program uses the default value, and a running host keeps \
                          the last valid one";
/// The same, if the rules of the file are not known.
pub const UNREAD: &str = "until you correct it, no Pod runs, because its rules are not known";

/// The settings of the user's `config.toml`, with defaults for missing keys.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// `provider/model`, `provider/` or `rehearsal:<file>`; behind it, in a list, the models that take its place
    /// while it is away.
    pub model: Option<Names>,
    /// Of every Pod that has none of its own.
    pub effort: Option<Effort>,
    /// Further files with instructions for all Pods; `~/` is the home directory, and a relative path begins
    /// at the configuration directory.
    pub instructions: Vec<PathBuf>,
    pub limits: Limits,
    pub timeouts: Timeouts,
    pub retry: Retry,
    pub host: Host,
    pub scope: Scope,
    pub watch: Watch,
    pub shell: Shell,
    /// What commands may ask a person for, by name.
    pub credential: BTreeMap<String, Credential>,
    pub worktree: Worktree,
    pub compaction: Compaction,
    pub permissions: Permissions,
    pub ui: Ui,
    pub notify: Notify,
    pub mesh: Mesh,
    /// Servers whose tools Pods use, by name.
    pub mcp: BTreeMap<String, McpServer>,
    /// The reasons why the rules of the file are not known: the whole file or a rule is unreadable.
    /// No command may run then.
    #[serde(skip)]
    pub unread: Vec<String>,
    pub provider: BTreeMap<String, Provider>,
    pub models: BTreeMap<String, Known>,
    pub profile: BTreeMap<String, Profile>,
}

/// A name for how Pods are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profile {
    /// As in [`Settings`].
    pub model: Option<Names>,
    pub effort: Option<Effort>,
    pub max_turns: Option<NonZeroU32>,
    /// Replaces the general instruction in the system prompt.
    pub instruction: Option<String>,
}

/// The longest time without data from a provider, in seconds; a whole reply may take any time.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    #[serde(deserialize_with = "time")]
    pub connect_s: NonZeroU64,
    /// Three times as long from servers of this machine or of a private network.
    #[serde(deserialize_with = "time")]
    pub first_event_s: NonZeroU64,
    #[serde(deserialize_with = "time")]
    pub idle_s: NonZeroU64,
}

/// How patient a run is with its provider.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Retry {
    /// Minutes for which a run waits for a provider that is overloaded, fails or cannot be reached; 0 = not at all.
    /// While a screen shows the Pod they do not begin.
    #[serde(deserialize_with = "time")]
    pub minutes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Host {
    /// Minutes without screen, run or waiting work after which a background host ends; 0 = never.
    #[serde(deserialize_with = "time")]
    pub idle_exit_min: u64,
    /// What becomes of the runs that the end of a host interrupted.
    pub resume: Resume,
}

/// What becomes of the runs that the end of a host interrupted. None goes on by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resume {
    /// One key goes on with all of them.
    #[default]
    Ask,
    /// Each waits for its own `:resume`.
    Never,
}

/// How Pods share paths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scope {
    /// What a run does while another Pod writes where it wants to.
    pub when_busy: WhenBusy,
}

/// When a run is shown as going in circles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Watch {
    /// From so many failures of a call with the same output on; 0 is never.
    pub same_failures: u32,
    /// From so many denials of a call on; 0 is never.
    pub same_requests: u32,
}

impl Default for Watch {
    fn default() -> Self {
        Self { same_failures: 5, same_requests: 3 }
    }
}

/// What a run does while another Pod writes where it wants to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenBusy {
    /// It begins and only reads there.
    #[default]
    Read,
    /// It begins when the other Pod has ended its run.
    Wait,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Shell {
    /// Variables that commands get besides those that every command gets.
    pub pass: Vec<String>,
    /// Seconds a command may take when the call names no time.
    #[serde(deserialize_with = "time")]
    pub timeout_s: NonZeroU64,
    /// Seconds no call may exceed.
    #[serde(deserialize_with = "time")]
    pub max_timeout_s: NonZeroU64,
}

/// What a command gets that asks for it by name and that a person allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Credential {
    /// Variables of the person, which no other command gets.
    #[serde(deserialize_with = "names_of_variables")]
    pub env: Vec<String>,
    /// Whether it may have the person's ssh agent sign for it.
    pub ssh_agent: bool,
}

/// The working trees of git that are made for Pods.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Worktree {
    /// A command line that runs once in each new working tree.
    pub setup: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compaction {
    /// The model that summarises; `None`: that of the Pod, which reads the history from its cache.
    pub model: Option<String>,
    /// The part of the context window at which the history is compacted.
    pub threshold_ratio: Ratio,
    /// Tokens of the newest history that a compaction keeps verbatim.
    pub keep_tokens: u64,
    /// Without effect, as the next: outputs leave the context only when it is nearly full.
    pub prune_protect: Option<u64>,
    pub prune_min: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Ui {
    pub theme: Option<String>,
    /// The name of a built-in keymap, or a keymap file, relative to the configuration directory.
    pub keymap: Option<PathBuf>,
}

/// How a person is called.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Notify {
    /// Whether a screen rings the bell of its terminal and has it show notifications.
    pub terminal: bool,
    /// A program and its arguments, for a person without a screen. It reads JSON on its standard input.
    pub command: Vec<String>,
    /// An address to which the sentence is posted, such as a topic of ntfy.
    pub url: Option<String>,
    /// Whether the reasons, which models may have written, are part of it.
    pub text: bool,
}

/// The agent mesh of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Mesh {
    /// The socket of another mesh than yoi's own, such as that of remote-pi; `~/` is the home directory.
    pub socket: Option<PathBuf>,
    /// The Pods that join when they become live.
    pub join: Join,
    /// The events that wake an idle Pod besides messages of its peers.
    pub wake: Vec<Wake>,
    /// The largest body of a message to a Pod, in KiB of JSON.
    pub message_kib: NonZeroU32,
    /// How many messages of agents may wait for one Pod.
    pub waiting: NonZeroU32,
    /// How many messages one agent may send to one Pod in a minute.
    pub per_minute: NonZeroU32,
}

/// The Pods that join the mesh automatically.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected true, false or a list of names of Pods")]
pub enum Join {
    /// Every Pod that a person made, or none.
    All(bool),
    Named(Vec<PodName>),
}

/// An event of the mesh that may wake an idle Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wake {
    /// Messages of agents that are no peers.
    Strangers,
    /// Messages to all agents.
    Broadcasts,
    /// An agent joined.
    Joins,
    /// An agent left.
    Leaves,
}

impl Default for Notify {
    fn default() -> Self {
        Self { terminal: true, command: Vec::new(), url: None, text: false }
    }
}

impl Default for Mesh {
    fn default() -> Self {
        Self {
            socket: None,
            join: Join::All(false),
            wake: Vec::new(),
            message_kib: const { count(64) },
            waiting: const { count(256) },
            per_minute: const { count(120) },
        }
    }
}

impl Mesh {
    /// Whether a Pod joins automatically; `own` is one that a person created.
    pub fn joins(&self, pod: &PodName, own: bool) -> bool {
        match &self.join {
            Join::All(all) => *all && own,
            Join::Named(names) => names.iter().any(|name| name.key() == pod.key()),
        }
    }
}

/// A part of a whole, above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Ratio(f64);

impl Ratio {
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Ratio {
    type Error = &'static str;

    fn try_from(value: f64) -> Result<Self, Self::Error> {
        if value > 0.0 && value <= 1.0 {
            Ok(Self(value))
        } else {
            Err("expected a number above 0 and at most 1")
        }
    }
}

/// The largest number of seconds or minutes in the settings: a year in seconds. The end of a longer time may have no date.
const LONGEST: u64 = 366 * 24 * 60 * 60;

/// A number of seconds or minutes.
fn time<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Copy + Into<u64>,
{
    let time = T::deserialize(deserializer)?;
    match time.into() <= LONGEST {
        true => Ok(time),
        false => Err(D::Error::custom(format!("expected a number of at most {LONGEST}"))),
    }
}

fn names_of_variables<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    let is_name = |name: &String| {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        begins && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    match names.iter().find(|name| !is_name(name)) {
        None => Ok(names),
        Some(_) => Err(D::Error::custom("expected names of variables, such as [\"GH_TOKEN\"]")),
    }
}

const fn count(value: u32) -> NonZeroU32 {
    NonZeroU32::new(value).expect("the defaults below are above zero")
}

const fn seconds(value: u64) -> NonZeroU64 {
    NonZeroU64::new(value).expect("the defaults below are above zero")
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect_s: const { seconds(10) },
            first_event_s: const { seconds(300) },
            idle_s: const { seconds(120) },
        }
    }
}

impl Timeouts {
    pub fn connect(&self) -> Duration {
        Duration::from_secs(self.connect_s.get())
    }

    pub fn first_event(&self) -> Duration {
        Duration::from_secs(self.first_event_s.get())
    }

    pub fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_s.get())
    }
}

impl Default for Host {
    fn default() -> Self {
        Self { idle_exit_min: 10, resume: Resume::default() }
    }
}

impl Host {
    /// `None` = never.
    pub fn idle_exit(&self) -> Option<Duration> {
        (self.idle_exit_min > 0).then(|| Duration::from_secs(self.idle_exit_min.saturating_mul(60)))
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self {
            pass: Vec::new(),
            timeout_s: const { seconds(120) },
            max_timeout_s: const { seconds(600) },
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        // An overload of a provider passes in minutes, and a run that was given up is not taken up by itself.
        Self { minutes: 10 }
    }
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            model: None,
            threshold_ratio: Ratio(0.85),
            keep_tokens: 8_000,
            prune_protect: None,
            prune_min: None,
        }
    }
}

impl Settings {
    /// The settings of a configuration directory; without a file, the defaults.
    pub fn load(config: &Path) -> (Self, Vec<Diagnostic>) {
        let file = config.join("config.toml");
        match text_of(&file) {
            Ok(Some(text)) => Self::read(&file, &text),
            Ok(None) => (Self::default(), Vec::new()),
            Err(diagnostic) => (Self::unread(&diagnostic), vec![diagnostic]),
        }
    }

    fn unread(diagnostic: &Diagnostic) -> Self {
        Self { unread: vec![diagnostic.to_string()], ..Self::default() }
    }

    /// The sentence about a mistake of this file: [`UNREAD`] follows it if the rules are unknown
    /// because of it, else `usual`.
    pub fn with_value_in_use(&self, mistake: &Diagnostic, usual: &str) -> SettingsMistake {
        let stops_runs = self.unread.contains(&mistake.to_string());
        let said = mistake.with_value_in_use(if stops_runs { UNREAD } else { usual });
        SettingsMistake { stops_runs, ..said }
    }

    /// The settings a text holds.
    pub fn read(file: &Path, text: &str) -> (Self, Vec<Diagnostic>) {
        let table = match DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => {
                let diagnostic = Diagnostic::of_toml(file, text, &error);
                return (Self::unread(&diagnostic), vec![diagnostic]);
            }
        };
        let (mut settings, mistakes) = read_what_fits::<Self>(file, text, table);
        let mut diagnostics = Vec::new();
        for Mistake { mut diagnostic, key, hides_rules } in mistakes {
            if let Some(place) = right_place(&diagnostic.message, key.as_deref()) {
                diagnostic.message = format!("{place}: {}", diagnostic.message);
            }
            settings.unread.extend(hides_rules.then(|| diagnostic.to_string()));
            diagnostics.push(diagnostic);
        }
        let compaction = &settings.compaction;
        let given =
            [("prune_protect", compaction.prune_protect), ("prune_min", compaction.prune_min)];
        for (key, _) in given.into_iter().filter(|(_, value)| value.is_some()) {
            let at = text.find(key).unwrap_or(0);
            let message = format!(
                "`compaction.{key}` has no effect any more and can be deleted: outputs of tools leave the context \
                 only when three quarters of the window are in use"
            );
            diagnostics.push(Diagnostic::at(file, text, at, message));
        }
        (settings, diagnostics)
    }
}

/// The text of a settings file, `None` if there is none.
fn text_of(file: &Path) -> Result<Option<String>, Diagnostic> {
    let message = match plain_file::read(file) {
        Ok(text) => return Ok(Some(text)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound => return Ok(None),
            io::ErrorKind::InvalidInput => {
                "is not a plain file of at most 256 KiB and is ignored".into()
            }
            io::ErrorKind::InvalidData => format!("is ignored: {error}"),
            _ => format!("cannot be read: {error}"),
        },
    };
    Err(Diagnostic::at(file, "", 0, message))
}

/// A hint in which table a misplaced key belongs.
fn right_place(message: &str, whole: Option<&str>) -> Option<String> {
    let (key, _) = message.strip_prefix("unknown field `")?.split_once('`')?;
    if ["api_key", "apikey", "key", "token"].contains(&key.to_ascii_lowercase().as_str()) {
        let key = whole.unwrap_or(key);
        return Some(format!(
            "`{key}` does not belong in this file: store a key with `yoi auth <provider>`, or name its variable in \
             `key_env`"
        ));
    }
    let (_, table) = PLACES.iter().find(|(known, _)| *known == key)?;
    Some(match *table {
        "" => format!("`{key}` belongs at the top of the file, before the first [table]"),
        table => format!("`{key}` belongs below [{table}]"),
    })
}

/// Keys that are often written in a wrong table, and the right table of each; the empty one is the
/// top of the file.
const PLACES: [(&str, &str); 27] = [
    ("model", ""),
    ("effort", ""),
    ("instructions", ""),
    ("max_turns", "limits"),
    ("depth", "limits"),
    ("processes", "limits"),
    ("memory_mib", "limits"),
    ("open_files", "limits"),
    ("file_mib", "limits"),
    ("tmp_mib", "limits"),
    ("cache_mib", "limits"),
    ("home_mib", "limits"),
    ("shm_mib", "limits"),
    ("connect_s", "timeouts"),
    ("idle_s", "timeouts"),
    ("idle_exit_min", "host"),
    ("timeout_s", "shell"),
    ("theme", "ui"),
    ("keymap", "ui"),
    ("socket", "mesh"),
    ("join", "mesh"),
    ("wake", "mesh"),
    ("wire", "provider.<name>"),
    ("base_url", "provider.<name>"),
    ("key_env", "provider.<name>"),
    ("key_command", "provider.<name>"),
    ("headers", "provider.<name>"),
];

/// A part of a settings file that cannot be used.
pub struct Mistake {
    /// The key that is ignored, with its tables.
    pub key: Option<String>,
    pub diagnostic: Diagnostic,
    /// Whether a rule of policy may be ignored with it.
    pub hides_rules: bool,
}

/// Reads the valid keys of a TOML table: an invalid key is reported and ignored, so that its default
/// stays in force.
pub fn read_what_fits<T: DeserializeOwned + Default>(
    file: &Path,
    text: &str,
    mut table: Spanned<DeTable<'_>>,
) -> (T, Vec<Mistake>) {
    let mut mistakes = Vec::new();
    loop {
        let error = match T::deserialize(toml::Deserializer::from(table.clone())) {
            Ok(read) => return (read, mistakes),
            Err(error) => error,
        };
        let mut diagnostic = Diagnostic::of_toml(file, text, &error);
        let mut smaller = table.clone();
        let dropped = error.span().and_then(|at| {
            let unknown = diagnostic.message.starts_with("unknown field");
            let whole = unknown.then(|| drop_unknown(smaller.get_mut(), at.start)).flatten();
            whole.or_else(|| drop_key(smaller.get_mut(), at.start))
        });
        if let Some(key) = &dropped {
            diagnostic.message = wrong_value::sentence(&diagnostic.message, key, text, &error);
        }
        let hides_rules = dropped.as_ref().is_none_or(|key| hides_rules(key, table.get_ref()));
        mistakes.push(Mistake { diagnostic, key: dropped.clone(), hides_rules });
        if dropped.is_none() {
            return (T::default(), mistakes);
        }
        table = smaller;
    }
}

/// Whether a rule may be ignored with this key: a key of `[permissions]`, or an unknown table that
/// may be a misspelled one.
fn hides_rules(key: &str, table: &DeTable<'_>) -> bool {
    match key.split_once('.') {
        Some((top, _)) => top == "permissions",
        None => table.get(key).is_none_or(|value| policy::may_hold_rules(key, value.get_ref())),
    }
}

/// Removes an unknown key at a byte of the text with all below it; returns the key with its tables.
fn drop_unknown(table: &mut DeTable<'_>, at: usize) -> Option<String> {
    let found = table.keys().find(|key| key.span().start == at).cloned();
    if let Some(found) = found {
        return table.remove(&found).map(|_| found.get_ref().to_string());
    }
    table.iter_mut().find_map(|(key, value)| match value.get_mut() {
        DeValue::Table(inner) => {
            drop_unknown(inner, at).map(|below| format!("{}.{below}", key.get_ref()))
        }
        _ => None,
    })
}

/// Removes the innermost key, or element of a list, at a byte of the text; returns the key with its
/// tables, or `None` if there was none.
fn drop_key(table: &mut DeTable<'_>, at: usize) -> Option<String> {
    let here = |span: std::ops::Range<usize>| span.contains(&at);
    for (key, value) in table.iter_mut() {
        let dropped = match value.get_mut() {
            DeValue::Table(inner) => {
                drop_key(inner, at).map(|below| format!("{}.{below}", key.get_ref()))
            }
            DeValue::Array(elements) => {
                drop_element(elements, at).map(|below| format!("{}{below}", key.get_ref()))
            }
            _ => None,
        };
        if dropped.is_some() {
            return dropped;
        }
    }
    let found = table.iter().find_map(|(key, value)| {
        (here(key.span()) || here(value.span())).then(|| Spanned::clone(key))
    })?;
    table.remove(&found).map(|_| found.get_ref().to_string())
}

/// Returns the key in the element at which the byte is, after a dot, or an empty text.
fn drop_element(elements: &mut DeArray<'_>, at: usize) -> Option<String> {
    let index = elements.iter().position(|element| holds(element, at))?;
    let below = match elements[index].get_ref() {
        DeValue::Table(table) => {
            let mut keys = table.iter().filter(|(_, value)| value.span().contains(&at));
            keys.next().map(|(key, _)| format!(".{}", key.get_ref()))
        }
        _ => None,
    };
    let all = std::mem::replace(elements, DeArray::new()).into_iter().enumerate();
    *elements = all.filter(|(i, _)| *i != index).map(|(_, element)| element).collect();
    Some(below.unwrap_or_default())
}

/// Whether an element, or a key of its table, contains this byte of the text.
fn holds(element: &Spanned<DeValue<'_>>, at: usize) -> bool {
    let DeValue::Table(table) = element.get_ref() else { return element.span().contains(&at) };
    let inside = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        key.span().contains(&at) || value.span().contains(&at)
    };
    element.span().contains(&at) || table.iter().any(inside)
}

pub mod limits;
mod wrong_value;
#[cfg(test)]
mod tests;
