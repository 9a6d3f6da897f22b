//! Names and ids: parsed once where they enter, and valid ever after.

use crate::text::SafeText;
use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::{GeneralCategory, GeneralCategoryGroup};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use unicode_segmentation::UnicodeSegmentation as _;
use uuid::Uuid;

/// A Pod's name: 1 to 64 bytes of letters, marks and digits of any script, `.`, `_`, `-`; first a
/// letter or digit, nothing that leaves no mark on the screen, and none of the reserved words. It is
/// held in the composed form (NFC). Two names that differ only in case name the same Pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PodName(String);

/// The text that was offered as a Pod name and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid pod name: {0} ({why})", why = self.why())]
pub struct InvalidName(pub String);

impl InvalidName {
    /// The reason why the text is not a name.
    fn why(&self) -> String {
        if RESERVED.contains(&folded(&self.0).as_str()) {
            return format!("{} mean something else", RESERVED.join(", "));
        }
        format!(
            "a name has letters, digits, `.`, `_`, `-`, begins with one of the first two, and has at most {MAX_NAME} bytes"
        )
    }
}

/// Names that mean something else wherever a Pod may be named.
const RESERVED: [&str; 6] = ["broker", "broadcast", "self", "host", "user", "agent"];
/// The longest name, in bytes.
pub const MAX_NAME: usize = 64;

impl PodName {
    /// Reads a name in either form of Unicode; an invalid one is returned inside the error.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        let name = composed(text);
        let valid = (1..=MAX_NAME).contains(&name.len())
            && name.chars().next().is_some_and(begins_name)
            && name.chars().all(is_of_name)
            && !RESERVED.contains(&folded(&name).as_str());
        if valid { Ok(Self(name.into_owned())) } else { Err(InvalidName(text.to_owned())) }
    }

    /// The nearest valid name to any text, such as a directory's: other characters become `-`, and
    /// what nothing is left of becomes `pod`.
    pub fn from_directory(text: &str) -> Self {
        let mapped: String =
            composed(text).chars().map(|c| if is_of_name(c) { c } else { '-' }).collect();
        let start = mapped.trim_start_matches(|c: char| !begins_name(c));
        let cut = cut(start.trim_end_matches(is_punctuation), MAX_NAME);
        let cut = cut.trim_end_matches(is_punctuation);
        Self::parse(cut).unwrap_or_else(|_| Self(format!("pod-{cut}").trim_end_matches('-').into()))
    }

    /// The `n`th alternative when a default name is taken: `app`, `app-2`, `app-3` …
    pub fn numbered(&self, n: u32) -> Self {
        let suffix = format!("-{n}");
        Self(format!("{}{suffix}", cut(&self.0, MAX_NAME - suffix.len())))
    }

    /// The name as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name in the form under which it is unique.
    pub fn key(&self) -> String {
        folded(&self.0)
    }
}

/// The composed form: what a file system gives decomposed is the same name.
fn composed(text: &str) -> Cow<'_, str> {
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

/// A text without its case, in one character for each (the simple case folding of Unicode); also
/// for the name of a record that cannot be read.
pub fn folded(text: &str) -> String {
    text.chars().map(fold).collect()
}

/// Upper case first: the two lower forms of sigma are one letter. A character without a counterpart
/// of one character stays, as does the dotless i, which is another letter.
fn fold(c: char) -> char {
    let one = |mut to: &mut dyn Iterator<Item = char>| match ((&mut to).next(), to.next()) {
        (Some(c), None) => Some(c),
        _ => None,
    };
    if c == 'ı' {
        return c;
    }
    let upper = one(&mut c.to_uppercase()).unwrap_or(c);
    one(&mut upper.to_lowercase()).unwrap_or(c)
}

/// The text up to `bytes` bytes, whole characters as a person sees them.
fn cut(text: &str, bytes: usize) -> &str {
    let ends = text.grapheme_indices(true).map(|(at, cluster)| at + cluster.len());
    let end = ends.take_while(|end| *end <= bytes).last().unwrap_or(0);
    &text[..end]
}

fn is_punctuation(c: char) -> bool {
    matches!(c, '.' | '_' | '-')
}

fn begins_name(c: char) -> bool {
    is_of(c, GeneralCategoryGroup::Letter) || is_of(c, GeneralCategoryGroup::DecimalNumber)
}

fn is_of_name(c: char) -> bool {
    is_punctuation(c) || begins_name(c) || is_of(c, GeneralCategoryGroup::Mark)
}

/// Whether a character is of this group and leaves a mark on the screen.
fn is_of(c: char, group: GeneralCategoryGroup) -> bool {
    let mut bytes = [0; 4];
    let text: &str = c.encode_utf8(&mut bytes);
    group.contains(CodePointMapData::<GeneralCategory>::new().get(c))
        && SafeText::spelled(text).as_str() == text
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

impl EntryId {
    /// The id behind those of all entries that were made until this millisecond, since the Unix epoch.
    pub fn last_at(millis: u64) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &[u8::MAX; 10]).into_uuid())
    }
}

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
        let long = "日".repeat(21);
        for good in [
            "a",
            "app-2",
            "A.b_c-9",
            &"x".repeat(64),
            "日本",
            "検査-2",
            "Zürich",
            "हिन्दी",
            "١٢",
            &long,
        ] {
            assert_eq!(PodName::parse(good).map(|n| n.to_string()), Ok(good.to_owned()));
        }
        let long = "日".repeat(22);
        for bad in ["", "-a", ".a", "a/b", "a b", "host", "Self", "ſelf", "../x", &long, "☃", "a✓"]
        {
            assert_eq!(PodName::parse(bad), Err(InvalidName(bad.to_owned())));
        }
    }

    #[test]
    fn no_character_of_a_name_is_invisible_or_private() {
        for c in ['\u{200d}', '\u{202e}', '\u{ad}', '\u{34f}', '\u{115f}', '\u{3164}', '\u{fe0f}'] {
            assert!(PodName::parse(&format!("a{c}b")).is_err(), "{c:?}");
        }
        for c in ['\u{e000}', '\u{f0000}', '\u{feff}', '\u{378}', '\u{85}', '\u{3000}', '\u{2028}']
        {
            assert!(PodName::parse(&format!("a{c}b")).is_err(), "{c:?}");
        }
        assert!(PodName::parse("\u{301}a").is_err(), "a mark has nothing before it");
    }

    #[test]
    fn a_name_is_the_same_in_both_forms_of_unicode_and_in_any_case() {
        let (composed, decomposed) = ("Caf\u{e9}", "Cafe\u{301}");
        assert_eq!(PodName::parse(decomposed), PodName::parse(composed));
        assert_eq!(PodName::from_directory(decomposed).as_str(), composed);
        let key = |text: &str| PodName::parse(text).unwrap().key();
        for (one, other) in [
            ("App", "aPP"),
            ("ÜBER", "über"),
            ("ΣΟΦΌΣ", "σοφός"),
            ("Москва", "МОСКВА"),
            ("STRAẞE", "straße"),
        ] {
            assert_eq!(key(one), key(other));
        }
        for (one, other) in [("ı", "i"), ("straße", "strasse"), ("é", "e"), ("あ", "ア")] {
            assert_ne!(key(one), key(other));
        }
        assert_eq!(key("Plain-ASCII.9_z"), "plain-ascii.9_z");
    }

    #[test]
    fn every_directory_name_maps_to_a_valid_name() {
        for (dir, expected) in [
            ("日本", "日本"),
            ("日本 語!", "日本-語"),
            ("हिन्दी", "हिन्दी"),
            ("👩‍👩‍👧 家", "家"),
            ("a日", "a日"),
            ("é", "é"),
            ("", "pod"),
            ("host", "pod-host"),
            ("--", "pod"),
            (".git", "git"),
            ("my app", "my-app"),
        ] {
            assert_eq!(PodName::from_directory(dir).as_str(), expected);
        }
        for dir in ["y", "日", "é", "e\u{301}\u{323}", "नि", "👍", "a."] {
            for n in [1, 20, 33, 64, 300] {
                let name = PodName::from_directory(&dir.repeat(n));
                assert_eq!(PodName::parse(name.as_str()), Ok(name.clone()), "from {dir:?}");
                let numbered = name.numbered(1234);
                assert_eq!(PodName::parse(numbered.as_str()), Ok(numbered.clone()));
                assert!(numbered.as_str().ends_with("-1234"));
                let whole = numbered.as_str().trim_end_matches("-1234");
                let clusters = |text: &str| text.graphemes(true).count();
                let shared = clusters(name.as_str()).min(clusters(whole));
                let same = name.as_str().graphemes(true).take(shared).collect::<String>();
                assert_eq!(same, whole, "a character is whole");
            }
        }
    }
}
