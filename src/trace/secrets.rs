//! The values that must never be shown: keys in the environment, in files and in requests. Each is
//! registered where the program learns it; a registered value is replaced in every line.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

/// The shortest value that is registered, in bytes: a shorter one stands in many plain words.
const SHORTEST: usize = 6;
/// The shortest text with a digit that is taken for a key wherever the settings have it, in bytes.
const LEAST_OF_KEYS: usize = 12;
/// How many values are remembered; the shortest ones are dropped when there are more.
const MOST: usize = 512;
/// Words in a variable's name that say that its value is a secret.
const SECRET_WORDS: &[&str] = &[
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PAT",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "COOKIE",
    "AUTH",
    "PGPASSWORD",
    "PGPASS",
    "DSN",
];
/// Endings of a word that say the same, for names without separators.
const SECRET_ENDINGS: &[&str] = &["TOKEN", "SECRET", "PASSWORD", "APIKEY"];

static VALUES: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Remembers a value that must never be shown. A text of several lines, such as a key block, is
/// remembered line by line.
pub fn register(value: &str) {
    for line in value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST) {
        forms(line).into_iter().for_each(add);
    }
}

/// The value as it is, and where that differs, as it stands inside a JSON text and inside an address.
pub fn forms(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned(), json_form(value), percent_form(value)];
    forms.dedup();
    forms
}

/// Remembers the values of headers and variables that settings spell out: where the name says so, and where the value is
/// none that a person would choose as a word.
pub fn register_settings(values: &BTreeMap<String, String>) {
    register_environment(values);
    let is_word = |value: &str| {
        value.len() < LEAST_OF_KEYS
            || value.contains("${")
            || !value.contains(|c: char| c.is_ascii_digit())
    };
    for value in values.values().filter(|value| !is_word(value) && !is_harmless(value)) {
        register(value);
    }
}

/// Remembers the values of all variables whose names say that they hold a secret, and the
/// passwords in addresses.
pub fn register_environment(env: &BTreeMap<String, String>) {
    for (name, value) in env {
        if is_secret_name(name) && !is_harmless(value) {
            register(value);
        }
        if let Some((_, password)) = user_and_password(value) {
            register(password);
        }
    }
}

/// Whether a variable's name says that its value is a secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if matches!(name.as_str(), "PWD" | "OLDPWD") {
        return false;
    }
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| {
        SECRET_WORDS.contains(&word) || SECRET_ENDINGS.iter().any(|end| word.ends_with(end))
    })
}

/// Calls `each` with every registered value, the longest first.
pub(super) fn with_values(mut each: impl FnMut(&str)) {
    for value in VALUES.read().unwrap_or_else(PoisonError::into_inner).iter() {
        each(value);
    }
}

fn add(value: String) {
    {
        let known = VALUES.read().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&value) {
            return;
        }
    }
    let mut values = VALUES.write().unwrap_or_else(PoisonError::into_inner);
    // A value that contains another one is replaced whole when it comes first.
    let at = values.partition_point(|other| other.len() >= value.len());
    values.insert(at, value);
    values.truncate(MOST);
}

/// Switches, numbers and paths are not secrets, whatever their variable is called: `SSH_AUTH_SOCK`,
/// `KEY_REPEAT=20`.
pub(super) fn is_harmless(value: &str) -> bool {
    let path = value.starts_with('/') && !value.contains(char::is_whitespace);
    path || value.len() < SHORTEST || matches!(value, "default" | "disabled" | "enabled")
}

/// The user and the password of an address such as `postgres://me:word@host/db`.
fn user_and_password(address: &str) -> Option<(&str, &str)> {
    let (_, rest) = address.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@')?.0.split_once(':')
}

/// The value as it stands inside a JSON text.
fn json_form(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The value as it stands inside an address.
fn percent_form(value: &str) -> String {
    let mut form = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                form.push(char::from(byte));
            }
            other => form.push_str(&format!("%{other:02X}")),
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_variables_say_whether_they_hold_a_secret() {
        for name in [
            "ANTHROPIC_API_KEY",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PGPASSWORD",
            "GITHUB_PAT",
            "OPENAI_KEY",
            "my_secret",
            "NPM_AUTH",
            "SENTRY_DSN",
            "authtoken",
            "A_TOKEN",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["PATH", "HOME", "PWD", "OLDPWD", "TOKENS", "KEYBOARD", "COMPASS", "MONKEYS"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn a_password_in_an_address_is_found() {
        assert_eq!(user_and_password("postgres://me:pw@h/db"), Some(("me", "pw")));
        assert_eq!(user_and_password("https://h/a:b@c"), None);
    }
}
