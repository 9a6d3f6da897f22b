//! Which model a new Pod would get by the configuration and the keys; which keys there are, and
//! where they come from; whether Ollama or LM Studio answer on this machine.

use crate::cli::doctor::finding::Finding;
use crate::cli::doctor::within;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use yoi::config::dirs::{Env, var};
use yoi::config::key_command::program_of;
use yoi::config::model_select::{ModelContext, ModelError, WantedModel, choose, probe_local};
use yoi::config::models::Wire;
use yoi::config::template::values;
use yoi::config::url::BadUrl;
use yoi::config::{
    Catalogue, KeySource, Keys, ModelChoice, Settings, Workspace, WorkspaceSettings,
};
use yoi::llm::http::{HTTP_PROXIES, HTTPS_PROXIES};
use yoi::llm::trial::{Tried, Works, try_key};

const ABOUT: &str = "model";
/// How long the servers on this machine may take together; each has 300 ms.
const LOCAL: Duration = Duration::from_secs(1);
/// How long the directories on PATH may take to answer.
const PROGRAMS: Duration = Duration::from_secs(1);
/// How long a proxy may take to answer.
const PROXIES: Duration = Duration::from_secs(2);
const PROXY: &str = "proxy";
const KEY_COMMAND: &str = "key_command";
/// The ways to connect a model.
const CONNECT: &str = "set ANTHROPIC_API_KEY or another key and start yoi there, give one to \
                       `yoi connect <provider>`, or start Ollama";

/// The model and the provider of a new Pod in `cwd`.
pub async fn findings(settings: &Settings, env: &Env, keys: &Keys, cwd: &Path) -> Vec<Finding> {
    let root = Workspace::root_of(cwd, env);
    let workspace = WorkspaceSettings::load(&root);
    let context = ModelContext { settings, workspace: &workspace, env, host: env, keys, cwd };
    let (local, serves) = local(&context).await;
    let mut found = vec![match (choose(None, &context), serves) {
        (Ok(None), true) => {
            let text = "none is chosen; a server on this machine, below, is used after you agreed";
            Finding::ok(ABOUT, "model", text)
        }
        (choice, _) => model(&choice, keys, env),
    }];
    let chosen = found[0].text.clone();
    found.extend(providers(&context).into_iter().filter(|provider| provider.text != chosen));
    found.push(stored(keys));
    found.extend(in_environment(settings, env));
    found.extend(key_commands(settings, env).await);
    found.extend(proxies(env).await);
    found.push(local);
    found.extend(workspace.notices.iter().map(|notice| {
        let way_out = "put it into your own config.toml if you want it";
        Finding::warning(ABOUT, "workspace", notice.to_string(), way_out)
    }));
    found
}

fn model(choice: &Result<Option<ModelChoice>, ModelError>, keys: &Keys, env: &Env) -> Finding {
    let name = "model";
    let choice = match choice {
        Ok(Some(choice)) => choice,
        Ok(None) => return Finding::warning(ABOUT, name, "none is known", CONNECT),
        Err(error) => {
            return Finding::broken(ABOUT, name, error.to_string(), way_out(error));
        }
    };
    let key = match &choice.model.key {
        KeySource::None => "requests go without a key".into(),
        KeySource::Unset(name) => format!("requests go without a key ({name} is not set)"),
        KeySource::Env(name) if var(env, name).is_none() => format!("{name} is not set"),
        source => source.in_words(),
    };
    let text = format!("{}: {}; {key}", choice.model.spec(), choice.why);
    match (keys.resolve(&choice.model.key, &[env]), &choice.notice) {
        (Err(missing), _) => Finding::broken(ABOUT, name, text, missing.to_string()),
        (Ok(_), Some(notice)) => {
            let way_out = "add [models.\"provider/model\"] with its window to config.toml";
            Finding::warning(ABOUT, name, format!("{text}; {notice}"), way_out)
        }
        (Ok(_), None) => Finding::ok(ABOUT, name, text),
    }
}

/// Whether the provider of the chosen model answers and lists that model; `None` where no server is asked.
pub async fn online(
    settings: &Settings,
    env: &Env,
    keys: &Keys,
    cwd: &Path,
    config: &Path,
) -> Option<Finding> {
    let name = "provider";
    let workspace = WorkspaceSettings::load(&Workspace::root_of(cwd, env));
    let context = ModelContext { settings, workspace: &workspace, env, host: env, keys, cwd };
    let model = choose(None, &context).ok()??.model;
    if model.wire == Wire::Rehearsal {
        return None;
    }
    let provider = &model.provider;
    if matches!(model.key, KeySource::Command(_) | KeySource::Header(_)) {
        let text = format!("{provider} was not asked: {}", model.key.in_words());
        return Some(Finding::ok(ABOUT, name, text));
    }
    let stored = keys.resolve(&model.key, &[env]).ok().flatten();
    let stored = stored.filter(|_| matches!(model.key, KeySource::File(_)));
    Some(match try_key(config, env, provider, stored.as_ref()).await {
        Tried::Works(Works { models, .. })
            if !models.is_empty() && !models.contains(&model.model) =>
        {
            let text = format!("{provider} answers, and does not list {}", model.model);
            Finding::warning(ABOUT, name, text, "name another model if it is refused: :model")
        }
        Tried::Works(_) => Finding::ok(ABOUT, name, format!("{provider} answers")),
        Tried::Failed(why) => {
            Finding::broken(ABOUT, name, why, format!("yoi connect {provider}, or :model"))
        }
        Tried::NeedsKey | Tried::NoProvider => {
            let text = format!("{provider} was not asked: it needs a key");
            Finding::broken(ABOUT, name, text, format!("yoi connect {provider}"))
        }
    })
}

/// What a person does about a model that cannot be used.
fn way_out(error: &ModelError) -> &'static str {
    match error {
        ModelError::Url { cause: BadUrl::Credentials(_), .. } => {
            "take the user name and the password out of the address; a server that wants them gets them with \
             `headers = { Authorization = \"Basic ${VARIABLE}\" }` below [provider.<name>]"
        }
        ModelError::Url { .. } | ModelError::Endpoint { .. } => "correct the address",
        ModelError::NoWire(_) | ModelError::NoBaseUrl { .. } => {
            "complete [provider.<name>] in config.toml"
        }
        _ => "name another one: :model",
    }
}

/// What is wrong with the providers that the person's own settings describe, used or not: an address, and the variables
/// of headers.
fn providers(context: &ModelContext<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, provider) in &context.settings.provider {
        let name = format!("provider {id}");
        let any = WantedModel::new(format!("{id}/model"), "");
        if let Err(error @ (ModelError::Url { .. } | ModelError::Endpoint { .. })) =
            choose(Some(&any), context)
        {
            found.push(Finding::warning(ABOUT, &name, error.to_string(), way_out(&error)));
        }
        let headers = provider.headers.iter();
        for unset in headers.filter_map(|all| values("header", all, context.env).err()) {
            let way_out = format!("set it where yoi starts, or take it out of [provider.{id}]");
            found.push(Finding::warning(ABOUT, &name, unset.to_string(), way_out));
        }
    }
    found
}

fn stored(keys: &Keys) -> Finding {
    let name = "stored keys";
    match keys.list() {
        Ok(list) if list.is_empty() => Finding::ok(ABOUT, name, "none"),
        Ok(list) => Finding::ok(ABOUT, name, list.join(", ")),
        Err(error) => {
            let way_out = format!("mend {}, or store the keys anew", keys.file().display());
            Finding::broken(ABOUT, name, error.to_string(), way_out)
        }
    }
}

/// The names of the key variables that are set, never their values.
fn in_environment(settings: &Settings, env: &Env) -> Option<Finding> {
    let variables = Catalogue::with(settings).key_variables();
    // Several providers may read the same one.
    let set: BTreeSet<&str> =
        variables.iter().filter(|name| var(env, name).is_some()).map(String::as_str).collect();
    let set: Vec<&str> = set.into_iter().collect();
    (!set.is_empty()).then(|| Finding::ok(ABOUT, "keys set", set.join(", ")))
}

/// Whether the program of each key command can be started. None is run: it may ask the person for a password.
async fn key_commands(settings: &Settings, env: &Env) -> Vec<Finding> {
    let mut found = Vec::new();
    for (id, provider) in &Catalogue::with(settings).providers {
        let Some(argv) = provider.key_command().map(<[String]>::to_vec) else { continue };
        let env = env.clone();
        let program = within(PROGRAMS, move || program_of(&argv, &env)).await;
        found.push(match program {
            Some(Ok(path)) => {
                let path = path.display();
                let text =
                    format!("of {id}: {path} can be started (not run: it may ask you something)");
                Finding::ok(ABOUT, KEY_COMMAND, text)
            }
            Some(Err(why)) => {
                let text = format!("of {id} cannot be started: {why}");
                let way_out =
                    format!("install it, or correct key_command in [provider.{id}] of config.toml");
                Finding::broken(ABOUT, KEY_COMMAND, text, way_out)
            }
            None => {
                let text = format!("of {id}: the file system of its program does not answer");
                Finding::broken(ABOUT, KEY_COMMAND, text, "mend the mount")
            }
        });
    }
    found
}

/// The proxies of this environment, and whether they take connections.
async fn proxies(env: &Env) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    let mut tried = BTreeSet::new();
    for names in [HTTPS_PROXIES, HTTP_PROXIES] {
        let set = names.iter().find_map(|name| Some((*name, var(env, name)?)));
        if let Some((name, value)) = set.filter(|(name, _)| tried.insert(*name)) {
            found.push(proxy(name, value).await);
        }
    }
    found
}

/// The port of a proxy; that of SOCKS is 1080 (RFC 1928).
fn port_of(url: &reqwest::Url) -> Option<u16> {
    let usual = || url.scheme().starts_with("socks").then_some(1080);
    url.port_or_known_default().or_else(usual)
}

async fn proxy(name: &str, value: &str) -> Finding {
    let shown = value.rsplit_once('@').map_or(value, |(_, host)| host);
    let way_out = format!("correct or unset {name} where yoi starts");
    // Without a scheme it is an HTTP proxy, as other programs read it.
    let address = if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
    let url = reqwest::Url::parse(&address).ok();
    let place = url.as_ref().and_then(|url| Some((url.host_str()?, port_of(url)?)));
    let Some((host, port)) = place else {
        return Finding::broken(ABOUT, PROXY, format!("{name} is no address: {shown}"), way_out);
    };
    let host = host.trim_matches(['[', ']']);
    let why = match tokio::time::timeout(PROXIES, TcpStream::connect((host, port))).await {
        Ok(Ok(_)) => return Finding::ok(ABOUT, PROXY, format!("{name} leads to {shown}")),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", PROXIES.as_secs()),
    };
    Finding::broken(
        ABOUT,
        PROXY,
        format!("{name} leads to {shown}, which takes no connection: {why}"),
        way_out,
    )
}

/// The model servers that answer on this machine, and whether there is one.
async fn local(context: &ModelContext<'_>) -> (Finding, bool) {
    let name = "local servers";
    yoi::llm::install_crypto();
    let Ok(http) = reqwest::Client::builder().no_proxy().build() else {
        let way_out = "install ca-certificates";
        return (Finding::warning(ABOUT, name, "no connection can be made", way_out), false);
    };
    let probe = tokio::time::timeout(LOCAL, probe_local(&http, context)).await;
    let specs: Vec<String> =
        probe.unwrap_or_default().iter().map(|choice| choice.model.spec()).collect();
    let text = if specs.is_empty() { "none".into() } else { specs.join(", ") };
    (Finding::ok(ABOUT, name, text), !specs.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::finding::Level;

    fn env(pairs: &[(&str, &str)]) -> Env {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    fn chosen(pairs: &[(&str, &str)]) -> Finding {
        let temp = tempfile::tempdir().unwrap();
        let (settings, workspace) = (Settings::default(), WorkspaceSettings::default());
        let (env, keys) = (env(pairs), Keys::at(temp.path()));
        let context = ModelContext {
            settings: &settings,
            workspace: &workspace,
            env: &env,
            host: &env,
            keys: &keys,
            cwd: temp.path(),
        };
        model(&choose(None, &context), &keys, &env)
    }

    #[test]
    fn the_model_is_named_with_its_reason_and_where_its_key_comes_from() {
        let found = chosen(&[("ANTHROPIC_API_KEY", "value-of-the-key")]);
        assert_eq!(found.level, Level::Ok);
        assert!(found.text.contains("ANTHROPIC_API_KEY is set; key from ANTHROPIC_API_KEY"));
        assert!(!format!("{found:?}").contains("value-of-the-key"));
    }

    #[tokio::test]
    async fn each_proxy_says_whether_it_takes_connections_and_never_its_password() {
        let alive = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let alive = alive.local_addr().map(|at| (at, alive)).unwrap();
        let dead =
            tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let of = async |pairs: &[(&str, &str)]| -> Vec<(Level, String)> {
            let found = proxies(&env(pairs)).await;
            found.into_iter().map(|one| (one.level, one.text)).collect()
        };
        let with_password = format!("http://me:hidden@{}", alive.0);
        let found = of(&[("https_proxy", &with_password), ("HTTP_PROXY", &dead.to_string())]).await;
        assert_eq!(found[0], (Level::Ok, format!("https_proxy leads to {}", alive.0)));
        let refused = format!("HTTP_PROXY leads to {dead}, which takes no connection: ");
        assert!(found[1].0 == Level::Broken && found[1].1.starts_with(&refused), "{found:?}");
        assert_eq!(of(&[("ALL_PROXY", &with_password)]).await.len(), 1, "it is one proxy for both");
        let bad = of(&[("ALL_PROXY", "http://")]).await;
        assert_eq!(bad, [(Level::Broken, "ALL_PROXY is no address: http://".to_owned())]);
    }

    /// A server that answers every request with this list of models; its address.
    fn server(list: &'static str) -> String {
        use std::io::{Read as _, Write as _};
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let mut connection = connection.unwrap();
                let _ = connection.read(&mut [0; 4096]);
                let length = list.len();
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{list}");
                connection.write_all(head.as_bytes()).unwrap();
            }
        });
        url
    }

    #[tokio::test]
    async fn the_provider_of_the_model_is_asked_on_demand_and_may_not_list_it() {
        for (list, level, said) in [
            (r#"{"data":[{"id":"m"}]}"#, Level::Ok, "shed answers"),
            (r#"{"data":[{"id":"n"}]}"#, Level::Warning, "shed answers, and does not list m"),
            ("<html>", Level::Broken, "answered, but not with a list of models"),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let toml = format!(
                "model = \"shed/m\"\n[provider.shed]\nwire = \"chat\"\nbase_url = \"{}\"\n",
                server(list)
            );
            std::fs::write(temp.path().join("config.toml"), toml).unwrap();
            let (settings, said_of_settings) = Settings::load(temp.path());
            assert!(said_of_settings.is_empty(), "{said_of_settings:?}");
            let keys = Keys::at(temp.path());
            let found = online(&settings, &env(&[]), &keys, temp.path(), temp.path()).await;
            let found = found.unwrap();
            assert_eq!(found.level, level, "{found:?}");
            assert!(found.text.contains(said), "{found:?}");
        }
    }

    #[tokio::test]
    async fn a_key_command_that_cannot_be_started_is_broken() {
        let temp = tempfile::tempdir().unwrap();
        let toml = "[provider.anthropic]\nkey_command = [\"/nowhere/pass\", \"show\"]\n\
                    [provider.openai]\nkey_command = [\"/bin/sh\", \"-c\", \"exit 9\"]\n";
        std::fs::write(temp.path().join("config.toml"), toml).unwrap();
        let (settings, said) = Settings::load(temp.path());
        assert!(said.is_empty(), "{said:?}");
        let found = key_commands(&settings, &env(&[])).await;
        assert_eq!(
            found.iter().map(|one| one.level).collect::<Vec<_>>(),
            [Level::Broken, Level::Ok]
        );
        assert!(
            found[0].text.contains("of anthropic cannot be started: there is no /nowhere/pass")
        );
        assert!(found[1].text.contains("/bin/sh can be started (not run"), "{found:?}");
    }

    #[test]
    fn an_address_with_a_password_and_an_unset_variable_of_a_header_are_warnings_with_a_way_out() {
        let temp = tempfile::tempdir().unwrap();
        let toml = "[provider.a]\nwire = \"chat\"\nbase_url = \"http://me:hunter2@h\"\n\
                    [provider.b]\nwire = \"chat\"\nbase_url = \"http://h\"\nheaders = { X = \"${NOT_SET}\" }\n";
        std::fs::write(temp.path().join("config.toml"), toml).unwrap();
        let (settings, said) = Settings::load(temp.path());
        assert!(said.is_empty(), "{said:?}");
        let (env, keys) = (env(&[]), Keys::at(temp.path()));
        let workspace = WorkspaceSettings::default();
        let context = ModelContext {
            settings: &settings,
            workspace: &workspace,
            env: &env,
            host: &env,
            keys: &keys,
            cwd: temp.path(),
        };
        let found = providers(&context);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].text.contains("password") && !format!("{found:?}").contains("hunter2"));
        assert!(found[0].way_out.as_ref().unwrap().contains("headers"), "{found:?}");
        assert_eq!(
            found[1].text,
            "its header X takes ${NOT_SET}, which is not set where yoi was started"
        );
    }

    #[test]
    fn no_model_an_unknown_one_and_a_missing_key_differ() {
        assert_eq!(chosen(&[]).level, Level::Warning);
        let unknown = chosen(&[("YOI_MODEL", "nowhere/x")]);
        assert!(unknown.level == Level::Broken && unknown.text.contains("nowhere"), "{unknown:?}");
        let no_key = chosen(&[("YOI_MODEL", "openai/")]);
        assert_eq!(no_key.level, Level::Broken);
        assert!(no_key.text.ends_with("; OPENAI_API_KEY is not set"), "{}", no_key.text);
        assert!(no_key.way_out.unwrap().contains("OPENAI_API_KEY is not set"));
    }
}
