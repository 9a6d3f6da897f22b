//! Write: a whole file at once.

use crate::scope::Permission;
use crate::tools::fault::Fault;
use crate::tools::put::{put, text_to_change};
use crate::tools::scoped_path::ScopedPath;
use crate::tools::{Context, Output, input};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Writes a whole file, making missing directories. A file that exists \
must be as you saw it last, as for Edit; it keeps its mode, its line ends and a \
byte order mark. For a change to a part of a file use Edit.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Path of the file.
    file_path: String,
    /// The whole new content.
    content: String,
}

pub fn write(arguments: &str, ctx: &Context, _: &CancellationToken) -> Result<Output, Fault> {
    let Input { file_path, content } = input::parse("Write", arguments)?;
    let target = ScopedPath::find(ctx, &file_path, Permission::Write)?;
    let (target, former) = if target.exists {
        let (target, found) = ScopedPath::read(ctx, &file_path, Permission::Write)?;
        (target, Some(found))
    } else {
        (target, None)
    };
    let text = match &former {
        Some(found) => text_to_change(ctx, &target, found)?.rewritten(&content),
        None => content.clone(),
    };
    let written = put(ctx, &target, former.as_ref(), &text)?;
    let did = if former.is_some() { "Overwrote" } else { "Created" };
    let (path, size) = (target.path.display(), text.len());
    let is_same = text == content;
    let kept = if is_same { "" } else { ", with its line ends and byte order mark" };
    let summary = format!("{did} {path} ({size} bytes{kept})");
    let lines = Some(written.lines);
    Ok(Output { files: vec![written.mark], content: written.note, lines, ..Output::line(summary) })
}
