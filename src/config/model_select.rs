//! Which model answers, and why: what was asked for, else what the settings or the workspace say,
//! else the first provider whose key is there.

use crate::config::catalogue::{Catalogue, Known, Names, Provider};
use crate::config::dirs::{Env, var};
use crate::config::keys::Keys;
use crate::config::models::{KeySource, Model, Wire};
use crate::config::settings::Settings;
use crate::config::url::{self, BadUrl};
use crate::config::workspace_settings::WorkspaceSettings;
use crate::protocol::SettingsMistake;
use crate::text::nearest;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The providers whose keys are looked for when no model was chosen, in this order.
const ORDER: [&str; 4] = ["anthropic", "openai", "gemini", "openrouter"];

/// How long a server on this machine may take to answer a probe.
const PROBE: Duration = Duration::from_millis(300);

/// What is assumed of a model when neither it nor its provider says.
const WINDOW: u64 = 128_000;
const MAX_OUTPUT: u64 = 16_000;

/// A model, and how it came to be the one.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ModelChoice {
    pub model: Model,
    /// For the header: `--model`, `config.toml`, `ANTHROPIC_API_KEY is set` …
    pub why: String,
    /// Whether the person chose it.
    pub chosen: bool,
    /// The sentence before the first message goes to a model that no person chose, neither by its name nor
    /// by a key for its provider.
    pub sends: Option<String>,
    /// A remark, such as that the model's window is not known.
    pub notice: Option<String>,
}

/// The model that a person or a setting names, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedModel {
    pub spec: String,
    /// Such as `--model` or `:model`.
    pub why: String,
}

impl WantedModel {
    pub fn new(spec: impl Into<String>, why: impl Into<String>) -> Self {
        Self { spec: spec.into(), why: why.into() }
    }
}

/// What a choice is made from.
#[derive(Clone, Copy)]
pub struct ModelContext<'a> {
    pub settings: &'a Settings,
    pub workspace: &'a WorkspaceSettings,
    /// What a client offered, or the environment of this program.
    pub env: &'a Env,
    /// What the host was started with.
    pub host: &'a Env,
    pub keys: &'a Keys,
    /// What a relative script path is relative to.
    pub cwd: &'a Path,
}

impl ModelContext<'_> {
    /// The environment with the variables of a provider: the offered one, or, where that gives none of them
    /// and no key of the provider is stored or printed, that of the host. An address and a key that come from variables are
    /// always those of one environment.
    fn env_of(&self, id: &str, provider: &Provider) -> &Env {
        let mut names = provider.key_variables().iter().chain(provider.url_variables());
        let is_offered = names.any(|name| var(self.env, name).is_some());
        // The host's key must not hide what is wrong with the file.
        let is_printed = provider.key_command().is_some();
        let is_stored =
            self.keys.list().map_or(true, |stored| stored.iter().any(|name| name == id));
        if is_offered || is_printed || is_stored { self.env } else { self.host }
    }
}

/// The model that was named cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    #[error("there is no provider {asked}{hint} (known: {known})\n{}", example(asked, config))]
    UnknownProvider { asked: String, hint: String, known: String, config: PathBuf },
    #[error("{0} is not of the form provider/model")]
    Form(String),
    #[error("{0} has no default model: name one, such as {0}/<model>")]
    NoDefault(String),
    #[error("{provider} has no base URL: set {variables}base_url in [provider.{provider}]")]
    NoBaseUrl { provider: String, variables: String },
    #[error(
        "{0} has no wire: set it in [provider.{0}] to anthropic, openai_responses, openai_chat or gemini"
    )]
    NoWire(String),
    #[error("{from}: {cause}")]
    Url { from: String, cause: BadUrl },
    #[error(
        "{from}: the base URL ends in {endpoint}; yoi adds the end itself: leave that out{advice}"
    )]
    Endpoint { from: String, endpoint: String, advice: &'static str },
    #[error("rehearsal: names no script: write rehearsal:<file>")]
    NoScript,
}

impl ModelError {
    /// The provider that the settings do not describe as far as a request needs it.
    fn undescribed(&self) -> Option<&str> {
        match self {
            Self::UnknownProvider { asked: provider, .. }
            | Self::NoBaseUrl { provider, .. }
            | Self::NoWire(provider)
            | Self::NoDefault(provider) => Some(provider),
            Self::Form(_) | Self::Url { .. } | Self::Endpoint { .. } | Self::NoScript => None,
        }
    }

    /// The sentence about the error. Where mistakes in the settings may be its cause, they come first, and where they
    /// are, they stand alone.
    pub fn with_mistakes(&self, mistakes: &[SettingsMistake]) -> String {
        let explains = |mistake: &&SettingsMistake| {
            let about = |id| mistake.about.contains(&format!("`provider.{id}."));
            mistake.stops_runs || self.undescribed().is_some_and(about)
        };
        let causes: Vec<String> = match self.undescribed() {
            Some(_) => mistakes.iter().filter(explains).map(SettingsMistake::to_string).collect(),
            None => Vec::new(),
        };
        if !causes.is_empty() {
            return causes.join("\n");
        }
        let mistakes = mistakes.iter().map(|mistake| format!("{mistake}\n"));
        format!("{}{self}", mistakes.collect::<String>())
    }

    /// The provider is not among those that are known.
    pub fn unknown(all: &Catalogue, asked: &str, config: PathBuf) -> Self {
        let near = nearest(&asked.to_lowercase(), all.providers.keys().map(String::as_str));
        let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        let known = all.providers.keys().cloned().collect::<Vec<_>>().join(", ");
        Self::UnknownProvider { asked: asked.to_owned(), hint, known, config }
    }
}

/// The lines that define a provider, and the file for them.
pub fn example(id: &str, config: &Path) -> String {
    let variable: String = id
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let table = if id.chars().all(bare) { id.to_owned() } else { format!("{id:?}") };
    format!(
        "to add it, write into {}:\n[provider.{table}]\nwire = \"openai_chat\"\nbase_url = \
         \"http://127.0.0.1:8000/v1\"\nkey_env = \"{variable}_API_KEY\"",
        config.display()
    )
}

/// Where a model's text goes, and with which key: what a person agrees to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    pub provider: String,
    pub base_url: String,
    /// Where the key comes from: `env NAME`, `file provider`, `command provider`, `header NAME` or `none`.
    pub key: String,
}

impl Destination {
    pub fn of(model: &Model) -> Self {
        let key = match &model.key {
            KeySource::Env(name) => format!("env {name}"),
            KeySource::File(provider) => format!("file {provider}"),
            KeySource::Command(provider) => format!("command {provider}"),
            KeySource::Header(name) => format!("header {name}"),
            KeySource::Unset(_) | KeySource::None => "none".into(),
        };
        Self { provider: model.provider.clone(), base_url: model.base_url.clone(), key }
    }

    /// The key and where it comes from, as a sentence says it.
    pub fn key_in_words(&self) -> String {
        match self.key.split_once(' ') {
            Some(("env", name)) => format!("with the key from {name}"),
            Some(("file", provider)) => format!("with the key stored for {provider}"),
            Some(("command", provider)) => {
                format!("with the key printed by key_command of {provider}")
            }
            Some(("header", name)) => format!("with the key in the header {name}"),
            _ => "without a key".into(),
        }
    }
}

/// Where a choice comes from that no person made for one Pod alone.
const FROM_CONFIG: &str = "config.toml";
const FROM_ENV: &str = "YOI_MODEL";

impl ModelChoice {
    /// The same with the sentence about where its model is now.
    #[must_use]
    pub fn with_sends(self) -> Self {
        let sends = self.sends.as_ref().map(|_| sends(&self.model));
        Self { sends, ..self }
    }

    /// The model that was asked for, to ask for it again; `None` if the rules chose, so that they choose
    /// again.
    pub fn wanted(&self) -> Option<WantedModel> {
        let by_rule = !self.chosen || [FROM_CONFIG, FROM_ENV].contains(&self.why.as_str());
        (!by_rule).then(|| WantedModel::new(self.model.spec(), self.why.clone()))
    }
}

/// The model to use, `None` if there is nothing to connect to. In order: what was asked for,
/// `YOI_MODEL`, the settings, the workspace, a key in the environment, one that a command prints, a stored one.
pub fn choose(
    asked: Option<&WantedModel>,
    place: &ModelContext<'_>,
) -> Result<Option<ModelChoice>, ModelError> {
    let all = Catalogue::with(place.settings);
    let from_env = || var(place.env, "YOI_MODEL").map(|spec| WantedModel::new(spec, FROM_ENV));
    if let Some(asked) = asked.cloned().or_else(from_env) {
        return chosen(&all, &asked, place).map(Some);
    }
    if let Some(spec) = place.settings.model.as_ref().and_then(Names::first) {
        return chosen(&all, &WantedModel::new(spec, FROM_CONFIG), place).map(Some);
    }
    if let Some(choice) = of_workspace(&all, place) {
        return Ok(Some(choice));
    }
    let set = |id: &str| {
        let names = all.providers.get(id).map_or(&[][..], Provider::key_variables);
        names.iter().find(|name| var(place.env, name).is_some())
    };
    for id in ORDER {
        if let Some(name) = set(id) {
            return found_by_key(&all, id, format!("{name} is set"), place).map(Some);
        }
    }
    if let Some(choice) = of_command(&all, place)? {
        return Ok(Some(choice));
    }
    of_stored(&all, place)
}

/// The models that take the place of this one while it is away: those behind it in a list of the settings or of a profile.
/// What a list names and is not known is left out.
pub fn fallbacks(model: &Model, place: &ModelContext<'_>) -> Vec<Model> {
    let all = Catalogue::with(place.settings);
    let resolved = |spec: &String| Some(resolve(&all, spec, place).ok()?.0);
    let profiles = place.settings.profile.values().filter_map(|profile| profile.model.as_ref());
    let mut lists = place.settings.model.iter().chain(profiles).map(Names::all);
    let list = lists.find_map(|list| {
        let (first, rest) = list.split_first()?;
        let begins = resolved(first)?.spec() == model.spec();
        begins.then_some(rest).filter(|rest| !rest.is_empty())
    });
    list.unwrap_or_default().iter().filter_map(resolved).collect()
}

/// The default model of the first provider whose key a command prints.
fn of_command(
    all: &Catalogue,
    place: &ModelContext<'_>,
) -> Result<Option<ModelChoice>, ModelError> {
    let named = all.providers.iter().filter(|(_, provider)| provider.key_command().is_some());
    let named = named.map(|(id, _)| id.as_str()).collect();
    of_key(all, named, |id| format!("key_command of {id} is set"), place)
}

/// The default model of the first provider with a stored key.
fn of_stored(all: &Catalogue, place: &ModelContext<'_>) -> Result<Option<ModelChoice>, ModelError> {
    let stored = place.keys.list().unwrap_or_default();
    let stored = stored.iter().map(String::as_str).collect();
    of_key(all, stored, |id| format!("a key for {id} is stored"), place)
}

/// The default model of the first of these providers. A key alone does not say which model of a provider
/// without a default to use, or where a configured one is.
fn of_key(
    all: &Catalogue,
    providers: Vec<&str>,
    why: impl Fn(&str) -> String,
    place: &ModelContext<'_>,
) -> Result<Option<ModelChoice>, ModelError> {
    let first = ORDER.into_iter().filter(|id| providers.contains(id));
    let rest = providers.iter().copied().filter(|id| !ORDER.contains(id));
    for id in first.chain(rest) {
        match found_by_key(all, id, why(id), place) {
            Ok(choice) => return Ok(Some(choice)),
            Err(error) if ORDER.contains(&id) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// A script whose path is absolute or one of the built-in ones.
pub fn rehearsal(script: &str) -> Model {
    Model {
        wire: Wire::Rehearsal,
        provider: "rehearsal".into(),
        model: script.into(),
        base_url: String::new(),
        key: KeySource::None,
        window: 200_000,
        max_output: 64_000,
        price: None,
        images: true,
        reasoning: crate::config::Reasoning::None,
        own_url: true,
        url_variable: None,
        dialect: None,
    }
}

/// The model of `spec`: `provider/model`, `provider/` or `provider` for its default, a known
/// model's bare id, or `rehearsal:<file>`; and a remark if little is known about it.
pub fn resolve(
    all: &Catalogue,
    spec: &str,
    place: &ModelContext<'_>,
) -> Result<(Model, Option<String>), ModelError> {
    let spec = spec.trim();
    if let Some(script) = spec.strip_prefix("rehearsal:") {
        return match script.trim() {
            "" => Err(ModelError::NoScript),
            builtin if builtin.starts_with('@') => Ok((rehearsal(builtin), None)),
            file => {
                let model = rehearsal(&absolute(place.cwd, file).display().to_string());
                let known = all.models.get(&model.spec());
                let window = known.and_then(|known| known.window).unwrap_or(model.window);
                Ok((Model { window, ..model }, None))
            }
        };
    }
    let (id, name) = split(all, spec)?;
    let Some(provider) = all.providers.get(&id) else {
        let config = place.keys.file().with_file_name("config.toml");
        return Err(ModelError::unknown(all, &id, config));
    };
    let name = match name {
        Some(name) => name,
        None => provider.default_model.clone().ok_or_else(|| ModelError::NoDefault(id.clone()))?,
    };
    let known = all.models.get(&format!("{id}/{name}"));
    let listed = all.models.keys().any(|spec| spec.split_once('/').is_some_and(|s| s.0 == id));
    let model = build(&id, name, provider, known, place)?;
    let notice = (known.is_none() && listed).then(|| {
        format!(
            "{} is not a model yoi knows: a window of {} tokens is assumed, and its cost is \
                 not shown",
            model.spec(),
            model.window
        )
    });
    Ok((model, notice))
}

fn split(all: &Catalogue, spec: &str) -> Result<(String, Option<String>), ModelError> {
    if let Some((id, name)) = spec.split_once('/') {
        let name = Some(name.to_owned()).filter(|name| !name.is_empty());
        return Ok((id.to_owned(), name));
    }
    if all.providers.contains_key(spec) {
        return Ok((spec.to_owned(), None));
    }
    let mut owners = all.models.keys().filter_map(|known| known.split_once('/'));
    match owners.find(|(_, name)| *name == spec) {
        Some((id, name)) => Ok((id.to_owned(), Some(name.to_owned()))),
        None => Err(ModelError::Form(spec.to_owned())),
    }
}

fn build(
    id: &str,
    name: String,
    provider: &Provider,
    known: Option<&Known>,
    place: &ModelContext<'_>,
) -> Result<Model, ModelError> {
    let wire = provider.wire.ok_or_else(|| ModelError::NoWire(id.to_owned()))?;
    let env = place.env_of(id, provider);
    let Address { base_url, own_url, url_variable } = address(id, provider, env)?;
    let known = known.cloned().unwrap_or_default();
    Ok(Model {
        wire,
        provider: id.to_owned(),
        model: name,
        key: key_source(id, provider, &base_url, env, place.keys),
        window: known.window.or(provider.window).unwrap_or(WINDOW),
        max_output: known.max_output.or(provider.max_output).unwrap_or(MAX_OUTPUT),
        price: known.price,
        images: known.images.or(provider.images).unwrap_or(false),
        reasoning: known.reasoning.or(provider.reasoning).unwrap_or_default(),
        base_url,
        own_url,
        url_variable,
        dialect: provider.dialect,
    })
}

/// Where a provider is, with what a [`Model`] says of it.
struct Address {
    base_url: String,
    own_url: bool,
    url_variable: Option<String>,
}

fn address(id: &str, provider: &Provider, env: &Env) -> Result<Address, ModelError> {
    let of_variable = provider
        .url_variables()
        .iter()
        .find_map(|name| var(env, name).map(|value| (name.clone(), value.to_owned())));
    let url_variable = of_variable.as_ref().map(|(name, _)| name.clone());
    let in_settings = || {
        let base = provider.base_url.clone()?;
        Some((format!("[provider.{id}]"), base))
    };
    let Some((from, base)) = of_variable.or_else(in_settings) else {
        let variables = provider.url_variables().iter().map(|name| format!("{name}, or "));
        return Err(ModelError::NoBaseUrl { provider: id.into(), variables: variables.collect() });
    };
    let version = provider.version.as_deref().unwrap_or(match provider.wire {
        Some(Wire::Gemini) => "v1beta",
        _ => "v1",
    });
    if let Some(endpoint) = url::endpoint(&base) {
        // A variable has no key beside it.
        let advice = match url_variable {
            Some(_) => "",
            None => "; version = \"\" keeps the rest as it is where it has no version",
        };
        return Err(ModelError::Endpoint { from, endpoint, advice });
    }
    let joined = url::join(&base, version).map_err(|cause| ModelError::Url { from, cause })?;
    let own = Catalogue::builtin().providers.get(id).and_then(|provider| {
        url::join(provider.base_url.as_deref()?, provider.version.as_deref().unwrap_or("")).ok()
    });
    let own_url = own.as_ref() == Some(&joined);
    Ok(Address { base_url: joined, own_url, url_variable })
}

fn key_source(id: &str, provider: &Provider, base_url: &str, env: &Env, keys: &Keys) -> KeySource {
    if let Some(name) = provider.key_header() {
        return KeySource::Header(name.to_owned());
    }
    let names = provider.key_variables();
    if let Some(name) = names.iter().find(|name| var(env, name).is_some()) {
        return KeySource::Env(name.clone());
    }
    if provider.key_command().is_some() {
        return KeySource::Command(id.into());
    }
    // The sentence about a missing key names a key, not the token of a gateway.
    let named = |first: &String| {
        let key = names.iter().find(|name| !KeySource::Env((*name).clone()).is_bearer());
        key.unwrap_or(first).clone()
    };
    match (keys.list(), names.first()) {
        (Ok(stored), _) if stored.iter().any(|name| name == id) => KeySource::File(id.into()),
        (_, None) => KeySource::None,
        (_, Some(first)) if url::is_loopback(base_url) => KeySource::Unset(named(first)),
        // Asking the damaged file for the key says what is wrong with it.
        (Err(_), _) => KeySource::File(id.into()),
        (_, Some(first)) => KeySource::Env(named(first)),
    }
}

fn chosen(
    all: &Catalogue,
    asked: &WantedModel,
    place: &ModelContext<'_>,
) -> Result<ModelChoice, ModelError> {
    let (model, notice) = resolve(all, &asked.spec, place)?;
    Ok(ModelChoice { model, why: asked.why.clone(), chosen: true, sends: None, notice })
}

/// The default model of a provider whose key is there. Whoever sets a key chooses where it goes, unless a
/// workspace's file says where that is.
fn found_by_key(
    all: &Catalogue,
    id: &str,
    why: String,
    place: &ModelContext<'_>,
) -> Result<ModelChoice, ModelError> {
    let choice = found(all, &format!("{id}/"), why, place)?;
    let own = !place.settings.has_provider_of(place.workspace, id);
    Ok(ModelChoice { sends: choice.sends.filter(|_| !own), ..choice })
}

fn found(
    all: &Catalogue,
    spec: &str,
    why: String,
    place: &ModelContext<'_>,
) -> Result<ModelChoice, ModelError> {
    let (model, notice) = resolve(all, spec, place)?;
    let sends = Some(sends(&model));
    Ok(ModelChoice { model, why, chosen: false, sends, notice })
}

/// The model that a workspace names, if it is known and its key is here. No person chose it, so a
/// sentence says first what would be sent where.
fn of_workspace(all: &Catalogue, place: &ModelContext<'_>) -> Option<ModelChoice> {
    let spec = place.workspace.model.as_deref()?;
    named_by_workspace(all, spec, place).ok()
}

/// The reason why the model of a workspace cannot be used.
pub fn ignored_of_workspace(place: &ModelContext<'_>) -> Option<String> {
    let spec = place.workspace.model.as_deref()?;
    let why = named_by_workspace(&Catalogue::with(place.settings), spec, place).err()?;
    let why = why.lines().next().unwrap_or_default();
    Some(format!("model = {spec:?} is ignored: {why}"))
}

fn named_by_workspace(
    all: &Catalogue,
    spec: &str,
    place: &ModelContext<'_>,
) -> Result<ModelChoice, String> {
    let from = "this workspace's .yoi/config.toml".into();
    let choice = found(all, spec, from, place).map_err(|why| why.to_string())?;
    let spec = choice.model.spec();
    if !all.specs().contains(&spec) {
        return Err(format!(
            "{spec} is not a known model; [models.{spec:?}] with its context window makes it one, in your settings or beside its provider"
        ));
    }
    place
        .keys
        .resolve(&choice.model.key, &[place.env, place.host])
        .map_err(|why| why.to_string())?;
    Ok(choice)
}

/// Where a message would go, and with which key.
fn sends(model: &Model) -> String {
    let key = Destination::of(model).key_in_words();
    format!("sends text of your Pods, in every workspace, to {} {key}", url::host(&model.base_url))
}

fn absolute(cwd: &Path, file: &str) -> PathBuf {
    std::path::absolute(cwd.join(file)).unwrap_or_else(|_| cwd.join(file))
}

/// The model servers that run on this machine and have a model: Ollama and LM Studio, on loopback only,
/// each given 300 ms.
pub async fn probe_local(http: &reqwest::Client, place: &ModelContext<'_>) -> Vec<ModelChoice> {
    let all = Catalogue::with(place.settings);
    let near = |id: &&str| url_of(&all, id).is_some_and(|base| url::is_loopback(&base));
    let probes = ["ollama", "lmstudio"].into_iter().filter(near).map(|id| {
        let list = url::below(&url_of(&all, id).unwrap_or_default(), "/models");
        async move { Some((id, first_model(http, &list).await?)) }
    });
    let answers = futures_util::future::join_all(probes).await;
    let choice = |(id, name): (&str, String)| {
        let (mut model, notice) = resolve(&all, &format!("{id}/{name}"), place).ok()?;
        model.key = KeySource::None;
        let why = format!("{id} runs on this machine");
        let sends = Some(sends(&model));
        Some(ModelChoice { model, why, chosen: false, sends, notice })
    };
    answers.into_iter().flatten().filter_map(choice).collect()
}

/// The base URL of a provider by its table alone.
fn url_of(all: &Catalogue, id: &str) -> Option<String> {
    let provider = all.providers.get(id)?;
    url::join(provider.base_url.as_deref()?, provider.version.as_deref().unwrap_or("v1")).ok()
}

/// The first model that a server lists and that can answer: models for embeddings cannot.
async fn first_model(http: &reqwest::Client, list: &str) -> Option<String> {
    let probe = async {
        let answer = http.get(list).send().await.ok()?.error_for_status().ok()?;
        answer.json::<Value>().await.ok()
    };
    let answer = tokio::time::timeout(PROBE, probe).await.ok()??;
    let names = answer["data"].as_array()?.iter().filter_map(|model| model["id"].as_str());
    names.into_iter().find(|name| !name.contains("embed")).map(str::to_owned)
}

#[cfg(test)]
mod tests;
