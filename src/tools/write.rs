//! Write: a whole file at once.

use crate::sandbox::changed_package_scripts;
use crate::scope::Permission;
use crate::tools::fault::Fault;
use crate::tools::replace::{check_read, replace};
use crate::tools::scoped_path::{MAX_FILE, ScopedPath};
use crate::tools::{Context, Output, input, text_limit};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

pub const DESCRIPTION: &str = "Writes a whole file, making missing directories. A file that exists \
must be as you saw it last, as for Edit; it is replaced and keeps its mode. \
For a change to a part of a file use Edit.";

#[derive(Deserialize, JsonSchema)]
pub struct Input {
    /// Path of the file.
    file_path: String,
    /// The whole new content.
    content: String,
}

pub fn write(arguments: &str, ctx: &Context, _: &CancellationToken) -> Result<Output, Fault> {
    let input: Input = input::parse("Write", arguments)?;
    let size = input.content.len();
    if size as u64 > MAX_FILE {
        let limit = text_limit::size(MAX_FILE);
        return Err(Fault::argument(format!("content is too large: the limit is {limit}")));
    }
    let target = ScopedPath::find(ctx, &input.file_path, Permission::Write)?;
    let (target, former) = if target.exists {
        let (target, found) = ScopedPath::read(ctx, &input.file_path, Permission::Write)?;
        check_read(ctx, &target, &found)?;
        (target, Some(found))
    } else {
        (target, None)
    };
    let bytes = input.content.as_bytes();
    let mark = replace(ctx, &target, former.as_ref(), bytes)?;
    let did = if former.is_some() { "Overwrote" } else { "Created" };
    let summary = format!("{did} {} ({size} bytes)", target.path.display());
    let before = former.as_ref().map(|found| found.bytes.as_slice());
    let content = changed_package_scripts(&target.path, before, bytes);
    Ok(Output { files: vec![mark], content, ..Output::line(summary) })
}
