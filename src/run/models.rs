//! The models of a run: the one that it asks, those that take its place while it is away, and the one that a person
//! chooses meanwhile.

use crate::config::models::Model;
use crate::llm::{Failure, Provider};
use crate::protocol::entry::domain;
use crate::protocol::{AlertSource, Entry};
use crate::run::{Run, RunEvent, Stopped, attach};
use crate::tools;
use serde_json::json;
use tokio::sync::watch;

/// The model of a Pod and those behind it.
#[derive(Clone, Default)]
pub struct Models {
    /// `None`: no model is known, and a message is answered with what is missing.
    pub model: Option<(Model, Provider)>,
    /// The models that take its place, in this order, while it is away.
    pub fallbacks: Vec<(Model, Provider)>,
}

impl Run {
    /// Whether a person chose another model since the last request was made.
    pub(crate) fn has_other_model(&self) -> bool {
        // The sender is gone only when the run is over.
        self.ports.chosen.has_changed().unwrap_or(false)
    }

    /// Goes on with the model that a person chose meanwhile; `false` where there is none.
    pub(crate) async fn use_chosen_model(&mut self) -> bool {
        if !self.has_other_model() {
            return false;
        }
        let chosen = self.ports.chosen.borrow_and_update().clone();
        self.setup.models = chosen;
        self.fit_results();
        self.send(RunEvent::UsesChosenModel).await;
        true
    }

    /// Whether another model takes the place of one that failed so beyond its patience.
    pub(crate) fn falls_back(&self, failure: &Failure) -> bool {
        failure.retryable() && !self.setup.models.fallbacks.is_empty()
    }

    /// Goes on with the next model. The run after this one begins with the first again.
    pub(crate) async fn fall_back(&mut self, failure: &Failure) -> Result<(), Stopped> {
        let models = &mut self.setup.models;
        let Some((from, provider)) = models.model.take() else { return Ok(()) };
        provider.set_away(true);
        let (model, provider) = models.fallbacks.remove(0);
        let (from, to, why) = (from.spec(), model.spec(), failure.to_string());
        models.model = Some((model.clone(), provider));
        self.fit_results();
        let payload = json!({"from": from, "to": to, "why": why});
        self.commit(vec![Entry::extension(domain::FALLBACK, payload)]).await?;
        self.send(RunEvent::UsesModel(Box::new(model), format!("{from} is away"))).await;
        let said = format!("the run goes on with {to}: {why}");
        self.publish(attach::alert(AlertSource::Pod, said)).await;
        Ok(())
    }

    /// The results of tools become as long as the model of the run may read.
    fn fit_results(&mut self) {
        if let Some((model, _)) = &self.setup.models.model {
            self.setup.tools.max_output = tools::max_output(model.window);
        }
    }
}

/// Resolves when a person chooses another model.
pub(crate) async fn chosen(models: &mut watch::Receiver<Models>) {
    if models.changed().await.is_err() {
        // The run is over.
        std::future::pending::<()>().await;
    }
}
