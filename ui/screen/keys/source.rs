//! Which keymap is in force: a built-in one, and the person's own file over it.

use crate::screen::keys::{Hidden, Keymap, built_in, names, read};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use yoi::config::plain_file;

/// The file of a person's own keys, unless the settings name another one.
const OWN: &str = "keymap.toml";

/// Where the keys come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// The name of the built-in keymap.
    pub name: String,
    /// The person's own keys.
    pub file: Option<PathBuf>,
    /// The settings name the file, so that it has to be there.
    is_named: bool,
}

/// A keymap as it was read.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub keymap: Keymap,
    /// The bindings for everywhere that others hide, where the person's file takes part.
    pub hidden: Hidden,
    /// A sentence for each problem in the file, which then changes nothing.
    pub wrong: Vec<String>,
}

impl Source {
    /// What the settings choose: a built-in keymap by its name, or a file, relative to the configuration directory.
    pub fn of_settings(keymap: Option<&Path>, config: Option<&Path>) -> Self {
        let of = |file: &Path| config.map(|config| config.join(file));
        let named =
            keymap.and_then(Path::to_str).filter(|name| names().any(|known| known == *name));
        match (named, keymap) {
            (Some(name), _) => Self { file: of(Path::new(OWN)), ..Self::built_in(name) },
            (None, Some(file)) => Self { file: of(file), is_named: true, ..Self::default_map() },
            (None, None) => Self { file: of(Path::new(OWN)), ..Self::default_map() },
        }
    }

    fn built_in(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    fn default_map() -> Self {
        Self::built_in(names().next().unwrap_or_default())
    }

    /// The same file over another built-in keymap.
    pub fn over(&self, name: &str) -> Self {
        Self { name: name.into(), ..self.clone() }
    }

    /// Reads the person's file over the built-in keymap.
    pub fn load(&self) -> Loaded {
        let mut keymap = built_in(&self.name);
        let mut own = Keymap::default();
        let wrong = match self.file.as_deref().map(|file| (file, plain_file::read(file))) {
            Some((file, Ok(text))) => {
                let name = file.display().to_string();
                read(&mut own, &name, &text);
                read(&mut keymap, &name, &text).iter().map(ToString::to_string).collect()
            }
            Some((_, Err(error))) if error.kind() == ErrorKind::NotFound && !self.is_named => {
                Vec::new()
            }
            Some((file, Err(error))) if error.kind() == ErrorKind::NotFound => {
                let names = names().collect::<Vec<_>>().join(", ");
                vec![format!(
                    "{}: there is no such file, and the built-in keymaps are {names}",
                    file.display()
                )]
            }
            Some((file, Err(error))) => vec![format!("{}: {error}", file.display())],
            None => Vec::new(),
        };
        let hidden = Hidden::of(&own, &keymap);
        Loaded { keymap, hidden, wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::keys::{Action, Binding, Context, parse};

    fn at(loaded: &Loaded, context: Context, key: &str) -> Option<Binding> {
        loaded.keymap.get(context, parse(key).expect("a key")).cloned()
    }

    #[test]
    fn the_settings_name_a_built_in_keymap_or_a_file() {
        let of = |keymap: &str| Source::of_settings(Some(Path::new(keymap)), Some(Path::new("/c")));
        let own = Some(PathBuf::from("/c/keymap.toml"));
        assert_eq!((of("vim").name.as_str(), of("vim").file), ("vim", own.clone()));
        let file = of("mine.toml");
        assert_eq!((file.name.as_str(), file.file), ("default", Some("/c/mine.toml".into())));
        assert_eq!(of("/k.toml").file, Some("/k.toml".into()));
        let usual = Source::of_settings(None, Some(Path::new("/c")));
        assert_eq!((usual.name.as_str(), usual.file.clone()), ("default", own));
        assert_eq!(usual.over("vim"), of("vim"));
    }

    #[test]
    fn own_keys_lie_over_either_map_and_a_file_with_a_mistake_changes_nothing() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let usual = Source::of_settings(None, Some(dir.path()));
        assert_eq!(usual.load().wrong, Vec::<String>::new(), "there need not be a file");
        let file = dir.path().join("keymap.toml");
        std::fs::write(&file, "[tree]\n\"f7\" = \"mark\"\n").expect("written");
        for source in [usual.clone(), usual.over("vim")] {
            let mark = Some(Binding::Do(Action::Mark));
            assert_eq!(at(&source.load(), Context::Tree, "f7"), mark, "{source:?}");
        }
        std::fs::write(&file, "[tree]\n\"f7\" = \"mark\"\n\"f8\" = \"dance\"\n").expect("written");
        let loaded = usual.load();
        assert_eq!(at(&loaded, Context::Tree, "f7"), None);
        let place = format!("{}:3:8: ", file.display());
        assert!(loaded.wrong[0].starts_with(&place), "{:?}", loaded.wrong);
        let absent = Source::of_settings(Some(Path::new("other.toml")), Some(dir.path()));
        assert_eq!(absent.load().wrong.len(), 1, "a file that the settings name has to be there");
    }

    #[test]
    fn what_is_no_plain_file_is_said_and_changes_no_key() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let source = Source { file: Some(temp.path().into()), ..Source::default_map() };
        let loaded = source.load();
        assert!(loaded.wrong[0].contains("not a plain file"), "{:?}", loaded.wrong);
        let palette = Some(Binding::Do(Action::Palette));
        assert_eq!(at(&loaded, Context::Everywhere, "ctrl-p"), palette);
    }
}
