//! Which model a Pod gets: the one that the configuration and the keys name, else one of a server on this
//! machine; and where a person agreed that text is sent.

use crate::config::diagnostic::Diagnostic;
use crate::config::dirs::Env;
use crate::config::keys::{Keys, register_secrets};
use crate::config::model_select::{self, Destination, ModelChoice, ModelContext, WantedModel};
use crate::config::settings::Settings;
use crate::config::settings_file::Reading;
use crate::config::workspace_settings::{WorkspaceSettings, file_of};
use crate::host::Shared;
use crate::host::rules::trusted_hash;
use crate::llm::effort::why_unsent;
use crate::protocol::{Event, FoundModel, PolicyConsent, Refusal};
use crate::store::StoredConsent;
use std::path::PathBuf;
use std::sync::Arc;

/// What a model is looked for with.
#[derive(Clone)]
pub(crate) struct Search {
    /// The model that was asked for; `None`: the one that the rules choose.
    pub(crate) wanted: Option<WantedModel>,
    pub(crate) env: Env,
    pub(crate) cwd: PathBuf,
    pub(crate) workspace: PathBuf,
}

/// What was found.
pub(crate) struct Found {
    /// `None`: there is nothing to connect to. The error is a sentence about the model that was named.
    pub(crate) choice: Result<Option<ModelChoice>, String>,
    /// What the workspace's own file says.
    pub(crate) says: WorkspaceSettings,
    /// The settings by which it was found, and their mistakes.
    pub(crate) reading: Reading,
}

/// Whether the servers on this machine are asked where the configuration names no model.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Local {
    Probed,
    Ignored,
}

/// Looks for a model: by the settings as their file says them now, then on this machine.
pub(crate) async fn find(shared: &Shared, search: Search, local: Local) -> Result<Found, Refusal> {
    let (host, root) = (shared.clone(), search.workspace.clone());
    let trusted = trusted_hash(shared, &root).await?;
    let look = move || by_rule(&host, search, trusted.as_deref());
    let (search, mut found) = shared.files.run(&root, look).await?;
    if local == Local::Probed && matches!(found.choice, Ok(None)) {
        found.choice = Ok(on_this_machine(shared, &search, &found).await);
    }
    Ok(found)
}

/// The model that the rules choose. Blocking.
fn by_rule(shared: &Shared, search: Search, trusted: Option<&str>) -> (Search, Found) {
    let reading = shared.settings_now();
    let mut says = WorkspaceSettings::load(&search.workspace).with_trust(trusted);
    let keys = Keys::at(&shared.dirs.config);
    let settings = Settings::clone(&reading.settings).with_providers_of(&says);
    // A variable may hold a key by the workspace's file.
    register_secrets(&shared.env, &settings);
    register_secrets(&search.env, &settings);
    let context = context(shared, &search, &says, &settings, &keys);
    let choice = model_select::choose(search.wanted.as_ref(), &context)
        .map_err(|error| error.with_mistakes(&reading.mistakes));
    if let Some(why) = model_select::ignored_of_workspace(&context) {
        says.notices.push(Diagnostic::at(&file_of(&search.workspace), "", 0, why));
    }
    (search, Found { choice, says, reading })
}

async fn on_this_machine(shared: &Shared, search: &Search, found: &Found) -> Option<ModelChoice> {
    let keys = Keys::at(&shared.dirs.config);
    let context = context(shared, search, &found.says, &found.reading.settings, &keys);
    let http = shared.http.near()?;
    model_select::probe_local(http, &context).await.into_iter().next()
}

/// What the model of a Pod is found by.
pub(crate) fn context<'a>(
    shared: &'a Shared,
    search: &'a Search,
    says: &'a WorkspaceSettings,
    settings: &'a Settings,
    keys: &'a Keys,
) -> ModelContext<'a> {
    let (env, cwd) = (&search.env, search.cwd.as_path());
    ModelContext { settings, workspace: says, env, host: &shared.env, keys, cwd }
}

/// A consent, as it is listed.
pub(crate) fn consent_listed(stored: StoredConsent) -> PolicyConsent {
    let key = stored.to.key_in_words();
    let StoredConsent { id, to: Destination { provider, base_url, .. }, since } = stored;
    PolicyConsent { id, provider, base_url, key, since }
}

impl Shared {
    /// The settings as their file says them now; a refusal where it does not answer in time.
    pub(crate) async fn read_settings(&self) -> Result<Reading, Refusal> {
        let shared = self.clone();
        self.files.run(&self.dirs.config, move || shared.settings_now()).await
    }

    /// The settings in force, after another look at their file; every screen learns of other mistakes in it. Blocking.
    pub(crate) fn settings_now(&self) -> Reading {
        let before = self.settings.last();
        let reading = self.settings.now();
        if !Arc::ptr_eq(&before.settings, &reading.settings) {
            // A variable may hold a key by the new settings.
            register_secrets(&self.env, &reading.settings);
        }
        if before.mistakes != reading.mistakes {
            self.publish_notices();
        }
        reading
    }

    /// The reply that names a model.
    pub(crate) fn model_found(&self, choice: Option<&ModelChoice>, reading: Reading) -> Event {
        let found = |choice: &ModelChoice| FoundModel {
            model: choice.model.spec(),
            why: choice.why.clone(),
            sends: self.unagreed(choice),
            effort_unsent: why_unsent(&choice.model),
        };
        let (effort, config) = (reading.settings.effort, self.settings.path());
        let mistakes = reading.sentences();
        Event::ModelFound { model: choice.map(found), effort, config, mistakes }
    }

    /// What sending to this model means, while no person chose it or agreed to where it is.
    pub(crate) fn unagreed(&self, choice: &ModelChoice) -> Option<String> {
        let to = Destination::of(&choice.model);
        let agreed = choice.chosen || self.consents.borrow().contains(&to);
        choice.sends.clone().filter(|_| !agreed)
    }

    /// Ends the consent with this number. Every Pod whose text went there learns of it.
    pub(crate) async fn end_consent(&self, id: u64) -> Result<Option<PolicyConsent>, Refusal> {
        let Some(ended) = self.store.end_consent(id).await? else { return Ok(None) };
        self.consents.send_modify(|consents| {
            Arc::make_mut(consents).remove(&ended.to);
        });
        Ok(Some(consent_listed(ended)))
    }

    /// Stores that a person agrees to where a model is. Every Pod whose text goes there learns of it.
    pub(crate) async fn agree(&self, choice: &ModelChoice) -> Result<(), Refusal> {
        let to = Destination::of(&choice.model);
        self.store.consent(to.clone()).await?;
        self.consents.send_modify(|consents| {
            Arc::make_mut(consents).insert(to);
        });
        Ok(())
    }
}
