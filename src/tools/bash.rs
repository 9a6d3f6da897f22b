//! Bash: a command in the working directory, watched to its end.

use crate::sandbox::{Command, Ended, Outcome, Sandbox};
use crate::tools::fault::Fault;
use crate::tools::live::Live;
use crate::tools::spill::Spill;
use crate::tools::{Context, Output, input};
use schemars::JsonSchema;
use serde::Deserialize;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Runs a command with bash -c in the working directory; standard \
input is empty, cd and variables do not last to the next call. Standard output and error come \
together: up to 80 lines and 12 KiB whole, else the last 80 lines and the path of a file with all \
of it, for Read or Grep. Everything the command started is ended when it ends, background \
processes too. To look at files, Read, Glob and Grep are better.";

const DEFAULT: u64 = 120;
const MAX: u64 = 600;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// The command line.
    command: String,
    /// Seconds after which the command is ended; 120 by default, at most 600.
    timeout: Option<u64>,
}

pub async fn bash(
    arguments: &str,
    ctx: &Context,
    cancel: &CancellationToken,
    live: &mut (dyn FnMut(String) + Send),
) -> Result<Output, Fault> {
    let input: Input = input::parse("Bash", arguments)?;
    let limit = Duration::from_secs(input.timeout.unwrap_or(DEFAULT).clamp(1, MAX));
    let command = Command {
        program: input.command,
        cwd: ctx.cwd.clone(),
        env: ctx.env.clone(),
        timeout: limit,
    };
    let sandbox = Sandbox { helper: ctx.helper.clone(), nofile: ctx.old_nofile };
    let (mut live, mut spill) = (Live::new(live), Spill::new(&ctx.outputs));
    let begun = Instant::now();
    let ended = sandbox.run(&command, cancel, |bytes| {
        live.push(bytes);
        spill.push(bytes);
    });
    let ended = ended.await.map_err(|error| Fault::Execution(error.to_string()))?;
    live.finish();
    let took = begun.elapsed();
    let content = tokio::task::spawn_blocking(move || spill.finish()).await;
    let content = content.map_err(|_| Fault::Internal("the output was lost".into()))?;
    Ok(result(&ended, limit, took, content))
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
        Outcome::Cancelled => {
            Output::failed(&Fault::Execution(format!("cancelled after {time}{nothing}")))
        }
    };
    output.content = content;
    name(&mut output, "ended what was still running", &ended.left_over);
    name(&mut output, "could not be ended and still runs", &ended.stuck);
    output
}

/// Counts the processes in the summary and names them at the end of the content.
fn name(output: &mut Output, what: &str, processes: &[String]) {
    if processes.is_empty() {
        return;
    }
    output.summary.push_str(&format!("; {what}: {} process(es)", processes.len()));
    let content = output.content.get_or_insert_default();
    if !content.is_empty() && !content.ends_with('\n') {
        content.push('\n');
    }
    content.push_str(&format!("[{what}: {}]\n", processes.join(", ")));
}
