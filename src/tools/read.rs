//! Read: a file as numbered lines, an image, or the names in a directory.

use crate::files::{self, Found};
use crate::protocol::FileMark;
use crate::protocol::item::Image;
use crate::scope::Permission;
use crate::tools::fault::Fault;
use crate::tools::file_text::FileText;
use crate::tools::scoped_path::ScopedPath;
use crate::tools::{Context, Output, file_kind, input, scoped_path, text_limit};
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Reads a file. Each line of text comes after its number (from 1) \
and a tab; png, jpg, gif and webp files come as images, a directory as the names in it. At most 2000 \
lines are shown by default, fewer if they are long; use offset and limit for other parts, and for a log Grep or tail first. \
Other binary files, such as a PDF, are named with a command that reads them. Read a file before you Edit it or overwrite it with Write.";

/// Lines shown when no limit is given.
const LIMIT: usize = 2000;
/// Characters shown of one line.
const LINE: usize = 2000;

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Path of the file or directory.
    file_path: String,
    /// Lines to skip from the start; 0 by default.
    offset: Option<usize>,
    /// Lines to show at most; 2000 by default.
    limit: Option<usize>,
}

pub fn read(arguments: &str, ctx: &Context, _: &CancellationToken) -> Result<Output, Fault> {
    let input: Input = input::parse("Read", arguments)?;
    let target = ScopedPath::find(ctx, &input.file_path, Permission::Read)?;
    if target.path.is_dir() {
        return directory(ctx, &target, &input);
    }
    let (target, found) = ScopedPath::read(ctx, &input.file_path, Permission::Read)?;
    let mark =
        FileMark { path: target.path.clone(), hash: text_limit::hash(&found.bytes), before: None };
    let mut output = match files::picture(&found.bytes) {
        Some(picture) => image(ctx, &target, &found, picture)?,
        None => {
            let notebook =
                || file_kind::notebook(&target.path, found.size).filter(|_| input.limit.is_none());
            let why = file_kind::not_text(&target.path, &found.bytes, found.size).or_else(notebook);
            if let Some(why) = why {
                return Err(Fault::Argument(why));
            }
            text(ctx, &target, &found, &input)?
        }
    };
    output.files.push(mark);
    Ok(output)
}

/// The names in a directory, each on a line, without those that the scope hides.
fn directory(ctx: &Context, target: &ScopedPath, input: &Input) -> Result<Output, Fault> {
    let path = target.path.display();
    let shown = |name: &String| {
        let entry = target.path.join(name.trim_end_matches('/'));
        scoped_path::readable(ctx, &entry) || scoped_path::reaches(ctx, &entry)
    };
    let names: Vec<String> = target.names()?.into_iter().filter(shown).collect();
    let (total, offset) = (names.len(), input.offset.unwrap_or(0));
    let room = ctx.max_output.saturating_sub(100);
    let (mut content, mut listed) = (String::new(), 0);
    for name in names.iter().skip(offset).take(input.limit.unwrap_or(LIMIT)) {
        let line = format!("{}\n", text_limit::name(name));
        if content.len() + line.len() > room {
            break;
        }
        content.push_str(&line);
        listed += 1;
    }
    let rest = total.saturating_sub(offset + listed);
    if rest > 0 {
        let _ = write!(content, "[{rest} more; continue with offset {}]", offset + listed);
    }
    if total == 0 {
        content.push_str("(empty directory)");
    }
    Ok(Output::with(format!("Listed {listed} of {total} entries in directory {path}"), content))
}

fn image(
    ctx: &Context,
    target: &ScopedPath,
    found: &Found,
    picture: Result<&str, String>,
) -> Result<Output, Fault> {
    let (path, size) = (target.path.display(), text_limit::size(found.bytes.len() as u64));
    let kind = picture.map_err(|what| Fault::Argument(format!("{path} is an {what}")))?;
    let blob = text_limit::blob(&ctx.blobs, &found.bytes)?;
    let images = vec![Image { blob, media_type: kind.into() }];
    Ok(Output { images, ..Output::line(format!("Read image {path} ({kind}, {size})")) })
}

fn text(ctx: &Context, target: &ScopedPath, found: &Found, input: &Input) -> Result<Output, Fault> {
    let path = target.path.display();
    let file = FileText::of(&found.bytes);
    let text = file.plain();
    let total = text.lines().count();
    let offset = input.offset.unwrap_or(0);
    if offset > 0 && offset >= total {
        let text = format!("offset {offset} is past the end: {path} has {total} line(s)");
        return Err(Fault::argument(text));
    }
    let limit = input.limit.unwrap_or(LIMIT);
    let (mut content, shown) = numbered(text.lines().skip(offset).take(limit), offset, ctx);
    let mut summary = format!("Read {shown} line(s) from {path}");
    if 0 < shown && shown < total {
        let _ = write!(summary, " ({}-{} of {total})", offset + 1, offset + shown);
    }
    if let Some(encoding) = file.encoding {
        let _ = write!(summary, ", in {encoding}");
        content.insert_str(
            0,
            &format!("[this file is in {encoding}; Write and Edit cannot change it]\n"),
        );
    }
    if offset + shown < total {
        let rest = total - offset - shown;
        let _ = write!(content, "[{rest} more line(s); continue with offset {}]", offset + shown);
    }
    if total == 0 {
        content.push_str("(empty file)");
    }
    Ok(Output::with(summary, content))
}

/// Numbers as many lines as fit into a result, at least one; the text, and how many lines it has.
fn numbered<'a>(
    lines: impl Iterator<Item = &'a str>,
    offset: usize,
    ctx: &Context,
) -> (String, usize) {
    // The note that says how to continue needs the rest.
    let room = ctx.max_output.saturating_sub(100);
    let (mut content, mut shown) = (String::new(), 0);
    for line in lines {
        let line = numbered_line(offset + shown + 1, line);
        if shown > 0 && content.len() + line.len() > room {
            break;
        }
        content.push_str(&line);
        shown += 1;
    }
    (content, shown)
}

/// One line as Read shows it: number, tab, text, cut if it is very long.
pub fn numbered_line(number: usize, line: &str) -> String {
    let mut text: String = line.chars().take(LINE).map(without_nul).collect();
    let rest = line.chars().skip(LINE).count();
    if rest > 0 {
        let _ = write!(text, " [{rest} more characters]");
    }
    format!("{number:>6}\t{text}\n")
}

/// Replaces NUL, which providers refuse inside a text.
fn without_nul(c: char) -> char {
    if c == '\0' { '\u{fffd}' } else { c }
}
