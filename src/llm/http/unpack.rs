//! Bodies that a gateway compressed although no request accepts that. Their first bytes tell, whatever the headers say.

use flate2::write::{MultiGzDecoder, ZlibDecoder};
use std::io::{self, Write as _};

/// Makes plain bytes of the bytes of a body.
#[derive(Default)]
pub(super) enum Unpack {
    /// Nothing has come but, perhaps, the first byte.
    #[default]
    Empty,
    First(u8),
    Plain,
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
}

impl Unpack {
    /// The plain bytes that these complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let begun = match self {
            Self::Empty => Vec::new(),
            Self::First(first) => vec![*first],
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
            _ => Self::Plain,
        };
        self.feed(&bytes)
    }

    /// The body ended: what was held back of it.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        if let Self::First(byte) = *self { vec![byte] } else { Vec::new() }
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
