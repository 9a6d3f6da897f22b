//! The words of a line, split as a shell splits them: quotes and backslashes keep blanks together.

/// One word, and where it stands in its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    /// The byte at which it begins, its quotes included.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
}

/// A quote that is not closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the quote {0} is not closed")]
pub struct OpenQuote(char);

/// Splits a line whose quotes are all closed.
pub fn split(line: &str) -> Result<Vec<Word>, OpenQuote> {
    match scan(line, usize::MAX) {
        (words, None) => Ok(words),
        (_, Some(quote)) => Err(OpenQuote(quote)),
    }
}

/// Splits a line that is still being typed: a quote that is open reaches to its end.
pub fn split_unfinished(line: &str) -> Vec<Word> {
    scan(line, usize::MAX).0
}

/// The first word of a line, unless its quote is not closed.
pub fn first_word(line: &str) -> Option<Word> {
    match scan(line, 1) {
        (words, None) => words.into_iter().next(),
        (_, Some(_)) => None,
    }
}

/// The text of a line up to the first blank, whatever is quoted, and the rest.
pub fn first(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    line.split_at(line.find(char::is_whitespace).unwrap_or(line.len()))
}

/// The first words, at most so many, and the quote that is open at the end of the last.
fn scan(line: &str, most: usize) -> (Vec<Word>, Option<char>) {
    let mut words = Vec::new();
    let mut word: Option<Word> = None;
    let mut quote = None;
    let mut chars = line.char_indices();
    while let Some((at, c)) = chars.next() {
        if quote.is_none() && c.is_whitespace() {
            words.extend(word.take());
            if words.len() == most {
                break;
            }
            continue;
        }
        let open = word.get_or_insert_with(|| Word { text: String::new(), start: at, end: at });
        open.end = at + c.len_utf8();
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => match chars.next() {
                Some((at, next)) => {
                    open.text.push(next);
                    open.end = at + next.len_utf8();
                }
                None => open.text.push('\\'),
            },
            _ => open.text.push(c),
        }
    }
    words.extend(word);
    (words, quote)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use yoi::text::{shell_quoted, shell_word, verb_word};

    fn texts(line: &str) -> Vec<String> {
        let words = split(line).expect("closed quotes");
        words.into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn quotes_and_backslashes_keep_blanks_together() {
        assert_eq!(
            texts(r#"new --cwd "my dir" 'a b'c d\ e"#),
            ["new", "--cwd", "my dir", "a bc", "d e"]
        );
        assert_eq!(texts(r#"'a\b' "c\"d""#), [r"a\b", "c\"d"]);
        assert_eq!(texts("''"), [""]);
    }

    #[test]
    fn an_open_quote_is_refused_and_completed() {
        assert_eq!(split("who 'my").expect_err("open").to_string(), "the quote ' is not closed");
        let words = split_unfinished("who 'my d");
        assert_eq!((words[1].text.as_str(), words[1].start), ("my d", 4));
    }

    proptest! {
        #[test]
        fn a_quoted_word_is_read_back(word in any::<String>()) {
            prop_assert_eq!(texts(&verb_word(&word)), [word.as_str()]);
            prop_assert_eq!(texts(&shell_word(&word)), [word.as_str()]);
            prop_assert_eq!(texts(&shell_quoted(&word)), [word.as_str()]);
        }
    }
}
