//! The error of a model request, as one sentence: provider, address, reason, and what can be done.

use crate::config::models::Wire;
use crate::config::url::is_loopback;
use crate::llm::Failure;
use crate::llm::cause::{Cause, MAX_WAIT, codes, meaning, named_wait, own_words};
use crate::llm::http::{HTTP_PROXIES, HTTPS_PROXIES, Who};
use crate::llm::retry::passing_status;
use crate::llm::wire::{at, text, upstream_error};
use crate::protocol::now_ms;
use crate::text::SafeText;
use crate::trace::{MARK, redact};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// The most characters of a provider's own words that are shown.
pub(crate) const MAX_SHOWN: usize = 300;
/// The most characters of them that are searched for a cause.
const MAX_TEXT: usize = 4000;

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.provider, self.host)
    }
}

impl Who {
    /// The provider with the whole address, for errors that a wrong path may cause.
    fn at_url(&self) -> String {
        format!("{} at {}", self.provider, self.url)
    }
}

/// No response came back.
pub(super) fn unreachable(who: &Who, error: &reqwest::Error, connect: Duration) -> Failure {
    let proxy =
        proxy_variable(who).map_or_else(String::new, |name| format!(", and the proxy in {name}"));
    let way_out = format!("check that it runs and its base URL{proxy}");
    let no_way_there = format!("check the network and its base URL{proxy}");
    if error.is_builder() {
        return Failure::Unusable(format!("{who} cannot be asked: {}", cause(error)));
    }
    if error.is_connect() && error.is_timeout() {
        let time = seconds(connect);
        return Failure::Connect(format!("{who} took no connection within {time}: {no_way_there}"));
    }
    if !error.is_connect() {
        return cut(who, &cause(error));
    }
    if let Some(what) = tls_error(error) {
        return Failure::Connect(format!("{who} cannot be reached: {what}"));
    }
    Failure::Connect(match io_kind(error) {
        Some(io::ErrorKind::ConnectionRefused) => {
            format!("{who} refused the connection: {way_out}")
        }
        _ => format!("{who} cannot be reached ({}): {no_way_there}", cause(error)),
    })
}

/// The variable that leads requests to this address through a proxy, unless NO_PROXY excepts it.
fn proxy_variable(who: &Who) -> Option<&'static str> {
    let names = match who.url.starts_with("https:") {
        true => HTTPS_PROXIES,
        false => HTTP_PROXIES,
    };
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    names.into_iter().find(is_set).filter(|_| !is_loopback(&who.url))
}

/// Nothing came in time.
pub(super) fn silence(who: &Who, time: Duration) -> Failure {
    Failure::Timeout(format!("{who} sent nothing for {}", seconds(time)))
}

/// Only bytes came that keep the connection open.
pub(super) fn only_kept_open(who: &Who, time: Duration) -> Failure {
    Failure::Timeout(format!(
        "{who} kept the connection open and sent no answer for {}",
        seconds(time)
    ))
}

/// The answer ended too early, perhaps before it began.
pub(super) fn cut(who: &Who, cause: &str) -> Failure {
    Failure::Cut(format!("{who} broke its answer off: {}", cleaned(who, cause)))
}

/// The connection was closed in order, and the provider gave no reason for the end of its answer.
pub(super) fn unended(who: &Who) -> Failure {
    Failure::Cut(format!("{who} ended its answer without giving a reason for the end"))
}

/// The provider reported an error inside its stream.
pub(in crate::llm) fn reported(who: &Who, message: &str, cause: Cause) -> Failure {
    let is_number = |code: &str| code.bytes().all(|byte| byte.is_ascii_digit());
    let code =
        message.rsplit_once(" (").filter(|(_, code)| code.strip_suffix(')').is_some_and(is_number));
    let provider_text = plain(who, code.map_or(message, |(words, _)| words), MAX_TEXT);
    let message = format!("{who} reported an error: {}", cleaned(who, message));
    match cause {
        Cause::TooLong => Failure::TooLong { message, provider_text },
        Cause::Filtered => Failure::Filtered { message, provider_text },
        Cause::Lasts | Cause::Passes => {
            Failure::Provider { message, provider_text, retryable: cause == Cause::Passes }
        }
    }
}

/// The answer is larger than what is read of one.
pub(super) fn too_large(who: &Who, cause: &str) -> Failure {
    let message = format!("{who} sent an answer that is too large: {cause}");
    Failure::Provider { message, provider_text: String::new(), retryable: false }
}

/// The body is compressed in a form that is not read.
pub(super) fn packed(who: &Who, form: &str) -> Failure {
    let message = format!(
        "{who} compresses its answers as {form}, which no request accepts; turn that off there, or use gzip"
    );
    Failure::Provider { message, provider_text: String::new(), retryable: false }
}

/// A success that is no answer.
pub(super) fn no_stream(who: &Who, body: &str) -> Failure {
    let said = words(body);
    let provider_text = said.as_ref().map_or_else(String::new, |said| plain(who, said, MAX_TEXT));
    let said = said.map_or_else(String::new, |said| format!(": {}", cleaned(who, &said)));
    let at = who.at_url();
    let message = format!("{at} answered with no stream of events; check its base URL{said}");
    Failure::Provider { message, provider_text, retryable: false }
}

/// An HTTP status that is no success.
pub(super) fn refused(who: &Who, status: StatusCode, headers: &HeaderMap, body: &str) -> Failure {
    let code = status.as_u16();
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let error = error_of(&json);
    let (codes, all) = (codes(error).join(" "), words(body).unwrap_or_default());
    let asked = retry_after(headers).or_else(|| retry_delay(error));
    let asked = asked.or_else(|| reset(headers, error)).or_else(|| named_wait(&all));
    let cause = match code {
        413 => Cause::TooLong,
        _ => {
            let searched = &all[..all.floor_char_boundary(MAX_TEXT)];
            meaning(Some(code), &codes, searched, asked.is_some())
        }
    };
    // What the model wrote, where that is what its server could not read.
    let sample = at(error, "failed_generation").as_str();
    let shown = sample.map_or_else(|| all.clone(), |sample| format!("{all}: {sample}"));
    let said = Some(shown).filter(|all| !all.is_empty());
    let said = said.or_else(|| status.canonical_reason().map(str::to_owned));
    let said = cleaned(who, said.as_deref().unwrap_or("no reason given"));
    let said = without_code(&said, code);
    // Google's API answers an unknown key as if the request were malformed.
    let is_of_key = code == 401 || code == 400 && all.to_lowercase().contains("api key not valid");
    let what = match code {
        300..=399 => {
            let to = header(headers, "location").unwrap_or("nowhere");
            // A base URL has no path of a request.
            let bare = to.trim_end_matches('/');
            let paths = [Wire::Anthropic, Wire::Responses, Wire::Chat].map(Wire::endpoint);
            let to = paths.iter().find_map(|path| bare.strip_suffix(path)).unwrap_or(to);
            let message = format!(
                "{who} sends elsewhere ({code}), to {}; yoi does not follow it: make that the base URL only if you trust it",
                cleaned(who, to)
            );
            let provider_text = String::new();
            return Failure::Status { status: code, retry_after: None, message, provider_text };
        }
        _ if cause == Cause::Filtered => format!("{who} refused what the request says ({code})"),
        _ if is_of_key => format!("{who} refused {} ({code})", who.key),
        407 => format!("a proxy before {who} wants a user name and a password ({code})"),
        403 => format!("{who} refused {}, or this use of it ({code})", who.key),
        404 | 405 if !names_what_is_missing(&all) => format!("{who} refused the request ({code})"),
        404 | 405 => format!("{} has no such model or address ({code})", who.at_url()),
        429 => format!("{who} is limiting requests ({code})"),
        529 => format!("{who} is overloaded ({code})"),
        500..=599 => format!("{who} failed ({code})"),
        _ => format!("{who} refused the request ({code})"),
    };
    let provider_text = words(&without_codes(json).unwrap_or_else(|| body.to_owned()));
    let provider_text = plain(who, &provider_text.unwrap_or_default(), MAX_TEXT);
    let provider_text = without_code(&provider_text, code).to_owned();
    let message = format!("{what}: {said}");
    // Other statuses are not tried again anyhow.
    let is_last = passing_status(code) && header(headers, "x-should-retry") == Some("false");
    let lasts = cause == Cause::Lasts || is_last;
    match cause {
        Cause::TooLong => return Failure::TooLong { message, provider_text },
        Cause::Filtered => return Failure::Filtered { message, provider_text },
        Cause::Lasts | Cause::Passes if passing_status(code) == lasts => {
            return Failure::Provider { message, provider_text, retryable: !lasts };
        }
        Cause::Lasts | Cause::Passes => {}
    }
    let retry_after = asked.map(|time| time.min(MAX_WAIT));
    let advice = match asked {
        None if is_of_key => {
            who.remedy.as_ref().map(|remedy| format!("; {remedy}")).unwrap_or_default()
        }
        None if code == 404 && said.to_lowercase().contains("model") => {
            "; :model chooses another one".into()
        }
        None => String::new(),
        Some(time) if time > MAX_WAIT => {
            format!(
                "; it asks to wait {}, but yoi counts at most {} of that",
                seconds(time),
                seconds(MAX_WAIT)
            )
        }
        Some(time) => format!("; it asks to wait {}", seconds(time)),
    };
    Failure::Status { status: code, retry_after, message: message + &advice, provider_text }
}

/// Whether a server that has no model or address says so, or says as good as nothing.
fn names_what_is_missing(words: &str) -> bool {
    let words = words.to_lowercase();
    let says = |sayings: &[&str]| sayings.iter().any(|saying| words.contains(saying));
    !says(&["support", "image", "not enabled", "permission", "policy", "item"])
}

/// The innermost cause, in its own words.
pub(crate) fn cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn Error = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    // The outermost text holds the whole address, which may hold a password.
    if inner.source().is_none() && error.source().is_none() {
        return "the connection failed".into();
    }
    one_line(&inner.to_string(), MAX_SHOWN)
}

/// What is wrong with the encryption of a connection to the provider itself.
fn tls_error(error: &reqwest::Error) -> Option<String> {
    use rustls::{CertificateError, Error as Tls, InvalidMessage};
    // The connection to a proxy is none to the provider.
    if sources(error).any(|inner| inner.to_string().starts_with("tunnel error")) {
        return None;
    }
    let mut io = sources(error).find_map(|inner| inner.downcast_ref::<io::Error>())?.get_ref()?;
    while let Some(inner) = io.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        io = inner;
    }
    Some(match io.downcast_ref::<Tls>()? {
        Tls::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "no TLS is spoken at that port: check the scheme and the port of its base URL".into()
        }
        Tls::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is of no authority that this machine trusts: add that authority to those of the system"
                .into()
        }
        Tls::InvalidCertificate(why) => format!("its certificate is not valid: {why}"),
        _ => return None,
    })
}

fn sources<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(error.source(), |inner| (*inner).source())
}

fn io_kind(error: &reqwest::Error) -> Option<io::ErrorKind> {
    sources(error).find_map(|inner| inner.downcast_ref::<io::Error>()).map(io::Error::kind)
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

/// How long the headers ask to wait: milliseconds, seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let of_seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    let milliseconds = header(headers, "retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    milliseconds.and_then(|ms| of_seconds(ms / 1000.0)).or_else(|| {
        let text = header(headers, "retry-after")?;
        let Ok(seconds) = text.trim_end_matches('s').parse::<f64>() else {
            let date = jiff::fmt::rfc2822::parse(text).ok()?.timestamp();
            let wait = date.duration_since(jiff::Timestamp::now());
            return Some(Duration::try_from(wait).unwrap_or_default());
        };
        of_seconds(seconds)
    })
}

/// How long Google's error details ask to wait, such as `34s`.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = crate::llm::wire::list(error, "details");
    let delay = details.iter().find_map(|detail| at(detail, "retryDelay").as_str())?;
    let seconds = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// How long it takes until the time, since the Unix epoch, at which a limit ends: in the headers, or in those of the
/// server behind a gateway.
fn reset(headers: &HeaderMap, error: &Value) -> Option<Duration> {
    let behind = at(error, "metadata").pointer("/headers/X-RateLimit-Reset");
    let behind = behind.map(|at| at.as_str().map_or_else(|| at.to_string(), str::to_owned));
    let at = behind.or_else(|| header(headers, "x-ratelimit-reset").map(str::to_owned))?;
    let (at, now) = (at.parse::<u64>().ok()?, now_ms());
    // A smaller number is no time since the epoch, and one of seconds is far from one of milliseconds.
    let at = if at > now / 2 { at } else { at.saturating_mul(1000) };
    (at > now).then(|| Duration::from_millis(at - now))
}

/// The error object of a body, which may be the body itself; some servers wrap it in a list.
fn error_of(json: &Value) -> &Value {
    let json = json.get(0).unwrap_or(json);
    Some(at(json, "error")).filter(|error| !error.is_null()).unwrap_or(json)
}

/// A provider's own words in an error body, if it has any a person can read.
fn words(body: &str) -> Option<String> {
    let Ok(json) = serde_json::from_str::<Value>(body) else {
        let body = body.trim();
        if body.starts_with('<') {
            return title(body);
        }
        return (!body.is_empty()).then(|| body.to_owned());
    };
    let error = error_of(&json);
    let places =
        [at(error, "message"), error, at(&json, "message"), at(&json, "detail"), at(&json, "msg")];
    let said = [error, &json].into_iter().map(own_words).find(|said| !said.is_empty());
    // Some servers name the fields in a list in its place.
    let list = || {
        let is_own = at(&json, "error").is_null() && !json.is_array();
        let mut places = places.into_iter().filter(|place| !is_own || *place != &json);
        places.find(|place| place.is_array() || place.is_object())
    };
    let said = said.or_else(|| Some(without_request(list()?).to_string()))?;
    let said = match text(error, "param") {
        param if said.contains(param) => said,
        param => format!("{said} ({param})"),
    };
    Some(match upstream_error(error).and_then(|body| words(&body)) {
        Some(of_upstream) => format!("{said}: {of_upstream}"),
        None => said,
    })
}

/// The title of a page.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let begin = lower.find("<title>")? + "<title>".len();
    let end = begin + lower[begin..].find("</title>")?;
    Some(page[begin..end].trim().to_owned()).filter(|title| !title.is_empty())
}

/// The value without the parts of the request that servers repeat in it.
fn without_request(value: &Value) -> Value {
    const REPEATED: [&str; 4] = ["input", "ctx", "body", "url"];
    match value {
        Value::Array(values) => values.iter().map(without_request).collect(),
        Value::Object(fields) => {
            let own = fields.iter().filter(|(key, _)| !REPEATED.contains(&key.as_str()));
            Value::Object(own.map(|(key, value)| (key.clone(), without_request(value))).collect())
        }
        value => value.clone(),
    }
}

/// The body without the numbers that are codes of the error; `None` where it is no JSON.
fn without_codes(mut json: Value) -> Option<String> {
    fn remove(value: &mut Value) {
        const CODES: [&str; 4] = ["code", "status", "status_code", "statusCode"];
        match value {
            Value::Array(values) => values.iter_mut().for_each(remove),
            Value::Object(fields) => {
                fields.retain(|key, value| !(value.is_number() && CODES.contains(&key.as_str())));
                fields.values_mut().for_each(remove);
            }
            _ => {}
        }
    }
    remove(&mut json);
    (!json.is_null()).then(|| json.to_string())
}

/// The words without the status that they may begin with, because the sentence names it.
fn without_code(said: &str, code: u16) -> &str {
    let words = said.trim_start_matches("HTTP").trim_start();
    let Some(words) = words.strip_prefix(&code.to_string()) else { return said };
    let words = words.trim_start_matches([':', '-', ' ']);
    if words.is_empty() || words.starts_with(|c: char| c.is_ascii_digit()) { said } else { words }
}

fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    SafeText::brief(line, most).into_string()
}

fn cleaned(who: &Who, said: &str) -> String {
    plain(who, said, MAX_SHOWN)
}

/// One line of at most so many characters, and never the key or another secret: some servers repeat what they were sent.
/// It is redacted before it is cut, because a part of a key is not recognised.
fn plain(who: &Who, said: &str, most: usize) -> String {
    let secret = who.secret.as_ref().map(crate::config::keys::Secret::expose);
    // What is shorter is no key, and would be cut out of ordinary words.
    let said = match secret.filter(|secret| secret.len() >= 8) {
        Some(secret) => Cow::Owned(said.replace(secret, MARK)),
        None => Cow::Borrowed(said),
    };
    one_line(&redact(&said), most)
}

fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds >= 1.0 { format!("{} s", seconds.ceil()) } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::Secret;
    use crate::llm::wire::{self, Fault};

    fn who() -> Who {
        Who {
            provider: "openai".into(),
            host: "127.0.0.1:9".into(),
            url: "http://127.0.0.1:9/v1/responses".into(),
            key: "the key in OPENAI_API_KEY".into(),
            remedy: Some(":connect openai replaces it".into()),
            secret: Some(Secret::new("sk-0123456789")),
        }
    }

    fn refusal(status: u16, headers: &[(&'static str, &str)], body: &str) -> Failure {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        refused(&who(), StatusCode::from_u16(status).unwrap(), &map, body)
    }

    #[test]
    fn the_words_of_an_error_body_are_found_wherever_a_provider_puts_them() {
        for body in [
            r#"{"error":{"message":"too  long.","type":"x"}}"#,
            r#"{"type":"error","error":{"type":"x","message":"too long"}}"#,
            r#"[{"error":{"code":400,"message":"too long","status":"INVALID"}}]"#,
            r#"{"error":"too long"}"#,
            r#"{"message":"too long"}"#,
            r#"{"detail":"too long"}"#,
            "too\nlong",
        ] {
            let said = refusal(400, &[], body).to_string();
            assert_eq!(said, "openai at 127.0.0.1:9 refused the request (400): too long", "{body}");
        }
        let page = refusal(502, &[], "<html><body>nginx</body></html>").to_string();
        assert_eq!(page, "openai at 127.0.0.1:9 failed (502): Bad Gateway");
        let page =
            refusal(524, &[], "<html><Title>h | 524: A timeout occurred</title>").to_string();
        assert_eq!(page, "openai at 127.0.0.1:9 failed (524): h | 524: A timeout occurred");
        let proxy = refusal(407, &[], "").to_string();
        assert!(
            proxy.contains("a proxy before openai at 127.0.0.1:9 wants a user name"),
            "{proxy}"
        );
        let key = refusal(400, &[], r#"{"error":{"code":400,"message":"API key not valid."}}"#);
        assert!(key.to_string().contains("refused the key in OPENAI_API_KEY (400)"), "{key}");
        assert!(key.to_string().contains(":connect"), "{key}");
    }

    #[test]
    fn fields_that_an_error_lists_and_the_parameter_that_it_names_are_part_of_its_words() {
        for (body, part) in [
            (
                r#"{"detail":[{"loc":["body","store"],"msg":"extra fields not permitted"}]}"#,
                ": store: extra fields not permitted",
            ),
            (
                r#"{"detail":[{"loc":["body","messages",0,"content"],"msg":"Field required"},{"loc":["body","n"],"msg":"no"}]}"#,
                ": messages.0.content: Field required; n: no",
            ),
            (r#"{"message":{"detail":[{"loc":["body","store"],"msg":"no"}]}}"#, ": store: no"),
            (
                r#"{"error":{"message":"Unknown parameter","param":"store"}}"#,
                "Unknown parameter (store)",
            ),
        ] {
            let said = refusal(422, &[], body).to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn what_the_server_behind_a_gateway_said_is_part_of_its_words() {
        let inner =
            r#"{"error":{"message":"Param Incorrect","param":"max_tokens is too large: 64000"}}"#;
        let error = |raw: Value| {
            let metadata = serde_json::json!({"raw": raw, "provider_name": "Xiaomi"});
            serde_json::json!({"message": "Provider returned error", "code": 400, "metadata": metadata})
        };
        for (raw, expected) in [
            (Value::from(inner), ": Param Incorrect (max_tokens is too large: 64000)"),
            (
                serde_json::from_str(inner).unwrap(),
                ": Param Incorrect (max_tokens is too large: 64000)",
            ),
            (Value::from("rate-limited upstream"), ": rate-limited upstream"),
            (Value::from(" "), ""),
            (Value::Null, ""),
        ] {
            let body = serde_json::json!({"error": error(raw.clone())}).to_string();
            let Failure::Status { message, provider_text, .. } = refusal(400, &[], &body) else {
                panic!("{body}")
            };
            assert_eq!(provider_text, format!("Provider returned error{expected}"));
            assert!(message.ends_with(&provider_text), "{message}");
            let Fault::Reported { message, .. } = wire::reported(&error(raw)) else { panic!() };
            let expected = expected.replace(" (max_tokens is too large: 64000)", "");
            assert_eq!(message, format!("Provider returned error{expected} (400)"));
        }
    }

    #[test]
    fn the_status_is_said_once_also_where_the_words_of_the_provider_begin_with_it() {
        for (body, words) in [
            ("429 Too Many Requests", "Too Many Requests"),
            (r#"{"error":{"message":"HTTP 429: slow down"}}"#, "slow down"),
            (r#"{"error":"429"}"#, "429"),
            ("4290 requests today", "4290 requests today"),
        ] {
            let said = refusal(429, &[], body).to_string();
            assert_eq!(said, format!("openai at 127.0.0.1:9 is limiting requests (429): {words}"));
        }
    }

    #[test]
    fn the_text_of_the_provider_has_no_word_of_the_sentence_and_no_code() {
        let text = |failure: Failure| match failure {
            Failure::Status { provider_text, .. } | Failure::Provider { provider_text, .. } => {
                provider_text
            }
            other => panic!("{other:?}"),
        };
        let long = format!("{}16,384", "x ".repeat(400));
        for (status, body, expected) in [
            (400, "", ""),
            (400, "<html>nginx</html>", ""),
            (404, "{}", ""),
            (400, r#"{"error":{"message":"too big."}}"#, "too big"),
            (429, "429 Too Many Requests", "Too Many Requests"),
            (400, r#"{"error":{"code":400,"reason":"no"}}"#, r#"{"reason":"no"}"#),
            (
                422,
                r#"{"detail":[{"loc":["body","messages",4],"status_code":422}]}"#,
                r#"[{"loc":["body","messages",4]}]"#,
            ),
            (400, "sk-0123456789 is no key", "[secret] is no key"),
            (400, &long, &long),
        ] {
            assert_eq!(text(refusal(status, &[("retry-after", "30")], body)), expected, "{body}");
        }
        let lasting = [("x-should-retry", "false")];
        assert_eq!(text(refusal(500, &lasting, "no")), "no");
        assert_eq!(text(reported(&who(), "no", Cause::Passes)), "no");
        assert_eq!(text(no_stream(&who(), r#"{"error":"no"}"#)), "no");
        assert_eq!(text(too_large(&who(), "64 MiB")), "");
    }

    #[test]
    fn a_status_stays_one_where_the_provider_says_that_it_lasts() {
        for status in [400, 401, 404] {
            let said = refusal(status, &[("x-should-retry", "false")], "no");
            assert!(matches!(said, Failure::Status { .. }) && !said.retryable(), "{said:?}");
        }
    }

    #[test]
    fn a_key_is_never_repeated() {
        let said = refusal(401, &[], r#"{"error":{"message":"bad key sk-0123456789 given"}}"#);
        let expected = "openai at 127.0.0.1:9 refused the key in OPENAI_API_KEY (401): bad key [secret] given; :connect \
                        openai replaces it";
        assert_eq!(said.to_string(), expected);
        assert!(!format!("{:?}", who()).contains("0123456789"));
    }

    #[test]
    fn the_delay_a_provider_wants_is_read_and_shown() {
        let wait = |headers: &[(&'static str, &str)]| match refusal(429, headers, "slow down") {
            Failure::Status { retry_after, message, .. } => (retry_after, message),
            other => panic!("{other:?}"),
        };
        let (time, said) = wait(&[("retry-after", "75")]);
        assert_eq!(time, Some(Duration::from_secs(75)));
        assert!(
            said.ends_with("limiting requests (429): slow down; it asks to wait 75 s"),
            "{said}"
        );
        let both = [("retry-after", "9"), ("retry-after-ms", "1500")];
        assert_eq!(wait(&both).0, Some(Duration::from_millis(1500)));
        assert_eq!(
            wait(&[("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")]).0,
            Some(Duration::ZERO)
        );
        assert_eq!(wait(&[("retry-after", "1e300")]).0, None);
        let (time, said) = wait(&[("retry-after", "99999999")]);
        assert_eq!(time, Some(MAX_WAIT));
        assert!(
            said.ends_with("it asks to wait 99999999 s, but yoi counts at most 86400 s of that"),
            "{said}"
        );
        assert_eq!(wait(&[("retry-after", "soon")]).0, None);
        assert_eq!(wait(&[]).0, None);
    }

    #[test]
    fn the_sentence_behind_the_name_of_a_secret_field_is_no_secret() {
        for words in [
            "messages.1.content.0.thinking.signature: Field required",
            "api_key: Field required",
            "token: expired",
            "secret: not found in vault",
            "password: authentication disabled",
            "signature: Input should be a valid string",
        ] {
            let body = serde_json::json!({"error": {"message": words}}).to_string();
            let said = refusal(400, &[], &body).to_string();
            assert!(said.ends_with(words), "{said}");
        }
        for (words, secret) in [("password: swordfish", "swordfish"), ("api_key='Field'", "Field")]
        {
            let said = refusal(400, &[], words).to_string();
            assert!(!said.contains(secret), "{said}");
        }
    }

    #[test]
    fn a_limit_that_a_gateway_says_to_end_at_a_time_is_waited_for_until_then() {
        let at = now_ms() + 7_200_000;
        for reset in [at.to_string(), (at / 1000).to_string()] {
            let error = serde_json::json!({
                "message": "Rate limit exceeded", "code": 429,
                "metadata": {"headers": {"X-RateLimit-Reset": reset}},
            });
            let body = serde_json::json!({"error": error}).to_string();
            let wait = refusal(429, &[], &body).retry_after().unwrap();
            assert!((7_100..=7_200).contains(&wait.as_secs()), "{wait:?}");
        }
    }

    #[test]
    fn googles_retry_delay_is_understood() {
        let body = r#"{"error":{"message":"m","details":[{"@type":"x"},{"retryDelay":"34.5s"}]}}"#;
        let Failure::Status { retry_after, .. } = refusal(429, &[], body) else { panic!() };
        assert_eq!(retry_after, Some(Duration::from_millis(34_500)));
    }

    #[test]
    fn an_account_without_credit_gets_no_second_request() {
        let body = r#"{"error":{"message":"no credit","code":"insufficient_quota"}}"#;
        assert!(!refusal(429, &[], body).retryable());
        assert!(!refusal(500, &[("x-should-retry", "false")], "").retryable());
        assert!(refusal(500, &[], "").retryable());
    }

    #[test]
    fn a_request_that_is_too_long_is_no_failure_that_passes_and_is_known() {
        let body = r#"{"error":{"code":"context_length_exceeded","message":"too many"}}"#;
        assert!(matches!(refusal(400, &[], body), Failure::TooLong { .. }));
        assert!(matches!(refusal(413, &[], ""), Failure::TooLong { .. }));
        assert!(matches!(refusal(400, &[], r#"{"error":"bad"}"#), Failure::Status { .. }));
        let said = reported(&who(), "prompt is too long: 9 > 8", Cause::TooLong);
        assert!(matches!(said, Failure::TooLong { .. }) && !said.retryable());
    }

    #[test]
    fn what_an_error_repeats_of_the_request_or_of_a_sample_is_not_read_as_its_cause() {
        let echoed = r#"{"detail":[{"type":"extra_forbidden","loc":["messages",1,"reasoning_content"],"msg":"Extra inputs are not permitted","input":"the token count of the prompt is too long"}]}"#;
        let said = refusal(422, &[], echoed);
        assert!(matches!(said, Failure::Status { .. }), "{said:?}");
        assert!(!said.to_string().contains("too long"), "{said}");
        let sample = r#"{"error":{"message":"Failed to call a function.","code":"tool_use_failed","failed_generation":"prompt is too long, try again in 9 s"}}"#;
        let said = refusal(400, &[], sample);
        assert!(said.retryable() && said.to_string().contains("try again in 9 s"), "{said:?}");
        assert_eq!(said.retry_after(), None);
        let credit = r#"{"error":{"message":"Prompt tokens limit exceeded: 64128 > 6964. To increase, visit https://openrouter.ai/settings/credits","code":402}}"#;
        assert!(matches!(refusal(402, &[], credit), Failure::Status { .. }));
    }

    #[test]
    fn a_redirect_is_not_followed_and_says_where_to() {
        let said = refusal(307, &[("location", "https://other.example/v1")], "").to_string();
        assert!(said.contains("https://other.example/v1; yoi does not follow it"), "{said}");
        assert!(said.ends_with("make that the base URL only if you trust it"), "{said}");
        let of_request = [("location", "https://other.example/v1/chat/completions/")];
        let said = refusal(307, &of_request, "").to_string();
        assert!(said.contains("to https://other.example/v1; yoi"), "{said}");
    }
}
