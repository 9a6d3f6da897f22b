//! The text of a file or directory, or the image, that a message names with `@`, with the checks of Read.

use crate::files::{self, FileError, Limit};
use crate::protocol::item::Image;
use crate::scope::Permission;
use crate::text::{SafeText, without_cut_character};
use crate::tools::file_text::FileText;
use crate::tools::scoped_path::{MAX_FILE, ScopedPath};
use crate::tools::{Context, file_kind, text_limit};

/// How much of a file is attached, in bytes.
const MAX_ATTACHED: u64 = 256 * 1024;
/// How many entries of a directory are listed.
const MAX_LISTED: usize = 100;

/// What a message names.
#[derive(Debug, Default, PartialEq)]
pub struct Attachment {
    pub text: String,
    pub images: Vec<Image>,
}

/// The text of a file, the list of a directory, or an image; a path that is not absolute begins at the working
/// directory. Blocking.
pub fn attachment(path: &str, ctx: &Context) -> Result<Attachment, FileError> {
    let ctx = &ctx.canonical();
    let given = ctx.cwd.join(path).to_string_lossy().into_owned();
    let found = ScopedPath::find(ctx, &given, Permission::Read)?;
    if found.path.is_dir() {
        return Ok(Attachment { text: listed(found.names()?), images: Vec::new() });
    }
    let limit = Limit { most: MAX_FILE, head: MAX_ATTACHED };
    let (target, found) = ScopedPath::read_as_far(ctx, &given, Permission::Read, limit)?;
    if files::picture(&found.bytes).is_some() {
        return image(&given, ctx);
    }
    let notebook = || file_kind::notebook(&target.path, found.size);
    if let Some(why) = file_kind::not_text(&target.path, &found.bytes, found.size).or_else(notebook)
    {
        return Err(FileError::Refused(why));
    }
    let is_cut = found.size > MAX_ATTACHED;
    let bytes = if is_cut { without_cut_character(&found.bytes) } else { &found.bytes };
    let mut text = FileText::of(bytes).plain().into_owned();
    if is_cut {
        text.push_str(&format!("\n[cut at {MAX_ATTACHED} of {} bytes]", found.size));
    }
    Ok(Attachment { text, images: Vec::new() })
}

fn image(given: &str, ctx: &Context) -> Result<Attachment, FileError> {
    let (target, found) = ScopedPath::read(ctx, given, Permission::Read)?;
    let (path, size) = (target.path.display(), text_limit::size(found.size));
    let kind = match files::picture(&found.bytes) {
        Some(Ok(kind)) => kind,
        Some(Err(why)) => return Err(FileError::refused(format!("{path} is an {why}"))),
        None => return Err(FileError::refused(format!("{path} was an image and is none now"))),
    };
    let kept = text_limit::blob(&ctx.blobs, &found.bytes);
    let blob = kept.map_err(|why| FileError::Failed(why.to_string()))?;
    let images = vec![Image { blob, media_type: kind.into() }];
    Ok(Attachment { text: format!("[image, {kind}, {size}]"), images })
}

fn listed(names: Vec<String>) -> String {
    let more = names.len().saturating_sub(MAX_LISTED);
    let shown = names.into_iter().take(MAX_LISTED);
    let mut rows: Vec<String> = shown.map(|name| SafeText::line(name).into_string()).collect();
    if more > 0 {
        rows.push(format!("… and {more} more"));
    }
    rows.join("\n")
}
