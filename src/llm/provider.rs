//! A model with its key, ready to be asked: which address, which headers, which wire.

use crate::config::dirs::Env;
use crate::config::key_command::KeyCommand;
use crate::config::keys::{MissingKey, Secret};
use crate::config::models::{KeySource, Model, Wire};
use crate::config::settings::Settings;
use crate::config::{template, url};
use crate::llm::adjust::{self, Adjustment, Learned};
use crate::llm::calls::OwnIds;
use crate::llm::gate::Gate;
use crate::llm::http::{Call, Http, MAX_SHOWN, Timeouts, Who, header_map};
use crate::llm::refused;
use crate::llm::wire::{self, Decode};
use crate::llm::{
    Delta, Deltas, Failure, Request, Stop, anthropic, chat, gemini, rehearsal, responses,
};
use crate::protocol::Origin;
use crate::text::SafeText;
use futures_util::{StreamExt as _, stream};
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The key of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Key {
    /// There is none, or none is needed.
    Absent,
    Known(Secret),
    /// A command prints it when it is needed.
    Printed(KeyCommand),
}

impl From<Option<Secret>> for Key {
    fn from(key: Option<Secret>) -> Self {
        key.map_or(Self::Absent, Self::Known)
    }
}

/// What the requests to a model carry beside their body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    pub key: Key,
    /// Of the person's settings; they count before those of the wire.
    pub headers: HeaderMap,
}

impl<T: Into<Key>> From<T> for Access {
    fn from(key: T) -> Self {
        Self { key: key.into(), headers: HeaderMap::new() }
    }
}

/// A model that can be asked; clones share what was learned about its server.
#[derive(Clone, Debug)]
pub struct Provider {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    model: Model,
    access: Access,
    timeouts: Timeouts,
    http: Http,
    /// What the server refused before, in this order.
    learned: Mutex<Vec<Learned>>,
    /// A run went on with another model, because this one was away; it has not answered since.
    is_away: AtomicBool,
    /// Its last reply ended without a reason, which was taken as its end.
    ends_unnamed: AtomicBool,
    gate: Gate,
}

/// The providers of a host. A model with the same address and key is the same provider for all Pods, so that what was
/// learned about its server outlives a run, and its gate is one for all.
#[derive(Debug, Default)]
pub struct Providers {
    all: Mutex<Vec<Provider>>,
    /// What former hosts learned.
    learned: Mutex<Vec<Learned>>,
}

/// The most providers that are kept although no run uses them.
const MAX_KEPT: usize = 64;

impl Providers {
    /// Providers that know this from the beginning.
    pub fn that_know(learned: Vec<Learned>) -> Self {
        Self { learned: Mutex::new(learned), ..Self::default() }
    }

    /// The provider of this model.
    pub fn get(&self, model: &Model, access: Access, timeouts: Timeouts, http: &Http) -> Provider {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &&Provider| {
            let known = &known.inner;
            known.model == *model && known.access == access && known.timeouts == timeouts
        };
        if let Some(known) = all.iter().find(same) {
            return known.clone();
        }
        if all.len() >= MAX_KEPT {
            all.retain(|known| Arc::strong_count(&known.inner) > 1);
        }
        let new = Provider::new(model, access, timeouts, http.clone());
        let former = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let here = all.iter().flat_map(Provider::learned);
        for learned in former.iter().cloned().chain(here) {
            new.learn(learned);
        }
        all.push(new.clone());
        new
    }

    /// Forgets what was learned about this model at its address, and returns it.
    pub fn forget(&self, model: &Model) -> Vec<Learned> {
        let mut forgotten: Vec<Learned> = Vec::new();
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        for learned in
            std::iter::once(&self.learned).chain(all.iter().map(|one| &one.inner.learned))
        {
            let mut learned = learned.lock().unwrap_or_else(PoisonError::into_inner);
            let of_model = |known: &Learned| known.is_of(model);
            let (gone, kept): (Vec<_>, Vec<_>) = learned.drain(..).partition(of_model);
            *learned = kept;
            for gone in gone {
                if forgotten.iter().all(|known| known.adjustment != gone.adjustment) {
                    forgotten.push(gone);
                }
            }
        }
        forgotten
    }
}

impl Provider {
    /// `access` holds what the model's key source led to.
    pub fn new(model: &Model, access: impl Into<Access>, timeouts: Timeouts, http: Http) -> Self {
        let (model, access) = (model.clone(), access.into());
        let inner = Inner {
            model,
            access,
            timeouts,
            http,
            learned: Mutex::default(),
            is_away: AtomicBool::new(false),
            ends_unnamed: AtomicBool::new(false),
            gate: Gate::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The gate that every request must pass.
    pub fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// Whether a run gave it up, and it has not answered since.
    pub fn is_away(&self) -> bool {
        self.inner.is_away.load(Ordering::Relaxed)
    }

    pub fn set_away(&self, is_away: bool) {
        self.inner.is_away.store(is_away, Ordering::Relaxed);
    }

    /// Whether it gives no reason for the end of its replies, as far as the last one shows.
    pub fn ends_unnamed(&self) -> bool {
        self.inner.ends_unnamed.load(Ordering::Relaxed)
    }

    /// What items of this model are marked with. The wire of a server that turns out not to know
    /// the configured one changes with its first answer, so call this after [`Provider::open`].
    pub fn origin(&self) -> Origin {
        wire::origin(&adjust::adjusted_model(&self.inner.model, &self.learned()))
    }

    /// What its server refused, so that requests do without it.
    pub fn learned(&self) -> Vec<Learned> {
        self.inner.learned.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what was learned about this model at this address; `false` where it is about another one, or known.
    fn learn(&self, new: Learned) -> bool {
        let mut learned = self.inner.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = new.is_of(&self.inner.model)
            && learned.iter().all(|known| known.adjustment != new.adjustment);
        learned.extend(is_new.then_some(new));
        is_new
    }

    /// Sends one request; returns when the provider has accepted it and the answer begins. What the provider refuses, and
    /// the request can do without, is left out once and from then on, also where it refuses inside its answer. A second
    /// refusal of it is a failure.
    pub async fn open(&self, request: &Arc<Request>) -> Result<Deltas, Failure> {
        let known = self.learned();
        let mut attempt = Attempt {
            provider: self.clone(),
            request: request.clone(),
            before: known.len(),
            known,
            changes: 0,
            first: None,
        };
        let deltas = attempt.send().await?;
        let provider = self.clone();
        let note_end = move |delta: &Result<Delta, Failure>| {
            if let Ok(Delta::End(stop)) = delta {
                provider.inner.ends_unnamed.store(*stop == Stop::Unnamed, Ordering::Relaxed);
            }
        };
        Ok(stream::once(attempt.begin(deltas)).flatten().inspect(note_end).boxed())
    }

    /// The elements of the input of this request that the failure means, as a range of places; `None` where it names none.
    pub async fn refused(&self, failure: &Failure, request: &Request) -> Option<Range<usize>> {
        let (model, known) = (self.inner.model.clone(), self.learned());
        let (failure, request) = (failure.clone(), request.clone());
        let find = move || refused::elements(&failure, &request, &model, &known);
        tokio::task::spawn_blocking(find).await.ok().flatten()
    }

    async fn send(&self, known: &[Learned], request: &Arc<Request>) -> Result<Deltas, Failure> {
        let model = &adjust::adjusted_model(&self.inner.model, known);
        if model.wire == Wire::Rehearsal {
            return rehearsal::open(Path::new(&model.model), request);
        }
        let key = self.key(model).await?;
        let call = Call {
            who: who(model, key.as_ref())?,
            url: address(model)?,
            headers: self.headers(model, key.as_ref())?,
            body: self.body(known, request).await,
        };
        let opened = self.inner.http.open(call, decoder(model), self.inner.timeouts).await;
        if let (Err(Failure::Status { status: 401 | 403, .. }), Key::Printed(command)) =
            (&opened, &self.inner.access.key)
        {
            command.forget();
        }
        opened
    }

    async fn key(&self, model: &Model) -> Result<Option<Secret>, Failure> {
        match &self.inner.access.key {
            Key::Known(key) => return Ok(Some(key.clone())),
            Key::Printed(command) => {
                let key = command.key().await;
                return key.map(Some).map_err(|why| Failure::Unusable(why.to_string()));
            }
            Key::Absent if !model.key.is_sent() => return Ok(None),
            Key::Absent => {}
        }
        let provider = &model.provider;
        Err(Failure::Unusable(match &model.key {
            KeySource::Env(name) => {
                format!(
                    "no key for {provider}: start yoi where {name} is set, or :connect {provider}"
                )
            }
            _ => format!("no key for {provider}: :connect {provider}, or :model"),
        }))
    }

    fn headers(&self, model: &Model, key: Option<&Secret>) -> Result<HeaderMap, Failure> {
        let mut all = headers(model, key)?;
        for (name, value) in &self.inner.access.headers {
            all.insert(name.clone(), value.clone());
        }
        Ok(all)
    }

    /// The body of the request, made off the async threads: it has megabytes, and images are read from disk for it.
    /// What it is made of is freed here: a client or a connection that came to stand behind that in memory
    /// would keep all of it from the system.
    async fn body(&self, known: &[Learned], request: &Arc<Request>) -> Vec<u8> {
        let (shared, model, known) = (request.clone(), self.inner.model.clone(), known.to_vec());
        let made =
            tokio::task::spawn_blocking(move || adjust::adjusted_body(&shared, &model, &known))
                .await;
        // Only a runtime that is shutting down gives no result, and then this one is not used.
        made.unwrap_or_default()
    }
}

/// The most accounts before the first piece of an answer.
const MAX_BEGUN: usize = 64;

/// One request, until an answer to it begins.
struct Attempt {
    provider: Provider,
    request: Arc<Request>,
    known: Vec<Learned>,
    /// How much of it was known before.
    before: usize,
    changes: usize,
    /// The first refusal.
    first: Option<Failure>,
}

impl Attempt {
    async fn send(&mut self) -> Result<Deltas, Failure> {
        loop {
            match self.provider.send(&self.known, &self.request).await {
                Ok(deltas) => return Ok(deltas),
                Err(failure) => self.obey(failure).await?,
            }
        }
    }

    /// The answer, once its first piece is here: until then it may turn out to be a refusal.
    async fn begin(mut self, mut deltas: Deltas) -> Deltas {
        let mut begun = Vec::new();
        while let Some(next) = deltas.next().await {
            match next {
                Ok(Delta::Unknown(_)) => {}
                Ok(Delta::Usage(_) | Delta::Unseen(_) | Delta::Garbled(_))
                    if begun.len() < MAX_BEGUN =>
                {
                    begun.push(next);
                }
                Ok(_) => {
                    let learned = self.learned();
                    begun.push(next);
                    return stream::iter(learned.map(Ok).into_iter().chain(begun))
                        .chain(deltas)
                        .boxed();
                }
                Err(failure) => {
                    let again = match self.obey(failure).await {
                        Ok(()) => self.send().await,
                        Err(failure) => Err(failure),
                    };
                    match again {
                        Ok(answer) => (begun, deltas) = (Vec::new(), answer),
                        Err(failure) => {
                            begun.push(Err(failure));
                            break;
                        }
                    }
                }
            }
        }
        stream::iter(begun).boxed()
    }

    /// Notes what this answer shows to be true of its server.
    fn learned(&mut self) -> Option<Delta> {
        let new = self.known.drain(self.before..);
        let new: Vec<Learned> = new.filter(|new| self.provider.learn(new.clone())).collect();
        (!new.is_empty()).then_some(Delta::Learned(new))
    }

    /// Changes the request as the refusal asks; the failure of the request where it names no change.
    async fn obey(&mut self, failure: Failure) -> Result<(), Failure> {
        let is_changed =
            self.changes < adjust::MAX_ADJUSTMENTS && self.change(&failure).await.is_some();
        if is_changed {
            self.changes += 1;
            self.first.get_or_insert(failure);
            return Ok(());
        }
        let failure = match self.first.take() {
            Some(first) => still_refused(first, failure),
            None => failure,
        };
        Err(with_hint(failure, &self.provider.inner.model))
    }

    /// Leaves out what the request can do without of what the provider refused; `None` where nothing of it changes.
    async fn change(&mut self, failure: &Failure) -> Option<()> {
        let words = adjust::refusal_text(failure)?;
        let sent = self.provider.body(&self.known, &self.request).await;
        let model = &self.provider.inner.model;
        let (max_tokens, adjustment) = {
            let sent = serde_json::from_slice(&sent).ok()?;
            let is_too_long = matches!(failure, Failure::TooLong { .. });
            match adjust::smaller_reply(&words, is_too_long, &sent, self.changes > 0) {
                Some(smaller) => smaller,
                None if is_too_long => return None,
                None => {
                    let model = adjust::adjusted_model(model, &self.known);
                    (
                        None,
                        Some(adjust::parse_refusal(
                            failure,
                            &words,
                            &model,
                            &sent,
                            &self.request,
                            &self.known,
                        )?),
                    )
                }
            }
        };
        let (mut known, mut request) = (self.known.clone(), self.request.clone());
        if let Some(adjustment) = &adjustment {
            let is_known = known.iter().any(|known| known.adjustment.is_alike(adjustment));
            if is_known && max_tokens.is_none() {
                return None;
            }
            if !is_known {
                known.push(Learned::new(model, adjustment.clone(), failure));
            }
        }
        if let Some(most) = max_tokens {
            let asked = Arc::make_mut(&mut request);
            // The provider has counted.
            asked.tokens = 0;
            asked.config.max_tokens =
                Some(asked.config.max_tokens.map_or(most, |max| max.min(most)));
        }
        let changes = adjustment == Some(Adjustment::ChatWire)
            || self.provider.body(&known, &request).await != sent;
        changes.then(|| (self.known, self.request) = (known, request))
    }
}

/// The failure of a request that was refused at `first` and after each change: the first one, because the person knows
/// the request without changes, and the last words of the provider where they are others.
fn still_refused(first: Failure, last: Failure) -> Failure {
    let is_other =
        matches!(last, Failure::TooLong { .. } | Failure::Filtered { .. } | Failure::Unusable(_));
    let was_too_long = matches!(first, Failure::TooLong { .. });
    if first.retryable() || last.retryable() || is_other || was_too_long {
        return last;
    }
    match (first, last) {
        (
            Failure::Status { status, retry_after, message, provider_text: text },
            Failure::Status { provider_text, .. } | Failure::Provider { provider_text, .. },
        ) if !provider_text.is_empty() && provider_text != text => {
            let last = SafeText::brief(provider_text.as_str(), MAX_SHOWN);
            let message = format!("{message}; the changed request was refused, too: {last}");
            Failure::Status { status, retry_after, message, provider_text }
        }
        (first, _) => first,
    }
}

pub(crate) fn who(model: &Model, secret: Option<&Secret>) -> Result<Who, Failure> {
    let key = match &model.key {
        KeySource::Env(name) => format!("the key in {name}"),
        KeySource::File(name) => format!("the key stored for {name}"),
        KeySource::Command(name) => format!("the key that key_command of {name} printed"),
        KeySource::Header(name) => {
            format!("the key in the header {name} of [provider.{}]", model.provider)
        }
        KeySource::Unset(name) => format!("a request without a key ({name} is not set)"),
        KeySource::None => "a request without a key".into(),
    };
    let provider = &model.provider;
    let remedy = match &model.key {
        KeySource::Env(name) => Some(format!("start yoi where {name} is right")),
        KeySource::File(name) => Some(format!(":connect {name} replaces it")),
        KeySource::Unset(_) | KeySource::None => {
            Some(format!(":connect {provider} --key-first stores one"))
        }
        // The refused key says where it stands.
        KeySource::Command(_) | KeySource::Header(_) => None,
    };
    let url = address(model)?;
    let (host, url) = (Who::host_of(&url), url::shown(url.as_str()).to_owned());
    let secret = secret.cloned();
    Ok(Who { provider: provider.clone(), host, url, key, remedy, secret })
}

/// The headers that a person's own settings give the requests to a provider.
pub fn own_headers(
    settings: &Settings,
    provider: &str,
    env: &Env,
) -> Result<HeaderMap, MissingKey> {
    let own = settings.provider.get(provider).and_then(|own| own.headers.as_ref());
    let Some(templates) = own else { return Ok(HeaderMap::new()) };
    let values = template::values("header", templates, env).map_err(|why| why.to_string());
    let headers = values.and_then(|values| header_map(&values));
    headers.map_err(|why| MissingKey::Headers(provider.to_owned(), why))
}

pub(crate) fn headers(model: &Model, key: Option<&Secret>) -> Result<HeaderMap, Failure> {
    let mut headers = HeaderMap::new();
    headers.insert("accept", HeaderValue::from_static("text/event-stream"));
    if model.wire == Wire::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
    }
    let Some(key) = key else { return Ok(headers) };
    let (name, value) = match model.wire {
        _ if model.key.is_bearer() => ("authorization", format!("Bearer {}", key.expose())),
        Wire::Anthropic => ("x-api-key", key.expose().to_owned()),
        Wire::Gemini => ("x-goog-api-key", key.expose().to_owned()),
        Wire::Responses | Wire::Chat | Wire::Rehearsal => {
            ("authorization", format!("Bearer {}", key.expose()))
        }
    };
    let mut value = HeaderValue::from_str(&value).map_err(|_| {
        let provider = &model.provider;
        Failure::Unusable(format!("the key for {provider} has characters no header can carry"))
    })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}

/// The body of a request to a server that takes all that its wire has.
pub(crate) fn body(request: &Request, model: &Model) -> Vec<u8> {
    match model.wire {
        Wire::Anthropic => anthropic::body(request, model),
        Wire::Responses => responses::body(request, model),
        Wire::Chat => chat::body(request, model),
        Wire::Gemini => gemini::body(request, model),
        Wire::Rehearsal => Vec::new(),
    }
}

pub(crate) fn decoder(model: &Model) -> Box<dyn Decode> {
    Box::new(match model.wire {
        Wire::Anthropic => OwnIds::new(anthropic::Decoder::default()),
        Wire::Responses => OwnIds::new(responses::Decoder::default()),
        Wire::Chat | Wire::Rehearsal => OwnIds::new(chat::Decoder::default()),
        Wire::Gemini => OwnIds::new(gemini::Decoder::default()),
    })
}

/// A server of a person's own that knows no such address may want the version that its base URL does not end with.
fn with_hint(failure: Failure, model: &Model) -> Failure {
    match failure {
        Failure::Status { status: status @ (404 | 405), retry_after, message, provider_text }
            if !model.own_url && !url::ends_with_version(&model.base_url) =>
        {
            let message = format!(
                "{message} · the base URL does not end with a version such as /v1: add it if that server wants one"
            );
            Failure::Status { status, retry_after, message, provider_text }
        }
        failure => failure,
    }
}

fn address(model: &Model) -> Result<Url, Failure> {
    let endpoint = model.wire.endpoint();
    let path = match model.wire {
        Wire::Gemini => {
            let id = model.model.trim_start_matches("models/");
            &format!("/models/{id}{endpoint}?alt=sse")
        }
        _ => endpoint,
    };
    Url::parse(&url::below(&model.base_url, path)).map_err(|error| {
        let provider = &model.provider;
        Failure::Unusable(format!("the base URL of {provider} is no address: {error}"))
    })
}
