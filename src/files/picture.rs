//! What the bytes of a picture are. Providers refuse a request with a broken picture, and every later request
//! that holds it, so that a picture is looked at before a model gets it.

use crate::files::size;

/// The largest picture that providers accept: bytes, and pixels of a side.
pub const MAX_PICTURE: usize = 5 * 1024 * 1024;
const MAX_SIDE: usize = 8000;
/// What a broken picture lacks.
const NO_PIXELS: &str = "it has no pixels";
const NO_END: &str = "its end is missing";

/// The media type of a picture that every provider takes, or why a model is not shown it. `None` if these bytes
/// do not begin as a png, jpeg, gif or webp.
pub fn picture(bytes: &[u8]) -> Option<Result<&'static str, String>> {
    let no_end = |is_whole: bool| (!is_whole).then_some(NO_END);
    let (kind, fault) = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ("image/png", png_fault(bytes)),
        [0xff, 0xd8, 0xff, ..] => ("image/jpeg", no_end(jpeg_is_whole(bytes))),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => {
            ("image/gif", no_end(gif_is_whole(bytes)))
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            ("image/webp", no_end(webp_is_whole(bytes)))
        }
        _ => return None,
    };
    let why = match imagesize::blob_size(bytes) {
        _ if bytes.len() > MAX_PICTURE => {
            let (size, limit) = (size(bytes.len() as u64), size(MAX_PICTURE as u64));
            format!("is too large: it has {size}, the limit is {limit}")
        }
        Err(_) => "is broken: its header cannot be read".into(),
        Ok(side) if side.width.min(side.height) == 0 => format!("is broken: {NO_PIXELS}"),
        Ok(side) if side.width.max(side.height) > MAX_SIDE => format!(
            "is too large: it has {} x {} pixels, the limit of a side is {MAX_SIDE}",
            side.width, side.height
        ),
        Ok(_) => match fault {
            None => return Some(Ok(kind)),
            Some(fault) => format!("is broken: {fault}"),
        },
    };
    Some(Err(format!("{kind} that {why}")))
}

/// What a png lacks: its pixels, or its end.
fn png_fault(bytes: &[u8]) -> Option<&'static str> {
    let mut rest = bytes.get(8..).unwrap_or_default();
    let mut has_pixels = false;
    // Each chunk is its length, its name, its data and a check sum.
    while let Some(([a, b, c, d, name @ ..], after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some(after) = after.get(length.saturating_add(4)..) else { return Some(NO_END) };
        match name {
            b"IEND" if has_pixels => return None,
            b"IEND" => return Some(NO_PIXELS),
            _ => has_pixels |= name == b"IDAT" && length > 0,
        }
        rest = after;
    }
    Some(NO_END)
}

fn gif_is_whole(bytes: &[u8]) -> bool {
    bytes.iter().rev().find(|byte| **byte != 0) == Some(&b';')
}

fn webp_is_whole(bytes: &[u8]) -> bool {
    let size = bytes[4..8].iter().rev().fold(0, |size, byte| size << 8 | usize::from(*byte));
    bytes.len() >= size.saturating_add(8)
}

/// Whether the mark of the end follows the compressed data. The segments before it may hold a thumbnail, which
/// is a whole picture of its own.
fn jpeg_is_whole(bytes: &[u8]) -> bool {
    let mut rest = &bytes[2..];
    while let [0xff, marker, after @ ..] = rest {
        match (marker, after) {
            (0xda, data) => return memchr::memmem::find(data, b"\xff\xd9").is_some(),
            (0xff | 0x01 | 0xd0..=0xd8, _) => rest = &rest[if *marker == 0xff { 1 } else { 2 }..],
            (_, [high, low, ..]) => {
                let length = usize::from(*high) << 8 | usize::from(*low);
                rest = after.get(length..).unwrap_or_default();
            }
            _ => return false,
        }
    }
    false
}
