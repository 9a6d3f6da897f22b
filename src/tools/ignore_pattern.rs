//! One pattern of a `.gitignore` file, with the meaning that git gives it. The author of a repository chooses patterns
//! and names, so a match takes no memory but a mark for each byte of the pattern, and no step twice.

/// A pattern; its paths are relative to the directory of its file.
#[derive(Debug)]
pub struct IgnorePattern {
    /// The bytes before the first wildcard, which a path begins with.
    prefix: Vec<u8>,
    tokens: Vec<Token>,
    /// Whether the last component of a path has to match, in whatever directory it is.
    is_name: bool,
    /// Whether a match is not ignored (`!`).
    pub is_exception: bool,
    only_directories: bool,
}

#[derive(Debug)]
enum Token {
    Byte(u8),
    /// `?`: any byte but a slash.
    One,
    /// `*`: any bytes but slashes.
    Many,
    /// `**` as a component: any bytes.
    All,
    /// `**/`: nothing, or any bytes that end with a slash.
    Directories,
    Class(Class),
}

/// `[...]`: the bytes that match.
#[derive(Debug)]
struct Class(Box<[bool; 256]>);

impl IgnorePattern {
    /// The pattern of a line, `None` for an empty line, a comment, and what matches no path.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let mut rest = without_trailing_spaces(line.strip_suffix(b"\r").unwrap_or(line));
        if rest.first() == Some(&b'#') {
            return None;
        }
        let is_exception = rest.first() == Some(&b'!');
        rest = &rest[usize::from(is_exception)..];
        let only_directories = rest.last() == Some(&b'/');
        rest = &rest[..rest.len() - usize::from(only_directories)];
        let is_name = !rest.contains(&b'/');
        rest = rest.strip_prefix(b"/").unwrap_or(rest);
        let wild = rest.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(rest.len());
        let (prefix, wildcards) = rest.split_at(wild);
        let tokens = tokens(wildcards)?;
        let is_empty = prefix.is_empty() && tokens.is_empty();
        (!is_empty).then(|| Self {
            prefix: prefix.to_vec(),
            tokens,
            is_name,
            is_exception,
            only_directories,
        })
    }

    /// Whether the pattern is about this path, relative to the directory of the pattern's file.
    pub fn matches(&self, path: &[u8], is_directory: bool) -> bool {
        if self.only_directories && !is_directory {
            return false;
        }
        let from =
            if self.is_name { memchr::memrchr(b'/', path).map_or(0, |at| at + 1) } else { 0 };
        path[from..].strip_prefix(&*self.prefix).is_some_and(|rest| are_matched(&self.tokens, rest))
    }
}

/// Spaces at the end of a line do not count, unless a backslash stands before them.
fn without_trailing_spaces(line: &[u8]) -> &[u8] {
    let (mut at, mut end) = (0, 0);
    while at < line.len() {
        let is_space = line[at] == b' ';
        at += if line[at] == b'\\' { 2 } else { 1 };
        if !is_space {
            end = at.min(line.len());
        }
    }
    &line[..end]
}

/// `None` if it matches nothing: it ends within a class, or with a backslash.
fn tokens(pattern: &[u8]) -> Option<Vec<Token>> {
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = pattern.get(at) {
        let begin = at;
        at += 1;
        tokens.push(match byte {
            b'\\' => {
                at += 1;
                Token::Byte(*pattern.get(at - 1)?)
            }
            b'?' => Token::One,
            b'*' => {
                at += pattern[at..].iter().take_while(|byte| **byte == b'*').count();
                let is_component = begin == 0 || pattern[begin - 1] == b'/';
                match pattern.get(at) {
                    Some(b'/') if at - begin > 1 && is_component => {
                        at += 1;
                        if matches!(tokens.last(), Some(Token::Directories)) {
                            continue;
                        }
                        Token::Directories
                    }
                    None if at - begin > 1 && is_component => Token::All,
                    _ => Token::Many,
                }
            }
            b'[' => {
                let (class, end) = class(pattern, at)?;
                at = end;
                Token::Class(class)
            }
            other => Token::Byte(*other),
        });
    }
    Some(tokens)
}

/// The class whose first byte is at `at`, and where the pattern goes on.
fn class(pattern: &[u8], mut at: usize) -> Option<(Class, usize)> {
    let mut matching = Box::new([false; 256]);
    let is_negated = matches!(pattern.get(at)?, b'!' | b'^');
    at += usize::from(is_negated);
    let first = at;
    loop {
        let (low, next) = match (pattern.get(at)?, pattern.get(at + 1)) {
            (b']', _) if at > first => break,
            (b'[', Some(b':')) if is_named(&pattern[at + 2..]) => {
                let (length, belongs) = named(&pattern[at + 2..])?;
                (0..=255).filter(belongs).for_each(|byte| matching[usize::from(byte)] = true);
                at += 2 + length + 2;
                continue;
            }
            (b'\\', escaped) => (*escaped?, at + 2),
            (byte, _) => (*byte, at + 1),
        };
        at = next;
        matching[usize::from(low)] = true;
        let mut high = low;
        if pattern.get(at) == Some(&b'-') && pattern.get(at + 1).is_some_and(|byte| *byte != b']') {
            let escaped = usize::from(pattern[at + 1] == b'\\');
            high = *pattern.get(at + 1 + escaped)?;
            at += 2 + escaped;
        }
        (low..=high).for_each(|byte| matching[usize::from(byte)] = true);
    }
    matching.iter_mut().for_each(|matches| *matches ^= is_negated);
    matching[usize::from(b'/')] = false;
    Some((Class(matching), at + 1))
}

/// Whether the next `]` ends a name.
fn is_named(pattern: &[u8]) -> bool {
    let end = pattern.iter().position(|byte| *byte == b']').unwrap_or(0);
    end > 0 && pattern[end - 1] == b':'
}

type Belongs = fn(&u8) -> bool;

/// A class by its name, such as `alpha` before `:]`, and the length of the name.
fn named(pattern: &[u8]) -> Option<(usize, Belongs)> {
    const NAMES: [(&str, Belongs); 12] = [
        ("alnum", u8::is_ascii_alphanumeric),
        ("alpha", u8::is_ascii_alphabetic),
        ("blank", |byte| matches!(byte, b' ' | b'\t')),
        ("cntrl", u8::is_ascii_control),
        ("digit", u8::is_ascii_digit),
        ("graph", u8::is_ascii_graphic),
        ("lower", u8::is_ascii_lowercase),
        ("print", |byte| matches!(byte, b' '..=b'~')),
        ("punct", u8::is_ascii_punctuation),
        ("space", |byte| matches!(byte, b' ' | b'\t'..=b'\r')),
        ("upper", u8::is_ascii_uppercase),
        ("xdigit", u8::is_ascii_hexdigit),
    ];
    let (name, belongs) =
        NAMES.iter().find(|(name, _)| pattern.starts_with(format!("{name}:]").as_bytes()))?;
    Some((name.len(), *belongs))
}

/// Goes through a text once, with the set of all places in the pattern that are reached.
fn are_matched(tokens: &[Token], text: &[u8]) -> bool {
    if tokens.is_empty() {
        return text.is_empty();
    }
    let mut reached = vec![false; tokens.len() + 1];
    let mut next = reached.clone();
    reach(tokens, &mut reached, 0);
    for byte in text {
        next.fill(false);
        for (at, token) in tokens.iter().enumerate().filter(|(at, _)| reached[*at]) {
            match token {
                Token::Byte(own) if own == byte => reach(tokens, &mut next, at + 1),
                Token::One if *byte != b'/' => reach(tokens, &mut next, at + 1),
                Token::Class(Class(bytes)) if bytes[usize::from(*byte)] => {
                    reach(tokens, &mut next, at + 1);
                }
                Token::Many if *byte != b'/' => reach(tokens, &mut next, at),
                Token::All => reach(tokens, &mut next, at),
                Token::Directories if *byte == b'/' => reach(tokens, &mut next, at),
                // What follows comes only after a slash.
                Token::Directories => next[at] = true,
                Token::Byte(_) | Token::One | Token::Class(_) | Token::Many => {}
            }
        }
        if !next.contains(&true) {
            return false;
        }
        std::mem::swap(&mut reached, &mut next);
    }
    reached[tokens.len()]
}

/// Adds a place, and those behind tokens that match nothing: at most two follow each other.
fn reach(tokens: &[Token], reached: &mut [bool], mut at: usize) {
    reached[at] = true;
    while let Some(Token::Many | Token::All | Token::Directories) = tokens.get(at) {
        at += 1;
        reached[at] = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What git 2 says of the same lines (`git check-ignore`).
    #[test]
    fn a_pattern_means_what_it_means_to_git() {
        for (line, matching, others) in [
            ("a", "a x/a", "ab x/ab a/x"),
            ("/a", "a", "x/a"),
            ("x/a", "x/a", "y/x/a a"),
            ("*.rs", "a.rs .rs x/a.rs", "a.rsx a.r"),
            ("x/*.rs", "x/a.rs", "x/y/a.rs a.rs"),
            ("**/a", "a x/a x/y/a", "xa x/ya"),
            ("a/**", "a/x a/x/y", "a ab/x"),
            ("a/**/b", "a/b a/x/b a/x/y/b", "ab a/xb"),
            ("a/**/**/b/*c", "a/b/c a/x/b/xc", "a/b a/b/x/c"),
            ("/x**", "x xy x/y", "ax"),
            ("a**b/c", "axb/c ab/c", "a/b/c"),
            ("a?c", "abc", "ac a/c"),
            ("[a-c]x", "ax cx", "dx x"),
            ("[!a-c]x", "dx !x", "ax /x"),
            ("[]-]", "] -", "a"),
            ("[[:digit:]_]", "7 _", "a :"),
            ("[c-a]", "c", "a b"),
            ("a\\*", "a*", "ab"),
            ("\\#a", "#a", "a"),
            ("\\!a", "!a", "a"),
            ("a  \r", "a", ""),
            ("{a,b}", "{a,b}", "a b"),
            ("é?", "éx", "é"),
        ] {
            let pattern = IgnorePattern::parse(line.as_bytes()).unwrap();
            let paths = |list: &'static str| list.split(' ').filter(|path| !path.is_empty());
            for path in paths(matching) {
                assert!(pattern.matches(path.as_bytes(), false), "{line} {path}");
            }
            for path in paths(others) {
                assert!(!pattern.matches(path.as_bytes(), false), "{line} {path}");
            }
        }
        for line in ["", "#a", "/", "!", "  ", "[a", "a[b", "a\\"] {
            assert!(IgnorePattern::parse(line.as_bytes()).is_none(), "{line}");
        }
        let space = IgnorePattern::parse(b"a\\  ").unwrap();
        assert!(space.matches(b"a ", false) && !space.matches(b"a", false));
        let directory = IgnorePattern::parse(b"!x/a/").unwrap();
        assert!(directory.is_exception && directory.matches(b"x/a", true));
        assert!(!directory.matches(b"x/a", false));
    }

    #[test]
    fn a_match_takes_no_more_steps_than_pattern_times_path() {
        let pattern = format!("x/{}b", "**/*a*".repeat(10_000));
        let pattern = IgnorePattern::parse(pattern.as_bytes()).unwrap();
        assert!(!pattern.matches(format!("x/{}", "a/a".repeat(200)).as_bytes(), false));
    }
}
