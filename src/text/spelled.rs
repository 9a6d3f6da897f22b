//! The spelled form of a text, for a person to judge. What leaves no mark of its own on the screen is written out,
//! and a long run of it is counted, so that it pushes nothing out of sight.

use crate::text::hidden::{self, LINE_BREAK};
use std::borrow::Cow;

/// The longest run of blanks and hidden characters that is written out in a text of one line, such as a rule.
pub const IN_A_LINE: usize = 8;
/// The same in a row of a text of several lines, where blanks indent and align.
pub const IN_A_ROW: usize = 80;

/// The spelled form, in which a run of more than `longest` characters without a mark is their number.
pub fn spelled(text: Cow<'_, str>, longest: usize) -> Cow<'_, str> {
    if !text.chars().any(hidden::is_spelled) && !text.contains(&" ".repeat(longest + 1)) {
        return text;
    }
    let mut out = String::with_capacity(text.len().min(4096) + 8);
    let mut rest: &str = &text;
    while let Some(at) = rest.find(is_markless) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|c| !is_markless(c)).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        out.push_str(before);
        match run.chars().nth(longest) {
            Some(_) => out.push_str(&counted(run)),
            None => run.chars().for_each(|c| hidden::spell(c, &mut out)),
        }
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Whether a character leaves no mark on the screen.
fn is_markless(c: char) -> bool {
    c == ' ' || hidden::is_spelled(c)
}

/// How many characters of each kind a run has: `⟨3000 blanks, 1 ⏎⟩`.
fn counted(run: &str) -> String {
    let count = |is_one: fn(char) -> bool| run.chars().filter(|c| is_one(*c)).count();
    let is_blank = |c| matches!(c, ' ' | '\t');
    let is_break = |c| c == '\n';
    let (all, blanks, breaks) = (run.chars().count(), count(is_blank), count(is_break));
    let kinds = [
        (blanks, "blanks".to_owned()),
        (breaks, LINE_BREAK.to_string()),
        (all - blanks - breaks, "hidden characters".to_owned()),
    ];
    let there = kinds.into_iter().filter(|(number, _)| *number > 0);
    let there: Vec<String> = there.map(|(number, kind)| format!("{number} {kind}")).collect();
    format!("⟨{}⟩", there.join(", "))
}
