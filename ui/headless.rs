//! The program without a screen: lines in and out, one message with `-p`, verbs with `-c`, or only
//! a host.

use crate::start::{self, Opening};
use crate::verb::{self, Dialogue, Runs, Verb, Way};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use yoi::protocol::{ClientKind, Effort, Pattern, PodName, Segment};

mod answer;
mod approvals;
pub mod exit;
mod follow;
mod lines;
mod output;
pub mod run_tracker;
mod own_runs;
mod once;
mod print;
mod serve;
pub mod signal;
pub mod unseen;
mod line_client;
mod line_runner;

pub use exit::{Exit, Failure, causes, is_signalled};
pub use line_client::LineClient;
#[cfg(test)]
pub use line_runner::{LineRunner, Next as LineNext};
pub use output::{Output, Piece};
pub use print::{Form, Printer};
pub use serve::serve;

/// The work of a program without a screen.
pub struct Work {
    /// Verbs to carry out first, in order.
    pub verbs: Vec<String>,
    /// One message to run to its end.
    pub prompt: Option<Vec<Segment>>,
    /// The Pod to go on with; without one, a new Pod.
    pub pod: Option<PodName>,
    /// Whether the Pod of one message is kept like every other Pod.
    pub keep: bool,
    /// The model of a new Pod, or the new model of `pod`.
    pub model: Option<String>,
    /// The effort of a new Pod, or the new effort of `pod`.
    pub effort: Option<Effort>,
    /// Absolute; the working directory of a new Pod.
    pub cwd: PathBuf,
    pub form: Form,
    pub unanswered: Unanswered,
    /// Rules that allow calls which would otherwise need an approval.
    pub allow: Vec<Pattern>,
    /// Whether every confirmation of a verb is given.
    pub yes: bool,
}

impl Work {
    /// No work yet, in this directory.
    pub fn in_directory(cwd: PathBuf) -> Self {
        Self {
            verbs: Vec::new(),
            prompt: None,
            pod: None,
            keep: false,
            model: None,
            effort: None,
            cwd,
            form: Form::Plain,
            unanswered: Unanswered::Wait,
            allow: Vec::new(),
            yes: false,
        }
    }
}

/// The handling of an approval request that no person can decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It is denied at once, with the rule that would allow it. A Pod that needs a person for another
    /// reason ends the program.
    End,
    /// It waits until another screen decides.
    Wait,
}

/// Does the work to its end; a failure is printed on standard error.
pub async fn run(opening: &Opening, work: Work) -> Exit {
    // All lines are parsed before the first one is carried out.
    let mistake = work.verbs.iter().find_map(|line| verb::line::read(line, Way::Command).err());
    if let Some(why) = mistake {
        return say_last(&Failure::usage(why));
    }
    let printer = Printer::new(work.form);
    let mut client = match LineClient::open(opening, printer, ClientKind::Brief).await {
        Ok(client) => client,
        Err(failure) => return say_last(&failure),
    };
    let at_a_terminal = a_person_types(&work);
    if at_a_terminal {
        client.inbox.number_at_a_terminal();
    }
    if work.prompt.is_some() || !work.verbs.is_empty() {
        client.inbox.decided_elsewhere();
    }
    let unanswered = if at_a_terminal { Unanswered::Wait } else { work.unanswered };
    client.inbox.begin(work.allow.clone(), unanswered);
    let result = match client.attend().await {
        Ok(()) => perform(&mut client, opening, &work).await,
        Err(failure) => Err(failure),
    };
    close(client, result).await
}

/// `yoi <verb>`: carries out one verb for the Pod of `work`. A run that it starts continues in the host.
pub async fn one_verb(
    opening: &Opening,
    work: Work,
    verb: &Verb,
    dialogue: Box<dyn Dialogue>,
) -> Result<(), Failure> {
    let mut client = LineClient::open(opening, Printer::new(work.form), verb.client).await?;
    // A Pod takes part in the mesh only in a host that stays.
    let joins = verb.runs == Runs::Unattended && client.has_member_of_mesh();
    let _lasting = match joins {
        true => Some(start::attach_or_start(opening, ClientKind::Lasting).await?),
        false => None,
    };
    let mut runner = line_runner::LineRunner::new(opening, &work);
    let result = match work.pod.as_ref().map(|pod| client.find(pod).map(|info| info.name.clone())) {
        Some(Err(failure)) => Err(failure),
        Some(Ok(pod)) => runner.drive_for(&mut client, pod, dialogue).await,
        None => runner.drive(&mut client, dialogue, Way::Shell).await.map(drop),
    };
    let result = match result {
        Ok(()) if verb.runs == Runs::Awaited => runner.finish(&mut client).await,
        result => result,
    };
    if verb.runs == Runs::Awaited && is_signalled(&result) {
        runner.pause(&mut client).await;
    }
    match close(client, result).await {
        Exit::Finished => Ok(()),
        // Its sentence has been printed.
        exit => Err(Failure::new(exit, String::new())),
    }
}

/// Whether a person types lines at a terminal, and so can decide requests.
fn a_person_types(work: &Work) -> bool {
    work.prompt.is_none() && work.verbs.is_empty() && std::io::stdin().is_terminal()
}

async fn perform(client: &mut LineClient, opening: &Opening, work: &Work) -> Result<(), Failure> {
    let mut runner = line_runner::LineRunner::new(opening, work);
    let result = perform_with(client, &mut runner).await;
    if is_signalled(&result) {
        runner.pause(client).await;
    }
    result
}

async fn perform_with(
    client: &mut LineClient,
    runner: &mut line_runner::LineRunner<'_>,
) -> Result<(), Failure> {
    let work = runner.work;
    for line in &work.verbs {
        runner.carry_out(client, line, Way::Command).await?;
    }
    match &work.prompt {
        Some(input) => once::once(client, runner, input.clone()).await,
        None if work.verbs.is_empty() => lines::lines(client, runner).await,
        None => runner.finish(client).await,
    }
}

/// Leaves the host; then prints the last sentence.
pub async fn close(client: LineClient, result: Result<(), Failure>) -> Exit {
    let left = client.leave(&result).await;
    match result.and(left) {
        Ok(()) => Exit::Finished,
        Err(failure) => say_last(&failure),
    }
}

/// Prints the last line on standard error and returns the exit code.
pub fn say_last(failure: &Failure) -> Exit {
    if !failure.message.is_empty() {
        crate::console::err(&format!("yoi: {}", failure.message));
    }
    failure.exit
}
