//! `:connect`: asks for a provider and its key, tries the key, and stores it.

use crate::verb::dialogue::{KeyReply, KeyStep};
use crate::verb::{
    Action, Dialogue, End, Known, Next, Pick, Reply, Request, Said, UNSEEN, Verb, Way, Why, of,
    verb,
};
use clap::Args;
use yoi::config::Secret;
use yoi::llm::trial::{Tried, Works};
use yoi::protocol::{Event, Method, PodInfo, State};

pub static VERB: Verb = of::<Connect>(Verb {
    ways: UNSEEN,
    more: &[
        "Type or paste the key: the screen does not show it. To test it, yoi asks the provider for the list of its models, \
         which costs nothing. yoi stores a key that works in keys.toml, which only you can read and no Pod can, and \
         forgets any other.",
        "If the environment has a key, yoi tests that one and asks for none. A server on this machine needs none.",
        "In a shell, yoi reads the key without echo, or from standard input if that is not a terminal.",
    ],
    ..verb("connect", "connect a model: asks for a provider and its key, tests the key, stores it")
});

/// Providers with the name and the place where a person gets a key, in the order in which they are listed.
const KNOWN: [(&str, &str, &str); 12] = [
    ("anthropic", "Anthropic", "platform.claude.com/settings/keys"),
    ("openai", "OpenAI", "platform.openai.com/api-keys"),
    ("gemini", "Gemini", "aistudio.google.com/apikey"),
    ("openrouter", "OpenRouter", "openrouter.ai/settings/keys"),
    ("ollama", "Ollama", ""),
    ("lmstudio", "LM Studio", ""),
    ("llama.cpp", "llama.cpp", ""),
    ("vllm", "vLLM", ""),
    ("deepseek", "DeepSeek", "platform.deepseek.com/api_keys"),
    ("groq", "Groq", "console.groq.com/keys"),
    ("mistral", "Mistral", "console.mistral.ai/api-keys"),
    ("xai", "xAI", "console.x.ai"),
];

#[derive(Args)]
struct Connect {
    /// anthropic, openai, gemini, openrouter, ollama, lmstudio … or one of config.toml
    #[arg(value_name = "PROVIDER")]
    provider: Option<String>,
    /// Ask for a key first, also where the provider lists its models without one
    #[arg(long)]
    key_first: bool,
    /// The providers of the list.
    #[arg(skip)]
    listed: Vec<String>,
    /// The key that was typed, until it is stored.
    #[arg(skip)]
    key: Option<Secret>,
    #[arg(skip)]
    is_stored: bool,
    #[arg(skip)]
    works: Works,
    /// The model that was chosen; `None` is the one of the settings or the default of the provider.
    #[arg(skip)]
    model: Option<String>,
    /// Where that choice counts, as it is said.
    #[arg(skip)]
    counts: String,
    /// Whether a message waits in the Pod for the model that it gets now.
    #[arg(skip)]
    message_waits: bool,
}

impl Dialogue for Connect {
    fn next(&mut self, known: &Known<'_>, last: Option<Reply>) -> Next {
        match (last, &self.provider) {
            (None, None) => self.list(known),
            (None, Some(_)) => self.begin(),
            (Some(Reply::Picked(at)), None) => {
                self.provider = self.listed.get(at).cloned();
                self.begin()
            }
            (Some(Reply::Picked(at)), Some(_)) => {
                self.model = self.works.models.get(at).cloned();
                self.write()
            }
            (Some(Reply::Key(reply)), _) => self.key_came(known, reply),
            (Some(reply), _) => match reply.all() {
                Ok(events) => self.used(known, events),
                Err(end) => Next::End(self.and_stored(end)),
            },
        }
    }
}

/// The most names of models in a sentence.
const MODELS: usize = 5;

impl Connect {
    fn id(&self) -> String {
        self.provider.clone().unwrap_or_default()
    }

    fn list(&mut self, known: &Known<'_>) -> Next {
        let row = |(_, name, place): &(&str, &str, &str)| {
            let help = match *place {
                "" => "on this machine, without a key".to_owned(),
                place => format!("a key from {place}"),
            };
            ((*name).to_owned(), help)
        };
        let is_own = |id: &&String| KNOWN.iter().all(|(known, ..)| known != id);
        let own: Vec<&String> = known.providers.iter().filter(is_own).collect();
        let rows = KNOWN.iter().map(row);
        let rows = rows.chain(own.iter().map(|id| ((*id).clone(), "from config.toml".to_owned())));
        let ids = KNOWN.iter().map(|(id, ..)| (*id).to_owned());
        self.listed = ids.chain(own.iter().map(|id| (*id).clone())).collect();
        let title = "connect a model: which provider?".into();
        Next::Pick(Pick { title, about: None, rows: rows.collect() })
    }

    fn begin(&self) -> Next {
        if self.key_first { self.type_key(self.about()) } else { self.try_key() }
    }

    fn try_key(&self) -> Next {
        Next::Key(KeyStep::Try { provider: self.id(), key: self.key.clone() })
    }

    fn type_key(&self, about: String) -> Next {
        Next::Key(KeyStep::Type { provider: self.id(), about })
    }

    fn about(&self) -> String {
        let place = KNOWN.iter().find(|(id, ..)| *id == self.id()).map(|(.., place)| *place);
        let from = match place {
            None | Some("") => String::new(),
            Some(place) => format!(" from {place}"),
        };
        format!(
            "Paste or type the key{from}. The screen does not show it. yoi tests it and stores it in keys.toml, which no Pod can read."
        )
    }

    fn key_came(&mut self, known: &Known<'_>, reply: KeyReply) -> Next {
        match reply {
            KeyReply::Typed(key) => {
                let text = key.expose();
                if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
                    return self.failed(known, "a key is one word", true);
                }
                self.key = Some(key);
                self.try_key()
            }
            KeyReply::Tried(Tried::NoProvider) => Next::End(no_provider(&self.id(), known)),
            KeyReply::Tried(Tried::NeedsKey) => self.type_key(self.about()),
            KeyReply::Tried(Tried::Failed(why)) => {
                let is_typed = self.key.take().is_some();
                self.failed(known, &why, is_typed)
            }
            KeyReply::Tried(Tried::Works(works)) => {
                self.works = works;
                match self.key.take() {
                    Some(key) => Next::Key(KeyStep::Store { provider: self.id(), key }),
                    None => self.choose(known),
                }
            }
            KeyReply::Stored(Ok(())) => {
                self.is_stored = true;
                self.choose(known)
            }
            KeyReply::Used(used) => {
                self.counts = match used {
                    Ok(model) if model == self.spec() => ", as config.toml says now".into(),
                    Ok(other) => format!(" until this screen closes: config.toml names {other}"),
                    Err(why) => format!(" in this screen only: {why}"),
                };
                self.use_it(known)
            }
            KeyReply::Stored(Err(why)) => Next::End(End::refused(Why::Failed, why)),
        }
    }

    /// A key that was typed is asked for again on the screen, where the reason stands above the line.
    fn failed(&self, known: &Known<'_>, why: &str, is_typed: bool) -> Next {
        let id = self.id();
        match (is_typed, known.way == Way::Shell) {
            (true, false) => {
                self.type_key(format!("{why}; nothing was stored: paste the key again"))
            }
            (true, true) => {
                let again = known.spell(&format!("connect {id}"));
                let text = format!("{why}; nothing was stored, {again} asks again");
                Next::End(End::refused(Why::Failed, text))
            }
            (false, true) => Next::End(End::refused(Why::Failed, why)),
            (false, false) => {
                let again = format!(":connect {id} tries it again");
                let lines = [why, &again].map(|line| ("", line.to_owned()).into()).to_vec();
                let said = Said::Text { title: format!("{id} is not connected"), lines };
                Next::End(End { said, ..End::default() })
            }
        }
    }

    /// The model of the provider: its default where it lists that or lists nothing, else the only one, else the one that
    /// the person picks.
    fn choose(&mut self, known: &Known<'_>) -> Next {
        let Works { models, default_model, .. } = &self.works;
        let has_default =
            default_model.as_ref().is_some_and(|name| models.is_empty() || models.contains(name));
        match models.as_slice() {
            // A shell ends before a new Pod could get what it chose.
            _ if has_default || known.way == Way::Shell => self.use_it(known),
            [] => Next::End(End::shown(format!(
                "{} · it lists no model: load one there, then :connect {}",
                self.said(),
                self.id()
            ))),
            [one] => {
                self.model = Some(one.clone());
                self.write()
            }
            several => {
                let title = format!("{}: which of its models do new Pods use?", self.said());
                let rows = several.iter().map(|name| (name.clone(), String::new())).collect();
                Next::Pick(Pick { title, about: None, rows })
            }
        }
    }

    fn write(&self) -> Next {
        Next::Key(KeyStep::Use { model: self.spec() })
    }

    fn spec(&self) -> String {
        format!("{}/{}", self.id(), self.model.clone().unwrap_or_default())
    }

    /// Asks what new Pods use now. A Pod that has no model gets this one, and one that waits for this key goes on.
    fn use_it(&mut self, known: &Known<'_>) -> Next {
        let model = match &self.model {
            Some(_) => Some(self.spec()),
            None => known.model.map(str::to_owned),
        };
        let (cwd, env) = (known.cwd.to_owned(), known.env.clone());
        let find = Request::host(Method::FindModel { cwd, model, env });
        let selected = known.selected.and_then(|name| known.family.get(name));
        let of_pod = selected
            .and_then(|info| Some(Request::to(info.name.clone(), self.gives(known, info)?)));
        self.message_waits = of_pod.is_some() && selected.is_some_and(has_waiting_message);
        Next::Call(std::iter::once(find).chain(of_pod).collect())
    }

    fn gives(&self, known: &Known<'_>, info: &PodInfo) -> Option<Method> {
        let is_of_provider = info.model.split_once('/').is_some_and(|(id, _)| id == self.id());
        match info.state {
            State::Stopped => None,
            _ if info.model.is_empty() => Some(Method::SetModel { model: self.spec() }),
            State::NeedsYou if is_of_provider => Some(Method::Open { env: known.env.clone() }),
            _ => None,
        }
    }

    /// What was tried, and what became of the key.
    fn said(&self) -> String {
        let id = self.id();
        match (self.is_stored, self.works.key.as_str()) {
            (true, _) => "the key works and is stored".into(),
            (false, "") => format!("{id} answers"),
            (false, key) if key.starts_with("no key") => {
                format!("{id} answers without a key; :connect {id} --key-first stores one")
            }
            (false, key) => format!("the {key} works"),
        }
    }

    /// A key that was stored is told about, also where what followed failed.
    fn and_stored(&self, end: End) -> End {
        match end.said {
            Said::Refused(why, text) if self.is_stored => {
                let said = Said::Refused(why, format!("{}, but {text}", self.said()));
                End { said, ..end }
            }
            _ => end,
        }
    }

    /// Whether the provider lists models, and not this one.
    fn lacks(&self, spec: &str) -> bool {
        let models = &self.works.models;
        let name = spec.split_once('/').map_or(spec, |(_, name)| name);
        // A server may list `llama3` with its tag, and a name without date with its date.
        let is_it = |model: &String| {
            let behind = model.strip_prefix(name);
            behind.is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '-', '@']))
        };
        !models.is_empty() && !models.iter().any(is_it)
    }

    /// How a person in a shell chooses a model.
    fn choice_in_shell(&self) -> String {
        let (id, models) = (self.id(), &self.works.models);
        let listed = models[..models.len().min(MODELS)].join(", ");
        let listed = match models.len() {
            0 => String::new(),
            few if few <= MODELS => format!("; it lists {listed}"),
            many => format!("; it lists {listed} and {} more", many - MODELS),
        };
        format!("name its model in config.toml: model = \"{id}/<name>\"{listed}")
    }

    fn used(&self, known: &Known<'_>, events: Vec<Event>) -> Next {
        let found = events.into_iter().find_map(|event| match event {
            Event::ModelFound { model, .. } => model,
            _ => None,
        });
        let (mut said, id) = (self.said(), self.id());
        if self.message_waits {
            said += " · send any message: the one that waits goes with it";
        }
        let is_this = |spec: &str| spec.split_once('/').is_some_and(|(of, _)| of == id);
        let end = match found {
            Some(found) if is_this(&found.model) && self.lacks(&found.model) => End::done(format!(
                "{said} · it does not list {}, which new Pods use; {}",
                found.model,
                match known.way {
                    Way::Shell => self.choice_in_shell(),
                    _ => format!(":model {id}/<name> chooses another"),
                }
            )),
            Some(found) if is_this(&found.model) => {
                End::done(format!("{said} · new Pods use {}{}", found.model, self.counts))
            }
            Some(found) => End::done(format!(
                "{said} · new Pods still use {}: {}; :model {id}/<name> chooses another",
                found.model, found.why
            )),
            None if known.way == Way::Shell => {
                End::done(format!("{said} · {}", self.choice_in_shell()))
            }
            None => End::done(format!("{said} · :model {id}/<name> chooses its model")),
        };
        match &self.model {
            Some(_) => Next::End(end.and(Action::ModelOfNewPods(self.spec()))),
            None => Next::End(end),
        }
    }
}

/// Whether a Pod without a model was sent something: its run said that there is none, and kept the message.
fn has_waiting_message(info: &PodInfo) -> bool {
    info.model.is_empty() && info.segment.is_some()
}

/// For a person who may have typed a key in a line of a shell.
pub const KEY_IN_HISTORY: &str =
    "if you typed a key, the history of your shell has it: delete it there";

/// The word is not repeated: a person may have typed the key in its place.
fn no_provider(asked: &str, known: &Known<'_>) -> End {
    if asked.starts_with("http://") || asked.starts_with("https://") {
        let again = known.spell("connect mine");
        return End::refused(
            Why::Failed,
            format!(
                "a server is connected by a name: write [provider.mine] with wire = \"openai_chat\" and base_url = its \
                 address into config.toml, then {again}"
            ),
        );
    }
    // No other likeness counts: a key would go to another company.
    let mut names =
        KNOWN.iter().map(|(id, ..)| *id).chain(known.providers.iter().map(String::as_str));
    if let Some(near) = names.find(|name| name.eq_ignore_ascii_case(asked)) {
        let again = known.spell(&format!("connect {near}"));
        return End::refused(
            Why::Failed,
            format!("no provider has this name; did you mean {again}?"),
        );
    }
    let list = known.spell("connect");
    let history = match known.way {
        Way::Shell => format!("; {KEY_IN_HISTORY}"),
        _ => String::new(),
    };
    End::refused(
        Why::Failed,
        format!(
            "no provider has this name: {list} lists them, and asks for the key afterwards{history}"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verb::tests::known_in;
    use std::collections::BTreeMap;
    use yoi::client::family::Family;
    use yoi::protocol::reply::FoundModel;
    use yoi::protocol::{PodName, SegmentId};

    const KEY: &str = "sk-typed-0123456789";

    fn begin(provider: Option<&str>) -> Connect {
        Connect {
            provider: provider.map(str::to_owned),
            key_first: false,
            listed: Vec::new(),
            key: None,
            is_stored: false,
            works: Works::default(),
            model: None,
            counts: String::new(),
            message_waits: false,
        }
    }

    /// Gives these replies one after the other, the first one to begin; returns the last step.
    fn drive(connect: &mut Connect, way: Way, replies: Vec<Option<Reply>>) -> Next {
        let (family, env) = (Family::default(), BTreeMap::new());
        let own = ["anthropic".to_owned(), "mine".to_owned()];
        let known = Known { providers: &own, ..known_in(&family, &env, way) };
        let mut steps = replies.into_iter().map(|reply| connect.next(&known, reply));
        steps.by_ref().last().expect("a step")
    }

    fn key(reply: KeyReply) -> Option<Reply> {
        Some(Reply::Key(reply))
    }

    fn works(models: &[&str], default_model: Option<&str>) -> Option<Reply> {
        key(KeyReply::Tried(Tried::Works(Works {
            key: String::new(),
            models: models.iter().map(|name| (*name).to_owned()).collect(),
            default_model: default_model.map(str::to_owned),
        })))
    }

    fn typed(text: &str) -> Option<Reply> {
        key(KeyReply::Typed(Secret::new(text)))
    }

    fn found(model: &str) -> Option<Reply> {
        let model = FoundModel {
            model: model.into(),
            why: "a key for it is stored".into(),
            sends: None,
            effort_unsent: None,
        };
        let found = Event::ModelFound {
            model: Some(model),
            effort: None,
            config: "/c/config.toml".into(),
            mistakes: Vec::new(),
        };
        Some(Reply::Results(vec![Ok(found)]))
    }

    fn said(step: Next) -> (Said, Option<Action>) {
        match step {
            Next::End(end) => (end.said, end.action),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_list_names_the_known_providers_and_those_of_the_settings() {
        let mut connect = begin(None);
        let Next::Pick(pick) = drive(&mut connect, Way::Line, vec![None]) else {
            panic!("no list")
        };
        assert_eq!(
            pick.rows[0],
            ("Anthropic".into(), "a key from platform.claude.com/settings/keys".into())
        );
        assert_eq!(pick.rows.last(), Some(&("mine".into(), "from config.toml".into())));
        let last = pick.rows.len() - 1;
        let step = drive(&mut connect, Way::Line, vec![Some(Reply::Picked(last))]);
        let Next::Key(KeyStep::Try { provider, key: None }) = step else { panic!("{step:?}") };
        assert_eq!(provider, "mine");
    }

    #[test]
    fn a_message_that_waits_for_the_model_is_named_with_how_it_is_sent() {
        for (segment, waits) in [(None, false), (Some(SegmentId::new()), true)] {
            let mut connect = begin(Some("ollama"));
            let info = PodInfo {
                segment,
                ..PodInfo::bare(
                    PodName::parse("alice").expect("a name"),
                    State::Idle,
                    1,
                    "/repo".into(),
                    "/repo".into(),
                )
            };
            let name = info.name.clone();
            let (mut family, env) = (Family::default(), BTreeMap::new());
            family.replace(vec![info], Vec::new(), Vec::new());
            let known = Known { selected: Some(&name), ..known_in(&family, &env, Way::Line) };
            let step = connect.next(&known, works(&["a"], Some("a")));
            let Next::Call(requests) = step else { panic!("{step:?}") };
            assert_eq!(requests.len(), 2, "the Pod gets the model");
            let (text, _) = said(connect.next(&known, found("ollama/a")));
            let Said::Done(text) = text else { panic!("{text:?}") };
            assert_eq!(text.contains("the one that waits goes with it"), waits, "{text}");
        }
    }

    #[test]
    fn a_shell_names_the_models_of_a_server_that_lacks_the_usual_one() {
        let used = |models: &[&str], chosen: &str| {
            let mut connect = begin(Some("deepseek"));
            let step = drive(&mut connect, Way::Shell, vec![None, works(models, Some("flash"))]);
            assert!(matches!(step, Next::Call(_)), "{step:?}");
            let (family, env) = (Family::default(), BTreeMap::new());
            let known = known_in(&family, &env, Way::Shell);
            match said(connect.next(&known, found(chosen))).0 {
                Said::Done(text) => text,
                other => panic!("{other:?}"),
            }
        };
        let lacks = used(&["chat", "reasoner"], "deepseek/flash");
        assert!(lacks.contains("it does not list deepseek/flash"), "{lacks}");
        assert!(lacks.ends_with("model = \"deepseek/<name>\"; it lists chat, reasoner"), "{lacks}");
        assert!(
            used(&["chat", "flash"], "deepseek/flash").ends_with("new Pods use deepseek/flash")
        );
        let many = used(&["a", "b", "c", "d", "e", "f", "g"], "deepseek/flash");
        assert!(many.ends_with("it lists a, b, c, d, e and 2 more"), "{many}");
    }

    #[test]
    fn an_address_or_a_misspelled_name_is_answered_with_what_is_meant() {
        for (asked, words) in [
            ("http://127.0.0.1:8000/v1", "[provider.mine]"),
            ("Anthropic", "did you mean"),
            ("sk-0123456789", "lists them"),
        ] {
            let mut connect = begin(Some(asked));
            let none = key(KeyReply::Tried(Tried::NoProvider));
            let Next::End(end) = drive(&mut connect, Way::Shell, vec![None, none]) else {
                panic!("{asked}: it goes on")
            };
            let Said::Refused(_, text) = end.said else { panic!("{asked}: {end:?}") };
            assert!(text.contains(words) && !text.contains("0123456789"), "{asked}: {text}");
        }
    }

    #[test]
    fn a_key_is_asked_for_only_where_one_is_needed_and_stored_only_after_it_works() {
        let mut connect = begin(Some("anthropic"));
        let needs = key(KeyReply::Tried(Tried::NeedsKey));
        let step = drive(&mut connect, Way::Line, vec![None, needs]);
        assert!(matches!(step, Next::Key(KeyStep::Type { .. })), "{step:?}");
        let step = drive(&mut connect, Way::Line, vec![typed(KEY)]);
        assert!(matches!(step, Next::Key(KeyStep::Try { key: Some(_), .. })), "{step:?}");
        let step = drive(&mut connect, Way::Line, vec![works(&["claude-x"], Some("claude-x"))]);
        let Next::Key(KeyStep::Store { key: stored, .. }) = step else { panic!("{step:?}") };
        assert_eq!(stored.expose(), KEY);
        let stored = key(KeyReply::Stored(Ok(())));
        let step = drive(&mut connect, Way::Line, vec![stored, found("anthropic/claude-x")]);
        let text = "the key works and is stored · new Pods use anthropic/claude-x";
        assert_eq!(said(step), (Said::Done(text.into()), None));
    }

    #[test]
    fn a_key_is_asked_for_first_where_a_server_would_list_its_models_without_one() {
        for way in [Way::Line, Way::Shell] {
            let mut connect = begin(Some("ollama"));
            connect.key_first = true;
            let step = drive(&mut connect, way, vec![None]);
            assert!(matches!(step, Next::Key(KeyStep::Type { .. })), "{step:?}");
            let step = drive(&mut connect, way, vec![typed(KEY), works(&["a"], Some("a"))]);
            let Next::Key(KeyStep::Store { provider, key }) = step else { panic!("{step:?}") };
            assert_eq!((provider.as_str(), key.expose()), ("ollama", KEY));
        }
    }

    #[test]
    fn a_key_that_is_refused_is_not_stored_and_is_forgotten() {
        let mut connect = begin(Some("anthropic"));
        let failed = || key(KeyReply::Tried(Tried::Failed("refused".into())));
        let about_of = |step| match step {
            Next::Key(KeyStep::Type { about, .. }) => about,
            other => panic!("{other:?}"),
        };
        let step = drive(&mut connect, Way::Line, vec![typed(KEY), failed()]);
        assert_eq!(about_of(step), "refused; nothing was stored: paste the key again");
        assert!(connect.key.is_none());
        let step = drive(&mut connect, Way::Line, vec![typed("two words")]);
        assert!(about_of(step).starts_with("a key is one word"));
        let step = drive(&mut connect, Way::Shell, vec![typed(KEY), failed()]);
        let text = "refused; nothing was stored, `yoi connect anthropic` asks again".to_owned();
        assert_eq!(said(step), (Said::Refused(Why::Failed, text), None));
        let mut local = begin(Some("ollama"));
        let Said::Text { lines, .. } = said(drive(&mut local, Way::Line, vec![None, failed()])).0
        else {
            panic!("no page")
        };
        assert_eq!(lines[0].text, "refused");
    }

    #[test]
    fn a_server_without_a_default_model_lets_the_person_pick_one() {
        let mut connect = begin(Some("ollama"));
        let step = drive(&mut connect, Way::Line, vec![None, works(&["a", "b"], None)]);
        let Next::Pick(pick) = step else { panic!("{step:?}") };
        assert_eq!(pick.rows.len(), 2);
        let step = drive(&mut connect, Way::Line, vec![Some(Reply::Picked(1))]);
        assert!(matches!(step, Next::Key(KeyStep::Use { model }) if model == "ollama/b"));
        let replies = vec![key(KeyReply::Used(Ok("ollama/b".into()))), found("ollama/b")];
        let (text, action) = said(drive(&mut connect, Way::Line, replies));
        let written = "ollama answers · new Pods use ollama/b, as config.toml says now";
        assert_eq!(text, Said::Done(written.into()));
        assert_eq!(action, Some(Action::ModelOfNewPods("ollama/b".into())));
        let mut none = begin(Some("ollama"));
        let (text, _) = said(drive(&mut none, Way::Line, vec![None, works(&[], None)]));
        assert!(matches!(text, Said::Info(text) if text.contains("load one there")));
    }

    #[test]
    fn another_model_that_counts_before_it_is_named() {
        let mut connect = begin(Some("openai"));
        let replies = vec![None, works(&[], Some("gpt")), found("anthropic/claude")];
        let (text, _) = said(drive(&mut connect, Way::Line, replies));
        let Said::Done(text) = text else { panic!("{text:?}") };
        assert!(
            text.contains("new Pods still use anthropic/claude") && text.contains(":model openai/"),
            "{text}"
        );
    }
}
