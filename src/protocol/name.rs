//! Names and ids: parsed once where they enter, and valid ever after.

use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A Pod's name: 1 to 64 bytes of ASCII letters, digits, `.`, `_`, `-`, first a letter or digit,
/// and none of the reserved words. Two names that differ only in case name the same Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PodName(String);

/// The text that was offered as a Pod name and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid pod name: {0}")]
pub struct InvalidName(pub String);

/// Names that mean something else wherever a Pod may be named.
const RESERVED: [&str; 6] = ["broker", "broadcast", "self", "host", "user", "agent"];
/// The longest name, in bytes.
pub const MAX_NAME: usize = 64;

impl PodName {
    /// Reads a name; an invalid one is returned inside the error.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let bytes = text.as_bytes();
        let valid = (1..=MAX_NAME).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
            && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(text));
        if valid { Ok(Self(text.to_owned())) } else { Err(InvalidName(text.to_owned())) }
    }

    /// The nearest valid name to any text, such as a directory's: foreign characters become `-`,
    /// and what nothing is left of becomes `pod`.
    pub fn from_directory(text: &str) -> Self {
        let mapped: String = text
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' })
            .collect();
        let start = mapped.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let cut = start.get(..MAX_NAME.min(start.len())).unwrap_or(start);
        Self::parse(cut).unwrap_or_else(|_| Self(format!("pod-{cut}").trim_end_matches('-').into()))
    }

    /// The `n`th alternative when a default name is taken: `app`, `app-2`, `app-3` …
    pub fn numbered(&self, n: u32) -> Self {
        let suffix = format!("-{n}");
        let keep = self.0.len().min(MAX_NAME - suffix.len());
        Self(format!("{}{suffix}", &self.0[..keep]))
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in the form under which it is unique.
    pub fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }
}

impl fmt::Display for PodName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PodName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<PodName> for String {
    fn from(name: PodName) -> Self {
        name.0
    }
}

impl std::str::FromStr for PodName {
    type Err = InvalidName;
    fn from_str(text: &str) -> Result<Self, InvalidName> {
        Self::parse(text)
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A fresh UUIDv7: later ids of one process sort after earlier ones.
            #[allow(clippy::new_without_default)]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;
            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

id!(
    /// One entry of a session log; unique, and ordered by time within a segment.
    EntryId
);
id!(
    /// One file of a session log.
    SegmentId
);
id!(
    /// All segments of one Pod's life: the directory they lie in.
    SessionId
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rule() {
        for good in ["a", "app-2", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(PodName::parse(good).map(|n| n.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "-a", ".a", "a/b", "a b", "日本", "host", "Self", "../x", &"x".repeat(65)]
        {
            assert_eq!(PodName::parse(bad), Err(InvalidName(bad.to_owned())));
        }
    }

    #[test]
    fn every_directory_name_maps_to_a_valid_name() {
        for dir in ["", "日本語", "host", "my app", "--", ".git", "é", &"y".repeat(300), "a日"]
        {
            let name = PodName::from_directory(dir);
            assert_eq!(PodName::parse(name.as_str()), Ok(name.clone()), "from {dir:?}");
            assert!(PodName::parse(name.numbered(12).as_str()).is_ok());
        }
    }
}
