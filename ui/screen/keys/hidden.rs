//! Keys that are bound everywhere and that a place binds to something else, which hides the binding for everywhere.

use crate::screen::keys::{CONTEXTS, Context, Keymap, label};

/// The hidden bindings in which a person's file takes part, as sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hidden {
    /// The file binds the key everywhere, and a place hides that.
    pub own: Vec<String>,
    /// The file binds the key in a place, and that hides a binding for everywhere.
    pub by_own: Vec<String>,
}

impl Hidden {
    /// `own` has the keys of the file alone, `all` those in force.
    pub fn of(own: &Keymap, all: &Keymap) -> Self {
        let mut hidden = Self::default();
        for (place, context) in CONTEXTS {
            // Bindings for everywhere do not apply after the leader key.
            if matches!(context, Context::Everywhere | Context::Leader) {
                continue;
            }
            for (key, binding) in all.list(context) {
                let everywhere = all.list(Context::Everywhere).find(|(other, _)| *other == key);
                let Some((_, other)) = everywhere.filter(|(_, other)| *other != binding) else {
                    continue;
                };
                let is_own = |context| own.list(context).any(|(other, _)| other == key);
                let (key, here) = (label(key), binding.written());
                let other = other.written();
                if is_own(context) {
                    hidden.by_own.push(format!(
                        "{key} is `{here}` in [{place}], where it was `{other}` of [everywhere]"
                    ));
                } else if is_own(Context::Everywhere) {
                    hidden.own.push(format!(
                        "{key} is `{other}` in [everywhere], but `{here}` in [{place}]"
                    ));
                }
            }
        }
        hidden
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::keys::{default_keymap, read};

    fn hidden(text: &str) -> Hidden {
        let (mut own, mut all) = (Keymap::default(), default_keymap());
        assert_eq!(read(&mut own, "keymap.toml", text), vec![]);
        assert_eq!(read(&mut all, "keymap.toml", text), vec![]);
        Hidden::of(&own, &all)
    }

    #[test]
    fn a_key_that_hides_another_one_is_named_with_both_places() {
        let of_everywhere =
            hidden("[everywhere]\n\"ctrl-g\" = \"palette\"\n\"f9\" = \"palette\"\n");
        let own = ["Ctrl+G is `palette` in [everywhere], but `edit-outside` in [composer]"];
        assert_eq!(of_everywhere, Hidden { own: own.map(str::to_owned).into(), by_own: vec![] });
        let of_a_place =
            hidden("[tree]\n\"ctrl-n\" = \":peer \"\n[leader]\n\"ctrl-n\" = \"palette\"\n");
        let by_own =
            ["Ctrl+N is `:peer ` in [tree], where it was `next-needs-you` of [everywhere]"];
        assert_eq!(of_a_place, Hidden { own: vec![], by_own: by_own.map(str::to_owned).into() });
        assert_eq!(hidden("[tree]\n\"ctrl-n\" = \"next-needs-you\"\n"), Hidden::default());
        assert_eq!(hidden(""), Hidden::default(), "keys of the default map are meant so");
    }
}
