//! The pictures of a conversation that its server refuses: all of them, or a single one.

use crate::config::models::Model;
use crate::llm::adjust::sayings::{NOT_TAKEN, contains_word, named_element, says};
use crate::llm::adjust::{Adjustment, Learned};
use crate::llm::{Input, Request, wire};
use crate::protocol::Item;
use crate::protocol::entry::Kept;
use crate::protocol::item::{Content, Image};
use serde_json::Value;
use std::sync::Arc;

/// What servers call pictures.
const PICTURES: [&str; 6] = ["image", "picture", "vision", "multimodal", "multi-modal", "visual"];
/// What servers whose models read only text say of the content of a message that has parts.
const TEXT_ONLY: [&str; 3] = ["must be a string", "valid string", "expected a string"];
/// The same of a part.
const TEXT_PART: &str = "should be 'text'";
/// Words about one picture that the model could read if it were another one.
const OF_ONE: [&str; 21] = [
    "format",
    "formats",
    "size",
    "png",
    "jpeg",
    "webp",
    "mime",
    "media type",
    "image type",
    "url",
    "urls",
    "process",
    "decode",
    "exceeds",
    "exceed",
    "dimension",
    "dimensions",
    "pixels",
    "too large",
    "appears to be",
    "valid",
];

/// What `words`, in lower case, refuse of the pictures in the body that was `sent`.
pub fn refused(words: &str, sent: &Value) -> Option<Refused> {
    if !has_picture(sent) {
        return None;
    }
    let has_parts =
        || named_element(words, sent).is_some_and(|message| message["content"].is_array());
    if words.contains(TEXT_PART) || says(words, &TEXT_ONLY) && has_parts() {
        return Some(Refused::All);
    }
    if !says(words, &PICTURES) {
        return None;
    }
    match OF_ONE.iter().any(|word| contains_word(words, word)) {
        true => Some(Refused::One),
        false => says(words, &NOT_TAKEN).then_some(Refused::All),
    }
}

/// The pictures that a refusal means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A picture that it does not name.
    One,
    All,
}

fn has_picture(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str);
            matches!(kind, Some("image" | "image_url" | "input_image"))
                || fields.contains_key("inlineData")
                || fields.values().any(has_picture)
        }
        Value::Array(list) => list.iter().any(has_picture),
        _ => false,
    }
}

/// The newest picture that the model has not accepted with an earlier request, and that is not left out already.
pub fn newest(request: &Request, model: &Model, known: &[Learned]) -> Option<Adjustment> {
    let origin = wire::origin(model);
    let replied = request.input.iter().rposition(|kept| kept.origin.as_ref() == Some(&origin));
    let new = &request.input[replied.map_or(0, |at| at + 1)..];
    let pictures = new.iter().rev().flat_map(|kept| kept.item.images().into_iter().rev());
    let mut left = pictures.map(|image| Adjustment::NoImage(image.blob.clone()));
    left.find(|picture| known.iter().all(|known| known.adjustment != *picture))
}

/// Takes the picture in this file out of the input: a picture without a file is sent as words.
pub fn hide(input: &mut [Input], blob: &str) {
    for kept in input {
        if kept.item.images().iter().any(|image| image.blob == blob) {
            images_of(&mut Arc::<Kept>::make_mut(kept).item)
                .into_iter()
                .filter(|image| image.blob == blob)
                .for_each(|image| image.blob.clear());
        }
    }
}

fn images_of(item: &mut Item) -> Vec<&mut Image> {
    match item {
        Item::ToolResult { images, .. } => images.iter_mut().collect(),
        Item::Message { content, .. } => {
            let images = content.iter_mut().filter_map(|part| match part {
                Content::Image(image) => Some(image),
                _ => None,
            });
            images.collect()
        }
        _ => Vec::new(),
    }
}
