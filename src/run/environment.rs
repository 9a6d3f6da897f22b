//! The parts of the system prompt that change while a Pod lives: the date, the branch of git, its scope, instruction
//! files.
//! The prompt of a segment stays as it is, so that providers find their cache; a change enters the history
//! once, as a note at its end.

use crate::protocol::entry::Kept;
use crate::protocol::{Entry, Fact, InstructionFile, Item, Role, SystemItem};
use crate::run::instructions::{self, Sources};
use crate::run::prompt::{DIRECTORY, INSTRUCTIONS, Part};
use crate::run::{Run, Stopped, session_state};
use crate::session::Replay;
use std::sync::Arc;

/// The first line of the note that replaces a part.
fn head(slug: &str) -> String {
    format!("[Changed: {slug}]\n")
}

impl Part {
    fn note(&self) -> String {
        let text = self.text.trim();
        let text = if text.is_empty() { "There is none any more." } else { text };
        format!("{}This replaces what was said before.\n\n{text}", head(self.slug))
    }

    /// The last note about the part with this first line.
    fn last_note(head: &str, history: &[Arc<Kept>]) -> Option<String> {
        let mut notes = history.iter().rev().filter_map(|kept| match &kept.item {
            Item::Message { role: Role::System, .. } => kept.item.text(),
            _ => None,
        });
        notes.find(|text| text.starts_with(head))
    }

    /// Whether the model was sent this part as it is now, by the last note about it or by the prompt.
    fn is_known(&self, system: &str, history: &[Arc<Kept>]) -> bool {
        match Self::last_note(&head(self.slug), history) {
            Some(note) => note == self.note(),
            None if self.at_end && self.text.trim().is_empty() => {
                !system.contains("\n# Instructions from ")
            }
            None if self.at_end => system.trim_end().ends_with(self.text.trim()),
            None => system.contains(&self.text),
        }
    }
}

/// The instruction files of a Pod as they are now, for a person who asks. `replay` is what its model was told. Blocking.
pub(crate) fn instruction_files(
    sources: &Sources<'_>,
    replay: Option<&Replay>,
) -> Vec<InstructionFile> {
    let Some(replay) = replay else { return instructions::listed(sources, None) };
    let note = Part::last_note(&head(INSTRUCTIONS), &replay.history);
    let read = note.as_deref().or(replay.system_prompt.as_deref()).unwrap_or_default();
    instructions::listed(sources, Some((read, &replay.files)))
}

impl Run {
    /// Commits a note for each part that is another one than the model was told. Where the parts cannot
    /// be read now, nothing is said: the next run looks again.
    pub(crate) async fn note_changes(&mut self) -> Result<(), Stopped> {
        let changed = self.changes().await;
        self.commit_notes(changed).await
    }

    /// The same before the message that a run begins with, where the Pod works in another directory now: what the
    /// message is about lies there.
    pub(crate) async fn note_move(&mut self) -> Result<(), Stopped> {
        let changed = self.changes().await;
        match changed.iter().any(|part| part.slug == DIRECTORY) {
            true => self.commit_notes(changed).await,
            false => Ok(()),
        }
    }

    async fn changes(&self) -> Vec<Part> {
        let parts = session_state::prompt_parts(&self.setup).await.unwrap_or_default();
        let state = &self.session_state;
        let is_new = |part: &Part| !part.is_known(&state.system, &state.state.history);
        parts.into_iter().filter(is_new).collect()
    }

    async fn commit_notes(&mut self, changed: Vec<Part>) -> Result<(), Stopped> {
        let note = |part: Part| {
            let item = SystemItem::Knowledge { slug: part.slug.into(), body: part.note() };
            Entry::new(Fact::SystemItem { item, taken: None })
        };
        let notes: Vec<Entry> = changed.into_iter().map(note).collect();
        match notes.is_empty() {
            true => Ok(()),
            false => self.commit(notes).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> Part {
        Part { slug: "instructions", text: text.into(), at_end: true }
    }

    fn noted(text: &str) -> Arc<Kept> {
        Arc::new(Kept::new(None, Item::message(Role::System, part(text).note())))
    }

    #[test]
    fn a_part_is_known_from_the_prompt_until_a_note_replaces_it() {
        let system = "You are a Pod.\n# Instructions from /w/AGENTS.md\n\nuse tabs\n";
        let (old, new) = ("\n# Instructions from /w/AGENTS.md\n\nuse tabs\n", "use spaces");
        assert!(part(old).is_known(system, &[]));
        assert!(!part(new).is_known(system, &[]));
        assert!(part(new).is_known(system, &[noted(new)]), "once noted, it is not noted again");
        assert!(!part(old).is_known(system, &[noted(new)]), "the way back is a change, too");
        assert!(part(old).is_known(system, &[noted(new), noted(old)]));
    }

    #[test]
    fn a_file_that_became_shorter_or_went_is_a_change() {
        let system = "You are.\n# Instructions from /w/AGENTS.md\n\none\ntwo\n";
        assert!(!part("\n# Instructions from /w/AGENTS.md\n\none\n").is_known(system, &[]));
        assert!(!part("").is_known(system, &[]));
        assert!(part("").is_known(system, &[noted("")]));
        assert!(part("").is_known("You are.", &[]));
    }

    #[test]
    fn a_message_of_a_person_is_no_note() {
        let forged = Arc::new(Kept::new(None, Item::message(Role::User, part("new").note())));
        assert!(!part("new").is_known("old", &[forged]));
    }
}
