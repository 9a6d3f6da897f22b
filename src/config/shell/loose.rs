//! The words of a line that is not read: every text that might name a program, whatever stands around it.

use crate::config::shell::programs::last_part;
use crate::config::shell::{Piece, SimpleCommand, read};

/// Words that may be commands, as far as the line shows them; `None` is a word that is known only when
/// the line runs.
type Words = Vec<Option<String>>;

/// Whether a word of a line fits, also one with a directory in front, in quotes, or between other signs.
pub fn stands(line: &str, fits: impl Fn(&str) -> bool) -> bool {
    let line = line.replace("\\\n", "");
    let bare: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let parts = |c: char| c.is_whitespace() || ";&|()<>`".contains(c);
    let signs = |c: char| c.is_whitespace() || !(c.is_alphanumeric() || "_-+.@%/".contains(c));
    let coarse = bare.split(parts).chain(line.split(parts));
    let fine = bare.split(signs).chain(line.split(signs));
    coarse
        .chain(fine)
        .filter(|word| !word.is_empty())
        .any(|word| fits(word) || fits(last_part(word)))
}

/// The words of each command that a line names, and of each that one of its words may begin.
pub fn named_commands(line: &str) -> Vec<Words> {
    match read(line) {
        Ok(commands) => commands.iter().flat_map(tails).collect(),
        Err(_) => segments(line).iter().flat_map(all_tails).collect(),
    }
}

fn tails(command: &SimpleCommand) -> Vec<Words> {
    let words: Vec<Words> = command.spelled.iter().map(|text| words(text)).collect();
    match (command.starts_another, words.last()) {
        (true, Some(last)) => words.iter().cloned().chain(all_tails(last)).collect(),
        _ => words,
    }
}

fn all_tails(words: &Words) -> Vec<Words> {
    (0..words.len().min(16)).map(|at| words[at..].to_vec()).collect()
}

fn words(text: &[Piece]) -> Words {
    let char = |piece: &Piece| match piece {
        Piece::Char(c) | Piece::Expands(c @ '~') => Some(*c),
        Piece::Blank | Piece::Expands(_) | Piece::Unknown => None,
    };
    text.split(|piece| *piece == Piece::Blank).map(|word| word.iter().map(char).collect()).collect()
}

/// The line, split where a command may begin, without quotes.
fn segments(line: &str) -> Vec<Words> {
    let line = line.replace("\\\n", "").replace("$(", "(").replace("${", "{");
    let bare: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let word = |word: &str| (!word.contains(['$', '*', '?', '['])).then(|| word.to_owned());
    let blank = |c: char| c.is_whitespace() || "<>".contains(c);
    let words = |part: &str| part.split(blank).filter(|w| !w.is_empty()).map(word).collect();
    bare.split([';', '&', '|', '(', ')', '`', '\n', '{', '}']).map(words).collect()
}
