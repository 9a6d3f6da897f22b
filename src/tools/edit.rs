//! Replaces one text in a file by another.

mod matching;

use crate::sandbox::changed_package_scripts;
use crate::scope::Permission;
use crate::tools::edit::matching::Places;
use crate::tools::fault::Fault;
use crate::tools::read::numbered_line;
use crate::tools::replace::{check_read, replace};
use crate::tools::scoped_path::{MAX_FILE, ScopedPath};
use crate::tools::{Context, Output, input, text_limit};
use schemars::JsonSchema;
use serde::Deserialize;
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
    check_read(ctx, &target, &found)?;
    let path = target.path.display();
    let Ok(text) = std::str::from_utf8(&found.bytes) else {
        return Err(Fault::argument(format!("not valid UTF-8: {path}; change it with Bash")));
    };
    let (old, new) = with_line_ends_of(text, &input);
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
    let length = text.len() - matches.len() * old + matches.len() * new.len();
    if length as u64 > MAX_FILE {
        let limit = text_limit::size(MAX_FILE);
        return Err(Fault::argument(format!(
            "{path} would become too large: the limit is {limit}"
        )));
    }
    let (changed, starts) = apply(text, &matches, old, &new);
    let mark = replace(ctx, &target, Some(&found), changed.as_bytes())?;
    let mut summary = format!("Edited {path} ({} replacement(s))", matches.len());
    if let Some(how) = how {
        summary.push_str(&format!(", {how}"));
    }
    let mut content = surroundings(&changed, &starts, new.len());
    if let Some(said) =
        changed_package_scripts(&target.path, Some(text.as_bytes()), changed.as_bytes())
    {
        content.push_str(&format!("[{said}]\n"));
    }
    Ok(Output { files: vec![mark], ..Output::with(summary, content) })
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

/// The strings with the line ends of this file: Read does not show the CR of a CRLF, so a model
/// cannot know of it. A file with both kinds is changed as the model wrote it, where that is found.
fn with_line_ends_of(text: &str, input: &Input) -> (String, String) {
    let (old, new) = (&input.old_string, &input.new_string);
    let (all, crlf) = (text.matches('\n').count(), text.matches("\r\n").count());
    let converts = crlf == all || !text.contains(old.as_str());
    if crlf == 0 || !converts || old.contains('\r') || new.contains('\r') {
        return (old.clone(), new.clone());
    }
    let with_cr = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    (with_cr(old), with_cr(new))
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
