//! MCP servers as settings name them: `[mcp.<name>]` of the user, and `.mcp.json` of a workspace.

use crate::config::diagnostic::without_value;
use crate::config::dirs::Env;
use crate::config::template::{self, Unset, variables};
use crate::text::{sha256_hex, shell_word};
use crate::trace::{MARK, redact, secrets};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;
use std::time::Duration;

/// The file of a workspace that names servers, as other programs read it, too.
pub const WORKSPACE_FILE: &str = ".mcp.json";
/// Characters of a server's name; it is part of the names of its tools.
const MAX_NAME: usize = 32;
/// Where the programs of the user's settings start. No Pod writes there, so a relative path, the name of a module or a
/// package that is looked for from the working directory upwards leads to no file of a Pod.
pub const START_DIR: &str = "/";
/// Servers of one Pod.
pub const MAX_SERVERS: usize = 32;

/// `[mcp.<name>]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct McpServer {
    /// A program that speaks MCP on its standard streams.
    pub command: Option<String>,
    pub args: Vec<String>,
    /// Variables of the program; `${NAME}` is a variable of the person.
    pub env: BTreeMap<String, String>,
    /// A server that is reached over streamable HTTP.
    pub url: Option<String>,
    /// Headers of each request; `${NAME}` is a variable of the person.
    pub headers: BTreeMap<String, String>,
    /// Whether the program has the network of the machine. `None` is no.
    pub network: Option<bool>,
    /// Whether the program may write what its Pod may write; else it only reads that. `None` is no.
    pub write: Option<bool>,
    /// Files and directories that the program reads beside the scope of its Pod: absolute, or below `~/`.
    pub read: Vec<String>,
    /// Whether Pods use it. `None` is yes.
    pub enabled: Option<bool>,
    /// Seconds until it has to offer its tools.
    pub start_s: Option<NonZeroU64>,
    /// Seconds that a call may take without a sign of progress.
    pub timeout_s: Option<NonZeroU64>,
}

/// A server that a Pod may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpDefinition {
    pub name: String,
    pub reach: Reach,
    pub network: bool,
    pub write: bool,
    /// The further paths that the program reads, as the settings write them.
    pub read: Vec<String>,
    pub start: Duration,
    pub timeout: Duration,
    /// The file that names it.
    pub file: String,
    /// Whether a file of the workspace names it. Its program then starts in the directory of its Pod, else in
    /// [`START_DIR`].
    pub of_workspace: bool,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    Program { command: String, args: Vec<String>, env: BTreeMap<String, String> },
    Http { url: String, headers: BTreeMap<String, String> },
}

/// The servers of a Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McpServers {
    pub servers: Vec<McpDefinition>,
    /// Why others that are named are not among them, each a sentence.
    pub problems: Vec<String>,
}

impl McpServers {
    /// What the user's settings and the file of a workspace name together. A server of the user counts before
    /// one of the workspace; without `command` and `url` it says what that one is granted.
    pub fn of(
        user: &BTreeMap<String, McpServer>,
        user_file: &str,
        workspace: &BTreeMap<String, McpServer>,
        workspace_file: &str,
    ) -> Self {
        let mut found = Self::default();
        for (name, server) in user {
            match workspace.get(name).filter(|_| server.is_only_grants()) {
                Some(theirs) => found.add(name, &theirs.granted(server), workspace_file, true),
                None => found.add(name, server, user_file, false),
            }
        }
        for (name, server) in workspace.iter().filter(|(name, _)| !user.contains_key(*name)) {
            found.add(name, server, workspace_file, true);
        }
        if found.servers.len() > MAX_SERVERS {
            let more = found.servers.split_off(MAX_SERVERS);
            let names: Vec<String> = more.into_iter().map(|server| server.name).collect();
            let names = names.join(", ");
            found.problems.push(format!(
                "a pod uses at most {MAX_SERVERS} MCP servers; these are left out: {names}"
            ));
        }
        found
    }

    fn add(&mut self, name: &str, server: &McpServer, file: &str, of_workspace: bool) {
        if server.enabled == Some(false) {
            return;
        }
        match server.defined(name, file, of_workspace) {
            Ok(definition) => self.servers.push(definition),
            Err(why) => self.problems.push(format!("MCP server `{name}` in {file}: {why}")),
        }
    }
}

impl McpServer {
    /// The command line or the address, as a person reads it, with its variables or headers and with the grants that
    /// it asks for.
    pub fn reached_by(&self) -> String {
        let words = self.command.iter().chain(&self.args).map(|word| shell_word(word));
        let mut text = match &self.url {
            Some(url) => url.clone(),
            None => words.collect::<Vec<_>>().join(" "),
        };
        for (name, template) in self.env.iter().chain(&self.headers) {
            text.push_str(&format!(", with {name}={}", shell_word(template)));
        }
        if self.network == Some(true) {
            text.push_str(", with the network");
        }
        if self.write == Some(true) {
            text.push_str(", writes what its pod writes");
        }
        text
    }

    /// Whether this only says what a server of a workspace is granted.
    pub fn is_only_grants(&self) -> bool {
        self.command.is_none() && self.url.is_none()
    }

    /// The same with what the user grants it.
    #[must_use]
    pub fn granted(&self, grants: &Self) -> Self {
        let mut env = self.env.clone();
        env.extend(grants.env.clone());
        let mut headers = self.headers.clone();
        headers.extend(grants.headers.clone());
        Self {
            env,
            headers,
            network: grants.network.or(self.network),
            write: grants.write.or(self.write),
            read: grants.read.clone(),
            enabled: grants.enabled.or(self.enabled),
            start_s: grants.start_s.or(self.start_s),
            timeout_s: grants.timeout_s.or(self.timeout_s),
            ..self.clone()
        }
    }

    fn defined(&self, name: &str, file: &str, of_workspace: bool) -> Result<McpDefinition, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
            return Err(format!(
                "its name is part of the names of its tools: write at most {MAX_NAME} letters, digits, - and _"
            ));
        }
        // Otherwise tools of two servers could have the same name, and the same rules.
        if name.contains("__") || name.starts_with('_') || name.ends_with('_') {
            return Err("its name is part of the names of its tools, in which __ divides: take out each _ at its ends, \
                        and those that stand together"
                .into());
        }
        let reach = match (&self.command, &self.url) {
            (Some(command), None) => Reach::Program {
                command: command.clone(),
                args: self.args.clone(),
                env: self.env.clone(),
            },
            (None, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
                Reach::Http { url: url.clone(), headers: self.headers.clone() }
            }
            (None, Some(_)) => {
                return Err("its url begins with neither http:// nor https://".into());
            }
            (Some(_), Some(_)) => return Err("it has both a command and a url: write one".into()),
            (None, None) => return Err("it has neither a command nor a url: write one".into()),
        };
        let is_relative = |word: &&String| {
            matches!(word.as_str(), "." | "..")
                || word.starts_with(['.', '~']) && word.contains('/')
                || self.command.as_ref() == Some(*word)
                    && word.contains('/')
                    && !word.starts_with('/')
        };
        if let (false, Some(word)) =
            (of_workspace, self.command.iter().chain(&self.args).find(is_relative))
        {
            return Err(format!(
                "{} is a relative path: write it from / on, because the server starts in {START_DIR}",
                shell_word(word)
            ));
        }
        if let Some(path) = self.read.iter().find(|path| !path.starts_with(['/', '~'])) {
            return Err(format!("`read` names {path}, which begins with neither / nor ~/"));
        }
        let seconds = |given: Option<NonZeroU64>, usual: u64| {
            Duration::from_secs(given.map_or(usual, NonZeroU64::get).min(3600))
        };
        Ok(McpDefinition {
            name: name.to_owned(),
            reach,
            network: self.network.unwrap_or(false),
            write: self.write.unwrap_or(false),
            read: self.read.clone(),
            start: seconds(self.start_s, 60),
            timeout: seconds(self.timeout_s, 120),
            file: file.to_owned(),
            of_workspace,
        })
    }
}

/// An address without the values of its query and without long parts of its path, which may be keys.
fn shown_address(url: &str) -> String {
    const KEY: usize = 20;
    let (path, query) = url.split_once('?').unwrap_or((url, ""));
    let is_key = |part: &str| part.len() >= KEY && part.contains(|c: char| c.is_ascii_digit());
    let parts = path.split('/').enumerate();
    // Scheme and host come first.
    let parts = parts.map(|(n, part)| if n > 2 && is_key(part) { MARK } else { part });
    let mut shown = redact(&parts.collect::<Vec<_>>().join("/")).into_owned();
    for (n, pair) in query.split('&').filter(|pair| !pair.is_empty()).enumerate() {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        shown.push(if n == 0 { '?' } else { '&' });
        shown.push_str(name);
        if !value.is_empty() {
            shown.push_str(&format!("={MARK}"));
        }
    }
    shown
}

impl McpDefinition {
    /// The command line or the address, as a person reads it.
    pub fn reached_by(&self) -> String {
        match &self.reach {
            Reach::Program { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(|word| shell_word(word));
                words.collect::<Vec<_>>().join(" ")
            }
            Reach::Http { url, .. } => url.clone(),
        }
    }

    /// The same without what is or looks like a secret.
    pub fn shown(&self) -> String {
        match &self.reach {
            Reach::Program { command, args, .. } => {
                let mut words: Vec<String> = Vec::new();
                let mut is_value_of_secret = false;
                for word in std::iter::once(command).chain(args) {
                    let is_option = word.starts_with('-');
                    words.push(match is_value_of_secret && !is_option && !word.starts_with('/') {
                        true => MARK.to_owned(),
                        false => shell_word(&redact(word)).into_owned(),
                    });
                    is_value_of_secret =
                        is_option && !word.contains('=') && secrets::is_secret_name(word);
                }
                words.join(" ")
            }
            Reach::Http { url, .. } => shown_address(url),
        }
    }

    /// The names of the variables that its program gets, or of the headers that its requests carry.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let (Reach::Program { env: templates, .. } | Reach::Http { headers: templates, .. }) =
            &self.reach;
        templates.keys().map(String::as_str)
    }

    /// The variables of the person that it takes.
    pub fn takes(&self) -> BTreeSet<String> {
        let (Reach::Program { env: templates, .. } | Reach::Http { headers: templates, .. }) =
            &self.reach;
        templates.values().flat_map(|template| variables(template)).collect()
    }

    /// The values of its variables or headers. `env` is the person's environment.
    pub fn values(&self, env: &Env) -> Result<BTreeMap<String, String>, Unset> {
        let (Reach::Program { env: templates, .. } | Reach::Http { headers: templates, .. }) =
            &self.reach;
        let what = match &self.reach {
            Reach::Program { .. } => "variable",
            Reach::Http { .. } => "header",
        };
        template::values(what, templates, env)
    }

    /// The SHA-256, hex, of what a person agrees to: how it is reached and what it is granted.
    pub fn sha256(&self) -> String {
        let reach = match &self.reach {
            Reach::Program { command, args, env } => {
                serde_json::json!({"command": command, "args": args, "env": env})
            }
            Reach::Http { url, headers } => serde_json::json!({"url": url, "headers": headers}),
        };
        let (name, network, write, read) = (&self.name, self.network, self.write, &self.read);
        let mut whole = serde_json::json!([name, reach, network, write, read]);
        if let (true, Some(parts)) = (self.of_workspace, whole.as_array_mut()) {
            // The same words mean other programs there.
            parts.push("workspace".into());
        }
        sha256_hex(whole.to_string().as_bytes())
    }
}

/// A server of `.mcp.json`; keys of other programs are passed over.
#[derive(Deserialize)]
struct Foreign {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    network: Option<bool>,
    write: Option<bool>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// A problem of a file and the byte of its text where it is.
pub type Problem = (usize, String);

/// The servers that the text of an `.mcp.json` names, and why others count for nothing.
pub fn read_workspace_file(text: &str) -> (BTreeMap<String, McpServer>, Vec<Problem>) {
    #[derive(Deserialize)]
    struct File {
        #[serde(default, rename = "mcpServers")]
        servers: BTreeMap<String, serde_json::Value>,
    }
    let file: File = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) => {
            let message = error.to_string();
            let place = format!(" at line {} column {}", error.line(), error.column());
            let why = message.strip_suffix(&place).unwrap_or(&message);
            return (
                BTreeMap::new(),
                vec![(byte_of(text, &error), format!("is ignored: {}", without_value(why)))],
            );
        }
    };
    let at = |name: &str| text.find(&serde_json::json!(name).to_string()).unwrap_or(0);
    let (mut servers, mut problems) = (BTreeMap::new(), Vec::new());
    for (name, value) in file.servers {
        match serde_json::from_value::<Foreign>(value) {
            Ok(Foreign { kind: Some(kind), .. }) if kind == "sse" => problems.push((at(&name), format!(
                "`{name}` uses the old transport `sse`, which yoi does not speak: ask for its address of streamable HTTP"
            ))),
            Ok(found) => {
                let Foreign { command, args, env, url, headers, network, write, .. } = found;
                let server = McpServer { command, args, env, url, headers, network, write, ..McpServer::default() };
                servers.insert(name, server);
            }
            Err(error) => {
                let why = without_value(&error.to_string());
                problems.push((at(&name), format!("`{name}` is ignored: {why}")));
            }
        }
    }
    (servers, problems)
}

/// The byte of a text that an error names by line and column. The column is the number of bytes up to and with it.
fn byte_of(text: &str, error: &serde_json::Error) -> usize {
    let before = error.line().saturating_sub(1);
    let lines: usize = text.split_inclusive('\n').take(before).map(str::len).sum();
    text.floor_char_boundary(lines + error.column().saturating_sub(1))
}

#[cfg(test)]
mod tests;
