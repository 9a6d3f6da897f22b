//! The ids of envelopes: the text of a UUID of any version, kept as it was written. New ones are of version 7.

use crate::protocol::now_ms;
use std::fmt;

/// The length of an id, in bytes.
const LENGTH: usize = 36;
/// Random bytes of one id.
const RANDOM: usize = 10;
/// How many ids one call to the kernel supplies with random bytes: `getrandom` returns up to 256 bytes whole.
const AT_ONCE: usize = 25;

/// The id of an envelope: 8-4-4-4-12 hexadecimal digits in any case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id([u8; LENGTH]);

impl Id {
    /// A new one.
    #[expect(clippy::new_without_default, reason = "no id is the default one")]
    pub fn new() -> Self {
        Ids::new().next()
    }

    /// `None`: the text has not the form of a UUID.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes: [u8; LENGTH] = text.as_bytes().try_into().ok()?;
        let fits = |(at, byte): (usize, &u8)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        };
        bytes.iter().enumerate().all(fits).then_some(Self(bytes))
    }

    /// The id of 32 digits without dashes, as relays of remote-pi 0.4.2 write it.
    pub(crate) fn parse_dashless(text: &str) -> Option<Self> {
        let id = uuid::Uuid::try_parse(text).ok().filter(|_| text.len() == 32)?;
        Some(Self::of(id))
    }

    pub fn as_str(&self) -> &str {
        // `parse` and `of` let only ASCII in.
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn of(id: uuid::Uuid) -> Self {
        let mut text = [0; LENGTH];
        id.hyphenated().encode_lower(&mut text);
        Self(text)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}

/// Makes ids. Random bytes are fetched for several ids at once, because a leader makes an id for each
/// acknowledgement.
pub(crate) struct Ids {
    random: [u8; RANDOM * AT_ONCE],
    used: usize,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { random: [0; RANDOM * AT_ONCE], used: AT_ONCE }
    }

    pub(crate) fn next(&mut self) -> Id {
        if self.used == AT_ONCE {
            let flags = rustix::rand::GetRandomFlags::empty();
            match rustix::rand::getrandom(&mut self.random[..], flags) {
                Ok(filled) if filled == self.random.len() => self.used = 0,
                _ => return Id::of(uuid::Uuid::now_v7()),
            }
        }
        let mut random = [0; RANDOM];
        random.copy_from_slice(&self.random[self.used * RANDOM..][..RANDOM]);
        self.used += 1;
        let id = uuid::Builder::from_unix_timestamp_millis(now_ms(), &random);
        Id::of(id.into_uuid())
    }
}
