//! The rows of tool calls and their results.

use crate::rows::{Break, Paragraph, Piece, Row, shorten};
use crate::screen::pane::transcript::diff::Change;
use crate::screen::pane::transcript::rows::{NAME, indented};
use crate::screen::pane::transcript::tool::{Outcome, Progress, Tool, plain_value};
use crate::screen::pane::transcript::{clean, code, outcome};
use crate::theme::Role;
use yoi::text::SafeText;

/// Rows of output that a running command, or one that failed, shows while it is folded.
const OUTPUT_ROWS: usize = 3;
/// Rows of a change that are shown while it is folded.
const DIFF_ROWS: usize = 8;
/// Unchanged lines around a change that is unfolded.
const AROUND: usize = 3;
/// Narrower than this, the rows below a head begin below its name.
const NARROW: usize = 50;
/// How many bytes of the output of a command that failed are looked through for its error: of a longer output, only
/// the beginning comes with its entry.
const FAILED_BYTES: usize = 8 * 1024;
/// How the line of an error begins.
const ERRORS: &[&str] = &["error:", "error[", "Error:", "ERROR", "fatal:"];
/// How many bytes from the end of an output these rows are taken from.
const LIVE_BYTES: usize = 4096;

/// The rows below the head of a folded tool call: the beginning of its change, the end of its output, the reason of its
/// failure, or a remark about it.
pub fn folded(tool: &Tool, cells: usize, out: &mut Vec<Row>) {
    let Some(outcome) = &tool.outcome else {
        if tool.progress == Progress::Running {
            let from = tool.output.len().saturating_sub(LIVE_BYTES);
            let output = &tool.output[tool.output.ceil_char_boundary(from)..];
            last(&lines(&clean::output(output)), Role::Dim, cells, out);
        }
        return;
    };
    let state = outcome::state(tool, outcome);
    if outcome.is_error && state.lacks_reason {
        let why = clean::words(&outcome.summary);
        why.lines().take(OUTPUT_ROWS).for_each(|line| below(line, Role::Error, cells, out));
    } else if state.lacks_reason {
        let output = outcome.content.as_deref().unwrap_or_default();
        let is_whole = outcome.long.is_none() && output.len() <= FAILED_BYTES;
        let output = &output[..output.floor_char_boundary(FAILED_BYTES)];
        failure(&lines(&clean::output(output)), is_whole, cells, out);
    }
    if let Some(remark) = tool.remark() {
        below(&remark, Role::Warn, cells, out);
    }
    if !outcome.is_error && tool.name == "Edit" {
        let from = out.len();
        change(tool, 0, cells, out);
        let more = out.len() - from;
        if more > DIFF_ROWS + 1 {
            out.truncate(from + DIFF_ROWS);
            below(&format!("… {} more rows", more - DIFF_ROWS), Role::Dim, cells, out);
        }
    }
}

/// The lines of an output that say something.
fn lines(output: &str) -> Vec<&str> {
    output.lines().filter(|line| !line.trim().is_empty()).collect()
}

fn last(lines: &[&str], role: Role, cells: usize, out: &mut Vec<Row>) {
    let last = &lines[lines.len().saturating_sub(OUTPUT_ROWS)..];
    last.iter().for_each(|line| below(line, role, cells, out));
}

/// The lines that tell why a command failed: from its first error on, else the last ones of a whole output.
fn failure(lines: &[&str], is_whole: bool, cells: usize, out: &mut Vec<Row>) {
    let tells = |line: &&str| {
        let begins = ERRORS.iter().any(|error| line.trim_start().starts_with(error));
        begins || line.contains("panicked at ")
    };
    let first = match lines.iter().position(tells) {
        Some(first) => first,
        None if is_whole => return last(lines, Role::Text, cells, out),
        None => return,
    };
    lines[first..].iter().take(OUTPUT_ROWS).for_each(|line| below(line, Role::Text, cells, out));
}

/// One row below a head, where what the call is about begins.
fn below(line: &str, role: Role, cells: usize, out: &mut Vec<Row>) {
    let indent = if cells < NARROW { 2 } else { NAME + 2 };
    let row = [Piece::new(" ".repeat(indent), Role::Text), Piece::new(line, role)];
    out.push(shorten(&row, cells));
}

/// The change of an edit; `false` while its arguments are not whole.
fn change(tool: &Tool, around: usize, cells: usize, out: &mut Vec<Row>) -> bool {
    let (Some(old), Some(new)) = (tool.argument("old_string"), tool.argument("new_string")) else {
        return false;
    };
    let first = tool.first_line(&new);
    let are_equal = old == new;
    let (old, new) = (clean::argument(&old), clean::argument(&new));
    if old == new && !are_equal {
        below("only line ends change", Role::Dim, cells, out);
        return true;
    }
    Change { old: &old, new: &new, first, around }.rows(cells, out);
    true
}

/// The rows below the head of an unfolded tool call: its arguments, and its result or its output so far.
pub fn unfolded(tool: &Tool, cells: usize, out: &mut Vec<Row>) {
    let failed = tool.outcome.as_ref().is_some_and(|outcome| outcome.is_error);
    let argument = |name: &str| tool.argument(name).map(|text| clean::argument(&text));
    match tool.name.as_str() {
        "Bash" if argument("command").is_some() => {
            code::command(&argument("command").unwrap_or_default(), cells, out);
        }
        "Edit" if change(tool, AROUND, cells, out) => {
            if !failed {
                return;
            }
        }
        "Write" if argument("content").is_some() => {
            let new = &argument("content").unwrap_or_default();
            Change { old: "", new, first: Some(1), around: 0 }.rows(cells, out);
        }
        _ => arguments(tool, cells, out),
    }
    match &tool.outcome {
        Some(outcome) => result(outcome, cells, out),
        None if tool.output.is_empty() => {}
        None => {
            let output = clean::output(&tool.output);
            indented(output.trim_end(), Role::Dim, Break::Anywhere, cells, out);
        }
    }
}

fn arguments(tool: &Tool, cells: usize, out: &mut Vec<Row>) {
    let Some(arguments) = tool.parsed() else {
        let raw = clean::argument(&tool.arguments);
        return indented(&raw, Role::Dim, Break::Anywhere, cells, out);
    };
    let prefix = [Piece::new("  ", Role::Text)];
    let deeper = [Piece::new("    ", Role::Text)];
    for (name, value) in &arguments {
        let name = SafeText::spelled(name.as_str());
        let value = plain_value(value);
        let body = [
            Piece::new(format!("{name}: "), Role::Dim),
            Piece::new(clean::argument(value.trim_end()), Role::Code),
        ];
        Paragraph { first: &prefix, rest: &deeper, body: &body, at: Break::Words }.wrap(cells, out);
    }
}

/// The rows of a result.
pub fn result(outcome: &Outcome, cells: usize, out: &mut Vec<Row>) {
    let role = if outcome.is_error { Role::Error } else { Role::Dim };
    indented(clean::words(&outcome.summary).trim_end(), role, Break::Words, cells, out);
    if let Some(content) = &outcome.content {
        let content = clean::output(content);
        indented(content.trim_end(), Role::Text, Break::Anywhere, cells, out);
    }
    if outcome.images > 0 {
        let many = format!("{} image(s), kept beside the log", outcome.images);
        indented(&many, Role::Dim, Break::Words, cells, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_failed_shows_its_first_error_else_the_end_of_its_output() {
        let shown_of = |output: &str, is_whole| {
            let mut out = Vec::new();
            failure(&lines(output), is_whole, 80, &mut out);
            let row = |row: &Row| row.iter().map(|piece| piece.text.as_str()).collect::<String>();
            out.iter().map(|found| row(found).trim().to_owned()).collect::<Vec<_>>()
        };
        let shown = |output: &str| shown_of(output, true);
        let backtrace =
            "test a ... ok\n\nthread 'b' panicked at src/b.rs:1:\nno reply\nstack:\n 0: x\n";
        assert_eq!(shown(backtrace), ["thread 'b' panicked at src/b.rs:1:", "no reply", "stack:"]);
        assert_eq!(shown("ok\n  error: no\n"), ["error: no"]);
        assert_eq!(shown("1\n2\n\n3\n4\n"), ["2", "3", "4"]);
        assert!(shown_of("1\n2\n\n3\n4\n", false).is_empty(), "the end is not loaded");
    }
}
