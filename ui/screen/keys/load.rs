//! Reads keymap files. A problem is reported with file, line and column, and a file with one changes nothing.

use crate::screen::keys::{Action, Binding, CONTEXTS, Context, Keymap, parse};
use crate::verb::{Way, find};
use crokey::KeyCombination;
use crossterm::event::{KeyCode, KeyModifiers};
use std::collections::HashSet;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// The keymaps this program comes with. The first is whole; each other one is laid over it.
const BUILT_IN: [(&str, &str); 2] = [
    ("default", include_str!("../../../keymaps/default.toml")),
    ("vim", include_str!("../../../keymaps/vim.toml")),
];

/// A problem in a keymap file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {text}; this file changes nothing")]
pub struct Problem {
    pub file: String,
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub text: String,
}

/// The names of the built-in keymaps; the first is the default.
pub fn names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// The default keymap.
pub fn default_keymap() -> Keymap {
    built_in(BUILT_IN[0].0)
}

/// The built-in keymap of this name, or else the default.
pub fn built_in(name: &str) -> Keymap {
    let mut keymap = Keymap::default();
    let [default, others @ ..] = BUILT_IN;
    let over = others.into_iter().filter(|(other, _)| *other == name);
    for (name, text) in std::iter::once(default).chain(over) {
        // The tests of these files read the same texts and accept no problem.
        read(&mut keymap, name, text);
    }
    keymap
}

/// Adds the bindings of `text` to `keymap`, in place of earlier ones. `file` is the name that problems give to the text; a
/// text with a problem changes nothing.
pub fn read(keymap: &mut Keymap, file: &str, text: &str) -> Vec<Problem> {
    let mut reader = Reader { file, text, problems: Vec::new() };
    let mut changed = keymap.clone();
    match DeTable::parse(text) {
        Ok(table) => reader.sections(&mut changed, table.get_ref()),
        Err(error) => {
            let at = error.span().unwrap_or(0..0);
            reader.problem(&at, error.message().to_owned());
        }
    }
    if reader.problems.is_empty() {
        *keymap = changed;
    }
    reader.problems
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn problem(&mut self, at: &Range<usize>, text: String) {
        let before = self.text.get(..at.start).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        self.problems.push(Problem { file: self.file.to_owned(), line, column, text });
    }

    fn sections(&mut self, keymap: &mut Keymap, table: &DeTable<'_>) {
        let mut sections: Vec<_> = table.iter().collect();
        sections.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in sections {
            let found = CONTEXTS.iter().find(|(known, _)| known == name.get_ref());
            let Some(&(_, context)) = found else {
                let known = CONTEXTS.map(|(name, _)| name).join(", ");
                let text = format!("no such place `{}` (there are {known})", name.get_ref());
                self.problem(&name.span(), text);
                continue;
            };
            match value.get_ref() {
                DeValue::Table(keys) => self.section(keymap, context, keys),
                _ => self.problem(&value.span(), "expected a table of keys".into()),
            }
        }
    }

    fn section(&mut self, keymap: &mut Keymap, context: Context, keys: &DeTable<'_>) {
        let mut seen = HashSet::new();
        let mut rows: Vec<_> = keys.iter().collect();
        rows.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in rows {
            let Some(combination) = self.key(context, key, &mut seen) else { continue };
            match self.binding(value) {
                Some(Some(binding)) => keymap.set(context, combination, binding),
                Some(None) => keymap.remove(context, combination),
                None => {}
            }
        }
    }

    fn key(
        &mut self,
        context: Context,
        key: &Spanned<DeString<'_>>,
        seen: &mut HashSet<KeyCombination>,
    ) -> Option<KeyCombination> {
        let Some(combination) = parse(key.get_ref()) else {
            self.problem(&key.span(), format!("`{}` is no key", key.get_ref()));
            return None;
        };
        if !seen.insert(combination) {
            let text = format!("`{}` is bound twice here", key.get_ref());
            self.problem(&key.span(), text);
            return None;
        }
        let reaches_composer = matches!(context, Context::Composer | Context::Everywhere);
        if reaches_composer && types(combination) {
            let text = format!("`{}` types in the composer and cannot be bound", key.get_ref());
            self.problem(&key.span(), text);
            return None;
        }
        Some(combination)
    }

    /// The meaning of a value: a binding, or the removal of one; `None` after a problem.
    fn binding(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Option<Binding>> {
        let DeValue::String(text) = value.get_ref() else {
            self.problem(&value.span(), "expected the name of an action in quotes".into());
            return None;
        };
        if text.is_empty() {
            return Some(None);
        }
        match meaning(text) {
            Ok(binding) => Some(Some(binding)),
            Err(text) => {
                self.problem(&value.span(), text);
                None
            }
        }
    }
}

fn meaning(text: &str) -> Result<Binding, String> {
    let (line, run) = match text.strip_prefix("run ") {
        Some(line) => (line.trim_start(), true),
        None => (text, false),
    };
    let Some(line) = line.strip_prefix(':') else {
        let action = Action::named(text).ok_or_else(|| format!("no such action `{text}`"))?;
        return Ok(Binding::Do(action));
    };
    let word = line.split_whitespace().next().unwrap_or("");
    let verb = find(word).ok_or_else(|| format!("no such verb `:{word}`"))?;
    if !verb.ways.contains(&Way::Key) {
        return Err(format!("`:{word}` cannot be bound to a key"));
    }
    if run && verb.is_only_typed() {
        return Err(format!("`:{word}` is only ever put into the command line: leave out `run`"));
    }
    Ok(if run { Binding::Run(line.into()) } else { Binding::Prefill(line.into()) })
}

/// Whether the key is text: it types in the composer. `:` and `@` type too and do more.
fn types(key: KeyCombination) -> bool {
    let crokey::OneToThree::One(KeyCode::Char(c)) = key.codes else { return false };
    let plain = (key.modifiers - KeyModifiers::SHIFT).is_empty();
    plain && !matches!(c, ':' | '@')
}
