//! Writes the 16 named colours with the codes that every terminal with colours knows: `94` in place of `38;5;12`.

use std::io::{self, Write};

const ESC: u8 = 0x1b;

/// A writer that gives each named colour its own code before it passes the text on.
pub struct NamedColours<W> {
    inner: W,
    /// A control sequence whose end has not come yet; empty between two.
    sequence: Vec<u8>,
}

impl<W: Write> NamedColours<W> {
    pub fn new(inner: W) -> Self {
        Self { inner, sequence: Vec::new() }
    }

    /// Writes the sequence that is whole now.
    fn end_sequence(&mut self) -> io::Result<()> {
        let named = self.sequence.strip_prefix(b"\x1b[").and_then(|rest| rest.strip_suffix(b"m"));
        match named.and_then(|words| std::str::from_utf8(words).ok()) {
            Some(words) => write!(self.inner, "\x1b[{}m", with_names(words))?,
            None => self.inner.write_all(&self.sequence)?,
        }
        self.sequence.clear();
        Ok(())
    }
}

impl<W: Write> Write for NamedColours<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.sequence.is_empty() && *byte != ESC {
                continue;
            }
            if self.sequence.is_empty() {
                self.inner.write_all(&bytes[written..at])?;
            }
            self.sequence.push(*byte);
            written = at + 1;
            let is_whole = match self.sequence.len() {
                1 => false,
                2 => *byte != b'[',
                _ => (0x40..=0x7e).contains(byte),
            };
            if is_whole {
                self.end_sequence()?;
            }
        }
        self.inner.write_all(&bytes[written..])?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The parameters of an SGR sequence, with the codes of the named colours.
fn with_names(words: &str) -> String {
    let mut words = words.split(';');
    let mut looks: Vec<String> = Vec::new();
    while let Some(word) = words.next() {
        looks.push(word.to_owned());
        let (dark, bright) = match word {
            "38" => (30, 90),
            "48" => (40, 100),
            "58" => (0, 0),
            _ => continue,
        };
        let Some(form) = words.next() else { break };
        let colour: Vec<&str> = words.by_ref().take(if form == "2" { 3 } else { 1 }).collect();
        match colour.first().and_then(|index| index.parse::<u8>().ok()) {
            Some(index @ 0..8) if form == "5" && dark > 0 => {
                looks.pop();
                looks.push((dark + index).to_string());
            }
            Some(index @ 8..16) if form == "5" && bright > 0 => {
                looks.pop();
                looks.push((bright + index - 8).to_string());
            }
            _ => looks.extend(std::iter::once(form).chain(colour).map(str::to_owned)),
        }
    }
    looks.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text as it is written, whole and byte by byte.
    fn written(text: &str) -> String {
        let through = |pieces: &mut dyn Iterator<Item = &[u8]>| {
            let mut writer = NamedColours::new(Vec::new());
            pieces.for_each(|piece| writer.write_all(piece).expect("a buffer takes all"));
            String::from_utf8(writer.inner).expect("text")
        };
        let whole = through(&mut std::iter::once(text.as_bytes()));
        assert_eq!(through(&mut text.as_bytes().chunks(1)), whole);
        whole
    }

    #[test]
    fn a_named_colour_has_its_own_code_and_all_else_stays() {
        let cases = [
            ("a\x1b[38;5;12mb", "a\x1b[94mb"),
            ("\x1b[38;5;1;48;5;8m日本", "\x1b[31;100m日本"),
            ("\x1b[1;38;5;7;4m", "\x1b[1;37;4m"),
            ("\x1b[38;5;196m", "\x1b[38;5;196m"),
            ("\x1b[38;2;5;5;5m\x1b[58;5;3m", "\x1b[38;2;5;5;5m\x1b[58;5;3m"),
            ("\x1b[0m\x1b[m\x1b[?25l\x1b[2;5H38;5;3m", "\x1b[0m\x1b[m\x1b[?25l\x1b[2;5H38;5;3m"),
            ("\x1b]8;;http://x/38;5;3m\x1b\\", "\x1b]8;;http://x/38;5;3m\x1b\\"),
        ];
        for (text, named) in cases {
            assert_eq!(written(text), named);
        }
    }
}
