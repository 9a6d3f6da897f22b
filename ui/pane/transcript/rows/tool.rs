//! The rows of tool calls and their results.

use crate::pane::transcript::rows::indented;
use crate::pane::transcript::tool::{Outcome, Progress, Tool, plain_value};
use crate::pane::transcript::{clean, code, diff};
use crate::rows::{Break, Paragraph, Piece, Row, shorten};
use crate::theme::Role;
use yoi::text::SafeText;

/// Rows of output that a running command shows while it is folded.
const LIVE_ROWS: usize = 3;
/// How many bytes from the end of a running command's output these rows are taken from.
const LIVE_BYTES: usize = 4096;

/// The rows below the head of a folded tool call: the end of its output, the reason of its failure,
/// or a remark about it.
pub fn folded(tool: &Tool, cells: usize, out: &mut Vec<Row>) {
    if let Some(outcome) = &tool.outcome {
        if outcome.is_error {
            let why = clean::one_line(&outcome.summary).into_owned();
            let row = [Piece::new("  ", Role::Text), Piece::new(why, Role::Error)];
            out.push(shorten(&row, cells));
        } else if let Some(remark) = tool.remark() {
            let row = [Piece::new("  ", Role::Text), Piece::new(remark, Role::Warn)];
            out.push(shorten(&row, cells));
        }
        return;
    }
    if tool.progress != Progress::Running || tool.output.is_empty() {
        return;
    }
    let mut from = tool.output.len().saturating_sub(LIVE_BYTES);
    while !tool.output.is_char_boundary(from) {
        from += 1;
    }
    let output = clean::output(&tool.output[from..]);
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in &lines[lines.len().saturating_sub(LIVE_ROWS)..] {
        let row = [Piece::new("  ", Role::Text), Piece::new(*line, Role::Dim)];
        out.push(shorten(&row, cells));
    }
}

/// The rows below the head of an unfolded tool call: its arguments, and its result or its output so far.
pub fn unfolded(tool: &Tool, cells: usize, out: &mut Vec<Row>) {
    let failed = tool.outcome.as_ref().is_some_and(|outcome| outcome.is_error);
    let argument = |name: &str| tool.argument(name).map(|text| clean::argument(&text));
    match tool.name.as_str() {
        "Bash" if argument("command").is_some() => {
            code::command(&argument("command").unwrap_or_default(), cells, out);
        }
        "Edit" if argument("new_string").is_some() => {
            let old = argument("old_string").unwrap_or_default();
            diff::rows(&old, &argument("new_string").unwrap_or_default(), cells, out);
            if !failed {
                return;
            }
        }
        "Write" if argument("content").is_some() => {
            diff::rows("", &argument("content").unwrap_or_default(), cells, out);
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
