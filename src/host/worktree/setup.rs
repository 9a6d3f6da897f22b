//! The setup command of a project. It runs once in each new working tree, before its Pod becomes live, as a command of that
//! Pod.

use crate::host::Shared;
use crate::host::pod::Handle;
use crate::host::rules::setup_command;
use crate::host::worktree::end_of;
use crate::protocol::Refusal;
use crate::tools::{self, CommandTime, Output};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long it may take.
const LIMIT: Duration = Duration::from_secs(600);
/// The most bytes of its output that are shown.
const SHOWN: usize = 600;

/// Runs the setup command of a Pod's workspace, if there is one. The sentence says how it ended, unless it just succeeded: a
/// person reads it.
pub(super) async fn run(shared: &Shared, pod: &Handle) -> Option<String> {
    let workspace = pod.info.borrow().workspace.clone();
    let ended = match setup_command(shared, workspace).await {
        Ok(command) => command_of(pod, command?).await,
        Err(refusal) => Err(refusal),
    };
    match ended {
        Ok(output) => how_it_ended(&output),
        Err(why) => Some(format!("the setup command could not run: {}", why.message)),
    }
}

async fn command_of(pod: &Handle, command: String) -> Result<Output, Refusal> {
    let end = CancellationToken::new();
    let _running = pod.commands.begin(format!("setup {command}"), end.clone());
    let ctx = pod.command_context().await?;
    let command_time = CommandTime { default: LIMIT, max: LIMIT };
    let ctx = tools::Context { command_time, ..ctx };
    Ok(tools::run_without_call(command, &ctx, &end).await)
}

fn how_it_ended(output: &Output) -> Option<String> {
    // What yoi says of a command stands behind a semicolon.
    if tools::succeeded(&output.summary) && !output.summary.contains(';') {
        return None;
    }
    let said = output.content.as_deref().unwrap_or_default();
    let end = match end_of(said, SHOWN) {
        "" => String::new(),
        end => format!(": {end}"),
    };
    Some(format!("the setup command: {}{end}", output.summary))
}
