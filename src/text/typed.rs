//! Words as they have to be typed so that they are taken for nothing but text. A Pod may choose a path or a
//! command that a line for a shell names, and the person who pastes that line runs it outside every wall.

use std::borrow::Cow;

/// A word for a line of verbs only. Where a person can paste the line into a shell, use [`shell_word`].
pub fn verb_word(word: &str) -> Cow<'_, str> {
    let is_plain = |c: char| !c.is_whitespace() && !matches!(c, '\'' | '"' | '\\');
    quoted_unless(is_plain, word)
}

/// A word for a shell; a line of verbs reads it as the same word.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    // In zsh `=ls` is the path of a program.
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@+,%".contains(c);
    quoted_unless(is_plain, word)
}

fn quoted_unless(is_plain: impl Fn(char) -> bool, word: &str) -> Cow<'_, str> {
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(shell_quoted(word))
}

/// As [`shell_word`], in quotes even where it needs none.
pub fn shell_quoted(word: &str) -> String {
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('\'');
    for c in word.chars() {
        match c {
            // In fish a backslash between single quotes would escape a quote that follows it.
            '\'' | '\\' => quoted.extend(['\'', '\\', c, '\'']),
            _ => quoted.push(c),
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Words in which a shell finds more than text when they are not quoted.
    const WORDS: [&str; 27] = [
        "d$(touch${IFS}pwned)",
        "`id`",
        "a;b",
        "a&b",
        "a|b",
        "(a)",
        "{a,b}",
        "a>b",
        "a<b",
        "*",
        "a?",
        "[a]",
        "~",
        "#a",
        "!!",
        "$HOME",
        "=ls",
        "A=b",
        "^a^b",
        "a b",
        "a\nb",
        "it's",
        "\"a\"",
        "a\\b",
        r"\'; echo pwned; '",
        "",
        "/w/日本-_.:@+,%",
    ];

    #[test]
    fn a_shell_takes_each_word_for_the_text_that_it_is() {
        let lines = [WORDS.map(|word| shell_word(word).into_owned()), WORDS.map(shell_quoted)];
        for line in lines {
            let line = format!(r"printf '%s\0' {}", line.join(" "));
            let printed = Command::new("sh").args(["-c", &line]).output().unwrap().stdout;
            let printed = String::from_utf8(printed).unwrap();
            assert_eq!(printed.split_terminator('\0').collect::<Vec<_>>(), WORDS, "{line}");
        }
    }

    #[test]
    fn no_backslash_stands_between_quotes_where_fish_reads_it_as_an_escape() {
        assert_eq!(shell_word(r"\'a"), r"''\\''\''a'");
    }

    #[test]
    fn a_word_is_quoted_only_where_that_is_needed() {
        assert_eq!(shell_word("/w/日本-_.:@+,%"), "/w/日本-_.:@+,%");
        assert_eq!(shell_word("a$b"), "'a$b'");
        assert_eq!(verb_word("a$b"), "a$b");
        assert_eq!(shell_quoted("ab"), "'ab'");
    }
}
