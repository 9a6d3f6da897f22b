//! Which outputs of tools leave the context. A request begins with the former one, byte for byte, so that
//! providers find it in their caches: an output leaves only by an entry of the log, and many at once.

use crate::protocol::entry::{Kept, PrunedResult, domain};
use crate::protocol::item::{Item, Role};
use crate::protocol::{Entry, EntryId, Refusal};
use crate::run::{Run, Stopped, context};
use crate::session::{Files, load_output};
use crate::tools::text_limit;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The number of newest outputs that stay.
const NEWEST: usize = 4;
/// The smallest output in tokens whose place in the context is worth the sentence that replaces it.
const SMALLEST: u64 = 250;
/// An estimate of so many windows is too much for one, also where it is half wrong.
const SURELY_TOO_LONG: u64 = 2;
/// The tools whose outputs are reports of children.
const REPORTS: [&str; 1] = ["ReadPodOutput"];

impl Run {
    /// Leaves the oldest outputs out of all further requests, where the next request takes more than three
    /// quarters of the window, or of what costs the usual price, and a fifth of it can be freed.
    pub(crate) async fn prune_when_full(&mut self) -> Result<(), Stopped> {
        let window = self.setup.models.model.as_ref().map_or(0, |(model, _)| model.usual_window());
        let history = &self.session_state.state.history;
        // Older programs left outputs out without an entry, so the last count says nothing of them.
        let whole = context::tokens(0, history, None);
        let least = window / 5;
        let enough = if whole > window * SURELY_TOO_LONG { whole - window / 2 } else { least };
        if window == 0 || (enough == least && self.tokens() < window / 4 * 3) {
            return Ok(());
        }
        let places = choose(history, enough, least);
        if places.is_empty() {
            return Ok(());
        }
        self.prune(
            places,
            "the request takes three quarters of what the model reads at its usual price",
        )
        .await
    }

    /// Leaves these outputs out of all further requests; the text of each is in a file from then on.
    pub(crate) async fn prune(&mut self, places: Vec<usize>, why: &str) -> Result<(), Stopped> {
        self.commit_pruned(places, json!({"why": why})).await
    }

    /// Leaves a result out of all further requests, because its provider refuses it.
    pub(crate) async fn leave_out(&mut self, result: EntryId) -> Result<(), Stopped> {
        let history = &self.session_state.state.history;
        let place = history.iter().position(|kept| kept.id == Some(result));
        let why = "a person left it out: its provider refuses it";
        self.commit_pruned(place.into_iter().collect(), json!({"why": why, "refused": true})).await
    }

    /// Commits that these outputs leave the context, with what else the entry says.
    async fn commit_pruned(
        &mut self,
        places: Vec<usize>,
        mut payload: Value,
    ) -> Result<(), Stopped> {
        let history = &self.session_state.state.history;
        let outputs: Vec<Arc<Kept>> = places.iter().map(|place| history[*place].clone()).collect();
        let (files, directory) = (self.setup.files.clone(), self.setup.files.outputs());
        // One at a time: all outputs of a long log are more than the memory of a host.
        let saved = tokio::task::spawn_blocking(move || {
            let saved = outputs.into_iter().filter_map(|output| save(&files, output, &directory));
            saved.collect::<Vec<_>>()
        });
        let results = saved.await.map_err(|error| Refusal::internal(error.to_string()))?;
        tracing::info!(outputs = results.len(), "outputs leave the context: {}", payload["why"]);
        payload["results"] = json!(results);
        let entry = Entry::extension(domain::PRUNED, payload);
        self.commit(vec![entry]).await?;
        self.publish_context().await;
        Ok(())
    }
}

/// Writes an output to a file that the Pod can read. Without the file, the call can still be made again.
fn save(files: &Files, mut output: Arc<Kept>, directory: &Path) -> Option<PrunedResult> {
    let mut result = PrunedResult { id: output.id?, file: None };
    if output.is_left()
        && let Err(error) = load_output(files, Arc::make_mut(&mut output))
    {
        tracing::warn!("an output is not read: {error}");
        return Some(result);
    }
    let Item::ToolResult { content: Some(text), .. } = &output.item else { return Some(result) };
    if text.is_empty() {
        return Some(result);
    }
    let path: PathBuf = directory.join(format!("{}.txt", result.id));
    let mut options = std::fs::OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let written = text_limit::private_directory(directory)
        .and_then(|()| options.open(&path)?.write_all(text.as_bytes()));
    match written {
        Ok(()) => result.file = Some(path),
        Err(error) => tracing::warn!("{} is not written: {error}", path.display()),
    }
    Some(result)
}

/// The places of the oldest outputs that together free `enough` tokens, or of all that may leave; none where they
/// free less than `least`. What no request has carried yet, reports of children and the newest outputs stay.
fn choose(history: &[Arc<Kept>], enough: u64, least: u64) -> Vec<usize> {
    let mut freed = 0;
    let mut places = prunable(history);
    let needed = places.iter().take_while(|place| {
        let more = freed < enough;
        freed += if more { history[**place].output_tokens() } else { 0 };
        more
    });
    places.truncate(needed.count());
    if freed < least { Vec::new() } else { places }
}

/// The places of all outputs that may leave the context, oldest first.
pub(crate) fn prunable(history: &[Arc<Kept>]) -> Vec<usize> {
    let carried = history.iter().rposition(|kept| is_of_model(kept)).unwrap_or(0);
    let reports: HashSet<&str> = history.iter().filter_map(|kept| report(kept)).collect();
    let is_result = |place: &usize| matches!(history[*place].item, Item::ToolResult { .. });
    let newest = (0..history.len()).rev().filter(is_result).take(NEWEST).last().unwrap_or(0);
    let may_leave = |place: &usize| match &*history[*place] {
        Kept { id: Some(_), pruned: None, item: Item::ToolResult { call_id, .. }, .. } => {
            !reports.contains(call_id.as_str()) && history[*place].output_tokens() >= SMALLEST
        }
        _ => false,
    };
    (0..carried.min(newest)).filter(may_leave).collect()
}

/// The places of all outputs in the context that are worth leaving out.
pub(crate) fn outputs(history: &[Arc<Kept>]) -> Vec<usize> {
    let is_in = |place: &usize| {
        let kept = &history[*place];
        kept.id.is_some() && kept.pruned.is_none() && kept.output_tokens() >= SMALLEST
    };
    (0..history.len()).filter(is_in).collect()
}

pub(crate) fn is_of_model(kept: &Kept) -> bool {
    match &kept.item {
        Item::ToolCall { .. } | Item::Reasoning { .. } => true,
        Item::Message { role, .. } => *role == Role::Assistant,
        Item::ToolResult { .. } | Item::Unknown(_) => false,
    }
}

/// The id of a call whose output is the report of a child.
fn report(kept: &Kept) -> Option<&str> {
    match &kept.item {
        Item::ToolCall { call_id, name, .. } if REPORTS.contains(&name.as_str()) => Some(call_id),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(item: Item) -> Arc<Kept> {
        Arc::new(Kept::new(Some(EntryId::new()), item))
    }

    fn call(id: usize, name: &str) -> Arc<Kept> {
        let (call_id, name) = (id.to_string(), name.to_owned());
        kept(Item::ToolCall { call_id, name, arguments: "{}".into() })
    }

    fn result(id: usize, bytes: usize) -> Arc<Kept> {
        kept(Item::ToolResult {
            call_id: id.to_string(),
            summary: "ok".into(),
            content: Some("x".repeat(bytes)),
            is_error: false,
            images: vec![],
        })
    }

    fn history(sizes: &[usize]) -> Vec<Arc<Kept>> {
        let calls = sizes.iter().enumerate();
        calls.flat_map(|(id, bytes)| [call(id, "Read"), result(id, *bytes)]).collect()
    }

    #[test]
    fn the_oldest_outputs_leave_in_one_step_and_the_newest_four_stay() {
        let history = history(&[4000; 8]);
        assert_eq!(prunable(&history), [1, 3, 5, 7], "the newest four stay");
        assert_eq!(choose(&history, 1500, 1500), [1, 3]);
        assert_eq!(choose(&history, 4000, 4000), [1, 3, 5, 7]);
        assert_eq!(choose(&history, 9000, 4000), [1, 3, 5, 7], "all that may leave");
        assert!(
            choose(&history, 4001, 4001).is_empty(),
            "a step that frees too little is not made"
        );
    }

    #[test]
    fn small_outputs_reports_of_children_and_what_left_already_stay() {
        let mut history = history(&[4000, 100, 4000, 4000, 4000, 4000, 4000, 4000]);
        history[0] = call(0, "ReadPodOutput");
        Arc::make_mut(&mut history[5]).pruned = Some(Default::default());
        assert_eq!(prunable(&history), [7]);
    }

    #[test]
    fn what_no_request_has_carried_yet_stays() {
        let calls = (0..8).map(|id| call(id, "Read"));
        let history: Vec<Arc<Kept>> = calls.chain((0..8).map(|id| result(id, 4000))).collect();
        assert!(prunable(&history).is_empty());
    }
}
