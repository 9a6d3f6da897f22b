//! The configuration of a Pod, and what is known of a Pod from the store alone.

use crate::config::model_select::ModelChoice;
use crate::config::models::Wire;
use crate::config::url;
use crate::host::Shared;
use crate::host::worktree::Worktree;
use crate::llm::effort;
use crate::protocol::{Effort, PodInfo, PodName, Queued, State, now_ms};
use crate::run::Input;
use crate::store::{DamagedRow, MailboxKind, MailboxMessage, PodRow};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The resolved configuration of a Pod, as the store keeps it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Resolved {
    pub(crate) model: Option<ModelChoice>,
    /// The effort of the Pod; `None`: that of the settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) effort: Option<Effort>,
    pub(crate) max_turns: u32,
    /// Stands in the place of the general instruction in the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instruction: Option<String>,
    /// The identity of its directory when its last run began, by which it is found again when it was moved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) directory_id: Option<String>,
    /// Whether another Pod spawned it, so that a model chose its initial scope; true also after that Pod is deleted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) spawned: bool,
    /// Whether its initial scope was made for it: its parent never had it, and lends nothing of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) own_scope: bool,
    /// The working tree of git that was made for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Worktree>,
}

const MAX_TURNS: u32 = 200;

fn value<T: DeserializeOwned>(config: &Value, name: &str) -> Option<T> {
    T::deserialize(config.get(name)?).ok()
}

impl Resolved {
    /// The configuration that the store holds. A value that cannot be read counts as missing. Only `spawned` counts as true
    /// then, because a spawned Pod has fewer rights.
    pub(crate) fn read(config: &Value) -> Self {
        Self {
            model: value(config, "model"),
            effort: value(config, "effort"),
            max_turns: value(config, "max_turns").unwrap_or(MAX_TURNS),
            instruction: value(config, "instruction"),
            directory_id: value(config, "directory_id"),
            spawned: match config.get("spawned") {
                Some(spawned) => *spawned != Value::Bool(false),
                None => !config.is_object(),
            },
            own_scope: value(config, "own_scope").unwrap_or(false),
            worktree: value(config, "worktree"),
        }
    }

    /// As a value for the store.
    pub(crate) fn value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }
}

/// Shows a choice of model.
pub(crate) fn show_model(shared: &Shared, info: &mut PodInfo, choice: Option<&ModelChoice>) {
    let Some(choice) = choice else {
        return;
    };
    info.model = choice.model.spec();
    info.model_why.clone_from(&choice.why);
    info.model_chosen = choice.chosen;
    info.model_sends = shared.unagreed(choice);
    let is_remote = choice.model.wire != Wire::Rehearsal;
    info.model_address = is_remote.then(|| url::shown(&choice.model.base_url).to_owned());
    info.model_key = is_remote.then(|| choice.model.key.in_words());
    info.context_window = choice.model.window;
    show_effort(info, info.effort, Some(choice));
}

/// Shows the effort of the next request, in which word requests carry it, and why they do not.
pub(crate) fn show_effort(
    info: &mut PodInfo,
    effort: Option<Effort>,
    choice: Option<&ModelChoice>,
) {
    let model = choice.map(|choice| &choice.model).filter(|_| effort.is_some());
    info.effort = effort;
    info.effort_unsent = model.and_then(effort::why_unsent);
    info.effort_sent =
        model.zip(effort).and_then(|(model, effort)| effort::in_other_words(model, effort));
}

/// What is known of a Pod from the store alone.
pub(crate) fn info(
    shared: &Shared,
    row: &PodRow,
    resolved: &Resolved,
    queue: Vec<Queued>,
) -> PodInfo {
    let (cwd, workspace) = (row.cwd.clone(), row.workspace.clone());
    let mut info = PodInfo {
        parent: row.parent.clone(),
        activity: row.last.clone(),
        unseen: !row.seen,
        later: row.later,
        scope: row.scope.allow.clone(),
        deny: row.scope.deny.clone(),
        last_activity: row.last_run.as_ref().map_or(row.since, |run| run.at),
        last_result: row.last_run.clone(),
        cost: row.cost,
        queue,
        segment: row.segment,
        ephemeral: row.ephemeral,
        directory_id: resolved.directory_id.clone(),
        worktree: resolved.worktree.as_ref().map(Worktree::info),
        ..PodInfo::bare(row.name.clone(), State::Stopped, row.since, cwd, workspace)
    };
    let effort = resolved.effort.or(shared.settings.last().settings.effort);
    show_effort(&mut info, effort, resolved.model.as_ref());
    show_model(shared, &mut info, resolved.model.as_ref());
    info
}

/// What is known of a Pod whose record cannot be read; `None` when not even its name can.
pub(crate) fn damaged_info(row: &DamagedRow) -> Option<PodInfo> {
    let name = PodName::parse(&row.name).ok()?;
    let why = format!(
        "its record in the database is damaged ({}); its log is not touched; :rm deletes both",
        row.reason
    );
    let (cwd, workspace) = (row.cwd.clone(), row.workspace.clone());
    Some(PodInfo {
        parent: row.parent.clone(),
        why: Some(why),
        ..PodInfo::bare(name, State::Damaged, now_ms(), cwd, workspace)
    })
}

/// The queued inputs among the rows of a mailbox.
pub(crate) fn queue(rows: Vec<MailboxMessage>, enters: impl Fn(&str) -> bool) -> Vec<Queued> {
    let inputs = rows.into_iter().filter(|row| row.kind == MailboxKind::Input);
    let queued = |row: MailboxMessage| {
        let (enters, input) = (enters(&row.id), Input::read(&row.payload)?.segments);
        Some(Queued { id: row.id, input, enters })
    };
    inputs.filter_map(queued).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_value_that_cannot_be_read_loses_only_itself_and_gives_no_more() {
        let config = json!({
            "model": {"of": "a newer version"}, "effort": "unheard of", "max_turns": 7,
            "instruction": "be brief", "directory_id": "1:2", "spawned": "perhaps",
        });
        let read = Resolved::read(&config);
        assert!(read.model.is_none() && read.effort.is_none() && read.spawned);
        assert_eq!((read.max_turns, read.instruction.as_deref()), (7, Some("be brief")));
        assert_eq!(read.directory_id.as_deref(), Some("1:2"));
        assert_eq!(Resolved::read(&read.value()).value(), read.value());
        assert!(!Resolved::read(&json!({})).spawned);
        let damaged = Resolved::read(&Value::Null);
        assert!(damaged.spawned && damaged.max_turns == MAX_TURNS);
    }
}
