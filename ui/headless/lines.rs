//! The line front end: every line of standard input is a message, or a verb if it begins with a colon.
//! At the end of the input it waits for the runs under way.

use crate::headless::exit::{Exit, Failure};
use crate::headless::line_client::LineClient;
use crate::headless::line_runner::{LineRunner, Next};
use std::io::{self, BufRead};
use tokio::sync::mpsc;
use yoi::text::Decoded;

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
            Err(failure) if failure.is_signal() => return Err(failure),
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
        let mut input = std::io::stdin().lock();
        loop {
            let line = next_line(&mut input);
            if let Some(line) = line.transpose() {
                let is_last = line.is_err();
                if lines.blocking_send(line).is_ok() && !is_last {
                    continue;
                }
            }
            return;
        }
    });
    read
}

/// The next line as text, without its end; `None` at the end of the input.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if input.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    let Decoded { text, encoding, .. } = Decoded::of(&line);
    // Its line ends have two bytes, so this is a part of a line.
    if let Some(encoding) = encoding.filter(|encoding| encoding.starts_with("UTF-16")) {
        let text = format!(
            "it is in {encoding}: convert it, as in `iconv -f UTF-16 -t UTF-8 <file> | yoi --no-ui`"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(text.strip_suffix('\r').unwrap_or(text).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_in_its_encoding_and_one_in_utf_16_is_refused_by_name() {
        let mut input = b"\xef\xbb\xbfone\r\ncaf\xe9\n\nend".as_slice();
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input).expect("text") {
            lines.push(line);
        }
        assert_eq!(lines, ["one", "café", "", "end"]);
        let refused = next_line(&mut b"\xff\xfeh\0\n\0".as_slice()).expect_err("UTF-16");
        assert!(refused.to_string().contains("iconv -f UTF-16"), "{refused}");
    }
}
