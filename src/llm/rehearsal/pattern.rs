//! Patterns over messages, and the places in a script's texts that they fill.

/// A text in which `*` stands for any text. Upper and lower case are one, and white space around
/// both sides does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    source: String,
}

impl Pattern {
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into() }
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    /// What each `*` stands for in a text that matches, as short as possible; the last takes the
    /// rest.
    pub fn captures(&self, text: &str) -> Option<Vec<String>> {
        let text: Vec<char> = text.trim().chars().collect();
        let parts: Vec<Vec<char>> =
            self.source.trim().split('*').map(|part| part.chars().collect()).collect();
        let (first, rest) = parts.split_first()?;
        if !starts(&text, first) {
            return None;
        }
        let Some((last, middle)) = rest.split_last() else {
            return (text.len() == first.len()).then(Vec::new);
        };
        let mut captures = Vec::new();
        let mut at = first.len();
        for part in middle {
            let found = (at..=text.len()).find(|from| starts(&text[*from..], part))?;
            captures.push(text[at..found].iter().collect());
            at = found + part.len();
        }
        let end = text.len().checked_sub(last.len()).filter(|end| *end >= at)?;
        if !starts(&text[end..], last) {
            return None;
        }
        captures.push(text[at..end].iter().collect());
        Some(captures)
    }
}

fn starts(text: &[char], with: &[char]) -> bool {
    text.len() >= with.len() && text.iter().zip(with).all(|(a, b)| same(*a, *b))
}

fn same(a: char, b: char) -> bool {
    a == b || a.to_lowercase().eq(b.to_lowercase())
}

/// What the places of a script's texts are filled with.
#[derive(Clone, Debug, Default)]
pub struct Fill {
    pub input: String,
    pub captures: Vec<String>,
    pub result: String,
    /// `None` when the request does not say where the Pod works.
    pub cwd: Option<String>,
}

impl Fill {
    /// The text with `{input}`, `{1}` …, `{result}` and `{cwd}` filled in, once; other braces stay
    /// as they are. Fails with the name of a place that cannot be filled.
    pub fn text(&self, text: &str) -> Result<String, &'static str> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            out.push_str(&rest[..open]);
            rest = &rest[open..];
            let name = rest[1..].find('}').map(|close| &rest[1..=close]);
            match name.map(|name| self.value(name)).transpose()?.flatten() {
                Some(value) => {
                    out.push_str(value);
                    rest = &rest[name.map_or(0, str::len) + 2..];
                }
                None => {
                    out.push('{');
                    rest = &rest[1..];
                }
            }
        }
        out.push_str(rest);
        Ok(out)
    }

    fn value(&self, name: &str) -> Result<Option<&str>, &'static str> {
        Ok(match name {
            "input" => Some(self.input.as_str()),
            "result" => Some(self.result.as_str()),
            "cwd" => Some(self.cwd.as_deref().ok_or("cwd")?),
            _ => match name.parse::<usize>() {
                Ok(number @ 1..=9) if name.len() == 1 => {
                    self.captures.get(number - 1).map(String::as_str)
                }
                _ => None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captures(pattern: &str, text: &str) -> Option<Vec<String>> {
        Pattern::new(pattern).captures(text)
    }

    #[test]
    fn a_star_stands_for_any_text_and_case_does_not_count() {
        for (pattern, text, found) in [
            ("hello", " Hello\n", Some(vec![])),
            ("hello", "hello you", None),
            ("*", "", Some(vec![""])),
            ("fix *", "Fix the run loop", Some(vec!["the run loop"])),
            ("copy * to *", "copy a to b to c", Some(vec!["a", "b to c"])),
            ("*needle*", "a needle in hay", Some(vec!["a ", " in hay"])),
            ("a*a", "a", None),
            ("ÄRGER *", "ärger 日本語", Some(vec!["日本語"])),
            ("what next?", "What next?", Some(vec![])),
        ] {
            let found = found.map(|all| all.into_iter().map(String::from).collect::<Vec<_>>());
            assert_eq!(captures(pattern, text), found, "{pattern} on {text}");
        }
    }

    #[test]
    fn places_are_filled_once_and_other_braces_stay() {
        let fill = Fill {
            input: "{cwd}".into(),
            captures: vec!["one".into()],
            result: "r".into(),
            cwd: Some("/w".into()),
        };
        let text = fill.text("{cwd}/{1} {2} {input} {result} {x} { {} ${a} {").unwrap();
        assert_eq!(text, "/w/one {2} {cwd} r {x} { {} ${a} {");
        assert_eq!(Fill::default().text("in {cwd}"), Err("cwd"));
        assert_eq!(Fill::default().text("no place").as_deref(), Ok("no place"));
    }
}
