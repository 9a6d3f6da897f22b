//! The model of a Pod, its key, a person's consent to it, and the environment that clients offer.

use crate::config::Catalogue;
use crate::config::dirs::Env;
use crate::config::keys::{Keys, MissingKey};
use crate::config::model_select::{self, ModelChoice, ModelContext, WantedModel};
use crate::config::models::{KeySource, Model};
use crate::config::settings::Settings;
use crate::config::workspace_settings::WorkspaceSettings;
use crate::host::Answer;
use crate::host::models::{self, Local, Search};
use crate::host::pod::calls::reply;
use crate::host::pod::resolved::Resolved;
use crate::host::pod::{Pod, resolved};
use crate::llm::provider::{Access, own_headers};
use crate::llm::{Key, Provider};
use crate::protocol::{AlertSource, Effort, Event, Refusal, State};
use crate::run::{Models, Start, alert};
use crate::store::PodRow;
use crate::trace::OrLog as _;
use reqwest::header::HeaderMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the model of a Pod was looked up by.
#[derive(Clone)]
pub(super) struct LookedAt {
    pub(super) settings: Arc<Settings>,
    /// The environment of the Pod.
    pub(super) env: Env,
}

impl LookedAt {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings) && self.env == other.env
    }
}

/// The environment of a Pod that is older than this host: what the store has of it, and the variable that
/// gave the address of its model, which no client need offer again.
pub(super) fn stored_env(row: &PodRow, resolved: &Resolved, settings: &Settings) -> Env {
    let mut env = row.env.clone();
    let Some(model) = resolved.model.as_ref().map(|choice| &choice.model) else { return env };
    // Earlier releases stored the address without the variable that gave it.
    let may_be_of_variable = || {
        let own = settings.provider.get(&model.provider).and_then(|own| own.base_url.as_ref());
        let all = Catalogue::with(settings);
        let provider = all.providers.get(&model.provider)?;
        provider.url_variables().first().filter(|_| !model.own_url && own.is_none()).cloned()
    };
    if let Some(name) = model.url_variable.clone().or_else(may_be_of_variable) {
        env.insert(name, model.base_url.clone());
    }
    env
}

impl Pod {
    /// A client's environment: commands and keys come from it from now on.
    pub(super) async fn offer(&mut self, env: BTreeMap<String, String>, answer: Answer) {
        crate::config::keys::register_secrets(&env, &self.shared.settings.last().settings);
        self.env.extend(env);
        if !self.phase.is_running() {
            self.find_model_again().await;
        }
        reply(answer, Ok(Event::done()));
        self.go_on_with_model().await;
    }

    pub(super) async fn set_model(&mut self, spec: &str, answer: Answer) {
        let changed = self.change_model(WantedModel::new(spec, ":model")).await;
        let is_changed = changed.is_ok();
        reply(answer, changed);
        if is_changed {
            self.go_on_with_model().await;
        }
    }

    /// The next request is made with this effort, also one of the run under way.
    pub(super) async fn set_effort(&mut self, effort: Option<Effort>, answer: Answer) {
        let resolved = Resolved { effort, ..self.resolved.clone() };
        let stored = self.store_config(resolved).await;
        self.show_effort();
        let (choice, reading) = (self.resolved.model.as_ref(), self.shared.settings.last());
        reply(answer, stored.map(|()| self.shared.model_found(choice, reading)));
    }

    /// The effort of the Pod, else that of the settings, for the next request and for screens.
    pub(super) fn show_effort(&mut self) {
        let effort = self.resolved.effort.or(self.shared.settings.last().settings.effort);
        self.effort.send_replace(effort);
        let choice = self.resolved.model.clone();
        self.change(|info| resolved::show_effort(info, effort, choice.as_ref()));
    }

    async fn change_model(&mut self, wanted: WantedModel) -> Result<Event, Refusal> {
        let found = models::find(&self.shared, self.search(Some(wanted)), Local::Ignored).await?;
        let choice = found.choice.map_err(Refusal::invalid)?;
        let choice = choice.ok_or_else(|| Refusal::invalid("name a model"))?;
        if let (true, Err(missing)) = (self.phase.is_running(), self.key(&choice)) {
            let why = missing.sentence(&choice.model.provider);
            let why = format!("{why}; the run goes on with its model");
            return Err(Refusal::invalid(why));
        }
        self.looked_at = self.by(found.reading.settings.clone());
        let model = choice.model.clone();
        let is_again =
            self.resolved.model.as_ref().is_some_and(|known| known.model.is_same(&model));
        self.use_model(choice).await?;
        if is_again {
            self.forget_learned(&model).await;
        }
        if let (Some(run), Ok(models)) = (self.phase.run(), self.models()) {
            run.models.send_replace(models);
        }
        let choice = self.resolved.model.as_ref();
        Ok(self.shared.model_found(choice, found.reading))
    }

    /// Forgets what the server of a model that a person chose again refused before, so that the next request tries it.
    async fn forget_learned(&mut self, model: &Model) {
        let forgotten = self.shared.providers.forget(model);
        let Model { provider, base_url, model, .. } = model.clone();
        let stored = self.shared.store.forget(provider, base_url, model).await;
        stored.or_log("forget what a provider does not take");
        for learned in forgotten {
            let said = format!("chosen again, so yoi forgot this: {}", learned.sentence());
            self.publisher.publish(&alert(AlertSource::Pod, said));
        }
    }

    /// A person agrees to what `model_sends` says of this Pod.
    pub(super) async fn consent(&mut self, sends: &str, answer: Answer) {
        let agreed = match &self.resolved.model {
            Some(choice) if choice.sends.as_deref() == Some(sends) => {
                self.shared.agree(choice).await
            }
            _ => Err(Refusal::invalid(
                "the model has changed since you were asked; read the new question and answer it",
            )),
        };
        self.show_model();
        let is_agreed = agreed.is_ok();
        reply(answer, agreed.map(|()| Event::done()));
        if is_agreed {
            self.go_on_with_model().await;
        }
    }

    /// A person agreed to a model, or took that back.
    pub(super) async fn consents_changed(&mut self) {
        self.show_model();
        self.go_on_with_model().await;
    }

    /// Looks for a model where the Pod has none, for its key where that is missing, and at what the
    /// settings and the environment say of it where they changed. What the Pod has stays where nothing better is found.
    pub(super) async fn find_model_again(&mut self) {
        let found = match self.resolved.model.clone() {
            None => self.find_first_model().await,
            Some(choice) if self.key(&choice).is_err() => self.find_key(&choice).await,
            Some(choice) => self.look_again(&choice).await,
        };
        if let Some(choice) = found {
            self.use_model(choice).await.or_log("store the model of a Pod");
        }
    }

    async fn find_first_model(&mut self) -> Option<ModelChoice> {
        // A path that does not answer finds no model; the message says so.
        let found = models::find(&self.shared, self.search(None), Local::Probed).await;
        let found = match found {
            Ok(found) => found,
            Err(refusal) => {
                self.mistakes = vec![refusal.message];
                return None;
            }
        };
        self.looked_at = self.by(found.reading.settings.clone());
        match found.choice {
            Ok(choice) => {
                self.mistakes = found.reading.sentences();
                choice
            }
            Err(why) => {
                self.mistakes = vec![why];
                None
            }
        }
    }

    /// The model with a key that is there: the same one, or, where no person chose it, the one that the
    /// rules choose now.
    async fn find_key(&self, choice: &ModelChoice) -> Option<ModelChoice> {
        let search = self.search(choice.wanted());
        let found = models::find(&self.shared, search, Local::Ignored).await.ok()?;
        let found = found.choice.ok()??;
        // An address that the Pod remembers needs no key only where it never got one.
        let lost = matches!(found.model.key, KeySource::None | KeySource::Unset(_))
            && found.model.url_variable.is_some()
            && found.model.base_url == choice.model.base_url;
        (!lost && self.key(&found).is_ok()).then_some(found)
    }

    /// The same model as the settings and the environment define it now, if that differs from what they
    /// said before.
    async fn look_again(&mut self, choice: &ModelChoice) -> Option<ModelChoice> {
        let now = self.by(self.shared.read_settings().await.ok()?.settings);
        let before = std::mem::replace(&mut self.looked_at, now.clone());
        if before.is(&now) {
            return None;
        }
        let is = self.defined_by(&now, choice)?;
        let was = self.defined_by(&before, choice);
        (was.as_ref() != Some(&is))
            .then(|| ModelChoice { model: is, ..choice.clone() }.with_sends())
    }

    /// What a model is found by from now on.
    fn by(&self, settings: Arc<Settings>) -> LookedAt {
        LookedAt { settings, env: self.env.clone() }
    }

    fn defined_by(&self, by: &LookedAt, choice: &ModelChoice) -> Option<Model> {
        let (workspace, keys) = (WorkspaceSettings::default(), Keys::at(&self.shared.dirs.config));
        let search = Search { env: by.env.clone(), ..self.search(None) };
        let context = models::context(&self.shared, &search, &workspace, &by.settings, &keys);
        let all = Catalogue::with(&by.settings);
        Some(model_select::resolve(&all, &choice.model.spec(), &context).ok()?.0)
    }

    fn search(&self, wanted: Option<WantedModel>) -> Search {
        Search {
            wanted,
            env: self.env.clone(),
            cwd: self.row.cwd.clone(),
            workspace: self.row.workspace.clone(),
        }
    }

    /// Stores a choice, then shows it and works with it.
    async fn use_model(&mut self, choice: ModelChoice) -> Result<(), Refusal> {
        self.store_config(Resolved { model: Some(choice), ..self.resolved.clone() }).await?;
        self.mistakes.clear();
        self.show_model();
        Ok(())
    }

    pub(super) async fn store_config(&mut self, resolved: Resolved) -> Result<(), Refusal> {
        let config = resolved.value();
        self.shared.store.set_config(&self.row.name, &config).await?;
        self.row.config = config;
        self.resolved = resolved;
        Ok(())
    }

    /// The models of a run: that of the Pod, and those that take its place, as far as their keys are known.
    pub(super) fn models(&self) -> Result<Models, MissingKey> {
        Ok(Models { model: self.provider()?, fallbacks: self.fallbacks() })
    }

    fn fallbacks(&self) -> Vec<(Model, Provider)> {
        let Some(choice) = &self.resolved.model else { return Vec::new() };
        self.of_settings(|context| model_select::fallbacks(&choice.model, context))
    }

    /// The model of the settings that summarises the history of the Pod, if its key is known.
    pub(super) fn summary_model(&self) -> Option<(Model, Provider)> {
        let found = self.of_settings(|context| {
            let spec = context.settings.compaction.model.as_ref();
            let all = Catalogue::with(context.settings);
            let model = spec.and_then(|spec| model_select::resolve(&all, spec, context).ok());
            model.map(|(model, _)| model).into_iter().collect()
        });
        found.into_iter().next()
    }

    /// The models that the settings name beside that of the Pod, with their providers.
    fn of_settings(
        &self,
        named: impl Fn(&ModelContext<'_>) -> Vec<Model>,
    ) -> Vec<(Model, Provider)> {
        let Some(choice) = &self.resolved.model else { return Vec::new() };
        let (workspace, keys) = (WorkspaceSettings::default(), Keys::at(&self.shared.dirs.config));
        let (search, settings) = (self.search(None), self.shared.settings.last().settings);
        let context = models::context(&self.shared, &search, &workspace, &settings, &keys);
        let with_provider =
            |model: Model| self.provider_of(&ModelChoice { model, ..choice.clone() }).ok();
        named(&context).into_iter().filter_map(with_provider).collect()
    }

    pub(super) fn show_model(&mut self) {
        let (shared, choice) = (self.shared.clone(), self.resolved.model.clone());
        self.change(|info| resolved::show_model(&shared, info, choice.as_ref()));
    }

    /// A Pod that waited for a key or a consent and has it now goes on with its decision or its messages.
    async fn go_on_with_model(&mut self) {
        let busy = self.phase.is_running() || self.is_undecided();
        if busy || self.key_is_missing() || self.unagreed().is_some() || !self.is_live() {
            return;
        }
        if self.info.borrow().state != State::NeedsYou {
            return;
        }
        if let Some(answered) = self.decision() {
            return self.start(Start::ApprovalDecided { answered, accepted: None }).await;
        }
        self.enter(State::Idle, None);
        self.take_next().await;
    }

    pub(super) fn key_is_missing(&self) -> bool {
        self.resolved.model.as_ref().is_some_and(|choice| self.key(choice).is_err())
    }

    /// Why nothing is sent to the model: no person chose it or agreed to where it is.
    pub(super) fn unagreed(&self) -> Option<Refusal> {
        let choice = self.resolved.model.as_ref()?;
        let sends = self.shared.unagreed(choice)?;
        let (pod, model) = (&self.row.name, choice.model.spec());
        let text = format!(
            "nothing was sent: {pod} found {model} ({}), which {sends}; a message on the screen asks \
             whether it may, and :model {model} chooses it",
            choice.why
        );
        Some(Refusal::invalid(text))
    }

    /// The model and its provider, `None` when no model is known.
    pub(super) fn provider(&self) -> Result<Option<(Model, Provider)>, MissingKey> {
        let Some(choice) = &self.resolved.model else { return Ok(None) };
        self.provider_of(choice).map(Some)
    }

    fn provider_of(&self, choice: &ModelChoice) -> Result<(Model, Provider), MissingKey> {
        let access = Access { key: self.key(choice)?, headers: self.headers(&choice.model)? };
        let (timeouts, http) = (self.shared.timeouts, &self.shared.http);
        let provider = self.shared.providers.get(&choice.model, access, timeouts, http);
        Ok((choice.model.clone(), provider))
    }

    /// The headers that the person's own settings give a provider.
    fn headers(&self, model: &Model) -> Result<HeaderMap, MissingKey> {
        let settings = self.shared.settings.last().settings;
        own_headers(&settings, &model.provider, &self.whole_env())
    }

    /// The key of a model: from the environment that clients offered this Pod, else from the one
    /// that the host was started in. So a family goes on after a restart, whichever client connects
    /// first.
    fn key(&self, choice: &ModelChoice) -> Result<Key, MissingKey> {
        if let KeySource::Command(id) = &choice.model.key {
            // Only the person's own settings may name a command.
            let settings = self.shared.settings.last().settings;
            let command = settings.provider.get(id).and_then(|provider| provider.key_command());
            let command = command.ok_or_else(|| MissingKey::NoCommand(id.clone()))?;
            return Ok(Key::Printed(self.shared.printed_keys.command(
                id,
                command,
                self.whole_env(),
            )));
        }
        let keys = Keys::at(&self.shared.dirs.config);
        Ok(keys.resolve(&choice.model.key, &[&self.env, &self.shared.env])?.into())
    }

    /// The environment of the host with what clients offered.
    pub(super) fn whole_env(&self) -> Env {
        let mut env = self.shared.env.clone();
        env.extend(self.env.clone());
        env
    }
}
