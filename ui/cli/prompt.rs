//! The text of a message, from the arguments and from standard input.

use crate::console;
use crate::headless::{Exit, Failure};
use crate::verb::send::INPUT;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use rustix::io::Errno;
use std::time::Duration;
use yoi::protocol::Segment;
use yoi::text::{Decoded, SafeText};

/// The longest text that is read from standard input, in bytes.
const MOST: usize = 32 * 1024 * 1024;
/// The time in which the first byte or the end of a piped input must come, if a message needs no input.
const PATIENCE: Duration = Duration::from_secs(3);

/// The input of a run: the prompt, followed by the piped text as one block. The prompt `-` is read from
/// standard input itself.
pub fn whole(prompt: &str) -> Result<Vec<Segment>, Failure> {
    if prompt == "-" {
        return Ok(vec![text(not_empty(read_input()?)?)]);
    }
    let prompt = not_empty(prompt.to_owned())?;
    let piped = match is_piped() {
        true if something_comes() => read_input()?,
        true => {
            console::err(&format!(
                "no input came in {} s: going on without it (-p - waits for its end)",
                PATIENCE.as_secs()
            ));
            String::new()
        }
        false => String::new(),
    };
    if piped.trim().is_empty() {
        return Ok(vec![text(prompt)]);
    }
    Ok(vec![text(format!("{prompt}\n\n")), paste(piped)])
}

/// The words of a message, or standard input for a single `-`.
pub fn joined(words: &[String]) -> Result<Vec<Segment>, Failure> {
    Ok(vec![text(not_empty(message(words)?)?)])
}

/// As [`joined`], as one text, which may be empty.
pub fn message(words: &[String]) -> Result<String, Failure> {
    if words == [INPUT] { read_input() } else { Ok(words.join(" ")) }
}

/// Says that piped input was not sent, and what sends it: a message of `yoi send` or of -c holds none.
pub fn say_unread(to: &str) {
    if is_piped() {
        let to = SafeText::line(to);
        console::err(&format!("the piped input was not sent: `yoi send {to} -` sends it"));
    }
}

fn text(content: String) -> Segment {
    Segment::Text { content }
}

fn paste(content: String) -> Segment {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (chars, lines) = (count(content.chars().count()), count(content.lines().count()));
    Segment::Paste { id: 1, chars, lines, content }
}

fn not_empty(text: String) -> Result<String, Failure> {
    if text.trim().is_empty() { Err(Failure::usage("the message is empty")) } else { Ok(text) }
}

/// A pipe or a file; a terminal and `/dev/null` are not.
fn is_piped() -> bool {
    let kind =
        rustix::fs::fstat(rustix::stdio::stdin()).map(|s| FileType::from_raw_mode(s.st_mode));
    matches!(kind, Ok(FileType::Fifo | FileType::RegularFile | FileType::Socket))
}

/// Whether the standard input has something to read, or its end, before the patience is over: the program that
/// started this one may have left a pipe open that it never writes to.
fn something_comes() -> bool {
    let stdin = rustix::stdio::stdin();
    let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waits, Timespec::try_from(PATIENCE).ok().as_ref()) != Ok(0)
}

/// Reads the standard input to its end, and says so once if it has to wait for it.
fn read_input() -> Result<String, Failure> {
    let (mut bytes, mut piece, mut waits) = (Vec::new(), vec![0; 64 * 1024], false);
    loop {
        if !waits && !something_comes() {
            console::err("waiting for the end of the standard input");
            waits = true;
        }
        match rustix::io::read(rustix::stdio::stdin(), &mut piece) {
            Ok(0) => return read_text(&bytes),
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(Errno::INTR) => {}
            Err(e) => {
                let text = format!("cannot read the standard input: {e}");
                return Err(Failure::new(Exit::Failed, text));
            }
        }
        if bytes.len() > MOST {
            let limit = MOST / 1024 / 1024;
            return Err(Failure::usage(format!(
                "the standard input is longer than {limit} MiB: give the pod a file to read"
            )));
        }
    }
}

/// The standard input as text in its encoding.
fn read_text(bytes: &[u8]) -> Result<String, Failure> {
    let text = Decoded::of(bytes).text.into_owned();
    if text.contains('\0') {
        return Err(Failure::usage(
            "the standard input has NUL bytes, so it is not text that a model can read: convert it \
             (UTF-16 without a byte order mark: `iconv -f UTF-16LE -t UTF-8 <file> | yoi -p …`; names that end in \
             NUL: `… | tr '\\0' '\\n' | yoi -p …`), or give the pod a file to read",
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_message_are_joined() {
        let words = ["fix".to_owned(), "it".to_owned()];
        assert_eq!(joined(&words).expect("a message"), [text("fix it".into())]);
        assert!(joined(&[" ".to_owned()]).is_err());
    }

    #[test]
    fn a_paste_counts_its_characters_and_lines() {
        let expected = Segment::Paste { id: 1, chars: 4, lines: 2, content: "é\nab".into() };
        assert_eq!(paste("é\nab".into()), expected);
    }
}
