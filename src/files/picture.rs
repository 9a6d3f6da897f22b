//! What the bytes of a picture are. Providers refuse a request with a broken picture, and every later request
//! that holds it, so that a picture is looked at before a model gets it.

use crate::files::size;

/// The largest picture that providers accept: bytes, and pixels of a side.
pub const MAX_PICTURE: usize = 5 * 1024 * 1024;
const MAX_SIDE: usize = 8000;

/// The media type of a picture that every provider takes, or why a model is not shown it. `None` if these bytes
/// do not begin as a png, jpeg, gif or webp.
pub fn picture(bytes: &[u8]) -> Option<Result<&'static str, String>> {
    let (kind, is_whole): (_, fn(&[u8]) -> bool) = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ("image/png", png_is_whole),
        [0xff, 0xd8, 0xff, ..] => ("image/jpeg", jpeg_is_whole),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ("image/gif", gif_is_whole),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => {
            ("image/webp", webp_is_whole)
        }
        _ => return None,
    };
    let why = match imagesize::blob_size(bytes) {
        _ if bytes.len() > MAX_PICTURE => {
            let (size, limit) = (size(bytes.len() as u64), size(MAX_PICTURE as u64));
            format!("is too large: it has {size}, the limit is {limit}")
        }
        Err(_) => "is broken: its header cannot be read".into(),
        Ok(side) if side.width.min(side.height) == 0 => "is broken: it has no pixels".into(),
        Ok(side) if side.width.max(side.height) > MAX_SIDE => format!(
            "is too large: it has {} x {} pixels, the limit of a side is {MAX_SIDE}",
            side.width, side.height
        ),
        Ok(_) if !is_whole(bytes) => "is broken: its end is missing".into(),
        Ok(_) => return Some(Ok(kind)),
    };
    Some(Err(format!("{kind} that {why}")))
}

fn png_is_whole(bytes: &[u8]) -> bool {
    let mut rest = bytes.get(8..).unwrap_or_default();
    // Each chunk is its length, its name, its data and a check sum.
    while let Some(([a, b, c, d, name @ ..], after)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let Some(after) = after.get(length.saturating_add(4)..) else { return false };
        if name == b"IEND" {
            return true;
        }
        rest = after;
    }
    false
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
