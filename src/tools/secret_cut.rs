//! Takes the values of credentials out of texts that go into the log.

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};
use std::sync::Arc;

/// The shortest value that is taken out, in bytes: a shorter one stands in many plain words.
const SHORTEST: usize = 8;

/// What is taken out, and what stands in its place. Clones share it.
#[derive(Clone, Default)]
pub struct Secrets(Arc<Vec<Secret>>);

#[derive(Clone)]
struct Secret {
    bytes: Vec<u8>,
    mark: Arc<str>,
}

impl Secrets {
    /// Adds a value of the credential of this name, line by line, in the forms in which programs write it.
    pub fn add(&mut self, name: &str, value: &str) {
        let mark: Arc<str> = format!("[credential {name}]").into();
        let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST);
        let forms = lines.flat_map(|line| {
            let encoded = [STANDARD, URL_SAFE].into_iter().flat_map(|alphabet| {
                let engine = GeneralPurpose::new(&alphabet, NO_PAD);
                [0, 1, 2].map(|before| in_base64(&engine, line.as_bytes(), before))
            });
            crate::trace::secrets::forms(line).into_iter().chain(encoded)
        });
        let all = Arc::make_mut(&mut self.0);
        all.extend(forms.map(|form| Secret { bytes: form.into_bytes(), mark: mark.clone() }));
        // One that contains another is replaced whole when it comes first.
        all.sort_by(|a, b| (b.bytes.len(), &a.bytes).cmp(&(a.bytes.len(), &b.bytes)));
        all.dedup_by(|a, b| a.bytes == b.bytes);
    }

    pub fn cut(&self) -> SecretCut {
        let begins = std::array::from_fn(|byte| {
            self.0.iter().any(|secret| usize::from(secret.bytes[0]) == byte)
        });
        SecretCut { secrets: self.0.clone(), begins, held: Vec::new() }
    }

    pub fn cut_text(&self, text: String) -> String {
        if self.0.is_empty() {
            return text;
        }
        let mut cut = self.cut();
        let mut bytes = cut.push(text.as_bytes());
        bytes.extend(cut.finish());
        // A mark replaces whole characters, so the bytes are still a text.
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The characters of base64 that a value stands for wherever this many bytes, or three more, six more …, are before it.
fn in_base64(engine: &GeneralPurpose, value: &[u8], before: usize) -> String {
    let all = engine.encode([&[0; 2][..before], value].concat());
    let bits = 8 * (before + value.len());
    all[(8 * before).div_ceil(6)..bits / 6].to_owned()
}

/// Takes secrets out of a stream, also where one is in two pieces.
pub struct SecretCut {
    secrets: Arc<Vec<Secret>>,
    /// Whether a secret begins with this byte.
    begins: [bool; 256],
    /// The last bytes that came, kept back because a secret may begin in them.
    held: Vec<u8>,
}

impl SecretCut {
    /// The stream up to where a secret may begin that is not complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        self.take(Secret::may_begin)
    }

    /// The rest.
    pub fn finish(&mut self) -> Vec<u8> {
        self.take(|_, _| false)
    }

    fn take(&mut self, waits: fn(&Secret, &[u8]) -> bool) -> Vec<u8> {
        let all = std::mem::take(&mut self.held);
        if self.secrets.is_empty() {
            return all;
        }
        let mut out = Vec::with_capacity(all.len());
        let mut rest = all.as_slice();
        while let Some(at) = rest.iter().position(|byte| self.begins[usize::from(*byte)]) {
            out.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if self.secrets.iter().any(|secret| waits(secret, rest)) {
                self.held = rest.to_owned();
                return out;
            }
            match self.secrets.iter().find(|secret| rest.starts_with(&secret.bytes)) {
                Some(secret) => {
                    out.extend_from_slice(secret.mark.as_bytes());
                    rest = &rest[secret.bytes.len()..];
                }
                None => {
                    out.push(rest[0]);
                    rest = &rest[1..];
                }
            }
        }
        out.extend_from_slice(rest);
        out
    }
}

impl Secret {
    /// Whether all that is left is the beginning of it.
    fn may_begin(&self, rest: &[u8]) -> bool {
        rest.len() < self.bytes.len() && self.bytes.starts_with(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose;

    const VALUE: &str = "ghp_abcghp_abcdefgh+/\"%ü0123456789";

    fn secrets() -> Secrets {
        let mut secrets = Secrets::default();
        secrets.add("github", VALUE);
        secrets.add("short", "1234567");
        secrets.add("longer", &format!("{VALUE}more"));
        secrets
    }

    #[test]
    fn a_value_is_taken_out_wherever_the_output_is_cut() {
        let written = format!("a{VALUE}b ghp_ab {VALUE}{VALUE} 1234567 {VALUE}moreover ghp_abc");
        let (mark, longer) = ("[credential github]", "[credential longer]");
        let seen = format!("a{mark}b ghp_ab {mark}{mark} 1234567 {longer}over ghp_abc");
        assert_eq!(secrets().cut_text(written.clone()), seen);
        for at in 0..written.len() {
            let mut cut = secrets().cut();
            let mut out = cut.push(&written.as_bytes()[..at]);
            out.extend(cut.push(&written.as_bytes()[at..]));
            out.extend(cut.finish());
            assert_eq!(String::from_utf8_lossy(&out), seen, "{at}");
        }
        let mut cut = secrets().cut();
        let mut out: Vec<u8> = written.bytes().flat_map(|byte| cut.push(&[byte])).collect();
        out.extend(cut.finish());
        assert_eq!(String::from_utf8_lossy(&out), seen);
    }

    #[test]
    fn a_value_is_taken_out_of_base64_and_of_json_and_addresses() {
        for engine in [general_purpose::STANDARD, general_purpose::URL_SAFE] {
            for before in ["", "x", "xy", "x-access-token:"] {
                let text = engine.encode(format!("{before}{VALUE}tail"));
                let seen = secrets().cut_text(format!("Basic {text}"));
                assert!(seen.contains("[credential github]"), "{seen}");
                assert!(seen.len() < 24 + 3 * (before.len() + 8), "{seen}");
            }
        }
        let json = serde_json::json!({ "token": VALUE }).to_string();
        assert_eq!(secrets().cut_text(json), r#"{"token":"[credential github]"}"#);
        let address = "h/?t=ghp_abcghp_abcdefgh%2B%2F%22%25%C3%BC0123456789";
        assert_eq!(secrets().cut_text(address.into()), "h/?t=[credential github]");
    }
}
