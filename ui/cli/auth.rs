//! `yoi auth`: keys of providers, stored in a file that only its owner can read.

use crate::console;
use crate::headless::{Exit, Failure};
use crate::start::Opening;
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::io::{self, IsTerminal as _, Read as _};
use yoi::config::{Catalogue, Keys, ModelError, Settings};
use yoi::text::Decoded;

/// The longest key that is read, in bytes.
const LONGEST: u64 = 64 * 1024;

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

/// Stores the key that is typed without echo, or piped in.
pub fn set(opening: &Opening, provider: &str) -> Result<(), Failure> {
    let (settings, _) = Settings::load(&opening.dirs.config);
    let all = Catalogue::with(&settings);
    let known = all.providers.get(provider);
    let unknown = || ModelError::unknown(&all, provider, opening.dirs.config.join("config.toml"));
    let known = known.ok_or_else(|| Failure::usage(unknown().to_string()))?;
    let key = if io::stdin().is_terminal() { typed(provider) } else { piped() }?;
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

fn piped() -> Result<String, Failure> {
    let mut key = Vec::new();
    io::stdin().lock().take(LONGEST).read_to_end(&mut key).map_err(failed)?;
    Ok(Decoded::of(&key).text.into_owned())
}

fn typed(provider: &str) -> Result<String, Failure> {
    console::prompt(&format!("key for {provider} (not shown): ")).map_err(failed)?;
    let quiet = Quiet::new().map_err(failed)?;
    let key = read_keys(&mut io::stdin().lock());
    drop(quiet);
    console::err("");
    key.map_err(failed)?.ok_or_else(|| Failure::new(Exit::Signal(2), "nothing was stored"))
}

/// The text typed up to Enter; `None` after Ctrl+C or Ctrl+D.
fn read_keys(input: &mut impl io::BufRead) -> io::Result<Option<String>> {
    let mut typed = Vec::new();
    for byte in input.take(LONGEST).bytes() {
        match byte? {
            b'\r' | b'\n' => return Ok(String::from_utf8(typed).ok()),
            0x03 | 0x04 => return Ok(None),
            0x08 | 0x7f => drop(typed.pop()),
            0x15 => typed.clear(),
            byte => typed.push(byte),
        }
    }
    Ok(None)
}

/// The terminal without echo. Ctrl+C arrives as a byte, so that it cannot end the program before the
/// terminal is restored.
struct Quiet {
    before: Termios,
}

impl Quiet {
    fn new() -> io::Result<Self> {
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &quiet)?;
        Ok(Self { before })
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // The terminal may be gone; then there is no setting to restore.
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_with_enter_and_can_be_corrected() {
        let read = |mut bytes: &[u8]| read_keys(&mut bytes).expect("bytes can be read");
        assert_eq!(read(b"sk-ax\x7f1\r"), Some("sk-a1".into()));
        assert_eq!(read(b"wrong\x15right\n"), Some("right".into()));
        assert_eq!(read(b"half\x03"), None);
    }
}
