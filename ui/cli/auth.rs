//! `yoi auth`: keys of providers, stored in a file that only its owner can read.

use crate::console;
use crate::headless::{Exit, Failure, unseen};
use crate::start::Opening;
use crate::verb::KEY_IN_HISTORY;
use yoi::config::{Catalogue, Keys, ModelError, Settings};

/// No provider's own name with a digit in it is as long as this, and no key is shorter.
const LEAST_OF_KEYS: usize = 16;

fn keys(opening: &Opening) -> Keys {
    Keys::at(&opening.dirs.config)
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
}

/// Names the providers that have a stored key, never the keys.
pub fn list(opening: &Opening) -> Result<(), Failure> {
    let keys = keys(opening);
    let stored = keys.list().map_err(failed)?;
    if stored.is_empty() {
        let file = keys.file().display();
        console::err(&format!("no key is stored: `yoi auth <provider>` stores one in {file}"));
    }
    for provider in stored {
        console::out(&provider);
    }
    Ok(())
}

/// Whether a word in the place of a provider may be a key: it is long and has digits.
fn looks_like_a_key(word: &str) -> bool {
    word.len() >= LEAST_OF_KEYS && word.contains(|c: char| c.is_ascii_digit())
}

/// Stores the key that is typed without echo, or piped in.
pub fn set(opening: &Opening, provider: &str) -> Result<(), Failure> {
    let (settings, _) = Settings::load(&opening.dirs.config);
    let all = Catalogue::with(&settings);
    let known = all.providers.get(provider);
    let unknown = || match looks_like_a_key(provider) {
        true => format!("no provider has this name; {KEY_IN_HISTORY}, or replace the key"),
        false => {
            ModelError::unknown(&all, provider, opening.dirs.config.join("config.toml")).to_string()
        }
    };
    let known = known.ok_or_else(|| Failure::usage(unknown()))?;
    let key = unseen::key(provider)?;
    if key.trim().chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Failure::usage("a key is one word"));
    }
    let keys = keys(opening);
    keys.set(provider, &key).map_err(failed)?;
    console::err(&format!("stored the key for {provider} in {}", keys.file().display()));
    if known.default_model.is_none() {
        console::err(&format!(
            "{provider} has no default model: `:model {provider}/<name>` names one"
        ));
    }
    Ok(())
}

/// Forgets a stored key.
pub fn remove(opening: &Opening, provider: &str) -> Result<(), Failure> {
    let keys = keys(opening);
    if !keys.remove(provider).map_err(failed)? {
        return Err(Failure::new(Exit::Failed, format!("no key is stored for {provider}")));
    }
    console::err(&format!("removed the key for {provider} from {}", keys.file().display()));
    Ok(())
}
