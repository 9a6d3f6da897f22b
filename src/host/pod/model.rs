//! The model of a Pod, its key, and the environment that clients offer.

use crate::config::keys::{Keys, MissingKey, Secret};
use crate::config::model_select::{ModelChoice, WantedModel};
use crate::config::models::Model;
use crate::config::settings::WorkspaceSettings;
use crate::host::Answer;
use crate::host::pod::calls::{done, reply};
use crate::host::pod::resolved::Resolved;
use crate::host::pod::{Pod, resolved};
use crate::llm::Provider;
use crate::protocol::{Event, Refusal, State};
use crate::run::Start;
use std::collections::BTreeMap;

impl Pod {
    /// A client's environment: commands and keys come from it from now on.
    pub(super) async fn offer(&mut self, env: BTreeMap<String, String>, answer: Answer) {
        crate::config::keys::register_secrets(&env, &self.shared.settings);
        self.env.extend(env);
        reply(answer, Ok(done()));
        self.go_on_with_key().await;
    }

    pub(super) async fn set_model(&mut self, spec: &str, answer: Answer) {
        let changed = self.change_model(WantedModel::new(spec, ":model")).await;
        let is_changed = changed.is_ok();
        reply(answer, changed);
        if is_changed {
            self.go_on_with_key().await;
        }
    }

    async fn change_model(&mut self, wanted: WantedModel) -> Result<Event, Refusal> {
        let choice = self.choose(wanted).await?;
        let resolved = Resolved { model: Some(choice.clone()), ..self.resolved.clone() };
        let config = resolved.value();
        self.shared.store.set_config(&self.row.name, &config).await?;
        self.row.config = config;
        self.change(|info| resolved::show_model(info, Some(&choice)));
        self.resolved = resolved;
        Ok(done())
    }

    /// The model of that name, as the settings of the user and of the workspace define it.
    async fn choose(&self, wanted: WantedModel) -> Result<ModelChoice, Refusal> {
        let (shared, env) = (self.shared.clone(), self.env.clone());
        let (workspace, cwd) = (self.row.workspace.clone(), self.row.cwd.clone());
        let choose = move || {
            let workspace = WorkspaceSettings::load(&workspace);
            resolved::choose(&shared, Some(wanted), &env, &cwd, &workspace)
        };
        let chosen = self.shared.files.run(&self.row.workspace, choose).await?;
        chosen.map_err(Refusal::invalid)?.ok_or_else(|| Refusal::invalid("name a model"))
    }

    /// A Pod that waited for a key and has one now goes on with its decision or its messages.
    async fn go_on_with_key(&mut self) {
        let busy = self.phase.is_running() || self.is_undecided();
        if busy || self.key_is_missing() || !self.is_live() {
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

    /// The model and its provider, `None` when no model is known.
    pub(super) fn provider(&self) -> Result<Option<(Model, Provider)>, MissingKey> {
        let Some(choice) = &self.resolved.model else { return Ok(None) };
        let key = self.key(choice)?;
        let (timeouts, http) = (self.shared.timeouts, self.shared.http.clone());
        Ok(Some((choice.model.clone(), Provider::new(&choice.model, key, timeouts, http))))
    }

    /// The key of a model: from the environment that clients offered this Pod, else from the one
    /// that the host was started in. So a family goes on after a restart, whichever client connects
    /// first.
    fn key(&self, choice: &ModelChoice) -> Result<Option<Secret>, MissingKey> {
        let keys = Keys::at(&self.shared.dirs.config);
        let offered = keys.resolve(&choice.model.key, &self.env);
        offered.or_else(|missing| {
            keys.resolve(&choice.model.key, &self.shared.env).map_err(|_| missing)
        })
    }
}
