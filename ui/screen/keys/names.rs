//! Names of keys in sentences. A sentence never spells a key: it asks the keymap, because every key can be
//! bound anew.

use crate::screen::keys::{Action, Binding, CONTEXTS, Context, Keymap, default_keymap, label};
use crokey::KeyCombination;
use std::sync::LazyLock;

static DEFAULT: LazyLock<Keymap> = LazyLock::new(default_keymap);

/// The text with the names of keys in it, as the default keymap binds them: for texts outside the dashboard.
pub fn with_default_keys(text: &str) -> String {
    DEFAULT.with_keys(text)
}

impl Keymap {
    /// How a person presses the key of `action` in `context`: `Enter`, `Ctrl+X v`. An action without a key
    /// is named by its name in keymap files.
    pub fn name(&self, context: Context, action: Action) -> String {
        let binding = Binding::Do(action);
        self.name_where(context, |bound| *bound == binding).unwrap_or_else(|| no_key(action.name()))
    }

    /// The text with each `{place action}` or `{place :verb}` replaced by the name of the key.
    pub fn with_keys(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            out.push_str(before);
            let named =
                after.split_once('}').and_then(|(key, rest)| Some((self.named(key)?, rest)));
            rest = match named {
                Some((name, behind)) => {
                    out.push_str(&name);
                    behind
                }
                None => {
                    out.push('{');
                    after
                }
            };
        }
        out + rest
    }

    /// A key as it is pressed: after the leader where it needs it.
    pub fn pressed_name(&self, context: Context, key: KeyCombination) -> String {
        match context {
            Context::Leader => {
                format!("{} {}", self.label(Context::Everywhere, Action::Leader), label(key))
            }
            _ => label(key),
        }
    }

    /// The name that a placeholder stands for; none when it is no placeholder.
    fn named(&self, placeholder: &str) -> Option<String> {
        let (place, wanted) = placeholder.split_once(' ')?;
        let (_, context) = *CONTEXTS.iter().find(|(name, _)| *name == place)?;
        let Some(verb) = wanted.strip_prefix(':') else {
            return Some(self.name(context, Action::named(wanted)?));
        };
        let runs = |binding: &Binding| match binding {
            Binding::Prefill(line) | Binding::Run(line) => line.split(' ').next() == Some(verb),
            Binding::Do(_) => false,
        };
        Some(self.name_where(context, runs).unwrap_or_else(|| no_key(wanted)))
    }

    /// The first key of `context`, else of everywhere, whose binding is wanted.
    fn name_where(&self, context: Context, is_wanted: impl Fn(&Binding) -> bool) -> Option<String> {
        let places: &[Context] = match context {
            Context::Leader => &[context],
            _ => &[context, Context::Everywhere],
        };
        places.iter().find_map(|place| {
            let (key, _) = self.list(*place).find(|(_, binding)| is_wanted(binding))?;
            Some(self.pressed_name(*place, key))
        })
    }
}

fn no_key(wanted: &str) -> String {
    format!("`{wanted}` (no key)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::keys::read;

    #[test]
    fn a_sentence_names_the_key_that_is_bound() {
        let text =
            "{tree mark} marks, {line back} leaves, {leader split} splits, {transcript :fork}";
        assert_eq!(with_default_keys(text), "Space marks, Esc leaves, Ctrl+X v splits, f");
        let mut keymap = default_keymap();
        let own = "[everywhere]\n\"ctrl-x\" = \"\"\n\"ctrl-t\" = \"leader\"\n[tree]\n\"space\" = \"\"\n\
                   \"f7\" = \"mark\"\n[line]\n\"esc\" = \"\"\n[transcript]\n\"f\" = \"\"\n";
        assert_eq!(read(&mut keymap, "keymap.toml", own), vec![]);
        let named = "F7 marks, Esc leaves, Ctrl+T v splits, `:fork` (no key)";
        assert_eq!(keymap.with_keys(text), named);
    }

    #[test]
    fn other_braces_stay() {
        for text in ["{", "}", "{pod}", "{tree fly}", "{cellar mark}", "a {b} {"] {
            assert_eq!(with_default_keys(text), text);
        }
    }
}
