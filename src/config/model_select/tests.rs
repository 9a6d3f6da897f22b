//! Which model is taken, in every case.

use super::*;
use std::io::{Read, Write};

/// Everything a choice is made from, empty unless a test fills it.
struct Bench {
    dir: tempfile::TempDir,
    settings: Settings,
    workspace: WorkspaceSettings,
    env: Env,
    keys: Keys,
}

impl Bench {
    fn new(env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keys::at(dir.path());
        let env = env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let (settings, workspace) = Default::default();
        Self { dir, settings, workspace, env, keys }
    }

    fn place(&self) -> ModelContext<'_> {
        let Self { settings, workspace, env, keys, .. } = self;
        ModelContext { settings, workspace, env, host: env, keys, cwd: Path::new("/w/dir") }
    }

    fn choose(&self, asked: &str) -> Result<ModelChoice, ModelError> {
        let asked = WantedModel::new(asked, "--model");
        choose(Some(&asked), &self.place()).map(Option::unwrap)
    }

    fn found(&self) -> Option<ModelChoice> {
        choose(None, &self.place()).unwrap()
    }

    fn ignored_of_workspace(&self) -> Option<String> {
        ignored_of_workspace(&self.place())
    }
}

#[test]
fn without_anything_there_is_no_model() {
    assert_eq!(Bench::new(&[]).found(), None);
    assert_eq!(Bench::new(&[("ANTHROPIC_API_KEY", "")]).found(), None);
}

#[test]
fn keys_in_the_environment_are_tried_in_the_documented_order() {
    let mut bench = Bench::new(&[
        ("OPENROUTER_API_KEY", "k"),
        ("GOOGLE_API_KEY", "k"),
        ("OPENAI_API_KEY", "k"),
        ("ANTHROPIC_API_KEY", "k"),
    ]);
    for (provider, name, wire) in [
        ("anthropic", "ANTHROPIC_API_KEY", Wire::Anthropic),
        ("openai", "OPENAI_API_KEY", Wire::Responses),
        ("gemini", "GOOGLE_API_KEY", Wire::Gemini),
        ("openrouter", "OPENROUTER_API_KEY", Wire::Chat),
    ] {
        let choice = bench.found().unwrap();
        assert_eq!((choice.model.provider.as_str(), choice.model.wire), (provider, wire));
        assert_eq!(choice.model.key, KeySource::Env(name.into()));
        assert_eq!(choice.why, format!("{name} is set"));
        assert!(!choice.chosen && choice.model.own_url);
        bench.env.remove(name);
    }
    assert_eq!(bench.found(), None);
}

#[test]
fn a_key_chooses_its_provider_unless_a_workspace_says_where_that_is() {
    for is_of_workspace in [false, true] {
        let mut bench = Bench::new(&[]);
        bench.keys.set("near", "k").unwrap();
        let text = "[provider.near]\nwire = 'openai_chat'\nbase_url = 'https://near.example/v1'\n\
                    default_model = 'm'\n";
        if is_of_workspace {
            let file = WorkspaceSettings::read(Path::new(".yoi/config.toml"), text);
            let trusted = file.sha256.clone();
            bench.workspace = file.with_trust(trusted.as_deref());
            bench.settings = Settings::default().with_providers_of(&bench.workspace);
        } else {
            bench.settings = Settings::read(Path::new("config.toml"), text).0;
        }
        let choice = bench.found().unwrap();
        assert_eq!((choice.model.provider.as_str(), choice.chosen), ("near", false));
        let sends = "sends text of your Pods, in every workspace, to near.example with the key stored for near";
        assert_eq!(choice.sends.as_deref(), is_of_workspace.then_some(sends));
    }
    let choice = Bench::new(&[("ANTHROPIC_API_KEY", "k")]).found().unwrap();
    assert_eq!((choice.chosen, choice.sends), (false, None));
}

#[test]
fn a_command_that_prints_a_key_chooses_its_provider_after_variables_and_before_stored_keys() {
    let mut bench = Bench::new(&[("OPENAI_API_KEY", "k")]);
    bench.keys.set("openrouter", "k").unwrap();
    let text = "[provider.anthropic]\nkey_command = ['pass', 'show', 'anthropic']\n\
                [provider.gemini]\nkey_command = []\n";
    bench.settings = Settings::read(Path::new("config.toml"), text).0;
    assert_eq!(bench.found().unwrap().model.provider, "openai");
    bench.env.clear();
    let choice = bench.found().unwrap();
    assert_eq!((choice.why.as_str(), choice.sends), ("key_command of anthropic is set", None));
    assert_eq!(choice.model.key, KeySource::Command("anthropic".into()));
    bench.settings = Settings::default();
    assert_eq!(bench.found().unwrap().model.provider, "openrouter");
    // A variable is nearer at hand than a command.
    bench.settings = Settings::read(Path::new("config.toml"), text).0;
    bench.env.insert("ANTHROPIC_API_KEY".into(), "k".into());
    assert_eq!(bench.found().unwrap().model.key, KeySource::Env("ANTHROPIC_API_KEY".into()));
}

#[test]
fn address_and_key_that_come_from_variables_are_of_one_environment() {
    let bench = |offered: &[(&str, &str)], host: &[(&str, &str)]| {
        let (bench, host) = (Bench::new(offered), Bench::new(host).env);
        let asked = WantedModel::new("anthropic/x", "--model");
        let place = ModelContext { host: &host, ..bench.place() };
        let model = choose(Some(&asked), &place).unwrap().unwrap().model;
        (model.base_url, model.url_variable)
    };
    const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");
    const URL: (&str, &str) = ("ANTHROPIC_BASE_URL", "https://other.example");
    let public = ("https://api.anthropic.com/v1".to_owned(), None);
    let other = ("https://other.example/v1".to_owned(), Some("ANTHROPIC_BASE_URL".to_owned()));
    assert_eq!(bench(&[KEY], &[KEY, URL]), public, "the host has another key for its address");
    assert_eq!(bench(&[], &[KEY, URL]), other, "the key of the host goes to the host's address");
    assert_eq!(bench(&[URL], &[KEY]), other);
}

#[test]
fn the_lines_that_the_refusal_of_an_unknown_provider_shows_define_it() {
    for id in ["nobody", "my.server", "a b"] {
        let mut bench = Bench::new(&[]);
        let asked = format!("{id}/x");
        let refusal = bench.choose(&asked).unwrap_err().to_string();
        let lines = refusal.split_once("config.toml:\n").expect("the lines").1;
        let (settings, mistakes) = Settings::read(Path::new("config.toml"), lines);
        assert_eq!(mistakes, [], "{lines}");
        bench.settings = settings;
        assert_eq!(bench.choose(&asked).unwrap().model.spec(), asked);
    }
}

#[test]
fn a_stored_key_of_a_provider_without_a_default_model_hides_no_other() {
    let bench = Bench::new(&[]);
    bench.keys.set("xai", "k").unwrap();
    assert_eq!(bench.found(), None);
    bench.keys.set("zeta", "k").unwrap();
    bench.keys.set("mistral", "k").unwrap();
    assert_eq!(bench.found().unwrap().model.provider, "mistral");
}

#[test]
fn a_choice_is_made_again_as_it_was_made() {
    let mut bench = Bench::new(&[("ANTHROPIC_API_KEY", "k")]);
    assert_eq!(bench.found().unwrap().wanted(), None);
    let chosen = bench.choose("openai/x").unwrap();
    assert_eq!(chosen.wanted(), Some(WantedModel::new("openai/x", "--model")));
    bench.settings.model = Some(Names::One("groq/".into()));
    assert_eq!(bench.found().unwrap().wanted(), None, "the file may say another one now");
}

#[test]
fn the_model_option_wins_then_yoi_model_then_settings_then_keys() {
    let mut bench = Bench::new(&[("YOI_MODEL", "gemini/"), ("ANTHROPIC_API_KEY", "k")]);
    bench.settings.model = Some(Names::One("deepseek/".into()));
    let choice = bench.choose("openai/gpt-6-luna").unwrap();
    assert_eq!(
        (choice.model.spec().as_str(), choice.why.as_str()),
        ("openai/gpt-6-luna", "--model")
    );
    assert!(choice.chosen && choice.sends.is_none() && choice.notice.is_none());
    assert_eq!(bench.found().unwrap().why, "YOI_MODEL");
    bench.env.remove("YOI_MODEL");
    let choice = bench.found().unwrap();
    assert_eq!((choice.model.provider.as_str(), choice.why.as_str()), ("deepseek", "config.toml"));
    bench.settings.model = None;
    assert_eq!(bench.found().unwrap().model.provider, "anthropic");
}

#[test]
fn base_urls_come_from_the_environment_and_are_joined() {
    for (name, value, spec, url) in [
        ("ANTHROPIC_BASE_URL", "http://127.0.0.1:9/", "anthropic/", "http://127.0.0.1:9/v1"),
        ("OPENAI_BASE_URL", "http://h.example/v1", "openai/", "http://h.example/v1"),
        ("GEMINI_BASE_URL", "http://h.example", "gemini/", "http://h.example/v1beta"),
        ("GOOGLE_GEMINI_BASE_URL", "http://h.example/v1", "gemini/", "http://h.example/v1"),
        ("OPENROUTER_BASE_URL", "http://h.example/x", "openrouter/", "http://h.example/x/v1"),
    ] {
        let choice = Bench::new(&[(name, value)]).choose(spec).unwrap();
        assert_eq!((choice.model.base_url.as_str(), choice.model.own_url), (url, false));
    }
    let bad = Bench::new(&[("OPENAI_BASE_URL", "nonsense")]).choose("openai/").unwrap_err();
    assert!(bad.to_string().contains("OPENAI_BASE_URL"), "{bad}");
}

#[test]
fn a_model_is_named_by_provider_and_id_by_provider_or_by_a_known_id() {
    let bench = Bench::new(&[]);
    let spec = |asked: &str| bench.choose(asked).unwrap().model.spec();
    assert_eq!(spec("openrouter/meta/llama"), "openrouter/meta/llama");
    assert_eq!(spec("anthropic"), spec("anthropic/"));
    assert_eq!(spec("gpt-6-luna"), "openai/gpt-6-luna");
    let why = |asked: &str| bench.choose(asked).unwrap_err().to_string();
    assert!(
        why("nobody/x").contains("no provider nobody (known: anthropic"),
        "{}",
        why("nobody/x")
    );
    let config = bench.dir.path().join("config.toml").display().to_string();
    assert!(
        why("nobody/x").contains(&config)
            && why("nobody/x").contains("\nkey_env = \"NOBODY_API_KEY\"")
    );
    assert!(why("nonsense").contains("provider/model"));
    assert!(why("ollama/").contains("ollama/<model>"));
    assert!(why("openai-compatible/x").contains("OPENAI_COMPATIBLE_BASE_URL"));
}

#[test]
fn an_unknown_model_of_a_known_provider_is_used_with_a_remark() {
    let choice = Bench::new(&[]).choose("anthropic/claude-next").unwrap();
    assert_eq!(choice.model.price, None);
    assert!(choice.notice.unwrap().contains("anthropic/claude-next"));
    assert_eq!(Bench::new(&[]).choose("ollama/qwen3").unwrap().notice, None);
}

#[test]
fn a_script_path_is_made_absolute_and_comes_back_from_its_spec() {
    let bench = Bench::new(&[]);
    for (asked, path) in [("rehearsal:a.toml", "/w/dir/a.toml"), ("rehearsal:/b.toml", "/b.toml")] {
        let model = bench.choose(asked).unwrap().model;
        assert_eq!((model.wire, model.model.as_str()), (Wire::Rehearsal, path));
        assert_eq!(bench.choose(&model.spec()).unwrap().model, model);
    }
    assert_eq!(bench.choose("rehearsal:@tour").unwrap().model.model, "@tour");
    assert_eq!(bench.choose("rehearsal:"), Err(ModelError::NoScript));
}

#[test]
fn openai_speaks_responses_unless_the_settings_say_chat() {
    let mut bench = Bench::new(&[]);
    assert_eq!(bench.choose("openai/").unwrap().model.wire, Wire::Responses);
    let text = "[provider.openai]\nwire = \"chat\"";
    bench.settings = Settings::read(Path::new("c"), text).0;
    assert_eq!(bench.choose("openai/").unwrap().model.wire, Wire::Chat);
}

#[test]
fn a_key_that_is_missing_is_named_and_a_server_on_this_machine_needs_none() {
    let bench = Bench::new(&[]);
    let model = bench.choose("groq/").unwrap().model;
    assert_eq!(model.key, KeySource::Env("GROQ_API_KEY".into()));
    let local = Bench::new(&[("OPENAI_BASE_URL", "http://127.0.0.1:8080")]);
    let unset = KeySource::Unset("OPENAI_API_KEY".into());
    assert_eq!(local.choose("openai/x").unwrap().model.key, unset);
    assert_eq!(bench.choose("ollama/x").unwrap().model.key, KeySource::None);
    bench.keys.set("vllm", "k").unwrap();
    assert_eq!(bench.choose("vllm/x").unwrap().model.key, KeySource::File("vllm".into()));
}

#[test]
fn a_workspace_chooses_only_a_known_model_with_a_key_and_it_is_said() {
    let mut bench = Bench::new(&[("OPENAI_API_KEY", "k")]);
    for (asked, used) in [
        ("openai/gpt-6-luna", "openai/gpt-6-luna"),
        ("openai/unheard-of", "openai/gpt-6.1-sol"),
        ("anthropic/claude-opus-5-5", "openai/gpt-6.1-sol"),
        ("nobody/x", "openai/gpt-6.1-sol"),
    ] {
        bench.workspace.model = Some(asked.into());
        let choice = bench.found().unwrap();
        assert_eq!(choice.model.spec(), used, "{asked}");
        assert!(!choice.chosen);
        assert_eq!(choice.sends.is_some(), asked == used, "{asked}: a key is a choice");
    }
}

#[test]
fn a_model_of_a_workspace_that_cannot_count_is_ignored_with_its_reason() {
    let mut bench = Bench::new(&[("OPENAI_API_KEY", "k")]);
    for (asked, why) in [
        ("openai/gpt-6-luna", None),
        ("openai/unheard-of", Some("openai/unheard-of is not a known model")),
        ("anthropic/claude-opus-5-5", Some("ANTHROPIC_API_KEY")),
        ("nobody/x", Some("nobody")),
    ] {
        bench.workspace.model = Some(asked.into());
        let ignored = bench.ignored_of_workspace();
        assert_eq!(ignored.is_some(), why.is_some(), "{asked}: {ignored:?}");
        let text = ignored.unwrap_or_default();
        assert!(text.contains(why.unwrap_or_default()) && !text.contains('\n'), "{text}");
        assert!(text.is_empty() || text.starts_with(&format!("model = {asked:?} is ignored: ")));
    }
}

#[test]
fn a_workspace_never_overrides_the_model_that_the_person_chose() {
    let mut bench = Bench::new(&[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")]);
    bench.workspace.model = Some("openai/gpt-6-luna".into());
    assert_eq!(bench.found().unwrap().model.spec(), "openai/gpt-6-luna", "no person chose one");
    bench.settings.model = Some(Names::One("anthropic/claude-opus-5-5".into()));
    let choice = bench.found().unwrap();
    assert_eq!((choice.model.spec().as_str(), choice.chosen), ("anthropic/claude-opus-5-5", true));
    bench.env.insert("YOI_MODEL".into(), "openai/gpt-6.1-sol".into());
    assert_eq!(bench.found().unwrap().model.spec(), "openai/gpt-6.1-sol");
}

#[test]
fn no_key_is_in_anything_that_a_choice_writes_or_shows() {
    const KEY: &str = "sk-search-for-me";
    let mut bench = Bench::new(&[("ANTHROPIC_API_KEY", KEY)]);
    bench.keys.set("openai", KEY).unwrap();
    let mut written = String::new();
    for choice in [bench.found().unwrap(), bench.choose("openai/").unwrap()] {
        written += &serde_json::to_string(&choice.model).unwrap();
        written += &format!("{choice:?}");
        let secret = bench.keys.resolve(&choice.model.key, &[&bench.env]).unwrap();
        assert_eq!(secret.as_ref().unwrap().expose(), KEY);
        written += &format!("{secret:?}");
        let model: Model =
            serde_json::from_str(&serde_json::to_string(&choice.model).unwrap()).unwrap();
        assert_eq!(model, choice.model);
    }
    bench.env.clear();
    written += &format!("{:?}", bench.choose("anthropic/").unwrap());
    assert!(!written.contains("search-for-me"), "{written}");
    let files = std::fs::read_dir(bench.dir.path()).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["keys.toml"]);
}

/// Answers one request with this body, or holds the connection open and says nothing.
fn server(body: Option<&'static str>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/list", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 4096]);
        if let Some(body) = body {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes());
            let _ = stream.write_all(body.as_bytes());
        }
        let _ = stream.read(&mut [0; 16]);
    });
    address
}

#[tokio::test]
async fn a_probe_takes_the_first_model_of_a_list_and_gives_up_on_silence() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let full = server(Some(r#"{"data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},{"id":"b"}]}"#));
    assert_eq!(first_model(&http, &full).await.as_deref(), Some("qwen3:8b"));
    let empty = server(Some(r#"{"data":[]}"#));
    assert_eq!(first_model(&http, &empty).await, None);
    let started = std::time::Instant::now();
    assert_eq!(first_model(&http, &server(None)).await, None);
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn the_token_of_a_gateway_counts_before_a_key_and_a_missing_key_has_the_name_of_one() {
    for (spec, name) in [("anthropic/m", "ANTHROPIC_API_KEY"), ("gemini/m", "GEMINI_API_KEY")] {
        let missing = Bench::new(&[]).choose(spec).unwrap().model.key;
        assert_eq!(missing, KeySource::Env(name.into()));
    }
    let both = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_AUTH_TOKEN", "t")];
    let key = Bench::new(&both).found().unwrap().model.key;
    assert!(key.is_bearer() && key == KeySource::Env("ANTHROPIC_AUTH_TOKEN".into()));
}
