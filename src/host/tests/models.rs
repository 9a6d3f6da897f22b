//! Which model a Pod gets while the host runs: keys, settings and servers that come later are found, and a
//! person agrees once to where text goes.

use crate::config::Keys;
use crate::host::tests::{Bench, run_end, serve};
use crate::protocol::method::NewPod;
use crate::protocol::{Event, Method, PodInfo, PodName, State};
use axum::Router;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use axum::routing::post;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use tokio::sync::watch;

/// A port of this machine where no program listens.
fn dead() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Settings with no model server on this machine but the one at `ollama`.
fn settings(ollama: SocketAddr) -> String {
    format!(
        "provider.ollama.base_url = 'http://{ollama}'\nprovider.lmstudio.base_url = 'http://{}'\n",
        dead()
    )
}

/// A server that lists one model, and answers nothing else.
fn model_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut first = String::new();
            let _ = BufReader::new(&stream).read_line(&mut first);
            let body = if first.starts_with("GET /v1/models ") {
                r#"{"data":[{"id":"qwen3"}]}"#
            } else {
                ""
            };
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len());
        }
    });
    address
}

fn key(name: &str) -> BTreeMap<String, String> {
    let base = format!("http://{}", dead());
    BTreeMap::from([(name.to_owned(), "sk-test".to_owned()), ("ANTHROPIC_BASE_URL".into(), base)])
}

impl Bench {
    async fn pod_with(&self, env: BTreeMap<String, String>) -> PodInfo {
        let home = self.root.join("home").display().to_string();
        let env = env.into_iter().chain([("HOME".to_owned(), home)]).collect();
        let new = NewPod { cwd: self.root.join("w"), env, ..NewPod::default() };
        match self.client.call(None, Method::New(new)).await.unwrap() {
            Event::Created { info } => *info,
            other => panic!("{other:?}"),
        }
    }

    async fn bare_pod(&self) -> PodInfo {
        let info = self.pod_with(BTreeMap::new()).await;
        assert_eq!((info.model.as_str(), &info.model_sends), ("", &None));
        info
    }

    pub fn write_settings(&self, text: &str) {
        std::fs::write(self.root.join("home/config/config.toml"), text).unwrap();
    }

    /// Agrees to what the Pod shows.
    async fn agree(&self, pod: &PodName) {
        let sends = self.info(pod).await.model_sends.expect("something to agree to");
        self.call(pod, Method::Consent { sends }).await.unwrap();
    }
}

#[tokio::test]
async fn a_pod_without_a_model_finds_the_key_of_the_next_screen() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let pod = bench.bare_pod().await.name;
    bench.call(&pod, Method::Open { env: key("ANTHROPIC_API_KEY") }).await.unwrap();
    let info = bench.info(&pod).await;
    assert!(info.model.starts_with("anthropic/"), "{}", info.model);
    assert_eq!((info.model_why.as_str(), info.model_chosen), ("ANTHROPIC_API_KEY is set", false));
    assert_eq!(info.model_sends, None, "a key is a choice");
    assert_eq!(info.model_key.as_deref(), Some("key from ANTHROPIC_API_KEY"));
    assert!(info.model_address.unwrap().starts_with("http://127.0.0.1:"));
    let bench = bench.restarted().await;
    assert_eq!(bench.info(&pod).await.model, info.model, "the choice is stored");
}

#[tokio::test]
async fn a_stored_key_is_found_by_the_next_message_which_is_sent_with_it() {
    let base = format!("provider.anthropic.base_url = 'http://{}'\n", dead());
    let bench = Bench::with_settings(&format!("{}{base}", settings(dead()))).await;
    let pod = bench.bare_pod().await.name;
    Keys::at(&bench.host.shared.dirs.config).set("anthropic", "sk-test").unwrap();
    bench.call(&pod, Method::say("hello")).await.unwrap();
    let info = bench.info(&pod).await;
    assert_eq!(info.model_why, "a key for anthropic is stored");
    assert_eq!(info.model_key.as_deref(), Some("key stored for anthropic"));
    assert_eq!(info.model_sends, None);
}

#[tokio::test]
async fn a_key_that_is_stored_later_takes_the_place_of_one_that_is_missing() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let model = Some("anthropic/claude-x".to_owned());
    let env = BTreeMap::from([("HOME".to_owned(), "/".to_owned())]);
    let new = NewPod { cwd: bench.root.join("w"), model, env, ..NewPod::default() };
    let Event::Created { info } = bench.client.call(None, Method::New(new)).await.unwrap() else {
        panic!()
    };
    let queued = Method::Send { input: vec![], queue: true };
    bench.call(&info.name, queued).await.unwrap();
    assert_eq!(bench.info(&info.name).await.state, State::NeedsYou);
    Keys::at(&bench.host.shared.dirs.config).set("anthropic", "sk-test").unwrap();
    bench.write_settings(&format!("provider.anthropic.base_url = 'http://{}'\n", dead()));
    bench.call(&info.name, Method::Open { env: BTreeMap::new() }).await.unwrap();
    let after = bench.info(&info.name).await;
    assert_ne!(after.state, State::NeedsYou, "the run began: {after:?}");
    assert_eq!((after.model_why.as_str(), after.model_chosen), ("--model", true));
}

#[tokio::test]
async fn consent_is_asked_once_for_each_provider_address_and_source_of_the_key() {
    let bench = Bench::with_settings(&settings(dead())).await;
    bench.write_workspace_file("model = 'anthropic/'\n");
    let env = key("ANTHROPIC_API_KEY");
    let (first, second) = (bench.pod_with(env.clone()).await, bench.pod_with(env.clone()).await);
    assert!(first.model_sends.is_some() && second.model_sends.is_some());
    let wrong = Method::Consent { sends: "sends nothing".into() };
    assert!(bench.call(&first.name, wrong).await.is_err(), "only to what the Pod shows");
    assert!(bench.info(&first.name).await.model_sends.is_some());
    bench.agree(&first.name).await;
    assert_eq!(bench.info(&first.name).await.model_sends, None);
    assert_eq!(bench.pod_with(env.clone()).await.model_sends, None, "a new Pod is not asked about");
    let bench = bench.restarted().await;
    assert_eq!(bench.pod_with(env.clone()).await.model_sends, None, "after a restart neither");
    assert_eq!(bench.info(&second.name).await.model_sends, None);
    let elsewhere = key("ANTHROPIC_API_KEY");
    assert!(bench.pod_with(elsewhere).await.model_sends.is_some(), "another address");
    Keys::at(&bench.host.shared.dirs.config).set("anthropic", "sk-test").unwrap();
    let stored = env.into_iter().filter(|(name, _)| name != "ANTHROPIC_API_KEY").collect();
    assert!(bench.pod_with(stored).await.model_sends.is_some(), "another key");
}

#[tokio::test]
async fn consent_reaches_every_pod_whose_text_goes_to_the_same_place() {
    let mut bench = Bench::with_settings(&settings(dead())).await;
    bench.write_workspace_file("model = 'anthropic/'\n");
    let env = key("ANTHROPIC_API_KEY");
    let (first, second) = (bench.pod_with(env.clone()).await, bench.pod_with(env).await);
    bench.agree(&first.name).await;
    let agreed = |event: &Event| matches!(event, Event::PodChanged { info } if info.name == second.name && info.model_sends.is_none());
    bench.next(agreed).await;
}

#[tokio::test]
async fn a_consent_is_listed_among_the_rules_and_after_its_revocation_nothing_is_sent_without_a_new_one()
 {
    let bench = Bench::with_settings(&settings(dead())).await;
    bench.write_workspace_file("model = 'anthropic/'\n");
    let env = key("ANTHROPIC_API_KEY");
    let base = env["ANTHROPIC_BASE_URL"].clone();
    let (first, second) = (bench.pod_with(env.clone()).await, bench.pod_with(env.clone()).await);
    let asked = first.model_sends.clone().unwrap();
    bench.agree(&first.name).await;
    let bench = bench.restarted().await;
    let listed = bench.call(&first.name, Method::ListPolicy).await.unwrap();
    let Event::Policy { consents, .. } = listed else { panic!() };
    let [consent] = consents.as_slice() else { panic!("{consents:?}") };
    assert_eq!(consent.provider, "anthropic");
    assert!(consent.base_url.starts_with(&base), "{consent:?}");
    assert_eq!(consent.key, "with the key from ANTHROPIC_API_KEY");
    assert!(asked.ends_with(&consent.key), "the words of the question: {asked}");
    let revoke = Method::Revoke { rule: consent.id };
    let ended = bench.client.call(None, revoke.clone()).await.unwrap();
    assert_eq!(
        ended,
        Event::Policy {
            rules: Vec::new(),
            consents: vec![consent.clone()],
            trusts: Vec::new(),
            clients: Vec::new(),
            closed: Vec::new(),
            kept: Vec::new()
        }
    );
    for pod in [&first.name, &second.name] {
        let refused = bench.call(pod, Method::say("hello")).await.unwrap_err().message;
        assert!(refused.contains("nothing was sent"), "{refused}");
        assert_eq!(bench.info(pod).await.model_sends.as_ref(), Some(&asked));
    }
    assert!(bench.client.call(None, revoke).await.is_err(), "it was revoked already");
    bench.agree(&first.name).await;
    let listed = bench.client.call(None, Method::ListPolicy).await.unwrap();
    let Event::Policy { consents, .. } = listed else { panic!() };
    assert!(consents[0].id > consent.id, "no number is given twice: {consents:?}");
}

#[tokio::test]
async fn nothing_is_sent_to_a_model_without_a_choice_or_a_consent() {
    let bench = Bench::with_settings(&settings(dead())).await;
    bench.write_workspace_file("model = 'anthropic/'\n");
    let pod = bench.pod_with(key("ANTHROPIC_API_KEY")).await.name;
    for method in [
        Method::say("hello"),
        Method::Send { input: vec![], queue: true },
        Method::Compact,
        Method::Steer { id: None, input: vec![] },
    ] {
        let refused = bench.call(&pod, method.clone()).await.unwrap_err().message;
        assert!(refused.contains("nothing was sent"), "{method:?}: {refused}");
    }
    let waiting = bench.host.shared.store.messages(&pod).await.unwrap();
    assert_eq!(waiting, [], "what was refused is never sent later");
    bench.call(&pod, Method::Notify { message: "psst".into() }).await.unwrap();
    assert_eq!(bench.info(&pod).await.state, State::NeedsYou);
    bench.agree(&pod).await;
    assert_ne!(bench.info(&pod).await.state, State::NeedsYou, "what waited goes on");
}

#[tokio::test]
async fn a_provider_that_is_added_while_the_host_runs_is_known_to_the_next_request() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let pod = bench.bare_pod().await.name;
    let model = || Method::SetModel { model: "mine/m".into() };
    let refused = bench.call(&pod, model()).await.unwrap_err().message;
    let file = bench.root.join("home/config/config.toml").display().to_string();
    assert!(refused.contains(&file) && refused.contains("key_env"), "{refused}");
    let lines = refused.split_once(&format!("{file}:\n")).unwrap().1.to_owned();
    bench.write_settings(&format!("{lines}\nmodle = 1\n"));
    let refused = bench.call(&pod, model()).await.unwrap_err().message;
    assert!(refused.contains("modle") && refused.contains("stay in force"), "{refused}");
    bench.write_settings(&lines);
    bench.call(&pod, model()).await.unwrap();
    let info = bench.info(&pod).await;
    assert_eq!((info.model.as_str(), info.model_chosen), ("mine/m", true));
}

#[tokio::test]
async fn a_base_url_that_is_changed_in_the_settings_is_used_and_shown_by_the_next_message() {
    let one = format!("{}model = 'mine/m'\n[provider.mine]\nwire = 'chat'\n", settings(dead()));
    let (first, second) = (dead(), dead());
    let bench = Bench::with_settings(&format!("{one}base_url = 'http://{first}'\n")).await;
    let pod = bench.pod_with(BTreeMap::new()).await.name;
    let base = || async { bench.host.shared.store.pod(&pod).await.unwrap().unwrap().config };
    assert!(base().await.to_string().contains(&first.to_string()));
    bench.write_settings(&format!("{one}base_url = 'http://{second}'\n"));
    bench.call(&pod, Method::say("hello")).await.unwrap();
    assert!(base().await.to_string().contains(&second.to_string()));
}

impl Bench {
    /// The address that the store has for a Pod's model.
    async fn stored_address(&self, pod: &PodName) -> String {
        let config = self.host.shared.store.pod(pod).await.unwrap().unwrap().config;
        config["model"]["model"]["base_url"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn an_address_that_an_environment_gives_is_used_by_a_live_pod_from_its_next_message_on() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let env = BTreeMap::from([("ANTHROPIC_API_KEY".to_owned(), "sk-test".to_owned())]);
    let pod = bench.pod_with(env).await.name;
    assert_eq!(bench.stored_address(&pod).await, "https://api.anthropic.com/v1");
    let offered = key("ANTHROPIC_API_KEY");
    let address = format!("{}/v1", offered["ANTHROPIC_BASE_URL"]);
    bench.call(&pod, Method::Open { env: offered }).await.unwrap();
    assert_eq!(bench.stored_address(&pod).await, address);
    bench.call(&pod, Method::Open { env: BTreeMap::new() }).await.unwrap();
    bench.call(&pod, Method::SetModel { model: "anthropic/claude-x".into() }).await.unwrap();
    assert_eq!(bench.stored_address(&pod).await, address, "another model of the provider");
}

#[tokio::test]
async fn an_address_that_an_environment_gave_is_kept_when_the_host_starts_again_without_it() {
    let mut bench = Bench::with_settings(&settings(dead())).await;
    let offered = key("ANTHROPIC_API_KEY");
    let address = format!("{}/v1", offered["ANTHROPIC_BASE_URL"]);
    let pod = bench.pod_with(offered).await.name;
    for is_of_earlier_release in [false, true] {
        if is_of_earlier_release {
            let mut config = bench.host.shared.store.pod(&pod).await.unwrap().unwrap().config;
            let model = config["model"]["model"].as_object_mut().unwrap();
            assert_eq!(model.remove("url_variable").unwrap(), "ANTHROPIC_BASE_URL");
            bench.host.shared.store.set_config(&pod, &config).await.unwrap();
        }
        bench = bench.restarted().await;
        let restore = Method::Restore { name: pod.to_string() };
        bench.client.call(None, restore).await.unwrap();
        let window = 1000 + u64::from(is_of_earlier_release);
        let more = format!("[models.'anthropic/claude-x']\nwindow = {window}\n");
        bench.write_settings(&format!("{}{more}", settings(dead())));
        bench.call(&pod, Method::SetModel { model: "anthropic/claude-x".into() }).await.unwrap();
        assert_eq!(bench.info(&pod).await.context_window, window);
        assert_eq!(bench.stored_address(&pod).await, address);
    }
}

#[tokio::test]
async fn a_provider_without_a_model_is_answered_with_the_model_that_it_came_to() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let pod = bench.pod_with(key("ANTHROPIC_API_KEY")).await.name;
    let reply = bench.call(&pod, Method::SetModel { model: "anthropic/".into() }).await;
    let uses = bench.info(&pod).await.model;
    let Event::ModelFound { model: Some(found), .. } = reply.unwrap() else { panic!() };
    assert_eq!((found.model.as_str(), found.sends), (uses.as_str(), None));
    assert_ne!(found.model, "anthropic/");
}

#[tokio::test]
async fn a_server_on_this_machine_is_found_when_nothing_else_is_and_asked_about() {
    let server = model_server();
    let bench = Bench::with_settings(&settings(server)).await;
    let info = bench.pod_with(BTreeMap::new()).await;
    assert_eq!((info.model.as_str(), info.model_chosen), ("ollama/qwen3", false));
    assert_eq!(info.model_why, "ollama runs on this machine");
    assert!(info.model_sends.unwrap().ends_with(&format!("to {server} without a key")));
}

#[tokio::test]
async fn a_server_that_starts_later_is_found_by_the_next_message() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let pod = bench.bare_pod().await.name;
    bench.write_settings(&settings(model_server()));
    let refused = bench.call(&pod, Method::say("hello")).await.unwrap_err().message;
    assert!(refused.contains("ollama/qwen3"), "{refused}");
    assert_eq!(bench.info(&pod).await.model, "ollama/qwen3");
}

#[tokio::test]
async fn a_model_is_named_without_a_pod_as_a_new_pod_would_get_it() {
    let bench = Bench::with_settings(&settings(dead())).await;
    let find = |model: Option<&str>, env: BTreeMap<String, String>| {
        let model = model.map(str::to_owned);
        let find = Method::FindModel { cwd: bench.root.join("w"), model, env };
        bench.client.call(None, find)
    };
    let Event::ModelFound { model: None, config, .. } = find(None, BTreeMap::new()).await.unwrap()
    else {
        panic!()
    };
    assert_eq!(config, bench.root.join("home/config/config.toml"));
    let found = find(None, key("ANTHROPIC_API_KEY")).await.unwrap();
    let Event::ModelFound { model: Some(found), .. } = found else { panic!() };
    assert_eq!((found.why.as_str(), found.sends), ("ANTHROPIC_API_KEY is set", None));
    let refused = find(Some("nope/x"), BTreeMap::new()).await.unwrap_err().message;
    assert!(refused.contains("there is no provider nope"), "{refused}");
    let settings = "[provider.mine]\nwire = \"openai-chat\"\nmodel = \"mine/a\"\n";
    std::fs::write(&config, settings).unwrap();
    let refused = find(Some("mine/a"), BTreeMap::new()).await.unwrap_err().message;
    let wrong = "`provider.mine.wire` is \"openai-chat\", but must be one of";
    assert!(refused.contains(wrong) && !refused.contains("no provider mine"), "{refused}");
    let refused = find(Some("other/a"), BTreeMap::new()).await.unwrap_err().message;
    let at = |text: &str| refused.find(text).unwrap_or_else(|| panic!("{text}: {refused}"));
    assert!(at(wrong) < at("there is no provider other"), "{refused}");
}

#[tokio::test]
async fn a_server_without_the_responses_wire_is_asked_for_it_once_in_the_life_of_the_host() {
    use axum::extract::Request;
    use axum::http::StatusCode;
    use axum::response::IntoResponse as _;
    use std::sync::{Arc, Mutex};
    let paths = Arc::new(Mutex::new(Vec::new()));
    let seen = paths.clone();
    let server = move |request: Request| {
        let path = request.uri().path().to_owned();
        seen.lock().unwrap().push(path.clone());
        async move {
            if !path.ends_with("/chat/completions") {
                return (StatusCode::NOT_FOUND, "{}").into_response();
            }
            let delta = serde_json::json!({"content": "here"});
            let choice = serde_json::json!({"index": 0, "delta": delta, "finish_reason": "stop"});
            let chunk = serde_json::json!({"choices": [choice]});
            let text = format!("data: {chunk}\n\ndata: [DONE]\n\n");
            ([("content-type", "text/event-stream")], text).into_response()
        }
    };
    let url = crate::host::tests::serve(axum::Router::new().fallback(server)).await;
    let provider =
        format!("[provider.mine]\nwire = 'responses'\nbase_url = '{url}'\nkey_env = []\n");
    let mut bench = Bench::with_settings(&format!("model = 'mine/m'\n{provider}")).await;
    let pod = bench.pod_with(BTreeMap::new()).await.name;
    for _ in 0..2 {
        bench.call(&pod, Method::say("hello")).await.unwrap();
        assert_eq!(bench.end().await, crate::protocol::RunResult::Finished);
        bench.is(&pod, State::Idle).await;
    }
    let (responses, chat) = ("/v1/responses", "/v1/chat/completions");
    assert_eq!(*paths.lock().unwrap(), [responses, chat, chat]);
}

#[tokio::test]
async fn what_a_server_refused_is_forgotten_when_a_person_chooses_its_model_again() {
    let asked = watch::Sender::new(Vec::new());
    let came = asked.clone();
    let answer = post(async move |body: String| {
        let body: Value = serde_json::from_str(&body).unwrap();
        let has_field = body.get("stream_options").is_some();
        came.send_modify(|all| all.push(has_field));
        if has_field {
            let error = json!({"error": {"message": "Unknown parameter: 'stream_options'."}});
            return (StatusCode::BAD_REQUEST, error.to_string()).into_response();
        }
        let choice = json!({"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"});
        let text = format!("data: {}\n\ndata: [DONE]\n\n", json!({"choices": [choice]}));
        ([("content-type", "text/event-stream")], text).into_response()
    });
    let url = serve(Router::new().route("/v1/chat/completions", answer)).await;
    let mut bench = Bench::with_settings(&format!(
        "[provider.fake]\nwire = 'chat'\nbase_url = '{url}'\nkey_env = []\n"
    ))
    .await;
    let uses = |model: &str| Method::SetModel { model: format!("fake/{model}") };
    let pod = bench.new_pod(None).await.name;
    let again = |event: &Event| matches!(event, Event::Alert(alert) if alert.message.contains("chosen again, so yoi forgot"));
    for (model, expected) in
        [("x", vec![true, false]), ("y", vec![true, false]), ("x", vec![false])]
    {
        bench.call(&pod, uses(model)).await.unwrap();
        bench.call(&pod, Method::say("hello")).await.unwrap();
        bench.next(run_end).await;
        bench.is(&pod, State::Idle).await;
        assert_eq!(asked.send_replace(Vec::new()), expected, "{model}");
    }
    assert_eq!(bench.host.shared.store.learned().await.unwrap().len(), 2);
    bench.call(&pod, uses("x")).await.unwrap();
    let known = bench.host.shared.store.learned().await.unwrap();
    assert_eq!(known.len(), 1, "what y refused stays known");
    bench.next(again).await;
    bench.call(&pod, Method::say("hello")).await.unwrap();
    bench.next(run_end).await;
    assert_eq!(asked.send_replace(Vec::new()), [true, false], "it is tried again");
}
