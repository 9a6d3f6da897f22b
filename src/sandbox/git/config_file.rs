//! Parses configuration files as git does: `.git/config`, `~/.gitconfig`, `.gitmodules`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::iter::Peekable;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::str::Chars;

/// One setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// In lower case.
    pub section: String,
    /// The quoted name after the section.
    pub subsection: Option<String>,
    /// In lower case.
    pub name: String,
    /// `None` without `=`, which git reads as true.
    pub value: Option<String>,
}

/// The settings of a text up to the first syntax error, where git stops.
pub fn parse(text: &str) -> Vec<Setting> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    let mut reader = Reader { rest: text.chars().peekable(), found: Vec::new() };
    // Settings before a syntax error count, because a newer git may accept the rest.
    let _ = reader.read();
    reader.found
}

/// Parses the bytes of a file, for the paths in it: each character of a value is one byte, and
/// [`path`] turns them into a path.
pub fn parse_bytes(bytes: &[u8]) -> Vec<Setting> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    parse(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
}

/// The settings in the bytes of a file, or `None` at a syntax error.
pub fn parse_whole(bytes: &[u8]) -> Option<Vec<Setting>> {
    let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
    let text = text.replace("\r\n", "\n");
    let mut reader = Reader { rest: text.chars().peekable(), found: Vec::new() };
    reader.read()?;
    Some(reader.found)
}

/// The path in a value of [`parse_bytes`].
pub fn path(value: &str) -> PathBuf {
    let bytes = value.chars().filter_map(|c| u8::try_from(c).ok()).collect();
    OsString::from_vec(bytes).into()
}

/// Writes settings as a text that git reads.
pub fn text_of(settings: &[Setting]) -> String {
    let (mut text, mut last) = (String::new(), None);
    for Setting { section, subsection, name, value } in settings {
        if last != Some((section, subsection)) {
            let inner = subsection.as_ref().map(|inner| format!(" \"{}\"", escaped(inner)));
            let _ = writeln!(text, "[{section}{}]", inner.unwrap_or_default());
            last = Some((section, subsection));
        }
        let value = value.as_ref().map(|value| format!(" = \"{}\"", escaped(value)));
        let _ = writeln!(text, "\t{name}{}", value.unwrap_or_default());
    }
    text
}

/// The same for settings of [`parse_whole`], whose characters are bytes.
pub fn bytes_of(settings: &[Setting]) -> Vec<u8> {
    text_of(settings).chars().filter_map(|c| u8::try_from(c).ok()).collect()
}

fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n").replace('\t', "\\t").replace('\u{8}', "\\b")
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    found: Vec<Setting>,
}

impl Reader<'_> {
    /// `None` at a mistake.
    fn read(&mut self) -> Option<()> {
        let (mut section, mut subsection) = (String::new(), None);
        while let Some(next) = self.rest.next() {
            match next {
                '#' | ';' => self.comment(),
                '[' => (section, subsection) = self.header()?,
                c if c.is_ascii_whitespace() => {}
                c if c.is_ascii_alphabetic() => {
                    let (name, value) = self.setting(c)?;
                    let (section, subsection) = (section.clone(), subsection.clone());
                    self.found.push(Setting { section, subsection, name, value });
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// Goes on to the next line.
    fn comment(&mut self) {
        let _ = self.rest.by_ref().find(|c| *c == '\n');
    }

    /// The names between `[` and `]`.
    fn header(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                ']' => {
                    let plain = name.split_once('.').map(|(a, b)| (a.to_owned(), Some(b.into())));
                    return Some(plain.unwrap_or((name, None)));
                }
                c if c.is_ascii_whitespace() => return Some((name, Some(self.quoted()?))),
                c if is_key(c) || c == '.' => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
        }
    }

    fn quoted(&mut self) -> Option<String> {
        while self.rest.next_if(|c| c.is_ascii_whitespace() && *c != '\n').is_some() {}
        self.rest.next_if_eq(&'"')?;
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                '"' => break,
                '\n' => return None,
                '\\' => name.push(self.rest.next().filter(|c| *c != '\n')?),
                c => name.push(c),
            }
        }
        self.rest.next_if_eq(&']').map(|_| name)
    }

    fn setting(&mut self, first: char) -> Option<(String, Option<String>)> {
        let mut name = String::from(first.to_ascii_lowercase());
        while let Some(c) = self.rest.next_if(|c| is_key(*c)) {
            name.push(c.to_ascii_lowercase());
        }
        while self.rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
        match self.rest.next() {
            None | Some('\n') => Some((name, None)),
            Some('=') => Some((name, Some(self.value()?))),
            Some(_) => None,
        }
    }

    fn value(&mut self) -> Option<String> {
        let (mut value, mut quoted, mut kept) = (String::new(), false, 0);
        loop {
            match self.rest.next() {
                None | Some('\n') if quoted => return None,
                None | Some('\n') => break,
                Some('#' | ';') if !quoted => {
                    // A comment extends to the end of the line, also after a `\`.
                    self.comment();
                    break;
                }
                Some(c) if c.is_ascii_whitespace() && !quoted => {
                    // Leading and trailing blanks do not count.
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                Some('"') => quoted = !quoted,
                Some('\\') => match self.rest.next()? {
                    '\n' => {}
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    'n' => value.push('\n'),
                    c @ ('\\' | '"') => value.push(c),
                    _ => return None,
                },
                Some(c) => value.push(c),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

fn is_key(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let shown = |setting: Setting| {
            let inner = setting.subsection.map(|inner| format!(".{inner}")).unwrap_or_default();
            let value = setting.value.map(|value| format!("={value}")).unwrap_or_default();
            format!("{}{inner}.{}{value}", setting.section, setting.name)
        };
        parse(text).into_iter().map(shown).collect()
    }

    /// The settings that the installed git reads from a text.
    fn of_git(text: &str) -> Vec<String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let mut git = std::process::Command::new("git");
        let list =
            git.args(["config", "--list", "-z", "--file"]).arg(file.path()).output().unwrap();
        let list = String::from_utf8(list.stdout).unwrap();
        list.split_terminator('\0').map(|line| line.replacen('\n', "=", 1)).collect()
    }

    #[test]
    fn settings_are_read_as_git_reads_them_and_written_so_that_it_reads_the_same() {
        let texts = [
            "[core]\n\thooksPath = .githooks ; shared\n\tx=a#b\n",
            "[core]\n\thooksPath = \\\n.githooks\n[a]b\n c = \n",
            "\u{feff}[Core \"A.b\\\"c\"]\r\n\tX-y = \" a # b \" c  d \\\n  e\\tf ; g \\\n\th = 1\n",
            "[a.B.c]d=1\n[includeIf \"gitdir:~/x\"] path = y\n# [z]\n; [z]\n[a] e = \"x\" # z",
            "[a]\n\tx = \"b;c\"d\n\ty =   \"\"  e  \n z = a\tb\n",
        ];
        for text in texts {
            let own = lines(text);
            assert!(!own.is_empty());
            assert_eq!(own, of_git(text), "{text}");
            assert_eq!(of_git(&text_of(&parse(text))), own, "{text}");
        }
        assert_eq!(lines("[a]\nb = 1\n[c\nd = 2\n"), ["a.b=1"]);
    }
}
