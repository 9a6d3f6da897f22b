//! A request that its provider refuses because of one element of the history: the error names the element and two ways on.

use crate::llm::{Failure, Request};
use crate::protocol::entry::Kept;
use crate::protocol::{EntryId, Item, Refusal, Role};
use crate::run::Run;
use crate::session;

/// The last characters of an entry's id that name a result.
const NAME: usize = 6;

impl Run {
    /// The error with the element of the history that the failure means, if it names one, and how to go on without it.
    pub(crate) async fn name_refused(
        &self,
        mut refusal: Refusal,
        failure: &Failure,
        request: &Request,
    ) -> Refusal {
        if let Some(means) = self.refused(failure, request).await {
            refusal.message.push_str(&format!("; it means {means}"));
        }
        refusal
    }

    async fn refused(&self, failure: &Failure, request: &Request) -> Option<String> {
        let (_, provider) = self.setup.models.model.as_ref()?;
        let range = provider.refused(failure, request).await?;
        let refused = &request.input[range];
        let is_result = |kept: &&std::sync::Arc<Kept>| matches!(kept.item, Item::ToolResult { .. });
        let largest = refused.iter().filter(is_result).max_by_key(|kept| bytes(kept));
        let kept = largest.or_else(|| refused.iter().max_by_key(|kept| bytes(kept)))?;
        let id = kept.id?;
        let what = self.in_words(kept);
        let message = self.message_before(id).await?;
        let rewind = format!(":rewind {message} goes back to before message {message}");
        if !matches!(kept.item, Item::ToolResult { .. }) {
            return Some(format!("{what}: {rewind}"));
        }
        let id = id.to_string();
        let name = &id[id.len().saturating_sub(NAME)..];
        Some(format!("{what}: :resume --without={name} goes on without it, {rewind}"))
    }

    /// An element of the history in a few words, with its size.
    fn in_words(&self, kept: &Kept) -> String {
        let what = match &kept.item {
            Item::ToolResult { call_id, .. } => {
                let mut calls = self.session_state.state.history.iter().rev();
                let name = calls.find_map(|kept| match &kept.item {
                    Item::ToolCall { call_id: id, name, .. } if id == call_id => Some(name),
                    _ => None,
                });
                format!("the result of {}", name.map_or("a tool", String::as_str))
            }
            Item::ToolCall { name, .. } => format!("a call of {name}"),
            Item::Message { role: Role::User, .. } => "a message of yours".into(),
            Item::Message { role: Role::System, .. } => "a note of the runtime".into(),
            Item::Message { role: Role::Assistant, .. } => "a reply of the model".into(),
            Item::Reasoning { .. } => "thinking of the model".into(),
            Item::Unknown(_) => "a block of the model".into(),
        };
        let pictures = match kept.item.images().len() {
            0 => String::new(),
            1 => ", 1 picture".into(),
            count => format!(", {count} pictures"),
        };
        format!("{what} ({} KiB{pictures})", bytes(kept).div_ceil(1024))
    }

    /// The number of the message of a person at or before this entry, as a rewind counts.
    async fn message_before(&self, entry: EntryId) -> Option<usize> {
        let (files, segment) = (self.setup.files.clone(), self.session_state.segment);
        let listed = move || session::rewind_targets(&files, segment, None);
        let count = tokio::task::spawn_blocking(listed).await.ok()?.ok()?.targets.len();
        let history = &self.session_state.state.history;
        let at = history.iter().position(|kept| kept.id == Some(entry))?;
        let is_input = |kept: &&std::sync::Arc<Kept>| {
            matches!(kept.item, Item::Message { role: Role::User, .. })
        };
        count.checked_sub(history[at + 1..].iter().filter(is_input).count()).filter(|at| *at > 0)
    }
}

/// The size of an element in a request, without its pictures.
fn bytes(kept: &Kept) -> usize {
    match &kept.item {
        Item::Message { content, .. } => content.iter().map(|part| part.text().len()).sum(),
        Item::ToolCall { arguments, .. } => arguments.len(),
        Item::ToolResult { summary, content, .. } => {
            summary.len() + content.as_ref().map_or(0, String::len)
        }
        Item::Reasoning { text, .. } => text.len(),
        Item::Unknown(value) => value.to_string().len(),
    }
}
