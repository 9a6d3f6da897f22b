//! A request that its provider refuses because of one element of the history: the error names the element and two ways on.

use crate::llm::{Failure, Input, Request, Stop};
use crate::protocol::entry::Kept;
use crate::protocol::{EntryId, Item, Refusal, Role};
use crate::run::stream::stopped_entry;
use crate::run::{Run, Stopped, pruning};
use crate::session;

/// What becomes of a message that a filter refused: its run has nothing left to try again.
pub(crate) const TAKEN_BACK: &str = "your message was taken back, so that later ones do not carry it; `:rewind` takes earlier \
                          messages back";

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
        self.named(&request.input[range]).await
    }

    /// The end of a run whose request a filter for content refused, or of whose reply nothing came because its model or
    /// such a filter declined. A person's message that is all the run had is taken back, because each later request would
    /// carry it and be refused, too. `is_noted`: the log has the `words` already.
    pub(crate) async fn declined(
        &mut self,
        mut refusal: Refusal,
        words: &str,
        mut is_noted: bool,
    ) -> Stopped {
        let history = &self.session_state.state.history;
        let from =
            history.iter().rposition(|kept| pruning::is_of_model(kept)).map_or(0, |at| at + 1);
        let newest = history[from..].to_vec();
        let way_on = match self.first.take_if(|_| !self.acted) {
            Some(first) => match self.take_input_back(first).await {
                Ok(_) => {
                    is_noted = false;
                    Some(TAKEN_BACK.to_owned())
                }
                Err(stopped) => return stopped,
            },
            None => self.named(&newest).await.map(|means| format!("it may mean {means}")),
        };
        if let Some(way_on) = way_on {
            refusal.message.push_str(&format!("; {way_on}"));
        }
        let stopped = stopped_entry(&Stop::Refusal(words.to_owned())).filter(|_| !is_noted);
        if let Some(stopped) = stopped
            && let Err(stopped) = self.commit(vec![stopped]).await
        {
            return stopped;
        }
        Stopped::Failed(refusal)
    }

    /// The largest result of these elements, else the largest of them, and how to go on without it.
    async fn named(&self, refused: &[Input]) -> Option<String> {
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
