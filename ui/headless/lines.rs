//! The line front end: every line of standard input is a message, or a verb if it begins with a colon.
//! At the end of the input it waits for the runs under way.

use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::LineClient;
use crate::headless::line_runner::{LineRunner, Next};
use std::io::BufRead as _;
use tokio::sync::mpsc;

/// Lines of input that are read ahead; the reading waits when there are more.
const AHEAD: usize = 4;

/// Reads until the end of the input or `:quit`. A refused line is reported and does not end the reading;
/// the first refusal decides the exit code.
pub async fn lines(client: &mut LineClient, runner: &mut LineRunner<'_>) -> Result<(), Failure> {
    let mut first_failure = None;
    loop {
        let input = runner.input.get_or_insert_with(input);
        let Some(line) = client.while_listening(input.recv()).await? else { break };
        let line = line.map_err(|e| {
            Failure::new(Exit::Failed, format!("cannot read the standard input: {e}"))
        })?;
        match runner.take(client, &line).await {
            Ok(Next::GoOn) => {}
            Ok(Next::Leave) => break,
            Err(failure) if matches!(failure.exit, Exit::Signal(_)) => return Err(failure),
            Err(failure) => {
                client.printer.note(&failure.message);
                first_failure.get_or_insert(failure.exit);
            }
        }
    }
    client.inbox.input_ended(runner.unanswered());
    runner.finish(client).await?;
    match first_failure {
        // Its sentence has been printed already.
        Some(exit) => Err(Failure::new(exit, String::new())),
        None => Ok(()),
    }
}

/// The lines of standard input, read by a thread of its own: a read cannot be cancelled, and the program
/// must be able to end while one is pending.
pub fn input() -> mpsc::Receiver<std::io::Result<String>> {
    let (lines, read) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if lines.blocking_send(line).is_err() {
                return;
            }
        }
    });
    read
}
