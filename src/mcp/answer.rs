//! The answer of a server to a call, as a result for a model: text bounded and kept as the output of a command
//! is, images and files kept beside the log.

use crate::files::{self, MAX_PICTURE};
use crate::protocol::item::Image;
use crate::text::SafeText;
use crate::tools::saved_output::SavedOutput;
use crate::tools::text_limit::{blob, private_directory, size};
use crate::tools::{Context, Output};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Blocks of an answer, and images that are shown to the model.
const MAX_BLOCKS: usize = 1000;
const MAX_IMAGES: usize = 8;

/// Turns an answer into a result. Blocking.
pub fn output(answer: &Value, tool: &str, took: Duration, ctx: &Context) -> Output {
    let is_error = answer.get("isError").and_then(Value::as_bool).unwrap_or(false);
    let mut reading = Reading { ctx, text: SavedOutput::new(&ctx.outputs), images: Vec::new() };
    let blocks = answer.get("content").and_then(Value::as_array).map(Vec::as_slice);
    let blocks = blocks.unwrap_or_default();
    for block in blocks.iter().take(MAX_BLOCKS) {
        reading.block(block);
    }
    if blocks.len() > MAX_BLOCKS {
        reading.line(&format!("[{} more parts are left out]", blocks.len() - MAX_BLOCKS));
    }
    let structured = answer.get("structuredContent").filter(|value| !value.is_null());
    if let Some(structured) = structured.filter(|_| blocks.is_empty()) {
        reading.line(&structured.to_string());
    }
    let Reading { text, images, .. } = reading;
    let content = text.finish();
    let nothing = if content.is_none() && images.is_empty() { ", nothing came back" } else { "" };
    let said = if is_error { "said that it failed" } else { "answered" };
    // A server names its tools as it likes.
    let tool = SafeText::line(tool);
    let summary = format!("{tool} {said} after {:.1} s{nothing}", took.as_secs_f64());
    Output { summary, content, is_error, images, ..Output::default() }
}

struct Reading<'a> {
    ctx: &'a Context,
    text: SavedOutput,
    images: Vec<Image>,
}

impl Reading<'_> {
    fn block(&mut self, block: &Value) {
        let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "text" => self.line(text("text")),
            "image" => self.image(text("data"), text("mimeType")),
            "audio" => self.file("audio", text("data"), text("mimeType")),
            "resource" => self.resource(block.get("resource").unwrap_or(&Value::Null)),
            "resource_link" => {
                let (uri, name) = (text("uri"), text("name"));
                self.line(&format!("[resource {name}: {uri}]"));
            }
            _ => self.line("[a part of a kind that is not known was left out]"),
        }
    }

    fn line(&mut self, text: &str) {
        self.text.push(text.as_bytes());
        self.text.end_block();
    }

    fn resource(&mut self, resource: &Value) {
        let text = |key: &str| resource.get(key).and_then(Value::as_str);
        let uri = text("uri").unwrap_or("without a uri");
        if let Some(words) = text("text") {
            self.line(&format!("[resource {uri}]"));
            self.line(words);
        } else if let Some(data) = text("blob") {
            let kind = text("mimeType").unwrap_or_default();
            self.file(&format!("resource {uri}"), data, kind);
        } else {
            self.line(&format!("[resource {uri} is empty]"));
        }
    }

    /// A picture of a kind that every provider takes, by its bytes: a server may name another kind.
    fn image(&mut self, data: &str, media_type: &str) {
        let Ok(bytes) = decoded(data) else { return self.file("image", data, media_type) };
        match files::picture(&bytes) {
            Some(Ok(kind)) if self.images.len() < MAX_IMAGES => {
                match blob(&self.ctx.blobs, &bytes) {
                    Ok(blob) => self.images.push(Image { blob, media_type: kind.into() }),
                    Err(why) => self.line(&format!("[an image was left out: {why}]")),
                }
            }
            Some(Err(what)) => self.file(&format!("an {what}"), data, media_type),
            _ => self.file("image", data, media_type),
        }
    }

    /// Keeps what a model cannot be shown in a file that it can read.
    fn file(&mut self, what: &str, data: &str, media_type: &str) {
        let kept = decoded(data).and_then(|bytes| {
            let path = new_file(&self.ctx.outputs, &bytes, media_type)?;
            Ok(format!("[{what}, {}, is in {}]", size(bytes.len() as u64), path.display()))
        });
        match kept {
            Ok(line) => self.line(&line),
            Err(why) => self.line(&format!("[{what} was left out: {why}]")),
        }
    }
}

fn decoded(data: &str) -> Result<Vec<u8>, String> {
    if data.len() / 4 * 3 > MAX_PICTURE {
        return Err(format!("it is larger than {}", size(MAX_PICTURE as u64)));
    }
    STANDARD.decode(data.trim()).map_err(|_| "it is not valid base64".into())
}

fn new_file(directory: &Path, bytes: &[u8], media_type: &str) -> Result<PathBuf, String> {
    let ending = match media_type.split(';').next().unwrap_or_default() {
        "application/pdf" => "pdf",
        "application/json" => "json",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        _ => "bin",
    };
    let path = directory.join(format!("{}.{ending}", uuid::Uuid::now_v7()));
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    private_directory(directory).map_err(failed)?;
    let mut options = std::fs::OpenOptions::new();
    let file = options.write(true).create_new(true).mode(0o600).open(&path);
    file.and_then(|mut file| file.write_all(bytes)).map_err(failed)?;
    Ok(path)
}
