//! Tries a key: asks a provider for the list of its models, which costs nothing.

use crate::config::dirs::Env;
use crate::config::keys::{Keys, Secret};
use crate::config::model_select::{ModelContext, resolve};
use crate::config::models::{KeySource, Model, Wire};
use crate::config::settings::Settings;
use crate::config::workspace_settings::WorkspaceSettings;
use crate::config::{Catalogue, url};
use crate::llm::http::{Http, Who, error_text};
use crate::llm::provider::{headers, own_headers, who};
use crate::llm::sse::Event;
use crate::llm::wire::{self, Fault};
use crate::llm::{Failure, Timeouts};
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// How long a provider may take to answer.
const TIME: Duration = Duration::from_secs(10);
/// Lists its models also without a key, so that another address has to show whether a key is valid.
const OPENROUTER: &str = "openrouter";

/// What a trial found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tried {
    /// Neither yoi nor the settings know a provider of this name.
    NoProvider,
    /// The provider needs a key, and none is at hand.
    NeedsKey,
    Works(Works),
    /// A sentence that says what is wrong and what to do.
    Failed(String),
}

/// A provider that answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Works {
    /// Such as `with the key from OPENAI_API_KEY`; empty where a key was given to be tried.
    pub key: String,
    /// The models that can answer, as far as the provider lists them.
    pub models: Vec<String>,
    /// The model of `provider/`.
    pub default_model: Option<String>,
}

/// Asks `provider` with `key`, or, without one, with what the environment of the person has. The settings are those of
/// the directory `config`.
pub async fn try_key(config: &Path, env: &Env, provider: &str, key: Option<&Secret>) -> Tried {
    let (settings, _) = Settings::load(config);
    let (workspace, keys) = (WorkspaceSettings::default(), Keys::at(config));
    let all = Catalogue::with(&settings);
    if !all.providers.contains_key(provider) {
        return Tried::NoProvider;
    }
    let place = ModelContext {
        settings: &settings,
        workspace: &workspace,
        env,
        host: env,
        keys: &keys,
        cwd: config,
    };
    // The list of models needs the name of none.
    let model = match resolve(&all, &format!("{provider}/-"), &place) {
        Ok((model, _)) => model,
        Err(error) => return Tried::Failed(error.to_string()),
    };
    let of_environment = match (&model.key, key) {
        (_, Some(_)) => None,
        (KeySource::Env(_), None) => match keys.resolve(&model.key, &[env]) {
            Ok(found) => found,
            Err(_) => return Tried::NeedsKey,
        },
        (KeySource::File(_), None) => return Tried::NeedsKey,
        (KeySource::Unset(_) | KeySource::None, None) => None,
        (KeySource::Command(_) | KeySource::Header(_), None) => {
            let source = model.key.in_words();
            return Tried::Failed(format!(
                "requests to {provider} carry the {source}, so none is stored; :model {provider}/<name> chooses its model"
            ));
        }
    };
    let own = match own_headers(&settings, provider, env) {
        Ok(own) => own,
        Err(error) => return Tried::Failed(error.to_string()),
    };
    let http = Http::new(&Timeouts { connect: TIME, ..Timeouts::default() });
    match list_models(&http, &model, own, key.or(of_environment.as_ref()), key.is_some()).await {
        Ok(models) => Tried::Works(Works {
            key: if key.is_some() { String::new() } else { model.key.in_words() },
            models,
            default_model: all
                .providers
                .get(provider)
                .and_then(|known| known.default_model.clone()),
        }),
        // A server whose key may be missing wants one.
        Err(failure) if key.is_none() && !model.key.is_sent() && is_wrong_key(&failure) => {
            Tried::NeedsKey
        }
        Err(failure) => Tried::Failed(with_advice(&failure, &model, key.is_some())),
    }
}

/// The models that the provider lists.
async fn list_models(
    http: &Http,
    model: &Model,
    own: HeaderMap,
    key: Option<&Secret>,
    is_typed: bool,
) -> Result<Vec<String>, Failure> {
    let path = match model.wire {
        Wire::Anthropic => "/models?limit=100",
        Wire::Gemini => "/models?pageSize=1000",
        _ if model.provider == OPENROUTER => "/key",
        Wire::Responses | Wire::Chat | Wire::Rehearsal => "/models",
    };
    let address = url::below(&model.base_url, path);
    let bad = |error| Failure::Unusable(format!("the base URL of {}: {error}", model.provider));
    let address = Url::parse(&address).map_err(bad)?;
    let mut who = who(model, key)?;
    who.url = url::shown(address.as_str()).to_owned();
    // A trial gives its own advice.
    who.remedy = None;
    if is_typed {
        who.key = "this key".into();
    }
    // A key that is typed goes as a key, whatever variable a token would come from.
    let source = if is_typed { KeySource::File(model.provider.clone()) } else { model.key.clone() };
    let mut headers = headers(&Model { key: source, ..model.clone() }, key)?;
    headers.extend(own);
    let body = http.get(&who, address, headers, TIME).await?;
    listed(&who, &body, is_typed)
}

/// The models of an answer. Some servers answer every key with an error that has the status of a success, and a list
/// without models shows of no key that it is valid.
fn listed(who: &Who, body: &str, is_typed: bool) -> Result<Vec<String>, Failure> {
    let json: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    if let Some(Fault::Reported { message, cause }) = wire::reported_in(&Event::default(), &json) {
        return Err(error_text::reported(who, &message, cause));
    }
    let no_list = |why: &str| {
        Failure::Unusable(format!("{} at {} answered, but {why}", who.provider, who.url))
    };
    match list_of(&json) {
        // OpenRouter tells about the key itself.
        None if json["data"].is_object() => Ok(Vec::new()),
        None if !json["data"].is_null() || json.get("data").is_none() => {
            Err(no_list(&format!("{NOT_A_LIST}: check its base URL")))
        }
        None => empty(is_typed, no_list),
        Some([]) => empty(is_typed, no_list),
        Some(list) => Ok(names(list)),
    }
}

fn empty(is_typed: bool, no_list: impl Fn(&str) -> Failure) -> Result<Vec<String>, Failure> {
    if is_typed { Err(no_list(NO_MODELS)) } else { Ok(Vec::new()) }
}

/// What an answer says of a key that it lists no model for.
const NO_MODELS: &str = "lists no model";
const NOT_A_LIST: &str = "not with a list of models";

/// The list in an answer, which some servers send bare.
fn list_of(json: &Value) -> Option<&[Value]> {
    let list = json.as_array().or_else(|| json["data"].as_array());
    list.or_else(|| json["models"].as_array()).map(Vec::as_slice)
}

/// The models of a list that can answer a message; models for embeddings cannot.
fn names(list: &[Value]) -> Vec<String> {
    let answers = |model: &&Value| {
        let methods = model["supportedGenerationMethods"].as_array();
        methods.is_none_or(|all| all.iter().any(|method| method == "generateContent"))
    };
    let name = |model: &Value| {
        let name = model["id"].as_str().or_else(|| model["name"].as_str())?;
        Some(name.trim_start_matches("models/").to_owned())
    };
    let names = list.iter().filter(answers).filter_map(name);
    names.filter(|name| !name.contains("embed")).collect()
}

/// The sentence about a failure, with what a person may look at.
fn with_advice(failure: &Failure, model: &Model, is_typed: bool) -> String {
    let untested = match failure {
        Failure::Status { status: 404 | 405, .. } => true,
        Failure::Unusable(why) => why.ends_with(NO_MODELS) || why.contains(NOT_A_LIST),
        _ => false,
    };
    let advice = match (failure, &model.key) {
        (_, _) if untested && (is_typed || matches!(failure, Failure::Status { .. })) => {
            let provider = &model.provider;
            format!(
                "so yoi cannot test a key there; in a shell, `yoi auth {provider}` stores one without testing it"
            )
        }
        (_, KeySource::Env(name)) if is_wrong_key(failure) && !is_typed => {
            format!("correct {name} and restart yoi, or start it without {name}")
        }
        _ if is_wrong_key(failure) => {
            format!("check that it is complete and from {}", model.provider)
        }
        _ => return failure.to_string(),
    };
    let advice = match failure {
        Failure::Status { status: 403, .. } => format!("{advice}; or a header is missing"),
        _ => advice,
    };
    format!("{failure} · {advice}")
}

/// Whether the failure is about the key. Some providers answer an unknown key as if the request were malformed.
fn is_wrong_key(failure: &Failure) -> bool {
    match failure {
        Failure::Status { status: 401 | 403, .. } => true,
        Failure::Status { status: 400, provider_text, .. }
        | Failure::Provider { provider_text, .. } => {
            let words = format!("{failure} {provider_text}").to_lowercase();
            ["api key", "(401)", "authentication", "unauthorized"]
                .iter()
                .any(|of_key| words.contains(of_key))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::bench::{model, refusal};
    use serde_json::json;

    #[test]
    fn the_models_that_can_answer_are_read_from_each_form_of_a_list() {
        let list = json!({"data": [{"id": "gpt"}, {"id": "text-embedding-3"}, {"name": 7}]});
        let names = |json: &Value| names(list_of(json).unwrap_or_default());
        assert_eq!(names(&list), ["gpt"]);
        assert_eq!(names(&json!([{"id": "zai-org/GLM-5", "type": "chat"}])), ["zai-org/GLM-5"]);
        let gemini = json!({"models": [
            {"name": "models/flash", "supportedGenerationMethods": ["generateContent"]},
            {"name": "models/vectors", "supportedGenerationMethods": ["embedContent"]},
        ]});
        assert_eq!(names(&gemini), ["flash"]);
        assert_eq!(names(&json!({"data": {"label": "a key"}})), [""; 0]);
    }

    #[test]
    fn only_a_list_with_models_shows_that_a_key_is_valid() {
        let model = model(Wire::Chat);
        let tried = |body: &str, is_typed| {
            let who = who(&model, None).unwrap();
            listed(&who, body, is_typed).map_err(|failure| with_advice(&failure, &model, is_typed))
        };
        for body in [
            r#"{"error":{"message":"Invalid API key","code":401}}"#,
            r#"{"code":401,"msg":"Invalid API key","success":false}"#,
            r#"{"error":"Invalid API key"}"#,
        ] {
            let said = tried(body, true).unwrap_err();
            assert!(
                said.contains("Invalid API key") && said.contains("check that it is complete"),
                "{said}"
            );
        }
        let said = tried(r#"{"error":"Unexpected endpoint or method. (GET /models)"}"#, true);
        assert!(said.unwrap_err().contains("Unexpected endpoint"));
        for body in
            [r#"{"data":null}"#, r#"{"data":[]}"#, r#"{"models":[]}"#, "[]", "{}", "<html>", "7"]
        {
            let said = tried(body, true).unwrap_err();
            assert!(
                said.contains("`yoi auth prov` stores one without testing it"),
                "{body}: {said}"
            );
        }
        assert_eq!(
            tried(r#"{"object":"list","data":null}"#, false),
            Ok(vec![]),
            "Ollama without a model"
        );
        assert_eq!(tried(r#"{"data":{"label":"a key"}}"#, true), Ok(vec![]));
        assert_eq!(tried(r#"[{"id":"m"}]"#, true), Ok(vec!["m".into()]));
    }

    #[test]
    fn a_failure_says_what_to_look_at_by_its_cause() {
        let of = |failure: &Failure, key: KeySource, is_typed| {
            let base_url = "https://api.prov/v1".into();
            with_advice(failure, &Model { key, base_url, ..model(Wire::Chat) }, is_typed)
        };
        let env = || KeySource::Env("PROV_API_KEY".into());
        let refused = refusal(401, "no such key");
        let advice = "check that it is complete and from prov";
        assert!(of(&refused, env(), true).ends_with(advice));
        assert!(of(&refused, env(), false).contains("correct PROV_API_KEY"));
        let bad = refusal(400, "API key not valid");
        assert!(of(&bad, env(), true).contains(advice));
        assert!(of(&refusal(404, "no"), env(), true).contains("`yoi auth prov`"));
        assert_eq!(of(&refusal(429, "slow"), env(), true), refusal(429, "slow").to_string());
    }
}
