//! FindModel: the model that a new Pod would get, and why.

use crate::config::model_select::WantedModel;
use crate::config::workspace::Workspace;
use crate::host::models::{self, Local, Search};
use crate::host::verb::{Caller, Cx, Verb};
use crate::protocol::{Event, Refusal};
use std::collections::BTreeMap;
use std::path::PathBuf;

pub(crate) struct FindModel {
    pub(crate) cwd: PathBuf,
    pub(crate) model: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
}

impl Verb for FindModel {
    const ALLOWED: Caller = Caller::Person;

    async fn run(self, cx: Cx) -> Result<Event, Refusal> {
        let shared = &cx.shared;
        let (at, env) = (self.cwd.clone(), self.env.clone());
        let workspace = cx.files(&self.cwd, move || Workspace::root_of(&at, &env)).await?;
        let wanted = self.model.map(|spec| WantedModel::new(spec, ":model"));
        let search = Search { wanted, env: self.env, cwd: self.cwd, workspace };
        let found = models::find(shared, search, Local::Probed).await?;
        let choice = found.choice.map_err(Refusal::invalid)?;
        Ok(shared.model_found(choice.as_ref(), found.reading))
    }
}
