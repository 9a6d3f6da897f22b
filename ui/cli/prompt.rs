//! The text of a message, from the arguments and from standard input.

use crate::console;
use crate::headless::{Exit, Failure};
use crate::verb::send::INPUT;
use rustix::fs::FileType;
use std::io::Read as _;
use yoi::protocol::Segment;
use yoi::text::SafeText;

/// The longest text that is read from standard input, in bytes.
const MOST: u64 = 32 * 1024 * 1024;

/// The input of a run: the prompt, followed by the piped text as one block. The prompt `-` is read from
/// standard input itself.
pub fn whole(prompt: &str) -> Result<Vec<Segment>, Failure> {
    if prompt == "-" {
        return Ok(vec![text(not_empty(read_input()?)?)]);
    }
    let prompt = not_empty(prompt.to_owned())?;
    let piped = if is_piped() { read_input()? } else { String::new() };
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

fn read_input() -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes);
    read.map_err(|e| Failure::new(Exit::Failed, format!("cannot read the standard input: {e}")))?;
    if bytes.len() as u64 > MOST {
        let limit = MOST / 1024 / 1024;
        let message =
            format!("the standard input is longer than {limit} MiB: give the pod a file to read");
        return Err(Failure::usage(message));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
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
