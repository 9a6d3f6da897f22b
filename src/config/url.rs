//! Base URLs: checked once, joined by one rule.

use crate::config::models::Wire;
use reqwest::Url;

/// A base URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadUrl {
    #[error("`{0}` is not a URL of the form https://host or https://host/path")]
    Malformed(String),
    /// The text does not repeat the URL, which holds a secret.
    #[error(
        "the URL for {0} has a user name or password in it; keys belong in the environment or in `yoi auth`"
    )]
    Credentials(String),
}

/// The base URL to send to: trailing slashes are cut, and where the path has no version segment
/// (`v1`, `v1beta` …), `version` is added; an empty one adds nothing. A query stays behind the path.
pub fn join(base: &str, version: &str) -> Result<String, BadUrl> {
    let base = base.trim();
    let malformed = || BadUrl::Malformed(base.to_owned());
    let url = Url::parse(base).map_err(|_| malformed())?;
    let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(malformed)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(BadUrl::Credentials(host.to_owned()));
    }
    if !matches!(url.scheme(), "http" | "https") || url.fragment().is_some() {
        return Err(malformed());
    }
    let (path, query) = base.split_once('?').unwrap_or((base, ""));
    let base = format!("{}?{query}", path.trim_end_matches('/'));
    let has_version = version.is_empty() || url.path().split('/').any(is_version);
    let version = if has_version { String::new() } else { format!("/{version}") };
    Ok(below(&base, &version))
}

/// The end of the path of a request, on whichever wire, if a base URL has one already.
pub fn endpoint(base: &str) -> Option<String> {
    let path = base.split(['?', '#']).next().unwrap_or_default().trim().trim_end_matches('/');
    let last = path.rsplit('/').next().unwrap_or_default();
    if last.to_ascii_lowercase().ends_with("generatecontent") {
        return Some(last.into());
    }
    // The list of models, or one of them.
    let parts: Vec<&str> = path.split('/').collect();
    let is_list = |pair: &[&str]| is_version(pair[0]) && pair[1] == "models";
    if let Some(at) = parts.windows(2).position(is_list) {
        return Some(format!("/{}", parts[at + 1..].join("/")));
    }
    let ends = [Wire::Responses, Wire::Chat, Wire::Anthropic].map(Wire::endpoint);
    ends.into_iter().find(|end| path.ends_with(end)).map(str::to_owned)
}

/// Whether the path of a base URL ends with a version segment.
pub fn ends_with_version(base: &str) -> bool {
    shown(base).trim_end_matches('/').rsplit('/').next().is_some_and(is_version)
}

/// Scheme, host and path of a URL, for sentences: its query may hold a secret.
pub fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// The address of `path` below a base URL. The queries of both follow it.
pub fn below(base: &str, path: &str) -> String {
    let (base, of_base) = base.split_once('?').unwrap_or((base, ""));
    let (path, of_path) = path.split_once('?').unwrap_or((path, ""));
    let queries: Vec<&str> =
        [of_path, of_base].into_iter().filter(|query| !query.is_empty()).collect();
    match queries.join("&") {
        none if none.is_empty() => format!("{base}{path}"),
        query => format!("{base}{path}?{query}"),
    }
}

/// `v` and a digit, then letters and digits.
fn is_version(segment: &str) -> bool {
    let mut chars = segment.chars();
    matches!(chars.next(), Some('v' | 'V'))
        && chars.next().is_some_and(|c| c.is_ascii_digit())
        && chars.all(|c| c.is_ascii_alphanumeric())
}

/// The host of a URL and its port if it names one, for sentences; the URL itself if it has none.
pub fn host(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return url.to_owned() };
    match (parsed.host_str(), parsed.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => url.to_owned(),
    }
}

/// Whether a URL leads to this machine and nowhere else.
pub fn is_loopback(url: &str) -> bool {
    let Ok(parsed) = Url::parse(url) else { return false };
    let host = parsed.host_str().unwrap_or("").trim_matches(['[', ']']);
    host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_version_is_added_only_where_the_path_has_none() {
        for (base, version, joined) in [
            ("https://api.anthropic.com", "v1", "https://api.anthropic.com/v1"),
            ("https://api.anthropic.com/", "v1", "https://api.anthropic.com/v1"),
            ("https://openrouter.ai/api/v1//", "v1", "https://openrouter.ai/api/v1"),
            (
                "https://proxy.example/gemini/v1alpha",
                "v1beta",
                "https://proxy.example/gemini/v1alpha",
            ),
            ("https://proxy.example/v2/openai", "v1", "https://proxy.example/v2/openai"),
            ("https://proxy.example/vault", "v1", "https://proxy.example/vault/v1"),
            (" http://127.0.0.1:8080 ", "v1", "http://127.0.0.1:8080/v1"),
            ("https://plain.example/api", "", "https://plain.example/api"),
            ("https://x.example/?a=b/v7&c", "v1", "https://x.example/v1?a=b/v7&c"),
            (
                "https://x.example/openai/v1/?api-version=p",
                "v1",
                "https://x.example/openai/v1?api-version=p",
            ),
            ("https://x.example/v1?", "v1", "https://x.example/v1"),
        ] {
            assert_eq!(join(base, version).as_deref(), Ok(joined), "{base}");
        }
    }

    #[test]
    fn a_path_stands_before_the_queries() {
        for (base, path, whole) in [
            ("http://h/v1", "/models", "http://h/v1/models"),
            ("http://h/v1?a=1", "/models", "http://h/v1/models?a=1"),
            ("http://h/v1?a=1", "/m:go?alt=sse", "http://h/v1/m:go?alt=sse&a=1"),
            ("http://h/v1", "/m:go?alt=sse", "http://h/v1/m:go?alt=sse"),
        ] {
            assert_eq!(below(base, path), whole);
        }
    }

    #[test]
    fn a_bad_base_url_is_refused_without_repeating_its_password() {
        for bad in ["", "api.example.com", "ftp://x", "https://", "https://x/#f", "https://x/?a#f"]
        {
            assert!(matches!(join(bad, "v1"), Err(BadUrl::Malformed(_))), "{bad}");
        }
        let sentence = join("https://me:sesame@x.example/v1", "v1").unwrap_err().to_string();
        assert!(sentence.contains("x.example") && !sentence.contains("sesame"), "{sentence}");
    }

    #[test]
    fn a_base_url_that_ends_as_a_request_does_is_found_and_its_query_is_not_shown() {
        for (base, end) in [
            ("https://h/v1/chat/completions", Some("/chat/completions")),
            ("https://h/v1/chat/completions/?k=1", Some("/chat/completions")),
            ("https://h/v1/responses", Some("/responses")),
            ("https://h/v1/messages", Some("/messages")),
            ("https://h/v1beta/models/g:generateContent", Some("g:generateContent")),
            ("https://h/v1beta/models", Some("/models")),
            ("https://h/v1beta/models/g/", Some("/models/g")),
            ("https://h/models", None),
            ("https://h/v1?x=/chat/completions", None),
            ("https://h/v1", None),
        ] {
            assert_eq!(endpoint(base).as_deref(), end, "{base}");
        }
        assert!(
            ends_with_version("https://h/v1/?x=/y") && !ends_with_version("https://h/v2/openai")
        );
        assert_eq!(shown("https://h/v1/x?key=sesame"), "https://h/v1/x");
    }

    #[test]
    fn only_this_machine_is_loopback() {
        for yes in ["http://127.0.0.1:1/v1", "http://localhost", "http://[::1]:8080/v1"] {
            assert!(is_loopback(yes), "{yes}");
        }
        for no in ["http://127.0.0.1.example.com", "https://localhost.example", "http://10.0.0.1"] {
            assert!(!is_loopback(no), "{no}");
        }
    }

    proptest! {
        #[test]
        fn joining_twice_is_joining_once(
            host in "[a-z]{1,8}(\\.[a-z]{2,5}){0,2}(:[1-9][0-9]{1,3})?",
            path in proptest::collection::vec("[a-zA-Z0-9_-]{1,8}", 0..4),
            slashes in 0usize..3,
            version in prop_oneof![Just("v1"), Just("v1beta"), Just("")],
        ) {
            let tail: String = path.iter().map(|segment| format!("/{segment}")).collect();
            let base = format!("https://{host}{tail}{}", "/".repeat(slashes));
            let once = join(&base, version).unwrap();
            prop_assert_eq!(&join(&once, version).unwrap(), &once);
            prop_assert!(!once.ends_with('/'));
            let bare = format!("https://{host}{tail}");
            prop_assert!(once.starts_with(&bare));
            let rest = &once[bare.len()..];
            let added = format!("/{version}");
            prop_assert!(rest.is_empty() || rest == added);
            prop_assert_eq!(
                rest.is_empty(),
                version.is_empty() || path.iter().any(|segment| is_version(segment))
            );
        }
    }
}
