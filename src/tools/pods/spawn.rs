//! `SpawnPod`: a child of one's own.

use crate::protocol::method::SpawnPod;
use crate::protocol::{Effort, Event, Method, NewWorktree, PodName, WhileRunning};
use crate::scope::{Permission, Rule};
use crate::tools::fault::Fault;
use crate::tools::pods::{self, HostRequest, Verb};
use crate::tools::{Output, input};
use schemars::JsonSchema;
use serde::Deserialize;
use std::path::PathBuf;

pub const DESCRIPTION: &str = "Starts a child Pod: another agent that works on its own task beside \
you. It sees nothing of your conversation, so the task must say everything it needs. You lend it a \
part of your scope. Write that you lend you do not have until the child stops, and one child alone \
can have it: two that build take a directory of the build each, below the /tmp that each Pod has \
for itself. With worktree in place of scope it has a working tree of git of its own, which begins at your last commit: \
it builds and commits there beside you, and you merge its branch with git merge in your directory. Returns as soon as \
the child has its task and does not wait for the work: a notification with its last message, to \
8 kB, tells you when it ended a turn. Write to it with SendToPod, end it with StopPod.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// A new name for the child: letters and digits of any script, `.`, `_`, `-`.
    name: String,
    /// Its first message: what to do, where, and what to report when it is done.
    task: String,
    /// All that it may touch, inside your own scope: with a list it has nothing else, so name read of what it must
    /// see, too. Without one, read of all that you may read.
    #[serde(default)]
    scope: Vec<ScopeRule>,
    /// `default`, `inherit` (your own model and settings) or the name of a profile.
    profile: Option<String>,
    /// Stands in the place of all that your system prompt says under "How to work"; leave it out for
    /// coding.
    instruction: Option<String>,
    /// How much its model is to think; what the profile says, else as much as yours.
    effort: Option<Effort>,
    /// Its working directory; yours when it may read that, else its first target.
    cwd: Option<PathBuf>,
    /// In place of scope: a new working tree of the repository of your working directory, or of cwd, which you must
    /// be allowed to write whole. The name of its branch, which begins at your commit if it is new; or true for a branch
    /// with the name of the child.
    worktree: Option<Worktree>,
    /// While your commands run that may write what you lend: refuse (usual) names them, wait waits for their end, an hour at
    /// most, and end ends them first.
    running: Option<WhileRunning>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected true or the name of a branch")]
enum Worktree {
    Own(bool),
    On(String),
}

impl From<Worktree> for Option<NewWorktree> {
    fn from(asked: Worktree) -> Self {
        match asked {
            Worktree::Own(own) => own.then(NewWorktree::default),
            Worktree::On(branch) => Some(NewWorktree { branch: Some(branch) }),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct ScopeRule {
    /// A path; a relative one is meant from your working directory.
    target: PathBuf,
    /// What the child may do there; write includes read.
    permission: Access,
    /// Whether everything below the target is meant; if not, only its direct children are.
    #[serde(default = "yes")]
    recursive: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Access {
    Read,
    Write,
}

fn yes() -> bool {
    true
}

impl From<ScopeRule> for Rule {
    fn from(rule: ScopeRule) -> Self {
        let permission = match rule.permission {
            Access::Read => Permission::Read,
            Access::Write => Permission::Write,
        };
        Self { target: rule.target, permission, recursive: rule.recursive }
    }
}

pub const VERB: Verb = Verb {
    request,
    tell,
    refused: pods::plain,
    patience: pods::PATIENCE,
    late: "the host has not started it in time; ListPods shows whether it is there",
};

fn request(arguments: &str, me: &PodName) -> Result<HostRequest, Fault> {
    let Input { name, task, scope, profile, instruction, effort, cwd, worktree, running } =
        input::parse("SpawnPod", arguments)?;
    let scope = scope.into_iter().map(Rule::from).collect();
    let named = name.clone();
    let worktree = worktree.and_then(Into::into);
    let running = running.unwrap_or_default();
    let method = Method::Spawn(SpawnPod {
        name,
        task,
        scope,
        profile,
        instruction,
        effort,
        cwd,
        worktree,
        running,
    });
    Ok(HostRequest { pod: me.clone(), named, method })
}

fn tell(_named: &str, event: Event) -> Option<Output> {
    let Event::Spawned { info, socket } = event else { return None };
    let summary = format!("spawned pod `{}` listening on {}", info.name, socket.display());
    let Some(tree) = info.worktree else { return Some(Output::line(summary)) };
    let mut lines =
        vec![format!("it works in {} on the branch {}", tree.path.display(), tree.branch)];
    // Such as how the setup command of the project failed.
    lines.extend(info.notes);
    Some(Output::with(summary, lines.join("\n")))
}
