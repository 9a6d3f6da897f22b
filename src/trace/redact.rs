//! Replaces what is, or looks like, a secret: registered values, key blocks, passwords in
//! addresses, tokens with a known beginning, and values of fields whose names say it. It rather
//! replaces a word too many than one too few.

use crate::trace::secrets;
use std::borrow::Cow;

/// What stands in the place of a secret.
pub const MARK: &str = "[secret]";

/// How tokens of well-known services begin, and how many characters follow at least.
const BEGINNINGS: &[(&str, usize)] = &[
    ("sk-", 8),
    ("sk_live_", 8),
    ("sk_test_", 8),
    ("rk_live_", 8),
    ("pk_live_", 8),
    ("ghp_", 8),
    ("gho_", 8),
    ("ghu_", 8),
    ("ghs_", 8),
    ("ghr_", 8),
    ("github_pat_", 8),
    ("glpat-", 8),
    ("xoxb-", 8),
    ("xoxp-", 8),
    ("xoxa-", 8),
    ("xoxr-", 8),
    ("xoxs-", 8),
    ("xapp-", 8),
    ("AKIA", 12),
    ("ASIA", 12),
    ("AIza", 20),
    ("ya29.", 8),
    ("GOCSPX-", 8),
    ("npm_", 16),
    ("pypi-", 16),
    ("hf_", 16),
    ("gsk_", 16),
    ("xai-", 16),
    ("r8_", 16),
    ("dop_v1_", 16),
    ("SG.", 16),
    ("eyJ", 16),
    ("AGE-SECRET-KEY-", 8),
    ("tskey-", 8),
    ("shpat_", 8),
    ("hvs.", 8),
    ("nvapi-", 16),
    ("lin_api_", 8),
];
/// Parts of a field's name that say that its value is a secret, in lower case without separators.
const FIELDS: &[&str] = &[
    "authorization",
    "apikey",
    "accesskey",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "token",
    "cookie",
    "credential",
    "privatekey",
    "signature",
    "bearer",
];
/// Fields whose names end like that count tokens, they are none: `max_tokens`, `token_count`.
const COUNTS: &[&str] = &["tokens", "tokencount", "tokenlimit"];
/// Words with which the sentence of an error begins behind the name of a field.
const SENTENCES: &str = "a an and any at authentication authorization bad base64 but can cannot check could denied disabled does \
                         empty error expected expires expired extra failed field for format found from has have if in incorrect \
                         input invalid is it key length malformed may mismatch missing must needs no not of only or please \
                         provided rejected required revoked should string the this to token too unable unauthorized unexpected \
                         unknown unrecognized unsupported use value verification was were with wrong you your";
/// Schemes that stand before a credential.
const SCHEMES: &[&str] = &["bearer ", "basic "];

/// The text with every secret replaced.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for pass in [registered, key_blocks, addresses, fields, schemes, tokens] {
        if let Some(changed) = pass(&text) {
            text = Cow::Owned(changed);
        }
    }
    text
}

/// Values that are not shown in the sentences about one server, besides what [`redact`] finds in every text.
#[derive(Clone, Debug, Default)]
pub struct Hidden(Vec<String>);

impl Hidden {
    /// Short values, paths and the like stay: they stand in many plain sentences.
    pub fn new(values: impl Iterator<Item = String>) -> Self {
        let mut values: Vec<String> = values.filter(|value| !secrets::is_harmless(value)).collect();
        // A value that contains another one is replaced whole.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self(values)
    }

    /// The text with every secret replaced.
    pub fn redact(&self, text: &str) -> String {
        let replaced = |text: String, value: &String| text.replace(value, MARK);
        redact(&self.0.iter().fold(text.to_owned(), replaced)).into_owned()
    }
}

fn registered(text: &str) -> Option<String> {
    let mut changed: Option<String> = None;
    secrets::with_values(|value| {
        let now = changed.as_deref().unwrap_or(text);
        if now.contains(value) {
            changed = Some(now.replace(value, MARK));
        }
    });
    changed
}

/// Blocks such as `-----BEGIN OPENSSH PRIVATE KEY-----`, also one whose end is missing and one
/// whose newlines are spelt out.
fn key_blocks(text: &str) -> Option<String> {
    const BEGIN: &str = "-----BEGIN ";
    replace(text, |rest| {
        let label = rest.strip_prefix(BEGIN)?.split("-----").next()?;
        if !label.contains("PRIVATE KEY") {
            return None;
        }
        let end = format!("-----END {label}-----");
        Some((0, rest.find(&end).map_or(rest.len(), |at| at + end.len())))
    })
}

/// The user and password of an address: `https://me:word@host`.
fn addresses(text: &str) -> Option<String> {
    const SCHEME_END: &str = "://";
    replace(text, |rest| {
        let inside = rest.strip_prefix(SCHEME_END)?;
        let end = inside
            .find(|c: char| {
                c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '\\')
            })
            .unwrap_or(inside.len());
        let at = inside[..end].rfind('@').filter(|at| *at > 0)?;
        Some((SCHEME_END.len(), SCHEME_END.len() + at))
    })
}

/// Values of fields: `"api_key": "…"`, `password=…`, `Authorization: Bearer …`, in plain text and
/// in JSON, also JSON inside JSON.
fn fields(text: &str) -> Option<String> {
    let mut name_start = None;
    let (mut out, mut done, mut skip) = (String::new(), 0, 0);
    for (at, c) in text.char_indices() {
        if at < skip {
            continue;
        }
        match c {
            ':' | '=' => {
                let name = name_start.take().map_or("", |start| &text[start..at]);
                if let Some(kind) = secret_field(name)
                    && let Some((start, end)) = value(text, at + 1, kind)
                {
                    out.push_str(&text[done..start]);
                    out.push_str(MARK);
                    (done, skip) = (end, end);
                }
            }
            _ if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '%') => {
                name_start.get_or_insert(at);
            }
            // Between a name and its colon stand quotes, their escapes and blanks.
            '"' | '\'' | '\\' | ' ' | '`' => {
                let closes = name_start.is_some_and(|start| {
                    let rest = text[at..].trim_start_matches(['"', '\'', '\\', ' ', '`']);
                    start < at && rest.starts_with([':', '='])
                });
                if !closes {
                    name_start = None;
                }
            }
            _ => name_start = None,
        }
    }
    (done > 0).then(|| out + &text[done..])
}

/// How far the value of a secret field reaches.
#[derive(Clone, Copy)]
enum Reach {
    /// To the end of the word.
    Word,
    /// To the end of the line: headers, whose values hold blanks.
    Line,
}

fn secret_field(name: &str) -> Option<Reach> {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    if plain.is_empty() || COUNTS.iter().any(|count| plain.ends_with(count)) {
        return None;
    }
    let secret = FIELDS.iter().any(|field| plain.contains(field));
    let line = plain.ends_with("authorization") || plain.ends_with("cookie");
    match (line, secret) {
        (true, _) => Some(Reach::Line),
        (false, true) => Some(Reach::Word),
        (false, false) => None,
    }
}

/// Where the value of a field begins and ends; `None` when it is empty or replaced already.
fn value(text: &str, from: usize, reach: Reach) -> Option<(usize, usize)> {
    let rest = &text[from..];
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '>']).len();
    let rest = &rest[blanks..];
    let escapes = rest.len() - rest.trim_start_matches('\\').len();
    let quote = rest[escapes..].chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let open = if quote.is_some() { escapes + 1 } else { 0 };
    let inside = &rest[open..];
    let end = match (quote, reach) {
        (Some(quote), _) => closing(inside, quote, escapes),
        (None, Reach::Line) => inside.find(['\n', '\r', '"', '\'', '}']),
        (None, Reach::Word) => {
            // The bracket of the mark ends no word.
            let mark = if inside.starts_with(MARK) { MARK.len() } else { 0 };
            let end = inside[mark..].find(|c: char| {
                c.is_whitespace()
                    || matches!(c, '"' | '\'' | '`' | ',' | ';' | '&' | ')' | ']' | '}' | '\\')
            });
            end.map(|end| mark + end)
        }
    };
    let end = end.unwrap_or(inside.len());
    let found = inside[..end].trim();
    let plain = matches!(found, "" | "null" | "true" | "false" | "none" | "None" | "…");
    // `signature: Field required` is the sentence of an error and no value.
    let is_sentence = quote.is_none()
        && text[..from].ends_with(':')
        && text[from..].starts_with(' ')
        && matches!(reach, Reach::Word)
        && SENTENCES.split(' ').any(|word| word.eq_ignore_ascii_case(found));
    let plain = plain || is_sentence;
    let start = from + blanks + open;
    (!plain && found != MARK).then_some((start, start + end))
}

/// Where a quote closes: the first one that has as many backslashes before it as the opening one.
fn closing(text: &str, quote: char, escapes: usize) -> Option<usize> {
    let mut slashes = 0;
    for (at, c) in text.char_indices() {
        match c {
            '\\' => slashes += 1,
            _ if c == quote && slashes <= escapes => return Some(at - slashes),
            _ => slashes = 0,
        }
    }
    None
}

/// The word behind `Bearer` or `Basic`.
fn schemes(text: &str) -> Option<String> {
    words(text, |rest| {
        let scheme = SCHEMES.iter().find(|scheme| {
            rest.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
        })?;
        let length = token_length(&rest[scheme.len()..]);
        (length >= 8).then_some((scheme.len(), scheme.len() + length))
    })
}

/// Tokens with a well-known beginning, and AWS secret keys, which have none.
fn tokens(text: &str) -> Option<String> {
    words(text, |rest| {
        let length = token_length(rest);
        let known =
            |(begin, more): &(&str, usize)| rest.starts_with(begin) && length >= begin.len() + more;
        if BEGINNINGS.iter().any(known) {
            return Some((0, length));
        }
        let base64 = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/');
        let length = rest.find(|c| !base64(c)).unwrap_or(rest.len());
        is_aws_secret(&rest[..length]).then_some((0, length))
    })
}

/// Whether a run of base 64 is an AWS secret key: 40 characters that are no hash and no path.
fn is_aws_secret(word: &str) -> bool {
    let count = |is: fn(&u8) -> bool| word.bytes().filter(is).count();
    word.len() == 40
        && count(|b| *b == b'/') <= 4
        && count(u8::is_ascii_uppercase) >= 5
        && count(u8::is_ascii_lowercase) >= 5
        && count(u8::is_ascii_digit) >= 1
}

fn token_length(text: &str) -> usize {
    let part = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    text.find(|c| !part(c)).unwrap_or(text.len())
}

/// Replaces what `find` finds at the beginning of words.
fn words(text: &str, find: impl Fn(&str) -> Option<(usize, usize)>) -> Option<String> {
    let mut before = None;
    let mut starts = Vec::new();
    for (at, c) in text.char_indices() {
        let inner = before.is_some_and(|b: char| b.is_ascii_alphanumeric());
        if c.is_ascii_alphanumeric() && !inner {
            starts.push(at);
        }
        before = Some(c);
    }
    replace_at(text, starts.into_iter(), find)
}

/// Replaces what `find` finds anywhere.
fn replace(text: &str, find: impl Fn(&str) -> Option<(usize, usize)>) -> Option<String> {
    let starts = text.match_indices(['-', ':']).map(|(at, _)| at);
    replace_at(text, starts, find)
}

/// Replaces the range, relative to each start, that `find` answers for the text from there on.
fn replace_at(
    text: &str,
    starts: impl Iterator<Item = usize>,
    find: impl Fn(&str) -> Option<(usize, usize)>,
) -> Option<String> {
    let (mut out, mut done) = (String::new(), 0);
    for at in starts {
        if at < done {
            continue;
        }
        if let Some((start, end)) = find(&text[at..])
            && start < end
        {
            out.push_str(&text[done..at + start]);
            out.push_str(MARK);
            done = at + end;
        }
    }
    (done > 0).then(|| out + &text[done..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(redact(text), expected);
    }

    #[test]
    fn tokens_with_a_known_beginning_are_replaced() {
        for token in [
            "sk-ant-api03-abcdefgh",
            "ghp_0123456789abcdef",
            "github_pat_11ABCDEFG0abcdef",
            "glpat-abcdefghij",
            "xoxb-1234567890-abc",
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyA0123456789abcdefghijklmnop",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc",
        ] {
            check(&format!("read {token}, then"), &format!("read {MARK}, then"));
            check(&format!("/home/me/{token}.txt "), &format!("/home/me/{MARK} "));
        }
        let key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        check(&format!("read {key}, then"), &format!("read {MARK}, then"));
    }

    #[test]
    fn fields_are_replaced_in_plain_text_json_and_json_inside_json() {
        check("token=[secret] user=me", "token=[secret] user=me");
        check("(token=[secret])", "(token=[secret])");
        check("token=[secret]rest, x", "token=[secret], x");
        check("password=hunter2 user=me", "password=[secret] user=me");
        check(r#"{"api_key": "abc", "n": 1}"#, r#"{"api_key": "[secret]", "n": 1}"#);
        check(
            r#"{"a":"{\"token\":\"x y\",\"n\":1}"}"#,
            r#"{"a":"{\"token\":\"[secret]\",\"n\":1}"}"#,
        );
        check(r#"{"secret":"a\"b","n":1}"#, r#"{"secret":"[secret]","n":1}"#);
        check("Authorization: Digest a b\nHost: h", "Authorization: [secret]\nHost: h");
        check("set-cookie: id=1; path=/", "set-cookie: [secret]");
        check("x-api-key: abc def", "x-api-key: [secret] def");
        check("https://h/v1?access_token=abc&n=1", "https://h/v1?access_token=[secret]&n=1");
        check("client_secret = 'a b'", "client_secret = '[secret]'");
    }

    #[test]
    fn key_blocks_addresses_and_schemes_are_replaced() {
        let block = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----";
        check(&format!("a {block} b"), "a [secret] b");
        check("a -----BEGIN PRIVATE KEY-----\nMIIE", "a [secret]");
        check("postgres://me:word@h:1/db x", "postgres://[secret]@h:1/db x");
        check("https://token@h/", "https://[secret]@h/");
        check("sent bearer abcdefgh12 to", "sent bearer [secret] to");
    }

    #[test]
    fn what_is_no_secret_stays() {
        for text in [
            "max_tokens=4096 input_tokens=12",
            "a token expired: ask again",
            "commit 0123456789abcdef0123456789abcdef01234567",
            "id=019a9f3e-5b1c-7cc0-8a51-3f6f2a9d0c11",
            "https://api.example.com/v1/messages?user=me@here",
            "-----BEGIN CERTIFICATE-----\nMIIE",
            "/home/me/projects/a-long-name/src/main.rs: a basic rule",
            "key ANTHROPIC_API_KEY is set",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_registered_value_is_replaced_in_each_of_its_forms() {
        secrets::register("p\"w &registered");
        check("x p\"w &registered y", "x [secret] y");
        check(r#"{"a":"p\"w &registered"}"#, r#"{"a":"[secret]"}"#);
        check("q=p%22w%20%26registered", "q=[secret]");
    }
}
