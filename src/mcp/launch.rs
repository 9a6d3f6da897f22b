//! Starts a server as a confined program, or connects to it over HTTP.

use crate::config::McpDefinition;
use crate::config::dirs::Env;
use crate::config::mcp::{Reach, START_DIR};
use crate::llm::Http;
use crate::llm::http::header_map;
use crate::mcp::connection::{Connection, Gated, Greeting, NotGreeted, Running, open};
use crate::mcp::gate::{Gate, Why};
use crate::mcp::http::{Bounded, MAX_BODY, MAX_EVENT};
use crate::mcp::pipes::Pipes;
use crate::mcp::storage;
use crate::sandbox::{
    Command, CommandView, Ended, Need, PodStorage, Sandbox, SandboxError, Server, StartGroup,
    UserPaths, ViewInputs, serving_end,
};
use crate::scope::{Permission, Rule, Scope};
use crate::text::{SafeText, shell_quoted};
use crate::tools::Context;
use crate::trace::Hidden;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The longest life of a server. It ends earlier, with its last user.
const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);
/// How long a server may take to end by itself when its input is closed.
const END_ITSELF: Duration = Duration::from_secs(2);
/// How long the exit status of a server that ended by itself may take.
const MOMENT: Duration = Duration::from_millis(500);
/// The kept bytes of a server's standard error.
const LAST_WORDS: usize = 2 * 1024;
/// The most bytes of it read at once, and the pause after each read, which slows down a flood.
const CHUNK: usize = 16 * 1024;
const PAUSE: Duration = Duration::from_millis(5);

/// A server that can be started, any number of times.
#[derive(Clone, Debug)]
pub enum Launch {
    Program {
        sandbox: Sandbox,
        command: Box<Command>,
        /// The server's directory.
        kept: PathBuf,
    },
    Http {
        client: reqwest::Client,
        config: Box<StreamableHttpClientTransportConfig>,
    },
    /// A test server, which gets the other end of each connection.
    #[cfg(test)]
    Test(tokio::sync::mpsc::UnboundedSender<tokio::io::DuplexStream>),
}

/// The environment in which a server is started.
pub struct Surroundings<'a> {
    /// The Pod that starts it.
    pub ctx: &'a Context,
    /// The person's environment, from which `${NAME}` is taken.
    pub env: &'a Env,
    pub http: &'a Http,
    /// The directory of the servers' temporary files and caches.
    pub kept: &'a Path,
}

impl Launch {
    /// The launch of a server and its key: launches with equal keys share one process. An error is
    /// a sentence without a subject.
    pub fn of(definition: &McpDefinition, around: &Surroundings) -> Result<(String, Self), String> {
        let values = definition.values(around.env).map_err(|unset| {
            format!("{unset}: set it there, or take it out of {}", definition.file)
        })?;
        match &definition.reach {
            Reach::Http { url, .. } => {
                let launch = http(url, &values, around.http)?;
                Ok((key(definition, &serde_json::json!(values).to_string()), launch))
            }
            Reach::Program { command, args, .. } => {
                let words = std::iter::once(command).chain(args).map(|word| shell_quoted(word));
                let words: Vec<String> = words.collect();
                program(definition, &words.join(" "), values, around)
            }
        }
    }

    /// The values of the server's variables or headers, which no sentence about it shows.
    pub fn hidden(&self, definition: &McpDefinition) -> Hidden {
        let values: Vec<String> = match self {
            Self::Program { command, .. } => {
                definition.names().filter_map(|name| command.env.get(name).cloned()).collect()
            }
            Self::Http { config, .. } => {
                let values = config.custom_headers.values();
                values.filter_map(|value| value.to_str().ok().map(str::to_owned)).collect()
            }
            #[cfg(test)]
            Self::Test(_) => Vec::new(),
        };
        Hidden::new(values.into_iter())
    }

    /// A file that the server's command line names and that the server may not read.
    pub fn unread<'a>(&self, definition: &'a McpDefinition) -> Option<&'a Path> {
        let (Self::Program { command: started, .. }, Reach::Program { command, args, .. }) =
            (self, &definition.reach)
        else {
            return None;
        };
        let grants = &started.view.as_ref()?.grants;
        let is_unread = |path: &Path| !grants.iter().any(|grant| path.starts_with(&grant.path));
        let paths = std::iter::once(command).chain(args).map(Path::new);
        let mut files = paths.filter(|path| path.is_absolute());
        files.find(|path| path.canonicalize().is_ok_and(|path| is_unread(&path)))
    }

    /// Starts the server; `end` ends it.
    pub fn start(
        &self,
        definition: &McpDefinition,
        end: CancellationToken,
    ) -> Result<Started, String> {
        let why = Why::default();
        match self {
            Self::Http { client, config } => {
                let how = How::Http { client: client.clone(), config: config.clone() };
                Ok(Started { how, why, definition: definition.clone(), end })
            }
            #[cfg(test)]
            Self::Test(servers) => {
                let (here, there) = tokio::io::duplex(64 * 1024);
                servers.send(there).map_err(|_| "the test ended".to_owned())?;
                Ok(Started { how: How::Test(here), why, definition: definition.clone(), end })
            }
            Self::Program { sandbox, command, kept } => {
                storage::use_now(kept).map_err(|error| format!("{}: {error}", kept.display()))?;
                let killed = CancellationToken::new();
                let (server, served) =
                    sandbox.serve(command, killed.clone()).map_err(|error| error.to_string())?;
                let Server { input, output, errors } = server;
                let words = LastWords::default();
                tokio::spawn(words.clone().listen(errors));
                let pipes = Pipes::new(input, output, Gate::new(why.clone()));
                let process = Process { gone: tokio::spawn(served), kill: killed, words };
                let how = How::Program { pipes: Box::new(pipes), process };
                Ok(Started { how, why, definition: definition.clone(), end })
            }
        }
    }
}

fn key(definition: &McpDefinition, rest: &str) -> String {
    blake3::hash(format!("{}\n{rest}", definition.sha256()).as_bytes()).to_hex().to_string()
}

/// The view of a server: the scope of its Pod (read-only unless it may write), the further paths that it reads, and
/// the network if it was granted.
fn view(definition: &McpDefinition, ctx: &Context, env: &Env) -> Result<CommandView, String> {
    let mut scope = if definition.write { ctx.scope.clone() } else { read_only(&ctx.scope) };
    for path in &definition.read {
        let found = in_home(path, env).canonicalize();
        let found = found.map_err(|error| format!("its `read` names {path}: {error}"))?;
        scope.allow.push(Rule::new(found, Permission::Read));
    }
    let needs: &[Need] = if definition.network { &[Need::Network] } else { &[] };
    Ok(CommandView::new(&ViewInputs {
        given: &ctx.given,
        own: &ctx.own,
        needs,
        isolation: ctx.isolation,
        limits: ctx.command_limits,
        ..ViewInputs::new(&scope, UserPaths { env: &ctx.env })
    }))
}

/// A path of the settings, where `~/` is the home directory.
fn in_home(path: &str, env: &Env) -> PathBuf {
    match (path.strip_prefix('~'), env.get("HOME")) {
        (Some(rest), Some(home)) => Path::new(home).join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

fn program(
    definition: &McpDefinition,
    line: &str,
    values: BTreeMap<String, String>,
    around: &Surroundings,
) -> Result<(String, Launch), String> {
    let ctx = around.ctx;
    let mut view = view(definition, ctx, around.env)?;
    let cwd = if definition.of_workspace { ctx.cwd.clone() } else { PathBuf::from(START_DIR) };
    let mut env = ctx.env.clone();
    env.extend(values);
    let key = key(definition, &serde_json::json!([view, env, cwd]).to_string());
    // The server's directory is found by the key, so the directory is not part of the key.
    let kept = storage::directory(around.kept, &definition.name, &key);
    view.private = Some(PodStorage::of(&kept));
    let (program, group) = (format!("exec {line}"), StartGroup::default());
    let command = Box::new(Command { program, cwd, env, timeout: LIFE, view: Some(view), group });
    let sandbox =
        Sandbox { helper: ctx.helper.clone(), nofile: ctx.old_nofile, ..Sandbox::default() };
    Ok((key, Launch::Program { sandbox, command, kept }))
}

fn read_only(scope: &Scope) -> Scope {
    let read = |rule: &Rule| Rule { permission: Permission::Read, ..rule.clone() };
    Scope { allow: scope.allow.iter().map(read).collect(), deny: scope.deny.clone() }
}

fn http(url: &str, headers: &BTreeMap<String, String>, http: &Http) -> Result<Launch, String> {
    let client = http.client_for(url)?;
    let custom = header_map(headers)?;
    let custom = custom.into_iter().filter_map(|(name, value)| Some((name?, value))).collect();
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(MAX_EVENT)
        .max_json_response_size(MAX_BODY);
    Ok(Launch::Http { client, config: Box::new(config) })
}

/// A started server before its greeting.
pub struct Started {
    how: How,
    why: Why,
    definition: McpDefinition,
    end: CancellationToken,
}

enum How {
    Program {
        pipes: Box<Pipes>,
        process: Process,
    },
    Http {
        client: reqwest::Client,
        config: Box<StreamableHttpClientTransportConfig>,
    },
    #[cfg(test)]
    Test(tokio::io::DuplexStream),
}

/// The process of a server; none over HTTP.
pub struct Process {
    gone: JoinHandle<Result<Ended, SandboxError>>,
    kill: CancellationToken,
    words: LastWords,
}

impl Started {
    /// Greets the server. Returns the process in any case.
    pub async fn greet(
        self,
        greeting: Greeting,
    ) -> (Result<(Connection, Running), NotGreeted>, Option<Process>) {
        let Self { how, why, definition, end } = self;
        match how {
            How::Http { client, config } => {
                let gate = Gate::new(why);
                let client = Bounded { client, gate: gate.clone() };
                let inner = StreamableHttpClientTransport::with_client(client, *config);
                let gated = Gated { inner, gate: gate.clone() };
                (open(gated, greeting, &definition, gate, end).await, None)
            }
            How::Program { pipes, process } => {
                let gate = pipes.gate().clone();
                (open(*pipes, greeting, &definition, gate, end).await, Some(process))
            }
            #[cfg(test)]
            How::Test(stream) => {
                let (read, write) = tokio::io::split(stream);
                let inner = rmcp::transport::async_rw::AsyncRwTransport::new_client(read, write);
                let gated = Gated { inner, gate: Gate::new(why) };
                let gate = gated.gate.clone();
                (open(gated, greeting, &definition, gate, end).await, None)
            }
        }
    }
}

impl Process {
    /// Waits for the end of the process, or ends it after a time limit; returns how it ended by
    /// itself, and its last words on standard error.
    async fn finish(mut self, patience: Duration, at_once: &CancellationToken) -> Option<String> {
        let by_itself = tokio::select! {
            ended = tokio::time::timeout(patience, &mut self.gone) => ended.ok(),
            () = at_once.cancelled() => None,
        };
        let how = by_itself.and_then(Result::ok).map(|ended| serving_end(&ended));
        if how.is_none() {
            self.kill.cancel();
            // It ends within the time of its helper, and is killed after that.
            let _ = (&mut self.gone).await;
        }
        let said = self.words.last();
        match (how, said) {
            (None, None) => None,
            (Some(how), None) => Some(how),
            (how, Some(said)) => {
                let how = how.map(|how| how + "; ").unwrap_or_default();
                Some(format!("{how}it said: {said}"))
            }
        }
    }

    /// Ends a failed server, and returns the reason of its failure.
    pub async fn explain(self) -> Option<String> {
        self.finish(MOMENT, &CancellationToken::new()).await
    }

    /// Ends a server that no Pod uses any more.
    pub async fn end(self, at_once: &CancellationToken) {
        self.finish(END_ITSELF, at_once).await;
    }
}

/// The last bytes that a server wrote to its standard error.
#[derive(Clone, Debug, Default)]
struct LastWords(Arc<Mutex<VecDeque<u8>>>);

impl LastWords {
    /// Reads to the end, at a limited rate.
    async fn listen(self, mut errors: Receiver) {
        let mut buffer = vec![0; CHUNK];
        while let Ok(read) = errors.read(&mut buffer).await {
            if read == 0 {
                return;
            }
            {
                let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                kept.extend(&buffer[..read]);
                let more = kept.len().saturating_sub(LAST_WORDS);
                kept.drain(..more);
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// The last lines, as one, with the secrets in them.
    fn last(&self) -> Option<String> {
        const LINES: usize = 3;
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join(" / ");
        (!last.is_empty()).then(|| SafeText::line(last).into_string())
    }
}
