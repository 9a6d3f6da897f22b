//! Texts in JSON that are checked and measured, and not kept.

use crate::protocol::piece::Escape;

/// A text that was passed over.
#[derive(Debug, PartialEq, Eq)]
pub struct Passed<'l> {
    /// The length of the text, in bytes of UTF-8.
    pub bytes: u64,
    /// What stands behind its closing quote.
    pub behind: &'l [u8],
}

/// Passes over a text whose opening quote stands before `json`. `None` where a JSON reader would
/// refuse it, and where it has a `\u` escape for half of a surrogate pair: a JSON reader has to read
/// such a text.
pub fn text(json: &[u8]) -> Option<Passed<'_>> {
    let (mut at, mut left_out) = (0, 0);
    loop {
        at = next_special(json, at);
        match json.get(at)? {
            b'"' => break,
            b'\\' => {
                let Escape::Character { length, bytes } = Escape::at(&json[at..])? else {
                    return None;
                };
                at += length;
                left_out += length - bytes;
            }
            _ => return None,
        }
    }
    std::str::from_utf8(&json[..at]).ok()?;
    Some(Passed { bytes: (at - left_out) as u64, behind: &json[at + 1..] })
}

/// Where the next quote, backslash or control character is; the end where there is none. Eight bytes
/// at a time.
fn next_special(json: &[u8], mut at: usize) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The lowest high bit that is set stands in a byte that is smaller; bits above it may be wrong.
    let below = |eight: u64, limit: u64| eight.wrapping_sub(EACH * limit) & !eight & HIGH;
    while let Some(eight) = json.get(at..).and_then(<[u8]>::first_chunk) {
        let eight = u64::from_le_bytes(*eight);
        let quotes = below(eight ^ (EACH * u64::from(b'"')), 1);
        let backslashes = below(eight ^ (EACH * u64::from(b'\\')), 1);
        let found = below(eight, 0x20) | quotes | backslashes;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    let rest = json.get(at..).unwrap_or_default();
    at + rest.iter().position(is_special).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As a JSON reader reads the text and goes on behind it.
    fn by_serde(json: &[u8]) -> Option<Passed<'_>> {
        let mut whole = vec![b'"'];
        whole.extend_from_slice(json);
        let mut texts = serde_json::Deserializer::from_slice(&whole).into_iter::<String>();
        let bytes = texts.next()?.ok()?.len() as u64;
        Some(Passed { bytes, behind: &json[texts.byte_offset() - 1..] })
    }

    fn part() -> impl Strategy<Value = Vec<u8>> {
        let ours = any::<String>().prop_map(|text| {
            let json = serde_json::to_string(&text).unwrap();
            json.as_bytes()[1..json.len() - 1].to_vec()
        });
        prop_oneof![
            6 => ours,
            2 => "[a-z ]{0,20}".prop_map(String::into_bytes),
            1 => "\\\\[\"\\\\/bfnrtux0]".prop_map(String::into_bytes),
            1 => "\\\\u[0-9a-fA-Fg]{4}".prop_map(String::into_bytes),
            1 => prop::collection::vec(any::<u8>(), 0..3),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn a_text_is_passed_over_as_a_json_reader_reads_it(
            parts in prop::collection::vec(part(), 0..6),
            is_closed in prop::bool::weighted(0.9),
        ) {
            let mut json = parts.concat();
            json.extend_from_slice(if is_closed { b"\",\"more\":1" } else { b"" });
            let passed = text(&json);
            // A text with halves of surrogate pairs may be left to the JSON reader.
            if passed.is_some() || memchr::memmem::find(&json, b"\\u").is_none() {
                prop_assert_eq!(passed, by_serde(&json));
            }
        }
    }
}
