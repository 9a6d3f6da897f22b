//! The sheet with names of files after `@`, which the host completes.

use crate::screen::pane::composer::Draft;
use yoi::protocol::Completion;

/// The sheet with names of files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The text typed after `@`.
    pub prefix: String,
    pub found: Vec<Completion>,
    pub selected: usize,
}

impl Files {
    /// The sheet for the word before the cursor; `None` when that is no `@word`.
    pub fn at(draft: &Draft) -> Option<Self> {
        let before = draft.before_cursor();
        let word = before.rsplit(|c: char| c.is_whitespace() || c == ']').next()?;
        let prefix = word.strip_prefix('@')?;
        Some(Self { prefix: prefix.to_owned(), ..Self::default() })
    }

    /// Moves the choice; it goes round.
    pub fn step(&mut self, by: isize) {
        let count = self.found.len().max(1);
        self.selected =
            self.selected.saturating_add_signed(by.rem_euclid(count.cast_signed())) % count;
    }

    /// Puts the chosen name into the draft. A directory stays open for more.
    pub fn accept(&self, draft: &mut Draft) -> Option<Accepted> {
        let chosen = self.found.get(self.selected)?;
        draft.delete_before(self.prefix.chars().count() + 1);
        if chosen.is_dir {
            let path = chosen.value.trim_end_matches('/');
            draft.text.insert_str(format!("@{path}/"));
            draft.touched();
            return Some(Accepted::Directory);
        }
        draft.file(&chosen.value);
        draft.text.insert_char(' ');
        Some(Accepted::File)
    }
}

/// The kind of the chosen name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    File,
    Directory,
}
