//! Keys of providers. A key is only ever named by where it comes from; the stored ones lie in
//! `keys.toml`, which only its owner can read.

use crate::config::models::KeySource;
use crate::config::{Catalogue, Env, Settings, plain_file};
use crate::disk::DiskError;
use crate::trace::secrets;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, TomlError};

/// A key in hand. Neither `Debug` nor `Display` shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// From here on no log line, report or provider's sentence shows this key.
    pub fn new(key: impl Into<String>) -> Self {
        let key = key.into();
        secrets::register(&key);
        Self(key)
    }

    /// The key itself: for the header that carries it, and for nothing else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The key that a model needs is not there.
#[derive(Debug, thiserror::Error)]
pub enum MissingKey {
    #[error("{0} is not set: start yoi where it is set, or :connect")]
    NotSet(String),
    #[error("no key is stored for {0}: :connect {0}, or :model")]
    NotStored(String),
    #[error("key_command of [provider.{0}] is gone: set it again, or :model")]
    NoCommand(String),
    #[error("headers of [provider.{0}]: {1}")]
    Headers(String, String),
    #[error(transparent)]
    Unreadable(#[from] KeysError),
}

impl MissingKey {
    /// The sentence about a request to this provider that cannot be made.
    pub fn sentence(&self, provider: &str) -> String {
        match self {
            Self::Headers(..) => self.to_string(),
            _ => format!("no key for {provider}: {self}"),
        }
    }
}

/// The key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    #[error("cannot {doing} {}: {cause}", file.display())]
    Io { doing: &'static str, file: PathBuf, cause: io::Error },
    /// The text carries no part of the file, which may hold a key.
    #[error("{}:{line}:{column}: not a line of the form provider = \"key\"", file.display())]
    Syntax { file: PathBuf, line: usize, column: usize },
    #[error(transparent)]
    Unwritable(#[from] DiskError),
    #[error("{} may be read by others: chmod 600 it", file.display())]
    Open { file: PathBuf },
    #[error("an empty text is no key")]
    Empty,
}

/// The stored keys: `<config>/keys.toml`, mode 0600, one line a provider.
#[derive(Clone, Debug)]
pub struct Keys {
    file: PathBuf,
}

impl Keys {
    /// The key file of this configuration directory, which need not exist.
    pub fn at(config: &Path) -> Self {
        Self { file: config.join("keys.toml") }
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The key stored for a provider.
    pub fn get(&self, provider: &str) -> Result<Option<Secret>, KeysError> {
        Ok(self.read()?.remove(provider).map(Secret::new))
    }

    /// Stores a key; white space around it is dropped.
    pub fn set(&self, provider: &str, key: &str) -> Result<(), KeysError> {
        let key = key.trim();
        if key.is_empty() {
            return Err(KeysError::Empty);
        }
        let _lock = self.lock()?;
        let mut document = self.document()?;
        document[provider] = toml_edit::value(key);
        self.write(&document)
    }

    /// Forgets a key; whether there was one.
    pub fn remove(&self, provider: &str) -> Result<bool, KeysError> {
        if !self.dir().is_dir() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let mut document = self.document()?;
        if document.remove(provider).is_none() {
            return Ok(false);
        }
        self.write(&document)?;
        Ok(true)
    }

    /// The providers that have a stored key, by name.
    pub fn list(&self) -> Result<Vec<String>, KeysError> {
        Ok(self.read()?.into_keys().collect())
    }

    /// The key a model's source names; `None` when it needs none or a command prints it. A variable is
    /// looked for in each environment in turn.
    pub fn resolve(&self, source: &KeySource, envs: &[&Env]) -> Result<Option<Secret>, MissingKey> {
        match source {
            KeySource::None
            | KeySource::Unset(_)
            | KeySource::Header(_)
            | KeySource::Command(_) => Ok(None),
            KeySource::Env(name) => {
                let set = envs.iter().filter_map(|env| Some(env.get(name)?.trim()));
                let key = set.into_iter().find(|key| !key.is_empty());
                let key = key.ok_or_else(|| MissingKey::NotSet(name.clone()))?;
                Ok(Some(Secret::new(key)))
            }
            KeySource::File(provider) => match self.get(provider)? {
                Some(key) => Ok(Some(key)),
                None => Err(MissingKey::NotStored(provider.clone())),
            },
        }
    }

    fn read(&self) -> Result<BTreeMap<String, String>, KeysError> {
        self.keys_of(&self.text()?)
    }

    fn keys_of(&self, text: &str) -> Result<BTreeMap<String, String>, KeysError> {
        toml::from_str(text).map_err(|error| self.syntax(text, error.span()))
    }

    /// The file with its comments and its order, to be changed.
    fn document(&self) -> Result<DocumentMut, KeysError> {
        let text = self.text()?;
        self.keys_of(&text)?;
        text.parse().map_err(|error: TomlError| self.syntax(&text, error.span()))
    }

    fn syntax(&self, text: &str, span: Option<Range<usize>>) -> KeysError {
        let at = span.map_or(0, |span| span.start);
        let (line, column) = crate::config::diagnostic::line_and_column(text, at);
        KeysError::Syntax { file: self.file.clone(), line, column }
    }

    /// What stands in the file; empty if there is none.
    fn text(&self) -> Result<String, KeysError> {
        let text = match plain_file::read(&self.file) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
            Err(cause) => return Err(self.io("read", cause)),
        };
        register(&text);
        let mode = fs::metadata(&self.file).map_err(|cause| self.io("read", cause))?;
        if mode.permissions().mode() & 0o077 != 0 {
            return Err(KeysError::Open { file: self.file.clone() });
        }
        Ok(text)
    }

    /// Keeps other processes from changing the file between a read and the write that follows: also those whose
    /// configuration is another directory with a link to the same file.
    fn lock(&self) -> Result<File, KeysError> {
        let dir = self.dir();
        let locked = || {
            crate::config::dirs::private_tree(dir)?;
            let target = self.file.canonicalize().ok();
            let real = target.as_deref().and_then(Path::parent).unwrap_or(dir);
            let dir = File::open(real)?;
            dir.lock()?;
            Ok(dir)
        };
        locked().map_err(|cause| self.io("write", cause))
    }

    fn dir(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }

    fn write(&self, document: &DocumentMut) -> Result<(), KeysError> {
        Ok(plain_file::write(&self.file, &document.to_string(), 0o600)?)
    }

    fn io(&self, doing: &'static str, cause: io::Error) -> KeysError {
        KeysError::Io { doing, file: self.file.clone(), cause }
    }
}

/// No log line shows a key that stands in the file, also when the file cannot be used.
fn register(text: &str) {
    let values = text.lines().filter_map(|line| line.split_once('='));
    values.for_each(|(_, key)| secrets::register(key.trim().trim_matches(['"', '\''])));
}

/// Remembers every secret of an environment, also those whose variables have ordinary names and
/// are keys by the settings: from here on no log line, report or provider's sentence shows one.
pub fn register_secrets(env: &Env, settings: &Settings) {
    secrets::register_environment(env);
    for name in Catalogue::with(settings).key_variables() {
        if let Some(key) = env.get(&name) {
            secrets::register(key);
        }
    }
    for provider in settings.provider.values() {
        provider.headers.iter().for_each(secrets::register_settings);
    }
    for server in settings.mcp.values() {
        secrets::register_settings(&server.env);
        secrets::register_settings(&server.headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-test-0123456789abcdef";

    fn keys() -> (tempfile::TempDir, Keys) {
        let dir = tempfile::tempdir().unwrap();
        let keys = Keys::at(&dir.path().join("config"));
        (dir, keys)
    }

    #[test]
    fn keys_that_are_stored_at_once_are_all_kept() {
        let (_dir, keys) = keys();
        let names: Vec<String> = (0..16).map(|n| format!("p{n}")).collect();
        std::thread::scope(|scope| {
            for name in &names {
                scope.spawn(|| keys.set(name, KEY).unwrap());
            }
        });
        assert_eq!(keys.list().unwrap().len(), names.len());
    }

    #[test]
    fn keys_that_are_stored_through_two_links_to_one_file_are_all_kept() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real.toml");
        fs::write(&real, "").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        let keys = ["a", "b"].map(|name| Keys::at(&dir.path().join(name)));
        for keys in &keys {
            fs::create_dir(keys.dir()).unwrap();
            std::os::unix::fs::symlink(&real, keys.file()).unwrap();
        }
        let held = keys[0].lock().unwrap();
        let others = File::open(dir.path()).unwrap();
        assert!(others.try_lock().is_err(), "the directory of the file itself is locked");
        drop(held);
        let names: Vec<String> = (0..16).map(|n| format!("p{n}")).collect();
        std::thread::scope(|scope| {
            for (n, name) in names.iter().enumerate() {
                let keys = &keys[n % 2];
                scope.spawn(move || keys.set(name, KEY).unwrap());
            }
        });
        assert_eq!(keys[0].list().unwrap().len(), names.len());
    }

    #[test]
    fn a_stored_key_comes_back_is_listed_by_provider_and_can_be_forgotten() {
        let (_dir, keys) = keys();
        assert_eq!(keys.get("anthropic").unwrap(), None);
        keys.set("anthropic", &format!(" {KEY}\n")).unwrap();
        keys.set("openai", "other").unwrap();
        assert_eq!(keys.get("anthropic").unwrap().unwrap().expose(), KEY);
        assert_eq!(keys.list().unwrap(), ["anthropic", "openai"]);
        assert!(keys.remove("anthropic").unwrap());
        assert!(!keys.remove("anthropic").unwrap());
        assert_eq!(keys.list().unwrap(), ["openai"]);
    }

    #[test]
    fn comments_order_and_a_link_of_the_person_stay() {
        let (dir, keys) = keys();
        fs::create_dir(keys.file().parent().unwrap()).unwrap();
        let real = dir.path().join("real.toml");
        fs::write(&real, "# of the firm\nopenai = \"a\" # until May\nanthropic = \"b\"\n").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&real, keys.file()).unwrap();
        keys.set("groq", KEY).unwrap();
        keys.remove("anthropic").unwrap();
        assert!(keys.file().is_symlink());
        let after = format!("# of the firm\nopenai = \"a\" # until May\ngroq = \"{KEY}\"\n");
        assert_eq!(fs::read_to_string(&real).unwrap(), after);
        fs::rename(&real, dir.path().join("away.toml")).unwrap();
        assert!(keys.set("groq", KEY).is_err(), "the link leads nowhere");
        assert!(keys.file().is_symlink());
    }

    #[test]
    fn the_key_file_and_its_directory_are_for_the_owner_alone() {
        let (_dir, keys) = keys();
        keys.set("anthropic", KEY).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(keys.file()), 0o600);
        assert_eq!(mode(keys.file().parent().unwrap()), 0o700);
    }

    #[test]
    fn a_key_file_that_others_may_read_is_refused_with_the_way_out() {
        let (_dir, keys) = keys();
        keys.set("anthropic", KEY).unwrap();
        fs::set_permissions(keys.file(), fs::Permissions::from_mode(0o644)).unwrap();
        let sentence = keys.get("anthropic").unwrap_err().to_string();
        assert!(sentence.contains("chmod 600"), "{sentence}");
    }

    #[test]
    fn a_damaged_key_file_is_named_by_line_and_shows_no_key() {
        let (_dir, keys) = keys();
        keys.set("anthropic", KEY).unwrap();
        fs::write(keys.file(), format!("openai = \"x\"\nanthropic = {KEY}\n")).unwrap();
        let error = keys.get("openai").unwrap_err();
        let sentence = error.to_string();
        assert!(sentence.contains("keys.toml:2:"), "{sentence}");
        assert!(!sentence.contains("sk-test") && !format!("{error:?}").contains("sk-test"));
    }

    #[test]
    fn a_key_is_found_where_its_source_says_and_a_missing_one_says_how_to_get_it() {
        let (_dir, keys) = keys();
        let env = Env::from([("FULL".into(), KEY.into()), ("EMPTY".into(), String::new())]);
        let got = keys.resolve(&KeySource::Env("FULL".into()), &[&env]).unwrap();
        assert_eq!(got.unwrap().expose(), KEY);
        assert_eq!(keys.resolve(&KeySource::None, &[&env]).unwrap(), None);
        for (source, words) in [
            (KeySource::Env("EMPTY".into()), "EMPTY is not set"),
            (KeySource::Env("ABSENT".into()), "ABSENT is not set"),
            (KeySource::File("groq".into()), ":connect groq"),
        ] {
            let sentence = keys.resolve(&source, &[&env]).unwrap_err().to_string();
            assert!(sentence.contains(words), "{sentence}");
        }
        keys.set("groq", KEY).unwrap();
        let got = keys.resolve(&KeySource::File("groq".into()), &[&env]).unwrap();
        assert_eq!(got.unwrap().expose(), KEY);
    }

    #[test]
    fn an_empty_key_is_refused_and_changes_nothing() {
        let (_dir, keys) = keys();
        assert!(keys.set("anthropic", " \n").is_err());
        assert!(!keys.file().exists());
    }

    #[test]
    fn a_secret_is_never_shown() {
        let secret = Secret::new(KEY);
        assert!(!format!("{secret} {secret:?} {:#?}", Some(&secret)).contains("sk-test"));
    }
}
