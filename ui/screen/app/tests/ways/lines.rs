//! The ways without a screen.

use super::*;
use crate::headless::{Form, LineClient, LineNext, LineRunner, Output, Printer, Work};
use crate::start::Opening;
use crate::verb::words::split;
use std::io::Write;

/// Text that is written to, and can be read.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("a text").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Gives a verb in one of the ways without a screen.
pub async fn in_lines(world: &World, verb: &'static Verb, line: &str, way: Way) -> Outcome {
    let (client, events, sent) = world.recorded().await;
    let dirs = yoi::config::Dirs::find(&world.env, None).expect("directories");
    let opening = Opening { dirs, env: world.env.clone(), cwd: world.cwd() };
    let work = Work { pod: Some(name("alice")), ..Work::in_directory(world.cwd()) };
    let text = Written::default();
    let printer = Printer::over(
        Form::Plain,
        Output::over(Box::new(text.clone()), Box::new(text.clone()), true),
    );
    let mut line_client = LineClient::over(client, events, printer).await.expect("a host");
    let (yes, input) = mpsc::channel(1);
    yes.send(Ok("y".to_owned())).await.expect("room");
    let mut runner = LineRunner::new(&opening, &work).answered_by(input);
    let done = match way {
        Way::Command => runner.carry_out(&mut line_client, line, way).await,
        Way::Input => runner.take(&mut line_client, &format!(":{line}")).await,
        Way::Shell => {
            let words = split(line).expect("words").into_iter().map(|word| word.text);
            let words = ["yoi".to_owned()].into_iter().chain(words);
            let matches = crate::cli::command().try_get_matches_from(words).expect("a subcommand");
            let (_, own) = matches.subcommand().expect("a subcommand");
            let dialogue = verb.begin(own).expect("arguments");
            let done = runner.drive_for(&mut line_client, name("alice"), dialogue).await;
            done.map(|()| LineNext::GoOn)
        }
        Way::Line | Way::Palette | Way::Key => panic!("a screen"),
    };
    line_client.printer.output().flush().await;
    let mut acted = Vec::new();
    let mut said = String::from_utf8(text.0.lock().expect("a text").clone()).expect("text");
    match done {
        Ok(LineNext::Leave) => acted.push("quit"),
        Ok(LineNext::GoOn) => {}
        Err(failure) => said.push_str(&failure.message.to_string()),
    }
    let mut lines: Vec<&str> = said.lines().collect();
    let confirmation = take_confirmation(&mut lines);
    lines.retain(|line| !is_of_the_front_end(line));
    let said = lines.join("\n");
    let requests = steady_requests(&sent.lock().expect("a record"));
    Outcome { requests, confirmation, said, acted }
}

/// Takes the confirmation out of what was said; its second line and those behind it are indented.
fn take_confirmation(lines: &mut Vec<&str>) -> Option<String> {
    let last = lines.iter().position(|line| line.ends_with(" [y/N]"))?;
    let first = lines[..=last].iter().rposition(|line| !line.starts_with("  "))?;
    let asked: Vec<&str> = lines.drain(first..=last).map(str::trim_start).collect();
    asked.join("\n").strip_suffix(" [y/N]").map(str::to_owned)
}

/// What the front end says by itself: which Pod it is at, with its notes, and what that Pod answers.
fn is_of_the_front_end(line: &str) -> bool {
    let header = |pod: &&str| line.starts_with(&format!("{pod}: rehearsal"));
    ["alice", "bob", "carol"].iter().any(header)
        || ["sandbox ", "read-only: "].iter().any(|note| line.starts_with(note))
        || (!line.is_empty() && SLOW_ANSWER.contains(line))
        // The run that a decision lets go on may end before the verb has said its sentence.
        || ["Done.", "Good.", "sum"].contains(&line.trim())
        || line.trim_start().starts_with("error: denied: ")
}
