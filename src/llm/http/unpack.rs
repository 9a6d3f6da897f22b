//! Bodies that a gateway compressed although no request accepts that. Their first bytes tell, whatever the headers say;
//! only a bare deflate stream has no beginning of its own.

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use std::io::{self, Write as _};

/// Makes plain bytes of the bytes of a body.
#[derive(Default)]
pub(super) enum Unpack {
    /// Nothing has come but, perhaps, the first byte.
    #[default]
    Empty,
    First(u8),
    /// The same, of a body that its headers call deflate.
    Labelled(Vec<u8>),
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>),
}

/// With what a body begins that is not compressed: events, JSON, a page.
const PLAIN: [&[u8]; 15] = [
    b"da",
    b"ev",
    b"id",
    b"re",
    b": ",
    b":\n",
    b"{\"",
    b"{\n",
    b"{ ",
    b"[{",
    b"<!",
    b"<h",
    b"\r\n",
    b"\n",
    b"\xef\xbb",
];

impl Unpack {
    /// For the body behind these headers.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let is_deflate = headers.get(CONTENT_ENCODING).is_some_and(|form| form == "deflate");
        if is_deflate { Self::Labelled(Vec::new()) } else { Self::Empty }
    }

    /// The plain bytes that these complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let is_labelled = matches!(self, Self::Labelled(_));
        let begun = match self {
            Self::Empty => Vec::new(),
            Self::First(first) => vec![*first],
            Self::Labelled(begun) => std::mem::take(begun),
            Self::Deflate(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                return Ok(std::mem::take(decoder.get_mut()));
            }
            Self::Plain => return Ok(bytes.to_vec()),
            Self::Gzip(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                return Ok(std::mem::take(decoder.get_mut()));
            }
            Self::Zlib(decoder) => {
                decoder.write_all(bytes)?;
                decoder.flush()?;
                return Ok(std::mem::take(decoder.get_mut()));
            }
        };
        let bytes = [&begun, bytes].concat();
        *self = match bytes[..] {
            [] | [_] if is_labelled => {
                *self = Self::Labelled(bytes);
                return Ok(Vec::new());
            }
            [] => return Ok(Vec::new()),
            [first] => {
                *self = Self::First(first);
                return Ok(Vec::new());
            }
            [0x1f, 0x8b, ..] => Self::Gzip(MultiGzDecoder::new(Vec::new())),
            // The first two bytes of zlib are a multiple of 31; no text of a reply begins so.
            [first @ 0x78, second, ..] if (u16::from(first) << 8 | u16::from(second)) % 31 == 0 => {
                Self::Zlib(ZlibDecoder::new(Vec::new()))
            }
            _ if is_labelled && !PLAIN.iter().any(|begin| bytes.starts_with(begin)) => {
                Self::Deflate(DeflateDecoder::new(Vec::new()))
            }
            _ => Self::Plain,
        };
        self.feed(&bytes)
    }

    /// The body ended: what was held back of it.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        match self {
            Self::First(byte) => vec![*byte],
            Self::Labelled(begun) => std::mem::take(begun),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    fn unpacked(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut unpack = Unpack::default();
        let mut plain = Vec::new();
        for piece in bytes.chunks(size) {
            plain.extend(unpack.feed(piece)?);
        }
        plain.extend(unpack.finish());
        Ok(plain)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    }

    #[test]
    fn a_compressed_body_is_read_in_pieces_of_any_size_and_a_plain_one_stays() {
        let text = "data: {\"a\": 1}\n\n".repeat(5000).into_bytes();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
        zlib.write_all(&text).unwrap();
        let two = [gzip(&text[..16]), gzip(&text[16..])].concat();
        for body in [text.clone(), gzip(&text), two, zlib.finish().unwrap()] {
            for size in [1, 7, 4096, body.len()] {
                assert_eq!(unpacked(&body, size).unwrap(), text, "{size}");
            }
        }
        for short in ["", "x", "xy"] {
            assert_eq!(unpacked(short.as_bytes(), 1).unwrap(), short.as_bytes());
        }
    }

    #[test]
    fn a_bare_deflate_stream_is_known_by_its_label_and_a_plain_body_by_its_beginning() {
        let text = "data: {\"a\": 1}\n\n".repeat(500).into_bytes();
        let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), Compression::default());
        deflate.write_all(&text).unwrap();
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(&text).unwrap();
        let headers = HeaderMap::from_iter([(CONTENT_ENCODING, "deflate".parse().unwrap())]);
        for body in [text.clone(), deflate.finish().unwrap(), zlib.finish().unwrap()] {
            for size in [1, 7, body.len()] {
                let mut unpack = Unpack::of(&headers);
                let mut plain: Vec<u8> = Vec::new();
                body.chunks(size).for_each(|piece| plain.extend(unpack.feed(piece).unwrap()));
                plain.extend(unpack.finish());
                assert_eq!(plain, text, "{size}");
            }
        }
    }

    #[test]
    fn what_was_flushed_is_there_before_the_rest_comes() {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(b"data: 1\n\n").unwrap();
        gzip.flush().unwrap();
        let first = std::mem::take(gzip.get_mut());
        assert_eq!(Unpack::default().feed(&first).unwrap(), b"data: 1\n\n");
    }

    #[test]
    fn a_damaged_body_is_an_error() {
        let mut body = gzip(b"data: 1\n\n");
        body[10] = 0xff;
        assert!(unpacked(&body, 4096).is_err());
    }
}
