//! The same program without a screen: lines in and out, one message with `-p`, verbs with `-c`, or
//! a host that only serves.

use crate::start::Opening;
use crate::verb::{Dialogue, Runs, Verb, Way};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use yoi::protocol::{Pattern, PodName, Segment};

mod answer;
mod approvals;
pub mod exit;
mod follow;
mod lines;
mod output;
pub mod pages;
mod run_tracker;
mod once;
mod print;
mod serve;
mod signal;
mod line_client;
mod line_runner;

pub use exit::{Exit, Failure};
pub use line_client::{Attach, LineClient};
#[cfg(test)]
pub use line_runner::{LineRunner, Next as LineNext};
pub use output::{Output, Piece};
pub use print::{Form, Printer};
pub use serve::serve;

/// What to do without a screen.
pub struct Work {
    /// Verbs to carry out first, in order.
    pub verbs: Vec<String>,
    /// One message to run to its end.
    pub prompt: Option<Vec<Segment>>,
    /// The Pod to go on with; without one, a new Pod.
    pub pod: Option<PodName>,
    /// The model of a new Pod, or the new model of `pod`.
    pub model: Option<String>,
    /// Absolute; the working directory of a new Pod.
    pub cwd: PathBuf,
    pub form: Form,
    pub unanswered: Unanswered,
    /// What is let pass that would otherwise be asked about.
    pub allow: Vec<Pattern>,
    /// Every confirmation of a verb is given.
    pub yes: bool,
}

impl Work {
    /// Nothing yet, here.
    pub fn in_directory(cwd: PathBuf) -> Self {
        Self {
            verbs: Vec::new(),
            prompt: None,
            pod: None,
            model: None,
            cwd,
            form: Form::Plain,
            unanswered: Unanswered::Wait,
            allow: Vec::new(),
            yes: false,
        }
    }
}

/// What happens to a question that nobody is there to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// It is denied at once, and the way to let it pass is said; what cannot be denied ends the
    /// run.
    End,
    /// The question waits for another screen.
    Wait,
}

/// Does the work to its end and says on standard error why it did not succeed, if it did not.
pub async fn run(opening: &Opening, work: Work) -> Exit {
    let printer = Printer::new(work.form);
    let mut client = match LineClient::open(opening, printer, Attach::OrBeTheHost).await {
        Ok(client) => client,
        Err(failure) => return say_last(&failure),
    };
    client.inbox.begin(work.allow.clone(), a_person_types(&work));
    let result = perform(&mut client, opening, &work).await;
    close(client, result).await
}

/// `yoi <verb>`: carries out one verb for the Pod of `work`. Work that it begins goes on in the host.
pub async fn one_verb(
    opening: &Opening,
    work: Work,
    verb: &Verb,
    dialogue: Box<dyn Dialogue>,
) -> Result<(), Failure> {
    let reach = match verb.runs {
        Runs::Nothing => Attach::OrBeTheHost,
        Runs::InTheBackground => Attach::OrStart,
    };
    let mut client = LineClient::open(opening, Printer::new(work.form), reach).await?;
    let mut runner = line_runner::LineRunner::new(opening, &work);
    let result = match work.pod.as_ref().map(|pod| client.find(pod).map(|info| info.name.clone())) {
        Some(Err(failure)) => Err(failure),
        Some(Ok(pod)) => runner.drive_for(&mut client, pod, dialogue).await,
        None => runner.drive(&mut client, dialogue, Way::Shell).await.map(drop),
    };
    match close(client, result).await {
        Exit::Finished => Ok(()),
        // The sentence was said.
        exit => Err(Failure::new(exit, String::new())),
    }
}

/// Whoever types lines into a terminal is there to answer.
fn a_person_types(work: &Work) -> Unanswered {
    let lines = work.prompt.is_none() && work.verbs.is_empty();
    if lines && std::io::stdin().is_terminal() { Unanswered::Wait } else { work.unanswered }
}

async fn perform(client: &mut LineClient, opening: &Opening, work: &Work) -> Result<(), Failure> {
    let mut runner = line_runner::LineRunner::new(opening, work);
    for line in &work.verbs {
        runner.carry_out(client, line, Way::Command).await?;
    }
    match &work.prompt {
        Some(input) => once::once(client, opening, work, input.clone()).await,
        None if work.verbs.is_empty() => lines::lines(client, &mut runner).await,
        None => runner.finish(client).await,
    }
}

/// Leaves the host, or ends it when it was this process; then the last sentence.
pub async fn close(client: LineClient, result: Result<(), Failure>) -> Exit {
    let left = client.leave(&result).await;
    match result.and(left) {
        Ok(()) => Exit::Finished,
        Err(failure) => say_last(&failure),
    }
}

/// The last line on standard error, and the code it ends with.
pub fn say_last(failure: &Failure) -> Exit {
    if !failure.message.is_empty() {
        crate::console::err(&format!("yoi: {}", failure.message));
    }
    failure.exit
}
