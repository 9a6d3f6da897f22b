//! Reads a key that nobody sees.

use crate::console;
use crate::headless::exit::{Exit, Failure};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use std::io::{self, IsTerminal as _, Read as _};
use yoi::text::Decoded;

/// The longest key that is read, in bytes.
const LONGEST: u64 = 64 * 1024;

/// The key for a provider: typed without echo, or piped in.
pub fn key(provider: &str) -> Result<String, Failure> {
    if io::stdin().is_terminal() { typed(provider) } else { piped() }
}

fn failed(error: io::Error) -> Failure {
    Failure::new(Exit::Failed, error.to_string())
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
