//! A model with its key, ready to be asked: which address, which headers, which wire.

use crate::config::key_command::KeyCommand;
use crate::config::keys::Secret;
use crate::config::models::{KeySource, Model, Reasoning, Wire};
use crate::config::url;
use crate::llm::calls::OwnIds;
use crate::llm::gate::Gate;
use crate::llm::http::{Call, Http, Timeouts, Who};
use crate::llm::responses::Summaries;
use crate::llm::wire::{self, Decode};
use crate::llm::{Deltas, Failure, Request, anthropic, chat, gemini, rehearsal, responses};
use crate::protocol::Origin;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderValue};
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
    /// The server does not know the Responses wire.
    speaks_chat: AtomicBool,
    /// The account may not have summaries of the thinking.
    no_summaries: AtomicBool,
    /// A run went on with another model, because this one was away; it has not answered since.
    is_away: AtomicBool,
    gate: Gate,
}

/// The providers of a host. A model with the same address and key is the same provider for all Pods, so that what was
/// learned about its server outlives a run, and its gate is one for all.
#[derive(Debug, Default)]
pub struct Providers(Mutex<Vec<Provider>>);

/// The most providers that are kept although no run uses them.
const MAX_KEPT: usize = 64;

impl Providers {
    /// The provider of this model.
    pub fn get(&self, model: &Model, access: Access, timeouts: Timeouts, http: &Http) -> Provider {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        all.push(new.clone());
        new
    }
}

impl Provider {
    /// `access` holds what the model's key source led to.
    pub fn new(model: &Model, access: impl Into<Access>, timeouts: Timeouts, http: Http) -> Self {
        let (model, access) = (model.clone(), access.into());
        let (speaks_chat, no_summaries) = (AtomicBool::new(false), AtomicBool::new(false));
        let (is_away, gate) = (AtomicBool::new(false), Gate::default());
        let inner =
            Inner { model, access, timeouts, http, speaks_chat, no_summaries, is_away, gate };
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

    /// What items of this model are marked with. The wire of a server that turns out not to know
    /// the configured one changes with its first answer, so call this after [`Provider::open`].
    pub fn origin(&self) -> Origin {
        wire::origin(&self.model())
    }

    /// Sends one request; returns when the provider has accepted it and the answer begins.
    pub async fn open(&self, request: &Arc<Request>) -> Result<Deltas, Failure> {
        let model = self.model();
        let failure = match self.send(&model, request).await {
            Err(failure) if model.wire == Wire::Responses => failure,
            result => return result,
        };
        if self.may_speak_chat(&failure) {
            let chat = Model { wire: Wire::Chat, ..model };
            let answer = self.send(&chat, request).await?;
            self.inner.speaks_chat.store(true, Ordering::Relaxed);
            return Ok(answer);
        }
        let thinks = model.reasoning == Reasoning::Effort;
        if thinks
            && refuses_summaries(&failure)
            && !self.inner.no_summaries.swap(true, Ordering::Relaxed)
        {
            return self.send(&model, request).await;
        }
        Err(failure)
    }

    /// The model with the wire its server is known to speak.
    fn model(&self) -> Model {
        let mut model = self.inner.model.clone();
        if self.inner.speaks_chat.load(Ordering::Relaxed) {
            model.wire = Wire::Chat;
        }
        model
    }

    fn may_speak_chat(&self, failure: &Failure) -> bool {
        let unknown = matches!(failure, Failure::Status { status: 404 | 405, .. });
        unknown && !self.inner.model.own_url
    }

    async fn send(&self, model: &Model, request: &Arc<Request>) -> Result<Deltas, Failure> {
        if model.wire == Wire::Rehearsal {
            return rehearsal::open(Path::new(&model.model), request);
        }
        let key = self.key(model).await?;
        let call = Call {
            who: who(model, key.as_ref())?,
            url: address(model)?,
            headers: self.headers(model, key.as_ref())?,
            body: self.body(model, request).await,
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
            Key::Absent if model.key == KeySource::None => return Ok(None),
            Key::Absent => {}
        }
        let provider = &model.provider;
        Err(Failure::Unusable(match &model.key {
            KeySource::Env(name) => {
                format!("no key for {provider}: start yoi where {name} is set, or :model")
            }
            _ => format!("no key for {provider}: run `yoi auth {provider}`, or :model"),
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
    async fn body(&self, model: &Model, request: &Arc<Request>) -> Vec<u8> {
        let summaries = match self.inner.no_summaries.load(Ordering::Relaxed) {
            true => Summaries::Left,
            false => Summaries::Asked,
        };
        let (shared, model) = (request.clone(), model.clone());
        let made = tokio::task::spawn_blocking(move || body(&shared, &model, summaries)).await;
        // Only a runtime that is shutting down gives no result, and then this one is not used.
        made.unwrap_or_default()
    }
}

fn who(model: &Model, secret: Option<&Secret>) -> Result<Who, Failure> {
    let key = match &model.key {
        KeySource::Env(name) => format!("the key in {name}"),
        KeySource::File(name) => format!("the key that `yoi auth {name}` stored"),
        KeySource::Command(name) => format!("the key that key_command of {name} printed"),
        KeySource::None => "a request without a key".into(),
    };
    let host = Who::host_of(&address(model)?);
    let secret = secret.cloned();
    Ok(Who { provider: model.provider.clone(), host, key, secret })
}

fn headers(model: &Model, key: Option<&Secret>) -> Result<HeaderMap, Failure> {
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

pub(crate) fn body(request: &Request, model: &Model, summaries: Summaries) -> Vec<u8> {
    match model.wire {
        Wire::Anthropic => anthropic::body(request, model),
        Wire::Responses => responses::body(request, model, summaries),
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

fn address(model: &Model) -> Result<Url, Failure> {
    let path = match model.wire {
        Wire::Anthropic => "/messages",
        Wire::Responses => "/responses",
        Wire::Chat | Wire::Rehearsal => "/chat/completions",
        Wire::Gemini => {
            let id = model.model.trim_start_matches("models/");
            &format!("/models/{id}:streamGenerateContent?alt=sse")
        }
    };
    Url::parse(&url::below(&model.base_url, path)).map_err(|error| {
        let provider = &model.provider;
        Failure::Unusable(format!("the base URL of {provider} is no address: {error}"))
    })
}

/// `OpenAI` shows summaries of the thinking to verified organisations only.
fn refuses_summaries(failure: &Failure) -> bool {
    let Failure::Status { status: 400, message, .. } = failure else { return false };
    message.contains("summar")
}
