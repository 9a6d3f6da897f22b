//! The sheet with names after `@`: files, which the host finds, and Pods.

use crate::screen::pane::composer::Draft;
use crate::screen::pane::file_lookup::FileLookup;
use crate::verb::complete::rank;
use yoi::protocol::Completion;

/// How many Pods are offered among the files.
const PODS: usize = 5;

/// The sheet with names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The text typed after `@`.
    pub prefix: String,
    pub found: Vec<Found>,
    pub selected: usize,
    lookup: FileLookup,
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    File(Completion),
    /// The name of a Pod. It is inserted as plain text.
    Pod(String),
}

impl Found {
    pub fn name(&self) -> &str {
        match self {
            Self::File(file) => &file.value,
            Self::Pod(name) => name,
        }
    }
}

impl Files {
    /// The sheet for the word before the cursor; `None` when that is no `@word`.
    pub fn at(draft: &Draft) -> Option<Self> {
        let before = draft.before_cursor();
        let word = before.rsplit(|c: char| c.is_whitespace() || c == ']').next()?;
        let prefix = word.strip_prefix('@')?;
        Some(Self { prefix: prefix.to_owned(), ..Self::default() })
    }

    /// The same sheet after the text behind `@` became another one.
    pub fn with_prefix(self, prefix: String) -> Self {
        Self { prefix, ..self }
    }

    /// The text to ask the host about, if a request is due.
    pub fn wants(&mut self) -> Option<String> {
        self.lookup.request(&self.prefix)
    }

    /// Shows the files that the host found for `prefix`, unless the text has changed since. Pods with a similar name
    /// come after the files whose path begins with the text, and before the other files.
    pub fn found<'a>(
        &mut self,
        prefix: &str,
        files: Vec<Completion>,
        pods: impl Iterator<Item = &'a str>,
    ) {
        if !self.lookup.replied(prefix, &self.prefix) {
            return;
        }
        let (begin, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| file.value.starts_with(prefix));
        let mut pods = match prefix.is_empty() {
            true => Vec::new(),
            false => rank(prefix, pods.collect(), |name| *name),
        };
        pods.truncate(PODS);
        let pods = pods.into_iter().map(|name| Found::Pod(name.to_owned()));
        let file = |files: Vec<Completion>| files.into_iter().map(Found::File);
        self.found = file(begin).chain(pods).chain(file(others)).collect();
        self.selected = 0;
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
        match chosen {
            Found::File(file) if file.is_dir => {
                let path = file.value.trim_end_matches('/');
                draft.text.insert_str(format!("@{path}/"));
                draft.touched();
                return Some(Accepted::Directory);
            }
            Found::File(file) => draft.file(&file.value),
            Found::Pod(name) => {
                draft.text.insert_str(name);
                draft.touched();
            }
        }
        draft.text.insert_char(' ');
        Some(Accepted::Name)
    }
}

/// The kind of the chosen name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    Name,
    Directory,
}
