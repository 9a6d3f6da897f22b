//! Requests to providers over HTTP. Every failure is a sentence that names provider, host and
//! cause; there is no limit on how long an answer may take, only on silence.

use crate::config::keys::Secret;
use crate::llm::http::answer::Answer;
use crate::llm::wire::Decode;
use crate::llm::{Deltas, Failure};
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Client, Url};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) mod answer;
pub(super) mod error_text;
mod stream;
mod unpack;

pub(crate) use error_text::{MAX_SHOWN, cause};

/// How long a provider may be silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection stands.
    pub connect: Duration,
    /// From the request to the first bytes of the answer.
    pub first_event: Duration,
    /// Between bytes after that.
    pub idle: Duration,
    /// Between pieces of the answer, while only bytes come that keep the connection open. A model that thinks without
    /// showing it takes minutes.
    pub piece: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            // A long prompt takes minutes on a small machine.
            first_event: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            piece: Duration::from_secs(15 * 60),
        }
    }
}

/// Chooses the cryptography of all TLS connections; before the first one, any number of times.
pub fn install_crypto() {
    // An error says that it was chosen before.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The most redirects that a request follows.
const MAX_REDIRECTS: usize = 3;

/// The place of the client without TLS for this machine.
const NEAR: usize = 2;

/// The connections of this process; clones share them. Nothing is set up before it is needed.
#[derive(Clone, Debug)]
pub struct Http {
    connect: Duration,
    clients: Arc<[OnceLock<Result<Client, String>>; 4]>,
}

impl Http {
    /// Connections that must stand within `timeouts.connect`.
    pub fn new(timeouts: &Timeouts) -> Self {
        Self { connect: timeouts.connect, clients: Arc::default() }
    }

    /// The client for an address: without the machine's certificates where no TLS is spoken (they
    /// may be missing), and past any proxy where the server is on this machine.
    fn client(&self, url: &Url) -> Result<&Client, Failure> {
        let (tls, near) = (url.scheme() == "https", is_loopback(url));
        let place = usize::from(tls) + NEAR * usize::from(near);
        let client = self.clients[place].get_or_init(|| self.build(tls, near));
        client.as_ref().map_err(|cause| {
            let what = if tls { "no secure connection can be made" } else { "no connection" };
            Failure::Unusable(format!("{what}: {cause} (is ca-certificates installed?)"))
        })
    }

    /// Fetches an address: at most [`stream::MAX_LIST`] bytes of its body, within `time` in all.
    pub(crate) async fn get(
        &self,
        who: &Who,
        url: Url,
        mut headers: HeaderMap,
        time: Duration,
    ) -> Result<String, Failure> {
        let (client, until) = (self.client(&url)?, Instant::now() + time);
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let sent = client.get(url).headers(headers).send();
        let response = tokio::time::timeout_at(until, sent)
            .await
            .map_err(|_| error_text::silence(who, time))?
            .map_err(|error| error_text::unreachable(who, &error, self.connect))?;
        let (status, headers) = (response.status(), response.headers().clone());
        if status.is_success() {
            return Ok(stream::start_of(response, until, stream::MAX_LIST).await);
        }
        let text = stream::start_of(response, until, stream::MAX_BODY).await;
        Err(error_text::refused(who, status, &headers, &text))
    }

    /// The client for servers on this machine; `None` where no connection can be made.
    pub fn near(&self) -> Option<&Client> {
        let client = self.clients[NEAR].get_or_init(|| self.build(false, true));
        client.as_ref().ok()
    }

    /// The client for an address that is written as text; an error is a sentence.
    pub fn client_for(&self, url: &str) -> Result<Client, String> {
        let url = Url::parse(url).map_err(|error| format!("its url is none: {error}"))?;
        self.client(&url).cloned().map_err(|failure| failure.to_string())
    }

    fn build(&self, tls: bool, near: bool) -> Result<Client, String> {
        install_crypto();
        let mut builder = Client::builder()
            .user_agent(concat!("yoi/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            .redirect(reqwest::redirect::Policy::custom(within_a_server));
        if !tls {
            builder = builder.tls_certs_only([]);
        }
        if near {
            builder = builder.no_proxy();
        }
        builder.build().map_err(|error| error_text::cause(&error))
    }

    /// Sends `call` and hands out its answer, read by `decoder`, once the provider has accepted.
    pub async fn open(
        &self,
        call: Call,
        decoder: Box<dyn Decode>,
        timeouts: Timeouts,
    ) -> Result<Deltas, Failure> {
        let Call { who, url, headers, body } = call;
        let client = self.client(&url)?;
        let times = if is_near(&url) { NEAR_PATIENCE } else { 1 };
        let timeouts = Timeouts { first_event: times * timeouts.first_event, ..timeouts };
        let first = Instant::now() + timeouts.first_event;
        let json = HeaderValue::from_static("application/json");
        let plain = HeaderValue::from_static("identity");
        let request = client.post(url).header(CONTENT_TYPE, json).header(ACCEPT_ENCODING, plain);
        let sent = request.headers(headers).body(body).send();
        let response = tokio::time::timeout_at(first, sent)
            .await
            .map_err(|_| error_text::silence(&who, timeouts.first_event))?
            .map_err(|error| error_text::unreachable(&who, &error, self.connect))?;
        let status = response.status();
        let packed = response.headers().get(CONTENT_ENCODING).and_then(|form| form.to_str().ok());
        if let Some(form @ ("br" | "zstd" | "compress")) = packed {
            return Err(error_text::packed(&who, form));
        }
        if status.is_success() {
            return Ok(stream::deltas(response, Answer::new(who, decoder), timeouts, first));
        }
        let headers = response.headers().clone();
        let text = stream::start_of(response, first, stream::MAX_BODY).await;
        Err(error_text::refused(&who, status, &headers, &text))
    }
}

/// Follows a redirect that keeps the method to another path of the same server, such as one with a slash at its end. A key
/// must not follow one to another host.
fn within_a_server(attempt: reqwest::redirect::Attempt) -> reqwest::redirect::Action {
    let keeps = matches!(attempt.status().as_u16(), 307 | 308);
    let is_same =
        attempt.previous().last().is_some_and(|from| from.origin() == attempt.url().origin());
    if keeps && is_same && attempt.previous().len() <= MAX_REDIRECTS {
        attempt.follow()
    } else {
        attempt.stop()
    }
}

/// Headers of settings; an error is a sentence. No text shows their values.
pub fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        let bad = |what: &str| format!("the header {name} has {what} that HTTP does not take");
        let header = HeaderName::try_from(name.as_str()).map_err(|_| bad("a name"))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad("a value"))?;
        value.set_sensitive(true);
        map.insert(header, value);
    }
    Ok(map)
}

/// One request, ready to be sent.
#[derive(Debug)]
pub struct Call {
    pub who: Who,
    pub url: Url,
    pub headers: HeaderMap,
    /// JSON.
    pub body: Vec<u8>,
}

/// The variables that lead requests by https through a proxy; the first one that is set counts.
pub const HTTPS_PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];
/// The same for connections without TLS.
pub const HTTP_PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

/// Who is asked, for the sentences about it.
#[derive(Clone, Debug)]
pub struct Who {
    pub provider: String,
    /// With the port when it is not the usual one.
    pub host: String,
    /// Scheme, host and path of the request.
    pub url: String,
    /// What to look at when the key is refused.
    pub key: String,
    /// What gives another key.
    pub remedy: Option<String>,
    /// Cut out of everything the provider says.
    pub secret: Option<Secret>,
}

impl Who {
    /// The host and port of an address.
    pub fn host_of(url: &Url) -> String {
        let host = url.host_str().unwrap_or("");
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

/// How many times as long the first bytes may take from a server of one's own: a machine without a data centre reads
/// a long prompt for minutes.
const NEAR_PATIENCE: u32 = 3;

/// Whether a server is on this machine or in a private network.
fn is_near(url: &Url) -> bool {
    let host = url.host_str().unwrap_or("");
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    is_loopback(url)
        || match bare.parse() {
            Ok(std::net::IpAddr::V4(ip)) => ip.is_private() || ip.is_link_local(),
            Ok(std::net::IpAddr::V6(ip)) => ip.is_unique_local() || ip.is_unicast_link_local(),
            Err(_) => host.ends_with(".local") || !host.contains('.'),
        }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or("");
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let ip: Result<std::net::IpAddr, _> = bare.parse();
    host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_this_machine_and_of_private_networks_are_near() {
        for (host, near) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("127.8.8.8", true),
            ("[::1]", true),
            ("10.0.0.1", true),
            ("10.255.255.255", true),
            ("11.0.0.1", false),
            ("172.15.0.1", false),
            ("172.16.0.1", true),
            ("172.31.255.1", true),
            ("172.32.0.1", false),
            ("192.167.1.1", false),
            ("192.168.1.1", true),
            ("169.254.1.1", true),
            ("[fd00::1]", true),
            ("[fe80::1]", true),
            ("[2001:db8::1]", false),
            ("8.8.8.8", false),
            ("workstation", true),
            ("workstation.local", true),
            ("WORKSTATION.LOCAL", true),
            ("api.example.com", false),
            ("local.example.com", false),
            ("10.0.0.1.example.com", false),
        ] {
            let url = Url::parse(&format!("http://{host}:8080/v1")).unwrap();
            assert_eq!(is_near(&url), near, "{host}");
        }
    }
}
