//! The settings of a workspace (`<root>/.yoi/config.toml`). The file may come from a stranger: it
//! may choose a known model and narrow permissions. Its other keys take effect only while a person
//! trusts exactly this content.

use crate::config::catalogue::{Catalogue, Known, Provider};
use crate::config::diagnostic::Diagnostic;
use crate::config::mcp::{self, McpServer};
use crate::config::plain_file::{MAX_FILE, in_utf8};
use crate::config::policy::{self, FileRule};
use crate::config::settings::Settings;
use crate::files::{FileError, Limit, WorkspaceFiles};
use crate::protocol::Action;
use crate::text::sha256_hex;
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// The scope of trust in a server of a workspace, besides its command line.
const RUNS_IN_WORKSPACE: &str =
    ", started in the workspace: it can run files there, and pods can change these";

/// The settings in the file of a workspace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkspaceSettings {
    /// `provider/model`; counts only if that model is known.
    pub model: Option<String>,
    /// Counts if it is below the user's own, or above it while the file is trusted.
    pub max_turns: Option<NonZeroU32>,
    /// Rules that ask or deny.
    pub rules: Vec<FileRule>,
    /// Why the rules are unknown although the file exists.
    pub unread: Option<String>,
    /// The ignored keys, for a notice.
    pub notices: Vec<Diagnostic>,
    /// The SHA-256 of the file, hex; `None` if there is none that can be read.
    pub sha256: Option<String>,
    /// The keys in force because a person trusts the file; empty without trust.
    pub granted: Granted,
    /// The keys that would be in force if a person trusted the file.
    asked: Granted,
    /// The notices that trust ends.
    until_trusted: Vec<Diagnostic>,
    /// The workspace has only the file of servers.
    servers_alone: bool,
}

/// The keys of a workspace's file that need trust.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Granted {
    /// Rules that allow.
    pub rules: Vec<FileRule>,
    /// Counts if the user has no default.
    pub default: Option<Action>,
    pub max_turns: Option<NonZeroU32>,
    /// MCP servers that the workspace names in its own file.
    pub mcp: BTreeMap<String, McpServer>,
    /// The command line that runs once in each new working tree; counts if the user has none.
    pub setup: Option<String>,
    /// Providers that the program does not define; a provider of the user with the same name
    /// replaces one.
    provider: BTreeMap<String, Provider>,
    /// The models of these providers.
    models: BTreeMap<String, Known>,
    /// Keys and values of the providers and models, as the file has them.
    provider_lines: Vec<(String, String)>,
}

/// The scope of trust in the setup command, besides its command line.
const RUNS_IN_TREES: &str = ", run as a command of the pod in each new working tree";

/// What follows from a file whose rules are unknown.
const COULD_DENY: &str = "calls that it could deny need an approval";
/// The beginning of the notice about servers that are not trusted.
const ITS_SERVERS: &str = "its MCP servers";
/// The most servers that the notice names.
const NAMED: usize = 16;

/// Why a key is ignored.
#[derive(Clone, Copy)]
enum Ignored {
    /// The key counts in a trusted file.
    UntilTrusted,
    Always,
}

/// The path of a workspace's settings.
pub fn file_of(root: &Path) -> PathBuf {
    root.join(".yoi/config.toml")
}

/// The path of a workspace's list of MCP servers.
pub fn mcp_file_of(root: &Path) -> PathBuf {
    root.join(mcp::WORKSPACE_FILE)
}

impl WorkspaceSettings {
    /// Reads the files of a workspace, if there are any; nothing in them is trusted. Blocking.
    pub fn load(root: &Path) -> Self {
        let file = file_of(root);
        let found = match text_of(root, &file) {
            Ok(Some(text)) => Self::read(&file, &text),
            Ok(None) => Self::default(),
            Err(why) => {
                let notice = ignored(&file, &format!("{why}; {COULD_DENY}"));
                Self { notices: vec![notice], unread: Some(why), ..Self::default() }
            }
        };
        let file = mcp_file_of(root);
        match text_of(root, &file) {
            Ok(Some(text)) => found.with_servers(&file, &text),
            Ok(None) => found,
            Err(why) => {
                let notice = ignored(&file, &why);
                Self { notices: found.notices.iter().cloned().chain([notice]).collect(), ..found }
            }
        }
    }

    /// Adds the MCP servers that a text names. A person trusts both files together.
    #[must_use]
    pub fn with_servers(mut self, file: &Path, text: &str) -> Self {
        let (servers, problems) = mcp::read_workspace_file(text);
        let diagnostic = |(at, message): mcp::Problem| Diagnostic::at(file, text, at, message);
        self.notices.extend(problems.into_iter().map(diagnostic));
        if servers.is_empty() {
            return self;
        }
        let more = servers.len().saturating_sub(NAMED);
        let mut names: Vec<String> = servers.keys().take(NAMED).cloned().collect();
        names.extend((more > 0).then(|| format!("{more} more")));
        let notice = Diagnostic::at(
            file,
            "",
            0,
            format!(
                "{ITS_SERVERS} ({}) are ignored until you trust this file: :trust shows what it asks for",
                names.join(", ")
            ),
        );
        self.until_trusted.push(notice.clone());
        self.notices.push(notice);
        self.asked.mcp = servers;
        let own = sha256_hex(text.as_bytes());
        self.sha256 = Some(match self.sha256.take() {
            Some(settings) => sha256_hex(format!("{settings} {own}").as_bytes()),
            None => {
                self.servers_alone = true;
                own
            }
        });
        self
    }

    /// The reason why the MCP servers of the workspace are not used; `None` if they are used or the workspace names
    /// none.
    pub fn untrusted_servers(&self) -> Option<String> {
        let notice =
            self.until_trusted.iter().find(|notice| notice.message.starts_with(ITS_SERVERS))?;
        self.notices.contains(notice).then(|| notice.to_string())
    }

    /// The file that a request for trust names: `.yoi/config.toml`, or `.mcp.json` where the workspace has only that.
    pub fn trusted_file(&self, root: &Path) -> PathBuf {
        if self.servers_alone { mcp_file_of(root) } else { file_of(root) }
    }

    /// Parses the text of a settings file.
    pub fn read(file: &Path, text: &str) -> Self {
        let mut reader = Reader { file, text, found: Self::default() };
        match DeTable::parse(text) {
            Ok(table) => {
                reader.found.sha256 = Some(sha256_hex(text.as_bytes()));
                reader.whole(table.get_ref());
            }
            Err(error) => reader.unread(Diagnostic::of_toml(file, text, &error)),
        }
        reader.found
    }

    /// Adds the keys that need trust if a person trusts this content. `trusted` is the hash of the
    /// content that a person trusts in this workspace, if there is one.
    #[must_use]
    pub fn with_trust(mut self, trusted: Option<&str>) -> Self {
        let Some(trusted) = trusted else { return self };
        if self.sha256.as_deref() == Some(trusted) {
            self.granted = self.asked.clone();
            self.notices.retain(|notice| !self.until_trusted.contains(notice));
        } else if let Some(first) = self.until_trusted.first() {
            let message = "the file changed since you trusted it, so it is not trusted any more; :trust shows what it \
                           asks for now";
            let changed =
                Diagnostic { line: 1, column: 1, message: message.into(), ..first.clone() };
            self.notices.insert(0, changed);
        }
        self
    }

    /// The changes that trust would make, one line for each key with its value.
    pub fn trust_changes(&self, settings: &Settings) -> Vec<String> {
        let asked = &self.asked;
        let rules = asked.rules.iter().map(|FileRule { tool, pattern, .. }| {
            format!("permissions.rule = allow {tool}: {pattern}")
        });
        let default = asked.default.filter(|_| settings.permissions.default.is_none());
        let default = default.map(|action| format!("permissions.default = {}", word(action)));
        let turns = asked.max_turns.filter(|turns| *turns > settings.limits.max_turns);
        let turns = turns.map(|turns| {
            format!("limits.max_turns = {turns} (yours: {})", settings.limits.max_turns)
        });
        let new = asked.provider_lines.iter().filter(|(id, _)| !settings.provider.contains_key(id));
        let new = new.map(|(_, line)| line.clone());
        let servers = asked.mcp.iter().filter_map(|(name, server)| {
            let server = match settings.mcp.get(name) {
                None => server.clone(),
                Some(own) if own.is_only_grants() => server.granted(own),
                Some(_) => return None,
            };
            let place = if server.command.is_some() { RUNS_IN_WORKSPACE } else { "" };
            Some(format!("mcp.{name} = {}{place}", server.reached_by()))
        });
        let setup = asked.setup.as_ref().filter(|_| settings.worktree.setup.is_none());
        let setup = setup.map(|command| format!("worktree.setup = {command}{RUNS_IN_TREES}"));
        rules.chain(default).chain(turns).chain(new).chain(setup).chain(servers).collect()
    }
}

impl Settings {
    /// Applies the limits of a workspace: those that narrow, and those that raise while its file is
    /// trusted.
    #[must_use]
    pub fn narrowed(mut self, workspace: &WorkspaceSettings) -> Self {
        let own = self.limits.max_turns;
        let most = workspace.max_turns.map_or(own, |turns| own.min(turns));
        self.limits.max_turns = workspace.granted.max_turns.unwrap_or(most);
        self
    }

    /// Whether a provider of these settings is the one of the trusted file.
    pub fn has_provider_of(&self, workspace: &WorkspaceSettings, id: &str) -> bool {
        let given = workspace.granted.provider.get(id);
        given.is_some() && self.provider.get(id) == given
    }

    /// Adds the providers and models of a trusted file. Those of the user do not change.
    #[must_use]
    pub fn with_providers_of(mut self, workspace: &WorkspaceSettings) -> Self {
        for (id, provider) in &workspace.granted.provider {
            if self.provider.contains_key(id) {
                continue;
            }
            let models = workspace.granted.models.iter();
            for (spec, known) in models.filter(|(spec, _)| provider_of(spec) == id) {
                self.models.entry(spec.clone()).or_insert_with(|| known.clone());
            }
            self.provider.insert(id.clone(), provider.clone());
        }
        self
    }
}

/// Reads one text.
struct Reader<'a> {
    file: &'a Path,
    text: &'a str,
    found: WorkspaceSettings,
}

impl Reader<'_> {
    fn whole(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let at = key.span().start;
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("model", DeValue::String(spec)) if !spec.starts_with("rehearsal:") => {
                    self.found.model = Some(spec.to_string());
                }
                ("limits", DeValue::Table(limits)) => self.limits(limits),
                ("permissions", DeValue::Table(permissions)) => self.permissions(permissions),
                ("provider", DeValue::Table(providers)) => self.providers(providers),
                ("worktree", DeValue::Table(worktree)) => self.worktree(worktree),
                // Models are read after the providers.
                ("models", DeValue::Table(_)) => {}
                (other, value) if policy::may_hold_rules(other, value) => self.unread_at(
                    at,
                    format!("`{other}` is no table of a workspace; rules are written as [[permissions.rule]]"),
                ),
                (other, _) => self.ignore(other, at, Ignored::Always),
            }
        }
        let models = table.iter().find(|(key, _)| key.get_ref().as_ref() == "models");
        if let Some(DeValue::Table(models)) = models.map(|(_, value)| value.get_ref()) {
            self.models(models);
        }
    }

    fn limits(&mut self, limits: &DeTable<'_>) {
        for (key, value) in limits {
            match (key.get_ref().as_ref(), turns(value.get_ref())) {
                ("max_turns", Some(turns)) => {
                    self.found.max_turns = Some(turns);
                    self.found.asked.max_turns = Some(turns);
                }
                (other, _) => {
                    self.ignore(&format!("limits.{other}"), key.span().start, Ignored::Always);
                }
            }
        }
    }

    fn worktree(&mut self, worktree: &DeTable<'_>) {
        for (key, value) in worktree {
            let (name, at) = (format!("worktree.{}", key.get_ref()), key.span().start);
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("setup", DeValue::String(command)) => {
                    self.found.asked.setup = Some(command.to_string());
                    self.ignore(&name, at, Ignored::UntilTrusted);
                }
                _ => self.ignore(&name, at, Ignored::Always),
            }
        }
    }

    fn permissions(&mut self, permissions: &DeTable<'_>) {
        for (key, value) in permissions {
            let at = key.span().start;
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("rule", DeValue::Array(rules)) => {
                    for rule in rules {
                        self.rule(rule);
                    }
                }
                ("default", _) => {
                    self.found.asked.default = typed(value);
                    match self.found.asked.default {
                        Some(_) => self.ignore("permissions.default", at, Ignored::UntilTrusted),
                        None => {
                            let message = "`permissions.default` must be one of `allow`, `ask`, `deny`";
                            self.unread_at(at, message.into());
                        }
                    }
                }
                (other, _) => self.unread_at(
                    at,
                    format!("`permissions.{other}` is unknown; rules are written as [[permissions.rule]]"),
                ),
            }
        }
    }

    fn rule(&mut self, rule: &Spanned<DeValue<'_>>) {
        let at = rule.span().start;
        match FileRule::deserialize(ValueDeserializer::from(rule.clone())) {
            Ok(rule) if rule.action == Action::Allow => {
                self.found.asked.rules.push(rule);
                self.ignore("permissions.rule", at, Ignored::UntilTrusted);
            }
            Ok(rule) => self.found.rules.push(rule),
            Err(error) => {
                let mut mistake = Diagnostic::of_toml(self.file, self.text, &error);
                mistake.message = format!("`permissions.rule`: {}", mistake.message);
                self.unread(mistake);
            }
        }
    }

    fn unread_at(&mut self, at: usize, message: String) {
        self.unread(Diagnostic::at(self.file, self.text, at, message));
    }

    /// Reports a part of the file that cannot be read and may be a rule.
    fn unread(&mut self, mut mistake: Diagnostic) {
        let Diagnostic { line, column, message, .. } = &mistake;
        let why = format!("{line}:{column}: {message}");
        self.found.unread.get_or_insert(why);
        mistake.message = format!("{}; {COULD_DENY}", mistake.message);
        self.found.notices.push(mistake);
    }

    /// A provider of the program is never changed: text for a name that the person knows would go
    /// to another address.
    fn providers(&mut self, providers: &DeTable<'_>) {
        let known = Catalogue::builtin().providers;
        for (key, value) in providers {
            let id = key.get_ref().to_string();
            let name = format!("provider.{id}");
            // A workspace must not run a command outside of all walls, nor send variables of the person anywhere,
            // trusted or not.
            let may_be_trusted = |own: &Provider| {
                !known.contains_key(&id) && own.key_command.is_none() && own.headers.is_none()
            };
            let provider = typed::<Provider>(value).filter(may_be_trusted);
            let Some(provider) = provider else {
                self.ignore(&name, key.span().start, Ignored::Always);
                continue;
            };
            self.keep_lines(&id, &name, value);
            self.found.asked.provider.insert(id, provider);
            self.ignore(&name, key.span().start, Ignored::UntilTrusted);
        }
    }

    fn models(&mut self, models: &DeTable<'_>) {
        for (key, value) in models {
            let spec = key.get_ref().to_string();
            let (name, id) = (format!("models.{spec:?}"), provider_of(&spec).to_owned());
            let is_of_file = self.found.asked.provider.contains_key(&id);
            let Some(known) = typed::<Known>(value).filter(|_| is_of_file) else {
                self.ignore(&name, key.span().start, Ignored::Always);
                continue;
            };
            self.keep_lines(&id, &name, value);
            self.found.asked.models.insert(spec, known);
            self.ignore(&name, key.span().start, Ignored::UntilTrusted);
        }
    }

    /// Stores each key below `name` with its value from the file.
    fn keep_lines(&mut self, id: &str, name: &str, value: &Spanned<DeValue<'_>>) {
        if let DeValue::Table(table) = value.get_ref() {
            for (key, value) in table {
                self.keep_lines(id, &format!("{name}.{}", key.get_ref()), value);
            }
            return;
        }
        let value = self.text.get(value.span()).unwrap_or_default();
        let line = (id.to_owned(), format!("{name} = {value}"));
        self.found.asked.provider_lines.push(line);
    }

    fn ignore(&mut self, key: &str, at: usize, why: Ignored) {
        let message = match why {
            Ignored::UntilTrusted => {
                format!("{key} is ignored until you trust this file: :trust shows what it asks for")
            }
            Ignored::Always => format!(
                "{key} is ignored: a workspace may only choose a known model, lower limits, and ask or deny more"
            ),
        };
        let notice = Diagnostic::at(self.file, self.text, at, message);
        if matches!(why, Ignored::UntilTrusted) {
            self.found.until_trusted.push(notice.clone());
        }
        self.found.notices.push(notice);
    }
}

/// The provider of `provider/model`.
fn provider_of(spec: &str) -> &str {
    spec.split_once('/').map_or("", |(id, _)| id)
}

fn typed<T: DeserializeOwned>(value: &Spanned<DeValue<'_>>) -> Option<T> {
    T::deserialize(ValueDeserializer::from(value.clone())).ok()
}

fn turns(value: &DeValue<'_>) -> Option<NonZeroU32> {
    let number = value.as_integer()?;
    NonZeroU32::new(u32::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()?)
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

fn ignored(file: &Path, why: &str) -> Diagnostic {
    Diagnostic::at(file, "", 0, format!("is ignored: {why}"))
}

/// The text of a file of a workspace, `None` if there is none; the error says why it is ignored.
fn text_of(root: &Path, file: &Path) -> Result<Option<String>, String> {
    match WorkspaceFiles::of(root).read_obeyed(file, Limit::whole(MAX_FILE)) {
        Ok(found) => in_utf8(found.bytes).map(Some),
        Err(FileError::Missing(..)) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests;
