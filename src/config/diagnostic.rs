//! A sentence about a place in a file: what every error in a settings file, keymap, theme or
//! script looks like.

use crate::protocol::SettingsMistake;
use std::fmt;
use std::path::{Path, PathBuf};

/// What is wrong, and where. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub file: PathBuf,
    pub line: usize,
    pub column: usize,
    pub message: String,
}

impl Diagnostic {
    /// About the byte `at` of a file's text.
    pub fn at(file: &Path, text: &str, at: usize, message: impl Into<String>) -> Self {
        let (line, column) = line_and_column(text, at);
        Self { file: file.into(), line, column, message: message.into() }
    }

    /// About the place a TOML error names.
    pub fn of_toml(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let at = error.span().map_or(0, |span| span.start);
        let message = without_value(error.message()).replace('\n', "; ");
        Self::at(file, text, at, message)
    }

    /// The mistake as people read it; `in_use` says which value is used instead. The sentence begins with the line and
    /// the key, and the directory of the file stands at its end: a row that is too narrow for all of it shows what to
    /// correct.
    pub fn with_value_in_use(&self, in_use: &str) -> SettingsMistake {
        let Self { file, line, column, message } = self;
        let name = file.file_name().unwrap_or(file.as_os_str()).display();
        let dir = file.parent().unwrap_or(file).display();
        let text = format!("{name}:{line}:{column}: {message}; {in_use} (in {dir})");
        SettingsMistake { text, about: message.clone(), stops_runs: false }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, message } = self;
        write!(f, "{}:{line}:{column}: {message}", file.display())
    }
}

impl std::error::Error for Diagnostic {}

/// Where a byte of a text stands, both from 1; past the end is the end.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// The message of a parser without the text or number of the file that it repeats: it may be a secret. The word that is
/// none of a list of words is repeated.
pub fn without_value(message: &str) -> String {
    let repeats = ["invalid type: ", "invalid value: "];
    let begin = repeats.iter().find_map(|begin| Some((begin, message.strip_prefix(begin)?)));
    let Some((begin, (found, expected))) =
        begin.and_then(|(begin, rest)| Some((begin, rest.rsplit_once(", expected ")?)))
    else {
        return crate::trace::redact(message).into_owned();
    };
    // What kind of value was found stands before the value.
    let kind = found.split(['"', '`']).next().unwrap_or_default();
    format!("{}, expected {expected}", format!("{begin}{kind}").trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_parser_repeats_no_value_of_a_file() {
        #[derive(Debug, serde::Deserialize)]
        #[expect(dead_code, reason = "only the errors count")]
        struct Read {
            map: Option<std::collections::BTreeMap<String, String>>,
            kind: Option<Kind>,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Kind {
            One,
            Two,
        }
        for (text, expected) in [
            (r#"{"map": "hun, expected ter2"}"#, "invalid type: string, expected a map"),
            (r#"{"map": {"KEY": 4711}}"#, "invalid type: integer, expected a string"),
            (r#"{"map": ["hunter2"]}"#, "invalid type: sequence, expected a map"),
            (r#"{"kind": "oen"}"#, "unknown variant `oen`, expected `one` or `two`"),
        ] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            let error = serde_json::from_value::<Read>(value).unwrap_err().to_string();
            assert_eq!(without_value(&error), expected);
            let error = serde_json::from_str::<Read>(text).unwrap_err().to_string();
            assert!(without_value(&error).starts_with(expected), "{error}");
        }
        assert_eq!(without_value("missing field `a`"), "missing field `a`");
    }

    #[test]
    fn a_place_is_counted_in_lines_and_characters_from_one() {
        assert_eq!(line_and_column("", 0), (1, 1));
        assert_eq!(line_and_column("a\nbc", 3), (2, 2));
        assert_eq!(line_and_column("日本\n語x", 10), (2, 2));
        assert_eq!(line_and_column("ab", 99), (1, 3));
        assert_eq!(line_and_column("日", 1), (1, 1));
    }

    #[test]
    fn a_diagnostic_reads_file_line_column_sentence() {
        let diagnostic = Diagnostic::at(Path::new("/c/config.toml"), "a\nb", 2, "no such key");
        assert_eq!(diagnostic.to_string(), "/c/config.toml:2:1: no such key");
    }
}
