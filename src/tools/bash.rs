//! Bash: runs a command in the working directory until it ends.

use crate::files;
use crate::protocol::family::Confined;
use crate::protocol::{Credential, LimitKind, LimitMet};
use crate::sandbox::{
    COSTS_OF_GIT, Command, CommandView, Ended, Hole, Isolation, Level, LimitHint, Need, Outcome,
    Sandbox, Trust, UserPaths, ViewInputs, Why, hooks_out_of_sight, of_the_system, writes_git,
};
use crate::scope::Scope;
use crate::text::SafeText;
use crate::tools::command_changes::{KnownChanges, KnownFiles};
use crate::tools::credentials;
use crate::tools::fault::Fault;
use crate::tools::live_output::LiveOutput;
use crate::tools::outside::{self, CommandNeeds};
use crate::tools::saved_output::SavedOutput;
use crate::tools::{Context, Output, input};
use crate::tools::{job_writes, jobs};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Runs a command with bash -c in the working directory; standard \
input is empty, cd and variables do not last to the next call. Standard output and error come \
together: up to 30 kB whole, else the first and the last 15 kB and the path of a file with all \
of it, for Read or Grep. Everything the command started is ended when it ends, background \
processes too; what is to run on, such as a development server, is started with background: true. \
To look at files, Read, Glob and Grep are better. Commands are confined: they read \
the system, toolchains and your scope, write your scope and /tmp, which is yours alone and the same \
for Read and Write, and reach on the network only what your commands that run now started, on \
127.0.0.1. The home directory begins empty each time, but what toolchains cache stays, for you alone. Nothing else \
is there: what is outside looks missing. A command that needs more says so in needs or outside, with \
a reason.";

/// The time limits of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandTime {
    /// When the call names no time.
    pub default: Duration,
    /// Whatever the call names.
    pub max: Duration,
}

impl Default for CommandTime {
    fn default() -> Self {
        Self { default: Duration::from_secs(120), max: Duration::from_secs(600) }
    }
}

impl CommandTime {
    fn of(self, asked: Option<u64>) -> Duration {
        let asked = asked.map_or(self.default, Duration::from_secs);
        asked.max(Duration::from_secs(1)).min(self.max)
    }
}

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The command line.
    pub(crate) command: String,
    /// Seconds after which the command is ended; 120 by default and at most 600, unless settings
    /// say otherwise.
    timeout: Option<u64>,
    /// What the command needs beyond the sandbox, decided before it starts: network; git, to change
    /// the hooks or the configuration of a repository; credential:<name>, a token or the ssh agent of the person, mostly with network.
    /// Empty for ordinary work.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    needs: Vec<Asked>,
    /// Whether the command runs in the background: the call returns an id at once, for BashOutput and BashStop. It has no
    /// time limit and no needs or outside. It reads the scope, and writes only below /tmp and in the directories of writes.
    #[serde(default)]
    background: bool,
    /// Directories of your scope that a command in the background writes, such as .next, dist or the data of a database.
    /// They exist already, and hold only what this command makes; your other commands only read them while it runs.
    #[serde(default)]
    pub(crate) writes: Vec<PathBuf>,
    /// Each path outside your scope that the command works with, as narrow as possible. No other
    /// path outside is granted.
    #[serde(default)]
    pub(crate) outside: Vec<outside::Named>,
    /// Why it needs that, in a sentence for the person who decides.
    reason: Option<String>,
}

/// A word of `needs`.
#[derive(Deserialize)]
#[serde(try_from = "String")]
enum Asked {
    Need(Need),
    /// By its name.
    Credential(String),
}

impl TryFrom<String> for Asked {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        if let Some(name) = word.strip_prefix(credentials::PREFIX) {
            return Ok(Self::Credential(name.to_owned()));
        }
        let need = Need::ALL.into_iter().find(|need| need.word() == word).map(Self::Need);
        need.ok_or_else(|| {
            let all = Need::ALL.map(Need::word).join(", ");
            format!(
                "no need is named {}: there are {all} and {}<name>",
                SafeText::quoted(&word),
                credentials::PREFIX
            )
        })
    }
}

impl Input {
    /// The needs of the call; paths in `outside` imply the need `outside`.
    pub(crate) fn needs(&self) -> Vec<Need> {
        let outside = (!self.outside.is_empty()).then_some(Need::Outside);
        let asked = self.needs.iter().filter_map(|asked| match asked {
            Asked::Need(need) => Some(*need),
            Asked::Credential(_) => None,
        });
        sorted(asked.chain(outside))
    }

    /// The names of the credentials that it asks for.
    pub(crate) fn credentials(&self) -> Vec<String> {
        sorted(self.needs.iter().filter_map(|asked| match asked {
            Asked::Credential(name) => Some(name.clone()),
            Asked::Need(_) => None,
        }))
    }
}

fn sorted<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut all: Vec<T> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub async fn bash(
    arguments: &str,
    ctx: &Context,
    cancel: &CancellationToken,
    live: &mut (dyn FnMut(String) + Send),
) -> Result<Output, Fault> {
    run(with_reason("Bash", arguments)?, ctx, cancel, live).await
}

/// Runs a command of the Pod that no model called: in the foreground, without needs, for as long as the context lets it.
pub async fn run_without_call(
    program: String,
    ctx: &Context,
    cancel: &CancellationToken,
) -> Output {
    let input = Input {
        command: program,
        timeout: None,
        needs: Vec::new(),
        background: false,
        writes: Vec::new(),
        outside: Vec::new(),
        reason: None,
    };
    let ended = run(input, ctx, cancel, &mut drop).await;
    ended.unwrap_or_else(|fault| Output::failed(&fault))
}

async fn run(
    input: Input,
    ctx: &Context,
    cancel: &CancellationToken,
    live: &mut (dyn FnMut(String) + Send),
) -> Result<Output, Fault> {
    let (input, needs) = granted_needs(input, ctx).await?;
    let in_background = input.background;
    if in_background && ctx.isolation != Isolation::Namespaces {
        return Err(Fault::argument(NO_BACKGROUND));
    }
    let limit = if in_background { jobs::NO_LIMIT } else { ctx.command_time.of(input.timeout) };
    let writes = written(&input, ctx).await?;
    // A script that was unreadable when the call was approved may have any content.
    let scripts = ctx.scripts.iter().filter(|script| script.is_content()).cloned().collect();
    let mut view = CommandView { scripts, in_background, writes, ..view(ctx, &needs) };
    // No other command of the Pod is in the network of one with a credential.
    view.shares_network &= needs.credentials.is_empty();
    let mut env = ctx.env.clone();
    ctx.credentials.give(&needs, &view, &mut env);
    if needs.agent.is_some() {
        let looking = ctx.clone();
        let hosts = tokio::task::spawn_blocking(move || credentials::known_hosts(&looking)).await;
        view.files.extend(hosts.ok());
    }
    let command = Command {
        view: Some(view),
        program: input.command,
        cwd: ctx.cwd.clone(),
        env,
        timeout: limit,
        group: ctx.group.clone(),
    };
    let (helper, nofile) = (ctx.helper.clone(), ctx.old_nofile);
    let sandbox = Sandbox { helper, nofile, world: ctx.pod_world.clone() };
    if in_background {
        return ctx.jobs.start(command, sandbox, ctx, cancel).await;
    }
    let (mut live, mut saved) = (LiveOutput::new(live), SavedOutput::new(&ctx.outputs));
    let mut cut = ctx.credentials.cut();
    let known = known_files(ctx).await;
    let begun = Instant::now();
    let mut keep = |bytes: &[u8]| {
        live.push(bytes);
        saved.push(bytes);
    };
    let ended = sandbox.run(&command, cancel, |bytes| keep(&cut.push(bytes))).await;
    let ended = ended.map_err(|error| Fault::Execution(error.to_string()))?;
    keep(&cut.finish());
    live.finish();
    let took = begun.elapsed();
    let content = tokio::task::spawn_blocking(move || saved.finish()).await;
    let content = content.map_err(|_| Fault::Internal("the output was lost".into()))?;
    let mut output = result(&ended, limit, took, content);
    note(&mut output, &ended, ctx, &needs.needs, "run it");
    let shares = needs.needs.is_empty() && needs.credentials.is_empty();
    let network = if shares { ctx.pod_world.network() } else { None };
    note_apart(&mut output, &command.program, &ctx.jobs.apart(network));
    note_written(&mut output, &ended, ctx);
    note_git(&mut output, &command.program, &ended, ctx);
    let changes = known_changes(known, ctx).await;
    changes.lines.iter().for_each(|line| append(&mut output, line));
    output.files = changes.files;
    Ok(output)
}

/// Names the commands in the background whose ports a command does not reach, if it seems to have tried.
fn note_apart(output: &mut Output, program: &str, apart: &[String]) {
    let shown = output.content.as_deref().unwrap_or_default();
    let tried = LOOPBACK.iter().any(|name| program.contains(name) || shown.contains(name));
    if tried && !apart.is_empty() {
        let apart = apart.join(", ");
        append(
            output,
            &format!(
                "[this command ran in another network than {apart}, and reaches no port of it]"
            ),
        );
    }
}

/// An error text of a program that moves or links a file from a directory that is mounted of its own.
const OF_TWO_MOUNTS: [&str; 1] = ["cross-device link"];

/// Names the commands in the background whose directories this one could not write, if that may have made it fail.
fn note_written(output: &mut Output, ended: &Ended, ctx: &Context) {
    let shown = output.content.as_deref().unwrap_or_default();
    let is_walled = WALLS.iter().chain(&OF_TWO_MOUNTS).any(|wall| shown.contains(wall));
    let failed = ended.outcome != Outcome::Exited(0) && is_walled;
    for job in ctx.jobs.writers().into_iter().filter(|_| failed) {
        append(
            output,
            &format!("[{job}, so this command could only read there; BashStop ends it]"),
        );
    }
}

/// Verbs of git that run hooks or sign.
const HOOKED: [&str; 9] =
    ["am", "checkout", "cherry-pick", "commit", "merge", "push", "rebase", "switch", "tag"];

/// Says what git leaves out without a word: signatures, and hooks that a command does not see.
fn note_git(output: &mut Output, program: &str, ended: &Ended, ctx: &Context) {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/' | '.');
    let words: Vec<&str> = program.split(|c| !is_part(c)).collect();
    let Some(confinement) = &ended.confinement else { return };
    if !words.contains(&"git") || !HOOKED.iter().any(|verb| words.contains(verb)) {
        return;
    }
    let cost = confinement.cost.iter().filter(|cost| COSTS_OF_GIT.contains(&cost.as_str()));
    let mut lines: Vec<String> = cost.map(|cost| format!("[not possible here: {cost}]")).collect();
    let home = ctx.env.get("HOME").map_or("/", String::as_str);
    let is_seen = |path: &Path| {
        ctx.scope.permission(path).is_some()
            || ctx.outside.iter().any(|granted| path.starts_with(&granted.path))
            || of_the_system(path)
    };
    let unseen = hooks_out_of_sight(&ctx.cwd, home.as_ref(), &is_seen);
    lines.extend(unseen.into_iter().map(|path| {
        let path = SafeText::quoted(&path.to_string_lossy());
        format!("[hooks of this repository lead to {path}, outside of the scope, and do not run]")
    }));
    lines.dedup();
    let shown = output.content.as_deref().unwrap_or_default();
    lines.retain(|line| !shown.contains(line));
    lines.iter().for_each(|line| append(output, line));
}

/// The directories that a command in the background is to write.
async fn written(input: &Input, ctx: &Context) -> Result<Vec<PathBuf>, Fault> {
    if input.writes.is_empty() {
        return Ok(Vec::new());
    }
    let (named, looking) = (input.writes.clone(), ctx.clone());
    let look = tokio::task::spawn_blocking(move || job_writes::resolved(&looking, &named)).await;
    look.map_err(|_| Fault::Internal("the directories were not looked at".into()))?
        .map_err(Fault::Argument)
}

/// How long a command waits for the files that the model knows: one may lie on a mount that never
/// answers.
const KNOWN_FILES: Duration = Duration::from_secs(2);

/// The files that the model knows, before the command.
async fn known_files(ctx: &Context) -> KnownFiles {
    if ctx.read.is_empty() {
        return KnownFiles::default();
    }
    let ctx = ctx.clone();
    let read = tokio::task::spawn_blocking(move || KnownFiles::read(&ctx.canonical()));
    // Without them, the model has to read again what the command changed.
    tokio::time::timeout(KNOWN_FILES, read).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// What the command changed of them.
async fn known_changes(known: KnownFiles, ctx: &Context) -> KnownChanges {
    if known.is_empty() {
        return KnownChanges::default();
    }
    let ctx = ctx.clone();
    let look = tokio::task::spawn_blocking(move || known.changes(&ctx.canonical()));
    tokio::time::timeout(KNOWN_FILES, look).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Whether a command can start with these arguments.
pub fn takes(name: &str, arguments: &str) -> Result<(), Fault> {
    with_reason(name, arguments).map(drop)
}

const NO_BACKGROUND: &str = "background is not possible on this machine, because commands get no namespaces here (yoi doctor \
says why): run it in the foreground, with & for what the same command uses";

/// Parses the arguments, and refuses needs without a reason, which the person reads before the
/// decision.
fn with_reason(name: &str, arguments: &str) -> Result<Input, Fault> {
    let input: Input = input::parse(name, arguments)?;
    let needs = input.needs();
    let is_asked = !needs.is_empty() || !input.credentials().is_empty();
    if is_asked && input.reason.as_ref().is_none_or(|text| text.trim().is_empty()) {
        return Err(Fault::argument("needs want a reason: say in a sentence what they are for"));
    }
    if input.background && is_asked {
        return Err(Fault::argument(
            "background cannot be joined with needs or outside, because an approval would have no end: run what needs more in \
             the foreground, and start the rest in the background",
        ));
    }
    let why = outside::why_needs_do_not_fit(&needs, &input.outside);
    match why.or_else(|| job_writes::why_not(input.background, &input.writes)) {
        Some(why) => Err(Fault::Argument(why)),
        None => Ok(input),
    }
}

/// The needs of the command, if all of them were granted before the call. Looks again, so that
/// exactly the approved paths are mounted.
async fn granted_needs(input: Input, ctx: &Context) -> Result<(Input, CommandNeeds), Fault> {
    let needs = input.needs();
    check_needs(&needs, &ctx.needs)?;
    if input.outside.is_empty() && input.credentials().is_empty() {
        return Ok((input, CommandNeeds { needs, ..CommandNeeds::default() }));
    }
    let looking = ctx.clone();
    let look = move || {
        let found = outside::found(&looking, &input);
        (input, found)
    };
    let found = tokio::task::spawn_blocking(look).await;
    let (input, found) =
        found.map_err(|_| Fault::Internal("the paths were not looked at".into()))?;
    let found = found.map_err(Fault::Argument)?;
    if let Some(path) = found.outside.iter().find(|path| !ctx.outside.contains(path)) {
        return Err(Fault::argument(format!(
            "outside: `{path}` was not granted to this command: what lies there is another place now than when \
             it was approved; call again"
        )));
    }
    let not_granted = |one: &&Credential| !ctx.granted_credentials.contains(one);
    match found.credentials.iter().find(not_granted) {
        None => Ok((input, found)),
        Some(Credential { name, .. }) => Err(Fault::argument(format!(
            "needs {}{name} was not granted to this command: do without it, or say to the person what it is for",
            credentials::PREFIX
        ))),
    }
}

/// Refuses a command that names a need that was not granted before the command started.
fn check_needs(needs: &[Need], granted: &[Need]) -> Result<(), Fault> {
    match needs.iter().find(|need| !granted.contains(need)) {
        None => Ok(()),
        Some(need) => Err(Fault::argument(format!(
            "needs {} was not granted to this command: do without it, or say to the person what it is for",
            need.word()
        ))),
    }
}

/// The view of a command of this Pod.
pub(crate) fn view(ctx: &Context, needs: &CommandNeeds) -> CommandView {
    let CommandNeeds { needs, outside, agent, names, .. } = needs;
    let outside = &outside.iter().chain(agent).cloned().collect::<Vec<_>>();
    let needs = &sorted(needs.iter().copied().chain(agent.is_some().then_some(Need::Outside)));
    let person = UserPaths { env: &ctx.env };
    let (scope, given, own, others) = (&ctx.scope, &ctx.given, &ctx.own, &ctx.others);
    let (isolation, limits, outputs) = (ctx.isolation, ctx.command_limits, ctx.outputs.as_path());
    let (outputs, private) = (Some(outputs), Some(ctx.private.as_path()));
    let mut view = CommandView::new(&ViewInputs {
        scope,
        given,
        person,
        own,
        needs,
        outside,
        names,
        others,
        outputs,
        private,
        isolation,
        limits,
    });
    let job = |path| Hole { path, level: Level::Read, why: Why::Job };
    view.holes.extend(ctx.jobs.written().into_iter().map(job));
    view
}

/// Error texts that suggest that the sandbox caused a failure.
const WALLS: [&str; 8] = [
    "no new privileges",
    "Permission denied",
    "permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Device or resource busy",
    "EACCES",
    "EPERM",
];

/// Error texts of programs that find no network.
const NO_NETWORK: [&str; 11] = [
    "Temporary failure in name resolution",
    "Name or service not known",
    "Network is unreachable",
    "No matching distribution found",
    "Could not resolve",
    "could not resolve",
    "Couldn't resolve",
    "dns error",
    "no such host",
    "EAI_AGAIN",
    "ENOTFOUND",
];
/// Error texts of a change of mode, owner or group, and words of programs that make one.
const REFUSED: [&str; 2] = ["Operation not permitted", "Invalid argument"];
const OWNERS_AND_MODES: [&str; 9] = [
    "acl_set",
    "changing group",
    "changing ownership",
    "chmod",
    "permissions",
    "set_acl",
    "setfacl",
    "temporary file",
    "writable by group",
];
/// Error texts of programs that lack a token or a key.
const NO_CREDENTIAL: [&str; 7] = [
    "Permission denied (publickey",
    "Host key verification failed",
    "could not read Username",
    "could not read Password",
    "Authentication failed",
    "gh auth login",
    "401 Unauthorized",
];
/// Names of this machine, as programs write them.
const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Adds what the sandbox does not confine here, and after a failure that it may have caused, the needs to ask for; `run` says
/// how the command gets them.
fn note(output: &mut Output, ended: &Ended, ctx: &Context, needs: &[Need], run: &str) {
    let Some(confinement) = &ended.confinement else { return };
    let mut lines = Vec::new();
    if confinement.word != Confined::Enforced {
        lines.push(format!("[{}]", confinement.text()));
    }
    let failed = !matches!(ended.outcome, Outcome::Exited(0));
    let content = output.content.as_deref().unwrap_or("");
    let says = |texts: &[&str]| texts.iter().any(|text| content.contains(text));
    if !needs.contains(&Need::Network) && says(&NO_NETWORK) {
        // A pipe hides that the program in front of it failed.
        lines.push(format!(
            "[this command had no network; if it needs one, {run} with needs: [\"network\"] and a reason]"
        ));
    } else if let Some(hint) = ctx.credentials.hint(&ctx.granted_credentials)
        && failed
        && says(&NO_CREDENTIAL)
    {
        lines.push(hint);
    } else if failed && (says(&WALLS) || misses_outside(ctx, content)) {
        lines.push(hint(&ctx.scope, needs, run));
        let cost = confinement.cost.iter().take(COSTS);
        lines.extend(cost.map(|cost| format!("[not possible here: {cost}]")));
    }
    let refuses = |line: &str, texts: &[&str]| texts.iter().any(|text| line.contains(text));
    let is_refused = |line: &str| refuses(line, &REFUSED) && refuses(line, &OWNERS_AND_MODES);
    if content.lines().any(is_refused) {
        lines.push(format!(
            "[commands set no set-user-ID and no set-group-ID bit, as core.sharedRepository of git wants, and give no file, \
             also not in an access control list, another owner or another group than your first one; {run} with needs does not change that]"
        ));
    }
    lines.extend(left_by_git(content));
    let is_held = |line: &str| refuses(line, &MOVED) && line.contains("Device or resource busy");
    let keeps_tree = !needs.contains(&Need::Git) && content.lines().any(is_held);
    lines.extend(keeps_tree.then(|| {
        format!(
            "[a repository or working tree is not moved or removed as a whole, because its settings are guarded: {run} \
             with needs: [\"git\"] and a reason]"
        )
    }));
    let keeps_settings = !needs.contains(&Need::Git) && says(&SETTINGS_REFUSED);
    lines.extend(keeps_settings.then(|| {
        format!(
            "[git could not change its settings, because they are guarded: {run} with needs: [\"git\"] and a reason]"
        )
    }));
    let (said, limit) = limit_met(ended, content, ctx);
    lines.extend(said);
    if ended.outcome == Outcome::Signalled(KILLED) {
        lines.push(OUT_OF_MEMORY.to_owned());
    }
    for line in lines {
        append(output, &line);
    }
    output.limit = limit;
}

/// What git says of a guarded file that it cannot replace, before it ends with 0.
const NOT_REPLACED: &str = "error: unable to unlink old '";
/// What git says where it cannot change a guarded `config`, also as a step of a command that goes on and ends with 0.
const SETTINGS_REFUSED: [&str; 2] = ["could not write config file ", "could not lock config file "];
/// What programs say that move or remove a directory.
const MOVED: [&str; 4] = ["cannot move", "cannot remove", "failed to delete", "failed to move"];
/// The most of these files that a line names.
const FILES: usize = 5;

/// A line about guarded files that a checkout, merge or stash of git left as they were: a commit of everything would take
/// back what the other branch has.
fn left_by_git(content: &str) -> Option<String> {
    let refused = content.lines().filter(|line| WALLS.iter().any(|wall| line.contains(wall)));
    let left = refused.filter_map(|line| line.strip_prefix(NOT_REPLACED)?.split('\'').next());
    let left = left.take(FILES).collect::<Vec<_>>().join(", ");
    (!left.is_empty()).then(|| {
        format!(
            "[git left {left} as it was, because it is guarded. `git add -A` or `git commit -a` would now take back what the \
             other branch has there: run the git command again with the file in outside and a reason, or ask the person]"
        )
    })
}

/// The line of the result about a limit that the helper saw the command meet, or that its output
/// suggests; and the limit, if it is certain enough to show on the row of the Pod.
fn limit_met(ended: &Ended, content: &str, ctx: &Context) -> (Option<String>, Option<LimitMet>) {
    let line = |what: &str, met: &LimitMet| {
        Some(format!("[{what}: {} ([limits] in config.toml)]", met.sentence))
    };
    if let Some(met) = &ended.limit {
        return (line("the command met a limit", met), Some(met.clone()));
    }
    let failed = ended.outcome != Outcome::Exited(0);
    let limits = &ctx.command_limits;
    let aborted = || {
        let met = limits
            .met(LimitKind::Memory, ctx.isolation)
            .filter(|_| ABORTED.contains(&ended.outcome));
        met.map(|limit| LimitHint { limit, trust: Trust::Possible })
    };
    let Some(hint) = limits.limit_hint(content, failed, ctx.isolation).or_else(aborted) else {
        return (None, None);
    };
    let said = line("a program may have met a limit", &hint.limit);
    (said, (hint.trust == Trust::Likely).then_some(hint.limit))
}

/// How a command ends whose program aborts itself, as many do without a word when they get no memory.
const ABORTED: [Outcome; 2] = [Outcome::Signalled(6), Outcome::Exited(128 + 6)];

/// Error texts of programs that miss a path.
const MISSING: [&str; 6] = [
    ": not found",
    "Cannot find module",
    "No such file or directory",
    "alternate object path",
    "does not appear to be a git repository",
    "does not exist",
];

/// Whether a program reported a missing path outside the scope: in namespaces other paths do not
/// exist. Judged by the text alone, because the model must not learn whether the path exists
/// outside.
fn misses_outside(ctx: &Context, content: &str) -> bool {
    let lines = content.lines().filter(|line| MISSING.iter().any(|text| line.contains(text)));
    let words = lines.flat_map(|line| line.split([' ', '\'', '"', '`', ':', ',', '(', ')']));
    let mut paths = words.filter(|word| ["/", "../", "~/"].iter().any(|p| word.starts_with(p)));
    paths.any(|word| {
        let home = ctx.env.get("HOME").map_or("/", String::as_str);
        let path = word.strip_prefix("~/").map(|rest| Path::new(home).join(rest));
        let path = files::lexical(&ctx.cwd.join(path.unwrap_or_else(|| word.into())));
        ctx.scope.permission(&path).is_none()
    })
}

/// The signal with which the kernel ends a program when memory runs out.
const KILLED: i32 = 9;
const OUT_OF_MEMORY: &str = "[the kernel or another program killed it; when the machine runs out of \
memory commands are the first that end]";

/// Costs named in a result.
const COSTS: usize = 5;

/// A hint for a command that the sandbox may have stopped: names only the needs that the call
/// lacked and that could help.
fn hint(scope: &Scope, had: &[Need], run: &str) -> String {
    let confined = match (had.contains(&Need::Outside), had.contains(&Need::Network)) {
        (false, false) => "confined to its scope, without network",
        (false, true) => "confined to its scope",
        (true, false) => "confined to its scope and the paths that it names, without network",
        (true, true) => "confined to its scope and the paths that it names",
    };
    let gives = |need: &Need| match need {
        Need::Outside => true,
        need => !had.contains(need) && needless(scope, &[*need]).is_none(),
    };
    let named = |need: Need| match need {
        Need::Outside if had.contains(&need) => "further paths in outside".into(),
        Need::Outside => "[\"outside\"] and the paths in outside".into(),
        need => format!("[\"{}\"]", need.word()),
    };
    let more: Vec<String> = Need::ALL.into_iter().filter(gives).map(named).collect();
    let more = more.join(" or ");
    format!(
        "[this command was {confined}; if that stopped it, {run} with needs: {more} and a reason]"
    )
}

/// Why these needs of a command would grant it nothing in this scope.
pub fn needless(scope: &Scope, needs: &[Need]) -> Option<String> {
    let nothing = needs.contains(&Need::Git) && !needs.contains(&Need::Outside);
    (nothing && !writes_git(scope)).then(|| {
        "needs git opens nothing here, because your scope has no write on a repository; run the \
         command without needs git, and leave what changes the repository to whoever may write it"
            .into()
    })
}

/// Whether a call of Bash starts a command in the background.
pub fn in_background(arguments: &str) -> bool {
    input::parse::<Input>("Bash", arguments).is_ok_and(|input| input.background)
}

/// Whether a command succeeded, or runs in the background, by the summary of its result.
pub fn succeeded(summary: &str) -> bool {
    summary.starts_with("Exit 0 ") || summary.ends_with(jobs::RUNS)
}

fn result(ended: &Ended, limit: Duration, took: Duration, content: Option<String>) -> Output {
    let time = format!("{:.1} s", took.as_secs_f64());
    let nothing = if content.is_none() { ", no output" } else { "" };
    let mut output = match ended.outcome {
        Outcome::Exited(code) => Output::line(format!("Exit {code} after {time}{nothing}")),
        Outcome::Signalled(signal) => {
            Output::line(format!("Ended by signal {signal} after {time}{nothing}"))
        }
        Outcome::TimedOut => {
            let limit = limit.as_secs();
            Output::failed(&Fault::Execution(format!("timed out after {limit} s{nothing}")))
        }
        Outcome::AtLimit => Output::failed(&Fault::Execution(format!(
            "ended after {time}: it met a limit{nothing}"
        ))),
        Outcome::Cancelled => {
            Output::failed(&Fault::Execution(format!("cancelled after {time}{nothing}")))
        }
    };
    output.content = content;
    remarks(&mut output, &ended.undone);
    remarks(&mut output, lost(&ended.lost).as_slice());
    name(&mut output, "ended what was still running", &ended.left_over);
    name(&mut output, "could not be ended and still runs", &ended.stuck);
    output
}

/// The result of a command that ran in the background, with the end of its output.
pub(crate) fn ended_in_background(
    ended: &Ended,
    took: Duration,
    end: Option<String>,
    ctx: &Context,
) -> Output {
    let mut output = result(ended, jobs::NO_LIMIT, took, end);
    // In the background it can have no needs.
    note(&mut output, ended, ctx, &[], "run it in the foreground");
    output
}

/// The sentence about files that a command left in the home directory.
fn lost(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| {
        let names: Vec<String> = names.iter().map(|name| format!("~/{name}")).collect();
        format!(
            "what the command left in the home directory is gone: {}; only the scope, /tmp and caches are kept",
            names.join(", ")
        )
    })
}

/// The most characters of a remark in a summary.
const REMARK: usize = 120;

/// Adds the sentences about guarded files to the content, and the beginning of the first to the
/// summary, which is all that a person sees of a folded call.
fn remarks(output: &mut Output, sentences: &[String]) {
    let Some(first) = sentences.first() else { return };
    let what = SafeText::brief(first.split("; ").next().unwrap_or_default(), REMARK);
    output.summary.push_str(&format!("; {what}"));
    if let more @ 1.. = sentences.len() - 1 {
        output.summary.push_str(&format!(", and {more} more such"));
    }
    // A name in them may hold anything, also what looks like another sentence.
    for sentence in sentences {
        append(output, &format!("[{}]", SafeText::spelled(sentence.as_str())));
    }
}

/// Counts the processes in the summary and names them at the end of the content.
fn name(output: &mut Output, what: &str, processes: &[String]) {
    if processes.is_empty() {
        return;
    }
    let counted = match processes.len() {
        1 => "1 process".to_owned(),
        many => format!("{many} processes"),
    };
    output.summary.push_str(&format!("; {what}: {counted}"));
    append(output, &format!("[{what}: {}]", processes.join(", ")));
}

/// Adds a line of yoi at the end of the content.
fn append(output: &mut Output, line: &str) {
    let content = output.content.get_or_insert_default();
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(line);
    content.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::{Permission, Rule};

    #[test]
    fn a_command_that_failed_at_a_wall_reads_only_of_needs_that_could_help() {
        let scope = |permission| Scope { allow: vec![Rule::new("/w", permission)], deny: vec![] };
        let named = |permission, had: &[Need]| {
            let hint = hint(&scope(permission), had, "run it");
            Need::ALL.map(|need| hint.contains(&format!("[\"{}\"]", need.word())))
        };
        assert_eq!(named(Permission::Write, &[]), [true, true, true]);
        assert_eq!(named(Permission::Read, &[]), [true, false, true]);
        assert_eq!(named(Permission::Write, &[Need::Git, Need::Network]), [false, false, true]);
        let all = hint(&scope(Permission::Write), &Need::ALL, "run it");
        assert!(all.contains("with needs: further paths in outside"), "{all}");
    }
}
