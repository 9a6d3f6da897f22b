//! Replaces one text in a file by another.

mod matching;

use crate::scope::Permission;
use crate::text::BYTE_ORDER_MARK;
use crate::tools::edit::matching::Places;
use crate::tools::fault::Fault;
use crate::tools::file_text::LineEnds;
use crate::tools::put::{put, text_to_change};
use crate::tools::read::numbered_line;
use crate::tools::scoped_path::ScopedPath;
use crate::tools::{Context, Output, input};
use schemars::JsonSchema;
use serde::Deserialize;
use std::borrow::Cow;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Replaces a text in a file that you have Read; if it changed since \
then, Read it again, unless the result of your own command showed the change. old_string is the text as Read \
shows it, with its indentation and without the line numbers, and must occur once; give more of its \
surroundings, or set replace_all.";

/// Lines shown before and after a change.
const AROUND: usize = 3;
/// Changes shown.
const MAX_SHOWN: usize = 5;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Path of the file.
    file_path: String,
    /// The text to replace.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence instead of requiring exactly one.
    #[serde(default)]
    replace_all: bool,
}

pub fn edit(arguments: &str, ctx: &Context, _: &CancellationToken) -> Result<Output, Fault> {
    let input: Input = input::parse("Edit", arguments)?;
    refuse_useless(&input)?;
    let (target, found) = ScopedPath::read(ctx, &input.file_path, Permission::Write)?;
    let file = text_to_change(ctx, &target, &found)?;
    let path = target.path.display();
    let [old, new] =
        [&input.old_string, &input.new_string].map(|text| text.trim_start_matches(BYTE_ORDER_MARK));
    // Read shows no CR at the end of a line: a model that names one means the bytes of the file.
    let is_exact = old.contains('\r') && file.text.contains(old);
    let (text, old, new) = match is_exact || (file.ends == LineEnds::Lf && !old.contains('\r')) {
        true => (Cow::Borrowed(&*file.text), old.to_owned(), new.to_owned()),
        false => (file.plain(), old.replace("\r\n", "\n"), new.replace("\r\n", "\n")),
    };
    let text = &*text;
    let (matches, old, new, how) = match matching::find(text, &old, &new) {
        Places::Exact(places) if places.is_empty() => return Ok(not_found(text, &old, &target)),
        Places::Exact(places) if places.len() > 1 && !input.replace_all => {
            return Err(Fault::argument(format!(
                "old_string is not unique in {path}: it occurs {} times; give more of its \
                 surroundings or set replace_all",
                places.len()
            )));
        }
        Places::Exact(places) => (places, old.len(), new, None),
        Places::Nearly(place, new, how) => (vec![place.start], place.len(), new, Some(how)),
        Places::Ambiguous(count) => {
            return Err(Fault::argument(format!(
                "old_string was not found in {path}, and {count} places differ from it only in white space, \
                 quotation marks, dashes or line numbers; give more of its surroundings"
            )));
        }
    };
    let (changed, starts) = apply(text, &matches, old, &new);
    let whole = if is_exact { file.marked(&changed) } else { file.changed(&changed) };
    let written = put(ctx, &target, Some(&found), &whole)?;
    let mut summary = format!("Edited {path} ({} replacement(s))", matches.len());
    if let Some(how) = how {
        summary.push_str(&format!(", {how}"));
    }
    let mut content = surroundings(&changed, &starts, new.len());
    if let Some(said) = written.note {
        content.push_str(&format!("[{said}]\n"));
    }
    let lines = Some(written.lines);
    Ok(Output { files: vec![written.mark], lines, ..Output::with(summary, content) })
}

/// The error for a text that is not there, with the lines that are most like it.
fn not_found(text: &str, old: &str, target: &ScopedPath) -> Output {
    let path = target.path.display();
    let Some(lines) = matching::nearest(text, old) else {
        return Output::error(format!(
            "old_string was not found in {path}, and no line there is like it; look for it with Grep"
        ));
    };
    let shown = text.lines().enumerate().take(lines.end).skip(lines.start);
    let content = shown.map(|(index, line)| numbered_line(index + 1, line)).collect();
    let summary =
        format!("old_string was not found in {path}; these lines there are the most like it:");
    Output { content: Some(content), ..Output::error(summary) }
}

fn refuse_useless(input: &Input) -> Result<(), Fault> {
    if input.old_string.is_empty() {
        return Err(Fault::argument("old_string is empty; use Write for a whole file"));
    }
    if input.old_string == input.new_string {
        return Err(Fault::argument("old_string and new_string are the same"));
    }
    Ok(())
}

/// The text with the replacements, and the offset of each in it.
fn apply(text: &str, matches: &[usize], old: usize, new: &str) -> (String, Vec<usize>) {
    let (mut changed, mut starts, mut from) = (String::with_capacity(text.len()), Vec::new(), 0);
    for &at in matches {
        changed.push_str(&text[from..at]);
        starts.push(changed.len());
        changed.push_str(new);
        from = at + old;
    }
    changed.push_str(&text[from..]);
    (changed, starts)
}

/// The changed lines with a few around them, numbered; overlapping places are merged.
fn surroundings(text: &str, starts: &[usize], len: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let line_of = |at: usize| text[..at].matches('\n').count();
    let (mut shown, mut next) = (String::new(), 0);
    for &start in starts.iter().take(MAX_SHOWN) {
        let from = line_of(start).saturating_sub(AROUND).max(next);
        let to = (line_of(start + len) + AROUND + 1).min(lines.len());
        if next > 0 && from > next {
            shown.push_str("   ...\n");
        }
        for (index, line) in lines.iter().enumerate().take(to).skip(from) {
            shown.push_str(&numbered_line(index + 1, line));
        }
        next = next.max(to);
    }
    if starts.len() > MAX_SHOWN {
        shown.push_str(&format!("[{} more places]\n", starts.len() - MAX_SHOWN));
    }
    shown
}
